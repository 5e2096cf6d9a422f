//! The files of a workflow, as the languages see them.
//!
//! The trait keeps this module free of the file system: the store reads a directory, a test a map.
//!
//! The checksum that identifies the content of a workflow's file.
//!
//! Files that are states: by their names, and by their modes where a name leaves that open.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::{Component, Path};
use std::sync::Arc;

use raymond_model::id::{Folder, ScopePath, StateKind, StateName};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::prompt::document;
use super::yaml::tree::{YamlFileKind, parse};
use super::yaml::{YamlContent, YamlEntry, YamlValue};
use crate::diagnostic::did_you_mean;
use crate::position::SourcePlace;

/// The reasons that a file of the workflow cannot be used. Each text says what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// There is no such file.
    #[error("{path}: there is no such file in the workflow{}", .similar.as_ref().map(|name| format!("; {}", did_you_mean(path, name))).unwrap_or_default())]
    Missing {
        /// The path that was looked for.
        path: String,
        /// A file that has a similar name.
        similar: Option<String>,
    },
    /// There is no such document.
    #[error("there is no {path} in {}", .searched.join(", nor in "))]
    NoDocument {
        /// The path that was looked for.
        path: String,
        /// The directories that were searched, in order.
        searched: Vec<String>,
    },
    /// The file was added after the run began.
    #[error(
        "{path}: this file was not part of the workflow when the run began; add it with --migrate, or start a run that reads its prompts afresh: --reread-prompts"
    )]
    NotPinned { path: String },
    /// A link leads out of the workflow's directory.
    #[error(
        "{path}: this leads out of the workflow's scope, its directory; put a copy of the file beside the first prompt"
    )]
    Outside { path: String },
    /// A tag leads to a folder beyond the run's root.
    #[error(
        "{path}: this leads out of the run's root, which is the workflow's folder or the nearest folder above whose raymond.yaml says `root: true`; to enter a folder beside the root, write <call-workflow>, <function-workflow>, <fork-workflow> or <reset-workflow>; for any other, put such a raymond.yaml in the folder that holds both"
    )]
    BeyondRoot { path: String },
    /// There is no such folder.
    #[error("{path}: there is no such folder in the workflow")]
    NoFolder { path: String },
    /// It is a directory, a pipe or a device.
    #[error("{path}: this is not a regular file")]
    NotAFile { path: String },
    /// It is too long to be a prompt.
    #[error(
        "{path}: this is {size} bytes long, a prompt may have {limit}; let the prompt name a file to read instead"
    )]
    TooLong {
        path: String,
        /// Its size in bytes.
        size: u64,
        /// The most it may have.
        limit: u64,
    },
    /// Its bytes are not text.
    #[error("{path}:{line}:{column}: this is not UTF-8 text; save the file as UTF-8")]
    NotText {
        path: String,
        /// The line of the first wrong byte, counted from 1.
        line: usize,
        /// Its column in bytes, counted from 1.
        column: usize,
    },
    /// It could not be read.
    #[error("{path}: {error}")]
    Unreadable {
        path: String,
        /// The system's message.
        error: String,
    },
}

impl Error {
    /// Returns the reason, without the file's path and the place in it.
    pub fn reason(&self) -> String {
        let (Self::Missing { path, .. }
        | Self::NoDocument { path, .. }
        | Self::NotPinned { path }
        | Self::Outside { path }
        | Self::BeyondRoot { path }
        | Self::NoFolder { path }
        | Self::NotAFile { path }
        | Self::TooLong { path, .. }
        | Self::NotText { path, .. }
        | Self::Unreadable { path, .. }) = self;
        let whole = self.to_string();
        let rest = whole.strip_prefix(path.as_str()).unwrap_or(&whole);
        rest.split_once(": ").map_or(rest, |(_, reason)| reason).to_owned()
    }

    /// Returns the place in the file.
    pub fn place(&self) -> SourcePlace {
        match self {
            Self::NotText { line, column, .. } => {
                SourcePlace { line: *line as u64, column: *column as u64 }
            }
            _ => SourcePlace::START,
        }
    }
}

/// The files of a workflow's directory, its scope.
pub trait WorkflowSource: Send + Sync {
    /// Returns the text of a file.
    ///
    /// # Errors
    /// [`Error`] if it does not exist, leads out of the scope or is not text.
    fn read(&self, name: &StateName) -> Result<String, Error>;

