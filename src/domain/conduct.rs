//! What carrying on with a program came to, before it is recorded.

use std::collections::BTreeMap;

use super::id::Folder;
use super::instance::{ProgramPosition, RequestBody};

/// What carrying on came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramAdvance {
    /// What it did, in order.
    pub deeds: Vec<ProgramCommand>,
    /// What it took by a name.
    pub bound: BTreeMap<String, String>,
    /// The commits that work is compared with from now on.
    pub bases: Option<BTreeMap<String, Option<String>>>,
    /// How far it has come.
    pub stand: ProgramPosition,
    /// What comes next.
    pub then: ProgramNext,
}

/// Something an instance did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProgramCommand {
    /// It asked a role something.
    Request {
        /// The role.
        role: String,
        /// The handle of the role's session.
        handle: String,
        /// The directory it works in.
        cwd: Option<Folder>,
        /// The request's name.
        name: String,
        /// What is asked.
        work: RequestBody,
    },
    /// It said something for people.
    Log {
        /// What.
        text: String,
        /// Whether someone should look at it.
        warning: bool,
    },
}

/// What comes after that.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProgramNext {
    /// It waits: for what, is in its stand.
    Wait,
    /// Something is done for it: what, is in its stand.
    Errand,
    /// It has come to its end.
    End {
        /// What it gives back.
        payload: String,
        /// Why, if it has failed.
        error: Option<String>,
    },
}
