//! The fields and verdicts of answers that a program reads, and the check of the fields: `(response review :field verdict)`.

use super::checked_program::{
    InstructionKind, Program, ProgramRole, ProgramSymbol, TextExpression,
};
use super::walk::instructions;
use crate::language::output::{OutputSchema, SchemaField};
use crate::language::position::SourcePlace;
use crate::language::report::{FileDiagnostics, quoted};

/// A field of an answer that a program reads.
pub(super) struct AnswerField {
    /// The answer.
    pub(super) of: TextExpression,
    /// The path of the field in the answer.
    pub(super) path: String,
    /// The place of the path.
    pub(super) at: SourcePlace,
}

/// A read of a verdict.
pub(super) struct VerdictUse {
    /// The request whose answer has it.
    pub(super) request: ProgramSymbol,
    /// The word it is compared with.
    pub(super) word: Option<String>,
    /// The place of the word, or of the verdict.
    pub(super) at: SourcePlace,
}

/// Reports the fields that no answer has, and those that an answer may lack.
pub(super) fn check(program: &Program, fields: &[AnswerField], report: &mut FileDiagnostics) {
    for field in fields {
        match prompt_of(program, &field.of).map(|prompt| has_field(prompt, &field.path)) {
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

/// The prompt whose answer has a field: the role that is asked, and the schema.
type AnsweredPrompt<'program> = (&'program ProgramRole, Option<&'program OutputSchema>);

/// Returns the prompt that is answered; `None` for the result of a folder, which has its own form.
fn prompt_of<'program>(
    program: &'program Program,
    answer: &TextExpression,
) -> Option<AnsweredPrompt<'program>> {
    let all = program.states.iter().flat_map(|state| instructions(&state.body));
    let mut kinds = all.map(|instruction| &instruction.kind);
    match answer {
        TextExpression::Response(request) => kinds.find_map(|kind| match kind {
            InstructionKind::Send(send) if send.request == *request => {
                let role = program.roles.get(send.role)?;
                Some((role, send.output.as_ref().or(role.output.as_ref())))
            }
            _ => None,
        }),
        TextExpression::Feedback(role) => {
            let is_other = |kind: &InstructionKind| match kind {
                InstructionKind::RunFolder(run) => run.role == *role,
                InstructionKind::Send(send) => send.role == *role && send.output.is_some(),
                _ => false,
            };
            let role = program.roles.get(*role)?;
            if kinds.any(is_other) { None } else { Some((role, role.output.as_ref())) }
        }
        _ => None,
    }
}

/// Returns whether each answer has the field.
fn has_field((role, schema): AnsweredPrompt<'_>, path: &str) -> Result<bool, String> {
    let (name, shown) = (quoted(&role.name), quoted(path));
    let Some(schema) = schema else {
        return Err(format!(
            "the role {name} has no `:output`, so its answers have no fields; give it a schema, such as `:output verdict.schema.json`"
        ));
    };
    match schema.field(path) {
        SchemaField::Known { is_required, .. } => Ok(is_required),
        SchemaField::Open => Ok(true),
        SchemaField::Missing { similar } => {
            let hint = similar.map_or_else(
                || "; use a field of that schema".to_owned(),
                |similar| format!("; did you mean {}?", quoted(similar)),
            );
            Err(format!("the schema of the role {name} has no field {shown}{hint}"))
        }
    }
}
