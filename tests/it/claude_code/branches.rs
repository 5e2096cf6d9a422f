//! Branches of runs with the real program: what is asked again, and in which conversation and directory.

use std::fs;

use serde_json::{Value, json};

use crate::api::on;
use crate::graph::git;

use super::POSITIVE;
use super::machine::TestMachine;

/// The number of agents of the fan-out.
const AGENTS: usize = 100;

/// Returns the records of an event in the run `b`, oldest first.
fn records_of_branch(machine: &TestMachine, event: &str) -> Vec<Value> {
    let journal = machine.path("work/.raymond/runs/b/journal.jsonl");
    let journal = fs::read_to_string(journal).expect("the journal of the branch");
    let records = journal.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    records.filter(|record| record["event"] == event).collect()
}

#[test]
fn edited_prompt_of_a_fan_out_asks_only_the_states_that_follow() {
    let machine = TestMachine::new();
    let items: Vec<String> = (1..=AGENTS).map(|number| format!("item{number:03}")).collect();
    fs::write(machine.path("work/items.json"), json!(items).to_string()).expect("written");
    machine.prompt("START.md", "ALPHA: make a list.");
    machine.prompt("WORKER.md", "BRAVO: draft {{item}}.");
    machine.prompt("POLISH.md", "CHARLIE: polish it.");
    machine.prompt("JOIN.md", "---\njoin: all\n---\nDELTA: merge {{results}}.");
    machine.api.script([
        on("ALPHA").reply(r#"<fork next="JOIN.md" each="items.json">WORKER.md</fork>"#),
        on("BRAVO").reply("Drafted. <goto>POLISH.md</goto>"),
        on("CHARLIE").reply("<result>polished</result>"),
        on("DELTA").reply("<result>POSITIVE</result>"),
    ]);
    let options = ["--stagger", "0s", "--max-procs", "8"];
    machine.run(&options).exits(0);

    machine.prompt("POLISH.md", "ECHO: shorten it.");
    machine.api.script([on("ECHO").reply("<result>shortened</result>")]);
    let edit = [&["--edit", "POLISH.md", "--id", "b"], &options[..]].concat();
    let ended = machine.branch(&edit).wait().exits(0);
    assert!(format!("{ended:?}").contains(POSITIVE.trim()), "{ended:?}");

    let asked = ["ALPHA", "BRAVO", "CHARLIE", "ECHO", "DELTA"].map(|name| machine.api.turns(name));
    assert_eq!(asked, [1, AGENTS, AGENTS, AGENTS, 2]);
    let requests = machine.api.requests();
    let again: Vec<_> = requests.iter().filter(|one| one.newest.contains("ECHO")).collect();
    for item in &items {
        let own = again.iter().filter(|one| one.sees(&format!("draft {item}."))).count();
        assert_eq!(own, 1, "one agent has drafted {item}");
    }
    assert!(again.iter().all(|one| !one.sees("CHARLIE") && !one.sees("ALPHA")));
    let merged = requests.iter().rfind(|one| one.newest.contains("DELTA")).expect("the join");
    assert_eq!(merged.newest.matches("shortened").count(), AGENTS);
    assert!(!merged.sees("polished") && merged.sees("ALPHA: make a list."));
}

#[test]
fn given_reply_is_not_in_the_conversation_and_rewound_run_continues_after_it() {
    let machine = TestMachine::new();
    machine.prompt("START.md", "ALPHA: look around.");
    machine.prompt("JUDGE.md", "BRAVO: judge.");
    machine.prompt("TELL.md", "CHARLIE: tell.");
    machine.api.script([
        on("ALPHA").reply("A quiet street. <goto>JUDGE.md</goto>"),
        on("BRAVO").reply("<result>NEGATIVE</result>"),
        on("CHARLIE").reply("<result>POSITIVE</result>"),
    ]);
    machine.run(&[]).exits(0);

    let reply = ["--at", "main#2", "--reply", "<goto>TELL.md</goto>", "--id", "b"];
    machine.branch(&reply).wait().exits(0).prints(POSITIVE);

    assert_eq!((machine.api.turns("BRAVO"), machine.api.turns("CHARLIE")), (1, 1));
    let told = machine.api.request("CHARLIE");
    assert!(told.sees("A quiet street.") && !told.sees("BRAVO"), "{told:#?}");
    assert_ne!(told.session, machine.api.request("ALPHA").session);
    assert_eq!(records_of_branch(&machine, "step_finished")[0]["without_turn"], true);

    let rewind = ["rewind", "b", "--to", "main#3", "--id", "c"];
    machine.raymond(&rewind).wait().exits(0).prints(POSITIVE);
    assert_eq!((machine.api.turns("ALPHA"), machine.api.turns("CHARLIE")), (1, 2));
    let requests = machine.api.requests();
    let last = requests.last().expect("a request");
    assert!(last.sees("A quiet street.") && !last.sees("<result>"), "{last:#?}");
}

#[test]
fn branch_begins_in_a_worktree_with_the_files_and_the_conversation_of_its_place() {
    let machine = TestMachine::new();
    let work = machine.path("work");
    fs::write(work.join("README.md"), "shared\n").expect("written");
    git(&work, &["init", "-q", "-b", "main"]);
    git(&work, &["add", "README.md"]);
    git(&work, &["commit", "-q", "-m", "one"]);
    let bash = |command: &str| json!({"command": command, "description": "work"});
    machine.prompt("START.md", "---\nworktree: true\n---\nALPHA: write.");
    machine.prompt("NEXT.md", "BRAVO: write again.");
    machine.api.script([
        on("ALPHA").tool("Bash", bash("echo one > notes; echo first written")),
        on("first written").reply("I wrote. <goto>NEXT.md</goto>"),
        on("BRAVO").tool("Bash", bash("cat notes > seen; echo two > notes; echo second written")),
        on("second written").reply("<result>POSITIVE</result>"),
    ]);
    let options = ["--no-warm", "--dangerously-skip-permissions"];
    machine.run(&options).exits(0).prints(POSITIVE);

    let at = [&["--at", "main#2", "--id", "b"], &options[..]].concat();
    machine.branch(&at).wait().exits(0).prints(POSITIVE);

    let tree = work.join(".raymond/worktrees/b/main");
    let file = |name: &str| fs::read_to_string(tree.join(name)).expect("a file of the worktree");
    assert_eq!([file("README.md"), file("seen"), file("notes")], ["shared\n", "one\n", "two\n"]);
    assert_eq!(git(&tree, &["rev-parse", "--abbrev-ref", "HEAD"]).trim(), "raymond/b/main");
    let asked = ["ALPHA", "BRAVO"].map(|name| machine.api.turns(name));
    assert_eq!(asked, [1, 2]);
    let requests = machine.api.requests();
    let again = requests.iter().rfind(|one| one.newest.contains("BRAVO")).expect("asked again");
    assert!(again.sees("I wrote.") && !again.sees("second written"), "{again:#?}");
}
