//! Runs a program until it waits, needs an activity, or ends. The interpreter is pure.
//!
//! Its position is a path into the program. Each advance is recorded as a whole, so a crash loses all of it or
//! nothing. After a crash the condition that it waits for is checked again. A chosen arm is part of the path, and is
//! not chosen again.

use std::collections::BTreeMap;

use raymond_model::activity::{Activity, ActivityResult, BodyCommand, CommandId};
use raymond_model::advance::{Advance, AdvanceNext, AdvanceOutput};
use raymond_model::event::{AdvancePosition, NextAction, ProgramProgress, ProgramStatus};
use raymond_model::fact::{Fact, KnownFacts};
use raymond_model::graph_execution::{
    BlockFrame, ParallelPosition, ProgramExecution, ProgramPosition, ProgramWait, RequestEntry,
    RequestStatus,
};
use raymond_model::id::{Folder, RunId, StateName};
use raymond_model::money::Usd;
use raymond_model::time::Timestamp;
use serde_json::json;

use super::checked_program::{Instruction, Program};
use crate::advance_fuel::AdvanceFuel;
use crate::program::checked_program::{
    InstructionKind, ParallelBody, ProgramCondition, ProgramSymbol, TextExpression,
};
pub use crate::program::interpreter::commands::{DEFINITION_LABEL, published_facts};
pub use crate::program::interpreter::shown::selected_facts;
use crate::source::SourcePlace;

mod commands;
mod conditions;
mod shown;
mod steps;
mod values;

/// The environment of a program execution.
#[derive(Debug)]
pub struct ProgramEnvironment<'environment> {
    pub program: &'environment Program,
    pub execution: &'environment ProgramExecution,
    pub facts: &'environment KnownFacts,
    pub run: &'environment RunId,
    /// The program's file.
    pub file: &'environment StateName,
    /// Its folder below the run's root; `None` for the root itself.
    pub folder: Option<Folder>,
    /// The part of the run's budget that is left; `None` without a budget.
    pub budget_left: Option<Usd>,
    /// The step of the agent.
    pub step: u64,
    /// The path of the file, for messages.
    pub path: &'environment str,
    /// The time.
    pub now: Timestamp,
}

/// Advances a program. `fetched` is the result of the pending activity, or the error.
pub fn advance(
    environment: &ProgramEnvironment<'_>,
    fetched: Option<Result<ActivityResult, String>>,
) -> Advance {
    let mut machine = ProgramInterpreter::new(environment);
    if machine.position.activity.is_some() && fetched.is_none() {
        let next = machine.next_of_activity();
        return machine.finish(next);
    }
    let kept = fetched.clone();
    let then = machine.run(fetched);
    if machine.has_failed(&then)
        && let Some(Ok(result)) = kept
        && let Some(advance) = record_of_result(environment, result)
    {
        return advance;
    }
    machine.finish(then)
}

/// A reason that the interpreter stops.
enum ProgramSuspension {
    /// This is next.
    Then(AdvanceNext),
    /// It fails.
    Fail { at: SourcePlace, why: String },
    /// The instruction has led to another state instead.
    Moved,
}

impl ProgramSuspension {
    fn action(action: NextAction) -> Self {
        Self::Then(AdvanceNext::Action(action))
    }
}

struct ProgramInterpreter<'environment> {
    environment: &'environment ProgramEnvironment<'environment>,
    position: ProgramPosition,
    /// The requests of this advance; they take precedence over earlier ones.
    requests: BTreeMap<&'environment str, RequestEntry>,
    bindings: BTreeMap<String, String>,
    bases: Option<BTreeMap<String, Option<String>>>,
    commands: Vec<AdvanceOutput>,
    fuel: AdvanceFuel,
    /// The number of bodies of `for-each` that the current instruction is in.
    depth: usize,
    /// The command that runs for the current body.
    command: Option<CommandId>,
    /// The commands of bodies, pending or running.
    body_commands: Vec<BodyCommand>,
    /// True if commands of bodies have been running since before this advance.
    are_commands_running: bool,
    /// The number of commands that this advance has requested.
    new_commands: u32,
    /// The answer of a person that has come.
    answer: Option<&'environment str>,
    /// The deadline of the wait, if it has passed; answers after it do not count.
    by: Option<Timestamp>,
}

