//! An agent about to fork: its children are planned before the fork is reported.
//!
//! A plain fork needs nothing. For other forks a list is read, directories are checked and the start commit of
//! worktrees is noted, from the agent's working directory. The agent can repair an error there.

use std::collections::HashSet;
use std::rc::Rc;

use actix::{ActorFutureExt, AsyncContext, Context as Ctx, WrapFuture};
use uuid::Uuid;

use super::{AgentActor, AgentWork};
use crate::actor::activity_executor::LookupOutcome;
use crate::actor::context::RunContext;
use crate::domain::decide::{TurnJudgement, TurnReport};
use crate::domain::fork::{ChildSpec, ForkGroup, agent_count};
use crate::domain::id::{Folder, SessionId};
use crate::domain::policy::{ProtocolViolation, TransitionPolicy};
use crate::domain::transition::{ForkTag, TagName, Transition, Variables};
use crate::domain::turn::{FailureCause, TurnFailure, TurnId};
use crate::fault::point;
use crate::language::output::placeholder;
use crate::language::prompt::{agent_terms, step};
use crate::language::resume::turn::TurnRules;
use crate::language::{fork_list, template};

/// The reason why a fork is not possible.
enum ForkError {
    /// The agent can repair this.
    Wrong(String),
    /// Only a person can repair this.
    Hopeless(String),
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

/// The inputs that planning the children of a fork needs.
struct ForkPlanner {
    context: Rc<RunContext>,
    turn: TurnId,
    max_fan_out: u32,
    rules: TurnRules,
}

impl ForkPlanner {
    /// Plans the children of a fork, tag by tag. Consecutive tags with the same target form one group.
    async fn groups(&self, fork: &Transition) -> Result<Vec<ForkGroup>, ForkError> {
        let mut groups: Vec<ForkGroup> = Vec::new();
        for forked in fork.forked() {
            let entries = self.entries(&forked).await?;
            let many = agent_count(&groups) + entries.len();
            if many > usize::try_from(self.max_fan_out).unwrap_or(usize::MAX) {
                return Err(ForkError::Wrong(self.too_many(many)));
            }
            let agents = self.child(&forked, entries).await?;
            match groups.last_mut() {
                Some(last) if last.state == forked.target && last.scope == forked.scope => {
                    last.agents.extend(agents);
                }
                _ => groups.push(self.group(&forked, agents).await?),
            }
        }
        Ok(groups)
    }

    fn too_many(&self, many: usize) -> String {
        format!(
            "{many} agents would be forked, but one reply may fork at most {} (max_fan_out, in the frontmatter of {} or in raymond.yaml)",
            self.max_fan_out, self.rules.state
        )
    }

    /// Returns the variables of each child of one fork tag.
    async fn entries(&self, forked: &ForkTag) -> Result<Vec<Variables>, ForkError> {
        let Some(each) = &forked.each else { return Ok(vec![forked.variables.clone()]) };
        let text = if each.is_inline() {
            each.list.clone()
        } else {
            let (working_dir, file) = (self.rules.working_dir.clone(), each.list.clone());
            let performer = Rc::clone(&self.context.performer);
            found(performer.text(working_dir, file, fork_list::MAX_LIST_BYTES).await)?
        };
        fork_list::entries(each, &text, &forked.variables).map_err(ForkError::Wrong)
    }

    async fn child(
        &self,
        forked: &ForkTag,
        entries: Vec<Variables>,
    ) -> Result<Vec<ChildSpec>, ForkError> {
        let mut known: HashSet<Folder> = HashSet::new();
        let mut agents = Vec::with_capacity(entries.len());
        for variables in entries {
            let cwd = forked.cwd.as_ref().map(|cwd| directory(cwd, &variables)).transpose()?;
            if let Some(new) = cwd.as_ref().filter(|cwd| known.insert((*cwd).clone())) {
                let performer = Rc::clone(&self.context.performer);
                found(performer.directory(self.rules.working_dir.below(Some(new))).await)?;
            }
            let session = SessionId::new(&Uuid::new_v4().to_string());
            agents.push(ChildSpec { session, cwd, variables });
        }
        Ok(agents)
    }

    async fn group(
        &self,
        forked: &ForkTag,
        agents: Vec<ChildSpec>,
    ) -> Result<ForkGroup, ForkError> {
        let source = self.context.source_of(self.rules.folder.as_ref());
        let source = source.map_err(|error| ForkError::Wrong(error.to_string()))?;
        let options =
            agent_terms::agent_options_at(forked.scope.as_ref(), &forked.target, &*source);
        let base = if options.worktree {
            let performer = Rc::clone(&self.context.performer);
            match performer.commit(self.turn.stem(), self.rules.working_dir.clone()).await {
                LookupOutcome::Done(commit) => Some(commit.map_err(ForkError::Hopeless)?),
                LookupOutcome::Ended => return Err(ForkError::Ended),
            }
        } else {
            None
        };
        let (state, scope) = (forked.target.clone(), forked.scope.clone());
        Ok(ForkGroup { state, scope, options, base, not_before: None, agents })
    }
}

fn found<T>(found: LookupOutcome<T>) -> Result<T, ForkError> {
    match found {
        LookupOutcome::Done(done) => done.map_err(ForkError::Wrong),
        LookupOutcome::Ended => Err(ForkError::Ended),
    }
}

/// Returns the directory of a child with these variables.
fn directory(cwd: &str, variables: &Variables) -> Result<Folder, ForkError> {
    let filled = template::fill(cwd, |name| placeholder(variables, name));
    let directory = filled.text.trim().trim_start_matches("./");
    match (filled.unknown.first(), Folder::parse(directory)) {
        (Some((name, _)), _) => Err(ForkError::Wrong(format!(
            "nothing fills {{{{{name}}}}} in cwd=\"{cwd}\"; the entries of the list have no such field"
        ))),
        (None, Ok(folder)) => Ok(folder),
        (None, Err(_)) => Err(ForkError::Wrong(format!(
            "`{directory}` is no directory below that of the agent; name one without a leading / and without `..`"
        ))),
    }
}
