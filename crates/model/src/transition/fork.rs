//! The attributes of a `<fork>` beyond its target: a list with an entry for each agent, and a directory.
//!
//! `each` and `cwd`, which may be written `cd`, are part of its structure and never variables. `as` is part of it only
//! if there is a list. The tags of one reply are one transition: the first tag, and the others in
//! [`also`](Transition::Fork).

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{InvalidTransition, TagName, Transition, Variables, escape_attribute};
use crate::id::{Folder, ScopePath, StateName, write_target};

/// The value of `each` in a policy that leaves the list to the agent.
pub const ANY_LIST: &str = "any";

/// The placeholders that the runtime fills itself; no entry can fill them.
const TAKEN: [&str; 3] = ["workflow_id", "agent_id", "state"];

/// The default name of the variable that has an entry.
const ITEM: &str = "item";

/// A list, and the name under which an agent sees its entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ForkList {
    /// A file below the directory of the agent that forks, or the list itself as JSON.
    #[serde(rename = "each")]
    pub list: String,
    /// The variable that has the entry.
    #[serde(rename = "as", default = "item", skip_serializing_if = "is_item")]
    pub name: String,
}

/// One `<fork>` tag.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ForkTag {
    /// The state the new agent starts in.
    pub target: StateName,
    /// The other folder that has the state, if it is in another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<ScopePath>,
    /// The list that has an entry for each of several agents.
    #[serde(default, flatten, skip_serializing_if = "Option::is_none")]
    pub each: Option<Box<ForkList>>,
    /// The directory the new agent works in, below that of its parent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<Box<str>>,
    /// Values for the placeholders of `target`.
    #[serde(default, skip_serializing_if = "Variables::is_empty")]
    pub variables: Variables,
}

fn item() -> String {
    ITEM.to_owned()
}

fn is_item(name: &str) -> bool {
    name == ITEM
}

impl ForkList {
    /// Returns whether it is the list itself.
    pub fn is_inline(&self) -> bool {
        self.list.starts_with('[')
    }
}

/// Takes the list of a fork out of its attributes.
pub(super) fn each(variables: &mut Variables) -> Result<Option<Box<ForkList>>, InvalidTransition> {
    let Some(list) = variables.remove("each") else { return Ok(None) };
    let list = list.trim().to_owned();
    if list.is_empty() {
        let why = "each needs a file, such as each=\"items.json\", or a JSON list";
        return Err(InvalidTransition::Fork(why.to_owned()));
    }
    let name = variables.remove("as").unwrap_or_else(item);
    if TAKEN.contains(&name.as_str()) {
        let why = format!("as=\"{name}\" is a placeholder of the runtime's own; write as=\"item\"");
        return Err(InvalidTransition::Fork(why));
    }
    if !is_placeholder(&name) {
        let why = format!("as=\"{name}\" is not a name for a placeholder; write as=\"item\"");
        return Err(InvalidTransition::Fork(why));
    }
    Ok(Some(Box::new(ForkList { list, name })))
}

/// Returns whether a prompt can have a placeholder of that name.
fn is_placeholder(name: &str) -> bool {
    let begins = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    let rest = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    begins && name.len() <= 64 && name.chars().all(rest)
}

/// Takes the directory of a fork out of its attributes. It may have placeholders for the entry of a list.
pub(super) fn directory(variables: &mut Variables) -> Result<Option<Box<str>>, InvalidTransition> {
    let directory = match (variables.remove("cwd"), variables.remove("cd")) {
        (Some(_), Some(_)) => {
            let why = "`cd` is another name of `cwd`; write one of them";
            return Err(InvalidTransition::Fork(why.to_owned()));
        }
        (cwd, cd) => cwd.or(cd),
    };
    let Some(directory) = directory else { return Ok(None) };
    let directory = directory.trim().trim_start_matches("./").to_owned();
    if !directory.contains("{{") && Folder::parse(&directory).is_err() {
        let why = format!(
            "cwd=\"{directory}\" is not a directory below that of the agent; name one without a leading / and without `..`"
        );
        return Err(InvalidTransition::Fork(why));
    }
    Ok(Some(directory.into()))
}

impl Transition {
    /// Returns the forks, tag by tag.
    pub fn forked(&self) -> Vec<ForkTag> {
        let Self::Fork { target, scope, each, cwd, variables, also, .. } = self else {
            return Vec::new();
        };
        let first = ForkTag {
            target: target.clone(),
            scope: scope.clone(),
            each: each.clone(),
            cwd: cwd.clone(),
            variables: variables.clone(),
        };
        std::iter::once(first).chain(also.iter().cloned()).collect()
    }

    /// Returns whether it forks just one agent, in its parent's directory.
    pub fn is_plain_fork(&self) -> bool {
        matches!(self, Self::Fork { each: None, cwd: None, also, .. } if also.is_empty())
    }

