//! The actor of one live agent: it takes the next turn, judges its reply and reports the outcome.
//!
//! All its data is in the persisted state, so a new actor can replace it at any time.

use std::path::Path;
use std::rc::Rc;

use actix::{
    Actor, ActorContext, ActorFutureExt, Addr, AsyncContext, Context as Ctx, Handler, SpawnHandle,
    WrapFuture,
};
use uuid::Uuid;

use super::context::{RunContext, contained};
use super::exchange::{NotReady, WorkExchange};
use super::observer::{
    AgentDown, CancelConsult, DiscardTurn, DispatchTurn, TakeTransition, TaskDone, TerminateAgent,
    TurnEnded, TurnReported, consult,
};
use super::process::TurnActor;
use super::runner::{ActivityExecutor, LookupOutcome};
use crate::domain::agent::AgentOptions;
use crate::domain::consult::{
    ConsultVerdict, Consultation, PluginVerdict, SpendingTotals, TransitionQuery, TurnStartQuery,
    strictest,
};
use crate::domain::decide::{TurnJudgement, TurnReport};
use crate::domain::host::Home;
use crate::domain::id::{AgentId, Folder, SessionId};
use crate::domain::policy::ProtocolViolation;
use crate::domain::session::SessionKeeping;
use crate::domain::settings::{ChildSpec, ForkGroup};
use crate::domain::transition::{ForkTag, Transition, Variables};
use crate::domain::turn::{
    FailureCause, TurnCost, TurnFailure, TurnId, TurnOutcome, TurnReply, note_on_changes,
};
use crate::domain::worktree_snapshot::{SnapshotOutcome, WorktreeSnapshot};
use crate::fault::FaultPoint;
use crate::language::fork_plan::{self, ForkDirectories, ForkPlan};
use crate::language::prompt::judgement::JudgedReply;
use crate::language::prompt::step::{
    self, JoinResults, RESULTS, RESULTS_FILE, UnfilledPlaceholder,
};
use crate::language::resume::turn::{PreparedTurn, ReplyOutcome, TurnRules};
use crate::store;
use crate::store::files::{make_dir, replace};

mod activity;

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
        /// The spending when the turn began.
        spent: SpendingTotals,
        /// True if the agent has ended, so that only the cost of the turn counts.
        is_discarded: bool,
        _process: Addr<TurnActor>,
    },
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
        self.take(prepared, ctx);
    }
}

impl Handler<TerminateAgent> for AgentActor {
    type Result = ();

    fn handle(&mut self, _: TerminateAgent, ctx: &mut Self::Context) {
        ctx.stop();
    }
}

// The start of a turn: the results that it reads must be in their file, plug-ins must not object, and its worktree must
// exist.

/// Writes the results of a join into the file that the prompt may name. The file is written at each start of the turn,
/// so it is also correct after a crash.
fn keep_results(results: &JoinResults) -> Result<(), store::Error> {
    let file = Path::new(&results.file);
    if let Some(directory) = file.parent() {
        make_dir(directory)?;
    }
    replace(file, results.list.as_bytes())
}

impl AgentActor {
    /// Starts a turn, unless a plug-in objects. A turn that was begun before is followed without asking again.
    fn take(&mut self, mut prepared: Box<PreparedTurn>, ctx: &mut Ctx<Self>) {
        if let Some(Err(error)) = prepared.results.as_ref().map(keep_results) {
            let failure = TurnFailure::new(FailureCause::Storage, error.to_string());
            return self.report(TurnReport::failed(prepared.input.turn, failure));
        }
        let unfilled = std::mem::take(&mut prepared.unfilled);
        for UnfilledPlaceholder { name, place } in self.context.take_unwarned(unfilled) {
            let remedy = if [RESULTS, RESULTS_FILE].contains(&name.as_str()) {
                "only a state with `join` gets it: add `join: all` to its frontmatter"
            } else {
                "give it with --var NAME=TEXT, or as an attribute of the tag that leads here"
            };
            tracing::warn!(agent = %self.id, "{place}: {{{{{name}}}}} has no value and stays as it is; {remedy}");
        }
        if prepared.permit.started || self.context.interceptors.is_empty() {
            self.start(prepared, ctx);
        } else {
            self.consult_before(prepared, ctx);
        }
    }

