//! Starts the actors of a run and stays until it is over.

use std::rc::Rc;
use std::sync::Arc;

use actix::{Actor, AsyncContext, Recipient};
use tokio::sync::{mpsc, oneshot};

use super::context::{Context, Superior};
use super::message::{Interrupt, Journaled, Published};
use super::registry::Registry;
use super::runner::{StepRunner, Stop};
use super::supervisor::{Parts, Start, Supervisor};
use crate::domain::agent::Agent;
use crate::domain::event::Event;
use crate::domain::run::Run;
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
    /// The live picture it keeps.
    pub registry: Arc<Registry>,
    /// Who is told of every record.
    pub observers: Vec<Recipient<Published>>,
}

/// Supervises a run until it is over or holds still. Each message on `interrupts` is a signal of
/// someone who wants it to end. Needs a running actix system.
///
/// # Errors
/// [`store::Error`] if its directory cannot be written; no process of it is left then either.
pub async fn supervise(
    launch: Launch,
    mut interrupts: mpsc::UnboundedReceiver<()>,
) -> Result<Run, store::Error> {
    let Launch { mut store, run, start, source, runner, registry, observers } = launch;
    let due = run.agents.values().map(Agent::turn_id).collect();
    Rc::clone(&runner).sweep(due).await;

    let settings = match &start {
        Start::Again(event) => match &**event {
            Event::RunResumed { settings } => (**settings).clone(),
            _ => run.settings.clone(),
        },
        Start::New(_) | Start::Begun => run.settings.clone(),
    };
    let (tell, mut journaled) = mpsc::unbounded_channel();
    store.start_writer(move |outcome| drop(tell.send(outcome)))?;
    let journal = store.dir().journal();
    let (done, mut over) = oneshot::channel();
    let shared = Rc::clone(&runner);
    let supervisor = Supervisor::create(move |ctx| {
        let context = Rc::new(Context {
            workflow: run.workflow_id.clone(),
            variables: settings.variables,
            model: settings.model,
            source,
            runner: shared,
            registry,
            supervisor: Superior {
                permits: ctx.address().recipient(),
                reports: ctx.address().recipient(),
                deaths: ctx.address().recipient(),
            },
        });
        Supervisor::new(Parts { run, store, start, context, observers, done })
    });
    let outcome = loop {
        tokio::select! {
            outcome = &mut over => break outcome,
            Some(outcome) = journaled.recv() => supervisor.do_send(Journaled(outcome)),
            Some(()) = interrupts.recv() => supervisor.do_send(Interrupt),
        }
    };
    let error = match outcome {
        Ok(Ok(run)) => return written(&mut journaled).map(|()| run),
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

/// What the journal's thread said last, after it had ended: the last snapshot may have failed.
fn written(journaled: &mut mpsc::UnboundedReceiver<Outcome>) -> Result<(), store::Error> {
    while let Ok(outcome) = journaled.try_recv() {
        if let Outcome::Failed(error) = outcome {
            return Err(error);
        }
    }
    Ok(())
}
