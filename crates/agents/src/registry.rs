//! The registry of the processes that raymond starts: one file each, beside the user's key.
//!
//! A file is named by the number and the start time of its process and says whose process that is. A process of a turn
//! is entered before it is executed: raymond starts itself as a launcher, which writes the entry, locks it, and
//! executes the program with the lock. What raymond starts beside its turns (a hook, a plug-in, a run in the
//! background) is entered by raymond with a proof, and so is a raymond that supervises.
//!
//! An agent can remove entries, as it can remove all files of its user. So an entry adds to the marks in the
//! environments of ancestors and replaces none, only a proven entry says that a process is a person's, and a child of a
//! supervisor without an entry counts as an agent's. An agent can also write entries, which count only below a raymond,
//! or while a process holds their lock.
//!
//! A supervisor also holds a lock on the user's key, the only file here that an agent cannot remove or replace without
//! losing what the key proves. So a command in another process namespace finds out that a supervisor lives.

use std::ffi::OsString;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::IntoRawFd;
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, OnceLock, PoisonError};

use rustix::fs::{Access, FlockOperation, access, flock};
use rustix::io::{Errno, FdFlags, fcntl_setfd};
use serde::{Deserialize, Serialize};

use crate::child::orphans::{ProcessStat, read_stat};
use raymond_model::id::AgentId;
use raymond_store::plain_file;
use raymond_store::proof::ProofKey;

/// The first argument of a raymond that enters itself and executes another program.
pub const LAUNCH: &str = "__exec";

/// The directory below the user's state, and the key beside it.
const DIRECTORY: &str = "processes";
const KEY: &str = "key";

/// The program of this process, also after its file was replaced.
const SELF_EXE: &str = "/proc/self/exe";

/// The place where the system says which file formats are executed by other programs.
const FURTHER_FORMATS: &str = "/proc/sys/fs/binfmt_misc/register";

/// The name of the proof of an entry.
const PURPOSE: &str = "process";

/// The most bytes of an entry.
const MAX_ENTRY: u64 = 64 * 1024;

/// An agent of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ActingAgent {
    /// The run's id; empty if it is not known.
    pub run: String,
    /// The agent's id.
    pub agent: String,
    /// What a person can do who is taken for this agent, if there is more to say than to leave its turn.
    pub advice: Option<String>,
}

impl ActingAgent {
    /// Names an agent of a run.
    pub(super) fn new(run: impl Into<String>, agent: impl Into<String>) -> Self {
        Self { run: run.into(), agent: agent.into(), advice: None }
    }
}

/// The kind of an entered process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum EntryKind {
    /// It works for an agent.
    Turn,
    /// It was started beside the turns of a run.
    Beside,
    /// It is a raymond that starts the processes of turns.
    Supervisor,
}

impl EntryKind {
    /// Returns its name in proofs, which must stay: another name makes the entries of running processes false.
    fn name_in_proofs(self) -> &'static str {
        match self {
            Self::Turn => "Turn",
            Self::Beside => "Beside",
            Self::Supervisor => "Supervisor",
        }
    }
}

/// The entry of a process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct ProcessEntry {
    pid: u32,
    start: u64,
    group: u32,
    kind: EntryKind,
    /// The run that it belongs to, or that its starter belongs to; empty if there is none.
    run: String,
    /// The agent; empty for a process that was started ahead of its first turn, and for one of a person.
    agent: String,
    turn: String,
    /// The process namespace in which the number counts; empty for a process of a turn.
    #[serde(default)]
    namespace: String,
    proof: String,
}

/// What the registry knows of a process.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Registered {
    /// The agent it acts for. Its name is empty if it is not known.
    pub(super) agent: Option<ActingAgent>,
    /// True if it is proven that raymond started it for a person.
    pub(super) is_persons: bool,
    /// True if it is proven, or a process holds its lock.
    pub(super) is_certain: bool,
    /// The run of a raymond that is proven to supervise.
    pub(super) supervises: Option<String>,
}

/// The directory of the entries.
#[derive(Debug, Clone)]
pub struct ProcessRegistry {
    dir: PathBuf,
    key: Option<ProofKey>,
    key_file: PathBuf,
    namespace: String,
}

impl ProcessRegistry {
    /// Returns the registry in a user's state. Without the key no process is known as a person's.
    pub fn new(state: &Path, key: Option<ProofKey>) -> Self {
        // Numbers and start times are those since the machine was started.
        let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        let dir = state.join(DIRECTORY).join(format!("boot-{}", boot.trim()));
        let namespace = std::fs::read_link("/proc/self/ns/pid").unwrap_or_default();
        let namespace = namespace.to_string_lossy().into_owned();
        Self { dir, key, key_file: state.join(KEY), namespace }
    }

