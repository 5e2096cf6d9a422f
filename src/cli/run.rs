//! `raymond run` and `raymond resume`: a run in the foreground, new or resumed.
//!
//! Asks the person at the terminal before something runs that they have not confirmed.

use std::collections::BTreeSet;
use std::io::{IsTerminal, stderr, stdin};
use std::path::PathBuf;
use std::sync::Arc;

use crate::cli::args::{NamedRunArgs, NewRunArgs, ResumeArgs, RunArgs};
use crate::cli::background::DetachedLauncher;
use crate::cli::exit::{CliExitCode, Error};
use crate::cli::foreground::{supervise_here, turn_times};
use crate::cli::options::RunOptions;
use crate::cli::run_choice::{OpenedRun, RunAccess};
use crate::cli::summary::ClosingPlace;
use crate::cli::target::{self, RunTarget};
use crate::cli::{
    background, dry_run, engine, output, person, run_choice, runs_dir, settings, summary,
};
use crate::domain::id::RunId;
use crate::domain::run::RunStatus;
use crate::domain::settings::{AnswererKind, Settings};
use crate::engine::Engine;
use crate::process::child::cgroup::{RunGroups, prepare_moves};
use crate::process::child::orphans;
use crate::process::command::EnvironmentMarker;
use crate::runtime::graphs::GraphSetup;
use crate::runtime::sharing::facts_of;
use crate::runtime::{self, PreparedRun, RunStarter, Workflow, directories, seals};
use crate::store::layout::RunsRoot;
use crate::store::trust::FolderTrust;

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
    let id = run_choice::chosen(&named, &root)?;
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

/// Prepares an opened run to resume under these settings, once whoever is at the terminal trusts it.
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
