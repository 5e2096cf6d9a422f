//! The actor of a plug-in that is a program, in any language.
//!
//! It sends the events, asks for verdicts, and restarts a program that has died.
//!
//! The program never delays the run for longer than one deadline. Sending a record never waits: records that the
//! program does not read in time are left out and counted. The program is asked only after its hello, and only the
//! questions it wants. A question to a program that has not said hello yet, or is being restarted, waits until the
//! deadline at most. When its restarts are used up, the run continues without it. If it is required, this actor stops,
//! and the run pauses.

mod answers;
mod lifecycle;
mod pipe;
mod plugin_handle;
mod plugin_line;

use std::collections::BTreeMap;

use actix::{Actor, ActorContext, Context, Handler, Message, ResponseFuture};
use tokio::sync::oneshot;

use self::pipe::{PluginLine, PluginOutbox};
pub use self::plugin_handle::{GRACE, PluginExit, PluginHandle, PluginSpawner, SpawnedPlugin};
use self::plugin_line::WarnOnce;
use crate::actor::message::{Consult, FinishPublishing, Published};
use crate::domain::consult::{ConsultVerdict, Consultation};
use crate::domain::id::RunId;
use crate::domain::money::Usd;
use crate::domain::protocol::{HostMessage, PluginHello};
use crate::domain::settings::PlugIn;
use crate::domain::time::Timestamp;

/// The actor of a program.
pub struct ExternalPlugin {
    plugin: PlugIn,
    spawn: Box<dyn PluginSpawner>,
    position: RunPosition,
    state: PluginStatus,
    questions: BTreeMap<u64, PendingConsult>,
    asked: u64,
    starts: u64,
    restarts: Vec<Timestamp>,
    ready: Option<oneshot::Sender<Result<(), String>>>,
    finishing: Option<oneshot::Sender<()>>,
}

/// The position of a run.
#[derive(Debug, Clone)]
pub struct RunPosition {
    /// Its id.
    pub run: RunId,
    /// Its journal.
    pub journal: String,
    /// The last record that the program is not told any more.
    pub seq: u64,
    /// The cost of the run up to that record.
    pub total_cost: Usd,
}

/// The state of a program.
enum PluginStatus {
    /// It runs.
    Up(RunningPlugin),
    /// It is to be started.
    Down,
    /// It is not started any more.
    Gone,
}

/// A program that runs.
struct RunningPlugin {
    outbox: PluginOutbox,
    /// Everything that was sent has been written.
    written: oneshot::Receiver<()>,
    /// Tells its watcher that its stdin is closed.
    closed: oneshot::Sender<()>,
    hello: Option<PluginHello>,
    complaints: WarnOnce,
    missed: u64,
}

/// A question that waits for an answer.
struct PendingConsult {
    question: Consultation,
    answer: oneshot::Sender<ConsultVerdict>,
}

/// To the actor: a line of the program that was started so many times. Returns whether the line was useful.
#[derive(Message)]
#[rtype(result = "bool")]
struct PluginLineReceived {
    start: u64,
    line: PluginLine,
}

/// To the actor: the program has ended.
#[derive(Message)]
#[rtype(result = "()")]
struct PluginEnded(PluginExit);

impl ExternalPlugin {
    /// Returns an actor for a program, which it starts when it is started itself; `ready` is told whether that was
    /// possible.
    pub fn new(
        plugin: PlugIn,
        spawn: Box<dyn PluginSpawner>,
        position: RunPosition,
        ready: oneshot::Sender<Result<(), String>>,
    ) -> Self {
        Self {
            plugin,
            spawn,
            position,
            state: PluginStatus::Down,
            questions: BTreeMap::new(),
            asked: 0,
            starts: 0,
            restarts: Vec::new(),
            ready: Some(ready),
            finishing: None,
        }
    }

    /// Gives the program up: the run continues without it, or pauses if it is required.
    fn be_gone(&mut self, why: &str, ctx: &mut Context<Self>) {
        self.state = PluginStatus::Gone;
        for id in self.questions.keys().copied().collect::<Vec<_>>() {
            self.give_up_on(id, why);
        }
        if self.plugin.required {
            tracing::warn!("the plug-in {} {why}; the run needs it", self.plugin.name);
            ctx.stop();
        } else {
            tracing::warn!("the plug-in {} {why}: the run continues without it", self.plugin.name);
        }
    }
}

fn send(outbox: &PluginOutbox, message: &HostMessage<'_>) {
    match serde_json::to_string(message) {
        Ok(line) => outbox.send(line),
        Err(error) => tracing::error!("a message to a plug-in cannot be written: {error}"),
    }
}

impl Actor for ExternalPlugin {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        self.launch(ctx);
    }
}

impl Handler<Published> for ExternalPlugin {
    type Result = ();

    fn handle(&mut self, published: Published, _: &mut Self::Context) {
        self.position.seq = published.record.seq;
        self.position.total_cost = published.total_cost;
        let PluginStatus::Up(up) = &mut self.state else { return };
        up.missed += published.missed;
        if !up.outbox.has_room() {
            if up.missed == published.missed {
                tracing::warn!(
                    "the plug-in {} does not read its input, and misses records until it does",
                    self.plugin.name
                );
            }
            up.missed += 1;
            return;
        }
        let message = HostMessage::Record {
            record: &published.record,
            total_cost_usd: published.total_cost,
            missed: std::mem::take(&mut up.missed),
        };
        send(&up.outbox, &message);
    }
}

impl Handler<Consult> for ExternalPlugin {
    type Result = ResponseFuture<ConsultVerdict>;

    fn handle(&mut self, Consult(question): Consult, _: &mut Self::Context) -> Self::Result {
        let failed = self.without_an_answer("has failed");
        let (answer, answered) = oneshot::channel();
        if !matches!(self.state, PluginStatus::Gone) {
            self.asked += 1;
            self.questions.insert(self.asked, PendingConsult { question, answer });
            self.ask(self.asked);
        }
        Box::pin(async move { answered.await.unwrap_or(failed) })
    }
}

impl Handler<FinishPublishing> for ExternalPlugin {
    type Result = ResponseFuture<()>;

    /// Tells the program that the run is over, and waits for its end.
    fn handle(&mut self, _: FinishPublishing, _: &mut Self::Context) -> Self::Result {
        let (done, finished) = oneshot::channel();
        if let PluginStatus::Up(up) = std::mem::replace(&mut self.state, PluginStatus::Gone) {
            self.finishing = Some(done);
            send(&up.outbox, &HostMessage::Finish);
            lifecycle::close(up.outbox, up.written, up.closed);
        }
        Box::pin(async move {
            let _ = finished.await;
        })
    }
}

impl Handler<PluginLineReceived> for ExternalPlugin {
    type Result = bool;

    fn handle(&mut self, heard: PluginLineReceived, ctx: &mut Self::Context) -> bool {
        if heard.start != self.starts || !matches!(self.state, PluginStatus::Up(_)) {
            return false;
        }
        match self.hear(heard.line) {
            Ok(()) => true,
            Err(flaw) => {
                self.on_flaw(&flaw, ctx);
                false
            }
        }
    }
}

impl Handler<PluginEnded> for ExternalPlugin {
    type Result = ();

    fn handle(&mut self, PluginEnded(end): PluginEnded, ctx: &mut Self::Context) {
        self.ended(&end, ctx);
    }
}
