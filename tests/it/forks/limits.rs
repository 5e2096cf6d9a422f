//! Limits of forks: the number of agents that a reply may fork, and of agents that may live.

use raymond::domain::apply::{apply, begin};
use raymond::store::record;
use serde_json::json;

use super::{answering, births, each, error, place, play, scripted, spawn};
use crate::support::{Test, when};

/// Returns a list with so many entries.
fn lines(number: usize) -> Vec<u8> {
    (0..number).flat_map(|line| format!("{line}\n").into_bytes()).collect()
}

#[test]
fn innermost_max_fan_out_limits_forks_of_reply() {
    let place =
        |number| scripted("join: all", &each("items.txt")).file("items.txt", &lines(number));
    let frontmatter = |test: Test, most| {
        test.prompt("START.md", &format!("---\nmax_fan_out: {most}\n---\nstart"))
    };
    let manifest = |test: Test| test.file("raymond.yaml", b"max_fan_out: 3\n");
    let table = [
        (place(1001), 1001, 1000),
        (manifest(place(4)), 4, 3),
        (frontmatter(manifest(place(6)), 5), 6, 5),
        (frontmatter(manifest(place(3)), 2), 3, 2),
    ];
    for (test, asked, most) in table {
        play(&test, &[]).code(1);
        let why = error(&test, "main");
        let expected = format!(
            "{asked} agents would be forked, but one reply may fork at most {most} (max_fan_out, in the frontmatter of START.md or in raymond.yaml)"
        );
        assert!(why.contains(&expected), "{why}");
        assert!(births(&test).is_empty());
    }
    for (test, born) in [(manifest(place(3)), 3), (frontmatter(manifest(place(5)), 5), 5)] {
        play(&test, &[]).ok();
        assert_eq!(births(&test), [born]);
    }
}

#[test]
fn max_fan_out_counts_all_forks_of_reply() {
    let two = "<fork next=\"JOIN.md\" each=\"items.txt\">WORKER.md</fork>".repeat(2);
    let test = scripted("join: all", &two)
        .prompt("START.md", "---\nforks: many\nmax_fan_out: 5\n---\nstart")
        .file("items.txt", &lines(3));
    play(&test, &[]).code(1);
    assert!(
        error(&test, "main").contains("6 agents would be forked, but one reply may fork at most 5")
    );
}

/// Returns the most agents that lived at the same time, from the journal.
fn most_alive(test: &Test) -> usize {
    let journal = std::fs::read_to_string(test.journal_file()).expect("a journal");
    let mut records = journal.lines().map(|line| record::decode(line).expect("a record"));
    let (mut run, _) = begin(&records.next().expect("a first record")).expect("a run");
    let mut most = 1;
    for record in records {
        apply(&mut run, &record).expect("it can happen");
        most = most.max(run.agents.len());
    }
    most
}

/// Returns a workflow in which each agent forks two of its kind, and waits for them.
fn bomb(rest: &str) -> Test {
    let fork = r#"<fork next="JOIN.md" each="[1, 2]">START.md</fork>"#;
    scripted(&format!("join: all\nrest: {rest}"), fork)
}

#[test]
fn fork_bomb_pauses_run_at_max_agents() {
    for rest in ["stop", "leave"] {
        let test = bomb(rest);
        let ended = play(&test, &["--max-agents", "12"]);
        ended.code(75);
        assert!(most_alive(&test) <= 12, "{}", most_alive(&test));
        ended.stderr_has("2 would be forked, and at most 12 may live at the same time");
        ended.stderr_has(
            "if so many are intended, resume with more: raymond resume t --max-agents N",
        );
        test.assert_no_survivors();
    }
}

#[test]
fn fork_beyond_max_agents_is_rejected_and_can_be_repaired() {
    let policy = "---\nallowed_transitions:\n  - { tag: fork, target: WORKER.md, next: JOIN.md, each: any }\n---\nstart";
    let test = place("join: all")
        .prompt("START.md", policy)
        .rule(when("start").reply(&each("[1, 2, 3]")))
        .rule(when("no room: 1 agent lives, 3 would be forked, and at most 3 may live at the same time (--max-agents)").reply(&each("[1, 2]")))
        .rule(when("work").reply("<result>done</result>"))
        .rule(when("merge").reply("<result>merged</result>"));
    spawn(&test, &["--max-agents", "3"]).wait().ok().ended("main", "merged");
    assert_eq!(births(&test), [2]);
    assert_eq!(most_alive(&test), 3);
}

#[test]
fn plain_fork_beyond_max_agents_pauses_run() {
    // The worker lives on while it waits for a person.
    let others = json!({
        "NEXT.md": [r#"<fork next="NEXT.md">WORKER.md</fork>"#],
        "WORKER.md": [r#"<ask next="NEXT.md">well?</ask>"#],
    });
    let start = r#"<fork next="NEXT.md">WORKER.md</fork>"#;
    let test = answering(place("join: all"), start, &others).prompt("NEXT.md", "next");
    let paused = play(&test, &["--max-agents", "1"]);
    paused.code(75).stderr_has("1 would be forked, and at most 1 may live at the same time");
    let further = test.raymond(&["run", "t", "--max-agents", "2"]);
    further.code(75).stderr_has("2 agents live, 1 would be forked, and at most 2 may live");
}
