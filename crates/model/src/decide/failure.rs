//! Decisions on failed and retried turns, stopped agents, endless scripts, plug-in verdicts and spent budgets.

use super::{TurnJudgement, step_finished};
use crate::agent::{Agent, AgentOptions};
use crate::budget::BudgetScope;
use crate::consult::{ConsultVerdict, PluginVerdict, SHORTEST_HOLD_MS, StopScope, strictest};
use crate::decide::{AcceptedTransition, NondeterministicInputs, TurnReport, settled};
use crate::event::{AgentFailed, AgentParked, Event, StepFinished, TurnFailed, TurnHeld};
use crate::id::{Folder, SessionId, StateName, StepMode};
use crate::money::Usd;
use crate::restart::{RestartContext, RestartDecision, decide_restart};
use crate::retry::{RetriedAgent, RetryError, RetrySelection, plan_retry};
use crate::run::{PauseReason, Run, RunStatus};
use crate::supervision::{OnExhausted, SupervisionPolicy};
use crate::time::Timestamp;
use crate::transition::{OverruledTransition, Transition};
use crate::turn::{FailureCause, TurnCost, TurnFailure, TurnId};

pub(super) fn turn_failed(
    run: &Run,
    agent: &Agent,
    failure: &TurnFailure,
    report: &TurnReport,
    inputs: NondeterministicInputs,
) -> Vec<Event> {
    let supervision = run.supervision_of(agent);
    let decision = decide_restart(agent, failure, restart_context(run, &supervision, &inputs));
    let cost = settled(run, report, agent.prompt());
    let again = |not_before, counts| {
        Event::TurnFailed(TurnFailed {
            turn: report.turn.clone(),
            state: agent.prompt().clone(),
            cause: failure.cause,
            message: failure.message.clone(),
            cost: cost.clone(),
            session: (failure.cause != FailureCause::Panic).then_some(inputs.session),
            not_before,
            counts,
        })
    };
    let ended = |why| FailedTurn {
        turn: report.turn.clone(),
        state: agent.prompt().clone(),
        folder: agent.folder(),
        cause: failure.cause,
        cost: cost.clone(),
        why,
    };
    match decision {
        RestartDecision::Retry { not_before, counts } => vec![again(not_before, counts)],
        // Of several turns with the same obstacle, the first pauses the run.
        RestartDecision::Pause(_) if run.status != RunStatus::Running => vec![again(None, false)],
        RestartDecision::Pause(pause) => vec![again(None, false), Event::RunPaused { pause }],
        RestartDecision::GiveUp => vec![ended(failure.message.clone()).fail(false)],
        RestartDecision::AwaitLimit { .. } if run.limited(inputs.now).is_some() => {
            vec![again(None, false)]
        }
        RestartDecision::AwaitLimit { until } => {
            let message = failure.message.clone();
            vec![again(None, false), Event::LimitReached { until, message }]
        }
        RestartDecision::Exhausted { reason, then } => {
            let why = format!("{} ({reason})", failure.message);
            if then == OnExhausted::Wait {
                let first = again(None, false);
                let turn = match &first {
                    Event::TurnFailed(TurnFailed { session: None, .. }) => report.turn.clone(),
                    _ => TurnId { turn: report.turn.turn.saturating_add(1), ..report.turn.clone() },
                };
                vec![first, restarts_exhausted(FailedTurn { turn, ..ended(why) }, then)]
            } else {
                vec![restarts_exhausted(ended(why), then)]
            }
        }
    }
}

pub(super) fn restart_context<'run>(
    run: &Run,
    supervision: &'run SupervisionPolicy,
    inputs: &NondeterministicInputs,
) -> RestartContext<'run> {
    let on_limit = run.settings.on_limit;
    RestartContext { supervision, on_limit, now: inputs.now, chance: inputs.chance }
}

