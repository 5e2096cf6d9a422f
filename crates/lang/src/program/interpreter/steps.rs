//! Carries out the instructions one at a time, `start-workflow` among them, and moves in the program.

use std::sync::Arc;

use raymond_model::activity::Activity;
use raymond_model::advance::AdvanceOutput;
use raymond_model::branch::{StartedRun, WorkflowStart, is_program_file, part_for_started};
use raymond_model::graph_execution::{
    BlockFrame, OutputFormat, PromptTask, RequestBody, RequestEntry, RequestStatus,
};
use raymond_model::id::StateName;

use super::{ProgramInterpreter, ProgramSuspension};
use crate::advance_fuel::MAX_ACTIONS_PER_ADVANCE;
use crate::program::checked_program::{
    BranchArm, Instruction, InstructionKind, RunFolder, SendPrompt, StartWorkflow, TextExpression,
    TextTemplate,
};
use crate::source::SourcePlace;

impl<'environment> ProgramInterpreter<'environment> {
    /// Carries out one instruction, or the end of a block.
    pub(super) fn step(&mut self) -> Result<(), ProgramSuspension> {
        if self.position.cursor.is_empty() {
            self.position.cursor.push(BlockFrame::default());
        }
        match self.instruction() {
            Some(instruction) => self.carry_out(instruction),
            None => self.end_of_block(),
        }
    }

    fn carry_out(
        &mut self,
        instruction: &'environment Instruction,
    ) -> Result<(), ProgramSuspension> {
        match &instruction.kind {
            InstructionKind::Wait(wait) => self.wait(wait),
            InstructionKind::Action(_) => {
                self.enter(BlockFrame::default());
                Ok(())
            }
            InstructionKind::Loop(_) => {
                self.enter(BlockFrame { round: Some(1), ..BlockFrame::default() });
                Ok(())
            }
            InstructionKind::ForEach(bodies) => self.for_each(bodies),
            InstructionKind::Break => {
                self.leave_loop();
                Ok(())
            }
            InstructionKind::Continue => self.continue_loop(),
            InstructionKind::Branch { arms, otherwise } => self.choose(arms, otherwise.is_some()),
            InstructionKind::Goto(state) => self.go_to(*state),
            InstructionKind::Terminal { failed, result } => self.terminal(*failed, result.as_ref()),
            InstructionKind::Send(send) => self.send(send),
            InstructionKind::RunFolder(run) => self.run_folder(run),
            InstructionKind::UserInput(input) => self.user_input(input),
            InstructionKind::Run(run) => self.run_command(run),
            InstructionKind::StartWorkflow(start) => self.start_workflow(start),
            InstructionKind::Assert { label, key, value } => {
                let key = self.argument(0, key.as_ref())?;
                let value = self.argument(1, value.as_ref())?;
                self.due(Activity::Assert { label: label.clone(), key, value })
            }
            InstructionKind::Retract { label, key } => {
                let key = self.argument(0, key.as_ref())?;
                self.due(Activity::Retract { label: label.clone(), key })
            }
            InstructionKind::Log(template) => {
                let text = self.fill(template)?;
                self.log(text, false);
                self.spend_fuel()?;
                self.next();
                Ok(())
            }
        }
    }

    /// Chooses an arm of a branch: the first that holds, else `otherwise`, else none.
    fn choose(
        &mut self,
        arms: &'environment [BranchArm],
        has_otherwise: bool,
    ) -> Result<(), ProgramSuspension> {
        for (number, arm) in arms.iter().enumerate() {
            if self.test(&arm.condition)? {
                self.enter(BlockFrame { arm: Some(number), ..BlockFrame::default() });
                return Ok(());
            }
        }
        if has_otherwise {
            self.enter(BlockFrame { arm: Some(arms.len()), ..BlockFrame::default() });
        } else {
            self.next();
        }
        Ok(())
    }

    fn terminal(
        &mut self,
        failed: bool,
        result: Option<&'environment TextExpression>,
    ) -> Result<(), ProgramSuspension> {
        let result = result.map(|result| self.argument(0, Some(result))).transpose()?;
        if failed {
            return self.fail(result.unwrap_or_else(|| {
                format!("it ended as failed in the state {}", self.position.current)
            }));
        }
        Err(self.completed(result))
    }

    fn send(&mut self, send: &'environment SendPrompt) -> Result<(), ProgramSuspension> {
        let prompt = self.fill(&send.template)?;
        let role = &self.environment.program.roles[send.role];
        let name = StateName::parse(&format!("{}#{}", self.environment.file, role.name))
            .unwrap_or_else(|_| self.environment.file.clone());
        let model =
            role.model.as_ref().or(self.environment.program.metadata.model.as_ref()).cloned();
        let output = send.output.as_ref().or(role.output.as_ref());
        let task = PromptTask {
            prompt,
            model,
            options: role.options.clone(),
            output: output.map(|schema| Arc::clone(schema.text())),
            contract: OutputFormat::Reply,
            expect: send.expect.clone(),
            name,
        };
        self.ask(send.role, &send.request, RequestBody::Prompt(Box::new(task)))
    }

