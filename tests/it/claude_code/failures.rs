//! Failures around a turn: the API refuses it, no user is logged in, the budget is spent.

use crate::api::on;

use super::POSITIVE;
use super::machine::{RUN, TestMachine};

#[test]
fn api_error_labelled_success_fails_agent() {
    let machine = TestMachine::new();
    machine.prompt("START.md", "ALPHA: begin.");
    machine.prompt("NEXT.md", "BRAVO: never asked.");
    machine.api.script([on("ALPHA").error(400, "no such beta <goto>NEXT.md</goto>")]);

    let ended = machine.run(&[]).exits(1);

    assert!(ended.stdout.starts_with("Agent main failed: "), "{ended:?}");
    assert!(ended.stdout.contains("400") && ended.stdout.contains("no such beta"), "{ended:?}");
    assert_eq!(machine.api.turns("BRAVO"), 0, "a tag in an error message moves nobody");
    assert_asked_once(&machine);
}

/// Checks that one process has asked one turn, and that the agent has failed without a restart.
fn assert_asked_once(machine: &TestMachine) {
    assert_eq!(machine.records("agent_failed").len(), 1);
    assert_eq!(machine.records("turn_failed").len(), 0, "it was not asked again");
    assert_eq!(machine.streams(), ["main-1-0.jsonl"]);
}

#[test]
fn unknown_model_fails_agent_without_retry() {
    let machine = TestMachine::new();
    machine.prompt("START.md", "ALPHA: begin.");
    machine.api.script([on("ALPHA").error(404, "model: claude-none")]);

    let ended = machine.run(&[]).exits(1);

    assert!(ended.stdout.contains("name a model"), "{ended:?}");
    assert_asked_once(&machine);
}

#[test]
fn run_paused_for_missing_credit_resumes_after_top_up() {
    let machine = TestMachine::new();
    machine.prompt("START.md", "ALPHA: begin.");
    machine.api.script([
        on("ALPHA").times(1).error(400, "Your credit balance is too low"),
        on("ALPHA").reply("<result>POSITIVE</result>"),
    ]);

    let ended = machine.run(&["--on-limit", "pause"]).exits(75);

    assert!(ended.stderr.contains("billing"), "{ended:?}");
    assert_eq!(machine.api.turns("ALPHA"), 1);
    assert!(machine.records("agent_failed").is_empty());
    machine.resume(&[]).wait().exits(0).prints(super::POSITIVE);
}

#[test]
fn option_refused_by_claude_code_fails_agent_without_retry() {
    for options in [["--", "--no-such-option"], ["--", "--permission-mode=nonsense"]] {
        let machine = TestMachine::new();
        machine.prompt("START.md", "ALPHA: begin.");

        let ended = machine.run(&options).exits(1);

        assert!(ended.stdout.contains("correct that option"), "{ended:?}");
        assert_asked_once(&machine);
        assert_eq!(machine.api.turns("ALPHA"), 0);
    }
}

#[test]
fn invalid_api_key_pauses_run_and_valid_key_resumes_it() {
    let mut machine = TestMachine::new();
    machine.set("ANTHROPIC_API_KEY", "wrong");
    machine.prompt("START.md", "ALPHA: begin.");
    machine.prompt("NEXT.md", "BRAVO: go on.");
    machine.api.script([
        on("ALPHA").key("wrong").error(401, "invalid x-api-key"),
        on("ALPHA").reply("<goto>NEXT.md</goto>"),
        on("BRAVO").reply("<result>POSITIVE</result>"),
    ]);

    let ended = machine.run(&[]).exits(69);

    assert!(ended.stderr.contains("ANTHROPIC_API_KEY"), "{ended:?}");
    let asked = machine.api.turns("ALPHA");
    assert!((3..=4).contains(&asked), "it retries ten times by itself, not {asked}");
    let failed = machine.records("turn_failed");
    assert_eq!((failed.len(), &failed[0]["counts"]), (1, &false.into()), "{failed:?}");

    machine.set("ANTHROPIC_API_KEY", "test");
    machine.resume(&[]).wait().exits(0).prints(POSITIVE);
    assert_eq!(machine.api.request("BRAVO").mentions("ALPHA"), 1, "no half turn stays");
}

