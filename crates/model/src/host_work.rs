//! The messages between the supervisor of a run and the hosts of its agents, as they are carried by an engine.
//!
//! They are plain data, versioned, without an address, a process id or an absolute path. A host that speaks another
//! version is given no agents.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::activity::{Activity, ActivityOutcome, CommandId};
use super::git_exchange::ExchangeDirection;
use super::host::HostName;
use super::id::{AgentId, RunId};
use super::operation::Operation;
use super::turn::{TurnId, TurnInput, TurnOutcome};
use super::worktree_snapshot::{SnapshotCommit, WorkingDir};
use crate::host::Home;
use crate::turn::TurnTexts;

/// The version of [`HostWork`] and [`HostAnswer`].
pub const WIRE_VERSION: u32 = 2;

/// The largest request or answer that the mailbox carries itself, in bytes. A larger one is a content of the engine.
pub const MAX_MAIL_BYTES: usize = 1024 * 1024;

/// The kind of the request for a turn, in its key.
pub const TURN: &str = "turn";

/// Returns the key of a request: of its run, its kind and its name, and the home that it is for.
pub fn request_key(run: &RunId, kind: &str, name: &str, home: &Home) -> String {
    format!("{run}/{kind}/{name}/{}.{}", home.host_name(), home.epoch.0)
}

/// Returns the stem of the turn that a request is for, and its host; `None` if it is for something else.
pub fn requested_turn(key: &str) -> Option<(&str, HostName)> {
    let mut parts = key.split('/');
    let (_, kind, stem, home) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    let (host, _) = home.rsplit_once('.')?;
    (kind == TURN).then_some((stem, HostName::parse(host).ok()?))
}

/// A request or an answer that is a content of the engine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredMail {
    /// The checksum of the content.
    pub checksum: Arc<str>,
    /// Its length in bytes.
    pub bytes: u64,
}

/// The work that a supervisor asks a host for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "work", rename_all = "snake_case")]
pub enum HostWork {
    /// Run a turn, attach to a running one, or give the outcome of a finished one.
    Turn { input: Box<TurnInput> },
    /// Perform an activity.
    Perform {
        /// The step that it is for.
        step: TurnId,
        /// The directory of the agent.
        working_dir: WorkingDir,
        activity: SentActivity,
        /// True if it may have been begun before.
        again: bool,
    },
    /// Give the text of a file in an agent's directory.
    Text {
        /// The directory of the agent.
        working_dir: WorkingDir,
        file: String,
        /// The most bytes.
        max_bytes: u64,
    },
    /// Check that an agent's directory is there.
    Directory {
        /// The directory of the agent.
        working_dir: WorkingDir,
    },
    /// Give the commit of an agent's directory.
    Commit {
        /// The name of the agent whose children begin there.
        name: String,
        /// The directory of the agent.
        working_dir: WorkingDir,
    },
    /// Make sure that an agent's worktree is there.
    Worktree {
        agent: AgentId,
        /// The commit that it begins with.
        base: Option<String>,
    },
    /// Make a snapshot of an agent's worktree.
    Snapshot {
        /// The owner of the worktree.
        tree: AgentId,
        /// The turn after which it is made.
        turn: TurnId,
    },
    /// Fetch the branches of the run from its exchange, or push an agent's work there.
    Exchange {
        /// The owner of the worktree; `None` for the run's own directory.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tree: Option<AgentId>,
        direction: ExchangeDirection,
    },
    /// End the turn and the activity of an agent, with a moment to do so.
    Stop { agent: AgentId },
    /// End the commands of an agent's bodies that are not among these.
    KeepCommands {
        agent: AgentId,
        /// The commands that are still wanted.
        wanted: Vec<CommandId>,
    },
    /// End all turns of the run; at once if no time is left.
    StopAll {
        /// True if they are ended at once.
        now: bool,
    },
    /// End all processes of the run, idle ones included. The run is over, or holds still.
    End,
    /// Give the texts of turns that ran there.
    Transcript {
        /// The turns. Those that do not fit are left out at the end, but not the first.
        turns: Vec<TurnId>,
        /// The most bytes of all texts.
        max_bytes: u64,
    },
    /// Do what is asked for in a content of the engine.
    Stored {
        /// The request.
        mail: StoredMail,
    },
}

/// An activity as it is sent to a host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", content = "what", rename_all = "snake_case")]
pub enum SentActivity {
    /// An operation of a graph.
    Operation(Operation),
    /// Any other activity.
    Other(Activity),
}

impl From<Activity> for SentActivity {
    fn from(activity: Activity) -> Self {
        match activity {
            Activity::Operation(operation) => Self::Operation(operation),
            other => Self::Other(other),
        }
    }
}

impl From<SentActivity> for Activity {
    fn from(work: SentActivity) -> Self {
        match work {
            SentActivity::Operation(operation) => Self::Operation(operation),
            SentActivity::Other(activity) => activity,
        }
    }
}

/// The answer of a host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "snake_case")]
pub enum HostAnswer {
    /// The outcome of a turn.
    Turn { outcome: Box<TurnOutcome> },
    /// The outcome of an activity.
    Activity { outcome: ActivityOutcome },
    /// The text of a file, or why there is none.
    Text {
        /// The text.
        found: Result<String, String>,
    },
    /// A commit, or why there is none.
    Commit {
        /// The commit.
        found: Result<String, String>,
    },
    /// It was done, or why it was not.
    Done { outcome: Result<(), String> },
    /// A snapshot, or why there is none.
    Snapshot {
        /// The snapshot.
        found: Result<SnapshotCommit, String>,
    },
    /// The work was exchanged, with what people should know about it, or why it was not.
    Exchanged { outcome: Result<Option<String>, String> },
    /// It was ended, and is still due.
    Interrupted,
    /// The host has no room for a file of it, and it is still due.
    Stuck {
        /// The reason.
        why: String,
    },
    /// The host was declared lost. It is unknown whether the work was done.
    Lost {
        /// The reason.
        why: String,
    },
    /// The texts of the first of the turns, in their order.
    Transcript {
        /// The texts.
        found: Vec<TurnTexts>,
    },
    /// The answer is a content of the engine.
    Stored {
        /// The answer.
        mail: StoredMail,
    },
    /// The host does not do that: its own policy does not allow it, or it cannot prepare the run.
    Refused {
        /// The reason, and the remedy.
        why: String,
    },
}
