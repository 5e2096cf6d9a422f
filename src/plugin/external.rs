//! The actor of a plug-in that is a program, in any language.
//!
//! It sends the events, asks for verdicts, and restarts a program that has died.
//!
//! The program never delays the run for longer than one deadline. Sending a record never waits: records that the
//! program does not read in time are left out and counted. The program is asked only after its hello, and only the
//! questions it wants. A question to a program that has not said hello yet, or is being restarted, waits until the
//! deadline at most. When its restarts are used up, the run continues without it. If it is required, this actor stops,
//! and the run pauses.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use actix::{Actor, ActorContext, AsyncContext, Context, Handler, Message, ResponseFuture};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::oneshot;
use tokio::time::timeout;

use self::pipe::{PluginLine, PluginOutbox};
use crate::actor::context::now;
use crate::actor::observer::{Consult, FinishPublishing, Published};
use crate::domain::consult::{ConsultVerdict, Consultation, StopScope};
use crate::domain::id::RunId;
use crate::domain::money::Usd;
use crate::domain::protocol::{
    HookPoint, HostHello, HostMessage, PluginHello, PluginMessage, VERSION,
};
use crate::domain::restart::next_restart;
use crate::domain::settings::PlugIn;
use crate::domain::time::{Timestamp, format_duration};
use crate::domain::tool_call::first_characters;
use crate::plugin::external::pipe::{PluginLineError, PluginLineErrorKind, WarnOnce, listen, read};

mod pipe;

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
    /// The path of the journal's file, which the program gets.
    pub journal: String,
    /// The last record that is not sent to the program.
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
    /// It is not started again.
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
    /// Returns an actor for a program, which it starts when it is started itself. `ready` receives whether that was
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
            close(up.outbox, up.written, up.closed);
        }
        Box::pin(async move {
            let _ = finished.await;
        })
    }
}

impl Handler<PluginLineReceived> for ExternalPlugin {
    type Result = bool;

