//! The candidates of completions (runs, agents, programs), and the search for the directory of all runs (`--dir`).
//!
//! Completions offer the agents of the run on the line. A directory or a run that cannot be read has no candidates.

use std::ffi::OsStr;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use clap::Args;
use clap_complete::engine::{CompletionCandidate, PathCompleter, ValueCompleter};

use super::color::option_values;
use super::exit::Error;
use super::questions::quoted;
use super::runnable::FIRST_STATES;
use super::{output, table};
use crate::actor::context::now;
use crate::domain::agent::Agent;
use crate::domain::id::{AgentId, RunId};
use crate::runtime::directories;
use crate::store::dataspace::Dataspace;
use crate::store::layout::RunsRoot;
use crate::store::user_state;
use crate::store::view::{RunView, ids, ids_beginning, is_held, load_view, newest_first};

/// The most agents that are offered.
const MAX_AGENTS: usize = 1000;

/// The most runs that are read to tell whether a command takes them.
const MAX_READ_RUNS: usize = 100;

/// Returns the runs that begin with a text and that the command on the line takes, the newest first.
pub(super) fn complete_runs(beginning: &OsStr) -> Vec<CompletionCandidate> {
    let line = CommandLine::of_process();
    if line.has_run() {
        return complete_agents(beginning);
    }
    let beginning = beginning.to_string_lossy();
    let root = line.root();
    let accepted = AcceptedRuns::of(line.command());
    let runs = newest_first(&root).unwrap_or_default();
    let named = runs.into_iter().filter(|(id, _)| id.as_str().starts_with(&*beginning));
    let most = if accepted == AcceptedRuns::All { usize::MAX } else { MAX_READ_RUNS };
    let named = named.take(most).filter(|(id, _)| accepted.has(&root, id));
    let candidate = |(order, (id, started)): (usize, (RunId, _))| {
        let age = format!("started {} ago", table::span(now().since(started)));
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
    agents.sort_by(|(id, _), (other, _)| id.cmp_by_number(other));
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
    let named = defined.into_iter().filter(|program| program.name.starts_with(&*beginning));
    named.map(|program| CompletionCandidate::new(program.name)).collect()
}

/// The runs that a command accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AcceptedRuns {
    /// All runs.
    All,
    /// Those that a raymond has locked.
    Live,
    /// Those that can be resumed.
    Resumable,
    /// Those that have ended.
    Ended,
    /// Those with a question that waits for an answer.
    Asking,
}

impl AcceptedRuns {
    /// Returns the runs that a command accepts: others it would refuse, or find nothing to do for.
    fn of(command: &str) -> Self {
        match command {
            "stop" => Self::Live,
            "run" | "resume" | "start" => Self::Resumable,
            "clean" => Self::Ended,
            "answer" => Self::Asking,
            _ => Self::All,
        }
    }

    /// Returns whether a run is one of them. A run that cannot be read is not.
    fn has(self, root: &RunsRoot, id: &RunId) -> bool {
        match self {
            Self::All => true,
            Self::Live => is_held(root, id).unwrap_or(false),
            _ => load_view(root, id).is_ok_and(|view| self.takes(&view)),
        }
    }

    fn takes(self, view: &RunView) -> bool {
        match self {
            Self::All => true,
            Self::Live => view.held,
            Self::Resumable => !view.held && view.run.can_resume(),
            Self::Ended => !view.held && !view.run.can_resume(),
            Self::Asking => {
                let asks = |agent: &Agent| {
                    agent.question().is_some() || agent.open_approvals().next().is_some()
                };
                view.run.agents.values().any(asks)
            }
        }
    }
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
        let given = option_values(self.0.iter().map(String::as_str), "--dir").next();
        DirArgs::without_options().or_dir(given).root()
    }

    /// Returns the run that the line names.
    fn run(&self, root: &RunsRoot) -> Option<RunId> {
        if self.0.iter().any(|word| word == "--last") {
            return newest_first(root).ok()?.into_iter().next().map(|(id, _)| id);
        }
        let named = self.0.iter().skip(2).filter_map(|word| RunId::parse(word).ok());
        named.into_iter().find_map(|id| only_run(root, &id))
    }

    /// Returns the command on the line; empty if there is none.
    fn command(&self) -> &str {
        self.0.get(1).map_or("", String::as_str)
    }

    /// Returns whether the line names a run in another way than by a word, so that the first word is an agent.
    fn has_run(&self) -> bool {
        self.command() == "show" && self.0.iter().any(|word| word == "--last")
    }

    /// Returns whether the line is of a command about programs.
    fn is_about_programs(&self) -> bool {
        self.command() == "workflow"
    }
}

