//! Orders to a run and its agents: `raymond tell`, `hold`, `release` and `stop`; and `raymond signal`, for facts.
//!
//! raymond writes each order to the run's inbox first, so that it is not lost. The raymond that holds the run takes it,
//! or else the next raymond that resumes the run.

use std::time::{Duration, Instant};

use serde::Serialize;

use super::agent_selector::check_agent_exists;
use super::answer::from_stdin;
use super::args::runs::{DirArgs, HoldArgs, TellArgs};
use super::args::{SingleRunArgs, StopArgs};
use super::exit::{CliExitCode, Error};
use super::table::word;
use super::{engine, output, settings};
use crate::actor::context::now;
use crate::cli::args::readers::SignalArgs;
use crate::cli::hosts::WaitedHosts;
use crate::cli::list::all;
use crate::cli::person;
use crate::cli::status::left_running;
use crate::domain::agent::Agent;
use crate::domain::event::{AgentFamily, AgentMessage, AttachedSession, PromptEdit, RunCommand};
use crate::domain::fact::{Fact, FactSelection};
use crate::domain::id::{AgentId, RunId};
use crate::domain::run::Run;
use crate::domain::tool_call::{first_characters, one_line};
use crate::language::hint::closest;
use crate::language::program::checked_program::Program;
use crate::language::program::read::read;
use crate::language::source::WorkflowSource;
use crate::process::ancestry::ActingAgent;
use crate::process::transcript::TurnFiles;
use crate::proof::ProofKey;
use crate::runtime::command_name::{command_name, next_command_name};
use crate::runtime::observing::agent_entries::load_with_inbox;
use crate::runtime::{Workflow, directories, run_facts};
use crate::store;
use crate::store::dataspace::{
    AppendOutcome, AssertionOutcome, Dataspace, DefinedProgram, FactStatement,
};
use crate::store::engine_note::EngineNote;
use crate::store::layout::{RunDir, RunsRoot};
use crate::store::view::{RunView, is_held, load_view};
use crate::store::{inbox, lock};

/// Runs `raymond tell`.
///
/// # Errors
/// [`Error`] if there is no such live agent, or an agent gives the order.
pub fn tell(args: &TellArgs) -> Result<CliExitCode, Error> {
    let mut text = args.text.clone();
    if text == "-" {
        text = from_stdin("read the message from")?;
    }
    let command = RunCommand::Tell(AgentMessage { agent: args.agent.clone(), text });
    let given = put_order(&args.dir.root(), &args.dir, &args.run, &command)?;
    let with = if given.has_turn { "next request to the model" } else { "next prompt" };
    given.print(args.json, |agent| format!("{agent} gets the message with its {with}"))
}

/// Runs `raymond hold`.
///
/// # Errors
/// As [`tell`].
pub fn hold(args: &HoldArgs) -> Result<CliExitCode, Error> {
    let command = RunCommand::Hold(args.agent.family().clone().into());
    let given = put_order(&args.dir.root(), &args.dir, &args.run, &command)?;
    let already = match given.held_before {
        HeldAgents::All => " is held already: it",
        HeldAgents::None | HeldAgents::Some => "",
    };
    given.print(args.json, |agent| {
        format!("{agent}{already} starts nothing new until it is released; what already runs finishes as usual")
    })
}

/// Runs `raymond release`.
///
/// # Errors
/// As [`tell`].
pub fn release(args: &HoldArgs) -> Result<CliExitCode, Error> {
    let command = RunCommand::Release(args.agent.family().clone().into());
    let given = put_order(&args.dir.root(), &args.dir, &args.run, &command)?;
    match given.held_before {
        HeldAgents::None if !args.json => {
            output::print(&format!("{} is not held, so nothing changes\n", given.agent))
        }
        HeldAgents::None | HeldAgents::Some | HeldAgents::All => {
            given.print(args.json, |agent| format!("{agent} continues"))
        }
    }
}

/// Runs `raymond stop --agent`.
///
/// # Errors
/// As [`tell`].
pub(super) fn stop_agent(args: &SingleRunArgs, agent: &AgentId) -> Result<CliExitCode, Error> {
    let root = args.dir.root();
    let run = settings::chosen(&args.named, &root)?;
    let command = RunCommand::StopAgent { agent: agent.clone() };
    let given = put_order(&root, &args.dir, &run, &command)?;
    given.print(args.json, |agent| {
        format!(
            "{agent} ends as failed, and waiting agents are notified; `raymond retry` retries it"
        )
    })
}

