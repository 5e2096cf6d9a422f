//! The journal's own thread: appends lines, makes them durable, and acknowledges them.
//!
//! Lines that queue up while it waits for the disk are written and synced together, so many agents share one sync.
//! After a failed write or sync it stops for good: the system may have marked the lost pages as clean, so a second
//! sync would prove nothing.

use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use super::acknowledged::AcknowledgedEnd;
use super::{Error, files};
use crate::fault::{point, recorded};

/// The storage of lines: a file, or a test's stand-in for it.
pub trait JournalStorage: Send + 'static {
    /// Appends all bytes.
    ///
    /// # Errors
    /// The error of the system.
    fn append(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// Makes all that was appended durable.
    ///
    /// # Errors
    /// The error of the system.
    fn sync(&mut self) -> io::Result<()>;
}

impl JournalStorage for File {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.write_all(bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.sync_data()
    }
}

/// A message of the thread about records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteOutcome {
    /// All records up to and including this one are durable.
    Durable(u64),
    /// No more is written; [`JournalWriter::finish`] returns the reason.
    Failed,
}

enum WriterJob {
    Append { seq: u64, line: String },
    Snapshot(SnapshotSource),
}

/// Writes the content of a snapshot into its file.
type SnapshotSource = Box<dyn FnOnce(&mut File) -> io::Result<()> + Send>;

/// The most bytes that are written together.
const BATCH: usize = 1 << 20;

/// A handle to the journal's thread, which ends when this is dropped.
#[derive(Debug)]
pub struct JournalWriter {
    jobs: Sender<WriterJob>,
    thread: JoinHandle<Result<(), Error>>,
    journal: PathBuf,
}

/// The target of the thread.
pub struct JournalTarget<M> {
    /// The open journal, at its end.
    pub medium: M,
    /// Its path, for errors.
    pub journal: PathBuf,
    /// The snapshot.
    pub state: PathBuf,
    /// The note of the durable length of the journal.
    pub acknowledged: AcknowledgedEnd,
}

impl JournalWriter {
    /// Starts the thread; `tell` is called on it.
    ///
    /// # Errors
    /// [`Error::Io`] if there can be no thread.
    pub fn start<M: JournalStorage>(
        target: JournalTarget<M>,
        tell: impl Fn(WriteOutcome) + Send + 'static,
    ) -> Result<Self, Error> {
        let (jobs, receiver) = channel();
        let journal = target.journal.clone();
        let thread = std::thread::Builder::new()
            .name("journal".to_owned())
            .spawn(move || {
                let ended = run_jobs(target, &receiver, &tell);
                if ended.is_err() {
                    tell(WriteOutcome::Failed);
                }
                ended
            })
            .map_err(Error::io("start a thread for", &journal))?;
        Ok(Self { jobs, thread, journal })
    }

    /// Waits until all lines and snapshots are written.
    ///
    /// # Errors
    /// The error that kept the thread from writing.
    pub fn finish(self) -> Result<(), Error> {
        drop(self.jobs);
        let why = "its thread failed, please report it".to_owned();
        self.thread.join().unwrap_or(Err(Error::Stopped { path: self.journal, why }))
    }

    /// Sends a line; it is durable when the thread says so.
    pub fn append(&self, seq: u64, line: String) {
        self.hand_over(WriterJob::Append { seq, line });
    }

    /// Sends a snapshot, which `fill` writes on the thread, after all earlier lines.
    pub fn snapshot(&self, fill: impl FnOnce(&mut File) -> io::Result<()> + Send + 'static) {
        self.hand_over(WriterJob::Snapshot(Box::new(fill)));
    }

    /// Sends a job. A thread that has failed has reported that, and takes no more jobs.
    fn hand_over(&self, job: WriterJob) {
        let _ = self.jobs.send(job);
    }
}

fn run_jobs<M: JournalStorage>(
    mut target: JournalTarget<M>,
    jobs: &Receiver<WriterJob>,
    tell: &impl Fn(WriteOutcome),
) -> Result<(), Error> {
    let mut next = jobs.recv().ok();
    while let Some(job) = next.take() {
        match job {
            WriterJob::Snapshot(fill) => files::replace_with(&target.state, fill)?,
            WriterJob::Append { seq, line } => {
                let (last, lines, after) = gather(seq, line, jobs);
                next = after;
                commit(&mut target, &lines)?;
                recorded(last);
                tell(WriteOutcome::Durable(last));
            }
        }
        next = next.or_else(|| jobs.recv().ok());
    }
    Ok(())
}

