//! What trust compares of a file: all but the texts that only people and models read.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::position::SourcePlace;
use super::privileges::PrivilegeRequest;
use super::prompt::document;
use super::prompt::widenings::in_options;
use super::yaml::content::{YamlContent, YamlEntry, YamlValue};
use super::yaml::tree::{YamlFileKind, parse};
use crate::domain::id::{StateKind, StateName};
use crate::domain::privilege::Privilege;
use crate::domain::widening::PermissionCeiling;

/// The keys of a question that are only read.
const READ_IN_QUESTION: [&str; 2] = ["question", "header"];

/// The keys of the actions that only show a text.
const SHOWN: [&str; 4] = ["type", "message", "content", "title"];

/// Returns the part of a file that trust compares; `None` if that is all of it. `requests` has what all files ask for.
pub fn trusted_form(
    path: &str,
    text: &str,
    requests: &[PrivilegeRequest],
    ceiling: &PermissionCeiling,
) -> Option<String> {
    let (own, others): (Vec<_>, Vec<_>) = requests.iter().partition(|one| one.file == path);
    // Claude Code reads these files itself, and runs commands in them.
    if own.iter().any(|one| one.privilege == Privilege::ClaudeSettings) {
        return None;
    }
    let acts =
        Acts { places: own.iter().map(|one| one.place).collect(), elsewhere: !others.is_empty() };
    let name = StateName::parse(path.rsplit('/').next()?).ok()?;
    match StateKind::of(&name)? {
        StateKind::Prompt => of_prompt(&name, text, ceiling),
        StateKind::Graph => of_yaml(YamlFileKind::GRAPH, text, &acts),
        StateKind::Program | StateKind::Script => None,
    }
}

/// Where the files of a workflow need privileges.
#[derive(Debug, Default)]
struct Acts {
    /// The places in the file itself.
    places: Vec<SourcePlace>,
    /// True if another file needs any: a question here may be asked for it.
    elsewhere: bool,
}

/// The prompt itself may change if all that the file asks for are tools within a pattern.
fn of_prompt(name: &StateName, text: &str, ceiling: &PermissionCeiling) -> Option<String> {
    let (head, _, _) = document::split(text).ok()?;
    let examined = document::examine(text);
    let mut options = examined.document.frontmatter.options;
    if let Some(rules) = &mut options.allowed_tools {
        rules.retain(|rule| !has_pattern(rule));
    }
    let no_files = BTreeMap::<String, String>::new();
    let further = in_options(name, &options, &examined.places.options, &no_files, ceiling);
    if !further.is_empty() || options.runs_command() || examined.errors.or_else_first(()).is_err() {
        return None;
    }
    of_yaml(YamlFileKind::FRONTMATTER, &head, &Acts::default())
}

/// Returns whether a rule allows a tool only within a pattern, such as `Bash(cargo test:*)`.
fn has_pattern(rule: &str) -> bool {
    let pattern = rule.split_once('(').and_then(|(_, rest)| rest.trim_end().strip_suffix(')'));
    pattern.is_some_and(|pattern| pattern.chars().any(char::is_alphanumeric))
}

fn of_yaml(kind: YamlFileKind, text: &str, acts: &Acts) -> Option<String> {
    let (Some(root), faults) = parse(kind, text) else { return None };
    if !faults.is_empty() {
        return None;
    }
    let nodes = entries(&root).iter().find(|entry| &*entry.key == "nodes");
    let nodes = nodes.map(|nodes| entries(&nodes.value)).unwrap_or_default();
    let names =
        nodes.iter().map(|node| (&*node.key, Node::of(&node.value, &acts.places))).collect();
    let mut form =
        TrustedForm { nodes: names, acts_elsewhere: acts.elsewhere, text: String::new() };
    form.write(&root, &mut Vec::new());
    Some(form.text)
}

fn entries(value: &YamlValue) -> &[YamlEntry] {
    match &value.value {
        YamlContent::Map(entries) => entries,
        _ => &[],
    }
}

fn entry<'yaml>(value: &'yaml YamlValue, key: &str) -> Option<&'yaml YamlValue> {
    entries(value).iter().find(|entry| &*entry.key == key).map(|entry| &entry.value)
}

/// What counts of a node for the texts of others.
struct Node<'yaml> {
    asks_person: bool,
    /// True if it needs a privilege.
    acts: bool,
    /// The texts in it: the names of the nodes that it leads to are among them.
    texts: BTreeSet<&'yaml str>,
}

