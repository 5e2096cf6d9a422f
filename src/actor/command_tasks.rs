//! The commands of the bodies of `for-each`: each runs as a separate task, independent of its waiters.
//!
//! A command is begun once. Callers that ask for it again are attached to it, and its outcome is kept until the
//! program's position no longer names it.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use tokio::sync::watch;
use tokio::task::spawn_local;

use crate::domain::activity::{ActivityOutcome, ActivityResult, BodyCommand, CommandId};
use crate::domain::id::AgentId;
use crate::domain::operation::OperationResult;
use crate::fault::FaultPoint;

/// The commands that run, and those that have ended and are still named.
#[derive(Debug)]
pub struct CommandTasks {
    tasks: RefCell<BTreeMap<(AgentId, CommandId), CommandTask>>,
    /// True if no command may begin, because the run comes to a pause.
    is_closed: Cell<bool>,
    /// Counts the commands that have ended.
    ended: watch::Sender<u64>,
}

#[derive(Debug)]
struct CommandTask {
    stop: watch::Sender<bool>,
    outcome: Option<ActivityOutcome>,
}

impl Default for CommandTasks {
    fn default() -> Self {
        let (tasks, is_closed) = (RefCell::default(), Cell::default());
        Self { tasks, is_closed, ended: watch::Sender::new(0) }
    }
}

impl CommandTasks {
    /// Begins the commands that have not begun, unless the run comes to a pause. `begin` returns the work of a command
    /// that ends early if the receiver is true.
    pub fn begin<W: Future<Output = ActivityOutcome> + 'static>(
        self: &Rc<Self>,
        agent: &AgentId,
        commands: &[BodyCommand],
        begin: impl Fn(&BodyCommand, watch::Receiver<bool>) -> W,
    ) {
        for command in commands {
            let key = (agent.clone(), command.id);
            // A command that the machine was not able to begin is begun again when it is asked for again.
            let is_kept =
                |task: &CommandTask| !matches!(task.outcome, Some(ActivityOutcome::Stuck(_)));
            if self.is_closed.get() || self.tasks.borrow().get(&key).is_some_and(is_kept) {
                continue;
            }
            let stop = watch::Sender::new(false);
            let work = begin(command, stop.subscribe());
            self.tasks.borrow_mut().insert(key.clone(), CommandTask { stop, outcome: None });
            let this = Rc::clone(self);
            spawn_local(async move {
                FaultPoint::OperationBefore.reach();
                // A panic in a command is the failure of this command alone.
                let ended = spawn_local(work).await;
                FaultPoint::OperationAfter.reach();
                let failed =
                    |why: tokio::task::JoinError| ActivityOutcome::Done(Err(why.to_string()));
                this.end(&key, ended.unwrap_or_else(failed));
            });
        }
    }

    fn end(&self, key: &(AgentId, CommandId), outcome: ActivityOutcome) {
        if let Some(task) = self.tasks.borrow_mut().get_mut(key) {
            task.outcome = Some(outcome);
        }
        self.ended.send_modify(|ended| *ended += 1);
    }

    /// Waits until one of the commands has ended, or all if the run comes to a pause; returns the outcomes of those
    /// that have ended.
    pub async fn outcome(&self, agent: &AgentId, commands: &[BodyCommand]) -> ActivityOutcome {
        let mut ended = self.ended.subscribe();
        loop {
            if let Some(outcome) = self.outcome_so_far(agent, commands) {
                return outcome;
            }
            if ended.changed().await.is_err() {
                return ActivityOutcome::Ended;
            }
        }
    }

    fn outcome_so_far(&self, agent: &AgentId, commands: &[BodyCommand]) -> Option<ActivityOutcome> {
        let tasks = self.tasks.borrow();
        let (mut results, mut is_running, mut stuck) = (Vec::new(), false, None);
        for BodyCommand { id, .. } in commands {
            let Some(task) = tasks.get(&(agent.clone(), *id)) else { continue };
            match &task.outcome {
                None => is_running = true,
                Some(ActivityOutcome::Stuck(why)) => stuck = Some(why.clone()),
                Some(outcome) => results.extend(result_of(outcome).map(|result| (*id, result))),
            }
        }
        // A stuck command pauses the run, too.
        if is_running && (results.is_empty() || stuck.is_some() || self.is_closed.get()) {
            return None;
        }
        Some(match stuck {
            _ if !results.is_empty() => {
                ActivityOutcome::Done(Ok(ActivityResult::Commands(results)))
            }
            Some(why) => ActivityOutcome::Stuck(why),
            None => ActivityOutcome::Ended,
        })
    }

    /// Ends the commands of an agent that are not among `wanted`, and forgets them.
    pub fn keep(&self, agent: &AgentId, wanted: &[CommandId]) {
        self.tasks.borrow_mut().retain(|(owner, id), task| {
            let is_kept = owner != agent || wanted.contains(id);
            if !is_kept {
                task.stop.send_replace(true);
            }
            is_kept
        });
    }

    /// Returns whether there are commands of an agent.
    pub fn has(&self, agent: &AgentId) -> bool {
        self.tasks.borrow().keys().any(|(owner, _)| owner == agent)
    }

    /// Lets no further command begin.
    pub fn close(&self) {
        self.is_closed.set(true);
    }
}

