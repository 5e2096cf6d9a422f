//! `raymond branch`: a run shares the records of another up to a place, and only what follows is asked again.

use std::fs;

use serde_json::Value;

use crate::support::{RaymondOutcome, Test, always, when};

/// Returns a chain of five states; the last one ends with a result.
fn chain() -> Test {
    let state = |number: u32| (format!("S{number}.md"), format!("turn {number}"));
    let mut test = Test::new().prompt("START.md", "turn 1");
    for (name, text) in (2..=5).map(state) {
        test = test.prompt(&name, &text);
    }
    (1..=4)
        .fold(test, |test, number| {
            let reply = format!("<goto>S{}.md</goto>", number + 1);
            test.rule(when(&format!("turn {number}")).reply(&reply).cost(0.01))
        })
        .rule(always().reply("<result>done</result>").cost(0.01))
}

/// Branches off the run `t` as the run `b`.
#[track_caller]
fn branch(test: &Test, more: &[&str]) -> RaymondOutcome {
    test.raymond(&[&["branch", "t", "--id", "b"], more].concat())
}

/// Returns the records of a run, as `raymond log` prints them.
fn records(test: &Test, run: &str) -> Vec<Value> {
    test.raymond(&["log", run, "--json"]).ok().json_lines()
}

fn spent(test: &Test, run: &str) -> f64 {
    let status = test.raymond(&["status", run, "--json"]).json();
    status["total_cost_usd"].as_f64().expect("a cost")
}

#[test]
fn branch_before_step_asks_only_what_follows_in_session_cut_there() {
    let test = chain();
    test.run(&["START.md"]).ok();
    let journal = fs::read(test.journal_file()).expect("the journal");
    let ended = branch(&test, &["--at", "main#3"]);
    ended.ok().ended("main", "done").stderr_has("b branches off t after record");
    let prompts = test.prompts();
    assert_eq!(prompts[5..], ["turn 3", "turn 4", "turn 5"]);
    let calls = test.calls();
    calls[5].assert_branches(&calls[1]);
    assert_eq!(calls[5].history, ["turn 1", "turn 2"], "nothing of what came after");
    calls[6].assert_resumes(&calls[5]);
    assert_eq!(fs::read(test.journal_file()).expect("the journal"), journal, "t is as it was");
    assert!((spent(&test, "b") - 0.05).abs() < 1e-9, "two turns are shared");
    let (old, new) = (records(&test, "t"), records(&test, "b"));
    assert_eq!(old[..3], new[..3]);
    assert_eq!((&new[3]["event"], &new[3]["seq"]), (&"run_branched".into(), &4.into()));
    test.raymond(&["show", "b", "main"]).ok().stdout_has("turn 1").stdout_has("turn 5");
    test.assert_no_survivors();
}

