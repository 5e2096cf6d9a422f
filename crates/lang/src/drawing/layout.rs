//! The positions of nodes and edges: a layered layout, after Sugiyama.
//!
//! Edges that lead back are reversed first. Each node is two layers below the lowest node that leads to it, so each
//! edge passes through a layer between them, which has the edge's label. An edge has its own place in every layer that
//! it passes through, so it runs beside the nodes. The barycentres of the neighbours give the order in a layer, and
//! least squares give the places.
//!
//! The same picture always gives the same layout. The work is bounded: large pictures get fewer ordering passes.

use std::collections::BTreeMap;

/// The free space between two layers.
const BETWEEN_LAYERS: f64 = 22.0;

/// The nodes and edges to lay out.
#[derive(Debug, Default)]
pub(super) struct LayoutInput {
    /// The nodes' widths and heights.
    pub(super) nodes: Vec<(f64, f64)>,
    pub(super) edges: Vec<LayoutEdge>,
}

/// An edge to be laid out.
#[derive(Debug, Clone, Copy)]
pub(super) struct LayoutEdge {
    pub(super) from: usize,
    pub(super) to: usize,
    /// The width and height of its label; 0 if there is none.
    pub(super) label: (f64, f64),
}

/// The positions of all nodes and edges.
#[derive(Debug, Default)]
pub(super) struct DrawingLayout {
    pub(super) width: f64,
    pub(super) height: f64,
    /// The middles of the nodes.
    pub(super) nodes: Vec<(f64, f64)>,
    /// The edges, each from its beginning to its end.
    pub(super) edges: Vec<EdgeRoute>,
}

/// The line of an edge.
#[derive(Debug, Default, Clone, PartialEq)]
pub(super) struct EdgeRoute {
    /// The points it passes; between the second and the third, and so on, it runs straight.
    pub(super) points: Vec<(f64, f64)>,
    /// The position of its label: the left end, at half its height.
    pub(super) label: (f64, f64),
}

/// An item of a layer: a node, or the place of an edge that passes.
#[derive(Debug, Clone)]
struct LayerItem {
    /// The edge that passes; `None` if the item is a node.
    edge: Option<usize>,
    /// The extent to the left and to the right of its x.
    left: f64,
    right: f64,
    height: f64,
    /// The neighbours in the layer above and in the layer below.
    above: Vec<usize>,
    below: Vec<usize>,
}

/// Everything in layers.
struct LayeredGraph {
    items: Vec<LayerItem>,
    /// The items of each layer, from the left.
    rows: Vec<Vec<usize>>,
    /// The path of each edge: the items it passes from above, and its direction. A loop's path is its node.
    paths: Vec<EdgePath>,
}

/// The path of an edge through the layers.
struct EdgePath {
    items: Vec<usize>,
    upwards: bool,
}

/// Lays out a picture.
pub(super) fn layout(plan: &LayoutInput) -> DrawingLayout {
    let upwards = leading_back(plan);
    let levels = levels(plan, &upwards);
    let mut layers = LayeredGraph::of(plan, &upwards, &levels);
    arrange(&mut layers);
    let x = places(&layers);
    let mut y = Vec::with_capacity(layers.rows.len());
    let mut top = 0.0;
    for layer in &layers.rows {
        let height = layer.iter().map(|&item| layers.items[item].height).fold(0.0, f64::max);
        y.push((top, top + height));
        top += height + BETWEEN_LAYERS;
    }
    routes(plan, &layers, &x, &y)
}

