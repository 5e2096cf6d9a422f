//! The format of a line of the journal: how records are written, framed, checked, proven and read.
//!
//! A line is `{"format":2,"seq":1,"at":"2026-01-15T14:30:22.123Z","event":…,"crc":"89abcdef"}`.
//!
//! The format stands first, so that each line can be read by itself; a line without it has format 1. A run that was
//! begun in an older format continues in the newest format. Older formats are read by `store::migrate`.
//!
//! The checksum covers all bytes before it, and it is added as text, so a line is checked before it is parsed. In a
//! run that is held with a key, a proof stands before the checksum. It shows that a raymond of the user wrote the text
//! before the proof.
//!
//! One moment may have several records. All but the last of them have `"more":true` after the time. If the last is
//! missing, none of them has happened.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::migrate;
use crate::Error;
use crate::proof::{PROOF_LENGTH, ProofKey};
use raymond_model::apply::ApplyError;
use raymond_model::event::{Event, Record};
use raymond_model::host::PlacedAgent;
use raymond_model::id::Folder;
use raymond_model::json_mistake::mistake;
use raymond_model::session::KeptSession;
use raymond_model::time::Timestamp;
use raymond_model::worktree_snapshot::WorktreeSnapshot;

/// The format of the lines that this program writes, and the newest that it reads.
pub const FORMAT: u32 = 2;

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
    /// It is not the record that should stand there.
    #[error("it has the number {found}")]
    Order {
        /// The number it has.
        found: u64,
    },
    /// A newer raymond wrote it.
    #[error("it has format {format}, and this raymond reads formats up to {FORMAT}")]
    Newer {
        /// The format that the line names, above [`FORMAT`].
        format: u32,
    },
    /// Its bytes are right, but this program does not understand them.
    #[error("{0}")]
    Meaning(String),
}

impl RecordError {
    /// Returns the error of a journal in which the record with this number has this flaw, in this line of its file.
    pub(super) fn in_journal(&self, journal: &Path, seq: u64, line: u64) -> Error {
        let path = journal.to_owned();
        match self {
            Self::Newer { format } => Error::NewerRecord { path, line, format: *format },
            flaw => Error::Damaged { path, line, record: seq, why: flaw.to_string() },
        }
    }
}

impl From<ApplyError> for RecordError {
    fn from(refused: ApplyError) -> Self {
        Self::Meaning(refused.to_string())
    }
}

/// The text before the format of a line. A line of format 1 does not begin with it.
const FORMAT_KEY: &str = "{\"format\":";

/// The text in the line of a record whose moment has a later record.
const MORE_FLAG: &[u8] = b"\",\"more\":true,";

/// The length of the start of a line that may hold that text, in bytes.
const HEAD_BYTES: usize = 100;

/// Writes a record as a line, without the line's end.
///
/// # Errors
/// A text, if the event cannot be written as JSON.
pub fn encode(record: &Record) -> Result<String, String> {
    encode_before(record, false, None)
}

/// Writes a record that may have later records of its moment, with its proof if there is a key.
///
/// # Errors
/// As [`encode`].
pub fn encode_before(
    record: &Record,
    more: bool,
    key: Option<&ProofKey>,
) -> Result<String, String> {
    let Record { seq, at, folder, snapshot, kept_session, placed, event } = record;
    let event = json(event)?;
    let event =
        event.strip_prefix('{').and_then(|event| event.strip_suffix('}')).unwrap_or_default();
    let more = if more { "\"more\":true," } else { "" };
    let mut line = format!("{FORMAT_KEY}{FORMAT},\"seq\":{seq},\"at\":\"{at}\",{more}{event}");
    let placed = Some(placed).filter(|placed| !placed.is_empty());
    let parts = [
        (",\"folder\":", folder.as_ref().map(json)),
        (",\"snapshot\":", snapshot.as_ref().map(json)),
        (",\"kept_session\":", kept_session.as_ref().map(json)),
        (",\"placed\":", placed.map(json)),
    ];
    for (name, part) in parts {
        if let Some(part) = part {
            line.extend([name, &part?]);
        }
    }
    Ok(sealed(line, key))
}

/// Writes another body as a line with this number, framed like a record.
///
/// # Errors
/// As [`encode`].
pub(super) fn frame(
    seq: u64,
    body: &impl Serialize,
    key: Option<&ProofKey>,
) -> Result<String, String> {
    let body = json(body)?;
    let body = body.strip_prefix('{').and_then(|body| body.strip_suffix('}')).unwrap_or_default();
    Ok(sealed(format!("{FORMAT_KEY}{FORMAT},\"seq\":{seq},{body}"), key))
}

