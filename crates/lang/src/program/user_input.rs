//! Reads the questions of a program to a person.

use super::checked_program::{InstructionKind, Program, UserInput};
use super::reader::{FormFields, ProgramReader};
use crate::diagnostic::quoted;
use crate::hint::closest;
use crate::program::parse::{Form, FormContent};
use raymond_model::question::{Question, QuestionOption};

impl ProgramReader<'_> {
    /// Reads `user-input`.
    pub(super) fn user_input(&mut self, fields: &FormFields<'_>) -> Option<UserInput> {
        self.exactly(fields, []);
        let prompt = self.needed_template(fields, "prompt");
        let options = fields.get("options").map_or(Some(Vec::new()), |form| self.options(form));
        let timeout = self.timeout(fields);
        let bind = self.need(fields, "as").and_then(|form| {
            let name = self.taken_as(form, &[])?;
            if name.contains('=') {
                let why = format!(
                    "{} cannot be the name of an answer, because `raymond answer RUN NAME=TEXT` ends it at its `=`",
                    quoted(&name)
                );
                return self.refuse(form.at, "SX312", why);
            }
            Some(name)
        });
        Some(UserInput { prompt: prompt?, options: options?, timeout: timeout?, bind: bind? })
    }

    /// Reads the answers that a person can choose from.
    fn options(&mut self, form: &Form) -> Option<Vec<String>> {
        let wanted = "a list of answers, such as `(\"yes\" \"no\")`,";
        let forms = match &form.content {
            FormContent::List(forms) if !forms.is_empty() => forms,
            _ => {
                self.other(form, wanted);
                return None;
            }
        };
        let mut options: Vec<String> = Vec::new();
        for form in forms {
            let option = self.name(form, "an answer to choose")?;
            if options.iter().any(|before| before.eq_ignore_ascii_case(option)) {
                let why = format!("{} is given twice in `:options`; remove one", quoted(option));
                self.report.error(form.at, "SX204", why);
            } else {
                options.push(option.to_owned());
            }
        }
        Some(options)
    }
}

impl UserInput {
    /// Returns the question with this text.
    pub fn question(&self, text: String) -> Question {
        let option = |text: &String| QuestionOption {
            id: text.clone(),
            label: text.clone(),
            description: String::new(),
        };
        Question {
            node: self.bind.to_string(),
            text,
            header: None,
            options: self.options.iter().map(option).collect(),
            free: false,
        }
    }
}

/// Checks that a program will ask for an answer that is given ahead of time. A program that starts other agents
/// accepts unknown names, because those agents may ask under their own names.
///
/// # Errors
/// A message with the reason, and with the answers that the program asks for.
pub fn check(program: &Program, node: &str, text: &str) -> Result<(), String> {
    let all = program.instructions();
    let mut names: Vec<&str> = Vec::new();
    let mut wrong = None;
    for instruction in all {
        match &instruction.kind {
            InstructionKind::RunFolder(_) => return Ok(()),
            InstructionKind::UserInput(input) if *input.bind == *node => {
                match input.question(String::new()).read(text) {
                    Ok(_) => return Ok(()),
                    Err(error) => wrong = Some(error.to_string()),
                }
            }
            InstructionKind::UserInput(input) => names.push(&input.bind),
            _ => {}
        }
    }
    let meant = || closest(node, names.iter().copied());
    Err(wrong.unwrap_or_else(|| match (names.is_empty(), meant()) {
        (true, _) => "the program does not ask a person".to_owned(),
        (false, Some(meant)) => {
            format!("the program does not ask for {node}; did you mean {meant}?")
        }
        (false, None) => {
            format!("the program does not ask for {node}; it asks for {}", names.join(", "))
        }
    }))
}
