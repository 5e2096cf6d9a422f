//! The actor of one live agent: it takes the next turn and reports its outcome.
//!
//! All its data is in the persisted state, so a new actor can replace it at any time.

use std::path::Path;
use std::rc::Rc;

use actix::{
    Actor, ActorContext, ActorFutureExt, Addr, AsyncContext, Context as Ctx, Handler, SpawnHandle,
    WrapFuture,
};
use uuid::Uuid;

use super::context::RunContext;
use super::observer::{AgentDown, DispatchTurn, TerminateAgent, TurnReported};
use super::process::TurnActor;
use crate::actor::exchange::{NotReady, fetched, made, pushed};
use crate::actor::observer::{CancelConsult, TakeTransition, TurnEnded, TurnReplied, consult};
use crate::actor::runner::{ActivityExecutor, LookupOutcome};
use crate::domain::activity::Activity;
use crate::domain::agent::AgentOptions;
use crate::domain::consult::{
    ConsultVerdict, Consultation, PluginVerdict, SpendingTotals, TransitionQuery, TurnStartQuery,
    strictest,
};
use crate::domain::decide::{TurnJudgement, TurnReport};
use crate::domain::host::Home;
use crate::domain::id::{AgentId, Folder, SessionId};
use crate::domain::operation::RecoveryClass;
use crate::domain::policy::{ProtocolViolation, TransitionPolicy};
use crate::domain::session::SessionKeeping;
use crate::domain::settings::{ChildSpec, ForkGroup};
use crate::domain::transition::{ForkTag, TagName, Transition, Variables};
use crate::domain::turn::{
    FailureCause, TurnCost, TurnFailure, TurnId, TurnInput, TurnOutcome, note_on_changes,
};
use crate::domain::worktree_snapshot::{SnapshotOutcome, WorkingDir, WorktreeSnapshot};
use crate::fault::point;
use crate::language::fork_plan;
use crate::language::fork_plan::{ForkDirectories, ForkPlan};
use crate::language::prompt::step;
use crate::language::prompt::step::{JoinResults, RESULTS, RESULTS_FILE, UnfilledPlaceholder};
use crate::language::resume::turn::{PreparedTurn, TurnRules};
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

    /// Starts a turn, unless a plug-in objects. A turn that was begun before is followed without asking again.
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

// Checks before an agent's turn: the results that it reads must be in their file, and its worktree must exist.

/// What an earlier attempt at a turn may have left behind: the cause with which it failed, and the files that are not
/// committed.
type LeftChanges = (FailureCause, String);

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
    /// Starts a turn once its worktree is there.
    fn start_in_worktree(
        &mut self,
        tree: AgentId,
        input: TurnInput,
        turn_context: TurnContext,
        ctx: &mut Ctx<Self>,
    ) {
        let (turn, base) = (input.turn.clone(), turn_context.rules.base.clone());
        let performer = Rc::clone(&self.context.performer);
        let home = input.working_dir.home.clone();
        let repeated = input.failed_before;
        let own = (self.id.clone(), tree.clone());
        let making = async move {
            made(Rc::clone(&performer), home, own, base).await?;
            let Some(cause) = repeated else { return Ok(None) };
            Ok(performer.uncommitted(tree).await.map(|files| (cause, files)))
        };
        self.start_once(making, turn, (input, turn_context), ctx);
    }

    /// Starts a turn in the run's own directory once the work of other hosts is there.
    fn start_with_fetched_work(
        &mut self,
        input: TurnInput,
        turn_context: TurnContext,
        ctx: &mut Ctx<Self>,
    ) {
        let performer = Rc::clone(&self.context.performer);
        let (turn, home) = (input.turn.clone(), input.working_dir.home.clone());
        let agent = self.id.clone();
        let fetching = async move { fetched(performer, home, agent, None).await.map(|()| None) };
        self.start_once(fetching, turn, (input, turn_context), ctx);
    }

    fn start_once(
        &mut self,
        ready: impl Future<Output = Result<Option<LeftChanges>, NotReady>> + 'static,
        turn: TurnId,
        (mut input, turn_context): (TurnInput, TurnContext),
        ctx: &mut Ctx<Self>,
    ) {
        let handle = ctx.spawn(ready.into_actor(self).map(move |made, this, ctx| match made {
            Ok(left) => {
                let note = left.and_then(|(cause, files)| note_on_changes(cause, &files));
                if let Some(note) = note {
                    input.add_note(&note);
                }
                this.launch_turn(input, turn_context, ctx);
            }
            Err(NotReady::Failed(failure)) => {
                this.report(TurnReport::failed(input.turn, failure));
            }
            Err(NotReady::Ended) => this.report(TurnReport::empty(input.turn)),
        }));
        self.work = AgentWork::Preparing { turn, cost: TurnCost::default(), handle };
    }
}