impl LayeredGraph {
    fn of(plan: &LayoutInput, upwards: &[bool], levels: &[usize]) -> Self {
        let mut rows = vec![Vec::new(); levels.iter().max().map_or(0, |deepest| deepest + 1)];
        let mut items: Vec<LayerItem> = Vec::new();
        for (node, &(width, height)) in plan.nodes.iter().enumerate() {
            rows[levels[node]].push(items.len());
            let loops = plan.edges.iter().filter(|edge| edge.from == node && edge.to == node);
            let beside = loops.map(|edge| LOOP + edge.label.0).fold(0.0, f64::max);
            items.push(LayerItem {
                edge: None,
                left: width / 2.0,
                right: width / 2.0 + beside,
                height,
                above: Vec::new(),
                below: Vec::new(),
            });
        }
        let mut paths = Vec::with_capacity(plan.edges.len());
        for (index, (edge, &upwards)) in plan.edges.iter().zip(upwards).enumerate() {
            let (high, low) = if upwards { (edge.to, edge.from) } else { (edge.from, edge.to) };
            let mut path = vec![high];
            let beside_its_beginning = if upwards { levels[low] - 1 } else { levels[high] + 1 };
            let passed = levels[high] + 1..levels[low];
            for (level, row) in rows.iter_mut().enumerate().take(passed.end).skip(passed.start) {
                let (width, height) =
                    if level == beside_its_beginning { edge.label } else { (0.0, 0.0) };
                row.push(items.len());
                path.push(items.len());
                let right = if width > 0.0 { width + TO_LABEL + 4.0 } else { 4.0 };
                items.push(LayerItem {
                    edge: Some(index),
                    left: 4.0,
                    right,
                    height,
                    above: Vec::new(),
                    below: Vec::new(),
                });
            }
            if high != low {
                path.push(low);
                for pair in path.windows(2) {
                    items[pair[0]].below.push(pair[1]);
                    items[pair[1]].above.push(pair[0]);
                }
            }
            paths.push(EdgePath { items: path, upwards });
        }
        Self { items, rows, paths }
    }

    /// Returns the place of each item in its layer.
    fn ranks(&self) -> Vec<usize> {
        let mut ranks = vec![0; self.items.len()];
        for layer in &self.rows {
            for (rank, &item) in layer.iter().enumerate() {
                ranks[item] = rank;
            }
        }
        ranks
    }
}

/// The maximum number of passes over the layers, down and up again; large drawings get fewer.
const SWEEPS: usize = 24;
const MANY_ITEMS: usize = 4000;

/// Returns for each edge whether it leads back. Without these edges the graph has no cycle; a loop at one node does
/// not count.
fn leading_back(plan: &LayoutInput) -> Vec<bool> {
    let mut leaving = vec![Vec::new(); plan.nodes.len()];
    for (index, edge) in plan.edges.iter().enumerate() {
        if edge.from != edge.to {
            leaving[edge.from].push(index);
        }
    }
    let mut back = vec![false; plan.edges.len()];
    let mut seen = vec![false; plan.nodes.len()];
    let mut open = vec![false; plan.nodes.len()];
    for root in 0..plan.nodes.len() {
        if seen[root] {
            continue;
        }
        (seen[root], open[root]) = (true, true);
        let mut path = vec![(root, 0)];
        while let Some((node, next)) = path.last_mut() {
            let Some(&edge) = leaving[*node].get(*next) else {
                open[*node] = false;
                path.pop();
                continue;
            };
            *next += 1;
            let to = plan.edges[edge].to;
            if open[to] {
                back[edge] = true;
            } else if !seen[to] {
                (seen[to], open[to]) = (true, true);
                path.push((to, 0));
            }
        }
    }
    back
}

/// Returns the layer of each node: two below the lowest node that leads to it.
fn levels(plan: &LayoutInput, upwards: &[bool]) -> Vec<usize> {
    let mut below = vec![Vec::new(); plan.nodes.len()];
    let mut waits_for = vec![0; plan.nodes.len()];
    for (edge, &upwards) in plan.edges.iter().zip(upwards) {
        if edge.from != edge.to {
            let (high, low) = if upwards { (edge.to, edge.from) } else { (edge.from, edge.to) };
            below[high].push(low);
            waits_for[low] += 1;
        }
    }
    let mut levels = vec![0; plan.nodes.len()];
    let mut ready: Vec<usize> =
        (0..plan.nodes.len()).filter(|&node| waits_for[node] == 0).collect();
    while let Some(node) = ready.pop() {
        for &low in &below[node] {
            levels[low] = levels[low].max(levels[node] + 2);
            waits_for[low] -= 1;
            if waits_for[low] == 0 {
                ready.push(low);
            }
        }
    }
    levels
}

