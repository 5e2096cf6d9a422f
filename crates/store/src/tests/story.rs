//! The expected content of a journal: the records of a run, and the run after each of them.

use tempfile::TempDir;

use crate::layout::{RunDir, RunsRoot};
use crate::record::encode;
use crate::run_store::{LockedRun, NewRun, RecoveredRun};
use crate::snapshot;
use raymond_model::apply::{apply, begin};
use raymond_model::event::{Event, Record, RunCommand};
use raymond_model::id::RunId;
use raymond_model::run::{PauseReason, Run};
use raymond_model::tests::plausible::{Journal, Push};
use raymond_model::tests::scene::{self, Scene, goto, result, tag};
use raymond_model::time::Timestamp;
use raymond_model::transition::{TagName, Transition};

/// A run as it should be.
pub(super) struct Story {
    pub(super) first: Record,
    pub(super) lines: Vec<String>,
    /// The run after each record.
    pub(super) runs: Vec<Run>,
    /// The end of each line in the journal, in bytes.
    pub(super) ends: Vec<usize>,
}

impl Story {
    /// Returns a random story.
    pub(super) fn of(pushes: &[Push]) -> Self {
        Self::of_records(&Journal::of(pushes).records().cloned().collect::<Vec<_>>())
    }

    /// Returns a fixed story: forks, calls, returns, failures, pauses.
    pub(super) fn long(records: usize) -> Self {
        let mut scene = Scene::begin();
        let mut records_so_far = vec![scene::first()];
        while records_so_far.len() < records {
            let event = next(&scene, records_so_far.len());
            let seq = scene.next();
            records_so_far.push(Record {
                kept_session: None,
                seq,
                at: Timestamp(seq * 1000),
                folder: None,
                snapshot: None,
                placed: Vec::new(),
                event: event.clone(),
            });
            scene.happens(event);
        }
        Self::of_records(&records_so_far)
    }

    fn of_records(records: &[Record]) -> Self {
        let (mut run, _) = begin(&records[0]).expect("a start");
        let mut runs = vec![run.clone()];
        for record in &records[1..] {
            apply(&mut run, record).expect("it can happen");
            runs.push(run.clone());
        }
        let lines: Vec<_> = records.iter().map(|record| encode(record).expect("a line")).collect();
        let ends = lines.iter().scan(0, |end, line| {
            *end += line.len() + 1;
            Some(*end)
        });
        Self { first: records[0].clone(), ends: ends.collect(), runs, lines }
    }

    /// Returns the number of whole records in so many bytes.
    pub(super) fn whole(&self, bytes: usize) -> usize {
        self.ends.partition_point(|&end| end <= bytes)
    }

    /// Returns the whole journal.
    pub(super) fn bytes(&self) -> Vec<u8> {
        (self.lines.join("\n") + "\n").into_bytes()
    }

    /// Returns the snapshot after so many records.
    pub(super) fn state(&self, records: usize) -> Vec<u8> {
        let mut state = Vec::new();
        snapshot::write(&self.runs[records - 1], &mut state).expect("written");
        state
    }

    /// Returns a new run's directory, with the first record in it.
    pub(super) fn place(&self) -> Place {
        let temporary = tempfile::tempdir().expect("a directory");
        let root = RunsRoot::new(temporary.path());
        let (store, run) =
            LockedRun::create(&root, &self.first, NewRun::default()).expect("created");
        let dir = store.dir().clone();
        Place { _temporary: temporary, id: run.workflow_id, root, dir }
    }
}

/// Returns the event after so many records; the youngest agent is the one that moves.
fn next(scene: &Scene, count: usize) -> Event {
    let agent = scene.run.agents.keys().last().expect("a live agent").as_str();
    match count % 10 {
        0 => Event::RunPaused { pause: PauseReason::Interrupted },
        1 => Event::RunResumed { settings: Box::new(scene.run.settings.clone()) },
        3 => Event::StepFinished(scene.step(agent, transition(count / 10))),
        6 => Event::TurnFailed(scene.failure(agent)),
        _ => Event::CommandReceived { id: format!("c{count}"), command: RunCommand::Stop },
    }
}

fn transition(step: usize) -> Transition {
    match step % 6 {
        0 => tag(TagName::Fork, "N.md", "W.md"),
        1 => tag(TagName::Call, "R.md", "C.md"),
        2 => result("returned"),
        3 => tag(TagName::Reset, "", "D.md"),
        4 => result("ended"),
        _ => goto("B.md"),
    }
}

/// A run's directory.
pub(super) struct Place {
    _temporary: TempDir,
    root: RunsRoot,
    id: RunId,
    pub(super) dir: RunDir,
}

impl Place {
    pub(super) fn open(&self) -> RecoveredRun {
        LockedRun::open(&self.root, &self.id).expect("recovered").1
    }
}
