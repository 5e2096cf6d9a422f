//! A finished `raymond`, and checks of its outcome. A check that fails shows the whole outcome: the output,
//! the calls of the stand-in, the journal.

use std::process::ExitStatus;

use serde_json::{Deserializer, Value};

/// The outcome of one `raymond`.
#[derive(Debug)]
pub(crate) struct RaymondOutcome {
    pub(crate) arguments: Vec<String>,
    pub(crate) status: ExitStatus,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    /// The text that explains a failure: the calls that were made, the records that were written.
    pub(super) evidence: String,
}

impl RaymondOutcome {
    /// Returns whether it was killed, as by `kill -9`.
    pub(crate) fn killed(&self) -> bool {
        use std::os::unix::process::ExitStatusExt;
        self.status.signal() == Some(9)
    }

    /// Checks that all agents ended successfully.
    #[track_caller]
    pub(crate) fn ok(&self) -> &Self {
        self.code(0)
    }

    #[track_caller]
    pub(crate) fn code(&self, code: i32) -> &Self {
        self.code_in(&[code])
    }

    /// Checks that the exit code is one of several.
    #[track_caller]
    pub(crate) fn code_in(&self, codes: &[i32]) -> &Self {
        let right = self.status.code().is_some_and(|code| codes.contains(&code));
        self.assert(right, &format!("exit code {codes:?}"))
    }

    #[track_caller]
    pub(crate) fn stdout_has(&self, part: &str) -> &Self {
        self.assert(self.stdout.contains(part), &format!("{part:?} on stdout"))
    }

    #[track_caller]
    pub(crate) fn stdout_lacks(&self, part: &str) -> &Self {
        self.assert(!self.stdout.contains(part), &format!("no {part:?} on stdout"))
    }

    #[track_caller]
    pub(crate) fn stderr_has(&self, part: &str) -> &Self {
        self.assert(self.stderr.contains(part), &format!("{part:?} on stderr"))
    }

    #[track_caller]
    pub(crate) fn stderr_lacks(&self, part: &str) -> &Self {
        self.assert(!self.stderr.contains(part), &format!("no {part:?} on stderr"))
    }

    /// Checks that stdout or stderr contains this text, in any case of its letters.
    #[track_caller]
    pub(crate) fn says(&self, part: &str) -> &Self {
        let all = format!("{}\n{}", self.stdout, self.stderr).to_lowercase();
        self.assert(all.contains(&part.to_lowercase()), &format!("{part:?} said somewhere"))
    }

    /// Checks that stdout has the final line of an agent that ended successfully.
    #[track_caller]
    pub(crate) fn ended(&self, agent: &str, result: &str) -> &Self {
        self.stdout_has(&format!("Agent {agent} terminated with result: {result}"))
    }

    /// Returns the message of an agent that failed, and the text after it.
    #[track_caller]
    pub(crate) fn failed(&self, agent: &str) -> &str {
        let start = format!("Agent {agent} failed: ");
        let rest = self.stdout.split_once(&start).map(|(_, rest)| rest);
        self.assert(rest.is_some(), &format!("{start:?} on stdout"));
        rest.unwrap_or_default()
    }

    /// Returns the lines of stdout as JSON.
    #[track_caller]
    pub(crate) fn json_lines(&self) -> Vec<Value> {
        let parse = |line: &str| serde_json::from_str(line).ok();
        let lines: Vec<Option<Value>> = self.stdout.lines().map(parse).collect();
        self.assert(lines.iter().all(Option::is_some), "only JSON lines on stdout");
        lines.into_iter().flatten().collect()
    }

    /// Returns the items on stdout, as an array or as one on each line.
    #[track_caller]
    pub(crate) fn json_items(&self) -> Vec<Value> {
        let values: Result<Vec<Value>, _> =
            Deserializer::from_str(&self.stdout).into_iter().collect();
        self.assert(values.is_ok(), "JSON on stdout");
        let items = |value| match value {
            Value::Array(items) => items,
            one => vec![one],
        };
        values.into_iter().flatten().flat_map(items).collect()
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        let value = serde_json::from_str(&self.stdout).ok();
        self.assert(value.is_some(), "JSON on stdout");
        value.unwrap_or_default()
    }

    #[track_caller]
    pub(crate) fn assert(&self, holds: bool, wanted: &str) -> &Self {
        assert!(holds, "wanted {wanted}, but\n{}", self.report());
        self
    }

    fn report(&self) -> String {
        format!(
            "raymond {}\nended with {}\n--- stdout\n{}\n--- stderr\n{}\n{}",
            self.arguments.join(" "),
            self.status,
            start_of(&self.stdout),
            start_of(&self.stderr),
            self.evidence,
        )
    }
}

/// Returns the beginning of a text: enough to explain a failure, short enough not to hide the rest.
pub(super) fn start_of(text: &str) -> String {
    let line = |line: &str| line.chars().take(400).collect::<String>();
    text.lines().take(40).map(line).collect::<Vec<_>>().join("\n")
}
