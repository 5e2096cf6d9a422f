//! The candidates of completions: runs, agents of the run on the line, and defined programs.
//!
//! A directory or a run that cannot be read has no candidates.

use std::ffi::OsStr;
use std::path::PathBuf;

use clap_complete::engine::{CompletionCandidate, PathCompleter, ValueCompleter};

use super::age;
use super::runs_dir::DirArgs;
use crate::actor::clock::now;
use crate::domain::id::{AgentId, RunId};
use crate::store::dataspace::Dataspace;
use crate::store::layout::RunsRoot;
use crate::store::view::{ids_beginning, load_view, newest_first};

/// The most agents that are offered.
const MAX_AGENTS: usize = 1000;

/// Returns the runs that begin with a text, the newest first.
pub(super) fn complete_runs(beginning: &OsStr) -> Vec<CompletionCandidate> {
    let beginning = beginning.to_string_lossy();
    let runs = newest_first(&CommandLine::of_process().root()).unwrap_or_default();
    let named = runs.into_iter().filter(|(id, _)| id.as_str().starts_with(&*beginning));
    let candidate = |(order, (id, started)): (usize, (RunId, _))| {
        let age = format!("started {} ago", age::text(now().since(started)));
        CompletionCandidate::new(id.as_str()).help(Some(age.into())).display_order(Some(order))
    };
    named.enumerate().map(candidate).collect()
}

/// Returns the agents of the run on the line that begin with a text, in the order of their numbers.
pub(super) fn complete_agents(beginning: &OsStr) -> Vec<CompletionCandidate> {
    let beginning = beginning.to_string_lossy();
    let typed = CommandLine::of_process();
    let root = typed.root();
    let view = typed.run(&root).and_then(|id| load_view(&root, &id).ok());
    let Some(view) = view else { return Vec::new() };
    let live = view.run.agents.values().map(|agent| (&agent.id, Some(&agent.current_state)));
    let ended = view.run.finished.iter().map(|agent| (&agent.id, agent.state.as_ref()));
    let mut agents: Vec<(&AgentId, _)> =
        live.chain(ended).filter(|(id, _)| id.as_str().starts_with(&*beginning)).collect();
    agents.sort_by(|(one, _), (other, _)| one.cmp_by_number(other));
    let candidate = |(order, (id, state)): (usize, (&AgentId, Option<&_>))| {
        let state = state.map(|state| format!("{state}").into());
        CompletionCandidate::new(id.as_str()).help(state).display_order(Some(order))
    };
    agents.into_iter().take(MAX_AGENTS).enumerate().map(candidate).collect()
}

/// Returns the targets that begin with a text: files and folders, and either runs or defined programs.
pub(super) fn complete_targets(beginning: &OsStr) -> Vec<CompletionCandidate> {
    let mut targets = if CommandLine::of_process().is_about_programs() {
        defined_programs(beginning)
    } else {
        complete_runs(beginning)
    };
    targets.extend(PathCompleter::any().complete(beginning));
    targets
}

/// Returns the defined programs whose name begins with a text.
fn defined_programs(beginning: &OsStr) -> Vec<CompletionCandidate> {
    let beginning = beginning.to_string_lossy();
    let defined = Dataspace::of(&CommandLine::of_process().root()).all_defined();
    let defined = defined.map(|listing| listing.defined).unwrap_or_default();
    let named = defined.into_iter().filter(|one| one.name.starts_with(&*beginning));
    named.map(|one| CompletionCandidate::new(one.name)).collect()
}

/// The words of the line that a shell completes.
#[derive(Debug)]
struct CommandLine(Vec<String>);

impl CommandLine {
    /// Returns the words that the shell has passed to this process.
    fn of_process() -> Self {
        let words = std::env::args_os().map(|word| word.to_string_lossy().into_owned());
        Self(words.skip_while(|word| word != "--").skip(1).collect())
    }

    /// Returns the directory of all runs that the line names, or else that a command would use.
    fn root(&self) -> RunsRoot {
        let words = || self.0.iter();
        let apart = words().zip(words().skip(1)).find(|(option, _)| *option == "--dir");
        let joined = || words().find_map(|word| word.strip_prefix("--dir="));
        let given = apart.map(|(_, value)| value.as_str()).or_else(joined).map(PathBuf::from);
        let set = || std::env::var_os("RAYMOND_DIR").map(PathBuf::from);
        DirArgs { dir: given.or_else(set) }.root()
    }

    /// Returns the run that the line names.
    fn run(&self, root: &RunsRoot) -> Option<RunId> {
        if self.0.iter().any(|word| word == "--last") {
            return newest_first(root).ok()?.into_iter().next().map(|(id, _)| id);
        }
        let named = self.0.iter().skip(2).filter_map(|word| RunId::parse(word).ok());
        named.into_iter().find_map(|id| only_run(root, &id))
    }

    /// Returns whether the line is of a command about programs.
    fn is_about_programs(&self) -> bool {
        self.0.get(1).is_some_and(|command| command == "workflow")
    }
}

/// Returns the run of this id, else the only one whose id begins with it.
fn only_run(root: &RunsRoot, beginning: &RunId) -> Option<RunId> {
    let mut found = ids_beginning(root, beginning).ok()?;
    found.pop().filter(|_| found.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directory_and_run_are_read_from_the_line() {
        let place = tempfile::tempdir().expect("a directory");
        let root = RunsRoot::new(place.path());
        std::fs::create_dir_all(root.runs().join("tour-1")).expect("made");
        let dir = place.path().display();
        let table = [
            (format!("raymond show --dir {dir} tour-1 ma"), Some("tour-1")),
            (format!("raymond show tour --dir={dir} "), Some("tour-1")),
            (format!("raymond log --last --dir={dir} --agent "), Some("tour-1")),
            (format!("raymond show other --dir={dir} "), None),
        ];
        for (line, run) in table {
            let line = CommandLine(line.split(' ').map(str::to_owned).collect());
            assert_eq!(line.root().path(), place.path(), "{line:?}");
            let found = line.run(&root);
            assert_eq!(found.as_ref().map(RunId::as_str), run, "{line:?}");
            assert!(!line.is_about_programs());
        }
    }
}
