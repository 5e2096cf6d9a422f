//! The comparable parts of a record.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::TraceAspect;
use crate::cassette::is_of_the_machine;
use crate::event::{
    Event, GraphAdvanced, LanguageAdvanced, NextAction, ProgramProgress, ProgramStatus,
};
use crate::graph_execution::NodeExecution;
use crate::id::{Folder, StateName};
use crate::join::JoinOutcome;
use crate::program_execution::{RequestBody, RequestStatus, RoleRequest};
use crate::transition::Transition;

/// The comparable parts of a record.
#[derive(Debug, Default)]
pub(super) struct MomentAspects {
    pub(super) aspects: BTreeMap<TraceAspect, String>,
    /// The state of the program and its status, if the agent advanced in one. Several records can have the same: how
    /// often a program looks at its conditions depends on who answers first.
    pub(super) program: Option<String>,
}

impl MomentAspects {
    fn in_state(state: &StateName, folder: Option<&Folder>) -> Self {
        Self::default().with(TraceAspect::State, state.shown_in(folder).to_string())
    }

    fn with(mut self, aspect: TraceAspect, text: impl Into<String>) -> Self {
        self.aspects.insert(aspect, text.into());
        self
    }

    fn with_transition(self, transition: &Transition) -> Self {
        let all = self.with(TraceAspect::Transition, transition.to_string());
        match transition {
            Transition::Result { payload, .. } => all.with(TraceAspect::Payload, payload.as_str()),
            Transition::Ask { question, .. } => all.with(TraceAspect::Payload, question.as_str()),
            Transition::Goto { .. }
            | Transition::Reset { .. }
            | Transition::Call { .. }
            | Transition::Function { .. }
            | Transition::Fork { .. } => all,
        }
    }
}

/// Returns the comparable parts of a record; `None` if it tells of the machine, of the whole run, or of no progress.
pub(super) fn aspects(event: &Event, folder: Option<&Folder>) -> Option<MomentAspects> {
    let at = |state: &StateName| MomentAspects::in_state(state, folder);
    Some(match event {
        Event::StepFinished(step) => at(&step.state).with_transition(&step.transition),
        Event::TransitionProposed(asked) => at(&asked.state).with_transition(&asked.transition),
        Event::GraphAdvanced(graph) => of_graph(at(&graph.file), graph)
            .with(TraceAspect::Transition, next_action(&graph.next_action, &graph.node)),
        Event::ProgramAdvanced(advanced) => {
            let ProgramProgress { state, status, .. } = &advanced.progress;
            let status = match status {
                ProgramStatus::Running | ProgramStatus::Waiting => "at work",
                ProgramStatus::Completed => "completed",
                ProgramStatus::Failed => "failed",
            };
            let text = format!("{state}, {status}");
            let at = at(&advanced.file).with(TraceAspect::Transition, text.as_str());
            MomentAspects { program: Some(text), ..at }
        }
        Event::LanguageAdvanced(advanced) => {
            let LanguageAdvanced { file, reached, next_action: next, .. } = &**advanced;
            at(file)
                .with(TraceAspect::Values, reached.position.to_string())
                .with(TraceAspect::Transition, next_action(next, &reached.language))
        }
        Event::QuestionAnswered(answered) => {
            let text = format!("{}: {}", answered.node, answered.answer.raw);
            at(&answered.state).with(TraceAspect::Answer, text)
        }
        Event::QuestionTimedOut(late) => {
            let text = format!("none in time, so {}", late.enters.shown_in(folder));
            at(&late.state).with(TraceAspect::Answer, text)
        }
        Event::ApprovalAsked(asked) => at(&asked.state)
            .with(TraceAspect::Request, format!("approval: {}", asked.request.summary())),
        Event::ApprovalAnswered(answered) => {
            let text = format!("{}: {}", answered.tool, answered.verdict.phrase());
            at(&answered.state).with(TraceAspect::Answer, text)
        }
        Event::ProgramLogged(logged) => at(&logged.file).with(TraceAspect::Log, &*logged.text),
        Event::RoleRequested(asked) => {
            let text = format!("{}: {}", asked.handle, request(&asked.request));
            at(&asked.file).with(TraceAspect::Request, text)
        }
        Event::RoleResponded(response) => {
            let text = format!("{}: {}", response.name, outcome(&response.response));
            at(&response.state).with(TraceAspect::Request, text)
        }
        Event::RoleDelegated(delegated) => {
            let text = format!("delegated to {}", delegated.spec.shown_state());
            at(&delegated.state).with(TraceAspect::Request, text)
        }
        Event::JoinFinished(join) => {
            let outcome = match join.outcome {
                JoinOutcome::Met => "met",
                JoinOutcome::Missed => "missed",
                JoinOutcome::Late => "late",
            };
            let mut text = format!(
                "{outcome}: {} of {} done, {} failed",
                join.tally.done, join.tally.count, join.tally.failed
            );
            if let Some(enters) = &join.enters {
                let _ = write!(text, ", so {}", enters.shown_in(folder));
            }
            at(&join.state).with(TraceAspect::Join, text)
        }
        Event::TurnRejected(rejected) => {
            at(&rejected.state).with(TraceAspect::Refusal, &*rejected.violation)
        }
        Event::TurnFailed(failed) if !is_of_the_machine(failed.cause) => {
            let text = format!("{}: {}", failed.cause, failed.message);
            at(&failed.state).with(TraceAspect::Failure, text)
        }
        Event::AgentFailed(failed) => {
            let text = format!("{}: {}", failed.cause, failed.error);
            at(&failed.state).with(TraceAspect::Failure, text)
        }
        Event::AgentParked(parked) => {
            at(&parked.state).with(TraceAspect::Failure, format!("parked: {}", parked.reason))
        }
        _ => return None,
    })
}

