//! Orders of people to single agents: messages, holds, and ends. Each takes effect once, also if raymond is killed.

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::{RunningRaymond, Test, always, held, pair, wait_until, when};

/// Returns the agent of that id, as `status` shows it.
fn agent(test: &Test, id: &str) -> Value {
    let status = test.status();
    let agents = status["agents"].as_array().cloned().unwrap_or_default();
    agents.into_iter().find(|agent| agent["id"] == id).unwrap_or_default()
}

/// Waits until the process of a running turn has got a message.
fn wait_queued(run: &mut RunningRaymond<'_>, count: usize) {
    run.wait_for("the message in the process", |test| {
        stream(test).matches("queued").count() >= count
    });
}

/// Returns the stream of the first process.
fn stream(test: &Test) -> String {
    std::fs::read_to_string(test.run_dir().join("steps/main-1-0.jsonl")).unwrap_or_default()
}

/// Returns the number of prompts that contain a text.
fn prompts_with(test: &Test, words: &str) -> usize {
    test.prompts().iter().filter(|prompt| prompt.contains(words)).count()
}

/// Returns the messages that running turns have read.
fn read(test: &Test) -> Vec<String> {
    let lines = test.call_log();
    lines.iter().filter_map(|line| line["read"].as_str()).map(str::to_owned).collect()
}

/// Returns a workflow whose first turn runs a tool until `go`.
fn in_tool() -> Test {
    Test::new()
        .prompt("START.md", "start")
        .prompt("NEXT.md", "next")
        .rule(when("start").tool("Bash").hold_tool("go").reply("<goto>NEXT.md</goto>"))
        .rule(always().reply("<result>ok</result>"))
}

/// Returns a workflow whose first turn writes its answer until `go`.
fn in_answer() -> Test {
    Test::new()
        .prompt("START.md", "start")
        .prompt("NEXT.md", "next")
        .rule(when("start").hold_before("go").cost(0.25).reply("<goto>WRONG.md</goto>"))
        .rule(when("be brief").cost(0.5).reply("<goto>NEXT.md</goto>"))
        .rule(always().reply("<result>ok</result>"))
}

#[test]
fn running_turn_reads_a_message_at_its_next_request() {
    let test = in_tool();
    let mut run = test.spawn(&["START.md"]);
    run.wait_calls(1);
    let told = test.raymond(&["tell", "t", "main", "be brief"]);
    told.ok().stdout_has("main gets the message with its next request to the model");
    wait_queued(&mut run, 1);
    test.release("go");
    run.wait().ok().ended("main", "ok");
    assert_eq!(read(&test), ["A message from the person who runs you:\n\nbe brief"]);
    assert_eq!(prompts_with(&test, "be brief"), 0, "it is told once");
    let taken = test.events("messages_taken");
    assert_eq!(taken.len(), 1);
    assert!(taken[0]["message"].is_string(), "{taken:?}");
    test.raymond(&["log", "t"]).ok().stdout_has("main  gets the message within its turn");
}

#[test]
fn message_to_a_turn_that_writes_its_answer_is_answered_before_the_turn_is_over() {
    let test = in_answer();
    let mut run = test.spawn(&["START.md"]);
    run.wait_calls(1);
    test.raymond(&["tell", "t", "main", "be brief"]).ok();
    wait_queued(&mut run, 1);
    test.release("go");
    run.wait().ok().ended("main", "ok");
    assert_eq!(test.calls().len(), 3, "{:?}", test.prompts());
    assert_eq!(prompts_with(&test, "be brief"), 1);
    let step = &test.events("step_finished")[0];
    assert_eq!((&step["cost_usd"], &step["step"]), (&json!(0.75), &json!(1)));
    assert_eq!(test.events("messages_taken").len(), 1);
}

