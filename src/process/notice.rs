//! What a turn that runs is seen doing, for whoever looks on.

use crate::domain::refusal::ToolRefusal;

/// Something was seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TurnNotice<'turn> {
    /// It does this.
    Active(&'turn str),
    /// The API asks for fewer requests; the program itself tries again.
    Throttled,
    /// A tool was refused.
    Refused(&'turn ToolRefusal),
}
