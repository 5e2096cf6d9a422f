//! A prompt file taken apart: the frontmatter, if there is one, and the prompt itself.

use super::frontmatter::{self, Frontmatter};

/// A prompt file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    /// What its head says.
    pub frontmatter: Frontmatter,
    /// The prompt.
    pub body: String,
}

/// Takes a prompt file apart.
///
/// # Errors
/// With line and column in the file: frontmatter that is not closed or not valid, and a prompt
/// that is empty, because Claude Code answers nothing to it.
pub fn parse(text: &str) -> Result<Document, frontmatter::Error> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let (head, body, body_line) = split(text)?;
    let frontmatter = frontmatter::parse(&head)?;
    if body.trim().is_empty() {
        let message = "the prompt is empty; write what the agent is to do".to_owned();
        return Err(frontmatter::Error { line: body_line, column: 1, message });
    }
    Ok(Document { frontmatter, body: body.to_owned() })
}

/// The YAML with an empty line where the opening `---` was, so that its lines count as the file's;
/// then the prompt, and the line it begins at.
fn split(text: &str) -> Result<(String, &str, u64), frontmatter::Error> {
    let mut lines = text.split_inclusive('\n');
    if lines.next().map(str::trim_end) != Some("---") {
        return Ok((String::new(), text, 1));
    }
    let mut end = text.find('\n').map_or(text.len(), |at| at + 1);
    let start = end;
    for (index, line) in (2u64..).zip(lines) {
        if line.trim_end() == "---" {
            let yaml = format!("\n{}", &text[start..end]);
            return Ok((yaml, &text[end + line.len()..], index + 1));
        }
        end += line.len();
    }
    let message =
        "the frontmatter that begins here is not closed; end it with a line `---`".to_owned();
    Err(frontmatter::Error { line: 1, column: 1, message })
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
    fn the_head_ends_at_its_line() {
        for text in [
            "---\nmodel: opus\n---\nDo it.\n",
            "\u{feff}---\r\nmodel: opus\r\n---\r\nDo it.\n",
            "---  \nmodel: opus\n---\nDo it.\n",
        ] {
            let document = parse(text).expect("valid");
            assert_eq!(document.body, "Do it.\n");
            assert!(document.frontmatter.model.is_some());
        }
    }

    #[test]
    fn lines_are_counted_in_the_file() {
        let error = |text| parse(text).expect_err("invalid").to_string();
        assert_eq!(
            error("---\n\nmodel: x\n---\nDo it.\n"),
            "3:8: unknown model `x`; use one of opus, sonnet, haiku"
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
