//! The machine, played on small programs: what they ask, wait for, say, and how they end.

mod artifacts;
mod conditions;
mod failures;
mod loops;
mod play;
mod timeouts;
mod values;

use play::Play;

/// A program with the roles `a` and `b`, and these states; each begins a line, the first the second line.
fn program(states: &[&str]) -> String {
    format!("(workflow w (roles (a) (b))\n{})", states.join("\n"))
}

/// A program of one state.
fn state(body: &str) -> String {
    program(&[&format!("(state s {body})")])
}

const SEND: &str = "(action (send-prompt :agent a :template \"go\" :request-id r))";

const AWAIT: &str = "(await (transcript-response :request-id r))";
