//! A turn of Claude Code: its identity, input, outcome, cost and texts, its place in a stream, and the turn throttle.
//!
//! A step is an agent's stay in one state. It takes one turn, or more if a reply has to be repaired or a turn has to be
//! run again. [`TurnInput`] and [`TurnOutcome`] are exchanged with the runner of a turn. They are plain data,
//! versioned, without an address, a process id or a path.

use std::fmt;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strum::{Display, VariantArray};

use crate::id::{AgentId, Folder, MessageId, StateName};
use crate::model::ModelName;
use crate::money::Usd;
use crate::refusal::{ToolRefusals, closing_line};
use crate::session::{Session, SessionKeeping};
use crate::supervision::TurnTimeouts;
use crate::time::Timestamp;
use crate::transition::Variables;
use crate::turn_options::{OnDenied, TurnOptions};
use crate::usage::{ProcessSpending, UsageByModel};
use crate::worktree_snapshot::WorkingDir;

/// The name of the file in the directory of the steps that says which replies of a script the turns were given.
pub const TAKEN_REPLIES_FILE: &str = "scripted.taken";

/// The version of [`TurnInput`] and [`TurnOutcome`].
pub const TURN_VERSION: u32 = 1;

/// The identity of a turn. A repeated or late message cannot be taken for another turn's.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct TurnId {
    pub agent: AgentId,
    /// The agent's step, counted from 1.
    pub step: u64,
    /// The turn within the step, counted from 0.
    pub turn: u32,
}

impl TurnId {
    /// Returns the name of the turn's files: `main.2-3-0`.
    pub fn stem(&self) -> String {
        format!("{}-{}-{}", self.agent.file_name(), self.step, self.turn)
    }
}

impl fmt::Display for TurnId {
    /// Writes the step as people name it, `main.2#3`, and the turn if it is not the first.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}#{}", self.agent, self.step)?;
        if self.turn > 0 { write!(f, " (turn {})", self.turn + 1) } else { Ok(()) }
    }
}

/// The input of a turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnInput {
    /// The [`TURN_VERSION`].
    pub version: u32,
    /// The identity of the turn.
    pub turn: TurnId,
    /// The state it runs in.
    pub state: StateName,
    /// The folder of that state below the scope, if it is not the scope itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<Folder>,
    /// The working directory.
    #[serde(flatten)]
    pub working_dir: WorkingDir,
    /// True if the prompt names the file with the results of the agents it has waited for.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reads_results: bool,
    /// The number of turns this agent has had in this state before.
    pub visit: u32,
    /// The session it runs in.
    pub session: Session,
    /// The model; `None` leaves the choice to Claude Code.
    pub model: Option<ModelName>,
    /// The further options of the state for Claude Code.
    #[serde(default, skip_serializing_if = "TurnOptions::is_empty")]
    pub options: TurnOptions,
    /// The most it may spend, in US dollars; beyond that its answer is lost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_cost: Option<Usd>,
    /// The JSON schema that its answer is checked against, if the answer must be an object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Arc<str>>,
    /// The time limits of the turn.
    pub limits: TurnTimeouts,
    /// The cause with which an earlier attempt at the same turn failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_before: Option<FailureCause>,
    /// The whole prompt.
    pub prompt: String,
    /// The values of its placeholders, and of those of a scripted reply.
    pub values: Variables,
}

impl TurnInput {
    /// Adds a note to the prompt: before it, or after a command, which is one only at the beginning.
    pub fn add_note(&mut self, note: &str) {
        let is_command = self.options.runs_command() && self.prompt.trim_start().starts_with('/');
        let (first, then) = if is_command { (&*self.prompt, note) } else { (note, &*self.prompt) };
        self.prompt = format!("{first}\n\n{then}");
    }
}

/// The outcome of a turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TurnOutcome {
    /// The model answered.
    Replied(TurnReply),
    /// No answer came.
    Failed(TurnFailure),
}

