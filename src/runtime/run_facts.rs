//! The facts that the programs of a stored run can match.

use std::path::Path;
use std::rc::Rc;

use super::Workflow;
use crate::domain::fact::FactSelection;
use crate::domain::program_execution::ProgramSource;
use crate::domain::run::Run;
use crate::language::program::interpreter::sought_facts;
use crate::language::program::read::read;
use crate::language::source::WorkflowSource;

/// Returns the facts that the programs of a run can match at their positions.
pub fn sought(run: &Run) -> FactSelection {
    let workflow = Workflow::of_run(Path::new(&run.scope_dir), run.folder.as_ref()).ok();
    sought_facts(run, |own: &ProgramSource| {
        let root = &workflow.as_ref()?.root;
        let source =
            own.folder.as_ref().map_or(Ok(root.clone()), |below| root.below(below)).ok()?;
        read(&source.path(&own.file), &own.text, &source).program.map(Rc::new)
    })
}
