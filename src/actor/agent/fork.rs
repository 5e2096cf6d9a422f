//! An agent about to fork: its children are planned before the fork is reported.
//!
//! A plain fork needs nothing. For other forks a list is read, directories are checked and the start commit of
//! worktrees is noted, from the agent's working directory. The agent can repair an error there.

use std::rc::Rc;

use actix::{ActorFutureExt, AsyncContext, Context as Ctx, WrapFuture};
use uuid::Uuid;

use super::{AgentActor, AgentWork};
use crate::actor::context::RunContext;
use crate::actor::exchange::{NotReady, pushed};
use crate::actor::runner::LookupOutcome;
use crate::domain::agent::AgentOptions;
use crate::domain::decide::{TurnJudgement, TurnReport};
use crate::domain::id::SessionId;
use crate::domain::policy::{ProtocolViolation, TransitionPolicy};
use crate::domain::settings::{ChildSpec, ForkGroup};
use crate::domain::transition::{ForkTag, TagName, Transition, Variables};
use crate::domain::turn::{FailureCause, TurnFailure, TurnId};
use crate::domain::worktree::WorkingDir;
use crate::fault::point;
use crate::language::fork_plan;
use crate::language::fork_plan::{ForkDirectories, ForkPlan};
use crate::language::prompt::step;
use crate::language::resume::turn::TurnRules;

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
    pub(super) fn report_taken(
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
