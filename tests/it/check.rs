//! `raymond check`: all mistakes of a workflow, with their places, before it is run.

use std::path::{Path, PathBuf};

use raymond::language::tag::misspelt;
use serde_json::{Value, json};

use crate::support::{Test, always};

fn sample(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("workflows").join(name)
}

/// Returns the folders in `workflows/`.
fn samples() -> Vec<PathBuf> {
    let entries = std::fs::read_dir(sample("")).expect("the samples");
    entries.map(|entry| entry.expect("an entry").path()).filter(|path| path.is_dir()).collect()
}

fn goto(target: &str) -> String {
    format!("---\nallowed_transitions:\n  - {{ tag: goto, target: {target} }}\n---\nx\n")
}

/// Returns a folder with a mistake of each sort.
fn broken() -> Test {
    Test::new()
        .prompt("START.md", &goto("NXT.md"))
        .prompt("NEXT.md", "---\nmodle: opus\n---\nx\n")
        .file("raymond.yaml", b"max_procs: 0\n")
        .file("replies.yaml", b"START.md: [x]\nGONE.md: [x]\n")
}

const SAID: [&str; 7] = [
    "NEXT.md:1:1: warning: RF110 nothing leads to this state from START.md; name it in a policy, or move it elsewhere if it is not a state",
    "NEXT.md:2:1: RF002 unknown key `modle`; did you mean `model`?",
    "START.md:3:3: RF201 this policy allows nothing: each of its entries names a missing file",
    "START.md:3:26: RF101 NXT.md: there is no such file; did you mean NEXT.md?",
    "raymond.yaml:1:12: RF003 write a number from 1 to 65535, or auto",
    "replies.yaml:2:1: warning: RF005 unknown prompt GONE.md; no agent is ever given these",
    "",
];

#[test]
fn sample_workflows_pass_check() {
    let test = Test::new();
    let samples = samples();
    assert!(samples.len() >= 7);
    for folder in samples {
        let path = folder.to_str().expect("a path");
        if folder.join("START.md").exists() || folder.join("raymond.yaml").exists() {
            let allowed = ["--allow-tool", "Bash(cargo test:*)"];
            let outcome = test.raymond(&[&["check", path], &allowed[..]].concat());
            outcome.ok().stderr_has(&format!("{path}: ")).stderr_has(" files, no problems");
            outcome.assert(outcome.stdout.is_empty(), "nothing on stdout");
        }
        for file in std::fs::read_dir(&folder).expect("a folder") {
            let file = file.expect("a file").path();
            let is_graph = file.extension().is_some_and(|ending| ending == "yaml")
                && !file.ends_with("replies.yaml")
                && !file.ends_with("answers.yaml")
                && !file.ends_with("raymond.yaml");
            if is_graph {
                test.raymond(&["check", file.to_str().expect("a path")]).ok();
            }
        }
    }
    let tour = sample("tour");
    let tour = tour.to_str().expect("a path");
    test.raymond(&["check", tour]).stderr_has(&format!("{tour}: 12 files, no problems"));
}

#[test]
fn all_mistakes_are_reported_at_once_with_positions() {
    let test = broken();
    let outcome = test.raymond(&["check", "."]);
    outcome.code(65);
    assert_eq!(outcome.stdout, SAID.join("\n"));
    assert_eq!(outcome.stderr, "4 errors, 2 warnings in 4 files\n");
    let outcome = test.raymond(&["check", "../flow/"]);
    outcome.code(65).stdout_has("../flow/START.md:3:26: RF101");
}

#[test]
fn json_output_lists_diagnostics() {
    let outcome = broken().raymond(&["check", ".", "--json"]);
    let found = outcome.code(65).json();
    assert_eq!(found["valid"], false);
    let diagnostics = found["diagnostics"].as_array().expect("a list");
    assert_eq!(diagnostics.len(), 6);
    let missing: Vec<&Value> = diagnostics.iter().filter(|one| one["code"] == "RF101").collect();
    let expected = json!({
        "path": "START.md", "line": 3, "column": 26, "code": "RF101", "severity": "error",
        "message": "NXT.md: there is no such file; did you mean NEXT.md?",
    });
    assert_eq!(missing, [&expected]);
    let clean =
        Test::new().prompt("START.md", "<result>x</result>").raymond(&["check", ".", "--json"]);
    assert_eq!(clean.ok().json(), json!({ "valid": true, "diagnostics": [] }));
}