/// Returns the run of this id, else the only one whose id begins with it.
fn only_run(root: &RunsRoot, beginning: &RunId) -> Option<RunId> {
    let mut found = ids_beginning(root, beginning).ok()?;
    found.pop().filter(|_| found.is_empty())
}

// The directory of all runs: the given directory, or else the nearest `.raymond`, as git finds its `.git`.
//
// The search goes up from the current directory. It ends at the home directory and where another file system begins.
// It only finds a directory that belongs to this user: nobody else may say what this user's runs are.
//
// A given folder stands for the `.raymond` in it if that exists or the folder is a workflow, unless the folder has
// runs itself.

/// The name of the directory.
const NAME: &str = ".raymond";

/// The most folders of a folder that are looked at.
const MAX_FOLDERS: usize = 1_000;

/// The option for the directory of the runs.
#[derive(Debug, Clone, Default, Args)]
pub struct DirArgs {
    /// The directory of all runs, or a folder with a .raymond [default: the nearest .raymond, in the current directory or above]
    #[arg(long, env = "RAYMOND_DIR", hide_env_values = true)]
    pub dir: Option<PathBuf>,
    /// The engine that has the runs of several machines, as in `postgres://USER@HOST/DATABASE`
    #[arg(long, value_name = "URL", env = "RAYMOND_ENGINE", hide_env_values = true)]
    pub engine: Option<String>,
}

impl DirArgs {
    /// Returns the directory of a command line without `--dir`.
    pub(super) fn without_options() -> Self {
        Self { dir: std::env::var_os("RAYMOND_DIR").map(PathBuf::from), engine: None }
    }

    /// Returns the same directory, for what stays on this machine.
    pub(super) fn without_engine(&self) -> Self {
        Self { dir: self.dir.clone(), engine: None }
    }

    /// Returns the directory that is given, if one is, else this one.
    pub(super) fn or_dir(self, dir: Option<&str>) -> Self {
        Self { dir: dir.map(PathBuf::from).or(self.dir), engine: self.engine }
    }

    /// Returns the run that was started last.
    pub(super) fn last_run(&self) -> Option<RunId> {
        let runs = newest_first(&RunsRoot::new(self.found().usable())).ok()?;
        runs.into_iter().next().map(|(id, _)| id)
    }

    /// Returns whether a word is the id of a run here.
    pub(super) fn is_run(&self, word: &str) -> bool {
        let path = self.found().usable();
        RunId::parse(word).is_ok_and(|id| RunsRoot::new(path).run(&id).path().is_dir())
    }

    /// Returns the directory of all runs as it was given or found, to read in it. Says which directories of others were
    /// skipped, or that the only one belongs to another user.
    pub(super) fn root(&self) -> RunsRoot {
        let found = self.found();
        let path = found.usable();
        for foreign in &found.foreign {
            output::warn(&if *foreign == path {
                format!(
                    "{} belongs to another user, who says what its runs are; --dir {0} uses it without this warning",
                    foreign.display()
                )
            } else {
                format!(
                    "{} is not used, because it belongs to another user; --dir {0} uses it, {} is used instead",
                    foreign.display(),
                    path.display()
                )
            });
        }
        let is_here = self.dir.is_none() && path.parent() == Some(&found.here);
        RunsRoot::new(if is_here { NAME.into() } else { path })
    }

