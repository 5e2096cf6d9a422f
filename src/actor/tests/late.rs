//! Late, repeated or unknown messages change nothing: no record, no permit, no turn.

use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;

use actix::{Actor, Addr, AsyncContext, Handler};
use tokio::sync::{mpsc, oneshot, watch};

use super::nothing::Nothing;
use super::stage::{Player, Stage, agent_id, files, in_time, says, settings};
use crate::actor::agent::AgentActor;
use crate::actor::context::{RunContext, SupervisorHandle};
use crate::actor::observer::{
    ActivityDone, AgentDown, ApiThrottled, ApprovalRequested, DiscardTurn, DispatchTurn,
    JournalReported, MessageRead, TaskDone, TurnEnded, TurnReported,
};
use crate::actor::runner::StepRunner;
use crate::actor::supervisor::{RunLaunch, Supervisor, SupervisorEnds, SupervisorStart};
use crate::domain::decide::{TurnJudgement, TurnReport};
use crate::domain::id::{SessionId, StateName};
use crate::domain::money::Usd;
use crate::domain::policy::AcceptedTransition;
use crate::domain::run::Run;
use crate::domain::session::Session;
use crate::domain::settings::Settings;
use crate::domain::settings::{ForkRules, ForkSettings};
use crate::domain::supervision::SupervisionPolicy;
use crate::domain::transition::{Transition, Variables};
use crate::domain::turn::{FailureCause, TurnFailure, TurnId, TurnInput};
use crate::domain::turn_options::{OnDenied, TurnOptions};
use crate::domain::widening::PermissionCeiling;
use crate::domain::worktree_snapshot::WorkingDir;
use crate::language::prompt::judgement::ReplyRules;
use crate::language::resume::turn::{PreparedTurn, TurnPermit, TurnRules};
use crate::language::resume::workflow_cache::WorkflowCache;
use crate::store;
use crate::store::log::WriteOutcome;

/// `main` and a worker that is due while `main` is in `B.md`.
const WORKFLOW: &[(&str, &str)] = &[
    ("A.md", "<fork next=\"B.md\">W.md</fork>"),
    ("B.md", "<result>main</result>"),
    ("W.md", "<result>worker</result>"),
];

/// A run that stands still: `main` is in its second turn, the worker waits for the only permit.
struct Still {
    stage: Stage,
    player: Rc<Player>,
    supervisor: Addr<Supervisor>,
    done: oneshot::Receiver<Result<Run, store::Error>>,
    gate: watch::Sender<bool>,
}

fn gated(mut gate: watch::Receiver<bool>, at_gate: mpsc::UnboundedSender<()>) -> Rc<Player> {
    gate.mark_unchanged();
    Player::new(move |input| {
        let outcome = says(input, &input.prompt);
        let waits = input.state.as_str() == "B.md";
        let (mut gate, at_gate) = (gate.clone(), at_gate.clone());
        Box::pin(async move {
            if waits {
                let _ = at_gate.send(());
                let _ = gate.wait_for(|&open| open).await;
            }
            outcome
        })
    })
}

impl Still {
    async fn reached() -> Self {
        let stage = Stage::new();
        let (gate, at) = watch::channel(false);
        let (arrived, mut at_gate) = mpsc::unbounded_channel();
        let player = gated(at, arrived);
        let (mut store, run, first) = stage.create(settings(1));
        let (tell, mut journaled) = mpsc::unbounded_channel();
        store
            .start_writer(move |outcome| {
                let _ = tell.send(outcome);
            })
            .expect("a writer");
        let (done, over) = oneshot::channel();
        let runner = Rc::clone(&player) as Rc<dyn StepRunner>;
        let registry = Arc::clone(&stage.registry);
        let supervisor = Supervisor::create(move |ctx| {
            let launch = RunLaunch {
                store,
                run,
                start: SupervisorStart::FirstRecord(first),
                source: Arc::new(files(WORKFLOW)),
                runner,
                performer: Rc::new(Nothing),
                workflows: WorkflowCache::default(),
                builtins: serde_json::Map::new(),
                hosts: None,
                stay_up: crate::actor::process::StayUp::default(),
                registry,
                observers: Vec::new(),
                interceptors: Vec::new(),
            };
            let handle = SupervisorHandle {
                reports: ctx.address().recipient(),
                tasks: ctx.address().recipient(),
                activities: ctx.address().recipient(),
                approvals: ctx.address().recipient(),
                read_messages: ctx.address().recipient(),
                throttles: ctx.address().recipient(),
                deaths: ctx.address().recipient(),
            };
            let ends = SupervisorEnds { done, released: oneshot::channel().0 };
            Supervisor::new(launch, None, Vec::new(), ends, handle)
        });
        let address = supervisor.clone();
        actix::spawn(async move {
            while let Some(outcome) = journaled.recv().await {
                address.do_send(JournalReported(outcome));
            }
        });
        in_time(at_gate.recv()).await.expect("main reaches B.md");
        let still = Self { stage, player, supervisor, done: over, gate };
        still.settle().await;
        still
    }

