//! Draws the screen: two lines about the run, the rows or the view in their place, a line of keys.

use console::{pad_str, truncate_str};
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Line;

use super::keys::HELP;
use super::screen::{ScreenView, TopScreen};
use super::text::{TableCells, cells, fitting, situation};
use crate::domain::printable::printable_line;
use crate::domain::tree::fold::TreeRow;
use crate::plugin::columns::{self, UNCUT, widest};
use crate::plugin::styled::{StyledLine, TextTone};
use crate::runtime::observing::agent_entries::{AgentEntry, MonitoredRun};

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

/// The number of lines that are no rows.
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
        let widths = columns::widths(self.area.width.into(), natural, LEAST, &DROPPED);
        let row = |texts: [&str; 7]| {
            let [before @ .., activity] = texts;
            format!("{}  {activity}", columns::line(&before, &widths, &NUMBERS))
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
