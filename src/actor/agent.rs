//! The actor of one live agent: it takes the turn that is due and reports its outcome.
//!
//! It holds nothing that is not in the persisted state, so a new actor can take its place at any time.

mod activity;
mod consult;

mod before_turn;
mod fork;
mod turn_end;

use std::rc::Rc;

use actix::{Actor, ActorContext, Addr, AsyncContext, Context as Ctx, Handler, SpawnHandle};

use self::before_turn::keep_results;
use super::context::RunContext;
use super::message::{AgentDown, DispatchTurn, TerminateAgent, TurnReported};
use super::process::TurnActor;
use crate::domain::consult::SpendingTotals;
use crate::domain::decide::{TurnJudgement, TurnReport};
use crate::domain::id::AgentId;
use crate::domain::turn::TurnCost;
use crate::domain::turn::{FailureCause, TurnFailure, TurnId, TurnInput};
use crate::language::prompt::step::UnfilledPlaceholder;
use crate::language::prompt::step::{RESULTS, RESULTS_FILE};
use crate::language::resume::turn::{PreparedTurn, TurnRules};

/// A live agent.
pub struct AgentActor {
    id: AgentId,
    context: Rc<RunContext>,
    work: AgentWork,
    /// The turn it reported last, which is not needed a second time.
    reported: Option<TurnId>,
}

/// The current work of an agent's actor.
enum AgentWork {
    Idle,
    /// It begins the work it was given.
    Starting(TurnId),
    /// Plug-ins are asked, the children of a fork are planned, or a worktree is made.
    Preparing {
        turn: TurnId,
        /// The cost of the turn, if it is over.
        cost: TurnCost,
        handle: SpawnHandle,
    },
    /// An activity is performed.
    PerformingActivity {
        turn: TurnId,
        handle: SpawnHandle,
    },
    RunningTurn {
        turn: TurnId,
        rules: Box<TurnRules>,
        _process: Addr<TurnActor>,
    },
}

/// The rules by which the reply of a turn is judged, and the spending so far, for the plug-ins that are asked.
#[derive(Clone)]
struct TurnContext {
    rules: Box<TurnRules>,
    spent: SpendingTotals,
}

impl AgentActor {
    /// Starts an actor for an agent that has nothing to do yet.
    pub fn launch(id: AgentId, context: Rc<RunContext>) -> Addr<Self> {
        Self { id, context, work: AgentWork::Idle, reported: None }.start()
    }

    fn report(&mut self, report: TurnReport) {
        self.work = AgentWork::Idle;
        let is_due_again = matches!(
            report.judgement,
            TurnJudgement::NotStarted | TurnJudgement::Failed(_) | TurnJudgement::JoinDue(_)
        );
        self.reported = (!is_due_again).then(|| report.turn.clone());
        self.context.supervisor.reports.do_send(TurnReported(report));
    }

    /// Starts a turn, unless a plug-in objects. One that was begun before is followed without asking again.
    fn take(&mut self, prepared: PreparedTurn, ctx: &mut Ctx<Self>) {
        let PreparedTurn { permit, input, rules, results, unfilled } = prepared;
        if let Some(Err(error)) = results.as_ref().map(keep_results) {
            let failure = TurnFailure::new(FailureCause::Storage, error.to_string());
            return self.report(TurnReport::failed(input.turn, failure));
        }
        for UnfilledPlaceholder { name, place } in self.context.take_unwarned(unfilled) {
            let remedy = if [RESULTS, RESULTS_FILE].contains(&name.as_str()) {
                "only a state with `join` gets it: add `join: all` to its frontmatter"
            } else {
                "give it with --var NAME=TEXT, or as an attribute of the tag that leads here"
            };
            tracing::warn!(agent = %self.id, "{place}: {{{{{name}}}}} has no value and stays as it is; {remedy}");
        }
        let turn_context = TurnContext { rules: Box::new(rules), spent: permit.spent };
        if permit.begun || self.context.interceptors.is_empty() {
            self.start(input, turn_context, ctx);
        } else {
            self.consult_before(input, turn_context, ctx);
        }
    }

    /// Starts a turn once its working directory is there.
    fn start(&mut self, input: TurnInput, turn_context: TurnContext, ctx: &mut Ctx<Self>) {
        match input.working_dir.tree.clone() {
            Some(tree) => self.start_in_worktree(tree, input, turn_context, ctx),
            None if self.context.performer.exchanges_work() => {
                self.start_with_fetched_work(input, turn_context, ctx);
            }
            None => self.launch_turn(input, turn_context, ctx),
        }
    }

    fn launch_turn(&mut self, input: TurnInput, turn_context: TurnContext, ctx: &mut Ctx<Self>) {
        let turn = input.turn.clone();
        let own = ctx.address().recipient();
        let process = TurnActor::launch(input, Rc::clone(&self.context), own);
        let rules = turn_context.rules;
        self.work = AgentWork::RunningTurn { turn, rules, _process: process };
    }

    fn turn(&self) -> Option<TurnId> {
        match &self.work {
            AgentWork::Idle => None,
            AgentWork::Starting(turn)
            | AgentWork::Preparing { turn, .. }
            | AgentWork::PerformingActivity { turn, .. }
            | AgentWork::RunningTurn { turn, .. } => Some(turn.clone()),
        }
    }
}

impl Actor for AgentActor {
    type Context = Ctx<Self>;

    fn stopped(&mut self, _: &mut Self::Context) {
        let down = AgentDown {
            agent: self.id.clone(),
            turn: self.turn(),
            panicked: std::thread::panicking(),
        };
        self.context.supervisor.deaths.do_send(down);
    }
}

impl Handler<DispatchTurn> for AgentActor {
    type Result = ();

    /// Ignores a turn that runs already. The permit of a turn that is over is returned.
    fn handle(&mut self, DispatchTurn(prepared): DispatchTurn, ctx: &mut Self::Context) {
        if let AgentWork::Preparing { turn, .. }
        | AgentWork::PerformingActivity { turn, .. }
        | AgentWork::RunningTurn { turn, .. } = &self.work
            && *turn == prepared.input.turn
        {
            return;
        }
        if self.reported.as_ref() == Some(&prepared.input.turn) {
            let nothing = TurnReport::empty(prepared.input.turn);
            return self.context.supervisor.reports.do_send(TurnReported(nothing));
        }
        self.work = AgentWork::Starting(prepared.input.turn.clone());
        self.take(*prepared, ctx);
    }
}

impl Handler<TerminateAgent> for AgentActor {
    type Result = ();

    fn handle(&mut self, _: TerminateAgent, ctx: &mut Self::Context) {
        ctx.stop();
    }
}
