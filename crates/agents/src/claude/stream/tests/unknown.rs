//! Streams of other versions: recorded ones of four, and what no version has printed yet.

use std::path::{Path, PathBuf};

use super::*;

/// The streams in `tests/fixtures/streams`: version, name, text.
fn recorded() -> Vec<[String; 3]> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/streams");
    let mut streams = Vec::new();
    for version in entries(&folder).into_iter().filter(|path| path.is_dir()) {
        for path in entries(&version) {
            let text = std::fs::read_to_string(&path).expect("a stream");
            let names = [version.file_name(), path.file_stem()];
            let [version, name] =
                names.map(|name| name.unwrap_or_default().to_string_lossy().into_owned());
            streams.push([version, name, text]);
        }
    }
    streams
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("a folder of the fixtures");
    entries.map(|entry| entry.expect("an entry").path()).collect()
}

#[test]
fn every_recorded_stream_is_parsed_line_by_line() {
    let streams = recorded();
    assert!(streams.len() >= 72, "{}", streams.len());
    for [version, name, text] in &streams {
        let stream = read(text);
        let case = format!("{version}/{name}");
        assert_eq!((stream.garbage, stream.version.as_ref()), (None, Some(version)), "{case}");
        assert_eq!(stream.progress.events, text.lines().count() as u64, "{case}");
        let has_answer = name != "wrong_key";
        assert_eq!(stream.progress.result.is_some(), has_answer, "{case}");
    }
}

#[test]
fn unknown_events_do_not_change_parsed_stream() {
    let unknown = [
        r#"{"type":"brand_new","subtype":{"deep":[1,2]},"uuid":7,"message":"text"}"#,
        r#"{"type":"system","subtype":"something_new","task_id":{},"claude_code_version":8}"#,
        r#"{"type":"system","subtype":["init"],"claude_code_version":"9.9.9"}"#,
        r#"{"subtype":"x","claude_code_version":null,"type":"control_request","request":{}}"#,
        r#"{"type":"stream_event","event":{"type":"content_block_delta","delta":null}}"#,
    ];
    for [version, name, text] in recorded() {
        let mut mixed = String::new();
        for line in text.lines() {
            mixed.push_str(line);
            mixed.push('\n');
            for line in unknown {
                mixed.push_str(line);
                mixed.push('\n');
            }
        }
        let (plain, mixed) = (read(&text), read(&mixed));
        let case = format!("{version}/{name}");
        assert_eq!(mixed.progress.result, plain.progress.result, "{case}");
        assert_eq!((mixed.garbage, mixed.version), (None, plain.version), "{case}");
        assert_eq!(
            (mixed.progress.message, mixed.progress.open_tools),
            (plain.progress.message, plain.progress.open_tools),
            "{case}"
        );
    }
}

#[test]
fn mistyped_version_is_treated_as_missing() {
    for version in ["7", "null", "[]", "{\"major\":2}", "true"] {
        let line = format!(
            "{{\"type\":\"system\",\"subtype\":\"init\",\"claude_code_version\":{version}}}\n{RESULT}\n"
        );
        let stream = read(&line);
        assert_eq!((stream.version, stream.progress.events), (None, 2), "{version}");
        assert!(stream.progress.result.is_some(), "{version}");
    }
}

#[test]
fn mistyped_fields_do_not_affect_other_events() {
    let odd = [
        r#"{"type":"assistant","uuid":[],"parent_tool_use_id":1,"message":{"model":7,"content":[]}}"#,
        r#"{"type":"assistant","message":{"content":"a text where blocks were"}}"#,
        r#"{"type":"user","uuid":{},"message":[1]}"#,
        r#"{"type":"system","subtype":"api_retry","attempt":"third","retry_delay_ms":{},"error_status":"429x","error":[]}"#,
        r#"{"type":"system","subtype":"task_started","task_id":5}"#,
        r#"{"type":"rate_limit_event","rate_limit_info":"soon"}"#,
    ];
    let stream = read(&format!("{}\n{RESULT}\n", odd.join("\n")));
    assert_eq!((stream.garbage, stream.limit), (None, None));
    assert_eq!((stream.progress.throttled, stream.progress.retry_delay_ms), (0, 0));
    assert_eq!(
        stream.progress.result.expect("a result").text.as_deref(),
        Some("done <goto>A.md</goto>")
    );
}
