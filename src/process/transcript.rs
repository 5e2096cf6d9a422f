//! The files of a turn: the prompt the child reads, the stream and the errors it writes.
//!
//! `steps/main-3-0.prompt`, `.jsonl`, `.stderr`. The child has them open itself; the runtime only
//! follows, so neither end needs the other to live.

use std::fs::File;
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use super::stream::{Stream, TooLong};
use crate::domain::turn::TurnId;
use crate::fault::point;

/// How much is read at a time, in bytes.
const CHUNK: usize = 64 * 1024;

/// How often it is read in a row, so that a long stream does not keep others from their turn.
const CHUNKS: usize = 64;

/// How much of the end of stderr is shown, in bytes.
const LAST_WORDS: u64 = 2048;

/// The files of one turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnFiles {
    /// What the child reads.
    pub prompt: PathBuf,
    /// What it writes.
    pub stream: PathBuf,
    /// What it complains.
    pub stderr: PathBuf,
}

/// The files, open for the child.
#[derive(Debug)]
pub struct Opened {
    /// Its stdin.
    pub stdin: File,
    /// Its stdout.
    pub stdout: File,
    /// Its stderr.
    pub stderr: File,
}

impl TurnFiles {
    /// The files of a turn in the directory of all of them.
    #[must_use]
    pub fn of(steps: &Path, turn: &TurnId) -> Self {
        let file = |ending: &str| steps.join(format!("{}.{ending}", turn.stem()));
        Self { prompt: file("prompt"), stream: file("jsonl"), stderr: file("stderr") }
    }

    /// Makes the files for a child that is about to start. The stream comes last, because where it is
    /// a turn counts as begun.
    ///
    /// # Errors
    /// The file, and what the system said.
    pub fn create(&self, prompt: &str) -> Result<Opened, (PathBuf, std::io::Error)> {
        let mut replace = File::options();
        replace.write(true).create(true).truncate(true).mode(0o600);
        let mut append = File::options();
        append.append(true).create_new(true).mode(0o600);
        let written =
            replace.open(&self.prompt).and_then(|mut file| file.write_all(prompt.as_bytes()));
        let prompt = written.and_then(|()| File::open(&self.prompt));
        Ok(Opened {
            stdin: prompt.map_err(|error| (self.prompt.clone(), error))?,
            stderr: replace.open(&self.stderr).map_err(|error| (self.stderr.clone(), error))?,
            stdout: append.open(&self.stream).map_err(|error| (self.stream.clone(), error))?,
        })
    }

    /// The end of what the child complained.
    #[must_use]
    pub fn last_words(&self) -> String {
        let read = || -> std::io::Result<Vec<u8>> {
            let mut file = File::open(&self.stderr)?;
            let length = file.metadata()?.len();
            file.seek(SeekFrom::Start(length.saturating_sub(LAST_WORDS)))?;
            let mut bytes = Vec::new();
            file.take(LAST_WORDS).read_to_end(&mut bytes)?;
            Ok(bytes)
        };
        String::from_utf8_lossy(&read().unwrap_or_default()).into_owned()
    }
}

/// Follows a stream that is still being written.
#[derive(Debug)]
pub struct Follower {
    file: Option<File>,
    position: u64,
    chunk: Vec<u8>,
}

/// Why a stream cannot be followed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A line is too long to be held.
    #[error(transparent)]
    TooLong(#[from] TooLong),
    /// The system refused.
    #[error("its output cannot be read: {0}")]
    Io(#[from] std::io::Error),
}

impl Follower {
    /// Follows a stream from its beginning; one that does not exist yet is empty.
    ///
    /// # Errors
    /// What the system said.
    pub fn open(path: &Path) -> std::io::Result<Self> {
        let file = match File::open(path) {
            Ok(file) => Some(file),
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        Ok(Self { file, position: 0, chunk: vec![0; CHUNK] })
    }

    /// Reads what is there by now, when nothing more is of interest; lets others have their turn
    /// in between, and does not chase what is still being written.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn read_to_end(&mut self, stream: &mut Stream) -> Result<(), Error> {
        let end =
            self.file.as_ref().map_or(Ok(0), |file| file.metadata().map(|file| file.len()))?;
        while self.position < end && self.read(stream)? {
            tokio::task::yield_now().await;
        }
        Ok(stream.end()?)
    }

    /// Reads some of what has come since; tells whether anything has.
    ///
    /// # Errors
    /// [`Error`].
    pub fn read(&mut self, stream: &mut Stream) -> Result<bool, Error> {
        let Some(file) = &mut self.file else { return Ok(false) };
        let mut grew = false;
        for _ in 0..CHUNKS {
            let count = match file.read(&mut self.chunk) {
                Ok(0) => break,
                Ok(count) => count,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(error.into()),
            };
            grew = true;
            self.position += count as u64;
            stream.feed(&self.chunk[..count])?;
        }
        if grew {
            point("stream.read");
        }
        Ok(grew)
    }
}
