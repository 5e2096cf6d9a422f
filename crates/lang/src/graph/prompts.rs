//! Reads questions to a person, and checks the paths of files in a graph.

use std::collections::BTreeMap;

use raymond_model::graph_types::{PACKS, ParameterKind};
use raymond_model::question::OTHER;

use super::checked_graph::{
    GraphNodeName, OptionsFromState, UserPrompt, UserPromptOption, UserPromptResponse,
};
use super::keys;
use super::keys::names;
use super::reader::{GivenParameters, GraphReader, MappingFields};
use super::vocabulary::parameter_kind;
use crate::diagnostic::quoted;
use crate::expression::ValueTemplate;
use crate::source::SourcePlace;
use crate::yaml::{YamlContent, YamlEntry, YamlValue};

// Questions to a person: the options, and the response to each.

/// The response to any option that is made of an element of a list.
pub(super) const SELECTED: &str = "selected";

/// The longest header, in characters.
const MAX_HEADER_CHARS: usize = 12;

impl GraphReader<'_> {
    /// Reads a question; `None` if something in it is wrong.
    pub(super) fn user_prompt(
        &mut self,
        fields: &MappingFields<'_>,
        name: &GraphNodeName,
    ) -> Option<UserPrompt> {
        self.variables.asks(name);
        let prompt = self.need(fields, "prompt").and_then(|entry| self.question(entry));
        let options = prompt.as_ref().map(|prompt| prompt.ids.as_slice()).unwrap_or_default();
        let answers = self.need(fields, "on_response");
        let responses =
            answers.and_then(|entry| self.responses(entry, options, name, prompt.is_some()));
        let PartialUserPrompt { asked, header, options, from_state, .. } = prompt?;
        let (question, header, options) = (asked?, header?, options?);
        Some(UserPrompt { question, header, options, from_state, responses: responses? })
    }

    fn question(&mut self, entry: &YamlEntry) -> Option<PartialUserPrompt> {
        let fields = self.fields(&entry.value, entry.at, "`prompt`", &names(keys::QUESTION))?;
        let asked = self.need(&fields, "question").and_then(|entry| self.words(entry));
        let header = match self.ought(&fields, "header") {
            Some(entry) => self.header(entry).map(Some),
            None => Some(None),
        };
        if let Some(entry) = fields.get("options_from_state") {
            if let Some(options) = fields.get("options") {
                let message = "`options` and `options_from_state` exclude each other; remove one";
                self.report.error(options.at, "WF102", message);
            }
            let from_state = self.state_options(entry, &fields).map(Box::new);
            let ids = vec![(SELECTED.to_owned(), entry.at)];
            let options = from_state.is_some().then(Vec::new);
            return Some(PartialUserPrompt { asked, header, options, from_state, ids });
        }
        let entry = self.need(&fields, "options")?;
        let list = self.list(entry)?;
        if !(2..=4).contains(&list.len()) {
            let message = format!("a question has 2 to 4 options, this one has {}", list.len());
            if list.is_empty() {
                self.report.error(entry.at, "WF207", message);
            } else {
                self.lenient(entry.at, "WF207", message);
            }
        }
        let mut ids: Vec<(String, SourcePlace)> = Vec::new();
        let options: Vec<_> = list.iter().map(|node| self.option(node, &mut ids)).collect();
        let options = options.into_iter().collect();
        Some(PartialUserPrompt { asked, header, options, from_state: None, ids })
    }

    fn header(&mut self, entry: &YamlEntry) -> Option<ValueTemplate> {
        let text = &self.word(entry)?.text;
        let length = text.chars().count();
        if length > MAX_HEADER_CHARS && !text.contains("${") {
            let message = format!(
                "a header has at most {MAX_HEADER_CHARS} characters, this one has {length}"
            );
            self.lenient(entry.value.at, "WF208", message);
        }
        self.words(entry)
    }

    fn option(
        &mut self,
        node: &YamlValue,
        ids: &mut Vec<(String, SourcePlace)>,
    ) -> Option<UserPromptOption> {
        let fields = self.fields(node, node.at, "an option", &names(keys::OPTION))?;
        let id = self.need(&fields, "id").and_then(|entry| Some((entry, self.word(entry)?)));
        let id = id.map(|(entry, text)| {
            let (id, at) = (text.text.to_string(), entry.value.at);
            if let Some((_, first)) = ids.iter().find(|(known, _)| *known == id) {
                let message = format!(
                    "the id {} is that of the option in line {} already; give it another",
                    quoted(&id),
                    first.line
                );
                self.report.error(at, "WF209", message);
            }
            ids.push((id.clone(), at));
            id
        });
        let label = self.need(&fields, "label").and_then(|entry| self.words(entry));
        let description = match self.ought(&fields, "description") {
            None => Some(None),
            Some(entry) => self.words(entry).map(Some),
        };
        Some(UserPromptOption { id: id?, label: label?, description: description? })
    }

    /// Reads the responses to the options. `known` is true if the question could be read at all.
    fn responses(
        &mut self,
        entry: &YamlEntry,
        options: &[(String, SourcePlace)],
        name: &GraphNodeName,
        known: bool,
    ) -> Option<BTreeMap<String, UserPromptResponse>> {
        let fields = self.map(&entry.value, entry.at, "`on_response`")?;
        for (id, at) in options {
            if fields.get(id).is_none() {
                let id = quoted(id);
                let message = format!(
                    "Missing response handler: `on_response` has no {id}; say where it leads"
                );
                self.report.error(*at, "WF205", message);
            }
        }
        let is_option = |key: &str| options.iter().any(|(id, _)| id == key);
        for entry in fields.entries.iter().filter(|entry| known && !is_option(&entry.key)) {
            self.orphan(entry, options);
        }
        let read: Vec<_> = fields
            .entries
            .iter()
            .map(|entry| Some((entry.key.to_string(), self.response(entry, name)?)))
            .collect();
        read.into_iter().collect()
    }

    fn orphan(&mut self, entry: &YamlEntry, options: &[(String, SourcePlace)]) {
        if &*entry.key == OTHER {
            let message =
                "`other` is not an option: it accepts any text that a person types".to_owned();
            return self.lenient(entry.at, "WF206", message);
        }
        let ids = options.iter().map(|(id, _)| id.as_str());
        let otherwise = || "; add the option or remove it".to_owned();
        let hint = self.report.hint(&entry.key, ids, otherwise);
        let message = format!("orphan handler: no option has the id {}{hint}", quoted(&entry.key));
        self.report.error(entry.at, "WF206", message);
    }

    fn response(&mut self, entry: &YamlEntry, name: &GraphNodeName) -> Option<UserPromptResponse> {
        let what = format!("the response {}", quoted(&entry.key));
        let fields = self.fields(&entry.value, entry.at, &what, &names(keys::RESPONSE))?;
        let mut consequence = Some(Vec::new());
        for key in ["consequence", "consequences"] {
            let Some(entry) = fields.get(key) else { continue };
            let read = self.list(entry).and_then(|list| self.actions(list));
            consequence = consequence.zip(read).map(|(before, read)| [before, read].concat());
        }
        let next = self.required_target(&fields, name, "next_node");
        let on_failure = self.optional_target(&fields, name, "on_failure");
        Some(UserPromptResponse { consequence: consequence?, next: next?, on_failure: on_failure? })
    }
}

