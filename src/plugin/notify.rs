//! The actor that notifies people when a run needs them, or has ended.
//!
//! `NotificationKind` says which records are notified. Delivery is up to the maker of the actor, behind
//! [`NotificationSink`]. This actor waits for nothing before the run's end.

use std::future::ready;
use std::pin::Pin;
use std::sync::Arc;

use actix::{Actor, Context, Handler, ResponseFuture};
use strum::{IntoStaticStr, VariantNames};

use crate::actor::observer::{FinishPublishing, Published};
use crate::actor::registry::AgentActivity;
use crate::domain::agent_status::WaitReason;
use crate::domain::approval::PendingApproval;
use crate::domain::event::{Event, NextAction, ProgramAdvanced, Record};
use crate::domain::id::RunId;
use crate::domain::money::Usd;
use crate::domain::person_wait::AwaitedSignal;
use crate::domain::question::Question;
use crate::domain::refusal::{NAMED_PER_RUN, ToolRefusals, closing_line};
use crate::domain::restart::AgentFailures;
use crate::domain::run::{AgentEnding, PauseReason, Run, RunStatus};
use crate::domain::settings::forked_count;
use crate::domain::tool_call::flat;
use crate::plugin::sentence::date;
use crate::plugin::terminal::Terminal;

/// The delivery of notifications.
pub trait NotificationSink: Send + 'static {
    /// Takes a notification over, at once.
    fn deliver(&self, notification: Notification);

    /// Completes when all notifications that were taken over have been dealt with.
    fn finished(&self) -> Pin<Box<dyn Future<Output = ()>>>;
}

/// The actor.
pub struct NotificationPlugin<D> {
    tracker: NotificationTracker,
    by: D,
}

impl<D: NotificationSink> NotificationPlugin<D> {
    /// Returns an actor for a run as it stands, which delivers by `by`.
    pub fn new(tracker: NotificationTracker, by: D) -> Self {
        Self { tracker, by }
    }
}

impl<D: NotificationSink + Unpin> Actor for NotificationPlugin<D> {
    type Context = Context<Self>;
}

impl<D: NotificationSink + Unpin> Handler<Published> for NotificationPlugin<D> {
    type Result = ();

    fn handle(&mut self, published: Published, _: &mut Self::Context) {
        if let Some(notification) = self.tracker.of(&published) {
            self.by.deliver(notification);
        }
    }
}

impl<D: NotificationSink + Unpin> Handler<FinishPublishing> for NotificationPlugin<D> {
    type Result = ResponseFuture<()>;

    fn handle(&mut self, end: FinishPublishing, _: &mut Self::Context) -> Self::Result {
        if let Some(notification) = self.tracker.at_the_end(end.failures.as_deref()) {
            self.by.deliver(notification);
        }
        self.by.finished()
    }
}

// Notifications on the desktop, through a terminal that shows them: when somebody is needed, and when the run is over.

/// A sink that shows notifications through a terminal.
pub struct DesktopSink {
    terminal: Terminal,
    title: String,
}

impl DesktopSink {
    /// Returns the sink for a run.
    pub fn new(terminal: Terminal, run: &RunId) -> Self {
        Self { terminal, title: format!("raymond {run}") }
    }
}

impl NotificationSink for DesktopSink {
    fn deliver(&self, notification: Notification) {
        if is_for_desktop(notification.kind) {
            self.terminal.notify(&self.title, &notification.message);
        }
    }

    fn finished(&self) -> Pin<Box<dyn Future<Output = ()>>> {
        Box::pin(ready(()))
    }
}

/// Returns whether a notification should call somebody who does not look. The rest stands in the live view.
fn is_for_desktop(kind: NotificationKind) -> bool {
    !matches!(kind, NotificationKind::AgentFailed | NotificationKind::LimitReached)
}

// Selects the records that are notified, and words the notifications. Pure.
//
// A run's end has no separate record: it follows from the number of live agents. The notification is sent when no more
// records come, so that the sum includes all costs.

