//! The seam of the languages: one function advances an agent, whatever language its state is written in.
//!
//! [`resume`] is pure. It gets a position, the input that was waited for and the environment, and returns what
//! follows: an advance to record, an activity to perform first, or a turn of Claude Code. A language is a reader
//! and an interpreter behind this function; the actors, the journal and the state of a run know none of them.

use std::rc::Rc;

use serde_json::{Map, Value};

use super::graph::checked_graph::Graph;
use super::graph::interpreter::{GraphEnvironment, GraphInterpreter, GraphYield, SuspendedWalk};
use super::program::checked_program::Program;
use super::program::interpreter::{ProgramEnvironment, advance};
use super::prompt::context::RESERVED;
use super::prompt::script::{self, PreparedScript};
use crate::domain::activity::{Activity, ActivityResult};
use crate::domain::advance::{Advance, AdvanceNext};
use crate::domain::agent::Agent;
use crate::domain::decide::ProgramStart;
use crate::domain::fact::KnownFacts;
use crate::domain::graph_execution::WaitResult;
use crate::domain::id::RunId;
use crate::domain::operation::RecoveryClass;
use crate::domain::settings::Settings;
use crate::domain::time::Timestamp;
use crate::domain::turn::{FailureCause, TurnFailure};

/// The workflow that an agent's state is written in, read and checked.
#[derive(Debug, Clone)]
pub enum LoadedWorkflow {
    /// Prompts: each step is a turn of Claude Code.
    Prompts,
    /// A graph.
    Graph(Rc<Graph>),
    /// A program, and the path of its file for messages.
    Program(Rc<Program>, String),
    /// A script.
    Script(PreparedScript),
}

/// The input that an agent was waiting for.
#[derive(Debug, Clone, PartialEq)]
pub enum ResumeInput {
    /// No input: the agent enters its state, or comes back to its recorded position.
    Entered,
    /// The result of the activity that was due, or the reason why there is none.
    Activity(Result<ActivityResult, String>),
    /// The reason why the activity that was due is not allowed.
    Refused(String),
    /// The activity was begun by an earlier runtime, and its outcome is unknown; the text says what to do.
    Lost(String),
    /// The result of a turn.
    Turn(WaitResult),
}

/// The environment of an agent that is advanced.
#[derive(Debug)]
pub struct ResumeEnvironment<'run> {
    /// The agent, at its recorded position.
    pub agent: &'run Agent,
    /// The run.
    pub run: &'run RunId,
    /// The facts that the run knows.
    pub facts: &'run KnownFacts,
    /// The settings of the run.
    pub settings: &'run Settings,
    /// The built-in variables: `PWD`, `HOME`.
    pub builtins: &'run Map<String, Value>,
    /// The agent's working directory, if it is not that of the run.
    pub working_dir: Option<String>,
    /// The time limit of a script, in milliseconds: the supervision's timeout.
    pub script_timeout_ms: u64,
    /// The time.
    pub now: Timestamp,
}

/// The position of an execution while an activity is performed for it.
#[derive(Debug)]
pub enum SuspendedExecution {
    /// The agent's last record: the beginning of its state, or a position.
    Entered,
    /// The agent's recorded position, which names the activity.
    Recorded,
    /// A walk over a graph that is not recorded yet.
    Walk(Box<SuspendedWalk>),
}

/// The outcome of [`resume`].
#[derive(Debug)]
pub enum ResumeOutcome {
    /// An advance, to be recorded.
    Advanced(Box<Advance>),
    /// An activity comes first. Its result is the input of the next call, at this position.
    Needs {
        /// The activity.
        activity: Activity,
        /// The position.
        suspended: SuspendedExecution,
    },
    /// The execution begins; the next call comes after the record of that.
    Begins(Box<ProgramStart>),
    /// A turn of Claude Code is due.
    Turn,
    /// The reply to a step that was no turn; it is judged as that of a turn.
    Replied(String),
    /// The step failed.
    Failed(TurnFailure),
}