impl<'environment> ProgramInterpreter<'environment> {
    fn new(environment: &'environment ProgramEnvironment<'environment>) -> Self {
        Self {
            environment,
            position: environment.execution.position.clone(),
            requests: BTreeMap::new(),
            bindings: BTreeMap::new(),
            bases: None,
            commands: Vec::new(),
            fuel: AdvanceFuel::default(),
            depth: 0,
            command: None,
            body_commands: Vec::new(),
            are_commands_running: false,
            new_commands: 0,
            answer: environment.execution.answer.as_deref(),
            by: None,
        }
    }

    fn run(&mut self, fetched: Option<Result<ActivityResult, String>>) -> AdvanceNext {
        let published = self.take_published(fetched.as_ref());
        let is_over = matches!(published, Some(Err(_)));
        let mut outcome = published.unwrap_or_else(|| self.take_result(fetched));
        loop {
            let next = match outcome {
                Ok(()) | Err(ProgramSuspension::Moved) => {
                    outcome = self.next_step();
                    continue;
                }
                Err(ProgramSuspension::Then(then)) => then,
                Err(ProgramSuspension::Fail { at, why }) => self.failed(at, &why),
            };
            if matches!(next, AdvanceNext::End { .. }) {
                // Nothing that runs for a body is awaited any more.
                self.position.parallel.clear();
            }
            return if is_over { next } else { self.publish_end(next) };
        }
    }

    fn next_step(&mut self) -> Result<(), ProgramSuspension> {
        if self.position.cursor.is_empty() {
            self.publish_state()?;
        }
        self.publish_again()?;
        self.step()
    }

    fn finish(self, next: AdvanceNext) -> Advance {
        let Self { position, bindings, bases, commands, .. } = self;
        let status = match &next {
            AdvanceNext::Action(NextAction::Wait | NextAction::Question(_)) => {
                ProgramStatus::Waiting
            }
            AdvanceNext::End { error: None, .. } => ProgramStatus::Completed,
            AdvanceNext::End { error: Some(_), .. } | AdvanceNext::Fail(_) => ProgramStatus::Failed,
            AdvanceNext::Action(_) => ProgramStatus::Running,
        };
        let progress = ProgramProgress { bindings, bases, ..ProgramProgress::at(position, status) };
        Advance { outputs: commands, position: AdvancePosition::Program(Box::new(progress)), next }
    }

    /// Returns the step to the pending activity.
    fn next_of_activity(&self) -> AdvanceNext {
        let name = self.position.activity.as_ref().map_or("", Activity::name);
        AdvanceNext::Action(NextAction::Operation(name.to_owned()))
    }

    /// Takes the result of the activity that was pending at the current position.
    fn take_single_result(
        &mut self,
        fetched: Option<Result<ActivityResult, String>>,
    ) -> Result<(), ProgramSuspension> {
        if let Some(input) = self.question() {
            return self.take_answer(input);
        }
        let (Some(activity), Some(fetched)) = (self.position.activity.take(), fetched) else {
            return self.next_activity();
        };
        let fetched = match fetched {
            Ok(fetched) => fetched,
            Err(why) => match &activity {
                Activity::Commands(all) => return self.take_failure_of_all(all, &why),
                _ => return self.take_failure(why),
            },
        };
        match fetched {
            ActivityResult::Bases(bases) => self.bases = Some(bases),
            ActivityResult::Changes(text) => {
                if let Activity::Changes { directory, .. } = &activity {
                    self.position.changes.insert(directory.clone(), text);
                }
            }
            ActivityResult::Done => self.next(),
            ActivityResult::Replaced(replaced, behind) => {
                self.log(shown::replaced(&replaced, behind), true);
                self.next();
            }
            ActivityResult::Claimed(Some(fact)) => {
                self.bind_taken(&fact);
                self.position.wait = None;
                self.next();
            }
            ActivityResult::Value(output) => return self.take_output(&output),
            ActivityResult::Commands(outcomes) => {
                return self.take_outcomes(&mut outcomes.into_iter().collect());
            }
            ActivityResult::Started(started) => self.take_started(&started),
            ActivityResult::Claimed(None) => {}
        }
        if matches!(activity, Activity::Claim { .. }) {
            self.has_blocked();
        }
        Ok(())
    }

