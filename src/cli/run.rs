//! `raymond run` and `raymond resume`: a run in the foreground, new or resumed.
//!
//! Asks the person at the terminal before something runs that they have not confirmed.

use std::collections::BTreeSet;
use std::io::{IsTerminal, stderr, stdin};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::table::TableCell;
use crate::actor::context::now;
use crate::cli::args::{NamedRunArgs, NewRunArgs, ResumeArgs, RunArgs};
use crate::cli::background::DetachedLauncher;
use crate::cli::exit::{CliExitCode, Error};
use crate::cli::foreground::{supervise_here, turn_times};
use crate::cli::options::RunOptions;
use crate::cli::runs_dir::DirArgs;
use crate::cli::summary::ClosingPlace;
use crate::cli::target::RunTarget;
use crate::cli::{
    background, dry_run, engine, list, output, person, runs_dir, settings, summary, table, target,
};
use crate::domain::id::{RunId, StateKind};
use crate::domain::printable::flat;
use crate::domain::run::RunStatus;
use crate::domain::settings::{AnswererKind, Settings};
use crate::domain::time::Timestamp;
use crate::engine::Engine;
use crate::language::graph::read::GraphProfile;
use crate::language::graph::vocabulary::GraphVocabulary;
use crate::language::prompt::document;
use crate::language::source::WorkflowSource as _;
use crate::language::{graph, program};
use crate::plugin::styled::TextTone;
use crate::process::child::cgroup::{RunGroups, prepare_moves};
use crate::process::child::orphans;
use crate::process::command::EnvironmentMarker;
use crate::runtime;
use crate::runtime::graphs::GraphSetup;
use crate::runtime::sharing::{ClaimedRun, RunEngine, facts_of, take_over};
use crate::runtime::{PreparedRun, RunStarter, Workflow, directories, seals};
use crate::store::dataspace::Dataspace;
use crate::store::layout::RunsRoot;
use crate::store::run_store::{LockedRun, RecoveredRun};
use crate::store::snapshot::{ids_beginning, newest_first, no_such_run};
use crate::store::trust::FolderTrust;
use crate::store::user_state::UserState;

/// Runs `raymond run`.
///
/// # Errors
/// [`Error`] if it cannot begin, or cannot be recorded.
pub fn run(args: &RunArgs) -> Result<CliExitCode, Error> {
    let root = args.dir.real_root()?;
    if args.dry_run {
        return dry_run::dry_run(args, &root);
    }
    match target::resolve(&args.target, &root)? {
        RunTarget::Workflow(workflow) => {
            let prepared = create(args, &root, &workflow)?;
            supervise_here(&args.options, &root, prepared)
        }
        RunTarget::Run(id) => {
            let access = RunAccess::of(&args.dir, &root)?;
            resume_target(&args.new_run, &args.options, (&root, &access), &id)
        }
    }
}

/// Runs `raymond resume`.
///
/// # Errors
/// [`Error`] if there is no such run, or it cannot be recorded.
pub fn resume(args: &ResumeArgs) -> Result<CliExitCode, Error> {
    if args.detached {
        background::detach()?;
    }
    let root = args.dir.real_root()?;
    let run = args.run.as_deref().map(|run| {
        RunId::parse(run).map_err(|_| {
            Error::Usage(format!(
                "{run} is not a run; `raymond resume` takes the id of a run, `raymond run PATH` starts a workflow"
            ))
        })
    });
    let named = NamedRunArgs { run: run.transpose()?, last: args.last };
    let id = chosen(&named, &root)?;
    let access = RunAccess::of(&args.dir, &root)?;
    resume_target(&NewRunArgs::default(), &args.options, (&root, &access), &id)
}

/// Creates a run from a workflow and the options.
pub(super) fn create(
    args: &RunArgs,
    root: &RunsRoot,
    workflow: &Workflow,
) -> Result<PreparedRun, Error> {
    let settings = settings::new(args, workflow)?;
    prepare_processes(&settings);
    let request = settings::request(&args.new_run, engine::of_run(&args.dir)?)?;
    let facts = engine::with_facts(request.engine.as_ref().map(|own| &own.engine))?;
    confirmed(&args.options, |starter| {
        let graphs = graph_setup(facts.clone());
        runtime::create(root, workflow, &request, settings.clone(), graphs, starter)
    })
    .map_err(|error| settings::placed(error, &args.options.answers))
}