    /// Returns whether the content of a file is the same as when the run began.
    fn is_as_pinned(&self, _name: &StateName) -> bool {
        true
    }

    /// Returns the names of the programs that are defined; `None` if they are not known here.
    fn defined_programs(&self) -> Option<&[String]> {
        None
    }

    /// Checks that a state can be entered.
    ///
    /// # Errors
    /// As [`read`](Self::read), as far as that can be told without reading.
    fn check(&self, name: &StateName) -> Result<(), Error>;

    /// Returns the files of a folder below.
    ///
    /// # Errors
    /// [`Error`] if there is none, or it leads out of the scope.
    fn within(&self, folder: &Folder) -> Result<Arc<dyn WorkflowSource>, Error>;

    /// Returns the files of the folder that a tag leads to, which is a separate scope within the run's root.
    ///
    /// # Errors
    /// [`Error`] if there is none, or it is beyond the root.
    fn scope(&self, path: &ScopePath) -> Result<Arc<dyn WorkflowSource>, Error> {
        match path.seen_from(None) {
            Ok(Some(folder)) => self.within(&folder),
            Ok(None) | Err(_) => Err(Error::BeyondRoot { path: path.to_string() }),
        }
    }

    /// Returns the files of the directory whose names a state could have, in order.
    ///
    /// # Errors
    /// [`Error::Unreadable`] if it cannot be listed.
    fn names(&self) -> Result<Vec<StateName>, Error>;

    /// Returns the path of the file as people see it in errors.
    fn path(&self, name: &StateName) -> String;

    /// Returns the text of a document that a workflow refers to, by its path below the scope or, if it does not
    /// exist there, below the plugin that the scope is part of, or else below the workspace.
    ///
    /// # Errors
    /// As [`read`](Self::read), [`Error::NoDocument`] with all places that were searched; a path that leads out by
    /// `..` or is absolute is [`Error::Outside`].
    fn document(&self, path: &str) -> Result<String, Error>;

    /// Returns whether a file can be executed.
    fn is_executable(&self, _name: &StateName) -> bool {
        false
    }

    /// Returns whether [`document`](Self::document) finds this path in the plugin, outside of the scope. No copy is
    /// made of such a document, so its content counts as part of the graph.
    fn is_in_plugin(&self, _path: &str) -> bool {
        false
    }

    /// Returns the text of a file by its path below the scope.
    ///
    /// # Errors
    /// As [`document`](Self::document), but only the scope is searched.
    fn read_path(&self, path: &str) -> Result<String, Error>;

    /// Checks that a file or a folder is there, by its path below the scope.
    ///
    /// # Errors
    /// As [`read_path`](Self::read_path).
    fn check_path(&self, path: &str, is_folder: bool) -> Result<(), Error>;
}

/// Returns whether a path stays below its start, judged by its text alone.
pub fn stays_below(path: &str) -> bool {
    let inside = |part| matches!(part, Component::Normal(_) | Component::CurDir);
    Path::new(path).components().all(inside)
}

/// A workflow held in memory, for tests and for embedding.
impl WorkflowSource for BTreeMap<String, String> {
    fn read(&self, name: &StateName) -> Result<String, Error> {
        self.check(name).map(|()| self[name.as_str()].clone())
    }

    fn check(&self, name: &StateName) -> Result<(), Error> {
        if self.contains_key(name.as_str()) {
            return Ok(());
        }
        let similar = super::diagnostic::closest(name.as_str(), self.keys().map(String::as_str));
        Err(Error::Missing { path: self.path(name), similar: similar.map(str::to_owned) })
    }

    /// Returns the files whose names begin with the folder's.
    fn within(&self, folder: &Folder) -> Result<Arc<dyn WorkflowSource>, Error> {
        let inside = |(name, text): (&String, &String)| {
            let name = name.strip_prefix(folder.as_str())?.strip_prefix('/')?;
            Some((name.to_owned(), text.clone()))
        };
        let files: Self = self.iter().filter_map(inside).collect();
        if files.is_empty() {
            return Err(Error::NoFolder { path: folder.to_string() });
        }
        Ok(Arc::new(files))
    }

