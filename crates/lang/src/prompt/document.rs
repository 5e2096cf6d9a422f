//! A prompt file taken apart: the frontmatter, if there is one, and the prompt with its quotations and file names.

use std::ops::Range;

use raymond_model::id::StateName;

use super::frontmatter;
use super::frontmatter::{Frontmatter, FrontmatterPlaces, RawFrontmatter};
use crate::source::SourcePlace;
use crate::yaml::YamlErrors;
use crate::{turn_options, yaml};

/// A prompt file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromptDocument {
    pub frontmatter: Frontmatter,
    /// The prompt.
    pub body: String,
    /// The line of the file it begins at, from 1.
    pub body_line: u64,
}

/// Takes a prompt file apart.
///
/// # Errors
/// With line and column in the file: frontmatter that is not closed or not valid, and a prompt
/// that is empty, because Claude Code answers nothing to it.
pub fn parse(text: &str) -> Result<PromptDocument, yaml::Error> {
    let ExaminedDocument { document, errors, .. } = examine(text);
    errors.or_else_first(document)
}

/// A prompt file as far as it can be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExaminedDocument {
    pub document: PromptDocument,
    /// The places of the values in the frontmatter.
    pub places: FrontmatterPlaces,
    /// The mistakes, with line and column in the file.
    pub errors: YamlErrors,
}

/// Takes a prompt file apart to its end, even if it has mistakes.
pub fn examine(text: &str) -> ExaminedDocument {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut errors = YamlErrors::default();
    let Some((head, body, body_line)) = errors.keep(split(text)) else {
        let frontmatter = Frontmatter::default();
        let document = PromptDocument { frontmatter, body: String::new(), body_line: 1 };
        return ExaminedDocument { document, places: FrontmatterPlaces::default(), errors };
    };
    let frontmatter::ExaminedFrontmatter { frontmatter, places, mut errors } =
        frontmatter::examine(&head);
    if body.trim().is_empty() {
        let at = SourcePlace { line: body_line, column: 1 };
        errors.wrong(at, "the prompt is empty; write what the agent is to do");
    }
    let document = PromptDocument { frontmatter, body: body.to_owned(), body_line };
    ExaminedDocument { document, places, errors }
}

/// Splits a file into its YAML, the prompt, and the line the prompt begins at. Empty lines replace what precedes
/// the YAML, so that its lines count as the file's.
pub(crate) fn split(text: &str) -> Result<(String, &str, u64), yaml::Error> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut lines = text.split_inclusive('\n').peekable();
    let (mut blank, mut end) = (0, 0);
    while let Some(line) = lines.next_if(|line| line.trim().is_empty()) {
        blank += 1;
        end += line.len();
    }
    let Some(opening) = lines.next_if(|line| line.trim_end() == "---") else {
        return Ok((String::new(), text, 1));
    };
    end += opening.len();
    let start = end;
    for (index, line) in (blank + 2u64..).zip(lines) {
        if line.trim_end() == "---" {
            let yaml = "\n".repeat(usize::try_from(blank).unwrap_or(0) + 1) + &text[start..end];
            return Ok((yaml, &text[end + line.len()..], index + 1));
        }
        end += line.len();
    }
    let at = SourcePlace { line: blank + 1, column: 1 };
    let message = "the frontmatter that begins here is not closed; end it with a line `---`";
    Err(yaml::Error::new(at, message))
}

// Finds frontmatter that counts as a part of the prompt: its first line `---` is missing, or it is a second block.
//
// A prompt may begin with any words and a colon. Keys therefore count only if a line such as `---` ends them, or if
// all of them are keys of frontmatter with values that these can have.

