//! The console: a live view on a terminal, lines elsewhere.

use std::collections::{BTreeMap, HashMap};
use std::mem::{Discriminant, discriminant};
use std::sync::Arc;
use std::time::{Duration, Instant};

use actix::{Actor, AsyncContext, Context, Handler};
use console::Term;

use super::fan_out::{FAMILY_FOLD_SIZE, FanOutRates, FanOuts};
use super::screen::{RunHeadline, RunPicture, WindowStatus, progress_line};
use super::sentence::{sentence, waiting};
use super::styled::{StyledLine, TextTone};
use super::terminal::Terminal;
use crate::actor::context::{now, wall_clock_now};
use crate::actor::observer::{FinishPublishing, Published};
use crate::actor::registry::{AgentRegistry, AgentView, FanOutKey};
use crate::domain::approval::PendingApproval;
use crate::domain::event::{Event, EventProminence, TurnFailed};
use crate::domain::run::{Run, RunStatus};
use crate::domain::time::Timestamp;
use crate::domain::tool_call::printable_block;
use crate::domain::turn::FailureCause;

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
    reported: ReportedProgress,
    fan_outs: FanOuts,
    rates: FanOutRates,
    /// The number of agents at the last count.
    counted: usize,
    /// True once a record was published.
    has_started: bool,
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
            reported: ReportedProgress::default(),
            fan_outs: FanOuts::default(),
            rates: FanOutRates::default(),
            counted: 0,
            has_started: false,
            next_drawing: Instant::now(),
            window: None,
        }
    }

    /// Counts the agents again, and returns the live ones.
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
        if !self.has_started || begin < self.next_drawing {
            return;
        }
        if self.terminal.is_live() {
            let views = self.count_agents();
            let (headline, fan_outs, rates) = (&self.headline, &self.fan_outs, &self.rates);
            let picture = RunPicture { headline, views: &views, fan_outs, rates, now: now() };
            let (height, width) = Term::stderr().size();
            self.terminal.draw(picture.rows(height, width));
            self.show_window_status();
        } else if self.registry.total() > FAMILY_FOLD_SIZE {
            self.count_agents();
            self.report_progress();
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
    fn report_progress(&mut self) {
        if self.terminal.is_live() || self.verbosity != Verbosity::Normal {
            return;
        }
        for key in self.reported.update(&self.fan_outs, now()) {
            if let Some(progress) = self.fan_outs.0.get(&key) {
                self.terminal.styled(progress_line(&key, progress, &self.rates, now()));
            }
        }
    }

    /// Prints the line of a record, if it is worth one.
    fn print(&mut self, published: &Published) {
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
            self.terminal.styled(StyledLine::of(event.facets().tone, &sentence(&published.record)));
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
        self.has_started = true;
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
        self.print(&published);
        if self.verbosity != Verbosity::Quiet {
            for text in published.record.event.facets().shown {
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
            self.report_progress();
        }
        self.terminal.clear();
    }
}

// The records that are worth a line of the console, and the lines on the progress of fan-outs. Pure.
//
// Each record has a line, above the live view of a terminal, too, except for those of a fan-out of many: raymond
// reports its steps as progress, at each tenth and now and then between, and only the first few failures and reminders
// alike.

/// The longest time in milliseconds between two lines on the progress of a fan-out that makes any.
const PROGRESS_INTERVAL_MS: u64 = 30_000;

/// The number of the first of many records alike that has no line.
const FIRST_HIDDEN: usize = FAMILY_FOLD_SIZE + 1;

/// How much raymond reports about a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Verbosity {
    /// Only what needs attention.
    Quiet,
    /// The progress.
    #[default]
    Normal,
    /// Everything.
    Verbose,
}

/// The verdict about a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineVerdict {
    /// It has a line.
    Shown,
    /// It has none, as the first of many that are alike.
    FirstHidden,
    /// It has none.
    Hidden,
}

/// The choice of the records that have a line.
#[derive(Debug)]
pub struct LineChoice {
    verbosity: Verbosity,
    alike: HashMap<(FanOutKey, Discriminant<Event>), usize>,
    /// True from a line about an absent network until a turn is answered.
    is_offline: bool,
}

impl LineChoice {
    /// Makes the choice for an amount of lines.
    pub fn new(verbosity: Verbosity) -> Self {
        Self { verbosity, alike: HashMap::new(), is_offline: false }
    }

    /// Returns whether a record is worth a line; `many` is the fan-out of its agent, if that has many.
    pub fn judge(&mut self, event: &Event, many: Option<&FanOutKey>) -> LineVerdict {
        let repeats = self.repeats_absence(event) && self.verbosity != Verbosity::Verbose;
        let is_shown = match event.facets().prominence {
            EventProminence::Urgent => true,
            EventProminence::Notable => self.verbosity != Verbosity::Quiet,
            EventProminence::Progress => match self.verbosity {
                Verbosity::Quiet => false,
                Verbosity::Normal => many.is_none(),
                Verbosity::Verbose => true,
            },
            EventProminence::Unseen => false,
        };
        match many.filter(|_| self.verbosity != Verbosity::Verbose) {
            _ if !is_shown || repeats => LineVerdict::Hidden,
            None => LineVerdict::Shown,
            Some(many) => {
                let count = self.alike.entry((many.clone(), discriminant(event))).or_default();
                *count += 1;
                match *count {
                    ..=FAMILY_FOLD_SIZE => LineVerdict::Shown,
                    FIRST_HIDDEN => LineVerdict::FirstHidden,
                    _ => LineVerdict::Hidden,
                }
            }
        }
    }

