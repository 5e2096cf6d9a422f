//! Converts records of older formats to the newest format when they are read.
//!
//! The types of [`event`](raymond_model::event) are those of the newest format alone. Names of an older format are replaced
//! in the JSON of its records, one format after the other, so each step is written once and never changes again.
//! The disk is not rewritten: the lines there keep their bytes and proofs.
//!
//! To add a format n + 1:
//!
//! 1. Change the types of [`event`](raymond_model::event), and raise [`FORMAT`](super::record::FORMAT).
//! 2. Add `migrate/format_n.rs` with a function that makes a record of format n to one of n + 1, and call it in
//!    [`to_newest`].
//! 3. Keep runs of format n in `tests/fixtures/format-n`, written by the last build that wrote it, and have
//!    `tests/it/released.rs` resume them.
//! 4. Describe the format in `docs/formats.md`.

mod format_1;

use serde_json::{Map, Value};

/// A record as it stands in a line of the journal.
pub(super) type JsonRecord = Map<String, Value>;

/// Returns a record of an older format in the newest format.
///
/// # Errors
/// The part of the record that the format does not have.
pub(super) fn to_newest(format: u32, record: JsonRecord) -> Result<JsonRecord, String> {
    match format {
        1 => format_1::to_format_2(record),
        _ => Err(format!("unknown format {format}")),
    }
}
