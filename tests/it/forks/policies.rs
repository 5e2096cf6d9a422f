//! Policies for lists and directories.

use super::{answering, births, each, error, place, play};
use crate::support::Test;

/// Returns a workflow in which the policy of START has these further keys, and START gives these replies.
fn guarded(entry: &str, replies: &[&str]) -> Test {
    let policy = format!(
        "---\nallowed_transitions:\n  - {{ tag: fork, target: WORKER.md, next: JOIN.md{entry} }}\n---\nstart"
    );
    let others = serde_json::json!({"START.md": replies});
    answering(place("join: all"), "", &others)
        .prompt("START.md", &policy)
        .file("items.txt", b"a\nb\n")
        .file("other.txt", b"a\nb\nc\n")
        .file("sub/items.txt", b"")
}

#[test]
fn policy_entry_limits_allowed_lists() {
    let plain = r#"<fork next="JOIN.md" item="a">WORKER.md</fork>"#;
    let (items, other) = (each("items.txt"), each("other.txt"));
    let renamed = items.replace("each=", "as=\"line\" each=");
    let moved = items.replace("each=", "cwd=\"sub\" each=");
    let kind = items.replace("each=", "kind=\"k\" each=");
    let table: [(&str, &[&str], &[&str]); 6] = [
        ("", &[plain], &[&items, &other, &moved]),
        (", each: items.txt", &[&items, &kind], &[plain, &other, &renamed, &moved]),
        (", each: any", &[&items, &other, &kind], &[plain, &renamed, &moved]),
        (", each: any, as: line", &[&renamed], &[&items]),
        (", each: items.txt, cwd: sub", &[&moved], &[&items]),
        (", each: items.txt, kind: k", &[&kind], &[&items]),
    ];
    for (entry, right, wrong) in table {
        for reply in right {
            let test = guarded(entry, &[reply]);
            play(&test, &[]).ok();
            assert!(test.events("turn_rejected").is_empty(), "{entry}: {reply}");
        }
        for reply in wrong {
            let test = guarded(entry, &[reply, right[0]]);
            play(&test, &[]).ok();
            let [rejected] = &test.events("turn_rejected")[..] else { panic!("{entry}: {reply}") };
            let violation = rejected["violation"].as_str().unwrap_or_default();
            assert!(
                violation
                    .contains("is not an allowed transition of this state, which allows <fork"),
                "{violation}"
            );
        }
    }
}

#[test]
fn sole_fork_with_known_list_needs_no_tag() {
    let test = guarded(", each: items.txt", &["All is written."]);
    play(&test, &[]).ok();
    assert_eq!(births(&test), [2]);
    assert_eq!(test.events("step_finished")[0]["implicit"], true);
    let test = guarded(", each: any", &["All is written."; 4]);
    play(&test, &[]).code(1);
    assert!(error(&test, "main").contains("the reply has no transition tag"));
}

#[test]
fn missing_list_of_implied_fork_is_reported() {
    let test = guarded(", each: gone.txt", &["All is written.", "Is it?", "Yes.", "No."]);
    play(&test, &[]).code(1);
    let rejected = test.events("turn_rejected");
    assert_eq!(rejected.len(), 3);
    assert!(error(&test, "main").contains("no file `gone.txt`"));
}

#[test]
fn policy_checks_each_fork_of_reply() {
    let all =
        |target: &str| format!("{} <fork next=\"JOIN.md\">{target}</fork>", each("items.txt"));
    let policy = "---\nforks: many\nallowed_transitions:\n  - { tag: fork, target: WORKER.md, next: JOIN.md, each: any }\n  - { tag: fork, target: OTHER.md, next: JOIN.md }\n---\nstart";
    let others = serde_json::json!({
        "START.md": [all("WORKER.md"), all("OTHER.md")],
        "OTHER.md": ["<result>other</result>"],
    });
    let test = answering(place("join: all"), "", &others)
        .prompt("START.md", policy)
        .prompt("OTHER.md", "other")
        .file("items.txt", b"a\nb\n");
    play(&test, &[]).ok();
    let [rejected] = &test.events("turn_rejected")[..] else { panic!("one reminder") };
    assert_eq!(
        rejected["violation"],
        "<fork next=\"JOIN.md\">WORKER.md</fork> is not an allowed transition of this state, which allows <fork next=\"JOIN.md\" each=\"any\">WORKER.md</fork>"
    );
    assert_eq!(births(&test), [3]);
}
