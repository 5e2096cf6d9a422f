//! The console: a live view on a terminal, a line for each record elsewhere.

use std::sync::Arc;
use std::time::Duration;

use actix::{Actor, AsyncContext, Context, Handler};
use console::Term;

use super::screen::{Headline, rows};
use super::sentence::{one_line, sentence};
use super::terminal::Terminal;
use crate::actor::clock::now;
use crate::actor::message::{Finish, Published};
use crate::actor::registry::Registry;
use crate::domain::event::Event;
use crate::domain::run::{Ending, Run};
use crate::domain::transition::Transition;

/// How often the live view is drawn.
const REDRAW: Duration = Duration::from_millis(200);

/// The console's actor.
pub struct Console {
    terminal: Terminal,
    registry: Arc<Registry>,
    headline: Headline,
}

impl Console {
    /// A console for a run as it stands.
    #[must_use]
    pub fn new(terminal: Terminal, registry: Arc<Registry>, run: &Run) -> Self {
        let failed =
            run.finished.iter().filter(|agent| matches!(agent.ending, Ending::Error(_))).count();
        let headline = Headline {
            run: run.workflow_id.to_string(),
            since: now(),
            ended: (run.finished.len(), failed),
            spent: run.total_cost_usd,
            budget: run.settings.budget_usd,
            status: run.status,
        };
        Self { terminal, registry, headline }
    }

    fn draw(&self) {
        let size = Term::stderr().size();
        self.terminal.draw(&rows(&self.headline, &self.registry.views(), now(), size));
    }

    fn note(&mut self, published: &Published) {
        self.headline.spent = published.total_cost;
        match &published.record.event {
            Event::StepFinished(step) if published.agent.is_none() => {
                self.headline.ended.0 += 1;
                if let (true, Transition::Result { payload, .. }) =
                    (self.terminal.is_live(), &step.transition)
                {
                    self.terminal.line(&format!(
                        "{} ended: {}",
                        step.turn.agent,
                        one_line(payload)
                    ));
                }
            }
            Event::AgentFailed(_) => {
                self.headline.ended.0 += 1;
                self.headline.ended.1 += 1;
                if self.terminal.is_live() {
                    self.terminal.line(&sentence(&published.record));
                }
            }
            Event::TurnFailed(_) if self.terminal.is_live() => {
                self.terminal.line(&sentence(&published.record));
            }
            Event::RunPaused { .. } => self.headline.status = crate::domain::run::Status::Paused,
            Event::RunResumed { settings } => {
                self.headline.status = crate::domain::run::Status::Running;
                self.headline.budget = settings.budget_usd;
            }
            _ => {}
        }
    }
}

impl Actor for Console {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        if self.terminal.is_live() {
            self.draw();
            ctx.run_interval(REDRAW, |this, _| this.draw());
        }
    }
}

impl Handler<Published> for Console {
    type Result = ();

    fn handle(&mut self, published: Published, _: &mut Self::Context) {
        self.note(&published);
        if !self.terminal.is_live() {
            self.terminal.line(&sentence(&published.record));
        }
    }
}

impl Handler<Finish> for Console {
    type Result = ();

    fn handle(&mut self, _: Finish, _: &mut Self::Context) {
        self.terminal.clear();
    }
}