    fn path(&self, pid: u32, start: u64) -> PathBuf {
        self.dir.join(format!("{pid}-{start}"))
    }

    /// Returns what is known of a process; `None` without an entry. An entry that cannot be read is that of an agent.
    pub(super) fn find(&self, pid: u32, start: u64) -> Option<Registered> {
        let bytes = match plain_file::read(&self.path(pid, start), MAX_ENTRY) {
            Err(error) if is_absent(&error) => return None,
            read => read.unwrap_or_default(),
        };
        let entry = serde_json::from_slice::<ProcessEntry>(&bytes).ok();
        let path = self.path(pid, start);
        let known = self.judge(entry.filter(|entry| (entry.pid, entry.start) == (pid, start)));
        if known.is_certain {
            return Some(known);
        }
        let advice = format!("if no agent runs there, remove {}", path.display());
        let agent = known.agent.map(|agent| ActingAgent { advice: Some(advice), ..agent });
        Some(Registered { is_certain: is_locked(&path), agent, ..known })
    }

    fn judge(&self, entry: Option<ProcessEntry>) -> Registered {
        let Some(entry) = entry else {
            return Registered { agent: Some(ActingAgent::default()), ..Registered::default() };
        };
        let holds = |key: &ProofKey| key.holds(PURPOSE, &entry.proven(), &entry.proof);
        let is_certain = self.namespace == entry.namespace && self.key.as_ref().is_some_and(holds);
        let is_agents = entry.kind == EntryKind::Turn || !entry.agent.is_empty();
        let is_supervisor = is_certain && entry.kind == EntryKind::Supervisor;
        let supervises = is_supervisor.then(|| entry.turn.clone());
        let agent = is_agents.then(|| ActingAgent::new(entry.run, entry.agent));
        Registered { is_persons: is_certain && !is_agents, is_certain, agent, supervises }
    }

    /// Returns whether a raymond supervises a run, and none of a person does so in this process namespace: an agent
    /// that has made a namespace is alone with what it has started.
    pub(super) fn has_hidden_supervisor(&self) -> bool {
        let find = |path: PathBuf| living_process(&path).and_then(|(pid, at)| self.find(pid, at));
        let mut found = files_of(&self.dir).filter_map(find);
        is_locked(&self.key_file)
            && !found.any(|known| known.is_persons && known.supervises.is_some())
    }

    /// Returns the processes that hold the lock of the user's key, as supervisors do, regardless of the name of their
    /// program.
    pub(super) fn key_holders(&self) -> Vec<u32> {
        let Ok(key) = self.key_file.metadata() else { return Vec::new() };
        let inode = format!(":{}", key.ino());
        let locks = std::fs::read_to_string("/proc/locks").unwrap_or_default();
        let holder = |line: &str| {
            let mut words = line.split_whitespace().skip_while(|word| *word != "FLOCK").skip(3);
            let pid = words.next()?.parse().ok()?;
            words.next()?.ends_with(&inode).then_some(pid)
        };
        locks.lines().filter_map(holder).collect()
    }

    /// Writes an entry and locks it.
    fn enter(&self, mut entry: ProcessEntry) -> io::Result<File> {
        if let Some(key) = &self.key {
            entry.namespace.clone_from(&self.namespace);
            entry.proof = key.proof(PURPOSE, &entry.proven());
        }
        let mut options = OpenOptions::new();
        options.write(true).create(true).mode(0o600);
        let file = plain_file::open_with(&self.path(entry.pid, entry.start), &mut options)?;
        // Its starter may hold the lock, which is as good.
        let _ = flock(&file, FlockOperation::NonBlockingLockExclusive);
        let text = serde_json::to_vec(&entry)?;
        file.write_all_at(&text, 0)?;
        file.set_len(text.len() as u64)?;
        Ok(file)
    }

    /// Removes the entries whose process is gone and whose lock is free: nothing is left of that turn.
    fn sweep(&self) {
        for boot in self.dir.parent().into_iter().flat_map(files_of) {
            for path in files_of(&boot) {
                let is_alive = boot == self.dir && living_process(&path).is_some();
                if !is_alive && !is_locked(&path) {
                    let _ = std::fs::remove_file(&path);
                }
            }
            if boot != self.dir {
                let _ = std::fs::remove_dir(boot);
            }
        }
    }
}

