//! Refused tools, read from lines as they come and from recorded streams.

use crate::claude::stream::StreamParser;
use raymond_model::refusal::{NAMED_PER_TURN, ToolRefusal};

fn call(id: &str, command: &str) -> String {
    format!(
        r#"{{"type":"assistant","message":{{"content":[{{"type":"tool_use","id":"{id}","name":"Bash","input":{{"command":"{command}"}}}}]}}}}"#
    )
}

fn answer(id: &str, reason: &str) -> String {
    format!(
        r#"{{"type":"user","message":{{"content":[{{"type":"tool_result","is_error":true,"tool_use_id":"{id}","content":"{reason}"}}]}}}}"#
    )
}

fn live(id: &str, reason: &str) -> String {
    format!(
        r#"{{"type":"system","subtype":"permission_denied","tool_name":"Bash","tool_use_id":"{id}","decision_reason_type":"other","message":"{reason}"}}"#
    )
}

fn result(origin: &str, denials: &[(&str, &str)]) -> String {
    let denials: Vec<String> = denials
        .iter()
        .map(|(id, command)| format!(r#"{{"tool_name":"Bash","tool_use_id":"{id}","tool_input":{{"command":"{command}"}}}}"#))
        .collect();
    format!(
        r#"{{"type":"result","is_error":false,"result":"ok"{origin},"permission_denials":[{}]}}"#,
        denials.join(",")
    )
}

fn read(lines: &[String]) -> StreamParser {
    let mut stream = StreamParser::default();
    stream.feed((lines.join("\n") + "\n").as_bytes()).expect("short lines");
    stream
}

fn named(stream: &StreamParser) -> Vec<(String, String, u32)> {
    let refusals = stream.progress.refused.refusals().calls;
    refusals.into_iter().map(|call| (call.input, call.why, call.times)).collect()
}

const WHY: &str = "This command requires approval";

#[test]
fn refusals_of_older_version_are_read_from_result_and_answer() {
    let lines = [call("t1", "curl a"), answer("t1", WHY), result("", &[("t1", "curl a")])];
    let stream = read(&lines);
    assert_eq!(named(&stream), [("curl a".to_owned(), WHY.to_owned(), 1)]);
    let (seen, latest) = stream.progress.refused.latest().expect("seen as it happened");
    assert_eq!((seen, &*latest.input), (1, "curl a"));
}

#[test]
fn refusal_reported_live_and_in_result_counts_once() {
    let lines =
        [call("t1", "curl a"), live("t1", WHY), answer("t1", WHY), result("", &[("t1", "curl a")])];
    let stream = read(&lines);
    assert_eq!(named(&stream), [("curl a".to_owned(), WHY.to_owned(), 1)]);
    assert_eq!(stream.progress.refused.latest().map(|(seen, _)| seen), Some(1));
}

#[test]
fn refusals_of_several_results_count_each_call_once() {
    let background = r#","origin":{"kind":"task-notification"}"#;
    let lines = [
        result("", &[("t1", "curl a")]),
        result(background, &[("t1", "curl a"), ("t2", "curl a"), ("t3", "dig b")]),
    ];
    let refusals = read(&lines).progress.refused.refusals();
    assert_eq!(refusals.count(), 3);
    assert_eq!(refusals.allow(), ["Bash(curl:*)", "Bash(dig:*)"]);
}

#[test]
fn turn_without_result_reports_refusals_seen_so_far() {
    let cut = [call("t1", "curl a"), answer("t1", WHY), call("t2", "dig b"), live("t2", WHY)];
    assert_eq!(read(&cut).progress.refused.refusals().count(), 2);
    let other = answer("t1", "Exit code 7");
    assert!(read(&[call("t1", "curl a"), other]).progress.refused.refusals().is_empty());
    let mistaken = [call("t1", "curl a"), answer("t1", WHY), result("", &[])];
    assert!(read(&mistaken).progress.refused.refusals().is_empty(), "a result knows better");
}

#[test]
fn number_of_stored_refusals_is_bounded() {
    let mut lines = Vec::new();
    for number in 0..1000 {
        lines.push(live(&format!("t{number}"), &"x".repeat(10_000)));
    }
    let stream = read(&lines);
    let refusals = stream.progress.refused.refusals();
    assert_eq!((refusals.calls.len(), refusals.count()), (1, 1000), "all alike");
    let denials: Vec<(String, String)> =
        (0..1000).map(|number| (format!("t{number}"), format!("curl {number}"))).collect();
    let denials: Vec<(&str, &str)> = denials.iter().map(|(a, b)| (&**a, &**b)).collect();
    let refusals = read(&[result("", &denials)]).progress.refused.refusals();
    assert_eq!((refusals.calls.len(), refusals.count()), (NAMED_PER_TURN, 1000));
}

#[test]
fn mistyped_refusal_fields_do_not_lose_result() {
    let lines = [
        r#"{"type":"system","subtype":"permission_denied","tool_use_id":7}"#.to_owned(),
        r#"{"type":"system","subtype":"permission_denied","tool_use_id":"t1","message":{}}"#
            .to_owned(),
        r#"{"type":"result","result":"ok","permission_denials":"none"}"#.to_owned(),
    ];
    let stream = read(&lines);
    assert_eq!(stream.progress.refused.refusals().count(), 1);
    assert!(stream.progress.result.is_some());
}

macro_rules! recorded {
    ($version:literal, $name:literal) => {
        (
            $version,
            include_str!(concat!(
                "../../../../../../tests/fixtures/streams/",
                $version,
                "/",
                $name,
                ".jsonl"
            )),
        )
    };
}

#[test]
fn every_version_reports_same_refusal() {
    let asked = [
        recorded!("2.1.197", "refused_tool"),
        recorded!("2.1.242", "refused_tool"),
        recorded!("2.1.287", "refused_tool"),
        recorded!("2.1.330", "refused_tool"),
    ];
    let denied = [
        recorded!("2.1.197", "refused_tool_dont_ask"),
        recorded!("2.1.242", "refused_tool_dont_ask"),
        recorded!("2.1.287", "refused_tool_dont_ask"),
        recorded!("2.1.330", "refused_tool_dont_ask"),
    ];
    let dont_ask =
        "Permission to use Bash has been denied because Claude Code is running in don't ask mode.";
    let all = asked.map(|seen| (seen, WHY)).into_iter().chain(denied.map(|seen| (seen, dont_ask)));
    for ((version, recorded), why) in all {
        let mut stream = StreamParser::default();
        stream.feed(recorded.as_bytes()).expect("short lines");
        let expected = ToolRefusal {
            tool: "Bash".to_owned(),
            input: "curl http://127.0.0.1:1/".to_owned(),
            why: why.to_owned(),
            allow: vec!["Bash(curl:*)".to_owned()],
            times: 1,
        };
        assert_eq!(
            stream.progress.refused.refusals().calls,
            std::slice::from_ref(&expected),
            "{version}"
        );
        assert_eq!(stream.progress.refused.latest(), Some((1, &expected)), "{version}");
    }
}