/// An order that was given.
#[derive(Serialize)]
pub(super) struct GivenOrder {
    run: RunId,
    /// The agent, or the family of agents.
    agent: String,
    command: &'static str,
    /// True if a raymond holds the run, and takes the order soon.
    is_live: bool,
    /// Its name in the inbox.
    #[serde(skip)]
    pub(super) name: String,
    /// True if a turn of the agent runs.
    #[serde(skip)]
    has_turn: bool,
    /// The agents of the family that were held before it.
    #[serde(skip)]
    held_before: HeldAgents,
}

impl GivenOrder {
    /// Returns the end of a sentence about it: when it takes effect, if nobody executes the run.
    pub(super) fn later(&self) -> String {
        let Self { run, is_live, .. } = self;
        if *is_live {
            return String::new();
        }
        format!(
            "; {run} is not live, so this takes effect when it is resumed: raymond resume {run}"
        )
    }

    fn print(&self, json: bool, says: impl Fn(&str) -> String) -> Result<CliExitCode, Error> {
        if json {
            return output::print_json(self);
        }
        output::print(&format!("{}{}\n", says(&self.agent), self.later()))
    }
}

/// The agents of a family that a person holds.
#[derive(Clone, Copy)]
enum HeldAgents {
    None,
    Some,
    All,
}

impl HeldAgents {
    fn of(run: &Run, family: &AgentFamily) -> Self {
        let members = || run.agents.unordered().filter(|agent| family.has(&agent.id));
        let is_held = |agent: &Agent| agent.orders.held_since.is_some();
        if members().all(|agent| !agent.is_held()) {
            Self::None
        } else if members().all(is_held) {
            Self::All
        } else {
            Self::Some
        }
    }
}

/// Returns the agents that an order is for, and its name; `None` for a command that is not an order to agents.
fn order_of(command: &RunCommand) -> Option<(AgentFamily, &'static str)> {
    let alone = |agent: &AgentId| AgentFamily { agent: agent.clone(), descendants: false };
    Some(match command {
        RunCommand::Tell(message) => (alone(&message.agent), "tell"),
        RunCommand::Hold(hold) => (hold.family.clone(), "hold"),
        RunCommand::Release(hold) => (hold.family.clone(), "release"),
        RunCommand::StopAgent { agent } => (alone(agent), "stop_agent"),
        RunCommand::Edit(PromptEdit { turn, .. }) => (alone(&turn.agent), "edit"),
        RunCommand::Attach(AttachedSession { turn, .. }) => (alone(&turn.agent), "attach"),
        RunCommand::Stop | RunCommand::Answer(_) | RunCommand::Retry(_) => return None,
    })
}

/// Leaves an order in the inbox of a run; it is durable when this returns.
///
/// # Errors
/// As [`tell`].
pub(super) fn put_order(
    root: &RunsRoot,
    dir: &DirArgs,
    run: &RunId,
    command: &RunCommand,
) -> Result<GivenOrder, Error> {
    let no_order = || Error::Usage("this is not an order to an agent".to_owned());
    let (family, order) = order_of(command).ok_or_else(no_order)?;
    if let RunCommand::Tell(AgentMessage { text, .. }) = command
        && text.trim().is_empty()
    {
        return Err(Error::Usage("the message is empty".to_owned()));
    }
    let id = settings::find(root, run)?;
    engine::must_be_named(dir, root, &id)?;
    let RunView { run, held, .. } = load_with_inbox(root, &id)?;
    check_lives(&run, &family)?;
    let held_before = HeldAgents::of(&run, &family);
    let (key, inbox) = (directories::user_state()?.key()?, root.run(&id).inbox());
    let name = next_command_name(&inbox, &key);
    inbox::put(&inbox, &name, command, &key)?;
    let turn = run.agents.get(&family.agent).map(Agent::turn_id);
    let has_turn = |turn| TurnFiles::of(&root.run(&id).steps(), &turn).are_there();
    let has_turn = held && turn.is_some_and(has_turn);
    let (agent, command) = (family.to_string(), order);
    Ok(GivenOrder { run: id, agent, command, is_live: held, name, has_turn, held_before })
}