impl ProcessEntry {
    fn of(pid: u32, stat: ProcessStat, kind: EntryKind) -> Self {
        let (run, agent, turn, namespace, proof) = Default::default();
        let ProcessStat { started, group, .. } = stat;
        Self { pid, start: started, group, kind, run, agent, turn, namespace, proof }
    }

    fn by(mut self, acting: Option<&ActingAgent>) -> Self {
        if let Some(ActingAgent { run, agent, .. }) = acting.cloned() {
            (self.run, self.agent) = (run, agent);
        }
        self
    }

    fn proven(&self) -> Vec<u8> {
        let Self { pid, start, group, kind, run, agent, turn, namespace, proof: _ } = self;
        let kind = kind.name_in_proofs();
        format!("{pid} {start} {group} {kind} {run}/{agent} {turn} {namespace}").into_bytes()
    }
}

fn files_of(dir: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    std::fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path())
}

/// Returns the number and the start time of the process of an entry, if it lives.
fn living_process(path: &Path) -> Option<(u32, u64)> {
    let (pid, start) = path.file_name()?.to_str()?.split_once('-')?;
    let (pid, start) = (pid.parse().ok()?, start.parse().ok()?);
    (read_stat(pid)?.started == start).then_some((pid, start))
}

/// Returns whether a process holds the lock of a file. A file that cannot be opened counts as locked, unless it is
/// gone.
fn is_locked(path: &Path) -> bool {
    match plain_file::open(path) {
        Ok(file) => flock(&file, FlockOperation::NonBlockingLockExclusive).is_err(),
        Err(error) => !is_absent(&error),
    }
}

/// Returns whether the file or its directory does not exist.
fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}

/// The registry in which this process enters what it starts.
#[derive(Debug)]
struct ActiveRegistry {
    registry: ProcessRegistry,
    acting: Option<ActingAgent>,
}

static ACTIVE: OnceLock<ActiveRegistry> = OnceLock::new();
static SUPERVISED: OnceLock<String> = OnceLock::new();

/// The entry of this process as a supervisor, and the user's key, each with its lock.
static HELD_LOCKS: Mutex<[Option<File>; 2]> = Mutex::new([None, None]);

/// Has this process, which is raymond itself, enter what it starts. `acting` is the agent that it acts for.
pub fn activate(registry: ProcessRegistry, acting: Option<ActingAgent>) {
    let is_made = DirBuilder::new().recursive(true).mode(0o700).create(&registry.dir).is_ok();
    if is_made && Path::new(SELF_EXE).exists() {
        let _ = ACTIVE.set(ActiveRegistry { registry, acting });
    }
}

/// Enters this process as the supervisor of a run, and removes entries of processes that are gone.
pub fn supervise(run: &str) {
    let _ = SUPERVISED.set(run.to_owned());
    keep_entered();
    if let Some(active) = ACTIVE.get() {
        active.registry.sweep();
    }
}

/// Enters this process, if it supervises and has no entry, or has no longer: an agent can remove it.
fn keep_entered() {
    let (Some(ActiveRegistry { registry, acting }), Some(run)) = (ACTIVE.get(), SUPERVISED.get())
    else {
        return;
    };
    let pid = std::process::id();
    let Some(stat) = read_stat(pid) else { return };
    let mut locks = HELD_LOCKS.lock().unwrap_or_else(PoisonError::into_inner);
    let [entry, key] = &mut *locks;
    if entry.is_none() || !registry.path(pid, stat.started).exists() {
        let _ = DirBuilder::new().recursive(true).mode(0o700).create(&registry.dir);
        let supervisor = ProcessEntry::of(pid, stat, EntryKind::Supervisor).by(acting.as_ref());
        *entry = registry.enter(ProcessEntry { turn: run.clone(), ..supervisor }).ok();
    }
    if key.is_none() {
        let locked = |file: &File| flock(file, FlockOperation::NonBlockingLockShared).is_ok();
        *key = plain_file::open(&registry.key_file).ok().filter(locked);
    }
}

/// The entry of a child.
#[derive(Debug)]
pub(super) struct EnteredChild {
    path: PathBuf,
    _lock: Option<File>,
}

impl EnteredChild {
    /// Returns the entry that the launcher of a child writes.
    pub(super) fn launched(pid: u32) -> Option<Self> {
        let path = ACTIVE.get()?.registry.path(pid, read_stat(pid)?.started);
        Some(Self { path, _lock: None })
    }