    /// Lets everything that is on its way arrive: all of it is on this thread.
    async fn settle(&self) {
        for _ in 0..500 {
            tokio::task::yield_now().await;
        }
        let nothing_new = JournalReported(WriteOutcome::Durable(0));
        in_time(self.supervisor.send(nothing_new)).await.expect("a supervisor that lives");
    }

    /// Asserts that a message left no trace: no record is written, no turn is admitted.
    async fn assert_nothing_came_of_it(&self, what: &str) {
        self.settle().await;
        assert_eq!(self.stage.stored().seq, 2, "{what} was recorded");
        assert_eq!(self.player.names(), ["main#1", "main#2"], "{what} let someone in");
    }

    /// Opens the gate; the run then has to come to its own end.
    async fn ends_as_if_nothing_had_been(self) {
        self.gate.send_replace(true);
        let run = in_time(self.done).await.expect("an end").expect("a run that is written");
        assert_eq!((run.seq, run.finished.len()), (4, 2));
        assert_eq!(self.player.names(), ["main#1", "main#2", "main.1#1"]);
        assert_eq!(self.player.most.get(), 1);
    }
}

fn turn(agent: &str, step: u64) -> TurnId {
    TurnId { agent: agent_id(agent), step, turn: 0 }
}

fn state(name: &str) -> StateName {
    StateName::parse(name).expect("a state's name")
}

fn ends(turn: TurnId) -> TurnReport {
    let transition = Transition::Result {
        payload: "late".to_owned(),
        variables: Variables::new(),
        structured: false,
    };
    let judgement = TurnJudgement::Accepted(AcceptedTransition {
        transition,
        implicit: false,
        overruled: None,
    });
    TurnReport { judgement, ..TurnReport::failed(turn, TurnFailure::new(FailureCause::Lost, "")) }
}

#[test]
fn report_about_turn_that_is_not_due_changes_nothing() {
    actix::System::new().block_on(async {
        let still = Still::reached().await;
        for turn in [turn("main", 1), turn("main", 3), turn("main.9", 1)] {
            for report in [
                ends(turn.clone()),
                TurnReport::failed(turn.clone(), TurnFailure::new(FailureCause::Crash, "late")),
            ] {
                still.supervisor.do_send(TurnReported(report));
            }
            still.assert_nothing_came_of_it(&format!("a report about {turn}")).await;
        }
        still.ends_as_if_nothing_had_been().await;
    });
}

#[test]
fn actor_stopping_without_panic_changes_nothing() {
    actix::System::new().block_on(async {
        let still = Still::reached().await;
        for agent in ["main", "main.1", "main.9"] {
            still.supervisor.do_send(AgentDown {
                agent: agent_id(agent),
                turn: Some(turn(agent, 1)),
                panicked: false,
            });
        }
        still.assert_nothing_came_of_it("an actor that stopped").await;
        still.ends_as_if_nothing_had_been().await;
    });
}

/// Returns a turn of `main` in `B.md`.
fn turn_input(step: u64) -> TurnInput {
    TurnInput {
        version: 1,
        turn: turn("main", step),
        state: state("B.md"),
        folder: None,
        working_dir: WorkingDir::default(),
        reads_results: false,
        output: None,
        visit: 0,
        session: Session::fresh(SessionId::new("other")),
        model: None,
        options: TurnOptions::default(),
        max_cost: None,
        limits: SupervisionPolicy::default().limits(),
        failed_before: None,
        prompt: String::new(),
        values: Variables::new(),
    }
}

fn dispatched(step: u64) -> DispatchTurn {
    let rules = TurnRules {
        reply: ReplyRules::default(),
        forks: ForkRules::default(),
        on_denied: OnDenied::Continue,
        runs_command: false,
        is_for_graph: false,
        state: state("B.md"),
        folder: None,
        working_dir: WorkingDir::default(),
        base: None,
    };
    DispatchTurn(Box::new(PreparedTurn {
        permit: TurnPermit::default(),
        input: turn_input(step),
        rules,
        results: None,
        unfilled: Vec::new(),
    }))
}

