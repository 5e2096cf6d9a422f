//! Carries out `run` and `user-input`, and publishes an execution and its state as facts.
//!
//! The command of a `run` is an activity, and its output is taken under a name.

use std::collections::BTreeMap;

use raymond_model::activity::{Activity, ActivityResult, BodyCommand, CommandId};
use raymond_model::advance::AdvanceNext;
use raymond_model::event::NextAction;
use raymond_model::fact::Fact;
use raymond_model::graph_execution::{
    COMPLETED, FAILED, INSTANCE_LABEL, ProgramEnding, ProgramExecution, ProgramWait, STATE_LABEL,
    is_ending, running,
};
use raymond_model::operation::{OperationResult, ShellCommand};
use serde_json::Value;

use super::{ProgramInterpreter, ProgramSuspension, shown};
use crate::program::checked_program::{
    InstructionKind, ProgramCommand, ProgramCondition, RunRepetition, TextExpression, UserInput,
    parts,
};

impl<'environment> ProgramInterpreter<'environment> {
    /// Makes the command due, once the values of its arguments are known.
    pub(super) fn run_command(
        &mut self,
        run: &'environment ProgramCommand,
    ) -> Result<(), ProgramSuspension> {
        for (number, argument) in run.arguments.iter().enumerate() {
            self.argument(number, Some(argument))?;
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

    /// Takes the output of the pending command.
    pub(super) fn take_output(&mut self, output: &Value) -> Result<(), ProgramSuspension> {
        self.has_blocked();
        let Some(run) = self.command() else { return Ok(()) };
        let text = |key: &str| output.get(key).and_then(Value::as_str).unwrap_or_default();
        let code = output.get("exit_code").and_then(Value::as_i64).unwrap_or_default();
        let is_skipped = output.get("skipped").and_then(Value::as_bool).unwrap_or_default();
        self.bind_output(run, [text("stdout"), text("stderr")], &code.to_string(), is_skipped);
        if let Some(state) = run.on_error.filter(|_| code != 0) {
            let last = text("stderr").lines().rev().find(|line| !line.trim().is_empty());
            let why = last.map_or(String::new(), |line| format!(": {line}"));
            let shown = shown::command(&run.command);
            self.log(format!("{shown} exited with code {code}{why}"), true);
            return self.go_to(state);
        }
        self.next();
        Ok(())
    }

    /// Continues after an activity that has failed: in the state of its `:on-error`, if it has one.
    pub(super) fn take_failure(&mut self, why: String) -> Result<(), ProgramSuspension> {
        if let Some(start) = self.start() {
            return self.take_failed_start(start, &why);
        }
        let Some((run, state)) = self.command().and_then(|run| Some((run, run.on_error?))) else {
            return self.fail(why);
        };
        self.has_blocked();
        self.log(format!("{} failed: {why}", shown::command(&run.command)), true);
        self.bind_output(run, ["", &why], "", false);
        self.go_to(state)
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

// The commands of the bodies of `for-each`: each runs by itself, and its outcome goes to its own body.

impl ProgramInterpreter<'_> {
    /// Has a command run for the current body, which waits for it. A command that already runs keeps its identity.
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
        Err(ProgramSuspension::action(NextAction::Wait))
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
                self.in_body(number, |body| body.take_outcomes_of_body(outcomes))?;
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
        let mut outcomes = all.iter().map(|command| (command.id, Err(why.to_owned()))).collect();
        self.take_outcomes(&mut outcomes)
    }
}

// Carries out `user-input`: a person is asked, and the answer is taken under a name.

impl<'environment> ProgramInterpreter<'environment> {
    /// Asks a person, once the values in the question are known.
    pub(super) fn user_input(
        &mut self,
        input: &'environment UserInput,
    ) -> Result<(), ProgramSuspension> {
        let text = self.fill(&input.prompt)?;
        let now = self.environment.now;
        self.position.wait = Some(ProgramWait {
            awaiting: shown::user_input(&input.bind),
            since: now,
            until: input.timeout.after_ms.map(|timeout| now.plus(timeout)),
            outside: false,
        });
        self.has_blocked();
        Err(ProgramSuspension::action(NextAction::Question(Box::new(input.question(text)))))
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
        if let Some(answer) = self.answer.take() {
            self.bindings.insert(input.bind.to_string(), answer.to_owned());
            self.next();
            return Ok(());
        }
        let until = self.position.wait.as_ref().and_then(|wait| wait.until);
        if until.is_none_or(|until| until > self.environment.now) {
            return Ok(());
        }
        match input.timeout.state {
            Some(state) => self.go_to(state),
            None => self.fail(format!(
                "nobody answered {} in time; say where to continue: :on-timeout STATE",
                input.bind
            )),
        }
    }
}

// Publishes an execution and its state as facts, for programs of other runs: `(metadata (publish-state true))`.
//
// The execution is asserted once, before its first state. The state is asserted before its first instruction, and
// before the end. So the end itself waits in the position until the fact holds.

/// The label of the facts that tell the programs that are defined.
pub const DEFINITION_LABEL: &str = "workflow/definition";

/// The mark in the position of an execution that is published, and whose state is not yet.
const INSTANCE_MARK: &str = "instance";

/// Returns the labels and the values of the facts that tell of an execution at its position, as far as it has
/// published them.
pub fn published_facts(execution: &ProgramExecution) -> Vec<(&'static str, String)> {
    let Some(published) = &execution.position.published else { return Vec::new() };
    let state = (published != INSTANCE_MARK).then(|| (STATE_LABEL, published.clone()));
    let instance = (INSTANCE_LABEL, shown::instance(execution));
    [Some(instance), state].into_iter().flatten().collect()
}

impl ProgramInterpreter<'_> {
    /// Makes the fact due that says in which state the program is, unless it holds already.
    pub(super) fn publish_state(&mut self) -> Result<(), ProgramSuspension> {
        if !self.environment.program.metadata.publish_state {
            return Ok(());
        }
        let value = running(&self.position.current);
        if self.position.published.is_none() {
            self.position.published = Some(INSTANCE_MARK.to_owned());
            self.assert_fact(INSTANCE_LABEL, shown::instance(self.environment.execution));
            return Err(ProgramSuspension::Then(self.next_of_activity()));
        }
        if self.position.published.as_ref() == Some(&value) {
            return Ok(());
        }
        self.publish(value);
        Err(ProgramSuspension::Then(self.next_of_activity()))
    }

    /// Makes the fact due that says in which state the program is, if a retry has it continue after a published
    /// failure.
    pub(super) fn publish_again(&mut self) -> Result<(), ProgramSuspension> {
        if self.position.published.as_deref() != Some(FAILED) {
            return Ok(());
        }
        self.position.is_republishing = true;
        self.publish(running(&self.position.current));
        Err(ProgramSuspension::Then(self.next_of_activity()))
    }

    /// Makes the fact due that says how the program has ended, if it has.
    pub(super) fn publish_end(&mut self, next: AdvanceNext) -> AdvanceNext {
        match next {
            AdvanceNext::End { payload, error }
                if self.environment.program.metadata.publish_state =>
            {
                let status = if error.is_some() { FAILED } else { COMPLETED };
                self.position.ending = Some(ProgramEnding { payload, error });
                self.publish(status.to_owned());
                self.next_of_activity()
            }
            other => other,
        }
    }

    /// Returns the last state of the run that a signal is about, if that has ended: nothing changes it while the
    /// program waits.
    pub(super) fn last_state(&self, label: &str, key: Option<&TextExpression>) -> Option<Fact> {
        let key = key.filter(|_| label == STATE_LABEL)?;
        let key = self.now(key).ok()??;
        let fact = self.environment.facts.get(label, Some(&key))?;
        is_ending(&fact.value).then_some(fact)
    }

    /// Returns the first last state of a run in a condition.
    pub(super) fn last_state_in(&self, condition: &ProgramCondition) -> Option<Fact> {
        let of_text = |text: &TextExpression| match text {
            TextExpression::Signal { label, key } => self.last_state(label, key.as_deref()),
            _ => None,
        };
        parts(condition).into_iter().find_map(|part| match part {
            ProgramCondition::Signal { label, key, .. } => self.last_state(label, key.as_ref()),
            ProgramCondition::Matches { text, .. } => of_text(text),
            ProgramCondition::Equals { left, right } => of_text(left).or_else(|| of_text(right)),
            _ => None,
        })
    }

    fn publish(&mut self, value: String) {
        self.position.published = Some(value.clone());
        self.assert_fact(STATE_LABEL, value);
    }

    fn assert_fact(&mut self, label: &str, value: String) {
        let (label, key) = (label.to_owned(), self.environment.execution.label.clone());
        self.position.activity = Some(Activity::Assert { label, key, value });
    }

    /// Takes the outcome of the assertion of a state; `None` if something else was due. A fact that cannot be asserted
    /// does not end the program.
    pub(super) fn take_published(
        &mut self,
        fetched: Option<&Result<ActivityResult, String>>,
    ) -> Option<Result<(), ProgramSuspension>> {
        let published = self.position.published.as_deref();
        let is_published = |activity: &Activity| match activity {
            Activity::Assert { label, value, .. } if label == STATE_LABEL => {
                published == Some(value)
            }
            Activity::Assert { label, .. } => {
                label == INSTANCE_LABEL && published == Some(INSTANCE_MARK)
            }
            _ => false,
        };
        let is_expected = self.position.activity.as_ref().is_some_and(is_published)
            && (self.position.cursor.is_empty()
                || self.position.ending.is_some()
                || self.position.is_republishing);
        let fetched = fetched.filter(|_| is_expected)?;
        self.position.activity = None;
        self.position.is_republishing = false;
        if let Err(why) = fetched {
            self.log(format!("its state could not be published: {why}"), true);
        }
        Some(match self.position.ending.take() {
            Some(ProgramEnding { payload, error }) => {
                Err(ProgramSuspension::Then(AdvanceNext::End { payload, error }))
            }
            None => Ok(()),
        })
    }
}
