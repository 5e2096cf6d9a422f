//! Tells a person from an agent at the command line.
//!
//! An agent may start runs and signal as itself, and may not act for the person who started it.

use std::ffi::OsString;
use std::path::Path;
use std::sync::OnceLock;

use super::args::CliCommand;
use super::args::hosts::HostsCommand;
use super::exit::Error;
use super::options::ConsentArgs;
use crate::cli::args::workflows::WorkflowCommand;
use crate::domain::id::RunId;
use crate::process::ancestry::{self, ActingAgent};
use crate::process::registry::{self, ProcessRegistry};
use crate::runtime::directories;
use crate::store::layout::RunsRoot;
use crate::store::trust::TrustOrigin;
use crate::store::user_state::UserState;
use crate::store::view::load_view;

/// The variable of the proof that a run is a case's, and the purpose of the proof.
const TEST: &str = "RAYMOND_TEST";

/// Returns the agent in whose turn this command was given; `None` for a person. It is found once, because the parents
/// of this process may end.
pub(super) fn acting_agent() -> Option<ActingAgent> {
    static ACTING: OnceLock<Option<ActingAgent>> = OnceLock::new();
    let find = || {
        let variable = |name: &str| std::env::var(name).ok();
        ancestry::acting_agent(variable, process_registry(false).as_ref())
    };
    ACTING.get_or_init(find).clone()
}

/// Has this process enter what it starts in the user's registry. Without a key or a place for it, the marks in the
/// environments of processes have to do.
pub(super) fn keep_registry() {
    let acting = acting_agent();
    if let Some(registry) = process_registry(true) {
        registry::activate(registry, acting);
    }
}

fn process_registry(makes_key: bool) -> Option<ProcessRegistry> {
    let state = directories::user_state().ok()?;
    let has_key = makes_key || state.key_file().exists();
    let key = if has_key { state.key().ok() } else { None };
    (key.is_some() || !makes_key).then(|| ProcessRegistry::new(state.path(), key))
}

/// Returns how a person gave their trust, if they did. The word of an agent does not count: the environment that
/// it inherits may give trust too.
pub(super) fn trust_origin(consent: &ConsentArgs) -> Option<TrustOrigin> {
    let origin = match (consent.trust, consent.trust_by_environment) {
        (true, _) => TrustOrigin::Flag,
        (false, true) => TrustOrigin::Environment,
        (false, false) => return None,
    };
    acting_agent().is_none().then_some(origin)
}

/// Returns the act of a person that a command is, as the end of "the agent may not"; `None` for a command that agents
/// may give, too. `run`, `start` and `resume` may be either: see [`must_resume`].
fn act_of(command: &CliCommand) -> Option<&'static str> {
    let unless = |is_harmless: bool, act: &'static str| (!is_harmless).then_some(act);
    match command {
        CliCommand::Retry(args) => unless(args.dry_run, "retry agents of a run"),
        CliCommand::Branch(args) => unless(args.dry_run, "branch a run"),
        CliCommand::Rewind(args) => unless(args.dry_run, "rewind a run"),
        CliCommand::Answer(args) => {
            let is_question = args.parts().is_ok_and(|(_, answers)| answers.is_empty());
            unless(is_question, "answer a question of a run")
        }
        CliCommand::Facts(args) => unless(!args.prune, "prune facts"),
        CliCommand::Tell(_) => Some("send an agent a message"),
        CliCommand::Hold(_) => Some("hold an agent"),
        CliCommand::Release(_) => Some("release an agent"),
        CliCommand::Edit(_) => Some("edit the prompt of an agent"),
        CliCommand::Attach(_) => Some("talk to an agent"),
        CliCommand::Clean(args) => unless(args.dry_run, "remove a run"),
        CliCommand::Stop(args) if args.agent.get().is_some() => Some("stop an agent"),
        CliCommand::Stop(_) => Some("stop a run"),
        CliCommand::Serve(_) => Some("serve a page that acts for a person"),
        CliCommand::Recover(args) => unless(!args.all, "resume all runs"),
        CliCommand::Worker(_) => Some("start a worker"),
        CliCommand::Hosts(args) => args.command.as_ref().map(|command| match command {
            HostsCommand::Drain(_) => "drain a host",
            HostsCommand::Lost(_) => "declare a host lost",
            HostsCommand::Remove(_) => "remove a host",
        }),
        CliCommand::Worktrees(args) => unless(!args.prune, "remove worktrees"),
        CliCommand::Trust(args) => unless(args.list || args.show, "say what is trusted"),
        CliCommand::Workflow(WorkflowCommand::Define(_)) => Some("define a program"),
        CliCommand::New(_)
        | CliCommand::Run(_)
        | CliCommand::Start(_)
        | CliCommand::Resume(_)
        | CliCommand::Workflow(
            WorkflowCommand::Start(_) | WorkflowCommand::Watch(_) | WorkflowCommand::List(_),
        )
        | CliCommand::Rules(_)
        | CliCommand::Signal(_)
        | CliCommand::Status(_)
        | CliCommand::List(_)
        | CliCommand::Pending(_)
        | CliCommand::Log(_)
        | CliCommand::Tree(_)
        | CliCommand::Show(_)
        | CliCommand::Costs(_)
        | CliCommand::Diff(_)
        | CliCommand::Record(_)
        | CliCommand::Top(_)
        | CliCommand::Check(_)
        | CliCommand::Test(_)
        | CliCommand::Graph(_)
        | CliCommand::Import(_)
        | CliCommand::Schema(_)
        | CliCommand::Completions { .. }
        | CliCommand::Man(_) => None,
    }
}

