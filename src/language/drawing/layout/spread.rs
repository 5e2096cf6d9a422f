//! Where the items of a layer stand from left to right.
//!
//! Each would like to stand where its neighbours do; in a layer the places that are nearest to that, by
//! least squares, and far enough apart, are found by pooling those that want to pass each other.

use super::order::as_f64;
use super::{Item, Layers};

/// How far items of a layer are apart at least.
const APART: f64 = 18.0;
/// How often the layers are gone through.
const ROUNDS: usize = 24;
/// How often of these, at last, edges are straightened.
const AT_LAST: usize = 12;

/// The x of each item; the leftmost reaches to 0.
pub(super) fn places(layers: &Layers) -> Vec<f64> {
    let mut x = vec![0.0; layers.items.len()];
    for layer in &layers.rows {
        let mut left = 0.0;
        for &item in layer {
            let Item { left: to_left, right, .. } = layers.items[item];
            x[item] = left + to_left;
            left = x[item] + right + APART;
        }
    }
    for round in 0..ROUNDS {
        let count = layers.rows.len();
        for step in 0..count {
            let level = if round % 2 == 0 { step } else { count - 1 - step };
            settle(layers, &layers.rows[level], round, &mut x);
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
struct Pool {
    sum: f64,
    weight: f64,
    count: usize,
}

fn settle(layers: &Layers, layer: &[usize], round: usize, x: &mut [f64]) {
    let mut offset = 0.0;
    let mut offsets = Vec::with_capacity(layer.len());
    let mut pools: Vec<Pool> = Vec::new();
    for (rank, &item) in layer.iter().enumerate() {
        if let Some(before) = rank.checked_sub(1) {
            offset += layers.items[layer[before]].right + APART + layers.items[item].left;
        }
        offsets.push(offset);
        let (wanted, weight) = wanted(layers, item, round, x);
        let mut pool = Pool { sum: (wanted - offset) * weight, weight, count: 1 };
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
    for Pool { sum, weight, count } in pools {
        for (&item, offset) in rest.by_ref().take(count) {
            x[item] = sum / weight + offset;
        }
    }
}

/// Where an item would like to stand, and how much. At last an edge that passes layers would like to be
/// straight above all.
fn wanted(layers: &Layers, item: usize, round: usize, x: &[f64]) -> (f64, f64) {
    let Item { above, below, edge, .. } = &layers.items[item];
    let at_last = round + AT_LAST >= ROUNDS;
    if let Some(edge) = edge.filter(|_| at_last) {
        let path = &layers.paths[edge].items;
        let passed = &path[1..path.len() - 1];
        return (passed.iter().map(|&item| x[item]).sum::<f64>() / as_f64(passed.len()), 8.0);
    }
    let neighbours: Vec<usize> = match (at_last, round.is_multiple_of(2)) {
        (true, _) => above.iter().chain(below).copied().collect(),
        (false, true) => above.clone(),
        (false, false) => below.clone(),
    };
    if neighbours.is_empty() {
        return (x[item], 0.1);
    }
    let count = as_f64(neighbours.len());
    (neighbours.iter().map(|&neighbour| x[neighbour]).sum::<f64>() / count, count)
}
