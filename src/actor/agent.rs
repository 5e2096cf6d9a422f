//! The actor of one live agent: it takes the turn that is due and reports its outcome.
//!
//! It holds nothing that is not in the persisted state: while it waits it is an assignment, and a
//! new actor built from the state can take its place at any time.

mod activity;
mod consult;

mod before_turn;
mod fork;
mod judge;
mod permissions;
mod script;

use std::rc::Rc;
use std::sync::Arc;

use actix::{Actor, ActorContext, Addr, AsyncContext, Context as Ctx, Handler, SpawnHandle};

use super::context::RunContext;
use super::message::{
    AgentDown, DispatchTurn, TaskAnswered, TerminateAgent, TurnAssignment, TurnPermit, TurnReported,
};
use super::process::TurnActor;
use crate::domain::consult::SpendingTotals;
use crate::domain::decide::{TurnJudgement, TurnReport};
use crate::domain::fork::ForkRules;
use crate::domain::graph_execution::WaitResult;
use crate::domain::id::{AgentId, Folder, StateName};
use crate::domain::turn::{FailureCause, TURN_VERSION, TurnFailure, TurnId, TurnInput};
use crate::domain::turn_options::OnDenied;
use crate::domain::working_dir::WorkingDir;
use crate::language::prompt::judgement::ReplyRules;
use crate::language::prompt::step::{
    self, PreparedPrompt, PromptContext, RESULTS_FILE, UnfilledPlaceholder,
};

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
        handle: SpawnHandle,
    },
    /// An activity is performed.
    PerformingActivity {
        turn: TurnId,
        _handle: SpawnHandle,
    },
    RunningTurn {
        turn: TurnId,
        turn_context: Box<TurnContext>,
        _process: Addr<TurnActor>,
    },
}

/// The rules by which a reply is judged, and the cost before it.
#[derive(Clone)]
struct TurnContext {
    rules: ReplyRules,
    state: StateName,
    spent: SpendingTotals,
    folder: Option<Folder>,
    working_dir: WorkingDir,
    forks: ForkRules,
    on_denied: OnDenied,
    /// True if the agent's graph asked for this turn.
    is_of_graph: bool,
    /// The commit its worktree begins at, where that is known.
    base: Option<String>,
}

impl AgentActor {
    /// Starts an actor for an agent that has nothing to do yet.
    #[must_use]
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

    /// Reports the result of a turn that the agent's graph asked for.
    fn report_task(&mut self, report: TurnReport, result: WaitResult) {
        self.work = AgentWork::Idle;
        self.reported = Some(report.turn.clone());
        self.context.supervisor.answers.do_send(TaskAnswered { report, result });
    }

    fn position(&self, assignment: &TurnAssignment) -> PromptContext {
        PromptContext {
            workflow: self.context.workflow.clone(),
            agent: self.id.clone(),
            state: assignment.state.clone(),
            variables: assignment.variables.clone(),
            results: self.results(assignment),
            run_variables: self.context.variables.clone(),
        }
    }