    /// Returns the directory of all runs under its one real name, to write in it.
    ///
    /// # Errors
    /// [`Error::Usage`] if it was not given, and the only one belongs to another user; else as [`directories::root`].
    pub(super) fn real_root(&self) -> Result<RunsRoot, Error> {
        let found = self.found();
        let path = found.usable();
        if found.foreign.contains(&path) {
            return Err(Error::Usage(format!(
                "{} belongs to another user, who could say what your runs do; use it with --dir {0}, or name another directory with --dir",
                path.display()
            )));
        }
        Ok(directories::root(self.root().path())?)
    }

    fn found(&self) -> FoundRunsDir {
        let here = std::env::current_dir().unwrap_or_default();
        if let Some(given) = &self.dir {
            return FoundRunsDir { path: Some(meant(given)), here, ..FoundRunsDir::default() };
        }
        let home = std::env::home_dir().and_then(|home| home.canonicalize().ok());
        search(&here, home.as_deref())
    }
}

/// The outcome of a search.
#[derive(Debug, Default, PartialEq, Eq)]
struct FoundRunsDir {
    /// The nearest directory of this user.
    path: Option<PathBuf>,
    /// The nearer ones of other users.
    foreign: Vec<PathBuf>,
    /// The directory where the search began.
    here: PathBuf,
}

impl FoundRunsDir {
    /// Returns the directory to use: the one of this user, or else the one where the search began.
    fn usable(&self) -> PathBuf {
        self.path.clone().unwrap_or_else(|| self.here.join(NAME))
    }
}

/// Searches upwards from a directory.
fn search(here: &Path, home: Option<&Path>) -> FoundRunsDir {
    let mut found = FoundRunsDir { here: here.to_owned(), ..FoundRunsDir::default() };
    let device = |path: &Path| path.metadata().map(|metadata| metadata.dev()).ok();
    for folder in here.ancestors().take_while(|folder| device(folder) == device(here)) {
        let path = folder.join(NAME);
        if path.is_dir() {
            if is_owned(&path) {
                found.path = Some(path);
                return found;
            }
            found.foreign.push(path);
        }
        if Some(folder) == home {
            break;
        }
    }
    found
}

/// Returns the directory of all runs that a person means by a folder.
fn meant(given: &Path) -> PathBuf {
    let inner = given.join(NAME);
    let has_runs = ids(&RunsRoot::new(given)).is_ok_and(|ids| !ids.is_empty());
    let is_workflow = FIRST_STATES.iter().any(|state| given.join(state).is_file());
    if (inner.is_dir() || is_workflow) && !has_runs { inner } else { given.to_owned() }
}

/// Returns the text of `--dir` for another directory that has a run: one above the current directory, in it or in a
/// folder of it, or one where a run of this id has not ended.
pub(super) fn elsewhere(searched: &RunsRoot, id: &RunId) -> Option<String> {
    let here = std::env::current_dir().ok()?;
    let state = directories::user_state().ok();
    let known = state.map(|state| user_state::directories(&state, id)).unwrap_or_default();
    let real = searched.path().canonicalize().ok();
    let has_run = |path: &PathBuf| {
        is_owned(path)
            && path.canonicalize().ok() != real
            && RunsRoot::new(path).run(id).path().is_dir()
    };
    let found = near(&here).into_iter().chain(known).find(has_run)?;
    Some(named_from(&here, &found))
}

/// Returns the directories that the runs of a folder, of those above it and of those in it would have.
fn near(here: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(here).into_iter().flatten().flatten().take(MAX_FOLDERS);
    let mut below: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    below.sort();
    here.ancestors().chain(below.iter().map(PathBuf::as_path)).map(|path| path.join(NAME)).collect()
}

