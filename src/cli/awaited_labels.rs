//! The labels of facts that programs look at, for a hint about a label that none of them does.

use std::collections::BTreeSet;

use super::list::all;
use crate::domain::printable::one_line;
use crate::language::hint::closest;
use crate::language::program::read::read;
use crate::language::source::WorkflowSource;
use crate::runtime::Workflow;
use crate::store::dataspace::{Dataspace, DefinedProgram};
use crate::store::layout::RunsRoot;

/// Returns a hint about a label that no unfinished run and no defined program looks at, if there are any of these.
pub(super) fn hint(root: &RunsRoot, space: &Dataspace, label: &str) -> Option<String> {
    let mut known = BTreeSet::new();
    for run in all(root).unwrap_or_default() {
        let Ok(view) = run.view else { continue };
        if view.run.can_resume() {
            known.extend(view.run.definitions.values().flat_map(|own| own.labels.clone()));
        }
    }
    if known.contains(label) {
        return None;
    }
    for defined in space.all_defined().unwrap_or_default().defined {
        known.extend(labels_of(&defined));
    }
    if known.is_empty() || known.contains(label) {
        return None;
    }
    let meant = closest(label, known.iter().map(String::as_str));
    let meant = meant.map_or(String::new(), |meant| format!("; did you mean {}?", one_line(meant)));
    let label = one_line(label);
    Some(format!(
        "no unfinished run and no defined program looks at facts of the label {label}{meant}"
    ))
}

fn labels_of(defined: &DefinedProgram) -> BTreeSet<String> {
    let Ok(Workflow { scope, entry, .. }) = Workflow::kept(&defined.file) else {
        return BTreeSet::new();
    };
    let reading = read(&scope.path(&entry), &defined.text, &scope);
    reading.program.map(|program| program.labels).unwrap_or_default()
}
