//! From what a turn came to, to the events that are recorded.
//!
//! The agent reports, this decides, the supervisor appends. What must be chosen at random or read
//! from a clock comes in as [`NondeterministicInputs`], so the decision itself can be replayed in a test.

mod advice;
mod failure;
mod fork;
mod graph;
mod program;

pub use self::advice::out_of_money;
use self::advice::{advised, not_started};
use self::failure::{FailedTurn, circumstances, exhausted_by, failed, give_up};
pub use self::fork::joined;
use self::fork::{arrived, born, refused};
pub use self::graph::{AnswerError, answer, answered_at_last, timed_out};
use self::graph::{answered_ahead, walked};
use self::program::responded;
pub use self::program::{ProgramStart, begun, conducted, delegated, dismissed, heard_out};
use super::agent::{Agent, AgentTerms};
use super::consult::PluginVerdict;
use super::event::{Event, PermanentRestart, StepFinished, TransitionProposed, TurnRejected};
use super::fan_out::ForkGroup;
use super::id::{MessageId, SessionId, StateName};
use super::join::Join;
use super::money::Usd;
use super::policy::{AcceptedTransition, TransitionPolicy};
use super::question::Question;
use super::refusal::ToolRefusals;
use super::restart::{RestartDecision, restart};
use super::run::{Run, UnbilledTurn};
use super::supervision::RestartPolicy;
use super::time::Timestamp;
use super::transition::Transition;
use super::turn::{FailureCause, TurnFailure, TurnId};
use super::usage::UsageByModel;
use super::walk::GraphAdvance;

/// What an agent tells the supervisor at the end of a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnReport {
    /// The turn that ended.
    pub turn: TurnId,
    /// What it cost.
    pub cost: Usd,
    /// What it took of each model for that.
    pub usage: UsageByModel,
    /// The tools that were refused in it.
    pub refused_tools: ToolRefusals,
    /// How long it took, in milliseconds.
    pub duration_ms: u64,
    /// Its last message.
    pub message: Option<MessageId>,
    /// What came of it.
    pub judgement: TurnJudgement,
    /// Under which terms the agent lives that a plain fork gives birth to.
    pub child: AgentTerms,
    /// Who is born of any other fork.
    pub births: Vec<ForkGroup>,
    /// How long the first of them starts ahead of the others, if the state says so.
    pub stagger_ms: Option<u64>,
    /// What the state allows, of which the agent is reminded if the fork cannot be.
    pub allowed: TransitionPolicy,
    /// What plug-ins say to it.
    pub opinions: Vec<PluginVerdict>,
}

/// What came of a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TurnJudgement {
    /// A transition that the state allows.
    Accepted(AcceptedTransition),
    /// The same, and the state's evaluator is to look at it first.
    Proposed {
        /// The transition.
        accepted: AcceptedTransition,
        /// The reply, or the end of a long one.
        output: String,
        /// The evaluator's prompt.
        evaluator: StateName,
    },
    /// The state waits first for agents that were forked.
    Arrived(Box<Join>),
    /// It did not start: plug-ins had something against it.
    NotStarted,
    /// A reply that breaks the protocol.
    Violated {
        /// What is wrong with it.
        violation: String,
        /// How the agent can be asked to repair it, if the state has a policy.
        reminder: Option<String>,
    },
    /// No turn but a walk over a graph, or a turn whose result took it on.
    Walked(Box<GraphAdvance>),
    /// No reply.
    Failed(TurnFailure),
}

impl TurnReport {
    /// A turn that came to nothing.
    #[must_use]
    pub fn failed(turn: TurnId, failure: TurnFailure) -> Self {
        Self {
            cost: failure.cost,
            usage: failure.usage.clone(),
            refused_tools: failure.refused_tools.clone(),
            judgement: TurnJudgement::Failed(failure),
            ..Self::empty(turn)
        }
    }

    /// A turn of which nothing is known yet but that nobody started it.
    #[must_use]
    pub fn empty(turn: TurnId) -> Self {
        Self {
            turn,
            cost: Usd::ZERO,
            usage: UsageByModel::default(),
            refused_tools: ToolRefusals::default(),
            duration_ms: 0,
            message: None,
            judgement: TurnJudgement::NotStarted,
            child: AgentTerms::default(),
            births: Vec::new(),
            stagger_ms: None,
            allowed: TransitionPolicy::default(),
            opinions: Vec::new(),
        }
    }
}

/// What the actor chooses, because the domain has neither a clock nor chance.
#[derive(Debug, Clone)]
pub struct NondeterministicInputs {
    /// The time.
    pub now: Timestamp,
    /// An id for the session that may have to be opened.
    pub session: SessionId,
    /// The id of one that is ready, if it is opened without any history.
    pub ready: Option<SessionId>,
    /// A number from 0 up to 1.
    pub chance: f64,
}

