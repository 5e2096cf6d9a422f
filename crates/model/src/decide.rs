//! Decisions: from the result of a turn to the events that are recorded.
//!
//! The agent reports, this module decides, the supervisor appends. Random choices and clock readings come in as
//! [`NondeterministicInputs`], so the decision itself can be replayed in a test.

use self::advance::advanced;
use self::failure::{
    FailedTurn, end_script_circle, give_up, restart_context, restarts_exhausted, stopped_with,
    turn_failed,
};
pub use self::failure::{MAX_SCRIPTS_IN_A_ROW, retry_agents, stopped};
pub use self::join::finish_join;
use self::join::{begin_join, fork_groups, reject_fork};
use super::advance::Advance;
use super::agent::{Agent, AgentOptions};
use super::consult::PluginVerdict;
use super::event::{Event, PermanentRestart, StepFinished, TransitionProposed, TurnRejected};
use super::id::{MessageId, SessionId, StateName};
use super::join::Join;
use super::money::Usd;
use super::policy::{AcceptedTransition, TransitionPolicy};
use super::question::Question;
use super::restart::{RestartDecision, restart};
use super::run::Run;
use super::time::Timestamp;
use super::transition::Transition;
use super::turn::{FailureCause, TurnFailure, TurnId};
use super::worktree_snapshot::WorktreeSnapshot;
use crate::approval::{ApprovalRequest, ApprovalVerdict, PendingApproval};
use crate::consult::{ConsultVerdict, approval_answer, strictest};
use crate::decide::advance::role_responded;
#[cfg(test)]
use crate::decide::advance::{delegated_answer, role_delegated, role_stopped};
pub use crate::decide::advance::{program_started, role_event};
pub use crate::decide::failure::out_of_money;
use crate::decide::failure::{apply_verdicts, not_started};
use crate::decide::join::prepared_answer;
pub use crate::decide::join::{
    AnswerError, answer, first_prepared_answer, message_read, timed_out,
};
use crate::event::{ApprovalAnswered, ApprovalAsked, TurnSuspended};
use crate::question::{AnswerCommand, InvalidAnswer};
use crate::run::UnbilledTurn;
use crate::session::KeptSession;
use crate::settings::ForkGroup;
use crate::turn::TurnCost;

mod advance;
mod failure;
mod join;

/// The report of an agent to the supervisor at the end of a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnReport {
    /// The turn that ended.
    pub turn: TurnId,
    /// The cost of the turn.
    pub cost: TurnCost,
    /// Its last message.
    pub message: Option<MessageId>,
    /// The texts that its reply shows to people.
    pub shown: Vec<String>,
    /// The result of the turn.
    pub judgement: TurnJudgement,
    /// The settings of the child of a plain fork.
    pub child_options: AgentOptions,
    /// The budget of the call that it makes, if the called state gives one.
    pub call_budget_usd: Option<Usd>,
    /// The children of any other fork.
    pub children: Vec<ForkGroup>,
    /// The head start of the first of them, in milliseconds, if the state sets one.
    pub stagger_ms: Option<u64>,
    /// The policy of the state; the reminder quotes it if the fork is impossible.
    pub allowed: TransitionPolicy,
    /// The verdicts of plug-ins.
    pub verdicts: Vec<PluginVerdict>,
    /// The files of the agent's worktree at the end of the turn, if a snapshot of them was due.
    pub snapshot: Option<Box<WorktreeSnapshot>>,
    /// The session of the turn, if an engine keeps it.
    pub kept_session: Option<Box<KeptSession>>,
    /// What the machine has no room for; the turn is still due.
    pub stuck: Option<String>,
}

/// The result of a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TurnJudgement {
    /// A transition that the state allows.
    Accepted(AcceptedTransition),
    /// A transition that the state's evaluator checks first.
    Proposed {
        /// The transition.
        accepted: AcceptedTransition,
        /// The reply, or the end of a long one.
        output: String,
        /// The evaluator's prompt.
        evaluator: StateName,
    },
    /// The state first waits for agents that were forked.
    JoinDue(Box<Join>),
    /// The turn did not start: plug-ins objected.
    NotStarted,
    /// A reply that breaks the protocol.
    Violated {
        violation: String,
        /// The reminder that asks the agent to repair it, if the state has a policy.
        reminder: Option<String>,
    },
    /// No turn, but an advance in a state that raymond executes, or a turn whose result was taken in there.
    Advanced(Box<Advance>),
    /// No reply.
    Failed(TurnFailure),
}

