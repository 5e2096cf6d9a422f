//! The files of turns and of the processes that serve them, and the follower of a stream.
//!
//! `steps/main-3-0.jsonl` is the stream of a process, named after its first turn. A further turn has
//! a `.turn`, with its stream and its offset in it. `.started` proves that raymond started the process. The
//! child has its files open itself; the runtime only follows, so neither depends on the other.

use std::cell::RefCell;
use std::fs::File;
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use crate::captured_output;
use crate::dialogue::Dialogue;
use crate::host::timestamp;
use crate::turn_progress::{LineTooLong, TurnProgress};
use raymond_model::turn::{FailureCause, TurnFailure, TurnId, TurnOffset};
use raymond_store::fault::FaultPoint;
use raymond_store::plain_file;
use raymond_store::proof::StepProofs;

/// The longest file of a turn's offset, in bytes.
const MAX_TURN_OFFSET_BYTES: u64 = 1024 * 1024;
/// The number of bytes that are read at a time.
const CHUNK_BYTES: usize = 64 * 1024;
/// The number of chunks that are read in a row, so that a long stream does not block others.
const MAX_CHUNKS: usize = 64;

/// The files of a turn in the directory of all turns: it has either a stream or an offset in the stream of another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnFiles {
    /// The name that they have in common.
    stem: String,
    /// The stream of a process whose first turn it is.
    pub(super) stream: PathBuf,
    /// The file with the turn's offset in the stream of another.
    pub turn_offset: PathBuf,
    /// The proof that raymond started the process whose first turn it is.
    started: PathBuf,
    /// The mark of a turn that was asked while the disk was full. It is empty, because that needs no room.
    unkept: PathBuf,
}

/// The files of a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessFiles {
    /// Their name: that of its first turn.
    pub name: String,
    /// The proof that raymond started it.
    started: PathBuf,
    /// Its prompt, if it does not read messages from a pipe.
    pub prompt: PathBuf,
    /// Its stdout.
    pub stream: PathBuf,
    /// Its stderr; `None` for a process that an earlier runtime started.
    pub stderr: Option<PathBuf>,
}

/// The files, open for the child.
#[derive(Debug)]
pub struct OpenProcessFiles {
    /// Its stdin; `None` for a pipe.
    pub stdin: Option<File>,
    pub stdout: File,
    pub stderr: File,
}

impl TurnFiles {
    /// Returns the files of a turn in the directory of all turns.
    pub fn of(steps: &Path, turn: &TurnId) -> Self {
        Self::named(steps, &turn.stem())
    }

    /// Returns the files of the turn of that name.
    pub(super) fn named(steps: &Path, stem: &str) -> Self {
        let file = |ending: &str| steps.join(format!("{stem}.{ending}"));
        Self {
            stem: stem.to_owned(),
            stream: file("jsonl"),
            turn_offset: file("turn"),
            started: file("started"),
            unkept: file("unkept"),
        }
    }

    /// Marks the turn as not recorded because the disk had no room.
    pub fn mark_unkept(&self) {
        // Without the mark only the estimate of the turn's cost is missing.
        let _ = File::options().create(true).append(true).mode(0o600).open(&self.unkept);
    }

    /// Returns whether the turn is marked as not recorded because the disk had no room.
    pub fn is_marked_unkept(&self) -> bool {
        self.unkept.exists()
    }

    /// Returns whether the turn was begun before, regardless of its outcome.
    pub fn are_there(&self) -> bool {
        plain_file::is_there(&self.stream) || plain_file::is_there(&self.turn_offset)
    }

    /// Returns whether raymond began the turn, whose files exist. An offset without a proof is ignored, so it is
    /// removed if the turn began otherwise.
    pub(super) fn are_proven(&self, proofs: &StepProofs) -> bool {
        let turn_offset = self.read_turn_offset();
        if turn_offset.as_ref().is_some_and(|stored| proofs.believe_turn_offset(&self.stem, stored))
        {
            return true;
        }
        let has_started = proofs.believe_start(&self.stem, &self.started);
        has_started && (turn_offset.is_none() || std::fs::remove_file(&self.turn_offset).is_ok())
    }

