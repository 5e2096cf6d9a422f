//! The status of a live agent: its turn runs, or it waits for something.
//!
//! A run alone does not tell whether a turn has begun, nor whether a process executes the run. The caller
//! has to supply both.

use super::agent::Agent;
use super::run::{Run, RunStatus};
use super::time::Timestamp;
use super::wait_reason::WaitReason;

/// The status of a live agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AgentStatus {
    /// Its turn has begun, or its graph, program or script is executed.
    Running,
    /// It waits.
    Waiting(WaitReason),
}

/// Facts about a run that its records do not tell.
#[derive(Debug, Clone, Copy)]
pub struct RunObservation {
    /// The present time.
    pub now: Timestamp,
    /// True if a raymond process holds the run.
    pub held: bool,
    /// True if the turns of the run are at hosts.
    pub is_shared: bool,
}

impl AgentStatus {
    /// Returns the status of an agent; `begun` tells whether its turn has begun.
    pub fn of(run: &Run, agent: &Agent, seen: RunObservation, begun: bool) -> Self {
        let own = WaitReason::of_agent(agent);
        // A hold lets the turn that runs end first.
        let is_running = |reason: &WaitReason| *reason == WaitReason::Held && begun && seen.held;
        let lasting = own.clone().filter(|reason| reason.hold_end().is_none());
        if let Some(reason) = lasting.filter(|reason| !is_running(reason)) {
            return Self::Waiting(reason);
        }
        let begun = if agent.advances_itself() { run.status == RunStatus::Running } else { begun };
        if seen.held && begun {
            return Self::Running;
        }
        let hold = own.filter(|reason| reason.hold_end() > Some(seen.now));
        Self::Waiting(if run.status != RunStatus::Running {
            WaitReason::RunPaused
        } else if !seen.held {
            WaitReason::RunInterrupted
        } else if let Some(hold) = hold {
            hold
        } else if let Some(until) = run.limited(seen.now) {
            WaitReason::UsageLimit { until }
        } else {
            WaitReason::of_due_turn(agent, seen.is_shared)
        })
    }

    /// Returns the reason why it waits; `None` if it does not.
    pub fn wait_reason(&self) -> Option<&WaitReason> {
        match self {
            Self::Waiting(reason) => Some(reason),
            Self::Running => None,
        }
    }

    /// Returns its name for programs.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Waiting(_) => "waiting",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::TurnHold;
    use crate::event::AgentFamily;
    use crate::event::{Event, RunCommand};
    use crate::host::{HostLabel, HostName};
    use crate::id::AgentId;
    use crate::join::{JoinCondition, PendingJoin};
    use crate::run::PauseReason;
    use crate::tests::scene::{Scene, result, tag};
    use crate::transition::TagName;

    const NOW: RunObservation =
        RunObservation { now: Timestamp(100_000), held: true, is_shared: false };

    fn status(scene: &Scene, seen: RunObservation, begun: bool) -> AgentStatus {
        AgentStatus::of(&scene.run, scene.agent("main"), seen, begun)
    }

    /// Returns the names of the status of `main`, or of its wait reason, if its turn has begun, and if it has not.
    fn names(scene: &Scene, seen: RunObservation) -> [&'static str; 2] {
        [true, false].map(|begun| {
            let status = status(scene, seen, begun);
            status.wait_reason().map_or(status.name(), WaitReason::name)
        })
    }

    #[test]
    fn highest_priority_wait_reason_is_reported() {
        let mut scene = Scene::begin();
        assert_eq!(names(&scene, NOW), ["running", "permit"]);
        assert_eq!(names(&scene, RunObservation { held: false, ..NOW }), ["run_interrupted"; 2]);
        scene.run.limited_until = Some(Timestamp(200_000));
        assert_eq!(names(&scene, NOW), ["running", "usage_limit"]);
        let failure = scene.failure("main");
        scene.happens(Event::TurnFailed(failure));
        let early = RunObservation { now: Timestamp(2000), ..NOW };
        assert_eq!(names(&scene, early), ["running", "backoff"]);
        scene.happens(Event::RunPaused { pause: PauseReason::Stopped });
        let running_turns_end_first = ["running", "run_paused"];
        assert_eq!(names(&scene, NOW), running_turns_end_first);
    }