    fn run_folder(&mut self, run: &'environment RunFolder) -> Result<(), ProgramSuspension> {
        let input = self.argument(0, run.input.as_ref())?;
        let work =
            RequestBody::Folder { folder: run.folder.clone(), start: run.start.clone(), input };
        self.ask(run.role, &run.request, work)
    }

    fn ask(
        &mut self,
        role: usize,
        name: &'environment str,
        body: RequestBody,
    ) -> Result<(), ProgramSuspension> {
        let role = &self.environment.program.roles[role];
        let number = self.request(name).map_or(0, |before| before.number) + 1;
        let handle = role.handle.to_string();
        let request = RequestEntry {
            lost: None,
            number,
            role: role.name.to_string(),
            status: RequestStatus::Pending,
            ended: None,
        };
        self.requests.insert(name, request);
        let cwd = role.cwd.clone();
        let (role, name) = (role.name.to_string(), name.to_owned());
        self.commands.push(AdvanceOutput::Request { role, handle, cwd, name, body, session: None });
        self.spend_fuel()?;
        self.next();
        Ok(())
    }

    /// Spends the fuel of an output.
    fn spend_fuel(&mut self) -> Result<(), ProgramSuspension> {
        self.fuel.spend_action();
        if !self.fuel.is_used_up() {
            return Ok(());
        }
        self.fail(format!("it has done {MAX_ACTIONS_PER_ADVANCE} things without ever blocking"))
    }

    /// Returns the text of a template, once all its arguments are known.
    pub(super) fn fill(
        &mut self,
        template: &'environment TextTemplate,
    ) -> Result<String, ProgramSuspension> {
        for (number, argument) in template.arguments.iter().enumerate() {
            self.argument(number, Some(argument))?;
        }
        let arguments = self.position.partial.iter().map(String::as_str);
        let mut pieces = template.pieces.iter().map(String::as_str);
        let mut text = pieces.next().unwrap_or_default().to_owned();
        for (argument, piece) in arguments.zip(pieces) {
            text.push_str(argument);
            text.push_str(piece);
        }
        Ok(text)
    }

    /// Returns the value of an argument of the current instruction. A known value does not change.
    pub(super) fn argument(
        &mut self,
        number: usize,
        expression: Option<&'environment TextExpression>,
    ) -> Result<String, ProgramSuspension> {
        if let Some(known) = self.position.partial.get(number) {
            return Ok(known.clone());
        }
        let value = match expression {
            Some(expression) => self.value(expression)?,
            None => String::new(),
        };
        self.position.wait = None;
        self.position.partial.push(value.clone());
        Ok(value)
    }
}

// Carries out `start-workflow`: the start is an activity, and the run's id is taken under a name.

