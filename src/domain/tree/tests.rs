//! The tree by chance, and what folding makes of broad, deep and mixed ones.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;
use crate::domain::apply::tests::plausible::{Journal, pushes};
use crate::domain::apply::tests::scene::{Scene, goto, result, tag};
use crate::domain::transition::Tag;

/// Alike are agents that live in the same state, or have ended.
fn alike(node: &Node<'_>) -> String {
    match node.member {
        Member::Live(agent) => agent.current_state.to_string(),
        Member::Ended(_) => String::new(),
    }
}

fn fork(scene: &mut Scene, parent: &str) {
    scene.take(parent, tag(Tag::Fork, "N.md", "W.md"));
}

/// The rows as text: the first id, and how many there are.
fn shown(rows: &[Row<'_, '_>]) -> Vec<String> {
    let text = |row: &Row<'_, '_>| {
        let more =
            if row.members.len() > 1 { format!(" ×{}", row.members.len()) } else { String::new() };
        format!("{}{}{more}", ".".repeat(row.depth), row.members[0].id)
    };
    rows.iter().map(text).collect()
}

/// A chain in which each agent forks the next, as a run: no journal of that length is needed.
fn chain(length: usize) -> Run {
    let mut run = Scene::begin().run;
    let mut id = AgentId::main();
    for _ in 1..length {
        id = id.child(1);
        let ending = crate::domain::run::Ending::Result(String::new());
        let cost_usd = Usd::from_dollars(0.01);
        run.finished.push(Finished {
            id: id.clone(),
            ending,
            cause: None,
            cost_usd,
            owes: None,
            forked: None,
            told: false,
        });
    }
    run
}

#[test]
fn the_tenth_child_comes_after_the_second() {
    let mut scene = Scene::begin();
    (0..11).for_each(|_| fork(&mut scene, "main"));
    fork(&mut scene, "main.2");
    let tree = Tree::of(&scene.run);
    let ids: Vec<&str> = tree.nodes().iter().map(|node| node.id.as_str()).collect();
    assert_eq!(ids[..5], ["main", "main.1", "main.2", "main.2.1", "main.3"]);
    assert_eq!(ids[11..], ["main.10", "main.11"]);
    assert_eq!((tree.nodes()[2].depth, tree.nodes()[2].descendants), (1, 1));
}

#[test]
fn siblings_that_are_many_and_alike_are_one_row() {
    let mut scene = Scene::begin();
    (0..20).for_each(|_| fork(&mut scene, "main"));
    for child in 3..=16 {
        scene.take(&format!("main.{child}"), result("done"));
    }
    scene.take("main.2", goto("B.md"));
    fork(&mut scene, "main.1");
    let tree = Tree::of(&scene.run);
    let rows = tree.folded(alike);
    // main.1 has gone on to N.md with its fork, main.2 to B.md.
    assert_eq!(
        shown(&rows),
        [
            "main",
            ".main.1",
            "..main.1.1",
            ".main.2",
            ".main.3 ×14",
            ".main.17",
            ".main.18",
            ".main.19",
            ".main.20"
        ]
    );
    assert_eq!(tree.rows().len(), 22);
}

#[test]
fn the_families_of_what_is_folded_are_folded_together() {
    let mut scene = Scene::begin();
    (0..10).for_each(|_| fork(&mut scene, "main"));
    for child in 1..=10 {
        (0..3).for_each(|_| fork(&mut scene, &format!("main.{child}")));
    }
    let tree = Tree::of(&scene.run);
    assert_eq!(shown(&tree.folded(alike)), ["main", ".main.1 ×10", "..main.1.1 ×30"]);
}

#[test]
fn a_tree_in_which_all_have_two_children_is_folded_too() {
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
    let tree = Tree::of(&scene.run);
    assert_eq!(tree.nodes().len(), 255);
    assert_eq!(tree.folded(alike).len(), 8);
}

#[test]
fn a_chain_however_long_is_neither_a_stack_nor_a_screen() {
    let run = chain(3000);
    let tree = Tree::of(&run);
    assert_eq!(tree.nodes()[0].descendants, 2999);
    assert_eq!(tree.nodes()[0].total_cost, Usd::from_dollars(29.99));
    let rows = tree.folded(alike);
    assert_eq!(rows.len(), DEEPEST + 1);
    let last = rows.last().expect("a row");
    assert!(last.closed && last.members[0].descendants == 3000 - 1 - DEEPEST);
}

#[test]
fn an_agent_whose_parent_is_not_there_stands_for_itself() {
    let mut run = chain(4);
    run.finished.remove(0);
    let tree = Tree::of(&run);
    assert_eq!(tree.nodes().len(), 3);
    assert_eq!(tree.roots.len(), 2);
}

proptest! {
    #[test]
    fn every_agent_is_there_once_after_its_parent(pushes in pushes(60)) {
        let run = Journal::of(&pushes).run;
        let tree = Tree::of(&run);
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
    fn folding_loses_nobody(pushes in pushes(60)) {
        let run = Journal::of(&pushes).run;
        let tree = Tree::of(&run);
        let rows = tree.folded(alike);
        let closed: usize = rows.iter().filter(|row| row.closed)
            .flat_map(|row| &row.members).map(|node| node.descendants).sum();
        let members: usize = rows.iter().map(|row| row.members.len()).sum();
        prop_assert_eq!(members + closed, tree.nodes().len());
    }
}
