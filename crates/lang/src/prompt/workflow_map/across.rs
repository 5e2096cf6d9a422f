//! The map of a workflow with all folders that its tags lead to.
//!
//! A state of another folder has the name under which the first folder sees it.

use std::collections::VecDeque;

use super::{FolderState, WorkflowMap, WorkflowMapOptions, read_state};
use crate::source::WorkflowSource;
use raymond_model::id::{ScopePath, StateName};

/// The most states of such a map. A link of a folder to itself gives each state endlessly many names.
const MAX_STATES: usize = 10_000;

impl WorkflowMap {
    /// Returns the map of a folder and of all other folders that are reached from a state of it.
    pub fn across(
        entry: &StateName,
        source: &dyn WorkflowSource,
        reach: WorkflowMapOptions<'_>,
    ) -> Self {
        let mut across = Self::empty(entry);
        let mut to_look_at = VecDeque::from([entry.clone()]);
        while let Some(name) = to_look_at.pop_front() {
            if across.states.contains_key(&name) || across.states.len() >= MAX_STATES {
                continue;
            }
            let state = read_across(&name, source, reach);
            let path = name.in_other_folder().map(|(path, _)| path);
            let spawned = matches!(state, FolderState::Graph(_) | FolderState::Program(_));
            to_look_at.extend(state.leads_to(source, reach).into_iter().map(|next| {
                // The names in texts have been changed already.
                path.as_ref().filter(|_| spawned).map_or(next.clone(), |path| path.see(&next))
            }));
            across.order.push(name.clone());
            across.states.insert(name, state);
        }
        across
    }
}

fn read_across(
    name: &StateName,
    source: &dyn WorkflowSource,
    reach: WorkflowMapOptions<'_>,
) -> FolderState {
    let Some((path, state)) = name.in_other_folder() else {
        return read_state(name, source, reach);
    };
    let there = match source.scope(&path) {
        Ok(there) => there,
        Err(error) => return FolderState::Unreadable(error),
    };
    let mut read = read_state(&state, &*there, reach);
    see_from_afar(&mut read, &path, &*there);
    read
}

/// Renames the states that a state of another folder leads to.
fn see_from_afar(state: &mut FolderState, path: &ScopePath, there: &dyn WorkflowSource) {
    let (FolderState::Prompt(text) | FolderState::Script(text)) = state else { return };
    for way in &mut text.ways {
        way.transition.rename_states(|name| *name = path.see(name));
    }
    text.mentioned.retain(|name| there.check(name).is_ok());
    for name in &mut text.mentioned {
        *name = path.see(name);
    }
}
