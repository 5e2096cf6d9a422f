//! Decisions on joins and forks, on the answers to people's questions, and on messages that a running turn reads.
//!
//! A join is an agent's wait for those it has forked. Its beginning and its end are decided here.

use std::collections::HashSet;

use crate::agent::Agent;
use crate::decide::failure::FailedTurn;
use crate::decide::{TurnJudgement, TurnReport, approval_answered, give_up, repair};
use crate::event::{
    Event, JoinBegun, JoinFinished, QuestionAnswered, QuestionTimedOut, StoppedChild,
};
use crate::id::{AgentId, MessageId, StateName};
use crate::join::{Join, JoinFallback, JoinOutcome, JoinTally, UnjoinedChildren, UnjoinedPolicy};
use crate::policy::{AcceptedTransition, ProtocolViolation, reminder};
use crate::question::{Answer, AnswerCommand, InvalidAnswer, Question};
use crate::run::{AgentEnding, PauseReason, Run};
use crate::settings::{ForkGroup, forked_count};
use crate::time::{Timestamp, format_duration};
use crate::transition::Transition;
use crate::turn::{FailureCause, TurnCost, TurnId};

/// The maximum number of failed agents that are named.
const MAX_NAMED_FAILURES: usize = 12;

/// Begins the join of an agent in a state that waits for those it has forked.
pub(super) fn begin_join(agent: &Agent, join: &Join, report: &TurnReport) -> Vec<Event> {
    if !agent.stage.is_first() {
        return Vec::new();
    }
    let (turn, state) = (report.turn.clone(), agent.current_state.clone());
    vec![Event::JoinBegun(Box::new(JoinBegun { turn, state, join: join.clone() }))]
}

/// Returns the events that end an agent's join, or none while it is open. `at_work` returns whether an agent is at
/// a turn.
pub fn finish_join(
    run: &Run,
    agent: &Agent,
    now: Timestamp,
    at_work: &dyn Fn(&AgentId) -> bool,
) -> Vec<Event> {
    let Some(pending) = agent.pending_join() else { return Vec::new() };
    let tally = agent.unjoined.tally(agent.join_depth());
    let is_late = pending.until().is_some_and(|until| until <= now);
    let outcome = pending.join.outcome(tally).or(is_late.then_some(JoinOutcome::Late));
    let Some(outcome) = outcome else { return Vec::new() };
    let stopped = unneeded(run, agent, &pending.join)
        .map(|agent| StoppedChild { at_work: at_work(agent), agent: agent.clone() });
    end_join(run, agent, &pending.join, outcome, tally, stopped.collect())
}

fn end_join(
    run: &Run,
    agent: &Agent,
    join: &Join,
    outcome: JoinOutcome,
    tally: JoinTally,
    stopped: Vec<StoppedChild>,
) -> Vec<Event> {
    let fallback = join.fallback(outcome);
    let enters = match fallback {
        JoinFallback::State(state) => Some(state.clone()),
        JoinFallback::Fail | JoinFallback::Keep => None,
    };
    let joined = Event::JoinFinished(Box::new(JoinFinished {
        turn: agent.turn_id(),
        state: agent.current_state.clone(),
        outcome,
        tally,
        enters,
        stopped,
    }));
    let failed = (*fallback == JoinFallback::Fail).then(|| {
        FailedTurn {
            turn: agent.turn_id(),
            state: agent.current_state.clone(),
            folder: agent.folder(),
            cause: FailureCause::Join,
            cost: TurnCost::default(),
            why: unmet_reason(run, agent, join, outcome, tally),
        }
        .fail(false)
    });
    std::iter::once(joined).chain(failed).collect()
}

/// Returns the live agents that a join stops: children it does without, and all their descendants.
fn unneeded<'run>(
    run: &'run Run,
    agent: &Agent,
    join: &Join,
) -> impl Iterator<Item = &'run AgentId> {
    let depth = agent.join_depth();
    let numbers = agent.unjoined.numbers(depth);
    let roots: HashSet<AgentId> = numbers
        .map(|number| agent.id.child(number))
        .filter(|child| join.rest == UnjoinedPolicy::Stop && run.agents.contains_key(child))
        .collect();
    let live = (!roots.is_empty()).then(|| run.agents.keys());
    let is_below = move |id: &&AgentId| id.lineage().any(|above| roots.contains(above));
    live.into_iter().flatten().filter(is_below)
}

