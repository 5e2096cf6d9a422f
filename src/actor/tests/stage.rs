//! A stage for whole runs: a run directory, an audience, and a player that answers every prompt.
//!
//! The player answers as a test lets it, most often with the prompt itself: then the files of a workflow are its
//! script. It remembers every turn it was given and the number that ran at once.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use actix::{Actor, Addr, Context as Ctx, Handler};
use tokio::sync::mpsc;

use super::nothing::Nothing;
use crate::actor::launch::supervise;
use crate::actor::observer::{
    FinishPublishing, Observer, ObserverKind, PluginInterceptor, Published,
};
use crate::actor::registry::AgentRegistry;
use crate::actor::runner::{LocalFuture, StepRunner, StopLevel, TurnNoticeHandler};
use crate::actor::supervisor::{RunLaunch, SupervisorStart};
use crate::domain::agent::AgentOptions;
use crate::domain::event::{Event, Record, RunStarted};
use crate::domain::id::{AgentId, MessageId, RunId, SessionId, StateName};
use crate::domain::money::Usd;
use crate::domain::run::{AgentEnding, Run};
use crate::domain::settings::{MaxProcs, Settings};
use crate::domain::supervision::SupervisionPolicy;
use crate::domain::time::Timestamp;
use crate::domain::transition::Variables;
use crate::domain::turn::{TurnInput, TurnOutcome, TurnReply};
use crate::language::resume::workflow_cache::WorkflowCache;
use crate::language::source::WorkflowSource;
use crate::proof::ProofKey;
use crate::store::layout::RunsRoot;
use crate::store::run_store::{LockedRun, NewRun};
use crate::store::view;

/// Far more than any of these runs takes; one that hangs fails here.
const DEADLINE: Duration = Duration::from_mins(5);

/// Settings with which `max_procs` turns run at once and no restart waits.
pub(super) fn settings(max_procs: usize) -> Settings {
    let supervision =
        SupervisionPolicy { backoff_min_ms: 0, backoff_max_ms: 0, ..SupervisionPolicy::default() };
    Settings { max_procs: MaxProcs::Count(max_procs), supervision, ..Settings::default() }
}

/// Returns a workflow in memory; it begins with `A.md`.
pub(super) fn files(files: &[(&str, &str)]) -> BTreeMap<String, String> {
    files.iter().map(|&(name, text)| (name.to_owned(), text.to_owned())).collect()
}

/// The function of a player that plays a turn.
type Play = Box<dyn Fn(&TurnInput) -> LocalFuture<TurnOutcome>>;

/// A runner that plays turns for a test.
pub(super) struct Player {
    play: Play,
    /// The turns it was given, in order.
    pub(super) turns: RefCell<Vec<TurnInput>>,
    active: Cell<usize>,
    /// The number of turns that may run at once.
    pub(super) capacity: Cell<usize>,
    /// True if there is no room for one more turn.
    pub(super) short_of_memory: Cell<bool>,
    /// The most turns that ran at once.
    pub(super) most: Cell<usize>,
}

/// A turn that runs, until it is dropped.
struct Active(Rc<Player>);

impl Drop for Active {
    fn drop(&mut self) {
        self.0.active.set(self.0.active.get() - 1);
    }
}

impl Player {
    pub(super) fn new(play: impl Fn(&TurnInput) -> LocalFuture<TurnOutcome> + 'static) -> Rc<Self> {
        Rc::new(Self {
            play: Box::new(play),
            turns: RefCell::new(Vec::new()),
            active: Cell::new(0),
            capacity: Cell::new(1),
            short_of_memory: Cell::new(false),
            most: Cell::new(0),
        })
    }

    /// Returns a player that answers with its prompt.
    pub(super) fn echo() -> Rc<Self> {
        Self::new(|input| Box::pin(std::future::ready(says(input, &input.prompt))))
    }

    /// Returns the turns it was given, by name.
    pub(super) fn names(&self) -> Vec<String> {
        self.turns.borrow().iter().map(|input| input.turn.to_string()).collect()
    }
}

/// Returns the outcome of a turn that says this.
pub(super) fn says(input: &TurnInput, text: &str) -> TurnOutcome {
    TurnOutcome::Replied(TurnReply {
        text: text.to_owned(),
        cost: Usd::from_dollars(0.01),
        message: Some(MessageId::new(&input.turn.stem())),
        ..TurnReply::default()
    })
}

impl StepRunner for Player {
    fn run(self: Rc<Self>, input: TurnInput, _: TurnNoticeHandler) -> LocalFuture<TurnOutcome> {
        self.turns.borrow_mut().push(input.clone());
        let turn = (self.play)(&input);
        self.active.set(self.active.get() + 1);
        self.most.set(self.most.get().max(self.active.get()));
        let active = Active(self);
        Box::pin(async move {
            let outcome = turn.await;
            drop(active);
            outcome
        })
    }

    fn capacity(&self) -> usize {
        self.capacity.get()
    }

    fn fits(&self) -> usize {
        if self.short_of_memory.get() { 0 } else { usize::MAX }
    }

    fn stop_all(&self, _: StopLevel) {}
}

/// An observer that keeps all published records, and calls a test's function for each.
struct Audience {
    published: Arc<Mutex<Vec<Published>>>,
    look: Box<dyn Fn(&Published)>,
}

impl Actor for Audience {
    type Context = Ctx<Self>;
}

impl Handler<Published> for Audience {
    type Result = ();

    fn handle(&mut self, published: Published, _: &mut Self::Context) {
        (self.look)(&published);
        self.published.lock().expect("nobody panics with it").push(published);
    }
}

