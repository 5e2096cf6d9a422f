//! Opens and replaces files where others can put something in their place.
//!
//! Only plain files are opened, and only up to a stated size.
//!
//! Agents and other programs can write into the directories of a run. A FIFO there would block, a link would be
//! followed, a device would be read without end. None of them is opened here: the error says what it is instead.

use std::ffi::OsString;
use std::fs::{File, FileType, OpenOptions, Permissions};
use std::io::{Error, ErrorKind, Read, Result, Write};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
#[cfg(target_os = "linux")]
use rustix::fs::{FallocateFlags, fallocate};
use rustix::io::Errno;

use crate::fault::FaultPoint;

/// The mode of a file that only its owner can read.
const PRIVATE: u32 = 0o600;

/// The longest text that is read of a file that a person has named, in bytes.
const MAX_TEXT: u64 = 64 * 1024 * 1024;

/// The reason why a file is unfit to be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
enum UnfitFile {
    /// It is not a plain file.
    #[error("it is {0}, not a plain file")]
    NotPlain(&'static str),
    /// It is longer than its limit.
    #[error("it is longer than {0} bytes")]
    TooLong(u64),
}

impl From<UnfitFile> for Error {
    fn from(unfit: UnfitFile) -> Self {
        Self::new(ErrorKind::InvalidData, unfit)
    }
}

/// Returns whether an error is about the file itself, not one of the system.
pub fn is_unfit(error: &Error) -> bool {
    matches!(error.get_ref(), Some(inner) if inner.is::<UnfitFile>())
}

/// Returns what was found; `None` if there is no such file.
///
/// # Errors
/// Any other error.
pub fn if_there<T>(found: Result<T>) -> Result<Option<T>> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Returns whether an error says that the machine has no room, or a broken disk: nothing is wrong with the file.
pub fn is_out_of_room(error: &Error) -> bool {
    let kinds = [ErrorKind::StorageFull, ErrorKind::QuotaExceeded, ErrorKind::OutOfMemory];
    let numbers = [Errno::IO, Errno::MFILE, Errno::NFILE];
    let number = error.raw_os_error();
    kinds.contains(&error.kind())
        || numbers.iter().any(|errno| number == Some(errno.raw_os_error()))
}

/// Reserves room for a file that will grow: the first of `rooms`, in bytes, that the disk has. Its length stays. A disk
/// that cannot reserve any is left as it is.
///
/// # Errors
/// The system's error if the disk has none of them.
pub fn reserve(file: &File, rooms: &[u64]) -> Result<()> {
    #[cfg(target_os = "linux")]
    {
        let mut full = None;
        for room in rooms {
            match fallocate(file, FallocateFlags::KEEP_SIZE, 0, *room) {
                Err(error @ (Errno::NOSPC | Errno::DQUOT | Errno::FBIG)) => full = Some(error),
                _ => return Ok(()),
            }
        }
        full.map_or(Ok(()), |error| Err(error.into()))
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = (file, rooms);
        Ok(())
    }
}

/// Writes all of a file's content, and makes it durable. A room that was [reserved](reserve) and is not needed is given
/// back.
///
/// # Errors
/// The system's error; a part may be written.
pub fn fill(mut file: &File, content: &[u8]) -> Result<()> {
    file.write_all(content)?;
    file.set_len(content.len() as u64)?;
    file.sync_all()
}

/// Opens a plain file for reading.
///
/// # Errors
/// The system's error, or an error that [`is_unfit`].
pub fn open(path: &Path) -> Result<File> {
    open_with(path, OpenOptions::new().read(true))
}

/// Opens a plain file with some options. It follows no link, and never blocks. `options` must not truncate.
///
/// # Errors
/// The system's error, or an error that [`is_unfit`].
pub fn open_with(path: &Path, options: &mut OpenOptions) -> Result<File> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
    let options = options.custom_flags(flags.bits().cast_signed());
    let opened = options.open(path);
    let file = opened.map_err(|error| named(path, error))?;
    match other_kind(file.metadata()?.file_type()) {
        Some(kind) => Err(UnfitFile::NotPlain(kind).into()),
        None => Ok(file),
    }
}

