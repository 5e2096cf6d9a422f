//! Commands of people to single agents of a run.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::id::{AgentId, InvalidName, MessageId, SessionId};
use super::turn::TurnId;

/// A message to an agent, for its next prompt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AgentMessage {
    /// The agent.
    pub agent: AgentId,
    /// The text.
    pub text: String,
}

/// A prompt that a person has edited, for one turn that is due.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PromptEdit {
    /// The turn that was due.
    #[serde(flatten)]
    pub turn: TurnId,
    /// The text that it is asked in the place of its prompt.
    pub text: String,
    /// True if the turn had begun when raymond took the command, so that it changes nothing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_late: bool,
}

/// A session in which a person has spoken with the model of an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AttachedSession {
    /// The turn that was due.
    #[serde(flatten)]
    pub turn: TurnId,
    /// The session whose history it begins with.
    pub from: SessionId,
    /// The session.
    pub session: SessionId,
    /// Its last message, if it is the model's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<MessageId>,
    /// True if the turn had begun when raymond took the command, so that it changes nothing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_late: bool,
}

/// An agent, alone or with all that descend from it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AgentFamily {
    /// The agent.
    pub agent: AgentId,
    /// True for `AGENT.*`: also the agents that descend from it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub descendants: bool,
}

impl AgentFamily {
    /// Reads `AGENT` or `AGENT.*`.
    ///
    /// # Errors
    /// [`InvalidName::Agent`] for anything else.
    pub fn parse(text: &str) -> Result<Self, InvalidName> {
        let (agent, descendants) = match text.strip_suffix(".*") {
            Some(agent) => (agent, true),
            None => (text, false),
        };
        Ok(Self { agent: AgentId::parse(agent)?, descendants })
    }

    /// Returns whether an agent belongs to it.
    pub fn has(&self, id: &AgentId) -> bool {
        *id == self.agent || (self.descendants && id.is_within(&self.agent))
    }
}

impl fmt::Display for AgentFamily {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.agent, if self.descendants { ".*" } else { "" })
    }
}

/// A hold of agents, or its end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AgentHold {
    /// The agents.
    #[serde(flatten)]
    pub family: AgentFamily,
    /// The name of the visit that holds the agent while it lasts: a person edits its prompt, or speaks with it. `None` for a
    /// hold that lasts until a person releases the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub visit: Option<String>,
}

impl From<AgentFamily> for AgentHold {
    fn from(family: AgentFamily) -> Self {
        Self { family, visit: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn family_is_one_agent_or_it_with_all_below_it() {
        let of = |text: &str| {
            let family = AgentFamily::parse(text).expect("a family");
            assert_eq!(family.to_string(), text);
            let ids = ["main", "main.1", "main.1.2", "main.10"];
            let agent = |id: &str| AgentId::parse(id).expect("an agent");
            ids.into_iter().filter(|id| family.has(&agent(id))).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(of("main.1"), "main.1");
        assert_eq!(of("main.1.*"), "main.1 main.1.2");
        assert_eq!(of("main.*"), "main main.1 main.1.2 main.10");
        for wrong in ["", "*", ".*", "main.x", "main*"] {
            assert!(AgentFamily::parse(wrong).is_err(), "{wrong}");
        }
    }
}
