//! The texts of the screen: the headline, and the visible rows. Pure.

mod many;

use console::{measure_text_width, truncate_str};

use super::rows::AgentFilter;
use crate::actor::registry::item_of;
use crate::cli::output::short_number;
use crate::domain::printable::{one_line, printable_line};
use crate::domain::run::RunStatus;
use crate::domain::tree::fold::{RowSubject, TreeRow};
use crate::domain::views::run_standing;
use crate::plugin::screen::clock;
use crate::plugin::sentence::waiting;
use crate::plugin::styled::TextTone;
use crate::runtime::observing::activity_text::activity;
use crate::runtime::observing::agent_entries::{
    AgentEntry, MonitoredRun, StatusFilter, TopAgentStatus,
};

/// A row of the table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TableCells {
    /// The mark, the indentation and the id, or the number of agents.
    pub(super) name: String,
    /// The state.
    pub(super) state: String,
    /// The time without progress.
    pub(super) quiet: String,
    /// The tokens of the turn that runs.
    pub(super) tokens: String,
    /// The amount spent.
    pub(super) spent: String,
    /// The item that a live agent was forked with.
    pub(super) item: String,
    /// The activity.
    pub(super) activity: String,
    /// The tone.
    pub(super) tone: TextTone,
}

impl TableCells {
    /// Returns the texts in the order of the columns.
    pub(super) fn texts(&self) -> [&str; 7] {
        let Self { name, state, quiet, tokens, spent, item, activity, .. } = self;
        [name, state, quiet, tokens, spent, item, activity]
    }
}

/// The most levels that a row is indented by.
const MAX_INDENT_LEVELS: usize = 8;

/// The kinds in the order of the headline, and the words for them.
const KINDS: [(StatusFilter, &str); 5] = [
    (StatusFilter::Stuck, "stuck"),
    (StatusFilter::Running, "running"),
    (StatusFilter::Waiting, "waiting"),
    (StatusFilter::Failed, "failed"),
    (StatusFilter::Finished, "finished"),
];

/// Returns the headlines: the run, the number of agents of each kind, and the amount spent; each further one is
/// shorter, for a narrower screen.
pub(super) fn headlines(known: MonitoredRun<'_>, entries: &[AgentEntry]) -> Vec<String> {
    let run = known.run;
    let is_queued = |entry: &&AgentEntry| known.held && entry.status.is_queued();
    let queued = entries.iter().filter(is_queued).count();
    let counts = counted(entries.iter().map(|entry| entry.status.kind()));
    let counts = counts.flat_map(|(kind, count, word)| match kind {
        StatusFilter::Waiting => vec![(queued, "queued", false), (count - queued, word, false)],
        kind => vec![(count, word, kind == StatusFilter::Running)],
    });
    let counts = counts.filter(|&(count, _, is_always_shown)| count > 0 || is_always_shown);
    let counts: Vec<String> = counts.map(|(count, word, _)| format!("{count} {word}")).collect();
    let spent = match run.settings.budget_usd {
        Some(budget) => format!("{} of {budget}", run.total_cost_usd),
        None => run.total_cost_usd.to_string(),
    };
    let word = match (run.status, known.held) {
        (RunStatus::Paused, true) => "pausing",
        (_, held) => run_standing(run, held),
    };
    let refused = match run.refused_tools.count() {
        0 => String::new(),
        1 => "  1 tool refused".to_owned(),
        count => format!("  {count} tools refused"),
    };
    let line = |name: usize, spent: &str| {
        let name = truncate_str(run.workflow_id.as_str(), name, "…");
        format!("{name}  {word}  {}  {spent}{refused}", counts.join(", "))
    };
    let whole = format!("{spent} spent");
    let cost = run.total_cost_usd.to_string();
    vec![
        line(usize::MAX, &whole),
        line(usize::MAX, &spent),
        line(20, &spent),
        line(12, &spent),
        line(12, &cost),
    ]
}

/// Returns the first of several texts that fits into a width, or else the last.
pub(super) fn fitting(texts: &[String], width: usize) -> &str {
    let fits = |text: &&String| measure_text_width(text) <= width;
    texts.iter().find(fits).or(texts.last()).map_or("", String::as_str)
}

