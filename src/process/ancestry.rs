//! Finds the agent in whose turn this process runs.
//!
//! It checks all ancestors of this process, because a command can set the environment as it likes, and start a raymond to
//! command below it.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::child::orphans::read_stat;
use super::command::DETACHED;
pub use super::registry::ActingAgent;
use super::registry::{ProcessRegistry, Registered};

/// The variable of an interactive Claude Code that a person has opened in the session of an agent: `RUN/AGENT`. It is no
/// process of the run, which would end it with the others.
pub const ATTACHED_TO: &str = "RAYMOND_ATTACHED";

/// The variables of a process of a turn.
const RUN: &str = "RAYMOND_RUN";
const AGENT: &str = "RAYMOND_AGENT";

/// The name of an agent that is not known.
const UNKNOWN: &str = "unknown";

/// The number of looks for the entry of a process that was just started, and the time between two.
const MAX_LOOKS: usize = 10;
const LOOK_INTERVAL: Duration = Duration::from_millis(10);

/// What tells of a process which agent it belongs to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct ProcessMarks {
    /// True if the process is raymond itself, which starts agents.
    is_raymond: bool,
    /// True if the process has raymond's name, at any path.
    is_named_raymond: bool,
    /// The agent that its environment names; the name is empty for a process that was started ahead of its first turn.
    marked: Option<ActingAgent>,
    registered: Option<Registered>,
}

/// Returns the agent in whose turn this process runs; `None` for a process of a person. `own` is the environment of this
/// process.
#[must_use]
pub fn acting_agent(
    own: impl Fn(&str) -> Option<String>,
    registry: Option<&ProcessRegistry>,
) -> Option<ActingAgent> {
    let pids = chain_of_pids();
    let find = |pid: &u32| registry?.find(*pid, read_stat(*pid)?.started);
    let exe = own_exe();
    let mut chain: Vec<ProcessMarks> =
        pids.iter().map(|&pid| marks_of(pid, exe.as_deref())).collect();
    for (process, pid) in chain.iter_mut().zip(&pids) {
        process.registered = find(pid);
    }
    match chain.first_mut() {
        Some(this) => this.marked = marked(own),
        None => chain.push(ProcessMarks { marked: marked(own), ..ProcessMarks::default() }),
    }
    // What raymond starts for a person is entered just after its start.
    for _ in 0..MAX_LOOKS {
        let Some(at) = unexplained(&chain) else { break };
        std::thread::sleep(LOOK_INTERVAL);
        chain[at].registered = find(&pids[at]);
    }
    decide(&chain)
}

/// Returns whether a raymond is among the ancestors of this process. A process that an agent's command has
/// detached with an empty environment may have no other mark: it is reparented to the raymond that takes orphans.
#[must_use]
pub fn has_raymond_above() -> bool {
    let exe = own_exe();
    let mut ancestors = chain_of_pids().into_iter().skip(1);
    ancestors.any(|pid| {
        let process = marks_of(pid, exe.as_deref());
        process.is_raymond || process.is_named_raymond
    })
}

/// Returns whether the parent of this process is a raymond with this command.
#[must_use]
pub fn is_started_by(command: &str) -> bool {
    let Some(&parent) = chain_of_pids().get(1) else { return false };
    let line = std::fs::read(format!("/proc/{parent}/cmdline")).unwrap_or_default();
    marks_of(parent, own_exe().as_deref()).is_raymond
        && line.split(|&byte| byte == 0).nth(1) == Some(command.as_bytes())
}

/// Returns the number of this process, and those of its ancestors, the nearest first.
fn chain_of_pids() -> Vec<u32> {
    let own = std::fs::read_link("/proc/self").ok();
    let mut pid = own.and_then(|own| own.to_str()?.parse().ok());
    let mut chain = Vec::new();
    while let Some(id) = pid.filter(|id| *id > 0) {
        chain.push(id);
        pid = read_stat(id).map(|stat| stat.parent);
    }
    chain
}

