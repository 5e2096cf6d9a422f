//! The recovery classes of operations: what a crash in the middle of one means.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The way in which an operation recovers from a crash in the middle of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RecoveryClass {
    /// The operation changes nothing, and is repeated.
    Read,
    /// The operation is idempotent, and is repeated.
    Converges,
    /// The operation finds out by itself whether it was done. Appending to a file may find that another writer
    /// was there too, and then it is not known.
    Guarded,
    /// It is not known whether the operation was done. The restart policy decides.
    Uncertain,
}