/// Advances an agent as far as possible without the outside world.
#[must_use]
pub fn resume(
    workflow: &LoadedWorkflow,
    suspended: SuspendedExecution,
    input: ResumeInput,
    environment: &ResumeEnvironment<'_>,
) -> ResumeOutcome {
    match workflow {
        LoadedWorkflow::Prompts => ResumeOutcome::Turn,
        LoadedWorkflow::Graph(graph) => resume_graph(graph, suspended, input, environment),
        LoadedWorkflow::Program(program, path) => resume_program(program, path, input, environment),
        LoadedWorkflow::Script(script) => resume_script(script, input, environment),
    }
}

/// Returns the advance up to a position whose activity was ended, if there is one to keep.
#[must_use]
pub fn interrupted(
    workflow: &LoadedWorkflow,
    suspended: SuspendedExecution,
    environment: &ResumeEnvironment<'_>,
) -> Option<Advance> {
    match (workflow, suspended) {
        (LoadedWorkflow::Graph(graph), SuspendedExecution::Walk(walk)) => {
            let around = graph_environment(environment);
            let walk = GraphInterpreter::continue_with(graph, &around, *walk);
            walk.is_worth_keeping().then(|| walk.finish(AdvanceNext::Continue))
        }
        (LoadedWorkflow::Graph(_), SuspendedExecution::Entered | SuspendedExecution::Recorded)
        | (LoadedWorkflow::Program(..) | LoadedWorkflow::Prompts | LoadedWorkflow::Script(_), _) => {
            None
        }
    }
}

fn resume_graph(
    graph: &Graph,
    suspended: SuspendedExecution,
    input: ResumeInput,
    environment: &ResumeEnvironment<'_>,
) -> ResumeOutcome {
    let around = graph_environment(environment);
    let interpreter = match (suspended, environment.agent.graph()) {
        (SuspendedExecution::Walk(walk), _) => {
            GraphInterpreter::continue_with(graph, &around, *walk)
        }
        (SuspendedExecution::Entered | SuspendedExecution::Recorded, Some(own)) => {
            GraphInterpreter::resume(graph, &around, (*own.state).clone())
        }
        (SuspendedExecution::Entered | SuspendedExecution::Recorded, None) => {
            GraphInterpreter::begin(graph, &around)
        }
    };
    let result = match input {
        ResumeInput::Entered => environment.agent.wait_result().cloned(),
        ResumeInput::Turn(result) => Some(result),
        ResumeInput::Activity(Ok(result)) => Some(WaitResult::Done(result.into_value())),
        ResumeInput::Activity(Err(why)) | ResumeInput::Refused(why) => {
            Some(WaitResult::Failed(why))
        }
        // The restart policy says whether the operation is done again.
        ResumeInput::Lost(why) => return ResumeOutcome::Failed(uncertain(&why)),
    };
    walk(interpreter, result, environment.now)
}

/// Executes nodes up to the next operation that can be performed now, or to the next record.
///
/// An operation that changes the world runs only after the record of its intent is durable: the nodes before it
/// are recorded first, and then the graph comes back to it. What only reads is not recorded.
fn walk(
    mut interpreter: GraphInterpreter<'_>,
    result: Option<WaitResult>,
    now: Timestamp,
) -> ResumeOutcome {
    let operation = match interpreter.next(result, now) {
        GraphYield::Record(next) => {
            return ResumeOutcome::Advanced(Box::new(interpreter.finish(next)));
        }
        GraphYield::Operation(operation) => operation,
    };
    if operation.class() == RecoveryClass::Read || interpreter.is_recorded() {
        let suspended = SuspendedExecution::Walk(Box::new(interpreter.suspend()));
        return ResumeOutcome::Needs { activity: Activity::Operation(operation), suspended };
    }
    let kind = operation.name().to_owned();
    ResumeOutcome::Advanced(Box::new(interpreter.finish(AdvanceNext::Activity(kind))))
}

