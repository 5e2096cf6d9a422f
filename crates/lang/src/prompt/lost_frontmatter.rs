//! Finds frontmatter that counts as a part of the prompt: its first line `---` is missing, or it is a second block.
//!
//! A prompt may begin with any words and a colon. Keys therefore count only if a line such as `---` ends them, or if
//! all of them are keys of frontmatter with values that these can have.

use super::frontmatter::{self, RawFrontmatter};
use crate::position::SourcePlace;
use crate::turn_options;

/// Returns the warning about frontmatter that a prompt begins with, and its place. `body_line` is the line of the file that
/// the prompt begins at.
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

/// Returns whether a line is one that ends frontmatter, or nearly so.
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
    RawFrontmatter::KEYS.iter().any(|own| own.name == *key) || turn_options::KEYS.contains(key)
}

#[cfg(test)]
mod tests {
    use super::super::document;
    use super::*;

    fn found(text: &str) -> Option<(String, SourcePlace)> {
        let document = document::examine(text).document;
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
