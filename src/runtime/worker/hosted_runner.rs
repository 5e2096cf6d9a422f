//! A run at a host: the runner of its turns, their texts for viewers, and the host's copy of its workflow.
//!
//! The runner gives turns what was left elsewhere, and keeps what they leave here.

use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use tokio::task::spawn_blocking;

use super::policy::HostPolicy;
use crate::actor::runner::{
    ActivityExecutor, LocalFuture, StepRunner, StopLevel, TurnNoticeHandler, UnavailableRunner,
};
use crate::domain::branch::{StartedRun, WorkflowStart};
use crate::domain::host::HostEpoch;
use crate::domain::host_work::{HostAnswer, HostWork};
use crate::domain::id::{AgentId, RunId, SessionId};
use crate::domain::run::Run;
use crate::domain::session::{SessionKeeping, SessionOrigin};
use crate::domain::settings::{AnswererKind, Settings};
use crate::domain::turn::{
    FailureCause, ScriptTexts, TurnFailure, TurnId, TurnInput, TurnOutcome, TurnTexts,
};
use crate::engine::Engine;
use crate::language::prompt::step::{RESULTS, RESULTS_FILE};
use crate::process::claude::session_files::{CONFIG_DIR, config_dir, find_session};
use crate::process::claude::turn_transcript::TurnTranscript;
use crate::process::command::EnvironmentMarker;
use crate::process::working_dirs::{ExchangeCopy, WorkingDirs};
use crate::runtime::answerer::build_answerer;
use crate::runtime::error::Error;
use crate::runtime::graphs::{GraphSetup, ProgramStarter, RunWorld, StartFailure, working_dirs};
use crate::runtime::sharing::HostedCopy;
use crate::runtime::supervise::pinned_scope;
use crate::runtime::worker::registration::{ClaudePlaces, SessionKeeper};
use crate::runtime::{exchange, sharing};
use crate::store;
use crate::store::dataspace::Dataspace;
use crate::store::files::{make_dir, replace};
use crate::store::layout::RunsRoot;
use crate::store::run_store::LockedRun;
use crate::store::user_state::UserState;
use crate::store::{files, pinned};
use crate::world::perform::script_output;

/// The runner of the turns of a run at a host.
pub(super) struct HostedRunner {
    inner: Rc<dyn StepRunner>,
    dirs: WorkingDirs,
    /// The directory of the files with the results of joins.
    results: PathBuf,
    /// The keeper of sessions, if its turns have any.
    sessions: Option<Arc<SessionKeeper>>,
    has_sessions: bool,
}

impl HostedRunner {
    /// Returns the runner for a run with these settings, around the runner that runs the turns.
    pub(super) fn around(
        inner: Rc<dyn StepRunner>,
        settings: &Settings,
        dirs: WorkingDirs,
        results: PathBuf,
    ) -> Self {
        let has_sessions = settings.answerer == AnswererKind::Claude;
        Self { inner, dirs, results, sessions: None, has_sessions }
    }

    /// Has it keep the sessions of the turns.
    pub(super) fn with_sessions(self, sessions: Arc<SessionKeeper>) -> Self {
        Self { sessions: Some(sessions).filter(|_| self.has_sessions), ..self }
    }

    /// Returns the places of Claude Code for a turn.
    fn places(&self, input: &TurnInput) -> Result<ClaudePlaces, String> {
        let inherited = std::env::var_os(CONFIG_DIR).map(PathBuf::from);
        let config_dir = config_dir(input.options.env.as_ref(), inherited, std::env::home_dir())
            .ok_or("no home directory; set HOME or CLAUDE_CONFIG_DIR")?;
        let cwd = self.dirs.directory(&input.working_dir)?;
        let cwd = cwd.canonicalize().map_err(|error| format!("{}: {error}", cwd.display()))?;
        Ok(ClaudePlaces { config_dir, cwd })
    }

