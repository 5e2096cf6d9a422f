//! `raymond graph`: drawings of workflows, in three formats.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::support::Test;

fn sample(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("workflows").join(name)
}

/// Returns the drawing of a sample. The sample is linked, so that the drawing has only its name.
fn drawn(name: &str, format: &str) -> String {
    let test = Test::new();
    std::os::unix::fs::symlink(sample(name), test.flow().join(name)).expect("linked");
    test.raymond(&["graph", name, "--format", format]).ok().stdout.clone()
}

/// Returns the texts of a class in an SVG.
fn texts(svg: &str, class: &str) -> BTreeSet<String> {
    let document = roxmltree::Document::parse(svg).expect("valid XML");
    let of_class = document.descendants().filter(|node| node.attribute("class") == Some(class));
    of_class.filter_map(|node| node.text().map(str::to_owned)).collect()
}

#[test]
fn tour_sample_matches_mermaid_snapshot() {
    assert_eq!(drawn("tour", "mermaid"), include_str!("drawing/tour.mmd"));
}

#[test]
fn tour_sample_matches_dot_snapshot() {
    assert_eq!(drawn("tour", "dot"), include_str!("drawing/tour.dot"));
}

/// Returns a graph of a chain of nodes, each of which may fail.
fn chain(nodes: usize) -> String {
    use std::fmt::Write as _;
    let mut text = "name: chain\nversion: \"1.0.0\"\nstart_node: n0\nnodes:\n".to_owned();
    for node in 0..nodes {
        let next = if node + 1 == nodes { "done".to_owned() } else { format!("n{}", node + 1) };
        let _ = writeln!(
            text,
            "  n{node}:\n    type: action\n    actions:\n      - {{ type: set_flag, flag: f{node}, value: true }}\n    on_success: {next}\n    on_failure: failed"
        );
    }
    text + "endings:\n  done: { type: success, message: Done }\n  failed: { type: error, message: Failed }\n"
}

#[test]
fn large_graph_is_drawn_with_its_far_nodes_folded() {
    let test = Test::new().file("workflow.yaml", chain(5000).as_bytes());
    for (format, largest) in [("svg", 1_000_000), ("mermaid", 40_000), ("dot", 40_000)] {
        let drawn = test.raymond(&["graph", "workflow.yaml", "--format", format]);
        drawn
            .ok()
            .stderr_has(
                "the picture has the 300 nodes next to the start, and one for the other 4703",
            )
            .stderr_has("--max-nodes shows more")
            .stdout_has("… 4703 more nodes,")
            .stdout_has("n297")
            .stdout_lacks("n301");
        let length = drawn.stdout.len();
        assert!(length < largest, "{format}: {length} bytes");
        if format == "svg" {
            assert!(texts(&drawn.stdout, "name").contains("n5"));
        }
    }
    let all = ["graph", "workflow.yaml", "--format", "dot", "--max-nodes", "6000"];
    let all = test.raymond(&all);
    all.ok().stdout_has("\"n4999\"");
    assert_eq!(all.stderr, "");
    test.raymond(&["graph", "workflow.yaml", "--max-nodes", "0"]).code(64);
}

#[test]
fn svg_of_every_sample_shows_all_states() {
    for folder in fs::read_dir(sample("")).expect("the samples") {
        let folder = folder.expect("a folder").path();
        if !folder.join("START.md").exists() {
            continue;
        }
        let name = folder.file_name().and_then(|name| name.to_str()).expect("a name");
        let svg = drawn(name, "svg");
        let shown = texts(&svg, "name");
        for file in fs::read_dir(&folder).expect("the folder") {
            let file = file.expect("a file").file_name().into_string().expect("a name");
            if Path::new(&file).extension().is_some_and(|ending| ending == "md") {
                assert!(shown.contains(&file), "{name}: {file} is not in {shown:?}");
            }
        }
        assert!(!svg.contains("<script"), "{name}");
        assert_eq!(svg, drawn(name, "svg"), "{name} is drawn the same way again");
    }
}

#[test]
fn transitions_found_in_prompt_text_are_dashed() {
    let test = Test::new()
        .prompt(
            "START.md",
            "Go on: <goto>NEXT.md</goto>, or <call return=\"END.md\">SUB.md</call>. See ALSO.md.",
        )
        .prompt(
            "NEXT.md",
            "---\nallowed_transitions:\n  - { tag: reset, target: GONE.md, a: '\"<b>\"' }\n---\nx",
        )
        .prompt("SUB.md", "x")
        .prompt("END.md", "<result>x</result>")
        .prompt("ALSO.md", "<result>x</result>");
    let mermaid = test.raymond(&["graph", "."]).ok().stdout.clone();
    for line in [
        "n0((\" \")):::begins",
        "n1[\"START.md\"]:::loose",
        "n2[\"NEXT.md\"]\n",
        "[\"GONE.md\"]:::wrong",
        "n1 -.->|\"goto\"| n2",
        "==>|\"reset a=#34;#60;b#62;#34;\"|",
        "-.->|\"returns\"|",
        "-.->|\"result\"|",
    ] {
        assert!(mermaid.contains(line), "{line:?} is not in\n{mermaid}");
    }
}

