//! Claude Code by itself: the behaviour that raymond relies on, so that a new version that changes it is
//! found here.

use serde_json::{Value, json};
use uuid::Uuid;

use crate::api::{on, otherwise};

use super::installed::version;
use super::machine::TestMachine;
use super::running::ProgramOutcome;

fn id() -> String {
    Uuid::new_v4().to_string()
}

/// Returns the event that ends the turn. It need not be the last line: news of background tasks may follow.
fn result(ended: &ProgramOutcome) -> Value {
    let found = ended.stream().into_iter().find(|event| event["type"] == "result");
    found.unwrap_or_else(|| panic!("no result: {ended:?}"))
}

/// Returns the id of the model's last message, at which a conversation can be cut.
fn last_words(ended: &ProgramOutcome) -> String {
    let said = ended.stream().into_iter().rfind(|event| event["type"] == "assistant");
    said.and_then(|event| Some(event["uuid"].as_str()?.to_owned())).expect("the model spoke")
}

#[test]
fn session_can_be_resumed_forked_and_truncated() {
    let machine = TestMachine::new();
    machine.api.script([otherwise().reply("Heard.")]);
    let [session, fork, cut] = [id(), id(), id()];
    let permissions = ["--permission-mode", "acceptEdits"];
    let first = [&["--session-id", &session, "--model", "haiku"], &permissions[..]].concat();
    let resumed = [&["--resume", &session, "--model", "sonnet"], &permissions[..]].concat();

    let alpha = machine.claude(&first, "ALPHA").exits(0);
    let bravo = machine.claude(&resumed, "BRAVO").exits(0);
    let forked = ["--resume", &session, "--fork-session", "--session-id", &fork];
    let charlie = machine.claude(&forked, "CHARLIE").exits(0);
    let words = last_words(&alpha);
    let cut_back = [
        "--resume",
        &session,
        "--fork-session",
        "--session-id",
        &cut,
        "--resume-session-at",
        &words,
    ];
    let delta = machine.claude(&cut_back, "DELTA").exits(0);

    let sessions =
        [&alpha, &bravo, &charlie, &delta].map(|ended| result(ended)["session_id"].clone());
    assert_eq!(sessions, [&session, &session, &fork, &cut].map(|id| json!(id)));
    let seen = ["BRAVO", "CHARLIE", "DELTA"].map(|name| machine.api.request(name));
    let seen = seen.map(|request| ["ALPHA", "BRAVO", "CHARLIE"].map(|name| request.sees(name)));
    assert_eq!(seen, [[true, true, false], [true, true, true], [true, false, false]]);
    assert_eq!(result(&alpha)["result"], "Heard.");
    assert_eq!(result(&alpha)["is_error"], false);
}

#[test]
fn resumed_session_keeps_model_unless_overridden() {
    let machine = TestMachine::new();
    machine.api.script([otherwise().reply("Heard.")]);
    let session = id();

    machine.claude(&["--session-id", &session, "--model", "haiku"], "ALPHA").exits(0);
    machine.claude(&["--resume", &session], "BRAVO").exits(0);
    machine.claude(&["--resume", &session, "--model", "sonnet"], "CHARLIE").exits(0);

    let models = ["ALPHA", "BRAVO", "CHARLIE"].map(|name| machine.api.request(name).model);
    assert!(models[0].contains("haiku") && models[1] == models[0], "{models:?}");
    assert!(models[2].contains("sonnet"), "{models:?}");
}

#[test]
fn reused_session_id_is_error() {
    let machine = TestMachine::new();
    machine.api.script([otherwise().reply("Heard.")]);
    let session = id();

    machine.claude(&["--session-id", &session], "ALPHA").exits(0);
    let again = machine.claude(&["--session-id", &session], "BRAVO").exits(1).prints("");

    assert!(again.stderr.contains("already in use"), "{again:?}");
}

#[test]
fn resuming_unknown_session_gives_error_result() {
    let machine = TestMachine::new();

    let unknown = machine.claude(&["--resume", &id()], "ALPHA").exits(1);

    let result = result(&unknown);
    assert_eq!(
        (&result["is_error"], &result["subtype"]),
        (&json!(true), &json!("error_during_execution"))
    );
    assert!(
        result["errors"][0]
            .as_str()
            .is_some_and(|error| error.starts_with("No conversation found"))
    );
}

#[test]
fn api_error_is_reported_in_result() {
    let mut machine = TestMachine::new();
    machine.api.script([on("ALPHA").error(400, "bad")]);

    let refused = result(&machine.claude(&[], "ALPHA").exits(1));
    assert_eq!(refused["is_error"], true);
    assert_eq!(refused["api_error_status"], 400);
    assert_eq!(refused["result"], "API Error: 400 bad");

    machine.unset("ANTHROPIC_API_KEY");
    let stranger = machine.claude(&[], "ALPHA").exits(1);
    assert_eq!(result(&stranger)["is_error"], true);
    assert_eq!(result(&stranger)["result"], "Not logged in · Please run /login");
    assert!(stranger.stream().iter().any(|event| event["error"] == "authentication_failed"));
}

#[test]
fn background_task_adds_notification_and_second_result() {
    let machine = TestMachine::new();
    let command = json!({"command": "sleep 1", "description": "wait", "run_in_background": true});
    machine.api.script([on("ALPHA").tool("Bash", command), otherwise().reply("Heard.")]);

    let ended = machine.claude(&["--dangerously-skip-permissions"], "ALPHA").exits(0);

    let is_news =
        |event: &Value| event["type"] == "result" || event["subtype"] == "task_notification";
    let events = ended.stream();
    let told: Vec<_> = events.iter().filter(|event| is_news(event)).collect();
    let [answer, news, further] = told.as_slice() else { panic!("three events: {ended:?}") };
    assert_eq!((&answer["result"], answer.get("origin")), (&json!("Heard."), None));
    assert_eq!(news["status"], "completed");
    assert_eq!(further["origin"]["kind"], "task-notification");
}

#[test]
fn stream_init_line_names_version() {
    let machine = TestMachine::new();
    machine.api.script([otherwise().reply("Heard.")]);

    let ended = machine.claude(&[], "ALPHA").exits(0);

    let init = ended.stream().into_iter().find(|event| event["subtype"] == "init");
    assert_eq!(init.expect("an init line")["claude_code_version"], version());
}