/// Returns the agent of a process, from what tells of it and of its ancestors, nearest first. The whole chain counts: an
/// agent can start a raymond and command below it. The agent is that of the process which the nearest raymond has
/// started, if it is an agent's, and else of the one that the next raymond has started; marks of processes below are
/// those of commands, which can set them as they like.
fn decide(chain: &[ProcessMarks]) -> Option<ActingAgent> {
    let mut found = None;
    for (at, process) in chain.iter().enumerate() {
        if process.is_raymond && found.is_some() {
            break;
        }
        found = process.agent().or_else(|| left_behind(chain, at)).or(found);
    }
    found.map(|agent| ActingAgent {
        agent: if agent.agent.is_empty() { UNKNOWN.to_owned() } else { agent.agent },
        ..agent
    })
}

/// Returns the agent of a child of a supervisor that neither bears a mark nor has an entry: an agent's command left it
/// behind, so that it was given to the raymond that takes orphans.
fn left_behind(chain: &[ProcessMarks], at: usize) -> Option<ActingAgent> {
    let run = chain.get(at + 1)?.registered.as_ref()?.supervises.clone()?;
    let is_persons = chain[at].registered.as_ref().is_some_and(|known| known.is_persons);
    (!is_persons).then_some(ActingAgent { run, agent: String::new() })
}

/// Returns the place of a process of which it is not known why it is below its supervisor.
fn unexplained(chain: &[ProcessMarks]) -> Option<usize> {
    let is_unmarked = |at: usize| chain[at].agent().is_none() && left_behind(chain, at).is_some();
    (0..chain.len()).find(|&at| is_unmarked(at))
}

impl ProcessMarks {
    /// Returns the agent that the environment or the registry names. An environment without the name of its agent is
    /// completed by the registry.
    fn agent(&self) -> Option<ActingAgent> {
        let registered = self.registered.as_ref().and_then(|known| known.agent.clone());
        match (self.marked.clone(), registered) {
            (Some(marked), Some(registered)) if marked.agent.is_empty() => Some(registered),
            (marked, registered) => marked.or(registered),
        }
    }
}

/// Returns the agent that an environment names. Also a process of a run whose agent is empty is an agent's: it was started
/// ahead of its first turn. Hooks and plug-ins have no such variable.
fn marked(variable: impl Fn(&str) -> Option<String>) -> Option<ActingAgent> {
    let filled = |name| variable(name).filter(|value| !value.is_empty());
    let pair = |name| {
        let value = filled(name)?;
        let (run, agent) = value.split_once('/')?;
        Some(ActingAgent { run: run.to_owned(), agent: agent.to_owned() })
    };
    let of_turn = || Some(ActingAgent { run: filled(RUN)?, agent: variable(AGENT)? });
    pair(ATTACHED_TO).or_else(of_turn).or_else(|| pair(DETACHED))
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
    ProcessMarks { is_raymond, is_named_raymond, marked: marked(variable), registered: None }
}

fn own_exe() -> Option<PathBuf> {
    std::env::current_exe().ok().map(without_deletion_mark)
}