/// Returns a directory as a word of a command line in a folder: relative if it is in it or beside a folder above it.
fn named_from(here: &Path, path: &Path) -> String {
    let up = here.ancestors().position(|folder| Some(folder) == path.parent());
    let named = match (path.strip_prefix(here), up) {
        (Ok(rest), _) if rest.as_os_str().is_empty() => ".".into(),
        (Ok(rest), _) => rest.to_owned(),
        (_, Some(up)) => Path::new(&"../".repeat(up)).join(path.file_name().unwrap_or_default()),
        (_, None) => path.to_owned(),
    };
    quoted(&named.display().to_string())
}

/// Returns a text about a run, with `--dir` in its commands if they would not find the run from here without.
pub(super) fn with_dir(text: &str, root: &RunsRoot, id: &RunId) -> String {
    let found = DirArgs::without_options().found();
    let Ok(real) = root.path().canonicalize() else { return text.to_owned() };
    let is_copy = directories::user_state().is_ok_and(|state| real.starts_with(state.path()));
    if is_copy || found.usable().canonicalize().is_ok_and(|path| path == real) {
        return text.to_owned();
    }
    with_option(text, id, &format!(" --dir {}", named_from(&found.here, &real)))
}

/// Puts an option behind the run in each command of a text.
fn with_option(text: &str, id: &RunId, option: &str) -> String {
    let is_of_id = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let mut commands = text.split("raymond ");
    let mut whole = commands.next().unwrap_or_default().to_owned();
    for command in commands {
        let rest = command.split_once(' ').and_then(|(_, rest)| rest.strip_prefix(id.as_str()));
        let rest = rest.filter(|rest| !rest.starts_with(is_of_id));
        let (before, after) =
            command.split_at(command.len() - rest.map_or(command.len(), str::len));
        whole.extend(["raymond ", before, if rest.is_some() { option } else { "" }, after]);
    }
    whole
}

