//! The sentences about tool calls that need approval.

use crate::domain::approval::PendingApproval;
use crate::domain::event::{Event, Record};
use crate::domain::printable::{flat, one_line};

/// The maximum length of a call in a sentence, in bytes.
const MAX_CALL_BYTES: usize = 300;

/// Returns the event of a record as a line; empty if it is about something else.
pub(super) fn sentence(record: &Record) -> String {
    if let Event::ApprovalAsked(event) = &record.event {
        let call = flat(&event.request.summary(), MAX_CALL_BYTES);
        let (agent, name) = (&event.turn.agent, PendingApproval::name_of(event.number));
        return match event.grant {
            None => format!("{agent}  asks for approval of {call} ({name})"),
            Some(grant) => {
                format!("{agent}  runs {call}, as {} allows once", PendingApproval::name_of(grant))
            }
        };
    }
    if let Event::ApprovalAnswered(event) = &record.event {
        let by = event.by.as_ref().map(|by| format!(" by the plug-in {by}")).unwrap_or_default();
        return format!(
            "{}  {} ({}) {}{by}",
            event.turn.agent,
            PendingApproval::name_of(event.number),
            event.tool,
            one_line(&event.verdict.phrase())
        );
    }
    if let Event::TurnSuspended(event) = &record.event {
        return format!(
            "{}  {}: its process has ended; the turn continues after the approval  {}",
            event.turn.agent,
            event.state.shown_in(record.folder.as_ref()),
            event.cost.amount
        );
    }
    String::new()
}
