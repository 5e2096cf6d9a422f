//! The orders of people to one agent, the hold on its next turn, and the agent as a retry begins with it.
//!
//! Orders are messages for the turns of the agent, a hold, a visit, and its end.

use serde::{Deserialize, Serialize};

use super::{AgentExecution, AgentWait, StepStage};
use crate::agent::Agent;
use crate::apply::Effect;
use crate::approval::StepApprovals;
use crate::graph_execution::{LostRequest, WaitResult};
use crate::id::{AgentId, MessageId, SessionId};
use crate::time::Timestamp;
use crate::tool_call::one_line;
use crate::turn::FailureCause;

/// A message of a person to an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PersonMessage {
    /// The id by which a running turn shows that it has read it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<MessageId>,
    pub text: String,
    /// True once it belongs to the pending or running turn.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_taken: bool,
}

impl PersonMessage {
    /// Returns a message that a command of this id brings. The id ends in a UUID, which no session has seen before.
    pub fn of_command(id: &str, text: &str) -> Self {
        let suffix = id.rsplit('-').next().unwrap_or_default();
        let is_uuid = suffix.len() == 32 && suffix.bytes().all(|byte| byte.is_ascii_hexdigit());
        let id = is_uuid.then(|| {
            let parts = [0..8, 8..12, 12..16, 16..20, 20..32].map(|part| &suffix[part]);
            MessageId::new(&parts.join("-"))
        });
        Self { id, text: text.to_owned(), is_taken: false }
    }

    /// Returns the text as the model gets it.
    pub fn for_model(text: &str) -> String {
        format!("A message from the person who runs you:\n\n{text}")
    }
}

/// The time in which a person works on an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentVisit {
    /// Its name, by which it ends.
    pub name: String,
    /// The time at which it began.
    pub since: Timestamp,
}

/// The orders of people to an agent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PersonOrders {
    /// The messages that no turn has ended with, the oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub messages: Vec<PersonMessage>,
    /// The time since which nothing of it begins until a person releases it, visits apart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_since: Option<Timestamp>,
    /// The visit of a person who edits its prompt or speaks with it. Nothing of it begins meanwhile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub visit: Option<AgentVisit>,
    /// True if it ends as soon as nothing of it runs.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_ending: bool,
}

impl PersonOrders {
    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        let Self { messages, held_since, visit, is_ending } = self;
        messages.is_empty() && held_since.is_none() && visit.is_none() && !is_ending
    }

    /// Returns the time since which a person holds it; `None` if nobody does.
    pub fn held(&self) -> Option<Timestamp> {
        let visited = self.visit.as_ref().map(|visit| visit.since);
        [self.held_since, visited].into_iter().flatten().min()
    }

    /// Takes a hold. That of a visit changes nothing if there is another visit.
    pub(crate) fn hold(&mut self, visit: Option<&str>, since: Timestamp) {
        match visit {
            None => self.held_since = self.held_since.or(Some(since)),
            Some(name) => {
                let begins = || AgentVisit { name: name.to_owned(), since };
                self.visit.get_or_insert_with(begins);
            }
        }
    }

    /// Ends a visit; without a name, all that holds it.
    pub(crate) fn release(&mut self, visit: Option<&str>) {
        self.held_since = self.held_since.filter(|_| visit.is_some());
        let is_meant = |current: &AgentVisit| visit.is_none_or(|name| current.name == name);
        self.visit.take_if(|current| is_meant(current));
    }

    /// Returns the texts of the messages that belong to the pending turn.
    pub fn taken(&self) -> impl Iterator<Item = &str> {
        self.messages.iter().filter(|message| message.is_taken).map(|message| &*message.text)
    }

    /// Returns the texts of the messages that belong to no turn yet.
    pub fn untaken(&self) -> impl Iterator<Item = &str> {
        self.messages.iter().filter(|message| !message.is_taken).map(|message| &*message.text)
    }

    /// Returns the messages that would be lost if the agent ended now.
    pub(crate) fn untold(&self) -> Vec<String> {
        self.untaken().map(str::to_owned).collect()
    }

    /// Assigns messages to the pending turn: the message with this id, or all of them.
    pub(crate) fn take(&mut self, only: Option<&MessageId>) {
        let is_meant = |message: &&mut PersonMessage| only.is_none() || message.id.as_ref() == only;
        self.messages.iter_mut().filter(is_meant).for_each(|message| message.is_taken = true);
    }

    /// Forgets the messages of a turn that has ended.
    pub(crate) fn forget_taken(&mut self) {
        self.messages.retain(|message| !message.is_taken);
    }
}

impl Agent {
    /// Returns whether a person holds it.
    pub fn is_held(&self) -> bool {
        self.orders.held().is_some()
    }

    /// Returns what tells a message to its turn, in case that runs. An evaluator's turn is not its own.
    pub(crate) fn tells_turn(&self, message: &PersonMessage) -> Option<Effect> {
        let PersonMessage { id, text, .. } = message;
        let id = id.clone().filter(|_| self.proposal().is_none() && !self.orders.is_ending)?;
        let text = PersonMessage::for_model(text);
        Some(Effect::TellMessage { agent: self.id.clone(), id, text })
    }

    /// Returns a warning for each message that can no longer reach it, because it ends.
    pub(crate) fn warns_of_untold(&self) -> impl Iterator<Item = Effect> {
        self.orders.untaken().map(|message| {
            let text = format!("it ended before it got the message: {}", one_line(message));
            Effect::Warn { agent: self.id.clone(), text }
        })
    }

