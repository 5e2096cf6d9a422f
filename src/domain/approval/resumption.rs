//! The texts by which an agent learns what became of calls that needed approval.

use super::{ApprovalStage, PendingApproval};
use crate::domain::printable::one_line;

/// The number of calls that a text names.
const MAX_NAMED: usize = 16;

/// Returns the prompt of the turn that goes on after the calls of an ended turn were answered.
pub(super) fn resumption_prompt(approvals: &[PendingApproval]) -> String {
    let decided = approvals.iter().filter_map(|one| match &one.stage {
        ApprovalStage::Decided(verdict) => {
            let again = if verdict.allows() {
                "; it has not run: make the same call again"
            } else {
                "; it has not run: do not make it again"
            };
            Some(format!("- {}: {}{again}", one_line(&one.request.summary()), verdict.phrase()))
        }
        ApprovalStage::Asked
        | ApprovalStage::Answered(_)
        | ApprovalStage::Suspended
        | ApprovalStage::Granted
        | ApprovalStage::Uncertain => None,
    });
    let lines: Vec<String> = decided.take(MAX_NAMED).collect();
    if lines.is_empty() {
        return "Your last turn was ended before you were done. Go on with your task, and end as you were asked to.".to_owned();
    }
    format!(
        "Your last turn was ended while tool calls waited for a person to approve them. Each has its answer now:\n{}\nGo on with your task, and end as you were asked to.",
        lines.join("\n")
    )
}

/// Returns the note about calls that were allowed in a turn that came to nothing.
pub(super) fn uncertainty_note(approvals: &[PendingApproval]) -> Option<String> {
    let uncertain = approvals.iter().filter(|one| one.stage == ApprovalStage::Uncertain);
    let lines: Vec<String> = uncertain
        .take(MAX_NAMED)
        .map(|one| format!("- {}", one_line(&one.request.summary())))
        .collect();
    (!lines.is_empty()).then(|| {
        format!(
            "An earlier try of this task was cut off. A person had allowed these tool calls in it, and it is not known whether they have run:\n{}\nFind out before you make one of them again; each needs a new approval.",
            lines.join("\n")
        )
    })
}
