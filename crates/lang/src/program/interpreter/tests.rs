//! Tests of the interpreter with small programs: their requests, waits, messages, and endings.

mod artifacts;
mod commands;
mod conditions;
mod ended_runs;
mod failures;
mod loops;
mod parallel;
mod play;
mod publish;
mod selected;
mod starts;
mod timeouts;
mod values;

use play::Play;

/// Returns a program with the roles `a` and `b`, and these states, one per line from the second line on.
fn program(states: &[&str]) -> String {
    format!("(workflow w (roles (a) (b))\n{})", states.join("\n"))
}

/// Returns a program of one state.
fn state(body: &str) -> String {
    program(&[&format!("(state s {body})")])
}

const SEND: &str = "(action (send-prompt :agent a :template \"go\" :request-id r))";

const AWAIT: &str = "(await (transcript-response :request-id r))";