// Asks plug-ins before a turn starts and before a transition is reported.
//
// Without such plug-ins, it does not wait.

impl AgentActor {
    /// Starts a turn, unless a plug-in objects.
    fn consult_before(&mut self, input: TurnInput, turn_context: TurnContext, ctx: &mut Ctx<Self>) {
        let question = Consultation::Start(TurnStartQuery {
            turn: input.turn.clone(),
            state: input.state.clone(),
            folder: input.folder.clone(),
            model: input.model.clone(),
            spent: turn_context.spent,
        });
        let folder = turn_context.rules.folder.clone();
        self.consult(question, (TurnCost::default(), folder), ctx, move |this, verdicts, ctx| {
            if strictest(verdicts.clone()).is_none() {
                return this.start(input, turn_context, ctx);
            }
            let report = TurnReport {
                judgement: TurnJudgement::NotStarted,
                ..TurnReport::empty(input.turn)
            };
            this.report_with(report, verdicts, &turn_context.rules, ctx);
        });
    }

    /// Reports the outcome of a turn, with the plug-ins' verdicts on the transition.
    fn consult_after(
        &mut self,
        report: TurnReport,
        turn_context: TurnContext,
        ctx: &mut Ctx<Self>,
    ) {
        let TurnJudgement::Accepted(accepted) = &report.judgement else {
            return self.report(report);
        };
        if self.context.interceptors.is_empty() {
            return self.report_with(report, Vec::new(), &turn_context.rules, ctx);
        }
        let question = Consultation::Transition(TransitionQuery {
            turn: report.turn.clone(),
            state: turn_context.rules.state.clone(),
            folder: turn_context.rules.folder.clone(),
            transition: accepted.transition.clone(),
            cost_usd: report.cost.amount,
            spent: turn_context.spent,
        });
        let place = (report.cost.clone(), turn_context.rules.folder.clone());
        self.consult(question, place, ctx, move |this, verdicts, ctx| {
            this.report_with(report, verdicts, &turn_context.rules, ctx);
        });
    }

