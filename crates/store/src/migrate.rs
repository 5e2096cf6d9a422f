//! Converts records of older formats to the newest format when they are read.
//!
//! The types of [`event`](raymond_model::event) are those of the newest format alone. Names of an older format are
//! replaced in the JSON of its records, one format after the other, so each step is written once and never changes
//! again. The disk is not rewritten: the lines there keep their bytes and proofs.
//!
//! To add a format n + 1:
//!
//! 1. Change the types of [`event`](raymond_model::event), and raise [`FORMAT`](super::record::FORMAT).
//! 2. Add `migrate/format_n.rs` with a function that makes a record of format n to one of n + 1, and call it in
//!    [`to_newest`].
//! 3. Keep runs of format n in `tests/fixtures/format-n`, written by the last build that wrote it, and have
//!    `tests/it/released.rs` resume them.
//! 4. Describe the format in `docs/formats.md`.

use serde_json::{Map, Value};

/// A record as it stands in a line of the journal.
pub(super) type JsonRecord = Map<String, Value>;

/// Returns a record of an older format in the newest format.
///
/// # Errors
/// The part of the record that the format does not have.
pub(super) fn to_newest(format: u32, record: JsonRecord) -> Result<JsonRecord, String> {
    match format {
        1 => to_format_2(record),
        _ => Err(format!("unknown format {format}")),
    }
}

// From format 1 to format 2: events and their fields have plain names.
//
// Format 1 named the events of programs as the language does (`workflow/state`), and the version of the journal
// stood in its first record.

/// A field's name in format 1, and in format 2.
type FieldRename = (&'static str, &'static str);

/// Returns the name of an event in format 2, and the fields that have another name there.
fn renames(event: &str) -> Option<(&'static str, &'static [FieldRename])> {
    Some(match event {
        "run_started" => ("run_started", &[]),
        "step_finished" => (
            "step_finished",
            &[
                ("unasked", "without_turn"),
                ("opens", "new_session"),
                ("born", "children"),
                ("reborn", "restarted"),
            ],
        ),
        "transition_proposed" => ("transition_proposed", &[("opens", "new_session")]),
        "graph_walked" => (
            "graph_advanced",
            &[("due", "next_action"), ("paid", "task"), ("opens", "new_session")],
        ),
        "question_answered" => ("question_answered", &[("ahead", "used_answers")]),
        "question_timed_out" => ("question_timed_out", &[("late", "enters")]),
        "workflow-definition" => ("program_defined", &[]),
        "workflow-instance" => ("program_started", &[]),
        "workflow/state" => ("program_advanced", &[("stand", "position"), ("bound", "bindings")]),
        "workflow/log" => ("program_logged", &[]),
        "agent-request" => ("role_requested", &[("opens", "new_session")]),
        "agent-response" => ("role_responded", &[("unasked", "without_turn")]),
        "role_delegated" => ("role_delegated", &[("birth", "spec"), ("opens", "new_session")]),
        "join_begun" => ("join_begun", &[]),
        "joined" => ("joined", &[("verdict", "outcome")]),
        "facts_seen" => ("facts_seen", &[]),
        "turn_held" => ("turn_held", &[]),
        "turn_rejected" => ("turn_rejected", &[]),
        "turn_failed" => ("turn_failed", &[]),
        "agent_failed" => ("agent_failed", &[]),
        "cost_counted" => ("cost_counted", &[]),
        "agent_parked" => ("agent_parked", &[("because", "reason")]),
        "limit_reached" => ("limit_reached", &[]),
        "run_paused" => ("run_paused", &[]),
        "run_resumed" => ("run_resumed", &[]),
        "command_received" => ("command_received", &[]),
        _ => return None,
    })
}

/// Returns a record of format 1 in format 2.
///
/// # Errors
/// A text, if there is no such event in format 1, or if the journal says that it has another version.
fn to_format_2(mut record: JsonRecord) -> Result<JsonRecord, String> {
    let event = record.get("event").and_then(Value::as_str).unwrap_or_default();
    let Some((name, fields)) = renames(event) else {
        return Err(format!("format 1 has no event `{event}`"));
    };
    record.insert("event".to_owned(), name.into());
    for (old, new) in fields {
        if let Some(value) = record.remove(*old) {
            record.insert((*new).to_owned(), value);
        }
    }
    if name == "run_started" {
        match record.remove("version") {
            Some(version) if version == 1 => {}
            Some(version) => return Err(format!("version {version} is none of format 1")),
            None => return Err("it has no version".to_owned()),
        }
    }
    Ok(record)
}

#[cfg(test)]
mod format_1_tests {
    use super::*;
    use crate::record::{decode, encode};

    /// A record of each kind with all its fields, as raymond wrote them in format 1.
    const RECORDS: &str = include_str!("../../../tests/fixtures/format-1/every-event.jsonl");

    /// The kinds of format 1.
    const KINDS: usize = 26;

    /// Returns the values of all fields but those that tell the format, as text, sorted.
    fn values(line: &str) -> Vec<String> {
        let record: JsonRecord = serde_json::from_str(line).expect("JSON");
        let other = ["event", "version", "format", "crc"];
        let other_fields = record.iter().filter(|(name, _)| !other.contains(&name.as_str()));
        let in_order = |value: &Value| {
            let mut value = value.clone();
            value.sort_all_objects();
            value.to_string()
        };
        let mut values: Vec<String> = other_fields.map(|(_, value)| in_order(value)).collect();
        values.sort();
        values
    }

    #[test]
    fn every_format_1_event_keeps_its_values_when_migrated() {
        let mut kinds = std::collections::BTreeSet::new();
        for line in RECORDS.lines() {
            let record = decode(line).expect(line);
            let newest = encode(&record).expect("a line");
            assert_eq!(decode(&newest).as_ref(), Ok(&record), "{line}");
            assert_eq!(values(&newest), values(line), "{line}");
            let old: JsonRecord = serde_json::from_str(line).expect("JSON");
            kinds.insert(old["event"].to_string());
        }
        assert_eq!(kinds.len(), KINDS, "{kinds:?}");
    }

    #[test]
    fn record_unknown_to_format_1_is_refused() {
        let flaw = |json: &str| to_format_2(serde_json::from_str(json).expect("JSON"));
        for json in [
            r#"{"event":"program_defined"}"#,
            r#"{"event":"run_started","version":2}"#,
            r#"{"event":"run_started"}"#,
            r#"{"seq":1}"#,
        ] {
            assert!(flaw(json).is_err(), "{json}");
        }
    }
}