    /// Requests the activity that has to be done before the first instruction, if there is one.
    fn next_activity(&mut self) -> Result<(), ProgramSuspension> {
        if !self.position.cursor.is_empty() || !self.environment.execution.bases.is_empty() {
            return Ok(());
        }
        let directories = self.environment.program.work_directories();
        if directories.is_empty() {
            return Ok(());
        }
        let branch = self.environment.execution.branch.clone();
        self.due(Activity::Bases { directories, branch })
    }

    fn due<T>(&mut self, activity: Activity) -> Result<T, ProgramSuspension> {
        self.position.activity = Some(activity);
        Err(ProgramSuspension::Then(self.next_of_activity()))
    }

    /// Blocks until something has changed; then the wait is checked again.
    fn block<T>(
        &mut self,
        awaiting: String,
        until: Option<Timestamp>,
        outside: bool,
    ) -> Result<T, ProgramSuspension> {
        let since = self.since();
        self.position.changes.clear();
        self.position.wait = Some(ProgramWait { awaiting, since, until, outside });
        self.has_blocked();
        Err(ProgramSuspension::action(NextAction::Wait))
    }

    /// Returns the time since which the current instruction blocks.
    fn since(&self) -> Timestamp {
        self.position.wait.as_ref().map_or(self.environment.now, |wait| wait.since)
    }

    fn has_blocked(&mut self) {
        self.position.entered = 0;
        self.position.cursor.iter_mut().for_each(|level| level.blocked = level.round.is_some());
    }

    fn log(&mut self, text: String, warning: bool) {
        self.commands.push(AdvanceOutput::Log { text, warning });
    }

    fn request(&self, name: &str) -> Option<&RequestEntry> {
        self.requests.get(name).or_else(|| self.environment.execution.requests.get(name))
    }

    /// Returns the place of the current instruction.
    fn here(&self) -> SourcePlace {
        self.instruction().map_or(SourcePlace::START, |instruction: &Instruction| instruction.at)
    }

    /// Fails at the current instruction.
    fn fail<T>(&self, why: String) -> Result<T, ProgramSuspension> {
        Err(ProgramSuspension::Fail { at: self.here(), why })
    }

    fn failed(&mut self, at: SourcePlace, why: &str) -> AdvanceNext {
        self.position.wait = None;
        self.position.activity = None;
        let (path, at) = self.environment.program.files.resolve(at);
        let path = path.unwrap_or(self.environment.path);
        let error = format!("{path}:{}:{}: {why}", at.line, at.column);
        let payload = self.outcome("failed", Some(&error));
        AdvanceNext::End { payload, error: Some(error) }
    }

    fn completed(&mut self, result: Option<String>) -> ProgramSuspension {
        self.position.wait = None;
        self.warn_of_failures();
        let payload = result.unwrap_or_else(|| self.outcome("completed", None));
        ProgramSuspension::Then(AdvanceNext::End { payload, error: None })
    }

    /// Logs a warning for each request that failed without failing the program.
    fn warn_of_failures(&mut self) {
        let failed = |(name, request): (&String, &RequestEntry)| match &request.status {
            RequestStatus::Failed(why) => Some(format!("the request {name} failed: {why}")),
            _ => None,
        };
        let texts: Vec<String> =
            self.environment.execution.requests.iter().filter_map(failed).collect();
        for text in texts {
            self.log(text, true);
        }
    }

