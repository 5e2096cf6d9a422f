//! Layouts of small graphs, judged as a person would see them; and properties of any graph.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

fn plan(nodes: usize, edges: &[(usize, usize)]) -> LayoutInput {
    let link = |&(from, to): &(usize, usize)| LayoutEdge { from, to, label: (40.0, 14.0) };
    LayoutInput { nodes: vec![(80.0, 30.0); nodes], edges: edges.iter().map(link).collect() }
}

/// Returns the number of edge crossings in these layers.
fn crossings_of(plan: &LayoutInput) -> usize {
    let upwards = leading_back(plan);
    let levels = levels(plan, &upwards);
    let mut layers = LayeredGraph::of(plan, &upwards, &levels);
    arrange(&mut layers);
    crossings(&layers)
}

/// Returns the nodes by their layers.
fn by_height(layout: &DrawingLayout) -> BTreeMap<u64, Vec<usize>> {
    let mut rows: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
    for (node, &(_, y)) in layout.nodes.iter().enumerate() {
        rows.entry(y.to_bits()).or_default().push(node);
    }
    rows
}

#[test]
fn chain_is_laid_out_as_vertical_line() {
    let layout = layout(&plan(3, &[(0, 1), (1, 2)]));
    let x: Vec<f64> = layout.nodes.iter().map(|node| node.0).collect();
    assert!((x[0] - x[1]).abs() < 1.0 && (x[1] - x[2]).abs() < 1.0, "{x:?}");
    assert!(layout.nodes.is_sorted_by(|above, below| above.1 < below.1));
}

#[test]
fn back_edge_runs_upwards_beside_nodes() {
    let layout = layout(&plan(3, &[(0, 1), (1, 2), (2, 0)]));
    let back = &layout.edges[2].points;
    assert!(back[0].1 > back[back.len() - 1].1, "{back:?}");
    let (x, y) = layout.nodes[1];
    let beside = back
        .iter()
        .filter(|point| (point.1 - y).abs() < 15.0)
        .all(|point| (point.0 - x).abs() > 40.0);
    assert!(beside, "{back:?}");
}

#[test]
fn avoidable_edge_crossings_are_avoided() {
    assert_eq!(crossings_of(&plan(6, &[(0, 2), (0, 3), (1, 4), (1, 5), (0, 4)])), 0);
    assert_eq!(crossings_of(&plan(6, &[(0, 5), (1, 4), (2, 3)])), 0);
}

#[test]
fn self_loops_and_empty_graph_are_laid_out() {
    let looped = layout(&plan(1, &[(0, 0), (0, 0)]));
    assert!(looped.width >= 80.0 + 30.0 + 40.0, "{}", looped.width);
    assert_eq!(layout(&LayoutInput::default()).nodes, []);
}

proptest! {
    #[test]
    fn nodes_never_overlap_and_edges_stay_within_bounds(
        count in 1usize..12,
        edges in prop::collection::vec((0usize..12, 0usize..12), 0..30),
    ) {
        let edges: Vec<_> = edges.into_iter().map(|(from, to)| (from % count, to % count)).collect();
        let plan = plan(count, &edges);
        let layout = layout(&plan);
        for row in by_height(&layout).values() {
            let mut x: Vec<f64> = row.iter().map(|&node| layout.nodes[node].0).collect();
            x.sort_by(f64::total_cmp);
            prop_assert!(x.windows(2).all(|pair| pair[1] - pair[0] >= 80.0), "{x:?}");
        }
        for (edge, route) in plan.edges.iter().zip(&layout.edges) {
            let (first, last) = (route.points[0], route.points[route.points.len() - 1]);
            prop_assert!((first.0 - layout.nodes[edge.from].0).abs() <= 41.0);
            prop_assert!((last.0 - layout.nodes[edge.to].0).abs() <= 41.0);
            for (x, y) in &route.points {
                prop_assert!((-0.1..=layout.width + 0.1).contains(x) && (-0.1..=layout.height + 0.1).contains(y));
            }
        }
    }
}