    /// Returns whether a record repeats that the network is unreachable, and notes what it says.
    fn repeats_absence(&mut self, event: &Event) -> bool {
        let was_offline = self.is_offline;
        if let Event::TurnFailed(TurnFailed { cause: FailureCause::Network, .. }) = event {
            self.is_offline = true;
            return was_offline;
        }
        self.is_offline = was_offline
            && !matches!(
                event,
                Event::StepFinished(_) | Event::TurnRejected(_) | Event::TransitionProposed(_)
            );
        false
    }
}

/// The progress of the fan-outs that has been reported.
#[derive(Debug, Default)]
struct ReportedProgress(BTreeMap<FanOutKey, ReportedFanOut>);

#[derive(Debug, Clone, Copy)]
struct ReportedFanOut {
    ended: usize,
    tenth: usize,
    at: Timestamp,
}

impl ReportedProgress {
    /// Returns the large fan-outs whose progress should be reported now, and notes it as reported.
    fn update(&mut self, fan_outs: &FanOuts, now: Timestamp) -> Vec<FanOutKey> {
        let mut to_report = Vec::new();
        for (key, progress) in fan_outs.large() {
            let (ended, tenth) = (progress.ended.ended, progress.percent() / 10);
            let has_news = self.0.get(key).is_none_or(|reported| {
                tenth > reported.tenth
                    || (ended > reported.ended && now.since(reported.at) >= PROGRESS_INTERVAL_MS)
            });
            if has_news {
                self.0.insert(key.clone(), ReportedFanOut { ended, tenth, at: now });
                to_report.push(key.clone());
            }
        }
        to_report
    }
}

#[cfg(test)]
mod line_choice_tests {
    use super::*;
    use crate::domain::tests::scene::{Scene, result};
    use crate::plugin::fan_out::tests::{crowd, key};

    /// Returns a step, and the end of an agent.
    fn events() -> [Event; 2] {
        let scene = Scene::begin();
        let failed = Event::AgentFailed(scene.end_badly("main"));
        [Event::StepFinished(scene.step("main", result("done"))), failed]
    }

    #[test]
    fn steps_have_lines_unless_a_fan_out_shows_them() {
        use LineVerdict::{Hidden, Shown};
        let [step, failed] = events();
        let many = key("WORK.md", 1);
        let table = [
            (Verbosity::Normal, None, Shown, Shown),
            (Verbosity::Normal, Some(&many), Hidden, Shown),
            (Verbosity::Verbose, Some(&many), Shown, Shown),
            (Verbosity::Quiet, None, Hidden, Shown),
        ];
        for (verbosity, many, of_step, of_failure) in table {
            let mut choice = LineChoice::new(verbosity);
            let judged = (choice.judge(&step, many), choice.judge(&failed, many));
            assert_eq!(judged, (of_step, of_failure), "{verbosity:?} {many:?}");
        }
    }

    #[test]
    fn only_the_first_of_many_failures_have_lines() {
        let [_, failed] = events();
        let judged = |verbosity| {
            let mut choice = LineChoice::new(verbosity);
            let judged: Vec<LineVerdict> =
                (0..20).map(|_| choice.judge(&failed, Some(&key("WORK.md", 1)))).collect();
            let other = choice.judge(&failed, Some(&key("OTHER.md", 1)));
            assert_eq!(other, LineVerdict::Shown, "another fan-out is counted by itself");
            judged
        };
        let normal = judged(Verbosity::Normal);
        assert_eq!(
            normal[10..14],
            [LineVerdict::Shown, LineVerdict::Shown, LineVerdict::FirstHidden, LineVerdict::Hidden]
        );
        assert_eq!(judged(Verbosity::Verbose), [LineVerdict::Shown; 20]);
    }

    #[test]
    fn progress_is_reported_at_each_tenth_and_after_half_a_minute() {
        let mut reported = ReportedProgress::default();
        let mut is_due = |ended: usize, seconds: u64| {
            let (views, tallies) = crowd(4, 196 - u32::try_from(ended).expect("few"), ended);
            !reported.update(&FanOuts::of(&views, tallies), Timestamp(seconds * 1000)).is_empty()
        };
        let table = [
            (0, 0, true),
            (10, 5, false),
            (19, 29, false),
            (20, 29, true),
            (20, 90, false),
            (21, 91, true),
            (21, 200, false),
            (70, 201, true),
        ];
        for (ended, seconds, due) in table {
            assert_eq!(is_due(ended, seconds), due, "{ended} at {seconds}s");
        }
        let (views, tallies) = crowd(4, 4, 2);
        assert!(
            ReportedProgress::default()
                .update(&FanOuts::of(&views, tallies), Timestamp(0))
                .is_empty()
        );
    }
}
