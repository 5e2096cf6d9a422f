//! Carries out the instructions, one at a time.

use std::sync::Arc;

use super::conditions::ArmCheck;
use super::{ProgramInterpreter, ProgramSuspension};
use crate::advance_fuel::MAX_ACTIONS_PER_ADVANCE;
use crate::position::SourcePlace;
use crate::program::checked_program::{
    BranchArm, Instruction, InstructionKind, RunFolder, SendPrompt, TextExpression, TextTemplate,
};
use raymond_model::activity::Activity;
use raymond_model::advance::AdvanceOutput;
use raymond_model::graph_execution::{OutputFormat, PromptTask};
use raymond_model::id::StateName;
use raymond_model::program_execution::{BlockFrame, RequestBody, RequestEntry, RequestStatus};

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
        let at = instruction.at;
        match &instruction.kind {
            InstructionKind::Wait(wait) => self.wait(wait, at),
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
            InstructionKind::Branch { arms, otherwise } => {
                self.choose(arms, otherwise.is_some(), at)
            }
            InstructionKind::Goto(state) => self.go_to(*state, at),
            InstructionKind::Terminal { failed, result } => {
                self.terminal(*failed, result.as_ref(), at)
            }
            InstructionKind::Send(send) => self.send(send, at),
            InstructionKind::RunFolder(run) => self.run_folder(run, at),
            InstructionKind::UserInput(input) => self.user_input(input, at),
            InstructionKind::Run(run) => self.run_command(run, at),
            InstructionKind::StartWorkflow(start) => self.start_workflow(start, at),
            InstructionKind::Assert { label, key, value } => {
                let key = self.argument(0, key.as_ref(), at)?;
                let value = self.argument(1, value.as_ref(), at)?;
                self.due(Activity::Assert { label: label.clone(), key, value })
            }
            InstructionKind::Retract { label, key } => {
                let key = self.argument(0, key.as_ref(), at)?;
                self.due(Activity::Retract { label: label.clone(), key })
            }
            InstructionKind::Log(template) => {
                let text = self.fill(template, at)?;
                self.log(text, false);
                self.spend_fuel(at)?;
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
        at: SourcePlace,
    ) -> Result<(), ProgramSuspension> {
        for (number, arm) in arms.iter().enumerate() {
            match self.test(&arm.condition, at)? {
                ArmCheck::Holds => {
                    self.enter(BlockFrame { arm: Some(number), ..BlockFrame::default() });
                    return Ok(());
                }
                ArmCheck::Not => {}
                ArmCheck::GoTo(state) => return self.go_to(state, at),
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
        at: SourcePlace,
    ) -> Result<(), ProgramSuspension> {
        let result = match result {
            Some(result) => Some(self.argument(0, Some(result), at)?),
            None => None,
        };
        if failed {
            let why = result.unwrap_or_else(|| {
                format!("it ended as failed in the state {}", self.position.current)
            });
            return Err(ProgramSuspension::Fail { at, why });
        }
        Err(self.completed(result))
    }

    fn send(
        &mut self,
        send: &'environment SendPrompt,
        at: SourcePlace,
    ) -> Result<(), ProgramSuspension> {
        let prompt = self.fill(&send.template, at)?;
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
        self.ask(send.role, &send.request, RequestBody::Prompt(Box::new(task)), at)
    }

    fn run_folder(
        &mut self,
        run: &'environment RunFolder,
        at: SourcePlace,
    ) -> Result<(), ProgramSuspension> {
        let input = self.argument(0, run.input.as_ref(), at)?;
        let work =
            RequestBody::Folder { folder: run.folder.clone(), start: run.start.clone(), input };
        self.ask(run.role, &run.request, work, at)
    }

    fn ask(
        &mut self,
        role: usize,
        name: &'environment str,
        body: RequestBody,
        at: SourcePlace,
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
        self.spend_fuel(at)?;
        self.next();
        Ok(())
    }

    /// Spends the fuel of an output.
    fn spend_fuel(&mut self, at: SourcePlace) -> Result<(), ProgramSuspension> {
        self.fuel.spend_action();
        if !self.fuel.is_used_up() {
            return Ok(());
        }
        let why = format!("it has done {MAX_ACTIONS_PER_ADVANCE} things without ever blocking");
        Err(ProgramSuspension::Fail { at, why })
    }

    /// Returns the text of a template, once all its arguments are known.
    pub(super) fn fill(
        &mut self,
        template: &'environment TextTemplate,
        at: SourcePlace,
    ) -> Result<String, ProgramSuspension> {
        for (number, argument) in template.arguments.iter().enumerate() {
            self.argument(number, Some(argument), at)?;
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
        at: SourcePlace,
    ) -> Result<String, ProgramSuspension> {
        if let Some(known) = self.position.partial.get(number) {
            return Ok(known.clone());
        }
        let value = match expression {
            Some(expression) => self.value(expression, at)?,
            None => String::new(),
        };
        self.position.wait = None;
        self.position.partial.push(value.clone());
        Ok(value)
    }
}