/// Returns the warning about frontmatter that a prompt begins with, and its place. `body_line` is the line of the file
/// that the prompt begins at.
pub(super) fn find(body: &str, body_line: u64) -> Option<(String, SourcePlace)> {
    let is_before = |line: &&str| {
        let is_title = line.starts_with('#') || line.starts_with("<!--");
        is_title
            || line.trim().is_empty()
            || is_fence(line)
            || (body_line == 1 && is_code_fence(line))
    };
    let before = body.lines().take_while(is_before).count();
    let lines: Vec<&str> = body.lines().skip(before).collect();
    let is_toml = |line: &&str| line.trim() == "+++";
    if body.lines().next().is_some_and(|line| is_toml(&line))
        && lines.iter().any(is_toml)
        && lines.first()?.contains('=')
    {
        let message = "TOML is a part of the prompt and has no effect: write the keys as YAML, between two lines `---`";
        return Some((message.to_owned(), SourcePlace { line: body_line, column: 1 }));
    }
    key(lines.first()?)?;
    let is_end = |line: &str| is_fence(line) || is_code_fence(line);
    let end = lines.iter().position(|line| is_end(line) || !is_of_yaml(line));
    let mut block = &lines[..end.unwrap_or(lines.len())];
    let is_closed = lines.get(block.len()).is_some_and(|line| is_end(line));
    if !is_closed {
        block = block.split(|line| line.trim().is_empty()).next()?;
    }
    let keys: Vec<&str> = block.iter().filter_map(|line| key(line)).filter(is_known).collect();
    let is_frontmatter = is_closed
        || keys.contains(&"allowed_transitions")
        || frontmatter::examine(&block.join("\n")).errors.is_empty();
    if keys.is_empty() || !is_frontmatter {
        return None;
    }
    let keys = keys.join("`, `");
    let message = format!(
        "this looks like frontmatter, but it is a part of the prompt and has no effect (`{keys}`): put all keys between two lines `---` at the top of the file"
    );
    Some((message, SourcePlace { line: body_line + before as u64, column: 1 }))
}

/// Returns the key that a line begins with.
fn key(line: &str) -> Option<&str> {
    let (key, value) = line.split_once(':')?;
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let is_key = key.starts_with(|c: char| c.is_ascii_alphabetic()) && key.chars().all(is_name);
    (is_key && (value.is_empty() || value.starts_with([' ', '\t']))).then_some(key)
}

/// Returns whether a line ends frontmatter, or looks like a line that does.
fn is_fence(line: &str) -> bool {
    let line = line.trim();
    line.len() > 1 && line.chars().all(|c| matches!(c, '-' | '–' | '—' | '+' | '.' | '~' | '='))
}

/// Returns whether a line begins or ends a block of YAML code.
fn is_code_fence(line: &str) -> bool {
    matches!(line.trim(), "```yaml" | "```yml" | "```")
}

/// Returns whether a line may stand in frontmatter.
fn is_of_yaml(line: &str) -> bool {
    line.trim().is_empty()
        || line.starts_with([' ', '\t', '#', '-', ']', '}'])
        || key(line).is_some()
}

/// Returns whether frontmatter may have a key.
fn is_known(key: &&str) -> bool {
    RawFrontmatter::KEYS.iter().any(|known| known.name == *key) || turn_options::KEYS.contains(key)
}

// The parts of a markdown text that quote: code blocks, inline code and comments.
//
// Agents write what a prompt shows them, but a tag in a quotation may as well explain how tags are written.

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

// The files that a prompt's text mentions: names with the ending of a state, outside its tags.

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

    #[test]
    fn a_prompt_may_have_no_frontmatter() {
        let document = parse("Do it.\n---\nThen stop.\n").expect("valid");
        assert_eq!(document.body, "Do it.\n---\nThen stop.\n");
        assert_eq!(document.frontmatter, Frontmatter::default());
    }

    #[test]
    fn frontmatter_ends_at_closing_line() {
        for text in [
            "---\nmodel: opus\n---\nDo it.\n",
            "\u{feff}---\r\nmodel: opus\r\n---\r\nDo it.\n",
            "---  \nmodel: opus\n---\nDo it.\n",
            "\n \n---\nmodel: opus\n---\nDo it.\n",
        ] {
            let document = parse(text).expect("valid");
            assert_eq!(document.body, "Do it.\n");
            assert!(document.frontmatter.model.is_some());
        }
    }

    #[test]
    fn error_location_counts_lines_of_whole_file() {
        let error = |text| parse(text).expect_err("invalid").to_string();
        assert_eq!(
            error("---\n\nmodel: x y\n---\nDo it.\n"),
            "3:8: `x y` cannot be the name of a model; write one word, such as opus, sonnet, haiku or a full name"
        );
        assert_eq!(
            error("---\nmodel: opus\n"),
            "1:1: the frontmatter that begins here is not closed; end it with a line `---`"
        );
        assert_eq!(
            error("---\nmodel: opus\n---\n \n"),
            "4:1: the prompt is empty; write what the agent is to do"
        );
        assert_eq!(error(""), "1:1: the prompt is empty; write what the agent is to do");
    }
}

