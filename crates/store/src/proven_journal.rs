//! The proof of a whole journal: a part of it is sealed, and each record after that bears a proof.

use sha2::{Digest, Sha256};

use super::Error;
use super::journal::{JournalReader, first_session};
use super::layout::RunDir;
use super::record::{decode, is_proven};
use super::run_store::records_key;
use crate::proof::ProofKey;
use raymond_model::hexadecimal::hexadecimal;
use raymond_model::sealed_terms::{JournalFlaw, RunSeal};

/// Returns the flaw of a journal that makes it untrusted; `None` if a raymond of the user wrote all of it.
///
/// # Errors
/// [`Error::Damaged`], [`Error::Io`].
pub fn flaw(
    dir: &RunDir,
    seal: Option<&RunSeal>,
    key: &ProofKey,
) -> Result<Option<JournalFlaw>, Error> {
    let sealed = seal.and_then(|seal| seal.journal.as_ref());
    let expected = seal
        .map(|seal| seal.first_session.as_str())
        .filter(|first_session| !first_session.is_empty());
    let (mut records_key, mut is_this_run) = (records_key(key, dir, ""), true);
    let sealed_length = sealed.map_or(0, |sealed| sealed.length);
    let (mut hash, mut position, mut sealed_end, mut unproven) = (Sha256::new(), 0, 0, None);
    JournalReader::open(&dir.journal())?.read_all(|seq, line| {
        if seq == 1 {
            let first = decode(line)?;
            is_this_run = expected.is_none_or(|expected| expected == first_session(&first));
            records_key = super::run_store::records_key(key, dir, first_session(&first));
        }
        let end = position + line.len() as u64 + 1;
        if position < sealed_length {
            hash.update(line);
            hash.update("\n");
            sealed_end = end;
        } else if unproven.is_none() && !is_proven(line, &records_key) {
            unproven = Some(JournalFlaw::UnprovenRecord(seq));
        }
        position = end;
        Ok(())
    })?;
    let is_whole = sealed.is_none_or(|sealed| {
        sealed_end == sealed.length && hexadecimal(hash.finalize()) == sealed.checksum
    });
    Ok(match (is_this_run, is_whole) {
        (false, _) => Some(JournalFlaw::OtherRun),
        (true, false) => Some(JournalFlaw::ChangedSealedPart),
        (true, true) => unproven,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::encode_before;
    use crate::user_state::seal_of_journal;
    use raymond_model::event::{Event, Record, RunCommand};
    use raymond_model::id::RunId;
    use raymond_model::sealed_terms::SealedJournal;
    use raymond_model::time::Timestamp;

    fn line(seq: u64, key: Option<&ProofKey>) -> String {
        let event = Event::CommandReceived { id: format!("c{seq}"), command: RunCommand::Stop };
        let record = Record {
            kept_session: None,
            seq,
            at: Timestamp(seq),
            folder: None,
            snapshot: None,
            placed: Vec::new(),
            event,
        };
        encode_before(&record, false, key).expect("a line") + "\n"
    }

    #[test]
    fn changed_sealed_part_or_unproven_later_record_is_a_flaw() {
        let place = tempfile::tempdir().expect("a directory");
        let dir = RunDir(place.path().to_owned());
        let path = dir.journal();
        let user = ProofKey::new("u");
        let (key, other) = (records_key(&user, &dir, ""), records_key(&user, &dir, "another run"));
        let write = |lines: &[String]| std::fs::write(&path, lines.concat()).expect("written");
        let seal = |first_session: &str, journal: Option<&SealedJournal>| RunSeal {
            run: RunId::parse("r").expect("a run"),
            directory: String::new(),
            scope_dir: String::new(),
            first_session: first_session.to_owned(),
            terms: Vec::new(),
            journal: journal.cloned(),
        };
        let found = |sealed| flaw(&dir, Some(&seal("", sealed)), &user).expect("read");
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
        let other = flaw(&dir, Some(&seal("first", None)), &user).expect("read");
        assert_eq!(other, Some(JournalFlaw::OtherRun));
        write(&old[..1]);
        assert_eq!(found(Some(&sealed)), Some(JournalFlaw::ChangedSealedPart));
    }
}
