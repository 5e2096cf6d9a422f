//! Random trees, and the folded trees of real runs.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;
use crate::event::Event;
use crate::run::AgentEnding;
use crate::tests::plausible::{Journal, pushes};
use crate::tests::scene::{Scene, goto, result, state, tag};
use crate::transition::TagName;

/// Of the agents of a tree those stand out that have failed.
struct Failures<'tree, 'run>(&'tree AgentTree<'run>);

impl FoldSource for Failures<'_, '_> {
    fn id(&self, place: usize) -> &AgentId {
        self.0.nodes()[place].id
    }

    fn began(&self, place: usize) -> Option<&StateName> {
        self.0.nodes()[place].began.as_ref()
    }

    fn stands_out(&self, place: usize) -> Option<u8> {
        has_failed(&self.0.nodes()[place]).then_some(0)
    }
}

fn has_failed(node: &AgentNode<'_>) -> bool {
    matches!(node.member, TreeMember::Ended(FinishedAgent { ending: AgentEnding::Error(_), .. }))
}

fn fork(scene: &mut Scene, parent: &str) {
    scene.take(parent, tag(TagName::Fork, "N.md", "W.md"));
}

/// The folded rows as text: the first id, how many there are, and whether more is below.
fn shown(tree: &AgentTree<'_>) -> Vec<String> {
    let text = |row: &TreeRow| {
        let members = row.of.members();
        let many = if members.len() > 1 { format!(" ×{}", members.len()) } else { String::new() };
        let cut = if row.cut { " …" } else { "" };
        format!("{}{}{many}{cut}", ".".repeat(row.depth), tree.nodes()[members[0]].id)
    };
    tree.folded(&Failures(tree)).iter().map(text).collect()
}

fn ended(id: AgentId) -> FinishedAgent {
    FinishedAgent {
        id,
        state: Some(state("W.md")),
        folder: None,
        failed_in: None,
        failed_folder: None,
        ending: AgentEnding::Result(String::new()),
        structured: false,
        cause: None,
        cost_usd: Usd::from_dollars(0.01),
        unbilled_turn: None,
        variables: None,
        parent_notified: false,
        untold: Vec::new(),
        retryable: None,
    }
}

/// A chain in which each agent forks the next, as a run: no journal of that length is needed.
fn chain(length: usize) -> Run {
    let mut run = Scene::begin().run;
    let mut id = AgentId::main();
    for _ in 1..length {
        id = id.child(1);
        run.finished.push(ended(id.clone()));
    }
    run
}

#[test]
fn children_are_sorted_by_number_not_text() {
    let mut scene = Scene::begin();
    (0..11).for_each(|_| fork(&mut scene, "main"));
    fork(&mut scene, "main.2");
    let tree = AgentTree::of(&scene.run);
    let ids: Vec<&str> = tree.nodes().iter().map(|node| node.id.as_str()).collect();
    assert_eq!(ids[..5], ["main", "main.1", "main.2", "main.2.1", "main.3"]);
    assert_eq!(ids[11..], ["main.10", "main.11"]);
    assert_eq!((tree.nodes()[2].depth, tree.nodes()[2].descendants), (1, 1));
}

#[test]
fn siblings_with_same_start_state_fold_into_one_row() {
    let mut scene = Scene::begin();
    (0..20).for_each(|_| fork(&mut scene, "main"));
    scene.take("main", tag(TagName::Fork, "N.md", "OTHER.md"));
    for child in 3..=16 {
        scene.take(&format!("main.{child}"), result("done"));
    }
    scene.take("main.2", goto("B.md"));
    scene.happens(Event::AgentFailed(scene.end_badly("main.17")));
    fork(&mut scene, "main.1");
    let tree = AgentTree::of(&scene.run);
    assert_eq!(shown(&tree), ["main", ".main.1 ×20", "..main.17", "..main.1.1", ".main.21"]);
    assert_eq!(tree.rows().len(), 23);
    let living = AgentTree::of_the_living(&scene.run);
    assert_eq!(living.nodes().len(), 8);
}

