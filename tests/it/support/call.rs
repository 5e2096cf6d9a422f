//! The stand-in's log of its turns, and the state of processes.

use std::collections::BTreeMap;

use serde::Deserialize;

/// A turn of the stand-in; a warm process is started once for many of them.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct FakeCall {
    pub(crate) pid: i32,
    pub(crate) argv: Vec<String>,
    pub(crate) prompt: String,
    /// The session of the turn; `None` if it was refused.
    pub(crate) session: Option<String>,
    pub(crate) resumed_from: Option<String>,
    /// The prompts that the session had before.
    pub(crate) history: Vec<String>,
    pub(crate) cwd: String,
    /// The variables that start with `RAYMOND_`.
    pub(crate) env: BTreeMap<String, String>,
    /// The number of the turn in its process, from 0; only a warm process has more than one.
    #[serde(default)]
    pub(crate) turn_in_process: usize,
    /// The model that a warm process was last told to use, by `--model` or by `set_model`.
    pub(crate) model: Option<String>,
}

impl FakeCall {
    pub(crate) fn has(&self, flag: &str) -> bool {
        self.argv.iter().any(|argument| argument == flag)
    }

    /// Returns the value that follows a flag.
    pub(crate) fn flag(&self, name: &str) -> Option<&str> {
        let place = self.argv.iter().position(|argument| argument == name)?;
        self.argv.get(place + 1).map(String::as_str)
    }

    pub(crate) fn agent(&self) -> &str {
        self.env.get("RAYMOND_AGENT").map_or("", String::as_str)
    }

    /// Checks that the turn began a session, under an id chosen beforehand.
    #[track_caller]
    pub(crate) fn assert_fresh(&self) -> &Self {
        assert_eq!(self.flag("--session-id"), self.session.as_deref(), "{self:#?}");
        assert!(self.resumed_from.is_none() && !self.has("--fork-session"), "{self:#?}");
        assert!(self.history.is_empty(), "{self:#?}");
        self
    }

    /// Checks that the turn ran in the session of an earlier one: in its process, or in a new process that
    /// resumes it.
    #[track_caller]
    pub(crate) fn assert_resumes(&self, earlier: &Self) -> &Self {
        if self.turn_in_process > 0 {
            assert_eq!(self.session, earlier.session, "{self:#?}");
            return self;
        }
        assert_eq!(self.resumed_from, earlier.session, "{self:#?}");
        assert!(!self.has("--fork-session") && !self.has("--session-id"), "{self:#?}");
        assert_eq!(self.session, earlier.session, "{self:#?}");
        self
    }

    /// Checks that the turn ran in the process of an earlier one, right after it.
    #[track_caller]
    pub(crate) fn assert_continues(&self, earlier: &Self) -> &Self {
        assert_eq!(self.pid, earlier.pid, "{self:#?}");
        assert_eq!(self.session, earlier.session, "{self:#?}");
        assert_eq!(self.turn_in_process, earlier.turn_in_process + 1, "{self:#?}");
        self
    }

    /// Checks that the turn ran in a copy of an earlier turn's session, under an id chosen beforehand.
    #[track_caller]
    pub(crate) fn assert_branches(&self, earlier: &Self) -> &Self {
        assert_eq!(self.resumed_from, earlier.session, "{self:#?}");
        assert!(self.has("--fork-session"), "{self:#?}");
        assert_eq!(self.flag("--session-id"), self.session.as_deref(), "{self:#?}");
        assert_ne!(self.session, earlier.session, "{self:#?}");
        self
    }

    /// Returns the warm processes of a log in the order of their starts, with or without turns.
    pub(crate) fn warm_pids(log: &[serde_json::Value]) -> Vec<i32> {
        let started = log.iter().filter(|line| line["started"] == true);
        started.filter_map(|line| line["pid"].as_i64()?.try_into().ok()).collect()
    }
}

/// Returns the most turns that ran at once, by the order of the lines in the log. A turn writes its first
/// line after its start and its last line before its end, so the result is never too large.
pub(crate) fn most_at_once(log: &[serde_json::Value]) -> usize {
    let (mut live, mut most) = (0usize, 0);
    for line in log {
        if line.get("argv").is_some() {
            live += 1;
            most = most.max(live);
        } else if line.get("done").is_some() {
            live -= 1;
        }
    }
    most
}

/// Returns whether a process exists and is no zombie.
pub(crate) fn alive(pid: i32) -> bool {
    let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else {
        return false;
    };
    let state = stat.rsplit(") ").next().and_then(|rest| rest.chars().next());
    !matches!(state, Some('Z' | 'X') | None)
}
