//! Records a run as a cassette, without secrets; and reads the cassette that answers the prompts of a run.
//!
//! A cassette has the turns of the run with their prompts, answers, costs and changes of files.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};
use std::rc::Rc;

use super::error::Error;
use super::graphs::working_dirs;
use super::workflow::Workflow;
use crate::actor::replayed::{ReplayRunner, ReplayRunnerArgs, ReplayUntilRunner};
use crate::actor::runner::StepRunner;
use crate::domain::cassette::{
    CASSETTE_FORMAT, CassetteHeader, LeftOutCounts, RecordedChange, RecordedEnding, RecordedTurn,
    RecordedWorkflow, ScrubbedCount, place,
};
use crate::domain::ended_turns::{EndedTurn, EndedTurns, TurnEnding};
use crate::domain::id::{AgentId, RunId, SessionId, StateName};
use crate::domain::money::Usd;
use crate::domain::run::Run;
use crate::domain::settings::{AnswererKind, CassetteSource, Settings};
use crate::domain::turn::TurnCost;
use crate::domain::worktree_snapshot::WorkingDir;
use crate::language::cassette::{Cassette, PortableMarks, ReplayedTurns, without_conversation};
use crate::language::scrub::{ScrubCounts, ScrubRules};
use crate::language::source::checksum;
use crate::process::claude::turn_transcript::{
    FileChanges, PromptAndReply, ToolChange, TurnTranscript,
};
use crate::process::working_dirs::WorkingDirs;
use crate::store::cassette::{CassetteDraft, CassetteFiles};
use crate::store::layout::RunsRoot;
use crate::store::pinned;
use crate::store::user_state::pins_checksum;
use crate::store::view::story;
use crate::world::recorded_files::ReplaySite;

/// Records a run into a directory, which is replaced if it exists and `may_replace` it.
///
/// # Errors
/// [`Error`] if the run cannot be read, has no streams, or the directory cannot be written; nothing is left of it then.
pub fn record(
    root: &RunsRoot,
    id: &RunId,
    rules: &ScrubRules,
    out: &Path,
    may_replace: bool,
) -> Result<CassetteHeader, Error> {
    let (mut turns, mut entry) = (EndedTurns::default(), None);
    let view = story(root, id, |before, record| {
        entry = entry.take().or_else(|| first_state(before));
        turns.see(before, record);
    })?;
    let turns = turns.finish(&view.run);
    let entry = entry.or_else(|| first_state(&view.run)).ok_or(Error::Nothing)?;
    let mut draft = CassetteDraft::begin(out, may_replace)?;
    let mut recorder = TurnRecorder::of(root, &view.run, rules);
    for turn in turns {
        if let Some(turn) = recorder.turn(turn)? {
            let line = serde_json::to_string(&turn).map_err(|error| Error::Io {
                doing: "record a turn of",
                path: root.run(id).path().to_owned(),
                error: error.into(),
            })?;
            draft.add(&line)?;
        }
    }
    if recorder.texts == 0 && recorder.left_out.missing_streams > 0 {
        return Err(Error::NoStreams { run: id.clone(), dir: root.run(id).steps() });
    }
    let header = CassetteHeader {
        format: CASSETTE_FORMAT,
        raymond: env!("CARGO_PKG_VERSION").to_owned(),
        workflow: workflow(root, &view.run, entry)?,
        turns: recorder.turns,
        records: Some(view.run.seq),
        unfinished: view.run.can_resume(),
        scrubbed: scrubbed(recorder.counts),
        left_out: recorder.left_out,
    };
    let json = serde_json::to_string_pretty(&header).map_err(|error| Error::Io {
        doing: "record the header of",
        path: root.run(id).path().to_owned(),
        error: error.into(),
    })?;
    draft.finish(format!("{json}\n").as_bytes())?;
    Ok(header)
}

fn scrubbed(counts: ScrubCounts) -> Vec<ScrubbedCount> {
    counts.into_iter().map(|(rule, hits)| ScrubbedCount { rule, hits }).collect()
}

fn first_state(run: &Run) -> Option<StateName> {
    run.agents.get(&AgentId::main()).map(|agent| agent.spec.state.clone())
}

fn workflow(root: &RunsRoot, run: &Run, entry: StateName) -> Result<RecordedWorkflow, Error> {
    let pins = pinned::load(&root.run(&run.workflow_id).pins())?;
    let scope = Path::new(&run.scope_dir);
    let scope =
        run.folder.as_ref().map_or_else(|| scope.to_owned(), |below| scope.join(below.as_str()));
    let name = scope.file_name().map(|name| name.to_string_lossy().into_owned());
    Ok(RecordedWorkflow {
        name: name.unwrap_or_default(),
        folder: run.folder.clone(),
        entry,
        checksum: pins.is_some().then(|| pins_checksum(pins.as_ref())),
    })
}

