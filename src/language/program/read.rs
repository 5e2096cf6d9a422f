//! Reads a program from the text of its file, or reports everything that is wrong with it.

use super::checked_program::Program;
use super::lines::LineIndex;
use super::reader::ProgramReader;
use super::workflow::ProgramParts;
use super::{answers, flow, parse, requests, syntax_fixes};
use crate::language::checksum::checksum;
use crate::language::diagnostic::Diagnostic;
use crate::language::report::FileDiagnostics;
use crate::language::source::WorkflowSource;

/// The outcome of reading a program.
#[derive(Debug)]
pub struct ParsedProgram {
    /// The program, if there are no errors.
    pub program: Option<Program>,
    /// The findings, in the order of the file.
    pub diagnostics: Vec<Diagnostic>,
}

/// Reads a program. `path` is its file as people see it; the folders it runs are looked for in `source`.
#[must_use]
pub fn read(path: &str, text: &str, source: &dyn WorkflowSource) -> ParsedProgram {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let lines = LineIndex::new(text);
    let mut report = FileDiagnostics::new(path);
    let Some(recovered) = syntax_fixes::recover(text, &lines, &mut report) else {
        return ParsedProgram { program: None, diagnostics: report.sorted() };
    };
    let forms = parse::forms(&recovered, &lines, &mut report);
    let mut reader = ProgramReader::new(text, &lines, source, report);
    let workflow = reader.workflow(&forms);
    reader.unbound();
    let ProgramReader {
        mut report,
        labels,
        facts,
        context,
        needs_branch,
        requests,
        answer_fields,
        ..
    } = reader;
    let names = requests.bind(&mut report);
    let program = workflow.filter(|_| !report.has_errors()).and_then(|workflow| {
        let ProgramParts { name, metadata, roles, mut states } = workflow;
        requests::name(&mut states, &names);
        let hash = checksum(text).into();
        Some(Program {
            name: name?,
            metadata,
            roles,
            states,
            labels,
            facts,
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
    ParsedProgram { program, diagnostics: report.sorted() }
}