impl TurnReport {
    /// Creates the report of a failed turn.
    pub fn failed(turn: TurnId, failure: TurnFailure) -> Self {
        Self {
            cost: TurnCost::of_failure(&failure),
            judgement: TurnJudgement::Failed(failure),
            ..Self::empty(turn)
        }
    }

    /// Makes it the report of a failed turn that costs as much.
    pub fn fail(self, failure: TurnFailure) -> Self {
        Self { cost: self.cost, ..Self::failed(self.turn, failure) }
    }

    /// Creates the report of a turn that a full machine keeps from being taken in.
    pub fn stuck(turn: TurnId, why: String) -> Self {
        Self { stuck: Some(why), ..Self::empty(turn) }
    }

    /// Creates the report of a turn that was not started.
    pub fn empty(turn: TurnId) -> Self {
        Self {
            turn,
            cost: TurnCost::default(),
            message: None,
            shown: Vec::new(),
            judgement: TurnJudgement::NotStarted,
            child_options: AgentOptions::default(),
            call_budget_usd: None,
            children: Vec::new(),
            stagger_ms: None,
            allowed: TransitionPolicy::default(),
            verdicts: Vec::new(),
            snapshot: None,
            kept_session: None,
            stuck: None,
        }
    }
}

/// The inputs the actor chooses, because the domain has neither a clock nor randomness.
#[derive(Debug, Clone)]
pub struct NondeterministicInputs {
    /// The time.
    pub now: Timestamp,
    /// The id of the session that may have to be opened.
    pub session: SessionId,
    /// The id of a session that is ready; it is used if the new session has no history.
    pub ready: Option<SessionId>,
    /// A random number from 0 up to 1.
    pub chance: f64,
}

/// Returns the events that follow from a report, in order; none if it is late or repeated.
pub fn decide(run: &Run, report: &TurnReport, chosen: NondeterministicInputs) -> Vec<Event> {
    let Some(agent) =
        run.agents.get(&report.turn.agent).filter(|agent| agent.turn_id() == report.turn)
    else {
        return late_cost(run, report);
    };
    if agent.orders.is_ending {
        return vec![stopped_with(agent, report)];
    }
    match &report.judgement {
        TurnJudgement::Accepted(accepted) => {
            apply_verdicts(run, agent, accepted.clone(), report, chosen)
        }
        TurnJudgement::NotStarted => not_started(run, agent, report, chosen),
        TurnJudgement::JoinDue(join) => begin_join(agent, join, report),
        TurnJudgement::Proposed { accepted, output, evaluator } => {
            vec![Event::TransitionProposed(Box::new(TransitionProposed {
                turn: report.turn.clone(),
                state: agent.current_state.clone(),
                transition: accepted.transition.clone(),
                implicit: accepted.implicit,
                output: output.clone(),
                evaluator: evaluator.clone(),
                cost: report.cost.clone(),
                session_id: agent.session.id.clone(),
                message: report.message.clone(),
                shown: report.shown.clone(),
                new_session: chosen.ready.unwrap_or(chosen.session),
            }))]
        }
        TurnJudgement::Violated { violation, reminder } => {
            vec![repair(run, agent, violation, reminder.as_deref(), report)]
        }
        TurnJudgement::Advanced(advance) => advanced(run, agent, advance, report, chosen),
        TurnJudgement::Failed(failure) if failure.cause == FailureCause::Unapproved => {
            vec![turn_suspended(run, agent, failure, report)]
        }
        TurnJudgement::Failed(failure) => turn_failed(run, agent, failure, report, chosen),
    }
}

