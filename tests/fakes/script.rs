//! `script.json`: a list of rules. The first rule that matches the prompt is played.
//!
//! A rule with `times` is used up after so many turns. They are counted over all processes, by files in
//! `used/` that only one process can create. Then the next rule that matches is played.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::path::Path;

use serde::Deserialize;

use crate::asked::AskedTool;
use crate::refused::RefusedTool;
use crate::usage::ModelUsage;

/// A rule: the turns it is for, and how they are answered. All keys but the reply are for turns that go
/// wrong.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "each is a key of the script, off by default")]
pub(crate) struct ScriptRule {
    /// A part of the prompt; without it the rule matches any prompt.
    pub(crate) when: Option<String>,
    /// The agent (`RAYMOND_AGENT`) the rule is for.
    pub(crate) agent: Option<String>,
    pub(crate) times: Option<u32>,
    #[serde(default)]
    pub(crate) reply: String,
    /// The cost of the turn, in US dollars.
    #[serde(default)]
    pub(crate) cost: f64,
    /// The model that the stream names.
    pub(crate) model: Option<String>,
    /// The usage of each model; by default a plausible one for the cost.
    pub(crate) models: Option<BTreeMap<String, ModelUsage>>,

    /// A text that is first written to stderr.
    pub(crate) stderr: Option<String>,
    /// Exits with 0 and no output.
    #[serde(default)]
    pub(crate) silent: bool,
    /// Prints text that is not stream-json, and exits with 0.
    #[serde(default)]
    pub(crate) garbage: bool,
    /// Leaves a process behind that holds stdout open.
    #[serde(default)]
    pub(crate) helper: bool,
    /// Leaves a process behind in a session of its own, whose parent is gone.
    #[serde(default)]
    pub(crate) detach: bool,
    /// Leaves such a process behind with an empty environment.
    #[serde(default)]
    pub(crate) hide: bool,
    /// A script that a tool runs in a shell, to its end.
    pub(crate) run: Option<String>,
    /// The number of throttled requests that are announced and repeated.
    #[serde(default)]
    pub(crate) retries: u32,
    /// The delay that those announce; the process does not wait.
    #[serde(default = "shortest")]
    pub(crate) retry_delay_ms: u64,
    /// A file in the folder; the answer begins when it appears.
    pub(crate) hold_before: Option<String>,
    /// The calls of tools that are refused first.
    #[serde(default)]
    pub(crate) refused: Vec<RefusedTool>,
    /// The calls of tools that need approval.
    #[serde(default)]
    pub(crate) asked: Vec<AskedTool>,
    /// The tool that is used first.
    pub(crate) tool: Option<String>,
    /// A file in the folder; the tool is done when it appears.
    pub(crate) hold_tool: Option<String>,
    /// Prints nothing more, and does not end.
    #[serde(default)]
    pub(crate) hang: bool,
    /// Exits with this code instead of a result.
    pub(crate) exit: Option<u8>,
    /// Dies by this signal instead of a result.
    pub(crate) signal: Option<i32>,
    /// The least length of the assistant's line, in bytes.
    #[serde(default)]
    pub(crate) pad: usize,
    /// Puts bytes that are not UTF-8 into the line of this type: `assistant` or `result`.
    pub(crate) non_utf8: Option<String>,
    /// Lines that are printed as they stand in place of the answer. Their session is that of the turn.
    #[serde(default)]
    pub(crate) lines: Vec<serde_json::Value>,
    /// Ends the turn with a result that is an error.
    pub(crate) error: Option<FailedResult>,
    /// Ends the turn with a result that names the account's usage limit.
    pub(crate) limit: Option<LimitReport>,
    /// The reply of a further turn after the result, which raymond did not ask for.
    pub(crate) unsolicited: Option<String>,
    /// A file in the folder; the turn ends after its result when the file appears, and a file `.seen` says so.
    pub(crate) hold_after: Option<String>,
    /// Stays after the result until the process is killed.
    #[serde(default)]
    pub(crate) linger: bool,
    /// Exits with 1 after the result and after `hold_after`.
    #[serde(default)]
    pub(crate) die_idle: bool,
    /// Ignores SIGTERM; so does the helper.
    #[serde(default)]
    pub(crate) ignore_term: bool,
}

/// The parts of a failed result that differ from case to case.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FailedResult {
    pub(crate) status: Option<u16>,
    pub(crate) text: String,
}

/// The report of a usage limit.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct LimitReport {
    /// The end of the limit, in seconds or milliseconds; only the event has it.
    pub(crate) resets: Option<u64>,
    pub(crate) text: String,
    /// True if there is an event; otherwise there is only the text.
    #[serde(default)]
    pub(crate) event: bool,
}

fn shortest() -> u64 {
    1
}

fn load(folder: &Path) -> Result<Vec<ScriptRule>, String> {
    let path = folder.join("script.json");
    let say = |error: &dyn std::fmt::Display| format!("fake-claude: {}: {error}", path.display());
    let text = std::fs::read(&path).map_err(|error| say(&error))?;
    serde_json::from_slice(&text).map_err(|error| say(&error))
}

/// Returns the rule to play, and counts its use.
pub(crate) fn choose(folder: &Path, prompt: &str) -> Result<ScriptRule, String> {
    let agent = std::env::var("RAYMOND_AGENT").unwrap_or_default();
    for (index, rule) in load(folder)?.into_iter().enumerate() {
        let matches = rule.when.as_deref().is_none_or(|part| prompt.contains(part))
            && rule.agent.as_deref().is_none_or(|name| name == agent);
        if matches && take(folder, index, rule.times)? {
            return Ok(rule);
        }
    }
    let start: String = prompt.chars().take(200).collect();
    Err(format!("fake-claude: no rule of the script matches agent {agent:?}, prompt {start:?}"))
}

fn take(folder: &Path, index: usize, times: Option<u32>) -> Result<bool, String> {
    let Some(times) = times else { return Ok(true) };
    let used = folder.join("used");
    let say = |error: std::io::Error| format!("fake-claude: {}: {error}", used.display());
    std::fs::create_dir_all(&used).map_err(say)?;
    for turn in 0..times {
        let mark = used.join(format!("{index}-{turn}"));
        match OpenOptions::new().write(true).create_new(true).open(mark) {
            Ok(_) => return Ok(true),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(say(error)),
        }
    }
    Ok(false)
}