    fn names(&self) -> Result<Vec<StateName>, Error> {
        Ok(self.keys().filter_map(|name| StateName::parse(name).ok()).collect())
    }

    fn path(&self, name: &StateName) -> String {
        name.to_string()
    }

    fn document(&self, path: &str) -> Result<String, Error> {
        self.read_path(path)
    }

    fn check_path(&self, path: &str, is_folder: bool) -> Result<(), Error> {
        let folder = format!("{}/", path.trim_end_matches('/'));
        if is_folder && stays_below(path) && self.keys().any(|name| name.starts_with(&folder)) {
            return Ok(());
        }
        self.read_path(path).map(drop)
    }

    fn read_path(&self, path: &str) -> Result<String, Error> {
        if !stays_below(path) {
            return Err(Error::Outside { path: path.to_owned() });
        }
        self.get(path).cloned().ok_or_else(|| {
            let similar = super::diagnostic::closest(path, self.keys().map(String::as_str));
            Error::Missing { path: path.to_owned(), similar: similar.map(str::to_owned) }
        })
    }
}

/// Returns the checksum of a content: `sha256:` and hexadecimal digits.
pub fn checksum(content: impl AsRef<[u8]>) -> String {
    format!("sha256:{}", hexadecimal(&Sha256::digest(content.as_ref())))
}

/// Returns the name of a file that is kept for a text: the first 32 digits of its checksum.
pub fn short_name(text: &str) -> String {
    hexadecimal(&Sha256::digest(text)[..16])
}

/// Returns bytes as hexadecimal digits.
pub fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut digits, byte| {
        // Writing to a text cannot fail.
        let _ = write!(digits, "{byte:02x}");
        digits
    })
}

/// Returns whether a file is a state.
pub fn is_state(name: &StateName, source: &dyn WorkflowSource) -> bool {
    match StateKind::of(name) {
        Some(StateKind::Script) => name.is_script_by_name() || source.is_executable(name),
        Some(StateKind::Prompt | StateKind::Graph | StateKind::Program) => true,
        None => false,
    }
}

// What trust in a workflow's folder compares of its files.

/// The keys of the actions that only show a text.
const SHOWN: [&str; 4] = ["type", "message", "content", "title"];

/// Returns the part of a graph that trust compares, for a graph that only raymond reads: all but comments, layout,
/// descriptions and, if the graph asks nobody, the constant texts that it displays. `None` if it is compared whole.
pub fn trusted_form(path: &str, text: &str) -> Option<String> {
    let name = StateName::parse(path.rsplit('/').next()?).ok()?;
    if StateKind::of(&name) != Some(StateKind::Graph) {
        return None;
    }
    let (Some(root), faults) = parse(YamlFileKind::GRAPH, text) else { return None };
    if !faults.is_empty() {
        return None;
    }
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
        Some(StateKind::Graph) => match parse(YamlFileKind::GRAPH, text) {
            (Some(root), faults) if faults.is_empty() => {
                let mut found = BTreeSet::new();
                for entry in entries(&root) {
                    collect(&entry.value, &*entry.key == "nodes", &mut found);
                }
                found
            }
            _ => words(text).collect(),
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
        list.iter().for_each(|one| collect(one, in_nodes, found));
    }
    for entry in entries(value) {
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

fn entries(value: &YamlValue) -> &[YamlEntry] {
    match &value.value {
        YamlContent::Map(entries) => entries,
        _ => &[],
    }
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
    let is_shown = |entry: &&YamlEntry| {
        &*entry.key == "type"
            && entry
                .value
                .text()
                .is_some_and(|kind| matches!(&*kind.text, "display" | "display_message"))
    };
    is_action
        && entries(value).iter().any(|entry| is_shown(&entry))
        && entries(value).iter().all(|entry| {
            SHOWN.contains(&&*entry.key)
                && entry.value.text().is_some_and(|text| !text.text.contains("${"))
        })
}

#[cfg(test)]
mod checksum_tests {
    use super::*;

    #[test]
    fn checksum_has_algorithm_prefix_and_all_digits() {
        let empty = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(checksum(""), empty);
        assert_eq!(format!("sha256:{}", short_name("")), empty[..39]);
    }
}

#[cfg(test)]
mod trusted_form_tests {
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
