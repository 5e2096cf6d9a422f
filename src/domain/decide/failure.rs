//! What follows when a turn came to nothing, and how an agent that does not go on is recorded.

use super::{Chosen, Report, settled};
use crate::domain::agent::Agent;
use crate::domain::event::{AgentFailed, AgentParked, Event, TurnFailed};
use crate::domain::id::StateName;
use crate::domain::money::Usd;
use crate::domain::refusal::ToolRefusals;
use crate::domain::restart::{Circumstances, Reaction, react};
use crate::domain::run::{Run, Status};
use crate::domain::supervision::{Exhausted, Supervision};
use crate::domain::turn::{Cause, Failure, TurnId};
use crate::domain::usage::Usage;

pub(super) fn failed(
    run: &Run,
    agent: &Agent,
    failure: &Failure,
    report: &Report,
    chosen: Chosen,
) -> Vec<Event> {
    let supervision = run.supervision_of(agent);
    let reaction = react(agent, failure, circumstances(run, &supervision, &chosen));
    let (cost_usd, estimated) = settled(run, report, agent.prompt());
    let again = |not_before, counts| {
        Event::TurnFailed(TurnFailed {
            turn: report.turn.clone(),
            state: agent.prompt().clone(),
            cause: failure.cause,
            message: failure.message.clone(),
            cost_usd,
            estimated,
            usage: report.usage.clone(),
            refused_tools: report.refused_tools.clone(),
            session: (failure.cause != Cause::Panic).then_some(chosen.session),
            not_before,
            counts,
        })
    };
    let ended = |why| Ended {
        turn: report.turn.clone(),
        state: agent.prompt().clone(),
        cause: failure.cause,
        cost_usd,
        estimated,
        usage: report.usage.clone(),
        refused_tools: report.refused_tools.clone(),
        why,
    };
    match reaction {
        Reaction::Again { not_before, counts } => vec![again(not_before, counts)],
        // Of several turns that meet the same, the first pauses the run.
        Reaction::Pause(_) if run.status != Status::Running => vec![again(None, false)],
        Reaction::Pause(pause) => vec![again(None, false), Event::RunPaused { pause }],
        Reaction::GiveUp => vec![ended(failure.message.clone()).fail(false)],
        Reaction::AwaitLimit { .. } if run.limited(chosen.now).is_some() => {
            vec![again(None, false)]
        }
        Reaction::AwaitLimit { until } => {
            let message = failure.message.clone();
            vec![again(None, false), Event::LimitReached { until, message }]
        }
        Reaction::Exhausted { because, then } => {
            let why = format!("{} ({because})", failure.message);
            if then == Exhausted::Wait {
                let first = again(None, false);
                let turn = match &first {
                    Event::TurnFailed(TurnFailed { session: None, .. }) => report.turn.clone(),
                    _ => TurnId { turn: report.turn.turn.saturating_add(1), ..report.turn.clone() },
                };
                vec![first, exhausted_by(Ended { turn, ..ended(why) }, then)]
            } else {
                vec![exhausted_by(ended(why), then)]
            }
        }
    }
}

pub(super) fn circumstances<'run>(
    run: &Run,
    supervision: &'run Supervision,
    chosen: &Chosen,
) -> Circumstances<'run> {
    let on_limit = run.settings.on_limit;
    Circumstances { supervision, on_limit, now: chosen.now, chance: chosen.chance }
}

/// An agent that does not go on by itself, at the turn that is due.
pub(super) struct Ended {
    pub(super) turn: TurnId,
    pub(super) state: StateName,
    pub(super) cause: Cause,
    pub(super) cost_usd: Usd,
    pub(super) estimated: bool,
    pub(super) usage: Usage,
    pub(super) refused_tools: ToolRefusals,
    pub(super) why: String,
}

impl Ended {
    pub(super) fn fail(self, ends_run: bool) -> Event {
        Event::AgentFailed(AgentFailed {
            error: format!("in {}: {}", self.state, self.why),
            turn: self.turn,
            state: self.state,
            cause: self.cause,
            cost_usd: self.cost_usd,
            estimated: self.estimated,
            usage: self.usage,
            refused_tools: self.refused_tools,
            ends_run,
        })
    }
}

/// What follows when the restarts of an agent are used up.
pub(super) fn exhausted_by(ended: Ended, then: Exhausted) -> Event {
    match then {
        Exhausted::FailAgent => ended.fail(false),
        Exhausted::FailRun => ended.fail(true),
        Exhausted::Wait => Event::AgentParked(AgentParked {
            because: format!("in {}: {}", ended.state, ended.why),
            turn: ended.turn,
            state: ended.state,
        }),
    }
}

pub(super) fn give_up(agent: &Agent, report: &Report, cause: Cause, why: String) -> Event {
    Ended {
        turn: report.turn.clone(),
        state: agent.current_state.clone(),
        cause,
        cost_usd: report.cost,
        estimated: false,
        usage: report.usage.clone(),
        refused_tools: report.refused_tools.clone(),
        why,
    }
    .fail(false)
}
