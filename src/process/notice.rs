//! Notices of a running turn, for observers.

use crate::domain::approval::ApprovalRequest;
use crate::domain::id::MessageId;
use crate::domain::refusal::ToolRefusal;

/// Something that a running turn was seen doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TurnNotice<'turn> {
    /// The model or a tool does this.
    Active(&'turn str),
    /// The API asks for fewer requests; the program itself retries.
    Throttled,
    /// A tool call needs approval.
    Approval(&'turn ApprovalRequest),
    /// It has read a message.
    MessageRead(&'turn MessageId),
    /// A tool was refused.
    Refused(&'turn ToolRefusal),
}
