//! `raymond graph`: a workflow as a picture.

use super::args::workflows::{Format, GraphArgs};
use super::exit::{Error, Exit};
use super::output;
use super::subject::Subject;
use crate::language::diagnostic::Diagnostic;
use crate::language::drawing::picture::Drawing;
use crate::language::drawing::{dot, folder, graph, mermaid, program, svg};
use crate::language::excerpt::shown;
use crate::language::graph::read::Profile;
use crate::language::prompt::check::beginning;
use crate::language::prompt::outline::{Graph, Outline, Program, Reach, State};
use crate::language::source::Source;

/// `raymond graph`
///
/// # Errors
/// [`Error`] if there is nothing to draw, or the picture cannot be written.
pub fn graph(args: &GraphArgs) -> Result<Exit, Error> {
    let format = args.format().map_err(Error::Usage)?;
    let subject = Subject::open(&args.path)?;
    let drawing = match draw(&subject, &Subject::title(&args.path)) {
        Ok(drawing) => drawing,
        Err(reasons) => {
            for reason in &reasons {
                output::complain(reason);
            }
            return Ok(Exit::Invalid);
        }
    };
    let text = match format {
        Format::Mermaid => mermaid::write(&drawing),
        Format::Dot => dot::write(&drawing),
        Format::Svg => svg::write(&drawing),
    };
    match &args.output {
        Some(file) => std::fs::write(file, text)
            .map(|()| Exit::Success)
            .map_err(|error| Error::Io { doing: "write the picture", path: file.clone(), error }),
        None => output::print_exactly(&text),
    }
}

/// The picture, or why there is none.
fn draw(subject: &Subject, title: &str) -> Result<Drawing, Vec<String>> {
    let entry = beginning(&subject.scope, subject.entry.as_ref())
        .map_err(|found| found.iter().map(ToString::to_string).collect::<Vec<_>>())?;
    let graphs = subject.graphs(Profile::Lenient);
    let reach = Reach { by_text: true, most: usize::MAX, graphs: Some(&graphs) };
    let outline = Outline::of(&entry, &subject.scope, reach);
    match outline.states.get(&entry) {
        Some(State::Graph(Graph { program, diagnostics })) => {
            let drawn = program.as_ref().map(|program| graph::draw(program, title));
            drawn.ok_or_else(|| errors(diagnostics, ""))
        }
        Some(State::Program(Program { definition, diagnostics })) => {
            let drawn = definition.as_ref().map(|program| program::draw(program, title));
            let text = || subject.scope.read(&entry).unwrap_or_default();
            drawn.ok_or_else(|| errors(diagnostics, &text()))
        }
        Some(State::Unreadable(error)) => Err(vec![error.to_string()]),
        _ => Ok(folder::draw(&outline, title)),
    }
}

fn errors(diagnostics: &[Diagnostic], text: &str) -> Vec<String> {
    diagnostics.iter().filter(|found| found.is_error()).map(|found| shown(found, text)).collect()
}
