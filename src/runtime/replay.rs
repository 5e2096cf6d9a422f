//! The cassette that answers the prompts of a run.
//!
//! It is read from its directory when the run starts, and from the run's own copy afterwards.

use std::path::{Path, PathBuf};
use std::rc::Rc;

use super::error::Error;
use super::graphs::working_dirs;
use super::workflow::Workflow;
use crate::actor::replay_until::ReplayUntilRunner;
use crate::actor::replayed::{ReplayRunner, ReplayRunnerArgs};
use crate::actor::runner::StepRunner;
use crate::domain::cassette::place;
use crate::domain::ended_turns::EndedTurns;
use crate::domain::id::RunId;
use crate::domain::money::Usd;
use crate::domain::settings::{AnswererKind, CassetteSource, Settings};
use crate::language::cassette::Cassette;
use crate::language::cassette::conversation::ReplayedTurns;
use crate::language::cassette::portable::PortableMarks;
use crate::store::cassette::CassetteFiles;
use crate::store::layout::RunsRoot;
use crate::store::view::story;
use crate::world::recorded_files::ReplaySite;

/// Reads the cassette of a new run and notes its checksum in the settings; `None` if no cassette answers.
///
/// # Errors
/// [`Error::Cassette`] if it cannot be read, or is of another workflow.
pub(super) fn taken_in(
    workflow: &Workflow,
    settings: &mut Settings,
) -> Result<Option<CassetteFiles>, Error> {
    if settings.answerer != AnswererKind::Replay && settings.replayed_part().is_none() {
        settings.cassette = None;
        return Ok(None);
    }
    let source = settings.cassette.as_mut().ok_or_else(|| unnamed(Path::new("--agent replay")))?;
    let dir = PathBuf::from(&source.path);
    let (files, cassette) = read(&dir)?;
    check_workflow(&dir, &cassette, workflow)?;
    if let Some(until) = source.until {
        part_of(&dir, cassette, until)?;
    }
    source.checksum = files.checksum();
    Ok(Some(files))
}

/// Reads a run's own copy of its cassette.
///
/// # Errors
/// [`Error::Cassette`] if the copy is gone, or not as it was.
pub(super) fn of_run(settings: &Settings, dir: &Path) -> Result<Cassette, Error> {
    let source = settings.cassette.as_ref().ok_or_else(|| unnamed(dir))?;
    let (files, cassette) = read(dir)?;
    if files.checksum() != source.checksum {
        let why = "the run's copy of its cassette was changed; start a new run".to_owned();
        return Err(Error::Cassette { path: dir.to_owned(), why });
    }
    Ok(cassette)
}

/// Returns the runner that answers from the cassette of a run.
///
/// # Errors
/// As [`of_run`].
pub(super) fn runner(
    settings: &Settings,
    (root, run): (&RunsRoot, &RunId),
    steps: PathBuf,
) -> Result<Rc<ReplayRunner>, Error> {
    let cassette = of_run(settings, &root.run(run).cassette())?;
    let CassetteSource { path, strict, until, .. } =
        settings.cassette.clone().unwrap_or_else(nothing);
    let cassette = match until {
        Some(until) => part_of(&root.run(run).cassette(), cassette, until)?,
        None => cassette,
    };
    Ok(Rc::new(ReplayRunner::new(ReplayRunnerArgs {
        path,
        cassette,
        marks: PortableMarks::of(run, root.path(), Path::new(&settings.cwd)),
        site: ReplaySite {
            working_dirs: working_dirs(root, run, settings),
            runs: root.path().to_owned(),
            steps,
        },
        is_strict: strict,
        max_procs: settings.max_procs,
    })))
}

fn nothing() -> CassetteSource {
    CassetteSource { path: String::new(), checksum: String::new(), strict: false, until: None }
}

fn unnamed(path: &Path) -> Error {
    let why = "no cassette was given; write --agent replay:DIR".to_owned();
    Error::Cassette { path: path.to_owned(), why }
}