/// Puts each layer in an order in which few edges cross.
fn arrange(layers: &mut LayeredGraph) {
    let sweeps = if layers.items.len() > MANY_ITEMS { 4 } else { SWEEPS };
    let mut best = (crossings(layers), layers.rows.clone());
    for sweep in 0..sweeps {
        if best.0 == 0 {
            break;
        }
        let count = layers.rows.len();
        let mut ranks = layers.ranks();
        for step in 1..count {
            let downwards = sweep % 2 == 0;
            let level = if downwards { step } else { count - 1 - step };
            sort_row(layers, level, downwards, &mut ranks);
        }
        let now = crossings(layers);
        if now < best.0 {
            best = (now, layers.rows.clone());
        }
    }
    layers.rows = best.1;
}

/// Sorts a layer by the average place of the neighbours above, or below. Items without neighbours stay.
fn sort_row(layers: &mut LayeredGraph, level: usize, by_above: bool, ranks: &mut [usize]) {
    let mean = |item: usize| {
        let LayerItem { above, below, .. } = &layers.items[item];
        let neighbours = if by_above { above } else { below };
        if neighbours.is_empty() {
            return as_f64(ranks[item]);
        }
        let sum: usize = neighbours.iter().map(|&neighbour| ranks[neighbour]).sum();
        as_f64(sum) / as_f64(neighbours.len())
    };
    let mut keyed: Vec<(f64, usize)> =
        layers.rows[level].iter().map(|&item| (mean(item), item)).collect();
    keyed.sort_by(|(left, _), (right, _)| left.total_cmp(right));
    layers.rows[level] = keyed.into_iter().map(|(_, item)| item).collect();
    for (rank, &item) in layers.rows[level].iter().enumerate() {
        ranks[item] = rank;
    }
}

/// Returns the number of edge crossings.
fn crossings(layers: &LayeredGraph) -> usize {
    let ranks = layers.ranks();
    layers
        .rows
        .windows(2)
        .map(|pair| {
            let mut ends: Vec<(usize, usize)> = pair[0]
                .iter()
                .flat_map(|&high| layers.items[high].below.iter().map(move |&low| (high, low)))
                .map(|(high, low)| (ranks[high], ranks[low]))
                .collect();
            ends.sort_unstable();
            inversions(&ends, pair[1].len())
        })
        .sum()
}

/// Returns the number of inversions among the second numbers; counted in a Fenwick tree.
fn inversions(ends: &[(usize, usize)], count: usize) -> usize {
    let mut tree = vec![0usize; count + 1];
    let mut crossings = 0;
    for (before, &(_, low)) in ends.iter().enumerate() {
        let mut not_greater = 0;
        let mut at = low + 1;
        while at > 0 {
            not_greater += tree[at];
            at &= at - 1;
        }
        crossings += before - not_greater;
        let mut at = low + 1;
        while at <= count {
            tree[at] += 1;
            at += at & at.wrapping_neg();
        }
    }
    crossings
}

/// Converts a count to a float.
#[expect(clippy::cast_precision_loss, reason = "nobody draws 2^52 nodes")]
fn as_f64(count: usize) -> f64 {
    count as f64
}

/// The minimum distance between the items of a layer.
const APART: f64 = 18.0;
/// The number of passes over the layers.
const ROUNDS: usize = 24;
/// The number of final passes that straighten edges.
const FINAL_PASSES: usize = 12;

/// Returns the x of each item; the leftmost reaches to 0.
fn places(layers: &LayeredGraph) -> Vec<f64> {
    let mut x = vec![0.0; layers.items.len()];
    for layer in &layers.rows {
        let mut left = 0.0;
        for &item in layer {
            let LayerItem { left: to_left, right, .. } = layers.items[item];
            x[item] = left + to_left;
            left = x[item] + right + APART;
        }
    }
    for round in 0..ROUNDS {
        let count = layers.rows.len();
        let middles = if is_last(round) { middles(layers, &x) } else { Vec::new() };
        for step in 0..count {
            let level = if round.is_multiple_of(2) { step } else { count - 1 - step };
            settle(layers, &layers.rows[level], round, &middles, &mut x);
        }
    }
    let leftmost =
        layers.items.iter().zip(&x).map(|(item, x)| x - item.left).fold(f64::MAX, f64::min);
    for x in &mut x {
        *x -= leftmost;
    }
    x
}