/// The parts of a question; a part is `None` if it is wrong.
struct PartialUserPrompt {
    asked: Option<ValueTemplate>,
    #[expect(clippy::option_option, reason = "no header and a wrong one are different")]
    header: Option<Option<ValueTemplate>>,
    options: Option<Vec<UserPromptOption>>,
    from_state: Option<Box<OptionsFromState>>,
    ids: Vec<(String, SourcePlace)>,
}

// Checks the paths of files in a graph, as far as they are written out.
//
// The workspace is known only when the graph runs. A path that leads up from it is an error in any workspace. An
// absolute path is fine in a workspace that contains it, so `check` warns of it in any current directory.

/// The directory of log files, if none is given.
pub(super) const LOGS: &str = "data/logs";

impl GraphReader<'_> {
    /// Checks that no path of a file that is written out leads out of the workspace.
    pub(super) fn check_paths(&mut self, given: &GivenParameters<'_>) -> Option<()> {
        let mut sound = true;
        let kind = given.kind;
        for name in PACKS.iter().flat_map(|pack| pack.paths) {
            if parameter_kind(kind, name) == Some(ParameterKind::Path) {
                continue;
            }
            let Some((at, path)) = given.node(name).and_then(written) else { continue };
            sound &= self.check_path(given, name, at, path, path);
        }
        if let Some(YamlContent::List(paths)) = given.node("paths").map(|paths| &paths.value) {
            for (at, path) in paths.iter().filter_map(written) {
                sound &= self.check_path(given, "paths", at, path, path);
            }
        }
        if kind == "write_log"
            && let Some((at, name)) = given.node("filename").and_then(written)
        {
            let location = given.node("location").and_then(written).map_or(LOGS, |(_, path)| path);
            // A location that leads out itself has been reported.
            if !leads_up(known(location)) && !location.contains("${") {
                let whole = format!("{}/{name}", location.trim_end_matches('/'));
                sound &= self.check_path(given, "filename", at, name, &whole);
            }
        }
        sound.then_some(())
    }

    /// Checks a path, which the graph writes as `shown`. Returns false if it leads out of every workspace.
    fn check_path(
        &mut self,
        given: &GivenParameters<'_>,
        name: &str,
        at: SourcePlace,
        shown: &str,
        path: &str,
    ) -> bool {
        let (kind, known, shown) = (given.kind, known(path), quoted(shown));
        if leads_up(known) {
            let message = format!("`{name}` of `{kind}` leads out of the workspace: {shown}");
            self.report.error(at, "WF304", message);
            return false;
        }
        if known.starts_with('/') && name != "filename" {
            let message = format!(
                "`{name}` of `{kind}` is absolute, and is refused unless the workspace has it: {shown}; name it below the workspace"
            );
            self.report.warning(at, "WF304", message);
        }
        true
    }
}

/// Returns a text with its place.
fn written(node: &YamlValue) -> Option<(SourcePlace, &str)> {
    node.text().map(|text| (node.at, &*text.text))
}

/// Returns the beginning of a path that is known. `${…}` is one name at least; what it leads to is checked when it is
/// known.
fn known(path: &str) -> &str {
    path.split("${").next().unwrap_or_default()
}

/// Returns whether a path leads above the directory it begins in.
fn leads_up(path: &str) -> bool {
    let mut depth = 0_usize;
    for part in path.split('/') {
        match part {
            "" if depth == 0 && path.starts_with('/') => return false,
            "" | "." => {}
            ".." if depth == 0 => return true,
            ".." => depth -= 1,
            _ => depth += 1,
        }
    }
    false
}
