//! Scripted replies: those that match, those of an agent, failures, and files.

use crate::support::Test;

fn test(replies: &str) -> Test {
    Test::new()
        .prompt("START.md", "Begin with {{input}}.")
        .prompt("WORK.md", "Work on {{item}}.")
        .prompt("NEXT.md", "And then?")
        .file("replies.yaml", replies.as_bytes())
}

const SCRIPTED: [&str; 6] = ["START.md", "--agent", "scripted", "--stagger", "0s", "--cwd"];

fn run(test: &Test, further: &[&str]) -> crate::support::RaymondOutcome {
    let work = test.root().join("out");
    let work = work.to_str().expect("a path");
    test.run(&[&SCRIPTED[..], &[work], further].concat())
}

#[test]
fn reply_is_chosen_by_prompt_and_by_agent() {
    let fork = r#"<fork next="NEXT.md" each='["oak", "elm"]' as="item">WORK.md</fork>"#;
    let replies = format!(
        "START.md:\n  - never\n  - {{ match: '/^Begin with trees/', reply: {fork:?} }}\n\
         WORK.md:\n  - {{ agent: main.2, reply: '<result>by name</result>' }}\n  - {{ match: oak, reply: '<result>by prompt</result>' }}\n\
         NEXT.md: [<result>sent</result>]\n"
    );
    let test = test(&replies);
    let outcome = run(&test, &["--input", "trees"]);
    outcome.ok().ended("main", "sent").ended("main.1", "by prompt").ended("main.2", "by name");
}

#[test]
fn failures_of_turns_are_retried_and_end_the_agent_as_real_ones_do() {
    let crashes =
        test("START.md: [{ fail: crash }, { fail: malformed }, <result>third</result>]\n");
    run(&crashes, &[]).ok().ended("main", "third");
    assert_eq!(crashes.events("turn_failed").len(), 2);

    let refused = test("START.md: [{ fail: refused, cost: 0.5 }, <result>never</result>]\n");
    let outcome = run(&refused, &[]);
    assert!(outcome.code(1).failed("main").contains("a repeated request would fail too"));
    assert_eq!(refused.events("agent_failed")[0]["cause"], "rejected");
    assert_eq!(refused.events("agent_failed")[0]["cost_usd"], 0.5);

    let limit = test("START.md: [{ fail: limit, resets: 20ms }, <result>later</result>]\n");
    run(&limit, &[]).ok().ended("main", "later");
    assert_eq!(limit.events("limit_reached").len(), 1);
    let limit = test("START.md: [{ fail: limit, resets: 1h }, <result>never</result>]\n");
    run(&limit, &["--on-limit", "pause"]).code(75).says("usage limit");
}

#[test]
fn delay_beyond_a_time_limit_is_a_timeout_or_a_stall() {
    let slow = "START.md: [{ reply: never, delay: 10m }, <result>quick</result>]\n";
    for (option, cause) in [("--timeout", "timeout"), ("--idle-timeout", "stall")] {
        let test = test(slow);
        run(&test, &[option, "20ms"]).ok().ended("main", "quick");
        assert_eq!(test.events("turn_failed")[0]["cause"], cause);
    }
}

#[test]
fn resumed_run_takes_the_reply_after_those_that_were_taken() {
    let replies = "START.md:\n  - { fail: crash }\n  - <goto>START.md</goto>\n  - { match: Begin, reply: <goto>NEXT.md</goto> }\n  - <result>too early</result>\nNEXT.md: [<result>right</result>]\n";
    let whole = test(replies);
    run(&whole, &[]).ok().ended("main", "right");
    let last = whole.journal().len();
    for record in 2..last {
        let test = test(replies).env("RAYMOND_LAST", record.to_string());
        run(&test, &[]).assert(true, "it may have been killed");
        let resumed = test.env("RAYMOND_LAST", "1000000");
        resumed.resume(&[]).ok().ended("main", "right");
    }
}

#[test]
fn files_of_a_reply_are_written_and_removed_below_the_working_directory() {
    let replies = "START.md:\n  - reply: <result>done</result>\n    files: { notes/a.md: 'about {{input}}' }\n    delete: [old.md]\n";
    let test = test(replies);
    let work = test.root().join("out");
    std::fs::write(work.join("old.md"), "x").expect("written");
    run(&test, &["--input", "cats"]).ok();
    assert_eq!(std::fs::read_to_string(work.join("notes/a.md")).expect("there"), "about cats");
    assert!(!work.join("old.md").exists());
}

