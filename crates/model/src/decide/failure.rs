//! Decisions on failed turns, and the records of agents that do not continue.
//!
//! The decision to retry failed agents.
//!
//! The bound of circles that are made only of scripts: no turn, and so no budget, would end them.
//!
//! The end of an agent that a person stops.

use crate::agent::Agent;
use crate::decide::report_effects::settled;
use crate::decide::{AcceptedTransition, NondeterministicInputs, TurnReport};
use crate::event::{AgentFailed, AgentParked, Event, TurnFailed};
use crate::id::{Folder, SessionId, StateName, StepMode};
use crate::restart::{RestartContext, RestartDecision, decide_restart};
use crate::retry::{RetriedAgent, RetryError, RetrySelection, plan_retry};
use crate::run::{Run, RunStatus};
use crate::supervision::{OnExhausted, SupervisionPolicy};
use crate::transition::Transition;
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

/// An agent that does not continue by itself, at the turn that is due.
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

/// Returns the event with which the chosen agents live again, each in a new session.
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

/// Returns the event that ends an agent which a person has stopped, with the cost of the turn that ran. Whatever that turn
/// led to is not taken.
pub(super) fn stopped_with(agent: &Agent, report: &TurnReport) -> Event {
    give_up(agent, report, FailureCause::Stopped, "a person stopped it".to_owned())
}

/// Returns the event that ends an agent which a person has stopped, and of which nothing runs; `None` if nobody has.
pub fn stopped(agent: &Agent) -> Option<Event> {
    let is_ending = agent.orders.is_ending;
    is_ending.then(|| stopped_with(agent, &TurnReport::empty(agent.turn_id())))
}

/// The most scripts that an agent runs in a row, with those of the agents that forked it. A turn of Claude Code or
/// an answer of a person begins the count anew. It is as many as a graph may pass nodes.
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
    fn turn_begins_the_count_of_scripts_anew_and_a_fork_hands_it_on() {
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
