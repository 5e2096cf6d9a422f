//! Replaces the names that a program defines by what they mean, before it is read.
//!
//! All forms keep their places, so each mistake is reported where it is written. The size of the result is bounded.

use std::collections::BTreeMap;

use super::definitions::{DefinedBlock, ProgramDefinitions, is_taken};
use super::reader::ACTION;
use crate::diagnostic::{FileDiagnostics, quoted};
use crate::program::parse::{Form, FormContent, MAX_DEPTH};
use crate::source::SourcePlace;

/// The largest size of the forms that definitions are replaced by: bytes of text, and [`FORM_COST`] a form.
const MAX_COST: usize = 8 << 20;

/// The size of a form without its text.
const FORM_COST: usize = 64;

/// The forms whose forms are instructions, or arms of a branch.
const BODIES: [&str; 6] = ["state", "action", "loop", "branch", "on", "otherwise"];

/// The meanings of parameters, and of the variables of `for-each`.
type Bindings = BTreeMap<String, Form>;

/// Replaces the definitions in the forms of a program.
pub(super) struct DefinitionExpander<'a> {
    pub(super) definitions: &'a mut ProgramDefinitions,
    pub(super) report: &'a mut FileDiagnostics,
    /// The roles that a role with `:each` stands for.
    pub(super) groups: BTreeMap<String, Vec<Form>>,
    /// The names of the definitions that are being expanded.
    around: Vec<String>,
    cost: usize,
}

impl<'a> DefinitionExpander<'a> {
    pub(super) fn new(
        definitions: &'a mut ProgramDefinitions,
        report: &'a mut FileDiagnostics,
    ) -> Self {
        Self { definitions, report, groups: BTreeMap::new(), around: Vec::new(), cost: 0 }
    }

    /// Expands the forms of a file.
    pub(super) fn file(&mut self, forms: Vec<Form>) -> Vec<Form> {
        forms.into_iter().map(|form| self.workflow(form)).collect()
    }

    fn workflow(&mut self, mut form: Form) -> Form {
        let is_workflow = form.head() == Some("workflow");
        let FormContent::List(parts) = &mut form.content else { return form };
        if !is_workflow {
            return form;
        }
        for part in parts.iter_mut().filter(|part| part.head() == Some("roles")) {
            *part = self.roles(part);
        }
        for part in parts.iter_mut().filter(|part| part.head() != Some("roles")) {
            *part = self.form(part, &Bindings::new(), 1);
        }
        form
    }

    /// Expands a form that is not a call of a block.
    fn form(&mut self, form: &Form, bindings: &Bindings, depth: usize) -> Form {
        match &form.content {
            FormContent::Placeholder(name) => self.placeholder(form, name, bindings, depth),
            FormContent::List(forms) => {
                if depth > MAX_DEPTH {
                    self.too_deep(form.at);
                    return Form { content: FormContent::Wrong, ..form.clone() };
                }
                let content = match form.head() {
                    Some("for-each") => self.for_each(form, forms, bindings, depth),
                    Some(head) if BODIES.contains(&head) => {
                        FormContent::List(self.body(forms, head == "action", bindings, depth + 1))
                    }
                    _ => FormContent::List(
                        forms.iter().map(|form| self.form(form, bindings, depth + 1)).collect(),
                    ),
                };
                Form { content, at: form.at, span: form.span.clone() }
            }
            _ => form.clone(),
        }
    }

    /// Expands the forms of a body; a call is replaced by the forms of its block.
    fn body(
        &mut self,
        forms: &[Form],
        in_action: bool,
        bindings: &Bindings,
        depth: usize,
    ) -> Vec<Form> {
        let mut all = Vec::new();
        for form in forms {
            let name = form.head().filter(|name| self.definitions.blocks.contains_key(*name));
            match name.map(str::to_owned) {
                Some(name) => {
                    let called = self.call(form, &name, in_action, bindings, depth);
                    if in_action {
                        all.extend(called);
                    } else {
                        all.extend(called.into_iter().map(as_instruction));
                    }
                }
                None => all.push(self.form(form, bindings, depth)),
            }
        }
        all
    }

