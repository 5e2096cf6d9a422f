//! Reads consequences of later graphs that stand for others or combine them, and finds sections of documents.

use serde_json::{Value, json};

use crate::expression::ValueTemplate;
use crate::graph::checked_graph::ActionKind;
use crate::graph::conditions::work;
use crate::graph::reader::{GivenParameters, GraphReader};

/// The parameters of which a check has one.
const FLAG_OR_STORE: [&str; 2] = ["set_flag", "store_as"];

impl GraphReader<'_> {
    /// Reads `evaluate`: it sets a flag to the truth of a value, or stores the value.
    pub(super) fn evaluated(&mut self, given: &mut GivenParameters<'_>) -> Option<ActionKind> {
        self.require_one_of(given, FLAG_OR_STORE)?;
        let expression = given.expression("expression")?;
        if given.node("store_as").is_some() {
            return Some(ActionKind::Compute { expression, store: self.store(given)?? });
        }
        self.variables.flags(given.written("set_flag"));
        Some(ActionKind::Evaluate { expression, set_flag: given.template("set_flag")? })
    }

    /// Reads `file_exists_check` and its like: a check whose answer goes to a flag or to a path.
    pub(super) fn checked(&mut self, given: &mut GivenParameters<'_>) -> Option<ActionKind> {
        self.require_one_of(given, FLAG_OR_STORE)?;
        self.check_paths(given)?;
        let kind = match given.kind {
            "file_exists_check" => "file_exists",
            "directory_exists_check" => "directory_exists",
            "any_file_exists_check" => "any_file_exists",
            "glob_check" => "glob_exists",
            same => same,
        };
        let work = work(given, kind, &["set_flag", "store_as"])?;
        let store = if given.node("store_as").is_some() {
            self.store(given)?
        } else {
            let flag = given.written("set_flag");
            self.variables.flags(flag);
            let path = format!("flags.{}", flag.strip_prefix("flags.").unwrap_or(flag));
            ValueTemplate::parse(&Value::String(path)).ok()
        };
        Some(ActionKind::World { work, store, prompt: None })
    }

    /// Reads `compute_hash`: of the value at a path, or of a value that is given.
    pub(super) fn hashed(&mut self, given: &mut GivenParameters<'_>) -> Option<ActionKind> {
        self.require_one_of(given, ["from", "content"])?;
        Some(match given.template("content") {
            Some(content) => ActionKind::HashValue { content, store: self.store(given)?? },
            None => {
                ActionKind::ComputeHash { from: self.origin(given)?, store: self.store(given)?? }
            }
        })
    }

    /// Reads `dynamic_route`, which stores the name of a node.
    pub(super) fn dynamic_route(&mut self, given: &mut GivenParameters<'_>) -> Option<ActionKind> {
        self.variables.write("computed.dynamic_target");
        let field = ValueTemplate::parse(&json!("computed.dynamic_target")).ok()?;
        Some(ActionKind::SetState { field, value: given.template("action")? })
    }

    /// Reads `display`, the name of `display_message` and `display_table` in later graphs.
    pub(super) fn display(&mut self, given: &mut GivenParameters<'_>) -> Option<ActionKind> {
        let format = given.word("format").unwrap_or_else(|| "text".to_owned());
        let title = given.template("title");
        match format.as_str() {
            "table" => {
                let Some(headers) = given.template("headers") else {
                    let message = "`display` needs `headers` to show a table";
                    self.report.error(given.at, "WF303", message);
                    return None;
                };
                Some(ActionKind::DisplayTable { title, headers, rows: given.template("content")? })
            }
            "text" | "markdown" | "json" => Some(ActionKind::Display {
                title,
                content: given.template("content")?,
                json: format == "json",
            }),
            other => {
                self.no_such_word(given, "format", other, &["text", "markdown", "json", "table"]);
                None
            }
        }
    }

    /// Checks that exactly one of two parameters is given.
    pub(super) fn require_one_of(
        &mut self,
        given: &GivenParameters<'_>,
        names: [&str; 2],
    ) -> Option<()> {
        let [first, second] = names;
        let (kind, at) = (given.kind, given.at);
        let message = match (given.node(first), given.node(second)) {
            (Some(_), None) | (None, Some(_)) => return Some(()),
            (None, None) => format!("`{kind}` needs `{first}` or `{second}`"),
            (Some(_), Some(_)) => {
                format!("`{kind}` has `{first}` and `{second}`; give one of them")
            }
        };
        self.report.error(at, "WF303", message);
        None
    }
}

