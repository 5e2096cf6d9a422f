//! Reads two runs, live or ended, and compares them.

use std::path::Path;

use serde::Serialize;

use super::error::Error;
use super::recording::TurnRecorder;
use crate::domain::cassette::{RecordedEnding, RecordedTurn, reply_text};
use crate::domain::ended_turns::{EndedTurn, EndedTurns};
use crate::domain::id::{AgentId, RunId};
use crate::domain::run::Run;
use crate::domain::run_diff::{RunDiff, RunPair, compare};
use crate::domain::run_trace::RunLineage;
use crate::domain::run_trace::{RunHistory, TraceFold, TracedText, TracedTurn};
use crate::domain::sealed_terms::{PinDifference, WorkflowPins};
use crate::domain::turn::TurnId;
use crate::language::cassette::{PortableMarks, without_conversation};
use crate::language::diagnostic::line_difference;
use crate::language::scrub::ScrubRules;
use crate::language::source::checksum;
use crate::process::claude::turn_transcript::{PromptAndReply, TurnTranscript};
use crate::store::layout::RunsRoot;
use crate::store::pinned;
use crate::store::view::{RunView, load_view, story};

/// Two runs and their difference.
#[derive(Debug)]
pub struct RunComparison {
    /// The first run as `a`, the second as `b`.
    pub runs: RunPair<ComparedRun>,
    /// Their difference.
    pub diff: RunDiff,
    /// The files of the workflow that differ.
    pub workflow: Vec<WorkflowFileDifference>,
}

/// A run that is compared.
#[derive(Debug)]
pub struct ComparedRun {
    /// The run.
    pub view: RunView,
    /// The trace, without the shared records.
    pub trace: RunHistory,
    marks: TraceMarks,
}

/// A file of the workflow that differs between two runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct WorkflowFileDifference {
    /// The path below the workflow's folder.
    pub path: String,
    /// The change from the first run to the second.
    #[serde(rename = "change")]
    pub how: PinDifference,
    /// The changed lines; `None` if the file is too long.
    pub lines: Option<String>,
}

/// The marks for the paths and ids of a run, and of those that it branched off.
#[derive(Debug)]
struct TraceMarks(Vec<PortableMarks>);

impl TraceMarks {
    fn of(root: &RunsRoot, run: &Run) -> Result<Self, Error> {
        let marks = |id: &RunId| PortableMarks::of(id, root.path(), Path::new(&run.settings.cwd));
        if run.branch.is_none() {
            return Ok(Self(vec![marks(&run.workflow_id)]));
        }
        let mut lineage = None;
        story(root, &run.workflow_id, |before, record| {
            lineage.get_or_insert_with(|| RunLineage::begin(before)).see(record);
        })?;
        let mut ids: Vec<&RunId> = lineage.iter().flat_map(RunLineage::runs).collect();
        // Its own id comes first: that of another run may be a part of it.
        ids.reverse();
        Ok(Self(ids.into_iter().map(marks).collect()))
    }

    fn marked(&self, text: &str) -> String {
        self.0.iter().fold(text.to_owned(), |text, marks| marks.marked(&text))
    }

    fn traced(&self, text: &str) -> TracedText {
        let text = self.marked(text);
        let without_id = self.0.iter().fold(text.clone(), |text, marks| marks.without_id(&text));
        TracedText { without_id: (without_id != text).then_some(without_id), text }
    }

    /// Returns the checksums of a text.
    fn checksum(&self, text: &str) -> TracedText {
        let TracedText { text, without_id } = self.traced(text);
        TracedText { text: checksum(text), without_id: without_id.map(checksum) }
    }
}

/// Compares two runs, of `agent` alone if one is named.
///
/// # Errors
/// [`Error`] if one of them cannot be read.
pub fn compare_runs(
    root: &RunsRoot,
    ids: RunPair<&RunId>,
    agent: Option<&AgentId>,
) -> Result<RunComparison, Error> {
    let (mut a, a_turns) = read(root, ids.a)?;
    let (mut b, b_turns) = read(root, ids.b)?;
    let shared = a.trace.lineage.shared_with(&b.trace.lineage);
    for (run, turns) in [(&mut a, a_turns), (&mut b, b_turns)] {
        run.trace.forget(shared);
        let is_named = |turn: &EndedTurn| agent.is_none_or(|agent| turn.id.agent == *agent);
        add_turns(root, run, turns.into_iter().filter(is_named))?;
    }
    let diff = compare(&a.trace, &b.trace, agent);
    let workflow = different_files(root, ids)?;
    Ok(RunComparison { runs: RunPair { a, b }, diff, workflow })
}

