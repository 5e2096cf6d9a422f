//! Removes the directory of a run, and nothing outside it.
//!
//! Agents may have put links into it, or may replace a directory with a link in the meantime. So each directory is
//! opened relative to its parent, without following links, and only entries of an open directory are removed. The run's
//! directory is first renamed to a name that no run can have, so an interrupted removal does not leave half a run.

use std::cell::Cell;
use std::ffi::CString;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{
    AtFlags, CWD, Dir, FileType, Mode, OFlags, fstat, openat, renameat, statat, unlinkat,
};
use rustix::io::Errno;
use rustix::path::Arg;

use super::draft::is_abandoned;
use super::layout::RunsRoot;
use super::user_state::UserState;
use super::{Error, files, lock, user_state};
use raymond_model::id::RunId;

/// The beginning of the names of directories that are being removed. No run's id begins with a dot.
const PREFIX: &str = ".removed-";

/// The age at which a draft is no longer in the making.
const DRAFT_SECONDS: u64 = 24 * 60 * 60;

/// The greatest depth of directories that are open at a time. Deeper ones are moved up before they are removed.
const MAX_DEPTH: usize = 64;

/// The number of tries to remove a directory that is not empty yet, because another removal is at work in it.
const TRIES: u32 = 5;

/// Returns the number of bytes of the files in a run's directory, but not of those that lie too deep.
///
/// # Errors
/// [`Error::Io`], also if another file system is mounted in it.
pub fn size(root: &RunsRoot, id: &RunId) -> Result<u64, Error> {
    let failed = |error: Errno| Error::io("read", root.run(id).path())(error.into());
    let runs = open(CWD, root.runs()).map_err(failed)?;
    RemovalWalk::of(&runs, false).and_then(|walk| walk.all(&name(id.as_str()))).map_err(failed)
}

/// Removes the directory of a run that the caller has locked, and its seal in the user's `state`, and returns the
/// number of bytes of its files.
///
/// # Errors
/// [`Error::Io`]; what is left then is no longer a run, and [`remove_leftovers`] removes it.
pub fn remove(root: &RunsRoot, id: &RunId, state: Option<&UserState>) -> Result<u64, Error> {
    let failed = |error: Errno| Error::io("remove", root.run(id).path())(error.into());
    let runs = open(CWD, root.runs()).map_err(failed)?;
    let (current, renamed) = (name(id.as_str()), name(&format!("{PREFIX}{id}")));
    RemovalWalk::of(&runs, false).and_then(|walk| walk.all(&current)).map_err(failed)?;
    let removal = RemovalWalk::of(&runs, true).map_err(failed)?;
    removal.all(&renamed).map_err(failed)?;
    let held = lock::names_of_runs(root)?;
    renameat(&runs, current, &runs, &renamed).map_err(failed)?;
    files::sync_dir(&root.runs())?;
    // The renamed directory tells of the seal until that is removed.
    state.map_or(Ok(()), |state| user_state::remove(state, root, id))?;
    drop(held);
    let bytes = removal.all(&renamed).map_err(failed)?;
    if removal.has_moved.get() {
        remove_leftovers(root, state)?;
    }
    Ok(bytes)
}

/// Removes what an earlier removal, or the making of a run, has left that was cut short. Another process may do the
/// same at the same time.
///
/// # Errors
/// [`Error::Io`].
pub fn remove_leftovers(root: &RunsRoot, state: Option<&UserState>) -> Result<(), Error> {
    let failed = |error: Errno| Error::io("remove what is left in", &root.runs())(error.into());
    let runs = match open(CWD, root.runs()) {
        Err(Errno::NOENT) => return Ok(()),
        opened => opened.map_err(failed)?,
    };
    let removal = RemovalWalk::of(&runs, true).map_err(failed)?;
    // What is too deep is moved up meanwhile, so the directory is read again until nothing is left.
    while let Some(name) = leftover(&runs).map_err(failed)? {
        let removed = name.to_str().ok().and_then(|name| name.strip_prefix(PREFIX));
        // A new run may have taken the name by now.
        let held = lock::names_of_runs(root)?;
        if let Some((state, id)) = state.zip(removed.and_then(|id| RunId::parse(id).ok()))
            && !root.run(&id).path().exists()
        {
            user_state::remove(state, root, &id)?;
        }
        drop(held);
        removal.all(&name).map_err(failed)?;
    }
    Ok(())
}

