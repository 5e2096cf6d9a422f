//! Faults of a disk under a journal, and the recovery from them.
//!
//! Killing a process never tears a write and never loses one that was not synced, so these tests simulate a disk
//! that does both. The real writer works on it, and the real recovery reads its files.

use std::fs;
use std::thread;

use proptest::prelude::*;
use proptest::sample::Index;

use super::disk::{BROKEN, Burst, Fault, Life, NO_SPACE, live};
use super::story::{Place, Story};
use crate::journal::replay;
use raymond_model::tests::plausible::pushes;

const BURSTS: [Burst; 4] = [(3, false), (8, true), (1, false), (5, true)];

fn new_state(place: &Place) -> std::path::PathBuf {
    place.dir.path().join("state.json.new")
}

/// Cuts the journal of a story at each of these bytes, the last one first, beside the snapshot that was there at
/// the time, if any: the recovered run is that of the whole records.
fn cut(story: &Story, cuts: impl DoubleEndedIterator<Item = usize>, snapshots: &[usize]) {
    let place = story.place();
    fs::write(new_state(&place), &story.state(1)[..40]).expect("written");
    fs::write(place.dir.journal(), story.bytes()).expect("written");
    assert!(!place.dir.state().exists(), "a new run has no snapshot");
    let journal = fs::File::options().write(true).open(place.dir.journal()).expect("opened");
    let mut beside = None;
    for cut in cuts.rev() {
        let whole = story.whole(cut);
        let snapshot = snapshots[..snapshots.partition_point(|&seq| seq <= whole)].last();
        if beside != snapshot {
            beside = snapshot;
            match snapshot {
                Some(&seq) => fs::write(place.dir.state(), story.state(seq)).expect("written"),
                None => fs::remove_file(place.dir.state()).expect("removed"),
            }
        }
        journal.set_len(cut as u64).expect("cut");
        let found = replay(&place.dir).expect("recovered");
        assert!(found.run == story.runs[whole - 1], "cut at {cut}: not the run of {whole} records");
        let end = story.ends[whole - 1];
        assert_eq!((found.end, found.torn), (end as u64, (cut - end) as u64), "cut at {cut}");
        assert!(found.warnings.is_empty(), "cut at {cut}: {:?}", found.warnings);
    }
}

/// Returns the starts of so many parts that cost about the same: a cut costs the bytes before it.
fn parts(from: usize, to: usize, count: usize) -> Vec<usize> {
    let part = |index: usize| from + ((to - from).pow(2) * index / count).isqrt();
    (0..=count).map(part).collect()
}

#[test]
fn journal_cut_at_any_byte_recovers_complete_records_with_snapshot() {
    let story = Story::long(200);
    let life = live(&story, &story.place(), &BURSTS, None);
    life.is_honest(&story);
    assert_eq!(life.acknowledged.last(), Some(&200));
    assert!(life.snapshots.len() > 20);
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let parts = parts(story.ends[0], life.disk.written.len() + 1, threads);
    thread::scope(|scope| {
        for part in parts.windows(2) {
            scope.spawn(|| cut(&story, part[0]..part[1], &life.snapshots));
        }
    });
}

#[test]
fn journal_cut_near_record_ends_recovers_without_snapshot() {
    let story = Story::long(200);
    let around = story.ends[1..].iter().flat_map(|&end| [end - 1, end, end + 1]);
    let cuts: Vec<_> = around.filter(|&cut| cut <= story.bytes().len()).collect();
    cut(&story, cuts.into_iter(), &[]);
}

/// The rest that a crash leaves of the bytes that were not synced.
#[derive(Debug, Clone, Copy)]
struct Crash {
    /// The number of those bytes that are kept.
    kept: Index,
    /// True if the file has its length already, but not its bytes.
    zeros: bool,
    /// The number of bytes that are kept of a snapshot that was being written.
    snapshot: Index,
}