#[test]
fn retry_removes_failed_turn_from_conversation() {
    let mut machine = TestMachine::new();
    machine.prompt("START.md", "ALPHA: begin.");
    machine.prompt("NEXT.md", "BRAVO: go on.");
    machine.prompt("LAST.md", "CHARLIE: end.");
    machine.set("CLAUDE_CODE_MAX_RETRIES", "0");
    machine.api.script([
        on("ALPHA").error(500, "hiccup").times(1),
        on("ALPHA").reply("<goto>NEXT.md</goto>"),
        on("BRAVO").error(500, "hiccup").times(1),
        on("BRAVO").reply("<goto>LAST.md</goto>"),
        on("CHARLIE").reply("<result>POSITIVE</result>"),
    ]);

    machine.run(&["--backoff", "1ms..5ms"]).exits(0).prints(POSITIVE);

    assert_eq!(machine.records("turn_failed").len(), 2);
    assert_eq!([machine.api.turns("ALPHA"), machine.api.turns("BRAVO")], [2, 2]);
    let last = machine.api.request("CHARLIE");
    let twice = ["ALPHA", "BRAVO"].map(|marker| last.mentions(marker));
    assert_eq!(twice, [1, 1], "no half turn stays in the conversation: {last:#?}");
    assert!(!last.sees("hiccup"), "{last:#?}");
}

#[test]
fn throttled_turn_uses_no_restart() {
    let machine = TestMachine::new();
    machine.prompt("START.md", "ALPHA: begin.");
    machine.api.script([
        on("ALPHA").error(429, "slow down").times(1),
        on("ALPHA").reply("<result>POSITIVE</result>"),
    ]);

    machine.run(&["--max-restarts", "0"]).exits(0).prints(POSITIVE);

    assert_eq!(machine.api.turns("ALPHA"), 2);
    assert_eq!(machine.records("turn_failed").len(), 0);
    assert!(machine.run_file("steps/main-1-0.jsonl").contains("api_retry"));
}

#[test]
fn missing_login_pauses_run_and_login_resumes_it() {
    let mut machine = TestMachine::new();
    machine.unset("ANTHROPIC_API_KEY");
    machine.prompt("START.md", "ALPHA: begin.");
    machine.api.script([on("ALPHA").reply("<result>POSITIVE</result>")]);

    let ended = machine.run(&[]).exits(69);

    assert!(ended.stderr.contains("logged in") && ended.stderr.contains(RUN), "{ended:?}");
    let failed = machine.records("turn_failed");
    assert_eq!(failed.len(), 1, "a login does not repair itself");
    assert_eq!(failed[0]["counts"], false, "it is no restart");
    assert_eq!(machine.records("run_paused").len(), 1);

    machine.set("ANTHROPIC_API_KEY", "test");
    machine.resume(&[]).wait().exits(0).prints(POSITIVE);
    assert_eq!(machine.api.request("ALPHA").mentions("ALPHA"), 1);
}

#[test]
fn spent_budget_pauses_run_and_larger_budget_resumes_it() {
    let mut machine = TestMachine::new();
    machine.fix_price_of_haiku();
    machine.prompt("START.md", "ALPHA: begin.");
    machine.prompt("MORE.md", "BRAVO: go on.");
    machine.prompt("LAST.md", "CHARLIE: end.");
    let half_a_dollar_of_haiku = 100_000;
    machine.api.script([
        on("ALPHA").reply("<goto>MORE.md</goto>").tokens(0, half_a_dollar_of_haiku),
        on("BRAVO").reply("<goto>LAST.md</goto>").tokens(0, half_a_dollar_of_haiku),
        on("CHARLIE").reply("<result>POSITIVE</result>"),
    ]);

    let ended = machine.run(&["--budget", "0.75"]).exits(75);

    assert!(ended.stderr.contains("budget"), "{ended:?}");
    assert_eq!([machine.api.turns("BRAVO"), machine.api.turns("CHARLIE")], [1, 0]);
    let cost = |step: usize| machine.records("step_finished")[step]["cost_usd"].as_f64();
    assert_eq!([cost(0), cost(1)], [Some(0.5), Some(0.5)]);

    machine.resume(&["--budget", "10"]).wait().exits(0).prints(POSITIVE);
    let turns = ["ALPHA", "BRAVO", "CHARLIE"].map(|marker| machine.api.turns(marker));
    assert_eq!(turns, [1, 1, 1]);
}

#[test]
fn notice_of_usage_limit_inside_a_server_error_pauses_run() {
    for status in [403, 500, 529] {
        let mut machine = TestMachine::new();
        machine.set("CLAUDE_CODE_MAX_RETRIES", "0");
        machine.prompt("START.md", "ALPHA: begin.");
        let notice = "You've hit your session limit · resets 1pm (UTC)";
        machine.api.script([
            on("ALPHA").error(status, notice).times(1),
            on("ALPHA").reply("<result>POSITIVE</result>"),
        ]);

        let ended = machine.run(&["--on-limit", "pause"]).exits(75);

        assert!(ended.stderr.contains("usage limit"), "{status}: {ended:?}");
        machine.resume(&[]).wait().exits(0).prints(POSITIVE);
    }
}