    /// Writes the turn's offset, with a proof that it was asked.
    ///
    /// # Errors
    /// The file, and the system's error.
    pub fn note(
        &self,
        turn_offset: &TurnOffset,
        proofs: &StepProofs,
    ) -> Result<(), (PathBuf, std::io::Error)> {
        let written = proofs
            .stored_turn_offset(&self.stem, turn_offset)
            .map_err(std::io::Error::from)
            .and_then(|json| plain_file::create(&self.turn_offset)?.write_all(&json));
        written.map_err(|error| (self.turn_offset.clone(), error))
    }

    /// Returns the turn's offset, unless it is the first turn of a process. An incomplete file is ignored, because the
    /// turn's prompt had not been sent yet.
    pub fn turn_offset(&self) -> Option<TurnOffset> {
        serde_json::from_slice(&self.read_turn_offset()?).ok()
    }

    /// Returns the name of the process that serves the turn, and the byte of its stream at which the turn begins.
    pub(super) fn place(&self) -> (String, u64) {
        match self.turn_offset().filter(|_| !plain_file::is_there(&self.stream)) {
            Some(turn_offset) => (turn_offset.process, turn_offset.from),
            None => (self.stem.clone(), 0),
        }
    }

    /// Reads the file of the turn's offset.
    fn read_turn_offset(&self) -> Option<Vec<u8>> {
        plain_file::read(&self.turn_offset, MAX_TURN_OFFSET_BYTES).ok()
    }
}

impl ProcessFiles {
    /// Returns the files of a process that has been started before.
    pub fn named(steps: &Path, name: &str) -> Self {
        let file = |ending: &str| steps.join(format!("{name}.{ending}"));
        Self {
            name: name.to_owned(),
            started: file("started"),
            prompt: file("prompt"),
            stream: file("jsonl"),
            stderr: None,
        }
    }

    /// Returns the files of a process that is about to be started. Only one process of this runtime has this
    /// `slot` at a time, and its stderr replaces that of the one before it.
    pub fn in_slot(self, steps: &Path, slot: usize) -> Self {
        let stderr = steps.join(format!("{}-{slot}.stderr", std::process::id()));
        Self { stderr: Some(stderr), ..self }
    }

    /// Writes the proof that raymond is about to start it.
    ///
    /// # Errors
    /// The file, and the system's error.
    pub(super) fn prove_start(&self, proofs: &StepProofs) -> Result<(), (PathBuf, std::io::Error)> {
        let proven = proofs.prove_start(&self.name, &self.started);
        proven.map_err(|error| (self.started.clone(), error))
    }

    /// Makes the files for a child that is about to start. The stream comes last, because a turn counts as
    /// begun from then on.
    ///
    /// # Errors
    /// The file, and the system's error.
    pub fn create(
        &self,
        prompt: Option<&str>,
    ) -> Result<OpenProcessFiles, (PathBuf, std::io::Error)> {
        let write = |prompt: &str| {
            let mut file = plain_file::create(&self.prompt)?;
            file.write_all(prompt.as_bytes())?;
            file.rewind()?;
            Ok(file)
        };
        let stdin = prompt.map(write).transpose();
        let stderr = match &self.stderr {
            Some(stderr) => {
                captured_output::create(stderr).map_err(|error| (stderr.clone(), error))?
            }
            None => File::options()
                .write(true)
                .open("/dev/null")
                .map_err(|error| ("/dev/null".into(), error))?,
        };
        let stdout = self.create_stream().map_err(|error| (self.stream.clone(), error))?;
        Ok(OpenProcessFiles {
            stdin: stdin.map_err(|error| (self.prompt.clone(), error))?,
            stdout,
            stderr,
        })
    }

    /// Creates the stream. Anything at its path that is not a plain file was not created by raymond and is removed. A
    /// plain file is the stream of a turn that was begun.
    fn create_stream(&self) -> std::io::Result<File> {
        let found = self.stream.symlink_metadata();
        if found.is_ok_and(|found| !found.is_file() && !found.is_dir()) {
            std::fs::remove_file(&self.stream)?;
        }
        File::options().append(true).create_new(true).mode(0o600).open(&self.stream)
    }

    /// Returns the end of the child's stderr, as far as that is known.
    pub fn stderr_tail(&self) -> String {
        self.stderr.as_deref().and_then(captured_output::shown_end).unwrap_or_default()
    }
}

/// Follows a stream that is still being written.
#[derive(Debug)]
pub struct StreamFollower {
    file: Option<File>,
    position: u64,
    /// The stderr of the same process, which is cut back as it grows.
    stderr: Option<PathBuf>,
}

