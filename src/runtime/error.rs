//! The errors of beginning, resuming, branching and recording a run, and of a person's work on an agent.

use std::io;
use std::path::PathBuf;

use crate::domain::id::{AgentId, InvalidName, RunId, SessionId, StateName};
use crate::engine::EngineError;
use crate::language::diagnostic::{Diagnostic, excerpt_in, shown};
use crate::language::graph::vocabulary::TypeNameTaken;
use crate::language::manifest::FolderInput;
use crate::language::source::WorkflowSource;
use crate::language::{prompt, replies, yaml};
use crate::store;
use crate::store::engine_note::IdentityError;
use crate::store::trust::FolderTrust;

/// The reasons that a run could not begin, or could not be recorded.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No target to run was given.
    #[error("nothing to run; give the builder a workflow, or a run to resume")]
    Nothing,
    /// There is no such file or folder.
    #[error("{path}: there is no such file or folder")]
    NoWorkflow {
        /// The path that was looked for.
        path: PathBuf,
    },
    /// This thread has no actor system.
    #[error(
        "a run needs an actix system on this thread; await it under #[actix::main], or use Builder::run_here"
    )]
    NoSystem,
    /// The machine has no room for another thread.
    #[error(
        "cannot start a thread: {0}; raise the limit of processes (`ulimit -u`), and try again"
    )]
    NoThread(io::Error),
    /// The engine did not do what it was asked for.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The worker of a host cannot begin.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// A run cannot be shared by several machines.
    #[error("the run {run} cannot be shared by several machines: {why}")]
    NotShared {
        /// The run whose terms or files cannot be written for the engine.
        run: RunId,
        /// The reason, and the remedy.
        why: String,
    },
    /// The hosts of a run cannot exchange its work by git.
    #[error("the run {run} cannot exchange its work by git: {why}")]
    NotExchanged {
        /// The id of the new run, which is not made.
        run: RunId,
        /// The reason, and the remedy.
        why: String,
    },
    /// Git cannot make the worktrees of a run's agents.
    #[error("git cannot make worktrees for the agents of the run {run}: {why}")]
    NoWorktrees {
        /// The run whose agents would work in them.
        run: RunId,
        /// The reason, and the remedy.
        why: String,
    },
    /// A person cannot work on an agent.
    #[error(transparent)]
    Visit(#[from] VisitError),
    /// Nobody can be asked from a host.
    #[error("{0}")]
    NoApprovals(&'static str),
    /// A path cannot be stored in a journal.
    #[error("{path}: {what} must be UTF-8 text")]
    NotText {
        /// The path before it was resolved.
        path: PathBuf,
        /// The role of the path.
        what: &'static str,
    },
    /// No directory was found for the user's own state.
    #[error("no home directory for your key and trust; set HOME or XDG_STATE_HOME")]
    NoHome,
    /// A name that cannot be one.
    #[error(transparent)]
    Name(#[from] InvalidName),
    /// A prompt of the workflow cannot be used.
    #[error(transparent)]
    Workflow(#[from] prompt::step::Error),
    /// A graph or a program of the workflow cannot be used.
    #[error("{}", .diagnostics.iter().map(|one| shown(one, .text)).collect::<Vec<_>>().join("\nerror: "))]
    Graph {
        /// All that is wrong with it.
        diagnostics: Vec<Diagnostic>,
        /// The text of a program, whose lines are shown; empty for a graph.
        text: String,
    },
    /// The run cannot branch off at the requested place.
    #[error(transparent)]
    NoBranchPoint(#[from] BranchError),
    /// The record of a branch cannot follow.
    #[error("the run cannot branch off there: {0}")]
    Branched(String),
    /// The workflow has errors that `raymond check` reports.
    #[error(transparent)]
    Check(#[from] WorkflowErrors),
    /// A graph has been edited since an agent entered it.
    #[error(
        "{path}: WF503 the graph has been edited since the agent {agent} entered it (it stands at {node}); restore the old text, or resume with the new one: raymond resume {run} --migrate"
    )]
    Edited {
        /// The graph's file.
        path: String,
        /// The agent in the graph.
        agent: AgentId,
        /// The node where the agent stands.
        node: String,
        /// The run that is to be resumed.
        run: RunId,
    },
    /// The node that an agent is at is no longer in the graph.
    #[error(
        "{path}: WF503 the agent {agent} is at the node {node}, which the edited graph lacks; restore a node of that name, then: raymond resume {run} --migrate"
    )]
    NodeGone {
        /// The graph's file.
        path: String,
        /// The agent at the missing node.
        agent: AgentId,
        /// The name of the node, which the edited file no longer has.
        node: String,
        /// The run that is to be resumed.
        run: RunId,
    },
    /// The workflow does more than prompt, and its folder is not trusted.
    #[error(
        "{folder}: this workflow does more than prompt, and {}:\n{}\nread these files; then trust the folder: raymond trust {target}, or start it with --trust", doubt(.trust), .requests.iter().map(|one| format!("  {one}")).collect::<Vec<_>>().join("\n")
    )]
    NotTrusted {
        /// The workflow's folder.
        folder: String,
        /// The path that `raymond trust` takes for it.
        target: String,
        /// The privileges that its files ask for, a line each.
        requests: Vec<String>,
        /// The known state of its trust.
        trust: Box<FolderTrust>,
        /// The checksum of its files.
        checksum: String,
    },
    /// The person was asked whether they trust it, and does not.
    #[error("nothing was started, and nothing is trusted")]
    Declined,
    /// The run's directory tells other terms than those that a person started it on.
    #[error(
        "the run {run} is not as you started it:\n{}\nit would execute:\n{}\nif that is what you want, repeat the command with --trust", .differences.iter().map(|one| format!("  {one}")).collect::<Vec<_>>().join("\n"), .would.iter().map(|one| format!("  {one}")).collect::<Vec<_>>().join("\n")
    )]
    NotConfirmed {
        /// The run that differs from its seal, or has none.
        run: RunId,
        /// What differs from the seal, a sentence each. Without a seal, that it has none.
        differences: Vec<String>,
        /// The privileged parts that it would execute.
        would: Vec<String>,
        /// The checksum of its directory's terms.
        checksum: String,
    },
    /// The run's copy of its workflow is gone.
    #[error("{}: the run's copy of its workflow is missing, or was changed; restore it, or take the workflow's current files: `resume --migrate`, `retry --prompts`", .path.display())]
    NoCopy {
        /// The path where it should be.
        path: PathBuf,
    },
    /// The workflow's folder changes while a run of it is started.
    #[error("{folder}: the folder changed while the run was being started; start it again")]
    Unsteady {
        /// The root of the workflow, in or below which its `raymond.yaml` changed.
        folder: PathBuf,
    },
    /// An answer that was given ahead of time is none.
    #[error("{why}")]
    Answer {
        /// The name it was given under.
        node: String,
        /// The answer.
        text: String,
        /// The mistake.
        why: String,
    },
    /// A program needs context values that were not given.
    #[error(
        "{path}: the program needs {}; give {}: {}", .missing.iter().map(|key| format!("@context/{key}")).collect::<Vec<_>>().join(", "), if .missing.len() == 1 { "it" } else { "them" }, .missing.iter().map(|key| if key == "input" { "--input TEXT".to_owned() } else { format!("--context {key}=TEXT") }).collect::<Vec<_>>().join(" ")
    )]
    Context {
        /// The program's file.
        path: String,
        /// The keys.
        missing: Vec<String>,
    },
    /// A workflow needs inputs that were not given.
    #[error("{path}: {}", of_inputs(.missing))]
    Inputs {
        /// The manifest that declares them.
        path: String,
        /// The inputs.
        missing: Vec<FolderInput>,
    },
    /// A program needs a branch that was not given.
    #[error("{path}: the program needs @branch; give it: --base-branch NAME")]
    Branch {
        /// The program's file.
        path: String,
    },
    /// A type cannot be added to the language of graphs.
    #[error(transparent)]
    Taken(#[from] TypeNameTaken),
    /// The workflow's manifest cannot be used.
    #[error("{path}:{error}")]
    Manifest {
        /// The file.
        path: String,
        /// The mistake and its place.
        error: yaml::Error,
    },
    /// The workflow's script cannot be used.
    #[error(transparent)]
    Replies(#[from] replies::Error),
    /// The workflow has no script.
    #[error(
        "{path}: --agent scripted needs this file; it lists for each state the replies to its turns, such as `START.md: [\"<result>done</result>\"]`"
    )]
    NoScript {
        /// The path where it should be.
        path: String,
    },
    /// The cassette that is to answer cannot be replayed.
    #[error("{}: {why}", .path.display())]
    Cassette {
        /// Its directory, or its file.
        path: PathBuf,
        /// The problem.
        why: String,
    },
    /// No turn of a run has left its stream, so the run has no texts to record.
    #[error(
        "{}: the streams of all turns of the run {run} are missing, so there is nothing to record", .dir.display()
    )]
    NoStreams {
        /// The run that was to be recorded.
        run: RunId,
        /// The directory in which they should be.
        dir: PathBuf,
    },
    /// Claude Code was not found.
    #[error("Claude Code was not found: no program `{program}`{}; install it (npm install -g @anthropic-ai/claude-code), name it with --claude or RAYMOND_CLAUDE, or try the workflow without Claude Code: --agent scripted", if .program.contains('/') { "" } else { " on the PATH" })]
    NoClaude {
        /// The program that was looked for.
        program: String,
    },
    /// There is something else in its place.
    #[error(
        "{program} cannot be executed; name Claude Code's program with --claude or RAYMOND_CLAUDE"
    )]
    NotAProgram {
        /// The path of the file.
        program: String,
    },
    /// A plug-in cannot be started that the run cannot do without, or could.
    #[error("the plug-in {name} cannot be started: {command}: {why}")]
    NoPlugIn {
        /// The name of the plug-in.
        name: String,
        /// The program and its arguments, joined by spaces.
        command: String,
        /// The problem.
        why: String,
    },
    /// The run's directory cannot be used.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// The run's directory could not be written any more while the run was on.
    #[error("{error}; running turns finish on their own; fix that and resume: raymond resume {id}")]
    Broken {
        /// The run.
        id: RunId,
        /// The failure.
        error: store::Error,
    },
    /// Something else of the system's.
    #[error("{}: cannot {doing}: {error}", .path.display())]
    Io {
        /// The failed action.
        doing: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's message.
        error: io::Error,
    },
}