/// Reads a plain file that has at most `limit` bytes.
///
/// # Errors
/// The system's error, or an error that [`is_unfit`].
pub fn read(path: &Path, limit: u64) -> Result<Vec<u8>> {
    read_open(open(path)?, limit)
}

fn read_open(file: File, limit: u64) -> Result<Vec<u8>> {
    let found = file.metadata()?;
    if let Some(kind) = other_kind(found.file_type()) {
        return Err(UnfitFile::NotPlain(kind).into());
    }
    let length = found.len();
    if length > limit {
        return Err(UnfitFile::TooLong(limit).into());
    }
    let mut bytes = Vec::with_capacity(usize::try_from(length).unwrap_or(0));
    // It may grow meanwhile.
    file.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        return Err(UnfitFile::TooLong(limit).into());
    }
    Ok(bytes)
}

/// Reads the text of a file that a person has named, by an option or in one of their files. Links are followed.
///
/// # Errors
/// The system's error, or an error that [`is_unfit`]. It never blocks, and never reads without a limit.
pub fn text(path: &Path) -> Result<String> {
    // Opening a device can do something already.
    if let Some(kind) = other_kind(path.metadata()?.file_type()) {
        return Err(UnfitFile::NotPlain(kind).into());
    }
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    let opened = OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(path);
    let bytes = read_open(opened?, MAX_TEXT)?;
    String::from_utf8(bytes).map_err(|error| Error::new(ErrorKind::InvalidData, error))
}

/// Creates a new file that only its owner can read, and replaces anything at the path.
///
/// # Errors
/// The system's error; a directory is not removed.
pub fn create(path: &Path) -> Result<File> {
    create_with(path, PRIVATE)
}

/// Creates a new file with this mode, before the user's mask, and replaces anything at the path.
fn create_with(path: &Path, mode: u32) -> Result<File> {
    let mut new = OpenOptions::new();
    new.read(true).write(true).create_new(true).mode(mode);
    match new.open(path) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            std::fs::remove_file(path).map_err(|error| named(path, error))?;
            new.open(path)
        }
        opened => opened,
    }
}

/// Returns whether a plain file lies at a path; a link to one is none.
pub fn is_there(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|found| found.is_file())
}

/// Replaces an error of the system with the kind of the file, if it is not a plain file.
fn named(path: &Path, error: Error) -> Error {
    let found = || Some(path.symlink_metadata().ok()?.file_type());
    let is_about_kind = error.kind() != ErrorKind::PermissionDenied;
    match found().filter(|_| is_about_kind).and_then(other_kind) {
        Some(kind) => UnfitFile::NotPlain(kind).into(),
        None => error,
    }
}

/// Returns the kind of a file that is not plain; `None` for a plain file.
fn other_kind(found: FileType) -> Option<&'static str> {
    Some(match found {
        found if found.is_file() => return None,
        found if found.is_symlink() => "a symbolic link",
        found if found.is_dir() => "a directory",
        found if found.is_fifo() => "a FIFO",
        found if found.is_socket() => "a socket",
        _ => "a device",
    })
}

/// Makes a FIFO, for tests of what must not wait for one.
///
/// # Panics
/// If it cannot be made.
#[cfg(any(test, feature = "test-fakes"))]
#[allow(clippy::expect_used, reason = "only tests use it")]
pub fn make_fifo(path: &Path) {
    use rustix::fs::{CWD, FileType as Kind, Mode, mknodat};
    mknodat(CWD, path, Kind::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("a FIFO");
}

// Replaces a file as a whole: a reader sees the old or the new content, also after a power cut.
//
// The content is written into a draft in the same directory, which is then renamed. No link is followed: what
// lies at the draft's or the file's path is replaced, not written through.

/// A file that is to be replaced, and how. Only its owner can read the new one, unless a mode is given.
#[derive(Debug)]
#[must_use]
pub struct FileReplacement<'a> {
    path: &'a Path,
    draft: PathBuf,
    mode: u32,
    permissions: Option<Permissions>,
    is_durable: bool,
}