/// Returns the reason a join was not met.
fn unmet_reason(
    run: &Run,
    agent: &Agent,
    join: &Join,
    outcome: JoinOutcome,
    tally: JoinTally,
) -> String {
    let JoinTally { count, done, failed } = tally;
    let wanted = join.need;
    if outcome == JoinOutcome::Late {
        let time = format_duration(join.timeout_ms.unwrap_or_default());
        return format!(
            "{done} of the {count} agents it waited for had finished after {time} (join: {wanted}); on_timeout: keep continues with those"
        );
    }
    if count < join.needs(count) {
        return format!(
            "it waits for {wanted} of its forked agents, but has forked {}; fork them first, or use join: all",
            if count == 0 { "none".to_owned() } else { format!("only {count}") }
        );
    }
    format!(
        "{failed} of the {count} agents it waited for failed (join: {wanted}): {}; on_failure: keep continues without them",
        first_failed(run, agent, &agent.unjoined)
    )
}

/// Returns the ids of the first agents that failed. Each has reported its own reason.
fn first_failed(run: &Run, agent: &Agent, forks: &UnjoinedChildren) -> String {
    let failed = run.finished.iter().filter(|ended| {
        ended.id.parent() == Some(agent.id.as_str())
            && forks.contains(ended.id.number())
            && matches!(ended.ending, AgentEnding::Error(_))
    });
    let failed: Vec<&str> = failed.map(|ended| ended.id.as_str()).collect();
    match failed.split_at_checked(MAX_NAMED_FAILURES) {
        Some((named, more)) if !more.is_empty() => {
            format!("{} and {} more", named.join(", "), more.len())
        }
        _ => failed.join(", "),
    }
}

// Forks: the children, and their maximum number.

/// Returns the pause of the run if `more` further agents do not fit into it now.
pub(super) fn no_room(run: &Run, more: usize) -> Option<PauseReason> {
    let (live, limit) = (run.agents.len(), run.settings.forking.max_agents);
    let fits = live.saturating_add(more) <= usize::try_from(limit).unwrap_or(usize::MAX);
    (!fits).then_some(PauseReason::Agents { live, more, limit })
}

/// Returns the event that replaces an impossible fork. Without room for the children, the agent may fork fewer, if its
/// state has a policy to remind it of. Otherwise the run pauses: failing the agent would only make room for the next
/// agent that forks without end. Its turn is judged again when the run resumes, so no paid work is lost.
pub(super) fn reject_fork(
    run: &Run,
    agent: &Agent,
    accepted: &AcceptedTransition,
    report: &TurnReport,
) -> Option<Event> {
    let transition = &accepted.transition;
    let Transition::Fork { .. } = transition else { return None };
    if report.children.is_empty() && !transition.is_plain_fork() {
        let why = "only a reply can fork several agents at once, or into separate directories";
        let (asked, why) = (transition.in_short(), why.to_owned());
        let violation = ProtocolViolation::Fork { asked, why };
        return Some(give_up(agent, report, FailureCause::Protocol, violation.to_string()));
    }
    let pause = no_room(run, forked_count(&report.children))?;
    let why = format!("no room: {pause} (--max-agents)");
    let violation = ProtocolViolation::Fork { asked: transition.in_short(), why };
    let reminder = reminder(&report.allowed, &violation);
    let reminder = reminder.filter(|_| report.judgement != TurnJudgement::NotStarted);
    match repair(run, agent, &violation.to_string(), reminder.as_deref(), report) {
        rejected @ Event::TurnRejected(_) => Some(rejected),
        _ => Some(Event::RunPaused { pause }),
    }
}

/// Returns the children of a step; all but the first of a group start later.
pub(super) fn fork_groups(
    run: &Run,
    accepted: &AcceptedTransition,
    report: &TurnReport,
    now: Timestamp,
) -> Vec<ForkGroup> {
    let Transition::Fork { .. } = &accepted.transition else { return Vec::new() };
    let stagger = report.stagger_ms.unwrap_or(run.settings.forking.stagger_ms);
    let mut groups = report.children.clone();
    if stagger > 0 {
        for group in groups.iter_mut().filter(|group| group.agents.len() > 1) {
            group.not_before = Some(now.plus(stagger));
        }
    }
    groups
}

// The answers to people's questions, and those that come too late.

/// Returns the answer to a question that was given before it was asked.
pub(super) fn prepared_answer(
    run: &Run,
    question: &Question,
    turn: &TurnId,
    state: &StateName,
) -> Option<Event> {
    let (answer, used) = run.prepared_answer(question)?;
    Some(Event::QuestionAnswered(QuestionAnswered {
        turn: turn.clone(),
        state: state.clone(),
        node: question.node.clone(),
        answer,
        used_answers: Some(used),
    }))
}

