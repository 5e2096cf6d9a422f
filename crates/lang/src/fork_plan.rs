//! The plan of a fork: which children it creates, in which groups, and how many there may be, from its lists.
//!
//! Lists, directories and commits are looked up by the caller, tag by tag.

use std::collections::HashSet;

use serde_json::Value;

use crate::output::placeholder;
use crate::template;
use raymond_model::agent::AgentOptions;
use raymond_model::id::{Folder, SessionId, StateName};
use raymond_model::json_mistake::mistake;
use raymond_model::settings::{ChildSpec, ForkGroup, agent_count};
use raymond_model::transition::{ForkList, ForkTag, Transition, Variables};

/// The children of a fork, as far as they are planned.
#[derive(Debug)]
pub struct ForkPlan {
    groups: Vec<ForkGroup>,
    max_fan_out: u32,
    /// The state that forks.
    state: StateName,
}

/// The directories of the children of one tag.
#[derive(Debug, Default)]
pub struct ForkDirectories(HashSet<Folder>);

impl ForkPlan {
    /// Returns an empty plan for a state.
    pub fn new(state: StateName, max_fan_out: u32) -> Self {
        Self { groups: Vec::new(), max_fan_out, state }
    }

    /// Returns the file that has the list of a tag, if its text is needed.
    pub fn list_file(forked: &ForkTag) -> Option<&str> {
        forked.each.as_ref().filter(|each| !each.is_inline()).map(|each| each.list.as_str())
    }

    /// Returns the variables of each child of a tag. `listed` is the text of its file, if it has one.
    ///
    /// # Errors
    /// The mistake in the list, or that there would be too many children.
    pub fn entries(
        &self,
        forked: &ForkTag,
        listed: Option<&str>,
    ) -> Result<Vec<Variables>, String> {
        let entries = match &forked.each {
            None => vec![forked.variables.clone()],
            Some(each) => entries(each, listed.unwrap_or(&each.list), &forked.variables)?,
        };
        let many = agent_count(&self.groups) + entries.len();
        if many > usize::try_from(self.max_fan_out).unwrap_or(usize::MAX) {
            return Err(format!(
                "{many} agents would be forked, but one reply may fork at most {} (max_fan_out, in the frontmatter of {} or in raymond.yaml)",
                self.max_fan_out, self.state
            ));
        }
        Ok(entries)
    }

    /// Checks the lists of a fork, and the number of its children. `read` returns the text of a list's file; `None` if
    /// it cannot be known yet.
    ///
    /// # Errors
    /// The mistake.
    pub fn check(
        mut self,
        fork: &Transition,
        read: &dyn Fn(&str) -> Result<Option<String>, String>,
    ) -> Result<(), String> {
        for forked in fork.forked() {
            let listed = match Self::list_file(&forked) {
                Some(file) => match read(file)? {
                    Some(text) => Some(text),
                    None => continue,
                },
                None => None,
            };
            let children = self.entries(&forked, listed.as_deref())?;
            let child = |variables| ChildSpec { session: SessionId::new(""), cwd: None, variables };
            let children = children.into_iter().map(child).collect();
            self.begin_group(&forked, AgentOptions::default(), None, children);
        }
        Ok(())
    }

    /// Returns whether the children of a tag begin a group. Consecutive tags with the same target form one.
    pub fn begins_group(&self, forked: &ForkTag) -> bool {
        self.groups
            .last()
            .is_none_or(|last| last.state != forked.target || last.scope != forked.scope)
    }

    /// Adds the children of a tag that begins a group; `base` is the commit of their worktrees.
    pub fn begin_group(
        &mut self,
        forked: &ForkTag,
        options: AgentOptions,
        base: Option<String>,
        agents: Vec<ChildSpec>,
    ) {
        let (state, scope) = (forked.target.clone(), forked.scope.clone());
        self.groups.push(ForkGroup { state, scope, options, base, not_before: None, agents });
    }

    /// Adds the children of a tag that begins no group to the last one.
    pub fn extend_group(&mut self, agents: Vec<ChildSpec>) {
        if let Some(last) = self.groups.last_mut() {
            last.agents.extend(agents);
        }
    }

