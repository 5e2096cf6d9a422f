//! Carries out `user-input`: a person is asked, and the answer is taken under a name.

use super::{ProgramInterpreter, ProgramSuspension, shown};
use crate::position::SourcePlace;
use crate::program::checked_program::{InstructionKind, UserInput};
use raymond_model::advance::AdvanceNext;
use raymond_model::program_execution::ProgramWait;

impl<'environment> ProgramInterpreter<'environment> {
    /// Asks a person, once the values in the question are known.
    pub(super) fn user_input(
        &mut self,
        input: &'environment UserInput,
        at: SourcePlace,
    ) -> Result<(), ProgramSuspension> {
        let text = self.fill(&input.prompt, at)?;
        let now = self.environment.now;
        self.position.wait = Some(ProgramWait {
            awaiting: shown::user_input(&input.bind),
            since: now,
            until: input.timeout_ms.map(|timeout| now.plus(timeout)),
            outside: false,
        });
        self.has_blocked();
        Err(ProgramSuspension::Then(AdvanceNext::Question(Box::new(input.question(text)))))
    }

    /// Returns the question that the program is at.
    pub(super) fn question(&self) -> Option<&'environment UserInput> {
        match &self.instruction()?.kind {
            InstructionKind::UserInput(input) => Some(input),
            _ => None,
        }
    }

    /// Takes the answer to a question, or continues after the time for it.
    pub(super) fn take_answer(
        &mut self,
        input: &'environment UserInput,
    ) -> Result<(), ProgramSuspension> {
        let at = self.here();
        if let Some(answer) = self.answer.take() {
            self.bindings.insert(input.bind.to_string(), answer.to_owned());
            self.next();
            return Ok(());
        }
        let until = self.position.wait.as_ref().and_then(|wait| wait.until);
        if until.is_none_or(|until| until > self.environment.now) {
            return Ok(());
        }
        if let Some(state) = input.on_timeout {
            return self.go_to(state, at);
        }
        let why = format!(
            "nobody answered {} in time; say where to continue: :on-timeout STATE",
            input.bind
        );
        Err(ProgramSuspension::Fail { at, why })
    }
}