/// Checks that an agent of a family lives.
///
/// # Errors
/// [`Error::Usage`] if none does.
pub(super) fn check_lives(run: &Run, family: &AgentFamily) -> Result<(), Error> {
    check_agent_exists(run, &family.agent)?;
    if run.agents.keys().any(|id| family.has(id)) {
        return Ok(());
    }
    let id = &run.workflow_id;
    Err(Error::Usage(format!(
        "{family} has already ended; `raymond tree {id}` shows the live agents"
    )))
}

// `raymond stop`: asks the raymond that holds a run to stop it.
//
// The request lies in the run's inbox once it is made, so it is not lost. The command waits a moment until it is
// taken, to report that; a run that ends by itself meanwhile is reported as ended. A run that is not locked is
// stopped already.

/// The poll interval of the run.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// The longest time until a raymond takes a request: it looks five times a second.
const TAKING_TIMEOUT: Duration = Duration::from_secs(5);

/// The state of a request to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StopRequestState {
    /// The run was not locked, so there was nobody to ask.
    NotHeld,
    /// The request is in the inbox, or was taken.
    Made,
    /// The run was released before the request could be taken.
    Void,
    /// The supervisor of a shared run was gone, and no worker takes the run over now.
    LeftStopped,
}

/// Runs `raymond stop`.
///
/// # Errors
/// [`Error`] if there is no such run.
pub fn stop(args: &StopArgs) -> Result<CliExitCode, Error> {
    if let Some(agent) = args.agent.get() {
        return stop_agent(&args.target, agent);
    }
    let root = args.target.dir.root();
    let id = &settings::chosen(&args.target.named, &root)?;
    engine::must_be_named(&args.target.dir, &root, id)?;
    let dir = root.run(id);
    // The run may have a long story: the request does not wait until it is read.
    let mut state = StopRequestState::NotHeld;
    if is_held(&root, id)? {
        state = await_taken(&dir, ask(&dir, &directories::user_state()?.key()?)?.as_deref())?;
        let mut hosts = WaitedHosts::of(&args.target.dir)?;
        while args.wait && lock::is_held(&dir.lock())?.is_some() {
            hosts.look(&dir)?;
            std::thread::sleep(POLL_INTERVAL);
        }
    }
    if EngineNote::of(dir.path())?.is_some_and(|note| note.is_abandoned)
        && let Some(connected) = engine::connected(&args.target.dir)?
    {
        engine::mirror(connected)?.leave_stopped(id)?;
        state = StopRequestState::LeftStopped;
    }
    let mut after = load_view(&root, id)?;
    while args.wait && after.held && state == StopRequestState::Made {
        std::thread::sleep(POLL_INTERVAL);
        after = load_view(&root, id)?;
    }
    if args.target.json {
        return output::print_json(&StopDocument::of(state, &after));
    }
    let outcome = match (state, after.held) {
        (StopRequestState::NotHeld, _) => format!("{id} is not live, so there is nothing to stop"),
        (StopRequestState::LeftStopped, _) => {
            format!(
                "{id} has lost its supervisor; no worker takes it over until `raymond resume {id}`"
            )
        }
        (StopRequestState::Made, true) => {
            format!("{id} stops once its running turns have finished")
        }
        (StopRequestState::Made, false) => format!("{id} has stopped"),
        (StopRequestState::Void, _) => {
            format!("{id} ended before it could be stopped: it is {}", word(&after))
        }
    };
    let running = left_running(&directories::root(root.path())?, &after);
    output::print(&format!("{outcome}\n{running}"))
}

/// The outcome of a request to stop, for programs.
#[derive(Serialize)]
pub(super) struct StopDocument {
    run: RunId,
    asked: bool,
    status: &'static str,
}

impl StopDocument {
    fn of(state: StopRequestState, after: &RunView) -> Self {
        let asked = matches!(state, StopRequestState::Made | StopRequestState::LeftStopped);
        Self { run: after.run.workflow_id.clone(), asked, status: word(after) }
    }
}

/// Asks a run of this machine to stop, as `raymond stop` does; returns what it tells as JSON.
///
/// # Errors
/// [`Error`] if there is no such run.
pub(super) fn request(root: &RunsRoot, id: &RunId) -> Result<StopDocument, Error> {
    let dir = root.run(id);
    let mut state = StopRequestState::NotHeld;
    if is_held(root, id)? {
        state = await_taken(&dir, ask(&dir, &directories::user_state()?.key()?)?.as_deref())?;
    }
    Ok(StopDocument::of(state, &load_view(root, id)?))
}