    /// Returns the children of a fork, in groups. If all its lists are empty, the first target has a group without
    /// agents.
    pub fn into_groups_of(mut self, fork: &Transition) -> Vec<ForkGroup> {
        if let (true, Some(first)) = (self.groups.is_empty(), fork.forked().first()) {
            self.begin_group(first, AgentOptions::default(), None, Vec::new());
        }
        self.groups
    }
}

impl ForkDirectories {
    /// Returns the directory of a child with these variables, if its tag names one, and whether no child before it
    /// has that, so that it has to be looked up.
    ///
    /// # Errors
    /// Why the tag names no directory below that of the agent, and the fix.
    pub fn of_child(
        &mut self,
        forked: &ForkTag,
        variables: &Variables,
    ) -> Result<Option<(Folder, bool)>, String> {
        let Some(cwd) = &forked.cwd else { return Ok(None) };
        let directory = directory(cwd, variables)?;
        let is_new = self.0.insert(directory.clone());
        Ok(Some((directory, is_new)))
    }
}

/// Returns the directory of a child with these variables.
fn directory(cwd: &str, variables: &Variables) -> Result<Folder, String> {
    let filled = template::fill(cwd, |name| placeholder(variables, name));
    let directory = filled.text.trim().trim_start_matches("./");
    match (filled.unknown.first(), Folder::parse(directory)) {
        (Some((name, _)), _) => Err(format!(
            "nothing fills {{{{{name}}}}} in cwd=\"{cwd}\"; the list entries have no such field"
        )),
        (None, Ok(folder)) => Ok(folder),
        (None, Err(_)) => Err(format!(
            "`{directory}` is not a directory below that of the agent; name one without a leading / and without `..`"
        )),
    }
}

// The list of a fan-out: an entry for each agent, and the variables of each entry.
//
// Only the name of a file decides how it is read: `.json` is a JSON list, `.jsonl` and `.ndjson` have a JSON value on
// each line; in any other file each line that is not blank is an entry. A list in the tag itself is JSON. A text is
// shown as it is, any other value as JSON. The fields of an object become variables too; they override those of the
// tag.

/// The largest list, in bytes.
pub const MAX_LIST_BYTES: u64 = 4 * 1024 * 1024;

/// The format of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ListFormat {
    List,
    Lines,
    Texts,
}

/// Returns the variables of each agent: the tag's own `variables`, overridden by those of its list entry. A list
/// without entries forks no agent.
///
/// # Errors
/// The mistake in the list, its place, and the fix.
pub fn entries(
    each: &ForkList,
    text: &str,
    variables: &Variables,
) -> Result<Vec<Variables>, String> {
    let name = if each.is_inline() { "the list in the tag" } else { &each.list };
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let values = match form(each) {
        ListFormat::List => list(name, text)?,
        ListFormat::Lines => lines(name, text)?,
        ListFormat::Texts => texts(text),
    };
    Ok(values.into_iter().map(|value| seen(value, &each.name, variables)).collect())
}

fn form(each: &ForkList) -> ListFormat {
    let ending = each.list.rsplit_once('.').map_or("", |(_, ending)| ending);
    match ending.to_ascii_lowercase().as_str() {
        _ if each.is_inline() => ListFormat::List,
        "json" => ListFormat::List,
        "jsonl" | "ndjson" => ListFormat::Lines,
        _ => ListFormat::Texts,
    }
}

fn list(name: &str, text: &str) -> Result<Vec<Value>, String> {
    let value: Value = serde_json::from_str(text)
        .map_err(|error| format!("{name} is not valid JSON: {}", placed(&error, 0)))?;
    match value {
        Value::Array(values) => Ok(values),
        other => Err(format!(
            "{name} holds {}, where a list is needed, such as [\"a\", \"b\"] or [{{\"file\": \"a\"}}]",
            kind(&other)
        )),
    }
}

fn lines(name: &str, text: &str) -> Result<Vec<Value>, String> {
    let filled = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    filled
        .map(|(before, line)| {
            serde_json::from_str(line).map_err(|error| {
                format!(
                    "{name} is not valid JSON Lines: {}; use a .txt file for plain text",
                    placed(&error, before)
                )
            })
        })
        .collect()
}

fn texts(text: &str) -> Vec<Value> {
    let lines = text.lines().map(str::trim_end).filter(|line| !line.trim().is_empty());
    lines.map(Value::from).collect()
}

