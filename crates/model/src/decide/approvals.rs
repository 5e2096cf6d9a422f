//! Decisions on tool calls that need approval, and on the answers.

use super::{AnswerError, TurnReport};
use crate::agent::Agent;
use crate::approval::{ApprovalRequest, ApprovalVerdict, PendingApproval};
use crate::consult::{PluginVerdict, approval_answer};
use crate::decide::report_effects::settled;
use crate::event::{ApprovalAnswered, ApprovalAsked, Event, TurnSuspended};
use crate::id::StateName;
use crate::question::{AnswerCommand, InvalidAnswer};
use crate::run::Run;
use crate::turn::{TurnFailure, TurnId};

/// Returns the event of a tool call that needs approval; `None` if its turn is over, or if it was asked before.
pub fn approval_asked(run: &Run, turn: &TurnId, request: &ApprovalRequest) -> Option<Event> {
    let agent = run.agents.get(&turn.agent).filter(|agent| agent.turn_id() == *turn)?;
    if agent.approvals.of_call(turn.turn, &request.call).is_some() {
        return None;
    }
    Some(Event::ApprovalAsked(ApprovalAsked {
        turn: turn.clone(),
        state: agent.prompt().clone(),
        number: run.approvals_asked.saturating_add(1),
        request: Box::new(request.clone()),
        grant: agent.approvals.grant_for(request),
    }))
}

/// Returns the event of an answer to an approval; `None` if no approval has that name.
///
/// # Errors
/// [`AnswerError`] if the answer is rejected.
pub(super) fn approval_answered(
    run: &Run,
    given: &AnswerCommand,
) -> Option<Result<Event, AnswerError>> {
    let AnswerCommand { agent, step, node, text } = given;
    let sought = run.agents.sought(agent.as_ref()).into_iter();
    let is_meant = |one: &&Agent| step.is_none_or(|step| step == one.step);
    let (asks, asked) = sought.filter(is_meant).find_map(|one| {
        let asked = one.open_approvals().find(|asked| asked.name() == *node)?;
        Some((one, asked))
    })?;
    Some(answered(asks, asked, text, None))
}

/// Returns the event of what plug-ins say to a tool call; `None` if a person is to decide, or has already.
pub fn advised_answer(
    run: &Run,
    turn: &TurnId,
    call: &str,
    verdicts: &[PluginVerdict],
) -> Option<Event> {
    let agent = run.agents.get(&turn.agent).filter(|agent| agent.step == turn.step)?;
    let asked = agent.open_approvals().find(|asked| asked.request.call == call)?;
    let (by, text) = approval_answer(verdicts)?;
    answered(agent, asked, &text, Some(by)).ok()
}

/// Returns the answers to the open calls of an agent that rules cover which a person has given meanwhile: agents that run
/// already share them.
pub fn ruled_answers<'run>(
    run: &'run Run,
    agent: &'run Agent,
) -> impl Iterator<Item = Event> + 'run {
    let place = prompt_place(agent);
    let rules = run.approval_rules.iter().filter(|granted| granted.is_for(&place));
    let rules: Vec<String> = rules.map(|granted| granted.rule.to_string()).collect();
    let covered = agent.open_approvals().filter(move |asked| asked.request.is_covered_by(&rules));
    covered.filter_map(move |asked| answered(agent, asked, "allow", None).ok())
}

fn answered(
    agent: &Agent,
    asked: &PendingApproval,
    text: &str,
    by: Option<String>,
) -> Result<Event, AnswerError> {
    let verdict = ApprovalVerdict::read(text, &asked.request, prompt_place(agent));
    let verdict = verdict.map_err(|expected| {
        AnswerError::Invalid(InvalidAnswer { given: text.to_owned(), node: asked.name(), expected })
    })?;
    Ok(Event::ApprovalAnswered(ApprovalAnswered {
        turn: agent.turn_id(),
        state: agent.prompt().clone(),
        number: asked.number,
        tool: asked.request.tool.clone(),
        verdict,
        by,
    }))
}

/// Returns the prompt of an agent's turn with its folder, for which rules are given.
pub fn prompt_place(agent: &Agent) -> StateName {
    agent.prompt().shown_in(agent.folder().as_ref())
}

/// Returns the event of a turn that was ended while calls needed approval.
pub(super) fn turn_suspended(
    run: &Run,
    agent: &Agent,
    failure: &TurnFailure,
    report: &TurnReport,
) -> Event {
    let suspended = failure.suspended.as_deref().cloned().unwrap_or_default();
    Event::TurnSuspended(TurnSuspended {
        turn: report.turn.clone(),
        state: agent.prompt().clone(),
        calls: suspended.calls,
        unsure: suspended.unsure,
        cost: settled(run, report, agent.prompt()),
        message: suspended.message,
    })
}
