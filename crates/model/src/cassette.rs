//! Cassettes: the turns of a run, recorded so that another run can be answered from them.
//!
//! A cassette is a directory with two files: `cassette.json` is a [`CassetteHeader`], `turns.jsonl` has a
//! [`RecordedTurn`] a line, in the order in which the turns ended.

use serde::{Deserialize, Serialize};
use strum::{IntoStaticStr, VariantArray};

use super::id::{AgentId, Folder, StateName};
use super::money::Usd;
use super::refusal::ToolRefusals;
use super::supervision::TurnTimeouts;
use super::time::{Timestamp, format_duration};
use super::turn::{FailureCause, TurnFailure};
use super::usage::UsageByModel;

/// The format of a cassette.
pub const CASSETTE_FORMAT: u32 = 1;

/// The name of the file with the header.
pub const HEADER_FILE: &str = "cassette.json";

/// The name of the file with the turns.
pub const TURNS_FILE: &str = "turns.jsonl";

/// The longest text that edits make, in bytes.
pub const MAX_PATCHED_BYTES: usize = 16 * 1024 * 1024;

/// The reason why a change cannot be made to a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PatchFailure {
    /// The part that an edit replaces is not in the text.
    NoSuchPart(TextEdit),
    /// The text would become longer than [`MAX_PATCHED_BYTES`].
    TooLong,
}

/// The first file of a cassette: its origin, and what is not in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CassetteHeader {
    /// [`CASSETTE_FORMAT`].
    pub format: u32,
    /// The version of raymond that recorded it.
    pub raymond: String,
    /// The workflow of the run.
    pub workflow: RecordedWorkflow,
    /// The number of turns.
    pub turns: u64,
    /// The number of the last record of the run; absent in a cassette of an older raymond.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub records: Option<u64>,
    /// True if the run was not over.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unfinished: bool,
    /// The scrub rules that were applied, with the number of times that each hit.
    #[serde(default)]
    pub scrubbed: Vec<ScrubbedCount>,
    /// The parts of the run that are not recorded.
    #[serde(default)]
    pub left_out: LeftOutCounts,
}

/// The workflow that was recorded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedWorkflow {
    /// The name of its folder.
    pub name: String,
    /// The folder of the first state below the root, if it is another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<Folder>,
    /// The first state.
    pub entry: StateName,
    /// The checksum of the list of its files; absent for a run that has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checksum: Option<String>,
}

/// The number of times that a scrub rule hit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScrubbedCount {
    /// The name of the rule.
    pub rule: String,
    /// The number of texts that it replaced.
    pub hits: u64,
}

/// The counts of what is not in a cassette.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LeftOutCounts {
    /// The turns whose stream is missing, so that they have no texts.
    pub missing_streams: u64,
    /// The changes of files outside of the working directory.
    pub outside_files: u64,
    /// The changes that the stream does not tell in full.
    pub unknown_changes: u64,
    /// The commands of the tool Bash, whose changes no stream tells.
    pub commands: u64,
}

/// A recorded turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[expect(clippy::struct_excessive_bools, reason = "each is a separate mark in a line")]
pub struct RecordedTurn {
    pub agent: AgentId,
    /// The agent's step, counted from 1.
    pub step: u64,
    /// The turn within the step, counted from 0.
    pub turn: u32,
    /// The number of the record that ended it; absent in a cassette of an older raymond.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub record: Option<u64>,
    /// The prompt that was asked: a file, or `file#node` of a graph, or `file#role` of a program.
    pub state: StateName,
    /// The folder of that file below the run's root, if it is another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<Folder>,
    /// The number of turns that the agent had had with this prompt before.
    pub visit: u32,
    /// The number of its session, counted from 1 in the order of first use.
    pub session: u32,
    /// The number of the turn in its session, counted from 1.
    pub session_turn: u32,
    /// The model that cost most in it, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The checksum of the text of the prompt below.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt_hash: Option<String>,
    /// The text of the prompt; `None` if the turn's stream is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
    #[serde(flatten)]
    pub outcome: RecordedEnding,
    /// True if this failure was the end of the agent.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ended_agent: bool,
    /// True if its agent failed in this step, and was retried later, so that another turn came in its place.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub retried: bool,
    /// True if a person gave the reply instead of the turn, so the prompt was not asked.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub given: bool,
    /// The cost.
    #[serde(default)]
    pub cost_usd: Usd,
    /// The usage of each model.
    #[serde(default, skip_serializing_if = "UsageByModel::is_empty")]
    pub usage: UsageByModel,
    /// The duration, in milliseconds.
    #[serde(default)]
    pub duration_ms: u64,
    /// The tools that were refused in it.
    #[serde(default, skip_serializing_if = "ToolRefusals::is_empty")]
    pub refused_tools: ToolRefusals,
    /// The files that it changed, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<RecordedChange>,
    /// True if its stream is missing, and so its texts.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stream_missing: bool,
}