/// The reason why a file is not replaced: the step that failed, and where.
#[derive(Debug)]
pub struct ReplaceError {
    /// The step, as a verb: `write`, `replace`, `sync the directory`.
    pub doing: &'static str,
    /// The path that the step is about.
    pub path: PathBuf,
    /// The system's error.
    pub error: Error,
}

impl From<ReplaceError> for Error {
    fn from(failed: ReplaceError) -> Self {
        failed.error
    }
}

impl<'a> FileReplacement<'a> {
    /// Returns the replacement of a file, with a draft `NAME.new`.
    pub fn of(path: &'a Path) -> Self {
        let mut name = path.file_name().unwrap_or_default().to_owned();
        name.push(".new");
        let draft = path.with_file_name(name);
        Self { path, draft, mode: PRIVATE, permissions: None, is_durable: true }
    }

    /// Sets the name of the draft. Processes that may replace the file at once need a name each.
    pub fn with_draft(mut self, name: impl Into<OsString>) -> Self {
        self.draft = self.path.with_file_name(name.into());
        self
    }

    /// Sets the mode of the new file, before the user's mask.
    pub fn with_mode(mut self, mode: u32) -> Self {
        self.mode = mode;
        self
    }

    /// Sets the permissions of the new file, regardless of the user's mask.
    pub fn with_permissions(mut self, permissions: Permissions) -> Self {
        self.mode = PRIVATE;
        self.permissions = Some(permissions);
        self
    }

    /// Leaves it to the caller to make the new file durable. Until then a power cut may leave the old content, none, or
    /// a part of the new.
    pub fn without_sync(mut self) -> Self {
        self.is_durable = false;
        self
    }

    /// Replaces the file. It is durable when this returns, unless it is written [without sync](Self::without_sync).
    ///
    /// # Errors
    /// [`ReplaceError`]. No draft is left, and the old content is still there, unless only the directory could not
    /// be synced.
    pub fn write(self, content: &[u8]) -> std::result::Result<(), ReplaceError> {
        self.write_with(|file| file.write_all(content))
    }

    /// Replaces the file by what `fill` writes. It is durable like that of [`write`](Self::write).
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn write_with(
        self,
        fill: impl FnOnce(&mut File) -> Result<()>,
    ) -> std::result::Result<(), ReplaceError> {
        let failed = |doing, path: &Path| {
            let path = path.to_owned();
            move |error| ReplaceError { doing, path, error }
        };
        let remove_draft = |_: &ReplaceError| drop(std::fs::remove_file(&self.draft));
        FaultPoint::ReplaceBefore.reach();
        self.write_draft(fill).map_err(failed("write", &self.draft)).inspect_err(remove_draft)?;
        FaultPoint::ReplaceWritten.reach();
        std::fs::rename(&self.draft, self.path)
            .map_err(failed("replace", self.path))
            .inspect_err(remove_draft)?;
        FaultPoint::ReplaceAfter.reach();
        let Some(directory) = self.path.parent().filter(|_| self.is_durable) else {
            return Ok(());
        };
        sync_directory(directory).map_err(failed("sync the directory", directory))
    }

    fn write_draft(&self, content: impl FnOnce(&mut File) -> Result<()>) -> Result<()> {
        let mut file = create_with(&self.draft, self.mode)?;
        content(&mut file)?;
        if let Some(permissions) = &self.permissions {
            file.set_permissions(permissions.clone())?;
        }
        if self.is_durable { file.sync_all() } else { Ok(()) }
    }
}