    /// Starts a turn once its working directory is there, with the work of other hosts in it.
    fn start(&mut self, mut prepared: Box<PreparedTurn>, ctx: &mut Ctx<Self>) {
        let performer = Rc::clone(&self.context.performer);
        let (input, base) = (&prepared.input, prepared.rules.base.clone());
        let (turn, tree) = (input.turn.clone(), input.working_dir.tree.clone());
        if tree.is_none() && !performer.exchanges_work() {
            return self.launch_turn(*prepared, ctx);
        }
        let exchange = WorkExchange::of(&performer, &self.id, &input.working_dir);
        let failed_before = tree.zip(input.failed_before);
        let making = async move {
            exchange.prepare(base).await?;
            let Some((tree, cause)) = failed_before else { return Ok(None) };
            let files = performer.uncommitted(tree).await;
            Ok(files.and_then(|files| note_on_changes(cause, &files)))
        };
        let handle = ctx.spawn(making.into_actor(self).map(move |made, this, ctx| match made {
            Ok(note) => {
                if let Some(note) = note {
                    prepared.input.add_note(&note);
                }
                this.launch_turn(*prepared, ctx);
            }
            Err(NotReady::Failed(failure)) => {
                this.report(TurnReport::failed(prepared.input.turn, failure));
            }
            Err(NotReady::Ended) => this.report(TurnReport::empty(prepared.input.turn)),
        }));
        self.work = AgentWork::Preparing { turn, cost: TurnCost::default(), handle };
    }

    fn launch_turn(&mut self, prepared: PreparedTurn, ctx: &mut Ctx<Self>) {
        let PreparedTurn { permit, input, rules, .. } = prepared;
        let turn = input.turn.clone();
        let agent = ctx.address().recipient();
        self.work = AgentWork::RunningTurn {
            turn,
            rules: Box::new(rules),
            spent: permit.spent,
            is_discarded: false,
            _process: TurnActor::launch(input, Rc::clone(&self.context), agent),
        };
    }
}

// Plug-ins are asked before a turn starts, and before its transition is reported.
//
// Without such plug-ins, it does not wait.

impl AgentActor {
    /// Starts a turn, unless a plug-in objects.
    fn consult_before(&mut self, prepared: Box<PreparedTurn>, ctx: &mut Ctx<Self>) {
        let PreparedTurn { permit, input, rules, .. } = &*prepared;
        let question = Consultation::Start(TurnStartQuery {
            turn: input.turn.clone(),
            state: input.state.clone(),
            folder: input.folder.clone(),
            model: input.model.clone(),
            spent: permit.spent,
        });
        let folder = rules.folder.clone();
        self.consult(question, TurnCost::default(), folder, ctx, move |this, verdicts, ctx| {
            if strictest(verdicts.clone()).is_none() {
                return this.start(prepared, ctx);
            }
            let report = TurnReport { verdicts, ..TurnReport::empty(prepared.input.turn) };
            this.report_taken(report, &prepared.rules, ctx);
        });
    }

    /// Reports the outcome of a turn, with the plug-ins' verdicts on the transition.
    fn consult_after(
        &mut self,
        mut report: TurnReport,
        rules: Box<TurnRules>,
        spent: SpendingTotals,
        ctx: &mut Ctx<Self>,
    ) {
        let TurnJudgement::Accepted(accepted) = &report.judgement else {
            return self.report(report);
        };
        if self.context.interceptors.is_empty() {
            return self.report_taken(report, &rules, ctx);
        }
        let question = Consultation::Transition(TransitionQuery {
            turn: report.turn.clone(),
            state: rules.state.clone(),
            folder: rules.folder.clone(),
            transition: accepted.transition.clone(),
            cost_usd: report.cost.amount,
            spent,
        });
        let (cost, folder) = (report.cost.clone(), rules.folder.clone());
        self.consult(question, cost, folder, ctx, move |this, verdicts, ctx| {
            report.verdicts = verdicts;
            this.report_taken(report, &rules, ctx);
        });
    }

