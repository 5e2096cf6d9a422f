//! The seam of the languages: one function advances an agent whose state is written in any language.
//!
//! [`resume`] is pure. It gets a position, the input that the agent was waiting for and the environment, and returns
//! what follows: an advance to record, an activity to perform first, the beginning of a program, a join, a turn of
//! Claude Code, or the judgement on a reply that needs no turn. A language is a reader and an interpreter behind this
//! function. The actors only load its files and choose its words for people.
//!
//! The reply to a turn is judged by the rules that the turn was prepared with ([`TurnRules::outcome`]).

use std::rc::Rc;
use std::sync::Arc;

use raymond_model::activity::{Activity, ActivityResult};
use raymond_model::advance::{Advance, AdvanceNext};
use raymond_model::agent::Agent;
use raymond_model::approval::GrantedRule;
use raymond_model::decide::TurnJudgement;
use raymond_model::event::{NextAction, ProgramStarted};
use raymond_model::fact::KnownFacts;
use raymond_model::graph_execution::{GraphExecution, ProgramSource, WaitResult};
use raymond_model::id::{RunId, StateName, StepMode};
use raymond_model::join::Join;
use raymond_model::money::Usd;
use raymond_model::operation::RecoveryClass;
use raymond_model::policy::TransitionPolicy;
use raymond_model::settings::Settings;
use raymond_model::supervision::TurnTimeouts;
use raymond_model::time::Timestamp;
use raymond_model::transition::Variables;
use raymond_model::turn::{FailureCause, TurnFailure, TurnReply};
use raymond_model::widening::PermissionCeiling;
use serde_json::{Map, Value};

use self::turn::{PreparedTurn, ReplyOutcome, TurnPermit, TurnRules};
use self::workflow_cache::WorkflowCache;
use super::graph::checked_graph::Graph;
use super::program::checked_program::Program;
use super::prompt::document::ExaminedDocument;
use super::prompt::script::PreparedScript;
use super::source;
use super::source::WorkflowSource;
use crate::fork_plan::ForkPlan;
use crate::graph::interpreter::{GraphEnvironment, GraphInterpreter, GraphYield};
use crate::program::interpreter::{ProgramEnvironment, advance};
use crate::prompt::judgement::{JudgedReply, NO_POLICY, ReplyRules};
use crate::prompt::script;
use crate::prompt::step::{JoinResults, add_reserved};
use crate::resume::turn::read;

pub mod turn;
pub mod workflow_cache;

/// The workflow that an agent's state is written in, read and checked.
#[derive(Debug, Clone)]
pub enum LoadedWorkflow {
    /// Prompts, or the requests to a role: each step is a turn of Claude Code.
    Prompts,
    Graph(Rc<Graph>),
    /// A program, and the path of its file for messages.
    Program(Rc<Program>, String),
    Script(Rc<PreparedScript>),
}

impl LoadedWorkflow {
    /// Returns whether it decides on the facts as they are now.
    pub fn reads_facts(&self) -> bool {
        match self {
            Self::Program(..) => true,
            Self::Prompts | Self::Graph(_) | Self::Script(_) => false,
        }
    }
}

/// The input that an agent was waiting for.
#[derive(Debug, Clone)]
pub enum ResumeInput {
    /// No input: the agent enters its state, or comes back to its recorded position.
    Entered,
    /// The result of the pending activity, or the reason why there is none.
    Activity(Result<ActivityResult, String>),
    /// The reason why the pending activity is not allowed.
    Refused(String),
    /// The activity was begun by an earlier runtime, and its outcome is unknown; the text says what to do.
    Lost(String),
    /// The pending turn has a permit.
    Permitted(TurnPermit),
    /// The result of the task that a graph has asked for.
    TaskDone(WaitResult),
}

