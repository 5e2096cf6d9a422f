//! A run as a host has it: a copy of its workflow, the runner of its turns, and the executor of its activities.

use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use super::hosted_runner::HostedRunner;
use super::policy::HostPolicy;
use super::session_keeper::SessionKeeper;
use crate::actor::activity_executor::ActivityExecutor;
use crate::actor::runner::StepRunner;
use crate::actor::runner::UnavailableRunner;
use crate::domain::host::HostEpoch;
use crate::domain::host_work::HostWork;
use crate::domain::id::RunId;
use crate::domain::run::Run;
use crate::domain::run_origin::{StartedRun, WorkflowStart};
use crate::domain::settings::Settings;
use crate::domain::turn::TurnId;
use crate::engine::Engine;
use crate::process::command::EnvironmentMarker;
use crate::process::working_dirs::ExchangeCopy;
use crate::runtime::answerer::build_answerer;
use crate::runtime::error::Error;
use crate::runtime::exchange;
use crate::runtime::graphs::{GraphSetup, working_dirs};
use crate::runtime::local_executor::{ProgramStarter, StartFailure};
use crate::runtime::sharing::{self, HostedCopy};
use crate::runtime::supervise::pinned_scope;
use crate::store::dataspace::Dataspace;
use crate::store::files;
use crate::store::layout::RunsRoot;
use crate::store::pinned;
use crate::store::run_store::LockedRun;
use crate::store::user_state::UserState;

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

    /// Returns the directory of a run's agents on this host: the same one below the shared directory, or one of its own.
    fn workspace(&self, id: &RunId, settings: &Settings) -> Result<String, String> {
        let own = Path::new(&settings.cwd);
        if let Some(shared) = &settings.shared_dir
            && self.shared_dir.as_deref() != Some(Path::new(shared))
        {
            return Err(format!(
                "the hosts of the run share {shared}, but this worker does not; start it with --shared-dir {shared}"
            ));
        }
        if let Some(shared) = &self.shared_dir
            && own.starts_with(shared)
        {
            return real_below(own, shared);
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
        store.mend_copy(&pins)?;
        let scope = pinned_scope(&run, &settings, store.dir(), (pins, None))?;
        let (steps, proofs) = (store.dir().steps(), store.step_proofs(false));
        let proven = (&self.state, proofs.clone());
        let built = build_answerer(&settings, &scope, steps.clone(), (&self.root, id), proven);
        let runner = match built {
            Ok(runner) => runner,
            Err(error) => Rc::new(UnavailableRunner(error.to_string())) as Rc<dyn StepRunner>,
        };
        let dirs = working_dirs(&self.root, id, &settings).with_snapshots(run.worktrees.clone());
        let dirs = dirs.with_exchange(exchange);
        let runner = HostedRunner::around(runner, &settings, dirs.clone(), store.dir().results())
            .with_sessions(Arc::clone(&self.sessions));
        let marker = EnvironmentMarker { run: id.clone(), dir: self.root.path().to_owned() };
        let space = Dataspace::of(&self.root).with_key(&self.state.key()?);
        let starting = (&settings, &scope, Arc::new(NoStarter) as Arc<dyn ProgramStarter>);
        let graphs = GraphSetup::default();
        let performer = graphs.world(dirs, (steps, proofs), marker, space, starting);
        let policy = self.policy;
        Ok(HostedRun { runner: Rc::new(runner), performer, policy, settings, _store: store })
    }
}

impl HostedRun {
    /// Returns whether its turns cost nothing.
    pub(super) fn has_free_turns(&self) -> bool {
        !self.settings.answerer.costs_money()
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
        (Ok(own), Ok(top)) if own.starts_with(&top) && own.is_dir() => {
            own.into_os_string().into_string().map_err(|_| "its path is not valid UTF-8".to_owned())
        }
        (Ok(own), Ok(_)) => Err(format!(
            "{} is {}, which is not below the shared directory {}",
            directory.display(),
            own.display(),
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
