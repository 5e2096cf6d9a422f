//! The tool calls of a turn, in order, with their outcomes. Pure.

use raymond_model::tool_call::{ToolCall, ToolOutcome, beginning};

use crate::turn_event::TurnEvent;

/// The number of bytes that are kept of an output.
pub(crate) const MAX_OUTPUT_BYTES: usize = 4096;

/// The calls so far, in order.
#[derive(Debug, Default)]
pub(crate) struct ToolCalls(Vec<ToolCall>);

impl ToolCalls {
    /// Takes in an event; returns the call that it ends.
    pub(crate) fn take(&mut self, event: TurnEvent) -> Option<&ToolCall> {
        match event {
            TurnEvent::ToolCalled { id, tool, kind, input, parent, at } => {
                // A message that is written in parts may repeat a call.
                if self.find(&id).is_none() {
                    self.0.push(ToolCall {
                        id,
                        parent,
                        kind,
                        tool,
                        title: ToolCall::title(&input),
                        input,
                        outcome: ToolOutcome::Unfinished,
                        output: None,
                        started_at: at,
                        ended_at: None,
                        duration_ms: None,
                    });
                }
                None
            }
            TurnEvent::ToolEnded { id, output, is_error, is_refused, at } => {
                let call = self.find(&id).filter(|call| call.output.is_none())?;
                call.outcome = match call.outcome {
                    ToolOutcome::Refused => ToolOutcome::Refused,
                    _ if is_refused => ToolOutcome::Refused,
                    _ if is_error => ToolOutcome::Failed,
                    _ => ToolOutcome::Ok,
                };
                call.output = Some(beginning(output, MAX_OUTPUT_BYTES));
                call.ended_at = at;
                call.duration_ms = call.started_at.and_then(|start| Some(at?.since(start)));
                Some(call)
            }
            TurnEvent::ToolRefused { id } => {
                if let Some(call) = self.find(&id) {
                    call.outcome = ToolOutcome::Refused;
                }
                None
            }
            TurnEvent::Read { .. }
            | TurnEvent::Wrote { .. }
            | TurnEvent::Thought { .. }
            | TurnEvent::Waits { .. }
            | TurnEvent::Result { .. } => None,
        }
    }

    fn find(&mut self, id: &str) -> Option<&mut ToolCall> {
        self.0.iter_mut().rev().find(|call| call.id == id)
    }

    /// Returns the calls. Those whose refusal only means that nobody answered in time `are_unanswered`.
    pub(crate) fn finish(mut self, are_unanswered: impl Fn(&str) -> bool) -> Vec<ToolCall> {
        for call in self.0.iter_mut().filter(|call| are_unanswered(&call.id)) {
            call.outcome = ToolOutcome::Unfinished;
        }
        self.0
    }
}
