//! Moves in the program: to the next instruction, into and out of blocks, round loops, and to other states.

use super::{ProgramInterpreter, ProgramSuspension};
use crate::position::SourcePlace;
use crate::program::checked_program::{Instruction, InstructionKind};
use raymond_model::program_execution::BlockFrame;

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
    pub(super) fn go_to(&mut self, state: usize, at: SourcePlace) -> Result<(), ProgramSuspension> {
        self.position.entered += 1;
        let max_iterations = self.environment.program.metadata.max_iterations;
        if self.position.entered > max_iterations {
            let why = format!(
                "it has gone from state to state {max_iterations} times without ever blocking; put a wait or an await on the way"
            );
            return Err(ProgramSuspension::Fail { at, why });
        }
        if let Some(own) = self.environment.program.states.get(state) {
            let entries = self.position.entries.entry(own.name.to_string()).or_default();
            *entries += 1;
            if *entries > max_iterations {
                let why = format!(
                    "it has gone to the state {} {max_iterations} times; end the circle, or allow more: (metadata (max-iterations N))",
                    own.name
                );
                return Err(ProgramSuspension::Fail { at, why });
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
        let (at, max, on_max) = self.current_loop();
        let max_rounds = max.unwrap_or(self.environment.program.metadata.max_iterations);
        let why = if !blocked {
            format!(
                "round {round} of the loop never blocked, so it would loop forever; put a wait or an await in it"
            )
        } else if round < max_rounds {
            return Ok(());
        } else if let Some(state) = on_max {
            return self.go_to(state, at);
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
        let (list, level) = self.list(self.position.cursor.len())?;
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

    /// Returns the place of the loop around the current list, its `:max` and its `:on-max`.
    fn current_loop(&self) -> (SourcePlace, Option<u64>, Option<usize>) {
        let around = self.position.cursor.len().saturating_sub(1);
        let outer = self.list(around);
        let Some(own) = outer.and_then(|(list, level)| list.get(level.at)) else {
            return (SourcePlace::START, None, None);
        };
        match &own.kind {
            InstructionKind::Loop(repeat) => (own.at, repeat.max, repeat.on_max),
            _ => (own.at, None, None),
        }
    }
}
