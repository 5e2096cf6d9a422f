//! The activity of a live agent, or the reason why its next turn has to wait.
//!
//! A run alone does not tell whether a turn has begun, nor whether a process executes the run. The caller
//! has to supply both.

use super::agent::{Agent, TurnHold};
use super::id::AgentId;
use super::join::{JoinTally, PendingJoin};
use super::run::{Run, RunStatus};
use super::time::Timestamp;

/// The activity of an agent, or the thing it waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WaitReason<'run> {
    /// Its turn has begun.
    AtWork,
    /// A permit. Only the turns before it are in the way.
    Permit,
    /// A running turn or a permit. A script leaves no trace of its turns, so it is not known which.
    Due,
    /// The backoff before its next try, until this time.
    Backoff(Timestamp),
    /// The head start of the first of the agents it was forked with, until this time.
    Stagger(Timestamp),
    /// A plug-in, with its reason, until this time.
    Plugin(&'run str, Timestamp),
    /// The usage limit, until this time.
    Limit(Timestamp),
    /// A person, for this reason.
    Person(&'run str),
    /// The answer to a question.
    Answer {
        /// The name of the question.
        node: &'run str,
        /// The text of the question.
        question: &'run str,
    },
    /// The end of this agent.
    Agent(&'run AgentId),
    /// The ends of agents it has forked.
    Join {
        /// The number of agents that still have to end.
        more: u32,
        /// The number of agents it has forked.
        of: u32,
        /// The number of those that have ended with a result.
        done: u32,
        /// The number of those that have ended with an error.
        failed: u32,
        /// The end of the wait, if there is a timeout.
        until: Option<Timestamp>,
    },
    /// The thing its program waits for, in the words of the program.
    Program(&'run str),
    /// A request. Its program has none for it at present.
    Unasked,
    /// The run, which is not being executed.
    Run,
}

/// Facts about a run that its records do not tell.
#[derive(Debug, Clone, Copy)]
pub struct RunObservation {
    /// The present time.
    pub now: Timestamp,
    /// True if a raymond process holds the run.
    pub held: bool,
}

impl<'run> WaitReason<'run> {
    /// Returns the wait reason of an agent; `begun` tells whether its turn has begun, if that is known.
    #[must_use]
    pub fn of(run: &Run, agent: &'run Agent, seen: RunObservation, begun: Option<bool>) -> Self {
        let backoff = agent.not_before().filter(|&until| until > seen.now);
        if let Some(asked) = agent.question() {
            let question = &asked.question;
            return Self::Answer { node: &question.node, question: &question.text };
        }
        if let Some(other) = agent.awaited_agent() {
            return Self::Agent(other);
        }
        if let Some(keeps) = agent.pending_join().and_then(|joining| Self::join(agent, joining)) {
            return keeps;
        }
        if let Some(wait) = agent.program_wait() {
            return Self::Program(&wait.awaiting);
        }
        if agent.mailbox().is_some_and(|service| service.current.is_none()) {
            return Self::Unasked;
        }
        let begun = if agent.runs_graph() || agent.runs_program() {
            Some(run.status == RunStatus::Running)
        } else {
            begun
        };
        match (agent.parked_reason(), run.status, begun, backoff, run.limited(seen.now)) {
            (Some(because), ..) => Self::Person(because),
            (_, _, Some(true), ..) if seen.held => Self::AtWork,
            _ if run.status != RunStatus::Running || !seen.held => Self::Run,
            (_, _, _, Some(until), _) => match &agent.hold {
                Some(TurnHold::Plugin { by, .. }) => Self::Plugin(by, until),
                Some(TurnHold::Stagger { .. }) => Self::Stagger(until),
                Some(TurnHold::Backoff { .. } | TurnHold::Person { .. }) | None => {
                    Self::Backoff(until)
                }
            },
            (_, _, _, _, Some(until)) => Self::Limit(until),
            (_, _, Some(_), ..) => Self::Permit,
            (_, _, None, ..) => Self::Due,
        }
    }

    /// Returns the wait for forked agents; `None` once the join is settled.
    fn join(agent: &Agent, joining: &PendingJoin) -> Option<Self> {
        let tally = agent.forks.tally(agent.stack.len());
        let JoinTally { count: of, done, failed } = tally;
        let more = joining.more(tally);
        let open = joining.join.verdict(tally).is_none();
        open.then(|| Self::Join { more, of, done, failed, until: joining.until() })
    }

    /// Returns its name for programs.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::AtWork => "at_work",
            Self::Permit => "permit",
            Self::Due => "due",
            Self::Backoff(_) => "backoff",
            Self::Stagger(_) => "stagger",
            Self::Plugin(..) => "plug_in",
            Self::Limit(_) => "usage_limit",
            Self::Person(_) => "person",
            Self::Answer { .. } => "answer",
            Self::Agent(_) => "agent",
            Self::Join { .. } => "join",
            Self::Program(_) => "program",
            Self::Unasked => "nothing",
            Self::Run => "run",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::apply::tests::scene::{Scene, result, tag};
    use crate::domain::event::Event;
    use crate::domain::join::JoinCondition;
    use crate::domain::run::PauseReason;
    use crate::domain::transition::TagName;

    const NOW: RunObservation = RunObservation { now: Timestamp(100_000), held: true };

    /// Returns the wait reasons of `main` if its turn has begun, if it has not, and if that is unknown.
    fn keeps(scene: &Scene, seen: RunObservation) -> [&'static str; 3] {
        let of = |begun| WaitReason::of(&scene.run, scene.agent("main"), seen, begun).name();
        [of(Some(true)), of(Some(false)), of(None)]
    }

    #[test]
    fn the_nearest_obstacle_is_named() {
        let mut scene = Scene::begin();
        assert_eq!(keeps(&scene, NOW), ["at_work", "permit", "due"]);
        assert_eq!(keeps(&scene, RunObservation { held: false, ..NOW }), ["run"; 3]);
        scene.run.limited_until = Some(Timestamp(200_000));
        assert_eq!(keeps(&scene, NOW), ["at_work", "usage_limit", "usage_limit"]);
        let failure = scene.failure("main");
        scene.happens(Event::TurnFailed(failure));
        let early = RunObservation { now: Timestamp(2000), ..NOW };
        assert_eq!(keeps(&scene, early), ["at_work", "backoff", "backoff"]);
        scene.happens(Event::RunPaused { pause: PauseReason::Stopped });
        let running_turns_end_first = ["at_work", "run", "run"];
        assert_eq!(keeps(&scene, NOW), running_turns_end_first);
    }

    #[test]
    fn a_join_tells_how_many_more_have_to_end() {
        let mut scene = Scene::begin();
        (0..5).for_each(|_| {
            scene.take("main", tag(TagName::Fork, "NEXT.md", "WORK.md"));
        });
        scene.joins("main", JoinCondition::Count(3));
        scene.take("main.1", result("done"));
        scene.happens(Event::AgentFailed(scene.end_badly("main.2")));
        let keeps =
            |scene: &Scene| WaitReason::of(&scene.run, scene.agent("main"), NOW, None).name();
        let agent = scene.agent("main");
        let until = agent.pending_join().and_then(PendingJoin::until);
        let expected = WaitReason::Join { more: 2, of: 5, done: 1, failed: 1, until };
        assert_eq!(WaitReason::of(&scene.run, agent, NOW, None), expected);
        scene.take("main.3", result("done"));
        scene.take("main.4", result("done"));
        assert_eq!(keeps(&scene), "due", "that is enough");
    }

    #[test]
    fn who_has_had_no_turn_yet_is_not_run_again() {
        let scene = Scene::begin();
        let agent = scene.agent("main").clone();
        let staggered =
            Agent { hold: Some(TurnHold::Stagger { until: Timestamp(200_000) }), ..agent };
        let keeps = |agent| WaitReason::of(&scene.run, agent, NOW, Some(false));
        assert_eq!(keeps(&staggered), WaitReason::Stagger(Timestamp(200_000)));
        let again = Agent {
            hold: Some(TurnHold::Backoff { until: Timestamp(200_000) }),
            ..staggered.clone()
        };
        assert_eq!(keeps(&again), WaitReason::Backoff(Timestamp(200_000)));
    }

    #[test]
    fn who_waits_for_a_person_waits_whatever_the_run_does() {
        let mut scene = Scene::begin();
        let (turn, state) = (scene.turn("main"), scene.agent("main").current_state.clone());
        let because = "crashed".to_owned();
        let parked = crate::domain::event::AgentParked { turn, state, because };
        scene.happens(Event::AgentParked(parked));
        assert_eq!(keeps(&scene, RunObservation { held: false, ..NOW }), ["person"; 3]);
    }
}