/// Leaves the files of a crash on disk; returns the journal's length without zeros, and with them.
fn crash(life: &Life, place: &Place, story: &Story, crash: Crash) -> (usize, usize) {
    let loose = life.disk.loose();
    let kept = loose.start + crash.kept.index(loose.len() + 1);
    let mut image = life.disk.written[..kept].to_vec();
    if crash.zeros {
        image.resize(loose.end, 0);
    }
    fs::write(place.dir.journal(), &image).expect("written");
    let state = story.state(story.lines.len());
    fs::write(new_state(place), &state[..crash.snapshot.index(state.len())]).expect("written");
    (kept, image.len())
}

/// Opens the run as its next supervisor does.
fn recover(story: &Story, place: &Place, (kept, length): (usize, usize), acknowledged: usize) {
    let recovered = place.open();
    let whole = story.whole(kept);
    assert!(whole >= acknowledged, "record {acknowledged} is lost");
    assert!(recovered.run == story.runs[whole - 1], "not the run of {whole} records");
    let end = story.ends[whole - 1];
    assert_eq!(fs::read(place.dir.journal()).expect("read"), story.bytes()[..end]);
    assert_eq!(recovered.warnings.len(), usize::from(length > end));
    for warning in recovered.warnings {
        assert!(warning.contains(&format!("torn ({} bytes)", length - end)), "{warning}");
    }
}

#[test]
fn any_failed_call_stops_writer_without_losing_acknowledged_records() {
    let story = Story::long(24);
    for call in 0..20 {
        for errno in [BROKEN, NO_SPACE] {
            for taken in [0, 500, usize::MAX] {
                let place = story.place();
                let life = live(&story, &place, &BURSTS, Some(Fault { call, taken, errno }));
                life.is_honest(&story);
                let last = life.acknowledged.last().copied().unwrap_or(1);
                for kept in life.disk.loose().step_by(97).chain([life.disk.written.len()]) {
                    fs::write(place.dir.journal(), &life.disk.written[..kept]).expect("written");
                    recover(&story, &place, (kept, kept), last);
                }
            }
        }
    }
}

#[test]
fn failed_snapshot_write_stops_writer_without_loss() {
    let story = Story::long(24);
    let place = story.place();
    fs::create_dir(new_state(&place)).expect("in its way");
    let life = live(&story, &place, &BURSTS, None);
    let error = life.error.expect("it is reported");
    assert!(error.contains("state.json.new: cannot write"), "{error}");
    assert_eq!(life.acknowledged.last(), life.snapshots.first(), "nothing after the snapshot");
    fs::write(place.dir.journal(), &life.disk.written).expect("written");
    let length = life.disk.written.len();
    recover(&story, &place, (length, length), life.snapshots[0]);
}

fn faults() -> impl Strategy<Value = Fault> {
    let errno = proptest::sample::select(&[BROKEN, NO_SPACE][..]);
    (0..12usize, 0..2000usize, errno).prop_map(|(call, taken, errno)| Fault { call, taken, errno })
}

fn crashes() -> impl Strategy<Value = Crash> {
    (any::<Index>(), any::<bool>(), any::<Index>()).prop_map(|(kept, zeros, snapshot)| Crash {
        kept,
        zeros,
        snapshot,
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// One supervisor after another meets a bad disk; the last one finishes the run.
    #[test]
    fn run_survives_repeated_crashes(
        pushes in pushes(60),
        bursts in proptest::collection::vec((1..9usize, any::<bool>()), 1..6),
        lives in proptest::collection::vec((faults(), crashes()), 0..5),
    ) {
        let story = Story::of(&pushes);
        let place = story.place();
        for (fault, how) in lives {
            let life = live(&story, &place, &bursts, Some(fault));
            life.is_honest(&story);
            let acknowledged = life.acknowledged.last().copied().unwrap_or(1);
            let left = crash(&life, &place, &story, how);
            recover(&story, &place, left, acknowledged);
        }
        let life = live(&story, &place, &bursts, None);
        life.is_honest(&story);
        fs::write(place.dir.journal(), &life.disk.written).expect("written");
        let length = story.bytes().len();
        recover(&story, &place, (length, length), story.lines.len());
    }
}
