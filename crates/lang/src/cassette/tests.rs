//! Cassettes that are read, and turns that are found in them.

use std::path::Path;

use serde_json::{Value, json};

use super::*;
use raymond_model::id::{AgentId, RunId};

fn header(turns: usize) -> Vec<u8> {
    let workflow = json!({ "name": "w", "entry": "A.md" });
    json!({ "format": 1, "raymond": "0", "workflow": workflow, "turns": turns }).to_string().into()
}

pub(super) fn turn(
    agent: &str,
    (step, number): (u64, u32),
    visit: u32,
    prompt: &str,
    more: &Value,
) -> Value {
    let mut turn = json!({
        "agent": agent, "step": step, "turn": number, "state": "A.md", "visit": visit, "session": 1,
        "session_turn": 1, "prompt": prompt, "outcome": "replied", "answer": format!("{agent} {step} {number}"),
    });
    for (key, value) in more.as_object().into_iter().flatten() {
        turn[key] = value.clone();
    }
    turn
}

pub(super) fn cassette(turns: &[Value]) -> Cassette {
    let lines: Vec<String> = turns.iter().map(Value::to_string).collect();
    let lines = lines.join("\n");
    Cassette::parse(&header(turns.len()), lines.as_bytes()).expect("a cassette")
}

/// Returns the agent, step and turn of what is found, and the question that found it.
fn found(
    cassette: &Cassette,
    agent: &str,
    (step, number): (u64, u32),
    visit: u32,
    prompt: &str,
) -> Option<(String, MatchKind)> {
    let id = TurnId { agent: AgentId::parse(agent).expect("an id"), step, turn: number };
    let run = RunId::parse("r").expect("an id");
    let marks = PortableMarks::of(&run, Path::new("/work/.raymond"), Path::new("/work"));
    let asked = ReplayRequest { id: &id, place: "A.md", visit, prompt, marks: &marks };
    cassette.find(&asked).map(|(turn, by)| {
        let recorded = &turn.recorded;
        (format!("{}-{}-{}", recorded.agent, recorded.step, recorded.turn), by)
    })
}

#[expect(clippy::unnecessary_wraps, reason = "it is compared with what is found")]
fn by(name: &str, kind: MatchKind) -> Option<(String, MatchKind)> {
    Some((name.to_owned(), kind))
}

#[test]
fn prompt_comes_before_visit_and_agent_before_state() {
    let cassette = cassette(&[
        turn("main", (1, 0), 0, "one", &Value::Null),
        turn("main", (2, 0), 1, "two", &Value::Null),
        turn("main.1", (1, 0), 0, "item [raymond:cwd]/x [scrubbed:scrub-1].", &Value::Null),
        turn("main.2", (1, 0), 0, "item b", &Value::Null),
    ]);
    let found = |agent, at, visit, prompt| found(&cassette, agent, at, visit, prompt);
    assert_eq!(found("main", (1, 0), 0, "one"), by("main-1-0", MatchKind::Exact));
    assert_eq!(
        found("main", (1, 0), 0, "two"),
        by("main-2-0", MatchKind::Exact),
        "an edit left one out"
    );
    assert_eq!(found("main", (2, 0), 1, "other"), by("main-2-0", MatchKind::Agent));
    assert_eq!(found("main.1", (1, 0), 0, "item /work/x KEY."), by("main.1-1-0", MatchKind::Exact));
    assert_eq!(found("main.7", (1, 0), 0, "item b"), by("main.2-1-0", MatchKind::State));
    assert_eq!(found("main.7", (1, 0), 0, "item c"), by("main-1-0", MatchKind::State));
    assert_eq!(found("main.7", (1, 0), 5, "item c"), None);
}

#[test]
fn failures_are_found_at_their_turn_and_those_of_the_machine_are_passed_over() {
    let failed = |cause: &str| json!({ "outcome": "failed", "cause": cause, "message": "m", "cost_usd": 0.25 });
    let cassette = cassette(&[
        turn("main", (1, 0), 0, "p", &failed("interrupted")),
        turn("main", (1, 1), 0, "p", &failed("crash")),
        turn("main", (1, 2), 0, "p", &failed("throttle")),
        turn("main", (1, 3), 0, "p", &Value::Null),
        turn(
            "main",
            (2, 0),
            1,
            "q",
            &json!({ "outcome": "failed", "cause": "usage_limit", "message": "m", "ended_agent": true }),
        ),
    ]);
    let found = |at, visit, prompt| found(&cassette, "main", at, visit, prompt);
    assert_eq!(found((1, 0), 0, "p"), by("main-1-1", MatchKind::Exact));
    assert_eq!(found((1, 1), 0, "p"), by("main-1-3", MatchKind::Exact));
    assert_eq!(
        found((4, 0), 0, "p"),
        by("main-1-3", MatchKind::Exact),
        "elsewhere the answer is taken"
    );
    assert_eq!(found((2, 0), 1, "q"), by("main-2-0", MatchKind::Exact), "it ended the agent");
    let costs: Vec<f64> = cassette.turns.iter().map(|turn| turn.further_cost.dollars()).collect();
    assert_eq!(costs, [0.25, 0.25, 0.0]);
}