thread_local! {
    /// The buffer for the bytes that were just read, shared by all readers on this thread.
    static READ: RefCell<Vec<u8>> = RefCell::new(vec![0; CHUNK_BYTES]);
}

/// The reason why a stream cannot be followed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The line of a result is too long to be held.
    #[error(transparent)]
    TooLong(#[from] LineTooLong),
    /// The system refused.
    #[error("its output cannot be read: {0}")]
    Io(#[from] std::io::Error),
}

impl StreamFollower {
    /// Follows a stream from a position. A stream that does not exist yet counts as empty.
    ///
    /// # Errors
    /// The system's error.
    pub fn open(path: &Path, position: u64) -> std::io::Result<Self> {
        let file = match plain_file::open(path) {
            Ok(mut file) => {
                file.seek(SeekFrom::Start(position))?;
                Some(file)
            }
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        Ok(Self { file, position, stderr: None })
    }

    /// Returns the follower, which also cuts back the stderr of the process.
    pub fn with_stderr(self, stderr: Option<PathBuf>) -> Self {
        Self { stderr, ..self }
    }

    /// Returns the number of bytes of the stream that have been read.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Continues reading at another position, because the lines that were read have been moved there.
    ///
    /// # Errors
    /// The system's error.
    pub fn move_to(&mut self, position: u64) -> std::io::Result<()> {
        if let Some(file) = &mut self.file {
            file.seek(SeekFrom::Start(position))?;
        }
        self.position = position;
        Ok(())
    }

    /// Reads up to the current end, when no later output is of interest; yields to other tasks in between, and
    /// does not wait for output that is still being written. A result that is too long does not stop the
    /// reading, because a later one may have the turn's cost.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn read_to_end(&mut self, dialogue: &mut dyn Dialogue) -> Result<(), Error> {
        let end =
            self.file.as_ref().map_or(Ok(0), |file| file.metadata().map(|file| file.len()))?;
        let mut too_long = Ok(());
        while self.position < end {
            match self.read(dialogue) {
                Ok(false) => break,
                Ok(true) => {}
                Err(error @ Error::TooLong(_)) => too_long = too_long.and(Err(error)),
                Err(error) => return Err(error),
            }
            tokio::task::yield_now().await;
        }
        let ended = dialogue.end();
        self.note_time_of_result(dialogue.progress_mut());
        too_long.and(ended.map_err(Error::from))
    }

    /// Notes when a result was written that does not say so itself: when its file was last changed.
    fn note_time_of_result(&self, progress: &mut TurnProgress) {
        if progress.result.is_some() && progress.result_written.is_none() {
            let written = self.file.as_ref().and_then(|file| file.metadata().ok()?.modified().ok());
            progress.result_written = written.map(timestamp);
        }
    }

    /// Reads some of the new output; returns whether there was any.
    ///
    /// # Errors
    /// [`Error`].
    pub fn read(&mut self, dialogue: &mut dyn Dialogue) -> Result<bool, Error> {
        if let Some(stderr) = &self.stderr {
            captured_output::cut_back_meanwhile(stderr);
        }
        READ.with_borrow_mut(|chunk| self.read_into(chunk, dialogue))
    }

    fn read_into(&mut self, chunk: &mut [u8], dialogue: &mut dyn Dialogue) -> Result<bool, Error> {
        let Some(file) = &mut self.file else { return Ok(false) };
        let mut grew = false;
        for _ in 0..MAX_CHUNKS {
            let count = match file.read(chunk) {
                Ok(0) => break,
                Ok(count) => count,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(error.into()),
            };
            grew = true;
            self.position += count as u64;
            dialogue.feed(&chunk[..count])?;
        }
        self.note_time_of_result(dialogue.progress_mut());
        if grew {
            FaultPoint::StreamRead.reach();
        }
        Ok(grew)
    }
}

/// Returns the failure for a file that cannot be written.
pub(super) fn unwritable(path: &Path, error: &std::io::Error) -> TurnFailure {
    let why = format!("{}: cannot be written: {error}", path.display());
    TurnFailure::new(FailureCause::Storage, why)
}

/// Returns the failure for a file or a directory that cannot be read.
pub(super) fn unreadable(path: &Path, error: &std::io::Error) -> TurnFailure {
    let why = format!("{}: cannot be read: {error}", path.display());
    TurnFailure::new(FailureCause::Storage, why)
}
