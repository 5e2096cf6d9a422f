//! Reads a program: from the text of its file to a definition, or to everything that is wrong with it.

use super::definition::Definition;
use super::lines::Lines;
use super::reader::Reader;
use super::workflow::Workflow;
use super::{answers, flow, parse, requests, surface};
use crate::language::checksum::checksum;
use crate::language::diagnostic::Diagnostic;
use crate::language::report::Report;
use crate::language::source::Source;

/// What reading a program came to.
#[derive(Debug)]
pub struct Reading {
    /// The program, if there are no errors.
    pub program: Option<Definition>,
    /// What was found, in the order of the file.
    pub diagnostics: Vec<Diagnostic>,
}

/// Reads a program. `path` is its file as people see it; the folders it runs are looked for in `source`.
#[must_use]
pub fn read(path: &str, text: &str, source: &dyn Source) -> Reading {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let lines = Lines::new(text);
    let mut report = Report::new(path);
    let Some(surface) = surface::surface(text, &lines, &mut report) else {
        return Reading { program: None, diagnostics: report.sorted() };
    };
    let forms = parse::forms(&surface, &lines, &mut report);
    let mut reader = Reader::new(text, &lines, source, report);
    let workflow = reader.workflow(&forms);
    reader.unbound();
    let Reader { mut report, labels, context, needs_branch, requests, answer_fields, .. } = reader;
    let names = requests.bind(&mut report);
    let program = workflow.filter(|_| !report.has_errors()).and_then(|workflow| {
        let Workflow { name, metadata, roles, mut states } = workflow;
        requests::name(&mut states, &names);
        let hash = checksum(text).into();
        Some(Definition {
            name: name?,
            metadata,
            roles,
            states,
            labels,
            context,
            needs_branch,
            hash,
            text: text.into(),
        })
    });
    if let Some(program) = &program {
        answers::check(program, &answer_fields, &mut report);
        flow::check(program, &mut report);
    }
    let program = program.filter(|_| !report.has_errors());
    Reading { program, diagnostics: report.sorted() }
}