    /// Returns whether its next turn begins with messages that belong to no turn yet. An evaluator's turn is not its
    /// own.
    pub fn has_messages_to_take(&self) -> bool {
        self.orders.untaken().next().is_some() && self.proposal().is_none()
    }
}

// The hold on an agent's next turn: it does not start before a time, or before a person resumes the run.

/// The hold on an agent's next turn. A hold until a time is kept after that time, but has no effect then.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TurnHold {
    /// The backoff before the turn is run again.
    Backoff {
        /// The end of the hold.
        until: Timestamp,
    },
    /// The head start of the first of the agents it was forked with.
    Stagger {
        /// The end of the hold.
        until: Timestamp,
    },
    /// A plug-in holds the turn back.
    Plugin {
        /// The name of the plug-in, and its reason.
        by: String,
        /// The end of the hold.
        until: Timestamp,
    },
    /// The agent has used up its restarts, and waits for a person to resume the run.
    Person { reason: String },
}

impl TurnHold {
    /// Returns the end of the hold; `None` if only a person ends it.
    pub fn until(&self) -> Option<Timestamp> {
        match self {
            Self::Backoff { until } | Self::Stagger { until } | Self::Plugin { until, .. } => {
                Some(*until)
            }
            Self::Person { .. } => None,
        }
    }

    /// Returns the reason for which it waits for a person, if it does.
    pub fn parked_reason(&self) -> Option<&str> {
        match self {
            Self::Person { reason } => Some(reason),
            Self::Backoff { .. } | Self::Stagger { .. } | Self::Plugin { .. } => None,
        }
    }
}

impl Agent {
    /// Returns the earliest time its next turn starts.
    pub fn not_before(&self) -> Option<Timestamp> {
        self.hold.as_ref()?.until()
    }

    /// Returns the reason it waits for a person to resume the run, if it does.
    pub fn parked_reason(&self) -> Option<&str> {
        self.hold.as_ref()?.parked_reason()
    }
}

// The agent that a retry begins with: as it was before the turn or the advance that failed it. Some of its counts are
// reset, others stay.

impl Agent {
    /// Keeps the agent as it is for a retry, unless an earlier record has done so.
    pub(crate) fn keep_for_retry(&mut self) {
        if self.retry_point.is_none() {
            self.retry_point = Some(Box::new(self.clone()));
        }
    }

    /// Returns the agent that a retry begins with: where it failed, or idle if it was a role. `None` for any other
    /// that ended well.
    pub(crate) fn take_for_retry(&mut self, has_failed: bool) -> Option<Box<Self>> {
        let mut kept = match self.retry_point.take() {
            Some(kept) if has_failed => kept,
            _ if self.mailbox().is_some() => Box::new(self.clone()),
            _ => return None,
        };
        // The identities up to here are used, and what was spent in open calls stays spent.
        (kept.step, kept.turn) = (self.step, self.turn);
        kept.cost_usd = self.cost_usd;
        kept.stack.clone_from(&self.stack);
        kept.last_turn_ended = self.last_turn_ended;
        Some(kept)
    }

    /// Prepares the agent for a retry. The counts of its restarts, its reminders and the turns of its step are reset,
    /// and its session begins where its turn did.
    pub(crate) fn live_again(&mut self, session: SessionId, at: Timestamp) {
        self.restarts.clear();
        self.throttles = 0;
        if self.last_failure == Some(FailureCause::SessionLost) {
            self.lose_session();
        }
        self.script_steps = 0;
        // The step starts over, so raymond does not count the turns whose replies it refused.
        if matches!(self.stage, StepStage::State { .. }) {
            self.visits.take_back(&self.visited(self.prompt()), self.reminders);
        }
        self.reminders = 0;
        self.reminder = None;
        self.approvals = StepApprovals::default();
        self.hold = None;
        self.orders.is_ending = false;
        // It was over when the agent failed, or ends without effect.
        self.orders.visit = None;
        self.retry_point = None;
        self.since = at;
        self.retry_turn(session);
        if let StepStage::Waiting(AgentWait::Join(pending)) = &mut self.stage {
            pending.since = at;
        }
        match &mut self.execution {
            AgentExecution::Program(program) => {
                if program.position.ending.take().is_some() {
                    program.position.activity = None;
                }
            }
            AgentExecution::Role(mailbox) => mailbox.released = false,
            AgentExecution::Prompts | AgentExecution::Graph(_) | AgentExecution::Other(_) => {}
        }
    }

    /// Returns the number of the child that failed it, if it waited for a single one.
    pub fn failed_wait(&self) -> Option<u32> {
        let has_failed = matches!(self.wait_result(), Some(WaitResult::Failed(_)));
        (has_failed && self.mailbox().is_none()).then_some(self.forked_count)
    }

    /// Returns the requests of its program that came to nothing since its last advance.
    pub fn lost_requests(&self) -> impl Iterator<Item = &LostRequest> {
        let requests = self.program().into_iter().flat_map(|program| program.requests.values());
        requests.filter_map(|asked| asked.lost.as_deref())
    }

    /// Returns whether it failed together with that child, so that neither is retried alone.
    pub fn failed_with(&self, child: &AgentId) -> bool {
        if child.parent() != Some(self.id.as_str()) {
            return false;
        }
        let number = child.number();
        let joins = self.pending_join().is_some()
            && self.unjoined.numbers(self.join_depth()).any(|known| known == number);
        joins
            || self.failed_wait() == Some(number)
            || self.lost_requests().any(|lost| lost.agent == *child)
    }
}
