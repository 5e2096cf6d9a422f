//! The approval of tool calls: what Claude Code asks a person to allow, the answers, and the rules that follow from them.

mod bounded_input;
mod request;
mod rule;
mod stage;
mod verdict;

pub use self::bounded_input::BoundedInput;
pub use self::request::{ApprovalRequest, FileEdit, NO_RULE};
pub use self::rule::{ApprovalRule, GrantedRule, RuleScope};
pub use self::stage::{ApprovalStage, PendingApproval, StepApprovals};
pub use self::verdict::ApprovalVerdict;
