//! The prompt of the turn that is due, for a person who wants to see or edit it. Pure.

use super::ResumeEnvironment;
use super::turn::read;
use raymond_model::id::StepMode;

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
