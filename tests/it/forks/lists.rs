//! Lists in all forms, and the variables of a worker from its entry.

use serde_json::{Value, json};

use super::{answering, births, each, outcomes, payload, place, play, scripted, spawn};
use crate::support::when;

#[test]
fn list_in_any_format_gives_each_worker_its_entry() {
    let lists = [
        ("items.json", r#"["bees", "cows", 3]"#),
        ("sub/items.jsonl", "\"bees\"\n\n\"cows\"\n3\n"),
        ("items.ndjson", "\"bees\"\r\n\"cows\"\r\n3"),
        ("items.txt", "bees\n\n  \ncows\n3\n"),
        ("items", "\u{feff}bees\ncows\n3"),
    ];
    let inline = r#"["bees", "cows", 3]"#;
    for (list, text) in lists.into_iter().chain([(inline, "")]) {
        let test = scripted("join: all", &each(list));
        let test = if text.is_empty() { test } else { test.file(list, text.as_bytes()) };
        let ended = play(&test, &[]);
        let expected = ["main.1 result did bees", "main.2 result did cows", "main.3 result did 3"];
        assert_eq!(outcomes(&payload(ended.ok(), "main")), expected, "{list}");
        assert_eq!(births(&test), [3], "{list}: one record has all of them");
        ended.stdout_has("Agent main.2 terminated with result: did cows");
    }
}

#[test]
fn entry_fields_become_variables_and_override_tag_attributes() {
    let tag = r#"<fork next="JOIN.md" each="items.json" as="job" kind="all" who="nobody">WORKER.md</fork>"#;
    let items = r#"[{"who": "bees", "n": 1, "deep": {"a": [true]}}, {"n": "2"}, "plain"]"#;
    let worker = json!({"WORKER.md": ["<result>{{kind}} {{who}} {{n}} {{deep}} {{job}}</result>"]});
    let test = answering(place("join: all"), tag, &worker).file("items.json", items.as_bytes());
    let ended = play(&test, &[]);
    let results = payload(ended.ok(), "main");
    let expected = [
        r#"main.1 result all bees 1 {"a":[true]} {"who":"bees","n":1,"deep":{"a":[true]}}"#,
        r#"main.2 result all nobody 2 {{deep}} {"n":"2"}"#,
        "main.3 result all nobody {{n}} {{deep}} plain",
    ];
    let outcomes = outcomes(&results);
    assert_eq!(outcomes[1..], expected[1..]);
    assert!(outcomes[0].starts_with(r#"main.1 result all bees 1 {"a":[true]} {"#), "{outcomes:?}");
    let variables = json!({"job": "plain", "kind": "all", "who": "nobody"});
    assert_eq!(results[2]["variables"], variables);
    assert_eq!(results[2]["state"], "WORKER.md");
}

#[test]
fn worker_runs_in_own_directory_with_own_variables() {
    let items = r#"[{"crate": "a", "why": "it is <small> & \"old\""}, {"crate": "b"}]"#;
    let test = place("join: all")
        .file("items.json", items.as_bytes())
        .file("crates/a/README.md", b"a")
        .file("crates/b/README.md", b"b")
        .file("crates/b/more.txt", b"inner\n")
        .prompt("WORKER.md", "work on {{crate}}: {{why}}")
        .prompt("INNER.md", "inner {{item}}")
        .rule(when("start").reply(
            r#"<fork next="JOIN.md" each="items.json" cwd="./crates/{{crate}}" why="none">WORKER.md</fork>"#,
        ))
        .rule(when("merge").reply("<result>merged</result>"))
        .rule(when("work on a").reply("<result>a</result>"))
        .rule(when("work on b").reply(r#"<fork next="JOIN.md" each="more.txt">INNER.md</fork>"#))
        .rule(when("inner").reply("<result>inner</result>"));
    spawn(&test, &[]).wait().ok().ended("main", "merged");
    let flow = test.flow().canonicalize().expect("a directory");
    for (prompt, directory) in [
        ("work on a: it is <small> & \"old\"", "crates/a"),
        ("work on b: none", "crates/b"),
        ("inner inner", "crates/b"),
    ] {
        let [call] = &test.calls_with(prompt)[..] else { panic!("{prompt}: {:?}", test.prompts()) };
        call.assert_fresh();
        assert_eq!(std::path::Path::new(&call.cwd), flow.join(directory), "{prompt}");
    }
    let start = &test.calls_with("start")[0];
    let merges = test.calls_with("merge");
    let merge = merges.iter().find(|call| call.agent() == "main").expect("it merged");
    merge.assert_resumes(start);
    assert_eq!(std::path::Path::new(&merge.cwd), flow);
}

#[test]
fn fork_with_cwd_is_recorded_as_single_entry_list() {
    let test = place("join: all")
        .file("sub/x", b"")
        .rule(when("start").reply(r#"<fork next="JOIN.md" cwd="sub" item="it">WORKER.md</fork>"#))
        .rule(when("work on it").reply("<result>done</result>"))
        .rule(when("merge").reply("<result>merged</result>"));
    spawn(&test, &[]).wait().ok().ended("main.1", "done");
    assert!(test.calls_with("work on it")[0].cwd.ends_with("/flow/sub"));
    assert_eq!(births(&test), [1]);
}

#[test]
fn stagger_delays_all_but_first_worker() {
    let start = each(r#"["a", "b", "c"]"#);
    let test = scripted("join: all\nstagger: 0s", &start)
        .prompt("START.md", "---\nstagger: 40ms\n---\nstart");
    test.run(&["START.md", "--agent", "scripted", "--stagger", "1h"]).ok();
    let born: Vec<Value> = test
        .events("step_finished")
        .into_iter()
        .filter(|step| step["children"].is_array())
        .collect();
    assert!(born[0]["children"][0]["not_before"].is_string(), "{born:?}");
    let ended: Vec<Value> = test.events("step_finished");
    let first = ended.iter().position(|step| step["agent"] == "main.1");
    let others = ended.iter().position(|step| step["agent"] != "main" && step["agent"] != "main.1");
    assert!(first < others, "{ended:?}");
    let test = scripted("join: all", &start).file("raymond.yaml", b"stagger: 0s\n");
    test.run(&["START.md", "--agent", "scripted"]).ok();
    assert!(
        test.events("step_finished").iter().all(|step| step["children"][0]["not_before"].is_null())
    );
}

#[test]
fn worker_keeps_its_variables_in_all_its_states() {
    let tag = r#"<fork next="JOIN.md" each='["bees"]' as="job" kind="all">WORKER.md</fork>"#;
    let replies = json!({
        "WORKER.md": [r#"<goto kind="some">NEXT.md</goto>"#],
        "NEXT.md": [r#"<function return="BACK.md" by="{{kind}} {{job}}">SUB.md</function>"#],
        "SUB.md": ["<result>{{by}}, {{kind}} {{job}}</result>"],
        "BACK.md": [r#"<reset sub="{{result}}">LAST.md</reset>"#],
        "LAST.md": [r#"<fork next="LAST.md">FORKED.md</fork>"#, "<result>{{job}} {{result}}</result>"],
        "FORKED.md": ["<result>x</result>"],
        "JOIN.md": ["<result>{\"job\": \"{{job}}\", \"all\": {{results}}}</result>"],
    });
    let states = ["NEXT.md", "SUB.md", "BACK.md", "LAST.md", "FORKED.md"];
    let shown = "{{sub}}; {{kind}} {{job}} {{input}}";
    let test = states.iter().fold(place("join: all"), |test, name| test.prompt(name, shown));
    let ended = play(&answering(test, tag, &replies), &["--input", "honey"]);
    let joined = payload(ended.ok(), "main");
    assert_eq!(joined["job"], "{{job}}", "it is the worker's");
    assert_eq!(joined["all"][0]["result"], "bees {{result}}");
    assert_eq!(joined["all"][0]["variables"], json!({"job": "bees", "kind": "all"}));
}

#[test]
fn first_agent_keeps_input_and_graph_is_given_own_variables() {
    let graph = r#"
name: g
version: "1.0.0"
initial_state: { kind: initial, size: small }
start_node: look
nodes:
  look:
    type: conditional
    condition: { type: file_exists, path: START.md }
    branches: { true: over, false: over }
endings:
  over: { type: success, message: "${arguments} ${kind} ${size}" }
"#;
    let replies = json!({
        "WORKER.md": ["<goto>g.yaml</goto>"],
        "JOIN.md": ["<result>{{input}}: {{results}}</result>"],
    });
    let test = place("join: all").file("g.yaml", graph.as_bytes());
    let tag = r#"<fork next="JOIN.md" input="of the fork" kind="own">WORKER.md</fork>"#;
    let ended = play(&answering(test, tag, &replies), &["--input", "honey"]);
    ended.ok().stdout_has("terminated with result: honey: [");
    ended.stdout_has("of the fork own small");
}

#[test]
fn empty_list_starts_nobody_and_the_agent_goes_on() {
    let files: [(&str, &str); 4] =
        [("a.json", "[]"), ("a.txt", "\n \n"), ("a.jsonl", ""), ("[]", "")];
    for (list, text) in files {
        for join in ["join: all", "join: any\non_failure: keep", "model: haiku"] {
            let test = scripted(join, &each(list));
            let test = if list == "[]" { test } else { test.file(list, text.as_bytes()) };
            let ended = play(&test, &[]);
            ended.ok().stderr_has("JOIN.md, no new agent at WORKER.md: the list is empty");
            assert_eq!(births(&test), [0], "{list}");
            let expected = if join == "model: haiku" { "{{results}}" } else { "[]" };
            ended.ended("main", expected);
        }
    }
    let test = scripted("join: any", &each("[]"));
    play(&test, &[])
        .code(1)
        .stderr_has("it waits for any of its forked agents, but has forked none");
}

#[test]
fn empty_list_beside_another_list_starts_the_agents_of_the_other() {
    let tags = [each("[]"), each("[1, 2]"), each("none.txt")].concat();
    let test = answering(
        place("join: all").prompt("START.md", "---\nforks: many\n---\nstart"),
        &tags,
        &json!({}),
    );
    let ended = play(&test.file("none.txt", b""), &[]);
    assert_eq!(outcomes(&payload(ended.ok(), "main")).len(), 2);
}

#[test]
fn workers_start_in_the_order_of_their_numbers() {
    for stagger in ["0s", "5ms"] {
        let list = "[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]";
        let test = scripted("join: all", &each(list));
        let options = ["--agent", "scripted", "--max-procs", "1", "--stagger", stagger];
        test.run(&[&["START.md"], &options[..]].concat()).ok();
        let steps = test.events("step_finished");
        let workers = steps.iter().filter(|step| step["state"] == "WORKER.md");
        let agents: Vec<&str> = workers.filter_map(|step| step["agent"].as_str()).collect();
        let expected: Vec<String> = (1..=12).map(|number| format!("main.{number}")).collect();
        assert_eq!(agents, expected, "{stagger}");
    }
}
