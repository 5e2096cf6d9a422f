//! The actions of the page, each named as its command: the body that it takes, and the code.
//!
//! A further action is a type of bodies with its code, and a line in the table; the page has an entry in `actions.js`
//! for it, or a script.

use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, Stdio};

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::actor::context::now;
use crate::cli::agent_orders::{SignalOutcome, put_order};
use crate::cli::background::self_program;
use crate::cli::candidates::DirArgs;
use crate::cli::exit::Error;
use crate::cli::options::budget;
use crate::cli::questions::OpenQuestion;
use crate::cli::serve::run_documents::{self, RunCache};
use crate::cli::{agent_orders, answer, background, branch, engine, questions};
use crate::domain::event::{AgentFamily, AgentMessage, RunCommand};
use crate::domain::id::{AgentId, RunId};
use crate::domain::question::AnswerCommand;
use crate::domain::retry::RetrySelection;
use crate::runtime::Workflow;
use crate::store::dataspace::FactStatement;
use crate::store::layout::RunsRoot;
use crate::store::view::load_view;

/// The commands on the runs of a directory of this machine.
pub(super) struct LocalCommands {
    root: RunsRoot,
    dir: DirArgs,
    cache: RunCache,
}

impl LocalCommands {
    /// Returns the commands on the runs of a directory.
    pub(super) fn new(root: RunsRoot, dir: DirArgs) -> Self {
        Self { root, dir, cache: RunCache::default() }
    }

    /// Returns the directory of the runs.
    pub(super) fn root(&self) -> &RunsRoot {
        &self.root
    }

    /// Returns the documents of runs that have not changed.
    pub(super) fn cache(&self) -> &RunCache {
        &self.cache
    }

    /// Returns a run, if the engine of the page has it.
    fn run(&self, name: &str) -> Result<RunId, Error> {
        let run = RunId::parse(name)?;
        engine::must_be_named(&self.dir, &self.root, &run)?;
        Ok(run)
    }

    fn order(&self, run: &str, order: &RunCommand) -> Result<Value, Error> {
        Ok(json!(put_order(&self.root, &self.dir, &RunId::parse(run)?, order)?))
    }
}

/// The body of a request for an action.
trait ActionBody: DeserializeOwned + JsonSchema {
    /// The name of the action.
    const NAME: &'static str;
    /// The sentence about it in the description of the addresses.
    const SUMMARY: &'static str;

    /// Does what is asked for, and returns what the command tells.
    fn act(self, commands: &LocalCommands) -> Result<Value, Error>;
}

/// An action.
pub(super) struct PageAction {
    pub(super) name: &'static str,
    /// The sentence about it.
    pub(super) summary: &'static str,
    /// Its code, which takes the body of a request.
    pub(super) act: fn(&LocalCommands, &Value) -> Result<Value, Error>,
    /// The schema of its bodies.
    pub(super) body: fn(&mut SchemaGenerator) -> Schema,
}

impl PageAction {
    const fn of<B: ActionBody>() -> Self {
        Self { name: B::NAME, summary: B::SUMMARY, act: act::<B>, body: B::json_schema }
    }
}

fn act<B: ActionBody>(commands: &LocalCommands, body: &Value) -> Result<Value, Error> {
    let read = B::deserialize(body);
    read.map_err(|error| Error::Usage(format!("the body of this action: {error}")))?.act(commands)
}

/// The actions.
pub(super) const ACTIONS: [PageAction; 10] = [
    PageAction::of::<AnswerBody>(),
    PageAction::of::<StopBody>(),
    PageAction::of::<RetryBody>(),
    PageAction::of::<BranchBody>(),
    PageAction::of::<SignalBody>(),
    PageAction::of::<StartBody>(),
    PageAction::of::<TellBody>(),
    PageAction::of::<HoldBody>(),
    PageAction::of::<ReleaseBody>(),
    PageAction::of::<StopAgentBody>(),
];