impl ComparedRun {
    /// Returns a text with marks instead of the ids of the run and of the run that it branched off from.
    pub fn without_ids(&self, text: &str) -> String {
        let TracedText { text, without_id } = self.marks.traced(text);
        without_id.unwrap_or(text)
    }

    /// Returns the prompt and the reply of a turn, with marks instead of the run's own paths and id.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn texts(&self, root: &RunsRoot, turn: &TurnId) -> Result<PromptAndReply, Error> {
        let steps = root.run(&self.view.run.workflow_id).steps();
        let found =
            TurnTranscript::find(&steps, &turn.stem()).map(TurnTranscript::prompt_and_reply);
        let found = found.transpose();
        let found =
            found.map_err(|error| Error::Io { doing: "read the files in", path: steps, error })?;
        let mut found = found.unwrap_or_default();
        if self.view.run.settings.replayed_part().is_some() {
            found.prompt = found.prompt.map(|prompt| without_conversation(&prompt).to_owned());
        }
        let marked = |text: Option<String>| text.map(|text| self.marks.marked(&text));
        Ok(PromptAndReply {
            prompt: marked(found.prompt),
            answer: marked(found.answer),
            structured: marked(found.structured),
            ..found
        })
    }
}

/// Reads the journal of a run.
fn read(root: &RunsRoot, id: &RunId) -> Result<(ComparedRun, Vec<EndedTurn>), Error> {
    // The marks need the run's settings, which its first record has, and the runs that it branched off, which later
    // ones have.
    let marks = TraceMarks::of(root, &load_view(root, id)?.run)?;
    let traced = |text: &str| marks.traced(text);
    let (mut fold, mut turns) = (TraceFold::default(), EndedTurns::default());
    let view = story(root, id, |before, record| {
        fold.see(before, record, &traced);
        turns.see(before, record);
    })?;
    let trace = fold.finish(&view.run, &traced);
    let turns = turns.finish(&view.run);
    Ok((ComparedRun { view, trace, marks }, turns))
}

/// Adds the texts and the changed files of the turns that are not shared.
fn add_turns(
    root: &RunsRoot,
    run: &mut ComparedRun,
    turns: impl Iterator<Item = EndedTurn>,
) -> Result<(), Error> {
    let rules = ScrubRules::none();
    let mut recorder = TurnRecorder::of(root, &run.view.run, &rules);
    let known = run.trace.turns();
    for turn in turns.filter(|turn| known.contains(&turn.id)) {
        let (id, dir) = (turn.id.clone(), turn.working_dir.clone());
        let Some(found) = recorder.turn(turn)? else { continue };
        run.trace.add_turn(&id, texts_of(&found, &run.marks));
        run.trace.files.add(&id, &dir, found.files);
    }
    run.trace.files.commands = recorder.left_out.commands;
    Ok(())
}

fn texts_of(turn: &RecordedTurn, marks: &TraceMarks) -> TracedTurn {
    let reply = match &turn.outcome {
        RecordedEnding::Replied { answer, structured } => {
            let reply = reply_text(answer.as_deref(), structured.as_deref());
            reply.map(|reply| marks.checksum(&reply))
        }
        RecordedEnding::Failed { .. } | RecordedEnding::Cut => None,
    };
    let prompt = turn.prompt.as_ref().map(|prompt| marks.checksum(prompt));
    TracedTurn { prompt, reply, model: turn.model.clone() }
}

/// Returns the files of the workflow that differ between the copies of two runs.
fn different_files(
    root: &RunsRoot,
    ids: RunPair<&RunId>,
) -> Result<Vec<WorkflowFileDifference>, Error> {
    let pins = |id: &RunId| -> Result<Option<WorkflowPins>, Error> {
        Ok(pinned::load(&root.run(id).pins())?)
    };
    let (Some(a), Some(b)) = (pins(ids.a)?, pins(ids.b)?) else { return Ok(Vec::new()) };
    let text = |id: &RunId, path: &str| pinned::kept_text(&root.run(id).workflow(), path);
    let difference = |(path, how): (String, PinDifference)| {
        let lines = line_difference(&text(ids.a, &path), &text(ids.b, &path));
        WorkflowFileDifference { path, how, lines }
    };
    Ok(a.differences(&b).into_iter().map(difference).collect())
}
