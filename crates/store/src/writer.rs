//! The journal's own thread: appends lines, makes them durable, and acknowledges them.
//!
//! Lines that queue up while it waits for the disk are written and synced together, so many agents share one sync.
//! After a failed write or sync it stops for good: the system may have marked the lost pages as clean, so a second
//! sync would prove nothing.

use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::log::{LineBatch, RunLog};
use super::{Error, files};
use crate::fault::recorded;

/// A message of the thread about records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteOutcome {
    /// All records up to and including this one are durable.
    Durable(u64),
    /// No more is written; [`JournalWriter::finish`] returns the reason.
    Failed,
}

enum WriterJob {
    Append(LineBatch),
    Snapshot(SnapshotSource),
}

/// Writes the content of a snapshot into its file.
type SnapshotSource = Box<dyn FnOnce(&mut File) -> io::Result<()> + Send>;

/// The most bytes that are written together.
const BATCH: usize = 1 << 20;

/// The most waits for further lines before one append.
const MOST_GAPS: u32 = 5;

/// A handle to the journal's thread, which ends when this is dropped.
#[derive(Debug)]
pub struct JournalWriter {
    jobs: Sender<WriterJob>,
    thread: JoinHandle<Result<(), Error>>,
    journal: PathBuf,
}

/// The target of the thread.
pub struct JournalTarget<L> {
    pub log: L,
    /// The path of the journal, for errors.
    pub journal: PathBuf,
    /// The snapshot.
    pub state: PathBuf,
}