impl<'environment> ProgramInterpreter<'environment> {
    /// Makes the start due, once its values are known.
    pub(super) fn start_workflow(
        &mut self,
        start: &'environment StartWorkflow,
    ) -> Result<(), ProgramSuspension> {
        for (number, expression) in start.expressions().enumerate() {
            self.argument(number, Some(expression))?;
        }
        let label = start.label.as_ref().map(|label| self.fill(label)).transpose()?;
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
        let Some(state) = start.on_error else {
            return self.fail(format!("{} is not started: {why}", start.program));
        };
        self.has_blocked();
        self.log(format!("{} is not started: {why}", start.program), true);
        self.bind_started(start, "", why);
        self.go_to(state)
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

// Moves in the program: to the next instruction, into and out of blocks, round loops, and to other states.

impl<'environment> ProgramInterpreter<'environment> {
    pub(super) fn enter(&mut self, level: BlockFrame) {
        self.position.changes.clear();
        self.position.cursor.push(level);
    }

    /// Moves to the next instruction of the list.
    pub(super) fn next(&mut self) {
        self.position.changes.clear();
        self.position.partial.clear();
        self.position.wait = None;
        if let Some(level) = self.position.cursor.last_mut() {
            level.at += 1;
        }
    }

    /// Continues in another state, out of all blocks.
    pub(super) fn go_to(&mut self, state: usize) -> Result<(), ProgramSuspension> {
        self.position.entered += 1;
        let max_iterations = self.environment.program.metadata.max_iterations;
        if self.position.entered > max_iterations {
            return self.fail(format!(
                "it has gone from state to state {max_iterations} times without ever blocking; put a wait or an await on the way"
            ));
        }
        if let Some(target) = self.environment.program.states.get(state) {
            let entries = self.position.entries.entry(target.name.to_string()).or_default();
            *entries += 1;
            if *entries > max_iterations {
                return self.fail(format!(
                    "it has gone to the state {} {max_iterations} times; end the circle, or allow more: (metadata (max-iterations N))",
                    target.name
                ));
            }
        }
        self.begin_state(state);
        Ok(())
    }

    fn begin_state(&mut self, state: usize) {
        self.position.changes.clear();
        self.position.partial.clear();
        self.position.wait = None;
        self.position.parallel.clear();
        self.body_commands.clear();
        if let Some(state) = self.environment.program.states.get(state) {
            self.position.current = state.name.clone();
            self.position.cursor.clear();
        }
    }

    pub(super) fn end_of_block(&mut self) -> Result<(), ProgramSuspension> {
        let depth = self.position.cursor.len();
        let Some(level) = self.position.cursor.last_mut() else { return Ok(()) };
        if level.round.is_some() {
            return self.next_round();
        }
        if depth > 1 {
            self.position.cursor.pop();
            self.next();
            return Ok(());
        }
        let states = &self.environment.program.states;
        let here = states.iter().position(|state| state.name == self.position.current);
        match here.map(|here| here + 1).filter(|next| *next < states.len()) {
            Some(next) => {
                self.begin_state(next);
                Ok(())
            }
            None => Err(self.completed(None)),
        }
    }

    /// Leaves the innermost loop, and continues after it.
    pub(super) fn leave_loop(&mut self) {
        let around = self.position.cursor.iter().rposition(|level| level.round.is_some());
        self.position.cursor.truncate(around.unwrap_or_default().max(1));
        self.next();
    }

    /// Begins the next round of the innermost loop.
    pub(super) fn continue_loop(&mut self) -> Result<(), ProgramSuspension> {
        let around = self.position.cursor.iter().rposition(|level| level.round.is_some());
        self.position.cursor.truncate(around.unwrap_or_default() + 1);
        self.position.changes.clear();
        self.next_round()
    }

    /// Begins the next round of the loop whose list the cursor stands in, if there may be one.
    fn next_round(&mut self) -> Result<(), ProgramSuspension> {
        let Some(level) = self.position.cursor.last_mut() else { return Ok(()) };
        let round = level.round.unwrap_or_default();
        let blocked = std::mem::take(&mut level.blocked);
        (level.at, level.round) = (0, Some(round + 1));
        let around = self.instruction_at(self.position.cursor.len() - 1);
        let at = around.map_or(SourcePlace::START, |around| around.at);
        let (max, on_max) = match around.map(|around| &around.kind) {
            Some(InstructionKind::Loop(repeat)) => (repeat.max, repeat.on_max),
            _ => (None, None),
        };
        let max_rounds = max.unwrap_or(self.environment.program.metadata.max_iterations);
        let why = if !blocked {
            format!(
                "round {round} of the loop never blocked, so it would loop forever; put a wait or an await in it"
            )
        } else if round < max_rounds {
            return Ok(());
        } else if let Some(state) = on_max {
            // A failure names the loop, and is recorded in its round.
            let round = self.position.cursor.pop();
            let gone = self.go_to(state);
            if gone.is_err() {
                self.position.cursor.extend(round);
            }
            return gone;
        } else if max.is_some() {
            format!(
                "the loop has gone round {max_rounds} times, its :max; let it end by break, goto or terminal, or say where to continue: :on-max STATE"
            )
        } else {
            format!(
                "the loop has gone round {max_rounds} times; let it end by goto or terminal, or allow more: (metadata (max-iterations N))"
            )
        };
        Err(ProgramSuspension::Fail { at, why })
    }

    /// Returns the current instruction; `None` at the end of a list.
    pub(super) fn instruction(&self) -> Option<&'environment Instruction> {
        self.instruction_at(self.position.cursor.len())
    }

    /// Returns the instruction that the cursor's frames up to this depth lead to.
    fn instruction_at(&self, depth: usize) -> Option<&'environment Instruction> {
        let (list, level) = self.list(depth)?;
        list.get(level.at)
    }

    /// Returns the list that the cursor's frames up to this depth lead to, and the position in it.
    fn list(&self, depth: usize) -> Option<(&'environment [Instruction], &BlockFrame)> {
        let states = &self.environment.program.states;
        let state = states.iter().find(|state| state.name == self.position.current)?;
        let mut list: &'environment [Instruction] = &state.body;
        let mut levels = self.position.cursor[..depth].iter();
        let mut level = levels.next()?;
        for inner in levels {
            list = match &list.get(level.at)?.kind {
                InstructionKind::Action(body) => body,
                InstructionKind::Loop(repeat) => &repeat.body,
                InstructionKind::ForEach(bodies) => &bodies.get(inner.arm?)?.body,
                InstructionKind::Branch { arms, otherwise } => {
                    match inner.arm.and_then(|arm| arms.get(arm)) {
                        Some(arm) => &arm.body,
                        None => otherwise.as_deref()?,
                    }
                }
                _ => return None,
            };
            level = inner;
        }
        Some((list, level))
    }
}