fn step_finished(
    run: &Run,
    agent: &Agent,
    accepted: &AcceptedTransition,
    report: &TurnReport,
    chosen: NondeterministicInputs,
) -> Vec<Event> {
    if let Some(mailbox) = agent.mailbox() {
        return vec![role_responded(agent, mailbox, accepted, report)];
    }
    if let Some(circle) = end_script_circle(agent, accepted, report) {
        return vec![circle];
    }
    if let Some(instead) = reject_fork(run, agent, accepted, report) {
        return vec![instead];
    }
    let ends = matches!(accepted.transition, Transition::Result { .. }) && agent.stack.is_empty();
    let supervision = run.supervision_of(agent);
    let (restart_at, exhausted) = if ends && supervision.restart.restarts_after(false) {
        match restart(agent, restart_context(run, &supervision, &chosen)) {
            RestartDecision::Exhausted { reason, then } => (Some(chosen.now), Some((reason, then))),
            RestartDecision::Retry { not_before, .. } => {
                (Some(not_before.unwrap_or(chosen.now)), None)
            }
            RestartDecision::GiveUp
            | RestartDecision::Pause(_)
            | RestartDecision::AwaitLimit { .. } => (None, None),
        }
    } else {
        (None, None)
    };
    let is_call = accepted.transition.is_call();
    let new_session = match accepted.transition {
        Transition::Goto { .. } | Transition::Ask { .. } => None,
        Transition::Call { .. } => Some(chosen.session),
        Transition::Result { .. } if restart_at.is_none() => None,
        Transition::Fork { .. } if !report.children.is_empty() => None,
        Transition::Reset { .. }
        | Transition::Function { .. }
        | Transition::Fork { .. }
        | Transition::Result { .. } => Some(chosen.ready.unwrap_or(chosen.session)),
    };
    let finished = Event::StepFinished(StepFinished {
        turn: report.turn.clone(),
        state: agent.current_state.clone(),
        transition: accepted.transition.clone(),
        implicit: accepted.implicit,
        overruled: accepted.overruled.clone(),
        without_turn: matches!(
            report.judgement,
            TurnJudgement::NotStarted | TurnJudgement::Advanced(_)
        ) || (agent.advances_itself() && report.cost.is_zero()),
        evaluator: agent.proposal().map(|proposal| proposal.evaluator.clone()),
        cost: report.cost.clone(),
        session_id: agent.turn_session().id.clone(),
        message: report.message.clone(),
        shown: report.shown.clone(),
        new_session,
        options: Box::new(report.child_options.clone()),
        children: fork_groups(run, accepted, report, chosen.now),
        call_budget_usd: report.call_budget_usd.filter(|_| is_call),
        restarted: restart_at.map(|not_before| PermanentRestart { not_before }),
    });
    let next = TurnId { step: agent.step.saturating_add(1), turn: 0, ..report.turn.clone() };
    let Some((because, then)) = exhausted else {
        return match Question::of(&accepted.transition) {
            Some((question, state)) => {
                let ahead = prepared_answer(run, &question, &next, state);
                std::iter::once(finished).chain(ahead).collect()
            }
            None => vec![finished],
        };
    };
    let ended = FailedTurn {
        turn: next,
        state: agent.spec.state.clone(),
        folder: agent.folder(),
        cause: FailureCause::Restarts,
        cost: TurnCost::default(),
        why: format!("the permanent agent ended again ({because}); raise max_restarts"),
    };
    vec![finished, restarts_exhausted(ended, then)]
}

fn repair(
    run: &Run,
    agent: &Agent,
    violation: &str,
    reminder: Option<&str>,
    report: &TurnReport,
) -> Event {
    let limit = run.settings.supervision.reminders;
    match reminder {
        Some(reminder) if agent.reminders < limit => Event::TurnRejected(TurnRejected {
            turn: report.turn.clone(),
            state: agent.current_state.clone(),
            violation: violation.to_owned(),
            reminder: reminder.to_owned(),
            cost: report.cost.clone(),
            message: report.message.clone(),
        }),
        Some(_) => give_up(
            agent,
            report,
            FailureCause::Protocol,
            format!("{violation} (still so after {limit} reminders)"),
        ),
        None => give_up(
            agent,
            report,
            FailureCause::Protocol,
            format!(
                "{violation}; list allowed_transitions in the frontmatter of {} and the agent is reminded of them",
                agent.shown_state()
            ),
        ),
    }
}