    fn consult(
        &mut self,
        question: Consultation,
        cost: TurnCost,
        folder: Option<Folder>,
        ctx: &mut Ctx<Self>,
        then: impl FnOnce(&mut Self, Vec<PluginVerdict>, &mut Ctx<Self>) + 'static,
    ) {
        let turn = question.turn().clone();
        let context = Rc::clone(&self.context);
        let verdicts = async move { consult(&context.interceptors, &question).await };
        let handle = ctx.spawn(verdicts.into_actor(self).map(move |mut verdicts, this, ctx| {
            verdicts.retain(|verdict| this.is_possible(verdict, folder.as_ref()));
            then(this, verdicts, ctx);
        }));
        self.work = AgentWork::Preparing { turn, cost, handle };
    }

    /// Returns whether a plug-in's verdict is possible: the states that it names must exist.
    fn is_possible(&self, verdict: &PluginVerdict, folder: Option<&Folder>) -> bool {
        let ConsultVerdict::Override { transition, .. } = &verdict.verdict else { return true };
        let Ok(source) = self.context.source_of(folder) else { return false };
        let checked = step::check(transition, &*source);
        if let Err(violation) = &checked {
            tracing::warn!(agent = %self.id, "the plug-in {} asked for something impossible, which is ignored: {violation}", verdict.by);
        }
        checked.is_ok()
    }

    /// Cancels what is prepared. The cost of a turn that is over is reported.
    fn cancel_preparing(&mut self, ctx: &mut Ctx<Self>) {
        if let AgentWork::Preparing { turn, cost, handle } = &self.work {
            ctx.cancel_future(*handle);
            let report = TurnReport { cost: cost.clone(), ..TurnReport::empty(turn.clone()) };
            self.report(report);
        }
    }
}

impl Handler<CancelConsult> for AgentActor {
    type Result = ();

    /// Cancels the consultation. The turn's outcome is on disk, so it is judged again later, unless the agent has
    /// ended: then its cost is recorded now.
    fn handle(&mut self, _: CancelConsult, ctx: &mut Self::Context) {
        self.cancel_preparing(ctx);
    }
}

impl Handler<DiscardTurn> for AgentActor {
    type Result = ();

    fn handle(&mut self, _: DiscardTurn, ctx: &mut Self::Context) {
        if let AgentWork::RunningTurn { is_discarded, .. } = &mut self.work {
            *is_discarded = true;
        }
        self.cancel_preparing(ctx);
    }
}

// The end of a turn: its reply is judged, and reported with the transition that follows from it.

impl Handler<TurnEnded> for AgentActor {
    type Result = ();

    fn handle(&mut self, ended: TurnEnded, ctx: &mut Ctx<Self>) {
        let AgentWork::RunningTurn { turn, rules, spent, is_discarded, .. } = &self.work else {
            return;
        };
        if *turn != ended.turn {
            return;
        }
        let (rules, spent, is_discarded) = (rules.clone(), *spent, *is_discarded);
        let reply = match ended.outcome {
            TurnOutcome::Failed(failure) => {
                let report = TurnReport::failed(ended.turn, failure);
                let then = |this: &mut Self, report, _: &mut Ctx<Self>| this.report(report);
                return self.with_snapshot(&rules, report, OnSnapshotStop::Report, ctx, then);
            }
            TurnOutcome::Replied(reply) => reply,
        };
        let report = TurnReport {
            cost: TurnCost::of_reply(&reply),
            message: reply.message.clone(),
            kept_session: match &reply.session {
                Some(SessionKeeping::Kept(kept)) => Some(kept.clone()),
                Some(SessionKeeping::OnlyHere(_)) | None => None,
            },
            ..TurnReport::empty(ended.turn)
        };
        if is_discarded {
            let then = |this: &mut Self, report, _: &mut Ctx<Self>| this.report(report);
            return self.with_snapshot(&rules, report, OnSnapshotStop::Report, ctx, then);
        }
        let kept_rules = rules.clone();
        let judge = move |this: &mut Self, report, ctx: &mut Ctx<Self>| {
            this.judge(report, kept_rules, spent, &reply, ctx);
        };
        self.with_snapshot(&rules, report, OnSnapshotStop::Postpone, ctx, judge);
    }
}

