//! The approval of tool calls: what Claude Code asks a person to allow, the answers, and the rules that follow from them.

mod request;
mod stage;

pub use self::request::{ApprovalRequest, FileEdit, NO_RULE};
pub use self::stage::{ApprovalStage, PendingApproval, StepApprovals};
pub use crate::approval::request::{ApprovalRule, GrantedRule, RuleScope};
pub use crate::approval::stage::{ApprovalVerdict, BoundedInput};
