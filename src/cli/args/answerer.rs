//! The source of the agents' answers, as it is given on the command line.

use std::ffi::OsStr;
use std::path::PathBuf;

use clap::ValueEnum;
use clap_complete::engine::CompletionCandidate;

/// The word before the directory of a cassette.
const REPLAY: &str = "replay:";

/// The source of the agents' answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AnswererArg {
    /// Claude Code.
    Claude,
    /// The workflow's `replies.yaml`; no model is called.
    Scripted,
    /// The cassette in this directory; no model is called.
    Replay(PathBuf),
}

/// The source of the answers after the part that a cassette has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LiveAnswererArg {
    /// Claude Code
    #[value(alias = "live")]
    Claude,
    /// The workflow's `replies.yaml`; no model is called
    Scripted,
}

/// Reads the source of the answers.
pub(super) fn answerer(text: &str) -> Result<AnswererArg, String> {
    match text {
        "claude" => Ok(AnswererArg::Claude),
        "scripted" => Ok(AnswererArg::Scripted),
        _ => match text.strip_prefix(REPLAY) {
            Some("") => Err("name the directory of a cassette: replay:DIR".to_owned()),
            Some(dir) => Ok(AnswererArg::Replay(dir.into())),
            None => Err("write claude, scripted or replay:DIR".to_owned()),
        },
    }
}

/// Returns what a beginning can be completed to.
pub(super) fn complete_answerers(begun: &OsStr) -> Vec<CompletionCandidate> {
    let known = [
        ("claude", "Claude Code"),
        ("scripted", "The workflow's replies.yaml; no model is called"),
        (REPLAY, "The cassette in a directory; no model is called"),
    ];
    let begun = begun.to_string_lossy();
    let fitting = known.into_iter().filter(|(name, _)| name.starts_with(&*begun));
    fitting.map(|(name, help)| CompletionCandidate::new(name).help(Some(help.into()))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directory_follows_the_word_replay() {
        assert_eq!(answerer("scripted"), Ok(AnswererArg::Scripted));
        assert_eq!(answerer("replay:a:b"), Ok(AnswererArg::Replay("a:b".into())));
        assert!(answerer("replay:").is_err() && answerer("replay").is_err());
        assert_eq!(complete_answerers(OsStr::new("re")).len(), 1);
    }
}