/// An agent that does not continue by itself, at its pending turn.
pub(super) struct FailedTurn {
    pub(super) turn: TurnId,
    pub(super) state: StateName,
    /// The folder of the state below the run's root, if it is another one.
    pub(super) folder: Option<Folder>,
    pub(super) cause: FailureCause,
    pub(super) cost: TurnCost,
    pub(super) why: String,
}

impl FailedTurn {
    pub(super) fn fail(self, ends_run: bool) -> Event {
        Event::AgentFailed(AgentFailed {
            error: format!("in {}: {}", self.state.shown_in(self.folder.as_ref()), self.why),
            turn: self.turn,
            state: self.state,
            cause: self.cause,
            cost: self.cost,
            ends_run,
        })
    }
}

/// Returns the event that follows when the restarts of an agent are used up.
pub(super) fn restarts_exhausted(ended: FailedTurn, then: OnExhausted) -> Event {
    match then {
        OnExhausted::FailAgent => ended.fail(false),
        OnExhausted::FailRun => ended.fail(true),
        OnExhausted::Wait => Event::AgentParked(AgentParked {
            reason: format!("in {}: {}", ended.state.shown_in(ended.folder.as_ref()), ended.why),
            turn: ended.turn,
            state: ended.state,
        }),
    }
}

pub(super) fn give_up(
    agent: &Agent,
    report: &TurnReport,
    cause: FailureCause,
    why: String,
) -> Event {
    FailedTurn {
        turn: report.turn.clone(),
        state: agent.current_state.clone(),
        folder: agent.folder(),
        cause,
        cost: report.cost.clone(),
        why,
    }
    .fail(false)
}

// Retries of failed agents, and the end of an agent that a person stops.

/// Returns the event that retries the chosen agents, each in a new session.
///
/// # Errors
/// [`RetryError`] if the selection chooses none.
pub fn retry_agents(
    run: &Run,
    selection: &RetrySelection,
    mut new_session: impl FnMut() -> SessionId,
) -> Result<Event, RetryError> {
    let plan = plan_retry(run, selection)?;
    let agents = plan.agents.into_iter();
    let agents = agents.map(|planned| RetriedAgent { agent: planned.id, session: new_session() });
    Ok(Event::AgentsRetried { agents: agents.collect() })
}

/// Returns the event that ends an agent which a person has stopped, with the cost of the turn that ran. The outcome of
/// that turn is discarded.
pub(super) fn stopped_with(agent: &Agent, report: &TurnReport) -> Event {
    give_up(agent, report, FailureCause::Stopped, "a person stopped it".to_owned())
}

/// Returns the event that ends an agent which a person has stopped, and of which nothing runs; `None` if nobody has.
pub fn stopped(agent: &Agent) -> Option<Event> {
    let is_ending = agent.orders.is_ending;
    is_ending.then(|| stopped_with(agent, &TurnReport::empty(agent.turn_id())))
}

// The bound of circles that are made only of scripts: no turn, and so no budget, would end them.

/// The most scripts that an agent runs in a row, with those of the agents that forked it. A turn of Claude Code or an
/// answer of a person resets the count. The limit is the number of nodes that a graph may pass.
pub const MAX_SCRIPTS_IN_A_ROW: u32 = 10_000;

/// Returns the failure of an agent whose scripts lead to each other without end; `None` for any other step.
pub(super) fn end_script_circle(
    agent: &Agent,
    accepted: &AcceptedTransition,
    report: &TurnReport,
) -> Option<Event> {
    let goes_on = !matches!(accepted.transition, Transition::Result { .. });
    let is_over = agent.script_steps.saturating_add(1) >= MAX_SCRIPTS_IN_A_ROW;
    (agent.current_state.steps() == Some(StepMode::Tagged)
        && agent.advances_itself()
        && goes_on
        && is_over).then(|| {
        let why = format!(
            "{MAX_SCRIPTS_IN_A_ROW} scripts ran in a row, without a turn of Claude Code or an answer of a person between them, and no more may; lead the circle to a <result>, or through a prompt"
        );
        give_up(agent, report, FailureCause::Workflow, why)
    })
}

