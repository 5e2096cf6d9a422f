//! The execution of an agent's state: of prompts alone, of a graph or a program, or as a role of a program.

use serde::{Deserialize, Serialize};

use super::Agent;
use crate::domain::graph_execution::GraphExecution;
use crate::domain::language_position::LanguagePosition;
use crate::domain::program_execution::{ProgramExecution, ProgramWait, RoleMailbox, RoleRequest};

/// The execution that an agent is in.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AgentExecution {
    /// Its turns are asked prompts. A graph or a program that it has entered has not begun yet.
    #[default]
    Prompts,
    /// It executes a graph.
    Graph(Box<GraphExecution>),
    /// It executes a program.
    Program(Box<ProgramExecution>),
    /// It executes a state of another language.
    Other(Box<LanguagePosition>),
    /// It is a role of a program, and answers its requests.
    Role(Box<RoleMailbox>),
}

impl AgentExecution {
    /// Returns whether it is of prompts alone.
    pub fn is_prompts(&self) -> bool {
        matches!(self, Self::Prompts)
    }

    /// Returns the graph's execution, if it has begun.
    pub fn graph(&self) -> Option<&GraphExecution> {
        match self {
            Self::Graph(graph) => Some(graph),
            Self::Prompts | Self::Program(_) | Self::Other(_) | Self::Role(_) => None,
        }
    }

    /// Returns the program's execution, if it has begun.
    pub fn program(&self) -> Option<&ProgramExecution> {
        match self {
            Self::Program(program) => Some(program),
            Self::Prompts | Self::Graph(_) | Self::Other(_) | Self::Role(_) => None,
        }
    }

    /// Returns the program's execution, to be changed.
    pub(in crate::domain) fn program_mut(&mut self) -> Option<&mut ProgramExecution> {
        match self {
            Self::Program(program) => Some(program),
            Self::Prompts | Self::Graph(_) | Self::Other(_) | Self::Role(_) => None,
        }
    }

    /// Returns the mailbox of a role.
    pub fn mailbox(&self) -> Option<&RoleMailbox> {
        match self {
            Self::Role(mailbox) => Some(mailbox),
            Self::Prompts | Self::Graph(_) | Self::Program(_) | Self::Other(_) => None,
        }
    }

    /// Returns the mailbox of a role, to be changed.
    pub(in crate::domain) fn mailbox_mut(&mut self) -> Option<&mut RoleMailbox> {
        match self {
            Self::Role(mailbox) => Some(mailbox),
            Self::Prompts | Self::Graph(_) | Self::Program(_) | Self::Other(_) => None,
        }
    }

    /// Takes the program's execution out; the agent executes prompts from then on.
    pub(in crate::domain) fn take_program(&mut self) -> Option<Box<ProgramExecution>> {
        match std::mem::take(self) {
            Self::Program(program) => Some(program),
            other @ (Self::Prompts | Self::Graph(_) | Self::Other(_) | Self::Role(_)) => {
                *self = other;
                None
            }
        }
    }

    /// Returns the position in a state of another language, if it has one.
    pub fn language_position(&self) -> Option<&LanguagePosition> {
        match self {
            Self::Other(position) => Some(position),
            Self::Prompts | Self::Graph(_) | Self::Program(_) | Self::Role(_) => None,
        }
    }

    /// Returns whether its interpreter is given the results of waits, and continues where it waited.
    pub fn takes_results(&self) -> bool {
        match self {
            Self::Graph(_) | Self::Other(_) => true,
            Self::Prompts | Self::Program(_) | Self::Role(_) => false,
        }
    }

    /// Ends the execution of a state. A role stays a role.
    pub(super) fn leave(&mut self) {
        match self {
            Self::Graph(_) | Self::Program(_) | Self::Other(_) => *self = Self::Prompts,
            Self::Prompts | Self::Role(_) => {}
        }
    }
}

impl Agent {
    /// Returns the execution of its graph, if that has begun.
    pub fn graph(&self) -> Option<&GraphExecution> {
        self.execution.graph()
    }

    /// Returns the execution of its program, if that has begun.
    pub fn program(&self) -> Option<&ProgramExecution> {
        self.execution.program()
    }

    /// Returns its position in a state of another language than these, if it has one.
    pub fn language_position(&self) -> Option<&LanguagePosition> {
        self.execution.language_position()
    }

    /// Returns the wait of its program.
    pub fn program_wait(&self) -> Option<&ProgramWait> {
        self.program()?.position.wait.as_ref()
    }

    /// Returns its mailbox, if it is a role of a program.
    pub fn mailbox(&self) -> Option<&RoleMailbox> {
        self.execution.mailbox()
    }

    /// Returns the request that it answers as a role.
    pub fn role_request(&self) -> Option<&RoleRequest> {
        self.mailbox()?.current.as_deref()
    }
}
