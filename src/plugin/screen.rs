//! The rows of the live view: the run, its large fan-outs, and the agents at work; and the window's title. Pure.
//!
//! It stays calm: a headline, a line for each fan-out of many, the agents that run or need someone, as many as fit, and
//! a line for the rest. Of a fan-out of many, those that wait for their turn are only counted.

use std::sync::Arc;

use console::{measure_text_width, truncate_str};

use super::fan_out::{
    ActivityCounts, ActivityKind, FanOutEstimate, FanOutProgress, FanOutRates, FanOuts, left_text,
    rate_text,
};
use super::sentence::{execution_sentence, wait_sentence};
use super::styled::{StyledLine, TextTone, UNCUT, line, widest, widths};
use crate::actor::registry::{AgentActivity, AgentView, FanOutKey};
use crate::domain::agent_status::WaitReason;
use crate::domain::money::Usd;
use crate::domain::run::RunStatus;
use crate::domain::time::Timestamp;
use crate::plugin::sentence::date;
use crate::plugin::terminal::ShownProgress;

/// The most rows of agents.
const MAX_AGENT_ROWS: usize = 12;

/// The most rows of fan-outs.
const MAX_FAN_OUT_ROWS: usize = 6;

/// The blanks before a row.
const INDENT: usize = 2;

/// The widths below which the columns of agents are not cut: id, state, time, cost, item and activity.
const LEAST: [usize; 6] = [24, 12, UNCUT, UNCUT, 6, 24];

/// The facts of the headline that the agents do not tell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunHeadline {
    /// The id of the run.
    pub run: String,
    /// The time it was started or resumed.
    pub since: Timestamp,
    /// The cost so far.
    pub spent: Usd,
    /// The limit of the cost.
    pub budget: Option<Usd>,
    /// The status of the run.
    pub status: RunStatus,
    /// The time before which no turn starts, because the usage limit is reached.
    pub limited_until: Option<Timestamp>,
}

/// All that the live view shows.
#[derive(Debug, Clone, Copy)]
pub struct RunPicture<'run> {
    /// The facts about the whole run, such as its status and cost.
    pub headline: &'run RunHeadline,
    /// The live agents in the order of their numbers.
    pub views: &'run [Arc<AgentView>],
    /// The progress of the fan-outs.
    pub fan_outs: &'run FanOuts,
    /// The rates of the fan-outs.
    pub rates: &'run FanOutRates,
    /// The current time.
    pub now: Timestamp,
}

impl RunPicture<'_> {
    /// Returns the rows for a terminal of that many rows and columns.
    pub fn rows(self, height: u16, width: u16) -> Vec<StyledLine> {
        let (height, width) = (usize::from(height), usize::from(width).saturating_sub(1));
        let mut rows = vec![fitted(self, width)];
        rows.extend(self.fan_out_rows((height / 3).clamp(1, MAX_FAN_OUT_ROWS), width));
        let room = height.saturating_sub(rows.len() + 2).clamp(1, MAX_AGENT_ROWS);
        rows.extend(self.agent_rows(room, width));
        rows.into_iter().map(|row| row.cut(width)).collect()
    }

    fn fan_out_rows(self, room: usize, width: usize) -> Vec<StyledLine> {
        let mut large: Vec<_> = self.fan_outs.large().collect();
        large.sort_by_key(|(_, progress)| progress.left() == 0);
        let shown = if large.len() > room { room.saturating_sub(1).max(1) } else { large.len() };
        let whole = widest(large[..shown].iter().map(|(key, _)| name(key)));
        let short = whole.min((width / 4).max(8));
        let drawn = |(name_width, detail)| -> Vec<StyledLine> {
            let row = |(key, progress): &(&FanOutKey, &FanOutProgress)| {
                let estimate = self.rates.estimate(key, progress, self.now);
                fan_out_row(key, progress, estimate, name_width, detail)
            };
            large[..shown].iter().map(row).collect()
        };
        let levels = FanOutDetail::ALL.map(|detail| (short, detail));
        let levels = [(whole, FanOutDetail::All)].into_iter().chain(levels);
        let mut rows =
            first_that_fits(levels.map(drawn), |rows| rows.iter().all(|row| row.width() <= width));
        if shown < large.len() {
            let more = format!("  … and {} more states with many agents", large.len() - shown);
            rows.push(StyledLine::of(TextTone::Faint, &more));
        }
        rows
    }

    fn agent_rows(self, room: usize, width: usize) -> Vec<StyledLine> {
        let is_shown = |view: &&Arc<AgentView>| {
            matches!(
                ActivityKind::of(&view.activity),
                ActivityKind::Running | ActivityKind::ForPerson
            ) || !self.fan_outs.is_large(&FanOutKey::of(&view.id, Some(&view.began)))
        };
        let mut views: Vec<&AgentView> =
            self.views.iter().filter(is_shown).map(Arc::as_ref).collect();
        views.sort_by_key(|view| ActivityKind::of(&view.activity));
        let shown = if views.len() > room { room - 1 } else { views.len() };
        let (views, rest) = views.split_at(shown);
        let limit = self.headline.limited_until.filter(|&until| until > self.now);
        let drawn: Vec<_> = views.iter().map(|view| agent_cells(view, self.now, limit)).collect();
        let natural =
            std::array::from_fn(|column| widest(drawn.iter().map(|(_, cells)| &*cells[column])));
        let widths = widths(width.saturating_sub(INDENT), natural, LEAST, &[4]);
        let mut rows: Vec<StyledLine> =
            drawn.iter().map(|(tone, cells)| agent_row(*tone, cells, widths)).collect();
        if !rest.is_empty() {
            let mut counts = ActivityCounts::default();
            for view in rest {
                counts.add(ActivityKind::of(&view.activity));
            }
            let counts = counts.words().collect::<Vec<_>>().join(", ");
            let more = format!("  … and {} more: {counts}", rest.len());
            rows.push(StyledLine::of(TextTone::Faint, &more));
        }
        rows
    }
}