#[cfg(test)]
mod lost_frontmatter_tests {
    use super::*;

    fn found(text: &str) -> Option<(String, SourcePlace)> {
        let document = super::examine(text).document;
        find(&document.body, document.body_line)
    }

    const POLICY: &str = "allowed_transitions:\n  - { tag: result }\n";

    #[test]
    fn frontmatter_without_its_first_line_is_found() {
        for before in [
            "",
            "\n\n",
            "----\n",
            "--\n",
            " ---\n",
            "—\n—\n",
            "+++\n",
            "```yaml\n",
            "# Title\n",
            "<!-- x -->\n---\n",
        ] {
            for (keys, number) in [
                ("model: haiku\n", 1),
                ("name: x\nmodel: haiku\ndescription: y\n", 1),
                ("budget: 0.10\n\nmodel: haiku\nallowed_transitions:\n- tag: result\n", 3),
                ("allowed_transitions: [\n  { tag: result },\n]\n", 1),
                ("tools:\r\n  - Read\r\n", 1),
            ] {
                let text = format!("{before}{keys}---\nDo it.\n");
                let (message, place) =
                    found(&text).unwrap_or_else(|| panic!("nothing in {text:?}"));
                assert_eq!(message.matches("`, `").count() + 1, number, "{text:?}");
                let line = before.lines().count() as u64 + 1;
                assert_eq!(place, SourcePlace { line, column: 1 }, "{text:?}");
            }
        }
    }

    #[test]
    fn frontmatter_without_any_line_around_it_is_found_if_it_is_valid() {
        for text in [
            &format!("model: haiku\n{POLICY}\nDo it."),
            &format!("{POLICY}Do it."),
            "model: haiku\n\nDo it.",
            "effort: high\nmodel: haiku\nDo it.",
            "allowed_transitions:\n  - { tag: goot, target: A.md }\n\nDo it.",
        ] {
            assert!(found(text).is_some(), "{text:?}");
        }
    }

    #[test]
    fn toml_is_found() {
        assert!(found("+++\nmodel = \"haiku\"\n+++\nDo it.").is_some());
        assert_eq!(found("+++\nDo it.\n+++\n"), None);
    }

    #[test]
    fn second_block_is_found() {
        for text in [
            &format!("---\nmodel: haiku\n---\n{POLICY}---\nDo it."),
            &format!("---\nmodel: haiku\n---\n---\n{POLICY}---\nDo it."),
            &format!("---\n---\n\n{POLICY}---\nDo it."),
            &format!("---\nmodel: haiku\n---\n\n{POLICY}\nDo it."),
        ] {
            let (message, _) = found(text).unwrap_or_else(|| panic!("nothing in {text:?}"));
            assert!(message.contains("has no effect (`allowed_transitions`): put all"), "{text:?}");
        }
    }

    #[test]
    fn prose_is_not_taken_for_frontmatter() {
        for text in [
            "Do it.\n---\nmodel: haiku\n---\n",
            "model: we use a hexagonal one.\n\nRead it.",
            "Model: haiku\n---\n",
            "output: the list of files\nThen stop.",
            "host: {{host}}\nuser: {{user}}\n\nLog in.",
            "task: find it\nbudget: 3\n\nGo.",
            "name: x\ndescription: y\n---\nDo it.",
            "---\nmodel: haiku\n---\nmodel: see above, it is fine\nGo.",
            "---\nmodel: haiku\n---\n```yaml\nmodel: opus\n```\nReview this.",
            "---\nmodel: haiku\n---\n---\nDo it.\n---\n",
            "# Plan\n\n- model: haiku\n- budget: 3\n",
            "- Do it.\nmodel: haiku\n---\n",
            "https://example.org: read it\n---\n",
        ] {
            assert_eq!(found(text), None, "{text:?}");
        }
    }
}

#[cfg(test)]
mod quoted_tests {
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