#[test]
fn turn_that_outlived_raymond_has_read_its_message_or_the_next_prompt_tells_it() {
    for (point, is_read) in [("message.before:1", false), ("message.sent:1", true)] {
        let test = in_tool().env("RAYMOND_FAILPOINT", point);
        let mut run = test.spawn(&["START.md"]);
        run.wait_calls(1);
        test.raymond(&["tell", "t", "main", "be brief"]).ok();
        assert!(run.wait().killed(), "{point}");
        let test = test.env("RAYMOND_FAILPOINT", "none:1");
        let mut run = test.spawn_resumed(&[]);
        if is_read {
            wait_queued(&mut run, 1);
        }
        test.release("go");
        run.wait().ok().ended("main", "ok");
        assert_eq!(
            (read(&test).len(), prompts_with(&test, "be brief")),
            (usize::from(is_read), usize::from(!is_read)),
            "{point}"
        );
        assert_eq!(test.events("messages_taken").len(), 1, "{point}");
        test.assert_no_survivors();
    }
}

#[test]
fn turn_that_outlived_raymond_answers_its_message_before_it_is_over() {
    let test = in_answer();
    let mut run = test.spawn(&["START.md"]);
    run.wait_calls(1);
    test.raymond(&["tell", "t", "main", "be brief"]).ok();
    wait_queued(&mut run, 1);
    run.kill9();
    test.release("go");
    test.resume(&[]).ok().ended("main", "ok");
    assert_eq!((test.calls().len(), prompts_with(&test, "be brief")), (3, 1));
    assert_eq!(test.events("step_finished")[0]["cost_usd"], json!(0.75));
    assert_eq!(test.events("messages_taken").len(), 1);
}

#[test]
fn message_read_by_a_failed_turn_goes_to_the_retry() {
    let test = Test::new()
        .prompt("START.md", "start")
        .rule(when("start").once().tool("Bash").hold_tool("go").exit(1))
        .rule(always().reply("<result>ok</result>"));
    let mut run = test.spawn(&["START.md"]);
    run.wait_calls(1);
    test.raymond(&["tell", "t", "main", "be brief"]).ok();
    wait_queued(&mut run, 1);
    test.release("go");
    run.wait().ok().ended("main", "ok");
    assert_eq!((read(&test).len(), test.calls().len()), (1, 2));
    assert!(test.prompts()[1].contains("be brief"), "{:?}", test.prompts());
}

#[test]
fn messages_to_an_agent_that_is_held_stand_in_its_next_prompt_and_in_no_other() {
    let test = Test::new()
        .prompt("START.md", "start")
        .prompt("NEXT.md", "next")
        .prompt("LAST.md", "last")
        .rule(when("start").hold_before("go").reply("<goto>NEXT.md</goto>"))
        .rule(when("next").reply("<goto>LAST.md</goto>"))
        .rule(always().reply("<result>ok</result>"));
    let mut run = test.spawn(&["START.md", "--on-wait", "stay"]);
    run.wait_calls(1);
    test.raymond(&["hold", "t", "main"]).ok();
    run.wait_event("command_received", 1);
    test.release("go");
    run.wait_event("step_finished", 1);
    test.raymond(&["tell", "t", "main", "leave the tests alone"]).ok();
    let command = test.raymond(&["tell", "t", "main", "and hurry", "--json"]).ok().json();
    let expected = json!({ "run": "t", "agent": "main", "command": "tell", "is_live": true });
    assert_eq!(command, expected);
    run.wait_event("command_received", 3);
    test.raymond(&["release", "t", "main"]).ok();
    run.wait().ok().ended("main", "ok");
    let prompts = test.prompts();
    let asked: Vec<bool> =
        prompts.iter().map(|prompt| prompt.contains("leave the tests alone")).collect();
    assert_eq!(asked, [false, true, false], "{prompts:?}");
    let next = &prompts[1];
    let place = |text: &str| next.find(text).expect("it is there");
    assert!(place("next") < place("leave the tests") && place("alone") < place("hurry"), "{next}");
    assert_eq!(test.events("messages_taken").len(), 1);
    test.raymond(&["log", "t"])
        .ok()
        .stdout_has("someone sends a message: leave the tests alone")
        .stdout_has("main  gets the message with its next prompt");
}

