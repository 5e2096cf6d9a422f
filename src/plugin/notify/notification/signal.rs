//! The signals that programs wait for, and the commands that assert them.

use crate::domain::event::{AdvancePosition, Advanced, NextAction};

/// Returns the awaited thing of a program that begins to wait for a signal.
pub(super) fn awaited_signal(advanced: &Advanced) -> Option<&str> {
    let AdvancePosition::Program(progress) = &advanced.position else { return None };
    let awaiting = progress.awaiting.as_deref()?;
    let is_waiting = advanced.next_action == NextAction::Wait
        && progress.position.wait.as_ref().is_some_and(|wait| wait.outside);
    (is_waiting && awaiting.contains(SIGNAL)).then_some(awaiting)
}

/// The beginning of a signal in the words of a program.
const SIGNAL: &str = "(signal ";

/// Returns the command that asserts the first awaited signal.
pub(super) fn signal_command(awaited: &str) -> String {
    let (_, rest) = awaited.split_once(SIGNAL).unwrap_or_default();
    let end = |text: &str| text.find([' ', ')']).unwrap_or(text.len());
    let (label, rest) = rest.split_at(end(rest));
    let key = rest.strip_prefix(" :key ").map(|key| match key.strip_prefix('"') {
        Some(quoted) => format!("\"{}\"", quoted.split('"').next().unwrap_or_default()),
        None => key[..end(key)].to_owned(),
    });
    let key = key.map(|key| format!(" --key {key}")).unwrap_or_default();
    format!("raymond signal {label}{key}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_asserts_the_first_awaited_signal() {
        let table = [
            ("(signal go)", "raymond signal go"),
            ("(and (signal a/b :key t :equals yes) (signal c))", "raymond signal a/b --key t"),
            ("(signal go :key \"a b\")", "raymond signal go --key \"a b\""),
        ];
        for (awaited, command) in table {
            assert_eq!(signal_command(awaited), command);
        }
    }
}
