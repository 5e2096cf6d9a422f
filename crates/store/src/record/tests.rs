//! Lines of the journal: read back, checked, proven, refused.

use super::*;
use raymond_model::event::{Event, RunCommand};
use raymond_model::run::PauseReason;

fn record() -> Record {
    let event = Event::CommandReceived { id: "ü,\"crc\":\"".into(), command: RunCommand::Stop };
    Record {
        kept_session: None,
        seq: 7,
        at: Timestamp(1_768_487_422_123),
        folder: None,
        snapshot: None,
        placed: Vec::new(),
        event,
    }
}

#[test]
fn encoded_record_reads_back() {
    let line = encode(&record()).expect("a line");
    assert!(
        line.starts_with(
            "{\"format\":2,\"seq\":7,\"at\":\"2026-01-15T14:30:22.123Z\",\"event\":\"command_received\""
        ),
        "{line}"
    );
    assert_eq!(check(line.as_bytes(), 7).and_then(decode), Ok(record()));
    assert!(serde_json::from_str::<serde_json::Value>(&line).is_ok());
}

#[test]
fn any_changed_or_cut_byte_is_detected() {
    let line = encode(&record()).expect("a line");
    for at in 0..line.len() {
        let mut bytes = line.clone().into_bytes();
        bytes[at] ^= 1;
        assert!(check(&bytes, 7).and_then(decode).is_err(), "byte {at}");
        assert!(check(&line.as_bytes()[..at], 7).is_err(), "cut at {at}");
    }
}

#[test]
fn line_is_proven_only_with_the_key() {
    let (key, other) = (ProofKey::new("k"), ProofKey::new("l"));
    let line = encode_before(&record(), false, Some(&key)).expect("a line");
    assert_eq!(check(line.as_bytes(), 7).and_then(decode), Ok(record()));
    assert!(is_proven(&line, &key) && !is_proven(&line, &other));
    assert!(!is_proven(&encode(&record()).expect("a line"), &key));
    let body = line[..line.len() - CRC_LENGTH].replace("stop", "halt");
    let forged = format!("{body},\"crc\":\"{:08x}\"}}", crc32fast::hash(body.as_bytes()));
    assert!(check(forged.as_bytes(), 7).is_ok() && !is_proven(&forged, &key));
    for short in ["", "{}", "é"] {
        assert!(!is_proven(short, &key), "{short}");
    }
}

#[test]
fn wrong_sequence_number_is_an_error() {
    let line = encode(&record()).expect("a line");
    assert_eq!(check(line.as_bytes(), 8), Err(RecordError::Order { found: 7 }));
}

#[test]
fn unknown_event_is_named_in_the_error() {
    let known =
        encode(&Record { event: Event::RunPaused { pause: PauseReason::Stopped }, ..record() })
            .expect("a line");
    let body = known[..known.len() - CRC_LENGTH].replace("run_paused", "run_danced");
    let line = format!("{body},\"crc\":\"{:08x}\"}}", crc32fast::hash(body.as_bytes()));
    let flaw = check(line.as_bytes(), 7).and_then(decode).expect_err("unknown");
    assert!(flaw.to_string().contains("run_danced"), "{flaw}");
}

fn with_checksum(body: &str) -> String {
    format!("{body},\"crc\":\"{:08x}\"}}", crc32fast::hash(body.as_bytes()))
}

#[test]
fn line_without_a_format_is_of_format_1() {
    let body = "{\"seq\":7,\"at\":\"2026-01-15T14:30:22.123Z\",\"event\":\"command_received\",\"id\":\"ü,\\\"crc\\\":\\\"\",\"command\":{\"command\":\"stop\"}";
    let line = with_checksum(body);
    assert_eq!(check(line.as_bytes(), 7).and_then(decode), Ok(record()));
    assert_eq!(check(line.as_bytes(), 8), Err(RecordError::Order { found: 7 }));
}

#[test]
fn line_of_newer_format_is_refused_even_if_cut() {
    let newer = encode(&record()).expect("a line").replace("\"format\":2", "\"format\":3");
    for line in [newer.as_str(), "{\"format\":3,\"number\":7}", "{\"format\":3,"] {
        assert_eq!(check(line.as_bytes(), 7), Err(RecordError::Newer { format: 3 }), "{line}");
    }
    assert_eq!(decode(&newer), Err(RecordError::Newer { format: 3 }));
}

#[test]
fn more_flag_is_found_in_longest_record_head() {
    let last = Record { seq: u64::MAX, ..record() };
    assert!(has_more(&encode_before(&last, true, None).expect("a line")));
    assert!(!has_more(&encode(&last).expect("a line")));
}
