//! The entry of the library: takes the target of a run and its plug-ins, and runs it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use actix::{Actor, Context, Handler};
use serde_json::{Map, Value};
use tokio::sync::mpsc;

use super::create::{PreparedRun, RunOutcome, create};
use super::directories;
use super::error::Error;
use super::graphs::{self, GraphSetup};
use super::plugins::{PlugIns, PluginOptions};
use super::request::RunRequest;
use super::resume::resume;
use super::seals;
use super::supervise::{InterruptReceiver, supervised};
use super::trust::RunStarter;
use super::workflow::{Workflow, settings_of};
use crate::actor::observer::{Consult, Published};
use crate::actor::process::StayUp;
use crate::actor::registry::AgentRegistry;
use crate::domain::id::RunId;
use crate::domain::operation::{OperationResult, RecoveryClass};
use crate::domain::settings::Settings;
use crate::store::dataspace::Dataspace;
use crate::store::layout::RunsRoot;
use crate::store::run_store::LockedRun;
use crate::store::trust::TrustOrigin;
use crate::store::user_state::UserState;

/// The entry point of the library.
///
/// ```no_run
/// use raymond::Runtime;
///
/// # async fn example() -> Result<(), raymond::runtime::Error> {
/// let outcome = Runtime::builder()
///     .workflow("workflows/tour")
///     .input("a short walk")
///     .configure(|settings| settings.budget_usd = Some(raymond::domain::money::Usd::from_dollars(1.0)))
///     .run()
///     .await?;
/// println!("{} spent", outcome.cost());
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Runtime;

impl Runtime {
    /// Returns an empty builder.
    pub fn builder() -> Builder {
        Builder {
            target: None,
            dir: PathBuf::from(".raymond"),
            request: RunRequest::default(),
            options: PluginOptions::default(),
            configure: Vec::new(),
            plugins: Vec::new(),
            interrupts: None,
            graphs: GraphSetup::default(),
            user_state: None,
            trusts: false,
        }
    }
}

/// The workflow or the run to start.
enum BuilderTarget {
    Workflow(PathBuf),
    Run(String),
}

type SettingsFn = Box<dyn FnOnce(&mut Settings)>;
type PluginSetupFn = Box<dyn FnOnce(&mut PlugIns)>;

/// A builder of a run: its target, its plug-ins and its settings.
#[must_use = "nothing runs before `run`"]
pub struct Builder {
    target: Option<BuilderTarget>,
    dir: PathBuf,
    request: RunRequest,
    options: PluginOptions,
    configure: Vec<SettingsFn>,
    plugins: Vec<PluginSetupFn>,
    interrupts: Option<InterruptReceiver>,
    graphs: GraphSetup,
    user_state: Option<PathBuf>,
    trusts: bool,
}

impl Builder {
    /// Runs a workflow from its beginning: a folder with `START.md` or `workflow.yaml`, or such a file.
    pub fn workflow(mut self, path: impl Into<PathBuf>) -> Self {
        self.target = Some(BuilderTarget::Workflow(path.into()));
        self
    }

    /// Resumes a run that was started before.
    pub fn resume(mut self, run: impl Into<String>) -> Self {
        self.target = Some(BuilderTarget::Run(run.into()));
        self
    }

    /// Sets the directory of all runs; the default is `.raymond`.
    pub fn dir(mut self, dir: impl Into<PathBuf>) -> Self {
        self.dir = dir.into();
        self
    }

    /// Sets the id of a new run; by default one is chosen.
    pub fn id(mut self, id: RunId) -> Self {
        self.request.id = Some(id);
        self
    }

    /// Sets the text for `{{input}}` in the first state of a new run.
    pub fn input(mut self, text: impl Into<String>) -> Self {
        self.request.input = Some(text.into());
        self
    }

    /// Sets whether a new run is refused if `raymond check` finds an error in what its first state leads to; it
    /// is by default.
    pub fn check(mut self, check: bool) -> Self {
        self.request.no_check = !check;
        self
    }

    /// Changes the settings: a new run has those of its workflow, a resumed run has its own. The programs that a
    /// workflow asks for as plug-ins are in [`Settings::plugins`].
    pub fn configure(mut self, change: impl FnOnce(&mut Settings) + 'static) -> Self {
        self.configure.push(Box::new(change));
        self
    }