/// Refuses a command that only a person may give. Trust holds for all future runs, so no process below a raymond counts
/// as a person's there, even if its agent is not known.
///
/// # Errors
/// [`Error::NotAPerson`].
pub(super) fn may_give(command: &CliCommand) -> Result<(), Error> {
    let Some(what) = act_of(command) else { return Ok(()) };
    must_act(what)?;
    if matches!(command, CliCommand::Trust(_)) && ancestry::has_raymond_above() {
        return Err(Error::NotAPerson { agent: "of a run".to_owned(), what, advice: None });
    }
    Ok(())
}

/// Refuses an act of a person to an agent.
///
/// # Errors
/// [`Error::NotAPerson`].
pub(super) fn must_act(what: &'static str) -> Result<(), Error> {
    let Some(ActingAgent { run, agent, advice }) = acting_agent() else { return Ok(()) };
    if run.is_empty() {
        // Where the user's state cannot be read, nobody is known, and the reason is what helps.
        directories::user_state()?.key()?;
    }
    let agent =
        if run.is_empty() { "of an unknown run".to_owned() } else { format!("{run}/{agent}") };
    Err(Error::NotAPerson { agent, what, advice })
}

/// Refuses to resume a run to an agent, except for a run that was made and has not begun, as `raymond start` leaves it
/// to a process in the background, and for the case of a test, which `raymond test` kills and resumes.
///
/// # Errors
/// [`Error::NotAPerson`].
pub(super) fn must_resume(root: &RunsRoot, id: &RunId) -> Result<(), Error> {
    let is_new = || load_view(root, id).is_ok_and(|view| view.run.seq == 1);
    if acting_agent().is_none() || is_new() || is_of_test(root) {
        return Ok(());
    }
    must_act("resume a run")
}

/// Returns the variable with which `raymond test` proves that the runs of a directory are its own. The key is that of
/// the case: an agent can neither make the proof nor use it for another directory.
pub(super) fn proof_of_test(state: &UserState, runs: &Path) -> Option<(OsString, OsString)> {
    let proof = state.key().ok()?.proof(TEST, runs.as_os_str().as_encoded_bytes());
    Some((TEST.into(), proof.into()))
}

fn is_of_test(root: &RunsRoot) -> bool {
    let proof = directories::user_state().ok().and_then(|state| proof_of_test(&state, root.path()));
    proof.is_some_and(|(_, proof)| std::env::var_os(TEST) == Some(proof))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cli::args::Cli;

    #[test]
    fn commands_that_change_something_of_others_are_a_persons() {
        let act = |line: &str| {
            let words = std::iter::once("raymond").chain(line.split(' '));
            act_of(&Cli::try_parse_from(words).expect("a command").command)
        };
        for line in ["facts", "answer t", "clean t --dry-run", "trust --list", "recover", "hosts"] {
            assert_eq!(act(line), None, "{line}");
        }
        for line in ["run flow", "start flow", "signal ready", "log t", "top t", "test flow"] {
            assert_eq!(act(line), None, "{line}");
        }
        for (line, what) in [
            ("facts --prune --label x", "prune facts"),
            ("answer t NEXT.md=yes", "answer a question of a run"),
            ("answer t a1 allow", "answer a question of a run"),
            ("stop t main", "stop an agent"),
            ("recover --all", "resume all runs"),
            ("retry t", "retry agents of a run"),
            ("hosts lost here", "declare a host lost"),
            ("trust flow --remove", "say what is trusted"),
            ("workflow define flow.lisp", "define a program"),
        ] {
            assert_eq!(act(line), Some(what), "{line}");
        }
    }
}
