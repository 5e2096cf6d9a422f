//! The executor of activities at other hosts. Facts and started runs stay with the supervisor.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

use uuid::Uuid;

use super::host_calls::{ACTIVITY, HostCalls};
use crate::actor::activity_executor::{ActivityExecutor, ExchangeOutcome, LookupOutcome};
use crate::actor::runner::LocalFuture;
use crate::domain::activity::{Activity, ActivityOutcome};
use crate::domain::body_command::CommandId;
use crate::domain::fact::{FactChange, FactSelection, KnownFacts};
use crate::domain::git_exchange::ExchangeDirection;
use crate::domain::host::Home;
use crate::domain::host_work::{HostAnswer, HostWork};
use crate::domain::id::AgentId;
use crate::domain::turn::TurnId;
use crate::domain::working_dir::WorkingDir;
use crate::domain::worktree_snapshot::SnapshotCommit;

/// The executor of activities at other hosts.
pub(in crate::runtime) struct RemoteExecutor {
    calls: HostCalls,
    /// The executor of what stays here.
    here: Rc<dyn ActivityExecutor>,
    /// The homes of agents for which something was performed.
    homes: RefCell<HashMap<AgentId, Home>>,
    /// The step of each agent, and the number of activities that it has performed in it.
    performed: RefCell<HashMap<AgentId, (TurnId, usize)>>,
    /// True if the hosts exchange work by a git repository.
    exchanges_work: bool,
    /// True once nothing more is to begin.
    is_stopped: Cell<bool>,
    /// The number of commands of bodies that may run for an agent.
    commands: RefCell<HashMap<AgentId, usize>>,
}

impl RemoteExecutor {
    pub(in crate::runtime) fn new(
        calls: HostCalls,
        here: Rc<dyn ActivityExecutor>,
        exchanges_work: bool,
    ) -> Self {
        let (homes, performed, commands) = Default::default();
        let is_stopped = Cell::new(false);
        Self { calls, here, homes, performed, exchanges_work, is_stopped, commands }
    }

    /// Returns the name of the next activity of a step. A step that is not recorded yet is repeated by whoever takes the
    /// run over, with the same outcomes, so its activities come in the same order.
    fn name(&self, step: &TurnId) -> String {
        let mut performed = self.performed.borrow_mut();
        let number = match performed.get(&step.agent) {
            Some((last, number)) if last == step => number + 1,
            Some(_) | None => 0,
        };
        performed.insert(step.agent.clone(), (step.clone(), number));
        format!("{}.{number}", step.stem())
    }

    /// Asks a host for something that changes nothing, or comes to the same when it is done twice.
    async fn look(&self, home: Home, work: HostWork) -> HostAnswer {
        let key = self.calls.key("look", &Uuid::new_v4().simple().to_string(), &home);
        let answer = self.calls.call(key.clone(), &home, &work).await;
        self.calls.forget(key);
        answer
    }

    fn tell(&self, agent: &AgentId, work: &HostWork) {
        if let Some(home) = self.homes.borrow().get(agent) {
            let key = self.calls.key("stop", &Uuid::new_v4().simple().to_string(), home);
            self.calls.tell(key, home, work);
        }
    }
}

/// Returns what a host did or made; a failure names the host, because its machine is to be put right.
fn at_host(home: &Home, answer: HostAnswer) -> LookupOutcome<()> {
    let outcome = match answer {
        HostAnswer::Done { outcome } => LookupOutcome::Done(outcome),
        answer => other(answer),
    };
    let named = |why| {
        let host = home.host.as_ref().map_or_else(String::new, ToString::to_string);
        format!("host {host}: {why}")
    };
    match outcome {
        LookupOutcome::Done(Err(why)) => LookupOutcome::Done(Err(named(why))),
        LookupOutcome::Stuck(why) => LookupOutcome::Stuck(named(why)),
        outcome @ (LookupOutcome::Done(Ok(())) | LookupOutcome::Ended) => outcome,
    }
}

/// Returns the outcome of a look that should have had another kind of answer.
fn other<T>(answer: HostAnswer) -> LookupOutcome<T> {
    match answer {
        HostAnswer::Interrupted => LookupOutcome::Ended,
        HostAnswer::Stuck { why } => LookupOutcome::Stuck(why),
        HostAnswer::Refused { why } | HostAnswer::Lost { why } => LookupOutcome::Done(Err(why)),
        _ => LookupOutcome::Done(Err("the answer of the host is of another kind".to_owned())),
    }
}