impl Handler<TakeTransition> for AgentActor {
    type Result = ();

    fn handle(&mut self, taken: TakeTransition, ctx: &mut Ctx<Self>) {
        let TakeTransition { report, rules, spent } = taken;
        self.work = AgentWork::Starting(report.turn.clone());
        self.consult_after(report, rules, spent, ctx);
    }
}

impl AgentActor {
    /// Judges a reply by the rules of its turn. An accepted one is reported once plug-ins have been asked, and the
    /// children of a fork are planned.
    fn judge(
        &mut self,
        report: TurnReport,
        rules: Box<TurnRules>,
        spent: SpendingTotals,
        reply: &TurnReply,
        ctx: &mut Ctx<Self>,
    ) {
        let outcome = contained(|| {
            let source = self.context.source_of(rules.folder.as_ref())?;
            Ok(rules.outcome(reply, &*source))
        });
        match outcome {
            Ok(ReplyOutcome::Judged(JudgedReply { judgement, warning, shown })) => {
                if let Some(warning) = warning {
                    tracing::warn!(agent = %self.id, "{warning}");
                }
                let report = TurnReport { judgement, shown, ..report };
                let spent =
                    SpendingTotals { total_cost_usd: self.context.total_cost.get(), ..spent };
                self.consult_after(report, rules, spent, ctx);
            }
            Ok(ReplyOutcome::TaskDone(result)) => {
                // The same turn is due again if its graph cannot continue, so it does not count as reported.
                self.work = AgentWork::Idle;
                self.context.supervisor.tasks.do_send(TaskDone { report, result });
            }
            Ok(ReplyOutcome::Failed(failure)) | Err(failure) => self.report(report.fail(failure)),
        }
    }
}

// A snapshot of an agent's worktree is made once a turn or an activity of it is over, before that is recorded.
//
// If hosts exchange work, it is pushed then, too.

/// The consequence for a turn's report if the run is stopped before the snapshot is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OnSnapshotStop {
    /// The turn is due again: its outcome is on disk.
    Postpone,
    /// The report has no snapshot.
    Report,
}

impl AgentActor {
    /// Makes a snapshot of the worktree that a turn ran in, if it has to be made; then continues with the report.
    fn with_snapshot(
        &mut self,
        rules: &TurnRules,
        report: TurnReport,
        on_stop: OnSnapshotStop,
        ctx: &mut Ctx<Self>,
        then: impl FnOnce(&mut Self, TurnReport, &mut Ctx<Self>) + 'static,
    ) {
        let snapshot_tree = rules.working_dir.snapshot_tree().cloned();
        let performer = Rc::clone(&self.context.performer);
        if snapshot_tree.is_none() && !performer.exchanges_work() {
            return then(self, report, ctx);
        }
        let (turn, cost, step) = (report.turn.clone(), report.cost.clone(), report.turn.clone());
        let exchange = WorkExchange::of(&performer, &self.id, &rules.working_dir);
        let home = rules.working_dir.home.clone();
        let keeping = async move {
            let snapshot = match snapshot_tree {
                None => None,
                Some(tree) => match snapshot_of(performer, home, tree, step).await {
                    None => return (None, Err(NotReady::Ended)),
                    snapshot => snapshot,
                },
            };
            (snapshot, exchange.push().await)
        };
        let handle = ctx.spawn(keeping.into_actor(self).map(move |(snapshot, kept), this, ctx| {
            match (kept, on_stop) {
                // Of a turn that has failed there is nothing to postpone, and nothing more to fail.
                (Ok(()), _) | (Err(_), OnSnapshotStop::Report) => {
                    then(this, TurnReport { snapshot, ..report }, ctx);
                }
                (Err(NotReady::Ended), OnSnapshotStop::Postpone) => {
                    let TurnReport { turn, cost, .. } = report;
                    this.report(TurnReport { cost, ..TurnReport::empty(turn) });
                }
                (Err(NotReady::Failed(failure)), OnSnapshotStop::Postpone) => {
                    this.report(report.fail(failure));
                }
            }
        }));
        self.work = AgentWork::Preparing { turn, cost, handle };
    }
}

