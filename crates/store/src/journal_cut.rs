//! The place in a journal where another run branches off, with the run as it was there.
//!
//! A run is cut as a whole at the end of a batch of records, or [causally](raymond_model::causal_cut). A causal cut
//! shares the records before the first omitted record, and copies the later records that do not follow from the cut.

use super::journal::{JournalExtent, JournalReader, begin_or_apply, first_session, first_state};
use super::layout::RunDir;
use super::{Error, lock, record};
use crate::log;
use raymond_model::apply::{ApplyError, apply};
use raymond_model::causal_cut::{CausalCut, CutSeed};
use raymond_model::event::{Event, Record};
use raymond_model::fact::{Fact, FactChange};
use raymond_model::id::StateName;
use raymond_model::run::Run;
use raymond_model::time::Timestamp;

/// The place where a run is cut for a branch.
#[derive(Debug, Clone)]
pub struct JournalCut {
    /// The run as it was there, after the records that are taken along.
    pub run: Run,
    /// The number of the last record that is shared.
    pub seq: u64,
    /// The time of the cut: of that record, or of the record with which the first agent came to the place.
    pub at: Timestamp,
    /// The length of its journal up to there.
    pub length: u64,
    /// The facts that held there and that the run saw only later, as one more record.
    pub facts: Option<Record>,
    /// The later records that do not follow from the cut, renumbered, in the batches that they were written in.
    pub kept: Vec<Vec<Record>>,
    /// The first session of the run.
    pub first_session: String,
    /// The state that the run began in.
    pub first_state: Option<StateName>,
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
    /// A later record that would be taken along cannot happen without those that are left out.
    Refused {
        /// The number of that record.
        seq: u64,
        /// The reason.
        refused: ApplyError,
    },
}

/// The number of times that the note of a live run is read: it is written over while it is read.
const NOTE_READS: usize = 3;

/// The batches of a journal, without those of a live run that are not durable yet.
struct DurableBatches {
    journal: JournalReader,
    /// The number of bytes that are durable; `None` if all are.
    durable: Option<u64>,
}

impl DurableBatches {
    fn open(dir: &RunDir) -> Result<Self, Error> {
        // Without a holder all that is whole counts: the note may claim less than is durable.
        let is_live = lock::is_held(&dir.lock())?.is_some();
        let durable = is_live.then(|| {
            let mut noted = (0..NOTE_READS).map(|_| log::read(&dir.journal()));
            noted.find(|&end| end > 0).unwrap_or_default()
        });
        Ok(Self { journal: JournalReader::open(&dir.journal())?, durable })
    }

    /// Returns the records of the next batch, and the part of the journal up to its end.
    fn next(&mut self) -> Result<Option<(Vec<Record>, JournalExtent)>, Error> {
        let mut records = Vec::new();
        while let Some((seq, line)) = self.journal.read()? {
            let record = record::decode(&line).map_err(|flaw| self.journal.damaged(seq, &flaw))?;
            records.push(record);
            let extent = self.journal.extent();
            if extent.last == seq {
                let is_durable = self.durable.is_none_or(|durable| extent.end <= durable);
                return Ok(is_durable.then_some((records, extent)));
            }
        }
        Ok(None)
    }

    /// Applies a record to the run as it was recorded.
    fn apply(&self, run: &mut Option<Run>, record: &Record) -> Result<(), Error> {
        begin_or_apply(run, record).map_err(|flaw| self.journal.damaged(record.seq, &flaw))
    }
}

/// Finds the first place where a condition on the run holds. Records that were written together are never parted, and
/// those of a live run that are not durable yet are not looked at.
///
/// # Errors
/// [`Error::Damaged`], [`Error::Empty`], [`Error::Io`].
pub fn find_cut(dir: &RunDir, mut is_here: impl FnMut(&Run) -> bool) -> Result<CutSearch, Error> {
    let mut batches = DurableBatches::open(dir)?;
    let (mut run, mut first) = (None::<Run>, None);
    while let Some((records, extent)) = batches.next()? {
        for record in &records {
            first.get_or_insert_with(|| record.clone());
            batches.apply(&mut run, record)?;
        }
        if let Some(run) = run.take_if(|run| is_here(run)) {
            let (seq, length, kept) = (run.seq, extent.end, Vec::new());
            let at = records.last().map(|record| record.at).unwrap_or_default();
            let mut later = Vec::new();
            while let Some((records, _)) = batches.next()? {
                later.extend(seen_facts(&records));
            }
            let facts = None;
            let (first_session, first_state) = firsts(first.as_ref());
            let cut = JournalCut { run, seq, at, length, facts, kept, first_session, first_state };
            return Ok(with_facts(cut, later));
        }
    }
    Ok(CutSearch::Missing { last: run.map_or(0, |run| run.seq) })
}

