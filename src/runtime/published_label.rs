//! The facts that tell of the programs of a branch, under its label.

use crate::actor::clock::now;
use crate::domain::published_state::{INSTANCE_LABEL, STATE_LABEL};
use crate::domain::run::Run;
use crate::language::program::interpreter::published_facts;
use crate::store::Error;
use crate::store::dataspace::{Dataspace, FactStatement};

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
