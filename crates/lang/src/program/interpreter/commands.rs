//! Carries out `run`: the command is an activity, and its output is taken under a name.

use serde_json::Value;

use super::{ProgramInterpreter, ProgramSuspension, shown};
use crate::position::SourcePlace;
use crate::program::checked_program::{InstructionKind, ProgramCommand, RunRepetition};
use raymond_model::activity::Activity;
use raymond_model::operation::ShellCommand;

impl<'environment> ProgramInterpreter<'environment> {
    /// Makes the command due, once the values of its arguments are known.
    pub(super) fn run_command(
        &mut self,
        run: &'environment ProgramCommand,
        at: SourcePlace,
    ) -> Result<(), ProgramSuspension> {
        for (number, argument) in run.arguments.iter().enumerate() {
            self.argument(number, Some(argument), at)?;
        }
        let unless = match &run.repetition {
            RunRepetition::Unless(test) => Some(test.clone()),
            RunRepetition::Unknown | RunRepetition::Once | RunRepetition::Idempotent => None,
        };
        let command = ShellCommand {
            command: run.command.clone(),
            arguments: self.position.partial.clone(),
            cwd: run.cwd.clone(),
            timeout_ms: run.timeout_ms,
            any_exit_code: run.bind.is_some(),
            unless,
            idempotent: run.repetition == RunRepetition::Idempotent,
            once: run.repetition == RunRepetition::Once,
        };
        if self.depth > 0 {
            self.run_for_body(command)
        } else {
            self.due(Activity::Command(command))
        }
    }

    /// Takes the output of the command that was due.
    pub(super) fn take_output(&mut self, output: &Value) -> Result<(), ProgramSuspension> {
        self.has_blocked();
        let Some(run) = self.command() else { return Ok(()) };
        let at = self.here();
        let text = |key: &str| output.get(key).and_then(Value::as_str).unwrap_or_default();
        let code = output.get("exit_code").and_then(Value::as_i64).unwrap_or_default();
        let is_skipped = output.get("skipped").and_then(Value::as_bool).unwrap_or_default();
        self.bind_output(run, [text("stdout"), text("stderr")], &code.to_string(), is_skipped);
        if let Some(state) = run.on_error.filter(|_| code != 0) {
            let last = text("stderr").lines().rev().find(|line| !line.trim().is_empty());
            let why = last.map_or(String::new(), |line| format!(": {line}"));
            let shown = shown::command(&run.command);
            self.log(format!("{shown} exited with code {code}{why}"), true);
            return self.go_to(state, at);
        }
        self.next();
        Ok(())
    }

    /// Continues after an activity that has failed: in the state of its `:on-error`, if it has one.
    pub(super) fn take_failure(&mut self, why: String) -> Result<(), ProgramSuspension> {
        if let Some(start) = self.start() {
            return self.take_failed_start(start, &why);
        }
        let at = self.here();
        let Some((run, state)) = self.command().and_then(|run| Some((run, run.on_error?))) else {
            return Err(ProgramSuspension::Fail { at, why });
        };
        self.has_blocked();
        self.log(format!("{} failed: {why}", shown::command(&run.command)), true);
        self.bind_output(run, ["", &why], "", false);
        self.go_to(state, at)
    }

    /// Returns the command that the program is at.
    fn command(&self) -> Option<&'environment ProgramCommand> {
        match &self.instruction()?.kind {
            InstructionKind::Run(run) => Some(run),
            _ => None,
        }
    }

    fn bind_output(
        &mut self,
        run: &ProgramCommand,
        texts: [&str; 2],
        code: &str,
        is_skipped: bool,
    ) {
        let Some(name) = &run.bind else { return };
        // As in a shell, the line breaks at the end do not count.
        let [stdout, stderr] = texts.map(|text| text.trim_end_matches('\n').to_owned());
        self.bindings.insert(name.to_string(), stdout);
        self.bindings.insert(format!("{name}/stderr"), stderr);
        self.bindings.insert(format!("{name}/exit-code"), code.to_owned());
        self.bindings.insert(format!("{name}/skipped"), is_skipped.to_string());
    }
}
