//! What trust in a workflow's folder compares of its files.

use std::collections::BTreeSet;

use serde_json::Value;

use super::prompt::document;
use super::yaml::tree::YamlFileKind;
use super::yaml::{YamlContent, YamlEntry, YamlValue, sound_tree};
use raymond_model::id::{StateKind, StateName};

/// The keys of the actions that only show a text.
const SHOWN: [&str; 4] = ["type", "message", "content", "title"];

/// Returns the part of a graph that trust compares, for a graph that only raymond reads: all but comments, layout,
/// descriptions and, if the graph asks nobody, the constant texts that it displays. `None` if it is compared whole.
pub fn trusted_form(path: &str, text: &str) -> Option<String> {
    let name = StateName::parse(path.rsplit('/').next()?).ok()?;
    if StateKind::of(&name) != Some(StateKind::Graph) {
        return None;
    }
    let root = sound_tree(YamlFileKind::GRAPH, text).ok()?;
    // What a person sees before a question is a part of what they agree to.
    let asks = root.texts().iter().any(|(_, text)| &*text.text == "user_prompt");
    let mut form = TrustedForm { shows_freely: !asks, text: String::new() };
    form.write(&root, &mut Vec::new());
    Some(form.text)
}

/// Returns the names of files in what a file that asks for a privilege says: it may read them, or hand them to what it
/// runs. Of a prompt only the frontmatter counts; a state that a graph leads to is read by raymond alone.
pub fn named_files(path: &str, text: &str) -> BTreeSet<String> {
    let kind =
        path.rsplit('/').next().and_then(|name| StateKind::of(&StateName::parse(name).ok()?));
    match kind {
        Some(StateKind::Prompt) => match document::split(text) {
            Ok((head, _, _)) => words(&head).collect(),
            Err(_) => words(text).collect(),
        },
        Some(StateKind::Graph) => match sound_tree(YamlFileKind::GRAPH, text) {
            Ok(root) => {
                let mut found = BTreeSet::new();
                for entry in root.entries() {
                    collect(&entry.value, &*entry.key == "nodes", &mut found);
                }
                found
            }
            Err(_) => words(text).collect(),
        },
        Some(StateKind::Program | StateKind::Script) | None => words(text).collect(),
    }
}

/// Returns the word by which a text names a file: the last one of its name.
pub fn word_of(path: &str) -> Option<String> {
    words(path.rsplit('/').next()?).last()
}

fn collect(value: &YamlValue, in_nodes: bool, found: &mut BTreeSet<String>) {
    if let YamlContent::List(list) = &value.value {
        list.iter().for_each(|item| collect(item, in_nodes, found));
    }
    for entry in value.entries() {
        found.extend(words(&entry.key));
        if !(in_nodes && &*entry.key == "state" && entry.value.text().is_some()) {
            collect(&entry.value, in_nodes, found);
        }
    }
    found.extend(value.text().into_iter().flat_map(|text| words(&text.text)));
}

/// Returns the words that can be names of files.
fn words(text: &str) -> impl Iterator<Item = String> {
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
    let words = text.split(move |c| !is_part(c)).map(|word| word.trim_end_matches('.'));
    words.filter(|word| word.contains('.')).map(str::to_owned)
}

struct TrustedForm {
    shows_freely: bool,
    text: String,
}

impl TrustedForm {
    /// Writes a value without what is only read. `path` has the keys that lead to it, with `*` for an element.
    fn write<'yaml>(&mut self, value: &'yaml YamlValue, path: &mut Vec<&'yaml str>) {
        match &value.value {
            YamlContent::List(list) => {
                self.text.push('[');
                for element in list.iter() {
                    path.push("*");
                    if self.shows_freely && is_shown_text(element, path) {
                        self.text.push_str("shown");
                    } else {
                        self.write(element, path);
                    }
                    self.text.push(',');
                    path.pop();
                }
                self.text.push(']');
            }
            YamlContent::Map(map) => {
                self.text.push('{');
                for entry in map.iter() {
                    path.push(&entry.key);
                    if !matches!(path[..], ["description"] | ["nodes", _, "description"]) {
                        self.text.push_str(&Value::from(&*entry.key).to_string());
                        self.text.push(':');
                        self.write(&entry.value, path);
                        self.text.push(',');
                    }
                    path.pop();
                }
                self.text.push('}');
            }
            _ => self.text.push_str(&value.written_json()),
        }
    }
}