/// The environment of an agent that is advanced.
pub struct ResumeEnvironment<'run> {
    /// The agent, at its recorded position.
    pub agent: &'run Agent,
    pub run: &'run RunId,
    /// The facts that the run knows.
    pub facts: &'run KnownFacts,
    /// The settings of the run.
    pub settings: &'run Settings,
    /// The rules that a person has given with answers.
    pub granted_rules: &'run [GrantedRule],
    /// The part of the run's budget that is left; `None` without a budget.
    pub budget_left: Option<Usd>,
    /// The permissions that no state may exceed.
    pub ceiling: &'run PermissionCeiling,
    /// The workflow's files, as the agent's state sees them.
    pub source: &'run dyn WorkflowSource,
    /// The files that have been read.
    pub workflows: &'run WorkflowCache,
    /// The built-in variables: `PWD`, `HOME`.
    pub builtins: &'run Map<String, Value>,
    /// The agent's working directory, if it is not that of the run.
    pub working_dir: Option<String>,
    /// The time limits of a turn. A script has that of a whole turn.
    pub limits: TurnTimeouts,
    /// The path of the file for the results of a join.
    pub results_file: String,
    /// The time.
    pub now: Timestamp,
}

impl ResumeEnvironment<'_> {
    /// Returns a prompt of the agent's folder, taken apart.
    fn document(&self, name: &StateName) -> Result<Rc<ExaminedDocument>, source::Error> {
        self.workflows.document(self.agent.folder().as_ref(), name, self.source)
    }

    /// Returns the results of the agents that the agent waited for, in the form that prompts use.
    fn join_results(&self) -> Option<JoinResults> {
        let list = self.agent.results()?.clone();
        Some(JoinResults { list, file: self.results_file.clone() })
    }
}

/// The position of an execution while an activity is performed for it.
#[derive(Debug)]
pub enum SuspendedExecution {
    /// The agent's last record: the beginning of its state, or a position.
    Entered,
    /// The agent's recorded position, which names the activity.
    Recorded,
    /// A walk over a graph that is not recorded yet.
    Walk(Box<GraphInterpreter>),
}

/// The outcome of [`resume`].
#[derive(Debug)]
pub enum ResumeOutcome {
    /// An advance, to be recorded.
    Advanced(Box<Advance>),
    /// An activity comes first. Its result is the input of the next call, at this position.
    Needs {
        activity: Activity,
        /// The position.
        suspended: SuspendedExecution,
    },
    /// The execution begins; the next call comes after the record of that.
    Begins { definition: Box<ProgramSource>, started: Box<ProgramStarted> },
    /// A turn of Claude Code is due; it is prepared once it has a permit.
    AwaitsPermit,
    /// The state first waits for agents that were forked.
    JoinDue(Box<Join>),
    /// A turn of Claude Code, with its permit.
    Turn(Box<PreparedTurn>),
    /// The judgement on a reply that needs no turn: that of a script, or of a person.
    Judged {
        /// The rules by which it was judged.
        rules: Box<TurnRules>,
        reply: JudgedReply,
    },
    /// The step failed.
    Failed(TurnFailure),
}

/// Advances an agent as far as possible without the outside world.
pub fn resume(
    workflow: &LoadedWorkflow,
    suspended: SuspendedExecution,
    input: ResumeInput,
    environment: &ResumeEnvironment<'_>,
) -> ResumeOutcome {
    match workflow {
        LoadedWorkflow::Prompts => match (&environment.agent.given_reply, input) {
            (Some(text), ResumeInput::Entered) => judge(text, environment),
            (_, input) => resume_prompt(input, environment),
        },
        LoadedWorkflow::Graph(graph) => resume_graph(graph, suspended, input, environment),
        LoadedWorkflow::Program(program, path) => resume_program(program, path, input, environment),
        LoadedWorkflow::Script(script) => resume_script(script, input, environment),
    }
}

/// The consequence of an activity that was ended because the run was stopped.
#[derive(Debug)]
pub enum InterruptedActivity {
    /// The advance up to it is recorded.
    Advanced(Box<Advance>),
    /// It is due again, as the recorded position says.
    StillDue,
    /// The step failed.
    Failed(TurnFailure),
}

