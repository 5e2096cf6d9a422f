//! A run in this process, with someone looking on who may want it to end.

use std::ffi::OsString;
use std::io::{IsTerminal, stderr, stdout};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{mpsc, oneshot};

use super::exit::{Error, Exit};
use super::observers::Observers;
use super::{diagnostics, output, summary};
use crate::actor::clock::now;
use crate::actor::launch::{Launch, supervise};
use crate::actor::registry::Registry;
use crate::actor::runner::StepRunner;
use crate::actor::scripted::Scripted;
use crate::actor::supervisor::Start;
use crate::domain::id::{RunId, StateName};
use crate::domain::run::Run;
use crate::domain::settings::{Answerer, Settings};
use crate::language::prompt;
use crate::language::replies::{self, Replies};
use crate::language::source::{self, Source};
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
pub(super) struct Prepared {
    /// Its directory.
    pub(super) store: RunStore,
    /// Its state.
    pub(super) run: Run,
    /// How it begins.
    pub(super) start: Start,
    /// What someone should know.
    pub(super) warnings: Vec<String>,
}

impl Prepared {
    /// Lets go of the run, for another process to take up, once its warnings have been given.
    pub(super) fn release(self) -> RunId {
        for warning in &self.warnings {
            output::tell(&format!("warning: {warning}"));
        }
        self.run.workflow_id
    }
}

type Interrupts = mpsc::UnboundedReceiver<()>;

/// Supervises a run until it has ended or holds still, and says how.
///
/// # Errors
/// [`Error`] if it cannot begin, or cannot be kept.
pub(super) fn supervise_here(json: bool, root: &Root, prepared: Prepared) -> Result<Exit, Error> {
    let live = stderr().is_terminal() && !json;
    let terminal = if live { Terminal::live() } else { Terminal::plain(stderr()) };
    diagnostics::show_on(terminal.clone());
    for warning in &prepared.warnings {
        tracing::warn!("{warning}");
    }
    let run = actix::System::new().block_on(async {
        let mut interrupts = signals()?;
        let run = supervised(json, root, prepared, &terminal, &mut interrupts).await;
        terminal.clear();
        let run = run?;
        if !json {
            print_patiently(summary::endings(&run), &mut interrupts).await?;
        }
        Ok::<Run, Error>(run)
    })?;
    output::tell(&summary::closing(&run));
    Ok(Exit::of(&run))
}

async fn supervised(
    json: bool,
    root: &Root,
    prepared: Prepared,
    terminal: &Terminal,
    interrupts: &mut Interrupts,
) -> Result<Run, Error> {
    let Prepared { store, run, start, .. } = prepared;
    let settings = start.settings(&run).clone();
    let scope = Directory::open(Path::new(&run.scope_dir)).map_err(|error| Error::Io {
        doing: "open the workflow's directory",
        path: PathBuf::from(&run.scope_dir),
        error,
    })?;
    let steps = store.dir().steps();
    let runner = runner_for(&settings, &scope, steps.clone(), root, &run.workflow_id)?;
    let registry = Arc::new(Registry::default());

    let mut observers = Observers::new();
    if json {
        observers.add(Lines::new(stdout()));
    } else {
        observers.add(Console::new(terminal.clone(), Arc::clone(&registry), &run));
    }
    if settings.debug {
        match Debug::create(&root.debug(), &run.workflow_id, now(), steps) {
            Ok(debug) => observers.add(debug),
            Err((path, error)) => {
                tracing::warn!("no debug directory is kept: {}: {error}", path.display());
            }
        }
    }
    let id = run.workflow_id.clone();
    let source = Arc::new(scope);
    let launch =
        Launch { store, run, start, source, runner, registry, observers: observers.published() };
    let outcome = supervise(launch, interrupts).await;
    tokio::select! {
        () = observers.finish() => {}
        _ = interrupts.recv() => {}
    }
    outcome.map_err(|error| Error::Broken { id, error })
}

/// Prints a text to a reader who may not be reading, until an interrupt says that it is enough.
///
/// # Errors
/// [`Error::Io`] if it cannot be written.
async fn print_patiently(text: String, interrupts: &mut Interrupts) -> Result<(), Error> {
    let (done, printed) = oneshot::channel();
    let printing = std::thread::Builder::new().spawn(move || {
        let _ = done.send(output::print(&text));
    });
    if printing.is_err() {
        return Ok(());
    }
    tokio::select! {
        printed = printed => printed.unwrap_or(Ok(Exit::Success)).map(drop),
        _ = interrupts.recv() => Ok(()),
    }
}

/// A message for each SIGINT or SIGTERM from now on.
fn signals() -> Result<Interrupts, Error> {
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

/// Who answers, under a run's settings.
pub(super) fn runner_for(
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
            let yaml = scope.read(&file).map_err(|error| match error {
                source::Error::Missing { path, .. } => Error::NoScript { path },
                error => prompt::step::Error::from(error).into(),
            })?;
            Ok(Rc::new(Scripted::new(
                path.clone(),
                Replies::parse(&path, &yaml)?,
                settings.max_procs,
            )))
        }
        Answerer::Claude => {
            let search: Option<OsString> = std::env::var_os("PATH");
            let program = locate(&settings.claude, search.as_deref())
                .ok_or_else(|| no_claude(&settings.claude))?;
            let program = std::path::absolute(&program).unwrap_or(program);
            let marker = Marker { run: run.clone(), dir: root.path().to_owned() };
            Ok(Rc::new(Claude::new(program, settings.clone(), steps, marker)))
        }
    }
}

fn no_claude(program: &str) -> Error {
    if program.contains('/') && Path::new(program).exists() {
        return Error::NotAProgram { program: program.to_owned() };
    }
    Error::NoClaude { program: program.to_owned() }
}