/// Returns notes on the filter and on the reason why the run does not proceed; empty if there are none.
pub(super) fn situation(known: MonitoredRun<'_>, filter: &AgentFilter, shown: usize) -> String {
    let run = known.run;
    let mut parts = Vec::new();
    if filter.is_set() {
        let kind = KINDS.iter().find(|&&(kind, _)| Some(kind) == filter.kind);
        let kind = kind.map_or("agents".to_owned(), |&(_, word)| format!("{word} agents"));
        let text =
            if filter.text.is_empty() { String::new() } else { format!(" with `{}`", filter.text) };
        parts.push(format!("only {kind}{text}: {shown}; a or Esc shows all"));
    }
    match (&run.pause, run.limited(known.now)) {
        (Some(pause), _) => parts.push(one_line(&format!("paused: {pause}"))),
        (None, Some(until)) if run.status == RunStatus::Running => parts.push(waiting(until)),
        _ if run.status == RunStatus::Running && !known.held => {
            parts.push(format!("not live: `raymond resume {}` resumes it", run.workflow_id));
        }
        _ => {}
    }
    printable_line(&parts.join("  "))
}

/// Returns the cells of a row.
pub(super) fn cells(known: MonitoredRun<'_>, entries: &[AgentEntry], row: &TreeRow) -> TableCells {
    match &row.of {
        RowSubject::One(entry) => agent(known, &entries[*entry], row.depth),
        RowSubject::Many { members, open, .. } => {
            let members: Vec<&AgentEntry> = members.iter().map(|&entry| &entries[entry]).collect();
            many::cells(&members, *open, row.depth)
        }
    }
}

/// Returns each kind with its number of agents and its word.
fn counted(
    kinds: impl Iterator<Item = StatusFilter>,
) -> impl Iterator<Item = (StatusFilter, usize, &'static str)> {
    let mut counts = [0; KINDS.len()];
    kinds.for_each(|kind| counts[kind as usize] += 1);
    KINDS.iter().map(move |&(kind, word)| (kind, counts[kind as usize], word))
}

fn agent(known: MonitoredRun<'_>, entry: &AgentEntry, depth: usize) -> TableCells {
    let quiet = entry.since.map(|since| clock(known.now.since(since)));
    let tokens = known.seen.get(&entry.id).map(|seen| seen.tokens).filter(|&tokens| tokens > 0);
    TableCells {
        name: format!("{}{} {}", indented(depth), mark(&entry.status), entry.id),
        state: state(entry),
        quiet: quiet.unwrap_or_default(),
        tokens: tokens.map(short_number).unwrap_or_default(),
        spent: spent(known, entry),
        item: known.run.agents.get(&entry.id).and_then(item_of).unwrap_or_default(),
        activity: printable_line(&activity(known, entry, |until| {
            format!("in {}", clock(until.since(known.now)))
        })),
        tone: tone(&entry.status),
    }
}

/// Returns the cost of an agent's turns; with a share of the budget, what it and its descendants spent of it.
fn spent(known: MonitoredRun<'_>, entry: &AgentEntry) -> String {
    match known.run.shares.get(&entry.id) {
        Some(share) => format!("{} of {}", share.spent_usd, share.limit_usd),
        None => entry.spent.to_string(),
    }
}

fn indented(depth: usize) -> String {
    "  ".repeat(depth.min(MAX_INDENT_LEVELS))
}

fn state(entry: &AgentEntry) -> String {
    entry.state.as_ref().map(ToString::to_string).unwrap_or_default()
}

fn mark(status: &TopAgentStatus) -> char {
    match status.kind() {
        StatusFilter::Finished if *status == TopAgentStatus::Unneeded => '–',
        StatusFilter::Stuck => '!',
        StatusFilter::Running => '▶',
        StatusFilter::Waiting => '·',
        StatusFilter::Failed => '✗',
        StatusFilter::Finished => '✓',
    }
}

fn tone(status: &TopAgentStatus) -> TextTone {
    match status.kind() {
        StatusFilter::Stuck | StatusFilter::Failed => TextTone::Bad,
        StatusFilter::Running => TextTone::Good,
        StatusFilter::Waiting => TextTone::Plain,
        StatusFilter::Finished => TextTone::Faint,
    }
}
