//! The end of a turn and its cost, in streams recorded with four versions of Claude Code.

use std::path::Path;

use super::*;
use crate::background::TurnRemainder;
use crate::claude::stream::StreamParser;
use raymond_model::id::MessageId;
use raymond_model::turn_options::BackgroundWork;
use raymond_model::usage::ProcessSpending;

const VERSIONS: [&str; 4] = ["2.1.197", "2.1.242", "2.1.287", "2.1.330"];

fn recorded(version: &str, name: &str) -> Vec<String> {
    let path = format!("tests/fixtures/streams/{version}/{name}.jsonl");
    let text =
        std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path));
    text.expect("a recorded stream").lines().map(str::to_owned).collect()
}

/// A turn as it is followed: its answer and its cost in millionths of a dollar.
#[derive(Debug, PartialEq)]
struct Followed {
    answer: String,
    micros: i64,
}

/// Follows the turns of a stream like the runtime: each to its end, and the next one from there.
fn follow(lines: &[String], background: BackgroundWork) -> Vec<Followed> {
    let messages: Vec<MessageId> = lines
        .iter()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
        .filter(|line| line["isReplay"] == true && line["message"]["content"].is_array())
        .filter_map(|line| line["uuid"].as_str().map(MessageId::new))
        .collect();
    let mut turns = Vec::new();
    let mut total = ProcessSpending::default();
    let mut tasks = BackgroundTasks::default();
    let mut rest = lines.iter();
    for message in messages {
        let mut stream = StreamParser::answer_to(message, total).with_background(background, tasks);
        for line in rest.by_ref() {
            stream.feed(format!("{line}\n").as_bytes()).expect("a short line");
            if stream.progress.remainder() == Some(TurnRemainder::Nothing) {
                break;
            }
        }
        let result = stream.progress.result.clone().unwrap_or_default();
        #[expect(clippy::cast_possible_truncation, reason = "the costs of tests are small")]
        let micros = (stream.progress.taken().cost.dollars() * 1e6).round() as i64;
        turns.push(Followed { answer: result.text.unwrap_or_default(), micros });
        total = stream.progress.total().clone();
        tasks = stream.progress.background.left_running();
    }
    turns
}

/// The cost of so many requests of 1000 tokens in and 100 out, and of a sub-agent's of twice that.
fn cost(version: &str, requests: i64) -> i64 {
    requests * if version == "2.1.330" { 150 } else { 1500 }
}

#[test]
fn turn_ends_with_answer_after_background_work_ended() {
    for version in VERSIONS {
        for name in ["background_agent", "background_bash"] {
            let turns = follow(&recorded(version, name), BackgroundWork::Wait);
            let [turn] = turns.as_slice() else { panic!("{version} {name}: {turns:#?}") };
            assert!(turn.answer.contains("ended"), "{version} {name}: {turn:?}");
            let requests = if name == "background_agent" { 5 } else { 3 };
            assert_eq!(turn.micros, cost(version, requests), "{version} {name}");
        }
    }
}

#[test]
fn keep_policy_waits_for_sub_agent_but_not_for_command() {
    for version in VERSIONS {
        let answer = |name: &str, work| follow(&recorded(version, name), work)[0].answer.clone();
        let bash = answer("background_bash", BackgroundWork::Keep);
        assert!(!bash.contains("ended"), "{version}: {bash}");
        assert!(answer("background_agent", BackgroundWork::Keep).contains("ended"), "{version}");
        assert!(!answer("background_agent", BackgroundWork::End).contains("ended"), "{version}");
    }
}

#[test]
fn turn_cost_covers_only_its_own_requests_in_every_version() {
    for version in VERSIONS {
        let costs = |name: &str| -> Vec<i64> {
            let turns = follow(&recorded(version, name), BackgroundWork::Wait);
            turns.iter().map(|turn| turn.micros).collect()
        };
        let single = cost(version, 1);
        assert_eq!(costs("warm_two_turns"), [single, single], "{version}");
        assert_eq!(costs("branched"), [single], "{version}");
        assert_eq!(costs("resumed"), [single, single], "{version}");
        assert_eq!(costs("resumed_again"), [single], "{version}");
        assert_eq!(costs("foreground_agent"), [cost(version, 4)], "{version}");
        assert_eq!(costs("resumed_after_stopped_turn"), [single], "{version}");
        assert_eq!(costs("resumed_after_killed_turn"), [single], "{version}");
    }
}