/// Returns the path of a program without the mark of a replaced file.
fn without_deletion_mark(exe: PathBuf) -> PathBuf {
    let kept = exe.to_str().and_then(|path| path.strip_suffix(" (deleted)")).map(PathBuf::from);
    kept.unwrap_or(exe)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agent(name: &str) -> ActingAgent {
        ActingAgent { run: "r".to_owned(), agent: name.to_owned() }
    }

    fn process(name: Option<&str>) -> ProcessMarks {
        ProcessMarks { marked: name.map(agent), ..ProcessMarks::default() }
    }

    fn raymond(name: Option<&str>) -> ProcessMarks {
        ProcessMarks { is_raymond: true, ..process(name) }
    }

    fn supervisor() -> ProcessMarks {
        let registered = Registered { supervises: Some("r".to_owned()), ..Registered::default() };
        ProcessMarks { registered: Some(registered), ..raymond(None) }
    }

    fn registered(registered: Registered) -> ProcessMarks {
        ProcessMarks { registered: Some(registered), ..process(None) }
    }

    fn in_environment(variables: &[(&str, &str)]) -> Option<ActingAgent> {
        let found = |name: &str| variables.iter().find(|(one, _)| *one == name);
        marked(|name| found(name).map(|(_, value)| (*value).to_owned()))
    }

    #[test]
    fn agent_is_taken_from_process_started_by_nearest_raymond() {
        let (shell, claude) = (process(Some("pretended")), process(Some("main.1")));
        let chain = [shell, claude.clone(), raymond(Some("outer")), process(Some("outer"))];
        assert_eq!(decide(&chain), Some(agent("main.1")));
        assert_eq!(decide(&[process(None), process(None), claude]), Some(agent("main.1")));
        assert_eq!(decide(&[process(Some("main"))]), Some(agent("main")));
        assert_eq!(decide(&[process(None), raymond(None), process(None)]), None);
    }

    #[test]
    fn agent_is_found_above_the_raymonds_that_it_has_started() {
        let claude = || process(Some("main.1"));
        for between in [
            &[raymond(None)][..],
            &[process(None), raymond(None), process(None)],
            &[process(None), raymond(None), process(None), raymond(None), process(None)],
        ] {
            let chain = [&[process(None)][..], between, &[claude(), raymond(None)]].concat();
            assert_eq!(decide(&chain), Some(agent("main.1")), "{chain:?}");
        }
        assert_eq!(decide(&[process(None), raymond(Some("main.1"))]), Some(agent("main.1")));
    }

    #[test]
    fn registry_names_agents_that_environments_do_not() {
        let entry = |name: &str| Registered { agent: Some(agent(name)), ..Registered::default() };
        let chain = [process(None), registered(entry("main.2")), supervisor()];
        assert_eq!(decide(&chain), Some(agent("main.2")));
        let ahead = ProcessMarks { registered: Some(entry("main.2")), ..process(Some("")) };
        assert_eq!(decide(&[process(None), ahead]), Some(agent("main.2")));
        assert_eq!(decide(&[process(Some(""))]), Some(agent(UNKNOWN)));
        let other = ProcessMarks { registered: Some(entry("main.2")), ..process(Some("main.1")) };
        assert_eq!(decide(&[other]), Some(agent("main.1")), "the environment is not replaced");
    }

    #[test]
    fn child_of_supervisor_without_entry_is_an_agents() {
        let persons = Registered { is_persons: true, ..Registered::default() };
        let hook = || registered(persons.clone());
        assert_eq!(decide(&[process(None), hook(), supervisor(), process(None)]), None);
        assert_eq!(decide(&[process(None), process(None), supervisor()]), Some(agent(UNKNOWN)));
        assert_eq!(unexplained(&[process(None), process(None), supervisor()]), Some(1));
        assert_eq!(unexplained(&[process(None), hook(), supervisor()]), None);
        assert_eq!(unexplained(&[process(None), process(Some("a")), supervisor()]), None);
        let unproven = registered(Registered::default());
        assert_eq!(decide(&[unproven, supervisor()]), Some(agent(UNKNOWN)));
        let nested = [hook(), supervisor(), process(None), process(Some("main")), supervisor()];
        assert_eq!(decide(&nested), Some(agent("main")), "its starter is an agent");
    }

    #[test]
    fn environments_of_agents_are_told_from_those_of_hooks() {
        let run = (RUN, "r");
        for (variables, name) in [
            (vec![run, (AGENT, "main")], Some("main")),
            (vec![run, (AGENT, "")], Some("")),
            (vec![(ATTACHED_TO, "r/main.1")], Some("main.1")),
            (vec![(DETACHED, "r/main.1")], Some("main.1")),
            (vec![(DETACHED, "1")], None),
            (vec![run, ("RAYMOND_EVENT", "ended")], None),
            (vec![run, ("RAYMOND_PLUGIN", "p")], None),
            (vec![(RUN, ""), (AGENT, "")], None),
            (vec![(AGENT, "main")], None),
            (vec![run, (AGENT, "main.2"), (DETACHED, "o/main")], Some("main.2")),
        ] {
            assert_eq!(in_environment(&variables), name.map(agent), "{variables:?}");
        }
    }

    #[test]
    fn chain_begins_with_this_process() {
        let chain = chain_of_pids();
        assert!(!Path::new("/proc/self/stat").exists() || chain[0] == std::process::id());
        assert!(!Path::new("/proc/self/stat").exists() || chain.len() > 1);
    }
}