/// Returns the reply of a turn: the message, and the object that was given beside it.
pub fn reply_text(answer: Option<&str>, structured: Option<&str>) -> Option<String> {
    let parts: Vec<&str> = [answer, structured].into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join("\n"))
}

/// The outcome of a recorded turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum RecordedEnding {
    /// The model answered.
    Replied {
        /// The final message; `None` if it is not known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        answer: Option<String>,
        /// The object that the model gave with the program's own tool for it, as JSON.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        structured: Option<String>,
    },
    /// No answer came.
    Failed {
        /// The kind of failure.
        cause: FailureCause,
        /// The description of the failure.
        message: String,
    },
    /// The turn ended with its agent, which others ended.
    Cut,
}

/// The change of a file by a turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedChange {
    /// The path below the agent's working directory.
    pub path: String,
    /// The tool that changed it.
    pub tool: String,
    /// The change.
    #[serde(flatten)]
    pub patch: FilePatch,
}

/// A change of a text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FilePatch {
    /// The whole content.
    Content(String),
    /// Parts that are replaced, one after another.
    Edits(Vec<TextEdit>),
}

/// A part of a text that is replaced.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TextEdit {
    /// The part.
    pub old: String,
    /// Its replacement.
    pub new: String,
    /// True if each occurrence is replaced, not only one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub all: bool,
}

impl FilePatch {
    /// Returns the patch of edits. A first one of nothing makes the file.
    pub fn of_edits(edits: Vec<TextEdit>) -> Self {
        let Some((first, others)) = edits.split_first().filter(|(first, _)| first.old.is_empty())
        else {
            return Self::Edits(edits);
        };
        let made = Self::Edits(others.to_vec()).apply(Some(&first.new));
        made.map_or_else(|_| Self::Edits(edits.clone()), Self::Content)
    }

    /// Returns the patch with each of its texts replaced.
    pub fn map(self, mut new: impl FnMut(&str) -> String) -> Self {
        match self {
            Self::Content(content) => Self::Content(new(&content)),
            Self::Edits(edits) => {
                let edit =
                    |edit: TextEdit| TextEdit { old: new(&edit.old), new: new(&edit.new), ..edit };
                Self::Edits(edits.into_iter().map(edit).collect())
            }
        }
    }

    /// Returns a text with this change; `None` of `before` is a file that does not exist.
    ///
    /// # Errors
    /// [`PatchFailure`] if a part is not in the text, or the text would become too long.
    pub fn apply(&self, before: Option<&str>) -> Result<String, PatchFailure> {
        match self {
            Self::Content(content) => Ok(content.clone()),
            Self::Edits(edits) => {
                let mut text = before.unwrap_or_default().to_owned();
                for edit in edits {
                    if edit.old.is_empty() || !text.contains(&edit.old) {
                        return Err(PatchFailure::NoSuchPart(edit.clone()));
                    }
                    let times = if edit.all { text.matches(&edit.old).count() } else { 1 };
                    let kept = text.len().saturating_sub(times.saturating_mul(edit.old.len()));
                    let added = times.saturating_mul(edit.new.len());
                    if kept.saturating_add(added) > MAX_PATCHED_BYTES {
                        return Err(PatchFailure::TooLong);
                    }
                    text = if edit.all {
                        text.replace(&edit.old, &edit.new)
                    } else {
                        text.replacen(&edit.old, &edit.new, 1)
                    };
                }
                Ok(text)
            }
        }
    }
}

impl RecordedTurn {
    /// Returns the name of its prompt, with the folder.
    pub fn place(&self) -> String {
        place(self.folder.as_ref(), &self.state)
    }

    /// Returns whether it is not replayed: it was retried, or tells of the machine or the account that it ran on.
    pub fn is_left_out(&self) -> bool {
        let is_of_environment = matches!(
            &self.outcome,
            RecordedEnding::Failed { cause, .. } if !self.ended_agent && cause.is_of_environment()
        );
        self.retried || is_of_environment
    }
}

/// Returns the name of a prompt, with its folder: `review/START.md`.
pub fn place(folder: Option<&Folder>, state: &StateName) -> String {
    match folder {
        Some(folder) => format!("{folder}/{state}"),
        None => state.to_string(),
    }
}

// The failures that a scripted reply can stand for, as a real turn would report them.

