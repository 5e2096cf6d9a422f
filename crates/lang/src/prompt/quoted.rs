//! The parts of a markdown text that quote: code blocks, inline code and comments.
//!
//! Agents write what a prompt shows them, but a tag in a quotation may as well explain how tags are written.
//!
//! The files that a prompt's text mentions: names with the ending of a state, outside of its tags.

use std::ops::Range;

use raymond_model::id::StateName;

/// The quoted parts of a text, in their order.
#[derive(Debug, Default)]
pub(super) struct QuotedParts(Vec<Range<usize>>);

impl QuotedParts {
    /// Finds the quoted parts of a text, in time linear in its length.
    pub(super) fn of(text: &str) -> Self {
        let mut parts = Vec::new();
        let mut prose = 0;
        let mut block: Option<CodeFence<'_>> = None;
        let mut indented = IndentedCode::default();
        let mut at = 0;
        for line in text.split_inclusive('\n') {
            let next = at + line.len();
            match block {
                Some(fence) if fence.is_closed_by(line) => {
                    parts.push(fence.start..next);
                    block = None;
                    prose = next;
                }
                Some(_) => {}
                None => {
                    if let Some(fence) = CodeFence::opened_by(line, at) {
                        quotes_in(text, prose..at, &mut parts);
                        block = Some(fence);
                    } else if indented.takes(line) {
                        quotes_in(text, prose..at, &mut parts);
                        parts.push(at..next);
                        prose = next;
                    }
                }
            }
            at = next;
        }
        match block {
            Some(fence) => parts.push(fence.start..text.len()),
            None => quotes_in(text, prose..text.len(), &mut parts),
        }
        Self(parts)
    }

    /// Returns whether a byte of the text is quoted.
    pub(super) fn contains(&self, offset: usize) -> bool {
        let index = self.0.partition_point(|part| part.end <= offset);
        self.0.get(index).is_some_and(|part| part.contains(&offset))
    }
}

/// The opening line of a code block.
#[derive(Clone, Copy)]
struct CodeFence<'text> {
    start: usize,
    mark: &'text str,
}

impl<'text> CodeFence<'text> {
    fn opened_by(line: &'text str, start: usize) -> Option<Self> {
        let rest = line.trim_start_matches([' ', '\t', '>']);
        let mark = fence_mark(rest)?;
        let is_inline = mark.starts_with('`') && rest[mark.len()..].contains('`');
        (!is_inline).then_some(Self { start, mark })
    }

    fn is_closed_by(self, line: &str) -> bool {
        let rest = line.trim_start_matches([' ', '\t', '>']).trim_end();
        fence_mark(rest).is_some_and(|mark| mark == rest && mark.starts_with(self.mark))
    }
}

/// Returns the three or more backticks or tildes at the beginning of a line.
fn fence_mark(line: &str) -> Option<&str> {
    ['`', '~'].into_iter().find_map(|mark| {
        let length = line.len() - line.trim_start_matches(mark).len();
        (length >= 3).then(|| &line[..length])
    })
}

/// The lines indented by four spaces that are code, because they follow an empty line and belong to no list.
#[derive(Default)]
struct IndentedCode {
    is_in_list: bool,
    follows_text: bool,
}

impl IndentedCode {
    fn takes(&mut self, line: &str) -> bool {
        if line.trim().is_empty() {
            self.follows_text = false;
            return false;
        }
        let is_indented = line.starts_with("    ") || line.starts_with('\t');
        if is_indented {
            return !self.is_in_list && !self.follows_text;
        }
        self.follows_text = true;
        let rest = line.trim_start();
        let numbered = rest.trim_start_matches(|c: char| c.is_ascii_digit());
        let is_item = rest.starts_with(['-', '*', '+'])
            || (numbered.len() < rest.len() && numbered.starts_with(['.', ')']));
        self.is_in_list = is_item || (self.is_in_list && line.starts_with([' ', '\t']));
        false
    }
}