#[test]
fn level_selects_what_is_shown_and_strict_counts_warnings() {
    let test = Test::new()
        .prompt("START.md", &goto("END.md"))
        .prompt("END.md", "{{who}} <result>x</result>");
    let warned = test.raymond(&["check", ".", "--strict"]);
    warned.code(65).stdout_has("END.md:1:1: warning: RF401");
    warned.stderr_has("1 warning in 2 files\n");
    let all = test.raymond(&["check", ".", "--level", "info"]);
    all.ok().stdout_has("START.md:3:5: info: RF601").stdout_has("warning: RF401");
    let errors = test.raymond(&["check", ".", "--level", "error", "--json", "--strict"]);
    errors.code(65);
    let json: Value = serde_json::from_str(&errors.stdout).expect("JSON");
    assert_eq!(json, json!({ "valid": false, "diagnostics": [] }));
    let infos = test.raymond(&["check", ".", "--level", "info", "--json"]);
    infos.ok().stdout_has("\"severity\": \"info\"");
}

#[test]
fn warnings_alone_do_not_fail_check() {
    let test = Test::new().prompt("START.md", "{{who}} <result>x</result>");
    let outcome = test.raymond(&["check", "."]);
    outcome.ok().stdout_has("START.md:1:1: warning: RF401 nothing fills {{who}}");
    outcome.stderr_has("1 warning in 1 file\n");
    test.raymond(&["check", ".", "--var", "who"]).ok().stderr_has(".: 1 file, no problems");
}

#[test]
fn prompt_is_checked_with_reachable_files_only() {
    let test = broken().prompt("ALONE.md", &goto("END.md")).prompt("END.md", "<result>x</result>");
    let test = test.file("raymond.yaml", b"").file("replies.yaml", b"");
    test.raymond(&["check", "ALONE.md"]).ok().stderr_has("ALONE.md: 4 files, no problems");
}

/// Returns a graph without the keys that only the strict schema requires. It leads to `target`.
fn graph(target: &str) -> String {
    format!(
        "name: other\nversion: \"1.0.0\"\nstart_node: look\nnodes:\n  look:\n    type: conditional\n    condition: {{ type: flag_set, flag: ready }}\n    branches: {{ true: done, false: {target} }}\nendings:\n  done: {{ type: success, message: Done }}\n"
    )
}

#[test]
fn graph_is_checked_alone_and_when_reached_from_prompt() {
    let call =
        "---\nallowed_transitions:\n  - { tag: function, target: g.yaml, return: END.md }\n---\nx";
    let test = Test::new()
        .prompt("START.md", call)
        .prompt("END.md", "{{result}} <result>x</result>")
        .prompt("g.yaml", &graph("gone"))
        .prompt("unreached.yaml", "wrong");
    let outcome = test.raymond(&["check", "."]);
    outcome.code(65).stdout_has("g.yaml:8:36: WF203 ").stdout_lacks("unreached");
    test.raymond(&["check", "g.yaml"]).code(65).stdout_has("g.yaml:8:36: WF203 ");

    let test = test.prompt("g.yaml", &graph("done"));
    test.raymond(&["check", "."]).ok().stderr_has(" in 3 files");
    let strict = test.raymond(&["check", "g.yaml", "--profile", "seed", "--json"]).code(65).json();
    assert_eq!(strict["valid"], false);
    let lenient = test.raymond(&["check", "g.yaml", "--json"]).ok().json();
    assert_eq!(lenient["valid"], true);
    let codes = |found: &Value| -> Vec<Value> {
        let found = found["diagnostics"].as_array().expect("a list");
        found.iter().map(|one| one["code"].clone()).collect()
    };
    assert_eq!(codes(&strict), codes(&lenient), "the same things, taken more strictly");
}

#[test]
fn non_utf8_graph_is_error() {
    let test = Test::new().file("bad.yaml", b"name: x\nversion: \xff\n");
    let outcome = test.raymond(&["check", "bad.yaml"]);
    outcome
        .code(65)
        .stdout_has("bad.yaml:2:10: WF001 this is not UTF-8 text; save the file as UTF-8");
    let test = test.prompt("START.md", &goto("bad.yaml"));
    test.raymond(&["check", "."]).code(65).stdout_has("bad.yaml:2:10: WF001");
}

#[test]
fn path_without_workflow_is_refused() {
    let test = Test::new().prompt("NEXT.md", "x").file("notes.txt", b"x");
    test.raymond(&["check", "gone"]).code(64).stderr_has("gone: there is no such file or folder");
    test.raymond(&["check", "notes.txt"])
        .code(65)
        .stderr_has("this is not a state: a state is a prompt");
    test.raymond(&["check", "."]).code(65).stdout_has("START.md:1:1: RF001 a workflow begins with");
    test.raymond(&["check"]).code(64);
}