/// The answer of a model, and its cost.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnReply {
    /// The final message.
    pub text: String,
    /// The object that the model gave with the program's own tool for it, as JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub structured: Option<String>,
    /// The cost of the turn.
    pub cost: Usd,
    /// The usage of each model.
    #[serde(default, skip_serializing_if = "UsageByModel::is_empty")]
    pub usage: UsageByModel,
    /// The tools that were refused in it.
    #[serde(default, skip_serializing_if = "ToolRefusals::is_empty")]
    pub refused_tools: ToolRefusals,
    /// The duration of the turn, in milliseconds.
    pub duration_ms: u64,
    /// The last message of the turn, to which the session can be cut back.
    pub message: Option<MessageId>,
    /// The words of a hook that kept the turn from ending until the program gave up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hook: Option<String>,
    /// True if the program says that it asked no model, as after a command that it executes itself.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub asked_no_model: bool,
    /// True if a person has given the reply, so that no further prompt checks it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_given: bool,
    /// The fate of its session, if the turn ran at another host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionKeeping>,
}

/// The failure of a turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnFailure {
    /// The kind of failure, which decides the consequence.
    pub cause: FailureCause,
    /// The description of the failure, for people.
    pub message: String,
    /// The cost of the turn, despite the failure.
    pub cost: Usd,
    /// The usage of each model.
    #[serde(default, skip_serializing_if = "UsageByModel::is_empty")]
    pub usage: UsageByModel,
    /// The tools that were refused in it.
    #[serde(default, skip_serializing_if = "ToolRefusals::is_empty")]
    pub refused_tools: ToolRefusals,
    /// True if the model was at work and its cost was not reported.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unsettled: bool,
    /// The time at which the limit resets, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resets: Option<Timestamp>,
    /// True if the limit was not reset yet when its notice was written.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub resets_after_notice: bool,
    /// True if the turn may begin again in a fresh session, because its own is lost.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub begins_fresh: bool,
    /// The turn as far as it came, if it was ended while tool calls needed approval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suspended: Option<Box<SuspendedTurn>>,
}

/// A turn that was ended while tool calls needed approval.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SuspendedTurn {
    /// The ids of the calls that had no answer, as far as is known.
    pub calls: Vec<String>,
    /// True if the program may have received an answer nevertheless, and died before it could say so.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unsure: bool,
    /// The last message of the turn.
    pub message: Option<MessageId>,
}

impl TurnReply {
    /// Returns whether it says nothing. Such a reply takes no transition, not even a transition that needs no tag.
    pub fn is_empty(&self) -> bool {
        self.structured.is_none() && says_nothing(&self.text)
    }
}

/// Returns whether a text has nothing to read: it is empty, invisible, or what Claude Code puts in place of no text.
pub fn says_nothing(text: &str) -> bool {
    const INVISIBLE: [char; 9] = [
        '\u{ad}', '\u{200b}', '\u{200c}', '\u{200d}', '\u{200e}', '\u{200f}', '\u{2060}',
        '\u{2800}', '\u{feff}',
    ];
    let is_invisible = |c: char| c.is_whitespace() || c.is_control() || INVISIBLE.contains(&c);
    matches!(text.trim_matches(is_invisible), "" | "(no content)")
}

impl TurnFailure {
    /// Creates a failure that cost nothing.
    pub fn new(cause: FailureCause, message: impl Into<String>) -> Self {
        Self {
            cause,
            message: message.into(),
            cost: Usd::ZERO,
            unsettled: false,
            usage: UsageByModel::default(),
            refused_tools: ToolRefusals::default(),
            resets: None,
            resets_after_notice: false,
            begins_fresh: false,
            suspended: None,
        }
    }

    /// Returns whether the limit was reported before its reset, and has been reset since.
    pub fn limit_is_over(&self, now: Timestamp) -> bool {
        self.resets_after_notice && self.resets.is_some_and(|resets| resets <= now)
    }

    /// Turns an unusable reply into a failure.
    pub fn of_reply(reply: &TurnReply, cause: FailureCause, message: impl Into<String>) -> Self {
        Self {
            cost: reply.cost,
            usage: reply.usage.clone(),
            refused_tools: reply.refused_tools.clone(),
            ..Self::new(cause, message)
        }
    }

