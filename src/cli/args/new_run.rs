//! The options that are fixed when a run starts.
//!
//! The source of the agents' answers, as it is given on the command line.

use std::ffi::OsStr;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate};

use crate::domain::id::RunId;
use crate::language::prompt::step::RESERVED;

/// Options that are fixed when a run starts.
#[derive(Debug, Clone, Default, Args)]
pub struct NewRunArgs {
    /// Name the run instead of letting raymond choose an id; programs read it as @label
    #[arg(long, alias = "label", value_parser = RunId::parse)]
    pub id: Option<RunId>,

    /// Text for {{input}} in the first state; - reads it from stdin
    #[arg(long, value_name = "TEXT", value_parser = input)]
    pub input: Option<String>,

    /// Text for {{KEY}} in every state; repeatable
    #[arg(long = "var", value_name = "KEY=VALUE", value_parser = variable)]
    pub variables: Vec<(String, String)>,

    /// The git branch that (artifact …) compares against; programs read it as @branch
    #[arg(long = "base-branch", alias = "branch", value_name = "BRANCH")]
    pub branch: Option<String>,

    /// Text for @context/KEY in programs; repeatable
    #[arg(long = "context", value_name = "KEY=VALUE", value_parser = context)]
    pub context: Vec<(String, String)>,

    /// The source of the answers: claude, scripted for the workflow's replies.yaml, or replay:DIR for the
    /// cassette that `raymond record` made; only claude calls a model [default: claude]
    #[arg(long, value_name = "WHO", value_parser = answerer, add = ArgValueCompleter::new(complete_answerers))]
    pub agent: Option<AnswererArg>,

    /// With --agent replay:DIR, fail an agent whose prompt differs from the recorded prompt
    #[arg(long)]
    pub strict_replay: bool,

    /// With --agent replay:DIR, answer only the turns up to this record of the recorded run from the cassette; `raymond
    /// log RUN --json` shows the numbers of records
    #[arg(long, value_name = "SEQ", requires = "then", value_parser = clap::value_parser!(u64).range(1..))]
    pub replay_until: Option<u64>,

    /// The source of the answers after --replay-until: claude, or scripted for the workflow's replies.yaml
    #[arg(long, value_name = "WHO", requires = "replay_until")]
    pub then: Option<LiveAnswererArg>,

    /// The directory the agents work in [default: the current one]
    #[arg(long, value_name = "DIR")]
    pub cwd: Option<PathBuf>,

    /// With an engine: a directory that all hosts see under the same path, so that forks without a worktree can run on
    /// any host
    #[arg(long, value_name = "DIR")]
    pub shared_dir: Option<PathBuf>,

    /// With an engine: the git repository through which hosts without a shared disk exchange the work of agents, as an
    /// address or the name of a remote. Branches raymond/RUN/… are pushed there
    #[arg(long, value_name = "REMOTE", conflicts_with = "shared_dir")]
    pub git_exchange: Option<String>,

    /// Start the workflow even if `raymond check` finds errors in it
    #[arg(long)]
    pub no_check: bool,
}

fn input(text: &str) -> Result<String, String> {
    if text != "-" {
        return Ok(text.to_owned());
    }
    std::io::read_to_string(std::io::stdin()).map_err(|error| format!("cannot read stdin: {error}"))
}

pub(super) fn variable(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, _)) if RESERVED.contains(&key) => {
            Err(format!("{{{{{key}}}}} is set by raymond; choose another name"))
        }
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err("write KEY=VALUE".to_owned()),
    }
}

fn context(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err("write KEY=VALUE".to_owned()),
    }
}

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
    fn variable_without_valid_name_is_refused() {
        assert_eq!(variable("a=b=c"), Ok(("a".into(), "b=c".into())));
        assert!(variable("state=x").is_err() && variable("=x").is_err() && variable("x").is_err());
    }
}

#[cfg(test)]
mod answerer_tests {
    use super::*;

    #[test]
    fn directory_follows_the_word_replay() {
        assert_eq!(answerer("scripted"), Ok(AnswererArg::Scripted));
        assert_eq!(answerer("replay:a:b"), Ok(AnswererArg::Replay("a:b".into())));
        assert!(answerer("replay:").is_err() && answerer("replay").is_err());
        assert_eq!(complete_answerers(OsStr::new("re")).len(), 1);
    }
}