/// Items that stand as close as they may, and want to be at `sum / weight`.
struct ItemCluster {
    sum: f64,
    weight: f64,
    count: usize,
}

/// Finds the places of a layer, in a round.
fn settle(layers: &LayeredGraph, layer: &[usize], round: usize, middles: &[f64], x: &mut [f64]) {
    let mut offset = 0.0;
    let mut offsets = Vec::with_capacity(layer.len());
    let mut pools: Vec<ItemCluster> = Vec::new();
    for (rank, &item) in layer.iter().enumerate() {
        if let Some(before) = rank.checked_sub(1) {
            offset += layers.items[layer[before]].right + APART + layers.items[item].left;
        }
        offsets.push(offset);
        let (target_position, weight) = target_position(layers, item, round, middles, x);
        let mut pool = ItemCluster { sum: (target_position - offset) * weight, weight, count: 1 };
        while let Some(before) =
            pools.pop_if(|before| before.sum / before.weight >= pool.sum / pool.weight)
        {
            pool.sum += before.sum;
            pool.weight += before.weight;
            pool.count += before.count;
        }
        pools.push(pool);
    }
    let mut rest = layer.iter().zip(offsets);
    for ItemCluster { sum, weight, count } in pools {
        for (&item, offset) in rest.by_ref().take(count) {
            x[item] = sum / weight + offset;
        }
    }
}

/// Returns the place an item is drawn to, and its weight. The final passes straighten the edges that pass layers
/// above all.
fn target_position(
    layers: &LayeredGraph,
    item: usize,
    round: usize,
    middles: &[f64],
    x: &[f64],
) -> (f64, f64) {
    let LayerItem { above, below, edge, .. } = &layers.items[item];
    if let Some(edge) = edge.filter(|_| is_last(round)) {
        return (middles[edge], 8.0);
    }
    let (above, below): (&[usize], &[usize]) = match (is_last(round), round.is_multiple_of(2)) {
        (true, _) => (above, below),
        (false, true) => (above, &[]),
        (false, false) => (&[], below),
    };
    let count = above.len() + below.len();
    if count == 0 {
        return (x[item], 0.1);
    }
    let sum: f64 = above.iter().chain(below).map(|&neighbour| x[neighbour]).sum();
    (sum / as_f64(count), as_f64(count))
}

/// Returns whether a pass is one of the final passes, which straighten edges.
fn is_last(round: usize) -> bool {
    round + FINAL_PASSES >= ROUNDS
}

/// Returns for each edge the middle x of the layers that it passes.
fn middles(layers: &LayeredGraph, x: &[f64]) -> Vec<f64> {
    let middle = |path: &EdgePath| {
        let passed = path.items.get(1..path.items.len() - 1).unwrap_or_default();
        let sum: f64 = passed.iter().map(|&item| x[item]).sum();
        sum / as_f64(passed.len().max(1))
    };
    layers.paths.iter().map(middle).collect()
}

/// The distance a loop reaches beside its node.
const LOOP: f64 = 30.0;
/// The distance between a label and its edge.
const TO_LABEL: f64 = 5.0;
/// The maximum distance between the ends of edges at a node.
const PORTS_APART: f64 = 16.0;

/// The side of a node that an edge ends at.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum NodeSide {
    Top,
    Bottom,
}

/// Returns the layout, from the x of each item and the top and bottom of each layer.
fn routes(plan: &LayoutInput, layers: &LayeredGraph, x: &[f64], y: &[(f64, f64)]) -> DrawingLayout {
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
        edges.sort_by(|left, right| left.0.total_cmp(&right.0).then(left.1.cmp(&right.1)));
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
fn around(middle: (f64, f64), size: (f64, f64)) -> EdgeRoute {
    let ((x, y), (width, height)) = (middle, size);
    let (right, rise) = (x + width / 2.0, height / 4.0);
    let out = right + LOOP - TO_LABEL;
    EdgeRoute {
        points: vec![(right, y - rise), (out, y - rise), (out, y + rise), (right, y + rise)],
        label: (out, y),
    }
}

#[cfg(test)]
mod tests;
