//! Reads the commands of a program.

use super::checked_program::{
    InstructionKind, Program, ProgramCommand, RunRepetition, TextExpression,
};
use super::fields::FormFields;
use super::reader::ProgramReader;
use super::walk::expressions;
use crate::report::{FileDiagnostics, quoted};

/// The values of a command besides its output: `@NAME/exit-code`.
pub(super) const OUTPUT_PARTS: [&str; 3] = ["exit-code", "stderr", "skipped"];

impl ProgramReader<'_> {
    /// Reads `run`.
    pub(super) fn run_command(&mut self, fields: &FormFields<'_>) -> Option<ProgramCommand> {
        self.exactly(fields, []);
        let command = self.need(fields, "command").and_then(|form| {
            let wanted = "the text of the command; a value goes into `:args` and is `\"$1\"` in the command;";
            let text = self.text(form, wanted)?;
            if text.trim().is_empty() {
                self.report.error(form.at, "SX205", "the command is empty; write one");
                return None;
            }
            if text.contains("~a") && fields.get("args").is_some() {
                let why = "a command has no places `~a`, because the shell would read what is put there as code; write `\"$1\"` for the first value of `:args`";
                self.report.error(form.at, "SX212", why);
                return None;
            }
            Some(text.to_owned())
        });
        let arguments = self.arguments(fields).and_then(|forms| {
            let values: Vec<_> = forms.into_iter().map(|form| self.value(form)).collect();
            values.into_iter().collect::<Option<Vec<_>>>()
        });
        let cwd = fields.get("cwd").and_then(|form| self.directory(form));
        let timeout = fields.get("timeout");
        let timeout_ms = timeout.map_or(Some(None), |form| self.duration(form).map(Some));
        let repetition = self.repetition(fields);
        let bind = fields.get("as");
        let bind = bind.map_or(Some(None), |form| self.taken_as(form, &OUTPUT_PARTS).map(Some));
        let on_error = self.optional_state(fields, "on-error");
        Some(ProgramCommand {
            command: command?,
            arguments: arguments?,
            cwd,
            timeout_ms: timeout_ms?,
            repetition: repetition?,
            bind: bind?,
            on_error: on_error?,
        })
    }

    /// Reads the meaning of a repetition: `:unless`, `:once` or `:idempotent`.
    fn repetition(&mut self, fields: &FormFields<'_>) -> Option<RunRepetition> {
        let given =
            ["unless", "once", "idempotent"].map(|key| fields.get(key).map(|form| (key, form)));
        let mut given = given.into_iter().flatten();
        let Some((key, form)) = given.next() else { return Some(RunRepetition::Unknown) };
        if let Some((other, form)) = given.next() {
            let why = format!(
                "{} and {} contradict each other; write one of them",
                quoted(&format!(":{key}")),
                quoted(&format!(":{other}"))
            );
            self.report.error(form.at, "SX204", why);
            return None;
        }
        if key == "unless" {
            let test = self.text(form, "a command that succeeds if the other one was done")?;
            return Some(RunRepetition::Unless(test.to_owned()));
        }
        Some(match self.boolean(form)? {
            false => RunRepetition::Unknown,
            true if key == "once" => RunRepetition::Once,
            true => RunRepetition::Idempotent,
        })
    }
}

/// Warns of each command whose failure is not noticed: its output has a name, but its exit code is not read.
pub(super) fn check(program: &Program, report: &mut FileDiagnostics) {
    let all = || program.instructions();
    let is_read = |name: &str| {
        let code = format!("{name}/exit-code");
        let reads =
            |value: &&TextExpression| matches!(value, TextExpression::Bound(own) if **own == *code);
        all().flat_map(|one| expressions(&one.kind)).any(|value| reads(&value))
    };
    let mut warned = Vec::new();
    for instruction in all() {
        let InstructionKind::Run(ProgramCommand { bind: Some(name), on_error: None, .. }) =
            &instruction.kind
        else {
            continue;
        };
        if !is_read(name) && !warned.contains(&instruction.at) {
            warned.push(instruction.at);
            let why = format!(
                "nothing checks {}, so a failure of this command goes unnoticed; check it in a branch, or write `:on-error STATE`",
                quoted(&format!("@{name}/exit-code"))
            );
            report.warning(instruction.at, "SX410", why);
        }
    }
}