/// The recorder of the turns of a run, in order.
pub(super) struct TurnRecorder<'rules> {
    steps: PathBuf,
    working_dirs: WorkingDirs,
    runs: PathBuf,
    /// True if prompts may have a recorded conversation before them, which is not part of them.
    is_part_replayed: bool,
    marks: PortableMarks,
    rules: &'rules ScrubRules,
    counts: ScrubCounts,
    pub(super) left_out: LeftOutCounts,
    /// The number of each session, and of its last turn.
    sessions: BTreeMap<SessionId, (u32, u32)>,
    /// The number of recorded turns, and of those with texts.
    turns: u64,
    texts: u64,
}

impl<'rules> TurnRecorder<'rules> {
    /// Returns the recorder of a run.
    pub(super) fn of(root: &RunsRoot, run: &Run, rules: &'rules ScrubRules) -> Self {
        let id = &run.workflow_id;
        Self {
            steps: root.run(id).steps(),
            working_dirs: working_dirs(root, id, &run.settings),
            runs: root.path().to_owned(),
            is_part_replayed: run.settings.replayed_part().is_some(),
            marks: PortableMarks::of(id, root.path(), Path::new(&run.settings.cwd)),
            rules,
            counts: rules.counts(),
            left_out: LeftOutCounts::default(),
            sessions: BTreeMap::new(),
            turns: 0,
            texts: 0,
        }
    }

    /// Returns the record of a turn. Returns `None` if no turn was running when the agent ended, or if the state is not
    /// a prompt.
    pub(super) fn turn(&mut self, turn: EndedTurn) -> Result<Option<RecordedTurn>, Error> {
        if !is_asked(&turn.state) {
            return Ok(None);
        }
        let transcript = TurnTranscript::find(&self.steps, &turn.id.stem());
        let may_be_none = match &turn.ending {
            TurnEnding::Cut => true,
            TurnEnding::AgentFailed { .. } => turn.cost.is_zero(),
            TurnEnding::Replied | TurnEnding::Failed { .. } => false,
        };
        if transcript.is_none() && may_be_none {
            return Ok(None);
        }
        let is_missing =
            transcript.is_none() && turn.given.is_none() && turn.ending == TurnEnding::Replied;
        let mut changes = FileChanges::default();
        let found = transcript.map(|transcript| transcript.recorded(&mut changes)).transpose();
        let found = found.map_err(|error| Error::Io {
            doing: "read the files in",
            path: self.steps.clone(),
            error,
        })?;
        self.left_out.missing_streams += u64::from(is_missing);
        self.left_out.unknown_changes += changes.unknown;
        self.left_out.commands += changes.commands;
        self.turns += 1;
        self.texts += u64::from(found.is_some() || turn.given.is_some());
        let files = self.files(&turn.working_dir, changes.changes);
        Ok(Some(self.recorded(turn, found.unwrap_or_default(), files, is_missing)))
    }

    fn recorded(
        &mut self,
        turn: EndedTurn,
        found: PromptAndReply,
        files: Vec<RecordedChange>,
        stream_missing: bool,
    ) -> RecordedTurn {
        let (session, session_turn) = self.session(&turn.session.id);
        let PromptAndReply { prompt, answer, structured, .. } = found;
        let (given, answer) = (turn.given.is_some(), turn.given.or(answer));
        let prompt = prompt.map(|prompt| {
            let text = if self.is_part_replayed { without_conversation(&prompt) } else { &prompt };
            self.clean(text)
        });
        let ended_agent = matches!(turn.ending, TurnEnding::AgentFailed { .. });
        let outcome = match turn.ending {
            TurnEnding::Replied => RecordedEnding::Replied {
                answer: answer.map(|answer| self.clean(&answer)),
                structured: structured.map(|object| self.clean(&object)),
            },
            TurnEnding::Failed { cause, message } | TurnEnding::AgentFailed { cause, message } => {
                RecordedEnding::Failed { cause, message: self.clean(&message) }
            }
            TurnEnding::Cut => RecordedEnding::Cut,
        };
        let TurnCost { amount, usage, mut refused_tools, duration_ms, .. } = turn.cost;
        for call in &mut refused_tools.calls {
            call.input = self.clean(&call.input);
            call.why = self.clean(&call.why);
            call.allow = call.allow.iter().map(|rule| self.clean(rule)).collect();
        }
        let dearest = usage.iter().max_by_key(|(_, used)| used.cost_usd);
        RecordedTurn {
            agent: turn.id.agent,
            step: turn.id.step,
            turn: turn.id.turn,
            record: Some(turn.seq),
            state: turn.state,
            folder: turn.folder,
            visit: turn.visit,
            session,
            session_turn,
            model: dearest.map(|(model, _)| model.to_owned()),
            prompt_hash: prompt.as_ref().map(checksum),
            prompt,
            outcome,
            ended_agent,
            retried: turn.is_retried,
            given,
            cost_usd: amount,
            usage,
            duration_ms: duration_ms.unwrap_or_default(),
            refused_tools,
            files,
            stream_missing,
        }
    }

