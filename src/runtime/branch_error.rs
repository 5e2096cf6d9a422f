//! The reasons why a run cannot branch off another.

use crate::domain::id::{AgentId, RunId, SessionId};

/// The reason why a run cannot branch off.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name the fields")]
pub enum BranchError {
    /// There is no such record.
    #[error(
        "{run} has no record {seq}; its last one is {last}: `raymond log {run} --json` shows them with their numbers"
    )]
    NoRecord {
        run: RunId,
        /// The number that was asked for.
        seq: u64,
        /// The number of the last record.
        last: u64,
    },
    /// The record is one of several that were written together.
    #[error(
        "record {seq} of {run} and the one after it were written together; branch off after record {after}, or before them"
    )]
    WithinStep {
        run: RunId,
        /// The number that was asked for.
        seq: u64,
        /// The number of the last of these records.
        after: u64,
    },
    /// The run never had the agent.
    #[error("{run} has no agent {agent}: `raymond tree {run} --all` shows its agents")]
    NoAgent { run: RunId, agent: AgentId },
    /// The agent never came to the step, or passed it within records that were written together.
    #[error(
        "{agent} of {run} never came to step {step}, or took it together with the one before; `raymond show {run} {agent}` shows its steps"
    )]
    NoStep {
        run: RunId,
        agent: AgentId,
        /// The step that was asked for.
        step: u64,
    },
    /// No agent was in the state.
    #[error("{agents} in {states}; say where to branch off: --at RECORD, or --at AGENT#STEP")]
    NoState {
        /// The run, and the agent if one was chosen: `no agent of t was`.
        agents: String,
        states: String,
    },
    /// A record that does not follow from the cut cannot happen without those that do.
    #[error(
        "record {seq} of {run} cannot be told from what follows from the cut ({why}); name a record instead, where the whole run is cut"
    )]
    Refused {
        run: RunId,
        /// The number of the record.
        seq: u64,
        why: String,
    },
    /// The step takes no turn of Claude Code whose reply could be given.
    #[error(
        "{agent}#{step} of {run} is not the turn of a prompt that a reply could replace: it executes a file, serves a graph or a program, or waits for an answer"
    )]
    NoTurn { run: RunId, agent: AgentId, step: u64 },
    /// A reply is given, but the run does not branch off before a step.
    #[error("--reply is the reply of one step; name it: --at AGENT#STEP")]
    ReplyWithoutStep,
    /// Another run is to take the place of a run that is live.
    #[error(
        "{run} is running, and a rewound run takes its place; stop it first: raymond stop {run} --wait"
    )]
    StillLive { run: RunId },
    /// The reply would not be accepted.
    #[error("the reply for {agent}#{step} of {run} would not be accepted: {why}")]
    WrongReply { run: RunId, agent: AgentId, step: u64, why: String },
    /// No agent lived there.
    #[error(
        "no agent of {run} is live after record {seq}; name an earlier record, or a step of an agent: AGENT#STEP"
    )]
    NothingLives { run: RunId, seq: u64 },
    /// Claude Code has no file of a session any more.
    #[error(
        "the session {session} of {agent} is gone from {folder}, where Claude Code keeps sessions for a while only{}; branch off before the agent's first turn, or start a new run", also(*.more)
    )]
    SessionGone {
        agent: AgentId,
        session: SessionId,
        folder: String,
        /// The number of further sessions that are gone.
        more: usize,
    },
    /// Other files than those that are named differ from those that the run was started with.
    #[error(
        "{} in {folder} {} from what {run} was started with, too; {}",
        names(.changed, .removed), if .changed.len() + .removed.len() == 1 { "differs" } else { "differ" },
        remedy(.changed, .removed)
    )]
    OtherChanges {
        /// The files that have changed.
        changed: Vec<String>,
        /// The files that are gone.
        removed: Vec<String>,
        folder: String,
        run: RunId,
    },
    /// A worktree cannot begin with its snapshot.
    #[error("{why}; branch at another point")]
    Worktree { why: String },
    /// The workflow has no such file.
    #[error(
        "{file}: there is no such file in the workflow's folder {folder}; name it by its path below that folder"
    )]
    NoFile { file: String, folder: String },
}

/// Returns the words about further sessions.
fn also(more: usize) -> String {
    if more == 0 { String::new() } else { format!(", and so are {more} more sessions") }
}

/// Returns the names of files that differ.
fn names(changed: &[String], removed: &[String]) -> String {
    let gone = removed.iter().map(|file| format!("{file} (removed)"));
    changed.iter().cloned().chain(gone).collect::<Vec<_>>().join(", ")
}

/// Returns what to do about files that differ: a removed one cannot be taken as it is now.
fn remedy(changed: &[String], removed: &[String]) -> String {
    let edits: Vec<String> = changed.iter().map(|file| format!("--edit {file}")).collect();
    let edits = edits.join(" ");
    match (changed.is_empty(), removed.is_empty()) {
        (true, _) => "restore it".to_owned(),
        (false, true) => format!("name the edited files ({edits}), or restore them"),
        (false, false) => {
            format!("restore the removed files, and name the edited ones ({edits})")
        }
    }
}
