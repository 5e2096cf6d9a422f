//! The names that a program gives to texts, lists and blocks of actions: `define` and `defn`.

use std::collections::{BTreeMap, BTreeSet};

use super::files::ProgramFiles;
use super::reader::sort_of;
use super::values::{CONTEXT, PLACEHOLDERS};
use crate::diagnostic::{FileDiagnostics, quoted};
use crate::program::parse::{Form, FormContent};
use crate::source::SourcePlace;

/// The definitions of a program and of its libraries.
#[derive(Default)]
pub(super) struct ProgramDefinitions {
    /// The texts and lists, by name.
    pub(super) values: BTreeMap<String, Form>,
    /// The blocks of actions, by name.
    pub(super) blocks: BTreeMap<String, DefinedBlock>,
    places: BTreeMap<String, SourcePlace>,
    /// The names that were used.
    pub(super) used: BTreeSet<String>,
    /// The names of the elements of `for-each`.
    pub(super) variables: BTreeSet<String>,
}

/// A block of actions with parameters.
pub(super) struct DefinedBlock {
    pub(super) parameters: Vec<String>,
    pub(super) body: Vec<Form>,
}

impl ProgramDefinitions {
    /// Takes the definitions out of a list of forms, also out of a `workflow` in it.
    pub(super) fn take(
        &mut self,
        forms: Vec<Form>,
        files: &ProgramFiles,
        report: &mut FileDiagnostics,
    ) -> Vec<Form> {
        let mut others = Vec::new();
        for mut form in forms {
            match form.head() {
                Some("define") => self.define(&form, files, report),
                Some("defn") => self.define_block(&form, files, report),
                Some("workflow") => {
                    if let FormContent::List(inner) = &mut form.content {
                        *inner = self.take(std::mem::take(inner), files, report);
                    }
                    others.push(form);
                }
                _ => others.push(form),
            }
        }
        others
    }

    fn define(&mut self, form: &Form, files: &ProgramFiles, report: &mut FileDiagnostics) {
        let [_, name, value] = form.inner() else {
            let why = "`define` takes a name and one value: `(define NAME \"text\")` or `(define NAME (one two))`";
            return report.error(form.at, "SX205", why);
        };
        if let Some(name) = self.name(name, files, report) {
            self.values.insert(name, value.clone());
        }
    }

    fn define_block(&mut self, form: &Form, files: &ProgramFiles, report: &mut FileDiagnostics) {
        let [_, name, Form { content: FormContent::List(parameters), .. }, body @ ..] =
            form.inner()
        else {
            let why =
                "`defn` takes a name, a list of parameters, and actions: `(defn NAME (who) …)`";
            return report.error(form.at, "SX205", why);
        };
        if body.is_empty() {
            report.error(form.at, "SX209", "this `defn` is empty; write an action in it");
        }
        let Some(name) = self.name(name, files, report) else { return };
        let mut names: Vec<String> = Vec::new();
        for parameter in parameters {
            match &parameter.content {
                FormContent::Symbol(symbol) if names.contains(symbol) => {
                    let why =
                        format!("the parameter {} is given twice; rename one", quoted(symbol));
                    report.error(parameter.at, "SX204", why);
                }
                FormContent::Symbol(symbol) if !is_taken(symbol) => names.push(symbol.clone()),
                _ => {
                    let why = format!(
                        "a parameter is a plain name, such as `who`, not {}",
                        parameter.described()
                    );
                    report.error(parameter.at, "SX207", why);
                }
            }
        }
        self.blocks.insert(name, DefinedBlock { parameters: names, body: body.to_vec() });
    }

    /// Reads the name of a definition.
    fn name(
        &mut self,
        form: &Form,
        files: &ProgramFiles,
        report: &mut FileDiagnostics,
    ) -> Option<String> {
        let FormContent::Symbol(name) = &form.content else {
            let why = format!("write a name here, such as `rubric`, not {}", form.described());
            report.error(form.at, "SX207", why);
            return None;
        };
        let shown = quoted(name);
        if is_taken(name) || sort_of(name).is_some() {
            let why = format!("{shown} means something else already; use another name");
            report.error(form.at, "SX312", why);
            return None;
        }
        if let Some(before) = self.places.insert(name.clone(), form.at) {
            let why =
                format!("{shown} is defined in {} already; rename one of them", files.line(before));
            report.error(form.at, "SX204", why);
            return None;
        }
        Some(name.clone())
    }

    /// Returns the definitions that were not used, with their places.
    pub(super) fn unused(&self) -> impl Iterator<Item = (&String, SourcePlace)> {
        let unused = self.places.iter().filter(|(name, _)| !self.used.contains(*name));
        unused.map(|(name, at)| (name, *at))
    }
}

/// Returns whether a placeholder of this name means something in each program.
pub(super) fn is_taken(name: &str) -> bool {
    PLACEHOLDERS.contains(&name) || name.starts_with(CONTEXT)
}
