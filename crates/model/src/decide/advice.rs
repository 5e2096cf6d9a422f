//! Decisions that follow from plug-in verdicts and from budgets.
//!
//! A verdict is recorded with its effect: an override in the step it makes, a stop in the agent's end or the run's
//! pause, a hold as a record of its own. After a step without a turn the next turn is held for a moment, so that a
//! plug-in which keeps moving agents does not flood the journal.

use super::failure::FailedTurn;
use super::{NondeterministicInputs, TurnJudgement, TurnReport, step_finished};
use crate::agent::{Agent, AgentOptions};
use crate::budget::BudgetScope;
use crate::consult::{ConsultVerdict, PluginVerdict, SHORTEST_HOLD_MS, StopScope, strictest};
use crate::evaluation::OverruledTransition;
use crate::event::{Event, StepFinished, TurnHeld};
use crate::id::StateName;
use crate::money::Usd;
use crate::policy::AcceptedTransition;
use crate::run::{PauseReason, Run};
use crate::time::Timestamp;
use crate::transition::Transition;
use crate::turn::TurnCost;
use crate::turn::{FailureCause, TurnId};

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
    (child_options, call_budget_usd): (AgentOptions, Option<Usd>),
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
        TurnJudgement::Accepted(_)
        | TurnJudgement::Proposed { .. }
        | TurnJudgement::JoinDue(_)
        | TurnJudgement::Violated { .. }
        | TurnJudgement::Advanced(_)
        | TurnJudgement::Failed(_) => "did not let it take its transition",
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
        Transition::Fork { next, .. } => Some(next.clone()),
        Transition::Result { .. } => match agent.stack.last() {
            Some(frame) => Some(frame.state.clone()),
            None => step.restarted.is_some().then(|| agent.spec.state.clone()),
        },
        Transition::Goto { target, .. }
        | Transition::Reset { target, .. }
        | Transition::Call { target, .. }
        | Transition::Function { target, .. } => Some(target.clone()),
        Transition::Ask { .. } => None,
    }
}

fn no_sooner(until: Timestamp, now: Timestamp) -> Timestamp {
    until.max(now.plus(SHORTEST_HOLD_MS))
}