    /// Turns a reply into the failure of an agent whose state fails when a tool is refused; `None` if none was,
    /// or if the state continues.
    pub fn of_refused_tools(reply: &TurnReply, on_denied: OnDenied) -> Option<Self> {
        match on_denied {
            OnDenied::Continue => None,
            OnDenied::Fail => closing_line(&reply.refused_tools).map(|line| {
                let message = format!("{line} (on_denied: fail)");
                Self::of_reply(reply, FailureCause::ToolRefused, message)
            }),
        }
    }
}

/// The kinds of failure, told apart because each has its own consequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[derive(Serialize, Deserialize, JsonSchema, Display, VariantArray)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "lowercase")]
pub enum FailureCause {
    /// The process ended without an answer, or the API failed.
    Crash,
    /// The turn took longer than it may.
    Timeout,
    /// The turn continued without any progress for longer than it may.
    Stall,
    /// The API asked for fewer requests, or had no room, until the program gave up.
    #[strum(to_string = "throttled")]
    Throttle,
    /// The API cannot be reached.
    Network,
    /// The account has used up its usage limit for now.
    #[strum(to_string = "usage limit")]
    UsageLimit,
    /// The runtime's own code failed while it served this agent.
    Panic,
    /// The runtime ended the turn because it was told to stop.
    Interrupted,
    /// An earlier runtime died, and the turn with it.
    Lost,
    /// The request was refused in a way that repeating it would not change.
    Rejected,
    /// The API refuses the conversation because of something that came into it during the turn.
    #[strum(to_string = "poisoned conversation")]
    Poisoned,
    /// The session that the turn continues no longer exists.
    #[strum(to_string = "session lost")]
    SessionLost,
    /// The output of the process cannot be used, and would not be better a second time.
    #[strum(to_string = "unusable output")]
    Output,
    /// The reply breaks the protocol and could not be repaired.
    Protocol,
    /// The state's file cannot be used.
    Workflow,
    /// A permanent agent ended more often than it may begin again.
    #[strum(to_string = "restarts used up")]
    Restarts,
    /// The budget is used up.
    #[strum(to_string = "budget used up")]
    Budget,
    /// A plug-in or a person stopped the agent.
    Stopped,
    /// A graph came to an ending that is an error.
    #[strum(to_string = "error ending")]
    Ending,
    /// Too many of the agents that it waited for failed, or they did not end in time.
    Join,
    /// The agent that waited for it continues without it.
    #[strum(to_string = "no longer needed")]
    Unneeded,
    /// A runtime died during an action that changes the world, and it is unknown whether the action was done.
    #[strum(to_string = "uncertain effect")]
    Uncertain,
    /// The files of the turn cannot be written.
    Storage,
    /// A tool was refused in a state that fails then.
    #[strum(to_string = "tool refused")]
    ToolRefused,
    /// The turn was ended while tool calls needed approval.
    Unapproved,
    /// Claude Code is not logged in.
    #[strum(to_string = "not logged in")]
    Authentication,
    /// The account may not be used.
    #[strum(to_string = "account refused")]
    Account,
    /// Claude Code cannot be started.
    #[strum(to_string = "cannot be started")]
    Unavailable,
}

impl FailureCause {
    /// All causes.
    pub const ALL: &'static [Self] = Self::VARIANTS;

    /// Returns whether the machine of the turn is to be put right, so that people have to know which one it is.
    pub fn is_of_machine(self) -> bool {
        matches!(self, Self::Storage | Self::Authentication | Self::Account | Self::Unavailable)
    }

    /// Returns whether it tells of the machine, the account or the network, and not of the turn.
    pub fn is_of_environment(self) -> bool {
        self.is_of_machine()
            || matches!(
                self,
                Self::Throttle
                    | Self::Network
                    | Self::UsageLimit
                    | Self::Panic
                    | Self::Interrupted
                    | Self::Lost
            )
    }

    /// Returns whether an agent fails with it before or after its turns, and not in one.
    pub fn is_without_turn(self) -> bool {
        matches!(
            self,
            Self::Workflow
                | Self::Restarts
                | Self::Budget
                | Self::Storage
                | Self::Unavailable
                | Self::Ending
                | Self::Join
                | Self::Uncertain
        )
    }

