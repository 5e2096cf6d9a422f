//! Reads a program from the text of its file, or reports everything that is wrong with it.

use std::collections::BTreeSet;

use crate::diagnostic::{Diagnostic, FileDiagnostics, quoted};
use crate::program::checked_program::{InstructionKind, Program, StartWorkflow, TextExpression};
use crate::program::definitions::ProgramDefinitions;
use crate::program::expand::DefinitionExpander;
use crate::program::files::{LoadedForms, ProgramFiles};
use crate::program::parse::Form;
use crate::program::parse::LineIndex;
use crate::program::reader::ProgramReader;
use crate::program::workflow::ProgramParts;
use crate::program::{commands, conditions, control_flow, files, reader, requests, scopes};
use crate::source::{SourcePlace, WorkflowSource, checksum};

/// The outcome of reading a program.
#[derive(Debug, Default)]
pub struct ParsedProgram {
    /// The program, unless there are errors.
    pub program: Option<Program>,
    /// The findings, in the order of the file.
    pub diagnostics: Vec<Diagnostic>,
}

/// Reads a program. `path` is its file as people see it; the files it requires and the folders
/// it runs are looked for in `source`.
pub fn read(path: &str, text: &str, source: &dyn WorkflowSource) -> ParsedProgram {
    read_and_check(path, text, source, true)
}

fn read_and_check(
    path: &str,
    text: &str,
    source: &dyn WorkflowSource,
    with_started: bool,
) -> ParsedProgram {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut report = FileDiagnostics::new(path);
    let Some(loaded) = files::load(path, text, source, &mut report) else {
        return ParsedProgram { program: None, diagnostics: report.sorted() };
    };
    let LoadedForms { main_forms: main, required, files, text: all_text, faults } = loaded;
    let (forms, defined, variables) = expanded(main, required, &files, &mut report);
    let lines = LineIndex::new(&all_text);
    let mut reader = ProgramReader::new(&all_text, &lines, source, &files, report);
    reader.defined = defined;
    reader.variables = variables;
    let workflow = read_workflow(&mut reader, forms);
    let ProgramReader { mut report, requests, noted, .. } = reader;
    let names = requests.bind(&mut report);
    let is_sound = !report.has_errors() && !faults.iter().any(Diagnostic::is_error);
    let program = workflow.filter(|_| is_sound).and_then(|workflow| {
        let ProgramParts { name, metadata, roles, mut states } = workflow;
        requests::name(&mut states, &names);
        let hash = checksum(text).into();
        Some(Program {
            name: name?,
            metadata,
            roles,
            states,
            labels: noted.labels,
            facts: noted.facts,
            context: noted.context,
            needs_branch: noted.needs_branch,
            hash,
            text: text.into(),
            files: files.clone(),
        })
    });
    if let Some(program) = &program {
        reader::check(program, &noted.answer_fields, &mut report);
        conditions::check_verdicts(program, &noted.verdicts, &mut report);
        control_flow::check(program, &mut report);
        commands::check(program, &mut report);
        if with_started {
            check_started(program, &noted.state_keys, source, &mut report);
        }
    }
    let program = program.filter(|_| !report.has_errors());
    let found = report.sorted().into_iter().map(|found| files.placed(found));
    ParsedProgram { program, diagnostics: found.chain(faults).collect() }
}

/// Returns the forms of a program with what its definitions mean, the names of these, and the names of the elements of
/// `for-each`.
fn expanded(
    main: Vec<Form>,
    required: Vec<Form>,
    files: &ProgramFiles,
    report: &mut FileDiagnostics,
) -> (Vec<Form>, BTreeSet<String>, BTreeSet<String>) {
    let mut definitions = ProgramDefinitions::default();
    for form in definitions.take(required, files, report) {
        if !form.is_wrong() {
            let why = format!(
                "{} is in a file that another file requires; such a file has `define`, `defn` and `require` only",
                form.described()
            );
            report.error(form.at, "SX201", why);
        }
    }
    let main = definitions.take(main, files, report);
    let forms = DefinitionExpander::new(&mut definitions, report).file(main);
    for (name, at) in definitions.unused() {
        if files.resolve(at).0.is_none() {
            let why = format!("{} is never used; remove it", quoted(name));
            report.warning(at, "SX409", why);
        }
    }
    let names = definitions.values.keys().cloned().collect();
    (forms, names, definitions.variables)
}

/// Reads the workflow, once the requests of each `for-each` are separate.
fn read_workflow(reader: &mut ProgramReader<'_>, mut forms: Vec<Form>) -> Option<ProgramParts> {
    reader.groups = scopes::separate(&mut forms);
    let workflow = reader.workflow(&forms);
    reader.unbound();
    workflow
}

// Checks the programs that a program starts, as far as their files are known.
//
// They need values, and have to publish the state that the program waits for.

/// Warns of each start that cannot end as the program expects. `awaited` are the keys of the states that it looks at.
fn check_started(
    program: &Program,
    awaited: &[TextExpression],
    source: &dyn WorkflowSource,
    report: &mut FileDiagnostics,
) {
    for instruction in program.instructions() {
        let InstructionKind::StartWorkflow(start) = &instruction.kind else { continue };
        if let Some(started) = read_started(start, source) {
            check_values(start, &started, instruction.at, report);
            if !started.metadata.publish_state && awaited.iter().any(|key| is_of(key, start)) {
                let why = format!(
                    "{} does not publish its state, so nobody can wait for it; add `(metadata (publish-state true))` there",
                    quoted(&start.program)
                );
                report.warning(instruction.at, "SX411", why);
            }
        }
    }
}

/// Returns the program of a file; `None` if the file does not exist, or has errors itself. The programs that it starts
/// are not read, because this one may be among them.
fn read_started(start: &StartWorkflow, source: &dyn WorkflowSource) -> Option<Program> {
    let (folder, file) = start.file()?;
    let read = |source: &dyn WorkflowSource| {
        let text = source.read(&file).ok()?;
        read_and_check(&source.path(&file), &text, source, false).program
    };
    match folder {
        Some(folder) => read(&*source.within(&folder).ok()?),
        None => read(source),
    }
}

fn check_values(
    start: &StartWorkflow,
    started: &Program,
    at: SourcePlace,
    report: &mut FileDiagnostics,
) {
    let is_given = |key: &str| start.context.iter().any(|(name, _)| name == key);
    let missing: Vec<&str> =
        started.context.iter().map(String::as_str).filter(|key| !is_given(key)).collect();
    let mut needs: Vec<String> = missing.iter().map(|key| format!("@context/{key}")).collect();
    let values: Vec<String> = missing.iter().map(|key| format!("{key} VALUE")).collect();
    let mut fixes = Vec::new();
    if !values.is_empty() {
        fixes.push(format!("`:context ({})`", values.join(" ")));
    }
    if started.needs_branch && start.branch.is_none() {
        needs.push("@branch".to_owned());
        fixes.push("`:branch VALUE`".to_owned());
    }
    if !needs.is_empty() {
        let (program, needs) = (quoted(&start.program), needs.join(", "));
        let why = format!(
            "{program} needs {needs}, so it cannot be started without; give it by {}",
            fixes.join(" and ")
        );
        report.warning(at, "SX412", why);
    }
}

/// Returns whether a key is that of the run that a start makes.
fn is_of(key: &TextExpression, start: &StartWorkflow) -> bool {
    match key {
        TextExpression::Bound(name) => start.bind.as_ref() == Some(name),
        TextExpression::Text(text) => start
            .label
            .as_ref()
            .is_some_and(|label| label.arguments.is_empty() && label.pieces.concat() == **text),
        _ => false,
    }
}