    fn handle(&mut self, received: PluginLineReceived, ctx: &mut Self::Context) -> bool {
        if received.start != self.starts || !matches!(self.state, PluginStatus::Up(_)) {
            return false;
        }
        match self.hear(received.line) {
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

// Questions and answers: the program is asked once it is ready, and its answers are handed on.

impl ExternalPlugin {
    /// Sends a question to a program that runs and has said hello; otherwise the question waits for one.
    fn ask(&mut self, id: u64) {
        let PluginStatus::Up(up) = &self.state else { return };
        let (Some(hello), Some(pending)) = (&up.hello, self.questions.get(&id)) else { return };
        if hello.consult.contains(&HookPoint::of(&pending.question)) {
            send(&up.outbox, &HostMessage::Consult { id, question: &pending.question });
        } else if let Some(pending) = self.questions.remove(&id) {
            let _ = pending.answer.send(ConsultVerdict::Proceed);
        }
    }

    /// Sends all questions that wait.
    fn ask_all(&mut self) {
        let waiting: Vec<u64> = self.questions.keys().copied().collect();
        for id in waiting {
            self.ask(id);
        }
    }

    /// Gives up on a question that the program cannot answer.
    fn give_up_on(&mut self, id: u64, why: &str) {
        if let Some(pending) = self.questions.remove(&id) {
            let _ = pending.answer.send(self.without_an_answer(why));
        }
    }

    fn without_an_answer(&self, why: &str) -> ConsultVerdict {
        if self.plugin.required {
            ConsultVerdict::Stop {
                reason: format!("it is required, and {why}"),
                scope: StopScope::Run,
            }
        } else {
            ConsultVerdict::Proceed
        }
    }

    fn answered(&mut self, id: u64, verdict: ConsultVerdict) -> Result<(), PluginLineError> {
        let Some(pending) = self.questions.remove(&id) else {
            let text = format!("answered the question {id}, which waits for no answer");
            return Err(PluginLineError { kind: PluginLineErrorKind::Unasked, text, id: None });
        };
        let _ = pending.answer.send(verdict);
        Ok(())
    }

    /// Takes a line of the program.
    fn hear(&mut self, line: PluginLine) -> Result<(), PluginLineError> {
        match read(line)? {
            PluginMessage::Hello(hello) => {
                if let PluginStatus::Up(up) = &mut self.state {
                    up.hello = Some(hello);
                }
                self.ask_all();
                Ok(())
            }
            PluginMessage::Verdict(answer) => {
                let id = answer.id;
                match answer.verdict.verdict(now()) {
                    Ok(verdict) => self.answered(id, verdict),
                    Err(why) => Err(PluginLineError {
                        kind: PluginLineErrorKind::Answer,
                        text: format!("gave an answer that cannot be understood: {why}"),
                        id: Some(id),
                    }),
                }
            }
        }
    }

    /// Handles a useless line, besides warning of it.
    fn on_flaw(&mut self, flaw: &PluginLineError, ctx: &mut Context<Self>) {
        let PluginStatus::Up(up) = &mut self.state else { return };
        up.complaints.about(&self.plugin.name, flaw);
        if let Some(id) = flaw.id {
            self.give_up_on(id, "its answer cannot be understood");
        }
        if flaw.kind == PluginLineErrorKind::Version {
            up_as_onlooker(&mut self.state);
            self.ask_all();
            if self.plugin.required {
                self.be_gone("speaks another version of the protocol", ctx);
            }
        }
    }
}

/// Marks a program whose greeting is not understood. It receives events, but no questions.
fn up_as_onlooker(state: &mut PluginStatus) {
    if let PluginStatus::Up(up) = state {
        up.hello = Some(PluginHello { version: 0, consult: Vec::new() });
    }
}

// The life of a plug-in process: its start and hello, its restarts, its end.

/// The time to wait for the last output of a program that has ended: another may hold its pipes.
const PIPE_GRACE: Duration = Duration::from_millis(500);

impl ExternalPlugin {
    /// Starts the process.
    fn launch(&mut self, ctx: &mut Context<Self>) {
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
        let (start, address) = (self.starts, ctx.address());
        let reading_stdout = actix::spawn(async move {
            let hear = async |line| {
                address.send(PluginLineReceived { start, line }).await.unwrap_or(false)
            };
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
        let address = ctx.address();
        actix::spawn(async move {
            let end = accompany(life, stdin_closed).await;
            for mut reading in [reading_stdout, reading_stderr] {
                if timeout(PIPE_GRACE, &mut reading).await.is_err() {
                    reading.abort();
                }
            }
            let _ = address.send(PluginEnded(end)).await;
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
    fn ended(&mut self, end: &PluginExit, ctx: &mut Context<Self>) {
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
        if !supervision.restart.restarts_after(!end.well) {
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
fn close(outbox: PluginOutbox, written: oneshot::Receiver<()>, closed: oneshot::Sender<()>) {
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

// The process of a plug-in and its pipes. The spawner is passed in, because this room starts no process.

/// The time a program may take to end after its stdin was closed.
pub const GRACE: Duration = Duration::from_secs(2);

/// The time it may take after it was asked to end.
const LAST_GRACE: Duration = Duration::from_millis(500);

/// Starts the program of a plug-in.
pub trait PluginSpawner: Send {
    /// Starts it, on the thread that asks.
    ///
    /// # Errors
    /// The error of the system.
    fn spawn(&self) -> std::io::Result<SpawnedPlugin>;
}

/// A program that has been started.
pub struct SpawnedPlugin {
    /// The input of the program.
    pub stdin: Box<dyn AsyncWrite + Unpin>,
    /// The messages of the program.
    pub stdout: Box<dyn AsyncRead + Unpin>,
    /// The text of the program for people.
    pub stderr: Box<dyn AsyncRead + Unpin>,
    /// Its process.
    pub life: Box<dyn PluginHandle>,
}

/// The process of a program. When this is dropped, it ends.
pub trait PluginHandle {
    /// Waits for its end. May be dropped and called again.
    fn exited(&mut self) -> Pin<Box<dyn Future<Output = PluginExit> + '_>>;
    /// Asks it to end.
    fn terminate(&self);
    /// Ends it at once.
    fn kill(&self);
}

/// The exit of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PluginExit {
    /// True if it ended by itself, and without an error.
    pub well: bool,
    /// The description for people: `exited with code 3`.
    pub how: String,
}

/// Stays with a process until it has ended. After `stdin_closed` tells that its stdin is, it has its grace; then
/// it is asked to end; then it is killed.
async fn accompany(
    mut life: Box<dyn PluginHandle>,
    stdin_closed: oneshot::Receiver<()>,
) -> PluginExit {
    tokio::select! {
        end = life.exited() => return end,
        _ = stdin_closed => {}
    }
    if let Ok(end) = timeout(GRACE, life.exited()).await {
        return end;
    }
    life.terminate();
    if let Ok(end) = timeout(LAST_GRACE, life.exited()).await {
        return end;
    }
    life.kill();
    life.exited().await
}

// The stderr of a program, passed on to people within limits.

/// The maximum number of lines shown a minute.
const MAX_LINES_A_MINUTE: u32 = 20;

/// The maximum number of characters shown of a line.
const MAX_LINE_CHARS: usize = 1000;

const MINUTE_MS: u64 = 60 * 1000;

/// The number of lines within the current minute.
#[derive(Debug, Default)]
struct StderrLimiter {
    since: Timestamp,
    lines: u32,
}

impl StderrLimiter {
    /// Returns the text to show for a line, if any.
    fn shown(&mut self, line: &[u8], now: Timestamp) -> Option<String> {
        let text = String::from_utf8_lossy(line);
        let text = text.trim_end();
        if text.is_empty() {
            return None;
        }
        if now.since(self.since) >= MINUTE_MS {
            *self = Self { since: now, lines: 0 };
        }
        self.lines = self.lines.saturating_add(1);
        match self.lines {
            ..=MAX_LINES_A_MINUTE => Some(first_characters(text, MAX_LINE_CHARS)),
            more if more == MAX_LINES_A_MINUTE + 1 => {
                Some("(it says more than is shown within a minute)".to_owned())
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod stderr_limiter_tests {
    use super::*;

    #[test]
    fn flood_is_suppressed_until_next_minute() {
        let mut chatter = StderrLimiter::default();
        let now = Timestamp(1_000_000);
        let shown = (0..1000).filter_map(|_| chatter.shown(b"hm\n", now)).count();
        assert_eq!(shown, 21);
        assert_eq!(chatter.shown(b"again", now.plus(MINUTE_MS)).as_deref(), Some("again"));
        let long = chatter.shown("é".repeat(5000).as_bytes(), now).unwrap_or_default();
        assert_eq!(long.chars().count(), MAX_LINE_CHARS + 1);
        assert_eq!(chatter.shown(b" \n", now), None);
    }
}
