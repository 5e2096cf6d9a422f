//! Checks conditions, and carries out the instructions that block on them.

use super::values::MissingValue;
use super::{ProgramInterpreter, ProgramSuspension, shown};
use crate::program::checked_program::{ProgramCondition, TextExpression, WaitInstruction};
use crate::program::contradictions::is_contradictory;
use raymond_model::activity::Activity;
use raymond_model::fact::{Fact, FactQuery};
use raymond_model::graph_execution::RequestStatus;
use raymond_model::time::Timestamp;

/// The current outcome of a condition.
#[expect(clippy::struct_excessive_bools, reason = "they are independent, and combined one by one")]
pub(super) struct ConditionCheck {
    pub(super) holds: bool,
    /// True if it may hold from now on, and if it may not, as far as other things decide that.
    may_hold: bool,
    may_not: bool,
    /// The time to check it again even if nothing happens.
    look_again: Option<Timestamp>,
    /// True if something from outside the run may make it hold.
    outside: bool,
}

impl ConditionCheck {
    /// Returns the outcome of a condition that does not change while the program waits.
    fn fixed(holds: bool) -> Self {
        Self { holds, may_hold: holds, may_not: !holds, look_again: None, outside: false }
    }

    /// Returns the outcome of a condition that an answer may change.
    fn pending(holds: bool) -> Self {
        Self { may_hold: true, may_not: true, ..Self::fixed(holds) }
    }

    fn from_outside(holds: bool) -> Self {
        Self { outside: true, ..Self::pending(holds) }
    }

    fn and(self, other: &Self) -> Self {
        let look_again = [self.look_again, other.look_again].into_iter().flatten().min();
        Self {
            holds: self.holds && other.holds,
            may_hold: self.may_hold && other.may_hold,
            may_not: self.may_not || other.may_not,
            look_again,
            outside: self.outside || other.outside,
        }
    }

    fn not(self) -> Self {
        let Self { holds, may_hold, may_not, .. } = self;
        Self { holds: !holds, may_hold: may_not, may_not: may_hold, ..self }
    }

    fn or(self, other: Self) -> Self {
        self.not().and(&other.not()).not()
    }
}

impl<'environment> ProgramInterpreter<'environment> {
    pub(super) fn wait(
        &mut self,
        wait: &'environment WaitInstruction,
    ) -> Result<(), ProgramSuspension> {
        let late = wait.timeout.after_ms.map(|timeout| self.since().plus(timeout));
        self.by = late.filter(|late| *late <= self.environment.now);
        let judged = self.judge(&wait.condition);
        let taken = self.to_be_taken(&wait.condition);
        let is_late = self.by.take().is_some();
        let judged = match judged {
            Ok(judged) => judged,
            Err(missing) => return self.suspend(missing),
        };
        if judged.holds {
            if let Some(fact) = taken {
                let Fact { label, key, seq, .. } = fact;
                return self.due(Activity::Claim { label, key, seq });
            }
            self.bind(&wait.condition, None);
            self.next();
            return Ok(());
        }
        let awaiting = self.awaited(&wait.condition);
        if is_late {
            return match wait.timeout.state {
                Some(state) => self.go_to(state),
                None => self.fail(format!(
                    "{awaiting} did not come in time; say where to continue: :on-timeout STATE"
                )),
            };
        }
        let until = [late, judged.look_again].into_iter().flatten().min();
        if late.is_none() && (!judged.may_hold || is_contradictory(&wait.condition)) {
            if let Some(Fact { label, key, value, .. }) = self.last_state_in(&wait.condition) {
                return self.fail(format!(
                    "{awaiting} can never hold: the run {key} has ended as {value}; wait for that too, and choose by it in a branch: (or … (signal {label} :key {key} :equals {value}))"
                ));
            }
            return self.fail(format!(
                "{awaiting} can never hold: nothing is pending that could change it, and it depends on no fact or time that could; correct the condition, or choose by it in a branch"
            ));
        }
        self.block(awaiting, until, judged.outside || late.is_some())
    }

    /// Returns whether the condition of an arm holds.
    pub(super) fn test(&mut self, condition: &ProgramCondition) -> Result<bool, ProgramSuspension> {
        match self.judge(condition) {
            Ok(check) => Ok(check.holds),
            Err(missing) => self.suspend(missing),
        }
    }

