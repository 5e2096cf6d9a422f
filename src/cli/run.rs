//! `raymond run` and `raymond resume`: a run in the foreground, new or resumed.

use std::path::PathBuf;
use std::sync::Arc;

use super::args::{NamedRunArgs, NewRunArgs, ResumeArgs, RunArgs};
use super::background::DetachedLauncher;
use super::exit::{CliExitCode, Error};
use super::foreground::{supervise_here, turn_times};
use super::options::RunOptions;
use super::summary::ClosingPlace;
use super::target::{self, RunTarget};
use super::{background, confirm, dry_run, engine, output, person, run_choice, runs_dir, summary};
use crate::cli::run_choice::{OpenedRun, RunAccess};
use crate::cli::settings;
use crate::domain::id::RunId;
use crate::domain::run::RunStatus;
use crate::domain::settings::{AnswererKind, Settings};
use crate::engine::Engine;
use crate::process::child::cgroup::{RunGroups, prepare_moves};
use crate::process::child::orphans;
use crate::process::command::EnvironmentMarker;
use crate::runtime::graphs::GraphSetup;
use crate::runtime::sharing::facts_of;
use crate::runtime::{self, PreparedRun, RunRequest, Workflow, directories, seals};
use crate::store::layout::RunsRoot;

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
        RunTarget::Defined(defined) => {
            let workflow = target::defined_workflow(&root, &defined)?;
            let prepared = create_of(args, &root, &workflow, Some(defined.text))?;
            supervise_here(&args.options, &root, prepared)
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
    create_of(args, root, workflow, None)
}

/// Creates a run as [`create`] does, of a program whose text was kept.
pub(super) fn create_of(
    args: &RunArgs,
    root: &RunsRoot,
    workflow: &Workflow,
    program: Option<String>,
) -> Result<PreparedRun, Error> {
    let settings = settings::new(args, workflow)?;
    prepare_processes(&settings);
    let id = args.new_run.id.clone();
    let (input, no_check) = (args.new_run.input.clone(), args.new_run.no_check);
    let engine = engine::of_run(&args.dir)?;
    let git_exchange = settings::git_exchange(&args.new_run)?;
    let facts = engine::with_facts(engine.as_ref().map(|own| &own.engine))?;
    let request = RunRequest { id, input, program, no_check, engine, git_exchange };
    confirm::confirmed(&args.options, |starter| {
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
        let advice =
            if failed { format!("; `raymond retry {id}` retries it") } else { String::new() };
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
    confirm::confirmed(options, |starter| {
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
