//! Draws the screen: two lines about the run, the rows or the view in their place, a line of keys.

use std::cmp::Reverse;
use std::collections::HashMap;

use console::{measure_text_width, pad_str, truncate_str};
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Line;

use super::{AgentFilter, HELP, ScreenView, TopScreen};
use crate::actor::registry::item_of;
use crate::cli::agent_table::of_many;
use crate::cli::output::short_number;
use crate::domain::id::StateName;
use crate::domain::money::Usd;
use crate::domain::run::RunStatus;
use crate::domain::tool_call::{one_line, printable_line};
use crate::domain::tree::{RowSubject, TreeRow};
use crate::domain::views::run_standing;
use crate::plugin::screen::clock;
use crate::plugin::sentence::waiting;
use crate::plugin::styled;
use crate::plugin::styled::{StyledLine, TextTone, UNCUT, widest};
use crate::runtime::observing::agent_entries::{
    AgentEntry, MonitoredRun, StatusFilter, TopAgentStatus, activity,
};

/// The content of the screen.
pub(super) struct ScreenContent<'run> {
    /// The observed run.
    pub(super) known: MonitoredRun<'run>,
    /// The headlines, from the longest to the shortest.
    pub(super) headlines: &'run [String],
    /// The agents.
    pub(super) entries: &'run [AgentEntry],
    /// The rows of all agents.
    pub(super) rows: &'run [TreeRow],
    /// The last messages of the selected agent.
    pub(super) messages: &'run [(TextTone, String)],
    /// True if colours are wanted.
    pub(super) colours: bool,
}

/// The number of lines that are not rows.
const NON_ROW_LINES: u16 = 4;

/// The heads of the columns.
const HEADS: [&str; 7] = ["agent", "state", "quiet", "tokens", "spent", "item", "what it does"];

/// The columns of numbers, and those that a narrow terminal leaves out, the first one first.
const NUMBERS: [usize; 3] = [2, 3, 4];
const DROPPED: [usize; 2] = [3, 5];

/// The widths below which columns are not cut.
const LEAST: [usize; 7] = [24, 12, UNCUT, UNCUT, UNCUT, 6, 24];

/// Returns the number of rows that fit into a height.
pub(super) fn room(height: u16) -> usize {
    usize::from(height.saturating_sub(NON_ROW_LINES))
}

/// Draws the screen.
pub(super) fn draw(frame: &mut Frame<'_>, picture: &ScreenContent<'_>, screen: &TopScreen) {
    let area = frame.area();
    let mut place = DrawArea { frame, area, colours: picture.colours };
    let known = picture.known;
    place.line(
        0,
        fitting(picture.headlines, area.width.into()),
        Style::new().add_modifier(Modifier::BOLD),
    );
    let notice = screen
        .notice
        .clone()
        .unwrap_or_else(|| situation(known, &screen.filter, picture.rows.len()));
    place.line(1, &notice, place.style(TextTone::Bad));
    match &screen.view {
        ScreenView::Messages { agent, back } => {
            place.line(2, &format!("the last messages of {agent}"), place.style(TextTone::Faint));
            place.messages(picture.messages, *back, screen.room);
        }
        ScreenView::Help => place.help(),
        ScreenView::Agents | ScreenView::Typing | ScreenView::Asking => {
            place.table(picture, screen);
        }
    }
    place.foot(screen, known, picture.rows.len().saturating_sub(screen.first + screen.room));
}

struct DrawArea<'frame, 'terminal> {
    frame: &'frame mut Frame<'terminal>,
    area: Rect,
    colours: bool,
}

impl DrawArea<'_, '_> {
    fn style(&self, tone: TextTone) -> Style {
        let style = Style::new();
        match tone {
            TextTone::Bad if self.colours => style.fg(Color::Red),
            TextTone::Good if self.colours => style.fg(Color::Green),
            TextTone::Warning if self.colours => style.fg(Color::Yellow),
            TextTone::Faint => style.add_modifier(Modifier::DIM),
            TextTone::Strong => style.add_modifier(Modifier::BOLD),
            TextTone::Bad | TextTone::Warning | TextTone::Good | TextTone::Plain => style,
        }
    }

    /// Writes a line at a height from the top, if there is room.
    fn line(&mut self, at: usize, text: &str, style: Style) {
        let at = u16::try_from(at).unwrap_or(u16::MAX);
        if at < self.area.height {
            let text = printable_line(text);
            let line = Line::styled(truncate_str(&text, self.area.width.into(), "…"), style);
            let area = Rect { y: self.area.y + at, height: 1, ..self.area };
            self.frame.render_widget(line, area);
        }
    }

    fn table(&mut self, picture: &ScreenContent<'_>, screen: &TopScreen) {
        let seen = picture.rows.iter().skip(screen.first).take(screen.room);
        let cells: Vec<TableCells> =
            seen.map(|row| cells(picture.known, picture.entries, row)).collect();
        let natural = std::array::from_fn(|column| {
            match widest(cells.iter().map(|cells| cells.texts()[column])) {
                0 if DROPPED.contains(&column) => 0,
                width => width.max(HEADS[column].len()),
            }
        });
        let widths = styled::widths(self.area.width.into(), natural, LEAST, &DROPPED);
        let row = |texts: [&str; 7]| {
            let [before @ .., activity] = texts;
            format!("{}  {activity}", styled::line(&before, &widths, &NUMBERS))
        };
        self.line(2, &row(HEADS), self.style(TextTone::Faint));
        for (number, cells) in cells.iter().enumerate() {
            let chosen = screen.first + number == screen.at;
            let style = self.style(cells.tone);
            let style = if chosen { style.add_modifier(Modifier::REVERSED) } else { style };
            self.line(3 + number, &row(cells.texts()), style);
        }
    }

