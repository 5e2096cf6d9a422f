//! A run as its directory tells it: the snapshot, and what the journal has of it since.

use super::journal::{Extent, Journal};
use super::layout::RunDir;
use super::snapshot::{self, Found};
use super::{Error, acknowledged, record};
use crate::domain::apply::{Refused, apply, begin};
use crate::domain::event::Record;
use crate::domain::run::Run;

/// A run as its directory tells it.
pub(super) struct Replayed {
    pub(super) run: Run,
    pub(super) journal: Journal,
    pub(super) end: u64,
    pub(super) torn: u64,
    pub(super) untouched: Option<Record>,
    pub(super) warnings: Vec<String>,
}

/// Reads snapshot and journal; changes nothing.
pub(super) fn replay(dir: &RunDir) -> Result<Replayed, Error> {
    let mut warnings = Vec::new();
    let mut run = match snapshot::load(&dir.state())? {
        Found::Run(run) => Some(*run),
        Found::Nothing => None,
        Found::Unreadable(why) => {
            warnings.push(format!(
                "{}: not readable ({why}), made again from the journal",
                dir.state().display()
            ));
            None
        }
    };
    let known = run.as_ref().map_or(0, |run| run.seq);
    let promised = acknowledged::read(&dir.journal());
    let mut untouched = None;
    let mut journal = Journal::open(&dir.journal())?;
    let extent = journal.read_all(|seq, line| {
        untouched = if seq == 1 { Some(record::decode(line)?) } else { None };
        if seq <= known {
            return Ok(());
        }
        let record = record::decode(line)?;
        let refused = |refused: Refused| record::Flaw::Meaning(refused.to_string());
        match &mut run {
            None => run = Some(begin(&record).map_err(refused)?.0),
            Some(run) => drop(apply(run, &record).map_err(refused)?),
        }
        Ok(())
    })?;
    if extent.last > 0 {
        acknowledged::check(&dir.journal(), promised, extent.end)?;
    }
    match run {
        Some(run) if run.seq == extent.last => {
            let Extent { end, torn, .. } = extent;
            Ok(Replayed { run, journal, end, torn, untouched, warnings })
        }
        Some(run) if extent.last > 0 => Err(Error::Damaged {
            path: dir.journal(),
            line: extent.last + 1,
            record: extent.last + 1,
            why: format!("it is missing, and the snapshot is at record {}", run.seq),
        }),
        _ => Err(Error::Empty { path: dir.journal() }),
    }
}
