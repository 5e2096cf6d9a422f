//! Runs the bodies of `for-each` side by side, each from its own position, until all are through.
//!
//! A body that runs a command waits for it as for anything else, so the others continue. Each pass over the bodies
//! gathers the commands that run or are due, and the outermost `for-each` makes them its activity.

use super::{ProgramInterpreter, ProgramSuspension, shown};
use crate::program::checked_program::ParallelBody;
use raymond_model::activity::{Activity, ActivityResult};
use raymond_model::advance::AdvanceNext;
use raymond_model::program_execution::{BlockFrame, ParallelPosition, ProgramWait};

/// The outcome of running a body until it can go no further.
enum BodyOutcome {
    /// It is through.
    Ended,
    /// It waits.
    Waits,
    /// The program has left `for-each`.
    Left,
}

impl ProgramInterpreter<'_> {
    /// Runs each body as far as possible. The program waits until all are through.
    pub(super) fn for_each(&mut self, bodies: &[ParallelBody]) -> Result<(), ProgramSuspension> {
        if self.depth == 0 {
            self.are_commands_running = !self.position.commands().is_empty();
        }
        if self.position.parallel.is_empty() {
            let depth = self.position.cursor.len();
            let begin = |number| {
                let frame = BlockFrame { arm: Some(number), ..BlockFrame::default() };
                let around = self.position.cursor[..depth].iter().cloned();
                let cursor = around.chain([frame]).collect();
                ParallelPosition { cursor, ..ParallelPosition::default() }
            };
            self.position.parallel = (0..bodies.len()).map(begin).collect();
        }
        for number in 0..self.position.parallel.len() {
            if self.position.parallel[number].is_through {
                continue;
            }
            let depth = self.position.cursor.len();
            match self.in_body(number, |own| own.run_body(depth))? {
                BodyOutcome::Ended => self.position.parallel[number].is_through = true,
                BodyOutcome::Waits => {}
                BodyOutcome::Left => return Ok(()),
            }
        }
        if self.position.parallel.iter().all(|one| one.is_through) {
            self.position.parallel.clear();
            self.next();
            return Ok(());
        }
        let wait = self.wait_for_bodies();
        if self.depth > 0 || self.body_commands.is_empty() {
            return self.block(wait.awaiting, wait.until, wait.outside);
        }
        self.position.changes.clear();
        self.position.wait = Some(wait);
        self.has_blocked();
        let commands = std::mem::take(&mut self.body_commands);
        self.due(Activity::Commands(commands))
    }

    /// Returns the wait for all bodies that wait.
    fn wait_for_bodies(&self) -> ProgramWait {
        let waits = self.position.parallel.iter().filter_map(|one| one.wait.as_ref());
        let waits: Vec<&ProgramWait> = waits.collect();
        let awaiting = match waits.as_slice() {
            [one] => one.awaiting.clone(),
            all => {
                let all: Vec<&str> = all.iter().map(|wait| wait.awaiting.as_str()).collect();
                format!("(and {})", all.join(" "))
            }
        };
        let until = waits.iter().filter_map(|wait| wait.until).min();
        let outside = waits.iter().any(|wait| wait.outside);
        ProgramWait { awaiting, since: self.since(), until, outside }
    }

    /// Runs the body at the cursor until it is through, waits, needs an activity, or leaves `for-each`.
    fn run_body(&mut self, depth: usize) -> Result<BodyOutcome, ProgramSuspension> {
        loop {
            if self.position.cursor.len() <= depth {
                return Ok(BodyOutcome::Left);
            }
            if self.position.cursor.len() == depth + 1 && self.instruction().is_none() {
                self.position.wait = None;
                return Ok(BodyOutcome::Ended);
            }
            if let Some(input) = self.question().filter(|_| self.has_commands()) {
                let (awaiting, since) = (shown::user_input(&input.bind), self.since());
                self.position.wait =
                    Some(ProgramWait { awaiting, since, until: None, outside: false });
                // The run may end while a person thinks, so nobody is asked before the commands have ended.
                return Ok(BodyOutcome::Waits);
            }
            match self.step() {
                Ok(()) => {}
                Err(ProgramSuspension::Then(AdvanceNext::Wait)) => return Ok(BodyOutcome::Waits),
                Err(other) => return Err(other),
            }
        }
    }

    /// Does something at the position of a body. If that leaves `for-each`, the position is the new one.
    pub(super) fn in_body<T>(
        &mut self,
        number: usize,
        act: impl FnOnce(&mut Self) -> Result<T, ProgramSuspension>,
    ) -> Result<T, ProgramSuspension> {
        let depth = self.position.cursor.len();
        let mut own = std::mem::take(&mut self.position.parallel[number]);
        self.exchange(&mut own);
        self.depth += 1;
        let outcome = act(self);
        self.depth -= 1;
        if self.position.cursor.len() <= depth {
            return outcome;
        }
        self.exchange(&mut own);
        for (outer, inner) in self.position.cursor.iter_mut().zip(&own.cursor) {
            outer.blocked |= inner.blocked;
        }
        self.position.parallel[number] = own;
        let is_due = matches!(
            outcome,
            Err(ProgramSuspension::Then(AdvanceNext::Activity(_) | AdvanceNext::Question(_)))
        );
        self.position.active = is_due.then_some(number);
        outcome
    }

    /// Exchanges the position with that of a body.
    fn exchange(&mut self, own: &mut ParallelPosition) {
        let position = &mut self.position;
        std::mem::swap(&mut position.cursor, &mut own.cursor);
        std::mem::swap(&mut position.partial, &mut own.partial);
        std::mem::swap(&mut position.changes, &mut own.changes);
        std::mem::swap(&mut position.wait, &mut own.wait);
        std::mem::swap(&mut position.parallel, &mut own.parallel);
        std::mem::swap(&mut position.active, &mut own.active);
        std::mem::swap(&mut self.command, &mut own.command);
    }

    /// Takes the result of the pending activity, in the body that needs it.
    pub(super) fn take_result(
        &mut self,
        fetched: Option<Result<ActivityResult, String>>,
    ) -> Result<(), ProgramSuspension> {
        match self.position.active.take() {
            Some(number) if number < self.position.parallel.len() => {
                self.in_body(number, |own| own.take_result(fetched))
            }
            _ => self.take_own_result(fetched),
        }
    }
}
