//! The reason why a live agent waits. `status`, `tree` and `top` take it from `AgentStatus::of`, the live view from `AgentActivity::of`.

use schemars::JsonSchema;
use serde::Serialize;
use strum::{IntoStaticStr, VariantNames};

use super::agent::{Agent, AgentWait, TurnHold};
use super::host::HostLabel;
use super::id::AgentId;
use super::join::{JoinTally, PendingJoin};
use super::time::Timestamp;

/// The reason why an agent waits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema, IntoStaticStr, VariantNames)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum WaitReason {
    /// A permit. Only the turns before it are in the way.
    Permit,
    /// A host.
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
    /// A person.
    Person {
        /// The reason.
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
        /// The tool.
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

    /// Returns the reason that lies in the agent's step: a question, an approval, other agents, its program, or a missing request.
    fn of_step(agent: &Agent) -> Option<Self> {
        let of_wait = |wait: &AgentWait| match wait {
            AgentWait::Answer(asked) => {
                let (node, text) = (&asked.question.node, &asked.question.text);
                Some(Self::Answer { node: node.clone(), question: text.clone() })
            }
            AgentWait::Agent(other) => Some(Self::Agent { agent: other.clone() }),
            AgentWait::Join(join) => Self::of_join(agent, join),
        };
        let own = agent.stage.wait().and_then(of_wait);
        let program = || Some(Self::Program { awaiting: agent.program_wait()?.awaiting.clone() });
        let request = || {
            let is_idle = agent.mailbox().is_some_and(|mailbox| mailbox.current.is_none());
            is_idle.then_some(Self::Request)
        };
        let approval = || {
            let asked = agent.open_approvals().next()?;
            Some(Self::Approval { name: asked.name(), tool: asked.request.tool.clone() })
        };
        own.or_else(approval).or_else(program).or_else(request)
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

    /// Returns the end of the hold that it names; `None` if it is no hold, or one that only a person ends.
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