impl Handler<FinishPublishing> for Audience {
    type Result = ();

    fn handle(&mut self, _: FinishPublishing, _: &mut Self::Context) {}
}

/// The place of a test run: its directory, audience and plug-ins.
pub(super) struct Stage {
    _place: tempfile::TempDir,
    pub(super) root: RunsRoot,
    pub(super) registry: Arc<AgentRegistry>,
    published: Arc<Mutex<Vec<Published>>>,
    plugs: RefCell<Vec<Plug>>,
}

/// Makes a plug-in that has a say, when there is an actor system.
type Plug = Box<dyn Fn() -> PluginInterceptor>;

/// A run that is over.
pub(super) struct Played {
    pub(super) run: Run,
    pub(super) records: Vec<Record>,
}

impl Stage {
    pub(super) fn new() -> Self {
        let place = tempfile::tempdir().expect("a directory");
        Self {
            root: RunsRoot::new(place.path()),
            _place: place,
            registry: Arc::default(),
            published: Arc::default(),
            plugs: RefCell::default(),
        }
    }

    /// Adds a plug-in that has a say.
    pub(super) fn plug(&self, plug: impl Fn() -> PluginInterceptor + 'static) {
        self.plugs.borrow_mut().push(Box::new(plug));
    }

    pub(super) fn id() -> RunId {
        RunId::parse("r").expect("a run's id")
    }

    /// Returns the first record of a run, and its directory with only that in it.
    pub(super) fn create(&self, settings: Settings) -> (LockedRun, Run, Box<Record>) {
        let started = RunStarted {
            workflow_id: Self::id(),
            scope_dir: "memory".to_owned(),
            folder: None,
            entry: StateName::parse("A.md").expect("a state's name"),
            session: SessionId::new("first"),
            definition: None,
            variables: Variables::new(),
            options: AgentOptions::default(),
            settings,
        };
        let event = Event::RunStarted(Box::new(started));
        let first = Record {
            kept_session: None,
            seq: 1,
            at: Timestamp(1_768_487_422_123),
            folder: None,
            snapshot: None,
            placed: Vec::new(),
            event,
        };
        let key = Some(ProofKey::new("test"));
        let (store, run) =
            LockedRun::create(&self.root, &first, NewRun { key, ..NewRun::default() })
                .expect("a run directory");
        (store, run, Box::new(first))
    }

    /// Returns the run as its directory tells it.
    pub(super) fn stored(&self) -> Run {
        view::load_view(&self.root, &Self::id()).expect("a readable run").run
    }

    fn audience(&self, look: impl Fn(&Published) + 'static) -> Addr<Audience> {
        Audience { published: Arc::clone(&self.published), look: Box::new(look) }.start()
    }

    /// Performs a whole run; `look` is called for every record that is published.
    pub(super) fn play_before(
        &self,
        look: impl Fn(&Published) + 'static,
        settings: Settings,
        source: impl WorkflowSource + 'static,
        player: &Rc<Player>,
    ) -> Played {
        if let MaxProcs::Count(count) = settings.max_procs {
            player.capacity.set(count);
        }
        let (store, run, first) = self.create(settings);
        let run = actix::System::new().block_on(async {
            let audience = self.audience(look);
            let launch = RunLaunch {
                store,
                run,
                start: SupervisorStart::FirstRecord(first),
                source: Arc::new(source),
                runner: Rc::clone(player) as Rc<dyn StepRunner>,
                performer: Rc::new(Nothing),
                workflows: WorkflowCache::default(),
                builtins: serde_json::Map::new(),
                hosts: None,
                stay_up: crate::actor::process::StayUp::default(),
                registry: Arc::clone(&self.registry),
                observers: vec![Observer::new(
                    "audience",
                    audience.clone().recipient(),
                    ObserverKind::BuiltIn,
                )],
                interceptors: self.plugs.borrow().iter().map(|plug| plug()).collect(),
            };
            let (_interrupts, mut quiet) = mpsc::unbounded_channel();
            let run = in_time(Box::pin(supervise(launch, &mut quiet)))
                .await
                .expect("a run that is written");
            in_time(audience.send(FinishPublishing::default()))
                .await
                .expect("an audience that stays");
            run
        });
        let published = self.published.lock().expect("nobody panics with it");
        Played {
            run,
            records: published.iter().map(|published| (*published.record).clone()).collect(),
        }
    }

    /// Performs a whole run.
    pub(super) fn play(
        &self,
        settings: Settings,
        source: impl WorkflowSource + 'static,
        player: &Rc<Player>,
    ) -> Played {
        self.play_before(|_| {}, settings, source, player)
    }
}

/// Waits for a future, and fails if it takes so long that it must be hanging.
pub(super) async fn in_time<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(DEADLINE, future).await.expect("it ends in time")
}

impl Played {
    /// Returns the ending of each agent, by its id.
    pub(super) fn endings(&self) -> BTreeMap<&str, &AgentEnding> {
        self.run.finished.iter().map(|ended| (ended.id.as_str(), &ended.ending)).collect()
    }

    /// Returns the events about one agent.
    pub(super) fn about(&self, agent: &str) -> Vec<&Event> {
        let named = |event: &&Event| event.agent().is_some_and(|id| id.as_str() == agent);
        self.records.iter().map(|record| &record.event).filter(named).collect()
    }
}

/// Returns the ending of an agent with this result.
pub(super) fn ended(payload: &str) -> AgentEnding {
    AgentEnding::Result(payload.to_owned())
}

pub(super) fn agent_id(name: &str) -> AgentId {
    AgentId::parse(name).expect("an agent's id")
}
