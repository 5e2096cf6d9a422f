//! Reads conditions, and the instructions that block until one holds.

use regex::{Regex, RegexBuilder};

use super::checked_program::{ProgramCondition, ProgramSymbol, WaitInstruction};
use super::definitions::is_taken;
use super::fields::FormFields;
use super::reader::ProgramReader;
use super::vocabulary::CONDITION;
use crate::program::parse::{Form, FormContent};
use crate::report::quoted;
use raymond_model::time::{Timestamp, millis};

/// The largest size of a compiled regular expression, in bytes.
const PATTERN_SIZE: usize = 1 << 20;

/// The position of a condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ConditionPosition {
    /// The whole condition that an instruction waits for, or one of those of which the first is waited for.
    Whole,
    /// A part of such a condition.
    Part,
    /// The condition of an arm of a branch, or a part of it.
    Arm,
}

impl ConditionPosition {
    fn inside(self) -> Self {
        if self == Self::Whole { Self::Part } else { self }
    }
}

impl ProgramReader<'_> {
    /// Reads `wait` and `await`.
    pub(super) fn wait(&mut self, fields: &FormFields<'_>) -> Option<WaitInstruction> {
        let condition = self.exactly(fields, ["a condition, such as `(signal LABEL)`"]);
        let condition = condition.and_then(|[form]| self.condition(form, ConditionPosition::Whole));
        let timeout = fields.get("timeout");
        let timeout_ms = timeout.map_or(Some(None), |form| self.duration(form).map(Some));
        let on_timeout = self.optional_state(fields, "on-timeout");
        if fields.get("on-timeout").is_some() {
            self.need(fields, "timeout");
        }
        Some(WaitInstruction {
            condition: condition?,
            timeout_ms: timeout_ms?,
            on_timeout: on_timeout?,
        })
    }

    /// Reads a condition.
    pub(super) fn condition(
        &mut self,
        form: &Form,
        stands: ConditionPosition,
    ) -> Option<ProgramCondition> {
        let outside = std::mem::replace(&mut self.in_wait, stands != ConditionPosition::Arm);
        let condition = self.judged(form, stands);
        self.in_wait = outside;
        condition
    }

    fn judged(&mut self, form: &Form, stands: ConditionPosition) -> Option<ProgramCondition> {
        let (name, rest) = self.head(form, &CONDITION)?;
        let fields = self.fields(form.at, (name, rest), CONDITION.keywords_of(name));
        match name {
            "signal" => self.signal(&fields, stands),
            "transcript-response" => self.transcript_response(&fields),
            "verdict" => self.verdict(&fields),
            "matches" => self.matches(&fields),
            "equals" => {
                let wanted = ["a value", "the value that it is compared with"];
                let values = self.exactly(&fields, wanted)?;
                let [one, other] = values.map(|form| self.value(form));
                Some(ProgramCondition::Equals { one: one?, other: other? })
            }
            "after" => {
                let [duration] = self.exactly(&fields, ["a duration, such as \"30m\""])?;
                if stands == ConditionPosition::Arm {
                    let why = "a branch does not wait, so `after` has nothing to count from; use it in `wait`";
                    self.report.error(form.at, "SX211", why);
                    return None;
                }
                self.duration(duration).map(ProgramCondition::After)
            }
            "at" => {
                let [time] =
                    self.exactly(&fields, ["a point in time, such as \"2026-01-15T14:30:00Z\""])?;
                self.time(time).map(ProgramCondition::At)
            }
            "not" => {
                let [inner] = self.exactly(&fields, ["a condition"])?;
                let inner = self.condition(inner, stands.inside())?;
                Some(ProgramCondition::Not(Box::new(inner)))
            }
            _ => self.several(&fields, stands),
        }
    }

    /// Reads `and` and `or`.
    fn several(
        &mut self,
        fields: &FormFields<'_>,
        stands: ConditionPosition,
    ) -> Option<ProgramCondition> {
        if fields.values.is_empty() {
            let why = format!("{} needs at least one condition", quoted(fields.name));
            self.report.error(fields.at, "SX205", why);
        }
        let inside = if fields.name == "or" { stands } else { stands.inside() };
        let inner: Vec<_> = fields.values.iter().map(|form| self.condition(form, inside)).collect();
        let inner = inner.into_iter().collect::<Option<Vec<_>>>()?;
        Some(if fields.name == "and" {
            ProgramCondition::And(inner)
        } else {
            ProgramCondition::Or(inner)
        })
    }

    fn signal(
        &mut self,
        fields: &FormFields<'_>,
        stands: ConditionPosition,
    ) -> Option<ProgramCondition> {
        let label = self.label(fields);
        let key = self.optional(fields, "key");
        let equals = self.optional(fields, "equals");
        let consume = fields.get("consume").map_or(Some(false), |form| self.boolean(form));
        let bind =
            fields.get("as").map_or(Some(None), |form| self.taken_as(form, &["key"]).map(Some));
        if let Some(form) = fields.get("consume").filter(|_| stands != ConditionPosition::Whole) {
            let why = "a fact is taken only if it is the whole condition, or a part of `or`: `(wait (signal … :consume true))`";
            self.report.error(form.at, "SX211", why);
            return None;
        }
        if let Some(form) = fields.get("as").filter(|_| consume == Some(false)) {
            let why = "`:as` names the taken value; add `:consume true`";
            self.report.error(form.at, "SX205", why);
            return None;
        }
        let (label, key, equals) = (label?, key?, equals?);
        self.note_facts(&label, key.as_ref(), equals.as_ref());
        Some(ProgramCondition::Signal { label, key, equals, consume: consume?, bind: bind? })
    }

    /// Reads the name for a value that is taken; `@NAME/PART` are its parts.
    pub(super) fn taken_as(&mut self, form: &Form, parts: &[&str]) -> Option<ProgramSymbol> {
        let name = self.name(form, "the name of what is taken")?;
        if is_taken(name) || self.defined.contains(name) {
            let why = format!(
                "{} means something else already; use another name",
                quoted(&format!("@{name}"))
            );
            self.report.error(form.at, "SX312", why);
            return None;
        }
        let name = ProgramSymbol::from(name);
        self.taken.extend(parts.iter().map(|part| ProgramSymbol::from(format!("{name}/{part}"))));
        self.taken.insert(ProgramSymbol::clone(&name));
        Some(name)
    }

    pub(super) fn boolean(&mut self, form: &Form) -> Option<bool> {
        if let FormContent::Boolean(value) = form.content {
            return Some(value);
        }
        self.other(form, "`true` or `false`");
        None
    }

    fn transcript_response(&mut self, fields: &FormFields<'_>) -> Option<ProgramCondition> {
        self.exactly(fields, []);
        let requests = self.need(fields, "request-id").and_then(|form| self.requests_read(form));
        let on_error = self.optional_state(fields, "on-error");
        let (requests, on_error) = (requests?, on_error?);
        let one = |request| ProgramCondition::Response { request, on_error };
        Some(all_of(requests.into_iter().map(one).collect()))
    }

    fn matches(&mut self, fields: &FormFields<'_>) -> Option<ProgramCondition> {
        let wanted = ["a text to look at", "a regular expression"];
        let [text, pattern] = self.exactly(fields, wanted)?;
        let text = self.value(text);
        let pattern = self.pattern(pattern);
        Some(ProgramCondition::Matches { text: text?, pattern: pattern? })
    }

    fn pattern(&mut self, form: &Form) -> Option<Regex> {
        let text = self.text(form, "a regular expression in quotes")?;
        let built = RegexBuilder::new(text).multi_line(true).size_limit(PATTERN_SIZE).build();
        let built = built.map_err(|error| {
            let error = error.to_string();
            let why = error.lines().last().unwrap_or_default().trim_start_matches("error: ");
            format!("{} is not a regular expression: {why}", quoted(text))
        });
        built.map_err(|why| self.report.error(form.at, "SX214", why)).ok()
    }

    /// Reads a duration, in milliseconds.
    pub(super) fn duration(&mut self, form: &Form) -> Option<u64> {
        let read = millis(self.text(form, "a duration, such as \"30m\",")?);
        read.map_err(|why| self.report.error(form.at, "SX215", why)).ok()
    }

    fn time(&mut self, form: &Form) -> Option<Timestamp> {
        let text = self.text(form, "a point in time, such as \"2026-01-15T14:30:00Z\",")?;
        let read = text.parse::<Timestamp>();
        read.map_err(|why| self.report.error(form.at, "SX216", why.to_string())).ok()
    }
}

/// Returns the condition that all of these hold.
pub(super) fn all_of(mut conditions: Vec<ProgramCondition>) -> ProgramCondition {
    match conditions.len() {
        1 => conditions.remove(0),
        _ => ProgramCondition::And(conditions),
    }
}
