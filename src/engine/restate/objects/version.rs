//! The version of the objects: of their calls, their answers and what they keep.

use serde::{Deserialize, Serialize};

/// The version.
pub(in crate::engine::restate) const VERSION: u32 = 6;

/// The status of an answer to a call of another version.
pub(in crate::engine::restate) const OTHER_VERSION: u16 = 426;

/// A call with its version.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(in crate::engine::restate) struct VersionedCall<C> {
    pub(in crate::engine::restate) version: u32,
    pub(in crate::engine::restate) call: C,
}

impl<C> VersionedCall<C> {
    pub(in crate::engine::restate) fn new(call: C) -> Self {
        Self { version: VERSION, call }
    }
}

/// The version alone of a call whose rest another raymond has written.
#[derive(Debug, Clone, Copy, Deserialize)]
pub(super) struct CallVersion {
    pub(super) version: u32,
}
