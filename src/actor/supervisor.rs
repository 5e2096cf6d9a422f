//! The supervisor: it alone owns the run's state and its journal.
//!
//! Everything that happens goes through `Supervisor::commit`: the reducer is applied, the
//! record is handed to the journal, and only when the journal says that it is durable are its
//! effects performed and the record published. Between the two, the applied state is seen by
//! the supervisor alone; if the journal fails, it is thrown away with the supervisor. That
//! lets many agents share one sync without any rule about which of their records may overlap.

mod advance;
mod dispatch;
mod hosts;
mod joins;
mod lifecycle;

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, HashSet, VecDeque};
use std::convert::Infallible;
use std::rc::Rc;
use std::sync::Arc;

use actix::{Actor, Addr, Context as Ctx, Handler};
use serde_json::{Map, Value};
use tokio::sync::oneshot;

use self::hosts::RunHosts;
pub use self::hosts::{HostFeed, PlacementMode};
use super::agent::AgentActor;
use super::context::{RunContext, SupervisorHandle, now};
use super::observer::{JournalReported, Observer, PluginInterceptor, Published};
use super::registry::{AgentRegistry, AgentView};
use super::runner::{ActivityExecutor, StepRunner};
use crate::actor::process::StayUp;
use crate::actor::supervisor::advance::PendingActivity;
use crate::actor::supervisor::dispatch::{AgentTimers, QueuedEffects};
pub use crate::actor::supervisor::lifecycle::SupervisorStart;
use crate::domain::admission::{AdmissionQueue, PermitRequest};
use crate::domain::apply::Effect;
use crate::domain::apply::apply;
use crate::domain::event::{Event, Record};
use crate::domain::host::Home;
use crate::domain::host::PlacedAgent;
use crate::domain::id::AgentId;
use crate::domain::money::Usd;
use crate::domain::run::{PauseReason, Run};
use crate::domain::session::KeptSession;
use crate::domain::settings::{OnBudget, Settings};
use crate::domain::turn::{TurnId, TurnThrottle};
use crate::domain::widening::PermissionCeiling;
use crate::domain::worktree_snapshot::WorktreeSnapshot;
use crate::fault::FaultPoint;
use crate::language::resume::workflow_cache::WorkflowCache;
use crate::language::source::WorkflowSource;
use crate::store;
use crate::store::log::WriteOutcome;
use crate::store::run_store::LockedRun;

/// The owner of a run.
pub struct Supervisor {
    run: Run,
    store: LockedRun,
    start: SupervisorStart,
    context: Rc<RunContext>,
    agents: HashMap<AgentId, Addr<AgentActor>>,
    admission: AdmissionQueue,
    /// The agents that are about to advance, or for which an activity is performed; they need no permit.
    advancing: HashSet<AgentId>,
    /// The executions that an activity is performed for.
    performing: HashMap<AgentId, PendingActivity>,
    /// The agents whose worktrees are known to be there.
    made_trees: HashSet<(AgentId, Home)>,
    /// The agents whose operation may have been begun before.
    may_have_started: HashSet<AgentId>,
    queued_effects: QueuedEffects,
    timers: AgentTimers,
    /// The reasons to stay up while everything waits.
    stay_up: StayUp,
    throttle: TurnThrottle,
    /// The hosts of its agents; `None` if all of them live on this machine.
    hosts: Option<RunHosts>,
    is_scheduled: bool,
    pending: VecDeque<PendingRecord>,
    commands: HashSet<String>,
    shutdown: ShutdownPhase,
    observers: Vec<Observer>,
    done: Option<oneshot::Sender<Result<Run, store::Error>>>,
    /// Dropped after `store`, so its other end tells that the run is no longer locked.
    _released: oneshot::Sender<Infallible>,
}

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

/// The ends of the channels that report the end of a supervisor.
pub struct SupervisorEnds {
    /// Gets the run, or the error with which it could not be kept.
    pub done: oneshot::Sender<Result<Run, store::Error>>,
    /// Dropped once the supervisor has let go of the run.
    pub released: oneshot::Sender<Infallible>,
}

