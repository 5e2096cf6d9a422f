//! Names of states without an ending: `REVIEW` is the one file of `REVIEW.md`, `REVIEW.yaml`, … that exists.

use super::scopes::first_state;
use super::script::PreparedScript;
use super::state_error::Error;
use crate::domain::id::{Folder, ScopePath, StateKind, StateName};
use crate::domain::join::{Join, JoinFallback};
use crate::domain::transition::Transition;
use crate::language::source::WorkflowSource;

/// Returns the states that a name without an ending fits.
pub fn candidates(name: &StateName, source: &dyn WorkflowSource) -> Vec<StateName> {
    if name.as_str().contains('.') {
        return Vec::new();
    }
    let with = |ending: &str| StateName::parse(&format!("{name}.{ending}")).ok();
    let endings = StateKind::ALL.iter().flat_map(|kind| kind.endings());
    let named = endings.filter_map(|ending| with(ending)).chain([name.clone()]);
    named.filter(|name| StateKind::of(name).is_some() && source.check(name).is_ok()).collect()
}

/// Returns why a name without an ending fits no single state, if it fits several.
pub fn ambiguity(name: &StateName, source: &dyn WorkflowSource) -> Option<String> {
    let fitting = candidates(name, source);
    let names: Vec<&str> = fitting.iter().map(StateName::as_str).collect();
    (names.len() > 1).then(|| format!("this fits {}; write the ending", names.join(" and ")))
}

/// Adds the ending to a name without one, if just one state fits.
pub fn resolve(name: &mut StateName, source: &dyn WorkflowSource) {
    if let [only] = candidates(name, source).as_slice() {
        *name = only.clone();
    }
}

/// Adds the endings to the names in a transition.
pub fn resolve_transition(transition: &mut Transition, source: &dyn WorkflowSource) {
    transition.change_targets(|scope, target| resolve_target(scope, target, source));
    transition.rename_states(|name| resolve(name, source));
}

/// Completes what a tag names: a name that only a folder has is that folder, and a folder is its first state.
fn resolve_target(
    scope: &mut Option<ScopePath>,
    target: &mut StateName,
    source: &dyn WorkflowSource,
) {
    if let Some(folder) = named_folder(scope.as_ref(), target, source) {
        let Ok(entry) = StateName::entry() else { return };
        (*scope, *target) = (Some(folder), entry);
    }
    let Some(there) = scope.as_ref().and_then(|path| source.scope(path).ok()) else { return };
    if !target.is_entry() {
        resolve(target, &*there);
    } else if let Ok(first) = first_state(&*there) {
        *target = first;
    }
}

/// Returns the folder that a name without an ending is the name of, if no state has it.
fn named_folder(
    scope: Option<&ScopePath>,
    target: &StateName,
    source: &dyn WorkflowSource,
) -> Option<ScopePath> {
    if target.as_str().contains(['.', '{']) {
        return None;
    }
    let there = scope.map(|path| source.scope(path));
    let files = match &there {
        None => Some(source),
        Some(there) => there.as_deref().ok(),
    };
    if files
        .is_some_and(|files| files.check(target).is_ok() || !candidates(target, files).is_empty())
    {
        return None;
    }
    let below = Folder::parse(target.as_str()).ok()?;
    let path = scope.map_or_else(|| ScopePath::from_root(Some(&below)), |path| path.join(&below));
    source.scope(&path).is_ok().then_some(path)
}

/// Returns why a state of another folder cannot be entered, if it cannot.
pub fn why_no_entry(
    path: &ScopePath,
    state: &StateName,
    source: &dyn WorkflowSource,
) -> Option<String> {
    let there = match source.scope(path) {
        Ok(there) => there,
        Err(error) => {
            // `../review` names a folder also where it is none, or none that may be entered.
            let folder = Folder::parse(state.as_str()).ok().filter(|_| path.is_explicit());
            let named = folder.and_then(|folder| source.scope(&path.join(&folder)).err());
            return Some(named.unwrap_or(error).to_string());
        }
    };
    if state.is_entry() {
        let why = first_state(&*there).err()?;
        return Some(format!("this folder cannot be entered: {why}"));
    }
    why_no_state(state, &*there)
}

/// Returns why a state of the folder itself cannot be entered, if it cannot.
pub fn why_no_state(state: &StateName, source: &dyn WorkflowSource) -> Option<String> {
    if let Some(why) = ambiguity(state, source) {
        return Some(why);
    }
    if let Err(error) = source.check(state) {
        return Some(error.to_string());
    }
    match StateKind::of(state) {
        Some(StateKind::Prompt | StateKind::Graph | StateKind::Program) => None,
        Some(StateKind::Script) => {
            PreparedScript::read(state, None, source).err().map(|error| error.to_string())
        }
        None => Some(Error::NotAPrompt { path: source.path(state) }.to_string()),
    }
}

/// Adds the endings to the states that are entered if a join is not met.
pub fn resolve_join(join: &mut Join, source: &dyn WorkflowSource) {
    for fallback in [&mut join.on_failure, &mut join.on_timeout] {
        if let JoinFallback::State(state) = fallback {
            resolve(state, source);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn name_without_ending_is_resolved_if_one_state_fits() {
        let files = ["A.md", "B.md", "B.lisp", "raymond.yaml", "C.txt"];
        let source: BTreeMap<String, String> =
            files.map(|name| (name.to_owned(), "x".to_owned())).into();
        let resolved = |name: &str| {
            let mut name = StateName::parse(name).expect("a name");
            resolve(&mut name, &source);
            name.to_string()
        };
        assert_eq!(
            ["A", "A.md", "B", "C", "raymond", "GONE"].map(resolved),
            ["A.md", "A.md", "B", "C", "raymond", "GONE"]
        );
        let why = ambiguity(&StateName::parse("B").expect("a name"), &source);
        assert_eq!(why.as_deref(), Some("this fits B.md and B.lisp; write the ending"));
    }
}