/// Returns whether a directory belongs to this user, and so does the link that leads to it, if it is one.
fn is_owned(path: &Path) -> bool {
    let user = rustix::process::geteuid().as_raw();
    let owners = [path.symlink_metadata(), path.metadata()];
    owners.iter().all(|metadata| metadata.as_ref().is_ok_and(|found| found.uid() == user))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::run::{Run, RunStatus};
    use crate::domain::tests::scene::Scene;

    #[test]
    fn runs_that_a_command_refuses_are_not_offered() {
        let mut run = Scene::begin().run;
        let offered = |run: &Run, held| {
            let view = RunView {
                run: run.clone(),
                held,
                holder: None,
                times: crate::store::view::RunTimes::default(),
            };
            let commands = ["stop", "resume", "clean", "answer", "status"];
            commands.into_iter().filter(|command| AcceptedRuns::of(command).takes(&view)).collect()
        };
        let live: Vec<&str> = offered(&run, true);
        assert_eq!(live, ["stop", "status"]);
        let interrupted: Vec<&str> = offered(&run, false);
        assert_eq!(interrupted, ["resume", "status"]);
        run.status = RunStatus::Completed;
        let ended: Vec<&str> = offered(&run, false);
        assert_eq!(ended, ["clean", "status"]);
    }

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

#[cfg(test)]
mod runs_dir_tests {
    use super::*;

    fn folders() -> (tempfile::TempDir, PathBuf) {
        let place = tempfile::tempdir().expect("a directory");
        let home = place.path().canonicalize().expect("real");
        std::fs::create_dir_all(home.join("project/deep/er")).expect("made");
        (place, home)
    }

    #[test]
    fn nearest_directory_above_is_found() {
        let (_place, home) = folders();
        let deep = home.join("project/deep/er");
        assert_eq!(search(&deep, Some(&home)).path, None);
        std::fs::create_dir(home.join(NAME)).expect("made");
        assert_eq!(search(&deep, Some(&home)).path, Some(home.join(NAME)));
        std::fs::create_dir(home.join("project").join(NAME)).expect("made");
        assert_eq!(search(&deep, Some(&home)).path, Some(home.join("project").join(NAME)));
        std::fs::write(deep.join(NAME), "no directory").expect("written");
        assert_eq!(search(&deep, Some(&home)).path, Some(home.join("project").join(NAME)));
    }

    #[test]
    fn search_ends_at_home_directory() {
        let (_place, home) = folders();
        std::fs::create_dir(home.join(NAME)).expect("made");
        let project = home.join("project");
        assert_eq!(search(&project.join("deep"), Some(&project)).path, None);
    }

    #[test]
    fn directory_of_another_user_is_skipped() {
        let (_place, home) = folders();
        let project = home.join("project");
        let foreign = project.join(NAME);
        // Root may give a directory away; anyone else finds those of root.
        let given = project.join("deep");
        let target = match std::os::unix::fs::chown(&given, Some(12345), None) {
            Ok(()) => given,
            Err(_) => PathBuf::from("/"),
        };
        std::os::unix::fs::symlink(target, &foreign).expect("linked");
        let only = search(&project, Some(&project));
        assert_eq!(
            (&only.usable(), &only.foreign),
            (&foreign, &vec![foreign.clone()]),
            "it is the only one"
        );
        std::fs::create_dir(home.join(NAME)).expect("made");
        let found = search(&project, Some(&home));
        assert_eq!(found.usable(), home.join(NAME));
        assert_eq!((found.path, found.foreign), (Some(home.join(NAME)), vec![foreign]));
    }

    #[test]
    fn folder_stands_for_the_directory_in_it() {
        let (_place, home) = folders();
        let (project, inner) = (home.join("project"), home.join("project").join(NAME));
        assert_eq!(meant(&project), project);
        std::fs::write(project.join("START.md"), "Go.").expect("written");
        assert_eq!(meant(&project), inner, "a workflow's folder");
        std::fs::remove_file(project.join("START.md")).expect("removed");
        std::fs::create_dir(&inner).expect("made");
        assert_eq!([&project, &inner].map(|given| meant(given)), [inner.clone(), inner]);
        std::fs::create_dir_all(project.join("runs/t")).expect("made");
        assert_eq!(meant(&project), project, "it has runs itself");
    }

    #[test]
    fn directories_near_a_folder_are_above_it_and_in_it() {
        let (_place, home) = folders();
        let near = near(&home.join("project"));
        let place = |folder: &str| {
            near.iter().position(|path| *path == home.join(folder).join(NAME)).expect("near")
        };
        assert!(place("project") < place("") && place("") < place("project/deep"), "{near:?}");
    }

    #[test]
    fn directory_is_named_relative_to_a_folder() {
        let named = |path: &str| named_from(Path::new("/home/me/project/deep"), Path::new(path));
        let table = [
            ("/home/me/project/deep/.raymond", ".raymond"),
            ("/home/me/project/deep/er/.raymond", "er/.raymond"),
            ("/home/me/project/deep", "."),
            ("/home/me/project/.raymond", "../.raymond"),
            ("/home/me/.raymond", "../../.raymond"),
            ("/home/me/other/.raymond", "/home/me/other/.raymond"),
            ("/home/me/pro ject/.raymond", "'/home/me/pro ject/.raymond'"),
        ];
        for (path, expected) in table {
            assert_eq!(named(path), expected);
        }
    }

    #[test]
    fn commands_about_a_run_get_the_option() {
        let run = RunId::parse("t").expect("an id");
        let table = [
            ("`raymond log t` shows how", "`raymond log t --dir d` shows how"),
            (
                "raymond answer t x=1, then: raymond resume t",
                "raymond answer t --dir d x=1, then: raymond resume t --dir d",
            ),
            (
                "raymond resume t-2; raymond signal t",
                "raymond resume t-2; raymond signal t --dir d",
            ),
            ("run t has stopped; raymond stops", "run t has stopped; raymond stops"),
        ];
        for (text, expected) in table {
            assert_eq!(with_option(text, &run, " --dir d"), expected);
        }
    }
}