    /// Returns the default result of a program.
    fn outcome(&self, status: &str, error: Option<&str>) -> String {
        let mut outcome = json!({
            "workflow": self.environment.execution.name,
            "status": status,
            "state": &*self.position.current,
        });
        if let Some(error) = error {
            outcome["error"] = error.into();
        }
        outcome.to_string()
    }
}

// Results that must not be lost: what they are of has changed the world.
//
// A retry begins at the last record before the failure. So such a result is recorded before anything after it fails.

/// Returns the record of a result alone, before what failed after it. A retry begins there, and does not repeat what
/// the result is of.
fn record_of_result(
    environment: &ProgramEnvironment<'_>,
    result: ActivityResult,
) -> Option<Advance> {
    let mut machine = ProgramInterpreter::new(environment);
    let result = Some(Ok(result));
    if machine.take_published(result.as_ref()).is_some() {
        return None;
    }
    machine.take_result(result).ok()?;
    Some(machine.finish(AdvanceNext::Action(NextAction::Walk)))
}

impl ProgramInterpreter<'_> {
    /// Returns whether the program comes to a failure, at once or as soon as that is published.
    fn has_failed(&self, next: &AdvanceNext) -> bool {
        let error = match (&self.position.ending, next) {
            (Some(ending), _) => ending.error.as_ref(),
            (None, AdvanceNext::End { error, .. }) => error.as_ref(),
            (None, _) => None,
        };
        error.is_some() || matches!(next, AdvanceNext::Fail(_))
    }
}

// Takes the facts that waits consume, and binds them to names.

impl ProgramInterpreter<'_> {
    /// Returns the fact that has to be taken before a wait is over: that of the first alternative that holds, if it
    /// takes one.
    fn to_be_taken(&self, condition: &ProgramCondition) -> Option<Fact> {
        let first = alternatives(condition).into_iter().find_map(|part| match part {
            ProgramCondition::Signal { consume: true, .. } => {
                self.signalled(part).ok().flatten().map(Some)
            }
            other => self.judge(other).is_ok_and(|check| check.holds).then_some(None),
        });
        first.flatten()
    }

    /// Binds a fact that was taken for the current wait.
    fn bind_taken(&mut self, fact: &Fact) {
        if let Some(InstructionKind::Wait(wait)) =
            self.instruction().map(|instruction| &instruction.kind)
        {
            self.bind(&wait.condition, Some(fact));
        }
    }

    /// Binds the names of a wait. The first name that the fact fits gets its value, and the others are empty.
    fn bind(&mut self, condition: &ProgramCondition, fact: Option<&Fact>) {
        let signals = alternatives(condition);
        let fitting = fact.and_then(|fact| {
            let signal = signals.iter().find(|signal| self.fits(signal, fact))?;
            Some((name_of_taken(signal)?.clone(), fact))
        });
        if matches!(condition, ProgramCondition::Or(_)) {
            for name in signals.into_iter().filter_map(name_of_taken) {
                self.bindings.insert(name.to_string(), String::new());
                self.bindings.insert(format!("{name}/key"), String::new());
            }
        }
        if let Some((name, fact)) = fitting {
            self.bindings.insert(name.to_string(), fact.value.clone());
            self.bindings.insert(format!("{name}/key"), fact.key.clone());
        }
    }

    /// Returns whether a condition is a signal that takes this fact.
    fn fits(&self, condition: &ProgramCondition, fact: &Fact) -> bool {
        let ProgramCondition::Signal { label, key, equals, consume: true, .. } = condition else {
            return false;
        };
        let is = |expression: &Option<TextExpression>, text: &str| {
            expression.as_ref().is_none_or(|expression| {
                self.now(expression).is_ok_and(|value| value.as_deref() == Some(text))
            })
        };
        *label == fact.label && is(key, &fact.key) && is(equals, &fact.value)
    }
}