    /// Returns a text without secrets, and without the paths and the id of the run.
    fn clean(&mut self, text: &str) -> String {
        self.rules.scrub(&self.marks.marked(text), &mut self.counts)
    }

    /// Returns the number of a session, and of the next turn in it.
    fn session(&mut self, id: &SessionId) -> (u32, u32) {
        let next = u32::try_from(self.sessions.len()).unwrap_or(u32::MAX).saturating_add(1);
        let (number, turns) = self.sessions.entry(id.clone()).or_insert((next, 0));
        *turns = turns.saturating_add(1);
        (*number, *turns)
    }

    /// Returns the changes of files in the working directory; others are counted.
    fn files(&mut self, working_dir: &WorkingDir, changes: Vec<ToolChange>) -> Vec<RecordedChange> {
        let dir = self.directory(working_dir);
        let mut kept = Vec::with_capacity(changes.len());
        for ToolChange { path, tool, patch } in changes {
            match below(&dir, &path).filter(|_| !below_dir(&self.runs, &dir, &path)) {
                Some(path) => {
                    let path = self.clean(&path);
                    let cleaned = patch.map(|text| self.clean(text));
                    kept.push(RecordedChange { path, tool, patch: cleaned });
                }
                None => self.left_out.outside_files += 1,
            }
        }
        kept
    }

    /// Returns the directory that a turn ran in, even if it is gone.
    fn directory(&self, working_dir: &WorkingDir) -> PathBuf {
        self.working_dirs.directory(working_dir).unwrap_or_else(|_| {
            let tree = working_dir.tree.as_ref();
            let top = tree.map_or_else(
                || self.working_dirs.root().to_owned(),
                |agent| self.working_dirs.tree(agent),
            );
            working_dir.cwd.as_ref().map_or(top.clone(), |below| top.join(below.as_str()))
        })
    }
}

/// Returns whether a state is a prompt, a node or a role. The operations of scripts, graphs and programs are not turns.
fn is_asked(state: &StateName) -> bool {
    state.is_prompt() || state.as_str().contains('#')
}

/// Returns whether a path leads into raymond's own directory.
fn below_dir(runs: &Path, dir: &Path, path: &str) -> bool {
    !dir.starts_with(runs) && plain(&dir.join(path)).starts_with(runs)
}

/// Returns a path below a directory; `None` if it leads elsewhere, or to the directory itself.
fn below(dir: &Path, path: &str) -> Option<String> {
    let path = plain(&dir.join(path));
    let real = dir.canonicalize().ok();
    let below = path
        .strip_prefix(plain(dir))
        .ok()
        .or_else(|| real.as_deref().and_then(|real| path.strip_prefix(real).ok()))?;
    below.to_str().filter(|below| !below.is_empty()).map(str::to_owned)
}

/// Returns a path without `.` and `..`.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => drop(plain.pop()),
            part => plain.push(part),
        }
    }
    plain
}

// The cassette that answers the prompts of a run.
//
// It is read from its directory when the run starts, and from the run's own copy afterwards.

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
    root: &RunsRoot,
    run: &RunId,
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
        .map_err(|why| Error::Cassette { path: dir.to_owned(), why })?;
    Ok((files, cassette))
}

/// Returns the part of a cassette up to a record.
fn part_of(dir: &Path, cassette: Cassette, until: u64) -> Result<Cassette, Error> {
    let part = cassette.until(until);
    part.map_err(|why| Error::Cassette { path: dir.to_owned(), why })
}

/// Returns the runner that answers the first part of a run from its cassette, and the rest by another runner.
///
/// # Errors
/// As [`of_run`]; [`Error::Store`] if the journal cannot be read.
pub(super) fn until_runner(
    settings: &Settings,
    root: &RunsRoot,
    run: &RunId,
    steps: PathBuf,
    live: Rc<dyn StepRunner>,
) -> Result<Rc<ReplayUntilRunner>, Error> {
    let replay = runner(settings, root, run, steps.clone())?;
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

/// Refuses the cassette of another workflow: a workflow that begins with another state, or none of whose states exist
/// here. A workflow whose prompts were edited since is not another workflow.
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
        let (recorded_entry, current_entry) = (&recorded.entry, &workflow.entry);
        return Err(other(format!(
            "that one begins with {recorded_entry}, this one with {current_entry}"
        )));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_outside_of_the_working_directory_are_none() {
        let dir = Path::new("/work/a");
        let below = |path| below(dir, path);
        assert_eq!(below("/work/a/b/c"), Some("b/c".to_owned()));
        assert_eq!(below("b/../c"), Some("c".to_owned()));
        for path in ["/work/b", "/work/a/../b", "../x", "/work/a", "", "/work/abc"] {
            assert_eq!(below(path), None, "{path}");
        }
        assert!(below_dir(Path::new("/work/a/.raymond"), dir, ".raymond/runs/x"));
        assert!(!below_dir(Path::new("/work"), dir, "x"), "a worktree lies in it");
    }
}
