//! A command as a person writes it, as words.
//!
//! It is split as a shell does it, but no shell sees it: `$HOME`, `*` and `|` mean nothing.

/// Returns the words of a command; the first is its program.
///
/// # Errors
/// A text that says what is expected.
pub fn words(text: &str) -> Result<Vec<String>, String> {
    let words = shlex::split(text).ok_or("a quote has no end in this command")?;
    with_program(words)
}

/// Checks a command given as words; the first is its program.
///
/// # Errors
/// A text that says what is expected.
pub fn with_program(words: Vec<String>) -> Result<Vec<String>, String> {
    match words.first() {
        Some(program) if !program.is_empty() => Ok(words),
        _ => Err("write a command, such as sh ./log.sh steps.log".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_is_split_by_shell_quoting_rules() {
        let split = words("sh -c 'cat >> \"my log\"' a\\ b \"$HOME\"").expect("a command");
        assert_eq!(split, ["sh", "-c", "cat >> \"my log\"", "a b", "$HOME"]);
    }

    #[test]
    fn unclosed_quote_or_missing_program_is_error() {
        assert_eq!(words("sh 'x"), Err("a quote has no end in this command".to_owned()));
        for none in ["", " ", "'' x"] {
            assert!(words(none).is_err_and(|why| why.starts_with("write a command")), "{none:?}");
        }
    }
}