/// Returns the name of a directory that is being removed, or whose run was never made as a whole.
fn leftover(runs: &OwnedFd) -> Result<Option<CString>, Errno> {
    let is_removal = |name: &CString| name.to_bytes().starts_with(PREFIX.as_bytes());
    let is_left = |name: &CString| is_removal(name) || is_old_draft(runs, name);
    Ok(entries(runs)?.into_iter().find(is_left))
}

/// Returns whether an entry is the draft of a run's directory whose process has died, or is another one by now: a draft
/// is made in seconds, and this one is a day old.
fn is_old_draft(runs: &OwnedFd, name: &CString) -> bool {
    let bytes = name.to_bytes();
    if is_abandoned(bytes) {
        return true;
    }
    if !bytes.starts_with(b".") || !bytes.ends_with(b".new") {
        return false;
    }
    let Ok(found) = statat(runs, name, AtFlags::SYMLINK_NOFOLLOW) else { return false };
    let changed = u64::try_from(found.st_mtime).unwrap_or_default();
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.is_ok_and(|now| now.as_secs().saturating_sub(changed) >= DRAFT_SECONDS)
}

fn name(text: &str) -> CString {
    CString::new(text).unwrap_or_default()
}

fn open(parent: impl AsFd, path: impl Arg) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(parent, path, flags, Mode::empty())
}

/// A way through a file or a directory and all below it, which removes them or only counts their bytes. What is gone
/// meanwhile counts nothing: another removal may be on the same way.
struct RemovalWalk<'runs> {
    runs: &'runs OwnedFd,
    removes: bool,
    /// The file system of the directory of the runs, which the way never leaves.
    device: u64,
    /// True once something was moved up because it is too deep.
    has_moved: Cell<bool>,
}

impl<'runs> RemovalWalk<'runs> {
    fn of(runs: &'runs OwnedFd, removes: bool) -> Result<Self, Errno> {
        Ok(Self { runs, removes, device: fstat(runs)?.st_dev, has_moved: Cell::new(false) })
    }

    /// Goes through an entry of the directory of the runs, and returns the number of bytes of the files.
    fn all(&self, name: &CString) -> Result<u64, Errno> {
        for tries in 1.. {
            match self.step(self.runs, name, MAX_DEPTH) {
                Err(Errno::NOTEMPTY | Errno::EXIST) if self.removes && tries < TRIES => {}
                walked => return walked,
            }
        }
        Ok(0)
    }

    fn step(&self, parent: &OwnedFd, name: &CString, depth: usize) -> Result<u64, Errno> {
        let found = match statat(parent, name, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => return Ok(0),
            found => found?,
        };
        if found.st_dev != self.device {
            return Err(Errno::XDEV);
        }
        if FileType::from_raw_mode(found.st_mode) != FileType::Directory {
            self.unlink(parent, name, AtFlags::empty())?;
            return Ok(u64::try_from(found.st_size).unwrap_or_default());
        }
        let Some(depth) = depth.checked_sub(1) else { return self.move_up(parent, name) };
        let directory = match open(parent, name.as_c_str()) {
            Err(Errno::NOENT) => return Ok(0),
            opened => opened?,
        };
        let mut bytes: u64 = 0;
        for entry in entries(&directory)? {
            bytes = bytes.saturating_add(self.step(&directory, &entry, depth)?);
        }
        self.unlink(parent, name, AtFlags::REMOVEDIR)?;
        Ok(bytes)
    }

    fn unlink(&self, parent: &OwnedFd, name: &CString, flags: AtFlags) -> Result<(), Errno> {
        match unlinkat_if(self.removes, parent, name, flags) {
            Err(Errno::NOENT) => Ok(()),
            unlinked => unlinked,
        }
    }

    /// Moves a directory that is too deep up to the directory of the runs, and goes through it there.
    fn move_up(&self, parent: &OwnedFd, name: &CString) -> Result<u64, Errno> {
        if !self.removes {
            return Ok(0);
        }
        let up = CString::new(format!("{PREFIX}{}", uuid::Uuid::new_v4())).unwrap_or_default();
        self.has_moved.set(true);
        match renameat(parent, name, self.runs, &up) {
            Ok(()) | Err(Errno::NOENT) => Ok(0),
            Err(error) => Err(error),
        }
    }
}

fn unlinkat_if(
    removes: bool,
    parent: &OwnedFd,
    name: &CString,
    flags: AtFlags,
) -> Result<(), Errno> {
    if removes { unlinkat(parent, name, flags) } else { Ok(()) }
}