    #[test]
    fn held_agent_runs_until_its_turn_is_over() {
        let mut scene = Scene::begin();
        let agent = AgentId::parse("main").expect("an agent");
        let command = RunCommand::Hold(AgentFamily { agent, descendants: false }.into());
        scene.happens(Event::CommandReceived { id: "c".to_owned(), command });
        assert_eq!(names(&scene, NOW), ["running", "held"]);
        assert_eq!(names(&scene, RunObservation { held: false, ..NOW }), ["held"; 2]);
    }

    #[test]
    fn waiting_join_reports_remaining_count() {
        let mut scene = Scene::begin();
        (0..5).for_each(|_| {
            scene.take("main", tag(TagName::Fork, "NEXT.md", "WORK.md"));
        });
        scene.joins("main", JoinCondition::Count(3));
        scene.take("main.1", result("done"));
        scene.happens(Event::AgentFailed(scene.end_badly("main.2")));
        let until = scene.agent("main").pending_join().and_then(PendingJoin::until);
        let expected = WaitReason::Join { more: 2, of: 5, done: 1, failed: 1, until };
        assert_eq!(status(&scene, NOW, false), AgentStatus::Waiting(expected));
        scene.take("main.3", result("done"));
        scene.take("main.4", result("done"));
        assert_eq!(status(&scene, NOW, true), AgentStatus::Running, "that is enough");
    }

    #[test]
    fn hold_kind_is_reported_until_hold_expires() {
        let mut scene = Scene::begin();
        let until = Timestamp(200_000);
        let agent = scene.agent("main").clone();
        scene.run.agents.insert(Agent { hold: Some(TurnHold::Stagger { until }), ..agent.clone() });
        let stagger = AgentStatus::Waiting(WaitReason::Stagger { until });
        assert_eq!(status(&scene, NOW, false), stagger);
        scene.run.agents.insert(Agent { hold: Some(TurnHold::Backoff { until }), ..agent });
        let backoff = AgentStatus::Waiting(WaitReason::Backoff { until });
        assert_eq!(status(&scene, NOW, false), backoff);
        let later = RunObservation { now: until, ..NOW };
        assert_eq!(status(&scene, later, false), AgentStatus::Waiting(WaitReason::Permit));
    }

    #[test]
    fn agent_of_shared_run_waits_for_host_until_it_has_one() {
        let mut scene = Scene::begin();
        let shared = RunObservation { is_shared: true, ..NOW };
        assert_eq!(names(&scene, shared), ["running", "host"]);
        let mut agent = scene.agent("main").clone();
        agent.spec.options.host = Some(HostLabel::parse("gpu").expect("a label"));
        scene.run.agents.insert(agent.clone());
        let AgentStatus::Waiting(WaitReason::Host { label: Some(label) }) =
            status(&scene, shared, false)
        else {
            panic!("it waits for a host with its label")
        };
        assert_eq!(label.as_str(), "gpu");
        agent.spec.working_dir.home.host = Some(HostName::parse("a").expect("a name"));
        scene.run.agents.insert(agent);
        assert_eq!(names(&scene, shared), ["running", "permit"]);
    }

    #[test]
    fn parked_agent_waits_for_person_even_in_interrupted_run() {
        let mut scene = Scene::begin();
        let (turn, state) = (scene.turn("main"), scene.agent("main").current_state.clone());
        let reason = "crashed".to_owned();
        let parked = crate::event::AgentParked { turn, state, reason };
        scene.happens(Event::AgentParked(parked));
        assert_eq!(names(&scene, RunObservation { held: false, ..NOW }), ["person"; 2]);
    }
}
