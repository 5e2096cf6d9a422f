//! The last messages of an agent as lines of a given width. Pure.

use crate::domain::printable::printable;
use crate::plugin::styled::TextTone;
use crate::process::stream::activity::ConversationItem;

/// The number of lines shown of a tool's result.
const ANSWER: usize = 4;

/// Returns all messages that are kept, wrapped.
pub(super) fn lines<'said>(
    said: impl IntoIterator<Item = &'said ConversationItem>,
    width: usize,
) -> Vec<(TextTone, String)> {
    let mut lines = Vec::new();
    for said in said {
        let (tone, first, rest, text, max_lines) = match said {
            ConversationItem::Text(text) => (TextTone::Plain, "", "", text, usize::MAX),
            ConversationItem::Tool(text) => (TextTone::Good, "▸ ", "  ", text, usize::MAX),
            ConversationItem::Answer(text) => (TextTone::Faint, "  → ", "    ", text, ANSWER),
            ConversationItem::Note(text) => (TextTone::Faint, "— ", "  ", text, usize::MAX),
        };
        let wrapped = wrap(&printable(text), width.saturating_sub(rest.len()).max(1));
        let more = wrapped.len() > max_lines;
        for (number, line) in wrapped.into_iter().take(max_lines).enumerate() {
            let ahead = if number == 0 { first } else { rest };
            lines.push((tone, format!("{ahead}{line}")));
        }
        if more {
            lines.push((tone, format!("{rest}…")));
        }
        if matches!(said, ConversationItem::Text(_)) {
            lines.push((TextTone::Plain, String::new()));
        }
    }
    lines
}

/// Returns the lines of the reason why an agent does not proceed.
pub(super) fn reason(text: &str, width: usize) -> Vec<(TextTone, String)> {
    let lines = wrap(&printable(text), width.saturating_sub(2).max(1));
    let lines = lines.into_iter().zip(std::iter::once("✗ ").chain(std::iter::repeat("  ")));
    lines.map(|(line, ahead)| (TextTone::Bad, format!("{ahead}{line}"))).collect()
}

/// Breaks a text into lines of at most `width`, between words if possible.
fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    for paragraph in text.trim_end().lines() {
        let paragraph = paragraph.replace('\t', "    ");
        let mut rest = paragraph.as_str();
        loop {
            let fits = console::truncate_str(rest, width, "").len();
            if fits >= rest.len() {
                lines.push(rest.to_owned());
                break;
            }
            let cut = match rest[..fits].rfind(' ') {
                Some(space) if space > 0 => space,
                _ if fits > 0 => fits,
                _ => rest.chars().next().map_or(rest.len(), char::len_utf8),
            };
            lines.push(rest[..cut].to_owned());
            rest = rest[cut..].trim_start();
            if rest.is_empty() {
                break;
            }
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_break_between_words_and_never_exceed_the_width() {
        assert_eq!(wrap("one two three", 8), ["one two", "three"]);
        assert_eq!(wrap("abcdefghij", 4), ["abcd", "efgh", "ij"]);
        assert_eq!(wrap("a\n\nb\n", 4), ["a", "", "b"]);
        assert_eq!(wrap("漢字漢字", 1), ["漢", "字", "漢", "字"], "wider than there is room for");
        assert_eq!(wrap("漢字漢字", 4), ["漢字", "漢字"]);
    }

    #[test]
    fn control_characters_are_escaped_and_long_answers_cut() {
        let said = [
            ConversationItem::Text("a\u{1b}[2Jb".into()),
            ConversationItem::Answer("1\n2\n3\n4\n5".into()),
        ];
        let lines: Vec<String> = lines(&said, 40).into_iter().map(|(_, line)| line).collect();
        assert_eq!(lines, ["a\\u{1b}[2Jb", "", "  → 1", "    2", "    3", "    4", "    …"]);
    }
}
