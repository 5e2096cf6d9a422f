//! The facts that a run sees as they were where it branched off another.

use super::Run;
use crate::domain::activity::Activity;
use crate::domain::fact::{Fact, FactChange};

impl Run {
    /// Returns whether a change of a fact came before the run branched off another and after what both share.
    pub fn hides(&self, change: &FactChange) -> bool {
        self.branch.as_ref().is_some_and(|branch| branch.hides(change, &self.facts))
    }

    /// Returns a fact that held where the run branched off another and is gone since, until an agent of it takes it.
    pub fn kept_fact(&self, activity: &Activity) -> Option<Fact> {
        let Activity::Claim { label, key, seq } = activity else { return None };
        let branch = self.branch.as_ref()?;
        let fact = self.facts.get(label, Some(key)).filter(|fact| fact.seq == *seq)?;
        branch.keeps(&fact).then_some(fact)
    }
}