/// Adds the proof, if there is a key, and the checksum.
fn sealed(mut line: String, key: Option<&ProofKey>) -> String {
    if let Some(key) = key {
        let proof = key.proof(PURPOSE, line.as_bytes());
        line.extend([PROOF, &proof, "\""]);
    }
    let crc = crc32fast::hash(line.as_bytes());
    format!("{line},\"crc\":\"{crc:08x}\"}}")
}

fn json(part: &impl Serialize) -> Result<String, String> {
    serde_json::to_string(part).map_err(|error| mistake(&error))
}

/// Checks a line by its format, its checksum and its number, without reading the event in it. The format comes
/// first: a newer one may end otherwise, and its records must not be taken for torn ones and cut off.
///
/// # Errors
/// The [`RecordError`].
pub fn check(line: &[u8], seq: u64) -> Result<&str, RecordError> {
    match framed(line)? {
        (found, text) if found == seq => Ok(text),
        (found, _) => Err(RecordError::Order { found }),
    }
}

/// Checks a line as [`check`] does, and returns its number.
pub(super) fn framed(line: &[u8]) -> Result<(u64, &str), RecordError> {
    if let Some(format) = newer_format(line) {
        return Err(RecordError::Newer { format });
    }
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
    let head = text.strip_prefix(FORMAT_KEY).and_then(|rest| rest.split_once(','));
    let rest = head.map_or_else(|| text.strip_prefix('{'), |(_, rest)| Some(rest));
    let digits = rest.and_then(|rest| rest.strip_prefix("\"seq\":")?.split(',').next());
    let seq = digits.and_then(|digits| digits.parse::<u64>().ok());
    seq.map(|seq| (seq, text)).ok_or_else(|| RecordError::Meaning("it has no number".to_owned()))
}

/// Returns the format of a whole or torn line, if that format is newer than this program knows.
pub(super) fn newer_format(line: &[u8]) -> Option<u32> {
    let rest = line.strip_prefix(FORMAT_KEY.as_bytes())?;
    let digits = rest.split(|&byte| byte == b',').next()?;
    let format = std::str::from_utf8(digits).ok()?.parse::<u32>().ok()?;
    (format > FORMAT).then_some(format)
}

/// Returns whether a line that has been [checked](check) bears a proof that was made with this key.
pub fn is_proven(line: &str, key: &ProofKey) -> bool {
    let proven = || {
        let body = line.get(..line.len().checked_sub(CRC_LENGTH)?)?.strip_suffix('"')?;
        let (body, proof) = body.split_at_checked(body.len().checked_sub(PROOF_LENGTH)?)?;
        Some(key.holds(PURPOSE, body.strip_suffix(PROOF)?.as_bytes(), proof))
    };
    proven().unwrap_or(false)
}

/// Returns whether a line that has been [checked](check) has later records of its moment. Inside a string the quotes
/// of the text would be escaped, so the text cannot occur there.
pub fn has_more(line: &str) -> bool {
    let head = &line.as_bytes()[..line.len().min(HEAD_BYTES)];
    head.windows(MORE_FLAG.len()).any(|part| part == MORE_FLAG)
}

/// The part of a line that is read first.
#[derive(Deserialize)]
struct RecordHead {
    #[serde(default = "first_format")]
    format: u32,
    seq: u64,
    at: Timestamp,
    #[serde(default)]
    folder: Option<Folder>,
    #[serde(default)]
    snapshot: Option<Box<WorktreeSnapshot>>,
    #[serde(default)]
    kept_session: Option<Box<KeptSession>>,
    #[serde(default)]
    placed: Vec<PlacedAgent>,
}

fn first_format() -> u32 {
    1
}

/// Returns the time of a record, of any format; `None` if the line is none.
pub fn time(line: &[u8]) -> Option<Timestamp> {
    serde_json::from_slice::<RecordHead>(line).ok().map(|head| head.at)
}

/// Reads a line that has been [checked](check).
///
/// # Errors
/// [`RecordError::Newer`] and [`RecordError::Meaning`].
pub fn decode(line: &str) -> Result<Record, RecordError> {
    let meaning = |error: serde_json::Error| RecordError::Meaning(mistake(&error));
    let RecordHead { format, seq, at, folder, snapshot, kept_session, placed } =
        serde_json::from_str(line).map_err(meaning)?;
    let event: Event = match format {
        FORMAT => serde_json::from_str(line).map_err(meaning)?,
        newer if newer > FORMAT => return Err(RecordError::Newer { format: newer }),
        older => {
            let record = serde_json::from_str(line).map_err(meaning)?;
            let newest = migrate::to_newest(older, record).map_err(RecordError::Meaning)?;
            serde_json::from_value(newest.into()).map_err(meaning)?
        }
    };
    // Some events without an agent have their own `folder`.
    let folder = folder.filter(|_| event.agent().is_some());
    Ok(Record { seq, at, folder, snapshot, kept_session, placed, event })
}

#[cfg(test)]
mod tests;