#[test]
fn children_of_folded_siblings_fold_into_one_row() {
    let mut scene = Scene::begin();
    (0..20).for_each(|_| fork(&mut scene, "main"));
    for child in 1..=20 {
        (0..3).for_each(|_| fork(&mut scene, &format!("main.{child}")));
    }
    assert_eq!(shown(&AgentTree::of(&scene.run)), ["main", ".main.1 ×20", "..main.1.1 ×60"]);
}

#[test]
fn binary_tree_folds_to_one_row_per_level() {
    let mut scene = Scene::begin();
    let mut generation = vec!["main".to_owned()];
    for _ in 0..7 {
        let children = |parent: &String| [format!("{parent}.1"), format!("{parent}.2")];
        for parent in &generation {
            fork(&mut scene, parent);
            fork(&mut scene, parent);
        }
        generation = generation.iter().flat_map(children).collect();
    }
    let tree = AgentTree::of(&scene.run);
    assert_eq!(tree.nodes().len(), 255);
    assert_eq!(shown(&tree).len(), 8);
}

#[test]
fn long_chain_is_cut_at_max_depth_and_shows_failed_agent() {
    let mut run = chain(3000);
    run.finished[2000].ending = AgentEnding::Error("lost".to_owned());
    let tree = AgentTree::of(&run);
    assert_eq!(tree.nodes()[0].descendants, 2999);
    assert_eq!(tree.nodes()[0].total_cost, Usd::from_dollars(29.99));
    let rows = tree.folded(&Failures(&tree));
    assert_eq!(rows.len(), MAX_TREE_DEPTH + 2);
    assert!(rows[MAX_TREE_DEPTH].cut);
    assert_eq!(
        rows[MAX_TREE_DEPTH + 1].of,
        RowSubject::One(2001),
        "who has failed far below is named"
    );
}

#[test]
fn agent_with_missing_parent_becomes_root() {
    let mut run = chain(4);
    run.finished.remove(0);
    let tree = AgentTree::of(&run);
    assert_eq!(tree.nodes().len(), 3);
    assert_eq!(tree.branches.roots().len(), 2);
}

proptest! {
    #[test]
    fn tree_lists_every_agent_once_after_its_parent(pushes in pushes(60)) {
        let run = Journal::of(&pushes).run;
        let tree = AgentTree::of(&run);
        let mut seen = BTreeSet::new();
        for node in tree.nodes() {
            prop_assert!(node.depth == 0 || node.id.parent().is_some_and(|parent| seen.contains(parent)));
            prop_assert!(seen.insert(node.id.as_str()));
        }
        prop_assert_eq!(seen.len(), run.agents.len() + run.finished.len());
        prop_assert_eq!(tree.nodes()[0].total_cost, run.total_cost_usd);
        prop_assert_eq!(tree.nodes()[0].descendants + 1, tree.nodes().len());
    }

    #[test]
    fn folded_rows_cover_all_agents_and_show_failures(pushes in pushes(60), many in 1usize..4, deepest in 0usize..4) {
        let run = Journal::of(&pushes).run;
        let tree = AgentTree::of(&run);
        let folding = FoldOptions { many, deepest, opened: None };
        let rows = rows(&tree.branches, &Failures(&tree), folding);
        let mut covered = BTreeSet::new();
        for row in &rows {
            let members = row.of.members();
            covered.extend(if row.cut { tree.branches.below(members) } else { members.to_vec() });
        }
        prop_assert_eq!(covered.len(), tree.nodes().len());
        for (place, node) in tree.nodes().iter().enumerate().filter(|(_, node)| has_failed(node)) {
            let failed = tree.nodes().iter().filter(|node| has_failed(node)).count();
            let alone = rows.iter().any(|row| row.of == RowSubject::One(place));
            prop_assert!(alone || failed > FAMILY_FOLD_SIZE, "{} is overlooked", node.id);
        }
    }
}