    /// Brings the history of a turn to this host.
    async fn bring(&self, input: &TurnInput) -> Result<(), TurnFailure> {
        let (Some(keeper), Some(history), Some(kept)) =
            (&self.sessions, input.session.history(), &input.session.kept)
        else {
            return Ok(());
        };
        let keeper = Arc::clone(keeper);
        let (session, kept) = (history.clone(), Arc::clone(kept));
        let brought = match self.places(input) {
            Ok(places) => spawn_blocking(move || keeper.bring(&places, &session, &kept)).await,
            Err(why) => Ok(Err(why)),
        };
        let why = match brought {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(why)) => why,
            Err(panicked) => panicked.to_string(),
        };
        // What is here of it may lack turns that it had elsewhere.
        let message = format!("its session {history} cannot be brought here: {why}");
        Err(TurnFailure::new(FailureCause::Storage, message))
    }

    /// Returns whether the history of a turn is on this host, as far as that can be seen.
    fn has_history(&self, input: &TurnInput) -> bool {
        let found = self.places(input).ok().zip(input.session.history());
        found.is_some_and(|(places, session)| {
            find_session(&places.config_dir, &places.cwd, session).is_some()
        })
    }

    /// Keeps the session of a turn that has ended.
    async fn keep(&self, input: &TurnInput) -> Option<SessionKeeping> {
        let keeper = Arc::clone(self.sessions.as_ref()?);
        let session = input.session.id.clone();
        let before = match input.session.origin {
            SessionOrigin::Resumed => input.session.kept.clone(),
            SessionOrigin::Fresh | SessionOrigin::Rebuilt | SessionOrigin::Branch { .. } => None,
        };
        let kept = match self.places(input) {
            Ok(places) => {
                spawn_blocking(move || keeper.keep(&places, &session, before.as_deref())).await
            }
            Err(why) => Ok(Err(why)),
        };
        let why = match kept {
            Ok(Ok(kept)) => return Some(SessionKeeping::Kept(Box::new(kept))),
            Ok(Err(why)) => why,
            Err(panicked) => panicked.to_string(),
        };
        tracing::warn!("the session of {} is only on this host: {why}", input.turn);
        Some(SessionKeeping::OnlyHere(why))
    }

    /// Says in a failure that the history of the turn is not here, if that is the reason.
    fn explained(&self, failure: TurnFailure, input: &TurnInput) -> TurnFailure {
        let needs = input.session.history().filter(|_| input.session.kept.is_none());
        match needs {
            Some(session)
                if self.sessions.is_some()
                    && failure.cause == FailureCause::Rejected
                    && !self.has_history(input) =>
            {
                let message = format!(
                    "{}; the session {session} is not on this host, and no engine keeps it: it was only on the host where the agent lived before; a state that begins a fresh session does not need it",
                    failure.message
                );
                TurnFailure { message, ..failure }
            }
            Some(_) | None => failure,
        }
    }
}

impl StepRunner for HostedRunner {
    fn run(
        self: Rc<Self>,
        mut input: TurnInput,
        notices: TurnNoticeHandler,
    ) -> LocalFuture<TurnOutcome> {
        Box::pin(async move {
            if let Err(error) = place_results(&mut input, &self.results) {
                let failure = TurnFailure::new(FailureCause::Storage, error.to_string());
                return TurnOutcome::Failed(failure);
            }
            if let Err(failure) = self.bring(&input).await {
                return TurnOutcome::Failed(failure);
            }
            match Rc::clone(&self.inner).run(input.clone(), notices).await {
                TurnOutcome::Replied(mut reply) => {
                    reply.session = self.keep(&input).await;
                    TurnOutcome::Replied(reply)
                }
                TurnOutcome::Failed(failure) => {
                    TurnOutcome::Failed(self.explained(failure, &input))
                }
            }
        })
    }

    fn started_turns(&self, turns: Vec<TurnId>) -> Vec<TurnId> {
        self.inner.started_turns(turns)
    }

    fn capacity(&self) -> usize {
        self.inner.capacity()
    }

    fn fits(&self) -> usize {
        self.inner.fits()
    }

    fn idle_agents(&self) -> Vec<AgentId> {
        self.inner.idle_agents()
    }

    fn keep(&self, agent: &AgentId, wanted: &dyn Fn(&SessionId) -> bool) {
        self.inner.keep(agent, wanted);
    }

    fn offer(&self) -> Option<SessionId> {
        self.inner.offer()
    }

    fn promise(&self, session: &SessionId) {
        self.inner.promise(session);
    }

    fn stop(&self, agent: &AgentId) {
        self.inner.stop(agent);
    }