fn entries(directory: &OwnedFd) -> Result<Vec<CString>, Errno> {
    let mut names = Vec::new();
    for entry in Dir::read_from(directory)? {
        let name = entry?.file_name().to_owned();
        if ![&b"."[..], b".."].contains(&name.to_bytes()) {
            names.push(name);
        }
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn run() -> (tempfile::TempDir, RunsRoot, RunId) {
        let place = tempfile::tempdir().expect("a directory");
        let root = RunsRoot::new(place.path().join("ray"));
        let id = RunId::parse("r").expect("an id");
        std::fs::create_dir_all(root.run(&id).steps()).expect("made");
        std::fs::write(root.run(&id).journal(), "12345").expect("written");
        std::fs::write(root.run(&id).steps().join("x"), "678").expect("written");
        (place, root, id)
    }

    #[test]
    fn removal_follows_no_link() {
        let (place, root, id) = run();
        let outside = place.path().join("outside");
        std::fs::create_dir(&outside).expect("made");
        std::fs::write(outside.join("mine"), "mine").expect("written");
        symlink(&outside, root.run(&id).steps().join("out")).expect("linked");
        symlink(outside.join("mine"), root.run(&id).state()).expect("linked");
        assert!(size(&root, &id).expect("read") >= 8);
        assert!(root.run(&id).journal().exists());
        remove(&root, &id, None).expect("removed");
        assert!(!root.run(&id).path().exists());
        assert!(outside.join("mine").exists());

        std::fs::rename(root.runs(), place.path().join("elsewhere")).expect("moved");
        symlink(&outside, root.runs()).expect("linked");
        std::fs::create_dir(outside.join("r")).expect("made");
        assert!(remove(&root, &id, None).is_err(), "the directory of the runs is a link");
        assert!(outside.join("r").exists());
    }

    #[test]
    fn deep_directories_are_removed_whole() {
        let (_place, root, id) = run();
        let deep: std::path::PathBuf = std::iter::repeat_n("d", 3 * MAX_DEPTH).collect();
        std::fs::create_dir_all(root.run(&id).steps().join(deep)).expect("made");
        assert_eq!(size(&root, &id).expect("read"), 8);
        assert_eq!(remove(&root, &id, None).expect("removed"), 8);
        remove_leftovers(&root, None).expect("removed");
        assert_eq!(std::fs::read_dir(root.runs()).expect("read").count(), 0);
    }

    #[test]
    fn removals_at_the_same_time_do_not_disturb_each_other() {
        let (_place, root, id) = run();
        for number in 0..200 {
            let left = root.runs().join(format!(".removed-{number}/steps/a/b"));
            std::fs::create_dir_all(&left).expect("made");
            std::fs::write(left.join("old"), "old").expect("written");
        }
        std::thread::scope(|scope| {
            let removals: Vec<_> =
                (0..4).map(|_| scope.spawn(|| remove_leftovers(&root, None))).collect();
            for removal in removals {
                removal.join().expect("it ended").expect("removed");
            }
        });
        let left: Vec<_> = std::fs::read_dir(root.runs()).expect("read").collect();
        assert_eq!(left.len(), 1, "{left:?} has only the run {id}");
    }

    #[test]
    fn removal_counts_bytes_and_finishes_earlier_removal() {
        let (_place, root, id) = run();
        let left = root.runs().join(".removed-r/steps");
        std::fs::create_dir_all(&left).expect("made");
        std::fs::write(left.join("old"), "old").expect("written");
        assert_eq!(size(&root, &id).expect("read"), 8);
        assert_eq!(remove(&root, &id, None).expect("removed"), 8);
        std::fs::create_dir_all(root.runs().join(".removed-s")).expect("made");
        remove_leftovers(&root, None).expect("removed");
        assert_eq!(std::fs::read_dir(root.runs()).expect("read").count(), 0);
    }

    #[test]
    fn draft_of_a_run_is_left_over_once_it_is_old() {
        let (_place, root, id) = run();
        for draft in [".a.17.new", ".b.17.new", ".c.17.other"] {
            std::fs::create_dir_all(root.runs().join(draft).join("steps")).expect("made");
        }
        let old = std::time::SystemTime::now() - std::time::Duration::from_secs(DRAFT_SECONDS + 9);
        let draft = std::fs::File::open(root.runs().join(".a.17.new")).expect("opened");
        draft.set_times(std::fs::FileTimes::new().set_modified(old)).expect("set");
        remove_leftovers(&root, None).expect("removed");
        let left = |name: &str| root.runs().join(name).exists();
        assert_eq!([".a.17.new", ".b.17.new", ".c.17.other"].map(left), [false, true, true]);
        assert!(left(id.as_str()));
    }
}