#[test]
fn message_to_a_stopped_run_is_delivered_after_resume() {
    let test = held();
    let mut run = test.spawn(&["START.md"]);
    run.wait_calls(1);
    test.raymond(&["stop", "t"]).ok();
    test.release("go");
    run.wait().code(130);
    let told = test.raymond(&["tell", "t", "main", "be brief"]);
    told.ok().stdout_has("t is not live").stdout_has("raymond resume t");
    test.raymond(&["resume", "t"]).ok().ended("main", "ok");
    let prompts = test.prompts();
    assert_eq!(prompts.iter().filter(|prompt| prompt.contains("be brief")).count(), 1);
    assert!(prompts[1].contains("be brief"), "{prompts:?}");
}

#[test]
fn message_is_delivered_again_to_a_repeated_turn() {
    let test = Test::new()
        .prompt("START.md", "start")
        .prompt("NEXT.md", "next")
        .rule(when("start").hold_before("go").reply("<goto>NEXT.md</goto>"))
        .rule(when("next").once().exit(1))
        .rule(always().reply("<result>ok</result>"));
    let mut run = test.spawn(&["START.md"]);
    run.wait_calls(1);
    test.raymond(&["hold", "t", "main"]).ok();
    run.wait_event("command_received", 1);
    test.release("go");
    run.wait().code(2);
    test.raymond(&["tell", "t", "main", "be brief"]).ok();
    test.raymond(&["release", "t", "main"]).ok();
    test.raymond(&["resume", "t"]).ok();
    let next = test.calls_with("next");
    assert_eq!(next.len(), 2);
    assert!(next.iter().all(|call| call.prompt.contains("be brief")), "{:?}", test.prompts());
}

#[test]
fn message_that_comes_too_late_is_not_silently_lost() {
    let test = Test::new()
        .prompt("START.md", "start")
        .rule(always().hold_before("go").reply("<result>ok</result>"));
    let mut run = test.spawn(&["START.md"]);
    run.wait_calls(1);
    // A running turn is not sent a message of this length.
    test.raymond(&["tell", "t", "main", &"wait ".repeat(10_000)]).ok();
    run.wait_event("command_received", 1);
    test.release("go");
    run.wait().ok().stderr_has("it ended before it got the message: wait wait");
    test.raymond(&["show", "t", "main"])
        .ok()
        .stdout_has("ended before it got the message: wait wait");
    let shown = test.raymond(&["show", "t", "main", "--json"]).ok().json();
    assert_eq!(shown["untold"].as_array().map(Vec::len), Some(1));
    let late = test.raymond(&["tell", "t", "main", "x"]);
    late.code(64).stderr_has("main has already ended").stderr_has("raymond tree t");
    test.raymond(&["tell", "t", "main.7", "x"]).code(64).stderr_has("main.7");
    test.raymond(&["tell", "t", "main", " "]).code(64).stderr_has("the message is empty");
}

#[test]
fn held_agent_begins_nothing_until_it_is_released() {
    let test = held();
    let mut run = test.spawn(&["START.md"]);
    run.wait_calls(1);
    test.raymond(&["hold", "t", "main"]).ok().stdout_has("starts nothing new");
    run.wait_event("command_received", 1);
    test.release("go");
    let paused = run.wait();
    paused.code(2).stderr_has("main is held").stderr_has("raymond release t main");
    assert_eq!(test.calls().len(), 1);
    assert_eq!(agent(&test, "main")["waits_for"]["kind"], "held");
    let waits = test.raymond(&["pending", "--json"]).ok().json_items();
    assert_eq!(
        (&waits[0]["kind"], &waits[0]["command"]),
        (&json!("held"), &json!("raymond release t main"))
    );

    test.raymond(&["resume", "t"]).code(2).stderr_has("main is held");
    assert_eq!(test.calls().len(), 1, "a resumed run keeps the hold");
    test.raymond(&["release", "t", "main"]).ok().stdout_has("main continues");
    test.raymond(&["resume", "t"]).ok().ended("main", "ok");
    assert_eq!(test.calls().len(), 2);
}