    /// Reads the prompt of the state or of its evaluator, and starts the turn unless a plug-in objects.
    fn ask(&mut self, assignment: TurnAssignment, admitted: &TurnPermit, ctx: &mut Ctx<Self>) {
        if let Err(error) = self.keep_results(&assignment) {
            let failure = TurnFailure::new(FailureCause::Storage, error.to_string());
            return self.report(TurnReport::failed(assignment.turn, failure));
        }
        let read = self.read(&assignment);
        let ask = match read {
            Ok(ask) => ask,
            Err(error) => {
                let failure = TurnFailure::new(FailureCause::Workflow, error.to_string());
                return self.report(TurnReport::failed(assignment.turn, failure));
            }
        };
        if let Some(join) = ask.join.filter(|_| assignment.may_join()) {
            let judgement = TurnJudgement::JoinDue(Box::new(join));
            return self.report(TurnReport { judgement, ..TurnReport::empty(assignment.turn) });
        }
        for UnfilledPlaceholder { name, place } in self.context.take_unwarned(ask.unfilled) {
            tracing::warn!(agent = %self.id, "{place}: {{{{{name}}}}} has no value and stays as it is; give it with --var {name}=TEXT, or as an attribute of the tag that leads here");
        }
        let file = ask.values.get(RESULTS_FILE).filter(|_| assignment.results.is_some());
        let reads_results = file.is_some_and(|file| ask.prompt.contains(file.as_str()));
        let evaluator = assignment.proposal.as_ref().map(|proposal| proposal.evaluator.clone());
        let asked = evaluator.or_else(|| Some(assignment.task.as_ref()?.name.clone()));
        let schema = ask.output.as_ref().map(|contract| Arc::clone(contract.schema.text()));
        let own_on_denied = ask.options.on_denied;
        let options = match self.permitted_options(&assignment, ask.options, &ask.option_site) {
            Ok(options) => options,
            Err(why) => {
                let failure = TurnFailure::new(FailureCause::Workflow, why);
                return self.report(TurnReport::failed(assignment.turn, failure));
            }
        };
        let turn_context = TurnContext {
            is_of_graph: assignment.task.is_some() && assignment.is_in_graph,
            rules: ReplyRules {
                policy: ask.policy,
                output: ask.output,
                evaluator: ask.evaluator,
                proposal: assignment.proposal.clone(),
                task: assignment.task.clone(),
                needs_outputs: assignment.result_leaves_folder,
            },
            state: assignment.state.clone(),
            spent: admitted.spent,
            folder: assignment.folder.clone(),
            working_dir: assignment.working_dir.clone(),
            forks: ask.forks,
            on_denied: own_on_denied.unwrap_or(self.context.on_denied),
            base: assignment.base.clone(),
        };
        let input = TurnInput {
            version: TURN_VERSION,
            turn: assignment.turn,
            state: asked.unwrap_or(assignment.state),
            folder: assignment.folder,
            working_dir: assignment.working_dir,
            reads_results,
            visit: assignment.visit,
            session: assignment.session,
            model: ask.model.or_else(|| self.context.model.clone()),
            options,
            max_cost: admitted.spending_limit,
            output: schema,
            limits: assignment.limits,
            prompt: assignment.reminder.unwrap_or(ask.prompt),
            values: ask.values,
        };
        if admitted.begun || self.context.interceptors.is_empty() {
            self.start(input, turn_context, ctx);
        } else {
            self.consult_before(input, turn_context, ctx);
        }
    }

    /// Reads the prompt of the turn that is due.
    fn read(&self, assignment: &TurnAssignment) -> Result<PreparedPrompt, step::Error> {
        let position = self.position(assignment);
        if let Some(task) = &assignment.task {
            return step::task(&position, task);
        }
        let source = self.context.source_of(assignment.folder.as_ref())?;
        match &assignment.proposal {
            Some(proposal) => step::evaluation(&position, proposal, &*source),
            None => step::step(&position, &*source),
        }
    }

    /// Starts a turn once its working directory is there.
    fn start(&mut self, input: TurnInput, turn_context: TurnContext, ctx: &mut Ctx<Self>) {
        match input.working_dir.tree.clone() {
            Some(tree) => self.start_in_worktree(tree, input, turn_context, ctx),
            None => self.launch_turn(input, turn_context, ctx),
        }
    }

    fn launch_turn(&mut self, input: TurnInput, turn_context: TurnContext, ctx: &mut Ctx<Self>) {
        let turn = input.turn.clone();
        let own = ctx.address().recipient();
        let process = TurnActor::launch(input, Rc::clone(&self.context), own);
        self.work = AgentWork::RunningTurn {
            turn,
            turn_context: Box::new(turn_context),
            _process: process,
        };
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

    /// Ignores a turn that runs already or is over. A permit for a turn that is over is returned.
    fn handle(
        &mut self,
        DispatchTurn(assignment, admitted): DispatchTurn,
        ctx: &mut Self::Context,
    ) {
        if let AgentWork::Preparing { turn, .. }
        | AgentWork::PerformingActivity { turn, .. }
        | AgentWork::RunningTurn { turn, .. } = &self.work
            && *turn == assignment.turn
        {
            return;
        }
        if self.reported.as_ref() == Some(&assignment.turn) {
            if admitted.is_some() {
                let nothing = TurnReport::empty(assignment.turn);
                self.context.supervisor.reports.do_send(TurnReported(nothing));
            }
            return;
        }
        self.work = AgentWork::Starting(assignment.turn.clone());
        if let Some(admitted) = admitted {
            return self.ask(assignment, &admitted, ctx);
        }
        if !self.report_due_join(&assignment) {
            self.work = AgentWork::Idle;
        }
    }
}

impl Handler<TerminateAgent> for AgentActor {
    type Result = ();

    fn handle(&mut self, _: TerminateAgent, ctx: &mut Self::Context) {
        ctx.stop();
    }
}
