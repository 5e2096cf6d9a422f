//! The commands of the bodies of `for-each`: each runs by itself, and its outcome goes to its own body.

use std::collections::BTreeMap;

use super::{ProgramInterpreter, ProgramSuspension, shown};
use raymond_model::advance::AdvanceNext;
use raymond_model::body_command::{BodyCommand, CommandId};
use raymond_model::operation::OperationResult;
use raymond_model::operation::ShellCommand;
use raymond_model::program_execution::ProgramWait;

impl ProgramInterpreter<'_> {
    /// Has a command run for the current body, which waits for it. One that runs already keeps its identity.
    pub(super) fn run_for_body<T>(
        &mut self,
        command: ShellCommand,
    ) -> Result<T, ProgramSuspension> {
        let id = self.command.unwrap_or_else(|| {
            self.new_commands += 1;
            CommandId { step: self.environment.step, number: self.new_commands }
        });
        self.command = Some(id);
        let (awaiting, since) = (shown::command(&command.command), self.since());
        self.position.wait = Some(ProgramWait { awaiting, since, until: None, outside: false });
        self.body_commands.push(BodyCommand { id, command });
        Err(ProgramSuspension::Then(AdvanceNext::Wait))
    }

    /// Returns whether commands of bodies run or are due.
    pub(super) fn has_commands(&self) -> bool {
        self.are_commands_running || !self.body_commands.is_empty()
    }

    /// Gives each outcome to the body that its command ran for, until one of them leaves `for-each`.
    pub(super) fn take_outcomes(
        &mut self,
        outcomes: &mut BTreeMap<CommandId, OperationResult>,
    ) -> Result<(), ProgramSuspension> {
        let mut number = 0;
        while let Some(body) = self.position.parallel.get(number) {
            if body.commands().iter().any(|id| outcomes.contains_key(id)) {
                self.in_body(number, |own| own.take_outcomes_of_body(outcomes))?;
            }
            number += 1;
        }
        Ok(())
    }

    fn take_outcomes_of_body(
        &mut self,
        outcomes: &mut BTreeMap<CommandId, OperationResult>,
    ) -> Result<(), ProgramSuspension> {
        let Some(outcome) = self.command.and_then(|id| outcomes.remove(&id)) else {
            return self.take_outcomes(outcomes);
        };
        self.command = None;
        match outcome {
            Ok(output) => self.take_output(&output),
            Err(why) => self.take_failure(why),
        }
    }

    /// Gives the reason why no command could be performed to all bodies that run one.
    pub(super) fn take_failure_of_all(
        &mut self,
        all: &[BodyCommand],
        why: &str,
    ) -> Result<(), ProgramSuspension> {
        let mut outcomes = all.iter().map(|one| (one.id, Err(why.to_owned()))).collect();
        self.take_outcomes(&mut outcomes)
    }
}