/// Returns the alternatives of a condition: the parts of an `or`, also of one in it, or the condition itself.
fn alternatives(condition: &ProgramCondition) -> Vec<&ProgramCondition> {
    match condition {
        ProgramCondition::Or(any) => any.iter().flat_map(alternatives).collect(),
        other => vec![other],
    }
}

/// Returns the name for the fact that a signal takes.
fn name_of_taken(condition: &ProgramCondition) -> Option<&ProgramSymbol> {
    match condition {
        ProgramCondition::Signal { consume: true, bind, .. } => bind.as_ref(),
        _ => None,
    }
}

// Runs the bodies of `for-each` side by side, each from its own position, until all are through.
//
// A body that runs a command waits for it as for anything else, so the others continue. Each pass over the bodies
// gathers the commands that run or are due, and the outermost `for-each` makes them its activity.

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
    fn for_each(&mut self, bodies: &[ParallelBody]) -> Result<(), ProgramSuspension> {
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
            match self.in_body(number, |body| body.run_body(depth))? {
                BodyOutcome::Ended => self.position.parallel[number].is_through = true,
                BodyOutcome::Waits => {}
                BodyOutcome::Left => return Ok(()),
            }
        }
        if self.position.parallel.iter().all(|body| body.is_through) {
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
        let waits = self.position.parallel.iter().filter_map(|body| body.wait.as_ref());
        let waits: Vec<&ProgramWait> = waits.collect();
        let awaiting = match waits.as_slice() {
            [wait] => wait.awaiting.clone(),
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
                Ok(()) | Err(ProgramSuspension::Moved) => {}
                Err(ProgramSuspension::Then(AdvanceNext::Action(NextAction::Wait))) => {
                    return Ok(BodyOutcome::Waits);
                }
                Err(other) => return Err(other),
            }
        }
    }

    /// Does something at the position of a body. If that leaves `for-each`, the position is the new one.
    fn in_body<T>(
        &mut self,
        number: usize,
        act: impl FnOnce(&mut Self) -> Result<T, ProgramSuspension>,
    ) -> Result<T, ProgramSuspension> {
        let depth = self.position.cursor.len();
        let mut body = std::mem::take(&mut self.position.parallel[number]);
        self.exchange(&mut body);
        self.depth += 1;
        let outcome = act(self);
        self.depth -= 1;
        if self.position.cursor.len() <= depth {
            return outcome;
        }
        self.exchange(&mut body);
        for (outer, inner) in self.position.cursor.iter_mut().zip(&body.cursor) {
            outer.blocked |= inner.blocked;
        }
        self.position.parallel[number] = body;
        let is_due = matches!(
            outcome,
            Err(ProgramSuspension::Then(AdvanceNext::Action(
                NextAction::Operation(_) | NextAction::Question(_)
            )))
        );
        self.position.active = is_due.then_some(number);
        outcome
    }

    /// Exchanges the position with that of a body.
    fn exchange(&mut self, body: &mut ParallelPosition) {
        let position = &mut self.position;
        std::mem::swap(&mut position.cursor, &mut body.cursor);
        std::mem::swap(&mut position.partial, &mut body.partial);
        std::mem::swap(&mut position.changes, &mut body.changes);
        std::mem::swap(&mut position.wait, &mut body.wait);
        std::mem::swap(&mut position.parallel, &mut body.parallel);
        std::mem::swap(&mut position.active, &mut body.active);
        std::mem::swap(&mut self.command, &mut body.command);
    }

    /// Takes the result of the pending activity, in the body that needs it.
    fn take_result(
        &mut self,
        fetched: Option<Result<ActivityResult, String>>,
    ) -> Result<(), ProgramSuspension> {
        match self.position.active.take() {
            Some(number) if number < self.position.parallel.len() => {
                self.in_body(number, |body| body.take_result(fetched))
            }
            _ => self.take_single_result(fetched),
        }
    }
}

#[cfg(test)]
mod tests;