/// A kind of failure of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum FaultKind {
    /// The process is killed before it answers.
    Crash,
    /// The turn takes longer than `timeout` allows.
    Timeout,
    /// The turn makes no progress for longer than `idle_timeout` allows.
    Stall,
    /// The account's usage limit is reached.
    Limit,
    /// The process prints something that is not an answer.
    Malformed,
    /// The API refuses the request, and would refuse it again.
    Refused,
}

impl FaultKind {
    /// All kinds.
    pub const ALL: &'static [Self] = Self::VARIANTS;
}

/// A failure of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScriptedFault {
    pub kind: FaultKind,
    /// The time after which a usage limit resets, in milliseconds, if the account says so.
    pub resets_ms: Option<u64>,
}

impl ScriptedFault {
    /// Returns the failure of a kind, of which nothing more is known.
    pub fn of(kind: FaultKind) -> Self {
        Self { kind, resets_ms: None }
    }

    /// Returns the failure that follows when a turn takes so long, if it may not: `None` if it may.
    pub fn of_delay(delay_ms: u64, limits: TurnTimeouts) -> Option<(u64, Self)> {
        let timeout = (limits.timeout_ms, Self::of(FaultKind::Timeout));
        let stall = (limits.idle_timeout_ms, Self::of(FaultKind::Stall));
        let first = if limits.idle_timeout_ms < limits.timeout_ms { stall } else { timeout };
        (delay_ms > first.0).then_some(first)
    }

    /// Returns the failure of a turn, with the cause and the words of a real one.
    pub fn failure(self, limits: TurnTimeouts, now: Timestamp) -> TurnFailure {
        let (cause, message) = match self.kind {
            FaultKind::Crash => (
                FailureCause::Crash,
                "Claude Code was killed by signal 9 and gave no result".to_owned(),
            ),
            FaultKind::Timeout => {
                let longest = format_duration(limits.timeout_ms);
                let words = "; allow more with --timeout";
                (FailureCause::Timeout, format!("Claude Code gave no result within {longest}{words}"))
            }
            FaultKind::Stall => {
                let longest = format_duration(limits.idle_timeout_ms);
                let words = "; allow more with --idle-timeout";
                (FailureCause::Stall, format!("Claude Code made no progress for {longest}{words}"))
            }
            FaultKind::Limit => (
                FailureCause::UsageLimit,
                "Claude Code reported an error: Claude AI usage limit reached".to_owned(),
            ),
            FaultKind::Malformed => (
                FailureCause::Crash,
                "Claude Code exited with code 0 and printed no result, but `{\"type\":`, which is not stream-json"
                    .to_owned(),
            ),
            FaultKind::Refused => (
                FailureCause::Rejected,
                "Claude Code reported an error: API Error: 400 invalid_request_error; a repeated request would fail too"
                    .to_owned(),
            ),
        };
        let resets = self.resets_ms.map(|after| now.plus(after));
        TurnFailure { resets, ..TurnFailure::new(cause, message) }
    }
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod scripted_fault_tests {
    use super::*;

    const LIMITS: TurnTimeouts =
        TurnTimeouts { timeout_ms: 30_000, idle_timeout_ms: 10_000, shutdown_ms: 0 };

    #[test]
    fn each_fault_has_the_cause_of_a_real_failure() {
        let causes = [
            (FaultKind::Crash, FailureCause::Crash),
            (FaultKind::Timeout, FailureCause::Timeout),
            (FaultKind::Stall, FailureCause::Stall),
            (FaultKind::Limit, FailureCause::UsageLimit),
            (FaultKind::Malformed, FailureCause::Crash),
            (FaultKind::Refused, FailureCause::Rejected),
        ];
        assert_eq!(causes.len(), FaultKind::ALL.len());
        for (kind, cause) in causes {
            let failure = ScriptedFault::of(kind).failure(LIMITS, Timestamp(5));
            assert_eq!((failure.cause, failure.resets), (cause, None), "{kind:?}");
        }
        let limit = ScriptedFault { kind: FaultKind::Limit, resets_ms: Some(7) };
        assert_eq!(limit.failure(LIMITS, Timestamp(5)).resets, Some(Timestamp(12)));
    }

    #[test]
    fn long_delay_is_a_stall_or_a_timeout_whichever_comes_first() {
        let of = |delay, idle_timeout_ms| {
            let fault = ScriptedFault::of_delay(delay, TurnTimeouts { idle_timeout_ms, ..LIMITS });
            fault.map(|(after, fault)| (after, fault.kind))
        };
        assert_eq!(of(10_000, 10_000), None);
        assert_eq!(of(10_001, 10_000), Some((10_000, FaultKind::Stall)));
        assert_eq!(of(30_001, 90_000), Some((30_000, FaultKind::Timeout)));
    }
}
