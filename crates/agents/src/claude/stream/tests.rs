//! Streams as they come, whole and broken.

mod unknown;

use super::*;
use crate::turn_progress::MAX_LINE_BYTES;
use proptest::prelude::*;
use raymond_model::money::Usd;

const RESULT: &str = r#"{"type":"result","subtype":"success","is_error":false,"result":"done <goto>A.md</goto>","total_cost_usd":0.05,"duration_ms":1200,"new_field":{}}"#;

fn read(text: &str) -> StreamParser {
    let mut stream = StreamParser::default();
    stream.feed(text.as_bytes()).expect("short lines");
    stream.end();
    stream
}

#[test]
fn result_event_gives_text_duration_and_cost() {
    let stream = read(&format!(
        "{{\"type\":\"system\",\"subtype\":\"init\"}}\n\n{RESULT}\n{{\"type\":\"task_updated\"}}\n"
    ));
    let result = stream.progress.result.clone().expect("a result");
    assert_eq!(result.text.as_deref(), Some("done <goto>A.md</goto>"));
    assert_eq!((result.is_error, result.duration_ms), (false, 1200));
    assert_eq!(stream.progress.taken().cost, Usd::from_dollars(0.05));
    assert_eq!((stream.progress.events, stream.garbage), (3, None));
}

#[test]
fn message_id_ignores_sub_agent_and_synthetic_messages() {
    let stream = read(concat!(
        r#"{"type":"assistant","uuid":"one","message":{"model":"m","content":[{"type":"tool_use","name":"Bash","input":{}}]}}"#,
        "\n",
        r#"{"type":"assistant","uuid":"sub","parent_tool_use_id":"t","message":{"model":"m","content":[{"type":"text","text":"x"}]}}"#,
        "\n",
        r#"{"type":"assistant","uuid":"two","message":{"model":"<synthetic>","content":[{"type":"text","text":"x"}]}}"#,
        "\n",
    ));
    assert_eq!(stream.progress.message, Some(MessageId::new("one")));
    assert!(stream.progress.used_tools);
}

#[test]
fn first_line_that_is_not_json_is_recorded_as_garbage() {
    let stream = read("Segmentation fault\nmore\n{\"type\":\"x\"}\n");
    assert_eq!(stream.garbage.as_deref(), Some("Segmentation fault"));
    assert_eq!(stream.progress.events, 1);
}

#[test]
fn invalid_utf8_bytes_are_replaced() {
    let mut stream = StreamParser::default();
    stream.feed(b"{\"type\":\"result\",\"result\":\"a\xffb\"}\n").expect("a short line");
    assert_eq!(
        stream.progress.result.and_then(|result| result.text).as_deref(),
        Some("a\u{fffd}b")
    );
}

