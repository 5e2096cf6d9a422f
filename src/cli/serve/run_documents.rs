//! The runs as the page shows them: what `list`, `status`, `answer` and `costs` print as JSON, bounded; and pictures.

use std::collections::HashMap;
use std::sync::Mutex;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::cli::check::InspectedWorkflow;
use crate::cli::exit::Error;
use crate::cli::list::ListedRow;
use crate::cli::questions::OpenQuestion;
use crate::cli::{check, costs, list, questions, status, table};
use crate::domain::id::RunId;
use crate::domain::money::Usd;
use crate::domain::mutex::lock;
use crate::domain::person_wait::{PersonWaitSubject, person_waits};
use crate::domain::time::Timestamp;
use crate::domain::views::{PersonWaitRow, QuestionRow, RunCosts, RunRow};
use crate::language::drawing::svg::PlacedDrawing;
use crate::process::claude::turn_transcript::changed;
use crate::runtime::observing::agent_entries::with_inbox;
use crate::serve::backend::FollowedRun;
use crate::store::layout::RunsRoot;
use crate::store::view::{RunView, is_held, load_view, newest_first};

/// The most questions of a run in the list of runs.
const MAX_QUESTIONS: usize = 50;

/// The most agents in a run's costs.
const MAX_AGENTS: usize = 100;

/// The most runs whose questions are looked for.
const MAX_RUNS: usize = 500;

/// The state that a run's document depends on: the length and the time of its journal, the time of its inbox, and
/// whether it is held.
type RunStamp = (u64, [Option<Timestamp>; 2], bool);

/// A run in the list of runs, with what waits for a person in it.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(super) struct PageRun {
    #[serde(flatten)]
    row: ListedRow,
    #[serde(flatten)]
    waits: Option<PageRunWaits>,
}

/// What waits for a person in a run.
#[derive(Debug, Clone, Serialize, JsonSchema)]
struct PageRunWaits {
    /// The number of its open questions
    questions_open: usize,
    /// The first of them
    questions: Vec<QuestionRow>,
    /// The other waits that a person can end
    waits: Vec<PersonWaitRow>,
    /// The number of its parked agents
    parked: usize,
    /// Its budget
    budget_usd: Option<Usd>,
    /// The reason why it does not proceed, in short, or what its agents failed of
    reason: String,
}

impl PageRun {
    /// Returns its directory; `None` if it cannot be read.
    pub(super) fn scope_dir(&self) -> Option<&str> {
        match &self.row {
            ListedRow::Read(row) => Some(&row.scope_dir),
            ListedRow::Unreadable(_) => None,
        }
    }
}

/// A page of the list of runs.
#[derive(Serialize, JsonSchema)]
pub(super) struct RunsPage {
    /// The runs, the newest first
    pub(super) runs: Vec<PageRun>,
    /// The number of older runs
    more: usize,
}

/// The open questions of a run.
#[derive(Serialize, JsonSchema)]
pub(super) struct RunQuestions {
    /// The run
    run: RunId,
    /// True if a raymond holds it
    locked: bool,
    /// The questions
    questions: Vec<QuestionRow>,
}

/// The documents of runs that have not changed.
#[derive(Default)]
pub(super) struct RunCache {
    read: Mutex<HashMap<RunId, (RunStamp, PageRun)>>,
    /// Those of the runs that a stream follows, which keeps them up to date.
    followed: Mutex<HashMap<RunId, PageRun>>,
}

impl RunCache {
    /// Takes in a run that a stream follows.
    pub(super) fn follow(&self, run: &FollowedRun<'_>) {
        if run.held {
            lock(&self.followed).insert(run.run.workflow_id.clone(), document_of(run));
        } else {
            // Of a stopped run the inbox counts at once, so it is read when it is asked for.
            self.unfollow(&run.run.workflow_id);
        }
    }

    /// Forgets a run that no stream follows any more.
    pub(super) fn unfollow(&self, id: &RunId) {
        lock(&self.followed).remove(id);
    }

    /// Returns the document of a run, which is read if it has changed and no stream follows it.
    fn of(&self, root: &RunsRoot, id: &RunId, started: Timestamp) -> PageRun {
        if let Some(followed) = lock(&self.followed).get(id) {
            return followed.clone();
        }
        let journal = root.run(id).journal();
        let length = std::fs::metadata(&journal).map_or(0, |file| file.len());
        let times = [changed(&journal), changed(&root.run(id).inbox())];
        let stamp = (length, times, is_held(root, id).unwrap_or(false));
        if let Some((known, value)) = lock(&self.read).get(id)
            && *known == stamp
        {
            return value.clone();
        }
        let value = document(root, id, started);
        lock(&self.read).insert(id.clone(), (stamp, value.clone()));
        value
    }

    /// Forgets the runs that are gone.
    fn keep(&self, all: &[(RunId, Timestamp)]) {
        let mut known = lock(&self.read);
        if known.len() > all.len() {
            known.retain(|id, _| all.iter().any(|(existing, _)| existing == id));
        }
    }
}