/// Returns the result of a command for its program; `None` if the command was ended and is still due.
fn result_of(outcome: &ActivityOutcome) -> Option<OperationResult> {
    match outcome {
        ActivityOutcome::Done(result) => Some(result.clone().map(ActivityResult::into_value)),
        ActivityOutcome::Refused(why) => Some(Err(why.clone())),
        ActivityOutcome::Lost(why) => Some(Err(format!("run: {why}"))),
        ActivityOutcome::Ended | ActivityOutcome::Stuck(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot;
    use tokio::task::LocalSet;

    use super::*;
    use crate::domain::operation::ShellCommand;

    fn command(number: u32) -> BodyCommand {
        let id = CommandId { step: 1, number };
        BodyCommand { id, command: ShellCommand::of("true") }
    }

    fn done(text: &str) -> ActivityOutcome {
        ActivityOutcome::Done(Ok(ActivityResult::Value(text.into())))
    }

    fn results(outcome: &ActivityOutcome) -> Vec<(u32, String)> {
        let ActivityOutcome::Done(Ok(ActivityResult::Commands(results))) = outcome else {
            panic!("{outcome:?}");
        };
        let text = |result: &OperationResult| match result {
            Ok(value) => value.as_str().unwrap_or_default().to_owned(),
            Err(why) => why.clone(),
        };
        results.iter().map(|(id, result)| (id.number, text(result))).collect()
    }

    /// Begins commands that end when they are told to; returns the senders that tell them.
    fn begin(tasks: &Rc<CommandTasks>, numbers: &[u32]) -> Vec<oneshot::Sender<ActivityOutcome>> {
        let senders = RefCell::new(Vec::new());
        let commands: Vec<BodyCommand> = numbers.iter().map(|number| command(*number)).collect();
        tasks.begin(&AgentId::main(), &commands, |_, mut stop| {
            let (sender, receiver) = oneshot::channel();
            senders.borrow_mut().push(sender);
            async move {
                tokio::select! {
                    outcome = receiver => outcome.expect("an outcome"),
                    _ = stop.wait_for(|stop| *stop) => ActivityOutcome::Ended,
                }
            }
        });
        senders.into_inner()
    }

    #[tokio::test]
    async fn first_outcome_is_returned_while_others_run_and_started_commands_are_joined() {
        let test = async {
            let (tasks, main) = (Rc::new(CommandTasks::default()), AgentId::main());
            let mut first = begin(&tasks, &[1, 2]);
            first.pop().expect("two").send(done("two")).expect("it runs");
            let both = [command(1), command(2)];
            assert_eq!(results(&tasks.outcome(&main, &both).await), [(2, "two".to_owned())]);
            assert!(begin(&tasks, &[1]).is_empty(), "it has begun");
            tasks.keep(&main, &[command(1).id]);
            let lost = ActivityOutcome::Lost("nobody knows".to_owned());
            first.pop().expect("one").send(lost).expect("it still runs");
            let outcome = tasks.outcome(&main, &both[..1]).await;
            assert_eq!(results(&outcome), [(1, "run: nobody knows".to_owned())]);
            tasks.keep(&main, &[]);
            assert!(!tasks.has(&main));
        };
        LocalSet::new().run_until(test).await;
    }

    #[tokio::test]
    async fn pause_waits_for_all_that_run_and_begins_none() {
        let test = async {
            let (tasks, main) = (Rc::new(CommandTasks::default()), AgentId::main());
            let mut senders = begin(&tasks, &[1, 2]);
            tasks.close();
            assert!(begin(&tasks, &[3]).is_empty());
            let all = [command(1), command(2), command(3)];
            senders.pop().expect("two").send(done("two")).expect("it runs");
            while tasks.tasks.borrow()[&(main.clone(), command(2).id)].outcome.is_none() {
                tokio::task::yield_now().await;
            }
            assert_eq!(tasks.outcome_so_far(&main, &all), None, "the first one still runs");
            senders.pop().expect("one").send(ActivityOutcome::Ended).expect("it runs");
            assert_eq!(results(&tasks.outcome(&main, &all).await), [(2, "two".to_owned())]);
            assert_eq!(tasks.outcome(&main, &all[2..]).await, ActivityOutcome::Ended);
        };
        LocalSet::new().run_until(test).await;
    }

    #[tokio::test]
    async fn command_that_is_stuck_waits_for_the_others_and_is_reported_after_them() {
        let test = async {
            let (tasks, main) = (Rc::new(CommandTasks::default()), AgentId::main());
            let mut senders = begin(&tasks, &[1, 2]);
            let both = [command(1), command(2)];
            let stuck = || ActivityOutcome::Stuck("no room".to_owned());
            senders.pop().expect("two").send(stuck()).expect("it runs");
            while tasks.tasks.borrow()[&(main.clone(), command(2).id)].outcome.is_none() {
                tokio::task::yield_now().await;
            }
            assert_eq!(tasks.outcome_so_far(&main, &both), None, "the first one still runs");
            senders.pop().expect("one").send(done("one")).expect("it runs");
            assert_eq!(results(&tasks.outcome(&main, &both).await), [(1, "one".to_owned())]);
            assert_eq!(tasks.outcome(&main, &both[1..]).await, stuck());
        };
        LocalSet::new().run_until(test).await;
    }

    #[tokio::test]
    async fn panic_in_a_command_fails_only_that_command() {
        let test = async {
            let (tasks, main) = (Rc::new(CommandTasks::default()), AgentId::main());
            drop(begin(&tasks, &[1]));
            let outcome = tasks.outcome(&main, &[command(1)]).await;
            assert!(results(&outcome)[0].1.contains("panic"), "{outcome:?}");
        };
        LocalSet::new().run_until(test).await;
    }
}
