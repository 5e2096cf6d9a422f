//! The activities of agents: what is done outside the run for graphs, programs and scripts, as plain data.
//!
//! An activity that changes something is in a durable record before it begins. [`RecoveryClass`] says what a crash
//! in the middle of it means.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::branch::{StartedRun, WorkflowStart};
use super::fact::Fact;
use super::id::AgentId;
use super::operation::{Operation, OperationResult, RecoveryClass};
use super::turn::TurnId;
use crate::operation::ShellCommand;

/// An activity that is performed for an agent outside the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Activity {
    /// Performs an operation on files, repositories, pages, or a command. A graph yields it again after a crash, so it is
    /// not stored.
    #[serde(skip)]
    Operation(Operation),
    /// Runs a command of a program.
    Command(ShellCommand),
    /// Runs commands of the bodies of a `for-each` side by side, until one has ended.
    Commands(Vec<BodyCommand>),
    /// Starts a program as a separate run.
    StartWorkflow(WorkflowStart),
    /// Looks up the commits that later work in these directories is compared with: the branch's if there is one.
    Bases {
        /// The directories below that of the run; the empty path is the run's directory itself.
        directories: Vec<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        branch: Option<String>,
    },
    /// Looks up the changes in a directory since a commit.
    Changes {
        /// The directory below that of the run; the empty path is the run's directory itself.
        directory: String,
        /// The commit.
        base: String,
    },
    /// Asserts a fact.
    Assert {
        /// The label of the fact.
        label: String,
        /// The key of the fact.
        key: String,
        /// The payload of the fact.
        value: String,
    },
    /// Retracts a fact.
    Retract {
        /// The label of the fact.
        label: String,
        /// The key of the fact.
        key: String,
    },
    /// Takes a fact, if it still holds.
    Claim {
        /// The label of the fact.
        label: String,
        /// The key of the fact.
        key: String,
        /// The number of the fact.
        seq: u64,
    },
}

/// The result of an [`Activity`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ActivityResult {
    /// The value of an operation.
    Value(Value),
    /// The outputs of the commands that have ended; the others still run.
    Commands(Vec<(CommandId, OperationResult)>),
    /// The commits by directory; `None` for a directory without a repository.
    Bases(BTreeMap<String, Option<String>>),
    /// A diff.
    Changes(String),
    /// The dataspace has changed as requested. The run sees the change there.
    Done,
    /// The fact was asserted. It replaced this fact, which has another value and was not taken, and so many values
    /// behind it.
    Replaced(Fact, usize),
    /// The fact that was taken; `None` if another agent was faster.
    Claimed(Option<Fact>),
    /// The run that was started.
    Started(StartedRun),
}

impl ActivityResult {
    /// Returns the value of an operation; null for other results.
    pub fn into_value(self) -> Value {
        match self {
            Self::Value(value) => value,
            _ => Value::Null,
        }
    }
}

/// The outcome of an activity.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ActivityOutcome {
    /// The result, or the reason why it is missing.
    Done(Result<ActivityResult, String>),
    /// It was refused and not begun: the starter of the run did not allow it, or its files were changed.
    Refused(String),
    /// It was begun before, and its outcome is unknown; the text says what to do.
    Lost(String),
    /// It was ended because the run was stopped.
    Ended,
    /// The run's own disk failed, and it is still due.
    Stuck(String),
}

impl Activity {
    /// Returns the recovery class of the activity.
    pub fn class(&self) -> RecoveryClass {
        match self {
            Self::Operation(operation) => operation.class(),
            Self::Command(command) => command.class(),
            // Each of several commands has its own class.
            _ => RecoveryClass::Guarded,
        }
    }

    /// Returns the name of the activity, as messages call it.
    pub fn name(&self) -> &str {
        match self {
            Self::Operation(operation) => operation.name(),
            Self::Command(_) | Self::Commands(_) => "run",
            Self::StartWorkflow(_) => "start-workflow",
            Self::Bases { .. } => "bases",
            Self::Changes { .. } => "changes",
            Self::Assert { .. } => "assert",
            Self::Retract { .. } => "retract",
            Self::Claim { .. } => "claim",
        }
    }
}

// The commands of the bodies of a `for-each`, which run side by side.

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
    #[serde(flatten)]
    pub command: ShellCommand,
}
