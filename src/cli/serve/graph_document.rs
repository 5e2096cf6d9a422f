//! The picture of a run's workflow, as the page draws it.

use serde_json::{Value, json};

use crate::cli::exit::Error;
use crate::cli::graph;
use crate::cli::subject::InspectedWorkflow;
use crate::domain::id::RunId;
use crate::language::drawing::placed::PlacedDrawing;
use crate::store::layout::RunsRoot;
use crate::store::view::load_view;

/// The most nodes of a picture.
const MAX_NODES: usize = 150;

/// Returns the picture of a run's workflow, from its files as they were when the run began.
pub(super) fn graph(root: &RunsRoot, id: &RunId) -> Result<Value, Error> {
    let run = load_view(root, id)?.run;
    let mut folder = root.run(id).workflow();
    if let Some(below) = &run.folder {
        folder = folder.join(below.as_str());
    }
    let first = |name: &str| folder.join(name);
    // A workflow that is one file is drawn from that file.
    let entry = run
        .agents
        .unordered()
        .map(|agent| (&agent.id, agent.spec.state.clone()))
        .chain(run.finished.iter().filter_map(|ended| Some((&ended.id, ended.began()?))))
        .find(|(agent, _)| agent.parent().is_none())
        .map(|(_, state)| first(state.as_str().split('#').next().unwrap_or_default()));
    let path = entry.filter(|path| path.is_file()).unwrap_or_else(|| folder.clone());
    let subject = InspectedWorkflow::open(&path)?;
    let drawing = graph::draw(&subject, id.as_str());
    let drawing = drawing.map_err(|reasons| Error::Usage(reasons.join("\n")))?;
    Ok(json!(PlacedDrawing::of(&drawing.folded(MAX_NODES))))
}