#[test]
fn edited_state_branches_before_its_first_step_and_shows_the_difference() {
    let test = Test::new()
        .prompt("START.md", "distribute")
        .prompt("GATHER.md", "---\njoin: all\n---\ngather {{results}}")
        .prompt("W.md", "work on {{item}}")
        .rule(
            when("distribute")
                .reply(r#"<fork next="GATHER.md" each='["a", "b", "c"]' as="item">W.md</fork>"#),
        )
        .rule(when("work on").reply("<result>done</result>"))
        .rule(always().reply("<result>gathered</result>"));
    test.run(&["START.md", "--stagger", "0s"]).ok().ended("main", "gathered");
    let test = test.prompt("GATHER.md", "---\njoin: all\n---\nsummarize {{results}}");
    // The state is entered by the fork. Its workers do not follow from it, so they are not asked again.
    branch(&test, &["--edit", "GATHER.md"]).ok().stderr_has("+summarize {{results}}");
    assert_eq!((test.calls_with("distribute").len(), test.calls_with("work on").len()), (1, 3));
    assert_eq!((test.calls_with("gather").len(), test.calls_with("summarize").len()), (1, 1));
    // After the last worker only the join follows.
    let joined = records(&test, "t").len() - 2;
    let last = test.raymond(&["branch", "t", "--id", "c", "--at", &joined.to_string()]);
    last.ok().ended("main", "gathered");
    assert_eq!(test.calls_with("work on").len(), 3);
    assert_eq!(test.calls_with("gather").len(), 2, "c has the files that t was started with");
    branch(&test, &["--edit", "NOTES.txt"]).code(64).stderr_has("NOTES.txt is not a state");
}

/// Returns a fan-out of a hundred agents that go from A.md to B.md, and are gathered.
fn fan_out() -> Test {
    let items: Vec<String> = (1..=100).map(|number| number.to_string()).collect();
    let fork = format!(
        r#"<fork next="GATHER.md" each='{}' as="item">A.md</fork>"#,
        serde_json::to_string(&items).expect("JSON")
    );
    Test::new()
        .prompt("START.md", "distribute")
        .prompt("GATHER.md", "---\njoin: all\n---\ngather {{results}}")
        .prompt("A.md", "draft {{item}}")
        .prompt("B.md", "polish it")
        .rule(when("distribute").reply(&fork).cost(0.01))
        .rule(when("gather").reply("<result>gathered</result>").cost(0.01))
        .rule(when("draft").reply("<goto>B.md</goto>").cost(0.01))
        .rule(when("polish").reply("<result>polished</result>").cost(0.01))
        .rule(always().reply("<result>shortened</result>").cost(0.01))
}

#[test]
fn one_edited_prompt_of_a_fan_out_asks_only_the_states_that_follow() {
    let test = fan_out();
    test.run(&["START.md", "--stagger", "0s"]).ok().ended("main", "gathered");
    assert_eq!(test.calls().len(), 202);
    let journal = fs::read(test.journal_file()).expect("the journal");
    let test = test.prompt("B.md", "shorten it");
    branch(&test, &["--edit", "B.md"]).ok().ended("main", "gathered");
    let again = &test.prompts()[202..];
    let count = |text: &str| again.iter().filter(|prompt| prompt.starts_with(text)).count();
    assert_eq!((count("shorten"), count("gather"), again.len()), (100, 1, 101));
    assert!(again.last().is_some_and(|last| last.contains("shortened")), "the join sees the new");
    assert_eq!(fs::read(test.journal_file()).expect("the journal"), journal, "t is as it was");
    // 102 turns are shared and 101 asked; the rest of t is not paid by b.
    assert!((spent(&test, "b") - 2.02).abs() < 1e-9, "{}", spent(&test, "b"));
    // One agent alone takes only its own turn and the join with it.
    let one = test.raymond(&["branch", "t", "--id", "c", "--agent", "main.7", "--at", "2"]);
    one.ok().ended("main", "gathered");
    assert_eq!(test.calls().len(), 202 + 101 + 2);
    let log = records(&test, "c");
    assert!(log.iter().zip(1..).all(|(record, seq)| record["seq"] == seq));
    let branched = log.iter().find(|record| record["event"] == "run_branched").expect("a branch");
    assert!(branched["origin"]["kept"].as_u64() > Some(0), "{branched}");
    test.raymond(&["show", "c", "main.9"]).ok().stdout_has("polish it");
    // A branch of such a branch has all of its records.
    let again = test.raymond(&["branch", "c", "--id", "d", "--agent", "main.8", "--at", "2"]);
    again.ok().ended("main", "gathered");
    test.assert_no_survivors();
}

#[test]
fn child_that_its_parent_asks_again_is_left_out_with_all_that_it_did() {
    let test = Test::new()
        .prompt("START.md", "plan")
        .prompt("NEXT.md", "decide")
        .prompt("W.md", "work")
        .rule(when("plan").reply(r#"<fork next="NEXT.md">W.md</fork>"#))
        .rule(always().reply("<result>done</result>"));
    test.run(&["START.md"]).ok();
    // main is asked again from its first step, so main.1 is born again.
    branch(&test, &["--at", "main#1"]).ok();
    assert_eq!(test.calls().len(), 6);
    // The child does not follow from the second step of main, nor that step from the child.
    let dry = test.raymond(&["branch", "t", "--at", "main#2", "--dry-run", "--json"]).ok().json();
    assert_eq!((&dry["left_out"], &dry["agents"][0]["next"]), (&1.into(), &"asked".into()));
    assert_eq!(dry["agents"].as_array().map(Vec::len), Some(1), "{dry}");
    let dry = test.raymond(&["branch", "t", "--at", "main.1#1", "--dry-run"]);
    dry.ok().stdout_has("main.1#1 in W.md is asked next").stdout_has("1 are dropped");
    assert!(!test.dir().join("runs/c").exists());
    assert_eq!(fs::read_dir(test.dir().join("runs")).expect("runs").count(), 2, "t and b");
}

#[test]
fn dry_run_tells_of_a_join_that_can_no_longer_be_met() {
    let test = Test::new()
        .prompt("START.md", "start")
        .prompt("WORK.md", "work on {{item}}")
        .prompt("END.md", "---\njoin: all\n---\nend")
        .rule(
            when("start")
                .reply(r#"<fork next="END.md" each='["a", "b"]' as="item">WORK.md</fork>"#),
        )
        .rule(always().exit(1));
    test.run(&["START.md", "--max-restarts", "0", "--max-procs", "1"]).code(1);
    let log = records(&test, "t");
    let failed = log.iter().find(|record| record["event"] == "agent_failed").expect("a failure");
    let first = format!("{}#1", failed["agent"].as_str().expect("an agent"));
    let plan = test.raymond(&["branch", "t", "--at", &first, "--dry-run"]);
    plan.ok().stdout_has("main#2 in END.md misses its join").stdout_has("retry those first");
}

#[test]
fn missing_folder_is_reported_once_and_needed_only_for_edits() {
    let test = Test::new()
        .file("wf/START.md", b"turn 1")
        .file("wf/NEXT.md", b"turn 2")
        .rule(when("turn 1").reply("<goto>NEXT.md</goto>"))
        .rule(always().reply("<result>done</result>"));
    test.run(&["wf"]).ok();
    fs::rename(test.flow().join("wf"), test.flow().join("moved")).expect("moved");
    let told = branch(&test, &["--at", "main#1"]).ok().stderr.clone();
    assert_eq!(told.matches("the workflow's folder is gone").count(), 1, "{told}");
    assert!(!told.contains("changed since"), "{told}");
    let edit = test.raymond(&["branch", "t", "--edit", "NEXT.md", "--id", "c"]);
    edit.code_in(&[65, 74]).stderr_has("move it back");
}

#[test]
fn given_reply_stands_for_the_turn_and_costs_nothing() {
    let test = chain();
    test.run(&["START.md"]).ok();
    let at = ["--at", "main#3", "--reply"];
    let with = |text: &'static str| [&at[..], &[text]].concat();
    branch(&test, &with("<goto>NOWHERE.md</goto>"))
        .code(64)
        .stderr_has("the reply for main#3 of t would not be accepted")
        .stderr_has("NOWHERE.md");
    branch(&test, &with("I am done")).code(64).stderr_has("would not be accepted");
    branch(&test, &with("<fork next=\"S5.md\" each=\"none.txt\" as=\"item\">S4.md</fork>"))
        .code(64)
        .stderr_has("no file `none.txt`");
    branch(&test, &["--at", "3", "--reply", "x"])
        .code(64)
        .stderr_has("--reply is the reply of one step");
    assert_eq!(fs::read_dir(test.dir().join("runs")).expect("runs").count(), 1);
    let dry =
        test.raymond(&[&["branch", "t", "--dry-run"], &with("<goto>S5.md</goto>")[..]].concat());
    dry.ok().stdout_has("main#3 in S3.md has its reply from you");
    branch(&test, &with("<goto>S5.md</goto>")).ok().ended("main", "done");
    assert_eq!(test.prompts()[5..], ["turn 5"], "neither S3.md nor S4.md is asked");
    assert!((spent(&test, "b") - 0.03).abs() < 1e-9, "{}", spent(&test, "b"));
    let log = records(&test, "b");
    assert_eq!(log[3]["origin"]["reply"]["text"], "<goto>S5.md</goto>", "{}", log[3]);
    let given = log[4..].iter().find(|record| record["event"] == "step_finished").expect("a step");
    assert_eq!((&given["without_turn"], &given["cost_usd"]), (&true.into(), &0.0.into()));
    test.raymond(&["show", "b", "main"])
        .ok()
        .stdout_has("    answer of a person\n")
        .stdout_has("<goto>S5.md</goto>");
    let calls = test.calls();
    calls[5].assert_branches(&calls[1]);
}

#[test]
fn dry_run_finds_the_errors_of_the_branch_and_shows_the_edits() {
    let test = chain();
    test.run(&["START.md"]).ok();
    let dry = |more: &[&str]| test.raymond(&[&["branch", "t", "--dry-run"], more].concat());
    dry(&["--at", "main#3", "--reply", "I am done"]).code(64).stderr_has("would not be accepted");
    dry(&["--at", "2", "--edit", "OTHER.md"]).code(64).stderr_has("there is no such file");
    dry(&["--at", "2", "--id", "t"]).code(64).stderr_has("a run t already");
    dry(&["--at", "2", "--migrate"]).code(64).stderr_has("raymond branch RUN --edit FILE");
    let test = test.prompt("S3.md", "other words");
    let edit = ["branch", "t", "--dry-run", "--edit", "S3.md"];
    test.raymond(&edit).ok().stdout_has("+other words").stdout_has("main#3 in S3.md is asked next");
    let plan = test.raymond(&[&edit[..], &["--json"]].concat()).ok().json();
    assert!(plan["edited"][0].as_str().is_some_and(|text| text.contains("+other words")), "{plan}");
    fs::remove_dir_all(test.root().join("home/.claude/projects")).expect("removed");
    let gone = test.raymond(&["branch", "t", "--dry-run", "--at", "main#3"]);
    gone.code(64).stderr_has(" of main is gone from ");
    assert_eq!(fs::read_dir(test.dir().join("runs")).expect("runs").count(), 1);
}

#[test]
fn given_reply_comes_after_the_join_of_its_state_and_replaces_its_evaluator() {
    let test = Test::new()
        .prompt("START.md", "distribute")
        .prompt(
            "GATHER.md",
            "---\njoin: all\nevaluator: { prompt: CHECK.md }\n---\ngather {{results}}",
        )
        .prompt("CHECK.md", "check")
        .prompt("W.md", "work on {{item}}")
        .rule(
            when("distribute")
                .reply(r#"<fork next="GATHER.md" each='["a", "b"]' as="item">W.md</fork>"#),
        )
        .rule(always().reply("<result>done</result>"));
    test.run(&["START.md", "--stagger", "0s"]).ok();
    let before = test.calls().len();
    branch(&test, &["--agent", "main", "--at", "2", "--reply", "<result>mine</result>"])
        .ok()
        .ended("main", "mine");
    assert_eq!(test.calls().len(), before);
    let again = test.raymond(&[
        "branch",
        "t",
        "--id",
        "c",
        "--at",
        "main#1",
        "--reply",
        "<goto>W.md</goto>",
    ]);
    again.ok().ended("main", "done");
    assert_eq!(test.calls().len(), before + 1, "only W.md, and nobody is forked");
}

#[test]
fn records_that_were_written_together_are_not_parted() {
    let test = Test::new()
        .file("p.lisp", b"(workflow w (roles (a)) (state s (action (send-prompt :agent a :template ask :request-id r) (await (transcript-response :request-id r))) (terminal :result done)))")
        .rule(always().reply("asked"));
    test.run(&["p.lisp"]).ok();
    let log = records(&test, "t");
    let asked = log.iter().position(|record| record["event"] == "role_requested").expect("asked");
    let seq = (asked + 1).to_string();
    branch(&test, &["--at", &seq])
        .code(64)
        .stderr_has(&format!("record {seq} of t and the one after it were written together"));
    assert_eq!(fs::read_dir(test.dir().join("runs")).expect("runs").count(), 1);
    // The role is cut before its answer, and what its program did with that is left out.
    branch(&test, &["--at", "main.1#1"]).ok().ended("main", "done");
    assert_eq!(test.calls().len(), 2);
}

#[test]
fn edited_file_is_not_mixed_with_others_that_have_changed() {
    let test = chain().file("tool.sh", b"echo one\n");
    test.run(&["START.md"]).ok();
    let first = test.flow().join("START.md");
    let edited = fs::read_to_string(&first).expect("there") + "\nShortly.";
    fs::write(first, edited).expect("written");
    fs::write(test.flow().join("tool.sh"), "echo two\n").expect("written");
    branch(&test, &["--edit", "START.md"])
        .code(64)
        .stderr_has("tool.sh in ")
        .stderr_has("name the edited files (--edit tool.sh)");
    branch(&test, &["--edit", "START.md", "--edit", "tool.sh", "--at", "1"]).ok();
}

#[test]
fn added_files_and_those_of_tests_do_not_hinder_an_edit() {
    let test = chain().file("tests/golden.txt", b"one\n");
    test.run(&["START.md"]).ok();
    let test = test.prompt("S3.md", "turn 3 again").prompt("NEW.md", "new");
    let test = test.file("notes.txt", b"new\n").file("tests/golden.txt", b"two\n");
    branch(&test, &["--edit", "S3.md"]).ok().ended("main", "done");
    // A file that is as it was is said to be so, and its state is asked again.
    let same = test.raymond(&["branch", "t", "--id", "c", "--edit", "S5.md", "--dry-run"]);
    same.ok().stdout_has("S5.md: the run already has this version");
}

#[test]
fn edit_is_checked_from_the_state_that_the_run_began_in() {
    let test = Test::new().prompt("FIRST.md", "one").prompt("NEXT.md", "two");
    let test = test
        .rule(when("one").reply("<goto>NEXT.md</goto>"))
        .rule(always().reply("<result>done</result>"));
    test.run(&["FIRST.md"]).ok();
    let test = test.prompt("NEXT.md", "three");
    branch(&test, &["--edit", "NEXT.md"]).ok().ended("main", "done");
    assert_eq!(test.prompts(), ["one", "two", "three"]);
    let test = test.prompt(
        "NEXT.md",
        "---\nallowed_transitions: [{ tag: goto, target: NOPE.md }]\n---\nthree",
    );
    let wrong = test.raymond(&["branch", "t", "--id", "c", "--edit", "NEXT.md", "--dry-run"]);
    wrong.code(65).stderr_has("NOPE.md");
}

#[test]
fn pending_return_leads_to_a_session_of_the_branch() {
    let test = Test::new()
        .prompt("START.md", "plan")
        .prompt("SUB.md", "look")
        .prompt("BACK.md", "judge {{result}}")
        .rule(when("plan").reply(r#"<call return="BACK.md">SUB.md</call>"#))
        .rule(when("look").reply("<result>seen</result>"))
        .rule(always().reply("<result>ok</result>"));
    test.run(&["START.md"]).ok();
    branch(&test, &["--at", "main#2"]).ok().ended("main", "ok");
    let calls = test.calls();
    assert_eq!(test.prompts(), ["plan", "look", "judge seen", "look", "judge seen"]);
    calls[4].assert_branches(&calls[0]);
    assert_eq!(calls[4].history, ["plan"]);
    assert_ne!(calls[4].session, calls[2].session, "the session of t is left alone");
}

#[test]
fn branch_of_a_branch_resumes_after_kill_and_outlives_its_source() {
    let test = chain();
    test.run(&["START.md"]).ok();
    branch(&test, &["--at", "main#3"]).ok();
    let journal = fs::read(test.dir().join("runs/b/journal.base")).expect("a base");
    assert_eq!(journal, fs::read(test.journal_file()).expect("the journal"));
    let test = test.rule(always().reply("<result>held</result>"));
    let mut live = test.start(&["branch", "b", "--id", "c", "--at", "main#4", "--var", "a=b"]);
    live.wait_for("it has branched", |test| test.dir().join("runs/c").exists());
    live.kill9();
    test.raymond(&["run", "c", "--on-wait", "exit"]).ok().ended("main", "done");
    test.raymond(&["clean", "t", "b", "--yes"]);
    let log = records(&test, "c");
    let branched: Vec<&Value> =
        log.iter().filter(|record| record["event"] == "run_branched").collect();
    assert_eq!(branched.len(), 2, "{log:#?}");
    assert_eq!((&branched[1]["run"], &branched[1]["origin"]["run"]), (&"c".into(), &"b".into()));
    assert!(log.iter().zip(1..).all(|(record, seq)| record["seq"] == seq));
}

#[test]
fn wrong_places_are_named_and_leave_nothing() {
    let test = chain();
    test.run(&["START.md"]).ok();
    branch(&test, &["--at", "99"]).code(64).stderr_has("t has no record 99; its last one is 6");
    branch(&test, &["--at", "6"]).code(64).stderr_has("no agent of t is live after record 6");
    branch(&test, &[]).code(64).stderr_has("name an earlier record");
    branch(&test, &["--at", "main#9"]).code(64).stderr_has("main of t never came to step 9");
    branch(&test, &["--at", "main.4#1"]).code(64).stderr_has("t has no agent main.4");
    branch(&test, &["--agent", "main"]).code(64).stderr_has("give a step of main to branch before");
    branch(&test, &["--agent", "main", "--at", "9"]).code(64).stderr_has("never came to step 9");
    branch(&test, &["--agent", "main", "--at", "main#2"]).code(64).stderr_has("write --at STEP");
    branch(&test, &["--agent", "main.3", "--edit", "S2.md"])
        .code(64)
        .stderr_has("main.3 of t was never in S2.md");
    branch(&test, &["--at", "soon"]).code(64).stderr_has("such as 120");
    branch(&test, &["--edit", "OTHER.md"]).code(64).stderr_has("OTHER.md: there is no such file");
    branch(&test, &["--at", "2", "--edit", "OTHER.md"])
        .code(64)
        .stderr_has("OTHER.md: there is no such file in the workflow's folder");
    test.raymond(&["branch", "t", "--id", "t", "--at", "2"]).code(64).stderr_has("a run t already");
    let runs = fs::read_dir(test.dir().join("runs")).expect("runs").count();
    assert_eq!(runs, 1, "nothing half made");
    fs::remove_file(test.run_dir().join("workflow/START.md")).expect("removed");
    test.raymond(&["branch", "t", "--at", "2", "--id", "healed"]).ok();
    fs::remove_file(test.run_dir().join("workflow.contents")).expect("removed");
    branch(&test, &["--at", "2"]).code(65).stderr_has("is missing, or was changed");
}

#[test]
fn shared_records_that_are_gone_or_changed_are_named() {
    let test = chain();
    test.run(&["START.md"]).ok();
    branch(&test, &["--at", "main#3"]).ok();
    let base = test.dir().join("runs/b/journal.base");
    let bytes = fs::read(&base).expect("a base");
    // Another file, because the base is the journal of t as well.
    fs::remove_file(&base).expect("removed");
    test.raymond(&["log", "b"])
        .code(65)
        .stderr_has("the records that this run shares with the run t");
    fs::write(&base, &bytes[..100]).expect("written");
    test.raymond(&["status", "b"]).code(65).stderr_has("gone, incomplete or damaged");
    let mut changed = bytes;
    changed[200] ^= 1;
    fs::write(&base, changed).expect("written");
    test.raymond(&["log", "b"]).code(65).stderr_has("journal.base: the records that this run");
}

#[test]
fn session_that_is_gone_is_named_and_nothing_half_made() {
    let test = chain();
    test.run(&["START.md"]).ok();
    fs::remove_dir_all(test.root().join("home/.claude/projects")).expect("removed");
    branch(&test, &["--at", "main#3"])
        .code(64)
        .stderr_has(" of main is gone from ")
        .stderr_has("branch off before the agent's first turn");
    assert_eq!(fs::read_dir(test.dir().join("runs")).expect("runs").count(), 1);
    branch(&test, &["--at", "main#1"]).ok();
}