    /// Sets the time that plug-ins added after this call may take to answer. The default is two seconds. A plug-in that
    /// does not answer in time counts as having answered [`Proceed`](crate::domain::consult::ConsultVerdict::Proceed).
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.options.deadline = deadline;
        self
    }

    /// Sets whether the run needs the plug-ins added after this call: it pauses if one of them has failed, or does not
    /// answer in time.
    pub fn required(mut self, required: bool) -> Self {
        self.options.required = required;
        self
    }

    /// Adds an observer: a plug-in that receives every record after it is committed.
    pub fn observer<A>(mut self, name: &str, actor: A) -> Self
    where
        A: Actor<Context = Context<A>> + Handler<Published> + Send,
    {
        let (name, options) = (name.to_owned(), self.options);
        self.plugins.push(Box::new(move |plugins| plugins.add_observer(&name, options, actor)));
        self
    }

    /// Adds an interceptor: an observer that is also asked before a turn starts, and before a transition is taken.
    pub fn interceptor<A>(mut self, name: &str, actor: A) -> Self
    where
        A: Actor<Context = Context<A>> + Handler<Published> + Handler<Consult> + Send,
    {
        let (name, options) = (name.to_owned(), self.options);
        self.plugins.push(Box::new(move |plugins| plugins.add_interceptor(&name, options, actor)));
        self
    }

    /// Sets the receiver of requests to end the run: after the first message, running turns have their grace; a
    /// second ends them.
    pub fn interrupts(mut self, interrupts: InterruptReceiver) -> Self {
        self.interrupts = Some(interrupts);
        self
    }

    /// Trusts the workflow's folder, or the run's directory, in its present form: everything it asks for besides
    /// prompts is executed.
    pub fn trust(mut self) -> Self {
        self.trusts = true;
        self
    }

    /// Sets the directory of the user's key, of the trust in folders, and of the seals of runs. The default is
    /// `raymond` in `XDG_STATE_HOME`, or in `~/.local/state`. No agent should be able to write there.
    pub fn user_state(mut self, path: impl Into<PathBuf>) -> Self {
        self.user_state = Some(path.into());
        self
    }

    /// Adds a type of preconditions for the graphs of this run, with its required and its optional parameters. It
    /// answers `true` or `false` and changes nothing: it may be asked again after a crash.
    ///
    /// A type of this name that exists already is an error of [`Builder::run`].
    pub fn precondition<F, P>(
        mut self,
        name: &str,
        required: &[&str],
        optional: &[&str],
        answers: F,
    ) -> Self
    where
        F: Fn(Map<String, Value>) -> P + Send + Sync + 'static,
        P: Future<Output = OperationResult> + Send + 'static,
    {
        self.graphs.offer(name, graphs::precondition(required, optional), answers);
        self
    }

    /// Adds a type of consequences. Its result is stored where the graph says `store_as`; `class` decides the recovery
    /// from a crash in the middle of it. Its future runs in a task of raymond and must not block; it is dropped while
    /// it waits if the run is stopped, or after half an hour.
    ///
    /// ```no_run
    /// use raymond::{RecoveryClass, Runtime};
    /// use serde_json::json;
    ///
    /// # fn main() -> Result<(), raymond::runtime::Error> {
    /// let outcome = Runtime::builder()
    ///     .workflow("flows/greet/workflow.yaml")
    ///     .precondition("is_known", &["person"], &[], |parameters| async move {
    ///         Ok(json!(parameters["person"] == "Ada"))
    ///     })
    ///     .consequence("greet", &["person"], &["loudly"], RecoveryClass::Uncertain, |parameters| async move {
    ///         let person = parameters["person"].as_str().ok_or("`person` is not a text")?;
    ///         Ok(json!({ "said": format!("Hello, {person}!") }))
    ///     })
    ///     .run_here()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn consequence<F, P>(
        mut self,
        name: &str,
        required: &[&str],
        optional: &[&str],
        class: RecoveryClass,
        does: F,
    ) -> Self
    where
        F: Fn(Map<String, Value>) -> P + Send + Sync + 'static,
        P: Future<Output = OperationResult> + Send + 'static,
    {
        self.graphs.offer(name, graphs::consequence(required, optional, class), does);
        self
    }

    /// Sets whether agents resume in graphs that have been edited since the agents entered them.
    pub fn migrate(mut self, migrate: bool) -> Self {
        self.graphs.migrate = migrate;
        self
    }

    /// Sets whether the run stays up while questions wait, instead of pausing; answers come by
    /// [`Settings::answers`], or by `raymond answer`.
    pub fn stay(mut self, stay: StayUp) -> Self {
        self.graphs.stay_up = stay;
        self
    }

    /// Runs the target until every agent has ended or the run is paused. Needs an actix system, as under
    /// `#[actix::main]`. Everything is recorded in the directory of all runs: [`Builder::resume`] resumes a run
    /// that was paused, or whose program was killed.
    ///
    /// # Errors
    /// [`Error`] if the run cannot begin, or cannot be recorded.
    pub async fn run(mut self) -> Result<RunOutcome, Error> {
        if actix::System::try_current().is_none() {
            return Err(Error::NoSystem);
        }
        self.graphs.check_offers()?;
        let root = directories::root(&self.dir)?;
        let (_nobody, silence) = mpsc::unbounded_channel();
        let mut interrupts = self.interrupts.take().unwrap_or(silence);
        let plugs = std::mem::take(&mut self.plugins);
        let prepared = match self.prepare(&root)? {
            RunReadiness::Over(outcome) => return Ok(*outcome),
            RunReadiness::Goes(prepared) => *prepared,
        };
        let mut plugins = PlugIns::default();
        for plug in plugs {
            plug(&mut plugins);
        }
        for warning in prepared.warnings.iter().chain(&prepared.notes) {
            tracing::warn!("{warning}");
        }
        let registry = Arc::new(AgentRegistry::default());
        let run = supervised(prepared, &root, plugins, registry, &mut interrupts).await?;
        Ok(RunOutcome { run })
    }

    /// Runs the target like [`Builder::run`], on this thread and with its own actix system.
    ///
    /// # Errors
    /// As [`Builder::run`].
    pub fn run_here(self) -> Result<RunOutcome, Error> {
        actix::System::new().block_on(self.run())
    }

    fn prepare(self, root: &RunsRoot) -> Result<RunReadiness, Error> {
        let state = self
            .user_state
            .map_or_else(directories::user_state, |path| Ok(UserState::new(path)))?;
        let starter = RunStarter {
            state,
            confirmation: self.trusts.then_some(TrustOrigin::Flag),
            confirmed: std::collections::BTreeSet::new(),
        };
        let trusts = self.trusts;
        let change = |settings: &mut Settings| {
            settings.consent.trusts_workflow |= trusts;
            for change in self.configure {
                change(settings);
            }
        };
        match self.target.ok_or(Error::Nothing)? {
            BuilderTarget::Workflow(path) => {
                let workflow = Workflow::open(&path)?;
                let mut settings = settings_of(&workflow);
                change(&mut settings);
                settings.cwd = directories::directory(Path::new(&settings.cwd))?;
                let prepared =
                    create(root, &workflow, &self.request, settings, self.graphs, &starter)?;
                Ok(RunReadiness::Goes(Box::new(prepared)))
            }
            BuilderTarget::Run(id) => {
                let (store, recovered) = LockedRun::open(root, &RunId::parse(&id)?)?;
                if !recovered.run.can_resume() {
                    if !trusts {
                        seals::check_ended(&starter.state, root, &recovered.run)?;
                    }
                    Dataspace::of(root)
                        .with_key(&starter.state.key()?)
                        .ended(&recovered.run.workflow_id)?;
                    return Ok(RunReadiness::Over(Box::new(RunOutcome { run: recovered.run })));
                }
                let mut settings = recovered.run.settings.clone();
                change(&mut settings);
                let prepared = resume(store, recovered, settings, self.graphs, root, &starter)?;
                Ok(RunReadiness::Goes(Box::new(prepared)))
            }
        }
    }
}

/// The work that is left.
enum RunReadiness {
    /// No work: every agent has ended already.
    Over(Box<RunOutcome>),
    /// A run.
    Goes(Box<PreparedRun>),
}