    /// Enters a child that does not belong to a turn. It acts for the same agent as this process.
    pub(super) fn beside(pid: u32) -> Option<Self> {
        let ActiveRegistry { registry, acting } = ACTIVE.get()?;
        let stat = read_stat(pid)?;
        let entry = ProcessEntry::of(pid, stat, EntryKind::Beside).by(acting.as_ref());
        let lock = registry.enter(entry).ok();
        Some(Self { path: registry.path(pid, stat.started), _lock: lock })
    }

    /// Removes the entry of a child that has ended.
    pub(super) fn remove(self) {
        let _ = std::fs::remove_file(self.path);
    }
}

/// Returns the program and the arguments with which a child of a turn enters itself; `None` if it need not.
///
/// # Errors
/// The error that the start of the program itself would end with.
pub(super) fn launched(
    program: &Path,
    cwd: Option<&Path>,
    variable: impl Fn(&str) -> Option<OsString>,
) -> io::Result<Option<Vec<OsString>>> {
    let (Some(active), Some(turn)) = (ACTIVE.get(), variable("RAYMOND_TURN")) else {
        return Ok(None);
    };
    keep_entered();
    // A name alone is looked up by the launcher.
    if program.parent() != Some(Path::new("")) {
        check_executable(&cwd.unwrap_or(Path::new("")).join(program))?;
    }
    let named = |name| variable(name).unwrap_or_default();
    let dir = active.registry.dir.clone().into_os_string();
    let (run, agent) = (named("RAYMOND_RUN"), named("RAYMOND_AGENT"));
    Ok(Some(vec![SELF_EXE.into(), LAUNCH.into(), dir, run, agent, turn, program.into()]))
}

/// Checks what the system checks of a program, because the launcher cannot report it to the starter.
fn check_executable(program: &Path) -> io::Result<()> {
    access(program, Access::EXEC_OK)?;
    let mut start = Vec::new();
    match File::open(program) {
        Ok(file) => file.take(256).read_to_end(&mut start)?,
        // A program need not be readable.
        Err(_) => return Ok(()),
    };
    if let Some(line) = start.strip_prefix(b"#!") {
        let line =
            String::from_utf8_lossy(line.split(|&byte| byte == b'\n').next().unwrap_or(line));
        let interpreter = line.split_whitespace().next().unwrap_or_default();
        return Ok(access(Path::new(interpreter), Access::EXEC_OK)?);
    }
    if start.starts_with(b"\x7fELF") || Path::new(FURTHER_FORMATS).exists() {
        return Ok(());
    }
    Err(Errno::NOEXEC.into())
}

/// Enters this process and executes a program in its place: the launcher, with the arguments that `launched` has made.
/// Returns only if it cannot be executed.
pub fn launch(arguments: Vec<OsString>) -> io::Error {
    let mut arguments = arguments.into_iter();
    let mut next = || arguments.next().unwrap_or_default();
    let (key_file, namespace) = Default::default();
    let registry = ProcessRegistry { dir: next().into(), key: None, key_file, namespace };
    let mut text = || next().to_string_lossy().into_owned();
    let (run, agent, turn) = (text(), text(), text());
    let Some(program) = arguments.next() else { return ErrorKind::InvalidInput.into() };
    let pid = std::process::id();
    if let Some(stat) = read_stat(pid) {
        let entry = ProcessEntry::of(pid, stat, EntryKind::Turn);
        // Without its entry it counts as an agent's all the same.
        if let Ok(file) = registry.enter(ProcessEntry { run, agent, turn, ..entry })
            && fcntl_setfd(&file, FdFlags::empty()).is_ok()
        {
            // The program holds the lock.
            let _ = file.into_raw_fd();
        }
    }
    Command::new(program).args(arguments).exec()
}

/// Enters the agent that a process, which was started ahead, is given to.
pub(super) fn give(pid: u32, agent: &AgentId) {
    let Some(ActiveRegistry { registry, .. }) = ACTIVE.get() else { return };
    let Some(stat) = read_stat(pid) else { return };
    let path = registry.path(pid, stat.started);
    let entry = plain_file::read(&path, MAX_ENTRY).unwrap_or_default();
    let entry = serde_json::from_slice::<ProcessEntry>(&entry);
    let file = plain_file::open_with(&path, OpenOptions::new().write(true));
    if let (Ok(entry), Ok(mut file)) = (entry, file)
        && let Ok(text) = serde_json::to_vec(&ProcessEntry { agent: agent.to_string(), ..entry })
    {
        // In place: the process has the lock of this very file. A reader in between takes it for an agent's, too.
        let _ = file.write_all(&text).and_then(|()| file.set_len(text.len() as u64));
    }
}

#[cfg(test)]
mod tests;
