//! The runs as the page shows them: what `list`, `status`, `answer` and `costs` print as JSON, bounded.
//!
//! The picture of a run's workflow, as the page draws it.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};

use crate::cli::check::InspectedWorkflow;
use crate::cli::exit::Error;
use crate::cli::{costs, graph, list, pending, questions, status};
use crate::domain::id::RunId;
use crate::domain::person_wait::{PersonWaitSubject, person_waits};
use crate::domain::time::Timestamp;
use crate::language::drawing::placed::PlacedDrawing;
use crate::process::turn_tail::changed;
use crate::runtime::observing::inbox_view::with_inbox;
use crate::serve::backend::FollowedRun;
use crate::store::layout::RunsRoot;
use crate::store::view::{RunView, is_held, load_view, newest_first};

/// The most questions of a run in the list of runs.
const MAX_QUESTIONS: usize = 50;

/// The most agents in a run's costs.
const MAX_AGENTS: usize = 100;

/// The most runs whose questions are looked for.
const MAX_RUNS: usize = 500;

/// The state that a run's document depends on: the length and the time of its journal, the time of its inbox, and whether it is held.
type RunStamp = (u64, [Option<Timestamp>; 2], bool);

/// The documents of runs that have not changed.
#[derive(Default)]
pub(super) struct RunCache {
    read: Mutex<HashMap<RunId, (RunStamp, Value)>>,
    /// Those of the runs that a stream follows, which keeps them up to date.
    followed: Mutex<HashMap<RunId, Value>>,
}

impl RunCache {
    /// Takes in a run that a stream follows.
    pub(super) fn follow(&self, run: &FollowedRun<'_>) {
        if run.held {
            locked(&self.followed).insert(run.run.workflow_id.clone(), document_of(run));
        } else {
            // Of a stopped run the inbox counts at once, so it is read when it is asked for.
            self.unfollow(&run.run.workflow_id);
        }
    }

    /// Forgets a run that no stream follows any more.
    pub(super) fn unfollow(&self, id: &RunId) {
        locked(&self.followed).remove(id);
    }

    /// Returns the document of a run, which is read if it has changed and no stream follows it.
    fn of(&self, root: &RunsRoot, id: &RunId, started: Timestamp) -> Value {
        if let Some(followed) = locked(&self.followed).get(id) {
            return followed.clone();
        }
        let journal = root.run(id).journal();
        let length = std::fs::metadata(&journal).map_or(0, |file| file.len());
        let times = [changed(&journal), changed(&root.run(id).inbox())];
        let stamp = (length, times, is_held(root, id).unwrap_or(false));
        if let Some((own, value)) = locked(&self.read).get(id)
            && *own == stamp
        {
            return value.clone();
        }
        let value = document(root, id, started);
        locked(&self.read).insert(id.clone(), (stamp, value.clone()));
        value
    }