/// Adds the inline code and the comments in a part of a text.
fn quotes_in(text: &str, range: Range<usize>, parts: &mut Vec<Range<usize>>) {
    let (base, prose) = (range.start, &text[range]);
    let mut unclosed: Vec<usize> = Vec::new();
    let mut at = 0;
    while let Some(offset) = prose[at..].find(['`', '<']) {
        let start = at + offset;
        let rest = &prose[start..];
        if let Some(comment) = rest.strip_prefix("<!--") {
            let Some(end) = comment.find("-->") else { return };
            at = start + 4 + end + 3;
            parts.push(base + start..base + at);
        } else if rest.starts_with('`') {
            let length = rest.len() - rest.trim_start_matches('`').len();
            at = start + length;
            if unclosed.contains(&length) {
                continue;
            }
            match closing_ticks(&prose[at..], length) {
                Some(end) => {
                    at += end + length;
                    parts.push(base + start..base + at);
                }
                None => unclosed.push(length),
            }
        } else {
            at = start + 1;
        }
    }
}

/// Returns the offset of a run of just `length` backticks.
fn closing_ticks(text: &str, length: usize) -> Option<usize> {
    let mut at = 0;
    while let Some(offset) = text[at..].find('`') {
        let start = at + offset;
        let run = text[start..].len() - text[start..].trim_start_matches('`').len();
        if run == length {
            return Some(start);
        }
        at = start + run;
    }
    None
}

/// Returns the names in a text that a state could have, each once.
pub(super) fn names(text: &str, tags: &[Range<usize>]) -> Vec<StateName> {
    let mut names = Vec::new();
    for (start, word) in words(text) {
        let in_tag = tags.iter().any(|tag| tag.contains(&start));
        let is_state = StateName::is_state_by_ending;
        let name = StateName::parse(word).ok().filter(|name| !in_tag && is_state(name));
        names.extend(name.filter(|name| !names.contains(name)));
    }
    names
}

/// Returns the longest pieces of file name characters, without the dots of a sentence around them.
pub(super) fn words(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
    let mut rest = 0;
    std::iter::from_fn(move || {
        let start = rest + text[rest..].find(part)?;
        let length = text[start..].find(|c| !part(c)).unwrap_or(text.len() - start);
        rest = start + length;
        Some((start, text[start..rest].trim_matches('.')))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quoted(text: &str) -> Vec<&str> {
        QuotedParts::of(text).0.into_iter().map(|part| &text[part]).collect()
    }

    #[test]
    fn code_blocks_inline_code_and_comments_are_quoted() {
        let table: [(&str, &[&str]); 9] = [
            ("a `b` c ``d ` e`` f", &["`b`", "``d ` e``"]),
            ("a\n```md\nb\n```\nc `d`", &["```md\nb\n```\n", "`d`"]),
            ("~~~~\n```\nb\n~~~~\nc", &["~~~~\n```\nb\n~~~~\n"]),
            ("```\nnever closed `x`", &["```\nnever closed `x`"]),
            ("a <!-- b\n`c` --> d", &["<!-- b\n`c` -->"]),
            ("a\n\n    b\n    c\n\nd", &["    b\n", "    c\n"]),
            ("1. a\n\n    b\n- c\n\n    d\n", &[]),
            ("an ` alone, and ``` within", &[]),
            ("```x``` is inline", &["```x```"]),
        ];
        for (text, expected) in table {
            assert_eq!(quoted(text), expected, "{text}");
        }
        let parts = QuotedParts::of("a `b` c");
        assert_eq!([1, 2, 4, 5].map(|at| parts.contains(at)), [false, true, true, false]);
    }

    #[test]
    fn long_text_of_ticks_is_searched_in_time() {
        let text = format!("{} {}", "`` ` ".repeat(40_000), "`a".repeat(80_001));
        assert!(!QuotedParts::of(&text).0.is_empty());
    }
}

#[cfg(test)]
mod mentioned_tests {
    use super::*;

    #[test]
    fn state_names_are_found_in_prose_but_not_in_tags() {
        let text = "Go to A.md. Then `B-2.md`, a/C.md, (graph.yaml) or x.txt; <goto>D.md</goto> A.md raymond.yaml";
        let tag = text.find("<goto>").expect("a tag");
        let found = names(text, std::slice::from_ref(&(tag..tag + 17)));
        let found: Vec<&str> = found.iter().map(StateName::as_str).collect();
        assert_eq!(found, ["A.md", "B-2.md", "C.md", "graph.yaml"]);
    }
}
