//! The supervisor's beginning and end: a run is resumed, held still and let go.

use std::rc::Rc;
use std::time::Duration;

use actix::{ActorContext, AsyncContext, Context as Ctx, Handler, WrapFuture};

use super::{PendingRecord, ShutdownPhase, Supervisor};
use crate::actor::observer::{CancelConsult, InterruptRun};
use crate::actor::runner::StopLevel;
use crate::domain::agent::Agent;
use crate::domain::apply::begin;
use crate::domain::event::{Event, Record, RunCommand};
use crate::domain::id::AgentId;
use crate::domain::retry::RetrySelection;
use crate::domain::run::{PauseReason, Run, RunStatus};
use crate::domain::settings::Settings;
use crate::domain::time::format_duration;
use crate::fault::FaultPoint;
use crate::store;
use crate::store::inbox;

/// The poll interval of the inbox.
const INBOX_POLL_INTERVAL: Duration = Duration::from_millis(200);

impl Supervisor {
    pub(super) fn begin(&mut self, ctx: &mut Ctx<Self>) {
        match std::mem::replace(&mut self.start, SupervisorStart::Done) {
            SupervisorStart::FirstRecord(first) => match begin(&first) {
                Ok((_, effects)) => {
                    // A run that was killed before anything began takes its orders before anything begins.
                    self.read_inbox(ctx);
                    let agent = self.run.agents.get(&AgentId::main());
                    let agent = agent.map(|agent| self.view_of(agent));
                    let total_cost = self.run.total_cost_usd;
                    self.committed(
                        PendingRecord { record: *first, effects, agent, total_cost },
                        ctx,
                    );
                    self.schedule(ctx);
                }
                Err(refused) => self.give_up(Some(self.stopped(refused.to_string())), ctx),
            },
            SupervisorStart::Resume(settings, retry) => {
                let retried = retry.and_then(|selection| self.retry(&selection));
                let resumed = Event::RunResumed { settings };
                self.commit_all(retried.into_iter().chain([resumed]).collect(), ctx);
                self.count_discarded_turns(ctx);
                self.read_inbox(ctx);
                self.give_resume_answers(ctx);
            }
            SupervisorStart::Done => {}
        }
        let mut stayed = self.stay_up.is_for_questions();
        ctx.run_interval(INBOX_POLL_INTERVAL, move |this, ctx| {
            this.read_inbox(ctx);
            this.refresh_facts(ctx);
            if std::mem::replace(&mut stayed, this.stay_up.is_for_questions()) != stayed {
                this.schedule(ctx);
            }
        });
    }

    pub(super) fn read_inbox(&mut self, ctx: &mut Ctx<Self>) {
        if matches!(self.shutdown, ShutdownPhase::Over) {
            // A command stays in the inbox, for the next supervisor.
            return;
        }
        let is_giving_up = self.is_over();
        let inbox = self.store.dir().inbox();
        let waiting = match self.store.commands() {
            Ok(waiting) => waiting,
            Err(_) if is_giving_up => return,
            Err(error) => return tracing::warn!("{error}"),
        };
        for waiting in waiting {
            if is_giving_up {
                // It cannot be recorded, and needs no record: the run ends.
                if waiting.command == Some(RunCommand::Stop) {
                    self.context.performer.stop();
                    self.command_is_safe(&waiting.name);
                }
                continue;
            }
            if !self.commands.insert(waiting.name.clone()) {
                continue;
            }
            let name = waiting.name;
            match (waiting.command, waiting.unread) {
                (Some(command), _) => self.handle_command(name, command, ctx),
                (None, Some(why)) => {
                    let path = inbox.join(format!("{name}.json"));
                    tracing::warn!("{}: {why}; it is not a command, remove it", path.display());
                }
                (None, None) => {
                    tracing::warn!("the command {name} in the inbox is unknown to this version");
                    self.command_is_safe(&name);
                }
            }
        }
    }

    /// Removes a command from the inbox once it is in the journal.
    pub(super) fn command_is_safe(&mut self, name: &str) {
        FaultPoint::InboxBefore.reach();
        if let Err(error) = inbox::remove(&self.store.dir().inbox(), name) {
            tracing::warn!("{error}");
        }
    }