    fn call(
        &mut self,
        form: &Form,
        name: &str,
        in_action: bool,
        bindings: &Bindings,
        depth: usize,
    ) -> Vec<Form> {
        let FormContent::List(forms) = &form.content else { return Vec::new() };
        self.definitions.used.insert(name.to_owned());
        if !self.may_expand(form.at, name, depth) {
            return Vec::new();
        }
        let Some(DefinedBlock { parameters, body }) = self.definitions.blocks.get(name) else {
            return Vec::new();
        };
        let (parameters, body) = (parameters.clone(), body.clone());
        let arguments = &forms[1..];
        let keyword = arguments.iter().find(|form| matches!(form.content, FormContent::Keyword(_)));
        if arguments.len() != parameters.len() || keyword.is_some() {
            let takes = match parameters.len() {
                0 => "no value".to_owned(),
                1 => format!("one value, for {}", quoted(&parameters[0])),
                many => format!("{many} values, for {}", quoted(&parameters.join(" "))),
            };
            let at = keyword.map_or(form.at, |keyword| keyword.at);
            self.report.error(at, "SX206", format!("{} takes {takes}", quoted(name)));
            return Vec::new();
        }
        let values = arguments.iter().map(|form| self.form(form, bindings, depth + 1));
        let values: Vec<Form> = values.collect();
        let inner: Bindings = parameters.into_iter().zip(values).collect();
        self.around.push(name.to_owned());
        let size: usize = body.iter().map(size).sum();
        let expanded = if self.pays(size, form.at) {
            self.body(&body, in_action, &inner, depth + 1)
        } else {
            Vec::new()
        };
        self.around.pop();
        expanded
    }

    fn placeholder(&mut self, form: &Form, name: &str, bindings: &Bindings, depth: usize) -> Form {
        let wrong = || Form { content: FormContent::Wrong, ..form.clone() };
        if let Some(value) = bindings.get(name) {
            if depth + value.height() > MAX_DEPTH + 1 {
                self.too_deep(form.at);
                return wrong();
            }
            return if self.pays(size(value), form.at) { value.clone() } else { wrong() };
        }
        let Some(value) = self.definitions.values.get(name).cloned() else { return form.clone() };
        self.definitions.used.insert(name.to_owned());
        if !self.may_expand(form.at, name, depth) || !self.pays(size(&value), form.at) {
            return wrong();
        }
        self.around.push(name.to_owned());
        let expanded = self.form(&value, &Bindings::new(), depth);
        self.around.pop();
        expanded
    }

    /// Expands `(for-each NAME in LIST …)` to a list of an element and its instructions for each element.
    fn for_each(
        &mut self,
        form: &Form,
        forms: &[Form],
        bindings: &Bindings,
        depth: usize,
    ) -> FormContent {
        let (name, list, body) = match forms {
            [_, Form { content: FormContent::Symbol(name), .. }, word, list, body @ ..]
                if word.text().is_some_and(|word| word.eq_ignore_ascii_case("in"))
                    && !body.is_empty() =>
            {
                (name, list, body)
            }
            _ => {
                let why = "`for-each` takes a name, `in`, a list, and instructions: `(for-each who in (one two) …)`";
                self.report.error(form.at, "SX205", why);
                return FormContent::Wrong;
            }
        };
        if is_taken(name)
            || bindings.contains_key(name)
            || self.definitions.values.contains_key(name)
        {
            let why = format!(
                "{} means something else already; use another name",
                quoted(&format!("@{name}"))
            );
            self.report.error(forms[1].at, "SX312", why);
            return FormContent::Wrong;
        }
        self.definitions.variables.insert(name.clone());
        let list = self.form(list, bindings, depth + 1);
        let Some(elements) = self.elements(&list) else { return FormContent::Wrong };
        let mut all = vec![forms[0].clone()];
        let size: usize = body.iter().map(size).sum();
        for element in elements {
            if !self.pays(size, form.at) {
                return FormContent::Wrong;
            }
            let mut bound = bindings.clone();
            bound.insert(name.clone(), element.clone());
            let mut parts = vec![element];
            let body = self.body(body, false, &bound, depth + 2);
            parts.extend(body.into_iter().map(as_instruction));
            all.push(Form { content: FormContent::List(parts), ..form.clone() });
        }
        FormContent::List(all)
    }

