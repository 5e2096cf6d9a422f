//! The result of advancing a program, before it is recorded.

use std::collections::BTreeMap;

use super::id::Folder;
use super::program_execution::{ProgramPosition, RequestBody};

/// The result of advancing a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramAdvance {
    /// Its commands, in order.
    pub commands: Vec<ProgramCommand>,
    /// The values it bound to names.
    pub bindings: BTreeMap<String, String>,
    /// The commits that work is compared with from now on.
    pub bases: Option<BTreeMap<String, Option<String>>>,
    /// The position it has reached.
    pub position: ProgramPosition,
    /// The next thing it does.
    pub next: ProgramNext,
}

/// A command of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProgramCommand {
    /// A request to a role.
    Request {
        /// The role.
        role: String,
        /// The handle of the role's session.
        handle: String,
        /// The directory the role works in.
        cwd: Option<Folder>,
        /// The request's name.
        name: String,
        /// The body of the request.
        body: RequestBody,
    },
    /// A log line for people.
    Log {
        /// The text of the line.
        text: String,
        /// The line is a warning.
        warning: bool,
    },
}

/// The next thing a program does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProgramNext {
    /// It waits; the position holds the condition.
    Wait,
    /// An activity runs for it; the position holds it.
    Activity,
    /// It ends.
    End {
        /// The result.
        payload: String,
        /// The error, if it has failed.
        error: Option<String>,
    },
}