fn name(key: &FanOutKey) -> &str {
    key.began.as_ref().map_or("unknown state", |began| began.as_str())
}

/// Returns the first of several drawings that fits, or else the last, which has the fewest details.
fn first_that_fits<D: Default>(drawings: impl Iterator<Item = D>, fits: impl Fn(&D) -> bool) -> D {
    let mut last = D::default();
    for drawing in drawings {
        let is_enough = fits(&drawing);
        last = drawing;
        if is_enough {
            break;
        }
    }
    last
}

/// The details of a fan-out's row; on a narrow terminal the least important ones are left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum FanOutDetail {
    /// Everything.
    All,
    /// Only the running ones of the live agents.
    Running,
    /// Only the progress, the failures, the cost and the rate.
    Progress,
}

impl FanOutDetail {
    const ALL: [Self; 3] = [Self::All, Self::Running, Self::Progress];
}

fn fan_out_row(
    key: &FanOutKey,
    progress: &FanOutProgress,
    estimate: Option<FanOutEstimate>,
    width: usize,
    detail: FanOutDetail,
) -> StyledLine {
    let (ended, total) = (progress.ended.ended, progress.total());
    let done = match progress.left() {
        0 => format!("all {total} ended"),
        _ => format!("{ended} of {total} ({}%)", progress.percent()),
    };
    let mut row =
        StyledLine::of(TextTone::Strong, &format!("  {}", line(&[name(key)], &[width], &[])))
            .with(TextTone::Plain, &format!("  {done}"));
    if let Some(estimate) = estimate {
        let left = left_text(estimate.left_ms);
        let left = match detail {
            FanOutDetail::All => &left,
            _ => left.trim_start_matches("about "),
        };
        row.push(TextTone::Good, &format!("  {left}"));
    }
    let counts = match detail {
        FanOutDetail::All => progress.live,
        FanOutDetail::Running => {
            ActivityCounts { running: progress.live.running, ..ActivityCounts::default() }
        }
        FanOutDetail::Progress => ActivityCounts::default(),
    };
    let live = counts.words().collect::<Vec<_>>().join(", ");
    if !live.is_empty() {
        row.push(TextTone::Plain, &format!("  {live}"));
    }
    if progress.ended.failed > 0 {
        row.push(TextTone::Bad, &format!("  {} failed", progress.ended.failed));
    }
    row.push(TextTone::Plain, &format!("  {}", progress.cost()));
    if let Some(estimate) = estimate {
        row.push(TextTone::Faint, &format!("  {}", rate_text(estimate.per_hour)));
    }
    row
}

