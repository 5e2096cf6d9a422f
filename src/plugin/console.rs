//! The console: a live view on a terminal, a line for each record elsewhere.

use std::sync::Arc;
use std::time::Duration;

use actix::{Actor, AsyncContext, Context, Handler};
use console::Term;

use super::screen::{RunHeadline, rows};
use super::sentence::{sentence, waiting};
use super::terminal::Terminal;
use crate::actor::clock::{now, wall_clock_now};
use crate::actor::message::{FinishPublishing, Published};
use crate::actor::registry::AgentRegistry;
use crate::domain::event::Event;
use crate::domain::printable::printable_block;
use crate::domain::run::{AgentEnding, Run, RunStatus};
use crate::domain::turn::FailureCause;

/// The redraw interval of the live view.
const REDRAW: Duration = Duration::from_millis(200);

/// The console's actor.
pub struct ConsolePlugin {
    terminal: Terminal,
    registry: Arc<AgentRegistry>,
    headline: RunHeadline,
}

impl ConsolePlugin {
    /// Returns a console for a run as it stands.
    #[must_use]
    pub fn new(terminal: Terminal, registry: Arc<AgentRegistry>, run: &Run) -> Self {
        let failed = run
            .finished
            .iter()
            .filter(|agent| matches!(agent.ending, AgentEnding::Error(_)))
            .count();
        let headline = RunHeadline {
            run: run.workflow_id.to_string(),
            since: now(),
            ended: (run.finished.len(), failed),
            spent: run.total_cost_usd,
            budget: run.settings.budget_usd,
            status: run.status,
            limited_until: run.limited_until.filter(|_| run.status == RunStatus::Running),
        };
        Self { terminal, registry, headline }
    }

    fn draw(&self) {
        let size = Term::stderr().size();
        self.terminal.draw(&rows(&self.headline, &self.registry.views(), now(), size));
    }

    /// Updates the headline's numbers.
    fn count(&mut self, published: &Published) {
        self.headline.spent = published.total_cost;
        match &published.record.event {
            Event::StepFinished(_) if published.agent.is_none() => self.headline.ended.0 += 1,
            Event::AgentFailed(failure) => {
                let ended = if failure.ends_run { 1 + self.registry.len() } else { 1 };
                self.headline.ended.0 += ended;
                self.headline.ended.1 += ended;
            }
            Event::LimitReached { until, .. } => self.headline.limited_until = Some(*until),
            Event::RunPaused { .. } => self.headline.status = RunStatus::Paused,
            Event::RunResumed { settings } => {
                self.headline.status = RunStatus::Running;
                self.headline.budget = settings.budget_usd;
            }
            Event::RunStarted(_)
            | Event::StepFinished(_)
            | Event::TransitionProposed(_)
            | Event::GraphAdvanced(_)
            | Event::QuestionAnswered(_)
            | Event::QuestionTimedOut(_)
            | Event::ProgramDefined(_)
            | Event::ProgramStarted(_)
            | Event::ProgramAdvanced(_)
            | Event::ProgramLogged(_)
            | Event::RoleRequested(_)
            | Event::RoleResponded(_)
            | Event::RoleDelegated(_)
            | Event::JoinBegun(_)
            | Event::JoinFinished(_)
            | Event::FactsSeen { .. }
            | Event::TurnHeld(_)
            | Event::TurnRejected(_)
            | Event::TurnFailed(_)
            | Event::CostCounted { .. }
            | Event::AgentParked(_)
            | Event::CommandReceived { .. } => {}
        }
    }
}

/// Returns whether a record is worth a line. A live view shows the steps itself; a pause and its reason are
/// printed at the end of the run.
fn is_shown(event: &Event, live: bool) -> bool {
    match event {
        Event::RunStarted(_)
        | Event::RunResumed { .. }
        | Event::TurnRejected(_)
        | Event::AgentFailed(_)
        | Event::AgentParked(_)
        | Event::TurnHeld(_)
        | Event::QuestionAnswered(_)
        | Event::QuestionTimedOut(_)
        | Event::LimitReached { .. } => true,
        Event::ProgramLogged(event) => event.warning || !live,
        Event::TurnFailed(event) => !matches!(
            event.cause,
            FailureCause::Authentication
                | FailureCause::Unavailable
                | FailureCause::Storage
                | FailureCause::UsageLimit
        ),
        Event::StepFinished(step) => !live || step.overruled.is_some(),
        Event::TransitionProposed(_)
        | Event::GraphAdvanced(_)
        | Event::ProgramStarted(_)
        | Event::ProgramAdvanced(_)
        | Event::RoleRequested(_)
        | Event::RoleResponded(_)
        | Event::RoleDelegated(_)
        | Event::FactsSeen { .. }
        | Event::JoinBegun(_)
        | Event::JoinFinished(_)
        | Event::CommandReceived { .. } => !live,
        Event::ProgramDefined(_) | Event::RunPaused { .. } | Event::CostCounted { .. } => false,
    }
}

impl Actor for ConsolePlugin {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        if self.terminal.is_live() {
            self.draw();
            ctx.run_interval(REDRAW, |this, _| this.draw());
        }
    }
}

impl Handler<Published> for ConsolePlugin {
    type Result = ();

    fn handle(&mut self, published: Published, _: &mut Self::Context) {
        self.count(&published);
        if is_shown(&published.record.event, self.terminal.is_live()) {
            self.terminal.line(&sentence(&published.record));
        }
        if let Event::GraphAdvanced(advanced) = &published.record.event {
            for text in &advanced.shown {
                self.terminal.line(&printable_block(text));
            }
        }
        if let Event::RunResumed { .. } = &published.record.event
            && let Some(until) =
                self.headline.limited_until.filter(|&until| until > wall_clock_now())
        {
            self.terminal.line(&waiting(until));
        }
    }
}

impl Handler<FinishPublishing> for ConsolePlugin {
    type Result = ();

    fn handle(&mut self, _: FinishPublishing, _: &mut Self::Context) {
        self.terminal.clear();
    }
}