#[test]
fn long_help_lists_diagnostic_codes() {
    let test = Test::new();
    test.raymond(&["check", "--help"]).ok().stdout_has("RF101").stdout_has("RF402");
    test.raymond(&["check", "-h"]).ok().stdout_lacks("RF402  ").stdout_has("Examples:");
}

#[test]
fn closed_stdout_does_not_change_exit_code() {
    broken().run_without_reader(&["check", "."]).code(65);
}

#[test]
fn program_error_shows_source_line_with_caret() {
    let test = Test::new().prompt("p.lisp", "(workflow w\n  (state a\n    (goto bb)))\n");
    let outcome = test.raymond(&["check", "p.lisp"]);
    outcome.code(65).stderr_has("1 error in 1 file");
    let lines: Vec<&str> = outcome.stdout.lines().collect();
    assert!(lines[0].starts_with("p.lisp:3:11: SX304 "), "{lines:#?}");
    assert_eq!(lines[1..], ["      (goto bb)))", "            ^"]);
    let found = test.raymond(&["check", "p.lisp", "--json"]).code(65).json();
    assert_eq!(found["diagnostics"][0]["code"], "SX304");
    test.raymond(&["check", "--help"]).ok().stdout_has("SX304");

    let test = test.file("bad.duet", b"(workflow w\n \xff");
    test.raymond(&["check", "bad.duet"]).code(65).stdout_has("bad.duet:2:2: RF001 this is not UTF");
}

/// Adds the Markdown files below a directory.
fn add_markdown(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).expect("a directory") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            add_markdown(&path, found);
        } else if path.extension().is_some_and(|ending| ending == "md") {
            found.push(path);
        }
    }
}

#[test]
fn documents_and_sample_prompts_have_no_near_tags_but_those_they_speak_of() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = vec![root.join("README.md"), root.join("CONTRIBUTING.md")];
    for dir in ["docs", "examples", "tests", "workflows"] {
        add_markdown(&root.join(dir), &mut files);
    }
    assert!(files.len() > 60, "{}", files.len());
    let mut found = Vec::new();
    for file in &files {
        let text = std::fs::read_to_string(file).expect("a text");
        let name = file.strip_prefix(root).expect("it is below").display();
        found.extend(misspelt(&text).iter().map(|one| format!("{name} {}", one.mistake)));
    }
    found.sort();
    let shown = "docs/reference/frontmatter.md";
    let expected = [
        format!("{shown} <gotto>, which is not a tag; did you mean <goto>?"),
        format!("{shown} a <goto> without its </goto>"),
    ];
    assert_eq!(found, expected);
}

#[test]
fn graph_is_checked_the_same_from_any_current_directory() {
    let graph = "name: flow\nversion: \"1\"\ninitial_state: { known: 1 }\nimports: { words: words.yaml }\nstart_node: a\nnodes:\n  a:\n    type: action\n    actions:\n      - { type: invoke_pattern, path: doc.md, section: Part, store_as: done }\n      - { type: read_file, path: /etc/hostname, store_as: host }\n      - { type: run_state, state: GONE.md }\n      - { type: write_file, path: ../out, content: '${knwon} ${imports.words.a}' }\n    on_success: b\n    on_failure: failed\n  b:\n    type: conditional\n    condition: { type: count_above, field: computed.dnoe, min: 0 }\n    branches: { true: done, false: failed }\nendings:\n  done: { type: success, message: Done }\n  failed: { type: error, message: Failed }\n";
    let test = Test::new()
        .file("workflow.yaml", graph.as_bytes())
        .file("doc.md", b"# Part\n\nDo it.\n")
        .file("words.yaml", b"a: b\n")
        .file("elsewhere/doc.md", b"# Another\n");
    let file = test.flow().join("workflow.yaml");
    let checked = |directory: &str| {
        let script = format!("cd '{directory}' && exec \"$0\" check '{}'", file.display());
        let outcome = test.shell(&script).wait();
        outcome.code(65);
        (outcome.stdout.clone(), outcome.stderr.clone())
    };
    let here = checked(".");
    let all = format!("{}{}", here.0, here.1);
    for found in ["WF304", "WF330 variable `knwon`", "WF330 variable `computed.dnoe`", "GONE.md"] {
        assert!(all.contains(found), "{found}: {all}");
    }
    for directory in ["/", "elsewhere"] {
        assert_eq!(checked(directory), here, "{directory}");
    }
}

