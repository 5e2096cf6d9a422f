//! One line of the journal: `{"seq":1,"at":"2026-01-15T14:30:22.123Z","event":…,"crc":"89abcdef"}`.
//!
//! The checksum covers the line without itself, so a line is checked before it is parsed. It is spliced on as
//! text: the written bytes are checked, one by one. In a run that is held with a key, a proof stands before the
//! checksum: a raymond of the user wrote the text before the proof.
//!
//! One moment may have several records. All but the last of them say `"more":true` behind the time; if the last is
//! not there, none of them has happened.

use serde::Deserialize;

use crate::domain::event::{Event, Record};
use crate::domain::time::Timestamp;
use crate::proof::{PROOF_LENGTH, ProofKey};

/// The length of `,"crc":"89abcdef"}` in bytes.
const CRC_LENGTH: usize = 18;

/// The text before the digits of a proof.
const PROOF: &str = ",\"proof\":\"";

/// The kind of a record's proof.
const PURPOSE: &str = "record";

/// The error in a line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    /// It does not end as a record does.
    #[error("it does not end with its checksum")]
    NoChecksum,
    /// Its bytes differ from those that were written.
    #[error("its checksum is wrong")]
    Checksum,
    /// It is another record than the one that should stand there.
    #[error("it has the number {found}")]
    Order {
        /// The number it has.
        found: u64,
    },
    /// Its bytes are right, but this program does not understand them.
    #[error("{0}")]
    Meaning(String),
}

/// The text in the line of a record that is not the last of its moment.
const MORE: &[u8] = b"\",\"more\":true,";

/// The length of the start of a line that may hold that text, in bytes.
const HEAD: usize = 80;

/// Writes a record as a line, without the line's end.
///
/// # Errors
/// A text, if the event cannot be written as JSON.
pub fn encode(record: &Record) -> Result<String, String> {
    encode_before(record, false, None)
}

/// Writes a record that may have more of its moment after it, with its proof, if there is a key.
///
/// # Errors
/// As [`encode`].
pub fn encode_before(
    record: &Record,
    more: bool,
    key: Option<&ProofKey>,
) -> Result<String, String> {
    let event = serde_json::to_string(&record.event).map_err(|error| error.to_string())?;
    let event =
        event.strip_prefix('{').and_then(|event| event.strip_suffix('}')).unwrap_or_default();
    let more = if more { "\"more\":true," } else { "" };
    let mut line = format!("{{\"seq\":{},\"at\":\"{}\",{more}{event}", record.seq, record.at);
    if let Some(key) = key {
        let proof = key.proof(PURPOSE, line.as_bytes());
        line.extend([PROOF, &proof, "\""]);
    }
    let crc = crc32fast::hash(line.as_bytes());
    Ok(format!("{line},\"crc\":\"{crc:08x}\"}}"))
}

/// Checks a line by its checksum and its number, without reading the event in it.
///
/// # Errors
/// The [`RecordError`].
pub fn check(line: &[u8], seq: u64) -> Result<&str, RecordError> {
    let body = line.len().checked_sub(CRC_LENGTH).ok_or(RecordError::NoChecksum)?;
    let (body, tail) = line.split_at(body);
    let crc = tail
        .strip_prefix(b",\"crc\":\"")
        .and_then(|tail| tail.strip_suffix(b"\"}"))
        .and_then(|hex| std::str::from_utf8(hex).ok())
        .and_then(|hex| u32::from_str_radix(hex, 16).ok())
        .ok_or(RecordError::NoChecksum)?;
    if crc32fast::hash(body) != crc {
        return Err(RecordError::Checksum);
    }
    let text =
        std::str::from_utf8(line).map_err(|error| RecordError::Meaning(error.to_string()))?;
    let digits = text.strip_prefix("{\"seq\":").and_then(|rest| rest.split(',').next());
    match digits.and_then(|digits| digits.parse::<u64>().ok()) {
        Some(found) if found == seq => Ok(text),
        Some(found) => Err(RecordError::Order { found }),
        None => Err(RecordError::Meaning("it has no number".to_owned())),
    }
}

/// Returns whether a line that has been [checked](check) bears a proof that was made with this key.
#[must_use]
pub fn is_proven(line: &str, key: &ProofKey) -> bool {
    let proven = || {
        let body = line.get(..line.len().checked_sub(CRC_LENGTH)?)?.strip_suffix('"')?;
        let (body, proof) = body.split_at_checked(body.len().checked_sub(PROOF_LENGTH)?)?;
        Some(key.holds(PURPOSE, body.strip_suffix(PROOF)?.as_bytes(), proof))
    };
    proven().unwrap_or(false)
}

/// Returns whether a line that has been [checked](check) has more of its moment after it. Inside a string the
/// quotes would be escaped, so the text cannot stand there.
#[must_use]
pub fn has_more(line: &str) -> bool {
    let head = &line.as_bytes()[..line.len().min(HEAD)];
    head.windows(MORE.len()).any(|part| part == MORE)
}

/// Reads a line that has been [checked](check).
///
/// # Errors
/// [`RecordError::Meaning`].
pub fn decode(line: &str) -> Result<Record, RecordError> {
    #[derive(Deserialize)]
    struct Head {
        seq: u64,
        at: Timestamp,
    }
    let meaning = |error: serde_json::Error| RecordError::Meaning(error.to_string());
    let Head { seq, at } = serde_json::from_str(line).map_err(meaning)?;
    let event: Event = serde_json::from_str(line).map_err(meaning)?;
    Ok(Record { seq, at, event })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::event::RunCommand;
    use crate::domain::run::PauseReason;

    fn record() -> Record {
        let event =
            Event::CommandReceived { id: "ü,\"crc\":\"".into(), command: RunCommand::Stop };
        Record { seq: 7, at: Timestamp(1_768_487_422_123), event }
    }

    #[test]
    fn a_line_reads_back() {
        let line = encode(&record()).expect("a line");
        assert!(
            line.starts_with(
                "{\"seq\":7,\"at\":\"2026-01-15T14:30:22.123Z\",\"event\":\"command_received\""
            ),
            "{line}"
        );
        assert_eq!(check(line.as_bytes(), 7).and_then(decode), Ok(record()));
        assert!(serde_json::from_str::<serde_json::Value>(&line).is_ok());
    }

    #[test]
    fn any_changed_byte_is_noticed() {
        let line = encode(&record()).expect("a line");
        for at in 0..line.len() {
            let mut bytes = line.clone().into_bytes();
            bytes[at] ^= 1;
            assert!(check(&bytes, 7).and_then(decode).is_err(), "byte {at}");
            assert!(check(&line.as_bytes()[..at], 7).is_err(), "cut at {at}");
        }
    }

    #[test]
    fn only_who_has_the_key_writes_a_proven_line() {
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
    fn another_number_is_noticed() {
        let line = encode(&record()).expect("a line");
        assert_eq!(check(line.as_bytes(), 8), Err(RecordError::Order { found: 7 }));
    }

    #[test]
    fn an_event_this_program_does_not_know_is_named() {
        let known =
            encode(&Record { event: Event::RunPaused { pause: PauseReason::Stopped }, ..record() })
                .expect("a line");
        let body = known[..known.len() - CRC_LENGTH].replace("run_paused", "run_danced");
        let line = format!("{body},\"crc\":\"{:08x}\"}}", crc32fast::hash(body.as_bytes()));
        let flaw = check(line.as_bytes(), 7).and_then(decode).expect_err("unknown");
        assert!(flaw.to_string().contains("run_danced"), "{flaw}");
    }
}