#[test]
fn reply_writes_into_the_worktree_of_its_agent() {
    let test = test("START.md: [{ reply: <result>x</result>, files: { new.md: text } }]\n")
        .prompt("START.md", "---\nworktree: true\n---\nstart");
    crate::graph::git(&test.flow(), &["init", "-q"]);
    crate::graph::git(&test.flow(), &["add", "--all"]);
    crate::graph::git(&test.flow(), &["commit", "-q", "-m", "first"]);
    test.run(&["START.md", "--agent", "scripted"]).ok();
    let tree = test.dir().join("worktrees/t/main/new.md");
    assert_eq!(std::fs::read_to_string(tree).expect("there"), "text");
    assert!(!test.flow().join("new.md").exists());
}

#[test]
fn reply_cannot_write_into_runs_the_workflow_or_beyond() {
    for path in [".raymond/x", ".git/hooks/pre-commit"] {
        let test = test(&format!("START.md: [{{ reply: x, files: {{ {path}: x }} }}]\n"));
        let outcome = run(&test, &[]);
        assert!(outcome.code(1).failed("main").contains("a reply of START.md cannot change files"));
        assert!(!test.root().join("out").join(path).exists());
    }
    let flow = test("START.md: [{ reply: x, files: { WORK.md: other } }]\n");
    let outcome = flow.run(&["START.md", "--agent", "scripted"]);
    assert!(outcome.code(1).failed("main").contains("which no reply may change"));
    let out = test("START.md: [{ reply: x, files: { ../x: other } }]\n");
    out.run(&["START.md", "--agent", "scripted"])
        .code(65)
        .says("leads out of the agent's working directory");
}

#[test]
fn slowest_agent_of_many_is_named_also_if_its_turn_was_before_a_pause() {
    let items: Vec<String> = (0..20).map(|item| item.to_string()).collect();
    let items = items.join(",");
    let fork = format!(r#"<fork next="NEXT.md" each="[{items}]" as="item">WORK.md</fork>"#);
    let replies = |next: &str| {
        format!(
            "START.md:\n  - {fork}\n\
             WORK.md:\n  - {{ agent: main.7, reply: <result>late</result>, delay: 30ms }}\n  - {{ reply: <result>done</result>, repeat: true }}\n\
             NEXT.md: [{next} <result>sent</result>]\n"
        )
    };
    let test = |next: &str| test(&replies(next)).prompt("NEXT.md", "---\njoin: all\n---\nsum up");
    let check = |table: &str| {
        let of_work = table.lines().find(|line| line.starts_with("WORK.md")).expect("a line");
        assert!(of_work.ends_with(" main.7"), "{of_work}");
    };
    check(&run(&test(""), &[]).ok().stdout);

    let limited = test("{ fail: limit, resets: 20ms },");
    run(&limited, &["--on-limit", "pause"]).code(75);
    let resumed = limited.resume(&["--on-limit", "wait"]);
    check(&resumed.ok().stdout);
    assert_eq!(limited.resume(&[]).ok().stdout, resumed.stdout, "nothing to do");
}

#[test]
fn retry_takes_a_corrected_reply() {
    let state = |tag: &str| format!("---\nallowed_transitions: [{{ tag: {tag} }}]\n---\nx");
    let test = Test::new()
        .prompt("START.md", &state("goto, target: NEXT.md"))
        .prompt("NEXT.md", &state("result"))
        .file("replies.yaml", b"START.md: <goto>NXT.md</goto>\nNEXT.md: <result>ok</result>\n");
    test.run(&["START.md", "--agent", "scripted"])
        .code(1)
        .stderr_has("the last reply of START.md was refused:")
        .stderr_has("Correct the reply, or what it refers to");
    let right = "START.md: <goto>NEXT.md</goto>\nNEXT.md: <result>ok</result>\n";
    std::fs::write(test.flow().join("replies.yaml"), right).expect("written");
    test.raymond(&["retry", "t", "--prompts"]).ok().ended("main", "ok");
}

#[test]
fn script_that_prints_no_tag_is_shown_how_to_end() {
    let test = Test::new().prompt("START.sh", "echo 3\n");
    test.run(&["START.sh", "--trust"])
        .code(1)
        .stderr_has(
            "its last line is `3`: the reply has no transition tag; end it with a line such as",
        )
        .stderr_lacks("policy");
}