#[test]
fn damaged_newer_and_cut_cassettes_have_different_errors() {
    let error = |header: &[u8], turns: &str| {
        Cassette::parse(header, turns.as_bytes()).expect_err("refused")
    };
    assert!(error(b"{", "").starts_with("cassette.json is damaged: "));
    assert!(error(b"{\"format\":1}", "").contains("missing field"));
    assert!(
        error(b"{\"format\":7,\"new\":1}", "")
            .starts_with("cassette.json has format 7, and this raymond reads up to 1")
    );
    assert!(error(&header(1), "\n{}\n").starts_with("turns.jsonl:2 is damaged: missing field"));
    assert!(
        error(&header(2), "").starts_with("turns.jsonl has 0 turns, and cassette.json expects 2")
    );
}

#[test]
fn part_of_a_cassette_answers_only_the_turns_in_their_own_places() {
    let record = |record: u64| json!({ "record": record });
    let turns = [
        turn("main", (1, 0), 0, "one", &record(2)),
        turn("main.1", (1, 0), 0, "item", &record(3)),
        turn("main", (2, 0), 1, "one", &record(5)),
    ];
    let lines: Vec<String> = turns.iter().map(Value::to_string).collect();
    let workflow = json!({ "name": "w", "entry": "A.md" });
    let header =
        json!({ "format": 1, "raymond": "0", "workflow": workflow, "turns": 3, "records": 6 });
    let read = || {
        Cassette::parse(header.to_string().as_bytes(), lines.join("\n").as_bytes()).expect("one")
    };
    let part = read().until(4).expect("it has the record");
    assert_eq!(found(&part, "main", (1, 0), 0, "one"), by("main-1-0", MatchKind::Exact));
    assert_eq!(found(&part, "main", (1, 0), 0, "edited"), by("main-1-0", MatchKind::Agent));
    assert_eq!(found(&part, "main", (1, 1), 0, "one"), by("main-1-0", MatchKind::Exact), "again");
    for (agent, place, visit) in [("main", (2, 0), 1), ("main.2", (1, 0), 0), ("main.1", (2, 0), 1)]
    {
        assert_eq!(found(&part, agent, place, visit, "one"), None, "{agent} {place:?}");
    }
    assert_eq!(read().until(6).expect("the last").turns().len(), 3);
    let too_short = read().until(7).expect_err("too short");
    assert!(too_short.starts_with("it was recorded up to record 6, and has no record 7"));
    assert_eq!(cassette(&turns).until(2), Err(NO_RECORDS.to_owned()));
}

#[test]
fn retried_turns_are_passed_over_with_their_visits() {
    let retried = |other: Value| {
        let mut fields = json!({ "retried": true, "cost_usd": 0.25 });
        let other = other.as_object().cloned().unwrap_or_default();
        fields.as_object_mut().expect("an object").extend(other);
        fields
    };
    let crashed = json!({ "outcome": "failed", "cause": "crash", "message": "m" });
    let cassette = cassette(&[
        turn("main", (1, 0), 0, "p", &retried(crashed)),
        turn("main", (1, 1), 0, "p", &retried(Value::Null)),
        turn("main", (1, 2), 1, "reminded", &retried(Value::Null)),
        turn("main", (1, 3), 2, "p", &Value::Null),
        turn("main", (2, 0), 3, "again", &Value::Null),
    ]);
    let found = |at, visit, prompt| found(&cassette, "main", at, visit, prompt);
    assert_eq!(found((1, 0), 0, "p"), by("main-1-3", MatchKind::Exact));
    assert_eq!(found((1, 0), 0, "other"), by("main-1-3", MatchKind::Agent));
    assert_eq!(found((2, 0), 1, "other"), by("main-2-0", MatchKind::Agent));
    let id = TurnId { agent: AgentId::main(), step: 2, turn: 0 };
    assert_eq!(cassette.recorded_at(&id, "A.md", 1), Some(1));
    let costs: Vec<f64> = cassette.turns.iter().map(|turn| turn.further_cost.dollars()).collect();
    assert_eq!(costs, [0.75, 0.0]);
}
