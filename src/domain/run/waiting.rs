//! The pause of a run in which nothing goes on before somebody acts.

use super::{PauseReason, Run};
use crate::domain::agent::Agent;

impl Run {
    /// Returns the pause that is due when every live agent waits for a person or for one that does.
    #[must_use]
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
            let why = || format!("{id} is held; let it go on with `raymond release {run} {id}`");
            agent.is_held().then(why)
        };
        let mut parked = self
            .agents
            .values()
            .filter_map(|agent| agent.parked_reason().map(str::to_owned).or_else(|| held(agent)));
        let reason = parked.next()?;
        Some(PauseReason::Parked { agents: 1 + parked.count(), reason })
    }
}
