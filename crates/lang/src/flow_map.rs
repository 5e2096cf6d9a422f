//! The ways between the places of a workflow, whatever its language.
//!
//! A place is a state of a folder, a node of a graph, or a state of a program. Each language says which ways there
//! are; what can be reached, what leads where and what goes round in a loop is found here.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

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
        ways: impl IntoIterator<Item = (P, P)>,
    ) -> Self {
        let mut onward: BTreeMap<P, Vec<P>> =
            places.into_iter().map(|place| (place, Vec::new())).collect();
        let mut back: BTreeMap<P, Vec<P>> = BTreeMap::new();
        for (from, to) in ways {
            onward.entry(from).or_default().push(to);
            back.entry(to).or_default().push(from);
        }
        Self { onward, back }
    }

    /// Returns the places that are reached from some, including these.
    pub fn reached_from(&self, places: impl IntoIterator<Item = P>) -> BTreeSet<P> {
        reached(&self.onward, places)
    }

    /// Returns the places from which one of some is reached, including these.
    pub fn leading_to(&self, places: impl IntoIterator<Item = P>) -> BTreeSet<P> {
        reached(&self.back, places)
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
    /// Returns whether a place leads back to one that leads to it.
    pub fn leads_back(&self, from: P, to: P) -> bool {
        self.0.get(&from).zip(self.0.get(&to)).is_some_and(|(one, other)| one == other)
    }
}

fn reached<P: Ord + Copy>(
    ways: &BTreeMap<P, Vec<P>>,
    places: impl IntoIterator<Item = P>,
) -> BTreeSet<P> {
    let mut ahead: Vec<P> = places.into_iter().collect();
    let mut reached: BTreeSet<P> = ahead.iter().copied().collect();
    while let Some(place) = ahead.pop() {
        let next = ways.get(&place).into_iter().flatten();
        ahead.extend(next.copied().filter(|next| reached.insert(*next)));
    }
    reached
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a map of ways such as `AB`.
    fn map(ways: &str) -> FlowMap<char> {
        let ways: Vec<(char, char)> = ways
            .split(' ')
            .filter_map(|way| Some((way.chars().next()?, way.chars().nth(1)?)))
            .collect();
        FlowMap::new([], ways)
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
    fn long_ways_are_followed_in_linear_time() {
        let ways = (0..200_000).map(|place| (place, place + 1));
        let map = FlowMap::new([], ways);
        assert_eq!(map.reached_from([0]).len(), 200_001);
        assert!(!map.loops().leads_back(5, 4));
    }
}
