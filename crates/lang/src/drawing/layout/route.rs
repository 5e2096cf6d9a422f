//! The routes of the edges, once everything else has its place.

use std::collections::BTreeMap;

use super::order::as_f64;
use super::{DrawingLayout, EdgePath, EdgeRoute, LayeredGraph, LayoutInput};

/// The distance a loop reaches beside its node.
pub(super) const LOOP: f64 = 30.0;
/// The distance between a label and its edge.
pub(super) const TO_LABEL: f64 = 5.0;
/// The maximum distance between the ends of edges at a node.
const PORTS_APART: f64 = 16.0;

/// The side of a node that an edge ends at.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum NodeSide {
    Top,
    Bottom,
}

/// Returns the layout, from the x of each item and the top and bottom of each layer.
pub(super) fn routes(
    plan: &LayoutInput,
    layers: &LayeredGraph,
    x: &[f64],
    y: &[(f64, f64)],
) -> DrawingLayout {
    let mut level = vec![0; layers.items.len()];
    for (index, layer) in layers.rows.iter().enumerate() {
        for &item in layer {
            level[item] = index;
        }
    }
    let middle = |node: usize| {
        let (top, bottom) = y[level[node]];
        (x[node], f64::midpoint(top, bottom))
    };
    let nodes: Vec<(f64, f64)> = (0..plan.nodes.len()).map(middle).collect();
    let ports = ports(plan, layers, x);
    let route = |(index, path): (usize, &EdgePath)| {
        let edge = &plan.edges[index];
        if edge.from == edge.to {
            return around(nodes[edge.from], plan.nodes[edge.from]);
        }
        let end = |node: usize, side: NodeSide| {
            let (_, height) = plan.nodes[node];
            let half = if side == NodeSide::Top { -height / 2.0 } else { height / 2.0 };
            (x[node] + ports[&(node, side, index)], nodes[node].1 + half)
        };
        let (high, low) = (path.items[0], path.items[path.items.len() - 1]);
        let mut points = vec![end(high, NodeSide::Bottom)];
        for &item in &path.items[1..path.items.len() - 1] {
            let (top, bottom) = y[level[item]];
            points.extend([(x[item], top), (x[item], bottom)]);
        }
        points.push(end(low, NodeSide::Top));
        if path.upwards {
            points.reverse();
        }
        let label = (points[1].0 + TO_LABEL, f64::midpoint(points[1].1, points[2].1));
        EdgeRoute { points, label }
    };
    let edges: Vec<EdgeRoute> = layers.paths.iter().enumerate().map(route).collect();
    let width = layers.items.iter().zip(x).map(|(item, x)| x + item.right).fold(0.0, f64::max);
    let height = y.last().map_or(0.0, |(_, bottom)| *bottom);
    DrawingLayout { width, height, nodes, edges }
}

/// Returns the offset of each edge's end from the middle of its node, ordered by the other end's place.
fn ports(
    plan: &LayoutInput,
    layers: &LayeredGraph,
    x: &[f64],
) -> BTreeMap<(usize, NodeSide, usize), f64> {
    let mut at: BTreeMap<(usize, NodeSide), Vec<(f64, usize)>> = BTreeMap::new();
    for (index, path) in layers.paths.iter().enumerate() {
        if let [high, first, .., last, low] | [high, first @ last, low] = path.items[..] {
            at.entry((high, NodeSide::Bottom)).or_default().push((x[first], index));
            at.entry((low, NodeSide::Top)).or_default().push((x[last], index));
        }
    }
    let mut ports = BTreeMap::new();
    for ((node, side), mut edges) in at {
        edges.sort_by(|one, other| one.0.total_cmp(&other.0).then(one.1.cmp(&other.1)));
        let (width, _) = plan.nodes[node];
        let apart = (width * 0.6 / as_f64(edges.len())).min(PORTS_APART);
        for (rank, (_, edge)) in edges.iter().enumerate() {
            let from_middle = as_f64(rank) - as_f64(edges.len() - 1) / 2.0;
            ports.insert((node, side, *edge), from_middle * apart);
        }
    }
    ports
}

/// Returns the route of a loop, at the right of its node.
fn around((x, y): (f64, f64), (width, height): (f64, f64)) -> EdgeRoute {
    let (right, rise) = (x + width / 2.0, height / 4.0);
    let out = right + LOOP - TO_LABEL;
    EdgeRoute {
        points: vec![(right, y - rise), (out, y - rise), (out, y + rise), (right, y + rise)],
        label: (out, y),
    }
}