fn of_graph(at: MomentAspects, graph: &GraphAdvanced) -> MomentAspects {
    let node = |visit: &NodeExecution| {
        let error = visit.error.as_ref().map_or(String::new(), |error| format!(": {error}"));
        format!("{} {}{error}", visit.node, visit.outcome)
    };
    let nodes: Vec<String> = graph.visits.iter().map(node).collect();
    let change = |change| serde_json::to_string(change).unwrap_or_default();
    let values: Vec<String> = graph.changes.iter().map(change).collect();
    let with = |at: MomentAspects, aspect, lines: Vec<String>| {
        if lines.is_empty() { at } else { at.with(aspect, lines.join("\n")) }
    };
    let at = with(at, TraceAspect::Nodes, nodes);
    with(at, TraceAspect::Values, values)
}

fn next_action(next: &NextAction, place: &str) -> String {
    match next {
        NextAction::Walk => format!("{place}: continues"),
        NextAction::Operation(kind) => format!("{place}: {kind}"),
        NextAction::Task(task) => format!("{place}: asks {}", task.name),
        NextAction::Question(question) => format!("{place}: asks a person: {}", question.text),
        NextAction::Agent { spec, .. } => format!("{place}: an agent in {}", spec.shown_state()),
        NextAction::Join(_) => format!("{place}: a join"),
        NextAction::Wait => format!("{place}: waits"),
        NextAction::Nothing => format!("{place}: ends"),
    }
}

fn request(asked: &RoleRequest) -> String {
    let RoleRequest { name, role, body, .. } = asked;
    match body {
        RequestBody::Prompt(task) => format!("{name} of {role}\n{}", task.prompt),
        RequestBody::Folder { folder, start, input } => {
            format!("{name} of {role} in {}\n{input}", start.shown_in(folder.as_ref()))
        }
    }
}

fn outcome(status: &RequestStatus) -> String {
    match status {
        RequestStatus::Pending => "none yet".to_owned(),
        RequestStatus::Answer(answer) => answer.to_string(),
        RequestStatus::Failed(why) => format!("failed: {why}"),
    }
}
