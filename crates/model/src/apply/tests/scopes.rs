//! Tests of transitions into other folders.

use super::*;
use crate::id::Folder;
use crate::tests::scene::{Scene, state, tag};
use crate::transition::TagName;

fn place(scene: &Scene, agent: &str) -> String {
    let agent = scene.agent(agent);
    let folder = agent.folder().map(|folder| format!("{folder}/")).unwrap_or_default();
    format!("{folder}{}", agent.current_state)
}

#[test]
fn call_of_folder_returns_into_folder_of_caller() {
    let mut scene = Scene::begin();
    scene.take("main", tag(TagName::Goto, "", "coding/A.md"));
    assert_eq!(place(&scene, "main"), "coding/A.md");
    scene.take("main", tag(TagName::Call, "B.md", "../review/CHECK.md"));
    assert_eq!(place(&scene, "main"), "review/CHECK.md");
    scene.take("main", tag(TagName::Goto, "", "C.md"));
    scene.take("main", tag(TagName::Function, "D.md", "../E.md"));
    assert_eq!(place(&scene, "main"), "E.md");
    scene.take("main", tag(TagName::Result, "", "x"));
    assert_eq!(place(&scene, "main"), "review/D.md");
    scene.take("main", tag(TagName::Result, "", "x"));
    assert_eq!(place(&scene, "main"), "coding/B.md");
}

#[test]
fn forked_agent_lives_in_other_folder_and_parent_stays() {
    let mut scene = Scene::begin();
    scene.take("main", tag(TagName::Goto, "", "coding/A.md"));
    scene.take("main", tag(TagName::Fork, "B.md", "lib:worker/W.md"));
    assert_eq!(
        (place(&scene, "main"), place(&scene, "main.1")),
        ("coding/B.md".into(), "lib/worker/W.md".into())
    );
    assert_eq!(scene.agent("main.1").spec.folder, Folder::parse("lib/worker").ok());
    assert_eq!(scene.agent("main.1").scope, None);
}

#[test]
fn turns_in_states_of_one_name_are_counted_by_folder() {
    let mut scene = Scene::begin();
    scene.take("main", tag(TagName::Goto, "", "START.md"));
    scene.take("main", tag(TagName::Goto, "", "START.md"));
    assert_eq!(scene.agent("main").visit(), 1);
    scene.take("main", tag(TagName::Goto, "", "review/START.md"));
    assert_eq!(
        (scene.agent("main").visit(), &scene.agent("main").current_state),
        (0, &state("START.md"))
    );
}

#[test]
fn transition_beyond_root_is_refused_and_changes_nothing() {
    let mut scene = Scene::begin();
    let before = scene.run.clone();
    let step = scene.step("main", tag(TagName::Goto, "", "../x/A.md"));
    let refused = scene.offer(Event::StepFinished(step));
    assert!(matches!(refused, Err(ApplyError::Scope(_))), "{refused:?}");
    assert_eq!(scene.run, before);
}
