//! The layer of each node, and the order of the nodes in a layer.

use super::{LayerItem, LayeredGraph, LayoutInput};

/// The maximum number of passes over the layers, down and up again; large drawings get fewer.
const SWEEPS: usize = 24;
const MANY_ITEMS: usize = 4000;

/// Returns for each edge whether it leads back, so that without such edges there is no cycle. A loop at one node
/// does not count.
pub(super) fn leading_back(plan: &LayoutInput) -> Vec<bool> {
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
pub(super) fn levels(plan: &LayoutInput, upwards: &[bool]) -> Vec<usize> {
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
pub(super) fn arrange(layers: &mut LayeredGraph) {
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
    keyed.sort_by(|(one, _), (other, _)| one.total_cmp(other));
    layers.rows[level] = keyed.into_iter().map(|(_, item)| item).collect();
    for (rank, &item) in layers.rows[level].iter().enumerate() {
        ranks[item] = rank;
    }
}

/// Returns the number of edge crossings.
pub(super) fn crossings(layers: &LayeredGraph) -> usize {
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
pub(super) fn as_f64(count: usize) -> f64 {
    count as f64
}
