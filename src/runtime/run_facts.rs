//! The facts of a run's programs: those that they can match, those of a branch's label, and those that they change.

use std::path::Path;
use std::rc::Rc;

use crate::actor::context::now;
use crate::domain::activity::{Activity, ActivityResult};
use crate::domain::fact::FactSelection;
use crate::domain::graph_execution::{INSTANCE_LABEL, ProgramSource, STATE_LABEL};
use crate::domain::run::Run;
use crate::language::program::interpreter::{published_facts, selected_facts};
use crate::language::program::read::read;
use crate::language::source::WorkflowSource;
use crate::runtime::Workflow;
use crate::store;
use crate::store::Error;
use crate::store::dataspace::{Dataspace, DataspaceStep, FactStatement};

/// Returns the facts that the programs of a run can match at their positions.
pub fn wanted(run: &Run) -> FactSelection {
    let workflow = Workflow::of_run(Path::new(&run.scope_dir), run.folder.as_ref()).ok();
    selected_facts(run, |definition: &ProgramSource| {
        let source = workflow.as_ref()?.root.at(definition.folder.as_ref()).ok()?;
        read(&source.path(&definition.file), &definition.text, &source).program.map(Rc::new)
    })
}

/// Publishes the positions of the programs of a branch, which have published them already in the run that it branches
/// off. If it takes that run's label, what is published there is of the branch from now on.
///
/// # Errors
/// [`Error::Unfit`] if the label cannot be a key, [`Error::Io`].
pub(super) fn publish_label(space: &Dataspace, run: &Run, takes_label: bool) -> Result<(), Error> {
    if takes_label {
        for label in [INSTANCE_LABEL, STATE_LABEL] {
            space.retract(label, run.label(), None)?;
        }
    }
    for agent in run.agents.values() {
        let Some(execution) = agent.program() else { continue };
        let source = format!("{}/{}", run.workflow_id, agent.id);
        for (label, value) in published_facts(execution) {
            let (key, value, source) = (execution.label.as_str(), &value, source.as_str());
            space.assert(FactStatement { label, key, value, source, at: now() }, None)?;
        }
    }
    Ok(())
}

/// Performs a change of a fact, once for each step. Returns `None` for an activity that is none.
pub(super) fn changed(
    space: &Dataspace,
    step: &DataspaceStep,
    source: &str,
    activity: &Activity,
) -> Result<Option<ActivityResult>, store::Error> {
    match activity {
        Activity::Assert { label, key, value } => {
            let statement = FactStatement { label, key, value, source, at: now() };
            let asserted = space.assert(statement, Some(step))?;
            if let Some(replaced) = asserted.replaced {
                return Ok(Some(ActivityResult::Replaced(replaced, asserted.dropped)));
            }
        }
        Activity::Retract { label, key } => {
            space.retract(label, key, Some(step))?;
        }
        Activity::Claim { label, key, seq } => {
            let claimed = space.claim(label, key, *seq, step)?;
            return Ok(Some(ActivityResult::Claimed(claimed)));
        }
        _ => return Ok(None),
    }
    Ok(Some(ActivityResult::Done))
}