#[test]
fn order_that_was_taken_before_a_kill_is_not_taken_again() {
    let test = held();
    let mut run = test.spawn(&["START.md"]);
    run.wait_calls(1);
    test.raymond(&["stop", "t"]).ok();
    test.release("go");
    run.wait().code(130);
    test.raymond(&["tell", "t", "main", "be brief"]).ok();
    let test = test.env("RAYMOND_FAILPOINT", "inbox.before:1");
    assert!(test.resume(&[]).killed());
    assert_eq!(test.events("command_received").len(), 2);
    let test = test.env("RAYMOND_FAILPOINT", "none:1");
    test.raymond(&["status", "t"]).ok().stdout_lacks("waits in the inbox");
    test.resume(&[]).ok().ended("main", "ok");
    assert_eq!(test.events("command_received").len(), 2);
    let prompts = test.prompts();
    assert_eq!(prompts.last().map(|prompt| prompt.matches("be brief").count()), Some(1));
}

#[test]
fn agent_that_a_stopped_run_will_end_takes_no_more_orders() {
    let test = Test::new()
        .prompt("START.md", "start")
        .prompt("NEXT.md", "they said {{answer}}")
        .rule(when("start").reply(r#"<ask next="NEXT.md">Shall I?</ask>"#));
    test.run(&["START.md"]).code(2);
    test.raymond(&["stop", "t", "--agent", "main"]).ok();
    test.raymond(&["pending"]).ok().stdout_lacks("Shall I?");
    test.raymond(&["status", "t"]).ok().stdout_lacks("answer: raymond answer");
    test.raymond(&["answer", "t", "NEXT.md=yes"]).code(64).stderr_has("no question of t waits");
    test.raymond(&["tell", "t", "main", "wait"]).code(64).stderr_has("main has already ended");
    test.resume(&[]).code(1).failed("main");
}

#[test]
fn stopped_run_shows_the_orders_that_it_takes_once_it_goes_on() {
    let test = held();
    let mut run = test.spawn(&["START.md"]);
    run.wait_calls(1);
    test.raymond(&["release", "t", "main"]).ok().stdout_has("main is not held, so nothing changes");
    test.raymond(&["hold", "t", "main"]).ok();
    run.wait_event("command_received", 2);
    test.raymond(&["hold", "t", "main"]).ok().stdout_has("main is held already");
    test.release("go");
    run.wait().code(2);
    assert_eq!(test.raymond(&["pending", "--json"]).ok().json_items().len(), 1);
    test.raymond(&["status", "t"]).ok().stdout_lacks("waits in the inbox");

    test.raymond(&["release", "t", "main"]).ok().stdout_has("main continues");
    test.raymond(&["tell", "t", "main", "be brief"]).ok();
    assert_eq!(test.raymond(&["pending", "--json"]).ok().json_items().len(), 0);
    for shows in ["status", "tree"] {
        test.raymond(&[shows, "t"])
            .ok()
            .stdout_has("waits in the inbox: main  is released\n")
            .stdout_has("waits in the inbox: main  someone sends a message: be brief\n")
            .stdout_has("to continue: raymond resume t\n");
    }
    test.raymond(&["list"]).ok().stdout_has("an order has come; resume it: raymond resume t");
    test.raymond(&["resume", "t"]).ok().ended("main", "ok");
    test.raymond(&["status", "t"]).ok().stdout_lacks("waits in the inbox");
}

#[test]
fn family_is_held_while_others_go_on() {
    let test = Test::new()
        .prompt("START.md", "start")
        .prompt("NEXT.md", "next")
        .prompt("WORKER.md", "work")
        .prompt("REST.md", "rest")
        .rule(when("start").reply(r#"<fork next="NEXT.md">WORKER.md</fork>"#))
        .rule(when("work").hold_before("work").reply("<goto>REST.md</goto>"))
        .rule(when("rest").reply("<result>worked</result>"))
        .rule(when("next").reply("<result>led</result>"));
    let mut run = test.spawn(&["START.md"]);
    run.wait_for("the worker", |test| !test.calls_with("work").is_empty());
    test.raymond(&["hold", "t", "main.1.*"]).ok().stdout_has("main.1.*");
    run.wait_event("command_received", 1);
    test.release("work");
    run.wait().code(2).ended("main", "led");
    assert_eq!(test.calls_with("rest").len(), 0);
    test.raymond(&["release", "t", "main.1"]).ok();
    test.raymond(&["resume", "t"]).ok().ended("main.1", "worked");
}

#[test]
fn stopped_agent_ends_with_its_turn_and_waiting_agents_learn_of_it() {
    let test = Test::new()
        .prompt("START.md", "start")
        .prompt("GATHER.md", "---\njoin: all\non_failure: keep\n---\ngather {{results}}")
        .prompt("W.md", "work on {{item}}")
        .rule(
            when("start")
                .reply(r#"<fork next="GATHER.md" each='["a", "b"]' as="item">W.md</fork>"#),
        )
        .rule(when("work on a").hold_before("never").cost(0.02).reply("<result>a</result>"))
        .rule(when("work on b").reply("<result>b</result>"))
        .rule(always().reply("<result>gathered</result>"));
    let mut run = test.spawn(&["START.md", "--stagger", "0s"]);
    run.wait_for("the held turn", |test| !test.calls_with("work on a").is_empty());
    let stopped = test.raymond(&["stop", "t", "--agent", "main.1"]);
    stopped.ok().stdout_has("main.1 ends as failed");
    run.wait().ok().ended("main", "gathered");
    let event = test.events("agent_failed").pop().expect("it failed");
    assert_eq!((&event["agent"], &event["cause"]), (&json!("main.1"), &json!("stopped")));
    let gathered = test.calls_with("gather").pop().expect("gathered");
    assert!(gathered.prompt.contains("a person stopped it"), "{}", gathered.prompt);
    test.assert_no_survivors();

    // It can live again, and is not ended a second time.
    let test = pair();
    test.run(&["START.md"]).ok();
    test.raymond(&["stop", "t", "--agent", "main.1"])
        .code(64)
        .stderr_has("main.1 has already ended");
}

#[test]
fn stopped_agent_that_waits_ends_at_once_and_can_be_retried() {
    let test = Test::new()
        .prompt("START.md", "start")
        .prompt("NEXT.md", "they said {{answer}}")
        .rule(when("start").reply(r#"<ask next="NEXT.md">Shall I?</ask>"#))
        .rule(always().reply("<result>heard</result>"));
    let mut run = test.spawn(&["START.md", "--on-wait", "stay"]);
    run.wait_event("step_finished", 1);
    test.raymond(&["stop", "t", "--agent", "main"]).ok();
    run.wait().code(1).failed("main");
    test.raymond(&["retry", "t", "--on-wait", "exit"]).code(2);
    test.raymond(&["answer", "t", "NEXT.md=yes"]).ok();
    test.raymond(&["resume", "t"]).ok().ended("main", "heard");
}

#[test]
fn agent_that_is_stopped_while_nobody_runs_it_ends_with_the_turn_that_outlived_raymond() {
    let test = Test::new()
        .prompt("START.md", "start")
        .rule(when("start").hold_before("go").cost(0.02).reply("<goto>START.md</goto>"));
    let mut run = test.spawn(&["START.md"]);
    run.wait_calls(1);
    run.kill9();
    test.raymond(&["stop", "t", "--agent", "main"]).ok().stdout_has("t is not live");
    let early = test.raymond(&["retry", "t", "--agent", "main"]);
    early.code(64).stderr_has("main is about to end, as a person asked");
    test.release("go");
    wait_until("the turn has ended", || stream(&test).contains("\"result\""));
    test.resume(&[]).code(1).failed("main");
    assert_eq!(test.calls().len(), 1, "it is asked nothing more");
    let event = test.events("agent_failed").pop().expect("it failed");
    assert_eq!((&event["cause"], &event["cost_usd"]), (&json!("stopped"), &json!(0.02)));
    test.assert_no_survivors();
}

#[test]
fn agent_whose_turn_outlived_raymond_is_stopped_while_that_runs() {
    let test = Test::new()
        .prompt("START.md", "start")
        .rule(when("start").hold_before("never").reply("<goto>START.md</goto>"));
    let mut run = test.spawn(&["START.md"]);
    run.wait_calls(1);
    run.kill9();
    let mut again = test.spawn_resumed(&[]);
    again.wait_event("run_resumed", 1);
    test.raymond(&["stop", "t", "--agent", "main"]).ok();
    again.wait().code(1).failed("main");
    assert_eq!(test.calls().len(), 1, "it is asked nothing more");
    assert_eq!(test.events("agent_failed")[0]["cause"], "stopped");
    test.assert_no_survivors();
}

#[test]
fn agent_that_is_held_and_stopped_at_once_ends_with_its_turn() {
    let test = Test::new()
        .prompt("START.md", "start")
        .rule(when("start").hold_before("never").reply("<goto>START.md</goto>"));
    let mut run = test.spawn(&["START.md"]);
    run.wait_calls(1);
    // Both orders are read together.
    run.signal(Signal::STOP);
    test.raymond(&["hold", "t", "main"]).ok();
    test.raymond(&["stop", "t", "--agent", "main"]).ok();
    run.signal(Signal::CONT);
    run.wait().code(1).failed("main");
    assert_eq!(test.events("agent_failed")[0]["cause"], "stopped");
    test.assert_no_survivors();
}

#[test]
fn message_during_an_approval_is_delivered_once() {
    for (hold, is_parked) in [("1h", false), ("1ms", true)] {
        let touch = json!({ "command": "touch a", "description": "make it" });
        let test = Test::new()
            .prompt("START.md", "---\npermissions: ask\n---\nstart")
            .rule(
                when("waited for a person")
                    .asked("Bash", &touch, &[])
                    .reply("<result>later</result>"),
            )
            .rule(
                when("start")
                    .asked("Bash", &touch, &[])
                    .tool("Bash")
                    .hold_tool("go")
                    .reply("<result>ok</result>"),
            );
        let mut run = test.spawn(&["START.md", "--approval-hold", hold, "--on-wait", "stay"]);
        run.wait_event("approval_asked", 1);
        if is_parked {
            run.wait_event("turn_suspended", 1);
        }
        test.raymond(&["tell", "t", "main", "be brief"]).ok();
        run.wait_event("command_received", 1);
        test.raymond(&["answer", "t", "a1", "allow"]).ok();
        if !is_parked {
            wait_queued(&mut run, 1);
            test.release("go");
        }
        run.wait().ok();
        let told = (read(&test).len(), prompts_with(&test, "be brief"));
        assert_eq!(told, if is_parked { (0, 1) } else { (1, 0) }, "{hold}");
        assert_eq!(test.events("messages_taken").len(), 1, "{hold}");
        test.assert_no_survivors();
    }
}

#[test]
fn transition_that_a_message_came_after_still_counts() {
    let test = Test::new()
        .prompt("START.md", "start")
        .prompt("NEXT.md", "next")
        .rule(when("start").hold_before("go").reply("<goto>NEXT.md</goto>"))
        .rule(when("hello").reply("Thanks, noted."))
        .rule(always().reply("<result>ok</result>"));
    let mut run = test.spawn(&["START.md"]);
    run.wait_calls(1);
    test.raymond(&["tell", "t", "main", "hello"]).ok();
    wait_queued(&mut run, 1);
    test.release("go");
    run.wait().ok().ended("main", "ok");
    assert_eq!(prompts_with(&test, "next"), 1);
    let shown = test.raymond(&["show", "t", "main", "--step", "1"]);
    shown.ok().stdout_has("<goto>NEXT.md</goto>").stdout_has("Thanks, noted.");
}
