//! Checks the programs that a program starts, as far as their files are known.
//!
//! They need values, and have to publish the state that the program waits for.

use super::checked_program::{InstructionKind, Program, StartWorkflow, TextExpression};
use super::walk::instructions;
use crate::language::position::SourcePlace;
use crate::language::report::{FileDiagnostics, quoted};
use crate::language::source::WorkflowSource;

/// Returns the program of a file from its path and its text; `None` if it has errors.
pub(super) type ProgramFileReader = fn(&str, &str, &dyn WorkflowSource) -> Option<Program>;

/// Warns of each start that cannot end as the program expects. `awaited` are the keys of the states that it looks at.
pub(super) fn check(
    program: &Program,
    awaited: &[TextExpression],
    (source, read): (&dyn WorkflowSource, ProgramFileReader),
    report: &mut FileDiagnostics,
) {
    for instruction in program.states.iter().flat_map(|state| instructions(&state.body)) {
        let InstructionKind::StartWorkflow(start) = &instruction.kind else { continue };
        if let Some(started) = read_started(start, source, read) {
            check_values(start, &started, instruction.at, report);
            if !started.metadata.publish_state && awaited.iter().any(|key| is_of(key, start)) {
                let why = format!(
                    "{} does not publish its state, so nobody can wait for it; add `(metadata (publish-state true))` there",
                    quoted(&start.program)
                );
                report.warning(instruction.at, "SX411", why);
            }
        }
    }
}

/// Returns the program of a file; `None` if it is not there, or has errors of its own.
fn read_started(
    start: &StartWorkflow,
    source: &dyn WorkflowSource,
    read_program: ProgramFileReader,
) -> Option<Program> {
    let (folder, file) = start.file()?;
    let read = |source: &dyn WorkflowSource| {
        let text = source.read(&file).ok()?;
        read_program(&source.path(&file), &text, source)
    };
    match folder {
        Some(folder) => read(&*source.within(&folder).ok()?),
        None => read(source),
    }
}

fn check_values(
    start: &StartWorkflow,
    started: &Program,
    at: SourcePlace,
    report: &mut FileDiagnostics,
) {
    let is_given = |key: &str| start.context.iter().any(|(name, _)| name == key);
    let missing: Vec<&str> =
        started.context.iter().map(String::as_str).filter(|key| !is_given(key)).collect();
    let mut needs: Vec<String> = missing.iter().map(|key| format!("@context/{key}")).collect();
    let values: Vec<String> = missing.iter().map(|key| format!("{key} VALUE")).collect();
    let mut fixes = Vec::new();
    if !values.is_empty() {
        fixes.push(format!("`:context ({})`", values.join(" ")));
    }
    if started.needs_branch && start.branch.is_none() {
        needs.push("@branch".to_owned());
        fixes.push("`:branch VALUE`".to_owned());
    }
    if !needs.is_empty() {
        let (program, needs) = (quoted(&start.program), needs.join(", "));
        let why = format!(
            "{program} needs {needs}, so it cannot be started without; give it by {}",
            fixes.join(" and ")
        );
        report.warning(at, "SX412", why);
    }
}

/// Returns whether a key is that of the run that a start makes.
fn is_of(key: &TextExpression, start: &StartWorkflow) -> bool {
    match key {
        TextExpression::Bound(name) => start.bind.as_ref() == Some(name),
        TextExpression::Text(text) => start
            .label
            .as_ref()
            .is_some_and(|label| label.arguments.is_empty() && label.pieces.concat() == **text),
        _ => false,
    }
}
