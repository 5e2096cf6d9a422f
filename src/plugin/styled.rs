//! Lines of printable text in several tones, the columns of tables, and each record as a line of JSON.

use std::io::{ErrorKind, Write};

use actix::{Actor, Context, Handler};
use console::{Alignment, Style, measure_text_width, pad_str, truncate_str};

use crate::actor::observer::{FinishPublishing, Published};
pub use crate::domain::event::TextTone;
use crate::domain::tool_call::{printable_json, printable_line};

// Lines of printable text in several tones, cut or broken at the width of a terminal. Pure.

/// A line in several tones. What is in it is printable.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StyledLine(Vec<(TextTone, String)>);

/// Returns a printable text in a tone, with or without colours.
pub fn paint(tone: TextTone, text: &str, colours: bool) -> String {
    let style = match tone {
        TextTone::Bad => Style::new().red(),
        TextTone::Warning => Style::new().yellow(),
        TextTone::Good => Style::new().green(),
        TextTone::Faint => Style::new().dim(),
        TextTone::Strong => Style::new().bold(),
        TextTone::Plain => return text.to_owned(),
    };
    if colours && !text.is_empty() {
        style.force_styling(true).apply_to(text).to_string()
    } else {
        text.to_owned()
    }
}

impl StyledLine {
    /// Makes a line of one text.
    pub fn of(tone: TextTone, text: &str) -> Self {
        Self::default().with(tone, text)
    }

    /// Returns the line with a text at its end.
    pub fn with(mut self, tone: TextTone, text: &str) -> Self {
        self.push(tone, text);
        self
    }

    /// Appends a text.
    pub fn push(&mut self, tone: TextTone, text: &str) {
        if !text.is_empty() {
            self.0.push((tone, printable_line(text)));
        }
    }

    /// Returns the text without its tones.
    pub fn text(&self) -> String {
        self.0.iter().map(|(_, text)| text.as_str()).collect()
    }

    /// Returns the number of columns it takes.
    pub fn width(&self) -> usize {
        self.0.iter().map(|(_, text)| measure_text_width(text)).sum()
    }

    /// Returns the text with its tones as codes of a terminal, or without them.
    pub fn painted(&self, colours: bool) -> String {
        self.0.iter().map(|(tone, text)| paint(*tone, text, colours)).collect()
    }

    /// Cuts the line at a width; a mark shows that something is missing.
    pub fn cut(self, width: usize) -> Self {
        if self.width() <= width {
            return self;
        }
        let mut room = width;
        let mut cut = Vec::new();
        let mut texts = self.0.into_iter().peekable();
        while let Some((tone, text)) = texts.next() {
            let wide = measure_text_width(&text);
            if wide > room || (wide == room && texts.peek().is_some()) {
                let text = truncate_str(&format!("{text}…"), room, "…").into_owned();
                cut.push((tone, text));
                break;
            }
            room -= wide;
            cut.push((tone, text));
        }
        Self(cut)
    }

    /// Breaks the line between words where it is wider than `width`, and indents the rest by `indent`. The last cell of
    /// a table's row begins a separate line.
    pub fn broken(mut self, width: usize, indent: usize) -> Vec<Self> {
        let cell = if self.width() > width { self.take_last_cell() } else { None };
        let mut lines = Vec::new();
        for mut rest in std::iter::once(self).chain(cell.map(|cell| cell.indented(indent))) {
            while let Some(at) = break_of(&rest.text(), width) {
                let (head, tail) = rest.split_at(at);
                lines.push(head);
                rest = tail.indented(indent);
            }
            lines.push(rest);
        }
        lines
    }

    fn indented(mut self, indent: usize) -> Self {
        self.0.insert(0, (TextTone::Plain, " ".repeat(indent)));
        self
    }

    /// Removes the last cell of a table's row, with the blanks before it.
    fn take_last_cell(&mut self) -> Option<Self> {
        let [_, .., (_, blanks), _] = self.0.as_slice() else { return None };
        let is_cell = blanks.len() > 1 && blanks.trim().is_empty();
        let cell = self.0.pop_if(|_| is_cell)?;
        self.0.pop();
        Some(Self(vec![cell]))
    }

    /// Splits the line at an offset in its text, and removes the blanks there.
    fn split_at(self, at: usize) -> (Self, Self) {
        let (mut head, mut tail) = (Self::default(), Self::default());
        let mut left = at;
        for (tone, text) in self.0 {
            let (before, after) = text.split_at(left.min(text.len()));
            left -= before.len();
            if !before.is_empty() {
                head.0.push((tone, before.to_owned()));
            }
            let after = if tail.0.is_empty() { after.trim_start() } else { after };
            if !after.is_empty() {
                tail.0.push((tone, after.to_owned()));
            }
        }
        if let Some((_, text)) = head.0.last_mut() {
            text.truncate(text.trim_end().len());
        }
        (head, tail)
    }
}

