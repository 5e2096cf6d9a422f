//! The pause of a run in which nothing goes on before somebody acts.

use super::{PauseReason, Run};
use crate::domain::agent::Agent;

impl Run {
    /// Returns the pause that is due when every live agent waits for a person or for one that does.
    pub fn waiting(&self) -> Option<PauseReason> {
        let is_still =
            |agent: &Agent| agent.parked_reason().is_some() || agent.is_held() || agent.waits();
        if !self.agents.all(is_still) {
            return None;
        }
        let questions = self.agents.values().filter_map(Agent::question);
        let approvals = self.agents.values().flat_map(Agent::open_approvals);
        let questions = questions.map(|asked| asked.question.text.clone());
        let mut texts = questions.chain(approvals.map(|asked| asked.request.summary()));
        if let Some(first) = texts.next() {
            return Some(PauseReason::Asking { questions: 1 + texts.count(), first });
        }
        let mut waits = self.external_waits();
        if let Some(first) = waits.next() {
            let first = first.awaiting.clone();
            return Some(PauseReason::Waiting { programs: 1 + waits.count(), first });
        }
        let held = |agent: &Agent| {
            let (id, run) = (&agent.id, &self.workflow_id);
            let why = || format!("{id} is held; continue it with `raymond release {run} {id}`");
            agent.is_held().then(why)
        };
        let reason = |agent: &Agent| {
            let reason = agent.parked_reason().map(str::to_owned).or_else(|| held(agent));
            reason.map(|reason| (agent.waits(), reason))
        };
        let mut parked: Vec<(bool, String)> = self.agents.values().filter_map(reason).collect();
        // An agent that waits for others cannot go on before they do, so one that does not is named.
        parked.sort_by_key(|(waits, _)| *waits);
        let agents = parked.len();
        let (_, reason) = parked.into_iter().next()?;
        Some(PauseReason::Parked { agents, reason })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::apply::tests::scene::{Scene, tag};
    use crate::domain::join::JoinCondition;
    use crate::domain::time::Timestamp;
    use crate::domain::transition::TagName;

    #[test]
    fn pause_names_a_held_agent_that_waits_for_no_other() {
        let mut scene = Scene::begin();
        scene.take("main", tag(TagName::Fork, "NEXT.md", "WORK.md"));
        scene.joins("main", JoinCondition::All);
        for id in ["main", "main.1"] {
            let mut agent = scene.agent(id).clone();
            agent.orders.held_since = Some(Timestamp(1));
            scene.run.agents.insert(agent);
        }
        let Some(PauseReason::Parked { agents, reason }) = scene.run.waiting() else {
            panic!("{:?}", scene.run.waiting())
        };
        assert_eq!(agents, 2);
        assert!(reason.starts_with("main.1 is held"), "{reason}");
    }
}
