//! The horizontal places of the items of a layer.
//!
//! Each item is drawn to the place of its neighbours. Pooling the items that overlap finds the places in a layer
//! that are nearest to that, by least squares, and far enough apart.

use super::order::as_f64;
use super::{EdgePath, LayerItem, LayeredGraph};

/// The minimum distance between the items of a layer.
const APART: f64 = 18.0;
/// The number of passes over the layers.
const ROUNDS: usize = 24;
/// The number of final passes that straighten edges.
const FINAL_PASSES: usize = 12;

/// Returns the x of each item; the leftmost reaches to 0.
pub(super) fn places(layers: &LayeredGraph) -> Vec<f64> {
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
            settle(layers, &layers.rows[level], (round, &middles), &mut x);
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
fn settle(layers: &LayeredGraph, layer: &[usize], round: (usize, &[f64]), x: &mut [f64]) {
    let mut offset = 0.0;
    let mut offsets = Vec::with_capacity(layer.len());
    let mut pools: Vec<ItemCluster> = Vec::new();
    for (rank, &item) in layer.iter().enumerate() {
        if let Some(before) = rank.checked_sub(1) {
            offset += layers.items[layer[before]].right + APART + layers.items[item].left;
        }
        offsets.push(offset);
        let (target_position, weight) = target_position(layers, item, round, x);
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
    (round, middles): (usize, &[f64]),
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