/// The events that follow from a report, in order; none if it comes late or twice.
#[must_use]
pub fn decide(run: &Run, report: &TurnReport, chosen: NondeterministicInputs) -> Vec<Event> {
    let Some(agent) =
        run.agents.get(&report.turn.agent).filter(|agent| agent.turn_id() == report.turn)
    else {
        return late_cost(run, report);
    };
    match &report.judgement {
        TurnJudgement::Accepted(accepted) => advised(run, agent, accepted.clone(), report, chosen),
        TurnJudgement::NotStarted => not_started(run, agent, report, chosen),
        TurnJudgement::Arrived(join) => arrived(agent, join, report),
        TurnJudgement::Proposed { accepted, output, evaluator } => {
            vec![Event::TransitionProposed(Box::new(TransitionProposed {
                turn: report.turn.clone(),
                state: agent.current_state.clone(),
                transition: accepted.transition.clone(),
                implicit: accepted.implicit,
                output: output.clone(),
                evaluator: evaluator.clone(),
                cost_usd: report.cost,
                usage: report.usage.clone(),
                refused_tools: report.refused_tools.clone(),
                duration_ms: report.duration_ms,
                session_id: agent.session.id.clone(),
                message: report.message.clone(),
                opens: chosen.ready.unwrap_or(chosen.session),
            }))]
        }
        TurnJudgement::Violated { violation, reminder } => {
            vec![repair(run, agent, violation, reminder.as_deref(), report)]
        }
        TurnJudgement::Walked(walk) => walked(run, agent, walk, report, chosen),
        TurnJudgement::Failed(failure) => failed(run, agent, failure, report, chosen),
    }
}

/// A turn that was ended with the whole run, or because nobody needs its agent, is still to be paid for.
/// That nothing is owed for it is recorded of the latter, whose run goes on.
fn late_cost(run: &Run, report: &TurnReport) -> Vec<Event> {
    let owing = run.finished.iter().filter_map(|ended| Some((ended.owes.as_ref()?, ended.cause)));
    let Some((UnbilledTurn { state, .. }, cause)) =
        owing.into_iter().find(|(owed, _)| owed.turn == report.turn)
    else {
        return Vec::new();
    };
    let (cost_usd, estimated) = settled(run, report, state);
    let is_nothing = cost_usd == Usd::ZERO && !estimated && report.refused_tools.is_empty();
    if is_nothing && cause != Some(FailureCause::Unneeded) {
        return Vec::new();
    }
    vec![Event::CostCounted {
        turn: report.turn.clone(),
        cost_usd,
        estimated,
        usage: report.usage.clone(),
        refused_tools: report.refused_tools.clone(),
    }]
}

/// What a turn has cost, and whether that is only an estimate: of one that was ended while the model
/// was at work, nobody says what it did cost, and it counts as the dearest of its kind.
fn settled(run: &Run, report: &TurnReport, state: &StateName) -> (Usd, bool) {
    match &report.judgement {
        TurnJudgement::Failed(failure) if failure.unsettled => {
            (report.cost.max(run.purse().reckon(state)), true)
        }
        _ => (report.cost, false),
    }
}

fn step_finished(
    run: &Run,
    agent: &Agent,
    accepted: &AcceptedTransition,
    report: &TurnReport,
    chosen: NondeterministicInputs,
) -> Vec<Event> {
    if let Some(service) = &agent.serves {
        return vec![responded(agent, service, accepted, report)];
    }
    if let Some(instead) = refused(run, agent, accepted, report) {
        return vec![instead];
    }
    let ends = matches!(accepted.transition, Transition::Result { .. }) && agent.stack.is_empty();
    let supervision = run.supervision_of(agent);
    let (reborn, exhausted) = if ends && supervision.restart == RestartPolicy::Permanent {
        match restart(agent, circumstances(run, &supervision, &chosen)) {
            RestartDecision::Exhausted { because, then } => {
                (Some(chosen.now), Some((because, then)))
            }
            RestartDecision::Again { not_before, .. } => {
                (Some(not_before.unwrap_or(chosen.now)), None)
            }
            _ => (None, None),
        }
    } else {
        (None, None)
    };
    let opens = match accepted.transition {
        Transition::Goto { .. } | Transition::Ask { .. } => None,
        Transition::Call { .. } => Some(chosen.session),
        Transition::Result { .. } if reborn.is_none() => None,
        Transition::Fork { .. } if !report.births.is_empty() => None,
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
        unasked: matches!(report.judgement, TurnJudgement::NotStarted | TurnJudgement::Walked(_)),
        evaluator: agent.proposal.as_ref().map(|proposal| proposal.evaluator.clone()),
        cost_usd: report.cost,
        usage: report.usage.clone(),
        refused_tools: report.refused_tools.clone(),
        duration_ms: report.duration_ms,
        session_id: agent.turn_session().id.clone(),
        message: report.message.clone(),
        opens,
        terms: Box::new(report.child.clone()),
        born: born(run, accepted, report, chosen.now),
        reborn: reborn.map(|not_before| PermanentRestart { not_before }),
    });
    let next = TurnId { step: agent.step.saturating_add(1), turn: 0, ..report.turn.clone() };
    let Some((because, then)) = exhausted else {
        return match Question::of(&accepted.transition) {
            Some((question, state)) => {
                let ahead = answered_ahead(run, &question, &next, state);
                std::iter::once(finished).chain(ahead).collect()
            }
            None => vec![finished],
        };
    };
    let ended = FailedTurn {
        turn: next,
        state: agent.birth.state.clone(),
        cause: FailureCause::Restarts,
        cost_usd: Usd::ZERO,
        estimated: false,
        usage: UsageByModel::default(),
        refused_tools: ToolRefusals::default(),
        why: format!("it ended once more, and is permanent ({because}; max_restarts allows more)"),
    };
    vec![finished, exhausted_by(ended, then)]
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
            cost_usd: report.cost,
            usage: report.usage.clone(),
            refused_tools: report.refused_tools.clone(),
            duration_ms: report.duration_ms,
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
                agent.current_state
            ),
        ),
    }
}

#[cfg(test)]
mod tests;