/// The parts that only the first record of several has; the session is with the first that ends a turn.
#[derive(Default)]
struct FirstRecordParts {
    snapshot: Option<Box<WorktreeSnapshot>>,
    kept_session: Option<Box<KeptSession>>,
    /// The agents that are given other hosts.
    placed: Vec<PlacedAgent>,
}

/// A record that has been handed to the journal, and the effects due when it is durable.
struct PendingRecord {
    record: Record,
    effects: Vec<Effect>,
    agent: Option<AgentView>,
    total_cost: Usd,
}

/// The phase of a run on its way to hold still.
enum ShutdownPhase {
    /// It continues.
    NotStarted,
    /// No turn may start; running ones come to their end.
    Holding {
        /// The pause to record then; absent if it is recorded already.
        pause: Option<PauseReason>,
        /// True if running turns have been asked to end.
        is_stopping: bool,
    },
    /// The journal has failed, and the supervisor waits for running operations.
    GivingUp(store::Error),
    /// It is over.
    Over,
}

impl Supervisor {
    /// Returns a supervisor for a run; it begins when it is started. `begun` are the turns that were begun before, and
    /// `placement` is absent if all agents live on this machine.
    pub fn new(
        launch: RunLaunch,
        placement: Option<PlacementMode>,
        started: Vec<TurnId>,
        ends: SupervisorEnds,
        supervisor: SupervisorHandle,
    ) -> Self {
        let RunLaunch { store, run, start, stay_up, observers, .. } = launch;
        let settings = start.settings(&run);
        let throttle = TurnThrottle::new(launch.runner.capacity());
        let context = Rc::new(RunContext {
            ceiling: PermissionCeiling::of(settings),
            source: launch.source,
            runner: launch.runner,
            performer: launch.performer,
            workflows: launch.workflows,
            builtins: launch.builtins,
            registry: launch.registry,
            warned: RefCell::default(),
            interceptors: launch.interceptors,
            results: store.dir().results(),
            forking: settings.forking,
            total_cost: Cell::new(run.total_cost_usd),
            supervisor,
        });
        let Settings { order, patience_ms, on_budget, .. } = *settings;
        let mut admission = AdmissionQueue::new(order, patience_ms);
        admission.turn_away_without_budget(on_budget == OnBudget::End);
        for turn in started {
            if let Some(agent) = run.agents.get(&turn.agent) {
                let host = agent.spec.working_dir.home.host.clone().filter(|_| placement.is_some());
                admission.reserve(PermitRequest { host, ..PermitRequest::of(agent) });
            }
        }
        let may_have_started = match start {
            SupervisorStart::Resume(..) => {
                let advancing = run.agents.values().filter(|agent| agent.advances_itself());
                advancing.map(|agent| agent.id.clone()).collect()
            }
            SupervisorStart::FirstRecord(_) | SupervisorStart::Done => HashSet::new(),
        };
        Self {
            admission,
            may_have_started,
            advancing: HashSet::new(),
            performing: HashMap::new(),
            made_trees: HashSet::new(),
            queued_effects: QueuedEffects::default(),
            timers: AgentTimers::default(),
            stay_up,
            throttle,
            hosts: placement.map(|mode| RunHosts::of(&run, mode == PlacementMode::SharedDirectory)),
            is_scheduled: false,
            run,
            store,
            start,
            context,
            agents: HashMap::new(),
            pending: VecDeque::new(),
            commands: HashSet::new(),
            shutdown: ShutdownPhase::NotStarted,
            observers,
            done: Some(ends.done),
            _released: ends.released,
        }
    }

    /// Commits one event.
    fn commit(&mut self, event: Event, ctx: &mut Ctx<Self>) {
        self.commit_all(vec![event], ctx);
    }

    /// Commits a batch of events: applies them, and hands their records to the journal as one write. After an event
    /// that is refused, the rest of the batch is dropped: it was decided on a run that did not come about.
    fn commit_all(&mut self, events: Vec<Event>, ctx: &mut Ctx<Self>) {
        self.commit_with(events, FirstRecordParts::default(), ctx);
    }

    /// Commits an event that gives agents other hosts.
    fn commit_placed(&mut self, event: Event, placed: Vec<PlacedAgent>, ctx: &mut Ctx<Self>) {
        let first = FirstRecordParts { placed, ..FirstRecordParts::default() };
        self.commit_with(vec![event], first, ctx);
    }

