//! Starts the actors of a run and stays until it is over.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use actix::{Actor, AsyncContext};
use serde_json::{Map, Value};
use tokio::sync::{mpsc, oneshot};

use super::adviser::Adviser;
use super::context::{Context, Superior};
use super::definitions::Definitions;
use super::message::{Interrupt, Journaled};
use super::observer::Observer;
use super::performer::Performer;
use super::programs::Programs;
use super::registry::Registry;
use super::runner::{StepRunner, Stop};
use super::stay::Stay;
use super::supervisor::{Parts, Start, Supervisor};
use crate::domain::agent::Agent;
use crate::domain::run::Run;
use crate::domain::throttle::Throttle;
use crate::domain::widening::PermissionCeiling;
use crate::language::source::Source;
use crate::store;
use crate::store::run_store::RunStore;
use crate::store::writer::Outcome;

/// A run and what it runs with.
pub struct Launch {
    /// Its directory.
    pub store: RunStore,
    /// Its state.
    pub run: Run,
    /// How it begins.
    pub start: Start,
    /// The workflow's files.
    pub source: Arc<dyn Source>,
    /// Who answers.
    pub runner: Rc<dyn StepRunner>,
    /// Who performs the operations of graphs.
    pub performer: Rc<dyn Performer>,
    /// The graphs.
    pub programs: Programs,
    /// What graphs know of their surroundings.
    pub builtins: Map<String, Value>,
    /// Whether it stays up while questions wait.
    pub stays: Stay,
    /// The live picture it keeps.
    pub registry: Arc<Registry>,
    /// Who is told of every record.
    pub observers: Vec<Observer>,
    /// The plug-ins that have a say.
    pub advisers: Vec<Adviser>,
}

/// Supervises a run until it is over or holds still. Each message on `interrupts` is a signal of
/// someone who wants it to end. Needs a running actix system.
///
/// # Errors
/// [`store::Error`] if its directory cannot be written; no process of it is left then either.
pub async fn supervise(
    launch: Launch,
    interrupts: &mut mpsc::UnboundedReceiver<()>,
) -> Result<Run, store::Error> {
    let Launch { mut store, run, start, source, runner, registry, observers, advisers, .. } =
        launch;
    let Launch { performer, programs, builtins, stays, .. } = launch;
    let begun = runner.begun(run.agents.values().map(Agent::turn_id).collect());
    Rc::clone(&runner).sweep(begun.clone()).await;
    let settings = start.settings(&run).clone();
    let throttle = Throttle::new(runner.capacity());
    let (tell, mut journaled) = mpsc::unbounded_channel();
    store.start_writer(move |outcome| {
        let _ = tell.send(outcome);
    })?;
    let journal = store.dir().journal();
    let results = store.dir().results();
    let (done, mut over) = oneshot::channel();
    let shared = Rc::clone(&runner);
    let supervisor = Supervisor::create(move |ctx| {
        let context = Rc::new(Context {
            workflow: run.workflow_id.clone(),
            ceiling: PermissionCeiling::of(&settings),
            options: settings.options,
            variables: settings.variables,
            model: settings.model,
            on_denied: settings.on_denied,
            source,
            runner: shared,
            performer,
            programs,
            definitions: Definitions::default(),
            builtins,
            registry,
            warned: RefCell::default(),
            advisers,
            results,
            forking: settings.forking,
            supervisor: Superior {
                reports: ctx.address().recipient(),
                errands: ctx.address().recipient(),
                throttles: ctx.address().recipient(),
                deaths: ctx.address().recipient(),
            },
        });
        Supervisor::new(Parts {
            run,
            store,
            start,
            begun,
            throttle,
            context,
            stays,
            observers,
            done,
        })
    });
    let mut journal_lives = true;
    let outcome = loop {
        tokio::select! {
            outcome = &mut over => break outcome,
            told = journaled.recv(), if journal_lives => {
                journal_lives = told.is_some();
                supervisor.do_send(Journaled(told.unwrap_or(Outcome::Failed)));
            }
            Some(()) = interrupts.recv() => supervisor.do_send(Interrupt),
        }
    };
    let error = match outcome {
        Ok(Ok(run)) => return Ok(run),
        Ok(Err(error)) => error,
        Err(_) => store::Error::Stopped {
            path: journal,
            why: "the supervisor itself failed; run it again to go on".to_owned(),
        },
    };
    runner.stop_all(Stop::Now);
    runner.sweep(Vec::new()).await;
    Err(error)
}
