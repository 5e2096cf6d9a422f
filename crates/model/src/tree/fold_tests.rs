//! The rule, case by case, on lists that are made for it.

use super::*;
use crate::tests::scene::{agent_id, state};

/// Agents with the states they began in, their kinds and ranks.
#[derive(Default)]
struct List(Vec<(AgentId, Option<StateName>, Option<u8>, u8)>);

impl List {
    /// Adds an agent.
    fn agent(mut self, id: &str, began: &str) -> Self {
        self.0.push((agent_id(id), (!began.is_empty()).then(|| state(began)), None, 9));
        self
    }

    /// Adds so many children of an agent.
    fn children(self, parent: &str, numbers: std::ops::RangeInclusive<u32>, began: &str) -> Self {
        numbers.fold(self, |list, number| list.agent(&format!("{parent}.{number}"), began))
    }

    /// Lets an agent stand out.
    fn with(mut self, id: &str, kind: u8) -> Self {
        let found = self.0.iter_mut().find(|agent| agent.0.as_str() == id).expect("it is there");
        (found.2, found.3) = (Some(kind), kind);
        self
    }

    fn rows(&self, opened: &HashSet<FamilyKey>) -> Vec<TreeRow> {
        let branches = AgentHierarchy::of(self.0.iter().map(|agent| &agent.0));
        let folding =
            FoldOptions { many: FAMILY_FOLD_SIZE, deepest: usize::MAX, opened: Some(opened) };
        rows(&branches, self, folding)
    }

    /// The rows as text: the depth, the first id, and how many there are.
    fn shown(&self, opened: &HashSet<FamilyKey>) -> Vec<String> {
        let text = |row: &TreeRow| {
            let members = row.of.members();
            let many = if let RowSubject::Many { .. } = row.of { "×" } else { "" };
            let count = if many.is_empty() { String::new() } else { members.len().to_string() };
            format!("{} {}{many}{count}", row.depth, self.0[members[0]].0)
        };
        self.rows(opened).iter().map(text).collect()
    }
}

impl FoldSource for List {
    fn id(&self, place: usize) -> &AgentId {
        &self.0[place].0
    }

    fn began(&self, place: usize) -> Option<&StateName> {
        self.0[place].1.as_ref()
    }

    fn stands_out(&self, place: usize) -> Option<u8> {
        self.0[place].2
    }

    fn rank(&self, place: usize) -> u8 {
        self.0[place].3
    }
}

fn folded(list: &List) -> Vec<String> {
    list.shown(&HashSet::new())
}

#[test]
fn family_folds_only_above_twelve_members() {
    let list = List::default().agent("main", "A.md").children("main", 1..=12, "W.md");
    assert_eq!(folded(&list).len(), 13);
    let list = list.agent("main.13", "W.md").children("main", 14..=16, "V.md");
    assert_eq!(folded(&list), ["0 main", "1 main.1×13", "1 main.14", "1 main.15", "1 main.16"]);
    let unknown = List::default().agent("main", "A.md").children("main", 1..=13, "");
    assert_eq!(folded(&unknown), ["0 main", "1 main.1×13"], "nobody knows where they began");
}

#[test]
fn notable_family_members_are_listed_by_kind_up_to_limit() {
    let mut list = List::default().agent("main", "A.md").children("main", 1..=1000, "W.md");
    for number in 101..=140 {
        list = list.with(&format!("main.{number}"), 2);
    }
    list = list.with("main.900", 1).with("main.901", 1);
    let rows = folded(&list);
    assert_eq!(rows.len(), 2 + 2 + FAMILY_FOLD_SIZE);
    assert_eq!(rows[..5], ["0 main", "1 main.900×1000", "2 main.900", "2 main.901", "2 main.101"]);
    assert_eq!(rows[15], "2 main.112");
}

#[test]
fn children_of_notable_member_are_shown_and_others_folded() {
    let mut list = List::default().agent("main", "A.md").children("main", 1..=20, "W.md");
    list = list.with("main.3", 0);
    for number in 1..=20 {
        list = list.children(&format!("main.{number}"), 1..=2, "X.md");
    }
    let rows = ["0 main", "1 main.3×20", "2 main.3", "3 main.3.1", "3 main.3.2", "2 main.1.1×38"];
    assert_eq!(folded(&list), rows);
}

#[test]
fn family_key_is_stable_and_opens_only_that_family() {
    let list = List::default().agent("main", "A.md").children("main", 1..=15, "W.md");
    let list = list.children("main.7", 1..=14, "X.md");
    let families = |list: &List| -> Vec<FamilyKey> {
        let rows = list.rows(&HashSet::new()).into_iter();
        rows.filter_map(|row| match row.of {
            RowSubject::Many { family, .. } => Some(family),
            RowSubject::One(_) => None,
        })
        .collect()
    };
    let before = families(&list);
    assert_eq!(before.len(), 2);
    let list = list.with("main.2", 0).children("main", 16..=17, "W.md");
    assert_eq!(families(&list), before);
    let opened: HashSet<FamilyKey> = before.into_iter().take(1).collect();
    let rows = list.shown(&opened);
    assert_eq!(rows[..3], ["0 main", "1 main.2×17", "2 main.2"]);
    assert_eq!(rows[8..11], ["2 main.7", "3 main.7.1×14", "2 main.8"], "below its own parent");
    assert_eq!(rows.len(), 2 + 17 + 1);
}
