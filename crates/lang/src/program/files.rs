//! The files of a program: its own, and the libraries that it requires.
//!
//! Their lines are numbered through, in the order in which the files were read, so that one place tells the file, too.

use std::path::Path;

use super::parse;
use crate::diagnostic::{Diagnostic, FileDiagnostics, quoted};
use crate::program::parse::LineIndex;
use crate::program::parse::{Form, FormContent};
use crate::source::{SourcePlace, WorkflowSource};

/// The maximum number of libraries.
const MAX_LIBRARIES: usize = 32;

/// The files of a program, by the number of the lines before each; the program's own is the first.
#[derive(Debug, Clone, Default)]
pub struct ProgramFiles(Vec<(u64, String)>);

impl ProgramFiles {
    /// Returns the path of the file that a place is in, `None` for the program's own, and the place there.
    pub fn resolve(&self, at: SourcePlace) -> (Option<&str>, SourcePlace) {
        let number = self.0.partition_point(|(before, _)| *before < at.line).saturating_sub(1);
        let Some((before, path)) = self.0.get(number) else { return (None, at) };
        let at = SourcePlace { line: at.line - before, ..at };
        ((number > 0).then_some(path.as_str()), at)
    }

    /// Returns a line for a message: `line 5`, or `lib.lisp:5` in a library.
    pub(super) fn line(&self, at: SourcePlace) -> String {
        match self.resolve(at) {
            (None, at) => format!("line {}", at.line),
            (Some(path), at) => format!("{path}:{}", at.line),
        }
    }

    /// Returns a diagnostic with the file and the line of its place.
    pub(super) fn placed(&self, found: Diagnostic) -> Diagnostic {
        let (path, at) = self.resolve(SourcePlace { line: found.line, column: found.column });
        let path = path.map_or_else(|| found.path.clone(), str::to_owned);
        Diagnostic { path, line: at.line, ..found }
    }
}

/// The forms of all files of a program.
pub(super) struct LoadedForms {
    /// The forms of the program's own file, without `require`.
    pub(super) main_forms: Vec<Form>,
    /// The forms of the libraries.
    pub(super) required: Vec<Form>,
    pub(super) files: ProgramFiles,
    /// The texts of all files, one after the other.
    pub(super) text: String,
    /// The mistakes in the brackets and words of libraries.
    pub(super) faults: Vec<Diagnostic>,
}

/// Reads the forms of a program and of the libraries that it requires; `None` if its own lists are not certain.
pub(super) fn load(
    path: &str,
    text: &str,
    source: &dyn WorkflowSource,
    report: &mut FileDiagnostics,
) -> Option<LoadedForms> {
    let lines = LineIndex::new(text);
    let recovered = parse::recover(text, &lines, report)?;
    let main_forms = parse::forms(&recovered, &lines, report);
    let mut loader = LibraryLoader {
        path,
        source,
        report,
        read: Vec::new(),
        loaded: LoadedForms {
            main_forms: Vec::new(),
            required: Vec::new(),
            files: ProgramFiles(vec![(0, path.to_owned())]),
            text: text.to_owned(),
            faults: Vec::new(),
        },
    };
    loader.loaded.main_forms = loader.required_by(main_forms, &mut Vec::new());
    Some(loader.loaded)
}

struct LibraryLoader<'a> {
    path: &'a str,
    source: &'a dyn WorkflowSource,
    report: &'a mut FileDiagnostics,
    /// The libraries that were read.
    read: Vec<String>,
    loaded: LoadedForms,
}

impl LibraryLoader<'_> {
    /// Reads the libraries that forms require, also those in a `workflow`, and returns the other forms.
    fn required_by(&mut self, forms: Vec<Form>, around: &mut Vec<String>) -> Vec<Form> {
        let mut others = Vec::new();
        for mut form in forms {
            match form.head() {
                Some("require") => self.require(&form, around),
                Some("workflow") => {
                    if let FormContent::List(inner) = &mut form.content {
                        *inner = self.required_by(std::mem::take(inner), around);
                    }
                    others.push(form);
                }
                _ => others.push(form),
            }
        }
        others
    }

    fn require(&mut self, form: &Form, around: &mut Vec<String>) {
        let [_, Form { content: FormContent::String(name) | FormContent::Symbol(name), at, .. }] =
            form.inner()
        else {
            let why = "`require` takes the path of one file, such as `(require \"lib.lisp\")`";
            return self.report.error(form.at, "SX205", why);
        };
        if around.contains(name) {
            let why = format!(
                "{} requires itself: {}; remove one of these lines",
                quoted(name),
                around
                    .iter()
                    .chain([name])
                    .map(|name| quoted(name))
                    .collect::<Vec<_>>()
                    .join(" requires ")
            );
            return self.report.error(*at, "SX313", why);
        }
        if self.read.contains(name) {
            return;
        }
        if self.read.len() >= MAX_LIBRARIES {
            let why = format!("a program requires at most {MAX_LIBRARIES} files");
            return self.report.error(*at, "SX313", why);
        }
        self.read.push(name.clone());
        let text = match self.source.read_path(name) {
            Ok(text) => text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text),
            Err(error) => {
                let why = format!("{}: {}", quoted(name), error.reason());
                return self.report.error(*at, "SX313", why);
            }
        };
        let path = Path::new(self.path).with_file_name(name).display().to_string();
        let forms = self.forms_of(&path, &text);
        around.push(name.clone());
        let forms = self.required_by(forms, around);
        around.pop();
        self.loaded.required.extend(forms);
    }

    /// Returns the forms of a library, whose places come after those of all files before.
    fn forms_of(&mut self, path: &str, text: &str) -> Vec<Form> {
        let lines = LineIndex::new(text);
        let mut report = FileDiagnostics::new(path);
        let recovered = parse::recover(text, &lines, &mut report);
        let mut forms = recovered
            .map_or_else(Vec::new, |main_forms| parse::forms(&main_forms, &lines, &mut report));
        self.loaded.faults.extend(report.sorted());
        let all = &mut self.loaded.text;
        all.push('\n');
        let (bytes, before) = (all.len(), all.matches('\n').count() as u64);
        all.push_str(text);
        self.loaded.files.0.push((before, path.to_owned()));
        for form in &mut forms {
            form.shift(before, bytes);
        }
        forms
    }
}