fn graph_environment(environment: &ResumeEnvironment<'_>) -> GraphEnvironment {
    let agent = environment.agent;
    let mut builtins = environment.builtins.clone();
    let mut variables = environment.settings.variables.clone();
    variables.extend(agent.placeholder_values());
    let arguments = variables.remove("input").unwrap_or_default();
    builtins.insert("arguments".to_owned(), arguments.into());
    if let Some(directory) = &environment.working_dir {
        builtins.insert("PWD".to_owned(), directory.as_str().into());
    }
    GraphEnvironment {
        file: agent.current_state.clone(),
        folder: agent.folder(),
        builtins,
        variables,
    }
}

fn resume_program(
    program: &Program,
    path: &str,
    input: ResumeInput,
    environment: &ResumeEnvironment<'_>,
) -> ResumeOutcome {
    let agent = environment.agent;
    let Some(execution) = agent.program() else {
        return ResumeOutcome::Begins(Box::new(program_start(program, environment)));
    };
    let result = match input {
        ResumeInput::Activity(result) => Some(result),
        // A restart would begin the program anew.
        ResumeInput::Refused(why) | ResumeInput::Lost(why) => Some(Err(why)),
        // A program's turns are those of its roles, which answer by requests.
        ResumeInput::Entered | ResumeInput::Turn(_) => None,
    };
    if let Some(activity) = execution.position.activity.as_ref().filter(|_| result.is_none()) {
        let suspended = SuspendedExecution::Recorded;
        return ResumeOutcome::Needs { activity: activity.clone(), suspended };
    }
    let environment = ProgramEnvironment {
        program,
        execution,
        facts: environment.facts,
        run: environment.run,
        file: &agent.current_state,
        folder: agent.folder(),
        path,
        now: environment.now,
    };
    ResumeOutcome::Advanced(Box::new(advance(&environment, result)))
}

/// Returns the inputs with which a program begins. An empty `input` does not hide one of the context.
fn program_start(program: &Program, environment: &ResumeEnvironment<'_>) -> ProgramStart {
    let (agent, settings) = (environment.agent, environment.settings);
    let mut context = settings.variables.clone();
    context.extend(settings.context.clone());
    context.extend(agent.placeholder_values().into_iter().filter(|(name, text)| {
        name != "input" || !text.is_empty() || !settings.context.contains_key(name)
    }));
    ProgramStart {
        definition: program.kept(agent.current_state.clone(), agent.folder()),
        start: program.states.first().map(|state| state.name.clone()).unwrap_or_default(),
        label: settings.label.clone().unwrap_or_else(|| environment.run.to_string()),
        branch: settings.branch.clone(),
        context,
    }
}

/// Executes a script, and then takes the last line of its output as its reply.
fn resume_script(
    script: &PreparedScript,
    input: ResumeInput,
    environment: &ResumeEnvironment<'_>,
) -> ResumeOutcome {
    match input {
        ResumeInput::Entered | ResumeInput::Turn(_) => {
            let agent = environment.agent;
            let mut variables = environment.settings.variables.clone();
            variables.extend(agent.placeholder_values());
            let own = [environment.run.as_str(), agent.id.as_str(), agent.current_state.as_str()];
            variables.extend(RESERVED.map(str::to_owned).into_iter().zip(own.map(str::to_owned)));
            let operation = script.operation(&variables, environment.script_timeout_ms);
            let suspended = SuspendedExecution::Entered;
            ResumeOutcome::Needs { activity: Activity::Operation(operation), suspended }
        }
        ResumeInput::Activity(Ok(result)) => {
            let value = result.into_value();
            let stdout = value["stdout"].as_str().unwrap_or_default();
            ResumeOutcome::Replied(script::reply(stdout).to_owned())
        }
        ResumeInput::Activity(Err(why)) => {
            ResumeOutcome::Failed(TurnFailure::new(FailureCause::Crash, why))
        }
        // A repetition would be refused, too.
        ResumeInput::Refused(why) => {
            ResumeOutcome::Failed(TurnFailure::new(FailureCause::Workflow, why))
        }
        ResumeInput::Lost(why) => ResumeOutcome::Failed(uncertain(&why)),
    }
}

fn uncertain(why: &str) -> TurnFailure {
    TurnFailure::new(FailureCause::Uncertain, why)
}

#[cfg(test)]
mod tests;
