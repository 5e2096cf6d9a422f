//! `script.json`: a list of rules, of which the first that matches the prompt is played.
//!
//! A rule with `times` is used up after so many plays, counted over all processes by files in
//! `used/` that only one of them can create; then the next rule gets its turn.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::path::Path;

use serde::Deserialize;

use crate::refused::Refused;
use crate::usage::Used;

/// When to answer, and how. All but the reply is for playing something other than a good turn.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "each is a key of the script, off by default")]
pub(crate) struct Rule {
    /// A substring of the prompt; absent, the rule matches any.
    pub(crate) when: Option<String>,
    /// Only for this agent (`RAYMOND_AGENT`).
    pub(crate) agent: Option<String>,
    pub(crate) times: Option<u32>,
    #[serde(default)]
    pub(crate) reply: String,
    /// US dollars.
    #[serde(default)]
    pub(crate) cost: f64,
    /// The model that the stream names.
    pub(crate) model: Option<String>,
    /// What the turn takes of each model; absent, something of its own, for its cost.
    pub(crate) models: Option<BTreeMap<String, Used>>,

    /// Written to stderr first.
    pub(crate) stderr: Option<String>,
    /// Exit 0 with nothing said.
    #[serde(default)]
    pub(crate) silent: bool,
    /// Say what is no stream-json, then exit 0.
    #[serde(default)]
    pub(crate) garbage: bool,
    /// Leave a process behind that holds stdout open.
    #[serde(default)]
    pub(crate) helper: bool,
    /// The same, out of reach: in a session of its own, its parent gone.
    #[serde(default)]
    pub(crate) detach: bool,
    /// The same, and with nothing in its environment.
    #[serde(default)]
    pub(crate) hide: bool,
    /// A script that a tool runs in a shell, to its end.
    pub(crate) run: Option<String>,
    /// Tell of so many throttled requests that are tried again.
    #[serde(default)]
    pub(crate) retries: u32,
    /// What those announce; nothing is waited for.
    #[serde(default = "shortest")]
    pub(crate) retry_delay_ms: u64,
    /// Wait until this file appears in the folder, before the answer begins.
    pub(crate) hold_before: Option<String>,
    /// Have these calls of tools refused, before all else.
    #[serde(default)]
    pub(crate) refused: Vec<Refused>,
    /// Use the tool of this name first.
    pub(crate) tool: Option<String>,
    /// Wait until this file appears in the folder, before the tool is done.
    pub(crate) hold_tool: Option<String>,
    /// Never say anything more.
    #[serde(default)]
    pub(crate) hang: bool,
    /// Exit with this code instead of a result.
    pub(crate) exit: Option<u8>,
    /// Die by this signal instead of a result.
    pub(crate) signal: Option<i32>,
    /// Make the assistant's line at least so many bytes long.
    #[serde(default)]
    pub(crate) pad: usize,
    /// Put bytes that are no UTF-8 into the line of this type: `assistant` or `result`.
    pub(crate) non_utf8: Option<String>,
    /// End with a result that is an error.
    pub(crate) error: Option<Failure>,
    /// End with a result that tells of the account's usage limit.
    pub(crate) limit: Option<Limit>,
    /// After the result, a further turn with this reply that nobody asked for.
    pub(crate) unsolicited: Option<String>,
    /// Wait until this file appears in the folder, after the result.
    pub(crate) hold_after: Option<String>,
    /// Stay after the result until killed.
    #[serde(default)]
    pub(crate) linger: bool,
    /// After the result, and after `hold_after`, exit 1.
    #[serde(default)]
    pub(crate) die_idle: bool,
    /// Ignore SIGTERM; the helper does too.
    #[serde(default)]
    pub(crate) ignore_term: bool,
}

/// The part of a failed result that differs from case to case.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Failure {
    pub(crate) status: Option<u16>,
    pub(crate) text: String,
}

/// How a usage limit is told.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Limit {
    /// When it ends, in seconds or in milliseconds; only the event tells.
    pub(crate) resets: Option<u64>,
    pub(crate) text: String,
    /// Whether there is an event, or the text only.
    #[serde(default)]
    pub(crate) event: bool,
}

fn shortest() -> u64 {
    1
}

fn load(folder: &Path) -> Result<Vec<Rule>, String> {
    let path = folder.join("script.json");
    let say = |error: &dyn std::fmt::Display| format!("fake-claude: {}: {error}", path.display());
    let text = std::fs::read(&path).map_err(|error| say(&error))?;
    serde_json::from_slice(&text).map_err(|error| say(&error))
}

/// The rule to play; a use of it is taken.
pub(crate) fn choose(folder: &Path, prompt: &str) -> Result<Rule, String> {
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