/// Returns the message that a workflow's inputs are missing, and the options that give them.
pub(super) fn of_inputs(missing: &[FolderInput]) -> String {
    let meaning = |input: &FolderInput| match input.description.as_str() {
        "" => format!("`{}`", input.name),
        text => format!("`{}` ({text})", input.name),
    };
    let option = |input: &FolderInput| match input.name.as_str() {
        "input" => "--input TEXT".to_owned(),
        name => format!("--var {name}=TEXT"),
    };
    let names: Vec<String> = missing.iter().map(meaning).collect();
    let options: Vec<String> = missing.iter().map(option).collect();
    let (inputs, them) = if missing.len() == 1 { ("input", "it") } else { ("inputs", "them") };
    format!(
        "the workflow needs the {inputs} {}; give {them}: {}",
        names.join(", "),
        options.join(" ")
    )
}

/// Returns the reason why a folder is not trusted.
pub(super) fn doubt(trust: &FolderTrust) -> String {
    match trust {
        FolderTrust::Lost(changes) if !changes.is_empty() => {
            format!("it has changed since you trusted it ({})", changes.join(", "))
        }
        FolderTrust::Lost(_) | FolderTrust::Trusted => {
            "it has changed since you trusted it".to_owned()
        }
        FolderTrust::Reworded(files) => {
            format!(
                "texts in it have changed since you trusted it ({}), which is accepted only from you at a terminal",
                files.join(", ")
            )
        }
        FolderTrust::OtherKey => "you trusted it with another key".to_owned(),
        FolderTrust::Never => "you have not trusted it".to_owned(),
    }
}