/// Returns the consequence of an activity that was ended because the run was stopped.
pub fn interrupted(suspended: SuspendedExecution, activity: &Activity) -> InterruptedActivity {
    let message = format!("{} was ended because the run was stopped", activity.name());
    let cause = match activity.class() {
        RecoveryClass::Uncertain => FailureCause::Uncertain,
        RecoveryClass::Read | RecoveryClass::Converges | RecoveryClass::Guarded => {
            FailureCause::Interrupted
        }
    };
    let failure = || InterruptedActivity::Failed(TurnFailure::new(cause, message));
    match suspended {
        SuspendedExecution::Recorded => InterruptedActivity::StillDue,
        SuspendedExecution::Walk(walk)
            if cause == FailureCause::Interrupted && walk.is_worth_keeping() =>
        {
            InterruptedActivity::Advanced(Box::new(
                walk.finish(AdvanceNext::Action(NextAction::Walk)),
            ))
        }
        SuspendedExecution::Entered | SuspendedExecution::Walk(_) => failure(),
    }
}

/// Resumes a state of prompts. It has no activities.
fn resume_prompt(input: ResumeInput, environment: &ResumeEnvironment<'_>) -> ResumeOutcome {
    match input {
        ResumeInput::Entered => turn::enter(environment),
        ResumeInput::Permitted(permit) => turn::prepare(permit, environment),
        ResumeInput::Activity(_) | ResumeInput::Refused(_) | ResumeInput::Lost(_) => {
            ResumeOutcome::Failed(lost("a prompt performs no activity"))
        }
        ResumeInput::TaskDone(_) => no_task(),
    }
}

/// Returns the failure of an agent whose activity has an unknown outcome.
fn lost(why: &str) -> TurnFailure {
    TurnFailure::new(FailureCause::Uncertain, why)
}

/// Returns the failure of an agent that has the result of a task without a graph.
fn no_task() -> ResumeOutcome {
    ResumeOutcome::Failed(lost("only a graph asks for the result of a task"))
}

// The prompt of the pending turn, for a person who wants to see or edit it. Pure.

/// Returns the text that the next turn of the agent is asked, without the messages of people.
///
/// # Errors
/// The reason why no prompt is due.
pub fn due_prompt(environment: &ResumeEnvironment<'_>) -> Result<String, String> {
    let agent = environment.agent;
    let is_asked = agent.task().is_some() || agent.current_state.steps() == Some(StepMode::Asked);
    if agent.question().is_some() {
        return Err("it waits for the answer to a question; `raymond answer` gives it".to_owned());
    }
    if agent.awaits_approval() {
        return Err("it waits for an approval; `raymond answer` gives it".to_owned());
    }
    if !is_asked || agent.advances_itself() {
        let state = &agent.current_state;
        return Err(format!("{state} is not a prompt: it executes a file, a graph or a program"));
    }
    if agent.proposal().is_some() {
        return Err("an evaluator is asked next, with its own prompt".to_owned());
    }
    let asked = read(environment.join_results(), environment).map_err(|error| error.to_string())?;
    if agent.pending_join().is_some() || (asked.join.is_some() && agent.has_untouched_prompt()) {
        return Err("it waits for the agents that it has forked, whose results are in its prompt"
            .to_owned());
    }
    Ok(agent.asked_text(asked.prompt))
}

// A reply that a person has given instead of a turn: judged by the rules that the turn would have had.
//
// A check by a further prompt is skipped, because the person has decided.

/// Judges the reply. A join of the state comes first.
fn judge(text: &str, environment: &ResumeEnvironment<'_>) -> ResumeOutcome {
    match turn::prepare(TurnPermit::default(), environment) {
        ResumeOutcome::Turn(prepared) => {
            let rules = Box::new(prepared.rules);
            let structured = rules.reply.output.is_some().then(|| text.to_owned());
            let reply = TurnReply {
                text: text.to_owned(),
                structured,
                is_given: true,
                ..TurnReply::default()
            };
            match rules.outcome(&reply, environment.source) {
                ReplyOutcome::Judged(reply) => ResumeOutcome::Judged { rules, reply },
                ReplyOutcome::TaskDone(_) => no_task(),
                ReplyOutcome::Failed(failure) => ResumeOutcome::Failed(failure),
            }
        }
        other => other,
    }
}

