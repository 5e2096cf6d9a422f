//! The flow of a workflow in any language: its places, and the ways between them.
//!
//! A place is a state of a folder, a node of a graph, or a state of a program. Each language makes one [`Flow`] of a
//! workflow, which is drawn. A [`FlowMap`] tells what can be reached, what leads where, and what loops.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

/// The ids of the start, the end, and the end that is a failure; nothing that a person names has such an id.
pub(crate) const START: &str = "/start";
pub(crate) const END: &str = "/end";
pub(crate) const FAILED: &str = "/failed";

/// The places of a workflow and the edges between them, as a language shows them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Flow {
    /// The name of the workflow.
    pub title: String,
    /// The places, the near ones first.
    pub places: Vec<FlowPlace>,
    pub edges: Vec<FlowEdge>,
    /// The number of places that are left out, because there are too many of them.
    pub hidden: usize,
    /// The indices of the places by their ids.
    by_id: HashMap<String, usize>,
    /// The indices of the edges by the places that they join.
    by_ends: HashMap<(usize, usize, EdgeKind), Vec<usize>>,
}

/// A place: a state of a folder, a node of a graph, a state of a program, or what is shown beside them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlowPlace {
    /// The id; it is unique.
    pub id: String,
    /// The text of the place, one line or more.
    pub label: String,
    pub kind: PlaceKind,
}

/// The kind of a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PlaceKind {
    /// The start of the workflow.
    Start,
    /// The end of an agent of a folder.
    End,
    /// A prompt with a policy.
    State,
    /// A prompt with a policy that waits for the agents forked before.
    Join,
    /// A prompt without a policy.
    Open,
    /// A graph or a program as a state.
    Graph,
    /// A state that cannot be entered.
    Missing,
    /// The prompt of an evaluator.
    Evaluator,
    /// A node of a graph that does something.
    Action,
    /// A node that branches on a condition.
    Conditional,
    /// A node that asks a person.
    UserPrompt,
    /// A node that checks several conditions.
    ValidationGate,
    /// A node that has a document carried out.
    Reference,
    /// A document or a skill that is carried out on the way.
    Document,
    /// A further agent, or a role of a program.
    Agent,
    /// A signal that a program waits for or gives.
    Signal,
    /// An ending of a graph or a program that is a success.
    Success,
    /// An ending of a graph or a program that is an error.
    Failure,
}

/// An edge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlowEdge {
    /// The index of the place it leaves.
    pub from: usize,
    /// The index of the place it leads to.
    pub to: usize,
    /// The text of the edge; it may be empty.
    pub label: String,
    pub kind: EdgeKind,
    /// False if only a mention in a text supports the edge.
    pub certain: bool,
}

/// The kind of an edge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EdgeKind {
    /// The agent continues: the beginning, `goto`, the `next` of a `fork`, and the next node.
    Goes,
    /// The agent continues and forgets everything.
    Resets,
    /// The agent calls, and is to return.
    Calls,
    /// The agent returns from a call.
    Returns,
    /// A further agent starts.
    Forks,
    /// Several start at once.
    FansOut,
    /// The state waits for the results of agents.
    Joins,
    /// The agent ends.
    Ends,
    /// The agent continues because something failed.
    Fails,
    /// Something is taken in on the way, such as an evaluator.
    Consults,
    /// A request is sent to a role.
    Asks,
    /// The program waits for the answer of a role.
    Answers,
}

/// The line of an edge in a drawing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EdgeLine {
    Plain,
    Dashed,
    Dotted,
    Bold,
}

/// The colour of an edge in a drawing.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EdgeColour {
    /// Its number, as in HTML.
    pub(crate) number: &'static str,
    /// Its word, after what it is for.
    pub(crate) word: &'static str,
}

impl FlowEdge {
    /// Returns its line in a drawing.
    pub(crate) fn line(&self) -> EdgeLine {
        match self.kind {
            _ if !self.certain => EdgeLine::Dashed,
            EdgeKind::Asks | EdgeKind::Answers => EdgeLine::Dashed,
            EdgeKind::Consults => EdgeLine::Dotted,
            EdgeKind::Resets | EdgeKind::FansOut => EdgeLine::Bold,
            _ => EdgeLine::Plain,
        }
    }

