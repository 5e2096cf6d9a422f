//! `raymond graph`: draws a workflow.

use super::args::workflows::{DrawingFormat, GraphArgs};
use super::exit::{CliExitCode, Error};
use super::output;
use crate::cli::check::InspectedWorkflow;
use crate::language::diagnostic::shown;
use crate::language::drawing::{dot, mermaid, svg};
use crate::language::flow::Flow;
use crate::language::graph::profile::GraphProfile;
use crate::language::prompt::check::beginning;
use crate::language::prompt::workflow_map::{FolderState, WorkflowMap, WorkflowMapOptions};
use crate::language::source::WorkflowSource;
use crate::language::{graph, program};

/// Runs `raymond graph`.
///
/// # Errors
/// [`Error`] if there is nothing to draw, or the picture cannot be written.
pub fn graph(args: &GraphArgs) -> Result<CliExitCode, Error> {
    let format = args.format().map_err(Error::Usage)?;
    let subject = InspectedWorkflow::open(&args.path)?;
    let drawing = match draw(&subject, &InspectedWorkflow::title(&args.path)) {
        Ok(drawing) => drawing,
        Err(reasons) => {
            for reason in &reasons {
                output::complain(reason);
            }
            return Ok(CliExitCode::Invalid);
        }
    };
    // No picture of many more nodes can be read, and Mermaid draws 500 edges.
    let drawing = drawing.folded(usize::try_from(args.max_nodes).unwrap_or(usize::MAX));
    if drawing.hidden > 0 {
        output::tell(&format!(
            "{}: the picture has the {} nodes next to the start, and one for the other {}; --max-nodes shows more",
            drawing.title, args.max_nodes, drawing.hidden
        ));
    }
    let text = match format {
        DrawingFormat::Mermaid => mermaid::write(&drawing),
        DrawingFormat::Dot => dot::write(&drawing),
        DrawingFormat::Svg => svg::write(&drawing),
    };
    match &args.output {
        Some(file) => std::fs::write(file, text)
            .map(|()| CliExitCode::Success)
            .map_err(|error| Error::Io { doing: "write the picture", path: file.clone(), error }),
        None => output::print_exactly(&text),
    }
}

/// Draws a workflow, or returns the reasons against it.
pub(super) fn draw(subject: &InspectedWorkflow, title: &str) -> Result<Flow, Vec<String>> {
    let entry = beginning(&subject.scope, subject.entry.as_ref())
        .map_err(|found| found.iter().map(ToString::to_string).collect::<Vec<_>>())?;
    let graphs = subject.graphs(GraphProfile::Lenient);
    let reach = WorkflowMapOptions { by_text: true, max_states: usize::MAX, graphs: Some(&graphs) };
    let workflow_map = WorkflowMap::of(&entry, &subject.scope, reach);
    let state = workflow_map.states.get(&entry);
    match state {
        Some(FolderState::Graph(_) | FolderState::Program(_)) => {
            let graph =
                state.and_then(FolderState::graph).map(|graph| graph::flow::flow(graph, title));
            let program = state.and_then(FolderState::program);
            let flow = graph.or_else(|| program.map(|program| program::flow::flow(program, title)));
            flow.ok_or_else(|| {
                let found = state.map_or(&[][..], FolderState::diagnostics).iter();
                // A finding in a program is shown with its line.
                let text = match state {
                    Some(FolderState::Program(_)) => subject.scope.read(&entry).unwrap_or_default(),
                    _ => String::new(),
                };
                found.filter(|found| found.is_error()).map(|found| shown(found, &text)).collect()
            })
        }
        Some(FolderState::Unreadable(error)) => Err(vec![error.to_string()]),
        _ => Ok(workflow_map.flow(title)),
    }
}