/// The reasons that a person cannot work on an agent that is held.
#[derive(Debug, thiserror::Error)]
pub enum VisitError {
    /// An agent has no pending prompt.
    #[error("{agent} has no pending prompt: {why}")]
    NoPromptDue {
        /// The agent whose prompt was asked for.
        agent: AgentId,
        /// The reason.
        why: String,
    },
    /// The session of an agent cannot be opened.
    #[error("the session of {agent} cannot be opened: {why}")]
    NotAttachable {
        /// The agent whose session was to be opened.
        agent: AgentId,
        /// The reason, and the remedy.
        why: String,
    },
}

/// The advice that a start gives besides the advice to fix the errors.
pub const NO_CHECK_ADVICE: &str = ", or start the workflow as it is: --no-check";

/// The errors of a workflow that was not started because of them.
#[derive(Debug, thiserror::Error)]
#[error("{}\n{}", .errors.iter().zip(.excerpts).map(|(error, excerpt)| with_excerpt(error.to_string(), excerpt.as_deref())).collect::<Vec<_>>().join("\n"), self.advice())]
pub struct WorkflowErrors {
    /// The path of the first state.
    pub(super) entry: String,
    /// The errors, in the order of the files.
    pub errors: Vec<Diagnostic>,
    /// The line of each that stands in a program, with a caret under the place.
    pub excerpts: Vec<Option<String>>,
    /// The files that these are the errors of.
    scope: RefusalScope,
}