    fn may_expand(&mut self, at: SourcePlace, name: &str, depth: usize) -> bool {
        if self.around.iter().any(|around| around == name) {
            let why = format!("{} is defined by itself, which never ends", quoted(name));
            self.report.error(at, "SX314", why);
            return false;
        }
        if depth > MAX_DEPTH {
            self.too_deep(at);
            return false;
        }
        true
    }

    fn too_deep(&mut self, at: SourcePlace) {
        let why = format!(
            "with its definitions, lists nest more than {MAX_DEPTH} deep here; move a part to another state"
        );
        self.report.error(at, "SX109", why);
    }

    /// Counts the size of what a name is replaced by; false if it is too much.
    fn pays(&mut self, size: usize, at: SourcePlace) -> bool {
        let before = self.cost;
        self.cost = self.cost.saturating_add(size);
        if self.cost <= MAX_COST {
            return true;
        }
        if before <= MAX_COST {
            let why =
                "with its definitions, the program is too large; define less in terms of others";
            self.report.error(at, "SX110", why);
        }
        false
    }
}

fn size(form: &Form) -> usize {
    let content_cost = match &form.content {
        FormContent::List(forms) => forms.iter().map(size).sum(),
        _ => form.text().map_or(0, str::len),
    };
    FORM_COST + content_cost
}

/// Returns an action as an instruction: in its own `action`.
fn as_instruction(form: Form) -> Form {
    let is_action = form
        .head()
        .is_some_and(|head| ACTION.names.contains(&head) && head != "wait" && head != "await");
    if !is_action {
        return form;
    }
    let (at, span) = (form.at, form.span.clone());
    let word = Form { content: FormContent::Symbol("action".to_owned()), at, span: span.clone() };
    Form { content: FormContent::List(vec![word, form]), at, span }
}

// Lists in a program: the names of roles with `:each`, and the elements of `for-each`.

impl DefinitionExpander<'_> {
    /// Expands roles: one with `:each` stands for a role of each name.
    fn roles(&mut self, form: &Form) -> Form {
        let form = self.form(form, &Bindings::new(), 1);
        let FormContent::List(roles) = form.content else { return form };
        let mut all = Vec::new();
        for role in roles {
            let split = each_of(role.inner());
            let Some((each, [name, options @ ..])) =
                split.as_ref().map(|(each, rest)| (each, rest.as_slice()))
            else {
                all.push(role);
                continue;
            };
            let Some(elements) = self.elements(each) else { continue };
            for element in &elements {
                let parts = std::iter::once(element).chain(options).cloned().collect();
                all.push(Form { content: FormContent::List(parts), ..role.clone() });
            }
            if let Some(name) = name.text() {
                self.groups.insert(name.to_owned(), elements);
            }
        }
        Form { content: FormContent::List(all), ..form }
    }

    /// Returns the elements of a list of texts, or the roles of a group.
    fn elements(&mut self, form: &Form) -> Option<Vec<Form>> {
        let group = form.text().and_then(|name| self.groups.get(name)).cloned();
        let elements = match (&form.content, group) {
            (_, Some(roles)) => roles,
            (FormContent::List(forms), None)
                if !forms.is_empty() && forms.iter().all(|form| form.text().is_some()) =>
            {
                forms.clone()
            }
            _ => {
                if !form.is_wrong() {
                    let why = format!(
                        "write a list of texts here, such as `(security speed)`, or a role with `:each`, not {}",
                        form.described()
                    );
                    self.report.error(form.at, "SX207", why);
                }
                return None;
            }
        };
        for (number, element) in elements.iter().enumerate() {
            if elements[..number].iter().any(|before| before.text() == element.text()) {
                let why = format!(
                    "{} is in this list twice; remove one",
                    quoted(element.text().unwrap_or_default())
                );
                self.report.error(element.at, "SX204", why);
                return None;
            }
        }
        Some(elements)
    }
}

/// Returns the list of a role's `:each`, and the role without it.
fn each_of(parts: &[Form]) -> Option<(Form, Vec<Form>)> {
    let at = parts.iter().position(|form| form.is_keyword("each"))?;
    let list = parts.get(at + 1)?.clone();
    let rest = parts[..at].iter().chain(&parts[at + 2..]).cloned().collect();
    Some((list, rest))
}
