//! The advance of a graph or a program before it is recorded: what an interpreter yields, in any language.

use super::event::{AdvancePosition, NextAction};
use super::graph_execution::RequestBody;
use super::id::{Folder, SessionId};

/// The advance of a graph or a program, as far as it came without the outside world.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Advance {
    /// Its outputs, in order.
    pub outputs: Vec<AdvanceOutput>,
    /// The position it has reached.
    pub position: AdvancePosition,
    /// The next step.
    pub next: AdvanceNext,
}

impl Advance {
    /// Gives each request a session that may be opened for it; `session` takes the request's number, from 0.
    pub fn with_sessions(mut self, mut session: impl FnMut(usize) -> SessionId) -> Self {
        let mut number = 0;
        for output in &mut self.outputs {
            if let AdvanceOutput::Request { session: slot, .. } = output {
                *slot = Some(session(number));
                number += 1;
            }
        }
        self
    }
}

/// An output of an advance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AdvanceOutput {
    /// A text that people are shown.
    Shown(String),
    /// A log line for people.
    Log {
        /// The text of the line.
        text: String,
        /// The line is a warning.
        warning: bool,
    },
    /// A request to a role.
    Request {
        role: String,
        /// The handle of the role's session.
        handle: String,
        /// The directory the role works in.
        cwd: Option<Folder>,
        /// The request's name.
        name: String,
        /// The body of the request.
        body: RequestBody,
        /// The session that may be opened for it. An interpreter names none, because that takes chance.
        session: Option<SessionId>,
    },
}

/// The step after an advance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AdvanceNext {
    /// An action, after which it continues. An activity is in the position, or is yielded again at that position.
    Action(NextAction),
    /// The graph or program has ended, with a result or an error. A call returns the result.
    End {
        /// The result.
        payload: String,
        /// The error, if it ended with one.
        error: Option<String>,
    },
    /// The advance fails, with this reason.
    Fail(String),
}