/// The maximum length of a message. It goes into the environment, where there is little room.
const MAX_MESSAGE_BYTES: usize = 2000;

/// A notification.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notification {
    /// What happened. The program of `--on-event` gets its name as `event`.
    pub kind: NotificationKind,
    /// Its text, one sentence.
    pub message: String,
    /// The status of the run.
    pub status: RunStatus,
    /// The cost of the run so far.
    pub spent: Usd,
    /// The record it is about; `None` for the end.
    pub record: Option<Arc<Record>>,
    /// The failures of a run that has ended.
    pub failures: Option<AgentFailures>,
}

impl Notification {
    /// Returns it as one line of JSON, for a run in a directory of runs.
    pub fn json(&self, run: &RunId, dir: &str) -> String {
        let mut value = serde_json::json!({
            "event": self.kind.name(),
            "run": run,
            "dir": dir,
            "message": self.message,
            "status": self.status,
            "total_cost_usd": self.spent,
        });
        if let Some(record) = &self.record {
            value["record"] = serde_json::to_value(record).unwrap_or_default();
        }
        if let Some(failures) = &self.failures {
            value["failed_agents"] = failures.failed.into();
            if !failures.is_empty() {
                value["failures"] = serde_json::to_value(&failures.groups).unwrap_or_default();
            }
        }
        value.to_string()
    }
}

/// The state of a run that is needed to decide on notifications.
#[derive(Debug, Clone)]
pub struct NotificationTracker {
    run: RunId,
    live: usize,
    ended: usize,
    failed: usize,
    paused: bool,
    spent: Usd,
    refused: ToolRefusals,
}

impl NotificationTracker {
    /// Returns the tracker of a run as it stands.
    pub fn new(run: &Run) -> Self {
        let failed = |ending: &AgentEnding| matches!(ending, AgentEnding::Error(_));
        Self {
            run: run.workflow_id.clone(),
            live: run.agents.len(),
            ended: run.finished.len(),
            failed: run.finished.iter().filter(|agent| failed(&agent.ending)).count(),
            paused: false,
            spent: run.total_cost_usd,
            refused: run.refused_tools.clone(),
        }
    }

    /// Returns the notification that a record calls for, if any.
    pub fn of(&mut self, published: &Published) -> Option<Notification> {
        self.count(published);
        let run = &self.run;
        let (kind, message) = match &published.record.event {
            Event::RunPaused { pause } => (NotificationKind::Paused, paused(run, pause)),
            Event::ApprovalAsked(event) if event.grant.is_none() => {
                let (agent, name) = (&event.turn.agent, PendingApproval::name_of(event.number));
                let call = event.request.summary();
                (
                    NotificationKind::Approval,
                    format!(
                        "{agent} of run {run} asks for approval of {call}; answer: raymond answer {run} {name} allow, or deny"
                    ),
                )
            }
            event if is_asking(published) => {
                let question = event.question()?;
                let Question { node, text, .. } = &question;
                let agent = event.agent()?;
                (
                    NotificationKind::Question,
                    format!(
                        "{agent} of run {run} asks {node}: {text}; answer: raymond answer {run} {agent}/{node}=TEXT"
                    ),
                )
            }
            Event::ProgramAdvanced(event) => {
                let awaited = awaited_signal(event)?;
                let agent = &event.turn.agent;
                let command = signal_command(awaited);
                (
                    NotificationKind::Signal,
                    format!(
                        "{agent} of run {run} waits for {awaited}; when it is so, assert it: {command}"
                    ),
                )
            }
            Event::AgentParked(event) => (
                NotificationKind::AgentParked,
                format!(
                    "{} of run {run} waits for a person at {}: {}",
                    event.turn.agent,
                    event.state.shown_in(published.record.folder.as_ref()),
                    event.reason
                ),
            ),
            Event::AgentFailed(event) => {
                let others = if event.ends_run { "; all other agents end with it" } else { "" };
                (
                    NotificationKind::AgentFailed,
                    format!(
                        "{} of run {run} failed at {} ({}): {}{others}",
                        event.turn.agent,
                        event.state.shown_in(published.record.folder.as_ref()),
                        event.cause,
                        event.error
                    ),
                )
            }
            Event::LimitReached { until, message } => (
                NotificationKind::LimitReached,
                format!(
                    "run {run} waits for the usage limit: {message}; no turn starts before {}",
                    date(*until)
                ),
            ),
            _ => return None,
        };
        Some(self.notification(kind, &message, Some(Arc::clone(&published.record))))
    }