impl<'yaml> Node<'yaml> {
    fn of(value: &'yaml YamlValue, requests: &[SourcePlace]) -> Self {
        let kind = entry(value, "type").and_then(YamlValue::text);
        Self {
            asks_person: kind.is_some_and(|kind| &*kind.text == "user_prompt"),
            acts: requests.iter().any(|at| value.at == *at || value.way_to(*at).is_some()),
            texts: value.texts().into_iter().map(|(_, text)| &*text.text).collect(),
        }
    }
}

struct TrustedForm<'yaml> {
    nodes: BTreeMap<&'yaml str, Node<'yaml>>,
    acts_elsewhere: bool,
    text: String,
}

impl<'yaml> TrustedForm<'yaml> {
    /// Writes a value without what is only read. `path` has the keys that lead to it, with `*` for an element.
    fn write(&mut self, value: &'yaml YamlValue, path: &mut Vec<&'yaml str>) {
        match &value.value {
            YamlContent::List(list) => {
                self.text.push('[');
                for one in list.iter() {
                    path.push("*");
                    if !is_shown_text(one, path) {
                        self.write(one, path);
                        self.text.push(',');
                    }
                    path.pop();
                }
                self.text.push(']');
            }
            YamlContent::Map(map) => {
                self.text.push('{');
                for one in map.iter() {
                    path.push(&one.key);
                    if !self.is_read(path) {
                        self.text.push_str(&Value::from(&*one.key).to_string());
                        self.text.push(':');
                        self.write(&one.value, path);
                        self.text.push(',');
                    }
                    path.pop();
                }
                self.text.push('}');
            }
            _ => self.text.push_str(&value.written_json()),
        }
    }

    /// Returns whether a value is only read by people.
    fn is_read(&self, path: &[&str]) -> bool {
        match path {
            ["description"] | ["nodes", _, "description"] => true,
            ["nodes", node, "prompt", key] if READ_IN_QUESTION.contains(key) => {
                !self.consents(node)
            }
            ["nodes", node, "prompt", "options", "*", "description"] => !self.consents(node),
            _ => false,
        }
    }

    /// Returns whether something that needs a privilege may follow a question before the next one: its words are then
    /// those that a person agrees to.
    fn consents(&self, question: &str) -> bool {
        if self.acts_elsewhere {
            return true;
        }
        let (mut due, mut seen) = (vec![question], BTreeSet::new());
        while let Some(name) = due.pop() {
            let Some(node) = self.nodes.get(name).filter(|_| seen.insert(name)) else { continue };
            if node.acts {
                return true;
            }
            if name == question || !node.asks_person {
                due.extend(&node.texts);
            }
        }
        false
    }
}