    /// Returns whether nothing more is recorded.
    pub(super) fn is_over(&self) -> bool {
        matches!(self.shutdown, ShutdownPhase::Over | ShutdownPhase::GivingUp(_))
    }

    /// Returns whether the run is to go on.
    pub(super) fn is_going_on(&self) -> bool {
        matches!(self.shutdown, ShutdownPhase::NotStarted)
    }

    /// Lets no further turn start. When the running turns are over, `pause` is recorded and the run is released.
    /// `pause` is `None` if it is recorded already, or if the last agent has ended.
    pub(super) fn hold(&mut self, pause: Option<PauseReason>, ctx: &mut Ctx<Self>) {
        if matches!(self.shutdown, ShutdownPhase::NotStarted) {
            self.begin_holding(pause, false);
            self.end_if_still(ctx);
        }
    }

    fn begin_holding(&mut self, pause: Option<PauseReason>, is_stopping: bool) {
        self.admission.close();
        self.context.performer.begin_no_commands();
        self.shutdown = ShutdownPhase::Holding { pause, is_stopping };
    }

    /// Ends a run that is to hold still once nothing runs and nothing is unwritten.
    pub(super) fn end_if_still(&mut self, ctx: &mut Ctx<Self>) {
        if self.admission.running() > 0 || !self.advancing.is_empty() || !self.pending.is_empty() {
            return;
        }
        let ShutdownPhase::Holding { pause, .. } = &mut self.shutdown else { return };
        match pause.take() {
            Some(pause) if self.run.status == RunStatus::Running => {
                self.commit(Event::RunPaused { pause }, ctx);
            }
            _ => self.end(ctx),
        }
    }

    fn end(&mut self, ctx: &mut Ctx<Self>) {
        self.shutdown = ShutdownPhase::Over;
        self.store.snapshot(&self.run);
        if let Err(error) = self.store.finish() {
            return self.give_up(Some(error), ctx);
        }
        let sweep = Rc::clone(&self.context.runner).sweep(Vec::new());
        let run = self.run.clone();
        let done = self.done.take();
        ctx.wait(
            async move {
                sweep.await;
                if let Some(done) = done {
                    let _ = done.send(Ok(run));
                }
            }
            .into_actor(self),
        );
        ctx.run_later(Duration::ZERO, |_, ctx| ctx.stop());
    }

    /// Ends the run after the journal has failed, because nothing more would be recorded. The journal's thread gives
    /// the reason at its end, unless another one is `known`.
    ///
    /// Turns continue without raymond, as after a kill, and the next raymond adopts them. raymond waits for operations,
    /// because their notes keep their outcomes. Hosts keep the outcomes of their work for the next supervisor, so
    /// raymond does not wait for hosts.
    pub(super) fn give_up(&mut self, known: Option<store::Error>, ctx: &mut Ctx<Self>) {
        self.admission.close();
        self.context.performer.begin_no_commands();
        let reason = self.store.end_journal().err().or(known);
        let error = reason.unwrap_or_else(|| self.stopped("its thread has ended".to_owned()));
        if self.hosts.is_some() {
            self.performing.clear();
        } else if !self.performing.is_empty() {
            let count = self.performing.len();
            tracing::warn!(
                "{error}; raymond waits for running operations ({count}), and then ends; interrupt it to end them now"
            );
        }
        self.shutdown = ShutdownPhase::GivingUp(error);
        self.leave_if_still(ctx);
    }

    /// Ends a run whose journal has failed, once no operation runs. Of the processes those of running turns stay.
    pub(super) fn leave_if_still(&mut self, ctx: &mut Ctx<Self>) {
        if !self.performing.is_empty() || !matches!(self.shutdown, ShutdownPhase::GivingUp(_)) {
            return;
        }
        let phase = std::mem::replace(&mut self.shutdown, ShutdownPhase::Over);
        let ShutdownPhase::GivingUp(error) = phase else { return };
        let _ = self.store.finish();
        let Some(done) = self.done.take() else {
            // It is ending already, with an outcome that is about to be reported.
            return tracing::error!("{error}");
        };
        let runner = &self.context.runner;
        let running = runner.started_turns(self.run.agents.values().map(Agent::turn_id).collect());
        let sweep = Rc::clone(runner).sweep(running);
        ctx.wait(
            async move {
                sweep.await;
                let _ = done.send(Err(error));
            }
            .into_actor(self),
        );
        ctx.run_later(Duration::ZERO, |_, ctx| ctx.stop());
    }