/// Returns whether an element of a list is an action that only shows a constant text.
fn is_shown_text(value: &YamlValue, path: &[&str]) -> bool {
    let is_action = match path {
        ["nodes", _, "actions", "*", rest @ ..] => {
            rest.chunks(2).all(|pair| pair == ["actions", "*"])
        }
        _ => false,
    };
    let kind = value.entry("type").and_then(|entry| entry.value.text());
    let is_constant = |entry: &YamlEntry| {
        SHOWN.contains(&&*entry.key)
            && entry.value.text().is_some_and(|text| !text.text.contains("${"))
    };
    is_action
        && kind.is_some_and(|kind| matches!(&*kind.text, "display" | "display_message"))
        && value.entries().iter().all(is_constant)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GRAPH: &str = "name: g\nversion: \"1\"\ndescription: Old.\nstart_node: hello\nnodes:\n  hello:\n    type: action\n    description: d\n    actions:\n      - { type: display, content: Hello. }\n      - { type: set_state, field: computed.x, value: [{ type: display, content: kept }] }\n    on_success: act\n    on_failure: done\n  act:\n    type: action\n    actions:\n      - { type: bash_exec, command: \"rm ${computed.x}\" }\n    on_success: done\n    on_failure: done\nendings:\n  done: { type: success, message: ok }\n";

    fn form(text: &str) -> Option<String> {
        trusted_form("sub/g.yaml", text)
    }

    #[test]
    fn only_texts_that_are_read_may_change_in_graph() {
        let before = form(GRAPH);
        assert!(before.is_some());
        let kept = [
            ("description: Old.", "description: New."),
            ("description: d\n", "description: other # why\n"),
            ("content: Hello.", "content: 'Good morning'"),
            ("name: g\n", "# a comment\nname:   g\n"),
        ];
        for (old, new) in kept {
            assert_eq!(form(&GRAPH.replacen(old, new, 1)), before, "{old} -> {new}");
        }
        let asked = [
            ("rm ${computed.x}", "rm -r ${computed.x}"),
            ("content: kept", "content: other"),
            ("content: Hello.", "content: 'Hello ${computed.x}'"),
            ("content: Hello.", "content: Hello., command: x"),
            ("      - { type: display, content: Hello. }\n", ""),
            ("on_success: act", "on_success: done"),
            ("message: ok", "message: done"),
            ("version: \"1\"", "version: 1"),
        ];
        for (old, new) in asked {
            let changed = GRAPH.replacen(old, new, 1);
            assert_ne!(changed, GRAPH, "{old}");
            assert_ne!(form(&changed), before, "{old} -> {new}");
        }
        assert_eq!(form(&GRAPH.replace("name: g", "name: [g")), None, "a mistake");
        assert_eq!(trusted_form("a.sh", "true"), None);
        let ask = "  ask:\n    type: user_prompt\n    prompt: { question: Delete it?, header: d, options: [{ id: y, label: Yes, description: it goes }] }\n    on_response: { y: { next_node: act } }\nendings:";
        let asking = GRAPH.replace("endings:", ask);
        assert!(form(&asking).is_some());
        for (old, new) in [("Delete it?", "Go on?"), ("it goes", "it stays"), ("Hello.", "Safe.")] {
            assert_ne!(form(&asking.replace(old, new)), form(&asking), "{old}");
        }
    }

    #[test]
    fn files_that_a_requesting_file_names_are_found() {
        let found =
            |path: &str, text: &str| named_files(path, text).into_iter().collect::<Vec<_>>();
        let graph = "imports: { state: data.md }\nnodes:\n  a: { state: WORK.md, doc: docs/d.md, x: \"sh ${y}run.txt.\" }\n# c.yml\n";
        assert_eq!(found("g.yaml", graph), ["d.md", "data.md", "run.txt"]);
        assert_eq!(found("g.yaml", "nodes: [a.md"), ["a.md"], "a graph that cannot be read");
        let prompt = "---\nsystem_prompt_file: sys.md\n---\nThen <goto>NEXT.md</goto>";
        assert_eq!(found("A.md", prompt), ["sys.md"]);
        assert_eq!(found("p.lisp", "(run :command \"sh 'a b.sh' c.txt\")"), ["b.sh", "c.txt"]);
        assert_eq!(found(".claude/settings.json", "{\"command\": \"./hook.py\"}"), ["hook.py"]);
        assert_eq!(word_of("docs/a b.sh").as_deref(), Some("b.sh"));
    }
}