fn resume_target(
    new_run: &NewRunArgs,
    options: &RunOptions,
    (root, access): (&RunsRoot, &RunAccess<'_>),
    id: &RunId,
) -> Result<CliExitCode, Error> {
    person::must_resume(root, id)?;
    let OpenedRun { store, mut recovered, held } = access.open(id)?;
    let settings = settings::for_resume(new_run, options, recovered.run.settings.clone())?;
    if !recovered.run.can_resume() {
        if !options.consent.trust {
            seals::check_ended(&directories::user_state()?, root, &recovered.run)?;
        }
        store.save_last_snapshot(&recovered.run)?;
        let key = directories::user_state()?.key()?;
        facts_of(root, &key, held.as_ref().map(|claimed| &claimed.held().engine)).ended(id)?;
        sweep(root, id)?;
        if let Some(claimed) = held {
            claimed.end();
        }
        recovered.run.settings.strict |= settings.strict;
        if !options.json {
            let times = || turn_times(root, &recovered.run);
            let verbosity = options.verbosity.verbosity();
            output::print_exactly(&summary::results(&recovered.run, verbosity, times))?;
        }
        let closing = summary::closing(&recovered.run, ClosingPlace::Alone);
        let failed = recovered.run.status == RunStatus::Failed;
        let is_said = closing.contains("raymond retry");
        let advice = if failed && !is_said {
            format!("; `raymond retry {id}` retries it")
        } else {
            String::new()
        };
        let text = format!("nothing to do: {closing}{advice}");
        output::tell(&runs_dir::with_dir(&text, root, id));
        if let Some(refused) = summary::refused_tools(&recovered.run) {
            output::tell(&refused);
        }
        return Ok(CliExitCode::of(&recovered.run));
    }
    let opened = OpenedRun { store, recovered, held };
    let prepared = prepared_to_resume(options, (root, access), &settings, opened)?;
    supervise_here(options, root, prepared)
}

/// Prepares an opened run to resume under these settings, once the person at the terminal trusts it.
///
/// # Errors
/// [`Error`] if it cannot be resumed.
pub(super) fn prepared_to_resume(
    options: &RunOptions,
    (root, access): (&RunsRoot, &RunAccess<'_>),
    settings: &Settings,
    opened: OpenedRun,
) -> Result<PreparedRun, Error> {
    let recovered = &opened.recovered;
    settings::check_budget(options.budget, settings, &recovered.run)?;
    prepare_processes(settings);
    let (id, retry) = (&recovered.run.workflow_id.clone(), recovered.retry.clone());
    let facts = engine::with_facts(opened.held.as_ref().map(|claimed| &claimed.held().engine))?;
    let mut taken = Some(opened);
    confirmed(options, |starter| {
        let opened = if let Some(taken) = taken.take() {
            taken
        } else {
            let mut opened = access.open(id)?;
            opened.recovered.retry.clone_from(&retry);
            opened
        };
        let OpenedRun { store, recovered, held } = opened;
        let mut graphs = graph_setup(facts.clone());
        graphs.migrate = options.answers.migrate;
        let mut prepared =
            runtime::resume(store, recovered, settings.clone(), graphs, root, starter)?;
        if let Some(claimed) = &held {
            claimed.share_terms(settings)?;
        }
        prepared.held = held;
        Ok(prepared)
    })
    .map_err(|error| settings::placed(error, &options.answers))
}

/// Returns the environment of a run's graphs and programs in this process; `facts` has the facts that it shares.
pub(super) fn graph_setup(facts: Option<Arc<dyn Engine>>) -> GraphSetup {
    let mut graphs = GraphSetup::default();
    graphs.launcher = Some(Arc::new(DetachedLauncher { facts: facts.clone() }));
    graphs.facts = facts;
    graphs
}

/// Prepares the start of processes while the run is made or read.
fn prepare_processes(settings: &Settings) {
    match settings.answerer {
        AnswererKind::Claude => prepare_moves(),
        AnswererKind::Scripted | AnswererKind::Replay => {}
    }
}

/// Ends the processes left by a raymond that was killed right after its run had ended.
fn sweep(root: &RunsRoot, id: &RunId) -> Result<(), Error> {
    let marker = EnvironmentMarker { run: id.clone(), dir: root.path().to_owned() };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
    let runtime = runtime.map_err(|error| Error::Io {
        doing: "look for processes of",
        path: PathBuf::from(root.run(id).path()),
        error,
    })?;
    runtime.block_on(async {
        orphans::sweep(&marker, |_| true).await;
        RunGroups::of(&marker, &root.run(id).steps()).end_all_but(&[]).await;
        orphans::sweep_plugins(&marker).await;
    });
    Ok(())
}

/// The most questions before a run: about the run, and about the folder whose files it uses.
const MAX_QUESTIONS: usize = 2;

/// Prepares a run; if it asks for more than was confirmed and someone is at the terminal, asks them and
/// prepares it again.
pub(super) fn confirmed(
    options: &RunOptions,
    mut prepare: impl FnMut(&RunStarter) -> Result<PreparedRun, runtime::Error>,
) -> Result<PreparedRun, runtime::Error> {
    let confirmation = person::trust_origin(&options.consent);
    let state = directories::user_state()?;
    let mut starter = RunStarter { state, confirmation, confirmed: BTreeSet::new() };
    let is_person = is_person_at_terminal();
    let may_ask = is_person && !options.json;
    for _ in 0..MAX_QUESTIONS {
        let error = match prepare(&starter) {
            Err(error) if is_person => error,
            prepared => return prepared,
        };
        if let runtime::Error::NotTrusted { folder, trust, checksum, .. } = &error
            && let FolderTrust::Reworded(files) = &**trust
        {
            let files = files.join(", ");
            output::tell(&format!(
                "{folder} keeps your trust: only texts have changed, in {files}"
            ));
            starter.confirmed.insert(checksum.clone());
            continue;
        }
        if !may_ask {
            return Err(error);
        }
        let Some(question) = question(&error) else { return Err(error) };
        output::tell(&error.to_string());
        if !is_answered_yes(question.text) {
            return Err(runtime::Error::Declined);
        }
        // The answer covers only the files that the question was about, not later changes.
        starter.confirmed.insert(question.checksum);
    }
    prepare(&starter)
}

/// Returns whether a person, not an agent, sits at the terminal.
pub(super) fn is_person_at_terminal() -> bool {
    stdin().is_terminal() && stderr().is_terminal() && person::acting_agent().is_none()
}

/// A question about an error.
struct TrustQuestion {
    text: &'static str,
    /// The checksum of what the person is shown.
    checksum: String,
}

/// Returns the question that settles an error; `None` for an error that no answer settles.
fn question(error: &runtime::Error) -> Option<TrustQuestion> {
    let (text, checksum) = match error {
        runtime::Error::NotTrusted { checksum, .. } => (
            "Type yes to trust it as it is and run it; the trust is stored, `raymond trust --remove` undoes it: ",
            checksum,
        ),
        runtime::Error::NotConfirmed { checksum, .. } => {
            ("Type yes to resume the run as its directory is now: ", checksum)
        }
        _ => return None,
    };
    Some(TrustQuestion { text, checksum: checksum.clone() })
}

/// Asks a question at the terminal; returns whether the answer is yes.
pub(super) fn is_answered_yes(question: &str) -> bool {
    output::tell(question);
    let mut line = String::new();
    stdin().read_line(&mut line).is_ok() && matches!(line.trim(), "y" | "yes")
}

// The run that a command is about: by its id, by the beginning of one, as the last, or by asking at the terminal.
//
// A run that this process is to supervise, opened: on this machine, or taken over from an engine.

/// The most runs that an error or a question lists.
const MAX_CANDIDATES: usize = 10;
const MAX_CHOICES: usize = 20;

/// Returns the run that is named; asks for one on a terminal if none is.
///
/// # Errors
/// [`Error::Usage`] if none is named and nobody can be asked, or the beginning of an id fits several runs;
/// [`Error::Store`] if there is no such run.
pub(super) fn chosen(named: &NamedRunArgs, root: &RunsRoot) -> Result<RunId, Error> {
    if let Some(run) = &named.run {
        return find(root, run);
    }
    let runs = newest_first(root)?;
    let Some((last, _)) = runs.first() else { return Err(no_runs(root)) };
    if named.last {
        return Ok(last.clone());
    }
    if stdin().is_terminal() && stderr().is_terminal() {
        return ask(root, &runs);
    }
    Err(Error::Usage(
        "name a run, or give --last for the run that was started last; `raymond list` shows all runs".to_owned(),
    ))
}

/// Returns the run of this id, else the only one whose id begins with it.
///
/// # Errors
/// As [`chosen`].
pub(super) fn find(root: &RunsRoot, beginning: &RunId) -> Result<RunId, Error> {
    match ids_beginning(root, beginning)?.as_slice() {
        [] => Err(match runs_dir::elsewhere(root, beginning) {
            Some(other) => Error::Usage(format!(
                "no run {beginning} in {}; there is one in {other}: give --dir {other}",
                std::path::absolute(root.runs()).unwrap_or(root.runs()).display(),
            )),
            None => no_such_run(root, beginning).into(),
        }),
        [one] => Ok(one.clone()),
        several => Err(Error::Usage(ambiguous(beginning, several))),
    }
}

/// Returns the error for a directory without runs.
pub(super) fn no_runs(root: &RunsRoot) -> Error {
    Error::Usage(format!("no runs in {}; start one: raymond run PATH", root.runs().display()))
}

fn ambiguous(beginning: &RunId, candidates: &[RunId]) -> String {
    let shown: Vec<&str> = candidates.iter().take(MAX_CANDIDATES).map(RunId::as_str).collect();
    let more = match candidates.len().saturating_sub(MAX_CANDIDATES) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!(
        "{} runs begin with {beginning}: {}{more}; write more of the id",
        candidates.len(),
        shown.join(", ")
    )
}

/// Asks the person at the terminal which of the newest runs they mean.
fn ask(root: &RunsRoot, runs: &[(RunId, Timestamp)]) -> Result<RunId, Error> {
    let shown = &runs[..runs.len().min(MAX_CHOICES)];
    let now = now();
    let row = |(number, (id, started)): (usize, &(RunId, Timestamp))| {
        let age = table::text(now.since(*started));
        vec![format!("{:>2}", number + 1), id.to_string(), list::word_of(root, id).to_owned(), age]
    };
    let rows: Vec<Vec<String>> = shown.iter().enumerate().map(row).collect();
    let question = match shown.len() {
        1 => "which run? 1, or an id (empty: none):".to_owned(),
        count => format!("which run? 1-{count}, or an id (empty: none):"),
    };
    output::tell_lines(&format!("{}{question}", output::table(&rows)));
    let mut line = String::new();
    let read = stdin().read_line(&mut line);
    read.map_err(|error| Error::Io { doing: "read the choice from", path: "stdin".into(), error })?;
    let answer = line.trim();
    if answer.is_empty() {
        return Err(Error::Usage("no run was chosen".to_owned()));
    }
    let numbered =
        answer.parse::<usize>().ok().and_then(|number| shown.get(number.checked_sub(1)?));
    match numbered {
        Some((id, _)) => Ok(id.clone()),
        None => find(root, &RunId::parse(answer)?),
    }
}

/// The place that a run is opened from.
#[derive(Debug)]
pub(super) struct RunAccess<'a> {
    root: &'a RunsRoot,
    /// The engine, and the state with the key that proves the copy.
    engine: Option<(RunEngine, UserState)>,
}

/// A run that was opened.
pub(super) struct OpenedRun {
    pub(super) store: LockedRun,
    pub(super) recovered: RecoveredRun,
    /// The right to supervise it in its engine.
    pub(super) held: Option<ClaimedRun>,
}

impl<'a> RunAccess<'a> {
    /// Returns the access for the directory or the engine that was named.
    ///
    /// # Errors
    /// [`Error`] if the engine cannot be reached.
    pub(super) fn of(dir: &DirArgs, root: &'a RunsRoot) -> Result<Self, Error> {
        let engine = match engine::of_run(dir)? {
            Some(engine) => Some((engine, directories::user_state()?)),
            None => None,
        };
        Ok(Self { root, engine })
    }

    /// Opens a run.
    ///
    /// # Errors
    /// [`runtime::Error`] if there is no such run, another raymond supervises it, or it cannot be recovered.
    pub(super) fn open(&self, id: &RunId) -> Result<OpenedRun, runtime::Error> {
        if let Some((engine, state)) = &self.engine {
            let (store, recovered, held) = take_over(engine, id, self.root, state)?;
            return Ok(OpenedRun { store, recovered, held: Some(held) });
        }
        let (store, recovered) = LockedRun::open(self.root, id)?;
        Ok(OpenedRun { store, recovered, held: None })
    }
}

// `raymond` without arguments: what can be run here, each workflow with its description.

/// The maximum length of a description, in bytes.
const MAX_DESCRIPTION_BYTES: usize = 200;

/// The maximum number of files and folders that are looked at.
const MAX_ENTRIES: usize = 1_000;

/// Something that `raymond run` takes.
#[derive(Debug, PartialEq, Eq)]
struct Runnable {
    target: String,
    description: String,
}

/// Prints what can be run in the current directory. Returns whether there is anything.
pub(super) fn show(root: &RunsRoot) -> bool {
    let found = all(Path::new("."), root);
    if found.is_empty() {
        return false;
    }
    let row = |one: &Runnable| {
        vec![one.target.clone().into(), TableCell::of(TextTone::Faint, &one.description)]
    };
    let rows: Vec<Vec<TableCell>> = found.iter().map(row).collect();
    let _ = table::print(table::lines(&rows));
    output::tell("run one: raymond run NAME; `raymond help` shows the commands");
    true
}

/// Returns the workflows of a folder and of those in it, and the programs that were defined.
fn all(folder: &Path, root: &RunsRoot) -> Vec<Runnable> {
    let mut found = Vec::new();
    if is_workflow(folder) {
        found.extend(at(folder, "."));
    }
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().take(MAX_ENTRIES);
    let mut names: Vec<String> =
        entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort();
    for name in names.iter().filter(|name| !name.starts_with('.')) {
        let path = folder.join(name);
        let is_program =
            Path::new(name).extension().is_some_and(|end| end == "lisp" || end == "duet");
        let is_first = FIRST_STATES.contains(&name.as_str());
        if (path.is_dir() && is_workflow(&path)) || (is_program && !is_first) {
            found.extend(at(&path, name));
        }
    }
    let defined = Dataspace::of(root).all_defined().map(|listing| listing.defined);
    found.extend(defined.unwrap_or_default().into_iter().map(|one| Runnable {
        description: format!("defined in {}", one.file.display()),
        target: one.name,
    }));
    found
}

/// The files with which a workflow begins.
pub(super) const FIRST_STATES: [&str; 3] = ["START.md", "workflow.yaml", "workflow.lisp"];

/// Returns whether a folder is a workflow.
pub(super) fn is_workflow(folder: &Path) -> bool {
    FIRST_STATES.iter().chain(&["raymond.yaml"]).any(|name| folder.join(name).is_file())
}

/// Returns the workflow at a path, if it is one.
fn at(path: &Path, target: &str) -> Option<Runnable> {
    let workflow = Workflow::open(path).ok()?;
    let description = flat(&description(&workflow), MAX_DESCRIPTION_BYTES);
    Some(Runnable { target: target.to_owned(), description })
}

/// Returns the description of a workflow: that of its manifest or its first state, or the first line of a prompt.
fn description(workflow: &Workflow) -> String {
    let Workflow { scope, entry, manifest, .. } = workflow;
    if let Some(description) = &manifest.description {
        return description.clone();
    }
    let Ok(text) = scope.read(entry) else { return String::new() };
    let path = scope.path(entry);
    let own = match StateKind::of(entry) {
        Some(StateKind::Graph) => {
            let vocabulary = GraphVocabulary::default();
            let profile = GraphProfile::Lenient;
            let reading = graph::read::read(&path, None, &text, &vocabulary, scope, profile);
            reading.graph.and_then(|graph| graph.description)
        }
        Some(StateKind::Program) => {
            let reading = program::read::read(&path, &text, scope);
            reading.program.and_then(|program| program.metadata.description)
        }
        Some(StateKind::Script) => None,
        Some(StateKind::Prompt) | None => {
            let body = document::examine(&text).document.body;
            body.lines().map(str::trim).find(|line| !line.is_empty()).map(str::to_owned)
        }
    };
    own.unwrap_or_default()
}

#[cfg(test)]
mod run_choice_tests {
    use super::*;

    #[test]
    fn ambiguous_beginning_lists_ten_candidates() {
        let run = |name: String| RunId::parse(&name).expect("an id");
        let two = [run("tour-1".into()), run("tour-2".into())];
        assert_eq!(
            ambiguous(&run("tour".into()), &two),
            "2 runs begin with tour: tour-1, tour-2; write more of the id"
        );
        let many: Vec<RunId> = (0..12).map(|number| run(format!("t{number}"))).collect();
        assert_eq!(
            ambiguous(&run("t".into()), &many),
            "12 runs begin with t: t0, t1, t2, t3, t4, t5, t6, t7, t8, t9 and 2 more; write more of the id"
        );
    }
}