    fn stopped(&self, why: String) -> store::Error {
        store::Error::Stopped { path: self.store.dir().journal(), why }
    }
}

impl Handler<InterruptRun> for Supervisor {
    type Result = ();

    /// Gives running turns their grace at the first interrupt, also if the run already comes to a pause for
    /// another reason. The second one ends them at once.
    fn handle(&mut self, _: InterruptRun, ctx: &mut Self::Context) {
        match &mut self.shutdown {
            ShutdownPhase::Over => {}
            ShutdownPhase::GivingUp(_) => self.context.performer.stop(),
            ShutdownPhase::Holding { is_stopping: true, .. } => {
                self.context.runner.stop_all(StopLevel::Now);
                self.context.performer.stop();
                self.cancel_consults(ctx);
            }
            ShutdownPhase::Holding { is_stopping, .. } => {
                *is_stopping = true;
                self.interrupted(ctx);
            }
            ShutdownPhase::NotStarted => {
                self.begin_holding(Some(PauseReason::Interrupted), true);
                self.interrupted(ctx);
            }
        }
    }
}

impl Supervisor {
    fn interrupted(&mut self, ctx: &mut Ctx<Self>) {
        let running = self.admission.running() + self.advancing.len();
        let grace = format_duration(self.run.settings.supervision.shutdown_ms);
        let turns = if running == 1 { "the running turn" } else { "the running turns" };
        if running > 0 {
            tracing::warn!(
                "interrupted: {turns} ({running}) may finish within {grace}; interrupt again to end them at once"
            );
        }
        self.stop_patiently(ctx);
        self.end_if_still(ctx);
    }

    /// Stops patiently: running turns have their grace, and so have the plug-ins that are asked about one.
    fn stop_patiently(&mut self, ctx: &mut Ctx<Self>) {
        self.context.runner.stop_all(StopLevel::Patiently);
        let grace = Duration::from_millis(self.run.settings.supervision.shutdown_ms);
        ctx.run_later(grace, |this, ctx| {
            this.context.performer.stop();
            this.cancel_consults(ctx);
        });
    }

    /// Cancels all consultations, also those that begin while the run comes to its end.
    fn cancel_consults(&mut self, ctx: &mut Ctx<Self>) {
        if !matches!(self.shutdown, ShutdownPhase::Holding { .. }) {
            return;
        }
        let live = self.admission.holders().filter(|id| self.run.agents.contains_key(id));
        for address in live.filter_map(|id| self.agents.get(id)) {
            address.do_send(CancelConsult);
        }
        ctx.run_later(INBOX_POLL_INTERVAL, Self::cancel_consults);
    }

    /// Ends the run because it was asked for: running turns have their grace.
    pub(super) fn come_to_an_end(&mut self, ctx: &mut Ctx<Self>) {
        self.hold(Some(PauseReason::Stopped), ctx);
        if let ShutdownPhase::Holding { is_stopping, .. } = &mut self.shutdown {
            *is_stopping = true;
        }
        self.stop_patiently(ctx);
    }
}

/// The first step of a supervisor: a run begins, or is resumed.
#[derive(Debug)]
pub enum SupervisorStart {
    /// A run whose first record is in its journal already.
    FirstRecord(Box<Record>),
    /// An existing run, the settings under which it is resumed, and the failed agents to retry.
    Resume(Box<Settings>, Option<RetrySelection>),
    /// No first step: the run has begun.
    Done,
}

impl SupervisorStart {
    /// Returns the start of a resumed run under these settings: from its first record, if no turn of it has begun
    /// and the settings are the same.
    pub fn on_resume(
        untouched: Option<Record>,
        settings: Settings,
        retry: Option<RetrySelection>,
        run: &Run,
    ) -> Self {
        match untouched {
            Some(first) if settings == run.settings => Self::FirstRecord(Box::new(first)),
            _ => Self::Resume(Box::new(settings), retry),
        }
    }

    /// Returns the settings under which a run is resumed.
    pub fn settings<'start>(&'start self, run: &'start Run) -> &'start Settings {
        match self {
            Self::Resume(settings, _) => settings,
            Self::FirstRecord(_) | Self::Done => &run.settings,
        }
    }
}