/// Returns the offset of the last blank at which a line that is too wide can be broken, outside a command if the
/// command fits on a separate line.
pub fn break_of(line: &str, width: usize) -> Option<usize> {
    if measure_text_width(line) <= width {
        return None;
    }
    let words = line.len() - line.trim_start().len();
    let fits = truncate_str(line, width, "").len();
    let is_blank_next = line[fits..].starts_with(' ');
    let at = if is_blank_next { Some(fits) } else { line[..fits].rfind(' ') };
    let at = at.filter(|&at| at > words && !line[at..].trim().is_empty())?;
    Some(command_at(line, at, width).filter(|&start| start > words).unwrap_or(at))
}

/// The widest indentation of a line that continues another.
const MAX_INDENT: usize = 8;

/// Returns where the command begins that has the blank at an offset, if it fits on a line.
fn command_at(line: &str, at: usize, width: usize) -> Option<usize> {
    let start = line[..=at].rfind("raymond ")?;
    let (before, command) = line.split_at(start);
    let end = match before.strip_suffix('`') {
        Some(_) => command.find('`').map(|end| end + 1),
        None if before.ends_with(": ") || before.ends_with("  ") => command.find([';', ',']),
        None => return None,
    };
    let command = &command[..end.unwrap_or(command.len())];
    let fits = measure_text_width(command) + MAX_INDENT <= width;
    (fits && at < start + command.len()).then(|| before.trim_end_matches('`').len())
}

/// Writes each record as a line of JSON, under the names that plug-ins see, to a stream until its reader is gone.
pub struct JsonLinesPlugin {
    stream: Option<Box<dyn Write + Send>>,
}

impl JsonLinesPlugin {
    /// Returns a plug-in that writes to this stream.
    pub fn new(stream: impl Write + Send + 'static) -> Self {
        Self { stream: Some(Box::new(stream)) }
    }
}

impl Actor for JsonLinesPlugin {
    type Context = Context<Self>;
}

impl Handler<Published> for JsonLinesPlugin {
    type Result = ();

    fn handle(&mut self, published: Published, _: &mut Self::Context) {
        let Some(stream) = &mut self.stream else { return };
        let written = serde_json::to_string(&*published.record)
            .map_err(std::io::Error::from)
            .and_then(|line| writeln!(stream, "{}", printable_json(&line)))
            .and_then(|()| stream.flush());
        if let Err(error) = written {
            self.stream = None;
            if error.kind() != ErrorKind::BrokenPipe {
                tracing::warn!(
                    "no further records are printed: {error}; the journal has all of them"
                );
            }
        }
    }
}

impl Handler<FinishPublishing> for JsonLinesPlugin {
    type Result = ();

    fn handle(&mut self, _: FinishPublishing, _: &mut Self::Context) {}
}

// How the columns of a table share the width of a terminal. Pure.

/// The blanks between two columns.
const GAP: usize = 2;

/// The least width of a column that is never cut.
pub const UNCUT: usize = usize::MAX;

/// Returns the widths of columns, 0 for those that are left out: the natural ones if they fit. Otherwise columns are
/// dropped, in the order of `dropped`, until each of the others has its `least` width, and the wide ones share the
/// rest.
pub fn widths<const N: usize>(
    available: usize,
    mut natural: [usize; N],
    least: [usize; N],
    dropped: &[usize],
) -> [usize; N] {
    let at_most = |natural: [usize; N], share: usize| -> [usize; N] {
        std::array::from_fn(|column| natural[column].min(least[column].max(share)))
    };
    for &column in dropped {
        if total(at_most(natural, 0)) > available {
            natural[column] = 0;
        }
    }
    let mut shares = (0..=available).rev().map(|share| at_most(natural, share));
    shares.find(|widths| total(*widths) <= available).unwrap_or_else(|| at_most(natural, 0))
}

fn total<const N: usize>(widths: [usize; N]) -> usize {
    let shown = widths.iter().filter(|&&width| width > 0);
    shown.map(|width| width + GAP).sum::<usize>().saturating_sub(GAP)
}

/// Returns the width of the widest text.
pub fn widest<'text>(texts: impl Iterator<Item = &'text str>) -> usize {
    texts.map(measure_text_width).max().unwrap_or(0)
}

