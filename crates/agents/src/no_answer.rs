//! The rule for what is an answer: a turn yields a reply only if the model was asked and finished. Pure.
//!
//! Neither the exit code nor the subtype says so: a prompt that a hook blocks ends with `success`, and with a text that
//! quotes the prompt. A reply that is empty is judged with the other replies, because its agent can be reminded.

use super::message;
use super::stream::answer::without_prompt;
use super::stream::{StreamParser, TurnResult, excerpt};
use raymond_model::turn::{FailureCause, says_nothing};

/// The ends of a turn that hooks bring about.
const ENDED_BY_HOOK: [&str; 2] = ["hook_stopped", "tool_deferred"];

/// Words of the program about a prompt that a hook has stopped.
const STOPPED_BY_HOOK: [&str; 2] = ["blocked by hook", "stopped by hook"];

/// Words of the program about a command that it cannot execute.
const NO_COMMAND: [&str; 2] = ["Unknown command:", "isn't available in this environment"];

/// Advice for a hook that ended a turn.
const HOOK_ADVICE: &str =
    "; change the hook in the settings of Claude Code, then continue with `raymond retry`";

/// Returns why a turn that ended without an error has no answer; `None` if it has one.
pub fn why_no_answer(stream: &StreamParser, result: &TurnResult) -> Option<(FailureCause, String)> {
    let said = result.text.as_deref().unwrap_or_default();
    if let Some(why) = stream.answered_requests.refusal(message::INITIALIZE) {
        let why = format!("Claude Code refused to renew the system prompt: {}", excerpt(why));
        return Some((FailureCause::Rejected, why));
    }
    if result.asked_no_model() {
        let quoted = without_prompt(said);
        let is_stopped = quoted != said || STOPPED_BY_HOOK.iter().any(|words| said.contains(words));
        let said = excerpt(quoted);
        if let Some(hook) = stream.traces.stopping_hook().or(is_stopped.then_some(&said)) {
            let why =
                format!("a hook stopped the prompt, and no model was asked: {hook}{HOOK_ADVICE}");
            return Some((FailureCause::Rejected, why));
        }
        if !stream.traces.runs_command {
            let why = format!("Claude Code ended the turn without asking the model: \"{said}\"");
            return Some((FailureCause::Crash, why));
        }
        let is_unknown = NO_COMMAND.iter().any(|words| said.contains(words));
        let why = format!("Claude Code cannot run the command: {said}");
        return is_unknown.then_some((FailureCause::Rejected, why));
    }
    if let Some(reason) = result.terminal_reason.as_deref().filter(|_| !result.is_finished()) {
        let ended = format!("ended the turn before the model had finished ({reason})");
        return Some(if ENDED_BY_HOOK.contains(&reason) {
            (FailureCause::Rejected, format!("a hook {ended}{HOOK_ADVICE}"))
        } else {
            (FailureCause::Crash, format!("Claude Code {ended}"))
        });
    }
    let is_empty = says_nothing(said) && result.structured.is_none();
    let hook = stream.traces.looping_hook().filter(|_| is_empty)?;
    let why = format!(
        "a Stop hook kept the turn from ending until Claude Code gave up, and the model has not answered: {hook}{HOOK_ADVICE}"
    );
    Some((FailureCause::Rejected, why))
}

#[cfg(test)]
mod tests;