    /// Returns whether a turn that reported no cost may have had one, because its process ended or died before its
    /// result. A turn that continues after a failure of the runtime itself reports its cost later.
    pub fn may_hide_cost(self) -> bool {
        matches!(
            self,
            Self::Crash
                | Self::Timeout
                | Self::Stall
                | Self::Interrupted
                | Self::Lost
                | Self::Unneeded
                | Self::Unapproved
                | Self::Output
        )
    }
}

// The cost of a turn: one type for all events that end one.

/// The cost of a turn that has ended.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TurnCost {
    /// The amount. It is counted despite a failure.
    #[serde(rename = "cost_usd")]
    pub amount: Usd,
    /// The amount is an estimate: the known maximum of such a turn.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub estimated: bool,
    /// The usage of each model for that amount.
    #[serde(default, skip_serializing_if = "UsageByModel::is_empty")]
    pub usage: UsageByModel,
    /// The tools that were refused in the turn.
    #[serde(default, skip_serializing_if = "ToolRefusals::is_empty")]
    pub refused_tools: ToolRefusals,
    /// The time the model took, in milliseconds, if it answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
}

impl TurnCost {
    /// Returns the cost of a turn that was answered.
    pub fn of_reply(reply: &TurnReply) -> Self {
        Self {
            amount: reply.cost,
            estimated: false,
            usage: reply.usage.clone(),
            refused_tools: reply.refused_tools.clone(),
            duration_ms: Some(reply.duration_ms),
        }
    }

    /// Returns the reported cost of a turn that failed.
    pub fn of_failure(failure: &TurnFailure) -> Self {
        Self {
            amount: failure.cost,
            estimated: false,
            usage: failure.usage.clone(),
            refused_tools: failure.refused_tools.clone(),
            duration_ms: None,
        }
    }

    /// Returns whether nothing was spent, as far as it is known.
    pub fn is_zero(&self) -> bool {
        self.amount == Usd::ZERO && !self.estimated
    }
}

// A turn's place in the stream of a process that served other turns before.
//
// A process that stays writes all its turns into one stream, named after the first. An offset is kept for each further
// turn before it is asked. With it the process, the place and the cost of that turn are found later, even after a crash
// of the runtime.

/// A turn's place in a stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnOffset {
    /// The name of the process's files, without their ending.
    pub process: String,
    /// The offset in the stream, in bytes, at which the turn's part begins.
    pub from: u64,
    /// The spending of the process up to that offset.
    #[serde(flatten)]
    pub spent: ProcessSpending,
    /// The id of the message that asks.
    pub message: MessageId,
}

/// The rule that says which results of a stream are a turn's.
///
/// After its message was repeated, every result is the turn's. Before that, a result is the turn's if it names the
/// message or no occasion. A resumed session may report a background task that died with the previous process, as a
/// separate result ahead of the answer. A session can also wake up by itself between two turns.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TurnBoundary {
    /// The message; `None` if its id is not known, as in a process whose first turn is adopted.
    message: Option<MessageId>,
    repeated: bool,
}

impl TurnBoundary {
    /// Creates the boundary of a turn that is asked by this message.
    pub fn answer_to(message: MessageId) -> Self {
        Self { message: Some(message), repeated: false }
    }

    /// Returns whether the message has not been repeated yet.
    pub fn is_waiting(&self) -> bool {
        !self.repeated
    }

    /// Takes a message that is repeated in the stream.
    pub fn repeated(&mut self, id: &str) {
        self.repeated |= self.message.as_ref().is_none_or(|message| message.as_str() == id);
    }

    /// Takes a result that was the turn's; those that follow are the turn's too.
    pub fn answered(&mut self) {
        self.repeated = true;
    }

    /// Returns whether a result is the turn's. `origin` is the occasion that the result names; `messages` are
    /// those that it answers, if it names any.
    pub fn is_answered_by(&self, origin: Option<&str>, messages: Option<&[String]>) -> bool {
        match (&self.message, messages) {
            _ if self.repeated => true,
            (Some(message), Some(answered)) if origin.is_none() => {
                answered.iter().any(|id| id == message.as_str())
            }
            _ => origin.is_none(),
        }
    }
}

// The texts of a turn, as the host where it ran has them.

