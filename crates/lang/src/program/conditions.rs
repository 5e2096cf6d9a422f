//! Reads conditions, the verdicts of answers among them, and the instructions that block until one holds.

use raymond_model::time::{Timestamp, millis};
use regex::{Regex, RegexBuilder};

use super::checked_program::{
    InstructionKind, Program, ProgramCondition, ProgramSymbol, TextExpression, WaitInstruction,
};
use super::definitions::is_taken;
use super::reader::{CONDITION, FormFields, ProgramReader};
use crate::diagnostic::{FileDiagnostics, quoted};
use crate::program::parse::{Form, FormContent};
use crate::program::reader::VerdictUse;
use crate::source::SourcePlace;

/// The largest size of a compiled regular expression, in bytes.
const PATTERN_SIZE: usize = 1 << 20;

/// The position of a condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ConditionPosition {
    /// The whole condition that an instruction waits for, or an alternative in its top-level `or`.
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
        let timeout = self.timeout(fields);
        Some(WaitInstruction { condition: condition?, timeout: timeout? })
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
        let fields = self.fields(form.at, name, rest, CONDITION.keywords_of(name));
        match name {
            "signal" => self.signal(&fields, stands),
            "transcript-response" => self.transcript_response(&fields),
            "verdict" => self.verdict(&fields),
            "matches" => self.matches(&fields),
            "equals" => {
                let wanted = ["a value", "the value that it is compared with"];
                let values = self.exactly(&fields, wanted)?;
                let [left, right] = values.map(|form| self.value(form));
                Some(ProgramCondition::Equals { left: left?, right: right? })
            }
            "after" => {
                let [duration] = self.exactly(&fields, ["a duration, such as \"30m\""])?;
                if stands == ConditionPosition::Arm {
                    let why = "a branch does not wait, so `after` has nothing to count from; use it in `wait`";
                    return self.refuse(form.at, "SX211", why);
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
        let key = self.optional(fields, "key", Self::value);
        let equals = self.optional(fields, "equals", Self::value);
        let consume = fields.get("consume").map_or(Some(false), |form| self.boolean(form));
        let bind = self.optional(fields, "as", |reader, form| reader.taken_as(form, &["key"]));
        if let Some(form) = fields.get("consume").filter(|_| stands != ConditionPosition::Whole) {
            let why = "a fact is taken only if it is the whole condition, or a part of `or`: `(wait (signal … :consume true))`";
            return self.refuse(form.at, "SX211", why);
        }
        if let Some(form) = fields.get("as").filter(|_| consume == Some(false)) {
            let why = "`:as` names the taken value; add `:consume true`";
            return self.refuse(form.at, "SX205", why);
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
            return self.refuse(form.at, "SX312", why);
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
        let on_error = self.optional(fields, "on-error", Self::state);
        let (requests, on_error) = (requests?, on_error?);
        let ended = |request| ProgramCondition::Response { request, on_error };
        Some(all_of(requests.into_iter().map(ended).collect()))
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

// Reads the words that an answer has to have, and the conditions about them.

/// Returns whether a form is a verdict without a word.
pub(super) fn is_bare_verdict(form: &Form) -> bool {
    matches!(&form.content, FormContent::List(parts) if parts.len() == 2)
        && form.head() == Some("verdict")
}

impl ProgramReader<'_> {
    /// Reads `:expect`.
    pub(super) fn expected(&mut self, form: &Form) -> Option<Vec<String>> {
        let wanted = "a list of words, such as `(APPROVE REVISE)`,";
        let FormContent::List(forms) = &form.content else {
            self.other(form, wanted);
            return None;
        };
        if forms.is_empty() {
            self.other(form, wanted);
        }
        let mut words: Vec<String> = Vec::new();
        for form in forms {
            let word = self.name(form, "a word of an answer")?;
            if word.contains(char::is_whitespace) {
                self.other(form, "one word");
            } else if words.iter().any(|before| before == word) {
                let why = format!("{} is given twice in `:expect`; remove one", quoted(word));
                self.report.error(form.at, "SX204", why);
            } else {
                words.push(word.to_owned());
            }
        }
        Some(words)
    }

    /// Reads the condition `(verdict REQUEST WORD)`.
    pub(super) fn verdict(&mut self, fields: &FormFields<'_>) -> Option<ProgramCondition> {
        let [request, word] =
            self.exactly(fields, ["the id of a request", "a word of its `:expect`"])?;
        self.verdict_is(request, word)
    }

    /// Reads `(verdict REQUEST)` with the word that stands after it.
    pub(super) fn verdict_of(&mut self, form: &Form, word: &Form) -> Option<ProgramCondition> {
        let (_, rest) = self.head(form, &CONDITION)?;
        self.verdict_is(rest.first()?, word)
    }

    fn verdict_is(&mut self, request: &Form, word: &Form) -> Option<ProgramCondition> {
        let word_text = self.name(word, "a word of an answer")?.to_owned();
        let requests = self.requests_read(request)?;
        let condition = |request: ProgramSymbol| {
            self.noted.verdicts.push(VerdictUse {
                request: ProgramSymbol::clone(&request),
                word: Some(word_text.clone()),
                at: word.at,
            });
            let verdict = TextExpression::Verdict(request);
            ProgramCondition::Verdict { verdict, word: word_text.clone() }
        };
        let all: Vec<_> = requests.into_iter().map(condition).collect();
        Some(all_of(all))
    }

    /// Notes a verdict whose word is read as a value.
    pub(super) fn note_verdict(&mut self, request: &ProgramSymbol, at: SourcePlace) {
        let request = ProgramSymbol::clone(request);
        self.noted.verdicts.push(VerdictUse { request, word: None, at });
    }
}

/// Reports verdicts of requests that expect none, or other words, and expectations that contradict a schema.
pub(super) fn check_verdicts(
    program: &Program,
    verdicts: &[VerdictUse],
    report: &mut FileDiagnostics,
) {
    for VerdictUse { request, word, at } in verdicts {
        let expected = program.expected(request);
        let shown = quoted(request);
        if expected.is_empty() {
            let why = format!(
                "the request {shown} has no verdict; write `:expect (APPROVE REVISE)`, or other words, where it is sent"
            );
            report.error(*at, "SX222", why);
        } else if let Some(word) = word.as_ref().filter(|word| !expected.contains(word)) {
            let names = expected.iter().map(String::as_str);
            let hint = report.hint(word, names, || format!("; it has {}", expected.join(", ")));
            let why = format!("{} is not in the `:expect` of {shown}{hint}", quoted(word));
            report.error(*at, "SX222", why);
        }
    }
    for instruction in program.instructions() {
        let InstructionKind::Send(send) = &instruction.kind else { continue };
        let has_schema = send.output.is_some()
            || program.roles.get(send.role).is_some_and(|role| role.output.is_some());
        if has_schema && !send.expect.is_empty() {
            let why =
                "an answer with `:output` is an object, and has no `:expect`; read a field of it";
            report.error(instruction.at, "SX222", why);
        }
    }
}