/// The reason an answer is rejected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AnswerError {
    /// No question waits for it.
    #[error("no open question {node}{}", waiting(.open))]
    NoQuestion {
        /// The name.
        node: String,
        /// The questions that wait, as `agent/name`.
        open: Vec<String>,
    },
    /// More than one agent asks under that name.
    #[error("several agents ask {node}: name one, as {}", .agents.iter().map(|agent| format!("{agent}/{node}=…")).collect::<Vec<_>>().join(" or "))]
    Several {
        /// The name.
        node: String,
        /// The agents that ask.
        agents: Vec<AgentId>,
    },
    /// The question it was given to is closed; the same question is asked again.
    #[error("{agent}/{node} has been answered before, and is asked again")]
    Again {
        /// The agent that asks.
        agent: AgentId,
        /// The name it asks under.
        node: String,
    },
    /// The answer is not valid.
    #[error(transparent)]
    Invalid(#[from] InvalidAnswer),
}

fn waiting(open: &[String]) -> String {
    if open.is_empty() {
        return "; there are none at all".to_owned();
    }
    format!("; open questions: {}", open.join(", "))
}

/// Returns the event of an answer to a question.
///
/// # Errors
/// [`AnswerError`] if the answer is rejected.
pub fn answer(run: &Run, given: &AnswerCommand) -> Result<Event, AnswerError> {
    if let Some(approval) = approval_answered(run, given) {
        return approval;
    }
    let AnswerCommand { agent, step, node, text } = given;
    let open = || run.agents.values().filter_map(|asking| Some((asking, asking.question()?)));
    let matching = run.agents.matching(agent.as_ref()).into_iter();
    let mut waiting = matching.filter_map(|asking| {
        Some((asking, asking.question().filter(|asked| asked.question.node == *node)?))
    });
    let Some((asking, asked)) = waiting.next() else {
        let questions =
            open().map(|(asking, asked)| format!("{}/{}", asking.id, asked.question.node));
        let approvals = run.agents.values().flat_map(|asking| {
            asking.open_approvals().map(|asked| format!("{}/{}", asking.id, asked.name()))
        });
        let open = questions.chain(approvals).collect();
        return Err(AnswerError::NoQuestion { node: node.clone(), open });
    };
    let others: Vec<AgentId> = waiting.map(|(asking, _)| asking.id.clone()).collect();
    if !others.is_empty() {
        let agents = std::iter::once(asking.id.clone()).chain(others).collect();
        return Err(AnswerError::Several { node: node.clone(), agents });
    }
    if step.is_some_and(|step| step != asking.step) {
        return Err(AnswerError::Again { agent: asking.id.clone(), node: node.clone() });
    }
    Ok(answered(asking, node, asked.question.read(text)?, None))
}

/// Returns the event for a waiting question that an answer given ahead of time now fits. Call it again once that
/// event is recorded.
pub fn first_prepared_answer(run: &Run) -> Option<Event> {
    let fitting = run.agents.unordered().filter_map(|agent| {
        let question = &agent.question()?.question;
        Some((agent, question, run.prepared_answer(question)?))
    });
    let first = fitting.min_by(|(left, ..), (right, ..)| left.id.cmp_by_number(&right.id));
    first.map(|(agent, question, (answer, used))| {
        answered(agent, &question.node, answer, Some(used))
    })
}

fn answered(agent: &Agent, node: &str, answer: Answer, used_answers: Option<u32>) -> Event {
    Event::QuestionAnswered(QuestionAnswered {
        turn: agent.turn_id(),
        state: agent.current_state.clone(),
        node: node.to_owned(),
        answer,
        used_answers,
    })
}

/// Returns the event of a question that was not answered in time, once its deadline has passed.
pub fn timed_out(agent: &Agent, now: Timestamp) -> Option<Event> {
    let late = agent.question()?.late.as_ref()?;
    (late.at <= now).then(|| {
        Event::QuestionTimedOut(QuestionTimedOut {
            turn: agent.turn_id(),
            state: agent.current_state.clone(),
            enters: late.state.clone(),
        })
    })
}

// Messages of people that a running turn reads.

/// Returns the event of a message that a running turn has read; `None` if its turn is over, or if it is not a waiting
/// message of a person.
pub fn message_read(run: &Run, turn: &TurnId, message: &MessageId) -> Option<Event> {
    let agent = run.agents.get(&turn.agent).filter(|agent| agent.turn_id() == *turn)?;
    let is_read = |id: &MessageId| id == message;
    let mut waiting = agent.orders.messages.iter().filter(|message| !message.is_taken);
    waiting
        .any(|waiting| waiting.id.as_ref().is_some_and(is_read))
        .then(|| Event::MessagesTaken { turn: turn.clone(), message: Some(message.clone()) })
}
