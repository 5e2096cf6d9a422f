//! The log of a run, the note of its acknowledged length, and the journal's own thread.
//!
//! A log is ordered lines of one writer, durable when an append returns. A run on one machine has only its journal
//! file. A run that several machines share has its log in an engine, and the journal file is a copy for this machine's
//! readers. The engine comes first, and its answer is the acknowledgement. So the copy never holds a record that the
//! engine does not have.

use std::fs::File;
use std::io;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use raymond_model::log_line::LogLine;

use crate::fault::{FaultPoint, recorded};
use crate::{Error, files, plain_file};

/// Lines that are appended together.
#[derive(Debug, Default)]
pub struct LineBatch {
    /// The number of the last record.
    pub last: u64,
    /// The lines for the file, each with its end.
    pub text: String,
    /// The lines for an engine, if there is one. They have no proof, because each machine has its own key.
    pub shared: Vec<LogLine>,
}

impl LineBatch {
    /// Adds the lines of a later moment.
    pub fn add(&mut self, later: Self) {
        self.last = later.last;
        self.text.push_str(&later.text);
        self.shared.extend(later.shared);
    }
}

/// The log of a run, as its one writer has it.
pub trait RunLog: Send + 'static {
    /// Appends lines, all or none. They are durable when it returns.
    ///
    /// # Errors
    /// [`Error`] if they may not be durable. Nothing can be appended from then on.
    fn append(&mut self, batch: &LineBatch) -> Result<(), Error>;

    /// Returns the longest time between two calls of [`renew`](Self::renew); `None` if none is needed.
    fn renewal_interval(&self) -> Option<Duration> {
        None
    }

    /// Renews the right to append, while there is nothing to append.
    ///
    /// # Errors
    /// [`Error::TakenOver`] if another raymond has it.
    fn renew(&mut self) -> Result<(), Error> {
        Ok(())
    }

    /// Returns how long to wait for further lines before an append; zero if an append costs little.
    fn gathering_time(&self) -> Duration {
        Duration::ZERO
    }
}

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

/// The journal file of a run.
#[derive(Debug)]
pub struct LogFile<M> {
    /// The open journal, at its end.
    pub medium: M,
    /// Its path, for errors.
    pub journal: PathBuf,
    /// The note of its durable length.
    pub acknowledged: AcknowledgedEnd,
}

impl<M: JournalStorage> RunLog for LogFile<M> {
    fn append(&mut self, batch: &LineBatch) -> Result<(), Error> {
        FaultPoint::AppendBefore.reach();
        let lines = batch.text.as_bytes();
        self.medium.append(lines).map_err(Error::io("append to", &self.journal))?;
        FaultPoint::AppendAfter.reach();
        self.medium.sync().map_err(Error::io("sync", &self.journal))?;
        self.acknowledged.add(lines.len());
        FaultPoint::SyncAfter.reach();
        Ok(())
    }
}

/// A log in an engine, with the journal file as its copy.
pub struct CopiedLog<M> {
    /// The log in the engine.
    pub engine: Box<dyn RunLog>,
    pub copy: LogFile<M>,
}

impl<M: JournalStorage> RunLog for CopiedLog<M> {
    fn append(&mut self, batch: &LineBatch) -> Result<(), Error> {
        self.engine.append(batch)?;
        self.copy.append(batch)
    }

    fn renewal_interval(&self) -> Option<Duration> {
        self.engine.renewal_interval()
    }

    fn renew(&mut self) -> Result<(), Error> {
        self.engine.renew()
    }

    fn gathering_time(&self) -> Duration {
        self.engine.gathering_time()
    }
}

// The acknowledged length of a journal: it tells a torn last record from a journal that has lost records.
//
// The writer notes the end of the last durable record after each sync. The note itself is not synced: it never claims
// more than is durable, and after a power cut it may claim less. A journal that is whole only up to an earlier place
// has lost acknowledged records.

/// The length of a note in bytes: the end in hexadecimal digits, its checksum, the end of the line.
const LENGTH: usize = 16 + 1 + 8 + 1;

/// The note while its journal is written.
#[derive(Debug)]
pub struct AcknowledgedEnd {
    file: Option<File>,
    end: u64,
}

impl AcknowledgedEnd {
    /// Opens the note of a journal that is durable up to `end`. Without the note a run continues all the same.
    pub fn open(path: &Path, end: u64) -> Self {
        let mut options = files::private();
        let opened = plain_file::open_with(path, options.write(true).create(true).truncate(false));
        let file = opened.inspect_err(|error| tracing::warn!("{}: {error}", path.display())).ok();
        let note = Self { file, end };
        note.write();
        note
    }

    /// Returns the absence of a note.
    pub fn none() -> Self {
        Self { file: None, end: 0 }
    }

    /// Notes that `bytes` more bytes are durable.
    pub(super) fn add(&mut self, bytes: usize) {
        self.end += bytes as u64;
        self.write();
    }

    fn write(&self) {
        // A note that is not written only claims less than is durable.
        if let Some(file) = &self.file {
            let _ = file.write_all_at(note(self.end).as_bytes(), 0);
        }
    }
}

fn note(end: u64) -> String {
    let end = format!("{end:016x}");
    let crc = crc32fast::hash(end.as_bytes());
    format!("{end} {crc:08x}\n")
}

