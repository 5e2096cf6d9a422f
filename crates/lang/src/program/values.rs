//! Reads expressions whose value is a text, and the templates that contain them.

use super::checked_program::{MatchedFacts, ProgramSymbol, TextExpression, TextTemplate};
use super::reader::{FormFields, ProgramReader, VALUE};
use crate::diagnostic::quoted;
use crate::program::parse::{Form, FormContent};
use crate::program::reader::AnswerField;
use crate::source::SourcePlace;
use raymond_model::graph_execution::STATE_LABEL;

/// The placeholders that every program has.
pub(super) const PLACEHOLDERS: [&str; 3] = ["workflow-id", "label", "branch"];

/// The prefix of the context's placeholders.
pub(super) const CONTEXT: &str = "context/";

/// The longest label, in bytes of its directory name.
const MAX_LABEL_BYTES: usize = 200;

/// Returns the length of a label's directory name, in bytes. A byte that is not plain takes three.
fn written(label: &str) -> usize {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_~@+=,:.".contains(&byte);
    label.bytes().map(|byte| if plain(byte) { 1 } else { 3 }).sum()
}

impl ProgramReader<'_> {
    /// Reads a value.
    pub(super) fn value(&mut self, form: &Form) -> Option<TextExpression> {
        match &form.content {
            FormContent::Placeholder(name) => Some(self.placeholder(name, form.at)),
            FormContent::List(_) => self.computed(form),
            _ => {
                let text = self.text(form, "a value, such as a text or `@workflow-id`,")?;
                Some(TextExpression::Text(text.to_owned()))
            }
        }
    }

    fn placeholder(&mut self, name: &str, at: SourcePlace) -> TextExpression {
        match name {
            "workflow-id" => TextExpression::WorkflowId,
            "label" => TextExpression::Label,
            "branch" => {
                self.noted.needs_branch = true;
                TextExpression::Branch
            }
            name => self.named(name, at),
        }
    }

    /// Reads a placeholder of the context, or of a taken payload.
    fn named(&mut self, name: &str, at: SourcePlace) -> TextExpression {
        if let Some(key) = name.strip_prefix(CONTEXT) {
            self.noted.context.insert(key.to_owned());
            return TextExpression::Context(key.to_owned());
        }
        let name = ProgramSymbol::from(name);
        self.placeholders.push((ProgramSymbol::clone(&name), at));
        TextExpression::Bound(name)
    }

    /// Reports the placeholders that nothing fills, once the names of all taken payloads are known.
    pub(super) fn unbound(&mut self) {
        for (name, at) in std::mem::take(&mut self.placeholders) {
            if self.taken.contains(&name) {
                continue;
            }
            let names = PLACEHOLDERS.into_iter().chain(self.taken.iter().map(|name| &**name));
            let otherwise =
                || "; there are `@workflow-id`, `@label`, `@branch` and `@context/NAME`".to_owned();
            let hint = self.report.hint(&name, names, otherwise);
            let hint = hint.replace("mean `", "mean `@");
            let shown = quoted(&format!("@{name}"));
            self.report.error(at, "SX308", format!("nothing fills the placeholder {shown}{hint}"));
        }
    }

    fn computed(&mut self, form: &Form) -> Option<TextExpression> {
        let (name, rest) = self.head(form, &VALUE)?;
        let fields = self.fields(form.at, name, rest, VALUE.keywords_of(name));
        match name {
            "signal" => {
                let label = self.label(&fields);
                let key = self.optional(&fields, "key", Self::value);
                let (label, key) = (label?, key?);
                self.note_facts(&label, key.as_ref(), None);
                Some(TextExpression::Signal { label, key: key.map(Box::new) })
            }
            "response" => {
                let [request] = self.exactly(&fields, ["the id of a request"])?;
                self.together(request, |reader, name| {
                    reader.field(&fields, TextExpression::Response(name))
                })
            }
            "verdict" => {
                let [request] = self.exactly(&fields, ["the id of a request"])?;
                self.together(request, |reader, name| {
                    reader.note_verdict(&name, request.at);
                    Some(TextExpression::Verdict(name))
                })
            }
            "feedback" => {
                let [role] = self.exactly(&fields, ["the name of a role"])?;
                let answer = self.role(role).map(TextExpression::Feedback)?;
                self.field(&fields, answer)
            }
            _ if self.in_wait => {
                let why = "a program cannot wait for work, because nothing reports when it changes; check it in a branch, or send it to a role";
                self.refuse(form.at, "SX211", why)
            }
            _ => {
                let [role] = self.exactly(&fields, ["the name of a role"])?;
                self.role(role).map(TextExpression::Artifact)
            }
        }
    }

    /// Returns an answer, or its field if `:field` names one.
    fn field(&mut self, fields: &FormFields<'_>, answer: TextExpression) -> Option<TextExpression> {
        let Some(form) = fields.get("field") else { return Some(answer) };
        let path = self.name(form, "the name of a field, such as `score`")?.to_owned();
        self.noted.answer_fields.push(AnswerField {
            of: answer.clone(),
            path: path.clone(),
            at: form.at,
        });
        Some(TextExpression::Field { answer: Box::new(answer), path })
    }

    /// Reads the label of the facts that a `signal` matches.
    pub(super) fn label(&mut self, fields: &FormFields<'_>) -> Option<String> {
        let label = self.fact(fields)?;
        self.noted.labels.insert(label.clone());
        Some(label)
    }

    /// Notes the facts that a `signal` can match.
    pub(super) fn note_facts(
        &mut self,
        label: &str,
        key: Option<&TextExpression>,
        value: Option<&TextExpression>,
    ) {
        if label == STATE_LABEL {
            self.noted.state_keys.extend(key.cloned());
        }
        // A run that has ended otherwise must be seen, too.
        let value = value.filter(|_| label != STATE_LABEL);
        let sought =
            MatchedFacts { label: label.to_owned(), key: key.cloned(), value: value.cloned() };
        if !self.noted.facts.contains(&sought) {
            self.noted.facts.push(sought);
        }
    }

    /// Reads the label of a fact, the only value of its form.
    pub(super) fn fact(&mut self, fields: &FormFields<'_>) -> Option<String> {
        let [label] = self.exactly(fields, ["the label of a fact, such as `plan/ready`"])?;
        let name = self.name(label, "the label of a fact")?;
        let why = if name.contains(char::is_whitespace) {
            "it has white space; write a word, such as plan/ready"
        } else if written(name) > MAX_LABEL_BYTES {
            "it is too long, because all but letters and digits of ASCII counts three times or more"
        } else {
            return Some(name.to_owned());
        };
        let shown = quoted(name);
        let why = format!("{shown} cannot be the label of a fact: {why}");
        self.refuse(label.at, "SX312", why)
    }

    /// Reads the value that a request has; for one of `for-each`, those of all elements.
    fn together(
        &mut self,
        form: &Form,
        mut value_of: impl FnMut(&mut Self, ProgramSymbol) -> Option<TextExpression>,
    ) -> Option<TextExpression> {
        let mut all = self.requests_read(form)?;
        if all.len() == 1 {
            return value_of(self, all.remove(0));
        }
        let name = form.text().unwrap_or_default();
        let mut values = Vec::new();
        for request in all {
            let element = request.strip_prefix(name).and_then(|rest| rest.strip_prefix('/'));
            let element = element.unwrap_or(&request).to_owned();
            values.push((element, value_of(self, request)?));
        }
        Some(TextExpression::Together(values))
    }

    /// Reads the id of a request whose state or answer is read; one of `for-each` means those of all elements.
    pub(super) fn requests_read(&mut self, form: &Form) -> Option<Vec<ProgramSymbol>> {
        let name = self.name(form, "the id of a request")?;
        let mut names = Vec::new();
        let mut ahead = vec![name];
        while let Some(name) = ahead.pop() {
            match self.groups.get(name) {
                Some(members) => ahead.extend(members.iter().rev().map(String::as_str)),
                None => names.push(ProgramSymbol::from(name)),
            }
        }
        for name in &names {
            self.requests.note_read(name, form.at);
        }
        Some(names)
    }

    /// Reads a template with its arguments.
    pub(super) fn template(&mut self, form: &Form, arguments: &[&Form]) -> Option<TextTemplate> {
        let given: Vec<_> = arguments.iter().map(|form| self.value(form)).collect();
        let text = self.text(form, "the text of a template")?;
        let pieces = self.pieces(form, text)?;
        let places = pieces.len() - 1;
        if places != given.len() {
            let places = match places {
                1 => "one place `~a`".to_owned(),
                many => format!("{many} places `~a`"),
            };
            let values = match given.len() {
                1 => "one value".to_owned(),
                many => format!("{many} values"),
            };
            let why = format!(
                "this template has {places}, but {values} to put there; write `~~` for a tilde"
            );
            return self.refuse(form.at, "SX213", why);
        }
        let arguments = given.into_iter().collect::<Option<Vec<_>>>()?;
        Some(TextTemplate { pieces, arguments })
    }

    /// Returns the texts around the places of a template.
    fn pieces(&mut self, form: &Form, text: &str) -> Option<Vec<String>> {
        let written = &self.text[form.span.clone()];
        let plain = written.matches('~').count() == text.matches('~').count();
        let mut tildes = written.match_indices('~').filter(|_| plain);
        let (mut pieces, mut piece, mut sound) = (Vec::new(), String::new(), true);
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('~') {
            piece.push_str(before);
            let at = tildes.next().map_or(0, |(at, _)| at);
            if let Some(after) = after.strip_prefix('a') {
                pieces.push(std::mem::take(&mut piece));
                rest = after;
            } else if let Some(after) = after.strip_prefix('~') {
                tildes.next();
                piece.push('~');
                rest = after;
            } else {
                sound = false;
                let shown = quoted(
                    &after
                        .chars()
                        .take(1)
                        .fold("~".to_owned(), |sign, c| sign + c.encode_utf8(&mut [0; 4])),
                );
                let why = format!(
                    "{shown} has no meaning in a template; write `~a` for the next value and `~~` for a tilde"
                );
                self.report.error(self.lines.place(form.span.start + at), "SX212", why);
                rest = after;
            }
        }
        pieces.push(piece + rest);
        sound.then_some(pieces)
    }
}