    /// Returns its colour in a drawing, if it is not that of most edges.
    pub(crate) fn colour(&self) -> Option<EdgeColour> {
        let (number, word) = match self.kind {
            EdgeKind::Calls | EdgeKind::Returns | EdgeKind::Asks | EdgeKind::Answers => {
                ("#8b5cf6", "calls")
            }
            EdgeKind::Forks | EdgeKind::FansOut | EdgeKind::Joins => ("#3b82f6", "forks"),
            EdgeKind::Fails => ("#dc2626", "fails"),
            EdgeKind::Goes | EdgeKind::Resets | EdgeKind::Ends | EdgeKind::Consults => return None,
        };
        Some(EdgeColour { number, word })
    }

    /// Returns whether it ends in the head of an arrow.
    pub(crate) fn has_head(&self) -> bool {
        self.kind != EdgeKind::Consults
    }
}

impl Flow {
    /// Returns a flow that begins at its start.
    pub(crate) fn begin(title: &str) -> Self {
        let mut flow = Self { title: title.to_owned(), ..Self::default() };
        flow.place(START, "", PlaceKind::Start);
        flow
    }

    /// Returns the index of the place with an id; adds the place if it is new.
    pub fn place(&mut self, id: &str, label: &str, kind: PlaceKind) -> usize {
        self.by_id.get(id).copied().unwrap_or_else(|| {
            let index = self.places.len();
            self.places.push(FlowPlace { id: id.to_owned(), label: label.to_owned(), kind });
            self.by_id.insert(id.to_owned(), index);
            index
        })
    }

    /// Adds an edge between two places, unless one of them does not exist.
    pub(crate) fn join(&mut self, from: &str, to: &str, label: &str, kind: EdgeKind) {
        self.join_if(true, from, to, label, kind);
    }

    /// Adds an edge as [`Self::join`] does; it is not `certain` if only a mention in a text supports it.
    pub(crate) fn join_if(
        &mut self,
        certain: bool,
        from: &str,
        to: &str,
        label: &str,
        kind: EdgeKind,
    ) {
        if let (Some(&from), Some(&to)) = (self.by_id.get(from), self.by_id.get(to)) {
            self.edge(FlowEdge { from, to, label: label.to_owned(), kind, certain });
        }
    }

    /// Adds an edge, unless an equal one exists. If two edges differ only in their certainty, the certain one is kept.
    pub fn edge(&mut self, edge: FlowEdge) {
        let alike = self.by_ends.entry((edge.from, edge.to, edge.kind)).or_default();
        if let Some(&other) = alike.iter().find(|&&other| self.edges[other].label == edge.label) {
            self.edges[other].certain |= edge.certain;
        } else {
            alike.push(self.edges.len());
            self.edges.push(edge);
        }
    }

    /// Returns the flow with at most `max` places. The other places, which are the far ones, become a single place that
    /// says how many they are.
    pub fn folded(self, max: usize) -> Self {
        let max = max.max(1);
        if self.places.len() <= max {
            return self;
        }
        let hidden = self.places.len() - max;
        let mut folded = Self { title: self.title, hidden, ..Self::default() };
        for FlowPlace { id, label, kind } in self.places.into_iter().take(max) {
            folded.place(&id, &label, kind);
        }
        let more = format!("… {hidden} more nodes,\nnot shown");
        let rest = folded.place("/more", &more, PlaceKind::Graph);
        for edge in self.edges {
            let FlowEdge { from, to, kind, certain, .. } = edge;
            match (from < max, to < max) {
                (true, true) => folded.edge(edge),
                (false, false) => {}
                _ => {
                    let (from, to) = (from.min(rest), to.min(rest));
                    folded.edge(FlowEdge { from, to, label: String::new(), kind, certain });
                }
            }
        }
        folded
    }
}

/// The ways between the places of a workflow.
#[derive(Debug, Clone)]
pub struct FlowMap<P> {
    onward: BTreeMap<P, Vec<P>>,
    back: BTreeMap<P, Vec<P>>,
}

/// The number of the loop of each place. Places that lead to each other have the same number.
#[derive(Debug, Clone)]
pub struct FlowLoops<P>(BTreeMap<P, usize>);

