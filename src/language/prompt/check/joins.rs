//! The checks of joins that cannot be met: no agent was forked before, or fewer than are waited for.

use super::FolderDiagnostics;
use super::fan_out::born_of;
use crate::domain::join::JoinCondition;
use crate::domain::transition::Transition;
use crate::language::position::SourcePlace;
use crate::language::prompt::joins::{JoinableAgents, awaited};
use crate::language::prompt::workflow_map::{FolderPrompt, FolderState, WorkflowMap};

impl FolderDiagnostics<'_> {
    /// Reports joins that wait for no agent, or for too many.
    pub(super) fn joins(&mut self, workflow_map: &WorkflowMap) {
        let awaited = awaited(workflow_map);
        let forked = forked_at_most(workflow_map);
        for (name, prompt) in workflow_map.prompts() {
            let Some(join) = &prompt.frontmatter.join else { continue };
            let place = prompt.places.join.unwrap_or(SourcePlace::START);
            if awaited.get(name).is_none_or(JoinableAgents::is_nobody) {
                let message = "this join waits for no agent: no way that leads here comes from a fork, by the same agent and since its last join; fork with next=\"…\" on the way here, or leave the join out";
                self.warning(name, place, "RF306", message.to_owned());
            } else if let (JoinCondition::Count(needed), Some(forked)) = (join.need, forked)
                && usize::try_from(needed).is_ok_and(|needed| needed > forked)
            {
                let message = format!(
                    "this join waits for {needed} agents, and no more than {forked} are ever forked; fork more of them, or write join: all"
                );
                self.warning(name, place, "RF306", message);
            }
        }
    }
}

/// Returns the maximum number of agents besides the first, if it is certain: there is one fork, nothing leads back
/// to it, and it has a known number of agents.
fn forked_at_most(workflow_map: &WorkflowMap) -> Option<usize> {
    let is_known = |state: &FolderState| match state {
        FolderState::Prompt(prompt) => !prompt.is_open(),
        FolderState::Graph(_)
        | FolderState::Program(_)
        | FolderState::Beyond(..)
        | FolderState::Other => true,
        FolderState::Script(_) | FolderState::Unreadable(_) => false,
    };
    if !workflow_map.states.values().all(is_known) {
        return None;
    }
    let forks =
        |(_, transition, _): &(_, &Transition, _)| matches!(transition, Transition::Fork { .. });
    let mut forks = workflow_map.steps().filter(forks);
    let (name, fork, _) = forks.next()?;
    let many =
        workflow_map.states.get(name).and_then(FolderState::prompt).is_some_and(may_fork_many);
    let loops = workflow_map.flow_map().loops();
    let again = fork.states().any(|state| loops.leads_back(state, name));
    (forks.next().is_none() && !many && !again).then(|| born_of(fork)).flatten()
}

fn may_fork_many(prompt: &FolderPrompt) -> bool {
    prompt.frontmatter.policy.many_forks
}
