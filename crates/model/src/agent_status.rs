//! The status of a live agent: its turn runs, or it waits for something.
//!
//! A run alone does not tell whether a turn has begun, nor whether a process executes the run. The caller
//! has to supply both.

use schemars::JsonSchema;
use serde::Serialize;
use strum::{IntoStaticStr, VariantNames};

use super::agent::{Agent, AgentWait, TurnHold};
use super::host::HostLabel;
use super::id::AgentId;
use super::join::{JoinTally, PendingJoin};
use super::run::{Run, RunStatus};
use super::time::Timestamp;

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
    pub fn of(run: &Run, agent: &Agent, seen: RunObservation, has_started: bool) -> Self {
        let waiting = WaitReason::of_agent(agent);
        // A hold lets the turn that runs end first.
        let is_running =
            |reason: &WaitReason| *reason == WaitReason::Held && has_started && seen.held;
        let lasting = waiting.clone().filter(|reason| reason.hold_end().is_none());
        if let Some(reason) = lasting.filter(|reason| !is_running(reason)) {
            return Self::Waiting(reason);
        }
        let has_started =
            if agent.advances_itself() { run.status == RunStatus::Running } else { has_started };
        if seen.held && has_started {
            return Self::Running;
        }
        let hold = waiting.filter(|reason| reason.hold_end() > Some(seen.now));
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

// The reason why a live agent waits. `status`, `tree` and `top` take it from `AgentStatus::of`, the live view from
// `AgentActivity::of`.

/// The reason why an agent waits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema, IntoStaticStr, VariantNames)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum WaitReason {
    /// A permit. Only the turns before it are in the way.
    Permit,
    Host {
        /// The label that it asks for, if any.
        label: Option<HostLabel>,
    },
    /// The rest of a budget, which running turns have reserved.
    Budget,
    /// The backoff before its next try.
    Backoff {
        /// The end of the backoff.
        until: Timestamp,
    },
    /// The head start of the first of the agents it was forked with.
    Stagger {
        /// The end of the head start.
        until: Timestamp,
    },
    /// A plug-in that holds its turn back.
    Plugin {
        /// The name of the plug-in, and its reason.
        by: String,
        /// The end of the hold.
        until: Timestamp,
    },
    /// The usage limit.
    UsageLimit {
        /// The time of its reset.
        until: Timestamp,
    },
    Person {
        reason: String,
    },
    /// A person who holds it.
    Held,
    /// The answer to a question.
    Answer {
        /// The name of the question.
        node: String,
        /// The text of the question.
        question: String,
    },
    /// The approval of a tool call.
    Approval {
        /// The name of the approval.
        #[serde(rename = "approval")]
        name: String,
        tool: String,
    },
    /// The end of another agent.
    Agent {
        /// The other agent.
        agent: AgentId,
    },
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
    /// The thing its program waits for.
    Program {
        /// It in the words of the program.
        awaiting: String,
    },
    /// A request. Its program has none for it at present.
    Request,
    /// The run, which is paused.
    RunPaused,
    /// The run, which no raymond executes.
    RunInterrupted,
}

impl WaitReason {
    /// The names of all reasons.
    pub const NAMES: &'static [&'static str] = Self::VARIANTS;

    /// Returns the reason that lies in the agent itself: its step first, then a hold on its next turn. `None` if only
    /// its run can keep it waiting.
    pub fn of_agent(agent: &Agent) -> Option<Self> {
        let by_person = || agent.is_held().then_some(Self::Held);
        let hold = || agent.hold.as_ref().map(Self::of_hold);
        Self::of_step(agent).or_else(by_person).or_else(hold)
    }

    /// Returns the wait of an agent whose turn is due: for a permit, or in a run that `is_shared` first for a host.
    pub fn of_due_turn(agent: &Agent, is_shared: bool) -> Self {
        if is_shared && agent.spec.working_dir.home.is_here() {
            Self::Host { label: agent.spec.options.host.clone() }
        } else {
            Self::Permit
        }
    }

    /// Returns the reason that lies in the agent's step: a question, an approval, other agents, its program, or a
    /// missing request.
    fn of_step(agent: &Agent) -> Option<Self> {
        let of_wait = |wait: &AgentWait| match wait {
            AgentWait::Answer(asked) => {
                let (node, text) = (&asked.question.node, &asked.question.text);
                Some(Self::Answer { node: node.clone(), question: text.clone() })
            }
            AgentWait::Agent(other) => Some(Self::Agent { agent: other.clone() }),
            AgentWait::Join(join) => Self::of_join(agent, join),
        };
        let stage_wait = agent.stage.wait().and_then(of_wait);
        let program = || Some(Self::Program { awaiting: agent.program_wait()?.awaiting.clone() });
        let request = || {
            let is_idle = agent.mailbox().is_some_and(|mailbox| mailbox.current.is_none());
            is_idle.then_some(Self::Request)
        };
        let approval = || {
            let asked = agent.open_approvals().next()?;
            Some(Self::Approval { name: asked.name(), tool: asked.request.tool.clone() })
        };
        stage_wait.or_else(approval).or_else(program).or_else(request)
    }

    /// Returns the wait for forked agents; `None` once the join is decided.
    fn of_join(agent: &Agent, pending: &PendingJoin) -> Option<Self> {
        let tally = agent.unjoined.tally(agent.join_depth());
        let JoinTally { count: of, done, failed } = tally;
        let more = pending.more(tally);
        let is_open = pending.join.outcome(tally).is_none();
        is_open.then(|| Self::Join { more, of, done, failed, until: pending.until() })
    }

    /// Returns the reason that lies in a hold on the agent's next turn.
    fn of_hold(hold: &TurnHold) -> Self {
        match hold {
            TurnHold::Backoff { until } => Self::Backoff { until: *until },
            TurnHold::Stagger { until } => Self::Stagger { until: *until },
            TurnHold::Plugin { by, until } => Self::Plugin { by: by.clone(), until: *until },
            TurnHold::Person { reason } => Self::Person { reason: reason.clone() },
        }
    }

    /// Returns the end of the hold that it names; `None` if it is not a hold, or if only a person ends that hold.
    pub fn hold_end(&self) -> Option<Timestamp> {
        match self {
            Self::Backoff { until } | Self::Stagger { until } | Self::Plugin { until, .. } => {
                Some(*until)
            }
            _ => None,
        }
    }

    /// Returns whether only a person ends the wait.
    pub fn is_for_person(&self) -> bool {
        matches!(
            self,
            Self::Person { .. } | Self::Held | Self::Answer { .. } | Self::Approval { .. }
        )
    }

    /// Returns its name for programs.
    pub fn name(&self) -> &'static str {
        self.into()
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

    fn status(scene: &Scene, seen: RunObservation, has_started: bool) -> AgentStatus {
        AgentStatus::of(&scene.run, scene.agent("main"), seen, has_started)
    }

    /// Returns the names of the status of `main`, or of its wait reason, if its turn has begun, and if it has not.
    fn names(scene: &Scene, seen: RunObservation) -> [&'static str; 2] {
        [true, false].map(|has_started| {
            let status = status(scene, seen, has_started);
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
    fn agent_of_shared_run_waits_until_it_has_a_host() {
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
