//! Reads back written journals and snapshots of random runs, and compares them.
//!
//! It stands here and not beside the reducer, because only this room knows the format of a record.

use proptest::prelude::*;

use crate::record::{check, decode, encode};
use raymond_model::apply::{apply, begin};
use raymond_model::event::Record;
use raymond_model::run::Run;
use raymond_model::tests::plausible::{Journal, pushes};

/// Returns the journal, read back from its lines.
fn read_back(journal: &Journal) -> Vec<Record> {
    let reread = |record: &Record| {
        let line = encode(record).expect("a line");
        assert!(!line.contains('\n'), "a record is one line: {line}");
        check(line.as_bytes(), record.seq).and_then(decode).expect("it reads back")
    };
    journal.records().map(reread).collect()
}

fn snapshot(run: &Run) -> Run {
    let json = serde_json::to_vec_pretty(run).expect("JSON");
    serde_json::from_slice(&json).expect("it reads back")
}

proptest! {
    #[test]
    fn records_read_back_unchanged(pushes in pushes(40)) {
        let journal = Journal::of(&pushes);
        for (read, written) in read_back(&journal).iter().zip(journal.records()) {
            prop_assert_eq!(read, written);
        }
    }

    #[test]
    fn replay_of_journal_restores_the_run(pushes in pushes(40)) {
        let journal = Journal::of(&pushes);
        let records = read_back(&journal);
        let (mut run, _) = begin(&records[0]).expect("a start");
        for record in &records[1..] {
            apply(&mut run, record).expect("it happened");
        }
        prop_assert_eq!(run, journal.run);
    }

    #[test]
    fn any_snapshot_with_later_records_restores_the_run(
        pushes in pushes(40),
        at in any::<proptest::sample::Index>(),
    ) {
        let journal = Journal::of(&pushes);
        let records = read_back(&journal);
        let last = at.index(records.len());
        let (mut run, _) = begin(&records[0]).expect("a start");
        for (number, record) in records.iter().enumerate() {
            if number > 0 {
                apply(&mut run, record).expect("it happened");
            }
            if number == last {
                let reread = snapshot(&run);
                prop_assert_eq!(&reread, &run);
                run = reread;
            }
        }
        prop_assert_eq!(snapshot(&run), journal.run);
    }
}
