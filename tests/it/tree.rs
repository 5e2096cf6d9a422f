//! `raymond tree` beside a live run, on a dead one, on a scripted one, and on ten thousand agents.

use std::fmt::Write as _;
use std::fs;

use serde_json::{Value, json};

use crate::support::{Test, crowd, pair, when};

/// Returns a workflow in which START forks a worker that is held, and calls a state that does not exist.
fn family() -> Test {
    Test::new()
        .prompt("START.md", "start")
        .prompt("NEXT.md", "next")
        .prompt("LAST.md", "last")
        .prompt("WORKER.md", "work")
        .rule(when("start").reply(r#"<fork next="NEXT.md">WORKER.md</fork>"#).cost(0.02))
        .rule(when("next").reply(r#"<fork next="LAST.md">WORKER.md</fork>"#).cost(0.03))
        .rule(when("work").agent("main.1").reply("<result>worked</result>").cost(0.01))
        .rule(when("work").hold_before("go").reply("<result>worked at last</result>").cost(0.05))
        .rule(when("last").reply("no tag at all").cost(0.04))
}

/// Returns an agent by its id.
fn agent(tree: &Value, id: &str) -> Value {
    let agents = tree["agents"].as_array().expect("agents");
    agents.iter().find(|agent| agent["id"] == id).cloned().unwrap_or_default()
}

#[test]
fn each_agent_is_listed_below_its_parent_with_its_status() {
    let test = family();
    let mut live = test.spawn(&["START.md"]);
    live.wait_event("agent_failed", 1).wait_event("step_finished", 3);
    live.wait_for("the held turn", |test| test.calls_with("work").len() == 2);

    let tree = test.raymond(&["tree", "t", "--json"]).ok().json();
    assert_eq!((tree["run"].as_str(), &tree["status"]), (Some("t"), &json!("running")));
    let main = agent(&tree, "main");
    assert_eq!((&main["live"], &main["cause"]), (&json!(false), &json!("protocol")));
    assert_eq!(main["status"], "failed");
    assert!(main["error"].as_str().is_some_and(|error| error.contains("LAST.md")), "{main}");
    assert_eq!(
        (&main["cost_usd"], &main["cost_with_descendants_usd"]),
        (&json!(0.09), &json!(0.1))
    );
    let done = agent(&tree, "main.1");
    assert_eq!((&done["parent"], &done["result"]), (&json!("main"), &json!("worked")));
    let held = agent(&tree, "main.2");
    assert_eq!((&held["state"], &held["step"]), (&json!("WORKER.md"), &json!(1)));
    assert_eq!((&held["live"], &held["status"]), (&json!(true), &json!("running")));

    let shown = test.raymond(&["tree", "t"]);
    let lines: Vec<&str> = shown.ok().stdout.lines().collect();
    assert_eq!(lines[1], "1 of the 2 agents that have ended failed (LAST.md: protocol)");
    assert!(lines[3].starts_with("main    "), "{lines:#?}");
    assert!(lines[3].contains("failed (protocol)") && lines[3].contains("$0.09"), "{lines:#?}");
    let reason = main["error"].as_str().unwrap_or_default();
    assert!(reason.len() > 80 && lines[3].ends_with(reason), "{lines:#?}");
    assert!(
        lines[4].starts_with("  main.1  finished") && lines[4].ends_with("worked"),
        "{lines:#?}"
    );
    assert!(lines[5].starts_with("  main.2  WORKER.md") && lines[5].ends_with("running"));
    test.release("go");
    live.wait().code(1);
    let after = test.raymond(&["tree", "t", "--json"]).ok().json();
    assert_eq!(agent(&after, "main")["cost_with_descendants_usd"], json!(0.15));
    assert_eq!(after["total_cost_usd"], json!(0.15));
}

#[test]
fn agent_without_free_budget_waits_for_it_in_tree_and_status() {
    // Of two turns in states without a known cost, only one runs under a budget.
    let test = Test::new()
        .prompt("START.md", "start")
        .prompt("NEXT.md", "next")
        .prompt("WORKER.md", "work")
        .rule(when("start").reply(r#"<fork next="NEXT.md">WORKER.md</fork>"#).cost(0.02))
        .rule(when("next").hold_before("go").reply("<result>done</result>").cost(0.03))
        .rule(when("work").hold_before("go").reply("<result>worked</result>").cost(0.03));
    let mut live = test.spawn(&["START.md", "--budget", "5"]);
    let held = |test: &Test| test.calls_with("next").len() + test.calls_with("work").len();
    live.wait_for("the held turn", |test| held(test) == 1);

    for command in ["tree", "status"] {
        let shown = test.raymond(&[command, "t", "--json"]).ok().json();
        let agents = shown["agents"].as_array().expect("agents");
        let mut statuses: Vec<&str> = agents
            .iter()
            .filter_map(|agent| agent["waits_for"]["kind"].as_str().or(agent["status"].as_str()))
            .collect();
        statuses.sort_unstable();
        assert_eq!(statuses, ["budget", "running"], "{command}: {shown}");
    }
    test.raymond(&["tree", "t"])
        .ok()
        .stdout_has("waits for money that running turns have reserved");
    test.release("go");
    live.wait().ok();
}

#[test]
fn joining_agent_shows_how_many_agents_it_waits_for() {
    let test = Test::new()
        .prompt("START.md", "start")
        .prompt("NEXT.md", "---\njoin: all\ntimeout: 2h\n---\nnext {{results}}")
        .prompt("WORKER.md", "work on {{item}}")
        .rule(when("next").reply("<result>led</result>"))
        .rule(
            when("start").reply(r#"<fork next="NEXT.md" each='["a", "b", "c"]'>WORKER.md</fork>"#),
        )
        .rule(when("work on a").reply("<result>done</result>"))
        .rule(when("work").hold_before("go").reply("<result>done at last</result>"));
    let mut live = test.spawn(&["START.md", "--stagger", "0s", "--max-procs", "4"]);
    live.wait_event("join_begun", 1).wait_event("step_finished", 2);
    live.wait_for("the held turns", |test| test.calls_with("work").len() == 3);

    let tree = test.raymond(&["tree", "t", "--json"]).ok().json();
    let main = agent(&tree, "main");
    let waits = &main["waits_for"];
    assert_eq!(
        (&waits["kind"], &waits["more"], &waits["of"]),
        (&json!("join"), &json!(2), &json!(3))
    );
    assert_eq!((&waits["done"], &waits["failed"]), (&json!(1), &json!(0)));
    assert!(waits["until"].is_u64() || waits["until"].is_string(), "{waits}");
    let status = test.status();
    let same = agent(&status, "main");
    assert_eq!((&same["status"], &same["waits_for"]), (&main["status"], waits), "{same}");
    let waits = "waits for 2 more of 3 agents, until ";
    for command in [&["tree", "t"][..], &["status", "t"], &["show", "t", "main"]] {
        test.raymond(command).ok().stdout_has(waits);
    }
    let mut screen = test.on_screen(&["top"], (24, 110));
    screen.wait_for(&["· main ", "waits for 2 more of 3 agents", "▶ main.2 "]).keys("q");
    assert_eq!(screen.wait_for_exit(), Some(0));
    test.release("go");
    live.wait().ok();
    test.raymond(&["tree", "t"]).ok().stdout_has("led").stdout_lacks("waits for");
}

#[test]
fn killed_run_is_shown_as_interrupted_with_a_resume_hint() {
    let test = family();
    let mut live = test.spawn(&["START.md"]);
    live.wait_event("agent_failed", 1);
    live.wait_for("the held turn", |test| test.calls_with("work").len() == 2);
    live.kill9();
    let tree = test.raymond(&["tree", "t", "--json"]).ok().json();
    assert_eq!(tree["status"], "interrupted");
    assert_eq!(agent(&tree, "main.2")["waits_for"], json!({ "kind": "run_interrupted" }));
    test.raymond(&["tree", "t"]).ok().stdout_has("raymond resume t").stdout_lacks("running");
    test.release("go");
    test.resume(&[]).code(1);
}

#[test]
fn tree_lists_agents_of_scripted_run() {
    let test = pair().file(
        "replies.yaml",
        b"START.md: ['<fork next=\"NEXT.md\">WORKER.md</fork>']\nWORKER.md: ['<result>w</result>']\nNEXT.md: ['<result>n</result>']\n",
    );
    test.run(&["START.md", "--agent", "scripted"]).ok();
    test.raymond(&["tree", "t"]).ok().stdout_has("main.1").stdout_has("finished");
}

#[test]
fn tree_top_and_run_show_the_same_scripted_turns_as_running() {
    let replies = "START.md: ['<fork each=[1,2,3] next=\"NEXT.md\">WORKER.md</fork>']\nWORKER.md: [{ reply: '<result>w</result>', delay: 1h }]\nNEXT.md: [{ reply: '<result>n</result>', delay: 1h }]\n";
    let replies = replies.replace("each=[1,2,3]", "each=\"[1,2,3]\"");
    let test = pair().file("replies.yaml", replies.as_bytes());
    let options = ["--agent", "scripted", "--max-procs", "2", "--stagger", "0s"];
    let mut live = test.spawn(&[&["START.md"], &options[..]].concat());
    let statuses = || -> Vec<String> {
        let tree = test.raymond(&["tree", "t", "--json"]).ok().json();
        let of_agent = |agent: &Value| {
            let waits_for = agent["waits_for"]["kind"].as_str();
            waits_for.or(agent["status"].as_str()).unwrap_or_default().to_owned()
        };
        tree["agents"].as_array().expect("agents").iter().map(of_agent).collect()
    };
    live.wait_event("step_finished", 1);
    crate::support::wait_until("two that run", || {
        let all = statuses();
        all.iter().filter(|status| *status == "running").count() == 2
            && all.iter().filter(|status| *status == "permit").count() == 2
    });
    let mut screen = test.on_screen(&["top"], (24, 100));
    screen.wait_for(&["2 running, 2 queued", "a script answers it", "waits for a free process"]);
    screen.keys("q");
    assert_eq!(screen.wait_for_exit(), Some(0));
    test.raymond(&["status", "t"])
        .ok()
        .stdout_has("running")
        .stdout_has("waits for a free process");
    live.interrupt_until_it_ends().code(130);
    assert_eq!(statuses(), ["run_paused"; 4]);
}

/// Changes the run `t` into one whose `main` has forked so many workers, none of which has begun.
fn grow(test: &Test, workers: usize) {
    let path = test.journal_file();
    let first = fs::read_to_string(&path).expect("a journal");
    let mut lines = format!("{}\n", first.lines().next().expect("a first record"));
    for step in 1..=workers {
        let seq = step + 1;
        let state = if step == 1 { "START.md" } else { "NEXT.md" };
        let body = format!(
            r#"{{"format":2,"seq":{seq},"at":"2026-01-15T14:30:22.{:03}Z","event":"step_finished","agent":"main","step":{step},"turn":0,"state":"{state}","transition":{{"tag":"fork","target":"WORKER.md","next":"NEXT.md"}},"cost_usd":0.001,"duration_ms":1,"session_id":"s","new_session":"s{step}""#,
            seq % 1000
        );
        let crc = crc32fast::hash(body.as_bytes());
        let _ = writeln!(lines, "{body},\"crc\":\"{crc:08x}\"}}");
    }
    fs::write(&path, lines).expect("the journal is written");
    fs::remove_file(test.run_dir().join("state.json")).expect("there was a snapshot");
}

#[test]
fn siblings_fold_into_one_line_except_parked_and_failed_agents() {
    let test = crowd();
    let mut live = test.spawn(&["START.md", "--max-procs", "16"]);
    live.wait_crowd();
    let folded = test.raymond(&["tree", "t"]);
    let lines: Vec<&str> = folded.ok().stdout.lines().collect();
    assert_eq!(lines.len(), 8, "{lines:#?}");
    let whole = lines[4];
    assert!(whole.starts_with("  14 agents, main.1 … main.14  WORKER.md  "), "{whole}");
    assert!(whole.contains("$0.11"), "what they have cost in sum: {whole}");
    let counts = "1 wait for a person · 1 running · 1 failed (protocol) · 11 finished";
    assert!(whole.ends_with(counts), "{whole}");
    assert!(lines[5].starts_with("    main.3  "), "{lines:#?}");
    assert!(lines[5].contains("waits for a person: "), "{lines:#?}");
    assert!(lines[6].starts_with("    main.5  ") && lines[6].contains("failed (protocol)"));
    assert!(lines[7].ends_with("raymond tree t --all"), "{lines:#?}");

    let all = test.raymond(&["tree", "t", "--all"]);
    all.ok().stdout_has("  main.14  finished").stdout_lacks("14 agents").stdout_lacks("--all");
    let json = test.raymond(&["tree", "t", "--json"]).ok().json();
    assert_eq!(json["agents"].as_array().map(Vec::len), Some(15));
    test.release("go");
    live.wait().code(2);
    test.raymond(&["status", "t"])
        .ok()
        .stdout_has("waits for a person: ")
        .stdout_has("13 agents, main.1 … main.14: 1 failed (protocol) · 12 finished")
        .stdout_has("Agent main.5 failed: ")
        .stdout_has("Agent main terminated with result: led")
        .stdout_lacks("Agent main.14");
}

#[test]
fn ten_thousand_alike_agents_fold_into_one_line() {
    let test = pair();
    test.run(&["START.md"]).ok();
    grow(&test, 10_000);
    for command in ["tree", "status"] {
        let folded = test.raymond(&[command, "t"]);
        let lines: Vec<&str> = folded.ok().stdout.lines().collect();
        assert!(lines.len() < 9, "{lines:#?}");
        folded
            .stdout_has("10000 agents, main.1 … main.10000")
            .stdout_has("10000 wait for the run to be resumed");
    }
    test.raymond(&["tree", "t"]).ok().stdout_has("$10.00");
    let all = test.raymond(&["tree", "t", "--all"]);
    let workers = all.ok().stdout.lines().filter(|line| line.starts_with("  main.")).count();
    assert_eq!(workers, 10_000);
    let json = test.raymond(&["tree", "t", "--json"]).ok().json();
    assert_eq!(json["agents"].as_array().map(Vec::len), Some(10_001));
    test.run_without_reader(&["tree", "t", "--all"]).ok();
    test.raymond(&["show", "t", "main.10001"])
        .code(64)
        .stderr_has("the run t has no agent main.10001; did you mean main.100")
        .stderr_has("raymond tree t");
}

#[test]
fn missing_run_exits_64_and_is_named() {
    let test = pair();
    test.run(&["START.md"]).ok();
    for command in [&["tree", "tt"][..], &["show", "tt", "main"], &["costs", "tt"]] {
        test.raymond(command).code(64).stderr_has("no run tt");
    }
}