    /// Returns the notification to send when no further record comes. Without the failures of the whole run, it counts
    /// the failures that were seen.
    pub fn at_the_end(&self, failures: Option<&AgentFailures>) -> Option<Notification> {
        let Self { run, spent, .. } = self;
        if self.live > 0 {
            let message = format!(
                "run {run} has stopped, because its records could not be written; its output shows why; fix that and resume: raymond resume {run}"
            );
            let is_broken = !self.paused;
            return is_broken.then(|| {
                self.notification(NotificationKind::Broken, &self.with_refusals(message), None)
            });
        }
        let seen = || AgentFailures {
            ended: self.ended,
            failed: self.failed,
            fails_run: self.failed > 0,
            ..Default::default()
        };
        let failures = failures.cloned().unwrap_or_else(seen);
        let message = format!("run {run} {}, {spent} spent", failures.outcome());
        let ended = self.notification(NotificationKind::Ended, &self.with_refusals(message), None);
        let status = if failures.fails_run { RunStatus::Failed } else { RunStatus::Completed };
        Some(Notification { status, failures: Some(failures), ..ended })
    }

    /// Adds the tools that were refused to a message about the whole run.
    fn with_refusals(&self, message: String) -> String {
        match closing_line(&self.refused) {
            Some(line) => format!("{message}; {line}"),
            None => message,
        }
    }

    fn notification(
        &self,
        kind: NotificationKind,
        message: &str,
        record: Option<Arc<Record>>,
    ) -> Notification {
        let status = match (self.live, self.failed) {
            (0, 0) => RunStatus::Completed,
            (0, _) => RunStatus::Failed,
            _ if self.paused => RunStatus::Paused,
            _ => RunStatus::Running,
        };
        let message = flat(message, MAX_MESSAGE_BYTES);
        Notification { kind, message, status, spent: self.spent, record, failures: None }
    }

    fn count(&mut self, published: &Published) {
        self.spent = published.total_cost;
        if let Some(cost) = published.record.event.cost() {
            self.refused.add_all(&cost.refused_tools, NAMED_PER_RUN);
        }
        match &published.record.event {
            Event::StepFinished(_) if published.agent.is_none() => {
                self.live = self.live.saturating_sub(1);
                self.ended += 1;
            }
            Event::StepFinished(step) if step.transition.is_fork() => {
                self.live += forked_count(&step.children);
            }
            Event::JoinFinished(joined) => {
                self.live = self.live.saturating_sub(joined.stopped.len());
                self.ended += joined.stopped.len();
            }
            event if event.advance().is_some_and(|advance| advance.starts_agent()) => {
                self.live += 1;
            }
            Event::RoleRequested(asked) if asked.new_session.is_some() => self.live += 1,
            Event::RoleDelegated(_) => self.live += 1,
            Event::AgentFailed(failure) => {
                let ended = if failure.ends_run { self.live } else { 1 };
                self.live = self.live.saturating_sub(ended);
                self.ended += ended;
                self.failed += ended;
            }
            Event::AgentsRetried { agents } => {
                self.live += agents.len();
                self.ended = self.ended.saturating_sub(agents.len());
                self.failed = self.failed.saturating_sub(agents.len());
            }
            Event::RunPaused { .. } => self.paused = true,
            Event::RunResumed { .. } => self.paused = false,
            _ => {}
        }
    }
}