#[test]
fn fan_out_and_join_are_drawn() {
    let head =
        |keys: &str, entries: &str| format!("---\n{keys}allowed_transitions:\n{entries}---\nx\n");
    let fork = "  - { tag: fork, target: W.md, next: JOIN.md, each: items.json, as: file }\n  - { tag: fork, target: V.md, next: JOIN.md }\n";
    let join = "join: 7\ntimeout: 2h\non_failure: TORN.md\non_timeout: LATE.md\n";
    let result = "  - { tag: result }\n";
    let test = Test::new()
        .prompt("START.md", &head("", fork))
        .prompt("JOIN.md", &head(join, "  - { tag: goto, target: MANY.md }\n"))
        .prompt(
            "MANY.md",
            &head("forks: many\n", "  - { tag: fork, target: V.md, next: LATE.md }\n"),
        )
        .prompt("W.md", &head("", "  - { tag: reset, target: LAST.md }\n"))
        .prompt("LAST.md", &head("", result))
        .prompt("V.md", &head("", result))
        .prompt("TORN.md", &head("", result))
        .prompt("LATE.md", "---\njoin: any\n---\n<result>x</result>\n");
    let mermaid = test.raymond(&["graph", "."]).ok().stdout.clone();
    let dot = test.raymond(&["graph", ".", "--format", "dot"]).ok().stdout.clone();
    for line in [
        "n2[\"W.md\"]",
        "n3[\\\"JOIN.md<br/>join 7 within 2h\"/]",
        "n8[\"LATE.md<br/>join any\"]:::loose",
        "n1 ==>|\"fork for each file of items.json\"| n2",
        "n1 -->|\"fork\"| n4",
        "n3 -->|\"too many failed\"| ",
        "n3 -->|\"not in time\"| ",
        "n5 -->|\"joined\"| n3",
        "n4 -->|\"joined\"| n3",
        "==>|\"fork several at once\"| n4",
    ] {
        assert!(mermaid.contains(line), "{line:?} is not in\n{mermaid}");
    }
    assert!(!mermaid.contains("n5 -->|\"result\"|"), "its result goes to the join\n{mermaid}");
    for line in [
        "[label=\"JOIN.md\\njoin 7 within 2h\", shape=invtrapezium]",
        "[label=\"fork for each file of items.json\", color=\"#3b82f6:#3b82f6:#3b82f6\", arrowhead=diamond]",
        "[label=\"joined\", color=\"#3b82f6\", arrowhead=odiamond]",
    ] {
        assert!(dot.contains(line), "{line:?} is not in\n{dot}");
    }
    let svg = test.raymond(&["graph", ".", "--format", "svg"]).ok().stdout.clone();
    for text in ["JOIN.md", "join 7 within 2h"] {
        assert!(texts(&svg, "name").contains(text), "{text}");
    }
    assert!(svg.contains("<path class=\"edge bold forks\""), "{svg}");
}

#[test]
fn graph_drawing_shows_all_nodes() {
    let graph = "name: g\nversion: \"1.0.0\"\nstart_node: look\nnodes:\n  look:\n    type: conditional\n    condition: { type: flag_set, flag: ready }\n    branches: { true: done, false: end }\nendings:\n  done: { type: success, message: Done }\n  end: { type: error, message: Not ready }\n";
    let test = Test::new().prompt("g.yaml", graph);
    let svg = test.raymond(&["graph", "g.yaml", "--format", "svg"]).ok().stdout.clone();
    let expected = ["done", "end", "flag_set", "look"].map(str::to_owned);
    assert_eq!(texts(&svg, "name"), BTreeSet::from(expected));
    assert_eq!(texts(&svg, "label"), BTreeSet::from(["false", "true"].map(str::to_owned)));
    let test = test.prompt("g.yaml", &graph.replace("true: done", "true: gone"));
    test.raymond(&["graph", "g.yaml"]).code(65).stderr_has("g.yaml:8:23: WF203 ");
}

#[test]
fn output_file_extension_selects_format() {
    let test = Test::new().prompt("START.md", "<result>x</result>");
    for (file, beginning) in
        [("a.svg", "<svg "), ("a.dot", "digraph "), ("a.mmd", "%% .\nflowchart TD")]
    {
        let outcome = test.raymond(&["graph", ".", "-o", file]);
        outcome.ok().assert(outcome.stdout.is_empty(), "nothing on stdout");
        let drawn = fs::read_to_string(test.flow().join(file)).expect("written");
        assert!(drawn.starts_with(beginning), "{drawn}");
    }
    test.raymond(&["graph", ".", "-o", "gone/a.svg"])
        .code(74)
        .stderr_has("gone/a.svg: cannot write the picture");
    test.run_without_reader(&["graph", "."]).ok();
}

#[test]
fn workflow_without_start_is_not_drawn() {
    let test = Test::new().prompt("NEXT.md", "x");
    test.raymond(&["graph", "."]).code(65).stderr_has("RF001 a workflow begins with START.md");
    test.raymond(&["graph", "gone"]).code(64);
}

#[test]
fn program_drawing_shows_states_and_roles() {
    let program = "(workflow w\n  (roles (worker :agent-kind \"claude-code\"))\n  (state ask\n    (action (send-prompt :agent worker :template \"x\" :request-id work))\n    (await (transcript-response :request-id work)))\n  (state done (terminal)))\n";
    let test = Test::new().prompt("p.lisp", program);
    let svg = test.raymond(&["graph", "p.lisp", "--format", "svg"]).ok().stdout.clone();
    assert_eq!(texts(&svg, "name"), BTreeSet::from(["ask", "done", "worker"].map(str::to_owned)));
    assert_eq!(texts(&svg, "label"), BTreeSet::from(["work".to_owned()]));
    let test = test.prompt("p.lisp", &program.replace(":agent worker", ":agent other"));
    test.raymond(&["graph", "p.lisp"]).code(65).stderr_has("p.lisp:4:").stderr_has("SX305");
}
