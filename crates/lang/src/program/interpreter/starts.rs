//! Carries out `start-workflow`: the start is an activity, and the run's id is taken under a name.

use super::{ProgramInterpreter, ProgramSuspension};
use crate::position::SourcePlace;
use crate::program::checked_program::{InstructionKind, StartWorkflow};
use raymond_model::activity::Activity;
use raymond_model::run_origin::{StartedRun, WorkflowStart, is_program_file, part_for_started};

impl<'environment> ProgramInterpreter<'environment> {
    /// Makes the start due, once its values are known.
    pub(super) fn start_workflow(
        &mut self,
        start: &'environment StartWorkflow,
        at: SourcePlace,
    ) -> Result<(), ProgramSuspension> {
        for (number, expression) in start.expressions().enumerate() {
            self.argument(number, Some(expression), at)?;
        }
        let label = start.label.as_ref().map(|label| self.fill(label, at)).transpose()?;
        let of_label = start.label.as_ref().map_or(0, |label| label.arguments.len());
        let mut values = self.position.partial.iter().skip(of_label).cloned();
        let branch = start.branch.as_ref().and_then(|_| values.next());
        let keys = start.context.iter().map(|(key, _)| key.clone());
        let context = keys.zip(values).collect();
        let program = match &self.environment.folder {
            Some(folder) if is_program_file(&start.program) => {
                format!("{folder}/{}", start.program)
            }
            Some(_) | None => start.program.clone(),
        };
        let budget_usd = match part_for_started(start.budget, self.environment.budget_left) {
            Ok(part) => part,
            Err(why) => return self.take_failed_start(start, &why),
        };
        let start = WorkflowStart { program, label, branch, context, budget_usd };
        self.due(Activity::StartWorkflow(start))
    }

    /// Takes the id of the run that was started.
    pub(super) fn take_started(&mut self, started: &StartedRun) {
        let StartedRun { run, budget_usd } = started;
        self.has_blocked();
        let Some(start) = self.start() else { return };
        let is_part = self.environment.budget_left.is_some();
        let part = budget_usd.filter(|_| is_part).unwrap_or_default();
        self.position.given_usd += part;
        let with = budget_usd.map_or(String::new(), |budget| format!(" with a budget of {budget}"));
        self.log(format!("has started {} as the run {run}{with}", start.program), false);
        self.bind_started(start, run.as_str(), "");
        self.next();
    }

    /// Continues after a start that has failed: in the state of its `:on-error`, if it has one.
    pub(super) fn take_failed_start(
        &mut self,
        start: &'environment StartWorkflow,
        why: &str,
    ) -> Result<(), ProgramSuspension> {
        let at = self.here();
        let Some(state) = start.on_error else {
            let why = format!("{} is not started: {why}", start.program);
            return Err(ProgramSuspension::Fail { at, why });
        };
        self.has_blocked();
        self.log(format!("{} is not started: {why}", start.program), true);
        self.bind_started(start, "", why);
        self.go_to(state, at)
    }

    /// Returns the start that the program is at.
    pub(super) fn start(&self) -> Option<&'environment StartWorkflow> {
        match &self.instruction()?.kind {
            InstructionKind::StartWorkflow(start) => Some(start),
            _ => None,
        }
    }

    fn bind_started(&mut self, start: &StartWorkflow, run: &str, error: &str) {
        let Some(name) = &start.bind else { return };
        self.bindings.insert(name.to_string(), run.to_owned());
        self.bindings.insert(format!("{name}/error"), error.to_owned());
    }
}
