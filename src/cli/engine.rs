//! The commands on the runs of an engine: they read copies on this machine, which are kept up to date meanwhile.

use std::path::PathBuf;
use std::sync::Arc;

use uuid::Uuid;

use super::args::{CliCommand, DirArgs};
use super::exit::Error;
use super::{output, person};
use crate::cli::args::workflows::WorkflowCommand;
use crate::domain::id::RunId;
use crate::engine::connect::{self, connect};
use crate::engine::connect::{ServedEngine, ServingOptions};
use crate::engine::{Engine, EngineAddress};
use crate::process::ancestry::ActingAgent;
use crate::process::plugin_process::FACTS_ENGINE;
use crate::runtime::directories;
use crate::runtime::sharing::{EngineMirror, MirrorThread, RunEngine, facts_of};
use crate::store::dataspace::Dataspace;
use crate::store::engine_note::EngineNote;
use crate::store::layout::RunsRoot;
use crate::store::user_state::UserState;

/// The address that names no engine, where the environment or the user's configuration names one.
pub(super) const NONE: &str = "none";

/// The commands that start runs on this machine.
const START: &str = "start";
const WORKFLOW_START: &str = "workflow start";

/// The way in which a command uses an engine.
enum EngineUse<'command> {
    /// It reads runs of the engine, or leaves commands for them.
    Mirror(&'command mut DirArgs),
    /// It reads or changes the facts that the runs of the engine share.
    Facts(&'command mut DirArgs),
    /// It writes runs of the engine.
    Supervise(&'command mut DirArgs),
    /// It works on the runs of this machine.
    Local(&'command mut DirArgs, &'static str),
    /// It works on no runs.
    None,
}

/// Returns the way in which a command uses an engine.
fn engine_use(command: &mut CliCommand) -> EngineUse<'_> {
    use EngineUse::{Facts, Local, Mirror, None, Supervise};
    match command {
        CliCommand::Run(args) => Supervise(&mut args.dir),
        CliCommand::Resume(args) => Mirror(&mut args.dir),
        CliCommand::Retry(args) => Mirror(&mut args.dir),
        CliCommand::Answer(args) => Mirror(&mut args.dir),
        CliCommand::Status(args)
        | CliCommand::Rules(args)
        | CliCommand::Workflow(WorkflowCommand::Watch(args)) => Mirror(&mut args.dir),
        CliCommand::List(args) => Mirror(&mut args.all_runs.dir),
        CliCommand::Pending(args) => Mirror(&mut args.dir),
        CliCommand::Log(args) => Mirror(&mut args.target.dir),
        CliCommand::Tree(args) => Mirror(&mut args.target.dir),
        CliCommand::Show(args) => Mirror(&mut args.dir),
        CliCommand::Costs(args) => Mirror(&mut args.target.dir),
        CliCommand::Diff(args) => Mirror(&mut args.dir),
        CliCommand::Top(args) => Mirror(&mut args.dir),
        CliCommand::Stop(args) => Mirror(&mut args.target.dir),
        CliCommand::Tell(args) => Mirror(&mut args.dir),
        CliCommand::Hold(args) | CliCommand::Release(args) => Mirror(&mut args.dir),
        CliCommand::Edit(args) => Local(&mut args.dir, "edit"),
        CliCommand::Attach(args) => Local(&mut args.dir, "attach"),
        CliCommand::Signal(args) => Facts(&mut args.dir),
        CliCommand::Facts(args) => Facts(&mut args.dir),
        CliCommand::Start(args) => Local(&mut args.dir, START),
        CliCommand::Serve(args) => Local(&mut args.dir, "serve"),
        CliCommand::Branch(args) => Local(&mut args.dir, "branch"),
        CliCommand::Rewind(args) => Local(&mut args.dir, "rewind"),
        CliCommand::Record(args) => Local(&mut args.dir, "record"),
        CliCommand::Worktrees(args) => Local(&mut args.target.dir, "worktrees"),
        CliCommand::Clean(args) => Local(&mut args.dir, "clean"),
        CliCommand::Recover(args) => Local(&mut args.all_runs.dir, "recover"),
        CliCommand::Workflow(WorkflowCommand::Define(args)) => {
            Local(&mut args.dir, "workflow define")
        }
        CliCommand::Workflow(WorkflowCommand::Start(args)) => Local(&mut args.dir, WORKFLOW_START),
        CliCommand::Workflow(WorkflowCommand::List(args)) => Local(&mut args.dir, "workflow list"),
        CliCommand::Worker(_)
        | CliCommand::Hosts(_)
        | CliCommand::Trust(_)
        | CliCommand::Check(_)
        | CliCommand::Test(_)
        | CliCommand::Graph(_)
        | CliCommand::New(_)
        | CliCommand::Import(_)
        | CliCommand::Schema(_)
        | CliCommand::Completions { .. }
        | CliCommand::Man(_) => None,
    }
}

/// The copies that a command reads, until it is over.
pub(super) struct CommandMirror {
    mirror: EngineMirror,
    thread: MirrorThread,
}

impl CommandMirror {
    /// Leaves the commands that were given in the engine.
    ///
    /// # Errors
    /// [`Error`] if the engine cannot be reached.
    pub(super) fn finish(self) -> Result<(), Error> {
        let Self { mirror, thread } = self;
        // Both would write the same copies.
        drop(thread);
        mirror.refresh_all()?;
        Ok(())
    }
}

/// Has a command work on the runs of its engine, if it names one.
///
/// # Errors
/// [`Error`] if the engine cannot be reached, or the command does not work on its runs.
pub(super) fn prepare(command: &mut CliCommand) -> Result<Option<CommandMirror>, Error> {
    let (dir, leaves_commands) = match engine_use(command) {
        EngineUse::Mirror(dir) => {
            decide(dir)?;
            (dir, true)
        }
        EngineUse::Facts(dir) => {
            decide(dir)?;
            (dir, false)
        }
        EngineUse::Supervise(dir) => {
            decide(dir)?;
            if let Some(engine) = named(dir) {
                let address = EngineAddress::parse(engine)?;
                dir.dir = Some(copies(dir.dir.as_ref(), &address, &directories::user_state()?));
            }
            return Ok(None);
        }
        EngineUse::Local(dir, name) => {
            if named(dir).is_some() {
                return Err(Error::Usage(format!(
                    "`raymond {name}` works on the runs of this machine, not yet on those of an engine; leave out --engine, or unset RAYMOND_ENGINE"
                )));
            }
            let starts = [START, WORKFLOW_START].contains(&name);
            if starts && dir.engine.is_none() && address(dir)?.is_some() {
                return Err(Error::Usage(format!(
                    "`raymond {name}` starts runs on this machine, and raymond/config.yaml names an engine: use `raymond run`, or give --engine none to start it here"
                )));
            }
            // Nor does it work on those of the engine that the user has set.
            dir.engine = Some(NONE.to_owned());
            return Ok(None);
        }
        EngineUse::None => return Ok(None),
    };
    let Some(engine) = connected(dir)? else { return Ok(None) };
    let state = directories::user_state()?;
    let path = copies(dir.dir.as_ref(), engine.address(), &state);
    let mirror = EngineMirror::new(engine, directories::root(&path)?, state);
    for (run, error) in mirror.refresh_all()? {
        output::tell(&format!("the run {run} may be out of date: {error}"));
    }
    dir.dir = Some(path);
    // A change of a fact is in the engine when it is made, so nothing is left to be done, and nothing more can fail.
    Ok(leaves_commands.then(|| CommandMirror { thread: mirror.follow(), mirror }))
}

/// Returns the engine of a run that this process supervises; `None` if it names none.
///
/// # Errors
/// [`Error`] if the engine cannot be reached.
pub(super) fn of_run(dir: &DirArgs) -> Result<Option<RunEngine>, Error> {
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let unique = &Uuid::new_v4().simple().to_string()[..8];
    let holder = format!("{host}, process {}, {unique}", std::process::id());
    Ok(connected(dir)?.map(|engine| RunEngine { engine, holder }))
}

/// Refuses a change of a copy whose engine is not named: the change would stay on this machine.
///
/// # Errors
/// [`crate::store::Error::Shared`].
pub(super) fn must_be_named(dir: &DirArgs, root: &RunsRoot, id: &RunId) -> Result<(), Error> {
    match EngineNote::of(root.run(id).path())? {
        Some(note) if named(dir).is_none() => {
            Err(crate::store::Error::Shared { id: id.clone(), engine: note.engine }.into())
        }
        Some(_) | None => Ok(()),
    }
}

/// Returns the engine with the facts of a run: the one of the run, or that of the run which started it.
///
/// # Errors
/// [`Error`] if it cannot be reached.
pub(super) fn with_facts(
    of_run: Option<&Arc<dyn Engine>>,
) -> Result<Option<Arc<dyn Engine>>, Error> {
    if of_run.is_some() {
        return Ok(of_run.cloned());
    }
    let url = std::env::var(FACTS_ENGINE).ok().filter(|url| !url.is_empty());
    url.map(|url| connected_to(&url)).transpose()
}

/// Returns the dataspace of a directory, or the copy of the facts in the named engine.
///
/// # Errors
/// [`Error`] if the engine cannot be reached, or the user's key is not available.
pub(super) fn dataspace(dir: &DirArgs, root: &RunsRoot) -> Result<Dataspace, Error> {
    let engine = connected(dir)?;
    if engine.is_none() {
        refuse_agents(root)?;
    }
    Ok(facts_of(root, &directories::user_state()?.key()?, engine.as_ref()))
}

/// Refuses the facts of an engine to an agent in its turn: those of this machine are others, and nobody looks at them.
fn refuse_agents(root: &RunsRoot) -> Result<(), Error> {
    let Some(ActingAgent { run, .. }) = person::acting_agent() else { return Ok(()) };
    let Ok(id) = RunId::parse(&run) else { return Ok(()) };
    match EngineNote::of(root.run(&id).path())? {
        Some(EngineNote { engine, .. }) => Err(Error::Usage(format!(
            "the facts of the run {run} are in the engine {engine}, and agents do not have its address: write in the reply what to assert, so that the program or a person can do it"
        ))),
        None => Ok(()),
    }
}

/// Returns the engine of a command that works on nothing else.
///
/// # Errors
/// [`Error::Usage`] if none is named, [`Error`] if it cannot be reached.
pub(super) fn required(dir: &DirArgs) -> Result<Arc<dyn Engine>, Error> {
    connected(dir)?.ok_or_else(unnamed)
}

/// Serves the engine of a worker what it needs.
///
/// # Errors
/// [`Error::Usage`] if no engine is named, [`Error`] if it cannot be served.
pub(super) fn serve(dir: &DirArgs, options: &ServingOptions) -> Result<ServedEngine, Error> {
    let engine = address(dir)?.ok_or_else(unnamed)?;
    Ok(connect::serve(&EngineAddress::parse(&engine)?, options)?)
}

fn unnamed() -> Error {
    let how = "name the engine with --engine, in RAYMOND_ENGINE, or as `engine:` in raymond/config.yaml of your configuration directory";
    Error::Usage(how.to_owned())
}

/// Returns the copies of an engine's runs beside the user's key.
///
/// # Errors
/// [`Error`] if no directory is available for them.
pub(super) fn mirror(engine: Arc<dyn Engine>) -> Result<EngineMirror, Error> {
    let state = directories::user_state()?;
    let path = copies(None, engine.address(), &state);
    Ok(EngineMirror::new(engine, directories::root(&path)?, state))
}

/// Returns the address of the engine that the command line or the environment names.
fn named(dir: &DirArgs) -> Option<&str> {
    dir.engine.as_deref().filter(|engine| ![NONE, ""].contains(engine))
}

/// Returns the address of the named engine, or else of the engine that the user has set. In an agent's turn, what the
/// user has set does not count: an agent works on the runs of its directory.
///
/// # Errors
/// [`Error`] if the user's configuration cannot be read.
pub(super) fn address(dir: &DirArgs) -> Result<Option<String>, Error> {
    match (&dir.engine, named(dir)) {
        (_, Some(engine)) => Ok(Some(engine.to_owned())),
        (Some(_), None) => Ok(None),
        (None, None) if person::acting_agent().is_some() => Ok(None),
        (None, None) => Ok(directories::user_config()?.engine),
    }
}

/// Names the engine, or that there is none, so that the rest of the command has the same one.
fn decide(dir: &mut DirArgs) -> Result<(), Error> {
    dir.engine = Some(address(dir)?.unwrap_or_else(|| NONE.to_owned()));
    Ok(())
}

/// Returns the engine that a command names, if it names one.
///
/// # Errors
/// [`Error`] if the engine cannot be reached.
pub(super) fn connected(dir: &DirArgs) -> Result<Option<Arc<dyn Engine>>, Error> {
    address(dir)?.map(|url| connected_to(&url)).transpose()
}

fn connected_to(url: &str) -> Result<Arc<dyn Engine>, Error> {
    Ok(connect(&EngineAddress::parse(url)?)?)
}

/// Returns the directory of the copies: the given directory, or else the engine's directory beside the user's key,
/// where no agent may write.
fn copies(given: Option<&PathBuf>, address: &EngineAddress, state: &UserState) -> PathBuf {
    given.cloned().unwrap_or_else(|| state.copies(&address.to_string()))
}
