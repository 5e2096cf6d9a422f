//! Reads the words that an answer has to have, and the conditions about them.

use super::checked_program::{
    InstructionKind, Program, ProgramCondition, ProgramSymbol, TextExpression,
};
use super::conditions::all_of;
use super::fields::FormFields;
use super::reader::ProgramReader;
use super::vocabulary::CONDITION;
use crate::position::SourcePlace;
use crate::program::parse::{Form, FormContent};
use crate::program::reader::VerdictUse;
use crate::report::{FileDiagnostics, quoted};

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
        let one = |request: ProgramSymbol| {
            self.verdicts.push(VerdictUse {
                request: ProgramSymbol::clone(&request),
                word: Some(word_text.clone()),
                at: word.at,
            });
            let verdict = TextExpression::Verdict(request);
            ProgramCondition::Verdict { verdict, word: word_text.clone() }
        };
        let all: Vec<_> = requests.into_iter().map(one).collect();
        Some(all_of(all))
    }

    /// Notes a verdict whose word is read as a value.
    pub(super) fn note_verdict(&mut self, request: &ProgramSymbol, at: SourcePlace) {
        let request = ProgramSymbol::clone(request);
        self.verdicts.push(VerdictUse { request, word: None, at });
    }
}

/// Reports verdicts of requests that expect none, or other words, and expectations that contradict a schema.
pub(super) fn check(program: &Program, verdicts: &[VerdictUse], report: &mut FileDiagnostics) {
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
