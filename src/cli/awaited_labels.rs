//! The facts that programs look at, for a hint about a fact that none of them does.

use super::list::all;
use crate::domain::fact::FactSelection;
use crate::domain::printable::one_line;
use crate::language::hint::closest;
use crate::language::program::checked_program::Program;
use crate::language::program::read::read;
use crate::language::source::WorkflowSource;
use crate::runtime::{Workflow, run_facts};
use crate::store::dataspace::{Dataspace, DefinedProgram};
use crate::store::layout::RunsRoot;

/// The facts that somebody looks at.
#[derive(Default)]
struct SoughtByPrograms {
    /// Those of unfinished runs.
    of_runs: FactSelection,
    /// The labels of programs that are defined, or that a run may look at later.
    labels: Vec<String>,
}

/// Returns a hint about a fact that no unfinished run and no defined program looks at; `None` if one does.
pub(super) fn hint(
    root: &RunsRoot,
    space: &Dataspace,
    (label, key): (&str, &str),
) -> Option<String> {
    let sought = sought(root, space);
    let SoughtByPrograms { of_runs, labels } = &sought;
    if of_runs.has_key(label, key) {
        return None;
    }
    let shown = one_line(label);
    let meant = |closest: Option<&str>| {
        closest.map_or(String::new(), |meant| format!("; did you mean {}?", one_line(meant)))
    };
    if let Some(keys) = of_runs.keys_of(label) {
        let meant = closest(key, keys.iter().copied());
        let meant = meant.or_else(|| keys.first().copied().filter(|_| keys.len() == 1));
        let meant = meant
            .map_or(String::new(), |meant| format!("; did you mean --key {}?", one_line(meant)));
        let key = if key.is_empty() {
            "the empty key".to_owned()
        } else {
            format!("the key {}", one_line(key))
        };
        return Some(format!("no unfinished run looks at the fact {shown} of {key} now{meant}"));
    }
    if labels.iter().any(|own| own == label) {
        return None;
    }
    if of_runs.is_empty() && labels.is_empty() {
        return Some(format!(
            "nobody waits for {shown}: no unfinished run and no defined program looks at any fact"
        ));
    }
    let known = of_runs.labels().chain(labels.iter().map(String::as_str));
    let meant = meant(closest(label, known));
    Some(format!(
        "no unfinished run and no defined program looks at facts of the label {shown}{meant}"
    ))
}

fn sought(root: &RunsRoot, space: &Dataspace) -> SoughtByPrograms {
    let mut sought = SoughtByPrograms::default();
    for run in all(root).unwrap_or_default() {
        let Ok(view) = run.view else { continue };
        if view.run.can_resume() {
            sought.of_runs.extend(&run_facts::sought(&view.run));
            sought.labels.extend(view.run.definitions.values().flat_map(|own| own.labels.clone()));
        }
    }
    for defined in space.all_defined().unwrap_or_default().defined {
        sought.labels.extend(program_of(&defined).map(|own| own.labels).unwrap_or_default());
    }
    sought
}

fn program_of(defined: &DefinedProgram) -> Option<Program> {
    let Workflow { scope, entry, .. } = Workflow::kept(&defined.file).ok()?;
    read(&scope.path(&entry), &defined.text, &scope).program
}