// The sections of a document: each goes from its heading to the next one of the same or a higher level.

/// A heading of a document.
struct DocumentHeading<'text> {
    start: usize,
    level: usize,
    title: &'text str,
}

/// Returns the section under a heading, with the heading. An exact match of the title is preferred to one
/// in another case. Headings inside code fences do not count.
pub fn section<'text>(text: &'text str, title: &str) -> Option<&'text str> {
    let headings = headings(text);
    let wanted = title.trim().trim_start_matches('#').trim();
    let exact = headings.iter().position(|heading| heading.title == wanted);
    let alike = || {
        let wanted = wanted.to_lowercase();
        headings.iter().position(|heading| heading.title.to_lowercase() == wanted)
    };
    let found = exact.or_else(alike)?;
    let DocumentHeading { start, level, .. } = headings[found];
    let next = headings[found + 1..].iter().find(|heading| heading.level <= level);
    let section = &text[start..next.map_or(text.len(), |heading| heading.start)];
    Some(section.trim_end())
}

/// Returns the titles of a document's sections.
pub(super) fn titles(text: &str) -> Vec<&str> {
    headings(text).into_iter().map(|heading| heading.title).collect()
}

fn headings(text: &str) -> Vec<DocumentHeading<'_>> {
    let mut found = Vec::new();
    let mut fence: Option<(char, usize)> = None;
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let inner = line.trim_start_matches(' ');
        let content = if line.len() - inner.len() > 3 { "" } else { inner.trim_end() };
        match (fence, fence_of(content)) {
            (None, Some((mark, length, _))) => fence = Some((mark, length)),
            (Some(open), Some((mark, length, true))) if mark == open.0 && length >= open.1 => {
                fence = None;
            }
            (None, None) => {
                let heading = heading(content);
                found.extend(heading.map(|(level, title)| DocumentHeading { start, level, title }));
            }
            _ => {}
        }
        start += line.len();
    }
    found
}

/// Returns the mark of a code fence, its length, and whether nothing follows.
fn fence_of(line: &str) -> Option<(char, usize, bool)> {
    let mark = line.chars().next().filter(|mark| ['`', '~'].contains(mark))?;
    let rest = line.trim_start_matches(mark);
    let length = line.len() - rest.len();
    (length >= 3 && !(mark == '`' && rest.contains('`'))).then_some((mark, length, rest.is_empty()))
}

fn heading(line: &str) -> Option<(usize, &str)> {
    let rest = line.trim_start_matches('#');
    let level = line.len() - rest.len();
    if !(1..=6).contains(&level) || !(rest.is_empty() || rest.starts_with([' ', '\t'])) {
        return None;
    }
    let title = rest.trim();
    let open = title.trim_end_matches('#');
    let closed = open.is_empty() || open.ends_with([' ', '\t']);
    Some((level, if closed { open.trim_end() } else { title }))
}

#[cfg(test)]
mod section_tests {
    use super::*;

    const TEXT: &str = "# Git\n\nIntro\n\n## Clone Repository ##\n\nClone.\n\n```sh\n# Clone\n## Fetch\n```\n\n### Depth\n\nOne.\n\n## Fetch\n\nFetch.\n~~~\n```\n## No\n~~~~\n   ## C#\nSharp.\n    ## Code\n#hash\n";

    #[test]
    fn section_ends_at_next_heading_of_same_or_higher_level() {
        let clone = section(TEXT, "Clone Repository").expect("there");
        assert!(clone.starts_with("## Clone Repository ##\n\nClone."), "{clone}");
        assert!(clone.ends_with("### Depth\n\nOne."), "{clone}");
        assert_eq!(section(TEXT, "Depth"), Some("### Depth\n\nOne."));
        assert_eq!(section(TEXT, "## c#"), Some("   ## C#\nSharp.\n    ## Code\n#hash"));
        assert_eq!(section(TEXT, "Git"), Some(TEXT.trim_end()));
    }

    #[test]
    fn heading_in_code_fence_is_ignored() {
        assert_eq!(titles(TEXT), ["Git", "Clone Repository", "Depth", "Fetch", "C#"]);
        assert_eq!(section(TEXT, "No"), None);
        assert_eq!(section("", "x"), None);
    }
}
