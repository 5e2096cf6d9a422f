//! The regular expressions of expressions.

use regex::{Regex, RegexBuilder};

/// The largest size of a compiled regular expression, in bytes.
const PATTERN_SIZE: usize = 1024 * 1024;

/// A regular expression.
#[derive(Debug)]
pub(super) struct RegexPattern {
    pub(super) regex: Regex,
    /// The flag `g`: all matches, not only the first.
    pub(super) all: bool,
}

impl RegexPattern {
    /// Compiles a regular expression, or returns the reason that it is none.
    pub(super) fn parse(pattern: &str, flags: &str) -> Result<Self, String> {
        let mut builder = RegexBuilder::new(pattern);
        builder.size_limit(PATTERN_SIZE).dfa_size_limit(PATTERN_SIZE);
        let mut all = false;
        for flag in flags.chars() {
            match flag {
                'g' => all = true,
                'i' => _ = builder.case_insensitive(true),
                'm' => _ = builder.multi_line(true),
                's' => _ = builder.dot_matches_new_line(true),
                other => {
                    return Err(format!(
                        "unknown flag `{other}` of a regular expression; the flags are g, i, m and s"
                    ));
                }
            }
        }
        match builder.build() {
            Ok(regex) => Ok(Self { regex, all }),
            Err(regex::Error::CompiledTooBig(_)) => {
                Err("the regular expression is too large".into())
            }
            Err(error) => Err(format!("the regular expression cannot be read: {}", reason(&error))),
        }
    }
}

/// Returns the reason of an error: the last line of the crate's message, after a drawing.
fn reason(error: &regex::Error) -> String {
    let text = error.to_string();
    let last = text.lines().last().unwrap_or_default().trim();
    last.strip_prefix("error: ").unwrap_or(last).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_regex_is_error_with_reason() {
        let wrong = |text, flags| RegexPattern::parse(text, flags).expect_err("no pattern");
        assert_eq!(wrong("(a", ""), "the regular expression cannot be read: unclosed group");
        assert!(wrong("(?=a)", "").contains("look-around"), "{}", wrong("(?=a)", ""));
        assert!(wrong(r"(a)\1", "").contains("backreferences"), "{}", wrong(r"(a)\1", ""));
        assert!(wrong("a", "gx").contains("unknown flag `x`"));
        assert_eq!(wrong("(a{1000}){1000}", ""), "the regular expression is too large");
        assert!(RegexPattern::parse("a.*b", "gims").is_ok_and(|pattern| pattern.all));
    }
}
