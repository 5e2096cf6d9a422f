//! Starts the actors of a run and stays until it is over.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use actix::{Actor, Addr, AsyncContext};
use serde_json::{Map, Value};
use tokio::sync::{mpsc, oneshot};

use super::context::{RunContext, SupervisorHandle};
use super::observer::{HostsSeen, InterruptRun, JournalReported, Observer, PluginInterceptor};
use super::registry::AgentRegistry;
use super::runner::{ActivityExecutor, StepRunner, StopLevel};
use super::supervisor::{PlacementMode, Supervisor, SupervisorArgs, SupervisorStart};
use crate::actor::process::StayUp;
use crate::domain::agent::Agent;
use crate::domain::placement::HostSighting;
use crate::domain::run::Run;
use crate::domain::turn::TurnThrottle;
use crate::domain::widening::PermissionCeiling;
use crate::language::resume::workflow_cache::WorkflowCache;
use crate::language::source::WorkflowSource;
use crate::store;
use crate::store::log::WriteOutcome;
use crate::store::run_store::LockedRun;

/// A run and everything that it runs with.
pub struct RunLaunch {
    /// Its directory.
    pub store: LockedRun,
    /// Its state.
    pub run: Run,
    /// The way it begins.
    pub start: SupervisorStart,
    /// The workflow's files.
    pub source: Arc<dyn WorkflowSource>,
    /// The runner that answers turns.
    pub runner: Rc<dyn StepRunner>,
    /// The executor of activities.
    pub performer: Rc<dyn ActivityExecutor>,
    /// The graphs and programs that have been read.
    pub workflows: WorkflowCache,
    /// The built-in variables of graphs.
    pub builtins: Map<String, Value>,
    /// The placement of its agents, and what the hosts are, again and again; `None` if all agents live on this machine.
    pub hosts: Option<HostFeed>,
    /// The reasons to stay up while everything waits.
    pub stay_up: StayUp,
    /// The live picture it keeps.
    pub registry: Arc<AgentRegistry>,
    /// The observers of every record.
    pub observers: Vec<Observer>,
    /// The plug-ins that may change decisions.
    pub interceptors: Vec<PluginInterceptor>,
}

/// The news about hosts for a supervisor.
pub struct HostFeed {
    /// The placement of agents.
    pub mode: PlacementMode,
    /// The hosts, all of them each time.
    pub seen: mpsc::UnboundedReceiver<Vec<HostSighting>>,
}

/// Supervises a run until it is over or holds still. Each message on `interrupts` is a signal that the run should
/// end. Needs a running actix system.
///
/// # Errors
/// [`store::Error`] if its directory cannot be written. Turns of this machine that ran then run on.
pub async fn supervise(
    launch: RunLaunch,
    interrupts: &mut mpsc::UnboundedReceiver<()>,
) -> Result<Run, store::Error> {
    let RunLaunch {
        mut store, run, start, source, runner, registry, observers, interceptors, ..
    } = launch;
    let RunLaunch { performer, workflows, builtins, stay_up, hosts, .. } = launch;
    let (placement, mut seen) = hosts.map(|feed| (feed.mode, feed.seen)).unzip();
    let is_on_hosts = seen.is_some();
    let begun = runner.begun_turns(run.agents.values().map(Agent::turn_id).collect());
    // Also before the first turn: a run of this id may have been removed while its processes lived.
    Rc::clone(&runner).sweep(begun.clone()).await;
    let settings = start.settings(&run).clone();
    let throttle = TurnThrottle::new(runner.capacity());
    let (tell, journaled) = mpsc::unbounded_channel();
    store.start_writer(move |outcome| {
        let _ = tell.send(outcome);
    })?;
    let journal = store.dir().journal();
    let results = store.dir().results();
    let (done, over) = oneshot::channel();
    let (released, let_go) = oneshot::channel();
    let shared = Rc::clone(&runner);
    let supervisor = Supervisor::create(move |ctx| {
        let context = Rc::new(RunContext {
            ceiling: PermissionCeiling::of(&settings),
            source,
            runner: shared,
            performer,
            workflows,
            builtins,
            registry,
            warned: RefCell::default(),
            interceptors,
            results,
            forking: settings.forking,
            total_cost: Cell::new(run.total_cost_usd),
            supervisor: handle(&ctx.address()),
        });
        Supervisor::new(SupervisorArgs {
            run,
            store,
            start,
            begun,
            throttle,
            context,
            placement,
            stay_up,
            observers,
            done,
            released,
        })
    });
    let error = match forwarded(&supervisor, over, (journaled, seen.as_mut()), interrupts).await {
        Ok(Ok(run)) => {
            // The run stays locked until the supervisor is gone; then its journal can be sealed.
            let _ = let_go.await;
            return Ok(run);
        }
        Ok(Err(error)) if !is_on_hosts => return Err(error),
        Ok(Err(error)) => error,
        Err(_) => store::Error::Stopped {
            path: journal,
            why: "the supervisor itself failed; resume the run".to_owned(),
        },
    };
    runner.stop_all(StopLevel::Now);
    runner.sweep(Vec::new()).await;
    Err(error)
}

/// Returns the handle that agents have of a supervisor.
fn handle(supervisor: &Addr<Supervisor>) -> SupervisorHandle {
    SupervisorHandle {
        reports: supervisor.clone().recipient(),
        tasks: supervisor.clone().recipient(),
        activities: supervisor.clone().recipient(),
        approvals: supervisor.clone().recipient(),
        read_messages: supervisor.clone().recipient(),
        throttles: supervisor.clone().recipient(),
        deaths: supervisor.clone().recipient(),
    }
}

/// Tells a supervisor what the journal and the user say until it is over; returns its outcome.
async fn forwarded<T>(
    supervisor: &Addr<Supervisor>,
    mut over: oneshot::Receiver<T>,
    (mut journaled, mut hosts): (
        mpsc::UnboundedReceiver<WriteOutcome>,
        Option<&mut mpsc::UnboundedReceiver<Vec<HostSighting>>>,
    ),
    interrupts: &mut mpsc::UnboundedReceiver<()>,
) -> Result<T, oneshot::error::RecvError> {
    let mut journal_lives = true;
    loop {
        tokio::select! {
            outcome = &mut over => return outcome,
            written = journaled.recv(), if journal_lives => {
                journal_lives = written.is_some();
                supervisor.do_send(JournalReported(written.unwrap_or(WriteOutcome::Failed)));
            }
            Some(seen) = next(&mut hosts) => supervisor.do_send(HostsSeen(seen)),
            Some(()) = interrupts.recv() => supervisor.do_send(InterruptRun),
        }
    }
}

/// Returns the next news about the hosts; without a channel, never returns.
async fn next(
    hosts: &mut Option<&mut mpsc::UnboundedReceiver<Vec<HostSighting>>>,
) -> Option<Vec<HostSighting>> {
    match hosts {
        Some(hosts) => hosts.recv().await,
        None => std::future::pending().await,
    }
}