    /// Returns one transition of several tags, if all of them fork and lead to the same state.
    pub fn together(tags: &[Self]) -> Option<Self> {
        let (first, others) = tags.split_first()?;
        let mut whole = first.clone();
        let Self::Fork { next, also, .. } = &mut whole else { return None };
        for other in others {
            if other.continuation() != Some(&*next) {
                return None;
            }
            also.extend(other.forked());
        }
        Some(whole)
    }
}

/// Writes each tag as an agent would.
pub(super) fn shown(transition: &Transition, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let Some(next) = transition.continuation() else { return Ok(()) };
    for (index, forked) in transition.forked().iter().enumerate() {
        if index > 0 {
            f.write_str(" ")?;
        }
        write_tag(forked, next, f)?;
    }
    Ok(())
}

fn write_tag(forked: &ForkTag, next: &StateName, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let name = TagName::Fork.name_into(forked.scope.as_ref());
    write!(f, "<{name} next=\"{next}\"")?;
    if let Some(ForkList { list, name }) = forked.each.as_deref() {
        write!(f, " each=\"{}\"", escape_attribute(list))?;
        if !is_item(name) {
            write!(f, " as=\"{name}\"")?;
        }
    }
    if let Some(directory) = &forked.cwd {
        write!(f, " cwd=\"{}\"", escape_attribute(directory))?;
    }
    for (name, value) in &forked.variables {
        write!(f, " {name}=\"{}\"", escape_attribute(value))?;
    }
    f.write_str(">")?;
    write_target(forked.scope.as_ref().map(ScopePath::as_written), &forked.target, f)?;
    write!(f, "</{name}>")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fork(attributes: &[(&str, &str)], body: &str) -> Result<Transition, InvalidTransition> {
        let owned =
            attributes.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Transition::from_parts(TagName::Fork, owned, body)
    }

    #[test]
    fn each_and_cwd_attributes_are_not_variables() {
        let attributes = [("next", "N.md"), ("each", "a.json"), ("cwd", "./x/y"), ("kind", "k")];
        let whole = fork(&attributes, "W.md").expect("a fork");
        let [forked] = whole.forked().try_into().expect("one tag");
        let each = ForkList { list: "a.json".to_owned(), name: "item".to_owned() };
        assert_eq!(forked.each, Some(Box::new(each)));
        assert_eq!(forked.cwd.as_deref(), Some("x/y"));
        assert_eq!(forked.variables.keys().collect::<Vec<_>>(), ["kind"]);
        assert!(!whole.is_plain_fork());
        assert_eq!(
            whole.to_string(),
            "<fork next=\"N.md\" each=\"a.json\" cwd=\"x/y\" kind=\"k\">W.md</fork>"
        );
        let json = serde_json::to_string(&whole).expect("written");
        assert_eq!(
            json,
            r#"{"tag":"fork","target":"W.md","next":"N.md","each":"a.json","cwd":"x/y","variables":{"kind":"k"}}"#
        );
        assert_eq!(serde_json::from_str::<Transition>(&json).expect("read"), whole);
    }

    #[test]
    fn as_attribute_without_each_is_plain_variable() {
        let plain = fork(&[("next", "N.md"), ("as", "x")], "W.md").expect("a fork");
        assert!(plain.is_plain_fork());
        assert_eq!(plain.variables().get("as").map(String::as_str), Some("x"));
    }

    #[test]
    fn invalid_fork_attribute_is_error() {
        let wrong = |attribute: (&str, &str)| {
            let attributes = [("next", "N.md"), ("each", "a.json"), attribute];
            fork(&attributes, "W.md").expect_err("wrong").to_string()
        };
        assert_eq!(
            wrong(("as", "a b")),
            "<fork>: as=\"a b\" is not a name for a placeholder; write as=\"item\""
        );
        assert!(wrong(("as", "state")).contains("the runtime's own"));
        for directory in ["/etc", "../x", "", "a/../b"] {
            assert!(wrong(("cwd", directory)).contains("below that of the agent"), "{directory}");
        }
        let empty = fork(&[("next", "N.md"), ("each", " ")], "W.md").expect_err("wrong");
        assert!(empty.to_string().contains("each needs a file"), "{empty}");
    }

    #[test]
    fn fork_tags_with_same_next_state_are_combined() {
        let to = |next: &str, item: &str| {
            fork(&[("next", next), ("item", item)], "W.md").expect("a fork")
        };
        let whole = Transition::together(&[to("N.md", "a"), to("N.md", "b")]).expect("one");
        assert_eq!(whole.forked().len(), 2);
        assert!(!whole.is_plain_fork());
        assert_eq!(
            whole.to_string(),
            "<fork next=\"N.md\" item=\"a\">W.md</fork> <fork next=\"N.md\" item=\"b\">W.md</fork>"
        );
        assert_eq!(Transition::together(&[to("N.md", "a"), to("M.md", "b")]), None);
        let goto = Transition::from_parts(TagName::Goto, [], "N.md").expect("a goto");
        assert_eq!(Transition::together(&[to("N.md", "a"), goto]), None);
    }
}