#[test]
fn prompt_of_a_node_or_a_role_that_looks_like_a_command_is_warned_of() {
    let graph = |node: &str, prompt: &str| {
        format!(
            "name: flow\nversion: \"1\"\ndescription: d\nentry_preconditions: []\ninitial_state: {{ x: a }}\nstart_node: a\nnodes:\n  a:\n    type: action\n{node}    actions:\n      - {{ type: foreach, items: [1], actions: [{{ type: spawn_agent, {prompt}, store_as: computed.y }}] }}\n    on_success: done\n    on_failure: done\nendings:\n  done: {{ type: success, message: m }}\n"
        )
    };
    let switch = "    run_command: true\n";
    for (node, prompt, warnings) in [
        ("", "subagent_type: general-purpose, prompt: /review it", 1),
        ("", "subagent_type: general-purpose, prompt: '/${x} it'", 1),
        ("", "subagent_type: Explore, prompt: /review it", 0),
        ("", "subagent_type: general-purpose, prompt: '${x} it'", 0),
        ("", "subagent_type: general-purpose, prompt: /srv/app has a bug", 0),
        ("    run_command: false\n", "subagent_type: general-purpose, prompt: /review it", 0),
        (switch, "subagent_type: general-purpose, prompt: /review it", 0),
        (switch, "subagent_type: general-purpose, prompt: '${x}'", 0),
        (switch, "subagent_type: general-purpose, prompt: review it", 1),
    ] {
        let test = Test::new().prompt("flow.yaml", &graph(node, prompt));
        let outcome = test.raymond(&["check", "flow.yaml"]);
        let found = outcome.ok().stdout.matches("RF407").count();
        outcome.assert(found == warnings, &format!("{warnings} of {node}{prompt}"));
    }
    let program = |role: &str, template: &str| {
        format!(
            "(workflow w (roles (a :agent-kind \"claude-code\"{role})) (state s (action (send-prompt :agent a :template \"{template}\" :args (@label) :request-id one)) (await (transcript-response :request-id one))))"
        )
    };
    for (role, template, warnings) in [
        ("", "/review ~a", 1),
        ("", "~a", 0),
        (" :run-command true", "/review ~a", 0),
        (" :run-command true", "review ~a", 1),
        (" :run-command true", "~a", 0),
    ] {
        let test = Test::new().prompt("w.lisp", &program(role, template));
        let outcome = test.raymond(&["check", "w.lisp"]);
        let found = outcome.stdout.matches("RF407").count();
        outcome.assert(found == warnings, &format!("{warnings} of {role} {template}"));
    }
    let manifest = Test::new()
        .prompt("raymond.yaml", "run_command: true\n")
        .prompt("workflow.yaml", &graph("", "subagent_type: general-purpose, prompt: /review it"));
    manifest.raymond(&["check", "."]).stdout_lacks("RF407");
}

#[test]
fn program_of_a_script_that_is_not_installed_is_named() {
    let script = |line: &str| format!("{line}\necho '<result>ok</result>'\n");
    for (line, missing) in [
        ("#!/bin/sh", None),
        ("#!/usr/bin/env sh", None),
        ("#!/usr/bin/env -S A=1 sh -e", None),
        ("#!/usr/bin/env -S -u FOO sh", None),
        ("#!/usr/bin/env -S -C /tmp sh", None),
        ("#!/usr/bin/env -S 'sh' -e", None),
        ("#!/usr/bin/env -S PATH=/opt/none:/bin python4", None),
        ("#!/usr/bin/env sh -e", Some("sh -e")),
        ("#!/opt/none/env sh", Some("/opt/none/env")),
        ("#!/opt/none/python4 -u", Some("/opt/none/python4")),
        ("#!/usr/bin/env python4", Some("python4")),
        ("#!/usr/bin/env -S python4 -u", Some("python4")),
        ("#!python4", Some("python4")),
    ] {
        let test = Test::new().prompt("START.sh", &script(line));
        let checked = test.raymond(&["check", "."]);
        let said = missing.map(|program| {
            format!(
                "START.sh:1:1: warning: RF408 the program {program}, which executes this script"
            )
        });
        match said {
            Some(said) => checked.ok().stdout_has(&said),
            None => checked.ok().stdout_lacks("RF408"),
        };
    }
    let test = Test::new()
        .prompt("START.md", "<call return=\"END.md\">sub/</call>")
        .prompt("END.md", "<result>ok</result>")
        .prompt("sub/START.sh", &script("#!/opt/none/ruby"))
        .prompt("helper.rb", "#!/opt/none/other\n");
    let checked = test.raymond(&["check", "."]);
    checked.ok().stdout_has("sub/START.sh:1:1: warning: RF408").stdout_lacks("other");
}