impl JournalWriter {
    /// Starts the thread; `tell` is called on it.
    ///
    /// # Errors
    /// [`Error::Io`] if there can be no thread.
    pub fn start<L: RunLog>(
        target: JournalTarget<L>,
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

    /// Sends the lines of one moment; they are durable when the thread says so.
    pub fn append(&self, lines: LineBatch) {
        self.hand_over(WriterJob::Append(lines));
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

fn run_jobs<L: RunLog>(
    mut target: JournalTarget<L>,
    jobs: &Receiver<WriterJob>,
    tell: &impl Fn(WriteOutcome),
) -> Result<(), Error> {
    let mut renewed = Instant::now();
    let mut next = next_job(&mut target.log, jobs, &mut renewed)?;
    while let Some(job) = next.take() {
        match job {
            WriterJob::Snapshot(fill) => files::replace_with(&target.state, fill)?,
            WriterJob::Append(lines) => {
                let (batch, after) = gather(lines, jobs, target.log.gathering_time());
                next = after;
                target.log.append(&batch)?;
                recorded(batch.last);
                tell(WriteOutcome::Durable(batch.last));
            }
        }
        if next.is_none() {
            next = next_job(&mut target.log, jobs, &mut renewed)?;
        }
    }
    Ok(())
}

/// Waits for a job, and renews the right to append when it is time, however many jobs there are; `None` if there will be
/// none.
fn next_job<L: RunLog>(
    log: &mut L,
    jobs: &Receiver<WriterJob>,
    renewed: &mut Instant,
) -> Result<Option<WriterJob>, Error> {
    let Some(interval) = log.renewal_interval() else { return Ok(jobs.recv().ok()) };
    loop {
        let left = interval.saturating_sub(renewed.elapsed());
        if left.is_zero() {
            log.renew()?;
            *renewed = Instant::now();
            continue;
        }
        match jobs.recv_timeout(left) {
            Ok(job) => return Ok(Some(job)),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Ok(None),
        }
    }
}

/// Joins the lines that wait already, and those that follow each other within that time; a job of another kind ends the
/// batch and comes next.
fn gather(
    mut batch: LineBatch,
    jobs: &Receiver<WriterJob>,
    time: Duration,
) -> (LineBatch, Option<WriterJob>) {
    let end = Instant::now() + time * MOST_GAPS;
    while batch.text.len() < BATCH {
        let left = end.saturating_duration_since(Instant::now());
        match jobs.recv_timeout(time.min(left)) {
            Ok(WriterJob::Append(later)) => batch.add(later),
            Ok(other) => return (batch, Some(other)),
            Err(_) => break,
        }
    }
    (batch, None)
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::sync::mpsc;

    use super::*;
    use crate::log::AcknowledgedEnd;
    use crate::log::{JournalStorage, LogFile};

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

    /// A log whose right to append runs out all the time, and that tells when it is renewed.
    struct Leased(mpsc::Sender<()>);

    impl RunLog for Leased {
        fn append(&mut self, _: &LineBatch) -> Result<(), Error> {
            Ok(())
        }

        fn renewal_interval(&self) -> Option<Duration> {
            Some(Duration::from_millis(5))
        }

        fn renew(&mut self) -> Result<(), Error> {
            // After the test there is no receiver.
            let _ = self.0.send(());
            Ok(())
        }
    }

    #[test]
    fn log_that_is_always_written_is_renewed_in_time() {
        let dir = tempfile::tempdir().expect("a directory");
        let (renew, renewed) = mpsc::channel();
        let (state, journal) = (dir.path().join("state.json"), dir.path().join("journal.jsonl"));
        let (tell, told) = mpsc::channel();
        let target = JournalTarget { log: Leased(renew), journal, state };
        let writer = JournalWriter::start(target, move |outcome| {
            let _ = tell.send(outcome);
        });
        let writer = writer.expect("a thread");
        let mut last = 0;
        // The next line is there before the interval is over.
        while renewed.try_recv().is_err() {
            last += 1;
            writer.append(line(last, "text"));
            assert_eq!(told.recv(), Ok(WriteOutcome::Durable(last)));
            assert!(last < 10_000_000, "it is never renewed");
        }
        writer.finish().expect("it ends");
    }

    fn start(
        medium: impl JournalStorage,
        dir: &std::path::Path,
    ) -> (JournalWriter, mpsc::Receiver<WriteOutcome>) {
        let (tell, told) = mpsc::channel();
        let journal = dir.join("journal.jsonl");
        let acknowledged = AcknowledgedEnd::none();
        let log = LogFile { medium, journal: journal.clone(), acknowledged };
        let target = JournalTarget { log, journal, state: dir.join("state.json") };
        let writer = JournalWriter::start(target, move |outcome| {
            let _ = tell.send(outcome);
        });
        (writer.expect("a thread"), told)
    }

    fn line(last: u64, text: &str) -> LineBatch {
        LineBatch { last, text: format!("{text}\n"), shared: Vec::new() }
    }

    #[test]
    fn after_a_failed_sync_nothing_more_is_written() {
        let dir = tempfile::tempdir().expect("a directory");
        let (written, appended) = mpsc::channel();
        let (writer, told) = start(Faulty { syncs: 0, fails_at: 2, written }, dir.path());
        writer.append(line(1, "one"));
        assert!(matches!(told.recv(), Ok(WriteOutcome::Durable(1))));
        writer.append(line(2, "two"));
        assert_eq!(told.recv(), Ok(WriteOutcome::Failed));
        writer.append(line(3, "three"));
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
        writer.append(line(1, "one"));
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
        writer.append(line(1, "one"));
        writer.append(line(2, "two"));
        writer.snapshot(|file| file.write_all(b"{}"));
        writer.append(line(3, "three"));
        writer.finish().expect("all is written");
        let last = told.into_iter().last();
        assert!(matches!(last, Some(WriteOutcome::Durable(3))), "{last:?}");
        assert_eq!(
            std::fs::read_to_string(dir.path().join("journal.jsonl")).expect("read"),
            "one\ntwo\nthree\n"
        );
        assert_eq!(std::fs::read_to_string(dir.path().join("state.json")).expect("read"), "{}");
    }

    #[test]
    fn lines_that_follow_soon_go_together_until_another_job_comes() {
        let (sender, jobs) = channel();
        let line = |last: u64| LineBatch { last, text: format!("{last}\n"), ..Default::default() };
        let gathering = std::thread::spawn(move || gather(line(1), &jobs, Duration::from_mins(1)));
        sender.send(WriterJob::Append(line(2))).expect("it waits for more");
        sender.send(WriterJob::Snapshot(Box::new(|_| Ok(())))).expect("it waits for more");
        let (batch, next) = gathering.join().expect("it ends");
        assert_eq!((batch.last, batch.text.as_str()), (2, "1\n2\n"));
        assert!(matches!(next, Some(WriterJob::Snapshot(_))));
        let (sender, jobs) = channel();
        sender.send(WriterJob::Append(line(2))).expect("it is there");
        let (batch, next) = gather(line(1), &jobs, Duration::ZERO);
        assert!(batch.last == 2 && next.is_none(), "what is there already goes with it");
    }
}
