//! A prompt file taken apart: the frontmatter, if there is one, and the prompt itself.

use super::frontmatter::{self, Frontmatter, FrontmatterPlaces};
use crate::yaml::{self, YamlErrors};

/// A prompt file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromptDocument {
    /// The frontmatter.
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
    /// The document.
    pub document: PromptDocument,
    /// The places of the values in the frontmatter.
    pub places: FrontmatterPlaces,
    /// The mistakes, with line and column in the file.
    pub errors: YamlErrors,
}

/// Takes a prompt file apart to its end, whatever is wrong with it.
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
        let message = "the prompt is empty; write what the agent is to do".to_owned();
        errors.keep::<()>(Err(yaml::Error { line: body_line, column: 1, message }));
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
    let message =
        "the frontmatter that begins here is not closed; end it with a line `---`".to_owned();
    Err(yaml::Error { line: blank + 1, column: 1, message })
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