/// Returns texts in columns of these widths, those at `right` aligned to the right.
pub fn line(texts: &[&str], widths: &[usize], right: &[usize]) -> String {
    let cells = texts.iter().zip(widths).enumerate().filter(|(_, (_, width))| **width > 0);
    let cells = cells.map(|(column, (text, width))| {
        let side = if right.contains(&column) { Alignment::Right } else { Alignment::Left };
        pad_str(text, *width, side, Some("…"))
    });
    cells.collect::<Vec<_>>().join(&" ".repeat(GAP))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line() -> StyledLine {
        StyledLine::of(TextTone::Strong, "main").with(TextTone::Bad, "  it failed")
    }

    #[test]
    fn colours_are_codes_around_each_text() {
        assert_eq!(line().painted(false), "main  it failed");
        assert_eq!(line().painted(true), "\u{1b}[1mmain\u{1b}[0m\u{1b}[31m  it failed\u{1b}[0m");
    }

    #[test]
    fn control_characters_of_text_are_escaped() {
        let line = StyledLine::of(TextTone::Plain, "a\u{1b}[2Jb\nc");
        assert_eq!(line.painted(true), "a\\u{1b}[2Jb\\nc");
    }

    #[test]
    fn line_is_cut_at_width() {
        let table = [(20, "main  it failed"), (15, "main  it failed"), (14, "main  it fail…")];
        for (width, text) in table {
            assert_eq!(line().cut(width).text(), text, "{width}");
        }
        assert_eq!(line().cut(4).text(), "mai…");
        let wide = StyledLine::of(TextTone::Plain, "漢字漢字");
        assert!(wide.cut(5).width() <= 5);
    }

    #[test]
    fn wide_line_is_broken_between_words_and_keeps_its_tones() {
        let lines: Vec<String> =
            line().broken(9, 2).iter().map(|line| line.painted(true)).collect();
        let red = |text: &str| format!("\u{1b}[31m{text}\u{1b}[0m");
        assert_eq!(
            lines,
            [format!("\u{1b}[1mmain\u{1b}[0m{}", red("  it")), "  ".to_owned() + &red("failed")]
        );
        let plain = |text: &str, width| {
            let lines = StyledLine::of(TextTone::Plain, text).broken(width, 4);
            lines.iter().map(StyledLine::text).collect::<Vec<_>>()
        };
        assert_eq!(plain("unbreakable", 4), ["unbreakable"]);
        assert_eq!(plain("  one two three", 9), ["  one two", "    three"]);
        assert_eq!(plain("éé éé", 3), ["éé", "    éé"]);
        let text = "t ended; `raymond log t-1` shows how; again: raymond retry t-1 --prompts";
        assert_eq!(
            plain(text, 36),
            [
                "t ended; `raymond log t-1` shows",
                "    how; again:",
                "    raymond retry t-1 --prompts"
            ]
        );
        let text = "t ended; to try again: raymond retry t-1";
        assert_eq!(plain(text, 32), ["t ended; to try again:", "    raymond retry t-1"]);
        assert_eq!(plain("as raymond log does it", 14), ["as raymond log", "    does it"]);
    }
}

#[cfg(test)]
mod columns_tests {
    use super::*;

    const LEAST: [usize; 4] = [10, 8, 6, 30];

    #[test]
    fn wide_columns_share_what_narrow_columns_leave() {
        let shared = |available, natural| widths(available, natural, LEAST, &[2, 1]);
        let table = [
            (200, [40, 50, 24, 80], [40, 50, 24, 80]),
            (199, [40, 50, 24, 80], [40, 50, 24, 79]),
            (160, [40, 50, 24, 500], [40, 45, 24, 45]),
            (80, [8, 7, 0, 90], [8, 7, 0, 61]),
            (80, [40, 50, 24, 90], [14, 14, 14, 30]),
            (60, [40, 50, 24, 90], [10, 8, 6, 30]),
            (59, [40, 50, 24, 90], [12, 12, 0, 30]),
            (50, [40, 50, 24, 90], [18, 0, 0, 30]),
            (20, [40, 50, 24, 90], [10, 0, 0, 30]),
            (20, [4, 3, 2, 5], [4, 3, 2, 5]),
            (0, [4, 0, 0, 5], [4, 0, 0, 5]),
        ];
        for (available, natural, expected) in table {
            assert_eq!(shared(available, natural), expected, "{available}: {natural:?}");
        }
    }

    #[test]
    fn nothing_is_cut_that_fits_and_nothing_overflows() {
        for available in 0..250 {
            for wide in [1, 5, 12, 30, 77, 200] {
                let natural = [wide, wide / 2, 24, 2 * wide];
                let widths = widths(available, natural, LEAST, &[2, 1]);
                if total(natural) <= available {
                    assert_eq!(widths, natural);
                } else if available >= LEAST[0] + GAP + LEAST[3] {
                    assert!(total(widths) <= available, "{available}: {natural:?} {widths:?}");
                    assert!(widths[3] >= natural[3].min(LEAST[3]), "{available}: {widths:?}");
                }
            }
        }
    }
}
