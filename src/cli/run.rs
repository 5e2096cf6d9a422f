//! `raymond run` and `raymond resume`: a run in the foreground, from its beginning or going on.

use std::ffi::OsString;
use std::io::{IsTerminal, stderr, stdout};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use actix::{Actor, Addr, Arbiter, Handler, Recipient};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;
use uuid::Uuid;

use super::args::RunArgs;
use super::exit::{Error, Exit};
use super::target::{self, Target};
use super::{diagnostics, output, settings, summary};
use crate::actor::clock::now;
use crate::actor::launch::{Launch, supervise};
use crate::actor::message::{Finish, Published};
use crate::actor::registry::Registry;
use crate::actor::runner::StepRunner;
use crate::actor::scripted::Scripted;
use crate::actor::supervisor::Start;
use crate::domain::event::{Event, Record, RunStarted};
use crate::domain::id::{AgentId, RunId, SessionId, StateName};
use crate::domain::run::{Run, STATE_VERSION, Status};
use crate::domain::settings::{Answerer, Settings};
use crate::domain::transition::Variables;
use crate::language::prompt::step::{Position, step};
use crate::language::replies::{self, Replies};
use crate::language::source::Source;
use crate::plugin::console::Console;
use crate::plugin::debug::Debug;
use crate::plugin::lines::Lines;
use crate::plugin::terminal::Terminal;
use crate::process::claude::Claude;
use crate::process::command::{Marker, locate};
use crate::store::layout::Root;
use crate::store::run_store::RunStore;
use crate::store::workflow::Directory;

/// A run that is ready to be supervised.
pub struct Prepared {
    store: RunStore,
    run: Run,
    start: Start,
    warnings: Vec<String>,
}

/// `raymond run`
///
/// # Errors
/// [`Error`] if it cannot begin, or cannot be kept.
pub fn run(args: &RunArgs) -> Result<Exit, Error> {
    let root = root(args)?;
    match target::resolve(&args.target, &root)? {
        Target::Workflow { scope, entry } => {
            let prepared = create(args, &root, &scope, entry)?;
            supervise_here(args, &root, prepared)
        }
        Target::Run(id) => go_on(args, &root, &id),
    }
}

/// `raymond resume`
///
/// # Errors
/// [`Error`] if there is no such run, or it cannot be kept.
pub fn resume(args: &RunArgs) -> Result<Exit, Error> {
    let root = root(args)?;
    go_on(args, &root, &RunId::parse(&args.target)?)
}

fn go_on(args: &RunArgs, root: &Root, id: &RunId) -> Result<Exit, Error> {
    let (store, recovered) = RunStore::open(root, id)?;
    let settings = settings::again(args, recovered.run.settings.clone())?;
    if matches!(recovered.run.status, Status::Completed | Status::Failed) {
        return conclude(args, &recovered.run);
    }
    let start = Start::Again(Box::new(Event::RunResumed { settings: Box::new(settings) }));
    let prepared = Prepared { store, run: recovered.run, start, warnings: recovered.warnings };
    supervise_here(args, root, prepared)
}

/// The directory of all runs, as an absolute path, so that it means the same to everyone.
pub(super) fn root(args: &RunArgs) -> Result<Root, Error> {
    std::path::absolute(&args.dir.dir).map(Root::new).map_err(|error| Error::Io {
        doing: "find the directory",
        path: args.dir.dir.clone(),
        error,
    })
}

/// Makes a new run from a workflow, once everything that can be checked has been.
pub(super) fn create(
    args: &RunArgs,
    root: &Root,
    scope: &Directory,
    entry: StateName,
) -> Result<Prepared, Error> {
    let settings = settings::new(args)?;
    let workflow_id = args.id.clone().unwrap_or_else(|| new_id(scope.root(), &entry));
    let variables: Variables =
        [("input".to_owned(), args.input.clone().unwrap_or_default())].into();
    let position = Position {
        workflow: workflow_id.clone(),
        agent: AgentId::main(),
        state: entry.clone(),
        variables: variables.clone(),
        run_variables: settings.variables.clone(),
    };
    step(&position, scope)?;
    runner_for(&settings, scope, PathBuf::new(), root, &workflow_id)?;
    let started = RunStarted {
        version: STATE_VERSION,
        workflow_id,
        scope_dir: settings::directory(scope.root())?,
        entry,
        session: SessionId::new(&Uuid::new_v4().to_string()),
        variables,
        settings,
    };
    let first = Record { seq: 1, at: now(), event: Event::RunStarted(Box::new(started)) };
    let (store, run) = RunStore::create(root, &first)?;
    Ok(Prepared { store, run, start: Start::New(Box::new(first)), warnings: Vec::new() })
}

impl Prepared {
    /// Lets go of the run, for another process to take up.
    pub(super) fn release(self) -> RunId {
        self.run.workflow_id
    }
}