// Decisions that follow from plug-in verdicts and from budgets.
//
// A verdict is recorded with its effect: an override in the step it makes, a stop in the agent's end or the run's
// pause, a hold as a separate record. After a step without a turn, the next turn is held for a moment, so that a
// plug-in that keeps moving agents does not flood the journal.

/// Takes a transition, as far as plug-ins allow.
pub(super) fn apply_verdicts(
    run: &Run,
    agent: &Agent,
    mut accepted: AcceptedTransition,
    report: &TurnReport,
    chosen: NondeterministicInputs,
) -> Vec<Event> {
    let now = chosen.now;
    let Some(PluginVerdict { by, verdict }) = strictest(report.verdicts.clone()) else {
        return step_finished(run, agent, &accepted, report, chosen);
    };
    match verdict {
        ConsultVerdict::Proceed | ConsultVerdict::Allow { .. } | ConsultVerdict::Deny { .. } => {
            step_finished(run, agent, &accepted, report, chosen)
        }
        ConsultVerdict::Override { transition, reason } => {
            overrule(&mut accepted, transition, &by, reason);
            step_finished(run, agent, &accepted, report, chosen)
        }
        ConsultVerdict::Stop { reason, scope: StopScope::Agent } => {
            vec![stopped_by_plugin(agent, report, &by, &reason)]
        }
        ConsultVerdict::Stop { reason, scope: StopScope::Run } => {
            let mut events = step_finished(run, agent, &accepted, report, chosen);
            if continues(run, agent, &events) {
                events.push(Event::RunPaused { pause: pause(by, &reason) });
            }
            events
        }
        ConsultVerdict::Hold { until, reason } => {
            let mut events = step_finished(run, agent, &accepted, report, chosen);
            events.extend(pause_after(agent, &events, by, no_sooner(until, now), reason));
            events
        }
    }
}

fn pause(plugin: String, reason: &str) -> PauseReason {
    let because = if reason.is_empty() { "it stopped the run without a reason" } else { reason };
    PauseReason::Plugin { plugin, reason: because.to_owned() }
}

/// Holds back the turn after a step, if there is one.
fn pause_after(
    agent: &Agent,
    events: &[Event],
    by: String,
    until: Timestamp,
    reason: String,
) -> Option<Event> {
    let [Event::StepFinished(step)] = events else { return None };
    let state = next_state(agent, step)?;
    let turn = TurnId { step: step.turn.step.saturating_add(1), turn: 0, ..step.turn.clone() };
    Some(Event::TurnHeld(TurnHeld { turn, state, by, until, reason }))
}

/// Decides on a turn that did not start because plug-ins objected.
pub(super) fn not_started(
    run: &Run,
    agent: &Agent,
    report: &TurnReport,
    chosen: NondeterministicInputs,
) -> Vec<Event> {
    let Some(PluginVerdict { by, verdict }) = strictest(report.verdicts.clone()) else {
        return Vec::new();
    };
    match verdict {
        ConsultVerdict::Proceed | ConsultVerdict::Allow { .. } | ConsultVerdict::Deny { .. } => {
            Vec::new()
        }
        ConsultVerdict::Hold { until, reason } => vec![Event::TurnHeld(TurnHeld {
            turn: report.turn.clone(),
            state: agent.current_state.clone(),
            by,
            until: no_sooner(until, chosen.now),
            reason,
        })],
        ConsultVerdict::Override { transition, reason } => {
            let asked = agent.proposal().map(|proposal| proposal.transition.clone());
            let overruled = Some(Box::new(OverruledTransition { asked, by: plug_in(&by), reason }));
            let accepted = AcceptedTransition { transition, implicit: false, overruled };
            let until = chosen.now.plus(SHORTEST_HOLD_MS);
            let mut events = step_finished(run, agent, &accepted, report, chosen);
            events.extend(pause_after(agent, &events, by, until, String::new()));
            events
        }
        ConsultVerdict::Stop { reason, scope: StopScope::Agent } => {
            vec![stopped_by_plugin(agent, report, &by, &reason)]
        }
        ConsultVerdict::Stop { reason, scope: StopScope::Run } => {
            vec![Event::RunPaused { pause: pause(by, &reason) }]
        }
    }
}