/// The texts of a turn at a host. Those that it has left no trace of are absent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnTexts {
    pub turn: TurnId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
    /// Its final message; of a turn that has not ended, the last that it wrote.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
    /// The output of its script or command, or why that failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub script: Option<Result<ScriptTexts, String>>,
    /// True if a text is longer than what is here.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_cut: bool,
}

/// The output of a script or a command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScriptTexts {
    /// Its exit code.
    pub exit_code: i64,
    /// Its stdout, or the beginning and the end of it.
    pub stdout: String,
    /// Its stderr, or the beginning and the end of it.
    pub stderr: String,
}

impl TurnTexts {
    /// Returns whether the turn has left no trace.
    pub fn is_empty(&self) -> bool {
        self.prompt.is_none() && self.answer.is_none() && self.script.is_none()
    }

    /// Returns the length of the texts in bytes.
    pub fn bytes(&self) -> usize {
        let script = match &self.script {
            Some(Ok(output)) => output.stdout.len().saturating_add(output.stderr.len()),
            Some(Err(why)) => why.len(),
            None => 0,
        };
        let texts = [&self.prompt, &self.answer].into_iter().flatten().map(String::len);
        texts.fold(script, usize::saturating_add)
    }
}

// The note to a turn that is run again in a worktree which an earlier attempt has left changed.

/// The number of changed files that are named.
const NAMED_FILES: usize = 40;

/// Returns the note on the files that differ from the last commit, as git lists them; `None` without such files.
pub fn note_on_changes(cause: FailureCause, status: &str) -> Option<String> {
    let files: Vec<&str> = status.lines().filter(|line| !line.trim().is_empty()).collect();
    if files.is_empty() {
        return None;
    }
    let named = files.iter().take(NAMED_FILES).copied().collect::<Vec<_>>().join("\n");
    let more = match files.len().saturating_sub(NAMED_FILES) {
        0 => String::new(),
        more => format!("\n({more} more)"),
    };
    Some(format!(
        "An earlier attempt at this was interrupted ({cause}), and you know nothing of it. These files in your worktree are not committed, and may have been changed by it (`git status --short`):\n\n{named}{more}\n\nLook at them first, and do not repeat what is done already."
    ))
}

// The number of turns that may run at once while the API asks for fewer: additive up, halved down.
//
// Each time the API throttles, the number is halved, but never below one. Each round of turns that went well
// allows one more, up to the run's setting. Many turns are throttled by the same cause at the same time, so
// the number is halved once for all of them. A run that is resumed after its runtime has died begins at its
// ceiling again, because the load may have changed.

/// The time in which further complaints count as the same one, in milliseconds.
const SAME_CAUSE_MS: u64 = 10_000;

/// The number of turns that may run at once.
#[derive(Debug, Clone)]
pub struct TurnThrottle {
    ceiling: usize,
    allowed: usize,
    went_well: usize,
    halved: Option<Timestamp>,
}

impl TurnThrottle {
    /// Creates a throttle that allows `ceiling` turns, at least one.
    pub fn new(ceiling: usize) -> Self {
        let ceiling = ceiling.max(1);
        Self { ceiling, allowed: ceiling, went_well: 0, halved: None }
    }

    /// Returns the number of turns that may run now.
    pub fn allowed(&self) -> usize {
        self.allowed
    }

    /// Takes a complaint of the API while `running` turns were running; returns whether fewer may run now.
    pub fn throttled(&mut self, running: usize, now: Timestamp) -> bool {
        if self.halved.is_some_and(|halved| now.since(halved) < SAME_CAUSE_MS) {
            return false;
        }
        let before = self.allowed;
        self.halved = Some(now);
        self.went_well = 0;
        self.allowed = (running.min(before) / 2).max(1);
        self.allowed < before
    }

    /// Takes a turn that went well.
    pub fn succeeded(&mut self) {
        if self.allowed == self.ceiling {
            return;
        }
        self.went_well += 1;
        if self.went_well >= self.allowed {
            self.went_well = 0;
            self.allowed += 1;
        }
    }
}

#[cfg(test)]
mod turn_offset_tests {
    use super::*;
    use crate::money::Usd;