/// Returns whether the agent of a record waits for an answer now; one given ahead of time counts as an answer.
fn is_asking(published: &Published) -> bool {
    let is_question = |activity: &AgentActivity| {
        matches!(activity, AgentActivity::Waiting(WaitReason::Answer { .. }))
    };
    published.agent.as_ref().is_some_and(|agent| is_question(&agent.activity))
}

/// Returns the message that a run is paused, and the way to resume it.
fn paused(run: &RunId, pause: &PauseReason) -> String {
    match pause {
        PauseReason::Budget { .. } => {
            format!(
                "run {run} paused: {pause}; resume with more: raymond resume {run} --budget USD"
            )
        }
        PauseReason::Agents { .. } => format!(
            "run {run} paused: {pause}; if so many are intended, resume with more: raymond resume {run} --max-agents N"
        ),
        PauseReason::UsageLimit { resets: Some(resets), .. } => format!(
            "run {run} paused: {pause}; it resets {}; resume: raymond resume {run}",
            date(*resets)
        ),
        PauseReason::Asking { .. } => format!(
            "run {run} paused: {pause}; answer it: raymond answer {run}, then resume: raymond resume {run}"
        ),
        PauseReason::Waiting { .. } => {
            format!("run {run} paused: {pause}; resume when it is there: raymond resume {run}")
        }
        _ => format!("run {run} paused: {pause}; resume: raymond resume {run}"),
    }
}

/// The kind of a notification.
#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr, VariantNames)]
#[strum(serialize_all = "snake_case")]
pub enum NotificationKind {
    /// The run holds still until someone resumes it.
    Paused,
    /// An agent waits for an answer; the others continue.
    Question,
    /// A tool call needs approval; the others continue.
    Approval,
    /// A program waits for a signal; the others continue.
    Signal,
    /// An agent waits for a person; the others continue.
    AgentParked,
    /// An agent has failed.
    AgentFailed,
    /// No turn starts before the usage limit resets.
    LimitReached,
    /// All agents have ended.
    Ended,
    /// The run has stopped without a record, because its journal could not be kept any longer.
    Broken,
}

impl NotificationKind {
    /// Its name.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// Returns the awaited thing of a program that begins to wait for a signal.
fn awaited_signal(advanced: &ProgramAdvanced) -> Option<&str> {
    let progress = &advanced.progress;
    let awaiting = progress.awaiting.as_deref()?;
    let is_waiting = *advanced.next_action() == NextAction::Wait
        && progress.position.wait.as_ref().is_some_and(|wait| wait.outside);
    let is_for_people = || AwaitedSignal::all_in(awaiting).iter().any(AwaitedSignal::is_for_people);
    (is_waiting && is_for_people()).then_some(awaiting)
}

/// Returns the command that asserts the first signal that people assert.
fn signal_command(awaited: &str) -> String {
    let all = AwaitedSignal::all_in(awaited);
    let first = all.into_iter().find(AwaitedSignal::is_for_people).unwrap_or_default();
    let is_plain = |key: &str| !key.contains(|c: char| c.is_whitespace() || "\"'$`\\".contains(c));
    let key = first.key.map(|key| {
        if is_plain(&key) && !key.is_empty() {
            format!(" --key {key}")
        } else {
            format!(" --key {key:?}")
        }
    });
    format!("raymond signal {}{}", first.label, key.unwrap_or_default())
}

#[cfg(test)]
mod notification_tests;

#[cfg(test)]
mod signal_tests {
    use super::*;

    #[test]
    fn command_asserts_the_first_awaited_signal() {
        let table = [
            ("(signal go)", "raymond signal go"),
            ("(and (signal a/b :key t :equals yes) (signal c))", "raymond signal a/b --key t"),
            ("(signal go :key \"a b\")", "raymond signal go --key \"a b\""),
            ("(or (signal workflow/state :key t) (signal go))", "raymond signal go"),
        ];
        for (awaited, command) in table {
            assert_eq!(signal_command(awaited), command);
        }
    }
}