    pub(super) fn judge(
        &self,
        condition: &ProgramCondition,
    ) -> Result<ConditionCheck, MissingValue> {
        Ok(match condition {
            ProgramCondition::Signal { label, key, .. } => {
                let holds = self.signalled(condition)?.is_some();
                if !holds && self.last_state(label, key.as_ref()).is_some() {
                    ConditionCheck::fixed(false)
                } else {
                    ConditionCheck::from_outside(holds)
                }
            }
            ProgramCondition::Response { request, on_error } => {
                self.responded(request, *on_error)?
            }
            ProgramCondition::Matches { text, pattern } => {
                let (is_fixed, outside) =
                    (self.is_fixed(text), matches!(text, TextExpression::Signal { .. }));
                let text = self.now(text)?;
                let holds = text.is_some_and(|text| pattern.is_match(&text));
                if is_fixed {
                    ConditionCheck::fixed(holds)
                } else {
                    ConditionCheck { outside, ..ConditionCheck::pending(holds) }
                }
            }
            ProgramCondition::Equals { left, right } => {
                let values = [self.now(left)?, self.now(right)?];
                let holds = matches!(&values, [Some(left), Some(right)] if left == right);
                let is_outside =
                    |value: &TextExpression| matches!(value, TextExpression::Signal { .. });
                if self.is_fixed(left) && self.is_fixed(right) {
                    ConditionCheck::fixed(holds)
                } else {
                    let outside = is_outside(left) || is_outside(right);
                    ConditionCheck { outside, ..ConditionCheck::pending(holds) }
                }
            }
            ProgramCondition::Verdict { verdict, word } => {
                let is_fixed = self.is_fixed(verdict);
                let holds = self.now(verdict)?.is_some_and(|found| found == *word);
                if is_fixed { ConditionCheck::fixed(holds) } else { ConditionCheck::pending(holds) }
            }
            ProgramCondition::After(millis) => self.from(self.since().plus(*millis)),
            ProgramCondition::At(time) => self.from(*time),
            ProgramCondition::And(all) => {
                let mut whole = ConditionCheck::fixed(true);
                for part in all {
                    whole = whole.and(&self.judge(part)?);
                }
                whole
            }
            ProgramCondition::Or(any) => {
                let mut whole = ConditionCheck::fixed(false);
                for part in any {
                    whole = whole.or(self.judge(part)?);
                }
                whole
            }
            ProgramCondition::Not(negated) => self.judge(negated)?.not(),
        })
    }

    fn from(&self, time: Timestamp) -> ConditionCheck {
        let holds = time <= self.by.unwrap_or(self.environment.now);
        let look_again = (!holds).then_some(time);
        ConditionCheck { look_again, may_not: !holds, ..ConditionCheck::from_outside(holds) }
    }

    fn responded(
        &self,
        name: &str,
        on_error: Option<usize>,
    ) -> Result<ConditionCheck, MissingValue> {
        match self.request(name).map(|request| &request.status) {
            None => Err(MissingValue::Never(format!(
                "the request {name} was never sent, so it is never answered; send it before it is awaited"
            ))),
            Some(RequestStatus::Pending) => Ok(ConditionCheck::pending(false)),
            Some(RequestStatus::Answer(_)) => Ok(ConditionCheck::fixed(self.was_in_time(name))),
            Some(RequestStatus::Failed(why)) => Err(match on_error {
                Some(state) => MissingValue::GoTo(state),
                None => MissingValue::Never(format!(
                    "the request {name} failed: {why}; say where to continue: :on-error STATE"
                )),
            }),
        }
    }

    /// Returns whether a request ended before the deadline of the wait.
    fn was_in_time(&self, name: &str) -> bool {
        let ended = self.request(name).and_then(|request| request.ended);
        self.by.is_none_or(|by| ended.is_none_or(|ended| ended <= by))
    }

    /// Returns the fact that a signal condition matches, if it exists.
    pub(super) fn signalled(
        &self,
        condition: &ProgramCondition,
    ) -> Result<Option<Fact>, MissingValue> {
        let ProgramCondition::Signal { label, key, equals, consume, .. } = condition else {
            return Ok(None);
        };
        if [key, equals].into_iter().flatten().any(|expression| self.is_new(expression)) {
            return Err(MissingValue::Facts);
        }
        let mut known = [None, None];
        for (known, expression) in known.iter_mut().zip([key, equals]) {
            if let Some(expression) = expression {
                match self.now(expression)? {
                    Some(value) => *known = Some(value),
                    None => return Ok(None),
                }
            }
        }
        let [key, value] = known.each_ref().map(|known| known.as_deref());
        Ok(self.environment.facts.find(FactQuery {
            label,
            key,
            value,
            by: self.by,
            oldest: *consume,
        }))
    }

    /// Describes a condition with its current values.
    fn awaited(&self, condition: &ProgramCondition) -> String {
        shown::condition(condition, &|expression| {
            self.now(expression).ok().flatten().unwrap_or_else(|| "…".to_owned())
        })
    }
}
