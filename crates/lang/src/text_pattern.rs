//! A text to look for: as it stands, or a regular expression between slashes.

use std::fmt;

use regex::Regex;

/// A text, or a regular expression that is written as `/…/`.
#[derive(Debug, Clone)]
pub enum TextPattern {
    /// The text itself.
    Text(String),
    /// A regular expression, without its slashes.
    Regex(Regex),
}

impl TextPattern {
    /// Reads a pattern.
    ///
    /// # Errors
    /// The reason why the regular expression cannot be read.
    pub fn parse(text: &str) -> Result<Self, String> {
        let inner = text.strip_prefix('/').and_then(|rest| rest.strip_suffix('/'));
        let Some(inner) = inner.filter(|inner| !inner.is_empty()) else {
            return Ok(Self::Text(text.to_owned()));
        };
        let read = Regex::new(inner).map_err(|error| error.to_string());
        read.map(Self::Regex).map_err(|error| {
            let why = error.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned();
            format!("`{text}` is not a regular expression: {why}; write \\ before a character to match it literally")
        })
    }

    /// Returns whether the pattern is found somewhere in a text.
    pub fn is_in(&self, text: &str) -> bool {
        match self {
            Self::Text(part) => text.contains(part.as_str()),
            Self::Regex(regex) => regex.is_match(text),
        }
    }

    /// Returns whether the pattern means a text: the two texts are the same apart from white space around them, or the
    /// expression is found in the text.
    pub fn fits(&self, text: &str) -> bool {
        match self {
            Self::Text(whole) => text.trim() == whole.trim(),
            Self::Regex(regex) => regex.is_match(text),
        }
    }
}

impl PartialEq for TextPattern {
    fn eq(&self, other: &Self) -> bool {
        self.to_string() == other.to_string()
    }
}

impl Eq for TextPattern {}

impl fmt::Display for TextPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Regex(regex) => write!(f, "/{regex}/"),
        }
    }
}

read_from_text!(TextPattern);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_between_slashes_is_an_expression() {
        let pattern = |text| TextPattern::parse(text).expect("a pattern");
        assert!(pattern("/^a.c$/").fits("abc") && !pattern("/^a.c$/").fits("xabc"));
        assert!(pattern("a.c").is_in("xa.c") && !pattern("a.c").is_in("abc"));
        assert!(pattern("done").fits("done\n") && !pattern("done").fits("done!"));
        assert!(pattern("/").is_in("a/b") && pattern("//").is_in("http://x"));
        let why = TextPattern::parse("/a(/").expect_err("not closed");
        assert!(why.starts_with("`/a(/` is not a regular expression: unclosed group;"), "{why}");
    }
}
