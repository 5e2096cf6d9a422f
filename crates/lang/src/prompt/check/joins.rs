//! The checks of joins that cannot be met: no agent was forked before, or fewer than are waited for.
//!
//! The checks of a state's forks: it may fork at all, and its lists can be used.
//!
//! Only a list that stands in the tag itself is known. A list in a file is read when it is forked.

use crate::fork_plan;
use crate::position::SourcePlace;
use crate::prompt::check::FolderDiagnostics;
use crate::prompt::joins::{JoinableAgents, awaited};
use crate::prompt::workflow_map::{FolderPrompt, FolderState, TransitionOrigin, WorkflowMap};
use raymond_model::id::StateName;
use raymond_model::join::JoinCondition;
use raymond_model::settings::ForkSettings;
use raymond_model::transition::{ForkList, TagName, Transition, Variables};

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
        other => !matches!(other, FolderState::Script(_) | FolderState::Unreadable(_)),
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

impl FolderDiagnostics<'_> {
    /// Reports the problems of all states' forks; `most` is the folder's limit of forked agents per reply.
    pub(super) fn fan_outs(&mut self, workflow_map: &WorkflowMap, most: Option<u32>) {
        let most = most.unwrap_or(ForkSettings::default().max_fan_out);
        for (name, prompt) in workflow_map.prompts() {
            self.rules(name, prompt);
            let most = prompt.frontmatter.forks.max_fan_out.unwrap_or(most);
            for way in prompt.ways.iter().filter(|way| way.origin != TransitionOrigin::Text) {
                if let Some(why) = unusable(&way.transition, most) {
                    self.error(name, way.place.entry, "RF206", why);
                } else if born_of(&way.transition) == Some(0) {
                    let message = "the list of this fork is empty, so it starts no agent; write its entries, or `each: any`";
                    self.warning(name, way.place.entry, "RF206", message.to_owned());
                }
            }
            for shown in &prompt.shown {
                let why = shown.transition.as_ref().ok().and_then(|shown| unusable(shown, most));
                if let Some(why) = why {
                    self.warning(
                        name,
                        shown.place,
                        "RF206",
                        format!("the text shows a fork: {why}"),
                    );
                }
            }
        }
    }

    /// Warns of fork settings in a state that cannot fork.
    fn rules(&mut self, name: &StateName, prompt: &FolderPrompt) {
        let forks = prompt.ways.iter().any(|way| way.transition.tag() == TagName::Fork);
        if let Some(place) = prompt.places.forks.filter(|_| !forks && !prompt.is_open()) {
            let message = "this says how agents are forked here, and the policy allows no fork; list one, such as { tag: fork, target: WORKER.md, next: NEXT.md }, or leave it out";
            self.warning(name, place, "RF205", message.to_owned());
        }
    }
}

/// Returns why the list of a fork cannot be used, if the list is known and unusable.
fn unusable(transition: &Transition, most: u32) -> Option<String> {
    let each = known_list(transition)?;
    let count = match fork_plan::entries(each, &each.list, &Variables::new()) {
        Ok(entries) => entries.len(),
        Err(why) => return Some(why),
    };
    (count > usize::try_from(most).unwrap_or(usize::MAX)).then(|| {
        format!(
            "its list has {count} entries, and one reply may fork {most} agents at the most; raise max_fan_out in the frontmatter or in raymond.yaml"
        )
    })
}

/// Returns the list of a fork that stands in its tag, with nothing to be filled in.
fn known_list(transition: &Transition) -> Option<&ForkList> {
    let Transition::Fork { each: Some(each), .. } = transition else { return None };
    (each.is_inline() && !each.list.contains("{{")).then_some(each)
}

/// Returns the number of agents that a fork starts, if it is known.
pub(super) fn born_of(transition: &Transition) -> Option<usize> {
    if let Transition::Fork { each: None, .. } = transition {
        return Some(1);
    }
    let each = known_list(transition)?;
    Some(fork_plan::entries(each, &each.list, &Variables::new()).ok()?.len())
}

/// Returns the variables that the entries of a fork's list fill, if they are known.
pub(super) fn filled_by(transition: &Transition) -> Option<Vec<String>> {
    let each = known_list(transition)?;
    let entries = fork_plan::entries(each, &each.list, &Variables::new()).ok()?;
    Some(
        entries
            .into_iter()
            .flat_map(|variables| variables.into_iter().map(|(name, _)| name))
            .collect(),
    )
}