/// Makes a snapshot of a worktree; `None` if the run was stopped before it was made.
async fn snapshot_of(
    performer: Rc<dyn ActivityExecutor>,
    home: Home,
    tree: AgentId,
    turn: TurnId,
) -> Option<Box<WorktreeSnapshot>> {
    let outcome = match performer.snapshot(home, tree.clone(), turn).await {
        LookupOutcome::Done(Ok(commit)) => {
            if !commit.left_out.is_empty() {
                let files = commit.left_out.join(", ");
                tracing::info!(agent = %tree, "the snapshot of the worktree is without {files}: they are too large, or in a separate repository");
            }
            SnapshotOutcome::Taken(commit)
        }
        LookupOutcome::Done(Err(why)) | LookupOutcome::Stuck(why) => {
            tracing::warn!(agent = %tree, "the worktree has no snapshot, so no run can branch off here: {why}");
            SnapshotOutcome::Failed(why)
        }
        LookupOutcome::Ended => return None,
    };
    FaultPoint::SnapshotAfter.reach();
    Some(Box::new(WorktreeSnapshot { tree, outcome }))
}

// The children of a fork are planned before the fork is reported.
//
// A plain fork needs nothing. For other forks a list is read, directories are checked and the start commit of
// worktrees is noted, from the agent's working directory. The agent can repair an error there.

/// The reason why a fork is not possible.
enum ForkError {
    /// The agent can repair this.
    Wrong(String),
    /// Only a person can repair this.
    Hopeless(String),
    /// The machine has no room for a file, and the fork is still due.
    Stuck(String),
    /// The run is to hold still.
    Ended,
}

impl AgentActor {
    /// Reports a turn with the transition that the agent takes: with the budget of a call, or the children of a fork.
    fn report_taken(&mut self, mut report: TurnReport, rules: &TurnRules, ctx: &mut Ctx<Self>) {
        let Some(taken) = report.taken() else { return self.report(report) };
        let source = self.context.source_of(rules.folder.as_ref()).ok();
        let source = source.as_deref();
        report.call_budget_usd = source.and_then(|source| step::call_budget(&taken, source));
        let Transition::Fork { .. } = taken else { return self.report(report) };
        // A JSON answer is not reminded of the policy: without room for the children, the run pauses.
        if rules.reply.output.is_none() {
            let policy = || rules.reply.policy.clone();
            report.allowed = source.map_or_else(policy, |source| rules.reply.shown_policy(source));
        }
        report.stagger_ms = rules.forks.stagger_ms;
        if taken.is_plain_fork() {
            report.child_options =
                source.map(|source| step::child_options(&taken, source)).unwrap_or_default();
            if !report.child_options.worktree {
                return self.report(report);
            }
        }
        let (turn, cost, kept_rules) = (report.turn.clone(), report.cost.clone(), rules.clone());
        let planner = ForkPlanner {
            context: Rc::clone(&self.context),
            turn: turn.clone(),
            max_fan_out: rules.forks.max_fan_out.unwrap_or(self.context.forking.max_fan_out),
            rules: rules.clone(),
        };
        let planning = async move {
            FaultPoint::ForkBefore.reach();
            let groups = planner.groups(&taken).await;
            FaultPoint::ForkAfter.reach();
            (groups, taken)
        };
        let handle = ctx.spawn(planning.into_actor(self).map(move |(groups, taken), this, _| {
            match groups {
                Ok(groups) => report.children = groups,
                Err(ForkError::Ended) => {
                    report = TurnReport { cost: report.cost, ..TurnReport::empty(report.turn) };
                }
                Err(ForkError::Stuck(why)) => {
                    let cost = report.cost;
                    report = TurnReport { cost, ..TurnReport::stuck(report.turn, why) };
                }
                Err(ForkError::Hopeless(why)) => {
                    let message = format!("{taken}: {why}");
                    report = report.fail(TurnFailure::new(FailureCause::Workflow, message));
                }
                Err(ForkError::Wrong(why)) => {
                    let violation = ProtocolViolation::Fork { asked: taken.in_short(), why };
                    let source = this.context.source_of(kept_rules.folder.as_ref()).ok();
                    let reminder =
                        source.and_then(|source| kept_rules.reply.reminder(&violation, &*source));
                    let violation = violation.to_string();
                    report.judgement = TurnJudgement::Violated { violation, reminder };
                }
            }
            this.report(report);
        }));
        self.work = AgentWork::Preparing { turn, cost, handle };
    }
}

