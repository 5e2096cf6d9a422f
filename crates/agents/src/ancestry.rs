//! Finds the agent in whose turn this process runs, and ends this process with its parent if the parent asks for it.
//!
//! All ancestors of this process are checked, because a command can set its environment freely and start its own
//! raymond. What cannot be seen counts against the command: see `Sight`.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::child::orphans::read_stat;
use crate::command::{DETACHED, value};
pub use crate::registry::ActingAgent;
use crate::registry::{ProcessRegistry, Registered};

/// The variable of an interactive Claude Code that a person has opened in the session of an agent: `RUN/AGENT`. It does
/// not belong to the run, which would end it with its other processes.
pub const ATTACHED_TO: &str = "RAYMOND_ATTACHED";

/// The variables of a process of a turn.
const RUN: &str = "RAYMOND_RUN";
const AGENT: &str = "RAYMOND_AGENT";

/// The name of an agent that is not known.
const UNKNOWN: &str = "unknown";

/// The number of looks for the entry of a process that was just started, and the time between two.
const MAX_LOOKS: usize = 10;
const LOOK_INTERVAL: Duration = Duration::from_millis(10);

/// The commands that start programs and no agents: an editor, Claude Code for a person, a browser, or another raymond.
const WITHOUT_AGENTS: [&str; 7] =
    ["attach", "edit", "recover", "serve", "start", "test", "workflow"];

/// What tells of a process which agent it belongs to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct ProcessMarks {
    /// True if the process runs the program of this process.
    is_raymond: bool,
    /// True if the process is raymond by its program or by its name, or holds the lock of a supervisor.
    is_named_raymond: bool,
    /// True if its command starts no agents.
    is_without_agents: bool,
    /// The agent that its environment names; the name is empty for a process that was started ahead of its first turn.
    marked: Option<ActingAgent>,
    registered: Option<Registered>,
}

/// What this process can see of its ancestors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Sight {
    /// True if `/proc` shows the processes of the namespace of this process, and nothing lies over it.
    is_genuine: bool,
    /// True if there can be no ancestor that it does not show.
    is_whole: bool,
    /// True if a raymond supervises a run, and none of a person does so in this namespace.
    has_hidden_supervisor: bool,
}

impl Sight {
    /// Returns the reason why an agent may have given a command whose visible ancestors name none, and what to do.
    fn doubt(self) -> Option<&'static str> {
        if !self.is_genuine {
            return Some(
                "/proc does not show the ancestors of this command, so an agent may have given it; mount /proc in its namespace",
            );
        }
        (!self.is_whole && self.has_hidden_supervisor).then_some(
            "a raymond that this process namespace does not show supervises a run, so one of its agents may have given this command; give it on the machine or in the container of that raymond, or after its runs",
        )
    }
}

/// Returns the agent in whose turn this process runs; `None` for a process of a person. `own` is the environment of
/// this process.
pub fn acting_agent(
    environment: impl Fn(&str) -> Option<String>,
    registry: Option<&ProcessRegistry>,
) -> Option<ActingAgent> {
    let (pids, has_root) = chain_of_pids();
    let find = |pid: &u32| registry?.find(*pid, read_stat(*pid)?.started);
    let exe = self_exe();
    let supervisors = registry.map(ProcessRegistry::key_holders).unwrap_or_default();
    let entered = |pid: &u32| {
        let marks = marks_of(*pid, exe.as_deref());
        let is_named_raymond = marks.is_named_raymond || supervisors.contains(pid);
        ProcessMarks { is_named_raymond, registered: find(pid), ..marks }
    };
    let mut chain: Vec<ProcessMarks> = pids.iter().map(entered).collect();
    chain.resize_with(pids.len().max(1), ProcessMarks::default);
    chain[0].marked = marked(environment);
    // What raymond starts for a person is entered just after its start.
    for _ in 0..MAX_LOOKS {
        let Some(at) = unexplained(&chain) else { break };
        std::thread::sleep(LOOK_INTERVAL);
        chain[at].registered = find(&pids[at]);
    }
    let is_whole = has_root && has_initial_namespace();
    let sight = Sight {
        is_genuine: is_genuine(&pids),
        is_whole,
        has_hidden_supervisor: !is_whole
            && registry.is_some_and(ProcessRegistry::has_hidden_supervisor),
    };
    decide(&chain, sight)
}

/// Returns whether a raymond is among the ancestors of this process. A process that an agent's command has
/// detached with an empty environment may have no other mark: it is reparented to the raymond that takes orphans.
pub fn has_raymond_above() -> bool {
    let exe = self_exe();
    let mut ancestors = chain_of_pids().0.into_iter().skip(1);
    ancestors.any(|pid| marks_of(pid, exe.as_deref()).is_named_raymond)
}

