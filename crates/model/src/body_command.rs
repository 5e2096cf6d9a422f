//! The commands of the bodies of a `for-each`, which run side by side.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::id::AgentId;
use super::turn::TurnId;
use crate::operation::ShellCommand;

/// The identity of a command within its agent. It is the same after a crash.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct CommandId {
    /// The step of the agent whose record made the command due.
    pub step: u64,
    /// The number of the command among those of that record, from 1.
    pub number: u32,
}

impl CommandId {
    /// Returns the name under which the command is performed and noted. No turn and no other activity of the agent has
    /// it: a program takes no turns, and its other activities have the number 0.
    pub fn turn(self, agent: &AgentId) -> TurnId {
        TurnId { agent: agent.clone(), step: self.step, turn: self.number }
    }
}

/// A command of a body.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BodyCommand {
    /// Its identity.
    #[serde(flatten)]
    pub id: CommandId,
    /// The command.
    #[serde(flatten)]
    pub command: ShellCommand,
}