/// Makes new, renamed and removed entries of a directory durable.
///
/// # Errors
/// The system's error.
pub fn sync_directory(path: &Path) -> Result<()> {
    File::open(path)?.sync_all()
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn only_plain_files_are_opened() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = |name: &str| dir.path().join(name);
        std::fs::write(path("plain"), "text").expect("written");
        make_fifo(&path("fifo"));
        symlink("/dev/zero", path("zero")).expect("linked");
        symlink(path("plain"), path("link")).expect("linked");
        std::fs::create_dir(path("dir")).expect("made");
        let _socket = UnixListener::bind(path("socket")).expect("bound");
        assert_eq!(read(&path("plain"), 4).expect("read"), b"text");
        let kinds = [
            ("fifo", "a FIFO"),
            ("zero", "a symbolic link"),
            ("link", "a symbolic link"),
            ("dir", "a directory"),
            ("socket", "a socket"),
        ];
        for (name, kind) in kinds {
            let (mut read, mut append, mut both) =
                (OpenOptions::new(), OpenOptions::new(), OpenOptions::new());
            let modes =
                [read.read(true), append.append(true).create(true), both.read(true).write(true)];
            for options in modes {
                let error = open_with(&path(name), options).expect_err(name);
                assert!(is_unfit(&error), "{name}: {error}");
                assert_eq!(error.to_string(), format!("it is {kind}, not a plain file"));
            }
            assert!(!is_there(&path(name)), "{name}");
        }
        assert!(is_unfit(&open(Path::new("/dev/zero")).expect_err("a device")));
        let absent = open(&path("none")).expect_err("absent");
        assert_eq!((absent.kind(), is_unfit(&absent)), (ErrorKind::NotFound, false));
    }

    #[test]
    fn reserved_room_keeps_the_length_and_is_given_back() {
        use std::os::unix::fs::MetadataExt;

        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("note");
        let file = create(&path).expect("created");
        reserve(&file, &[u64::MAX / 2, 1 << 20]).expect("the second one fits");
        let found = path.metadata().expect("it is there");
        assert_eq!(found.len(), 0);
        if cfg!(target_os = "linux") {
            assert!(found.blocks() * 512 >= 1 << 20, "{} blocks", found.blocks());
        }
        fill(&file, b"short").expect("written");
        let found = path.metadata().expect("it is there");
        assert_eq!(std::fs::read(&path).expect("read"), b"short");
        assert!(found.blocks() * 512 < 1 << 20, "{} blocks", found.blocks());
    }

    #[test]
    fn errors_of_the_machine_are_not_about_the_file() {
        for number in [28, 122, 5, 24, 23, 12] {
            assert!(is_out_of_room(&Error::from_raw_os_error(number)), "{number}");
        }
        for kind in [ErrorKind::PermissionDenied, ErrorKind::NotFound, ErrorKind::IsADirectory] {
            assert!(!is_out_of_room(&kind.into()), "{kind}");
        }
        assert!(!is_out_of_room(&UnfitFile::NotPlain("a FIFO").into()));
    }

    #[test]
    fn file_longer_than_limit_is_not_read() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("long");
        File::create(&path).and_then(|file| file.set_len(1 << 40)).expect("a sparse file");
        let error = read(&path, 1000).expect_err("too long");
        assert_eq!(error.to_string(), "it is longer than 1000 bytes");
        assert!(is_unfit(&error));
    }

    #[test]
    fn named_text_follows_links_but_waits_for_nothing() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = |name: &str| dir.path().join(name);
        std::fs::write(path("plain"), "text").expect("written");
        symlink(path("plain"), path("link")).expect("linked");
        assert_eq!(text(&path("link")).expect("read"), "text");
        make_fifo(&path("fifo"));
        symlink(path("fifo"), path("to-fifo")).expect("linked");
        symlink("/dev/zero", path("zero")).expect("linked");
        let _socket = UnixListener::bind(path("socket")).expect("bound");
        let kinds = [
            ("fifo", "a FIFO"),
            ("to-fifo", "a FIFO"),
            ("zero", "a device"),
            ("socket", "a socket"),
            (".", "a directory"),
        ];
        for (name, kind) in kinds {
            let error = text(&path(name)).expect_err(name);
            assert_eq!(error.to_string(), format!("it is {kind}, not a plain file"), "{name}");
        }
        File::create(path("long")).and_then(|file| file.set_len(1 << 40)).expect("a sparse file");
        assert!(is_unfit(&text(&path("long")).expect_err("too long")));
        std::fs::write(path("latin"), b"\xe4").expect("written");
        assert_eq!(text(&path("latin")).expect_err("no text").kind(), ErrorKind::InvalidData);
    }

    #[test]
    fn created_file_replaces_planted_link_or_fifo() {
        let dir = tempfile::tempdir().expect("a directory");
        let (path, other) = (dir.path().join("new"), dir.path().join("other"));
        std::fs::write(&other, "mine").expect("written");
        let plants: [&dyn Fn(); 3] =
            [&|| symlink(&other, &path).expect("linked"), &|| make_fifo(&path), &|| {
                std::fs::hard_link(&other, &path).expect("linked");
            }];
        for plant in plants {
            plant();
            create(&path).and_then(|mut file| file.write_all(b"x")).expect("created");
            assert_eq!(std::fs::read(&path).expect("read"), b"x");
            assert_eq!(path.metadata().expect("there").permissions().mode() & 0o777, 0o600);
            std::fs::remove_file(&path).expect("removed");
        }
        assert_eq!(std::fs::read(&other).expect("there"), b"mine", "no link is followed");
        std::fs::create_dir(&path).expect("made");
        assert_eq!(
            create(&path).expect_err("a directory").to_string(),
            "it is a directory, not a plain file"
        );
    }
}