// The consequences of a report beside its record: the transition that is taken, the permit that is returned, and the
// sign for the load of the API.

/// The sign of a report for the number of turns that run at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoadSign {
    /// The API asks for fewer requests.
    Throttled,
    /// It has answered.
    Answered,
    /// It was not asked, or something else failed.
    Nothing,
}

impl TurnReport {
    /// Returns the transition that the agent takes: that of a plug-in which overrides it, or else the accepted one.
    pub fn taken(&self) -> Option<Transition> {
        let overriding =
            strictest(self.verdicts.clone()).and_then(|verdict| match verdict.verdict {
                ConsultVerdict::Override { transition, .. } => Some(transition),
                _ => None,
            });
        overriding.or_else(|| match &self.judgement {
            TurnJudgement::Accepted(accepted) => Some(accepted.transition.clone()),
            _ => None,
        })
    }

    /// Returns whether the permit of its turn is returned although nothing of it is recorded: the agent has ended, or
    /// its pending turn `due` was not begun. Any other such report is late or repeated.
    pub fn returns_permit(&self, due: Option<&TurnId>) -> bool {
        let was_not_started =
            matches!(self.judgement, TurnJudgement::NotStarted | TurnJudgement::JoinDue(_));
        due.is_none_or(|due| was_not_started && *due == self.turn)
    }

    /// Returns its sign for the number of turns that run at the same time.
    pub fn load_sign(&self) -> LoadSign {
        match &self.judgement {
            TurnJudgement::Failed(failure) if failure.cause == FailureCause::Throttle => {
                LoadSign::Throttled
            }
            TurnJudgement::Failed(_)
            | TurnJudgement::NotStarted
            | TurnJudgement::Advanced(_)
            | TurnJudgement::JoinDue(_) => LoadSign::Nothing,
            TurnJudgement::Accepted(_)
            | TurnJudgement::Proposed { .. }
            | TurnJudgement::Violated { .. } => LoadSign::Answered,
        }
    }
}

// The costs of turns that were cancelled, or whose agents have ended.

/// Records the cost of a turn that was cancelled. For an unneeded agent a zero cost is recorded too, because its
/// run continues.
fn late_cost(run: &Run, report: &TurnReport) -> Vec<Event> {
    let owing =
        run.finished.iter().filter_map(|ended| Some((ended.unbilled_turn.as_ref()?, ended.cause)));
    let Some((UnbilledTurn { state, .. }, cause)) =
        owing.into_iter().find(|(unbilled, _)| unbilled.turn == report.turn)
    else {
        return Vec::new();
    };
    let cost = settled(run, report, state);
    if cost.is_zero() && cost.refused_tools.is_empty() && cause != Some(FailureCause::Unneeded) {
        return Vec::new();
    }
    vec![Event::CostCounted { turn: report.turn.clone(), cost }]
}

/// Returns the cost of a turn. The cost of a turn that was cancelled while the
/// model was at work is unknown; it counts as the maximum in its state.
fn settled(run: &Run, report: &TurnReport, state: &StateName) -> TurnCost {
    match &report.judgement {
        TurnJudgement::Failed(failure) if failure.unsettled => {
            let amount = report.cost.amount.max(run.budget().estimate_cost(state));
            TurnCost { amount, estimated: true, ..report.cost.clone() }
        }
        _ => report.cost.clone(),
    }
}