    fn messages(&mut self, lines: &[(TextTone, String)], back: usize, room: usize) {
        let end = lines.len().saturating_sub(back);
        for (number, (tone, line)) in lines[end.saturating_sub(room)..end].iter().enumerate() {
            self.line(3 + number, line, self.style(*tone));
        }
        if lines.is_empty() {
            self.line(3, "no output yet", self.style(TextTone::Faint));
        }
    }

    fn help(&mut self) {
        for (number, line) in help_lines(self.area.width.into()).iter().enumerate() {
            self.line(2 + number, &line.text(), Style::new());
        }
    }

    fn foot(&mut self, screen: &TopScreen, known: MonitoredRun<'_>, below: usize) {
        let text = match &screen.view {
            ScreenView::Typing => {
                format!("show only: {}▏  (Enter keeps it, Esc drops it)", screen.filter.text)
            }
            ScreenView::Asking if known.held => {
                "Running turns may finish; you can resume the run later. Stop it? y or n".to_owned()
            }
            ScreenView::Asking => "the run is not live, so there is nothing to stop".to_owned(),
            ScreenView::Messages { .. } => "↑ ↓ scroll   q Esc back".to_owned(),
            ScreenView::Help => "any key: back".to_owned(),
            ScreenView::Agents => {
                let more = if below > 0 { &format!("{below} more ↓  ") } else { "" };
                format!("{more}↑↓ choose  Enter open  o all  / filter  s stop  ? help  q quit")
            }
        };
        let style = self.style(TextTone::Faint);
        self.line(usize::from(self.area.height.saturating_sub(1)), &text, style);
    }
}

/// The width of the column of keys in the help.
const KEYS: usize = 12;

/// Returns the lines of the help, broken between words at a width.
fn help_lines(width: usize) -> Vec<StyledLine> {
    let line = |(keys, what): &(&str, &str)| {
        let keys = pad_str(keys, KEYS, console::Alignment::Left, None);
        let line = StyledLine::of(TextTone::Plain, &format!("{keys}{what}"));
        line.broken(width, KEYS)
    };
    HELP.iter().flat_map(line).collect()
}

// The texts of the screen: the headline, and the visible rows. Pure.

/// A row of the table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TableCells {
    /// The mark, the indentation and the id, or the number of agents.
    pub(super) name: String,
    pub(super) state: String,
    /// The time without progress.
    pub(super) quiet: String,
    /// The tokens of the turn that runs.
    pub(super) tokens: String,
    /// The amount spent.
    pub(super) spent: String,
    /// The item that a live agent was forked with.
    pub(super) item: String,
    pub(super) activity: String,
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
            group_cells(&members, *open, row.depth)
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

// The text of a row of several agents. Pure.

/// Returns the row of a family.
fn group_cells(members: &[&AgentEntry], open: bool, depth: usize) -> TableCells {
    let mark = if open { '▾' } else { '▸' };
    let spent = members.iter().fold(Usd::ZERO, |sum, entry| sum.saturating_add(entry.spent));
    TableCells {
        name: format!("{}{mark} {} agents", indented(depth), members.len()),
        state: states(members),
        item: String::new(),
        activity: common_activity(members),
        tone: members.first().map_or(TextTone::Plain, |first| tone(&first.status)),
        spent: spent.to_string(),
        quiet: String::new(),
        tokens: String::new(),
    }
}

/// Returns the state of most live agents, else the state in which the first began.
fn states(members: &[&AgentEntry]) -> String {
    let mut counts: HashMap<&StateName, usize> = HashMap::new();
    for state in members.iter().filter_map(|entry| entry.state.as_ref()) {
        *counts.entry(state).or_default() += 1;
    }
    let more = if counts.len() > 1 { ", …" } else { "" };
    let most = counts.into_iter().max_by_key(|&(state, count)| (count, Reverse(state)));
    let began = || members.first().and_then(|first| first.began.as_ref());
    most.map(|(state, _)| state)
        .or_else(began)
        .map(|state| format!("{state}{more}"))
        .unwrap_or_default()
}

/// Returns the activity of all agents if it is the same, else the number of each kind.
fn common_activity(members: &[&AgentEntry]) -> String {
    let Some(first) = members.first() else { return String::new() };
    if members.iter().all(|entry| entry.status.class() == first.status.class()) {
        return all_of(&first.status).to_owned();
    }
    let counts = counted(members.iter().map(|entry| entry.status.kind()));
    let counts = counts.filter(|&(_, count, _)| count > 0);
    let counts: Vec<String> = counts.map(|(_, count, word)| format!("{count} {word}")).collect();
    counts.join(" · ")
}

fn all_of(status: &TopAgentStatus) -> &'static str {
    match status {
        TopAgentStatus::Live(status) => of_many(status),
        TopAgentStatus::Silent => "running",
        TopAgentStatus::Failed => "failed",
        TopAgentStatus::Finished => "finished",
        TopAgentStatus::Unneeded => "unneeded",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn help_is_broken_at_the_width_of_the_screen() {
        let lines = help_lines(50);
        assert!(lines.iter().all(|line| line.width() <= 50), "{lines:#?}");
        let words = |lines: &[StyledLine]| {
            let text: Vec<String> = lines.iter().map(StyledLine::text).collect();
            text.join(" ").split_whitespace().map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(words(&lines), words(&help_lines(200)));
        assert!(lines.len() > HELP.len());
        assert!(help_lines(80).len() <= 20, "it fits on a terminal of 24 lines");
    }
}