#[cfg(test)]
mod replace_tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn mode(path: &Path) -> u32 {
        path.symlink_metadata().expect("it is there").permissions().mode() & 0o7777
    }

    fn names(directory: &Path) -> Vec<OsString> {
        let entries = std::fs::read_dir(directory).expect("a directory");
        entries.map(|entry| entry.expect("an entry").file_name()).collect()
    }

    #[test]
    fn new_file_is_private_unless_a_mode_or_permissions_are_given() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("file");
        FileReplacement::of(&path).write(b"one").expect("written");
        assert_eq!((std::fs::read(&path).expect("read"), mode(&path)), (b"one".to_vec(), 0o600));
        FileReplacement::of(&path).with_mode(0o400).write(b"two").expect("written");
        assert_eq!((std::fs::read(&path).expect("read"), mode(&path)), (b"two".to_vec(), 0o400));
        let all = Permissions::from_mode(0o777);
        FileReplacement::of(&path).with_permissions(all).write(b"three").expect("written");
        assert_eq!((std::fs::read(&path).expect("read"), mode(&path)), (b"three".to_vec(), 0o777));
        assert_eq!(names(dir.path()), ["file"]);
    }

    #[test]
    fn links_at_the_file_and_at_the_draft_are_replaced() {
        let dir = tempfile::tempdir().expect("a directory");
        let (path, other) = (dir.path().join("file"), dir.path().join("other"));
        std::fs::write(&other, "mine").expect("written");
        symlink(&other, &path).expect("linked");
        symlink(&other, dir.path().join("file.new")).expect("linked");
        FileReplacement::of(&path).write(b"new").expect("written");
        assert!(path.symlink_metadata().expect("it is there").is_file());
        assert_eq!(std::fs::read(&path).expect("read"), b"new");
        assert_eq!(std::fs::read(&other).expect("read"), b"mine");
    }

    #[test]
    fn failed_replacement_leaves_no_draft() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("file");
        std::fs::create_dir(&path).expect("made");
        let failed = FileReplacement::of(&path).with_draft("draft").write(b"x").expect_err("taken");
        assert_eq!((failed.doing, &failed.path), ("replace", &path));
        assert_eq!(names(dir.path()), ["file"]);
    }
}