/// Checks that a reply would be accepted. `read` returns the text of a file with the list of a fork; `None` if it
/// cannot be known yet.
///
/// # Errors
/// The reason why not.
pub fn check(
    text: &str,
    environment: &ResumeEnvironment<'_>,
    read: &dyn Fn(&str) -> Result<Option<String>, String>,
) -> Result<(), String> {
    match judge(text, environment) {
        ResumeOutcome::Judged { rules, reply } => match reply.judgement {
            TurnJudgement::Violated { violation, .. } => Err(violation),
            TurnJudgement::Failed(failure) => Err(failure.message),
            TurnJudgement::Accepted(accepted) | TurnJudgement::Proposed { accepted, .. } => {
                let most = rules.forks.max_fan_out;
                let most = most.unwrap_or(environment.settings.forking.max_fan_out);
                let plan = ForkPlan::new(rules.state, most);
                plan.check(&accepted.transition, read)
            }
            TurnJudgement::Advanced(_) | TurnJudgement::JoinDue(_) | TurnJudgement::NotStarted => {
                Ok(())
            }
        },
        ResumeOutcome::Failed(failure) => Err(failure.message),
        ResumeOutcome::JoinDue(_)
        | ResumeOutcome::Turn(_)
        | ResumeOutcome::AwaitsPermit
        | ResumeOutcome::Advanced(_)
        | ResumeOutcome::Needs { .. }
        | ResumeOutcome::Begins { .. } => Ok(()),
    }
}

/// Resumes a program: from a position to the next thing that it waits for. It takes no turns itself: those are its
/// roles', which answer by requests.
fn resume_program(
    program: &Program,
    path: &str,
    input: ResumeInput,
    environment: &ResumeEnvironment<'_>,
) -> ResumeOutcome {
    let agent = environment.agent;
    let Some(execution) = agent.program() else {
        return program_start(program, environment);
    };
    let result = match input {
        ResumeInput::Activity(result) => Some(result),
        // A restart would begin the program again.
        ResumeInput::Refused(why) | ResumeInput::Lost(why) => Some(Err(why)),
        ResumeInput::Entered => None,
        ResumeInput::Permitted(permit) => return turn::prepare(permit, environment),
        ResumeInput::TaskDone(_) => return no_task(),
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
        budget_left: environment.budget_left,
        step: agent.step,
        path,
        now: environment.now,
    };
    ResumeOutcome::Advanced(Box::new(advance(&environment, result)))
}

/// Begins a program. An empty `input` does not hide one of the context.
fn program_start(program: &Program, environment: &ResumeEnvironment<'_>) -> ResumeOutcome {
    let (agent, settings) = (environment.agent, environment.settings);
    let mut context = settings.variables.clone();
    context.extend(settings.context.clone());
    context.extend(agent.placeholder_values().into_iter().filter(|(name, text)| {
        name != "input" || !text.is_empty() || !settings.context.contains_key(name)
    }));
    let started = ProgramStarted {
        turn: agent.turn_id(),
        state: agent.current_state.clone(),
        program: Arc::clone(&program.hash),
        name: program.name.to_string(),
        label: settings.label.clone().unwrap_or_else(|| environment.run.to_string()),
        branch: settings.branch.clone(),
        context,
        start: program.states.first().map(|state| state.name.clone()).unwrap_or_default(),
    };
    let definition = Box::new(program.kept(agent.current_state.clone(), agent.folder()));
    ResumeOutcome::Begins { definition, started: Box::new(started) }
}

/// Resumes a script: executes it, and judges the tag at the end of its output as its reply.
fn resume_script(
    script: &PreparedScript,
    input: ResumeInput,
    environment: &ResumeEnvironment<'_>,
) -> ResumeOutcome {
    match input {
        ResumeInput::Entered => execute(script, environment),
        ResumeInput::Activity(Ok(result)) => {
            let value = result.into_value();
            let stdout = value["stdout"].as_str().unwrap_or_default();
            let reply = TurnReply { text: script::reply(stdout), ..TurnReply::default() };
            judge_script(&reply, environment)
        }
        ResumeInput::Activity(Err(why)) => {
            ResumeOutcome::Failed(TurnFailure::new(FailureCause::Crash, why))
        }
        // A repetition would be refused, too.
        ResumeInput::Refused(why) => {
            ResumeOutcome::Failed(TurnFailure::new(FailureCause::Workflow, why))
        }
        ResumeInput::Lost(why) => ResumeOutcome::Failed(lost(&why)),
        // A script takes no turns.
        ResumeInput::Permitted(permit) => turn::prepare(permit, environment),
        ResumeInput::TaskDone(_) => no_task(),
    }
}