/// Finds what stays of a run whose agents are cut before some steps. The same records are looked at as by
/// [`find_cut`].
///
/// # Errors
/// As [`find_cut`].
pub fn find_causal_cut(dir: &RunDir, seeds: Vec<CutSeed>) -> Result<CutSearch, Error> {
    let mut batches = DurableBatches::open(dir)?;
    let Some((records, mut shared)) = batches.next()? else {
        return Ok(CutSearch::Missing { last: 0 });
    };
    let mut recorded = None;
    for record in &records {
        batches.apply(&mut recorded, record)?;
    }
    let Some(mut recorded) = recorded else { return Ok(CutSearch::Missing { last: 0 }) };
    let (first_session, first_state) = firsts(records.first());
    let mut fold = CausalCut::begin(seeds, &recorded);
    let (mut run, mut kept, mut is_shared) = (recorded.clone(), Vec::new(), true);
    let mut at = records.last().map(|record| record.at).unwrap_or_default();
    let mut later = Vec::new();
    while let Some((records, extent)) = batches.next()? {
        let mut after = Some(recorded);
        for record in &records {
            if let Some(before) = &after {
                fold.see(before, record);
            }
            batches.apply(&mut after, record)?;
        }
        let Some(after) = after else { return Ok(CutSearch::Missing { last: extent.last }) };
        recorded = after;
        let ended = records.last().map(|record| record.at).unwrap_or_default();
        let facts = seen_facts(&records);
        let was_reached = fold.is_reached();
        let mut staying = fold.settle(&recorded, records);
        if staying.is_empty() {
            later.extend(facts);
        }
        is_shared &= !staying.is_empty();
        for record in &mut staying {
            let seq = std::mem::replace(&mut record.seq, run.seq + 1);
            if let Err(refused) = apply(&mut run, record) {
                return Ok(CutSearch::Refused { seq, refused });
            }
        }
        if !was_reached {
            at = ended;
        }
        if is_shared {
            shared = extent;
        } else if !staying.is_empty() {
            kept.push(staying);
        }
    }
    if !fold.is_reached() {
        return Ok(CutSearch::Missing { last: run.seq });
    }
    let (seq, length) = (shared.last, shared.end);
    let facts = None;
    let cut = JournalCut { run, seq, at, length, facts, kept, first_session, first_state };
    Ok(with_facts(cut, later))
}

/// Returns the session and the state that a run began with.
fn firsts(first: Option<&Record>) -> (String, Option<StateName>) {
    let session = first.map(first_session).unwrap_or_default();
    (session.to_owned(), first.and_then(first_state).cloned())
}

/// Returns the facts that a batch has brought to the run.
fn seen_facts(records: &[Record]) -> Vec<Fact> {
    let changes = records.iter().filter_map(|record| {
        if let Event::FactsSeen { changes } = &record.event { Some(changes) } else { None }
    });
    let asserted = |change: &FactChange| match change {
        FactChange::Asserted(fact) => Some(fact.clone()),
        FactChange::Retracted { .. } => None,
    };
    changes.flatten().filter_map(asserted).collect()
}

/// Adds the facts of `later` that held at the cut already: the run had not come to a program that looks at them.
fn with_facts(mut cut: JournalCut, later: Vec<Fact>) -> CutSearch {
    let mut held: Vec<Fact> = Vec::new();
    for fact in later.into_iter().filter(|fact| fact.at <= cut.at) {
        let is_same = |known: &Fact| known.label == fact.label && known.key == fact.key;
        if cut.run.facts.get(&fact.label, Some(&fact.key)).is_none() && !held.iter().any(is_same) {
            held.push(fact);
        }
    }
    if !held.is_empty() {
        let changes = held.into_iter().map(FactChange::Asserted).collect();
        let record = Record::next(&cut.run, cut.at, Event::FactsSeen { changes });
        if let Err(refused) = apply(&mut cut.run, &record) {
            return CutSearch::Refused { seq: cut.seq, refused };
        }
        cut.facts = Some(record);
    }
    CutSearch::Found(Box::new(cut))
}
