//! What a program beside a run, a hook's command or a plug-in, is given of the caller's environment.
//! Pure.
//!
//! It gets no key, which is Claude Code's alone, and none of the marks by which a process belongs to
//! a run: raymond itself may have been started by a turn or by a plug-in of another one.

use std::ffi::{OsStr, OsString};

/// What the names of the keys of the account begin with, and of what Claude Code tells its children.
const SECRET: [&[u8]; 2] = [b"ANTHROPIC_", b"CLAUDE_"];

/// The variables by which a process is found to be a run's.
const MARKS: [&str; 5] =
    ["RAYMOND_RUN", "RAYMOND_DIR", "RAYMOND_AGENT", "RAYMOND_TURN", "RAYMOND_PLUGIN"];

/// What is passed on.
pub fn passed_on(
    caller: impl IntoIterator<Item = (OsString, OsString)>,
) -> impl Iterator<Item = (OsString, OsString)> {
    caller.into_iter().filter(|(name, _)| is_passed_on(name))
}

fn is_passed_on(name: &OsStr) -> bool {
    let bytes = name.as_encoded_bytes();
    !SECRET.iter().any(|prefix| bytes.starts_with(prefix))
        && !MARKS.iter().any(|mark| name == *mark)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_the_marks_of_a_run_are_kept_back() {
        let names = [
            "PATH",
            "ANTHROPIC_API_KEY",
            "CLAUDE_CODE_OAUTH_TOKEN",
            "MY_CLAUDE_",
            "RAYMOND_RUN",
            "RAYMOND_DIR",
            "RAYMOND_AGENT",
            "RAYMOND_TURN",
            "RAYMOND_PLUGIN",
            "RAYMOND_LOG",
        ];
        let caller = names.map(|name| (OsString::from(name), OsString::from("x")));
        let kept: Vec<OsString> = passed_on(caller).map(|(name, _)| name).collect();
        assert_eq!(kept, ["PATH", "MY_CLAUDE_", "RAYMOND_LOG"]);
    }
}