// Decisions on tool calls that need approval, and on the answers.

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
fn approval_answered(run: &Run, given: &AnswerCommand) -> Option<Result<Event, AnswerError>> {
    let AnswerCommand { agent, step, node, text } = given;
    let matching = run.agents.matching(agent.as_ref()).into_iter();
    let is_meant = |asking: &&Agent| step.is_none_or(|step| step == asking.step);
    let (asks, asked) = matching.filter(is_meant).find_map(|asking| {
        let asked = asking.open_approvals().find(|asked| asked.name() == *node)?;
        Some((asking, asked))
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

/// Returns the answers to the open calls of an agent that rules cover which a person has given meanwhile: agents that
/// run already share them.
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
fn turn_suspended(run: &Run, agent: &Agent, failure: &TurnFailure, report: &TurnReport) -> Event {
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

#[cfg(test)]
mod tests;

#[cfg(test)]
mod report_effects_tests {
    use super::*;
    use crate::consult::{PluginVerdict, StopScope};
    use crate::policy::AcceptedTransition;
    use crate::tests::scene::{Scene, goto};
    use crate::time::Timestamp;
    use crate::turn::TurnFailure;

    fn accepted(file: &str) -> TurnJudgement {
        let transition = goto(file);
        TurnJudgement::Accepted(AcceptedTransition { transition, implicit: false, overruled: None })
    }

    fn violated() -> TurnJudgement {
        TurnJudgement::Violated { violation: "no tag".to_owned(), reminder: None }
    }

    fn failed(cause: FailureCause) -> TurnJudgement {
        TurnJudgement::Failed(TurnFailure::new(cause, "x"))
    }

    fn report(judgement: TurnJudgement) -> TurnReport {
        let turn = Scene::begin().agent("main").turn_id();
        TurnReport { judgement, ..TurnReport::empty(turn) }
    }

    #[test]
    fn transition_of_strictest_plugin_replaces_accepted_transition() {
        let overriding =
            || ConsultVerdict::Override { transition: goto("B.md"), reason: String::new() };
        let hold = || ConsultVerdict::Hold { until: Timestamp(9), reason: String::new() };
        let stop = || ConsultVerdict::Stop { reason: String::new(), scope: StopScope::Agent };
        let table = [
            (accepted("A.md"), vec![], Some("A.md")),
            (accepted("A.md"), vec![ConsultVerdict::Proceed, hold()], Some("A.md")),
            (accepted("A.md"), vec![hold(), overriding()], Some("B.md")),
            // A stop is stricter, so the override does not count.
            (accepted("A.md"), vec![overriding(), stop()], Some("A.md")),
            (TurnJudgement::NotStarted, vec![overriding()], Some("B.md")),
            (TurnJudgement::NotStarted, vec![hold()], None),
            (violated(), vec![], None),
            (failed(FailureCause::Crash), vec![], None),
        ];
        for (judgement, verdicts, file) in table {
            let verdicts = verdicts.into_iter();
            let verdicts =
                verdicts.map(|verdict| PluginVerdict { by: "p".to_owned(), verdict }).collect();
            let report = TurnReport { verdicts, ..report(judgement) };
            assert_eq!(report.taken(), file.map(goto), "{report:?}");
        }
    }

    #[test]
    fn permit_returns_after_ended_agent_and_after_unstarted_turn() {
        let due = report(TurnJudgement::NotStarted).turn;
        let later = TurnId { step: due.step + 1, ..due.clone() };
        let table = [
            (TurnJudgement::NotStarted, Some(&due), true),
            (TurnJudgement::NotStarted, Some(&later), false),
            (TurnJudgement::NotStarted, None, true),
            (accepted("A.md"), Some(&due), false),
            (accepted("A.md"), None, true),
            (failed(FailureCause::Crash), Some(&due), false),
        ];
        for (judgement, due, expected) in table {
            let report = report(judgement);
            assert_eq!(report.returns_permit(due), expected, "{report:?}, {due:?}");
        }
    }

    #[test]
    fn only_answers_and_throttling_tell_the_load() {
        let table = [
            (accepted("A.md"), LoadSign::Answered),
            (violated(), LoadSign::Answered),
            (failed(FailureCause::Throttle), LoadSign::Throttled),
            (failed(FailureCause::Crash), LoadSign::Nothing),
            (TurnJudgement::NotStarted, LoadSign::Nothing),
        ];
        for (judgement, sign) in table {
            assert_eq!(report(judgement).load_sign(), sign);
        }
    }
}