    fn stop_all(&self, how: StopLevel) {
        self.inner.stop_all(how);
    }

    fn sweep(self: Rc<Self>, keep: Vec<TurnId>) -> LocalFuture<usize> {
        Rc::clone(&self.inner).sweep(keep)
    }

    fn sweeps_all_processes(&self) -> bool {
        self.inner.sweeps_all_processes()
    }
}

// The texts of the turns that ran on this host, for viewers of the run.

/// The longest text that is given, in bytes.
const MAX_TEXT_BYTES: usize = 1024 * 1024;

/// The most bytes of all texts that are given at once.
const MAX_BYTES: u64 = 8 * 1024 * 1024;

/// Returns the texts of turns from the directory of their files: of the first one, and of the others as long as there
/// is room.
pub(super) async fn transcript(steps: PathBuf, turns: Vec<TurnId>, max_bytes: u64) -> HostAnswer {
    let room = usize::try_from(max_bytes.min(MAX_BYTES)).unwrap_or(usize::MAX);
    let reading = move || {
        let (mut found, mut bytes) = (Vec::new(), 0_usize);
        for turn in turns {
            let texts =
                texts(&steps, turn).map_err(|error| format!("{}: {error}", steps.display()))?;
            bytes = bytes.saturating_add(texts.bytes());
            if bytes > room && !found.is_empty() {
                break;
            }
            found.push(texts);
        }
        Ok::<_, String>(found)
    };
    match spawn_blocking(reading).await {
        Ok(Ok(found)) => HostAnswer::Transcript { found },
        Ok(Err(why)) => HostAnswer::Refused { why },
        Err(panicked) => HostAnswer::Refused { why: panicked.to_string() },
    }
}

fn texts(steps: &std::path::Path, turn: TurnId) -> std::io::Result<TurnTexts> {
    let stem = turn.stem();
    let transcript = TurnTranscript::find(steps, &stem).map(TurnTranscript::prompt_and_reply);
    let found = transcript.transpose()?.unwrap_or_default();
    let mut is_cut = false;
    let mut cut = |text: String| {
        let end = text.floor_char_boundary(MAX_TEXT_BYTES);
        is_cut |= end < text.len();
        text[..end].to_owned()
    };
    let (prompt, answer) = (found.prompt.map(&mut cut), found.answer.map(&mut cut));
    let script = script_output(steps, &stem)?.map(|output| {
        output.map(|texts| ScriptTexts {
            stdout: cut(texts.stdout),
            stderr: cut(texts.stderr),
            ..texts
        })
    });
    Ok(TurnTexts { turn, prompt, answer, script, is_cut })
}

// The file with the results of a join, as a turn at a host finds it.

/// Writes the results that a turn has waited for into a file of this host. Its path takes the place of the one on the
/// supervisor's machine, in the prompt and in the values.
pub(super) fn place_results(input: &mut TurnInput, results: &Path) -> Result<(), store::Error> {
    let (Some(elsewhere), Some(list)) =
        (input.values.get(RESULTS_FILE).cloned(), input.values.get(RESULTS).cloned())
    else {
        return Ok(());
    };
    let Some(name) = Path::new(&elsewhere).file_name() else { return Ok(()) };
    let path = results.join(name);
    make_dir(results)?;
    replace(&path, list.as_bytes())?;
    let here = path.display().to_string();
    if input.reads_results {
        input.prompt = input.prompt.replace(&elsewhere, &here);
    }
    input.values.insert(RESULTS_FILE.to_owned(), here);
    Ok(())
}

// A run as a host has it: a copy of its workflow, the runner of its turns, and the executor of its activities.

/// The places of a host.
#[derive(Clone)]
pub(super) struct HostPlaces {
    /// The directory of the runs that it hosts.
    pub(super) root: RunsRoot,
    /// The directory that all hosts share.
    pub(super) shared_dir: Option<PathBuf>,
    /// The user's own state.
    pub(super) state: UserState,
    /// The epoch of the host.
    pub(super) epoch: HostEpoch,
    /// The permissions that the host gives to runs.
    pub(super) policy: HostPolicy,
    /// The keeper of the sessions of all runs.
    pub(super) sessions: Arc<SessionKeeper>,
}

