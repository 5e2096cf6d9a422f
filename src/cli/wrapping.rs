//! Breaks lines for people at the width of the terminal.

use std::fmt::Write as _;

/// The further indentation of a line that continues one of a table.
const CONTINUED_INDENT: usize = 4;

/// Breaks the lines that are wider than `width` between words; what follows is indented more than the line.
pub(super) fn broken(text: &str, width: usize) -> String {
    let mut lines = String::new();
    for line in text.lines() {
        let indent = line.chars().take_while(|&c| c == ' ').count() + CONTINUED_INDENT;
        let indent = " ".repeat(indent.min(width / 2));
        let mut rest = line.to_owned();
        while let Some(at) = break_of(&rest, width) {
            let (head, tail) = rest.split_at(at);
            let _ = writeln!(lines, "{}", head.trim_end());
            rest = format!("{indent}{}", tail.trim_start());
        }
        let _ = writeln!(lines, "{rest}");
    }
    lines
}

/// Returns the offset of the last blank at which a line that is too wide can be broken.
fn break_of(line: &str, width: usize) -> Option<usize> {
    let (end, c) = line.char_indices().nth(width)?;
    let words = line.len() - line.trim_start().len();
    let at = line[..end + c.len_utf8()].rfind(' ').filter(|&at| at > words);
    at.filter(|&at| !line[at..].trim().is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_lines_are_broken_between_words() {
        let text = "  main.1  failed  it is not here\nshort\n";
        assert_eq!(broken(text, 24), "  main.1  failed  it is\n      not here\nshort\n");
        assert_eq!(broken(text, 80), text);
        assert_eq!(broken("unbreakable\n", 4), "unbreakable\n");
        assert_eq!(broken("éé éé\n", 3), "éé\n éé\n");
    }
}