/// Puts the request into the run's inbox, and returns its name; `None` if the run is being released.
pub(super) fn ask(dir: &RunDir, key: &ProofKey) -> Result<Option<String>, store::Error> {
    let name = command_name();
    Ok(inbox::keep_received(dir, &name, key)?.then_some(name))
}

/// Waits until a request is taken, or is void because the run is no longer locked; not for ever.
fn await_taken(dir: &RunDir, name: Option<&str>) -> Result<StopRequestState, store::Error> {
    let Some(name) = name else { return Ok(StopRequestState::Void) };
    let deadline = Instant::now() + TAKING_TIMEOUT;
    while inbox::is_waiting(dir, name) {
        if lock::is_held(&dir.lock())?.is_none() {
            // The raymond that held it was killed. The next one must not find what was meant for that one.
            inbox::remove(&dir.inbox(), name)?;
        } else if Instant::now() > deadline {
            return Ok(StopRequestState::Made);
        } else {
            std::thread::sleep(POLL_INTERVAL);
        }
    }
    let is_taken = inbox::was_taken(dir, name)?;
    Ok(if is_taken { StopRequestState::Made } else { StopRequestState::Void })
}

// `raymond signal`: asserts or retracts a fact, for a person, a script or an agent in its turn.

/// The number of characters that are shown of a value that is replaced.
const MAX_SHOWN_CHARS: usize = 60;

/// Runs `raymond signal`.
///
/// # Errors
/// [`Error::Store`] if the fact is invalid, or cannot be stored.
pub fn signal(args: &SignalArgs) -> Result<CliExitCode, Error> {
    let root = args.dir.real_root()?;
    let space = engine::dataspace(&args.dir, &root)?;
    let (label, key) = (args.label.as_str(), args.key.as_str());
    let outcome = if args.retract {
        SignalOutcome::retract(&space, label, key)?
    } else {
        let value = match args.value.as_deref() {
            Some("-") => from_stdin("read the value from")?,
            value => value.unwrap_or_default().to_owned(),
        };
        let source = source();
        let statement = FactStatement { label, key, value: &value, source: &source, at: now() };
        let mut outcome = if args.append {
            SignalOutcome::append(&space, statement)?
        } else {
            SignalOutcome::assert(&space, statement)?
        };
        // An agent asserts many facts, and reads no hints.
        if source == "signal" {
            outcome.hint = hint(&root, &space, label, key);
        }
        outcome
    };
    if args.json {
        return output::print_json(&outcome);
    }
    if let Some(hint) = &outcome.hint {
        output::tell(hint);
    }
    output::print(&outcome.text())
}

/// The outcome of a signal.
#[derive(Default, Serialize)]
pub(super) struct SignalOutcome {
    label: String,
    key: String,
    changed: bool,
    /// The fact that holds now.
    fact: Option<Fact>,
    /// The fact with another value that it replaces; nobody had taken it.
    replaced: Option<Fact>,
    /// The number of values before an appended one.
    #[serde(skip_serializing_if = "Option::is_none")]
    before: Option<usize>,
    hint: Option<String>,
    /// The number of values that waited behind the replaced one, and are gone with it.
    #[serde(skip)]
    dropped: usize,
}

impl SignalOutcome {
    fn named(label: &str, key: &str) -> Self {
        Self { label: label.to_owned(), key: key.to_owned(), ..Self::default() }
    }

    /// Retracts a fact.
    ///
    /// # Errors
    /// [`store::Error`].
    pub(super) fn retract(space: &Dataspace, label: &str, key: &str) -> Result<Self, store::Error> {
        let changed = space.retract(label, key, None)?;
        Ok(Self { changed, ..Self::named(label, key) })
    }

    /// Asserts a fact.
    ///
    /// # Errors
    /// [`store::Error`].
    pub(super) fn assert(
        space: &Dataspace,
        statement: FactStatement<'_>,
    ) -> Result<Self, store::Error> {
        let named = Self::named(statement.label, statement.key);
        let AssertionOutcome { fact, is_new, replaced, dropped } = space.assert(statement, None)?;
        Ok(Self { changed: is_new, fact, replaced, dropped, ..named })
    }

    fn append(space: &Dataspace, statement: FactStatement<'_>) -> Result<Self, store::Error> {
        let named = Self::named(statement.label, statement.key);
        let AppendOutcome { fact, before } = space.append(statement)?;
        Ok(Self { changed: true, fact: Some(fact), before: Some(before), ..named })
    }

