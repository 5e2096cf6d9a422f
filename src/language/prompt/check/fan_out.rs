//! The checks of a state's forks: it may fork at all, and its lists can be used.
//!
//! Only a list that stands in the tag itself is known. A list in a file is read when it is forked.

use super::FolderDiagnostics;
use crate::domain::fork::ForkSettings;
use crate::domain::id::StateName;
use crate::domain::transition::{ForkList, TagName, Transition, Variables};
use crate::language::fork_list;
use crate::language::prompt::workflow_map::{FolderPrompt, TransitionOrigin, WorkflowMap};

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
    let count = match fork_list::entries(each, &each.list, &Variables::new()) {
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
    Some(fork_list::entries(each, &each.list, &Variables::new()).ok()?.len())
}

/// Returns the variables that the entries of a fork's list fill, if they are known.
pub(super) fn filled_by(transition: &Transition) -> Option<Vec<String>> {
    let each = known_list(transition)?;
    let entries = fork_list::entries(each, &each.list, &Variables::new()).ok()?;
    Some(
        entries
            .into_iter()
            .flat_map(|variables| variables.into_iter().map(|(name, _)| name))
            .collect(),
    )
}