#[test]
fn manifest_beside_a_folder_has_no_effect_and_is_named() {
    let workflow = |file: &str, entry: &str| {
        Test::new()
            .prompt("in/START.md", "<result>ok</result>")
            .prompt("in/replies.yaml", "START.md: <result>ok</result>\n")
            .file("raymond.yaml", format!("budget: 1\n{entry}").as_bytes())
            .prompt(file, "<result>ok</result>")
    };
    let said = "raymond.yaml:1:1: warning: RF003 this file has no effect; move it into ";
    let stray = workflow("OTHER.md", "");
    stray.raymond(&["check", "in"]).ok().stdout_has(said);
    stray
        .run(&["in", "--agent", "scripted"])
        .ok()
        .stderr_has("RF003 this file has no effect; move it into");
    for (file, entry) in [("START.md", ""), ("OTHER.md", "entry: OTHER.md\n")] {
        workflow(file, entry).raymond(&["check", "in"]).ok().stdout_lacks("RF003");
    }
}

#[test]
fn cases_that_cannot_be_read_do_not_hide_other_mistakes() {
    let workflow = || Test::new().prompt("START.md", "{{who}} <result>ok</result>");
    let mut odd = vec![workflow().file("tests", b"x")];
    let linked = workflow().file("other.yaml", b"expect: {}").file("tests/b.yaml", b"expect: 1");
    std::os::unix::fs::symlink("../other.yaml", linked.flow().join("tests/a.yaml")).expect("made");
    linked.raymond(&["check", "."]).code(65).stdout_has("tests/a.yaml:1:1: RF008");
    odd.push(linked);
    odd.push(workflow().file("tests/a.yaml", b"entry: ../START.md\nexpect: {}\n"));
    odd.push(
        workflow()
            .file("tests/a.yaml", b"entry: replies.yaml\nexpect: {}\n")
            .file("replies.yaml", b""),
    );
    for test in odd {
        test.raymond(&["check", "."])
            .stdout_has("START.md:1:1: warning: RF401 nothing fills {{who}}");
        test.raymond(&["check", ".", "--json"]).stdout_has("\"RF401\"");
    }
}

#[test]
fn check_shows_the_policy_that_a_text_implies_and_writes_it() {
    let hello = "Say hi. End with <goto>NEXT.md</goto> or <result>x</result>";
    let test = Test::new()
        .prompt("START.md", &format!("---\nmodel: haiku\n---\n{hello}"))
        .prompt("NEXT.md", "---\nallowed_transitions:\n  - { tag: result }\n---\nEnd.");
    test.raymond(&["check", "."])
        .ok()
        .stderr_has("START.md has no policy; its text implies:")
        .stderr_has("      - { tag: goto, target: NEXT.md }\n      - { tag: result }")
        .stderr_has("`raymond check . --write` writes that into the frontmatter");
    let test = test.rule(always().reply("nothing"));
    let failed = test.run(&["START.md"]);
    failed.code(1).stderr_has("`raymond check PATH --write` adds the policy");
    test.raymond(&["check", ".", "--write"]).ok().stderr_has("START.md: wrote the policy");
    let written = std::fs::read_to_string(test.flow().join("START.md")).expect("read");
    let policy = "  - { tag: goto, target: NEXT.md }\n  - { tag: result }\n";
    assert_eq!(written, format!("---\nmodel: haiku\nallowed_transitions:\n{policy}---\n{hello}"));
    test.raymond(&["check", "."]).ok().stderr_lacks("has no policy");
}

#[test]
fn policy_with_a_wrong_tag_is_neither_proposed_nor_written() {
    let prompt = "Go. End with <goto>NEXT.md</goto> or <goto>next.md</goto>";
    let test = Test::new().prompt("START.md", prompt).prompt("NEXT.md", "Bye. <result>x</result>");
    test.raymond(&["check", "."]).code(65).says("RF103").stderr_lacks("START.md has no policy");
    test.raymond(&["check", ".", "--write"]).code(65).stderr_lacks("START.md: wrote the policy");
    let after = std::fs::read_to_string(test.flow().join("START.md")).expect("it is there");
    assert_eq!(after, prompt);
}

#[test]
fn shown_result_without_attribute_has_hint_to_the_allowed_attribute() {
    let policy = "---\nallowed_transitions: [{ tag: result, value: done }]\n---\n";
    let text = format!("{policy}Say hi. <result>hi</result>");
    Test::new().prompt("START.md", &text).raymond(&["check", "."]).says(
        "which the policy above does not allow: it has <result value=\"done\">…</result>; a reply",
    );
}