/// A run as a host has it.
pub(super) struct HostedRun {
    pub(super) runner: Rc<dyn StepRunner>,
    pub(super) performer: Rc<dyn ActivityExecutor>,
    policy: HostPolicy,
    settings: Settings,
    /// Keeps another worker of this directory out.
    _store: LockedRun,
}

/// The parts of a hosted run that are fetched off the worker's thread.
pub(super) struct FetchedRun {
    store: LockedRun,
    run: Run,
    settings: Settings,
    /// The clone of its exchange that its agents work in.
    exchange: Option<ExchangeCopy>,
}

impl HostPlaces {
    /// Fetches what a host needs of a run, and checks that the host allows it.
    ///
    /// # Errors
    /// The reason why the run cannot work here.
    pub(super) fn fetch(&self, engine: &dyn Engine, id: &RunId) -> Result<FetchedRun, String> {
        let fetched = sharing::host_copy(engine, id, &self.root, &self.state);
        let HostedCopy { mut store, run, mut settings } =
            fetched.map_err(|error| error.to_string())?;
        if let Some(why) = self.policy.refusal(&settings) {
            return Err(why);
        }
        let exchange = exchange::cloned(&self.root, id, &settings, self.epoch)?;
        settings.cwd = match &exchange {
            Some(copy) => copy.root().display().to_string(),
            None => self.workspace(id, &settings)?,
        };
        store.set_key(self.state.key().map_err(|error| error.to_string())?);
        Ok(FetchedRun { store, run, settings, exchange })
    }

    /// Returns the directory of a run's agents on this host: the same directory if it is below the shared directory, or
    /// else a separate directory.
    fn workspace(&self, id: &RunId, settings: &Settings) -> Result<String, String> {
        let directory = Path::new(&settings.cwd);
        if let Some(shared) = &settings.shared_dir
            && self.shared_dir.as_deref() != Some(Path::new(shared))
        {
            return Err(format!(
                "the hosts of the run share {shared}, but this worker does not; start it with --shared-dir {shared}"
            ));
        }
        if let Some(shared) = &self.shared_dir
            && directory.starts_with(shared)
        {
            return real_below(directory, shared);
        }
        let workspace = self.root.path().join("workspaces").join(id.as_str());
        files::make_dir(&workspace).map_err(|error| error.to_string())?;
        Ok(workspace.display().to_string())
    }

    /// Makes the runner and the executor of a run.
    ///
    /// # Errors
    /// The reason why the run cannot work here.
    pub(super) fn host(&self, fetched: FetchedRun) -> Result<HostedRun, String> {
        self.parts(fetched).map_err(|error| error.to_string())
    }

    fn parts(&self, fetched: FetchedRun) -> Result<HostedRun, Error> {
        let FetchedRun { store, run, settings, exchange } = fetched;
        let id = &run.workflow_id;
        let pins = pinned::load(&store.dir().pins())?;
        let pins = pins.ok_or_else(|| Error::NoCopy { path: store.dir().workflow() })?;
        store.repair_copy(&pins)?;
        let scope = pinned_scope(&run, &settings, store.dir(), pins, None)?;
        let (steps, proofs) = (store.dir().steps(), store.step_proofs(false));
        let built = build_answerer(
            &settings,
            &scope,
            steps.clone(),
            &self.root,
            id,
            &self.state,
            proofs.clone(),
        );
        let runner = built.unwrap_or_else(|error| Rc::new(UnavailableRunner(error.to_string())));
        let dirs = working_dirs(&self.root, id, &settings).with_snapshots(run.worktrees.clone());
        let dirs = dirs.with_exchange(exchange);
        let runner = HostedRunner::around(runner, &settings, dirs.clone(), store.dir().results())
            .with_sessions(Arc::clone(&self.sessions));
        let marker = EnvironmentMarker { run: id.clone(), dir: self.root.path().to_owned() };
        let space = Dataspace::of(&self.root).with_key(&self.state.key()?);
        let performer = GraphSetup::default().world(RunWorld {
            working_dirs: dirs,
            steps,
            proofs,
            marker,
            space,
            settings: &settings,
            scope: &scope,
            starter: Arc::new(NoStarter),
        });
        let policy = self.policy;
        Ok(HostedRun { runner: Rc::new(runner), performer, policy, settings, _store: store })
    }
}

