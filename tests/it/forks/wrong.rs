//! Lists that cannot be used: the message for the agent, the repair in its next reply, and no children
//! before.

use std::process::Command;

use super::{answering, births, each, error, place, play, spawn};
use crate::support::{Test, always, when};

/// A list, the preparation of its file, and the error in it.
struct BadListCase {
    list: &'static str,
    made: fn(Test) -> Test,
    message: &'static str,
}

fn as_it_is(test: Test) -> Test {
    test
}

fn command(test: &Test, program: &str, arguments: &[&str]) {
    let mut command = Command::new(program);
    let ended = command.args(arguments).current_dir(test.flow()).status();
    assert!(ended.is_ok_and(|ended| ended.success()), "{program} {arguments:?}");
}

const CASES: [BadListCase; 13] = [
    BadListCase { list: "gone.json", made: as_it_is, message: "no file `gone.json` in " },
    BadListCase {
        list: "../x.txt",
        made: as_it_is,
        message: "the path `../x.txt` leads out of the workspace",
    },
    BadListCase {
        list: "/etc/passwd",
        made: as_it_is,
        message: "the path `/etc/passwd` leads out of the workspace",
    },
    BadListCase {
        list: "out.txt",
        made: |test| {
            std::fs::write(test.root().join("secret"), "a\n").expect("written");
            command(&test, "ln", &["-s", "../secret", "out.txt"]);
            test
        },
        message: "leads out of the workspace",
    },
    BadListCase {
        list: "pipe.txt",
        made: |test| {
            command(&test, "mkfifo", &["pipe.txt"]);
            test
        },
        message: "cannot read `pipe.txt` in ",
    },
    BadListCase {
        list: "sub",
        made: |test| test.file("sub/x", b"x"),
        message: "it is a directory",
    },
    BadListCase {
        list: "a.json",
        made: |test| test.file("a.json", b""),
        message: "a.json is not valid JSON: 1:0: it ends too early",
    },
    BadListCase {
        list: "a.json",
        made: |test| test.file("a.json", b"[1,\n  oops]"),
        message: "a.json is not valid JSON: 2:3: expected a JSON value",
    },
    BadListCase {
        list: "a.json",
        made: |test| test.file("a.json", b"{\"a\": 1}"),
        message: "a.json holds an object, where a list is needed",
    },
    BadListCase {
        list: "a.jsonl",
        made: |test| test.file("a.jsonl", b"1\nplain\n"),
        message: "a.jsonl is not valid JSON Lines: 2:1: expected a JSON value: a quoted string, a number, true, false or null; use a .txt file for plain text",
    },
    BadListCase {
        list: "a.txt",
        made: |test| test.file("a.txt", b"\xff\xfe"),
        message: "it is not UTF-8 text: byte 0",
    },
    BadListCase {
        list: "a.txt",
        made: |test| test.file("a.txt", &b"0123456\n".repeat(512 * 1024 + 1)),
        message: "it is larger than 4 MiB",
    },
    BadListCase {
        list: "[1, 2",
        made: as_it_is,
        message: "the list in the tag is not valid JSON: 1:5: it ends too early",
    },
];

#[test]
fn unusable_list_fails_agent_with_reason() {
    for BadListCase { list, made, message } in CASES {
        let test = made(answering(place("join: all"), &each(list), &serde_json::json!({})));
        play(&test, &[]).code(1);
        let why = error(&test, "main");
        assert!(why.starts_with("in START.md: <fork next=\"JOIN.md\" each="), "{list}: {why}");
        assert!(why.contains(message), "{list}: {why}");
        assert!(
            why.ends_with("list allowed_transitions in the frontmatter of START.md and the agent is reminded of them"),
            "{list}: {why}"
        );
        assert!(
            births(&test).is_empty()
                && test.status()["agents"].as_array().is_none_or(Vec::is_empty)
        );
    }
}

/// A policy by which START may fork from any list.
const POLICY: &str = "---\nallowed_transitions:\n  - { tag: fork, target: WORKER.md, next: JOIN.md, each: any }\n---\nstart";

#[test]
fn agent_can_repair_unusable_list_after_reminder() {
    for BadListCase { list, made, message } in CASES {
        let test =
            made(place("join: all").prompt("START.md", POLICY).file("good.json", b"[\"it\"]"))
                .rule(when("start").reply(&each(list)))
                .rule(when(message).reply(&each("good.json")))
                .rule(when("work on it").reply("<result>done</result>"))
                .rule(when("merge").reply("<result>merged</result>"));
        spawn(&test, &[]).wait().ok().ended("main", "merged").ended("main.1", "done");
        let rejected = test.events("turn_rejected");
        assert_eq!(rejected.len(), 1, "{list}");
        let calls = test.calls();
        calls[1].assert_resumes(&calls[0]);
        assert!(
            calls[1].prompt.contains(
                "<fork next=\"JOIN.md\" each=\"your file or JSON list\">WORKER.md</fork>"
            ),
            "{list}: {}",
            calls[1].prompt
        );
        assert_eq!(births(&test), [1], "{list}");
    }
}

#[test]
fn unrepaired_list_fails_agent_after_reminders() {
    let test =
        place("join: all").prompt("START.md", POLICY).rule(always().reply(&each("gone.json")));
    spawn(&test, &[]).wait().code(1);
    assert_eq!(test.events("turn_rejected").len(), 3);
    let why = error(&test, "main");
    assert!(why.contains("gone.json") && why.ends_with("(still so after 3 reminders)"), "{why}");
}

#[test]
fn unusable_cwd_fails_agent_with_reason() {
    let fork = |rest: &str| format!("<fork next=\"JOIN.md\" {rest}>WORKER.md</fork>");
    let table = [
        (fork("each=\"items.json\" cwd=\"{{dir}}\""), "gone"),
        (
            fork("each=\"items.json\" cwd=\"{{nobody}}\""),
            "nothing fills {{nobody}} in cwd=\"{{nobody}}\"; the list entries have no such field",
        ),
        (
            fork("each=\"items.json\" cwd=\"{{up}}\""),
            "`../x` is not a directory below that of the agent",
        ),
        (fork("each=\"items.json\" cwd=\"{{file}}\""), "items.json"),
        (fork("each=\"items.json\" cwd=\"link\""), "link"),
        (fork("cwd=\"gone\""), "gone"),
        (
            fork("cwd=\"/etc\""),
            "cwd=\"/etc\" is not a directory below that of the agent; name one without a leading / and without `..`",
        ),
    ];
    for (tag, message) in table {
        let items = br#"[{"dir": "sub", "up": "../x", "file": "items.json"}, {"dir": "gone"}]"#;
        let test = answering(place("join: all"), &tag, &serde_json::json!({}))
            .file("items.json", items)
            .file("sub/x", b"");
        std::os::unix::fs::symlink(test.root(), test.flow().join("link")).expect("linked");
        play(&test, &[]).code(1);
        let why = error(&test, "main");
        assert!(why.contains(message), "{tag}: {why}");
        assert!(births(&test).is_empty());
    }
}
