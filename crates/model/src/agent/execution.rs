//! The execution of an agent's state: of prompts alone, of a graph or a program, or as a role of a program.
//!
//! The work of an agent that raymond does itself: the steps of graphs, programs and scripts.
//!
//! A prompt whose reply a person has given is such a step, too.

use serde::{Deserialize, Serialize};

use crate::agent::Agent;
use crate::graph_execution::GraphExecution;
use crate::id::{StateKind, StepMode};
use crate::program_execution::{
    LanguagePosition, ProgramExecution, ProgramWait, RoleMailbox, RoleRequest,
};

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
    pub(crate) fn program_mut(&mut self) -> Option<&mut ProgramExecution> {
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
    pub(crate) fn mailbox_mut(&mut self) -> Option<&mut RoleMailbox> {
        match self {
            Self::Role(mailbox) => Some(mailbox),
            Self::Prompts | Self::Graph(_) | Self::Program(_) | Self::Other(_) => None,
        }
    }

    /// Takes the program's execution out; the agent executes prompts from then on.
    pub(crate) fn take_program(&mut self) -> Option<Box<ProgramExecution>> {
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

impl Agent {
    /// Returns the kind of the state whose step is next, if raymond takes that itself, without a turn of Claude Code.
    /// An agent whose program waits has such a step, too.
    pub fn own_work(&self) -> Option<StateKind> {
        if self.mailbox().is_some() {
            return None;
        }
        let is_free = || self.task().is_none() && self.proposal().is_none() && !self.waits();
        StateKind::of(&self.current_state).filter(|kind| match kind.steps() {
            StepMode::Asked => self.given_reply.is_some() && is_free(),
            StepMode::Executed | StepMode::Tagged => is_free(),
            StepMode::Watching => true,
        })
    }

    /// Returns the commit that its worktree begins at, if it has one of its own and the fork said so.
    pub fn own_base(&self) -> Option<String> {
        let is_own = self.spec.working_dir.tree.as_ref() == Some(&self.id);
        self.spec.base.clone().filter(|_| is_own)
    }

    /// Returns whether its next step runs a script, which takes no turn.
    pub fn runs_script(&self) -> bool {
        self.own_work() == Some(StateKind::Script)
    }

    /// Returns whether it runs a program, also while that waits.
    pub fn runs_program(&self) -> bool {
        self.own_work() == Some(StateKind::Program)
    }

    /// Returns whether its state is looked at again at once, also while it waits.
    pub fn watches(&self) -> bool {
        self.own_work().is_some_and(|kind| kind.steps() == StepMode::Watching)
    }

    /// Returns whether its next step is performed by raymond itself, without a turn of Claude Code.
    pub fn advances_itself(&self) -> bool {
        self.own_work().is_some()
    }

    /// Returns whether its turns answer tasks of another agent: it is a role, or a graph has started it for one.
    pub fn has_only_tasks(&self) -> bool {
        self.mailbox().is_some() || (self.task().is_some() && !self.execution.takes_results())
    }

    /// Returns whether the prompt of its state is due, and nothing has been asked or waited for there yet.
    pub fn has_untouched_prompt(&self) -> bool {
        self.results().is_none()
            && self.task().is_none()
            && self.proposal().is_none()
            && self.reminder.is_none()
            && self.edited_prompt.is_none()
    }
}