impl HostedRun {
    /// Returns whether its turns cost nothing.
    pub(super) fn has_free_turns(&self) -> bool {
        !self.settings.answerer.calls_model()
    }

    /// Returns why the host does not carry out a request; `None` if it does.
    pub(super) fn refusal_of(&self, work: &HostWork) -> Option<String> {
        self.policy.refusal_of(work, &self.settings)
    }
}

/// Returns the real path of a directory, which no `..` and no link may lead out of the shared one.
fn real_below(directory: &Path, shared: &Path) -> Result<String, String> {
    let real = |path: &Path| path.canonicalize().map_err(|error| error.to_string());
    match (real(directory), real(shared)) {
        (Ok(found), Ok(top)) if found.starts_with(&top) && found.is_dir() => found
            .into_os_string()
            .into_string()
            .map_err(|_| "its path is not valid UTF-8".to_owned()),
        (Ok(found), Ok(_)) => Err(format!(
            "{} is {}, which is not below the shared directory {}",
            directory.display(),
            found.display(),
            shared.display()
        )),
        (Err(why), _) | (_, Err(why)) => Err(format!(
            "{} is below the shared directory, but is not on this host ({why}); mount it",
            directory.display()
        )),
    }
}

/// The starter of runs at a host, which starts none: the supervisor does.
#[derive(Debug)]
struct NoStarter;

impl ProgramStarter for NoStarter {
    fn start(&self, _: &TurnId, _: &WorkflowStart) -> Result<StartedRun, StartFailure> {
        Err(StartFailure::Refused("a host starts no runs, their supervisor does".to_owned()))
    }
}

#[cfg(test)]
mod transcripts_tests {
    use super::*;
    use crate::domain::id::AgentId;

    fn turn(step: u64) -> TurnId {
        TurnId { agent: AgentId::main(), step, turn: 0 }
    }

    #[tokio::test]
    async fn texts_are_given_up_to_a_length() {
        let steps = tempfile::tempdir().expect("a folder");
        let write = |step: u64, prompt: &str| {
            let write = |ending: &str, text: &str| {
                let path = steps.path().join(format!("{}.{ending}", turn(step).stem()));
                std::fs::write(path, text).expect("written");
            };
            write("jsonl", "{\"type\":\"result\",\"result\":\"yes\"}\n");
            write("prompt", prompt);
        };
        write(1, "short");
        write(2, &"x".repeat(2 * MAX_TEXT_BYTES));
        write(4, "late");
        let all: Vec<TurnId> = (1..=4).map(turn).collect();
        let found = |turns: Vec<TurnId>, bytes| async move {
            match transcript(steps.path().to_owned(), turns, bytes).await {
                HostAnswer::Transcript { found } => found,
                other => panic!("{other:?}"),
            }
        };
        let texts = found(all[..1].to_vec(), 1).await;
        assert_eq!(texts.len(), 1, "the first one is always given");
        assert_eq!(
            (texts[0].prompt.as_deref(), texts[0].answer.as_deref()),
            (Some("short"), Some("yes"))
        );
    }
}

#[cfg(test)]
mod placed_results_tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn prompt_names_the_file_of_this_host() {
        let kept = tempfile::tempdir().expect("a folder");
        let results = kept.path().join("results");
        let elsewhere = "/supervisor/results/main-2.json";
        let mut input: TurnInput = serde_json::from_value(json!({
            "version": 1, "turn": { "agent": "main", "step": 2, "turn": 0 }, "state": "A.md",
            "reads_results": true, "visit": 0,
            "session": { "session_id": "a", "origin": "fresh" }, "model": null,
            "limits": { "idle_timeout_ms": 1, "timeout_ms": 1, "shutdown_ms": 1 },
            "prompt": format!("read {elsewhere}, all of {elsewhere}"),
            "values": { "results": "[1]", "results_file": elsewhere },
        }))
        .expect("an input");
        place_results(&mut input, &results).expect("placed");
        let here = results.join("main-2.json").display().to_string();
        assert_eq!(std::fs::read_to_string(&here).expect("it is there"), "[1]");
        assert_eq!(input.prompt, format!("read {here}, all of {here}"));
        assert_eq!(input.values.get(RESULTS_FILE), Some(&here));
    }
}
