//! The consequences that packs read or perform themselves. All others of their types are operations.

use super::checked_graph::ActionKind;
use super::reader::{GivenParameters, GraphReader};

mod corpus;

/// Reads a consequence of a pack.
pub(super) type PackReader =
    fn(&mut GraphReader<'_>, &mut GivenParameters<'_>) -> Option<ActionKind>;

/// Returns the reader of a type of consequences, if a pack has one.
pub(super) fn reader(kind: &str) -> Option<PackReader> {
    corpus::reader(kind)
}