    /// Forgets the runs that are gone.
    fn keep(&self, all: &[(RunId, Timestamp)]) {
        let mut known = locked(&self.read);
        if known.len() > all.len() {
            known.retain(|id, _| all.iter().any(|(one, _)| one == id));
        }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns a run as `list --json` prints it, with its questions.
fn document(root: &RunsRoot, id: &RunId, started: Timestamp) -> Value {
    let listed = list::read(root, id, started);
    let Ok(RunView { run, held, .. }) = &listed.view else { return list::as_json(&listed) };
    let expected = with_inbox(&root.run(id), run, *held);
    document_of(&FollowedRun { run, expected: &expected, held: *held, started })
}

fn document_of(followed: &FollowedRun<'_>) -> Value {
    let FollowedRun { run, expected, held, started } = *followed;
    let mut value = list::read_as_json(run, held, started);
    let mut open = questions::open(expected);
    value["questions_open"] = json!(open.len());
    open.truncate(MAX_QUESTIONS);
    value["questions"] = questions::as_json(&open);
    let waits = person_waits(expected).into_iter();
    let others = waits.filter(|wait| !is_question(&wait.subject));
    let others = others.take(MAX_QUESTIONS).map(|wait| pending::document(&run.workflow_id, &wait));
    value["waits"] = others.collect();
    let parked = run.agents.unordered().filter(|agent| agent.parked_reason().is_some());
    value["parked"] = json!(parked.count());
    value["budget_usd"] = json!(run.settings.budget_usd);
    value["reason"] = json!(list::why(run));
    value
}

/// Returns whether a wait is told as a question.
fn is_question(subject: &PersonWaitSubject) -> bool {
    match subject {
        PersonWaitSubject::Answer { .. } | PersonWaitSubject::Approval { .. } => true,
        PersonWaitSubject::Signal(_)
        | PersonWaitSubject::Held
        | PersonWaitSubject::Parked { .. } => false,
    }
}

/// Returns the runs from a place on, the newest first.
pub(super) fn runs(
    root: &RunsRoot,
    cache: &RunCache,
    offset: usize,
    limit: usize,
) -> Result<Value, Error> {
    let all = newest_first(root)?;
    cache.keep(&all);
    let shown = all.iter().skip(offset).take(limit);
    let runs: Vec<Value> = shown.map(|(id, started)| cache.of(root, id, *started)).collect();
    let more = all.len().saturating_sub(offset + runs.len());
    Ok(json!({ "runs": runs, "more": more }))
}

/// Returns the open questions of all runs.
pub(super) fn questions(root: &RunsRoot, cache: &RunCache) -> Result<Value, Error> {
    let all = newest_first(root)?;
    let with_questions = all.iter().take(MAX_RUNS).filter_map(|(id, started)| {
        let run = cache.of(root, id, *started);
        let questions = run["questions"].as_array().filter(|open| !open.is_empty())?;
        Some(json!({ "run": id, "locked": run["status"] == "running", "questions": questions }))
    });
    Ok(with_questions.collect())
}

/// Returns a run as `status --json` prints it, without its agents.
pub(super) fn run(root: &RunsRoot, id: &RunId) -> Result<Value, Error> {
    let view = load_view(root, id)?;
    let mut value = status::document(&view, &root.run(id))?;
    if let Some(keys) = value.as_object_mut() {
        for list in ["agents", "finished"] {
            if let Some(Value::Array(all)) = keys.shift_remove(list) {
                keys.insert(format!("{list}_count"), json!(all.len()));
            }
        }
    }
    Ok(value)
}

/// Returns a run's costs as `costs --json` prints them, with the most expensive agents.
pub(super) fn costs(root: &RunsRoot, id: &RunId) -> Result<Value, Error> {
    let mut value = costs::document(root, id)?;
    if let Some(agents) = value["agents"].as_array_mut() {
        let more = agents.len().saturating_sub(MAX_AGENTS);
        agents.truncate(MAX_AGENTS);
        value["more_agents"] = json!(more);
    }
    Ok(value)
}

/// The most nodes of a picture.
const MAX_NODES: usize = 150;

/// Returns the picture of a run's workflow, from its files as they were when the run began.
pub(super) fn graph(root: &RunsRoot, id: &RunId) -> Result<Value, Error> {
    let run = load_view(root, id)?.run;
    let mut folder = root.run(id).workflow();
    if let Some(below) = &run.folder {
        folder = folder.join(below.as_str());
    }
    let first = |name: &str| folder.join(name);
    // A workflow that is one file is drawn from that file.
    let entry = run
        .agents
        .unordered()
        .map(|agent| (&agent.id, agent.spec.state.clone()))
        .chain(run.finished.iter().filter_map(|ended| Some((&ended.id, ended.began()?))))
        .find(|(agent, _)| agent.parent().is_none())
        .map(|(_, state)| first(state.as_str().split('#').next().unwrap_or_default()));
    let path = entry.filter(|path| path.is_file()).unwrap_or_else(|| folder.clone());
    let subject = InspectedWorkflow::open(&path)?;
    let drawing = graph::draw(&subject, id.as_str());
    let drawing = drawing.map_err(|reasons| Error::Usage(reasons.join("\n")))?;
    Ok(json!(PlacedDrawing::of(&drawing.folded(MAX_NODES))))
}
