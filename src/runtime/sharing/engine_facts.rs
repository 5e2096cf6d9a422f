//! The facts of an engine's runs: their dataspace on this machine is a copy, which a thread keeps up to date.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::run_engine::{HeldRun, store_error};
use crate::engine::shared_log::FactAppend;
use crate::engine::shared_log::RunLease;
use crate::engine::{Engine, EngineError};
use crate::proof::ProofKey;
use crate::store;
use crate::store::dataspace::Dataspace;
use crate::store::layout::RunsRoot;
use crate::store::shared_copy::{NumberedChange, SharedFacts};

/// The longest wait for changes of other machines.
const FACT_WAIT: Duration = Duration::from_millis(500);

/// The log of the changes of facts in an engine.
#[derive(Debug)]
struct EngineFacts {
    engine: Arc<dyn Engine>,
    /// The lease of the run that makes the changes; `None` for a person or a script.
    lease: Option<RunLease>,
}

/// Returns the dataspace of a directory: with an engine, the copy of the facts that all runs of the engine share.
pub fn facts_of(root: &RunsRoot, key: &ProofKey, engine: Option<&Arc<dyn Engine>>) -> Dataspace {
    shared_facts(root, key, engine, None)
}

/// Returns the dataspace as [`facts_of`] does, for the steps of a run. A supervisor whose run was taken over changes no
/// fact any more.
pub(in crate::runtime) fn facts_of_run(
    root: &RunsRoot,
    key: &ProofKey,
    engine: Option<&Arc<dyn Engine>>,
    held: Option<&HeldRun>,
) -> Dataspace {
    shared_facts(root, key, engine, held.map(|held| held.lease.clone()))
}

fn shared_facts(
    root: &RunsRoot,
    key: &ProofKey,
    engine: Option<&Arc<dyn Engine>>,
    lease: Option<RunLease>,
) -> Dataspace {
    let space = Dataspace::of(root).with_key(key);
    match engine.cloned() {
        Some(engine) => space.shared_by(Arc::new(EngineFacts { engine, lease })),
        None => space,
    }
}

impl EngineFacts {
    fn failed(&self, error: &EngineError) -> store::Error {
        match &self.lease {
            _ if error.is_passing() => store::Error::Unreached(error.to_string()),
            Some(lease) => store_error(error, &lease.run),
            None => store::Error::Engine(error.to_string()),
        }
    }
}

impl SharedFacts for EngineFacts {
    fn name(&self) -> String {
        self.engine.address().to_string()
    }

    fn changes(&self, after: u64, limit: usize) -> Result<Vec<NumberedChange>, store::Error> {
        let changes =
            self.engine.fact_changes(after, limit).map_err(|error| self.failed(&error))?;
        let numbered = changes.into_iter();
        Ok(numbered.map(|one| NumberedChange { number: one.number, text: one.text }).collect())
    }

    fn append(&self, after: u64, text: &str) -> Result<bool, store::Error> {
        match self.engine.append_fact_change(self.lease.as_ref(), after, text) {
            Ok(FactAppend::Appended) => Ok(true),
            Ok(FactAppend::Crossed) => Ok(false),
            Err(error) if error.is_passing() => Err(store::Error::Unreached(format!(
                "{error}; whether the fact was changed is unknown: look with `raymond facts`"
            ))),
            Err(error) => Err(self.failed(&error)),
        }
    }
}

/// The thread that keeps the copy of the facts up to date. It ends soon after this is dropped; nobody waits for that.
#[derive(Debug)]
pub(in crate::runtime) struct FactThread(Arc<AtomicBool>);

impl FactThread {
    /// Starts the thread.
    pub(in crate::runtime) fn start(engine: Arc<dyn Engine>, space: Dataspace) -> Self {
        let ends = Arc::new(AtomicBool::new(false));
        let end = Arc::clone(&ends);
        let named = std::thread::Builder::new().name("facts".to_owned());
        let started = named.spawn(move || {
            while !end.load(Ordering::Relaxed) {
                if let Err(error) = follow(&*engine, &space) {
                    // The log says that the engine cannot be reached, and what a program needs says why it cannot be had.
                    tracing::debug!("{error}");
                    std::thread::sleep(FACT_WAIT);
                }
            }
        });
        if let Err(error) = started {
            tracing::warn!(
                "facts of other machines are not seen here: no thread for them: {error}"
            );
        }
        Self(ends)
    }
}

/// Waits a while for changes, and makes them here.
fn follow(engine: &dyn Engine, space: &Dataspace) -> Result<(), String> {
    let known = space.known_changes().map_err(|error| error.to_string())?;
    engine.wait_for_fact_changes(known, FACT_WAIT).map_err(|error| error.to_string())?;
    space.pull().map_err(|error| error.to_string())
}

impl Drop for FactThread {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
