//! The signals that programs wait for, and the commands that assert them.

use crate::domain::awaited_signal::AwaitedSignal;
use crate::domain::event::{NextAction, ProgramAdvanced};

/// Returns the awaited thing of a program that begins to wait for a signal.
pub(super) fn awaited_signal(advanced: &ProgramAdvanced) -> Option<&str> {
    let progress = &advanced.progress;
    let awaiting = progress.awaiting.as_deref()?;
    let is_waiting = *advanced.next_action() == NextAction::Wait
        && progress.position.wait.as_ref().is_some_and(|wait| wait.outside);
    let is_for_people = || AwaitedSignal::all_in(awaiting).iter().any(AwaitedSignal::is_for_people);
    (is_waiting && is_for_people()).then_some(awaiting)
}

/// Returns the command that asserts the first signal that people assert.
pub(super) fn signal_command(awaited: &str) -> String {
    let all = AwaitedSignal::all_in(awaited);
    let first = all.into_iter().find(AwaitedSignal::is_for_people).unwrap_or_default();
    let is_plain = |key: &str| !key.contains(|c: char| c.is_whitespace() || "\"'$`\\".contains(c));
    let key = first.key.map(|key| {
        if is_plain(&key) && !key.is_empty() {
            format!(" --key {key}")
        } else {
            format!(" --key {key:?}")
        }
    });
    format!("raymond signal {}{}", first.label, key.unwrap_or_default())
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
            ("(or (signal workflow/state :key t) (signal go))", "raymond signal go"),
        ];
        for (awaited, command) in table {
            assert_eq!(signal_command(awaited), command);
        }
    }
}
