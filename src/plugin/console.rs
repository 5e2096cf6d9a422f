//! The console: a live view on a terminal, lines elsewhere.

use std::sync::Arc;
use std::time::{Duration, Instant};

use actix::{Actor, AsyncContext, Context, Handler};
use console::Term;

use super::fan_out::{FAMILY_FOLD_SIZE, FanOutRates, FanOuts};
use super::line_choice::{LineChoice, LineVerdict, ToldProgress, Verbosity, tone};
use super::screen::window_status::WindowStatus;
use super::screen::{RunHeadline, RunPicture, progress_line};
use super::sentence::{sentence, shown_texts, waiting};
use super::styled::{StyledLine, TextTone};
use super::terminal::Terminal;
use crate::actor::context::{now, wall_clock_now};
use crate::actor::message::{FinishPublishing, Published};
use crate::actor::registry::{AgentRegistry, AgentView};
use crate::domain::approval::PendingApproval;
use crate::domain::event::Event;
use crate::domain::printable::printable_block;
use crate::domain::run::{Run, RunStatus};

/// The redraw interval of the live view, and of the check for progress elsewhere.
const REDRAW_INTERVAL: Duration = Duration::from_millis(200);

/// The pause after a drawing, as a multiple of the time that it took.
const PAUSE_FACTOR: u32 = 10;

/// The console's actor.
pub struct ConsolePlugin {
    terminal: Terminal,
    registry: Arc<AgentRegistry>,
    verbosity: Verbosity,
    headline: RunHeadline,
    choice: LineChoice,
    told: ToldProgress,
    fan_outs: FanOuts,
    rates: FanOutRates,
    /// The number of agents at the last count.
    counted: usize,
    /// True once a record was published.
    has_begun: bool,
    next_drawing: Instant,
    /// The status that the window shows.
    window: Option<WindowStatus>,
}

impl ConsolePlugin {
    /// Returns a console for a run as it stands.
    pub fn new(
        terminal: Terminal,
        registry: Arc<AgentRegistry>,
        run: &Run,
        verbosity: Verbosity,
    ) -> Self {
        run.finished.iter().for_each(|agent| registry.end(agent));
        let headline = RunHeadline {
            run: run.workflow_id.to_string(),
            since: now(),
            spent: run.total_cost_usd,
            budget: run.settings.budget_usd,
            status: run.status,
            limited_until: run.limited_until.filter(|_| run.status == RunStatus::Running),
        };
        let choice = LineChoice::new(verbosity);
        Self {
            terminal,
            registry,
            verbosity,
            headline,
            choice,
            told: ToldProgress::default(),
            fan_outs: FanOuts::default(),
            rates: FanOutRates::default(),
            counted: 0,
            has_begun: false,
            next_drawing: Instant::now(),
            window: None,
        }
    }

    /// Counts the agents anew, and returns the live ones.
    fn count_agents(&mut self) -> Vec<Arc<AgentView>> {
        let (views, ended) = self.registry.snapshot();
        self.fan_outs = FanOuts::of(&views, ended);
        self.rates.sample(&self.fan_outs, now());
        self.counted = self.registry.total();
        views
    }

    /// Shows the present state: draws the live view, or tells of progress.
    fn show(&mut self) {
        let begin = Instant::now();
        // Before the first record, the agents that live on in a resumed run are not counted yet.
        if !self.has_begun || begin < self.next_drawing {
            return;
        }
        if self.terminal.is_live() {
            let views = self.count_agents();
            let (headline, fan_outs, rates) = (&self.headline, &self.fan_outs, &self.rates);
            let picture = RunPicture { headline, views: &views, fan_outs, rates, now: now() };
            self.terminal.draw(picture.rows(Term::stderr().size()));
            self.show_window_status();
        } else if self.registry.total() > FAMILY_FOLD_SIZE {
            self.count_agents();
            self.tell_progress();
        }
        self.next_drawing = begin + begin.elapsed() * PAUSE_FACTOR;
    }

    /// Shows how far the run is outside the text, if that has changed.
    fn show_window_status(&mut self) {
        let status = WindowStatus::of(&self.headline.run, &self.fan_outs);
        if self.window.as_ref() != Some(&status) {
            self.terminal.show_status(&status.title, status.progress);
            self.window = Some(status);
        }
    }

    /// Prints a line on each fan-out that has made progress, unless something else shows it.
    fn tell_progress(&mut self) {
        if self.terminal.is_live() || self.verbosity != Verbosity::Normal {
            return;
        }
        for key in self.told.due(&self.fan_outs, now()) {
            if let Some(progress) = self.fan_outs.0.get(&key) {
                self.terminal.styled(progress_line(&key, progress, &self.rates, now()));
            }
        }
    }

    /// Prints the line of a record, if it is worth one.
    fn tell(&mut self, published: &Published) {
        let event = &published.record.event;
        // New agents are counted at once, so that none of many has a line.
        let counted = self.counted;
        if self.registry.total() > counted + FAMILY_FOLD_SIZE.max(counted / 8) {
            self.count_agents();
        }
        let fan_out = event.agent().and_then(|agent| self.registry.fan_out_of(agent));
        let many = fan_out.filter(|key| self.fan_outs.is_large(key));
        let verdict = self.choice.judge(event, many.as_ref());
        if verdict == LineVerdict::Shown {
            self.terminal.styled(StyledLine::of(tone(event), &sentence(&published.record)));
            if let Event::ApprovalAsked(asked) = event
                && asked.grant.is_none()
            {
                let name = PendingApproval::name_of(asked.number);
                let command =
                    format!("  raymond answer {} {name} allow, or deny", self.headline.run);
                self.terminal.styled(StyledLine::of(TextTone::Faint, &command));
            }
        }
        if verdict == LineVerdict::FirstHidden && self.verbosity != Verbosity::Quiet {
            let began = many.and_then(|key| key.began).map(|state| format!(" of {state}"));
            let note = format!(
                "(more like that{} are only counted; -v shows each)",
                began.unwrap_or_default()
            );
            self.terminal.styled(StyledLine::of(TextTone::Faint, &note));
        }
    }

    /// Updates the headline.
    fn follow(&mut self, published: &Published) {
        self.has_begun = true;
        self.headline.spent = published.total_cost;
        match &published.record.event {
            Event::LimitReached { until, .. } => self.headline.limited_until = Some(*until),
            Event::RunPaused { .. } => self.headline.status = RunStatus::Paused,
            Event::RunResumed { settings } => {
                self.headline.status = RunStatus::Running;
                self.headline.budget = settings.budget_usd;
            }
            _ => {}
        }
    }
}

impl Actor for ConsolePlugin {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        if self.terminal.is_live() || self.verbosity == Verbosity::Normal {
            self.show();
            ctx.run_interval(REDRAW_INTERVAL, |this, _| this.show());
        }
    }
}

impl Handler<Published> for ConsolePlugin {
    type Result = ();

    fn handle(&mut self, published: Published, _: &mut Self::Context) {
        self.follow(&published);
        self.tell(&published);
        if self.verbosity != Verbosity::Quiet {
            for text in shown_texts(&published.record.event) {
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
        if self.registry.total() > FAMILY_FOLD_SIZE {
            self.count_agents();
            self.tell_progress();
        }
        self.terminal.clear();
    }
}