/// Ends an agent whose turn cannot start because its budget is spent. If the turn is its evaluator's, the proposed
/// transition is taken without a check, because it is paid for. `child_options` holds the settings of the agent that
/// it forks, if it does, `call_budget_usd` the budget of the call that it makes.
pub fn out_of_money(
    run: &Run,
    agent: &Agent,
    whose: &BudgetScope,
    child_options: AgentOptions,
    call_budget_usd: Option<Usd>,
    chosen: NondeterministicInputs,
) -> Vec<Event> {
    let Some(proposal) = agent.proposal() else { return vec![without_money(run, agent, whose)] };
    let (transition, implicit) = (proposal.transition.clone(), proposal.implicit);
    let empty = TurnReport::empty(agent.turn_id());
    let report = TurnReport { child_options, call_budget_usd, ..empty };
    let accepted = AcceptedTransition { transition, implicit, overruled: None };
    step_finished(run, agent, &accepted, &report, chosen)
}

fn without_money(run: &Run, agent: &Agent, whose: &BudgetScope) -> Event {
    let amounts = |limit: Usd, spent: Usd| format!("of {limit} is used up: {spent} spent");
    let why = match whose {
        BudgetScope::Run => {
            let limit = run.settings.budget_usd.unwrap_or_default();
            format!("the run's budget {}", amounts(limit, run.total_cost_usd))
        }
        BudgetScope::Share(owner) => {
            let share = run.shares.get(owner);
            let amounts =
                share.map_or(String::new(), |share| amounts(share.limit_usd, share.spent_usd));
            let state = run.agents.get(owner).map(|owner| owner.spec.state.clone());
            let place = state.map_or(String::new(), |state| format!(" (`budget` in {state})"));
            if *owner == agent.id {
                format!("its budget {amounts}{place}")
            } else {
                format!("the budget of {owner}, for it and all it forks, {amounts}{place}")
            }
        }
        BudgetScope::Call { caller, depth } => {
            let calls = run.budget().calls.around(&agent.id);
            let call = calls.iter().find(|call| (call.caller, call.depth) == (caller, *depth));
            let spent = call.map(|call| {
                let amounts = amounts(call.budget.limit_usd, call.budget.spent_usd);
                format!(" {amounts} (`budget` in {})", call.budget.state)
            });
            let spent = spent.unwrap_or_default();
            if *caller == agent.id {
                format!("the budget of its call{spent}")
            } else {
                format!("the budget of a call by {caller}{spent}")
            }
        }
    };
    FailedTurn {
        turn: agent.turn_id(),
        state: agent.current_state.clone(),
        folder: agent.folder(),
        cause: FailureCause::Budget,
        cost: TurnCost::default(),
        why,
    }
    .fail(false)
}

/// Replaces the accepted transition; the transition that was asked for first stays on record.
fn overrule(accepted: &mut AcceptedTransition, transition: Transition, by: &str, reason: String) {
    let asked = std::mem::replace(&mut accepted.transition, transition);
    let first = accepted.overruled.take().and_then(|overruled| overruled.asked);
    let overruled = OverruledTransition { asked: first.or(Some(asked)), by: plug_in(by), reason };
    accepted.overruled = Some(Box::new(overruled));
    accepted.implicit = false;
}

fn plug_in(name: &str) -> String {
    format!("the plug-in {name}")
}

