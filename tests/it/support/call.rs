//! What the stand-in noted about each of its turns, and what the system knows of a process.

use std::collections::BTreeMap;

use serde::Deserialize;

/// One turn of the stand-in; but for a warm process, that is one start.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Call {
    pub(crate) pid: i32,
    pub(crate) argv: Vec<String>,
    pub(crate) prompt: String,
    /// The session the turn went into; absent when it was refused.
    pub(crate) session: Option<String>,
    pub(crate) resumed_from: Option<String>,
    /// The prompts this session had seen before.
    pub(crate) history: Vec<String>,
    pub(crate) cwd: String,
    /// The variables that start with `RAYMOND_`.
    pub(crate) env: BTreeMap<String, String>,
    /// Counted from 0: more than that only in a warm process.
    #[serde(default)]
    pub(crate) turn_in_process: usize,
    /// What a warm process was last told to use, by `--model` or by `set_model`.
    pub(crate) model: Option<String>,
}

impl Call {
    pub(crate) fn has(&self, flag: &str) -> bool {
        self.argv.iter().any(|argument| argument == flag)
    }

    /// The value that follows a flag.
    pub(crate) fn flag(&self, name: &str) -> Option<&str> {
        let place = self.argv.iter().position(|argument| argument == name)?;
        self.argv.get(place + 1).map(String::as_str)
    }

    pub(crate) fn agent(&self) -> &str {
        self.env.get("RAYMOND_AGENT").map_or("", String::as_str)
    }

    /// In a session of its own, under an id chosen beforehand.
    #[track_caller]
    pub(crate) fn assert_fresh(&self) -> &Self {
        assert_eq!(self.flag("--session-id"), self.session.as_deref(), "{self:#?}");
        assert!(self.resumed_from.is_none() && !self.has("--fork-session"), "{self:#?}");
        assert!(self.history.is_empty(), "{self:#?}");
        self
    }

    /// In the very session of an earlier turn: in its process, or in a new one that resumes it.
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

    /// In the very process of an earlier turn, right after it.
    #[track_caller]
    pub(crate) fn assert_continues(&self, earlier: &Self) -> &Self {
        assert_eq!(self.pid, earlier.pid, "{self:#?}");
        assert_eq!(self.session, earlier.session, "{self:#?}");
        assert_eq!(self.turn_in_process, earlier.turn_in_process + 1, "{self:#?}");
        self
    }

    /// In a copy of an earlier turn's session, under an id chosen beforehand.
    #[track_caller]
    pub(crate) fn assert_branches(&self, earlier: &Self) -> &Self {
        assert_eq!(self.resumed_from, earlier.session, "{self:#?}");
        assert!(self.has("--fork-session"), "{self:#?}");
        assert_eq!(self.flag("--session-id"), self.session.as_deref(), "{self:#?}");
        assert_ne!(self.session, earlier.session, "{self:#?}");
        self
    }

    /// The warm processes of a log, in the order of their starts, also those without a turn yet.
    pub(crate) fn warm_pids(log: &[serde_json::Value]) -> Vec<i32> {
        let started = log.iter().filter(|line| line["started"] == true);
        started.filter_map(|line| line["pid"].as_i64()?.try_into().ok()).collect()
    }
}

/// The most turns that ran at once, by the order of the lines they wrote. Each writes its first
/// line after its start and its last before its end, so this is never more than the truth.
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

/// Whether a process exists and is no zombie.
pub(crate) fn alive(pid: i32) -> bool {
    let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else {
        return false;
    };
    let state = stat.rsplit(") ").next().and_then(|rest| rest.chars().next());
    !matches!(state, Some('Z' | 'X') | None)
}