    fn consult(
        &mut self,
        question: Consultation,
        (cost, folder): (TurnCost, Option<Folder>),
        ctx: &mut Ctx<Self>,
        then: impl FnOnce(&mut Self, Vec<PluginVerdict>, &mut Ctx<Self>) + 'static,
    ) {
        let turn = question.turn().clone();
        let context = std::rc::Rc::clone(&self.context);
        let handle = async move { consult(&context.interceptors, &question).await };
        let handle = ctx.spawn(handle.into_actor(self).map(move |verdicts, this, ctx| {
            let verdicts = verdicts.into_iter();
            let verdicts = verdicts.filter(|verdict| this.is_possible(verdict, folder.as_ref()));
            let verdicts = verdicts.collect();
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

    /// Reports with the plug-ins' verdicts, and with the children that the transition forks.
    fn report_with(
        &mut self,
        mut report: TurnReport,
        verdicts: Vec<PluginVerdict>,
        rules: &TurnRules,
        ctx: &mut Ctx<Self>,
    ) {
        report.verdicts = verdicts;
        let taken = report.taken();
        self.report_taken(report, taken, rules, ctx);
    }
}

impl Handler<CancelConsult> for AgentActor {
    type Result = ();

    /// Cancels the consultation. The turn's outcome is on disk, so it is judged again later, unless the agent has
    /// ended: then its cost is recorded now.
    fn handle(&mut self, _: CancelConsult, ctx: &mut Self::Context) {
        if let AgentWork::Preparing { turn, cost, handle } = &self.work {
            ctx.cancel_future(*handle);
            let report = TurnReport { cost: cost.clone(), ..TurnReport::empty(turn.clone()) };
            self.report(report);
        }
    }
}

// Takes the outcome of an agent's turn, and the transition that its reply was judged to be.

impl Handler<TurnEnded> for AgentActor {
    type Result = ();

    /// Reports a failed turn. A reply is judged by the supervisor, which knows the agent's position.
    fn handle(&mut self, ended: TurnEnded, ctx: &mut Ctx<Self>) {
        let AgentWork::RunningTurn { turn, rules, .. } = &self.work else { return };
        if *turn != ended.turn {
            return;
        }
        let reply = match ended.outcome {
            TurnOutcome::Failed(failure) => {
                let report = TurnReport::failed(ended.turn, failure);
                let place = rules.working_dir.clone();
                return self.with_snapshot(
                    &place,
                    report,
                    OnSnapshotStop::Report,
                    ctx,
                    Self::report,
                );
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
        let (rules, place) = (rules.clone(), rules.working_dir.clone());
        self.with_snapshot(&place, report, OnSnapshotStop::Postpone, ctx, move |this, report| {
            // The same turn is due again if judging it fails, so it does not count as reported.
            this.work = AgentWork::Idle;
            this.context.supervisor.replies.do_send(TurnReplied { report, rules, reply });
        });
    }
}

impl Handler<TakeTransition> for AgentActor {
    type Result = ();

    fn handle(&mut self, due: TakeTransition, ctx: &mut Ctx<Self>) {
        let TakeTransition { report, rules, spent } = due;
        self.work = AgentWork::Starting(report.turn.clone());
        self.consult_after(report, TurnContext { rules, spent }, ctx);
    }
}

// Makes a snapshot of an agent's worktree once a turn or an activity of it is over, before that is recorded.
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
    /// Makes a snapshot of the worktree that a turn ran in, if one is due; then continues with the report.
    fn with_snapshot(
        &mut self,
        working_dir: &WorkingDir,
        report: TurnReport,
        on_stop: OnSnapshotStop,
        ctx: &mut Ctx<Self>,
        then: impl FnOnce(&mut Self, TurnReport) + 'static,
    ) {
        let snapshot_tree = working_dir.snapshot_tree().cloned();
        let performer = Rc::clone(&self.context.performer);
        if snapshot_tree.is_none() && !performer.exchanges_work() {
            return then(self, report);
        }
        let (turn, cost) = (report.turn.clone(), report.cost.clone());
        let WorkingDir { home, tree, .. } = working_dir.clone();
        let (agent, own_turn) = (self.id.clone(), turn.clone());
        let keeping = async move {
            let snapshot = match snapshot_tree {
                None => None,
                Some(tree) => {
                    let performer = Rc::clone(&performer);
                    match taken(performer, home.clone(), tree, own_turn).await {
                        None => return (None, Err(NotReady::Ended)),
                        snapshot => snapshot,
                    }
                }
            };
            (snapshot, pushed(performer, home, agent, tree).await)
        };
        let handle = ctx.spawn(keeping.into_actor(self).map(move |(snapshot, kept), this, _| {
            match (kept, on_stop) {
                // Of a turn that has failed there is nothing to postpone, and nothing more to fail.
                (Ok(()), _) | (Err(_), OnSnapshotStop::Report) => {
                    then(this, TurnReport { snapshot, ..report });
                }
                (Err(NotReady::Ended), OnSnapshotStop::Postpone) => {
                    let TurnReport { turn, cost, .. } = report;
                    this.report(TurnReport { cost, ..TurnReport::empty(turn) });
                }
                (Err(NotReady::Failed(failure)), OnSnapshotStop::Postpone) => {
                    let TurnReport { turn, cost, .. } = report;
                    this.report(TurnReport { cost, ..TurnReport::failed(turn, failure) });
                }
            }
        }));
        self.work = AgentWork::Preparing { turn, cost, handle };
    }
}

/// Makes a snapshot of a worktree; `None` if the run was stopped before it was made.
async fn taken(
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
    point("snapshot.after");
    Some(Box::new(WorktreeSnapshot { tree, outcome }))
}

/// Returns whether an activity may change files.
fn changes_files(activity: &Activity) -> bool {
    match activity {
        Activity::Operation(operation) => operation.class() != RecoveryClass::Read,
        Activity::Command(_) | Activity::Commands(_) => true,
        Activity::StartWorkflow(_)
        | Activity::Bases { .. }
        | Activity::Changes { .. }
        | Activity::Assert { .. }
        | Activity::Retract { .. }
        | Activity::Claim { .. } => false,
    }
}

// An agent about to fork: its children are planned before the fork is reported.
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
    /// Reports a turn that takes a transition, with the budget of the call that it makes, or with the children that
    /// it forks.
    fn report_taken(
        &mut self,
        mut report: TurnReport,
        taken: Option<Transition>,
        rules: &TurnRules,
        ctx: &mut Ctx<Self>,
    ) {
        let Some(taken) = taken else { return self.report(report) };
        if matches!(taken.tag(), TagName::Call | TagName::Function) {
            let source = self.context.source_of(rules.folder.as_ref());
            report.call_budget_usd =
                source.ok().and_then(|source| step::call_budget(&taken, &*source));
        }
        let Transition::Fork { .. } = taken else { return self.report(report) };
        // A JSON answer is not reminded of the policy: without room for the children, the run pauses.
        let is_by_tag = rules.reply.output.is_none();
        report.allowed = match self.context.source_of(rules.folder.as_ref()) {
            Ok(source) if is_by_tag => rules.reply.shown_policy(&*source),
            Err(_) if is_by_tag => rules.reply.policy.clone(),
            Ok(_) | Err(_) => TransitionPolicy::default(),
        };
        report.stagger_ms = rules.forks.stagger_ms;
        if taken.is_plain_fork() {
            let source = self.context.source_of(rules.folder.as_ref());
            let child = source.map(|source| step::child_options(&taken, &*source));
            report.child_options = child.unwrap_or_default();
            if !report.child_options.worktree {
                return self.report(report);
            }
        }
        let (turn, cost, own_rules) = (report.turn.clone(), report.cost.clone(), rules.clone());
        let planner = ForkPlanner {
            context: Rc::clone(&self.context),
            turn: turn.clone(),
            max_fan_out: rules.forks.max_fan_out.unwrap_or(self.context.forking.max_fan_out),
            rules: rules.clone(),
        };
        let gathering = async move {
            point("fork.before");
            let groups = planner.groups(&taken).await;
            point("fork.after");
            (groups, taken)
        };
        let handle = ctx.spawn(gathering.into_actor(self).map(move |(groups, taken), this, _| {
            match groups {
                Ok(groups) => report.children = groups,
                Err(ForkError::Ended) => report = TurnReport::empty(report.turn),
                Err(ForkError::Stuck(why)) => report = TurnReport::stuck(report.turn, why),
                Err(ForkError::Hopeless(why)) => {
                    let message = format!("{taken}: {why}");
                    let TurnReport { turn, cost, .. } = report;
                    let failure = TurnFailure::new(FailureCause::Workflow, message);
                    report = TurnReport { cost, ..TurnReport::failed(turn, failure) };
                }
                Err(ForkError::Wrong(why)) => {
                    let violation = ProtocolViolation::Fork { asked: taken.in_short(), why };
                    let source = this.context.source_of(own_rules.folder.as_ref());
                    let reminder =
                        source.ok().and_then(|one| own_rules.reply.reminder(&violation, &*one));
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
                plan.begin_group(&forked, self.options(&forked).await?, agents);
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
            let own = directories.of_child(forked, &variables).map_err(ForkError::Wrong)?;
            if let Some((new, true)) = &own {
                let performer = Rc::clone(&self.context.performer);
                found(performer.directory(self.rules.working_dir.below(Some(new))).await)?;
            }
            let session = SessionId::new(&Uuid::new_v4().to_string());
            agents.push(ChildSpec { session, cwd: own.map(|(cwd, _)| cwd), variables });
        }
        Ok(agents)
    }

    /// Returns the options of the children of a tag, and the commit that their worktrees begin at.
    async fn options(&self, forked: &ForkTag) -> Result<(AgentOptions, Option<String>), ForkError> {
        let source = self.context.source_of(self.rules.folder.as_ref());
        let source = source.map_err(|error| ForkError::Wrong(error.to_string()))?;
        let options = step::agent_options_at(forked.scope.as_ref(), &forked.target, &*source);
        if !options.worktree {
            return Ok((options, None));
        }
        let performer = Rc::clone(&self.context.performer);
        let (WorkingDir { home, tree, .. }, agent) =
            (self.rules.working_dir.clone(), self.turn.agent.clone());
        match pushed(Rc::clone(&performer), home, agent, tree).await {
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