#[test]
fn refused_organization_pauses_run_with_a_remedy() {
    let machine = TestMachine::new();
    machine.prompt("START.md", "ALPHA: begin.");
    let refused = "OAuth authentication is currently not allowed for this organization.";
    machine.api.script([
        on("ALPHA").error(403, refused).times(1),
        on("ALPHA").reply("<result>POSITIVE</result>"),
    ]);

    let ended = machine.run(&[]).exits(69);

    assert!(ended.stderr.contains("ask the admin"), "{ended:?}");
    assert_eq!(machine.records("turn_failed")[0]["cause"], "account");
    assert_eq!(machine.api.turns("ALPHA"), 1);
    machine.resume(&[]).wait().exits(0).prints(POSITIVE);
}

#[test]
fn poisoned_conversation_restarts_from_before_the_turn() {
    for message in ["Could not process image", "Output blocked by content filtering policy"] {
        let mut machine = TestMachine::new();
        machine.set("CLAUDE_CODE_MAX_RETRIES", "0");
        machine.prompt("START.md", "ALPHA: begin.");
        machine.prompt("NEXT.md", "BRAVO: read.");
        std::fs::write(machine.path("work/note.txt"), "CHARLIE").expect("written");
        let note = machine.path("work/note.txt").display().to_string();
        machine.api.script([
            on("ALPHA").reply("<goto>NEXT.md</goto>"),
            on("BRAVO").tool("Read", serde_json::json!({ "file_path": note })).times(1),
            on("CHARLIE").error(400, message),
            on("BRAVO").reply("<result>POSITIVE</result>"),
        ]);

        machine.run(&["--backoff", "1ms..5ms"]).exits(0).prints(POSITIVE);

        let failed = machine.records("turn_failed");
        assert_eq!((failed.len(), &failed[0]["cause"]), (1, &"poisoned".into()), "{failed:?}");
        assert_eq!(machine.api.turns("BRAVO"), 2);
    }
}

#[test]
fn turn_waits_until_the_network_is_back() {
    let mut machine = TestMachine::new();
    machine.set("CLAUDE_CODE_MAX_RETRIES", "0");
    let address = std::net::TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr());
    let address = address.expect("a port that is closed again");
    let url = machine.api.url().to_owned();
    machine.set("ANTHROPIC_BASE_URL", &format!("http://{address}"));
    machine.prompt("START.md", "ALPHA: begin.");
    machine.api.script([on("ALPHA").reply("<result>POSITIVE</result>")]);

    let run = machine.start(&["--max-restarts", "0", "--backoff", "1ms..5ms"]);
    machine.until("two failed turns", || machine.records("turn_failed").len() >= 2);
    let failed = machine.records("turn_failed");
    assert!(failed.iter().all(|turn| turn["cause"] == "network" && turn["counts"] == false));
    let behind = url.trim_start_matches("http://").to_owned();
    let listener = std::net::TcpListener::bind(address).expect("the port is free again");
    std::thread::spawn(move || forward(&listener, &behind));

    run.wait().exits(0).prints(POSITIVE);
}

/// Passes all connections on to another address, until the process of the tests ends.
fn forward(listener: &std::net::TcpListener, behind: &str) {
    for connection in listener.incoming().flatten() {
        let Ok(server) = std::net::TcpStream::connect(behind) else { continue };
        let pairs = [
            (connection.try_clone(), server.try_clone()),
            (server.try_clone(), connection.try_clone()),
        ];
        for (from, to) in pairs {
            let (Ok(mut from), Ok(mut to)) = (from, to) else { continue };
            std::thread::spawn(move || {
                let _ = std::io::copy(&mut from, &mut to);
                let _ = to.shutdown(std::net::Shutdown::Both);
            });
        }
    }
}

#[test]
fn retry_continues_deleted_session_in_a_fresh_session() {
    let machine = TestMachine::new();
    machine.prompt("START.md", "ALPHA: begin.");
    machine.prompt("NEXT.md", "BRAVO: the answer is {{answer}}.");
    machine.api.script([
        on("BRAVO").reply("<result>POSITIVE</result>"),
        on("ALPHA").reply("<ask next=\"NEXT.md\">ship it?</ask>"),
    ]);
    let ended = machine.run(&[]).exits(2);
    assert!(ended.stderr.contains("30 days"), "{ended:?}");
    std::fs::remove_dir_all(machine.path("home/.claude/projects")).expect("sessions were kept");
    machine.raymond(&["answer", RUN, "NEXT.md=yes"]).wait().exits(0);

    let ended = machine.resume(&[]).wait().exits(1);

    assert!(ended.stdout.contains("raymond retry"), "{ended:?}");
    machine.raymond(&["retry", RUN]).wait().exits(0).prints(POSITIVE);
    let asked = machine.api.request("BRAVO");
    assert!(asked.sees("ALPHA: begin.") && asked.sees("ship it?"), "{asked:#?}");
}
