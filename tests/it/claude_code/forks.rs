//! Many agents forked by one tag, and joined: the conversation and the directory of each.

use std::collections::BTreeSet;
use std::fs;

use serde_json::{Value, json};

use crate::api::on;
use crate::graph::git;

use super::POSITIVE;
use super::machine::TestMachine;

const ITEMS: [&str; 5] = ["one", "two", "three", "four", "five"];

/// Returns a machine on which START forks five workers with this frontmatter, and JOIN merges their results.
fn five(worker: &str) -> TestMachine {
    let machine = TestMachine::new();
    fs::write(machine.path("work/items.json"), json!(ITEMS).to_string()).expect("written");
    machine.prompt("START.md", "ALPHA: make a list.");
    machine.prompt("WORKER.md", &format!("{worker}BRAVO: look at {{{{item}}}}."));
    machine.prompt("JOIN.md", "---\njoin: all\n---\nCHARLIE: merge {{results}}.");
    machine.api.script([on("ALPHA")
        .reply(r#"There are five. <fork next="JOIN.md" each="items.json">WORKER.md</fork>"#)]);
    machine
}

/// Checks the conversation of the parent after the join, and the results in it.
fn check_joined(machine: &TestMachine) {
    let (parent, merge) = (machine.api.request("ALPHA"), machine.api.request("CHARLIE"));
    assert_eq!(parent.session, merge.session);
    assert!(merge.sees("ALPHA: make a list.") && merge.sees("There are five."), "{merge:#?}");
    assert!(!merge.sees("BRAVO") && !merge.sees("I looked."), "{merge:#?}");
    let results = merge.newest.trim().trim_start_matches("CHARLIE: merge ").trim_end_matches('.');
    let results: Vec<Value> = serde_json::from_str(results).expect("a list of results");
    let seen: Vec<_> = results.iter().map(|one| (&one["id"], &one["result"])).collect();
    let expected = [1, 2, 3, 4, 5].map(|id| json!(format!("main.{id}")));
    let saw = ITEMS.map(|item| json!(format!("saw {item}")));
    assert_eq!(seen, expected.iter().zip(&saw).collect::<Vec<_>>());
}

#[test]
fn workers_have_fresh_sessions_and_parent_gets_all_results() {
    let machine = five("");
    machine.api.script(ITEMS.map(|item| {
        on(&format!("look at {item}")).reply(&format!("I looked. <result>saw {item}</result>"))
    }));
    machine.api.script([on("CHARLIE").reply("<result>POSITIVE</result>")]);

    let ended = machine.start(&["--stagger", "100ms"]).wait().exits(0);

    let workers = ITEMS.map(|item| machine.api.request(&format!("look at {item}")));
    let sessions: BTreeSet<_> = workers.iter().map(|worker| worker.session.clone()).collect();
    assert_eq!(sessions.len(), 5);
    let parent = machine.api.request("ALPHA").session;
    assert!(!sessions.contains(&parent));
    for worker in &workers {
        assert_eq!(worker.texts.len(), 1, "{worker:#?}");
        assert!(!worker.sees("ALPHA"), "{worker:#?}");
    }
    check_joined(&machine);
    assert!(format!("{ended:?}").contains(POSITIVE.trim()));
    assert_eq!(machine.records("joined").len(), 1);
    let born = &machine.records("step_finished")[0]["children"][0]["agents"];
    let opened: BTreeSet<_> = born
        .as_array()
        .into_iter()
        .flatten()
        .map(|one| one["session"].as_str().unwrap_or_default().to_owned())
        .collect();
    assert_eq!(opened, sessions, "the sessions are those of the record");
}

#[test]
fn workers_start_and_resume_in_their_worktrees() {
    let machine = five("---\nworktree: true\n---\n");
    let work = machine.path("work");
    fs::write(work.join("README.md"), "shared\n").expect("written");
    git(&work, &["init", "-q", "-b", "main"]);
    git(&work, &["add", "README.md"]);
    git(&work, &["commit", "-q", "-m", "one"]);
    machine.prompt("NEXT.md", "DELTA: look again.");
    machine.api.script(ITEMS.map(|item| {
        let command = json!({"command": format!("cat README.md > seen-{item}; echo done {item}"), "description": "look"});
        on(&format!("look at {item}")).tool("Bash", command)
    }));
    machine.api.script(
        ITEMS.map(|item| on(&format!("done {item}")).reply("I looked. <goto>NEXT.md</goto>")),
    );
    machine.api.script([on("DELTA").reply("<result>saw it</result>")]);
    machine.api.script([on("CHARLIE").reply("<result>POSITIVE</result>")]);

    machine
        .start(&["--stagger", "0s", "--no-warm", "--dangerously-skip-permissions"])
        .wait()
        .exits(0);

    let trees = work.join(".raymond/worktrees/tested");
    for (number, item) in (1..).zip(ITEMS) {
        let tree = trees.join(format!("main.{number}"));
        let seen = fs::read_to_string(tree.join(format!("seen-{item}")));
        assert_eq!(seen.expect("it worked in its worktree"), "shared\n");
        let branch = git(&tree, &["rev-parse", "--abbrev-ref", "HEAD"]);
        assert_eq!(branch.trim(), format!("raymond/tested/main.{number}"));
    }
    assert!(!work.join("seen-one").exists());
    let again = machine.api.requests();
    let again: Vec<_> = again.iter().filter(|request| request.newest.contains("DELTA")).collect();
    assert_eq!(again.len(), 5);
    for request in again {
        assert!(request.sees("BRAVO: look at ") && request.sees("I looked."), "{request:#?}");
        assert!(!request.sees("ALPHA"), "{request:#?}");
    }
    assert_eq!(machine.records("joined").len(), 1);
}
