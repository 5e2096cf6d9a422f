//! The headline of the live view: as many details as fit, so that progress, cost and time are always there. Pure.

use console::truncate_str;

use super::{RunHeadline, RunPicture, clock, first_that_fits};
use crate::domain::run::RunStatus;
use crate::plugin::fan_out::ActivityCounts;
use crate::plugin::sentence::date;
use crate::plugin::styled::{StyledLine, TextTone};

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
pub(super) fn fitted(picture: RunPicture<'_>, width: usize) -> StyledLine {
    let drawn = LEVELS.into_iter().map(|details| line(picture, details));
    first_that_fits(drawn, |line| line.width() <= width)
}

fn line(picture: RunPicture<'_>, details: HeadlineDetails) -> StyledLine {
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
