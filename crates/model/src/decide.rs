//! Decisions: from the result of a turn to the events that are recorded.
//!
//! The agent reports, this module decides, the supervisor appends. Random choices and clock readings come in as
//! [`NondeterministicInputs`], so the decision itself can be replayed in a test.

mod advance;
mod advice;
mod approvals;
mod failure;
mod join;
mod program;
mod questions;
mod report_effects;

use self::advance::advanced;
pub use self::advice::out_of_money;
use self::advice::{apply_verdicts, not_started};
pub use self::approvals::{advised_answer, approval_asked, prompt_place, ruled_answers};
use self::approvals::{approval_answered, turn_suspended};
pub use self::failure::MAX_SCRIPTS_IN_A_ROW;
use self::failure::end_script_circle;
pub use self::failure::retry_agents;
pub use self::failure::stopped;
use self::failure::stopped_with;
use self::failure::{FailedTurn, give_up, restart_context, restarts_exhausted, turn_failed};
use self::join::begin_join;
pub use self::join::finish_join;
use self::join::{fork_groups, reject_fork};
use self::program::role_responded;
pub use self::program::{ProgramStart, program_started, role_event};
#[cfg(test)]
use self::program::{delegated_answer, role_delegated, role_stopped};
pub use self::questions::message_read;
use self::questions::prepared_answer;
pub use self::questions::{AnswerError, answer, first_prepared_answer, timed_out};
pub use self::report_effects::LoadSign;
use self::report_effects::late_cost;
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
use super::supervision::RestartPolicy;
use super::time::Timestamp;
use super::transition::Transition;
use super::turn::{FailureCause, TurnFailure, TurnId};
use super::worktree_snapshot::WorktreeSnapshot;
use crate::session::KeptSession;
use crate::settings::ForkGroup;
use crate::turn::TurnCost;

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
        /// The violation.
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
    let (restart_at, exhausted) = if ends && supervision.restart == RestartPolicy::Permanent {
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
    let is_call =
        matches!(accepted.transition, Transition::Call { .. } | Transition::Function { .. });
    let new_session = match accepted.transition {
        Transition::Goto { .. } | Transition::Ask { .. } => None,
        Transition::Call { .. } => Some(chosen.session),
        Transition::Result { .. } if restart_at.is_none() => None,
        Transition::Fork { .. } if !report.children.is_empty() => None,
        Transition::Result { .. }
        | Transition::Reset { .. }
        | Transition::Function { .. }
        | Transition::Fork { .. } => Some(chosen.ready.unwrap_or(chosen.session)),
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

#[cfg(test)]
mod tests;