impl ActivityExecutor for RemoteExecutor {
    fn perform(
        self: Rc<Self>,
        step: TurnId,
        working_dir: WorkingDir,
        activity: Activity,
        again: bool,
    ) -> LocalFuture<ActivityOutcome> {
        match &activity {
            Activity::StartWorkflow(_)
            | Activity::Assert { .. }
            | Activity::Retract { .. }
            | Activity::Claim { .. } => {
                return Rc::clone(&self.here).perform(step, working_dir, activity, again);
            }
            Activity::Commands(commands) => {
                let running = commands.len().saturating_sub(1);
                self.commands.borrow_mut().insert(step.agent.clone(), running);
            }
            Activity::Operation(_)
            | Activity::Command(_)
            | Activity::Bases { .. }
            | Activity::Changes { .. } => {}
        }
        Box::pin(async move {
            let home = working_dir.home.clone();
            self.homes.borrow_mut().insert(step.agent.clone(), home.clone());
            let key = self.calls.key(ACTIVITY, &self.name(&step), &home);
            let activity = activity.into();
            let work = HostWork::Perform { step, working_dir, activity, again };
            match self.calls.call(key, &home, &work).await {
                HostAnswer::Activity { outcome } => outcome,
                HostAnswer::Interrupted => ActivityOutcome::Ended,
                HostAnswer::Stuck { why } => ActivityOutcome::Stuck(why),
                HostAnswer::Refused { why } => {
                    let host = home.host.as_ref().map_or_else(String::new, ToString::to_string);
                    ActivityOutcome::Refused(format!("host {host}: {why}"))
                }
                HostAnswer::Lost { why } => ActivityOutcome::Lost(why),
                _ => ActivityOutcome::Stuck("the answer of the host is of another kind".to_owned()),
            }
        })
    }

    fn text(
        self: Rc<Self>,
        working_dir: WorkingDir,
        file: String,
        max_bytes: u64,
    ) -> LocalFuture<LookupOutcome<String>> {
        Box::pin(async move {
            let home = working_dir.home.clone();
            match self.look(home, HostWork::Text { working_dir, file, max_bytes }).await {
                HostAnswer::Text { found } => LookupOutcome::Done(found),
                answer => other(answer),
            }
        })
    }

    fn directory(self: Rc<Self>, working_dir: WorkingDir) -> LocalFuture<LookupOutcome<()>> {
        Box::pin(async move {
            let home = working_dir.home.clone();
            let answer = self.look(home.clone(), HostWork::Directory { working_dir }).await;
            at_host(&home, answer)
        })
    }

    fn commit(
        self: Rc<Self>,
        name: String,
        working_dir: WorkingDir,
    ) -> LocalFuture<LookupOutcome<String>> {
        Box::pin(async move {
            let home = working_dir.home.clone();
            match self.look(home, HostWork::Commit { name, working_dir }).await {
                HostAnswer::Commit { found } => LookupOutcome::Done(found),
                answer => other(answer),
            }
        })
    }

    fn worktree(
        self: Rc<Self>,
        home: Home,
        agent: AgentId,
        base: Option<String>,
    ) -> LocalFuture<LookupOutcome<()>> {
        Box::pin(async move {
            at_host(&home, self.look(home.clone(), HostWork::Worktree { agent, base }).await)
        })
    }

    fn snapshot(
        self: Rc<Self>,
        home: Home,
        tree: AgentId,
        turn: TurnId,
    ) -> LocalFuture<LookupOutcome<SnapshotCommit>> {
        Box::pin(async move {
            match self.look(home, HostWork::Snapshot { tree, turn }).await {
                HostAnswer::Snapshot { found } => LookupOutcome::Done(found),
                answer => other(answer),
            }
        })
    }

    fn exchanges_work(&self) -> bool {
        self.exchanges_work
    }

    fn exchange(
        self: Rc<Self>,
        home: Home,
        tree: Option<AgentId>,
        direction: ExchangeDirection,
    ) -> LocalFuture<ExchangeOutcome> {
        Box::pin(async move {
            if self.is_stopped.get() {
                return ExchangeOutcome::Ended;
            }
            match self.look(home, HostWork::Exchange { tree, direction }).await {
                HostAnswer::Exchanged { outcome: Ok(said) } => ExchangeOutcome::Done(said),
                HostAnswer::Exchanged { outcome: Err(why) } => ExchangeOutcome::Failed(why),
                HostAnswer::Lost { why } => ExchangeOutcome::Lost(why),
                answer => match other::<()>(answer) {
                    LookupOutcome::Ended => ExchangeOutcome::Ended,
                    LookupOutcome::Done(Ok(())) => ExchangeOutcome::Done(None),
                    LookupOutcome::Done(Err(why)) | LookupOutcome::Stuck(why) => {
                        ExchangeOutcome::Refused(why)
                    }
                },
            }
        })
    }

    fn changed_facts(
        &self,
        selection: &FactSelection,
        known: &KnownFacts,
    ) -> Result<Vec<FactChange>, String> {
        self.here.changed_facts(selection, known)
    }

    fn stop(&self) {
        self.is_stopped.set(true);
        self.here.stop();
        self.calls.withdraw("");
    }

    fn stop_agent(&self, agent: &AgentId) {
        self.here.stop_agent(agent);
        self.tell(agent, &HostWork::Stop { agent: agent.clone() });
    }

    fn keep_commands(&self, agent: &AgentId, wanted: &[CommandId]) {
        let mut commands = self.commands.borrow_mut();
        if let Some(running) = commands.get_mut(agent)
            && *running > wanted.len()
        {
            *running = wanted.len();
            let wanted = wanted.to_vec();
            self.tell(agent, &HostWork::KeepCommands { agent: agent.clone(), wanted });
        }
    }

    fn has_commands(&self, agent: &AgentId) -> bool {
        self.commands.borrow().get(agent).is_some_and(|&running| running > 0)
    }

    fn begin_no_commands(&self) {
        self.here.begin_no_commands();
    }
}
