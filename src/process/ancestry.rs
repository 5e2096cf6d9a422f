//! Finds the agent in whose turn this process runs.
//!
//! It checks the ancestors of this process, because a command can set the environment as it likes.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// The variable of an interactive Claude Code that a person has opened in the session of an agent: `RUN/AGENT`. It is no
/// process of the run, which would end it with the others.
pub const ATTACHED_TO: &str = "RAYMOND_ATTACHED";

/// An agent of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActingAgent {
    /// The run's id.
    pub run: String,
    /// The agent's id.
    pub agent: String,
}

/// The marks of a process that tell which agent it belongs to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct ProcessMarks {
    /// True if the process is raymond itself, which starts agents.
    is_raymond: bool,
    /// True if the process has raymond's name, at any path.
    is_named_raymond: bool,
    agent: Option<ActingAgent>,
}

/// Returns the agent in whose turn this process runs; `None` for a process of a person.
#[must_use]
pub fn acting_agent(own: impl Fn(&str) -> Option<String>) -> Option<ActingAgent> {
    decide(marked(own), &ancestors())
}

/// Returns whether a raymond is among the ancestors of this process. A process that an agent's command has
/// detached with an empty environment has no other mark: it is reparented to the raymond that takes orphans.
#[must_use]
pub fn has_raymond_above() -> bool {
    ancestors().iter().any(|process| process.is_raymond || process.is_named_raymond)
}

/// Returns the ancestors of this process, the nearest first.
fn ancestors() -> Vec<ProcessMarks> {
    let exe = std::env::current_exe().ok().map(without_deletion_mark);
    let mut chain = Vec::new();
    let mut pid = parent_of("self");
    while let Some(id) = pid.filter(|id| *id > 1) {
        chain.push(marks_of(id, exe.as_deref()));
        pid = parent_of(&id.to_string());
    }
    chain
}

/// Returns the agent of the process that the nearest raymond has started. `ancestors` begins with the nearest. Marks
/// of processes below that raymond's child are ignored.
fn decide(own: Option<ActingAgent>, ancestors: &[ProcessMarks]) -> Option<ActingAgent> {
    let below = ancestors.iter().take_while(|process| !process.is_raymond);
    let marked = below.filter_map(|process| process.agent.clone()).last();
    marked.or(own)
}

fn marked(variable: impl Fn(&str) -> Option<String>) -> Option<ActingAgent> {
    let filled = |name| variable(name).filter(|value| !value.is_empty());
    if let Some(attached) = filled(ATTACHED_TO)
        && let Some((run, agent)) = attached.split_once('/')
    {
        return Some(ActingAgent { run: run.to_owned(), agent: agent.to_owned() });
    }
    Some(ActingAgent { run: filled("RAYMOND_RUN")?, agent: filled("RAYMOND_AGENT")? })
}

fn marks_of(pid: u32, own: Option<&Path>) -> ProcessMarks {
    let exe = std::fs::read_link(format!("/proc/{pid}/exe")).ok().map(without_deletion_mark);
    let environ = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    let variable = |name: &str| {
        let prefix = format!("{name}=");
        let found = environ.split(|&byte| byte == 0).find(|one| one.starts_with(prefix.as_bytes()));
        found.map(|one| String::from_utf8_lossy(&one[prefix.len()..]).into_owned())
    };
    let is_named_raymond = exe.as_deref().and_then(Path::file_name) == Some(OsStr::new("raymond"));
    let is_raymond = exe.is_some() && exe.as_deref() == own;
    ProcessMarks { is_raymond, is_named_raymond, agent: marked(variable) }
}

/// Returns the path of a program without the mark of a replaced file.
fn without_deletion_mark(exe: PathBuf) -> PathBuf {
    let kept = exe.to_str().and_then(|path| path.strip_suffix(" (deleted)")).map(PathBuf::from);
    kept.unwrap_or(exe)
}

fn parent_of(pid: &str) -> Option<u32> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agent(name: &str) -> ActingAgent {
        ActingAgent { run: "r".to_owned(), agent: name.to_owned() }
    }

    fn process(name: Option<&str>) -> ProcessMarks {
        ProcessMarks { agent: name.map(agent), ..ProcessMarks::default() }
    }

    #[test]
    fn agent_is_taken_from_process_started_by_nearest_raymond() {
        let raymond = ProcessMarks { is_raymond: true, ..process(Some("outer")) };
        let shell = process(Some("pretended"));
        let claude = process(Some("main.1"));
        let chain = [shell.clone(), claude.clone(), raymond.clone(), process(Some("outer"))];
        assert_eq!(decide(Some(agent("pretended")), &chain), Some(agent("main.1")));
        assert_eq!(
            decide(None, &[process(None), claude]),
            Some(agent("main.1")),
            "a cleared environment"
        );
        assert_eq!(decide(None, &[raymond]), None);
        assert_eq!(decide(Some(agent("main")), &[]), Some(agent("main")));
        assert_eq!(decide(None, &[process(None)]), None);
    }

    #[test]
    fn model_that_a_person_speaks_with_acts_as_its_agent() {
        let variable = |name: &str| (name == ATTACHED_TO).then(|| "r/main.1".to_owned());
        assert_eq!(marked(variable), Some(agent("main.1")));
    }

    #[test]
    fn parent_of_own_process_is_found() {
        assert!(!Path::new("/proc/self/stat").exists() || parent_of("self").is_some());
    }
}
