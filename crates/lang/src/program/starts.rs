//! Reads `start-workflow`, which starts a program as a separate run.

use super::checked_program::{StartWorkflow, TextExpression, TextTemplate, file_at};
use super::reader::{FormFields, ProgramReader};
use crate::diagnostic::quoted;
use crate::manifest::budget;
use crate::program::parse::{Form, FormContent};
use raymond_model::branch::is_program_file;
use raymond_model::id::RunId;
use raymond_model::money::Usd;

/// The values of a start besides the run's id: `@NAME/error`.
const START_PARTS: [&str; 1] = ["error"];

impl ProgramReader<'_> {
    /// Reads `start-workflow`.
    pub(super) fn start_workflow(&mut self, fields: &FormFields<'_>) -> Option<StartWorkflow> {
        let wanted = "the name of a defined program, or its file, such as `review.lisp`";
        let program = self.exactly(fields, [wanted]).and_then(|[form]| self.program(form, wanted));
        let label = self.start_label(fields);
        let branch = self.optional(fields, "branch", Self::value);
        let context = self.optional(fields, "context", Self::pairs);
        let budget = self.optional(fields, "budget", Self::budget_part);
        let bind = self.optional(fields, "as", |reader, form| reader.taken_as(form, &START_PARTS));
        let on_error = self.optional(fields, "on-error", Self::state);
        Some(StartWorkflow {
            program: program?,
            label: label?,
            branch: branch?,
            context: context?.unwrap_or_default(),
            budget: budget?,
            bind: bind?,
            on_error: on_error?,
        })
    }

    /// Reads the part of the budget that the run is given.
    fn budget_part(&mut self, form: &Form) -> Option<Usd> {
        let text = self.text(form, "an amount in US dollars, such as 0.50")?;
        budget(text).map_err(|why| self.report.error(form.at, "SX207", why)).ok()
    }

    /// Reads the program that is started.
    fn program(&mut self, form: &Form, wanted: &str) -> Option<String> {
        let name = self.name(form, wanted)?;
        let found = if is_program_file(name) {
            self.find_program_file(name)
        } else {
            self.find_defined_program(name)
        };
        found.map_err(|why| self.report.error(form.at, "SX315", why)).ok()?;
        Some(name.to_owned())
    }

    fn find_program_file(&self, path: &str) -> Result<(), String> {
        let (folder, name) = file_at(path).map_err(|error| error.to_string())?;
        let found = match &folder {
            Some(folder) => self.source.within(folder).and_then(|source| source.check(&name)),
            None => self.source.check(&name),
        };
        found.map_err(|error| format!("{}: {}", quoted(path), error.reason()))
    }

    /// Checks that a program of this name is defined, as far as the defined programs are known.
    fn find_defined_program(&self, name: &str) -> Result<(), String> {
        let Some(defined) = self.source.defined_programs() else { return Ok(()) };
        if defined.iter().any(|defined_name| defined_name == name) {
            return Ok(());
        }
        let file = [".lisp", ".duet"].into_iter().find_map(|ending| {
            let file = format!("{name}{ending}");
            self.find_program_file(&file).is_ok().then_some(file)
        });
        let hint = match &file {
            Some(file) => format!("; did you mean the file {}?", quoted(file)),
            None => self.report.hint(name, defined.iter().map(String::as_str), || {
                "; define it with `raymond workflow define FILE`, or name its file: `NAME.lisp`"
                    .to_owned()
            }),
        };
        Err(format!("no program {} is defined{hint}", quoted(name)))
    }

    /// Reads the label: a template with its values, or a value.
    #[expect(clippy::option_option, reason = "no label and a wrong one are different")]
    fn start_label(&mut self, fields: &FormFields<'_>) -> Option<Option<TextTemplate>> {
        let arguments = self.arguments(fields);
        let Some(form) = fields.get("label") else {
            if fields.get("args").is_some() {
                self.need(fields, "label");
            }
            return Some(None);
        };
        if form.text().is_none() && fields.get("args").is_none() {
            let value = self.value(form)?;
            let pieces = vec![String::new(), String::new()];
            return Some(Some(TextTemplate { pieces, arguments: vec![value] }));
        }
        let template = self.template(form, &arguments?)?;
        if let ([label], []) = (&template.pieces[..], &template.arguments[..])
            && let Err(error) = RunId::parse(label)
        {
            return self.refuse(form.at, "SX312", error.to_string());
        }
        Some(Some(template))
    }

    /// Reads the keys and values of `:context`.
    fn pairs(&mut self, form: &Form) -> Option<Vec<(String, TextExpression)>> {
        let wanted = "a list of names and values, such as `(input \"text\" item @item)`,";
        let FormContent::List(forms) = &form.content else {
            self.other(form, wanted);
            return None;
        };
        let mut pairs: Vec<(String, TextExpression)> = Vec::new();
        let mut is_sound = true;
        for pair in forms.chunks(2) {
            let [key, value] = pair else {
                let why = "the last name of `:context` has no value; write one after it";
                return self.refuse(form.at, "SX205", why);
            };
            let key_text = self.name(key, "the name of a value of the context");
            let value = self.value(value);
            let Some((name, value)) = key_text.zip(value) else {
                is_sound = false;
                continue;
            };
            if pairs.iter().any(|(before, _)| before == name) {
                let why = format!("{} is given twice in `:context`; remove one", quoted(name));
                self.report.error(key.at, "SX204", why);
                is_sound = false;
            }
            pairs.push((name.to_owned(), value));
        }
        is_sound.then_some(pairs)
    }
}
