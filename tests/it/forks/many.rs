//! Several `<fork>` tags in one reply, in a state with `forks: many`.

use std::fmt::Write as _;

use serde_json::json;

use super::{answering, births, error, outcomes, payload, place, play};
use crate::support::{Test, always, when};

/// Returns a workflow in which START may fork many agents, and replies with this.
fn many(reply: &str) -> Test {
    let others = json!({"OTHER.md": ["<result>other {{item}}</result>"]});
    answering(place("join: all"), reply, &others)
        .prompt("START.md", "---\nforks: many\n---\nstart")
        .prompt("OTHER.md", "other")
        .file("items.txt", b"x\ny\n")
}

#[test]
fn several_forks_in_reply_form_one_step() {
    let test = many(
        r#"<fork next="JOIN.md" item="a">WORKER.md</fork> and
        <fork next="JOIN.md" each="items.txt">WORKER.md</fork> and
        <fork next="JOIN.md" item="b">OTHER.md</fork> and
        <fork next="JOIN.md" item="c">WORKER.md</fork>"#,
    );
    let ended = play(&test, &[]);
    assert_eq!(
        outcomes(&payload(ended.ok(), "main")),
        [
            "main.1 result did a",
            "main.2 result did x",
            "main.3 result did y",
            "main.4 result other b",
            "main.5 result did c"
        ]
    );
    assert_eq!(births(&test), [5]);
    let step = &test.events("step_finished")[0];
    let states: Vec<_> =
        step["children"].as_array().into_iter().flatten().map(|b| &b["state"]).collect();
    assert_eq!(states, ["WORKER.md", "OTHER.md", "WORKER.md"]);
}

#[test]
fn incompatible_forks_in_reply_fail_agent() {
    let fork = |next: &str| format!(r#"<fork next="{next}" item="a">WORKER.md</fork>"#);
    let table = [
        (
            format!("{} {}", fork("JOIN.md"), fork("OTHER.md")),
            "several may stand together only if all are <fork> tags with the same next",
        ),
        (
            format!("{} <goto>JOIN.md</goto>", fork("JOIN.md")),
            "several may stand together only if all are <fork> tags with the same next",
        ),
        (
            format!("{} {}", fork("JOIN.md"), fork("JOIN.md").replace("WORKER", "GONE")),
            "GONE.md: there is no such file",
        ),
        (format!("{} <fork>WORKER.md</fork>", fork("JOIN.md")), "next="),
    ];
    for (reply, message) in table {
        let test = many(&reply);
        play(&test, &[]).code(1);
        let why = error(&test, "main");
        assert!(why.contains(message), "{reply}: {why}");
        assert!(births(&test).is_empty() && test.events("step_finished").is_empty());
    }
    let plain = many(&format!("{0} {0}", fork("JOIN.md"))).prompt("START.md", "start");
    play(&plain, &[]).code(1);
    assert!(
        error(&plain, "main").contains("`forks: many` in the state's frontmatter allows several")
    );
}

#[test]
fn incompatible_forks_in_reply_get_reminder() {
    let policy = "---\nforks: many\nallowed_transitions:\n  - { tag: fork, target: WORKER.md, next: JOIN.md }\n---\nstart";
    let fork = r#"<fork next="JOIN.md" item="a">WORKER.md</fork>"#;
    let other = fork.replace("JOIN.md", "WORKER.md");
    let test = place("join: all")
        .prompt("START.md", policy)
        .rule(when("start").reply(&format!("{fork} {other}")))
        .rule(
            when("only if all are <fork> tags with the same next").reply(&format!("{fork} {fork}")),
        )
        .rule(when("work").reply("<result>done</result>"))
        .rule(always().reply("<result>merged</result>"));
    super::spawn(&test, &[]).wait().ok().ended("main", "merged");
    assert_eq!(test.events("turn_rejected").len(), 1);
    assert_eq!(births(&test), [2]);
    assert_eq!(test.calls_with("work on a").len(), 2);
}

#[test]
fn reply_with_too_many_forks_is_rejected_as_a_whole() {
    let tags = |number: usize| {
        (0..number).fold(String::new(), |mut all, item| {
            let _ = writeln!(all, r#"<fork next="JOIN.md" item="{item}">WORKER.md</fork>"#);
            all
        })
    };
    let test = many(&tags(100));
    let ended = play(&test, &[]);
    assert_eq!(outcomes(&payload(ended.ok(), "main")).len(), 100);
    assert_eq!(births(&test), [100]);
    let test = many(&tags(101));
    play(&test, &[]).code(1);
    let why = error(&test, "main");
    assert!(
        why.contains("only 100 of them were read") && why.contains("each=\"items.json\""),
        "{why}"
    );
    assert!(births(&test).is_empty());
}
