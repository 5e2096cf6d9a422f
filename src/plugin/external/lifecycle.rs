//! The life of a plug-in process: its start and hello, its restarts, its end.

use std::time::Duration;

use actix::{AsyncContext, Context};
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::pipe::{PluginLine, PluginOutbox, listen};
use super::plugin_handle::{GRACE, PluginExit, SpawnedPlugin, accompany};
use super::plugin_line::WarnOnce;
use super::{ExternalPlugin, PluginEnded, PluginLineReceived, PluginStatus, RunningPlugin, send};
use crate::actor::context::now;
use crate::domain::protocol::{HostHello, HostMessage, VERSION};
use crate::domain::restart::next_restart;
use crate::domain::supervision::RestartPolicy;
use crate::domain::time::{Timestamp, format_duration};
use crate::plugin::external::plugin_handle::StderrLimiter;

/// The time to wait for the last output of a program that has ended: another may hold its pipes.
const PIPE_GRACE: Duration = Duration::from_millis(500);

impl ExternalPlugin {
    /// Starts the process.
    pub(super) fn launch(&mut self, ctx: &mut Context<Self>) {
        if !matches!(self.state, PluginStatus::Down) {
            return;
        }
        let started = self.spawn.spawn();
        let first = self.ready.take();
        match (started, first) {
            (Ok(program), first) => {
                if let Some(ready) = first {
                    let _ = ready.send(Ok(()));
                }
                self.starts += 1;
                self.state = PluginStatus::Up(self.greet(program, ctx));
            }
            (Err(error), Some(ready)) => {
                self.state = PluginStatus::Gone;
                let _ = ready.send(Err(error.to_string()));
            }
            (Err(error), None) => {
                let end = PluginExit { well: false, how: format!("cannot be started: {error}") };
                self.ended(&end, ctx);
            }
        }
    }

    /// Says hello to a program, and listens to it from now on.
    fn greet(&self, program: SpawnedPlugin, ctx: &mut Context<Self>) -> RunningPlugin {
        let SpawnedPlugin { stdin, stdout, stderr, life } = program;
        let (outbox, written) = PluginOutbox::open(stdin);
        let hello = HostMessage::Hello(HostHello {
            version: VERSION,
            run: &self.position.run,
            plugin: &self.plugin.name,
            journal: &self.position.journal,
            seq: self.position.seq,
            total_cost_usd: self.position.total_cost,
            start: self.starts,
        });
        send(&outbox, &hello);
        let (start, own) = (self.starts, ctx.address());
        let reading_stdout = actix::spawn(async move {
            let hear =
                async |line| own.send(PluginLineReceived { start, line }).await.unwrap_or(false);
            listen(stdout, hear).await;
        });
        let name = self.plugin.name.clone();
        let reading_stderr = actix::spawn(async move {
            let mut stderr_limiter = StderrLimiter::default();
            let pass_on = async |line| {
                let PluginLine::Whole(line) = line else { return false };
                let shown = stderr_limiter.shown(&line, now());
                if let Some(text) = &shown {
                    tracing::warn!("the plug-in {name} says: {text}");
                }
                shown.is_some()
            };
            listen(stderr, pass_on).await;
        });
        let (closed, stdin_closed) = oneshot::channel();
        let own = ctx.address();
        actix::spawn(async move {
            let end = accompany(life, stdin_closed).await;
            for mut reading in [reading_stdout, reading_stderr] {
                if timeout(PIPE_GRACE, &mut reading).await.is_err() {
                    reading.abort();
                }
            }
            let _ = own.send(PluginEnded(end)).await;
        });
        RunningPlugin {
            outbox,
            written,
            closed,
            hello: None,
            complaints: WarnOnce::default(),
            missed: 0,
        }
    }

    /// Handles the program's end: it is started again if its policy says so and it has restarts left.
    pub(super) fn ended(&mut self, end: &PluginExit, ctx: &mut Context<Self>) {
        if let Some(finishing) = self.finishing.take() {
            if !end.well {
                tracing::warn!(
                    "the plug-in {} {} at the end of the run",
                    self.plugin.name,
                    end.how
                );
            }
            let _ = finishing.send(());
            return;
        }
        if matches!(self.state, PluginStatus::Gone) {
            return;
        }
        self.state = PluginStatus::Down;
        let supervision = self.plugin.supervision();
        let restart = match (supervision.restart, end.well) {
            (RestartPolicy::Temporary, _) | (RestartPolicy::Transient, true) => false,
            (RestartPolicy::Transient, false) | (RestartPolicy::Permanent, _) => true,
        };
        if !restart {
            return self.be_gone(&end.how, ctx);
        }
        let at = now();
        match next_restart(&self.restarts, &supervision, at, chance(at)) {
            Err(because) => self.be_gone(&format!("{}, {because}", end.how), ctx),
            Ok(due) => {
                let wait = due.since(at);
                let (name, how) = (&self.plugin.name, &end.how);
                tracing::warn!(
                    "the plug-in {name} {how}; raymond restarts it in {}",
                    format_duration(wait)
                );
                self.restarts.retain(|&earlier| at.since(earlier) < supervision.period_ms);
                self.restarts.push(at);
                ctx.run_later(Duration::from_millis(wait), Self::launch);
            }
        }
    }
}

/// Lets a program read all lines that were sent, as long as it does, and closes its stdin; its watcher does the
/// rest.
pub(super) fn close(
    outbox: PluginOutbox,
    written: oneshot::Receiver<()>,
    closed: oneshot::Sender<()>,
) {
    drop(outbox);
    actix::spawn(async move {
        let _ = timeout(GRACE, written).await;
        let _ = closed.send(());
    });
}

/// Returns a number from 0 up to 1 that spreads restarts in time.
fn chance(now: Timestamp) -> f64 {
    f64::from(u32::try_from(now.0 % 1000).unwrap_or(0)) / 1000.0
}
