//! The proof of a whole journal: a part of it is sealed, and each record behind that bears a proof.

use std::path::Path;

use sha2::{Digest, Sha256};

use super::Error;
use super::journal::Journal;
use super::record::is_proven;
use crate::domain::sealed_terms::{JournalFlaw, SealedJournal};
use crate::language::checksum::hexadecimal;
use crate::proof::ProofKey;

/// Returns what of a journal nobody vouches for; `None` if all of it is as a raymond of the user wrote it.
///
/// # Errors
/// [`Error::Damaged`], [`Error::Io`].
pub fn flaw(
    journal: &Path,
    sealed: Option<&SealedJournal>,
    key: &ProofKey,
) -> Result<Option<JournalFlaw>, Error> {
    let sealed_length = sealed.map_or(0, |sealed| sealed.length);
    let (mut hash, mut position, mut sealed_end, mut unproven) = (Sha256::new(), 0, 0, None);
    Journal::open(journal)?.read_all(|seq, line| {
        let end = position + line.len() as u64 + 1;
        if position < sealed_length {
            hash.update(line);
            hash.update("\n");
            sealed_end = end;
        } else if unproven.is_none() && !is_proven(line, key) {
            unproven = Some(JournalFlaw::UnprovenRecord(seq));
        }
        position = end;
        Ok(())
    })?;
    let is_whole = sealed.is_none_or(|sealed| {
        sealed_end == sealed.length && hexadecimal(&hash.finalize()) == sealed.checksum
    });
    Ok(if is_whole { unproven } else { Some(JournalFlaw::ChangedSealedPart) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::event::{Command, Event, Record};
    use crate::domain::time::Timestamp;
    use crate::store::record::encode_before;
    use crate::store::seal::seal_of_journal;

    fn line(seq: u64, key: Option<&ProofKey>) -> String {
        let event = Event::CommandReceived { id: format!("c{seq}"), command: Command::Stop };
        let record = Record { seq, at: Timestamp(seq), event };
        encode_before(&record, false, key).expect("a line") + "\n"
    }

    #[test]
    fn sealed_part_must_be_the_same_and_what_follows_must_be_proven() {
        let place = tempfile::tempdir().expect("a directory");
        let path = place.path().join("journal.jsonl");
        let (key, other) = (ProofKey::new("k"), ProofKey::new("l"));
        let write = |lines: &[String]| std::fs::write(&path, lines.concat()).expect("written");
        let found = |sealed| flaw(&path, sealed, &key).expect("read");
        let old = [line(1, None), line(2, Some(&other))];
        write(&old);
        assert_eq!(found(None), Some(JournalFlaw::UnprovenRecord(1)));
        let sealed = seal_of_journal(&path).expect("read");
        assert_eq!(found(Some(&sealed)), None);
        let grown = [&old[0], &old[1], &line(3, Some(&key))].map(String::clone);
        write(&grown);
        assert_eq!(found(Some(&sealed)), None);
        write(&[grown[0].clone(), grown[1].clone(), line(3, Some(&other))]);
        assert_eq!(found(Some(&sealed)), Some(JournalFlaw::UnprovenRecord(3)));
        write(&[line(1, Some(&key)), line(2, Some(&key)), line(3, Some(&key))]);
        assert_eq!(found(None), None);
        assert_eq!(found(Some(&sealed)), Some(JournalFlaw::ChangedSealedPart));
        write(&old[..1]);
        assert_eq!(found(Some(&sealed)), Some(JournalFlaw::ChangedSealedPart));
    }
}
