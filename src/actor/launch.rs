//! Starts the actors of a run and stays until it is over.

use std::rc::Rc;

use actix::{Actor, Addr, AsyncContext};
use tokio::sync::{mpsc, oneshot};

use super::context::SupervisorHandle;
use super::observer::{HostsSeen, InterruptRun, JournalReported};
use super::runner::StopLevel;
use super::supervisor::{RunLaunch, Supervisor, SupervisorEnds};
use crate::domain::agent::Agent;
use crate::domain::placement::HostSighting;
use crate::domain::run::Run;
use crate::store;
use crate::store::log::WriteOutcome;

/// Supervises a run until it is over or holds still. Each message on `interrupts` is a signal that the run should
/// end. Needs a running actix system.
///
/// # Errors
/// [`store::Error`] if its directory cannot be written. Turns of this machine that ran then run on.
pub async fn supervise(
    mut launch: RunLaunch,
    interrupts: &mut mpsc::UnboundedReceiver<()>,
) -> Result<Run, store::Error> {
    let (placement, mut hosts) = launch.hosts.take().map(|feed| (feed.mode, feed.seen)).unzip();
    let runner = Rc::clone(&launch.runner);
    let started = runner.started_turns(launch.run.agents.values().map(Agent::turn_id).collect());
    // Also before the first turn: a run of this id may have been removed while its processes lived.
    Rc::clone(&runner).sweep(started.clone()).await;
    let (tell, mut journaled) = mpsc::unbounded_channel();
    launch.store.start_writer(move |outcome| {
        let _ = tell.send(outcome);
    })?;
    let journal = launch.store.dir().journal();
    let (done, over) = oneshot::channel();
    let (released, let_go) = oneshot::channel();
    let ends = SupervisorEnds { done, released };
    let supervisor = Supervisor::create(move |ctx| {
        Supervisor::new(launch, placement, started, ends, handle(&ctx.address()))
    });
    let error = match forwarded(&supervisor, over, &mut journaled, hosts.as_mut(), interrupts).await
    {
        Ok(Ok(run)) => {
            // The run stays locked until the supervisor is gone; then its journal can be sealed.
            let _ = let_go.await;
            return Ok(run);
        }
        Ok(Err(error)) if hosts.is_none() => return Err(error),
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
    journaled: &mut mpsc::UnboundedReceiver<WriteOutcome>,
    mut hosts: Option<&mut mpsc::UnboundedReceiver<Vec<HostSighting>>>,
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