/// `tour-20260115-143022-1a2b` for `workflows/tour/START.md`.
fn new_id(scope: &Path, entry: &StateName) -> RunId {
    let folder = scope.file_name().and_then(|name| name.to_str()).unwrap_or("run");
    let base = if entry.as_str() == "START.md" { folder } else { entry.stem() };
    let plain: String = base
        .chars()
        .filter(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'))
        .take(32)
        .collect();
    let name = if plain.starts_with(|c: char| c.is_ascii_alphanumeric()) {
        plain
    } else {
        format!("run{plain}")
    };
    let time = jiff::Zoned::now().strftime("%Y%m%d-%H%M%S").to_string();
    let unique = &Uuid::new_v4().simple().to_string()[..4];
    RunId::parse(&format!("{name}-{time}-{unique}"))
        .unwrap_or_else(|_| new_id(Path::new("run"), entry))
}

/// Who answers, under a run's settings.
fn runner_for(
    settings: &Settings,
    scope: &Directory,
    steps: PathBuf,
    root: &Root,
    run: &RunId,
) -> Result<Rc<dyn StepRunner>, Error> {
    match settings.answerer {
        Answerer::Scripted => {
            let file = StateName::parse(replies::FILE)?;
            let path = scope.path(&file);
            let yaml = scope.read(&file).map_err(crate::language::prompt::step::Error::from)?;
            Ok(Rc::new(Scripted::new(path.clone(), Replies::parse(&path, &yaml)?)))
        }
        Answerer::Claude => {
            let search: Option<OsString> = std::env::var_os("PATH");
            let program = locate(&settings.claude, search.as_deref())
                .ok_or_else(|| Error::NoClaude { program: settings.claude.clone() })?;
            let program = std::path::absolute(&program).unwrap_or(program);
            let marker = Marker { run: run.clone(), dir: root.path().to_owned() };
            Ok(Rc::new(Claude::new(program, settings.clone(), steps, marker)))
        }
    }
}

fn supervise_here(args: &RunArgs, root: &Root, prepared: Prepared) -> Result<Exit, Error> {
    let terminal = if stderr().is_terminal() && !args.json {
        Terminal::live()
    } else {
        Terminal::plain(stderr())
    };
    diagnostics::show_on(terminal.clone());
    prepared.warnings.iter().for_each(|warning| tracing::warn!("{warning}"));
    let run = actix::System::new().block_on(supervised(args, root, prepared, terminal.clone()));
    terminal.clear();
    conclude(args, &run?)
}

async fn supervised(
    args: &RunArgs,
    root: &Root,
    prepared: Prepared,
    terminal: Terminal,
) -> Result<Run, Error> {
    let Prepared { store, run, start, .. } = prepared;
    let settings = match &start {
        Start::Again(event) => match &**event {
            Event::RunResumed { settings } => (**settings).clone(),
            _ => run.settings.clone(),
        },
        Start::New(_) | Start::Begun => run.settings.clone(),
    };
    let scope = Directory::open(Path::new(&run.scope_dir)).map_err(|error| Error::Io {
        doing: "open the workflow's directory",
        path: PathBuf::from(&run.scope_dir),
        error,
    })?;
    let steps = store.dir().steps();
    let runner = runner_for(&settings, &scope, steps.clone(), root, &run.workflow_id)?;
    let registry = Arc::new(Registry::default());
    let interrupts = signals()?;

    let mut observers = Observers::new();
    observers.add(Console::new(terminal, Arc::clone(&registry), &run));
    if args.json {
        observers.add(Lines::new(stdout()));
    }
    if settings.debug {
        match Debug::create(&root.debug(), &run.workflow_id, now(), steps) {
            Ok(debug) => observers.add(debug),
            Err((path, error)) => {
                tracing::warn!("no debug directory is kept: {}: {error}", path.display());
            }
        }
    }
    let published = observers.published.clone();
    let id = run.workflow_id.clone();
    let source = Arc::new(scope);
    let launch = Launch { store, run, start, source, runner, registry, observers: published };
    let outcome = supervise(launch, interrupts).await;
    observers.finish().await;
    outcome.map_err(|error| Error::Broken { id, error })
}

/// The observers of a run, on a thread of their own.
struct Observers {
    arbiter: Arbiter,
    published: Vec<Recipient<Published>>,
    finish: Vec<Recipient<Finish>>,
}

impl Observers {
    fn new() -> Self {
        Self { arbiter: Arbiter::new(), published: Vec::new(), finish: Vec::new() }
    }

    fn add<A>(&mut self, actor: A)
    where
        A: Actor<Context = actix::Context<A>> + Handler<Published> + Handler<Finish> + Send,
    {
        let address: Addr<A> = A::start_in_arbiter(&self.arbiter.handle(), |_| actor);
        self.published.push(address.clone().recipient());
        self.finish.push(address.recipient());
    }

    /// Waits until all have dealt with everything; one that has failed is not waited for.
    async fn finish(self) {
        for observer in &self.finish {
            let _ = observer.send(Finish).await;
        }
        self.arbiter.stop();
    }
}

/// A message for each SIGINT or SIGTERM from now on.
fn signals() -> Result<mpsc::UnboundedReceiver<()>, Error> {
    let (tell, told) = mpsc::unbounded_channel();
    for kind in [SignalKind::interrupt(), SignalKind::terminate()] {
        let mut stream = signal(kind).map_err(|error| Error::Io {
            doing: "listen for signals of",
            path: "this process".into(),
            error,
        })?;
        let tell = tell.clone();
        actix::spawn(
            async move { while stream.recv().await.is_some() && tell.send(()).is_ok() {} },
        );
    }
    Ok(told)
}

fn conclude(args: &RunArgs, run: &Run) -> Result<Exit, Error> {
    if !args.json {
        output::print(&summary::endings(run))?;
    }
    output::tell(&summary::closing(run));
    Ok(Exit::of(run))
}