/// The files whose errors stopped a run from being started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RefusalScope {
    /// All files that the first state leads to; the run may be started all the same.
    Workflow,
    /// All files that a state leads to which agents of a run continue with.
    Continued,
    /// The same, and a file that has to be readable.
    ContinuedWith(&'static str),
    /// The first state alone, which has to be readable.
    FirstState,
    /// A file that has to be readable, and all files that the first state leads to.
    WithRequired(&'static str),
}

impl WorkflowErrors {
    /// Returns the errors of the workflow that begins with `entry`, or `None` if there are none.
    pub(super) fn new(
        source: &dyn WorkflowSource,
        entry: &StateName,
        errors: Vec<Diagnostic>,
        scope: RefusalScope,
    ) -> Option<Self> {
        if errors.is_empty() {
            return None;
        }
        let excerpts = errors.iter().map(|error| excerpt_in(error, source)).collect();
        Some(Self { entry: source.path(entry), errors, excerpts, scope })
    }

    /// Returns the closing line: the number of errors, and what to do.
    pub fn advice(&self) -> String {
        let (errors, them) = match self.errors.len() {
            1 => ("an error".to_owned(), "it"),
            more => (format!("{more} errors"), "them"),
        };
        let entry = &self.entry;
        let (files, or_else) = match self.scope {
            RefusalScope::Workflow => {
                (format!("the files that {entry} leads to"), NO_CHECK_ADVICE.to_owned())
            }
            RefusalScope::Continued => (format!("the files that {entry} leads to"), String::new()),
            RefusalScope::ContinuedWith(file) => {
                (format!("{file} and the files that {entry} leads to"), String::new())
            }
            RefusalScope::FirstState => (
                entry.clone(),
                ": the first state of a workflow must be valid, even with --no-check".to_owned(),
            ),
            RefusalScope::WithRequired(file) => (
                format!("{file} and the files that {entry} leads to"),
                format!(": {file} must be valid, even with --no-check"),
            ),
        };
        format!("{errors} in {files}; nothing was started; fix {them}{or_else}")
    }
}

/// Returns the line of an error, followed by that of the program, if it has one.
fn with_excerpt(line: String, excerpt: Option<&str>) -> String {
    match excerpt {
        Some(excerpt) => format!("{line}\n  {}", excerpt.replace('\n', "\n  ")),
        None => line,
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::language::diagnostic::Severity;

    #[test]
    fn each_program_diagnostic_shows_its_line_and_caret() {
        let found = |line, column| Diagnostic {
            path: "p.lisp".into(),
            line,
            column,
            code: "SX304",
            severity: Severity::Error,
            message: "unknown state `b`".into(),
        };
        let diagnostics = vec![found(1, 1), found(2, 3)];
        let error = Error::Graph { diagnostics: diagnostics.clone(), text: "(a\n  (b))".into() };
        assert_eq!(
            error.to_string(),
            "p.lisp:1:1: SX304 unknown state `b`\n(a\n^\nerror: p.lisp:2:3: SX304 unknown state `b`\n  (b))\n  ^"
        );
        let graph = Error::Graph { diagnostics, text: String::new() };
        assert_eq!(
            graph.to_string(),
            "p.lisp:1:1: SX304 unknown state `b`\nerror: p.lisp:2:3: SX304 unknown state `b`"
        );
    }
}

#[cfg(test)]
mod workflow_errors_tests {
    use super::*;
    use crate::language::diagnostic::Severity;

    #[test]
    fn advice_names_no_check_only_where_it_helps() {
        let found = |line| Diagnostic {
            path: "START.md".into(),
            line,
            column: 1,
            code: "RF002",
            severity: Severity::Error,
            message: "unknown key `modle`".into(),
        };
        let advice = |scope, errors: &[Diagnostic]| {
            let excerpts = vec![None; errors.len()];
            let errors = errors.to_vec();
            WorkflowErrors { entry: "START.md".into(), errors, excerpts, scope }.advice()
        };
        assert_eq!(
            advice(RefusalScope::Workflow, &[found(1), found(2)]),
            "2 errors in the files that START.md leads to; nothing was started; fix them, or start the workflow as it is: --no-check"
        );
        assert_eq!(
            advice(RefusalScope::Continued, &[found(1)]),
            "an error in the files that START.md leads to; nothing was started; fix it"
        );
        assert_eq!(
            advice(RefusalScope::FirstState, &[found(1)]),
            "an error in START.md; nothing was started; fix it: the first state of a workflow must be valid, even with --no-check"
        );
        assert_eq!(
            advice(RefusalScope::WithRequired("raymond.yaml"), &[found(1)]),
            "an error in raymond.yaml and the files that START.md leads to; nothing was started; fix it: raymond.yaml must be valid, even with --no-check"
        );
    }
}