/// Returns the number of this process, and those of its ancestors, the nearest first; and whether the last has no
/// parent.
fn chain_of_pids() -> (Vec<u32>, bool) {
    let link = std::fs::read_link("/proc/self").ok();
    let mut pid = link.and_then(|link| link.to_str()?.parse().ok());
    let mut chain = Vec::new();
    while let Some(id) = pid.filter(|id| *id > 0) {
        chain.push(id);
        pid = read_stat(id).map(|stat| stat.parent);
    }
    (chain, pid == Some(0))
}

/// Returns whether `/proc` shows the namespace of this process, and the system itself tells of each of its ancestors.
#[cfg(target_os = "linux")]
fn is_genuine(pids: &[u32]) -> bool {
    use rustix::fs::{Mode, OFlags, PROC_SUPER_MAGIC, ResolveFlags, fstatfs, open, openat2};
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let Ok(proc) = open("/proc", flags, Mode::empty()) else { return false };
    let is_covered = |name: String| {
        let opened = openat2(&proc, name, flags, Mode::empty(), ResolveFlags::NO_XDEV);
        opened.is_err_and(|error| error == rustix::io::Errno::XDEV)
    };
    fstatfs(&proc).is_ok_and(|system| system.f_type == PROC_SUPER_MAGIC)
        && pids.first() == Some(&std::process::id())
        && !is_covered("self/ns".to_owned())
        && !pids.iter().any(|pid| is_covered(format!("{pid}/stat")))
}

#[cfg(not(target_os = "linux"))]
fn is_genuine(_: &[u32]) -> bool {
    true
}

/// Returns whether this process is in the first process namespace of the machine, which shows all processes. Its number
/// is part of the interface of Linux.
fn has_initial_namespace() -> bool {
    let namespace = std::fs::read_link("/proc/self/ns/pid");
    !cfg!(target_os = "linux")
        || namespace.is_ok_and(|namespace| namespace == Path::new("pid:[4026531836]"))
}

/// Returns the agent of a process, from what tells of it and of its ancestors, nearest first. The whole chain counts:
/// an agent can start a raymond and command below it. The agent is that of the process which the nearest raymond has
/// started, if it is an agent's, and else of the process that the next raymond has started; marks of processes below
/// are those of commands, which can set them as they like.
fn decide(chain: &[ProcessMarks], sight: Sight) -> Option<ActingAgent> {
    let mut found = None;
    for (at, process) in chain.iter().enumerate() {
        if process.is_raymond && found.is_some() {
            break;
        }
        found = agent_at(chain, at).or_else(|| left_behind(chain, at)).or(found);
    }
    let hidden =
        |doubt: &str| ActingAgent { advice: Some(doubt.to_owned()), ..ActingAgent::default() };
    found.or_else(|| sight.doubt().map(hidden)).map(|agent| ActingAgent {
        agent: if agent.agent.is_empty() { UNKNOWN.to_owned() } else { agent.agent },
        ..agent
    })
}

/// Returns the agent that the environment or the registry names for a process. The registry completes an environment
/// without the name of its agent.
fn agent_at(chain: &[ProcessMarks], at: usize) -> Option<ActingAgent> {
    let process = &chain[at];
    let is_below_raymond = || chain[at + 1..].iter().any(|above| above.is_named_raymond);
    // An agent can write an entry for a person's shell.
    let known = process.registered.as_ref().filter(|known| known.is_certain || is_below_raymond());
    let registered = known.and_then(|known| known.agent.clone());
    match (process.marked.clone(), registered) {
        (Some(marked), Some(registered)) if marked.agent.is_empty() => Some(registered),
        (marked, registered) => marked.or(registered),
    }
}

/// Returns the agent of a child of a supervisor that neither bears a mark nor has an entry: an agent's command left it
/// behind, so that it was given to the raymond that takes orphans.
fn left_behind(chain: &[ProcessMarks], at: usize) -> Option<ActingAgent> {
    let run = chain.get(at + 1)?.supervised_run()?;
    let is_persons = chain[at].registered.as_ref().is_some_and(|known| known.is_persons);
    (!is_persons).then(|| ActingAgent { run, ..ActingAgent::default() })
}

/// Returns the place of a process of which it is not known why it is below its supervisor.
fn unexplained(chain: &[ProcessMarks]) -> Option<usize> {
    let is_unmarked = |at: &usize| agent_at(chain, *at).is_none();
    (0..chain.len()).filter(is_unmarked).find(|&at| left_behind(chain, at).is_some())
}