impl<P: Ord + Copy> FlowMap<P> {
    /// Returns the map of these ways, each from a place to a place. `places` may have no way at all.
    pub fn new(
        places: impl IntoIterator<Item = P>,
        edges: impl IntoIterator<Item = (P, P)>,
    ) -> Self {
        let mut onward: BTreeMap<P, Vec<P>> =
            places.into_iter().map(|place| (place, Vec::new())).collect();
        let mut back: BTreeMap<P, Vec<P>> = BTreeMap::new();
        for (from, to) in edges {
            onward.entry(from).or_default().push(to);
            back.entry(to).or_default().push(from);
        }
        Self { onward, back }
    }

    /// Returns the places that are reached from some, including these.
    pub fn reached_from(&self, places: impl IntoIterator<Item = P>) -> BTreeSet<P> {
        reached(&self.onward, places, |_| false)
    }

    /// Returns the places from which one of some is reached, including these.
    pub fn leading_to(&self, places: impl IntoIterator<Item = P>) -> BTreeSet<P> {
        reached(&self.back, places, |_| false)
    }

    /// Returns the places that are reached from some, including these, on ways that do not pass certain ones.
    pub fn reached_without(
        &self,
        places: impl IntoIterator<Item = P>,
        is_closed: impl Fn(P) -> bool,
    ) -> BTreeSet<P> {
        reached(&self.onward, places, is_closed)
    }

    /// Returns the places with a way to a place.
    pub fn before(&self, place: P) -> impl Iterator<Item = P> {
        self.back.get(&place).into_iter().flatten().copied()
    }

    /// Returns the targets of all ways.
    pub fn targets(&self) -> impl Iterator<Item = P> {
        self.back.keys().copied()
    }

    /// Returns the places that are reached from `start`, the near ones first.
    pub fn nearest_first(&self, start: P) -> Vec<P> {
        let (mut order, mut seen) = (Vec::new(), BTreeSet::from([start]));
        let mut ahead = VecDeque::from([start]);
        while let Some(place) = ahead.pop_front() {
            order.push(place);
            let next = self.onward.get(&place).into_iter().flatten();
            ahead.extend(next.copied().filter(|next| seen.insert(*next)));
        }
        order
    }

    /// Returns the loops of the map, in time linear in its size (Kosaraju's algorithm).
    pub fn loops(&self) -> FlowLoops<P> {
        let mut loops = BTreeMap::new();
        for (number, place) in self.done_last_first().into_iter().enumerate() {
            let mut ahead = vec![place];
            while let Some(place) = ahead.pop() {
                if loops.contains_key(&place) {
                    continue;
                }
                loops.insert(place, number);
                ahead.extend(self.back.get(&place).into_iter().flatten());
            }
        }
        FlowLoops(loops)
    }

    /// Returns all places such that each comes before the places that it leads to, but for loops.
    fn done_last_first(&self) -> Vec<P> {
        let (mut seen, mut done) = (BTreeSet::new(), Vec::with_capacity(self.onward.len()));
        for start in self.onward.keys() {
            let mut open = vec![(*start, false)];
            while let Some((place, is_done)) = open.pop() {
                if is_done {
                    done.push(place);
                } else if seen.insert(place) {
                    open.push((place, true));
                    let next = self.onward.get(&place).into_iter().flatten();
                    open.extend(next.map(|next| (*next, false)));
                }
            }
        }
        done.reverse();
        done
    }
}

impl<P: Ord + Copy> FlowLoops<P> {
    /// Returns whether `from` leads back to `to`: both are in the same loop.
    pub fn leads_back(&self, from: P, to: P) -> bool {
        self.0.get(&from).zip(self.0.get(&to)).is_some_and(|(from, to)| from == to)
    }
}

