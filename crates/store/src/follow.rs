//! Follows a run: reads it once from its snapshot and journal, and after that only the appended records.
//!
//! This needs nothing from the supervisor that writes. So it works beside a live run, on a dead run, and on a run that
//! another raymond resumes in the meantime.

use super::journal::{JournalReader, replay};
use super::layout::RunDir;
use super::{Error, record};
use raymond_model::apply::apply;
use raymond_model::event::Record;
use raymond_model::run::Run;

/// A run that is followed.
#[derive(Debug)]
pub struct RunFollower {
    run: Run,
    journal: JournalReader,
}

impl RunFollower {
    /// Reads a run as it stands.
    ///
    /// # Errors
    /// [`Error::Damaged`], [`Error::Empty`], [`Error::Newer`], [`Error::Io`].
    pub fn open(dir: &RunDir) -> Result<Self, Error> {
        let replayed = replay(dir)?;
        Ok(Self { run: replayed.run, journal: replayed.journal })
    }

    /// Returns the run, as of the last record that was read.
    pub fn run(&self) -> &Run {
        &self.run
    }

    /// Reads the appended records, and applies them to the run.
    ///
    /// # Errors
    /// [`Error::Damaged`], [`Error::Io`].
    pub fn advance(&mut self) -> Result<Vec<Record>, Error> {
        let mut records = Vec::new();
        self.journal.read_all(|_, line| {
            let record = record::decode(line)?;
            apply(&mut self.run, &record)?;
            records.push(record);
            Ok(())
        })?;
        Ok(records)
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{File, OpenOptions};
    use std::io::Write;

    use super::*;
    use crate::record::{encode, encode_before};
    use proptest::prelude::*;
    use proptest::strategy::ValueTree;
    use raymond_model::tests::plausible::{Journal as Story, Push, pushes};

    struct Place {
        _dir: tempfile::TempDir,
        run: RunDir,
        journal: File,
    }

    impl Place {
        fn with(bytes: &[u8]) -> Self {
            let dir = tempfile::tempdir().expect("a directory");
            let run = RunDir(dir.path().to_owned());
            let mut options = OpenOptions::new();
            let journal = options.append(true).create(true).open(run.journal()).expect("a file");
            let mut place = Self { _dir: dir, run, journal };
            place.write(bytes);
            place
        }

        fn write(&mut self, bytes: &[u8]) {
            self.journal.write_all(bytes).expect("written");
        }
    }

    fn line(record: &Record) -> Vec<u8> {
        format!("{}\n", encode(record).expect("a line")).into_bytes()
    }

    fn story(pushes: &[Push]) -> Vec<Record> {
        Story::of(pushes).records().cloned().collect()
    }

    fn numbers(follow: &mut RunFollower) -> Vec<u64> {
        follow.advance().expect("read").iter().map(|record| record.seq).collect()
    }

    proptest! {
        #[test]
        fn records_written_in_any_chunks_are_followed_completely(
            pushes in pushes(20),
            pieces in proptest::collection::vec(1usize..400, 1..40),
        ) {
            let records = story(&pushes);
            let bytes: Vec<u8> = records[1..].iter().flat_map(line).collect();
            let mut place = Place::with(&line(&records[0]));
            let mut follow = RunFollower::open(&place.run).expect("opened");
            let (mut rest, mut seen) = (&bytes[..], Vec::new());
            for piece in pieces.iter().cycle() {
                let (piece, after) = rest.split_at(rest.len().min(*piece));
                place.write(piece);
                seen.extend(follow.advance().expect("read"));
                rest = after;
                if rest.is_empty() {
                    break;
                }
            }
            prop_assert_eq!(&seen[..], &records[1..]);
            prop_assert_eq!(follow.run(), &replay(&place.run).expect("replayed").run);
        }
    }

    fn three() -> Vec<Record> {
        let mut runner = proptest::test_runner::TestRunner::deterministic();
        loop {
            let tree = pushes(20).new_tree(&mut runner).expect("pushes");
            let records = story(&tree.current());
            if records.len() >= 3 {
                return records;
            }
        }
    }

    #[test]
    fn read_all_ends_while_writer_keeps_appending() {
        let records = three();
        let mut place = Place::with(&[line(&records[0]), line(&records[1])].concat());
        let mut journal = JournalReader::open(&place.run.journal()).expect("opened");
        let mut seen = Vec::new();
        for rest in [&records[2..3], &[]] {
            let read = journal.read_all(|seq, _| {
                seen.push(seq);
                if seq == 2 {
                    place.write(&rest.iter().flat_map(line).collect::<Vec<u8>>());
                }
                Ok(())
            });
            assert_eq!(read.expect("read").torn, 0);
            assert_eq!(seen.last(), Some(if rest.is_empty() { &3 } else { &2 }));
        }
        assert_eq!(seen, [1, 2, 3], "the next look gets what has come meanwhile");
    }

    #[test]
    fn torn_record_that_is_cut_off_is_discarded() {
        let records = three();
        let mut place = Place::with(&line(&records[0]));
        let mut follow = RunFollower::open(&place.run).expect("opened");
        let length = place.journal.metadata().expect("there").len();
        place.write(&[b"x".repeat(2000), b"\n".to_vec()].concat());
        assert!(numbers(&mut follow).is_empty());
        place.journal.set_len(length).expect("cut");
        assert!(numbers(&mut follow).is_empty());
        place.write(&line(&records[1]));
        assert_eq!(numbers(&mut follow), [2]);
        place.write(b"bad\n");
        place.write(&line(&records[2]));
        let error = follow.advance().expect_err("damage in the middle").to_string();
        assert!(error.contains(":3: record 3 is damaged"), "{error}");
    }

    #[test]
    fn records_of_one_batch_are_seen_together() {
        let records = three();
        let mut place = Place::with(&line(&records[0]));
        let mut follow = RunFollower::open(&place.run).expect("opened");
        let first = encode_before(&records[1], true, None).expect("a line");
        place.write(format!("{first}\n").as_bytes());
        assert!(numbers(&mut follow).is_empty());
        place.write(&line(&records[2]));
        assert_eq!(numbers(&mut follow), [2, 3]);
    }

    #[test]
    fn shrinking_journal_is_reported_as_damaged() {
        let records = three();
        let mut place = Place::with(&line(&records[0]));
        place.write(&line(&records[1]));
        let mut follow = RunFollower::open(&place.run).expect("opened");
        place.journal.set_len(10).expect("cut");
        let error = follow.advance().expect_err("shorter").to_string();
        assert!(error.contains("record 2") && error.contains("shorter"), "{error}");
    }
}