/// Returns the progress of a fan-out as a separate line, for a log.
pub fn progress_line(
    key: &FanOutKey,
    progress: &FanOutProgress,
    rates: &FanOutRates,
    now: Timestamp,
) -> StyledLine {
    let estimate = rates.estimate(key, progress, now);
    let width = measure_text_width(name(key));
    let row = fan_out_row(key, progress, estimate, width, FanOutDetail::All);
    let more = progress.cost_to_come().filter(|_| progress.left() > 0);
    let more = more.map(|more| format!(", about {} in all", progress.cost().saturating_add(more)));
    StyledLine::of(TextTone::Plain, row.text().trim_start())
        .with(TextTone::Plain, &more.unwrap_or_default())
}

/// Returns the tone of an agent's activity, and its texts in the order of the columns.
fn agent_cells(
    view: &AgentView,
    now: Timestamp,
    limit: Option<Timestamp>,
) -> (TextTone, [String; 6]) {
    let kind = ActivityKind::of(&view.activity);
    let (doing, time) = match &view.activity {
        AgentActivity::Turn { since, seen } => {
            let seen = if seen.is_empty() { "starting" } else { seen };
            (seen.to_owned(), clock(now.since(*since)))
        }
        AgentActivity::Executing(kind) => (execution_sentence(*kind), String::new()),
        AgentActivity::Waiting(reason) => {
            let limited = limit.filter(|_| *reason == WaitReason::Permit);
            let reason =
                limited.map_or_else(|| reason.clone(), |until| WaitReason::UsageLimit { until });
            let when = |until: Timestamp| format!("in {}", clock(until.since(now)));
            (wait_sentence(&reason, when), String::new())
        }
    };
    let tone = match kind {
        ActivityKind::ForPerson => TextTone::Bad,
        ActivityKind::Running => TextTone::Good,
        ActivityKind::Waiting => TextTone::Plain,
        ActivityKind::Queued => TextTone::Faint,
    };
    let (id, state, cost) = (view.id.to_string(), view.state.to_string(), view.cost.to_string());
    (tone, [id, state, time, cost, view.item.clone().unwrap_or_default(), doing])
}

fn agent_row(tone: TextTone, cells: &[String; 6], widths: [usize; 6]) -> StyledLine {
    let [before @ .., doing] = cells.each_ref().map(String::as_str);
    let before = line(&before, &widths, &[2, 3]);
    StyledLine::of(TextTone::Plain, &format!("  {before}")).with(tone, &format!("  {doing}"))
}

/// Returns a duration as `0:05`, `12:34`, `1:02:03`.
pub fn clock(millis: u64) -> String {
    let seconds = millis / 1000;
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    if hours > 0 {
        format!("{hours}:{minutes:02}:{seconds:02}")
    } else {
        format!("{minutes}:{seconds:02}")
    }
}

// The headline of the live view: as many details as fit, so that progress, cost and time are always there. Pure.

/// The details of the headline.
#[derive(Debug, Clone, Copy)]
struct HeadlineDetails {
    /// The widest name of the run.
    name: usize,
    /// True for the cost that is foreseen.
    has_foreseen_cost: bool,
    /// The kinds of agents that do not run: the queued ones are the first, those that wait for others the second.
    idle_kinds: u8,
    /// True for the limit of the cost.
    has_budget: bool,
}

/// The details from the most to the fewest.
const LEVELS: [HeadlineDetails; 7] = {
    let all = HeadlineDetails {
        name: usize::MAX,
        has_foreseen_cost: true,
        idle_kinds: 2,
        has_budget: true,
    };
    let spent = HeadlineDetails { has_foreseen_cost: false, ..all };
    let queued = HeadlineDetails { idle_kinds: 1, ..spent };
    let running = HeadlineDetails { idle_kinds: 0, ..spent };
    let short = HeadlineDetails { name: 20, ..running };
    let shorter = HeadlineDetails { name: 12, ..running };
    [all, spent, queued, running, short, shorter, HeadlineDetails { has_budget: false, ..shorter }]
};

/// Returns the headline with as many details as fit into a width.
fn fitted(picture: RunPicture<'_>, width: usize) -> StyledLine {
    let drawn = LEVELS.into_iter().map(|details| headline_line(picture, details));
    first_that_fits(drawn, |line| line.width() <= width)
}