fn turn_ended(step: u64) -> TurnEnded {
    let input = turn_input(step);
    TurnEnded { turn: turn("main", step), outcome: says(&input, "<result>late</result>") }
}

/// A stand-in for the supervisor: keeps all reports, and answers nothing.
struct Ear(mpsc::UnboundedSender<TurnReport>);

impl Actor for Ear {
    type Context = actix::Context<Self>;
}

impl Handler<TurnReported> for Ear {
    type Result = ();

    fn handle(&mut self, TurnReported(report): TurnReported, _: &mut Self::Context) {
        let _ = self.0.send(report);
    }
}

/// Has the stand-in ignore messages.
macro_rules! ignored {
    ($($message:ty),*) => {$(
        impl Handler<$message> for Ear {
            type Result = ();

            fn handle(&mut self, _: $message, _: &mut Self::Context) {}
        }
    )*};
}

ignored!(TaskDone, ActivityDone, ApiThrottled, ApprovalRequested, MessageRead, AgentDown);

/// Starts the actor of `main`, whose reports a stand-in for the supervisor keeps.
fn reporting_agent(say: mpsc::UnboundedSender<TurnReport>, runner: Rc<Player>) -> Addr<AgentActor> {
    let ear = Ear(say).start();
    let context = RunContext {
        ceiling: PermissionCeiling::of(&Settings::default()),
        source: Arc::new(files(WORKFLOW)),
        runner,
        performer: Rc::new(Nothing),
        workflows: WorkflowCache::default(),
        builtins: serde_json::Map::new(),
        registry: Arc::default(),
        warned: std::cell::RefCell::default(),
        interceptors: Vec::new(),
        results: PathBuf::new(),
        forking: ForkSettings::default(),
        total_cost: std::cell::Cell::default(),
        supervisor: SupervisorHandle {
            reports: ear.clone().recipient(),
            tasks: ear.clone().recipient(),
            activities: ear.clone().recipient(),
            approvals: ear.clone().recipient(),
            read_messages: ear.clone().recipient(),
            throttles: ear.clone().recipient(),
            deaths: ear.recipient(),
        },
    };
    AgentActor::launch(agent_id("main"), Rc::new(context))
}

#[test]
fn agent_reports_only_current_turn_and_only_once() {
    actix::System::new().block_on(async {
        let (gate, at) = watch::channel(false);
        let (arrived, mut at_gate) = mpsc::unbounded_channel();
        let (say, mut reported) = mpsc::unbounded_channel();
        let agent = reporting_agent(say, gated(at, arrived));
        agent.do_send(turn_ended(2));
        agent.do_send(dispatched(2));
        agent.do_send(dispatched(2));
        in_time(at_gate.recv()).await.expect("the turn begins");
        for step in [1, 3] {
            in_time(agent.send(turn_ended(step))).await.expect("an agent that lives");
        }
        assert!(reported.is_empty(), "the end of another turn was reported");
        assert!(at_gate.is_empty(), "the turn began twice");

        gate.send_replace(true);
        let report = in_time(reported.recv()).await.expect("a report");
        assert_eq!(report.turn, turn("main", 2));
        in_time(agent.send(turn_ended(2))).await.expect("an agent that lives");
        assert!(reported.is_empty(), "the turn was reported twice");
    });
}

#[test]
fn reply_to_a_discarded_turn_is_reported_without_being_judged() {
    actix::System::new().block_on(async {
        for is_discarded in [false, true] {
            let (gate, at) = watch::channel(false);
            let (arrived, mut at_gate) = mpsc::unbounded_channel();
            let (say, mut reports) = mpsc::unbounded_channel();
            let agent = reporting_agent(say, gated(at, arrived));
            agent.do_send(dispatched(2));
            in_time(at_gate.recv()).await.expect("the turn begins");
            if is_discarded {
                in_time(agent.send(DiscardTurn)).await.expect("an agent that lives");
            }
            gate.send_replace(true);
            let report = in_time(reports.recv()).await.expect("a report");
            assert_eq!(report.turn, turn("main", 2));
            assert_eq!(report.judgement == TurnJudgement::NotStarted, is_discarded, "{report:?}");
            assert!(report.cost.amount > Usd::ZERO, "what the reply cost counts in both cases");
        }
    });
}
