//! `<ask>`: a prompt's question to a person, its policy, and its end without an answer.

use raymond::actor::context::now;
use raymond::domain::time::Timestamp;
use serde_json::{Value, json};

use crate::support::{Test, wait_until, when};

const ASK: &str = r#"<ask next="NEXT.md">Shall I?</ask>"#;

fn asking() -> Test {
    Test::new()
        .prompt("START.md", "start")
        .prompt("NEXT.md", "they said: {{answer}}")
        .prompt("LATE.md", "nobody said")
        .rule(when("start").reply(ASK))
        .rule(when("they said").reply("<result>heard</result>"))
        .rule(when("nobody said").reply("<result>unheard</result>"))
}

#[test]
fn answer_resumes_session_and_no_process_waits_for_it() {
    let test = asking();
    let outcome = test.run(&["START.md"]);
    outcome.code(2).stderr_has("main/NEXT.md asks: Shall I?").stderr_has("NEXT.md=TEXT");
    let document: Value = outcome.json_items().pop().expect("a document");
    let one = &document["questions"][0];
    assert_eq!((&one["node"], &one["free"]), (&json!("NEXT.md"), &json!(true)));
    test.assert_no_survivors();
    test.raymond(&["answer", "t", "NEXT.md=  "]).code(64).stderr_has("give some text");
    test.raymond(&["answer", "t", "NEXT.md=Yes, but {{carefully}}"]).ok();
    test.resume(&[]).ok().ended("main", "heard");
    let [start, next] = &test.calls()[..] else { panic!("two turns: {:?}", test.calls()) };
    assert_eq!(next.prompt.trim(), "they said: Yes, but {{carefully}}");
    next.assert_resumes(start);
}

#[test]
fn live_run_keeps_no_process_while_question_is_open() {
    let test = asking();
    let mut live = test.spawn(&["START.md", "--on-wait=stay"]);
    live.wait_event("step_finished", 1);
    let alone = [live.pid()];
    wait_until("only raymond itself is there", || test.survivors() == alone);
    test.raymond(&["answer", "t", "NEXT.md=Yes"]).ok();
    live.wait().ok().ended("main", "heard");
}

#[test]
fn answer_ahead_of_time_is_matched_by_next_state() {
    let test = asking();
    test.run(&["START.md", "--answer", "NEXT.md=ahead"]).ok();
    assert_eq!(test.calls()[1].prompt.trim(), "they said: ahead");
    let test = asking();
    test.run(&["START.md", "--answer", "NEXTT.md=ahead"])
        .code(64)
        .stderr_has("--answer NEXTT.md=ahead:")
        .stderr_has("did you mean NEXT.md?");
    assert!(!test.run_dir().exists());
}

