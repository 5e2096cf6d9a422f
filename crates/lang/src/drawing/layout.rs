//! The positions of nodes and edges: a layered layout, after Sugiyama.
//!
//! Edges that lead back are turned around first. Each node is two layers below the lowest node that leads to it, so
//! each edge passes a layer between them, which has the edge's label. In every layer that an edge passes, it has a
//! place of its own, so it runs beside the nodes. The order in a layer is found by the barycentres of the neighbours,
//! and the places by least squares.
//!
//! The same picture always gives the same layout. The work is bounded: a large picture is put in order
//! less often.

mod order;
mod route;
mod spread;

/// The free space between two layers.
const BETWEEN_LAYERS: f64 = 22.0;

/// The nodes and edges to lay out.
#[derive(Debug, Default)]
pub(super) struct LayoutInput {
    /// The nodes' widths and heights.
    pub(super) nodes: Vec<(f64, f64)>,
    /// The edges.
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
    let upwards = order::leading_back(plan);
    let levels = order::levels(plan, &upwards);
    let mut layers = LayeredGraph::of(plan, &upwards, &levels);
    order::arrange(&mut layers);
    let x = spread::places(&layers);
    let mut y = Vec::with_capacity(layers.rows.len());
    let mut top = 0.0;
    for layer in &layers.rows {
        let height = layer.iter().map(|&item| layers.items[item].height).fold(0.0, f64::max);
        y.push((top, top + height));
        top += height + BETWEEN_LAYERS;
    }
    route::routes(plan, &layers, &x, &y)
}

impl LayeredGraph {
    fn of(plan: &LayoutInput, upwards: &[bool], levels: &[usize]) -> Self {
        let mut rows = vec![Vec::new(); levels.iter().max().map_or(0, |deepest| deepest + 1)];
        let mut items: Vec<LayerItem> = Vec::new();
        for (node, &(width, height)) in plan.nodes.iter().enumerate() {
            rows[levels[node]].push(items.len());
            let loops = plan.edges.iter().filter(|edge| edge.from == node && edge.to == node);
            let beside = loops.map(|edge| route::LOOP + edge.label.0).fold(0.0, f64::max);
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
                let right = if width > 0.0 { width + route::TO_LABEL + 4.0 } else { 4.0 };
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

#[cfg(test)]
mod tests;
