//! An instance of a program as data: where it stands, what it has asked its roles, what it waits for.
//!
//! The program itself is a language's matter; here it is a text that was kept when the instance began,
//! known by its checksum. What it holds is bounded by the names in the program, never by how long it runs.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::graph::PromptTask;
use super::id::{AgentId, Folder, StateName};
use super::time::Timestamp;
use super::transition::Variables;

/// A program as it was when an instance of it began.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProgramSource {
    /// Its file.
    pub file: StateName,
    /// The folder of that file below the scope, if it is not the scope itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<Folder>,
    /// Its name.
    pub name: String,
    /// The checksum of its text.
    pub program: Arc<str>,
    /// Its text, as it stands.
    pub text: Arc<str>,
    /// The labels of the facts it looks at.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<String>,
}

/// A program that is carried out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramExecution {
    /// The checksum of the program's text.
    pub program: Arc<str>,
    /// The program's name.
    pub name: String,
    /// Its id within the run: the agent, and the step at which it began: `main#1`.
    pub id: String,
    /// `@label`
    pub label: String,
    /// `@branch`
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// `@context/x`
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub context: Variables,
    /// How far it has come.
    #[serde(flatten)]
    pub stand: ProgramPosition,
    /// What it has asked, by the request's name: the latest of each.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub requests: BTreeMap<String, RequestEntry>,
    /// The agents of its roles, by handle.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub handles: BTreeMap<String, AgentId>,
    /// The last answer of each role that has given one.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub answers: BTreeMap<String, Arc<str>>,
    /// What was taken by a name: `@NAME`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub bound: BTreeMap<String, String>,
    /// The commit that work is compared with, by directory; none, where there is no repository.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub bases: BTreeMap<String, Option<String>>,
}

/// How far an instance has come.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProgramPosition {
    /// The program's state it is in.
    pub current: Arc<str>,
    /// The place in that state's instructions, and in those of the blocks around it, the outermost first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cursor: Vec<BlockFrame>,
    /// The arguments of the instruction it is at that are known already.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub partial: Vec<String>,
    /// What has changed in directories, as it was fetched for the instruction it is at.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub changes: BTreeMap<String, String>,
    /// How many states it has entered since it blocked.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub entered: u64,
    /// What it waits for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait: Option<ProgramWait>,
    /// What is due before it goes on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub errand: Option<Activity>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives it so")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// A place in a list of instructions.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BlockFrame {
    /// The instruction that is next, or in whose block it is, from 0.
    pub at: usize,
    /// The arm of the branch that was chosen, if the list is one's; one more than the last is `otherwise`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arm: Option<usize>,
    /// The round of the loop, from 1, if the list is one's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub round: Option<u64>,
    /// Whether this round has blocked.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub blocked: bool,
}

/// What an instance waits for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProgramWait {
    /// What for, as the program says it.
    pub awaiting: String,
    /// Since when.
    pub since: Timestamp,
    /// When it goes on in any case.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    /// Whether it may come from outside the run: a fact, or a time.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub outside: bool,
}

/// What an instance has asked of a role.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestEntry {
    /// How many of this name there were: this one's number, from 1.
    pub number: u64,
    /// The role that was asked.
    pub role: String,
    /// What came of it.
    pub status: RequestStatus,
    /// When it was answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<Timestamp>,
}

/// What came of a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RequestStatus {
    /// Nothing yet.
    Pending,
    /// An answer.
    Answer(Arc<str>),
    /// Nothing, and why.
    Failed(String),
}

/// An agent that serves an instance as one of its roles: what is asked of it waits here, first in, first
/// out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RoleMailbox {
    /// The instance it serves.
    pub instance: String,
    /// Its handle there.
    pub handle: String,
    /// The role it was asked as last.
    pub role: String,
    /// What it is at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current: Option<Box<RoleRequest>>,
    /// What comes after that.
    #[serde(default, skip_serializing_if = "VecDeque::is_empty")]
    pub queue: VecDeque<RoleRequest>,
    /// How much it has answered.
    #[serde(default)]
    pub answered: u64,
    /// Whether the instance has ended: then it ends with what is asked.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub released: bool,
}

impl RoleMailbox {
    /// Whether it is at that request.
    #[must_use]
    pub fn is_at(&self, request: &str) -> bool {
        self.current.as_ref().is_some_and(|asking| asking.id == request)
    }

    /// Whether it has nothing to do any more.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.released && self.current.is_none()
    }

    /// What it comes to at its end.
    pub(super) fn outcome(&self) -> String {
        let Self { answered, role, .. } = self;
        format!("answered {answered} request{} as {role}", if *answered == 1 { "" } else { "s" })
    }
}

/// A request as the agent gets it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RoleRequest {
    /// Its id: `main#1/review-request/3`.
    pub id: String,
    /// Its name in the program.
    pub name: String,
    /// The role that is asked.
    pub role: String,
    /// What is asked.
    pub work: RequestBody,
}

/// What a role is asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RequestBody {
    /// A turn.
    Prompt(Box<PromptTask>),
    /// The result of an agent of a prompt folder.
    Folder {
        /// The folder below the scope, if it is another.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        folder: Option<Folder>,
        /// The first state.
        start: StateName,
        /// The text for `{{input}}`.
        input: String,
    },
}

/// What an instance has done for it outside the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Activity {
    /// The commits of these directories that later work is compared with: the branch's if there is one.
    Bases {
        /// The directories below that of the run; the empty path is it.
        directories: Vec<String>,
        /// The branch.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        branch: Option<String>,
    },
    /// What has changed in a directory since a commit.
    Changes {
        /// The directory below that of the run; the empty path is it.
        directory: String,
        /// The commit.
        base: String,
    },
    /// A fact is asserted.
    Assert {
        /// Its label.
        label: String,
        /// Its key.
        key: String,
        /// Its payload.
        value: String,
    },
    /// A fact is retracted.
    Retract {
        /// Its label.
        label: String,
        /// Its key.
        key: String,
    },
    /// A fact is taken, if it is there still.
    Claim {
        /// Its label.
        label: String,
        /// Its key.
        key: String,
        /// Its number.
        seq: u64,
    },
}

/// What came of an errand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ActivityResult {
    /// The commits by directory; none, where there is no repository.
    Bases(BTreeMap<String, Option<String>>),
    /// A diff.
    Changes(String),
    /// The dataspace is as it was to be; the run sees it there.
    Done,
    /// The fact that was to be taken; none, if another was faster.
    Claimed(Option<super::fact::Fact>),
}
