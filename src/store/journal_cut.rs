//! The place in a journal where another run branches off: the end of a batch of records, with the run as it was there.

use super::journal::JournalReader;
use super::layout::RunDir;
use super::record::{self, RecordError};
use super::{Error, acknowledged, lock};
use crate::domain::apply::{ApplyError, apply, begin};
use crate::domain::run::Run;

/// The place where a run is cut for a branch.
#[derive(Debug, Clone)]
pub struct JournalCut {
    /// The run as it was there.
    pub run: Run,
    /// The length of its journal up to there.
    pub length: u64,
    /// The first session of the run.
    pub first_session: String,
}

/// The outcome of the search for a place.
#[derive(Debug)]
pub enum CutSearch {
    /// The place.
    Found(Box<JournalCut>),
    /// There is none; the number of the last record.
    Missing {
        /// The number of the last record.
        last: u64,
    },
}

/// Finds the first place where a condition on the run holds. Records that were written together are never parted, and
/// those of a live run that are not durable yet are not looked at.
///
/// # Errors
/// [`Error::Damaged`], [`Error::Empty`], [`Error::Io`].
pub fn find_cut(dir: &RunDir, mut is_here: impl FnMut(&Run) -> bool) -> Result<CutSearch, Error> {
    // Without a holder all that is whole counts: the note may claim less than is durable.
    let is_live = lock::is_held(&dir.lock())?.is_some();
    let durable = if is_live { acknowledged::read(&dir.journal()) } else { 0 };
    let mut journal = JournalReader::open(&dir.journal())?;
    let (mut run, mut first_session) = (None::<Run>, String::new());
    while let Some((seq, line)) = journal.read()? {
        let damaged = |journal: &JournalReader, flaw: &RecordError| journal.damaged(seq, flaw);
        let record = record::decode(&line).map_err(|flaw| damaged(&journal, &flaw))?;
        let refused = |refused: ApplyError| RecordError::Meaning(refused.to_string());
        let applied = match &mut run {
            None => {
                super::replay::first_session(&record).clone_into(&mut first_session);
                begin(&record).map(|(begun, _)| run = Some(begun))
            }
            Some(run) => apply(run, &record).map(drop),
        };
        applied.map_err(|error| damaged(&journal, &refused(error)))?;
        let extent = journal.extent();
        if durable > 0 && extent.end > durable {
            break;
        }
        if extent.last != seq {
            continue;
        }
        if let Some(run) = run.take_if(|run| is_here(run)) {
            let length = extent.end;
            return Ok(CutSearch::Found(Box::new(JournalCut { run, length, first_session })));
        }
    }
    Ok(CutSearch::Missing { last: run.map_or(0, |run| run.seq) })
}