/// Returns the message with its place in the file; `before` lines of the file come before the parsed text.
fn placed(error: &serde_json::Error, before: usize) -> String {
    format!("{}:{}: {}", error.line() + before, error.column(), mistake(error))
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a truth value",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// Returns the variables that an agent sees for its entry.
fn seen(value: Value, name: &str, variables: &Variables) -> Variables {
    let mut seen = variables.clone();
    let whole = shown(&value);
    if let Value::Object(fields) = value {
        seen.extend(fields.into_iter().map(|(field, value)| {
            let shown = shown(&value);
            (field, shown)
        }));
    }
    seen.insert(name.to_owned(), whole);
    seen
}

fn shown(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use raymond_model::id::SessionId;
    use raymond_model::transition::{ForkList, TagName};

    fn tag(target: &str, list: Option<&str>, cwd: Option<&str>) -> ForkTag {
        let list = list.map(|list| ForkList { list: list.to_owned(), name: "item".to_owned() });
        ForkTag {
            target: StateName::parse(target).expect("a state"),
            scope: None,
            each: list.map(Box::new),
            cwd: cwd.map(Into::into),
            variables: Variables::new(),
        }
    }

    fn children(many: usize) -> Vec<ChildSpec> {
        let session = SessionId::new("00000000-0000-4000-8000-000000000001");
        vec![ChildSpec { session, cwd: None, variables: Variables::new() }; many]
    }

    fn plan(max_fan_out: u32) -> ForkPlan {
        ForkPlan::new(StateName::parse("A.md").expect("a state"), max_fan_out)
    }

    #[test]
    fn consecutive_tags_with_same_target_form_one_group() {
        let mut plan = plan(10);
        for forked in ["W.md", "W.md", "X.md"].map(|target| tag(target, None, None)) {
            if plan.begins_group(&forked) {
                plan.begin_group(&forked, AgentOptions::default(), None, children(1));
            } else {
                plan.extend_group(children(2));
            }
        }
        let next = [("next".to_owned(), "N.md".to_owned())];
        let fork = Transition::from_parts(TagName::Fork, next, "W.md").expect("a fork");
        let empty = ForkPlan::new(fork.states().next().expect("a state").clone(), 1);
        let empty = empty.into_groups_of(&fork);
        assert_eq!((empty.len(), empty[0].state.as_str()), (1, "W.md"));
        assert!(empty[0].agents.is_empty());
        let groups = plan.into_groups_of(&fork);
        let sizes: Vec<_> =
            groups.iter().map(|group| (group.state.as_str(), group.agents.len())).collect();
        assert_eq!(sizes, [("W.md", 3), ("X.md", 1)]);
    }

    #[test]
    fn more_children_than_allowed_are_refused_whatever_their_tag() {
        let forked = &tag("W.md", Some("[1, 2, 3]"), None);
        assert_eq!(ForkPlan::list_file(forked), None);
        assert_eq!(plan(3).entries(forked, None).map(|all| all.len()), Ok(3));
        let mut full = plan(4);
        full.begin_group(forked, AgentOptions::default(), None, children(2));
        let refused = full.entries(forked, None).expect_err("too many");
        assert!(refused.starts_with("5 agents would be forked, but one reply may fork at most 4"));
        let listed = &tag("W.md", Some("list.txt"), None);
        assert_eq!(ForkPlan::list_file(listed), Some("list.txt"));
        assert_eq!(plan(3).entries(listed, Some("a\nb")).map(|all| all.len()), Ok(2));
    }

    #[test]
    fn directory_of_child_is_below_that_of_agent_and_looked_up_once() {
        let variables: Variables = [("at".to_owned(), "sub".to_owned())].into();
        let named = |cwd: &str| {
            let forked = &tag("W.md", None, Some(cwd));
            let mut known = ForkDirectories::default();
            let first = known.of_child(forked, &variables);
            (
                first,
                known
                    .of_child(forked, &variables)
                    .is_ok_and(|directory| directory.is_some_and(|directory| directory.1)),
            )
        };
        let sub = Folder::parse("sub").expect("a folder");
        assert_eq!(named("./{{at}}"), (Ok(Some((sub, true))), false));
        for (cwd, why) in [
            ("{{gone}}", "nothing fills {{gone}} in cwd=\"{{gone}}\"; the list entries"),
            ("../x", "`../x` is not a directory below that of the agent; name one"),
            ("/tmp", "`/tmp` is not a directory below"),
        ] {
            let message = named(cwd).0.expect_err(cwd);
            assert!(message.starts_with(why), "{message}");
        }
        let plain = &tag("W.md", None, None);
        assert_eq!(ForkDirectories::default().of_child(plain, &variables), Ok(None));
    }
}

#[cfg(test)]
mod fork_list_tests {
    use super::*;

    fn each(list: &str) -> ForkList {
        ForkList { list: list.to_owned(), name: "item".to_owned() }
    }

    fn read(list: &str, text: &str) -> Vec<Vec<(String, String)>> {
        let read = entries(&each(list), text, &Variables::new()).expect("a list");
        read.into_iter().map(|entry| entry.into_iter().collect()).collect()
    }

    fn items(list: &str, text: &str) -> Vec<String> {
        read(list, text).into_iter().map(|entry| entry[0].1.clone()).collect()
    }

    fn wrong(list: &str, text: &str) -> String {
        entries(&each(list), text, &Variables::new()).expect_err("wrong")
    }

    #[test]
    fn file_extension_selects_list_format() {
        assert_eq!(items("a.json", " [\"a\", 1, [2, 3], null]\n"), ["a", "1", "[2,3]", "null"]);
        assert_eq!(items("a.JSONL", "\"a\"\n\n[1]\n"), ["a", "[1]"]);
        assert_eq!(items("a.txt", "one\r\n\n  two \n[\"three\"]"), ["one", "  two", "[\"three\"]"]);
        assert_eq!(items("list", "\u{feff}x"), ["x"]);
        assert_eq!(items("[\"x.txt\"]", "[\"x.txt\"]"), ["x.txt"]);
    }

    #[test]
    fn list_without_entries_forks_nobody() {
        for (list, text) in [
            ("a.json", "[]"),
            ("a.json", "\u{feff} [\n]\n"),
            ("a.txt", " \n\n"),
            ("a.txt", ""),
            ("a.jsonl", ""),
            ("[ ]", "[ ]"),
        ] {
            assert!(read(list, text).is_empty(), "{list}: {text:?}");
        }
        assert!(wrong("a.json", "").starts_with("a.json is not valid JSON"));
        assert!(wrong("a.json", "null").starts_with("a.json holds null"));
    }

    #[test]
    fn object_fields_become_variables() {
        let [entry] = read("a.json", r#"[{"file": "a.rs", "lines": 3}]"#).try_into().expect("one");
        let expected = [("file", "a.rs"), ("item", r#"{"file":"a.rs","lines":3}"#), ("lines", "3")];
        assert_eq!(entry, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
        let shared = [("file", "shared"), ("item", "shared"), ("kind", "k")];
        let shared: Variables =
            shared.into_iter().map(|(name, value)| (name.into(), value.into())).collect();
        let mixed =
            entries(&each("a.json"), r#"[{"file": "a.rs"}, "b"]"#, &shared).expect("a list");
        assert_eq!((mixed[0]["file"].as_str(), mixed[0]["kind"].as_str()), ("a.rs", "k"));
        assert_eq!((mixed[1]["file"].as_str(), mixed[1]["item"].as_str()), ("shared", "b"));
    }

    #[test]
    fn invalid_list_is_error_with_location() {
        assert_eq!(
            wrong("a.json", "[\"a\",\n  oops]"),
            "a.json is not valid JSON: 2:3: expected a JSON value: a quoted string, a number, true, false or null"
        );
        assert_eq!(
            wrong("a.json", "{\"a\": 1}"),
            "a.json holds an object, where a list is needed, such as [\"a\", \"b\"] or [{\"file\": \"a\"}]"
        );
        assert_eq!(
            wrong("a.ndjson", "1\n\nplain text\n"),
            "a.ndjson is not valid JSON Lines: 3:1: expected a JSON value: a quoted string, a number, true, false or null; use a .txt file for plain text"
        );
        assert!(
            wrong("[1", "[1")
                .starts_with("the list in the tag is not valid JSON: 1:2: it ends too early")
        );
    }
}