/// Returns the path of the note beside a journal.
pub fn acknowledged_end(journal: &Path) -> PathBuf {
    journal.with_file_name("acknowledged")
}

/// Returns the number of acknowledged bytes of a journal, as far as that is known. It has to be read before the
/// journal of a running run.
pub fn read(journal: &Path) -> u64 {
    let bytes = plain_file::read(&acknowledged_end(journal), LENGTH as u64).unwrap_or_default();
    let text = String::from_utf8(bytes).unwrap_or_default();
    let end = text.get(..16).and_then(|end| u64::from_str_radix(end, 16).ok());
    end.filter(|end| note(*end) == text).unwrap_or(0)
}

/// Checks that a journal is whole up to its acknowledged end.
///
/// # Errors
/// [`Error::Cut`].
pub(super) fn check(journal: &Path, acknowledged: u64, whole: u64) -> Result<(), Error> {
    if whole >= acknowledged {
        return Ok(());
    }
    Err(Error::Cut {
        path: journal.to_owned(),
        whole,
        acknowledged,
        note: acknowledged_end(journal),
    })
}

// The journal's own thread: appends lines, makes them durable, and acknowledges them.
//
// Lines that queue up while it waits for the disk are written and synced together, so many agents share one sync.
// After a failed write or sync it stops for good: the system may have marked the lost pages as clean, so a second
// sync would prove nothing.

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

/// Waits for a job, and renews the right to append when it is time, however many jobs there are; `None` if there will
/// be none.
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
mod acknowledged_tests {
    use super::*;

    #[test]
    fn acknowledged_end_reads_back_and_any_changed_byte_voids_it() {
        let place = tempfile::tempdir().expect("a directory");
        let journal = place.path().join("journal.jsonl");
        assert_eq!(read(&journal), 0);
        let mut end = AcknowledgedEnd::open(&acknowledged_end(&journal), 10);
        assert_eq!(read(&journal), 10);
        end.add(300);
        assert_eq!(read(&journal), 310);
        let text = std::fs::read(acknowledged_end(&journal)).expect("a note");
        for at in 0..text.len() {
            let mut changed = text.clone();
            changed[at] ^= 1;
            std::fs::write(acknowledged_end(&journal), &changed).expect("written");
            assert_eq!(read(&journal), 0, "byte {at}");
        }
    }

    #[test]
    fn journal_shorter_than_acknowledged_end_is_an_error() {
        let journal = Path::new("/r/journal.jsonl");
        assert!(check(journal, 10, 10).is_ok() && check(journal, 10, 12).is_ok());
        let error = check(journal, 10, 9).expect_err("cut").to_string();
        assert!(error.contains("complete up to byte 9, but 10 bytes were acknowledged"), "{error}");
    }
}

#[cfg(test)]
mod writer_tests {
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
        let (tell, outcomes) = mpsc::channel();
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
            assert_eq!(outcomes.recv(), Ok(WriteOutcome::Durable(last)));
            assert!(last < 10_000_000, "it is never renewed");
        }
        writer.finish().expect("it ends");
    }

    fn start(
        medium: impl JournalStorage,
        dir: &std::path::Path,
    ) -> (JournalWriter, mpsc::Receiver<WriteOutcome>) {
        let (tell, outcomes) = mpsc::channel();
        let journal = dir.join("journal.jsonl");
        let acknowledged = AcknowledgedEnd::none();
        let log = LogFile { medium, journal: journal.clone(), acknowledged };
        let target = JournalTarget { log, journal, state: dir.join("state.json") };
        let writer = JournalWriter::start(target, move |outcome| {
            let _ = tell.send(outcome);
        });
        (writer.expect("a thread"), outcomes)
    }

    fn line(last: u64, text: &str) -> LineBatch {
        LineBatch { last, text: format!("{text}\n"), shared: Vec::new() }
    }

    #[test]
    fn after_a_failed_sync_nothing_more_is_written() {
        let dir = tempfile::tempdir().expect("a directory");
        let (written, appended) = mpsc::channel();
        let (writer, outcomes) = start(Faulty { syncs: 0, fails_at: 2, written }, dir.path());
        writer.append(line(1, "one"));
        assert!(matches!(outcomes.recv(), Ok(WriteOutcome::Durable(1))));
        writer.append(line(2, "two"));
        assert_eq!(outcomes.recv(), Ok(WriteOutcome::Failed));
        writer.append(line(3, "three"));
        let error = writer.finish().expect_err("it failed").to_string();
        assert!(error.contains("cannot sync") && error.contains("free some space"), "{error}");
        assert_eq!(appended.into_iter().collect::<Vec<_>>(), [4, 4]);
        assert!(outcomes.recv().is_err());
    }

    #[test]
    fn full_disk_is_an_error_naming_the_journal() {
        let dir = tempfile::tempdir().expect("a directory");
        let full =
            std::fs::OpenOptions::new().append(true).open("/dev/full").expect("the full device");
        let (writer, outcomes) = start(full, dir.path());
        writer.append(line(1, "one"));
        assert_eq!(outcomes.recv(), Ok(WriteOutcome::Failed));
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
        let (writer, outcomes) = start(file, dir.path());
        writer.append(line(1, "one"));
        writer.append(line(2, "two"));
        writer.snapshot(|file| file.write_all(b"{}"));
        writer.append(line(3, "three"));
        writer.finish().expect("all is written");
        let last = outcomes.into_iter().last();
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