/// Reads a cassette.
///
/// # Errors
/// [`Error::Cassette`].
pub(super) fn read(dir: &Path) -> Result<(CassetteFiles, Cassette), Error> {
    let files = CassetteFiles::read(dir).map_err(|(path, error)| Error::Cassette {
        why: format!("cannot read: {error}; `raymond record RUN -o DIR` creates a cassette"),
        path,
    })?;
    let cassette = Cassette::parse(&files.header, &files.turns)
        .map_err(|error| Error::Cassette { path: dir.to_owned(), why: error.to_string() })?;
    Ok((files, cassette))
}

/// Returns the part of a cassette up to a record.
fn part_of(dir: &Path, cassette: Cassette, until: u64) -> Result<Cassette, Error> {
    let part = cassette.until(until);
    part.map_err(|error| Error::Cassette { path: dir.to_owned(), why: error.to_string() })
}

/// Returns the runner that answers the first part of a run from its cassette, and the rest by another runner.
///
/// # Errors
/// As [`of_run`]; [`Error::Store`] if the journal cannot be read.
pub(super) fn until_runner(
    settings: &Settings,
    (root, run): (&RunsRoot, &RunId),
    steps: PathBuf,
    live: Rc<dyn StepRunner>,
) -> Result<Rc<ReplayUntilRunner>, Error> {
    let replay = runner(settings, (root, run), steps.clone())?;
    let (mut turns, mut ended) = (ReplayedTurns::default(), EndedTurns::default());
    let cassette = replay.cassette();
    if root.run(run).journal().is_file() {
        let view = story(root, run, |before, record| ended.see(before, record))?;
        for turn in ended.finish(&view.run) {
            let place = place(turn.folder.as_ref(), &turn.state);
            if let Some(index) = cassette.recorded_at(&turn.id, &place, turn.visit) {
                turns.note(&turn.id, &turn.session, index);
            }
        }
    }
    Ok(Rc::new(ReplayUntilRunner::new(replay, live, turns, steps)))
}

/// Returns a sentence about the part of a new run that its cassette answers, if it is only a part.
pub(super) fn note(settings: &Settings, files: &CassetteFiles) -> Option<String> {
    let (source, until) = settings.replayed_part()?;
    let part = Cassette::parse(&files.header, &files.turns).ok()?.until(until).ok()?;
    let cost = part.turns().iter().fold(Usd::ZERO, |sum, turn| {
        sum.saturating_add(turn.recorded.cost_usd).saturating_add(turn.further_cost)
    });
    let (count, path) = (part.turns().len(), &source.path);
    let turns = if count == 1 { "1 turn".to_owned() } else { format!("{count} turns") };
    let live = settings.answerer.meaning();
    Some(format!(
        "the cassette {path} answers up to record {until}: {turns}, recorded for {cost} and not paid again; then {live} answers"
    ))
}

/// Checks that a cassette can answer the prompts of a workflow.
///
/// # Errors
/// [`Error::Cassette`] if it cannot be read, or is of another workflow.
pub fn check(dir: &Path, workflow: &Workflow) -> Result<(), Error> {
    check_workflow(dir, &read(dir)?.1, workflow)
}

/// Refuses the cassette of another workflow: one that begins with another state, or none of whose states is there.
/// Prompts that were edited since are none.
fn check_workflow(dir: &Path, cassette: &Cassette, workflow: &Workflow) -> Result<(), Error> {
    let recorded = &cassette.header.workflow;
    let other = |why: String| Error::Cassette {
        path: dir.to_owned(),
        why: format!(
            "it is a recording of another workflow, {}: {why}; record a run of this one",
            recorded.name
        ),
    };
    if recorded.entry != workflow.entry {
        let (theirs, ours) = (&recorded.entry, &workflow.entry);
        return Err(other(format!("that one begins with {theirs}, this one with {ours}")));
    }
    let first = place(recorded.folder.as_ref(), &recorded.entry);
    let file = |place: &str| place.rsplit_once('#').map_or(place, |(file, _)| file).to_owned();
    let others: Vec<String> = cassette.places().map(file).filter(|file| *file != first).collect();
    let is_there = |file: &String| workflow.root.root().join(file).is_file();
    match others.first() {
        Some(missing) if !others.iter().any(is_there) => {
            Err(other(format!("none of its states is here, such as {missing}")))
        }
        _ => Ok(()),
    }
}