fn execute(script: &PreparedScript, environment: &ResumeEnvironment<'_>) -> ResumeOutcome {
    let agent = environment.agent;
    let mut variables = environment.settings.variables.clone();
    variables.extend(agent.placeholder_values());
    add_reserved(&mut variables, environment.run, &agent.id, &agent.current_state);
    let operation = script.operation(&variables, environment.limits.timeout_ms);
    let suspended = SuspendedExecution::Entered;
    ResumeOutcome::Needs { activity: Activity::Operation(operation), suspended }
}

/// The advice for a tag whose quotes a shell has taken.
const LOST_QUOTES: &str =
    "; a shell takes quotes within \"…\": write \\\" there, or put the whole tag into '…'";

/// The advice for another end.
const EXAMPLE: &str = "; end it with a line such as: echo '<result>text</result>'";

/// Judges the reply of a script, which may take any transition. It is not reminded: it would do the same again.
fn judge_script(reply: &TurnReply, environment: &ResumeEnvironment<'_>) -> ResumeOutcome {
    let policy = TransitionPolicy { many_forks: true, ..TransitionPolicy::default() };
    let rules = ReplyRules { policy, ..ReplyRules::default() };
    let rules = TurnRules::of(environment.agent, rules);
    let judged = rules.reply.judge(reply, environment.source);
    let TurnJudgement::Violated { violation, .. } = judged.judgement else {
        let reply = rules.described(judged, reply);
        return ResumeOutcome::Judged { rules: Box::new(rules), reply };
    };
    let path = environment.source.path(&environment.agent.current_state);
    let line = match reply.text.as_str() {
        "" => "it printed nothing".to_owned(),
        text => format!("its last line is `{}`", text.lines().last().unwrap_or_default().trim()),
    };
    let violation = violation.replace(NO_POLICY, "");
    let why = format!(
        "{path}: the end of a script's output says what comes next by one tag; {line}: {violation}{}",
        if script::has_lost_quotes(&reply.text) { LOST_QUOTES } else { EXAMPLE }
    );
    ResumeOutcome::Failed(TurnFailure::new(FailureCause::Protocol, why))
}

/// Resumes a graph: from a position to the next operation, turn or record. The turn that one of its nodes asks for is
/// prepared like any other.
fn resume_graph(
    graph: &Rc<Graph>,
    suspended: SuspendedExecution,
    input: ResumeInput,
    environment: &ResumeEnvironment<'_>,
) -> ResumeOutcome {
    let result = match input {
        ResumeInput::Entered => environment.agent.wait_result().cloned(),
        ResumeInput::Activity(Ok(result)) => Some(WaitResult::Done(result.into_value())),
        ResumeInput::Activity(Err(why)) | ResumeInput::Refused(why) => {
            Some(WaitResult::Failed(why))
        }
        // The restart policy says whether the operation is done again.
        ResumeInput::Lost(why) => return ResumeOutcome::Failed(lost(&why)),
        ResumeInput::Permitted(permit) => return turn::prepare(permit, environment),
        ResumeInput::TaskDone(result) => Some(result),
    };
    let interpreter = match (suspended, environment.agent.graph()) {
        (SuspendedExecution::Walk(walk), _) => *walk,
        (SuspendedExecution::Entered | SuspendedExecution::Recorded, Some(execution)) => {
            recorded_walk(graph, execution, environment)
        }
        (SuspendedExecution::Entered | SuspendedExecution::Recorded, None) => {
            let around = graph_environment(environment, GraphVariables::Due);
            GraphInterpreter::begin(graph, around)
        }
    };
    let kept = result.clone().filter(|_| interpreter.keeps_result());
    let outcome = walk(interpreter, result, environment.now);
    match (kept, environment.agent.graph()) {
        (Some(kept), Some(execution)) if has_failed(&outcome) => {
            let again = recorded_walk(graph, execution, environment).stopping_after_result();
            record_of_result(again, kept, environment.now).unwrap_or(outcome)
        }
        (Some(_) | None, _) => outcome,
    }
}