    fn text(&self) -> String {
        let Self { label, key, changed, fact, replaced, before, dropped, .. } = self;
        let name = one_line(&format!("{label} {key}"));
        match (fact, before, changed) {
            (_, Some(1), _) => format!("{name} is appended; one value is before it\n"),
            (_, Some(before @ 2..), _) => {
                format!("{name} is appended; {before} values are before it\n")
            }
            (Some(fact), _, true) => {
                let more =
                    if *dropped > 0 { format!(" and {dropped} behind it") } else { String::new() };
                let instead = replaced.as_ref().map_or(String::new(), |old| {
                    let value = shown(&old.value);
                    format!("; it replaces {value}{more}, which no program had taken ({})", old.seq)
                });
                format!("{name} is asserted ({}){instead}\n", fact.seq)
            }
            (Some(fact), _, false) => format!("{name} is asserted already ({})\n", fact.seq),
            (None, _, true) => format!("{name} is retracted\n"),
            (None, _, false) => format!("{name} is not asserted; nothing to retract\n"),
        }
    }
}

/// Returns a value on one line, cut if it is long.
fn shown(value: &str) -> String {
    if value.is_empty() {
        return "the empty value".to_owned();
    }
    format!("`{}`", first_characters(&one_line(value), MAX_SHOWN_CHARS))
}

/// Returns the source of a fact: the acting agent, the run of the environment, or `signal`.
fn source() -> String {
    if let Some(ActingAgent { run, agent, .. }) = person::acting_agent() {
        return format!("{run}/{agent}");
    }
    let run = std::env::var("RAYMOND_RUN").ok().filter(|run| !run.is_empty());
    run.unwrap_or_else(|| "signal".to_owned())
}

/// The facts that programs read, for a hint about a fact that none of them does.
#[derive(Default)]
struct ReadFacts {
    /// Those of unfinished runs.
    of_runs: FactSelection,
    /// The labels of programs that are defined, or that a run may look at later.
    labels: Vec<String>,
}

/// Returns a hint about a fact that no unfinished run and no defined program looks at; `None` if one does.
fn hint(root: &RunsRoot, space: &Dataspace, label: &str, key: &str) -> Option<String> {
    let ReadFacts { of_runs, labels } = &ReadFacts::by_programs(root, space);
    if of_runs.has_key(label, key) {
        return None;
    }
    let shown = one_line(label);
    let meant = |closest: Option<&str>| {
        closest.map_or(String::new(), |meant| format!("; did you mean {}?", one_line(meant)))
    };
    if let Some(keys) = of_runs.keys_of(label) {
        let meant = closest(key, keys.iter().copied());
        let meant = meant.or_else(|| keys.first().copied().filter(|_| keys.len() == 1));
        let meant = meant
            .map_or(String::new(), |meant| format!("; did you mean --key {}?", one_line(meant)));
        let key = if key.is_empty() {
            "the empty key".to_owned()
        } else {
            format!("the key {}", one_line(key))
        };
        return Some(format!("no unfinished run looks at the fact {shown} of {key} now{meant}"));
    }
    if labels.iter().any(|known| known == label) {
        return None;
    }
    if of_runs.is_empty() && labels.is_empty() {
        return Some(format!(
            "nobody waits for {shown}: no unfinished run and no defined program looks at any fact"
        ));
    }
    let known = of_runs.labels().chain(labels.iter().map(String::as_str));
    let meant = meant(closest(label, known));
    Some(format!(
        "no unfinished run and no defined program looks at facts of the label {shown}{meant}"
    ))
}

impl ReadFacts {
    fn by_programs(root: &RunsRoot, space: &Dataspace) -> Self {
        let mut read = Self::default();
        for view in all(root).unwrap_or_default().into_iter().filter_map(|run| run.view.ok()) {
            if view.run.can_resume() {
                read.of_runs.extend(&run_facts::wanted(&view.run));
                let programs = view.run.definitions.values();
                read.labels.extend(programs.flat_map(|program| program.labels.clone()));
            }
        }
        for defined in space.all_defined().unwrap_or_default().defined {
            read.labels.extend(program_of(&defined).into_iter().flat_map(|program| program.labels));
        }
        read
    }
}

fn program_of(defined: &DefinedProgram) -> Option<Program> {
    let Workflow { scope, entry, .. } = Workflow::kept(&defined.file, defined.text.clone()).ok()?;
    read(&scope.path(&entry), &defined.text, &scope).program
}
