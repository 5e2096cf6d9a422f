//! The decisions about the commands that wait for a run.

use std::collections::{BTreeSet, VecDeque};

use serde::{Deserialize, Serialize};

use super::run_calls::{CarriedCommand, CarriedContent, RunAnswer};
use super::run_head::RunHead;
use super::state::{ObjectState, Undecided};

const COMMANDS: &str = "commands";

/// The most names of removed commands that are known. A call that was cut off, and comes late, finds its name taken.
const REMOVED: usize = 500;

/// The names of commands.
#[derive(Debug, Default, Serialize, Deserialize)]
struct CommandNames {
    waiting: BTreeSet<String>,
    removed: VecDeque<String>,
}

fn key(name: &str) -> String {
    format!("command/{name}")
}

/// Leaves a command, unless its name is or was taken.
pub(super) fn leave(
    head: &mut RunHead,
    command: &CarriedCommand,
    state: &mut ObjectState<'_>,
) -> Result<(), Undecided> {
    let mut names: CommandNames = state.get_or_default(COMMANDS)?;
    if names.removed.contains(&command.name) || !names.waiting.insert(command.name.clone()) {
        return Ok(());
    }
    state.set(&key(&command.name), &command.content)?;
    state.set(COMMANDS, &names)?;
    head.tell_mail(state);
    Ok(())
}

/// Removes a command.
pub(super) fn remove(name: &str, state: &mut ObjectState<'_>) -> Result<(), Undecided> {
    let mut names: CommandNames = state.get_or_default(COMMANDS)?;
    if names.waiting.remove(name) {
        names.removed.push_back(name.to_owned());
        if names.removed.len() > REMOVED {
            names.removed.pop_front();
        }
        state.clear(&key(name));
        state.set(COMMANDS, &names)?;
    }
    Ok(())
}

/// Returns the commands that wait, in the order of their names.
pub(super) fn waiting(state: &ObjectState<'_>) -> Result<RunAnswer, Undecided> {
    let names: CommandNames = state.get_or_default(COMMANDS)?;
    state.need(names.waiting.iter().map(|name| key(name)))?;
    let mut commands = Vec::new();
    for name in names.waiting {
        // It may have been removed since the names were read.
        if let Some(content) = state.get::<CarriedContent>(&key(&name))? {
            commands.push(CarriedCommand { name, content });
        }
    }
    Ok(RunAnswer::Commands(commands))
}