fn headline_line(picture: RunPicture<'_>, details: HeadlineDetails) -> StyledLine {
    let RunHeadline { run, since, spent, budget, status, limited_until } = picture.headline;
    let (live, ended) = picture.fan_outs.sum();
    let queued = if details.idle_kinds > 0 { live.queued } else { 0 };
    let waiting = if details.idle_kinds > 1 { live.waiting } else { 0 };
    let live = ActivityCounts { queued, waiting, ..live };
    let running = if live.running == 0 { Some("0 running".to_owned()) } else { None };
    let finished = ended.ended - ended.failed;
    let finished = (finished > 0).then(|| format!("{finished} finished"));
    let counts: Vec<String> = running.into_iter().chain(live.words()).chain(finished).collect();
    let mut head = StyledLine::of(TextTone::Strong, &truncate_str(run, details.name, "…"))
        .with(TextTone::Plain, &format!(" · {}", counts.join(", ")));
    if ended.failed > 0 {
        head.push(TextTone::Plain, ", ");
        head.push(TextTone::Bad, &format!("{} failed", ended.failed));
    }
    let budget = budget.filter(|_| details.has_budget);
    let budget = budget.map(|budget| format!(" of {budget}")).unwrap_or_default();
    let foreseen = picture.fan_outs.cost_to_come().filter(|_| details.has_foreseen_cost);
    let foreseen = foreseen.map(|more| format!(", about {} in all", spent.saturating_add(more)));
    let foreseen = foreseen.unwrap_or_default();
    let time = clock(picture.now.since(*since));
    head.push(TextTone::Plain, &format!(" · {spent}{budget}{foreseen} · {time}"));
    match (status, limited_until.filter(|&until| until > picture.now)) {
        (RunStatus::Paused, _) => head.push(TextTone::Warning, " · pausing"),
        (_, Some(until)) => {
            let text = format!(" · usage limit, continues {}", date(until));
            head.push(TextTone::Warning, &text);
        }
        _ => {}
    }
    head
}

// The title and the progress of a run, for what a terminal shows outside its text. Pure.

/// The status of a run in a window's title, tab or task bar.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WindowStatus {
    /// The id of the run, the percentage that is done if it has several agents, and whether it needs a person.
    pub title: String,
    /// The bar in the task bar or tab. Its percentage counts agents that have ended.
    pub progress: ShownProgress,
}

impl WindowStatus {
    /// Returns the status of a run with these agents. Of a single agent nobody knows how far it is.
    pub fn of(run: &str, agents: &FanOuts) -> Self {
        let (live, ended) = agents.sum();
        let all = live.running + live.queued + live.waiting + live.for_person + ended.ended;
        let percent = (all > 1).then(|| ended.ended * 100 / all);
        let share = percent.map(|percent| format!(" · {percent}%")).unwrap_or_default();
        let percent = percent.and_then(|percent| u64::try_from(percent).ok());
        let (needs, progress) = match (live.for_person, percent) {
            (0, None) => ("", ShownProgress::Busy),
            (0, Some(percent)) => ("", ShownProgress::Percent(percent)),
            (_, percent) => (" · needs you", ShownProgress::NeedsSomeone(percent.unwrap_or(0))),
        };
        Self { title: format!("raymond {run}{share}{needs}"), progress }
    }
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod window_status_tests {
    use super::*;
    use crate::actor::registry::{EndedTally, FanOutKey};
    use crate::plugin::fan_out::{ActivityCounts, FanOutProgress};

    #[test]
    fn status_says_how_far_a_run_is_and_whether_it_needs_somebody() {
        let status = |live: ActivityCounts, ended: usize| {
            let ended = EndedTally { ended, ..EndedTally::default() };
            let mut progress = FanOutProgress::default();
            (progress.live, progress.ended) = (live, ended);
            let agents = FanOuts([(FanOutKey { depth: 0, began: None }, progress)].into());
            let WindowStatus { title, progress } = WindowStatus::of("r", &agents);
            (title, progress)
        };
        let running = ActivityCounts { running: 1, ..ActivityCounts::default() };
        assert_eq!(status(running, 0), ("raymond r".to_owned(), ShownProgress::Busy));
        let share = ("raymond r · 75%".to_owned(), ShownProgress::Percent(75));
        assert_eq!(status(running, 3), share);
        let asking = ActivityCounts { for_person: 1, ..running };
        let needs = ("raymond r · 50% · needs you".to_owned(), ShownProgress::NeedsSomeone(50));
        assert_eq!(status(asking, 2), needs);
    }
}
