//! A run as its directory tells it: the snapshot, and the later records of the journal.

use super::journal::{JournalExtent, JournalReader};
use super::layout::RunDir;
use super::snapshot::{self, SnapshotLookup};
use super::{Error, record};
use crate::log;
use raymond_model::apply::{ApplyError, apply, begin};
use raymond_model::event::{Event, Record};
use raymond_model::id::StateName;
use raymond_model::run::Run;

/// A run as its directory tells it.
pub(super) struct ReplayedRun {
    pub(super) run: Run,
    pub(super) journal: JournalReader,
    pub(super) end: u64,
    pub(super) torn: u64,
    pub(super) untouched: Option<Record>,
    pub(super) warnings: Vec<String>,
    /// The first session of the run, which no other run has.
    pub(super) first_session: String,
}

/// Returns the first session of a run, by its first record.
pub(super) fn first_session(first: &Record) -> &str {
    match &first.event {
        Event::RunStarted(started) => started.session.as_str(),
        _ => "",
    }
}

/// Returns the state that a run began in.
pub(super) fn first_state(first: &Record) -> Option<&StateName> {
    if let Event::RunStarted(started) = &first.event { Some(&started.entry) } else { None }
}

/// Reads the snapshot, and the records of the journal after it; changes nothing.
pub(super) fn replay(dir: &RunDir) -> Result<ReplayedRun, Error> {
    let mut warnings = Vec::new();
    let snapshot = load_snapshot(dir, &mut warnings)?;
    replay_after(dir, snapshot, None, warnings)
}

/// Reads the whole journal. A snapshot with another state is ignored: no proof covers it.
pub(super) fn replay_whole(dir: &RunDir) -> Result<ReplayedRun, Error> {
    let mut warnings = Vec::new();
    let snapshot = load_snapshot(dir, &mut warnings)?;
    replay_after(dir, None, snapshot.as_ref(), warnings)
}

fn load_snapshot(dir: &RunDir, warnings: &mut Vec<String>) -> Result<Option<Run>, Error> {
    Ok(match snapshot::load(&dir.state())? {
        SnapshotLookup::Run(run) => Some(*run),
        SnapshotLookup::Nothing | SnapshotLookup::Outdated => None,
        SnapshotLookup::Unreadable(why) => {
            warnings.push(format!(
                "{}: not readable ({why}), rebuilt from the journal",
                dir.state().display()
            ));
            None
        }
    })
}

/// Reads the records after a state, and compares the state with `compared` at the record of `compared`.
fn replay_after(
    dir: &RunDir,
    mut run: Option<Run>,
    compared: Option<&Run>,
    mut warnings: Vec<String>,
) -> Result<ReplayedRun, Error> {
    let known = run.as_ref().map_or(0, |run| run.seq);
    let expected = compared.map_or(known, |run| run.seq);
    let promised = log::read(&dir.journal());
    let (mut untouched, mut is_same, mut session) = (None, true, String::new());
    let mut journal = JournalReader::open(&dir.journal())?;
    let extent = journal.read_all(|seq, line| {
        untouched = if seq == 1 { Some(record::decode(line)?) } else { None };
        if let Some(first) = &untouched {
            first_session(first).clone_into(&mut session);
        }
        if seq <= known {
            return Ok(());
        }
        let record = record::decode(line)?;
        let refused = |refused: ApplyError| record::RecordError::Meaning(refused.to_string());
        match &mut run {
            None => run = Some(begin(&record).map_err(refused)?.0),
            Some(run) => drop(apply(run, &record).map_err(refused)?),
        }
        if seq == expected && compared.is_some() {
            is_same = compared == run.as_ref();
        }
        Ok(())
    })?;
    if extent.last > 0 {
        log::check(&dir.journal(), promised, extent.end)?;
    }
    if !is_same {
        warnings.push(format!(
            "{}: it contradicts the journal, and is rebuilt from it",
            dir.state().display()
        ));
    }
    match run {
        Some(run) if extent.last > 0 && expected <= extent.last => {
            let JournalExtent { end, torn, .. } = extent;
            Ok(ReplayedRun { run, journal, end, torn, untouched, warnings, first_session: session })
        }
        _ if extent.last > 0 => Err(Error::Damaged {
            path: dir.journal(),
            line: extent.last + 1,
            record: extent.last + 1,
            why: format!("it is missing, and the snapshot is at record {expected}"),
        }),
        _ => Err(Error::Empty { path: dir.journal() }),
    }
}