/// Returns the action of a name.
pub(super) fn named(name: &str) -> Option<PageAction> {
    ACTIONS.into_iter().find(|action| action.name == name)
}

/// Returns the names of all actions.
pub(super) fn names() -> String {
    let mut names = ACTIONS.map(|action| action.name);
    names.sort_unstable();
    names.join(", ")
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct AnswerBody {
    /// The id of the run
    run: String,
    /// The agent that asks
    agent: Option<String>,
    /// The name of the question
    node: String,
    /// The id of an option, or a text of your own
    text: String,
    /// The time at which the question was asked, as `/api/questions` has it: a later question of the same name is not answered
    asked_at: Option<String>,
}

impl ActionBody for AnswerBody {
    const NAME: &'static str = "answer";
    const SUMMARY: &'static str = "Answers a question, as `raymond answer`";

    fn act(self, commands: &LocalCommands) -> Result<Value, Error> {
        let run = commands.run(&self.run)?;
        let agent = self.agent.as_deref().map(AgentId::parse).transpose()?;
        let Self { node, text, asked_at, .. } = self;
        let mut given = AnswerCommand { agent, step: None, node, text };
        if let Some(asked_at) = asked_at {
            given.step = Some(step_of(commands, &run, &given, &asked_at)?);
        }
        Ok(json!(answer::give(&commands.root, &run, given)?))
    }
}

/// Returns the step with the question that was asked at a time, so that an answer reaches no later one of the same
/// name.
fn step_of(
    commands: &LocalCommands,
    run: &RunId,
    given: &AnswerCommand,
    asked_at: &str,
) -> Result<u64, Error> {
    let AnswerCommand { agent, node, .. } = given;
    let open = questions::open(&load_view(&commands.root, run)?.run);
    let is_meant = |open: &&OpenQuestion| {
        open.question.node == *node
            && agent.as_ref().is_none_or(|agent| *agent == open.agent)
            && json!(open.since) == *asked_at
    };
    let gone = || {
        Error::Usage(format!(
            "the question {node} is no longer open, perhaps because it has already been answered; reload it"
        ))
    };
    open.iter().find(is_meant).map(|open| open.step).ok_or_else(gone)
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct StopBody {
    /// The id of the run
    run: String,
}

impl ActionBody for StopBody {
    const NAME: &'static str = "stop";
    const SUMMARY: &'static str = "Asks a run to stop, as `raymond stop`";

    fn act(self, commands: &LocalCommands) -> Result<Value, Error> {
        Ok(json!(agent_orders::request(&commands.root, &commands.run(&self.run)?)?))
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RetryBody {
    /// The id of the run
    run: String,
    /// Only this agent
    agent: Option<String>,
    /// Only tell which agents those are
    dry_run: Option<bool>,
}

impl ActionBody for RetryBody {
    const NAME: &'static str = "retry";
    const SUMMARY: &'static str = "Lets failed agents live again, as `raymond retry`";

    /// Retries the agents in the raymond that holds the run, else in one in the background.
    fn act(self, commands: &LocalCommands) -> Result<Value, Error> {
        let (root, id) = (&commands.root, commands.run(&self.run)?);
        let view = load_view(root, &id)?;
        let agents = self.agent.as_deref().map(AgentId::parse).transpose()?.into_iter().collect();
        let selection = RetrySelection { agents, ..RetrySelection::default() };
        let plan = branch::planned(&view.run, &selection)?;
        if self.dry_run == Some(true) {
            return Ok(json!(plan));
        }
        if view.held {
            return Ok(json!(branch::retry_held(root, &view.run, selection)?));
        }
        let mut words: Vec<OsString> = vec!["retry".into(), id.as_str().into()];
        for agent in &selection.agents {
            words.extend(["--agent".into(), agent.as_str().into()]);
        }
        background::in_background(root, &id, &words)?;
        Ok(json!(plan))
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct BranchBody {
    /// The id of the run
    run: String,
    /// A record such as 120, or a step such as main.2#5
    at: String,
}

impl ActionBody for BranchBody {
    const NAME: &'static str = "branch";
    const SUMMARY: &'static str =
        "Starts a run that shares the records of another up to a place, as `raymond branch`";

    fn act(self, commands: &LocalCommands) -> Result<Value, Error> {
        let (root, id) = (&commands.root, commands.run(&self.run)?);
        load_view(root, &id)?;
        let new = id.with_suffix(&format!("-b{}", &Uuid::new_v4().simple().to_string()[..6]));
        let mut words: Vec<OsString> = vec!["branch".into(), id.as_str().into()];
        // A value that begins with a dash is not an option.
        words.extend([format!("--at={}", self.at).into(), "--id".into(), new.as_str().into()]);
        background::new_in_background(root, &new, &words)?;
        Ok(json!({ "run": new }))
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SignalBody {
    /// The label
    label: String,
    /// The key
    key: Option<String>,
    /// The value
    value: Option<String>,
    /// Retract it
    retract: Option<bool>,
}

impl ActionBody for SignalBody {
    const NAME: &'static str = "signal";
    const SUMMARY: &'static str = "Asserts a fact, or retracts it, as `raymond signal`";

    fn act(self, commands: &LocalCommands) -> Result<Value, Error> {
        let space = engine::dataspace(&commands.dir, &commands.root)?;
        let Self { label, key, value, retract } = self;
        let (label, key) = (label.as_str(), key.as_deref().unwrap_or_default());
        Ok(json!(if retract == Some(true) {
            SignalOutcome::retract(&space, label, key)?
        } else {
            let value = value.as_deref().unwrap_or_default();
            let statement = FactStatement { label, key, value, source: "signal", at: now() };
            SignalOutcome::assert(&space, statement)?
        }))
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct TellBody {
    /// The id of the run
    run: String,
    /// The agent
    agent: String,
    /// The message
    text: String,
}

impl ActionBody for TellBody {
    const NAME: &'static str = "tell";
    const SUMMARY: &'static str = "Tells an agent something, as `raymond tell`";

    fn act(self, commands: &LocalCommands) -> Result<Value, Error> {
        let message = AgentMessage { agent: AgentId::parse(&self.agent)?, text: self.text };
        commands.order(&self.run, &RunCommand::Tell(message))
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct HoldBody {
    /// The id of the run
    run: String,
    /// The agent, or `AGENT.*` for it and those that descend from it
    agent: String,
}

impl ActionBody for HoldBody {
    const NAME: &'static str = "hold";
    const SUMMARY: &'static str =
        "Lets nothing of an agent begin until it is released, as `raymond hold`";

    fn act(self, commands: &LocalCommands) -> Result<Value, Error> {
        let hold = RunCommand::Hold(AgentFamily::parse(&self.agent)?.into());
        commands.order(&self.run, &hold)
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ReleaseBody {
    /// The id of the run
    run: String,
    /// The agent, or `AGENT.*` for it and those that descend from it
    agent: String,
}

impl ActionBody for ReleaseBody {
    const NAME: &'static str = "release";
    const SUMMARY: &'static str = "Lets an agent go on that is held, as `raymond release`";

    fn act(self, commands: &LocalCommands) -> Result<Value, Error> {
        let release = RunCommand::Release(AgentFamily::parse(&self.agent)?.into());
        commands.order(&self.run, &release)
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct StopAgentBody {
    /// The id of the run
    run: String,
    /// The agent
    agent: String,
}

impl ActionBody for StopAgentBody {
    const NAME: &'static str = "stop-agent";
    const SUMMARY: &'static str = "Ends an agent as failed, as `raymond stop --agent`";

    fn act(self, commands: &LocalCommands) -> Result<Value, Error> {
        let agent = AgentId::parse(&self.agent)?;
        commands.order(&self.run, &RunCommand::StopAgent { agent })
    }
}

/// The most bytes of a value: the system takes no longer argument.
const MAX_VALUE_BYTES: usize = 120 * 1024;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct StartBody {
    /// Its folder, as `/api/workflows` has it
    folder: String,
    /// The values of its inputs by name: texts
    inputs: Option<Map<String, Value>>,
    /// The budget in dollars
    budget: Option<String>,
    /// The model
    model: Option<String>,
}

impl ActionBody for StartBody {
    const NAME: &'static str = "start";
    const SUMMARY: &'static str =
        "Starts a workflow that is trusted or was run before, as `raymond start`";

    /// Starts a workflow that the page offers in the background.
    fn act(self, commands: &LocalCommands) -> Result<Value, Error> {
        let folder = self.folder.as_str();
        if !run_documents::folders(&commands.root, &commands.cache)?.contains(folder) {
            return Err(Error::Usage(format!(
                "{folder} is neither trusted nor the workflow of an earlier run; trust it at a terminal: raymond trust {folder}"
            )));
        }
        let inputs = self.inputs.unwrap_or_default();
        check_inputs(folder, &inputs)?;
        let given = |option: Option<String>| option.filter(|value| !value.is_empty());
        let options = [("budget", given(self.budget)), ("model", given(self.model))];
        for (option, value) in &options {
            check_text(option, &json!(value))?;
        }
        if let Some(amount) = &options[0].1 {
            budget(amount).map_err(|why| refused("budget", why))?;
        }
        let mut command = Command::new(self_program()?);
        command.arg("start").arg(folder).arg("--dir").arg(commands.root.path());
        for (name, value) in &inputs {
            let value = value.as_str().unwrap_or_default();
            match name.as_str() {
                "input" => command.arg(format!("--input={value}")),
                name => command.arg(format!("--var={name}={value}")),
            };
        }
        for (option, value) in options {
            command.args(value.map(|value| format!("--{option}={value}")));
        }
        let output = command.stdin(Stdio::null()).output();
        let output = output.map_err(Error::io("start a run with", "this program"))?;
        if !output.status.success() {
            return Err(Error::Usage(String::from_utf8_lossy(&output.stderr).trim().to_owned()));
        }
        Ok(json!({ "run": String::from_utf8_lossy(&output.stdout).trim() }))
    }
}

/// Checks the values for the inputs of a workflow, each by itself.
fn check_inputs(folder: &str, inputs: &Map<String, Value>) -> Result<(), Error> {
    for (name, value) in inputs {
        check_text(&format!("inputs.{name}"), value)?;
    }
    // If the workflow cannot be read, the command reports it.
    let declared = Workflow::open(Path::new(folder)).map(|workflow| workflow.manifest.inputs);
    let missing = declared.into_iter().flatten().find(|input| {
        let is_given = inputs.get(&input.name).is_some_and(Value::is_string);
        input.is_required && input.default.is_none() && !is_given
    });
    match missing {
        Some(input) => Err(refused(&format!("inputs.{}", input.name), "this input is needed")),
        None => Ok(()),
    }
}

/// Checks that a value is a text that can be given to a command.
fn check_text(field: &str, value: &Value) -> Result<(), Error> {
    match value {
        Value::String(text) if text.contains('\0') => {
            Err(refused(field, "a text has no character of the number 0"))
        }
        Value::String(text) if text.len() > MAX_VALUE_BYTES => Err(refused(
            field,
            format!(
                "{} bytes are too long; put the text into a file that the workflow reads: the limit here is {MAX_VALUE_BYTES} bytes",
                text.len()
            ),
        )),
        Value::Null | Value::String(_) => Ok(()),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            Err(refused(field, "write a text"))
        }
    }
}

fn refused(field: &str, message: impl Into<String>) -> Error {
    Error::Value { field: field.to_owned(), message: message.into() }
}
