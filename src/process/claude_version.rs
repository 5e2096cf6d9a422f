//! The version of Claude Code on this machine, as the program says it.

use std::process::Stdio;
use std::time::Duration;

use tokio::process::Command;
use tokio::time::timeout;

use super::helper_environment::{NamedVariables, passed_on};

/// The time for the answer; the program only prints it.
const ANSWER_LIMIT: Duration = Duration::from_secs(10);

/// Returns the version that a program says of itself, such as `2.1.330`; `None` if there is no such program, or it says
/// nothing.
pub async fn claude_version(program: &str) -> Option<String> {
    let asked = Command::new(program)
        .arg("--version")
        .env_clear()
        .envs(passed_on(std::env::vars_os(), &NamedVariables::default()))
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .output();
    let output = timeout(ANSWER_LIMIT, asked).await.ok()?.ok()?;
    first_word(&output.stdout)
}

fn first_word(output: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(output).ok()?;
    let word = text.split_whitespace().next()?;
    word.starts_with(|first: char| first.is_ascii_digit()).then(|| word.chars().take(40).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_is_the_first_word() {
        assert_eq!(first_word(b"2.1.330 (Claude Code)\n").as_deref(), Some("2.1.330"));
        for other in [&b""[..], b"claude 2", b"\xff", b"  \n"] {
            assert_eq!(first_word(other), None, "{other:?}");
        }
    }

    #[tokio::test]
    async fn program_that_is_not_there_has_no_version() {
        assert_eq!(claude_version("/no/such/program").await, None);
    }
}