/// Returns whether an element of a list is an action that only shows a constant text.
fn is_shown_text(value: &YamlValue, path: &[&str]) -> bool {
    let is_action = match path {
        ["nodes", _, "actions", "*", rest @ ..]
        | ["nodes", _, "on_response", _, "consequence" | "consequences", "*", rest @ ..] => {
            rest.chunks(2).all(|pair| pair == ["actions", "*"])
        }
        _ => false,
    };
    let is_shown = |kind: &str| matches!(kind, "display" | "display_message");
    let kind = entry(value, "type").and_then(YamlValue::text);
    is_action
        && kind.is_some_and(|kind| is_shown(&kind.text))
        && entries(value).iter().all(|entry| {
            SHOWN.contains(&&*entry.key)
                && entry.value.text().is_some_and(|text| !text.text.contains("${"))
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::settings::Settings;

    const GRAPH: &str = "name: g\nversion: \"1\"\ndescription: Old.\nstart_node: hello\nnodes:\n  hello:\n    type: action\n    description: d\n    actions:\n      - { type: display, content: Hello. }\n      - { type: set_state, field: computed.x, value: [{ type: display, content: kept }] }\n    on_success: ask\n    on_failure: done\n  ask:\n    type: user_prompt\n    prompt:\n      question: Which?\n      header: Which\n      options:\n        - { id: a, label: A, description: first }\n        - { id: b, label: B, description: second }\n    on_response:\n      a: { next_node: sure }\n      b: { next_node: done }\n  sure:\n    type: user_prompt\n    prompt:\n      question: Delete it?\n      header: Sure\n      options:\n        - { id: y, label: Yes, description: it goes }\n        - { id: n, label: No, description: it stays }\n    on_response:\n      y: { next_node: act }\n      n: { next_node: done }\n  act:\n    type: action\n    actions:\n      - { type: bash_exec, command: \"rm ${computed.x}\" }\n    on_success: done\n    on_failure: done\nendings:\n  done: { type: success, message: ok }\n";

    fn request(file: &str, privilege: Privilege, place: SourcePlace) -> PrivilegeRequest {
        PrivilegeRequest { file: file.to_owned(), place, privilege, purpose: String::new() }
    }

    fn graph(text: &str) -> Option<String> {
        graph_beside(text, None)
    }

    /// Returns the form of a graph beside a file that asks for something, too.
    fn graph_beside(text: &str, other: Option<&str>) -> Option<String> {
        let at = |(line, text): (usize, &str)| {
            let column = text.find("{ type: bash_exec")?;
            Some(SourcePlace { line: line as u64 + 1, column: column as u64 + 1 })
        };
        let places = text.lines().enumerate().filter_map(at);
        let own = places.map(|place| request("sub/g.yaml", Privilege::Commands, place));
        let other = other.map(|file| request(file, Privilege::Commands, SourcePlace::START));
        let requests: Vec<PrivilegeRequest> = own.chain(other).collect();
        trusted_form("sub/g.yaml", text, &requests, &PermissionCeiling::of(&Settings::default()))
    }

    #[test]
    fn only_texts_that_are_read_may_change_in_graph() {
        let before = graph(GRAPH);
        assert!(before.is_some());
        let kept = [
            ("description: Old.", "description: New."),
            ("description: d\n", "description: other # why\n"),
            ("content: Hello.", "content: 'Good morning'"),
            ("      - { type: display, content: Hello. }\n", ""),
            ("question: Which?", "question: Which of them?"),
            ("description: first", "description: the first"),
            ("name: g\n", "# a comment\nname:   g\n"),
        ];
        for (old, new) in kept {
            assert_eq!(graph(&GRAPH.replacen(old, new, 1)), before, "{old} -> {new}");
        }
        let asked = [
            ("rm ${computed.x}", "rm -r ${computed.x}"),
            ("content: kept", "content: other"),
            ("content: Hello.", "content: 'Hello ${computed.x}'"),
            ("content: Hello.", "content: Hello., command: x"),
            ("question: Delete it?", "question: Shall we go on?"),
            ("description: it goes", "description: nothing happens"),
            ("label: A", "label: B"),
            ("{ next_node: sure }", "{ next_node: act }"),
            ("on_success: ask", "on_success: act"),
            ("message: ok", "message: done"),
            ("version: \"1\"", "version: 1"),
        ];
        for (old, new) in asked {
            let changed = GRAPH.replacen(old, new, 1);
            assert_ne!(changed, GRAPH, "{old}");
            assert_ne!(graph(&changed), before, "{old} -> {new}");
        }
        assert_eq!(graph(&GRAPH.replace("name: g", "name: [g")), None, "a mistake");
        let beside = |text: &str| graph_beside(text, Some("other.yaml"));
        let asked = GRAPH.replace("question: Which?", "question: Which of them?");
        assert_ne!(beside(&asked), beside(GRAPH), "the other file may act on the answer");
    }

    #[test]
    fn body_may_change_if_prompt_asks_only_for_tools_within_pattern() {
        let form = |head: &str, body: &str| {
            let text = format!("---\n{head}\n---\n{body}");
            trusted_form("A.md", &text, &[], &PermissionCeiling::of(&Settings::default()))
        };
        let narrow = "allowed_tools: [\"Bash(cargo test:*)\"]";
        assert_eq!(form(narrow, "one"), form(narrow, "two"));
        assert_eq!(form(narrow, "one"), form(&format!("{narrow} # why"), "one"));
        assert_ne!(form(narrow, "one"), form("allowed_tools: [\"Bash(cargo:*)\"]", "one"));
        for wide in [
            "allowed_tools: [Bash]",
            "allowed_tools: [\"Bash(*)\"]",
            "permission_mode: bypassPermissions",
        ] {
            assert_eq!(form(wide, "one"), None, "{wide}");
        }
        assert_eq!(form(&format!("{narrow}\nrun_command: true"), "/x"), None);
        let path = ".claude/commands/deploy.md";
        let own = [request(path, Privilege::ClaudeSettings, SourcePlace::START)];
        let ceiling = PermissionCeiling::of(&Settings::default());
        assert_eq!(trusted_form(path, "Run !`true`.", &own, &ceiling), None);
        assert_eq!(
            trusted_form("a.sh", "true", &[], &PermissionCeiling::of(&Settings::default())),
            None
        );
    }
}
