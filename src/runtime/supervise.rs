//! A prepared run and its plug-ins, under supervision until it has ended or holds still.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::sync::mpsc;

use super::answerer::runner_for;
use super::companions;
use super::error::Error;
use super::plugins::PlugIns;
use crate::actor::clock::now;
use crate::actor::launch::{Launch, supervise};
use crate::actor::registry::Registry;
use crate::actor::supervisor::Start;
use crate::domain::id::RunId;
use crate::domain::run::Run;
use crate::plugin::debug::Debug;
use crate::plugin::external::Place;
use crate::process::command::Marker;
use crate::process::companion;
use crate::store::layout::Root;
use crate::store::run_store::RunStore;
use crate::store::workflow::Directory;

/// A message for each time that someone wants the run to end: the first gives running turns their
/// grace, a second ends them at once.
pub type Interrupts = mpsc::UnboundedReceiver<()>;

/// A run that is ready to be supervised.
#[derive(Debug)]
pub struct Prepared {
    /// Its directory.
    pub store: RunStore,
    /// Its state.
    pub run: Run,
    /// How it begins.
    pub start: Start,
    /// What someone should know.
    pub warnings: Vec<String>,
}

impl Prepared {
    /// Its id.
    #[must_use]
    pub fn id(&self) -> &RunId {
        &self.run.workflow_id
    }
}

/// Supervises a run until it has ended or holds still. `registry` is the live picture it keeps. Needs
/// a running actix system.
///
/// # Errors
/// [`Error`] if it cannot begin, or cannot be kept.
pub async fn supervised(
    prepared: Prepared,
    root: &Root,
    mut plugins: PlugIns,
    registry: Arc<Registry>,
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
    if settings.debug {
        match Debug::create(&root.debug(), &run.workflow_id, now(), steps) {
            Ok(debug) => plugins.add_own("debug", debug),
            Err((path, error)) => {
                tracing::warn!("no debug directory is kept: {}: {error}", path.display());
            }
        }
    }
    let id = run.workflow_id.clone();
    let marker = Marker { run: id.clone(), dir: root.path().to_owned() };
    let has_programs = !settings.plugins.is_empty();
    if has_programs || !run.settings.plugins.is_empty() {
        companion::sweep(&marker).await;
    }
    let place = Place {
        run: id.clone(),
        journal: store.dir().journal().display().to_string(),
        seq: if matches!(start, Start::New(_)) { 0 } else { run.seq },
        total_cost: run.total_cost_usd,
    };
    if let Err(error) = companions::start(&mut plugins, &settings, &marker, &place).await {
        plugins.finish().await;
        return Err(error);
    }
    let source = Arc::new(scope);
    let (observers, advisers) = plugins.take();
    let launch = Launch { store, run, start, source, runner, registry, observers, advisers };
    let outcome = supervise(launch, interrupts).await;
    tokio::select! {
        () = plugins.finish() => {}
        Some(()) = interrupts.recv() => {}
    }
    if has_programs {
        companion::sweep(&marker).await;
    }
    outcome.map_err(|error| Error::Broken { id, error })
}