    #[test]
    fn unrequested_result_does_not_answer_turn() {
        let notice = Some("task-notification");
        let [ours, other] = ["m", "w"].map(|id| [id.to_owned()]);
        let mut expected = TurnBoundary::answer_to(MessageId::new("m"));
        assert!(expected.is_waiting());
        assert!(!expected.is_answered_by(notice, None));
        expected.repeated("another");
        assert!(!expected.is_answered_by(notice, None));
        assert!(expected.is_answered_by(None, None) && expected.is_answered_by(None, Some(&ours)));
        assert!(!expected.is_answered_by(None, Some(&other)), "the session woke up by itself");
        assert!(!expected.is_answered_by(None, Some(&[])));
        expected.repeated("m");
        assert!(expected.is_answered_by(notice, None) && !expected.is_waiting());
        assert!(expected.is_answered_by(None, Some(&[])), "a part of the same work");
    }

    #[test]
    fn turn_offset_in_older_format_round_trips() {
        let old = r#"{"process":"main-1-0","from":7,"spent_usd":0.25,"message":"m"}"#;
        let turn_offset: TurnOffset = serde_json::from_str(old).expect("an offset");
        let spent = ProcessSpending { cost: Usd::from_dollars(0.25), ..ProcessSpending::default() };
        assert_eq!((turn_offset.from, &turn_offset.spent), (7, &spent));
        assert_eq!(serde_json::to_string(&turn_offset).expect("it is JSON"), old);
    }

    #[test]
    fn without_message_id_first_replayed_message_is_answered() {
        let mut expected = TurnBoundary::default();
        assert!(!expected.is_answered_by(Some("task-notification"), None));
        assert!(expected.is_answered_by(None, Some(&["m".to_owned()])));
        expected.repeated("m");
        assert!(expected.is_answered_by(Some("task-notification"), None));
    }
}

#[cfg(test)]
mod repeated_turn_tests {
    use super::*;

    #[test]
    fn changed_files_are_named_up_to_a_number() {
        assert_eq!(note_on_changes(FailureCause::Crash, "\n"), None);
        let noted = |status: &str| note_on_changes(FailureCause::Crash, status).expect("a note");
        let few = noted(" M notes.txt\n?? new.txt\n");
        assert!(few.contains(" M notes.txt\n?? new.txt\n\n"), "{few}");
        assert!(few.contains("interrupted (crash)"), "{few}");
        let many = noted(&"?? x\n".repeat(1000));
        assert!(many.contains("(960 more)") && many.len() < 1000, "{many}");
    }
}

#[cfg(test)]
mod turn_concurrency_tests {
    use super::*;

    fn at(seconds: u64) -> Timestamp {
        Timestamp(seconds * 1000)
    }

    #[test]
    fn throttle_halves_limit_down_to_one() {
        let mut throttle = TurnThrottle::new(16);
        let allowed: Vec<usize> = (0..6)
            .map(|round| {
                throttle.throttled(throttle.allowed(), at(round * 20));
                throttle.allowed()
            })
            .collect();
        assert_eq!(allowed, [8, 4, 2, 1, 1, 1]);
        assert!(!throttle.throttled(1, at(1000)), "it cannot be lowered further");
    }

    #[test]
    fn repeated_throttles_within_interval_count_once() {
        let mut throttle = TurnThrottle::new(16);
        assert!(throttle.throttled(16, at(0)));
        assert!(!(1..10).any(|second| throttle.throttled(8, at(second))));
        assert_eq!(throttle.allowed(), 8);
        assert!(throttle.throttled(8, at(10)));
    }

    #[test]
    fn throttle_halves_actual_concurrency_not_limit() {
        let mut throttle = TurnThrottle::new(100);
        throttle.throttled(6, at(0));
        assert_eq!(throttle.allowed(), 3);
    }

    #[test]
    fn full_round_of_successes_raises_limit_by_one_up_to_ceiling() {
        let mut throttle = TurnThrottle::new(4);
        throttle.throttled(4, at(0));
        throttle.throttled(2, at(20));
        let mut allowed = Vec::new();
        for _ in 0..8 {
            throttle.succeeded();
            allowed.push(throttle.allowed());
        }
        assert_eq!(allowed, [2, 2, 3, 3, 3, 4, 4, 4]);
        assert_eq!(TurnThrottle::new(0).allowed(), 1);
    }
}