#[test]
fn lone_surrogate_or_mistyped_field_does_not_lose_result() {
    let cut =
        read(r#"{"type":"result","is_error":false,"result":"cut \ud83d <result>ok</result>"}"#);
    let text = cut.progress.result.and_then(|result| result.text).expect("a text");
    assert!(text.starts_with("cut \u{fffd}") && text.ends_with("<result>ok</result>"), "{text}");

    let odd = r#"{"type":"result","subtype":7,"is_error":false,"result":"ok","total_cost_usd":"free","errors":[{"m":1},"two"],"api_error_status":{}}"#;
    let stream = read(odd);
    let result = stream.progress.result.clone().expect("a result");
    assert_eq!(
        (result.text.as_deref(), stream.progress.taken().cost, result.api_status),
        (Some("ok"), Usd::ZERO, None)
    );
    assert_eq!(result.errors, ["{\"m\":1}", "two"]);
}

#[test]
fn long_line_is_parsed_and_overlong_line_is_skipped_unless_it_is_the_result() {
    let mut stream = StreamParser::default();
    let padding = "x".repeat(MAX_LINE_BYTES - 100);
    stream
        .feed(format!("{{\"type\":\"user\",\"padding\":\"{padding}\"}}\n{RESULT}").as_bytes())
        .expect("allowed");
    stream.end();
    assert!(stream.progress.result.is_some());
    let long = "x".repeat(MAX_LINE_BYTES);
    let call = r#"{"type":"assistant","message":{"model":"m","content":[{"type":"tool_use","id":"t","name":"Read"}]}}"#;
    let answered = format!(
        r#"{{"type":"user","uuid":"u","message":{{"content":[{{"type":"tool_result","tool_use_id":"t","content":"{long}"}}]}}}}"#
    );
    let mut stream = read(&format!("{call}\n{answered}\n{long}\n"));
    assert!(stream.progress.open_tools.is_empty() && stream.progress.result.is_none());
    stream.feed(format!("{RESULT}\n").as_bytes()).expect("allowed");
    assert_eq!(
        stream.progress.result.and_then(|result| result.text).as_deref(),
        Some("done <goto>A.md</goto>")
    );
    let denied = format!(
        r#"{{"type":"result","is_error":false,"result":"short","permission_denials":[{{"tool_input":"{long}"}}]}}"#
    );
    let result = read(&format!("{denied}\n")).progress.result.expect("its text is not too long");
    assert_eq!(result.text.as_deref(), Some("short"));
    let wrote = r#"{"type":"assistant","message":{"model":"m","content":[{"type":"text","text":"what I say"}]}}"#;
    let lost = format!(r#"{{"type":"result","is_error":false,"result":"{long}"}}"#);
    let result =
        read(&format!("{wrote}\n{lost}\n")).progress.result.expect("the message has its text");
    assert_eq!(result.text.as_deref(), Some("what I say"));
    let mut stream = StreamParser::default();
    let error = stream.feed(format!("first\n{lost}\n").as_bytes()).expect_err("it is lost");
    assert_eq!(error.to_string(), "line 2 of its output is the result, and longer than 16 MiB");
}

#[test]
fn overlong_line_is_reported_once_and_cost_still_counts() {
    let answer = "x".repeat(MAX_LINE_BYTES);
    let init = "{\"type\":\"system\",\"subtype\":\"init\"}\n{\"type\":\"assistant\",\"uuid\":\"m\",\"message\":{\"model\":\"opus\"}}\n";
    let costs = "\"total_cost_usd\":0.25,\"modelUsage\":{\"opus\":{\"costUSD\":0.25}}";
    let long_result = format!("{{\"type\":\"result\",\"result\":\"{answer}\",{costs}}}\n");
    let long_other = format!("{{\"type\":\"user\",\"padding\":\"{answer}\"}}\n");
    let short_result = format!("{{\"type\":\"result\",{costs}}}\n");
    let of_both = [long_other.as_str(), short_result.as_str()].concat();
    for (name, lines) in [("the result is too long", &long_result), ("another line is", &of_both)] {
        for chunk in [1 << 16, usize::MAX] {
            let mut stream = StreamParser::default();
            let text = init.to_owned() + lines;
            let chunks = text.as_bytes().chunks(chunk.min(text.len()));
            let errors = chunks.filter_map(|bytes| stream.feed(bytes).err()).count();
            assert_eq!(errors, usize::from(name.starts_with("the")), "{name}, {chunk}");
            assert_eq!(stream.progress.taken().cost, Usd::from_dollars(0.25), "{name}, {chunk}");
            assert_eq!(stream.progress.taken().usage.total().cost_usd, Usd::from_dollars(0.25));
            stream.progress.cut_off();
            stream.end();
            assert!(
                name != "the result is too long" || !stream.progress.has_unknown_cost(),
                "{name}"
            );
            assert!(stream.progress.result.is_none() || !name.starts_with("the"), "{name}");
        }
    }
}

#[test]
fn missing_login_is_detected() {
    assert!(read(r#"{"type":"assistant","error":"authentication_failed","message":{"model":"<synthetic>","content":[]}}"#).reported_error.is_some_and(|kind| kind == "authentication_failed"));
}

#[test]
fn consecutive_credential_refusals_are_counted() {
    let refused = r#"{"type":"system","subtype":"api_retry","attempt":1,"error_status":401,"error":"authentication_failed"}"#;
    let busy = r#"{"type":"system","subtype":"api_retry","attempt":1,"error_status":529,"error":"overloaded"}"#;
    let other = r#"{"type":"system","subtype":"command_lifecycle"}"#;
    let answer = r#"{"type":"assistant","message":{"model":"m","content":[]}}"#;
    let count = |lines: &[&str]| read(&(lines.join("\n") + "\n")).progress.authentication_refusals;
    assert_eq!(count(&[refused, other, refused, refused]), 3);
    assert_eq!(count(&[refused, refused, answer, refused]), 1);
    assert_eq!(count(&[refused, busy]), 0);
}

#[test]
fn partial_message_is_progress_and_ends_api_wait() {
    let retry = r#"{"type":"system","subtype":"api_retry","attempt":2,"retry_delay_ms":900,"error_status":401}"#;
    let parts = [
        r#"{"type":"stream_event","event":{"type":"message_start","message":{"model":"m"}},"uuid":"p"}"#,
        r#"{"uuid":"p","type":"stream_event","event":{"type":"message_start"}}"#,
    ];
    for part in parts {
        let stream = read(&format!("{retry}\n{part}\n"));
        assert_eq!((stream.progress.events, stream.progress.retry_delay_ms), (2, 0));
        assert_eq!(stream.progress.authentication_refusals, 0);
        assert_eq!(stream.progress.activity.as_deref(), Some("writing"));
        assert_eq!((stream.progress.message, stream.garbage), (None, None));
    }
}

proptest! {
    #[test]
    fn chunk_boundaries_do_not_change_result(cuts in prop::collection::vec(0usize..400, 0..8)) {
        let text = format!("{{\"type\":\"system\"}}\n{RESULT}\ngarbage\n");
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(text.len())).collect();
        cuts.extend([0, text.len()]);
        cuts.sort_unstable();
        let mut stream = StreamParser::default();
        for pair in cuts.windows(2) {
            stream.feed(&text.as_bytes()[pair[0]..pair[1]]).expect("short lines");
        }
        let whole = read(&text);
        prop_assert_eq!(stream.progress.result, whole.progress.result);
        prop_assert_eq!((stream.progress.events, stream.garbage), (whole.progress.events, whole.garbage));
    }

    #[test]
    fn arbitrary_bytes_do_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..500)) {
        let mut stream = StreamParser::default();
        stream.feed(&bytes).expect("short lines");
        stream.end();
    }
}