/// Returns a run as `list --json` prints it, with its questions.
fn document(root: &RunsRoot, id: &RunId, started: Timestamp) -> PageRun {
    let listed = list::read(root, id, started);
    let Ok(RunView { run, held, .. }) = &listed.view else {
        return PageRun { row: ListedRow::of(&listed), waits: None };
    };
    let expected = with_inbox(&root.run(id), run, *held);
    document_of(&FollowedRun { run, expected: &expected, held: *held, started })
}

fn document_of(followed: &FollowedRun<'_>) -> PageRun {
    let FollowedRun { run, expected, held, started } = *followed;
    let open = questions::open(expected);
    let waits = person_waits(expected).into_iter().filter(|wait| !is_question(&wait.subject));
    let waits = waits.take(MAX_QUESTIONS).map(|wait| list::document(&run.workflow_id, &wait));
    let parked = run.agents.unordered().filter(|agent| agent.parked_reason().is_some());
    PageRun {
        row: ListedRow::Read(RunRow::of(run, held, started)),
        waits: Some(PageRunWaits {
            questions_open: open.len(),
            questions: open.iter().take(MAX_QUESTIONS).map(OpenQuestion::row).collect(),
            waits: waits.collect(),
            parked: parked.count(),
            budget_usd: run.settings.budget_usd,
            reason: list::why(run),
        }),
    }
}

/// Returns whether a wait is shown as a question.
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
) -> Result<RunsPage, Error> {
    let all = newest_first(root)?;
    cache.keep(&all);
    let shown = all.iter().skip(offset).take(limit);
    let runs: Vec<PageRun> = shown.map(|(id, started)| cache.of(root, id, *started)).collect();
    let more = all.len().saturating_sub(offset + runs.len());
    Ok(RunsPage { runs, more })
}

/// Returns the open questions of all runs.
pub(super) fn questions(root: &RunsRoot, cache: &RunCache) -> Result<Vec<RunQuestions>, Error> {
    let all = newest_first(root)?;
    let with_questions = all.iter().take(MAX_RUNS).filter_map(|(id, started)| {
        let PageRun { row, waits } = cache.of(root, id, *started);
        let questions = waits?.questions;
        let locked = matches!(row, ListedRow::Read(row) if row.status == "running");
        (!questions.is_empty()).then(|| RunQuestions { run: id.clone(), locked, questions })
    });
    Ok(with_questions.collect())
}

/// A run: the keys of its state file, with its status as seen from outside, and the number of its agents.
#[derive(Serialize, JsonSchema)]
pub(super) struct RunStateDocument {
    /// Its id
    run: RunId,
    /// Its status
    status: &'static str,
    /// The number of its live agents
    agents_count: usize,
    /// The number of its agents that have ended
    finished_count: usize,
    #[serde(flatten)]
    state: Map<String, Value>,
}

/// Returns a run as `status --json` prints it, without its agents.
pub(super) fn run(root: &RunsRoot, id: &RunId) -> Result<RunStateDocument, Error> {
    let view = load_view(root, id)?;
    let mut state = status::document(&view, &root.run(id))?;
    state.retain(|key, _| !["run", "status", "agents", "finished"].contains(&key.as_str()));
    Ok(RunStateDocument {
        status: table::word(&view),
        agents_count: view.run.agents.len(),
        finished_count: view.run.finished.len(),
        run: view.run.workflow_id,
        state,
    })
}

/// Returns a run's costs as `costs --json` prints them, with the most expensive agents.
pub(super) fn costs(root: &RunsRoot, id: &RunId) -> Result<RunCosts, Error> {
    let mut costs = costs::document(root, id)?;
    costs.more_agents = Some(costs.agents.len().saturating_sub(MAX_AGENTS));
    costs.agents.truncate(MAX_AGENTS);
    Ok(costs)
}

/// The most nodes of a picture.
const MAX_NODES: usize = 150;

/// Returns the picture of a run's workflow, from its files as they were when the run began.
pub(super) fn graph(root: &RunsRoot, id: &RunId) -> Result<PlacedDrawing, Error> {
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
    let drawing = check::draw(&subject, id.as_str());
    let drawing = drawing.map_err(|reasons| Error::Usage(reasons.join("\n")))?;
    Ok(PlacedDrawing::of(&drawing.folded(MAX_NODES)))
}

/// The most runs whose workflows are offered.
const MAX_OFFERED_RUNS: usize = 200;

/// Returns the folders of the workflows that the page offers: the trusted folders, and those of earlier runs.
pub(super) fn folders(
    root: &RunsRoot,
    cache: &RunCache,
) -> Result<std::collections::BTreeSet<String>, Error> {
    let (trusted, _) = crate::store::trust::list(&crate::runtime::directories::user_state()?)?;
    let runs = runs(root, cache, 0, MAX_OFFERED_RUNS)?;
    let of_runs = runs.runs.iter().filter_map(|run| run.scope_dir().map(str::to_owned));
    Ok(trusted.into_iter().map(|trusted| trusted.folder).chain(of_runs).collect())
}