fn reached<P: Ord + Copy>(
    edges: &BTreeMap<P, Vec<P>>,
    places: impl IntoIterator<Item = P>,
    is_closed: impl Fn(P) -> bool,
) -> BTreeSet<P> {
    let mut ahead: Vec<P> = places.into_iter().collect();
    let mut reached: BTreeSet<P> = ahead.iter().copied().collect();
    while let Some(place) = ahead.pop() {
        let next = edges.get(&place).into_iter().flatten();
        ahead.extend(next.copied().filter(|next| !is_closed(*next) && reached.insert(*next)));
    }
    reached
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Returns a map of ways such as `AB`.
    fn map(edges: &str) -> FlowMap<char> {
        let edges: Vec<(char, char)> = edges
            .split(' ')
            .filter_map(|edge| Some((edge.chars().next()?, edge.chars().nth(1)?)))
            .collect();
        FlowMap::new([], edges)
    }

    fn text(places: impl IntoIterator<Item = char>) -> String {
        places.into_iter().collect()
    }

    #[test]
    fn reached_places_include_the_start_and_go_round_loops() {
        let map = map("AB BC CB CD EF");
        assert_eq!(text(map.reached_from(['A'])), "ABCD");
        assert_eq!(text(map.leading_to(['D'])), "ABCD");
        assert_eq!(text(map.reached_from(['F'])), "F");
        assert_eq!(text(map.leading_to(['F'])), "EF");
        assert_eq!(text(map.reached_without(['A'], |place| place == 'C')), "AB");
    }

    #[test]
    fn near_places_come_first() {
        assert_eq!(text(map("AC AB CD BE DA").nearest_first('A')), "ACBDE");
    }

    #[test]
    fn only_places_that_lead_to_each_other_are_in_one_loop() {
        let loops = map("AB BC BD CB CE DD EF").loops();
        assert!(loops.leads_back('C', 'B') && loops.leads_back('B', 'C'));
        assert!(loops.leads_back('D', 'D'));
        assert!(!loops.leads_back('B', 'A') && !loops.leads_back('D', 'B'));
        assert!(!loops.leads_back('F', 'E'));
    }

    #[test]
    fn long_paths_are_followed_in_linear_time() {
        let edges = (0..200_000).map(|place| (place, place + 1));
        let map = FlowMap::new([], edges);
        assert_eq!(map.reached_from([0]).len(), 200_001);
        assert!(!map.loops().leads_back(5, 4));
    }

    /// Returns a drawing whose labels contain everything that could break a format.
    pub(crate) fn hostile() -> Flow {
        let mut drawing = Flow { title: "a \"b\"\n<c>".to_owned(), ..Flow::default() };
        let labels =
            ["end", "a \"b\" <c> & #1; `d` %%{e} ]}|\\n", "zwei\nZeilen", "日本 ✓", "\u{7}"];
        for label in labels {
            drawing.place(label, label, PlaceKind::State);
        }
        #[expect(clippy::needless_range_loop, reason = "it is a name as well as an index")]
        for to in 0..5 {
            let label = labels[to].to_owned();
            drawing.edge(FlowEdge {
                from: 0,
                to,
                label,
                kind: EdgeKind::Goes,
                certain: to % 2 == 0,
            });
        }
        drawing
    }

    #[test]
    fn far_nodes_are_folded_into_one_node() {
        let mut drawing = Flow::default();
        for index in 0..5 {
            drawing.place(&index.to_string(), "x", PlaceKind::Action);
        }
        for (from, to) in [(0, 1), (1, 2), (1, 3), (2, 3), (3, 4), (4, 0)] {
            let label = format!("{from} to {to}");
            drawing.edge(FlowEdge { from, to, label, kind: EdgeKind::Goes, certain: true });
        }
        assert_eq!(drawing.clone().folded(5), drawing);
        let folded = drawing.folded(2);
        let labels: Vec<&str> = folded.places.iter().map(|node| node.label.as_str()).collect();
        assert_eq!((labels, folded.hidden), (vec!["x", "x", "… 3 more nodes,\nnot shown"], 3));
        let edges: Vec<(usize, usize, &str)> =
            folded.edges.iter().map(|edge| (edge.from, edge.to, edge.label.as_str())).collect();
        assert_eq!(edges, [(0, 1, "0 to 1"), (1, 2, ""), (2, 0, "")]);
    }

    #[test]
    fn duplicate_nodes_and_edges_are_merged() {
        let mut drawing = Flow::default();
        assert_eq!(drawing.place("a", "A", PlaceKind::State), 0);
        assert_eq!(drawing.place("a", "B", PlaceKind::Open), 0);
        let edge = |certain| FlowEdge {
            from: 0,
            to: 0,
            label: String::new(),
            kind: EdgeKind::Goes,
            certain,
        };
        drawing.edge(edge(false));
        drawing.edge(edge(true));
        drawing.edge(edge(false));
        assert_eq!(drawing.edges, [edge(true)]);
    }
}
