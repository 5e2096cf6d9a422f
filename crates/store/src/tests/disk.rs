//! A disk that loses, tears and refuses writes, and the life of a writer on it.

use std::fs;
use std::io;
use std::ops::Range;
use std::sync::mpsc::{Receiver, RecvError, channel};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use super::story::{Place, Story};
use crate::log::{AcknowledgedEnd, JournalTarget, JournalWriter, WriteOutcome};
use crate::log::{JournalStorage, LineBatch, LogFile};

/// The system's numbers for a broken and for a full disk, `EIO` and `ENOSPC`.
pub(super) const BROKEN: i32 = 5;
pub(super) const NO_SPACE: i32 = 28;

/// A timeout that suffices on any machine; it is reached only if something is wrong.
const GENEROUS: Duration = Duration::from_mins(1);

/// A call that fails: appends have even numbers, their syncs odd ones.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fault {
    pub(super) call: usize,
    /// The number of bytes that an append takes before it fails.
    pub(super) taken: usize,
    /// The error number of the system.
    pub(super) errno: i32,
}

/// A disk with one file.
#[derive(Debug, Default)]
pub(super) struct Disk {
    pub(super) written: Vec<u8>,
    /// The file's length at each sync; bytes after the last one may be lost.
    pub(super) synced: Vec<usize>,
    calls: usize,
    fault: Option<Fault>,
}

impl Disk {
    pub(super) fn holding(written: Vec<u8>, fault: Option<Fault>) -> Self {
        Self { synced: vec![written.len()], written, calls: 0, fault }
    }

    fn call(&mut self) -> Option<Fault> {
        let number = self.calls;
        self.calls += 1;
        self.fault.filter(|fault| fault.call == number)
    }

    /// Returns the range of the bytes that may be lost.
    pub(super) fn loose(&self) -> Range<usize> {
        self.synced.last().copied().unwrap_or(0)..self.written.len()
    }
}

#[derive(Clone)]
struct Shared(Arc<Mutex<Disk>>);

impl Shared {
    fn disk(&self) -> MutexGuard<'_, Disk> {
        self.0.lock().expect("no holder panics")
    }
}

impl JournalStorage for Shared {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut disk = self.disk();
        let fault = disk.call();
        let taken = fault.map_or(bytes.len(), |fault| fault.taken.min(bytes.len()));
        disk.written.extend_from_slice(&bytes[..taken]);
        fault.map_or(Ok(()), |fault| Err(io::Error::from_raw_os_error(fault.errno)))
    }

    fn sync(&mut self) -> io::Result<()> {
        let mut disk = self.disk();
        if let Some(fault) = disk.call() {
            return Err(io::Error::from_raw_os_error(fault.errno));
        }
        let length = disk.written.len();
        disk.synced.push(length);
        Ok(())
    }
}

/// Records that are handed over together, and whether a snapshot follows them.
pub(super) type Burst = (usize, bool);

/// The life of a writer, after its end.
pub(super) struct Life {
    pub(super) disk: Disk,
    /// The records that were acknowledged as durable, in order.
    pub(super) acknowledged: Vec<usize>,
    /// The records after which a snapshot was handed over, in order.
    pub(super) snapshots: Vec<usize>,
    pub(super) error: Option<String>,
}

/// Lets a writer write the records that the journal lacks, burst by burst, each of them one batch.
///
/// Its message about a burst is held back until the next burst waits, so nothing is left to chance.
pub(super) fn live(story: &Story, place: &Place, bursts: &[Burst], fault: Option<Fault>) -> Life {
    let written = fs::read(place.dir.journal()).expect("the journal");
    let mut next = story.whole(written.len());
    let medium = Shared(Arc::new(Mutex::new(Disk::holding(written, fault))));
    let ((tell, outcomes), (go_on, may_go_on)) = (channel(), channel());
    let (journal, state) = (place.dir.journal(), place.dir.state());
    let acknowledged = AcknowledgedEnd::none();
    let log = LogFile { medium: medium.clone(), journal: journal.clone(), acknowledged };
    let target = JournalTarget { log, journal, state };
    let writer = JournalWriter::start(target, move |outcome| {
        let _ = tell.send(outcome);
        let _ = may_go_on.recv();
    })
    .expect("a thread");
    let (mut acknowledged, mut snapshots) = (Vec::new(), Vec::new());
    let mut waiting = false;
    let mut lives = true;
    for &(records, snapshot) in [(1, false)].iter().chain(bursts.iter().cycle()) {
        if waiting {
            lives = hear(&outcomes, &mut acknowledged);
        }
        let burst = next..story.lines.len().min(next + records);
        for index in burst.clone() {
            let text = format!("{}\n", story.lines[index]);
            writer.append(LineBatch { last: index as u64 + 1, text, shared: Vec::new() });
        }
        next = burst.end;
        if snapshot && !burst.is_empty() {
            let state = story.state(next);
            writer.snapshot(move |file| std::io::Write::write_all(file, &state));
            snapshots.push(next);
        }
        if waiting {
            go_on.send(()).expect("it waits");
        }
        waiting = !burst.is_empty();
        if !lives || !waiting {
            break;
        }
    }
    drop(go_on);
    let error = writer.finish().err().map(|error| error.to_string());
    assert_eq!(outcomes.recv(), Err(RecvError), "a word after the last");
    let disk = std::mem::take(&mut *medium.disk());
    Life { disk, acknowledged, snapshots, error }
}

/// Receives one message of the writer; returns whether it lives.
fn hear(outcomes: &Receiver<WriteOutcome>, acknowledged: &mut Vec<usize>) -> bool {
    match outcomes.recv_timeout(GENEROUS).expect("a word") {
        WriteOutcome::Durable(seq) => {
            acknowledged.push(usize::try_from(seq).expect("small"));
            true
        }
        WriteOutcome::Failed => false,
    }
}

impl Life {
    /// Asserts that only durable records were acknowledged, and that a fault ended the writer at once and was
    /// reported.
    pub(super) fn is_honest(&self, story: &Story) {
        let synced = &self.disk.synced[1..];
        assert_eq!(synced.len(), self.acknowledged.len(), "one word a sync");
        for (&seq, &length) in self.acknowledged.iter().zip(synced) {
            assert_eq!(story.ends[seq - 1], length, "record {seq}");
        }
        let Some(fault) = self.disk.fault.filter(|fault| fault.call < self.disk.calls) else {
            assert_eq!((&self.error, self.disk.loose().len()), (&None, 0));
            assert_eq!(self.disk.written, story.bytes());
            return;
        };
        assert_eq!(self.disk.calls, fault.call + 1, "it tried again");
        assert_eq!(self.acknowledged.len(), fault.call / 2);
        let error = self.error.as_deref().expect("it is reported");
        let doing = if fault.call % 2 == 0 { "append to" } else { "sync" };
        assert!(error.contains(&format!("journal.jsonl: cannot {doing}: ")), "{error}");
        assert_eq!(error.contains("free some space"), fault.errno == NO_SPACE, "{error}");
    }
}
