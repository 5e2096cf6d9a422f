//! Resumes a graph: from a position to the next operation, turn or record.

use super::{ResumeEnvironment, ResumeInput, ResumeOutcome, SuspendedExecution, lost, turn};
use crate::graph::checked_graph::Graph;
use crate::graph::interpreter::{GraphEnvironment, GraphInterpreter, GraphYield, SuspendedWalk};
use raymond_model::activity::Activity;
use raymond_model::advance::{Advance, AdvanceNext};
use raymond_model::graph_execution::{GraphExecution, WaitResult};
use raymond_model::operation::RecoveryClass;
use raymond_model::time::Timestamp;
use raymond_model::transition::Variables;

/// Resumes a graph. The turn that one of its nodes asks for is prepared and judged like any other.
pub(super) fn resume_graph(
    graph: &Graph,
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
        ResumeInput::Replied { rules, reply } => {
            match turn::task_result(*rules, &reply, environment) {
                Ok(result) => Some(result),
                Err(outcome) => return *outcome,
            }
        }
    };
    let interpreter = match (suspended, environment.agent.graph()) {
        (SuspendedExecution::Walk(walk), _) => GraphInterpreter::continue_with(graph, *walk),
        (SuspendedExecution::Entered | SuspendedExecution::Recorded, Some(own)) => {
            recorded_walk(graph, own, environment)
        }
        (SuspendedExecution::Entered | SuspendedExecution::Recorded, None) => {
            let around = graph_environment(environment, GraphVariables::Due);
            GraphInterpreter::begin(graph, around)
        }
    };
    let kept = result.clone().filter(|_| interpreter.keeps_result());
    let outcome = walk(interpreter, result, environment.now);
    match (kept, environment.agent.graph()) {
        (Some(kept), Some(own)) if has_failed(&outcome) => {
            let again = recorded_walk(graph, own, environment).stopping_after_result();
            record_of_result(again, kept, environment.now).unwrap_or(outcome)
        }
        (Some(_) | None, _) => outcome,
    }
}

/// Returns the walk that begins at the agent's recorded position.
fn recorded_walk<'graph>(
    graph: &'graph Graph,
    own: &GraphExecution,
    environment: &ResumeEnvironment<'_>,
) -> GraphInterpreter<'graph> {
    let around = graph_environment(environment, GraphVariables::Taken);
    GraphInterpreter::resume(graph, around, (*own.state).clone())
}

/// Returns whether a walk ended in a failure.
fn has_failed(outcome: &ResumeOutcome) -> bool {
    let ResumeOutcome::Advanced(advance) = outcome else { return false };
    matches!(advance.next, AdvanceNext::Fail(_) | AdvanceNext::End { error: Some(_), .. })
}

/// Returns the record of a result alone, before what failed after it. A retry begins there, and does not repeat what
/// the result is of.
fn record_of_result(
    mut interpreter: GraphInterpreter<'_>,
    result: WaitResult,
    now: Timestamp,
) -> Option<ResumeOutcome> {
    match interpreter.next(Some(result), now) {
        GraphYield::Record(AdvanceNext::Continue) if !interpreter.is_recorded() => {
            Some(ResumeOutcome::Advanced(Box::new(interpreter.finish(AdvanceNext::Continue))))
        }
        GraphYield::Record(_) | GraphYield::Operation(_) => None,
    }
}

/// Returns the advance of a walk whose operation was ended, if there is one to keep.
pub(super) fn interrupted_walk(graph: &Graph, walk: SuspendedWalk) -> Option<Advance> {
    let walk = GraphInterpreter::continue_with(graph, walk);
    walk.is_worth_keeping().then(|| walk.finish(AdvanceNext::Continue))
}

/// Executes nodes up to the next operation that can be performed now, or to the next record.
///
/// An operation that changes the world runs only after the record of its intent is durable: the graph records the nodes
/// before the operation first, and then comes back to it. An operation that only reads is not recorded, unless it
/// follows a result that must not be lost.
fn walk(
    mut interpreter: GraphInterpreter<'_>,
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
    ResumeOutcome::Advanced(Box::new(interpreter.finish(AdvanceNext::Activity(kind))))
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
    let own = agent.variables.get("input").or_else(|| agent.spec.variables.get("input"));
    let arguments = own.or_else(|| settings.get("input")).map_or("", String::as_str);
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
