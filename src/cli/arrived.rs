//! The line about what a stopped run waits for and what has come since: answers in its inbox, and facts.

use std::fmt::Write as _;

use super::answer::taken_from_inbox;
use super::exit::Error;
use crate::domain::fact::{Fact, FactChange, FactSelection};
use crate::domain::printable::printable_line;
use crate::domain::run::PauseReason;
use crate::runtime::directories;
use crate::store::dataspace::{Dataspace, DataspaceWatcher};
use crate::store::layout::RunsRoot;
use crate::store::view::RunView;

/// Returns a line for each answer and each fact that has come since the run was paused, and how it goes on; empty if
/// none has.
///
/// # Errors
/// [`Error::Store`] if they cannot be read.
pub(super) fn arrived(root: &RunsRoot, view: &RunView) -> Result<String, Error> {
    let run = &view.run;
    let waits = matches!(run.pause, Some(PauseReason::Asking { .. } | PauseReason::Waiting { .. }));
    if view.held || !waits {
        return Ok(String::new());
    }
    let (id, key) = (&run.workflow_id, directories::user_state()?.key()?);
    let mut lines = String::new();
    for answered in taken_from_inbox(&mut run.clone(), &root.run(id), &key)? {
        let (agent, node) = (&answered.turn.agent, &answered.node);
        let line = printable_line(&format!("{agent}/{node} is answered: {}", answered.answer.raw));
        let _ = writeln!(lines, "{line}");
    }
    let labels: Vec<String> =
        run.definitions.values().flat_map(|own| own.labels.iter().cloned()).collect();
    if run.external_waits().next().is_some() && !labels.is_empty() {
        let real = directories::root(root.path())?;
        let space = Dataspace::of(&real).with_key(&key);
        let seen =
            DataspaceWatcher::new(space).changes(&FactSelection::of_labels(&labels), &run.facts)?;
        for change in seen.changes {
            if let FactChange::Asserted(Fact { label, key, .. }) = change {
                let line = format!("{label} {key}");
                let line = printable_line(line.trim_end());
                let _ = writeln!(lines, "{line} is asserted since it stopped");
            }
        }
    }
    if !lines.is_empty() {
        let _ = writeln!(lines, "it goes on with: raymond resume {id}");
    }
    Ok(lines)
}