#[test]
fn report_of_earlier_killed_task_is_not_the_answer() {
    for version in VERSIONS {
        let turns = follow(&recorded(version, "resumed_after_stop"), BackgroundWork::Wait);
        let [turn] = turns.as_slice() else { panic!("{version}: {turns:#?}") };
        assert!(!turn.answer.is_empty(), "{version}: {turn:?}");
        assert_eq!(turn.micros, cost(version, 1), "{version}");
    }
}

#[test]
fn interrupted_turn_and_next_turn_have_separate_results() {
    for version in VERSIONS {
        let turns = follow(&recorded(version, "interrupted"), BackgroundWork::Wait);
        assert_eq!(turns.len(), 2, "{version}: {turns:#?}");
        assert_eq!(turns[1].micros, cost(version, 1), "{version}: {turns:#?}");
    }
}

#[test]
fn stream_without_task_events_ends_with_its_result() {
    let lines = [
        r#"{"type":"user","isReplay":true,"uuid":"m","message":{"content":[]}}"#.to_owned(),
        r#"{"type":"result","result":"hi"}"#.to_owned(),
    ];
    assert_eq!(follow(&lines, BackgroundWork::Wait)[0].answer, "hi");
}

#[test]
fn further_turn_is_announced_by_task_end_and_queued_turn_count() {
    let mut stream = StreamParser::default();
    let mut after = |line: &str| {
        stream.feed(format!("{line}\n").as_bytes()).expect("a short line");
        stream.progress.remainder()
    };
    let started =
        r#"{"type":"system","subtype":"background_tasks_changed","tasks":[{"task_id":"t"}]}"#;
    let ended = r#"{"type":"system","subtype":"background_tasks_changed","tasks":[]}"#;
    let idle = r#"{"type":"system","subtype":"session_state_changed","state":"idle"}"#;
    let runs = r#"{"type":"system","subtype":"session_state_changed","state":"running"}"#;
    let init = r#"{"type":"system","subtype":"init"}"#;
    let result = r#"{"type":"result","result":"hi"}"#;
    let queued = r#"{"type":"result","result":"hi","queued_turn_count":1}"#;
    assert_eq!(after(runs), None);
    assert_eq!(after(started), None);
    assert_eq!(after(result), Some(TurnRemainder::Tasks));
    assert_eq!(after(idle), Some(TurnRemainder::Tasks));
    assert_eq!(after(ended), Some(TurnRemainder::Announced));
    assert_eq!(after(init), Some(TurnRemainder::Turn));
    assert_eq!(after(queued), Some(TurnRemainder::Announced));
    assert_eq!(after(result), Some(TurnRemainder::Nothing));
    assert_eq!(after(runs), Some(TurnRemainder::Nothing), "what is over stays over");
}

#[test]
fn ambient_task_is_not_awaited() {
    let mut stream = StreamParser::default();
    let ambient = r#"{"type":"system","subtype":"background_tasks_changed","tasks":[{"task_id":"t","ambient":true}]}"#;
    let result = r#"{"type":"result","result":"hi"}"#;
    stream.feed(format!("{ambient}\n{result}\n").as_bytes()).expect("short lines");
    assert_eq!(stream.progress.remainder(), Some(TurnRemainder::Nothing));
}

#[test]
fn task_left_by_earlier_turn_is_not_awaited() {
    let started =
        r#"{"type":"system","subtype":"background_tasks_changed","tasks":[{"task_id":"t"}]}"#;
    let result = r#"{"type":"result","result":"hi"}"#;
    let mut first =
        StreamParser::default().with_background(BackgroundWork::Keep, BackgroundTasks::default());
    first.feed(format!("{started}\n{result}\n").as_bytes()).expect("short lines");
    assert_eq!(first.progress.remainder(), Some(TurnRemainder::Nothing));
    let kept = first.progress.background.left_running();
    let mut second = StreamParser::default().with_background(BackgroundWork::Wait, kept);
    let both = r#"{"type":"system","subtype":"background_tasks_changed","tasks":[{"task_id":"t"},{"task_id":"u"}]}"#;
    second.feed(format!("{both}\n{result}\n").as_bytes()).expect("short lines");
    assert_eq!(second.progress.remainder(), Some(TurnRemainder::Tasks), "its own is");
    second.feed(format!("{started}\n{result}\n").as_bytes()).expect("short lines");
    assert_eq!(second.progress.remainder(), Some(TurnRemainder::Nothing));
}