#[test]
fn same_question_of_two_agents_needs_agent_in_answer() {
    let fork = r#"<fork next="NEXT.md">START.md</fork>"#;
    let test = Test::new()
        .prompt("TWO.md", "two")
        .prompt("START.md", "start")
        .prompt("NEXT.md", "next {{answer}}")
        .rule(when("two").reply(fork))
        .rule(when("start").reply(r#"<ask next="END.md">Child?</ask>"#))
        .rule(when("next").reply(r#"<ask next="END.md">Parent?</ask>"#))
        .rule(when("end").reply("<result>done</result>"))
        .prompt("END.md", "end {{answer}}");
    let outcome = test.run(&["TWO.md"]);
    outcome
        .code(2)
        .stderr_has("2 questions wait")
        .stderr_has("raymond answer t main.1/END.md=TEXT");
    test.raymond(&["answer", "t", "END.md=x"])
        .code(64)
        .stderr_has("name one, as main/END.md=… or main.1/END.md=…");
    test.raymond(&["answer", "t", "main/END.md=p", "main.1/END.md=c"]).ok();
    test.resume(&[]).ok();
    let mut said = [test.calls_with("end p"), test.calls_with("end c")];
    let agents = said.each_mut().map(|calls| calls.remove(0).agent().to_owned());
    assert_eq!(agents, ["main", "main.1"]);
}

fn late(timeout: &str) -> Test {
    let ask = format!(r#"<ask next="NEXT.md" timeout="{timeout}" timeout_next="LATE.md">?</ask>"#);
    let test = asking();
    test.script(&[
        when("start").reply(&ask),
        when("nobody said").reply("<result>unheard</result>"),
        when("they said").reply("<result>heard</result>"),
    ]);
    test
}

#[test]
fn unanswered_ask_enters_timeout_next_state() {
    let test = late("200ms");
    test.run(&["START.md", "--on-wait=stay"])
        .ok()
        .ended("main", "unheard")
        .stderr_has("no answer in time");
}

#[test]
fn ask_timeout_elapses_while_run_is_down() {
    let test = late("2s");
    let outcome = test.run(&["START.md"]);
    outcome.code(2).stderr_has("without an answer, if it is live");
    let document: Value = outcome.json_items().pop().expect("a document");
    let until = document["questions"][0]["until"].as_str().expect("a time").to_owned();
    let until: Timestamp = until.parse().expect("a time");
    wait_until("the time passes", || until < now());
    test.raymond(&["answer", "t", "NEXT.md=x"]).code(64).stderr_has("has passed");
    test.resume(&[]).ok().ended("main", "unheard");
}

#[test]
fn ask_outside_policy_is_rejected_with_reminder() {
    let policy = "---\nallowed_transitions:\n  - { tag: ask, next: NEXT.md, timeout: 24h, timeout_next: LATE.md }\n---\nstart";
    let right = r#"<ask next="NEXT.md" timeout="24h" timeout_next="LATE.md">Now?</ask>"#;
    let test = asking().prompt("START.md", policy);
    test.script(&[
        when("start").reply(ASK),
        when("24h").reply(right),
        when("they said").reply("<result>heard</result>"),
    ]);
    test.run(&["START.md", "--answer", "NEXT.md=yes"]).ok().ended("main", "heard");
    let reminder = &test.calls()[1].prompt;
    assert!(reminder.contains(&right.replace("Now?", "your question to a person")), "{reminder}");
    assert_eq!(test.events("turn_rejected").len(), 1);
}

#[test]
fn agent_repairs_missing_timeout_next_after_reminder() {
    let policy = "---\nallowed_transitions:\n  - { tag: ask, next: NEXT.md }\n  - { tag: ask, next: NEXT.md, timeout: 1h, timeout_next: LAET.md }\n---\nstart";
    let wrong = r#"<ask next="NEXT.md" timeout="1h" timeout_next="LAET.md">Now?</ask>"#;
    let test = asking().prompt("START.md", policy);
    test.script(&[
        when("start").reply(wrong),
        when("LATE.md").reply(ASK),
        when("they said").reply("<result>heard</result>"),
    ]);
    test.run(&["START.md", "--answer", "NEXT.md=yes", "--no-check"]).ok().ended("main", "heard");
    let violation = test.events("turn_rejected")[0]["violation"].to_string();
    assert!(violation.contains("did you mean LATE.md?"), "{violation}");
}

#[test]
fn on_event_hook_receives_question_with_answer_command() {
    let test = asking();
    let told = test.root().join("told");
    let hook = format!("sh -c 'cat >> {}'", told.display());
    test.run(&["START.md", "--on-event", &hook]).code(2);
    let said = std::fs::read_to_string(told).expect("told");
    let events: Vec<Value> =
        said.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let question = events.iter().find(|one| one["event"] == "question").expect("a question");
    let message = question["message"].as_str().expect("a sentence");
    assert!(message.contains("raymond answer t main/NEXT.md=TEXT"), "{message}");
}

#[test]
fn answer_comes_with_the_id_of_its_question() {
    let test = Test::new()
        .prompt("START.md", "start")
        .prompt("NEXT.md", "{{ask_id}}: {{answer}}")
        .rule(when("start").reply(ASK))
        .rule(when("main-2: yes").reply(r#"<ask next="NEXT.md">And now?</ask>"#))
        .rule(when("main-3: no").reply("<result>heard</result>"));
    test.raymond(&["check", "START.md"]).ok().stdout_lacks("ask_id");
    test.run(&["START.md"]).code(2);
    test.raymond(&["answer", "t", "NEXT.md=yes"]).ok();
    test.resume(&[]).code(2).stderr_has("And now?");
    test.raymond(&["answer", "t", "NEXT.md=no"]).ok();
    test.resume(&[]).ok().ended("main", "heard");
}
