//! Checks the fields of answers that a program looks at: `(response review :field verdict)`.

use super::definition::{Definition, Expression, Kind, Role};
use super::walk::instructions;
use crate::language::output::SchemaField;
use crate::language::place::Place;
use crate::language::report::{Report, quoted};

/// A field of an answer that a program looks at.
pub(super) struct AnswerField {
    /// The answer.
    pub(super) of: Expression,
    /// The path of the field in it.
    pub(super) path: String,
    /// The place of the path.
    pub(super) at: Place,
}

/// Reports the fields that no answer has.
pub(super) fn check(program: &Definition, fields: &[AnswerField], report: &mut Report) {
    for field in fields {
        match role_of(program, &field.of).map(|role| has_field(role, &field.path)) {
            Some(Err(why)) => report.error(field.at, "SX221", why),
            Some(Ok(false)) => {
                let why = format!(
                    "{} is not `required` by the schema; an answer without it fails the program",
                    quoted(&field.path)
                );
                report.warning(field.at, "SX407", why);
            }
            Some(Ok(true)) | None => {}
        }
    }
}

/// Returns the role whose prompt is answered. The result of a folder has the form that the folder gives it.
fn role_of<'program>(program: &'program Definition, answer: &Expression) -> Option<&'program Role> {
    let all = program.states.iter().flat_map(|state| instructions(&state.body));
    let mut kinds = all.map(|instruction| &instruction.kind);
    match answer {
        Expression::Response(request) => kinds.find_map(|kind| match kind {
            Kind::Send(send) if send.request == *request => program.roles.get(send.role),
            _ => None,
        }),
        Expression::Feedback(role) => {
            let is_folder = |kind: &Kind| matches!(kind, Kind::RunFolder(run) if run.role == *role);
            if kinds.any(is_folder) { None } else { program.roles.get(*role) }
        }
        _ => None,
    }
}

/// Returns whether each answer has the field.
fn has_field(role: &Role, path: &str) -> Result<bool, String> {
    let (name, shown) = (quoted(&role.name), quoted(path));
    let Some(schema) = &role.output else {
        return Err(format!(
            "the role {name} has no `:output`, so its answers have no fields; give it a schema, such as `:output verdict.schema.json`"
        ));
    };
    match schema.field(path) {
        SchemaField::Known { is_required, .. } => Ok(is_required),
        SchemaField::Open => Ok(true),
        SchemaField::Missing { similar } => {
            let hint = similar.map_or_else(
                || "; use one that it has".to_owned(),
                |similar| format!("; did you mean {}?", quoted(similar)),
            );
            Err(format!("the schema of the role {name} has no field {shown}{hint}"))
        }
    }
}
