//! Resumes a program: from a position to the next thing that it waits for.

use super::{ResumeEnvironment, ResumeInput, ResumeOutcome, SuspendedExecution, turn};
use crate::program::checked_program::Program;
use crate::program::interpreter::{ProgramEnvironment, advance};
use raymond_model::decide::ProgramStart;

/// Resumes a program. It takes no turns itself: those are its roles', which answer by requests.
pub(super) fn resume_program(
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
        ResumeInput::Entered => None,
        ResumeInput::Permitted(permit) => return turn::prepare(permit, environment),
        ResumeInput::Replied { rules, reply } => return turn::judge(*rules, &reply, environment),
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