fn stopped_by_plugin(agent: &Agent, report: &TurnReport, by: &str, reason: &str) -> Event {
    let what = match report.judgement {
        TurnJudgement::NotStarted => "did not let its turn start",
        _ => "did not let it take its transition",
    };
    FailedTurn {
        turn: report.turn.clone(),
        state: agent.current_state.clone(),
        folder: agent.folder(),
        cause: FailureCause::Stopped,
        cost: report.cost.clone(),
        why: if reason.is_empty() {
            format!("{} {what}, without a reason", plug_in(by))
        } else {
            format!("{} {what}: {reason}", plug_in(by))
        },
    }
    .fail(false)
}

/// Returns whether any agent is left after these events.
fn continues(run: &Run, agent: &Agent, events: &[Event]) -> bool {
    let ends = |event: &Event| match event {
        Event::StepFinished(step) if matches!(step.transition, Transition::Ask { .. }) => false,
        Event::StepFinished(step) => next_state(agent, step).is_none(),
        Event::AgentFailed(_) => true,
        _ => false,
    };
    !events.iter().any(Event::ends_run) && (run.agents.len() > 1 || !events.iter().any(ends))
}

/// Returns the state whose turn is due after a step; `None` if the agent has ended, or waits for an answer.
fn next_state(agent: &Agent, step: &StepFinished) -> Option<StateName> {
    match &step.transition {
        Transition::Result { .. } => match agent.stack.last() {
            Some(frame) => Some(frame.state.clone()),
            None => step.restarted.is_some().then(|| agent.spec.state.clone()),
        },
        transition => transition.next_state().cloned(),
    }
}

fn no_sooner(until: Timestamp, now: Timestamp) -> Timestamp {
    until.max(now.plus(SHORTEST_HOLD_MS))
}

#[cfg(test)]
mod script_circle_tests {
    use super::*;
    use crate::id::StateName;
    use crate::tests::scene::{Scene, goto, result};
    use crate::transition::Transition;

    fn ends(agent: &Agent, transition: Transition) -> Option<Event> {
        let accepted = AcceptedTransition { transition, implicit: false, overruled: None };
        end_script_circle(agent, &accepted, &TurnReport::empty(agent.turn_id()))
    }

    #[test]
    fn circle_of_scripts_ends_at_its_bound_with_a_clear_error() {
        let scene = Scene::begin();
        let mut agent = scene.agent("main").clone();
        agent.current_state = StateName::parse("A.sh").expect("a state");
        agent.script_steps = MAX_SCRIPTS_IN_A_ROW - 2;
        assert_eq!(ends(&agent, goto("B.sh")), None);
        agent.script_steps += 1;
        let Some(Event::AgentFailed(failed)) = ends(&agent, goto("B.sh")) else { panic!("no end") };
        assert_eq!(failed.cause, FailureCause::Workflow);
        assert!(
            failed.error.starts_with("in A.sh: 10000 scripts ran in a row"),
            "{}",
            failed.error
        );
        assert_eq!(ends(&agent, result("x")), None);
        agent.current_state = StateName::parse("A.md").expect("a state");
        assert_eq!(ends(&agent, goto("B.sh")), None);
    }

    #[test]
    fn turn_resets_the_count_of_scripts_and_a_fork_passes_it_on() {
        let mut scene = Scene::begin();
        scene.take("main", goto("A.sh"));
        let script = |scene: &Scene, transition| {
            let mut step = scene.step("main", transition);
            step.without_turn = true;
            Event::StepFinished(step)
        };
        for _ in 0..3 {
            let step = script(&scene, goto("A.sh"));
            scene.happens(step);
        }
        assert_eq!(scene.agent("main").script_steps, 3);
        let fork = crate::tests::scene::tag(crate::transition::TagName::Fork, "NEXT.md", "B.sh");
        let step = script(&scene, fork);
        scene.happens(step);
        assert_eq!((scene.agent("main").script_steps, scene.agent("main.1").script_steps), (4, 4));
        scene.take("main", goto("A.sh"));
        assert_eq!(scene.agent("main").script_steps, 0);
    }
}
