//! The effect of each tag on the conversation, seen from the API.

use crate::api::{on, otherwise};

use super::POSITIVE;
use super::machine::TestMachine;

#[test]
fn goto_keeps_context() {
    let machine = TestMachine::new();
    machine.prompt("START.md", "ALPHA: look around.");
    machine.prompt("NEXT.md", "BRAVO: judge what you saw.");
    machine.api.script([
        on("ALPHA").reply("A quiet street. <goto>NEXT.md</goto>"),
        on("BRAVO").reply("<result>POSITIVE</result>"),
    ]);

    machine.run(&[]).exits(0).prints(POSITIVE);

    let (first, second) = (machine.api.request("ALPHA"), machine.api.request("BRAVO"));
    assert_eq!(first.session, second.session);
    assert!(second.sees("ALPHA: look around.") && second.sees("A quiet street."), "{second:#?}");
    assert_eq!(machine.transitions(), ["main#1 goto NEXT.md", "main#2 result"]);
}

#[test]
fn call_forks_context_and_returns_to_it() {
    let machine = TestMachine::new();
    machine.prompt("START.md", "ALPHA: plan.");
    machine.prompt("RESEARCH.md", "BRAVO: research.");
    machine.prompt("DEEPER.md", "CHARLIE: research deeper.");
    machine.prompt("BACK.md", "DELTA: the research says {{result}}.");
    machine.api.script([
        on("ALPHA").reply(r#"<call return="BACK.md">RESEARCH.md</call>"#),
        on("BRAVO").reply("A first trace. <goto>DEEPER.md</goto>"),
        on("CHARLIE").reply("<result>forty-two</result>"),
        on("DELTA").reply("<result>POSITIVE</result>"),
    ]);

    machine.run(&[]).exits(0).prints(POSITIVE);

    let [caller, inner, deeper, back] =
        ["ALPHA", "BRAVO", "CHARLIE", "DELTA"].map(|name| machine.api.request(name));
    assert!(inner.sees("ALPHA"), "the callee knows the caller's history: {inner:#?}");
    assert!(deeper.sees("ALPHA") && deeper.sees("A first trace."), "{deeper:#?}");
    assert_eq!(inner.session, deeper.session);
    assert_ne!(caller.session, inner.session);
    assert_eq!(caller.session, back.session);
    assert!(back.sees("ALPHA") && !back.sees("BRAVO") && !back.sees("CHARLIE"), "{back:#?}");
    assert!(back.newest.contains("the research says forty-two."), "{back:#?}");
}

#[test]
fn function_starts_fresh_session_and_returns_to_caller() {
    let machine = TestMachine::new();
    machine.prompt("START.md", "ALPHA: draft.");
    machine.prompt("EVAL.md", "BRAVO: evaluate.");
    machine.prompt("BACK.md", "CHARLIE: the verdict is {{result}}.");
    machine.api.script([
        on("ALPHA").reply(r#"<function return="BACK.md">EVAL.md</function>"#),
        on("BRAVO").reply("<result>sound</result>"),
        on("CHARLIE").reply("<result>POSITIVE</result>"),
    ]);

    machine.run(&[]).exits(0).prints(POSITIVE);

    let [caller, inner, back] = ["ALPHA", "BRAVO", "CHARLIE"].map(|name| machine.api.request(name));
    assert_eq!(inner.texts.len(), 1, "{inner:#?}");
    assert_ne!(caller.session, inner.session);
    assert_eq!(caller.session, back.session);
    assert!(back.sees("ALPHA") && !back.sees("BRAVO"), "{back:#?}");
    assert!(back.newest.contains("the verdict is sound."), "{back:#?}");
}

#[test]
fn reset_drops_context() {
    let machine = TestMachine::new();
    machine.prompt("START.md", "ALPHA: first phase.");
    machine.prompt("NEXT.md", "BRAVO: second phase.");
    machine.api.script([
        on("ALPHA").reply("<reset>NEXT.md</reset>"),
        on("BRAVO").reply("<result>POSITIVE</result>"),
    ]);

    machine.run(&[]).exits(0).prints(POSITIVE);

    let (first, second) = (machine.api.request("ALPHA"), machine.api.request("BRAVO"));
    assert_eq!(second.texts.len(), 1, "{second:#?}");
    assert_ne!(first.session, second.session);
}

#[test]
fn fork_runs_concurrently_in_fresh_session() {
    let machine = TestMachine::new();
    machine.prompt("START.md", "ALPHA: hand out the work.");
    machine.prompt("WORKER.md", "BRAVO: peel the {{item}}.");
    machine.prompt("NEXT.md", "CHARLIE: meanwhile.");
    machine.api.script([
        on("ALPHA").reply(r#"<fork next="NEXT.md" item="pear">WORKER.md</fork>"#),
        on("BRAVO").reply("<result>peeled</result>").hold(),
        on("CHARLIE").reply("<result>POSITIVE</result>").hold(),
    ]);

    let run = machine.start(&[]);
    machine.api.wait_for("BRAVO", 1);
    machine.api.wait_for("CHARLIE", 1);
    machine.api.release("BRAVO");
    machine.api.release("CHARLIE");
    let ended = run.wait().exits(0);

    let mut lines: Vec<_> = ended.stdout.lines().collect();
    lines.sort_unstable();
    let expected = [
        "Agent main terminated with result: POSITIVE",
        "Agent main.1 terminated with result: peeled",
    ];
    assert_eq!(lines, expected);
    let [parent, worker, next] =
        ["ALPHA", "BRAVO", "CHARLIE"].map(|name| machine.api.request(name));
    assert_eq!(worker.texts, ["BRAVO: peel the pear."], "the worker starts fresh");
    assert_ne!(parent.session, worker.session);
    assert_eq!(parent.session, next.session);
    assert!(next.sees("ALPHA") && !next.sees("BRAVO"), "{next:#?}");
}

#[test]
fn reminder_is_sent_in_same_session() {
    let machine = TestMachine::new();
    let policy =
        "---\nallowed_transitions:\n  - { tag: goto, target: NEXT.md }\n  - { tag: result }\n---\n";
    machine.prompt("START.md", &format!("{policy}ALPHA: decide."));
    machine.prompt("NEXT.md", "BRAVO: act.");
    machine.api.script([
        on("ALPHA").reply("I would rather talk."),
        on("BRAVO").reply("<result>POSITIVE</result>"),
        otherwise().reply("Sorry. <goto>NEXT.md</goto>"),
    ]);

    machine.run(&[]).exits(0).prints(POSITIVE);

    let requests = machine.api.requests();
    let [first, reminder, next] = requests.as_slice() else { panic!("three turns: {requests:#?}") };
    assert_eq!(first.session, reminder.session);
    assert!(reminder.sees("ALPHA") && reminder.sees("I would rather talk."), "{reminder:#?}");
    assert!(reminder.newest.contains("NEXT.md"), "it names what is allowed: {reminder:#?}");
    assert!(next.sees("Sorry."), "{next:#?}");
    assert_eq!(machine.records("turn_rejected").len(), 1);
    assert_eq!(machine.transitions(), ["main#1 goto NEXT.md", "main#2 result"]);
}

#[test]
fn missing_tag_without_policy_fails_agent() {
    let machine = TestMachine::new();
    machine.prompt("START.md", "ALPHA: decide.");
    machine.api.script([otherwise().reply("I would rather talk.")]);

    let ended = machine.run(&[]).exits(1);

    assert!(ended.stdout.starts_with("Agent main failed: "), "{ended:?}");
    assert_eq!(machine.api.requests().len(), 1, "nothing is asked again");
}

#[test]
fn state_model_applies_to_that_state_only() {
    let machine = TestMachine::new();
    machine.prompt("START.md", "ALPHA: simple.");
    machine.prompt("HARD.md", "---\nmodel: sonnet\n---\nBRAVO: hard.");
    machine.prompt("EASY.md", "CHARLIE: simple again.");
    machine.api.script([
        on("ALPHA").reply("<goto>HARD.md</goto>"),
        on("BRAVO").reply("<goto>EASY.md</goto>"),
        on("CHARLIE").reply("<result>POSITIVE</result>"),
    ]);

    machine.run(&[]).exits(0).prints(POSITIVE);

    let models = machine.api.requests().into_iter().map(|request| request.model);
    let models: Vec<_> =
        models.map(|model| model.split('-').nth(1).unwrap_or_default().to_owned()).collect();
    assert_eq!(models, ["haiku", "sonnet", "haiku"]);
}

#[test]
fn branch_at_step_five_of_ten_asks_five_turns_with_context_of_first_five() {
    let machine = TestMachine::new();
    let marker = |number: u32| format!("TURN{number:02}");
    for number in 1..=10 {
        let name = if number == 1 { "START.md".to_owned() } else { format!("S{number}.md") };
        machine.prompt(&name, &format!("{}: go on.", marker(number)));
    }
    let rules = (1..=10).map(|number| {
        let reply = match number {
            10 => "<result>POSITIVE</result>".to_owned(),
            _ => format!("Seen {number}. <goto>S{}.md</goto>", number + 1),
        };
        on(&marker(number)).reply(&reply)
    });
    machine.api.script(rules);
    machine.run(&[]).exits(0).prints(POSITIVE);
    let before: Vec<usize> = (1..=10).map(|number| machine.api.turns(&marker(number))).collect();
    assert_eq!(before, [1; 10]);

    machine.branch(&["--at", "main#6"]).wait().exits(0).prints(POSITIVE);

    let after: Vec<usize> = (1..=10).map(|number| machine.api.turns(&marker(number))).collect();
    assert_eq!(after, [1, 1, 1, 1, 1, 2, 2, 2, 2, 2]);
    let requests = machine.api.requests();
    let first = requests.iter().rfind(|request| request.newest.contains("TURN06")).expect("asked");
    assert!(first.sees("TURN01") && first.sees("Seen 5."), "{first:#?}");
    assert!(!first.sees("Seen 6.") && !first.sees("TURN10"), "{first:#?}");
}