    /// Commits events, with the parts of the first record. A snapshot that the run has already is left out.
    fn commit_with(&mut self, events: Vec<Event>, first: FirstRecordParts, ctx: &mut Ctx<Self>) {
        if self.is_over() {
            // A timer can fire once more after the handler that has ended the run, although the context waits. The
            // journal is closed, so nothing more happens.
            tracing::debug!("ignored {} events that came after the end of the run", events.len());
            return;
        }
        let FirstRecordParts { snapshot, mut kept_session, mut placed } = first;
        let mut snapshot = snapshot.filter(|new| {
            self.run.worktrees.get(&new.tree).is_none_or(|known| *known != new.outcome)
        });
        FaultPoint::CommitBefore.reach();
        let at = now();
        let mut records = Vec::with_capacity(events.len());
        let mut due_effects = Vec::with_capacity(events.len());
        for event in events {
            let mut record = Record {
                snapshot: snapshot.take(),
                // A record before that one would not know of the turn yet.
                kept_session: kept_session.take_if(|_| event.cost().is_some()),
                placed: std::mem::take(&mut placed),
                ..Record::next(&self.run, at, event)
            };
            match apply(&mut self.run, &record) {
                Ok(effects) => {
                    record.placed.extend(self.place_agents(&effects));
                    due_effects.push((effects, self.run.total_cost_usd));
                }
                Err(refused) => {
                    tracing::error!(seq = record.seq, "an event was refused: {refused}");
                    break;
                }
            }
            records.push(record);
        }
        self.context.total_cost.set(self.run.total_cost_usd);
        if let Err(error) = self.store.append(&records, &self.run) {
            return self.give_up(Some(error), ctx);
        }
        for (record, (effects, total_cost)) in records.into_iter().zip(due_effects) {
            let agent = record.event.agent().and_then(|id| self.run.agents.get(id));
            let agent = agent.map(|agent| self.view_of(agent));
            self.queued_effects.add(&effects, &self.run);
            self.pending.push_back(PendingRecord { record, effects, agent, total_cost });
        }
    }

    /// Performs the effects of a durable record, and tells the observers.
    fn committed(&mut self, pending: PendingRecord, ctx: &mut Ctx<Self>) {
        FaultPoint::AdoptBefore.reach();
        let PendingRecord { record, effects, agent, total_cost } = pending;
        if let Some(view) = &agent {
            self.context.registry.show(view.clone());
        }
        if let Event::CommandReceived { id, .. } = &record.event {
            self.command_is_safe(id);
        }
        if let Event::AgentsRetried { agents } = &record.event {
            for retried in agents {
                self.context.registry.live_again(&retried.agent);
            }
        }
        self.queued_effects.remove(&effects);
        for effect in effects {
            FaultPoint::EffectBefore.reach();
            self.perform(effect, ctx);
            FaultPoint::EffectAfter.reach();
        }
        let published = Published { record: Arc::new(record), agent, total_cost, missed: 0 };
        FaultPoint::PublishBefore.reach();
        let mut missing = None;
        for observer in &mut self.observers {
            if observer.tell(&published) {
                missing = Some(observer.name().to_owned());
            }
        }
        if let Some(plugin) = missing {
            let reason = "it is required, and has failed".to_owned();
            self.hold(Some(PauseReason::Plugin { plugin, reason }), ctx);
        }
    }
}

impl Actor for Supervisor {
    type Context = Ctx<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        self.begin(ctx);
    }
}

impl Handler<JournalReported> for Supervisor {
    type Result = ();

    fn handle(&mut self, JournalReported(outcome): JournalReported, ctx: &mut Self::Context) {
        if self.is_over() {
            return;
        }
        match outcome {
            WriteOutcome::Durable(seq) => {
                while self.pending.front().is_some_and(|pending| pending.record.seq <= seq) {
                    if let Some(pending) = self.pending.pop_front() {
                        self.committed(pending, ctx);
                    }
                }
                self.schedule(ctx);
            }
            WriteOutcome::Failed => self.give_up(None, ctx),
        }
    }
}
