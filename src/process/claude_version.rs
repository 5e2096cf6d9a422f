//! The version of Claude Code on this machine, as the program says it.

use std::ffi::OsString;
use std::future::pending;
use std::time::Duration;

use super::captured_output::ProcessSpec;

/// The time for the answer; the program only prints it.
const ANSWER_LIMIT: Duration = Duration::from_secs(10);

/// The number of bytes that are kept of the answer.
const KEPT: usize = 200;

/// Returns the version that a program says of itself in this environment, such as `2.1.330`; `None` if there is no such
/// program, or it says nothing.
pub async fn claude_version(
    program: &str,
    environment: Vec<(OsString, OsString)>,
) -> Option<String> {
    let asked = ProcessSpec {
        path: program.into(),
        arguments: vec!["--version".into()],
        cwd: "/".into(),
        environment,
        longest: ANSWER_LIMIT,
        kept: KEPT,
    };
    let output = asked.run(pending()).await.ok()?;
    first_word(&output.stdout.text())
}

fn first_word(text: &str) -> Option<String> {
    let word = text.split_whitespace().next()?;
    word.starts_with(|first: char| first.is_ascii_digit()).then(|| word.chars().take(40).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_is_the_first_word() {
        assert_eq!(first_word("2.1.330 (Claude Code)\n").as_deref(), Some("2.1.330"));
        for other in ["", "claude 2", "  \n"] {
            assert_eq!(first_word(other), None, "{other:?}");
        }
    }

    #[tokio::test]
    async fn program_that_is_not_there_has_no_version() {
        assert_eq!(claude_version("/no/such/program", Vec::new()).await, None);
        let shell = claude_version("/bin/sh", Vec::new()).await;
        assert_eq!(shell, None, "an error is no version");
    }
}