/// Joins the lines that wait already; a job of another kind ends the batch and comes next.
fn gather(seq: u64, line: String, jobs: &Receiver<WriterJob>) -> (u64, String, Option<WriterJob>) {
    let (mut last, mut lines) = (seq, line);
    lines.push('\n');
    while lines.len() < BATCH {
        match jobs.try_recv() {
            Ok(WriterJob::Append { seq, line }) => {
                last = seq;
                lines.push_str(&line);
                lines.push('\n');
            }
            Ok(other) => return (last, lines, Some(other)),
            Err(_) => break,
        }
    }
    (last, lines, None)
}

fn commit<M: JournalStorage>(target: &mut JournalTarget<M>, lines: &str) -> Result<(), Error> {
    point("append.before");
    target.medium.append(lines.as_bytes()).map_err(Error::io("append to", &target.journal))?;
    point("append.after");
    target.medium.sync().map_err(Error::io("sync", &target.journal))?;
    target.acknowledged.add(lines.len());
    point("sync.after");
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    /// A medium that fails at the given sync, and counts.
    struct Faulty {
        syncs: usize,
        fails_at: usize,
        written: mpsc::Sender<usize>,
    }

    impl JournalStorage for Faulty {
        fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
            self.written.send(bytes.len()).map_err(io::Error::other)
        }

        fn sync(&mut self) -> io::Result<()> {
            self.syncs += 1;
            if self.syncs == self.fails_at {
                Err(io::Error::from(io::ErrorKind::StorageFull))
            } else {
                Ok(())
            }
        }
    }

    fn start(
        medium: impl JournalStorage,
        dir: &std::path::Path,
    ) -> (JournalWriter, mpsc::Receiver<WriteOutcome>) {
        let (tell, told) = mpsc::channel();
        let target = JournalTarget {
            medium,
            journal: dir.join("journal.jsonl"),
            state: dir.join("state.json"),
            acknowledged: AcknowledgedEnd::none(),
        };
        let writer = JournalWriter::start(target, move |outcome| {
            let _ = tell.send(outcome);
        });
        (writer.expect("a thread"), told)
    }

    #[test]
    fn after_a_failed_sync_nothing_more_is_written() {
        let dir = tempfile::tempdir().expect("a directory");
        let (written, appended) = mpsc::channel();
        let (writer, told) = start(Faulty { syncs: 0, fails_at: 2, written }, dir.path());
        writer.append(1, "one".into());
        assert!(matches!(told.recv(), Ok(WriteOutcome::Durable(1))));
        writer.append(2, "two".into());
        assert_eq!(told.recv(), Ok(WriteOutcome::Failed));
        writer.append(3, "three".into());
        let error = writer.finish().expect_err("it failed").to_string();
        assert!(error.contains("cannot sync") && error.contains("free some space"), "{error}");
        assert_eq!(appended.into_iter().collect::<Vec<_>>(), [4, 4]);
        assert!(told.recv().is_err());
    }

    #[test]
    fn full_disk_is_an_error_naming_the_journal() {
        let dir = tempfile::tempdir().expect("a directory");
        let full =
            std::fs::OpenOptions::new().append(true).open("/dev/full").expect("the full device");
        let (writer, told) = start(full, dir.path());
        writer.append(1, "one".into());
        assert_eq!(told.recv(), Ok(WriteOutcome::Failed));
        let error = writer.finish().expect_err("it failed").to_string();
        assert!(error.contains("journal.jsonl: cannot append to: "), "{error}");
    }

    #[test]
    fn snapshot_is_written_in_order_between_records() {
        let dir = tempfile::tempdir().expect("a directory");
        let file = files::private()
            .append(true)
            .create(true)
            .open(dir.path().join("journal.jsonl"))
            .expect("a file");
        let (writer, told) = start(file, dir.path());
        writer.append(1, "one".into());
        writer.append(2, "two".into());
        writer.snapshot(|file| file.write_all(b"{}"));
        writer.append(3, "three".into());
        writer.finish().expect("all is written");
        let last = told.into_iter().last();
        assert!(matches!(last, Some(WriteOutcome::Durable(3))), "{last:?}");
        assert_eq!(
            std::fs::read_to_string(dir.path().join("journal.jsonl")).expect("read"),
            "one\ntwo\nthree\n"
        );
        assert_eq!(std::fs::read_to_string(dir.path().join("state.json")).expect("read"), "{}");
    }
}