impl ProcessMarks {
    /// Returns the run that a process supervises, empty if it is not known. A raymond without an entry counts as a
    /// supervisor, because an agent can remove the entry, or look for it in another directory.
    fn supervised_run(&self) -> Option<String> {
        let proven = self.registered.as_ref().and_then(|known| known.supervises.clone());
        proven.or_else(|| (self.is_named_raymond && !self.is_without_agents).then(String::new))
    }
}

/// Returns the agent that an environment names. Also a process of a run whose agent is empty is an agent's: it was
/// started ahead of its first turn. Hooks and plug-ins have no such variable.
fn marked(variable: impl Fn(&str) -> Option<String>) -> Option<ActingAgent> {
    let filled = |name| variable(name).filter(|value| !value.is_empty());
    let pair = |name| {
        let value = filled(name)?;
        let (run, agent) = value.split_once('/')?;
        Some(ActingAgent::new(run, agent))
    };
    let of_turn = || Some(ActingAgent::new(filled(RUN)?, variable(AGENT)?));
    pair(ATTACHED_TO).or_else(of_turn).or_else(|| pair(DETACHED))
}

fn marks_of(pid: u32, self_exe: Option<&Path>) -> ProcessMarks {
    let read = |name: &str| std::fs::read(format!("/proc/{pid}/{name}")).unwrap_or_default();
    let exe = std::fs::read_link(format!("/proc/{pid}/exe")).ok().map(without_deletion_mark);
    let (environ, command) = (read("environ"), read("cmdline"));
    let marked = marked(|name| value(&environ, name).map(str::to_owned));
    let mut words = command.split(|&byte| byte == 0);
    let program = words.next().map(|program| Path::new(OsStr::from_bytes(program)));
    let word = words.find(|word| !word.starts_with(b"--color=")).unwrap_or_default();
    let is_name = |path: &Path| path.file_name() == Some(OsStr::new("raymond"));
    let is_raymond = exe.is_some() && exe.as_deref() == self_exe;
    // From another user namespace the program cannot be read, and an agent can give it another name.
    let is_named_raymond =
        is_raymond || exe.as_deref().is_some_and(is_name) || program.is_some_and(is_name);
    let is_without_agents = WITHOUT_AGENTS.iter().any(|name| name.as_bytes() == word);
    ProcessMarks { is_raymond, is_named_raymond, is_without_agents, marked, registered: None }
}

fn self_exe() -> Option<PathBuf> {
    std::env::current_exe().ok().map(without_deletion_mark)
}

/// Returns the path of a program without the mark of a replaced file.
fn without_deletion_mark(exe: PathBuf) -> PathBuf {
    let kept = exe.to_str().and_then(|path| path.strip_suffix(" (deleted)")).map(PathBuf::from);
    kept.unwrap_or(exe)
}

// Ties the life of this process to its parent's, if the parent asks for it.
//
// `raymond test` starts a raymond for each case. If it is killed, it can no longer end them, so the system sends them
// a signal to end, like an interrupt. On systems other than Linux they run until they end by themselves.

/// The variable with the number of the process that this one is not to outlive.
pub const VARIABLE: &str = "RAYMOND_OWNER";

/// Has the system terminate this process when its parent ends, if that is its owner. Returns whether the owner is still
/// there: it may have been killed while this process was being started.
pub fn follow(owner: Option<&str>) -> bool {
    let Some(owner) = owner.and_then(|owner| owner.parse::<i32>().ok()) else { return true };
    #[cfg(target_os = "linux")]
    if is_parent(owner) {
        use rustix::process::{Signal, set_parent_process_death_signal};
        // Without it the process only ends by itself.
        let _ = set_parent_process_death_signal(Some(Signal::TERM));
        return is_parent(owner);
    }
    // A process further down inherits the variable, too, but has another parent, which gets the signal.
    is_alive(owner)
}

/// Returns whether a process is the parent of this one.
#[cfg(target_os = "linux")]
fn is_parent(pid: i32) -> bool {
    rustix::process::getppid().is_some_and(|parent| parent.as_raw_nonzero().get() == pid)
}

