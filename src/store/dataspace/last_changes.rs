//! What many changes together make of each file of the dataspace. Pure.

use std::collections::BTreeMap;

use super::entry::{ChangeLogEntry, LoggedChange, ProvenFact};
use super::step::{DataspaceStep, IdempotencyKey};
use crate::domain::id::RunId;

/// The last change of each file.
#[derive(Debug, Default)]
pub(super) struct LastChanges {
    /// The facts by label and key, with the number of the change; `None` for one that does not hold.
    pub(super) facts: BTreeMap<(String, String), (u64, Option<ProvenFact>)>,
    /// The marks, by agent.
    pub(super) marks: BTreeMap<String, (DataspaceStep, IdempotencyKey)>,
    /// The taken facts, by agent and step.
    pub(super) claims: BTreeMap<String, BTreeMap<u64, (DataspaceStep, ProvenFact)>>,
    /// The runs that have ended.
    pub(super) ended: Vec<RunId>,
}

impl LastChanges {
    /// Adds the change after those that were added before.
    pub(super) fn add(&mut self, entry: &ChangeLogEntry) {
        let ChangeLogEntry(seq, label, key, change) = entry;
        if let Some(step) = entry.step() {
            // A later step settles the earlier ones. A mark or a claim of a settled step may come back all the same,
            // if it was the agent's last: it is garbage that the end of the run removes.
            let agent = DataspaceStep::agent_file_stem(&step.run, &step.agent);
            if let Some(claims) = self.claims.get_mut(&agent) {
                *claims = claims.split_off(&step.step);
            }
            if let Some((step, mark)) = entry.mark() {
                self.marks.insert(agent, (step.clone(), mark));
            }
        }
        let name = (label.clone(), key.clone());
        match change {
            // An earlier raymond has changed it, and says nothing more.
            None => drop(self.facts.remove(&name)),
            Some(LoggedChange::Reread {}) => {}
            Some(LoggedChange::Asserted { fact, .. }) => {
                self.facts.insert(name, (*seq, Some(fact.clone())));
            }
            Some(LoggedChange::Retracted { .. }) => {
                self.facts.insert(name, (*seq, None));
            }
            Some(LoggedChange::Claimed { fact, step, next }) => {
                self.facts.insert(name, (*seq, next.clone()));
                let agent = DataspaceStep::agent_file_stem(&step.run, &step.agent);
                let claims = self.claims.entry(agent).or_default();
                claims.insert(step.step, (step.clone(), fact.clone()));
            }
            Some(LoggedChange::RunEnded { run }) => {
                let own = format!("{run}~");
                self.marks.retain(|agent, _| !agent.starts_with(&own));
                self.claims.retain(|agent, _| !agent.starts_with(&own));
                self.ended.push(run.clone());
            }
        }
    }
}
