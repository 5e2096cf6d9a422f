//! What a live agent is at, or what keeps it from its next turn.
//!
//! A run alone does not tell whether a turn has begun, and whether somebody carries the run on: who
//! asks has to say so.

use super::agent::Agent;
use super::id::AgentId;
use super::run::{Run, Status};
use super::time::Timestamp;

/// What an agent is at, or what it waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Keeps<'run> {
    /// Its turn has begun.
    AtWork,
    /// Nothing but that other turns are before it.
    Permit,
    /// It works, or waits for a permit: a script leaves no trace of its turns.
    Due,
    /// The pause before it is run again.
    Backoff(Timestamp),
    /// A plug-in, with its reason.
    Plugin(&'run str, Timestamp),
    /// The usage limit.
    Limit(Timestamp),
    /// Someone, for this reason.
    Person(&'run str),
    /// The answer to this question, which is asked under this name.
    Answer {
        /// The name.
        node: &'run str,
        /// The question.
        question: &'run str,
    },
    /// The end of this agent.
    Agent(&'run AgentId),
    /// What its program waits for, as the program says it.
    Program(&'run str),
    /// Nothing: its program asks it nothing.
    Unasked,
    /// The run, which holds still.
    Run,
}

/// What is known of a run besides what its records tell.
#[derive(Debug, Clone, Copy)]
pub struct Seen {
    /// The time.
    pub now: Timestamp,
    /// Whether a raymond holds it.
    pub held: bool,
}

impl<'run> Keeps<'run> {
    /// What keeps an agent; `begun` tells whether its turn has begun, if that is known.
    #[must_use]
    pub fn of(run: &Run, agent: &'run Agent, seen: Seen, begun: Option<bool>) -> Self {
        let backoff = agent.not_before.filter(|&until| until > seen.now);
        if let Some(asked) = &agent.asked {
            let question = &asked.question;
            return Self::Answer { node: &question.node, question: &question.text };
        }
        if let Some(other) = &agent.awaits {
            return Self::Agent(other);
        }
        let instance = agent.program.as_ref();
        if let Some(wait) = instance.and_then(|instance| instance.stand.wait.as_ref()) {
            return Self::Program(&wait.awaiting);
        }
        if agent.serves.as_ref().is_some_and(|service| service.current.is_none()) {
            return Self::Unasked;
        }
        let begun = if agent.walks() || agent.conducts() {
            Some(run.status == Status::Running)
        } else {
            begun
        };
        match (&agent.parked, run.status, begun, backoff, run.limited(seen.now)) {
            (Some(because), ..) => Self::Person(because),
            (_, _, Some(true), ..) if seen.held => Self::AtWork,
            _ if run.status != Status::Running || !seen.held => Self::Run,
            (_, _, _, Some(until), _) => match &agent.held {
                Some(held) => Self::Plugin(held, until),
                None => Self::Backoff(until),
            },
            (_, _, _, _, Some(until)) => Self::Limit(until),
            (_, _, Some(_), ..) => Self::Permit,
            (_, _, None, ..) => Self::Due,
        }
    }

    /// Its name for programs.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::AtWork => "at_work",
            Self::Permit => "permit",
            Self::Due => "due",
            Self::Backoff(_) => "backoff",
            Self::Plugin(..) => "plug_in",
            Self::Limit(_) => "usage_limit",
            Self::Person(_) => "person",
            Self::Answer { .. } => "answer",
            Self::Agent(_) => "agent",
            Self::Program(_) => "program",
            Self::Unasked => "nothing",
            Self::Run => "run",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::apply::tests::scene::Scene;
    use crate::domain::run::Pause;

    const NOW: Seen = Seen { now: Timestamp(100_000), held: true };

    /// What keeps `main`, with a turn that has begun and with one that has not.
    fn keeps(scene: &Scene, seen: Seen) -> [&'static str; 3] {
        let of = |begun| Keeps::of(&scene.run, scene.agent("main"), seen, begun).name();
        [of(Some(true)), of(Some(false)), of(None)]
    }

    #[test]
    fn the_nearest_obstacle_is_named() {
        let mut scene = Scene::begin();
        assert_eq!(keeps(&scene, NOW), ["at_work", "permit", "due"]);
        assert_eq!(keeps(&scene, Seen { held: false, ..NOW }), ["run"; 3]);
        scene.run.limited_until = Some(Timestamp(200_000));
        assert_eq!(keeps(&scene, NOW), ["at_work", "usage_limit", "usage_limit"]);
        let failure = scene.failure("main");
        scene.happens(crate::domain::event::Event::TurnFailed(failure));
        let early = Seen { now: Timestamp(2000), ..NOW };
        assert_eq!(keeps(&scene, early), ["at_work", "backoff", "backoff"]);
        scene.happens(crate::domain::event::Event::RunPaused { pause: Pause::Stopped });
        let running_turns_end_first = ["at_work", "run", "run"];
        assert_eq!(keeps(&scene, NOW), running_turns_end_first);
    }

    #[test]
    fn who_waits_for_a_person_waits_whatever_the_run_does() {
        let mut scene = Scene::begin();
        let (turn, state) = (scene.turn("main"), scene.agent("main").current_state.clone());
        let because = "crashed".to_owned();
        let parked = crate::domain::event::AgentParked { turn, state, because };
        scene.happens(crate::domain::event::Event::AgentParked(parked));
        assert_eq!(keeps(&scene, Seen { held: false, ..NOW }), ["person"; 3]);
    }
}