/// Returns whether a process exists, as far as the system reports it. A process that has ended but was not reaped does
/// not count.
fn is_alive(pid: i32) -> bool {
    match std::fs::read_to_string(format!("/proc/{pid}/stat")) {
        Ok(stat) => !stat.rsplit_once(')').is_some_and(|(_, rest)| rest.starts_with(" Z")),
        Err(_) => !std::path::Path::new("/proc/self/stat").exists(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agent(name: &str) -> ActingAgent {
        ActingAgent::new("r", name)
    }

    fn process(name: Option<&str>) -> ProcessMarks {
        ProcessMarks { marked: name.map(agent), ..ProcessMarks::default() }
    }

    /// A raymond whose command starts no agents.
    fn raymond(name: Option<&str>) -> ProcessMarks {
        let is_without_agents = true;
        ProcessMarks { is_raymond: true, is_without_agents, ..unentered(name) }
    }

    /// A raymond that may supervise, by another path, without an entry.
    fn unentered(name: Option<&str>) -> ProcessMarks {
        ProcessMarks { is_named_raymond: true, ..process(name) }
    }

    fn supervisor() -> ProcessMarks {
        let registered = Registered { supervises: Some("r".to_owned()), ..Registered::default() };
        ProcessMarks { registered: Some(registered), ..raymond(None) }
    }

    const WHOLE: Sight = Sight { is_genuine: true, is_whole: true, has_hidden_supervisor: false };

    /// Decides with all ancestors in sight.
    fn decide(chain: &[ProcessMarks]) -> Option<ActingAgent> {
        super::decide(chain, WHOLE)
    }

    fn of_unknown_run() -> ActingAgent {
        ActingAgent::new("", UNKNOWN)
    }

    fn registered(registered: Registered) -> ProcessMarks {
        ProcessMarks { registered: Some(registered), ..process(None) }
    }

    fn in_environment(variables: &[(&str, &str)]) -> Option<ActingAgent> {
        let found = |name: &str| variables.iter().find(|(key, _)| *key == name);
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
        let entry = |name: &str| {
            let is_certain = true;
            Registered { agent: Some(agent(name)), is_certain, ..Registered::default() }
        };
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
    fn raymond_without_entry_counts_as_supervisor() {
        let orphan = || process(None);
        assert_eq!(decide(&[orphan(), orphan(), unentered(None)]), Some(of_unknown_run()));
        assert_eq!(decide(&[orphan(), unentered(None), orphan()]), Some(of_unknown_run()));
        let self_program = ProcessMarks { is_raymond: true, ..unentered(None) };
        assert_eq!(decide(&[orphan(), self_program]), Some(of_unknown_run()));
        let persons = Registered { is_persons: true, ..Registered::default() };
        let hook = || registered(persons.clone());
        assert_eq!(decide(&[orphan(), hook(), unentered(None)]), None, "it is proven");
        assert_eq!(decide(&[orphan(), orphan(), raymond(None)]), None, "an editor of a person");
        let edited = [orphan(), raymond(None), orphan(), unentered(None)];
        assert_eq!(decide(&edited), Some(of_unknown_run()), "an agent has started the editor");
    }

    #[test]
    fn entry_that_anyone_can_write_counts_below_raymond_or_while_locked() {
        let entry = |is_certain| {
            let agent = Some(agent("main"));
            registered(Registered { agent, is_certain, ..Registered::default() })
        };
        assert_eq!(decide(&[process(None), entry(false)]), None, "a person's shell");
        assert_eq!(decide(&[process(None), entry(true)]), Some(agent("main")));
        for above in [supervisor(), unentered(None), raymond(None)] {
            assert_eq!(decide(&[entry(false), above]), Some(agent("main")));
        }
    }

    #[test]
    fn ancestors_out_of_sight_count_against_a_command() {
        let out_of_sight = Sight { is_whole: false, ..WHOLE };
        let hidden = Sight { has_hidden_supervisor: true, ..out_of_sight };
        let covered = Sight { is_genuine: false, ..WHOLE };
        for (sight, is_agents) in [
            (WHOLE, false),
            (Sight { has_hidden_supervisor: true, ..WHOLE }, false),
            (out_of_sight, false),
            (hidden, true),
            (covered, true),
        ] {
            let found = super::decide(&[process(None), process(None)], sight);
            assert_eq!(found.is_some(), is_agents, "{sight:?}");
            assert!(found.is_none_or(|found| found.advice.is_some()), "it says why");
            let named = super::decide(&[process(Some("main"))], sight);
            assert_eq!(named, Some(agent("main")), "an agent is known by its environment");
        }
    }

    #[test]
    fn environment_of_agent_differs_from_that_of_hook() {
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
        let (chain, has_root) = chain_of_pids();
        let has_no_table = !Path::new("/proc/self/stat").exists();
        assert!(has_no_table || chain[0] == std::process::id());
        assert!(has_no_table || chain.len() > 1 && has_root);
        assert!(is_genuine(&chain) || has_no_table);
    }
}

#[cfg(test)]
mod owner_tests {
    use super::*;

    #[test]
    fn owner_that_is_gone_is_noticed() {
        let self_pid = std::process::id().to_string();
        assert!(follow(None) && follow(Some("no number")) && follow(Some(&self_pid)));
        let mut child = std::process::Command::new("true").spawn().expect("a process");
        child.wait().expect("its end");
        assert!(!follow(Some(&child.id().to_string())));
    }
}