/// Returns the walk that begins at the agent's recorded position.
fn recorded_walk(
    graph: &Rc<Graph>,
    execution: &GraphExecution,
    environment: &ResumeEnvironment<'_>,
) -> GraphInterpreter {
    let around = graph_environment(environment, GraphVariables::Taken);
    GraphInterpreter::resume(graph, around, (*execution.state).clone())
}

/// Returns whether a walk ended in a failure.
fn has_failed(outcome: &ResumeOutcome) -> bool {
    let ResumeOutcome::Advanced(advance) = outcome else { return false };
    matches!(advance.next, AdvanceNext::Fail(_) | AdvanceNext::End { error: Some(_), .. })
}

/// Returns the record of a result alone, before what failed after it. A retry begins there, and does not repeat what
/// the result is of.
fn record_of_result(
    mut interpreter: GraphInterpreter,
    result: WaitResult,
    now: Timestamp,
) -> Option<ResumeOutcome> {
    match interpreter.next(Some(result), now) {
        GraphYield::Record(AdvanceNext::Action(NextAction::Walk)) if !interpreter.is_recorded() => {
            Some(ResumeOutcome::Advanced(Box::new(
                interpreter.finish(AdvanceNext::Action(NextAction::Walk)),
            )))
        }
        GraphYield::Record(_) | GraphYield::Operation(_) => None,
    }
}

/// Executes nodes up to the next operation that can be performed now, or to the next record.
///
/// An operation that changes the world runs only after the record of its intent is durable: the graph records the nodes
/// before the operation first, and then comes back to it. An operation that only reads is not recorded, unless it
/// follows a result that must not be lost.
fn walk(
    mut interpreter: GraphInterpreter,
    result: Option<WaitResult>,
    now: Timestamp,
) -> ResumeOutcome {
    let must_record = result.is_some() && interpreter.keeps_result();
    let operation = match interpreter.next(result, now) {
        GraphYield::Record(next) => {
            return ResumeOutcome::Advanced(Box::new(interpreter.finish(next)));
        }
        GraphYield::Operation(operation) => operation,
    };
    let is_free = operation.class() == RecoveryClass::Read && !must_record;
    if is_free || interpreter.is_recorded() {
        let suspended = SuspendedExecution::Walk(Box::new(interpreter.suspend(&operation)));
        return ResumeOutcome::Needs { activity: Activity::Operation(operation), suspended };
    }
    let kind = operation.name().to_owned();
    ResumeOutcome::Advanced(Box::new(
        interpreter.finish(AdvanceNext::Action(NextAction::Operation(kind))),
    ))
}

/// The use of the values for the fields of a graph.
#[derive(Clone, Copy, PartialEq, Eq)]
enum GraphVariables {
    /// The graph begins.
    Due,
    /// They are in its state.
    Taken,
}

/// Returns the environment of a graph for one advance. The walk keeps it from operation to operation.
fn graph_environment(
    environment: &ResumeEnvironment<'_>,
    variables: GraphVariables,
) -> GraphEnvironment {
    let agent = environment.agent;
    let mut builtins = environment.builtins.clone();
    let settings = &environment.settings.variables;
    let input = agent.variables.get("input").or_else(|| agent.spec.variables.get("input"));
    let arguments = input.or_else(|| settings.get("input")).map_or("", String::as_str);
    builtins.insert("arguments".to_owned(), arguments.into());
    if let Some(directory) = &environment.working_dir {
        builtins.insert("PWD".to_owned(), directory.as_str().into());
    }
    let variables = match variables {
        GraphVariables::Taken => Variables::new(),
        GraphVariables::Due => {
            let mut variables = settings.clone();
            variables.extend(agent.placeholder_values());
            variables.remove("input");
            variables
        }
    };
    GraphEnvironment {
        file: agent.current_state.clone(),
        folder: agent.folder(),
        builtins,
        variables,
    }
}

#[cfg(test)]
mod tests;