/// The lookups that planning the children of a fork needs.
struct ForkPlanner {
    context: Rc<RunContext>,
    turn: TurnId,
    max_fan_out: u32,
    rules: TurnRules,
}

impl ForkPlanner {
    /// Plans the children of a fork, tag by tag.
    async fn groups(&self, fork: &Transition) -> Result<Vec<ForkGroup>, ForkError> {
        let mut plan = ForkPlan::new(self.rules.state.clone(), self.max_fan_out);
        for forked in fork.forked() {
            let listed = match ForkPlan::list_file(&forked) {
                Some(file) => Some(self.text(file).await?),
                None => None,
            };
            let entries = plan.entries(&forked, listed.as_deref()).map_err(ForkError::Wrong)?;
            let agents = self.children(&forked, entries).await?;
            if agents.is_empty() {
                continue;
            }
            if plan.begins_group(&forked) {
                let (options, base) = self.options(&forked).await?;
                plan.begin_group(&forked, options, base, agents);
            } else {
                plan.extend_group(agents);
            }
        }
        Ok(plan.into_groups_of(fork))
    }

    /// Returns the text of a list's file.
    async fn text(&self, file: &str) -> Result<String, ForkError> {
        let (working_dir, file) = (self.rules.working_dir.clone(), file.to_owned());
        let performer = Rc::clone(&self.context.performer);
        found(performer.text(working_dir, file, fork_plan::MAX_LIST_BYTES).await)
    }

    /// Returns the children of a tag, whose directories are there.
    async fn children(
        &self,
        forked: &ForkTag,
        entries: Vec<Variables>,
    ) -> Result<Vec<ChildSpec>, ForkError> {
        let mut directories = ForkDirectories::default();
        let mut agents = Vec::with_capacity(entries.len());
        for variables in entries {
            let assigned = directories.of_child(forked, &variables).map_err(ForkError::Wrong)?;
            if let Some((new, true)) = &assigned {
                let performer = Rc::clone(&self.context.performer);
                found(performer.directory(self.rules.working_dir.below(Some(new))).await)?;
            }
            let session = SessionId::new(&Uuid::new_v4().to_string());
            agents.push(ChildSpec { session, cwd: assigned.map(|(cwd, _)| cwd), variables });
        }
        Ok(agents)
    }

    /// Returns the options of the children of a tag, and the commit that their worktrees begin at.
    async fn options(&self, forked: &ForkTag) -> Result<(AgentOptions, Option<String>), ForkError> {
        let source = self.context.source_of(self.rules.folder.as_ref());
        let source = source.map_err(|failure| ForkError::Wrong(failure.message))?;
        let options = step::agent_options_at(forked.scope.as_ref(), &forked.target, &*source);
        if !options.worktree {
            return Ok((options, None));
        }
        let performer = Rc::clone(&self.context.performer);
        let exchange = WorkExchange::of(&performer, &self.turn.agent, &self.rules.working_dir);
        match exchange.push().await {
            Ok(()) => {}
            Err(NotReady::Failed(failure)) => return Err(ForkError::Hopeless(failure.message)),
            Err(NotReady::Ended) => return Err(ForkError::Ended),
        }
        match performer.commit(self.turn.stem(), self.rules.working_dir.clone()).await {
            LookupOutcome::Done(Ok(commit)) => Ok((options, Some(commit))),
            LookupOutcome::Done(Err(why)) => Err(ForkError::Hopeless(why)),
            LookupOutcome::Stuck(why) => Err(ForkError::Stuck(why)),
            LookupOutcome::Ended => Err(ForkError::Ended),
        }
    }
}

fn found<T>(found: LookupOutcome<T>) -> Result<T, ForkError> {
    match found {
        LookupOutcome::Done(done) => done.map_err(ForkError::Wrong),
        LookupOutcome::Stuck(why) => Err(ForkError::Stuck(why)),
        LookupOutcome::Ended => Err(ForkError::Ended),
    }
}
