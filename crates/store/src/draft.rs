//! Drafts beside their place: each is a process's own, and gets its name once it is whole.
//!
//! A draft is called `.NAME.PROCESS.new`, and the next writer removes the drafts of dead processes. A process is
//! named by its number, the time of its start and its machine: directories can be shared by machines and containers,
//! where the number means another process.

use std::ffi::{OsStr, OsString};
use std::fmt::{self, Display, Formatter};
use std::fs::DirBuilder;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use rustix::io::Errno;
use rustix::process::{Pid, getpgid};

use super::Error;
use raymond_lang::source::short_name;

/// The end of a draft's name.
const ENDING: &[u8] = b".new";

/// The name of this machine, or container.
static MACHINE: LazyLock<String> = LazyLock::new(|| {
    let text = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let namespace = std::fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    let names = [text("/etc/machine-id"), text("/proc/sys/kernel/hostname")].concat();
    short_name(&format!("{names}{}", namespace.display()))
});

/// A process that makes a draft.
#[derive(Debug, PartialEq, Eq)]
struct DraftMaker {
    pid: u32,
    /// The time of its start, as the system counts it; 0 if that is not known.
    start: u64,
    machine: String,
}

impl DraftMaker {
    fn this_process() -> Self {
        let pid = std::process::id();
        Self { pid, start: start_of(pid).ok().flatten().unwrap_or(0), machine: MACHINE.clone() }
    }

    /// Returns the process that makes a draft of this name, and the name that it is for.
    fn of(draft: &[u8]) -> Option<(&[u8], Self)> {
        let name = draft.strip_prefix(b".")?.strip_suffix(ENDING)?;
        let dot = name.iter().rposition(|byte| *byte == b'.')?;
        let mut parts = std::str::from_utf8(&name[dot + 1..]).ok()?.splitn(3, '-');
        let pid = parts.next()?.parse().ok()?;
        let start = parts.next()?.parse().ok()?;
        let machine = parts.next()?.to_owned();
        Some((&name[..dot], Self { pid, start, machine }))
    }

    /// Returns whether it is known to have died.
    fn has_died(&self) -> bool {
        let may_live = if let Ok(start) = start_of(self.pid) {
            start == Some(self.start)
        } else {
            // Processes of other users may be hidden there, but not from this call.
            let pid = i32::try_from(self.pid).ok().and_then(Pid::from_raw);
            pid.is_some_and(|pid| getpgid(Some(pid)) != Err(Errno::SRCH))
        };
        self.machine == *MACHINE && self.start != 0 && !may_live
    }
}

impl Display for DraftMaker {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}-{}", self.pid, self.start, self.machine)
    }
}

/// Returns the time of a process's start; `None` if it has ended and is not reaped.
///
/// # Errors
/// The process is not to be seen.
fn start_of(pid: u32) -> io::Result<Option<u64>> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let mut fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
    let is_alive = fields.next().is_some_and(|state| state != "Z");
    Ok(fields.nth(18).and_then(|start| start.parse().ok()).filter(|_| is_alive))
}

/// Returns the path of this process's draft of a file or a directory. Drafts for the same place whose processes have
/// died are removed.
pub fn draft_beside(place: &Path) -> PathBuf {
    let name = place.file_name().unwrap_or_default();
    remove_drafts(place.parent(), |of| of == name.as_bytes());
    let mut draft = OsString::from(".");
    draft.push(name);
    draft.push(format!(".{}.new", DraftMaker::this_process()));
    place.with_file_name(draft)
}

/// Removes all drafts in a directory of raymond's own whose processes have died.
pub fn remove_abandoned(directory: &Path) {
    remove_drafts(Some(directory), |_| true);
}

/// Returns whether a name is that of a draft whose process has died.
pub fn is_abandoned(name: &[u8]) -> bool {
    DraftMaker::of(name).is_some_and(|(_, maker)| maker.has_died())
}

/// Removes the drafts in a directory that are for the chosen names and whose processes have died. What cannot be
/// removed stays for the next time.
fn remove_drafts(directory: Option<&Path>, is_chosen: impl Fn(&[u8]) -> bool) {
    let directory =
        directory.map(|path| if path == OsStr::new("") { Path::new(".") } else { path });
    for entry in directory.and_then(|path| path.read_dir().ok()).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let made = DraftMaker::of(name.as_bytes());
        if made.is_some_and(|(of, maker)| is_chosen(of) && maker.has_died()) {
            let is_dir = entry.file_type().is_ok_and(|kind| kind.is_dir());
            let remove = if is_dir { std::fs::remove_dir_all } else { std::fs::remove_file };
            let _ = remove(entry.path());
        }
    }
}

/// A directory that is being made. Nothing of it is left if it is dropped before it is published.
#[derive(Debug)]
pub struct DirectoryDraft(PathBuf);

impl DirectoryDraft {
    /// Makes the draft of a directory, of this mode before the user's mask.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn begin(place: &Path, mode: u32) -> Result<Self, Error> {
        let draft = draft_beside(place);
        let _ = std::fs::remove_dir_all(&draft);
        let making = DirBuilder::new().mode(mode).create(&draft);
        making.map_err(Error::io("make the directory", place))?;
        Ok(Self(draft))
    }

    /// Returns its path.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Gives it its name.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn publish(self, place: &Path) -> Result<(), Error> {
        std::fs::rename(&self.0, place).map_err(Error::io("make the directory", place))
    }
}

impl Drop for DirectoryDraft {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(of: &str, maker: &DraftMaker) -> String {
        format!(".{of}.{maker}.new")
    }

    #[test]
    fn name_of_draft_tells_its_maker() {
        let maker = DraftMaker::this_process();
        assert!(maker.start > 0 && !maker.machine.contains(['.', '/']), "{maker:?}");
        let name = named("a.b.json", &maker);
        assert_eq!(DraftMaker::of(name.as_bytes()), Some((&b"a.b.json"[..], maker)));
        for other in [".a.new", "a.7-1-m.new", ".a.7.new", ".a.7-x-m.new", ".a.7-1-m.old"] {
            assert_eq!(DraftMaker::of(other.as_bytes()), None, "{other}");
        }
    }

    #[test]
    fn drafts_of_dead_processes_are_removed_and_those_of_live_processes_stay() {
        let dir = tempfile::tempdir().expect("a directory");
        let live = DraftMaker::this_process();
        // Its number was given to this process later.
        let dead = DraftMaker { start: live.start - 1, ..DraftMaker::this_process() };
        let remote = DraftMaker { machine: "other".to_owned(), pid: 4_194_305, start: 1 };
        let path = |of: &str, maker: &DraftMaker| dir.path().join(named(of, maker));
        for draft in [path("a", &dead), path("a", &remote), path("c", &live)] {
            std::fs::create_dir(&draft).expect("made");
            std::fs::write(draft.join("x"), "x").expect("written");
        }
        std::fs::write(path("b", &dead), "x").expect("written");
        let place = dir.path().join("a");
        let draft = DirectoryDraft::begin(&place, 0o777).expect("made");
        assert!(!path("a", &dead).exists() && path("b", &dead).exists());
        std::fs::write(draft.path().join("y"), "y").expect("written");
        draft.publish(&place).expect("named");
        assert_eq!(std::fs::read(place.join("y")).expect("read"), b"y");
        drop(DirectoryDraft::begin(&place, 0o777).expect("made"));
        remove_abandoned(dir.path());
        assert!(!path("b", &dead).exists());
        assert!(path("a", &remote).exists() && path("c", &live).exists());
        assert_eq!(dir.path().read_dir().expect("read").count(), 3);
    }
}
