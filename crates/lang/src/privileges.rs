//! The privileges that a workflow's files ask for, found before anything of it runs.
//!
//! All prompts, graphs and programs count, because an agent may go to any of them. Of scripts only those count that a
//! way leads to: others may lie there for people.

mod graphs;
mod programs;
mod scripts;
mod unreadable;

use std::collections::{BTreeMap, BTreeSet};

use self::scripts::EnteredScripts;
use super::graph::profile::GraphProfile;
use super::graph::read::read;
use super::graph::vocabulary::GraphVocabulary;
use super::manifest;
use super::position::SourcePlace;
use super::program;
use super::prompt::widenings::{FoundWidening, in_graph, in_options, in_program};
use super::prompt::workflow_map::FolderPrompt;
use raymond_model::graph_types::operation_facts;
use raymond_model::id::{StateKind, StateName};
use raymond_model::privilege::Privilege;
use raymond_model::settings::PlugIn;
use raymond_model::widening::PermissionCeiling;

/// A privilege that a file asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrivilegeRequest {
    /// The file, by its path below the workflow's folder.
    pub file: String,
    /// Its place in the file.
    pub place: SourcePlace,
    /// The privilege.
    pub privilege: Privilege,
    /// The purpose: the command, the address, the rule.
    pub purpose: String,
}

/// The files to examine for privileges, and the context for it.
#[derive(Debug, Clone, Copy)]
pub struct PrivilegeSurvey<'a> {
    /// The files, by their paths below the workflow's folder.
    pub files: &'a BTreeMap<String, String>,
    /// The path of the manifest that the run takes its settings from.
    pub manifest: &'a str,
    /// The permissions that the starter of the run has granted already.
    pub ceiling: &'a PermissionCeiling,
    /// The types that graphs may use.
    pub vocabulary: &'a GraphVocabulary,
    /// The paths of the files that can be executed.
    pub executables: &'a BTreeSet<String>,
    /// The path of the state that the run begins with.
    pub entry: &'a str,
    /// The plug-ins that are started at the workflow's request.
    pub plugins: &'a [PlugIn],
}

impl PrivilegeSurvey<'_> {
    /// Returns the privileges that the files ask for, in the order of their paths.
    pub fn requests(&self) -> Vec<PrivilegeRequest> {
        let mut requests = Vec::new();
        let mut folders = BTreeMap::new();
        let mut scripts = EnteredScripts::default();
        for (path, text) in self.files {
            let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
            if is_claude_settings(folder, name) {
                requests.push(PrivilegeRequest {
                    file: path.clone(),
                    place: SourcePlace::START,
                    privilege: Privilege::ClaudeSettings,
                    purpose: "Claude Code reads this file when it works in this folder".to_owned(),
                });
            }
            let mut found = match StateName::parse(name) {
                Ok(_) if path == self.manifest => self.of_manifest(text, folder),
                Ok(name) if folder.is_empty() => self.of_state(&name, self.files, text),
                Ok(name) => {
                    let below = folders.entry(folder).or_insert_with(|| self.below(folder));
                    self.of_state(&name, below, text)
                }
                Err(_) => Vec::new(),
            };
            if scripts.is_entered(self, folder, name) {
                let purpose = "a state that is a script";
                found.push(request(Privilege::Commands, SourcePlace::START, purpose));
            }
            for request in &mut found {
                // A library is named by its path below the folder of the program.
                request.file = match request.file.as_str() {
                    "" => path.clone(),
                    library if folder.is_empty() => library.to_owned(),
                    library => format!("{folder}/{library}"),
                };
            }
            requests.extend(found);
        }
        requests
    }

    fn of_manifest(&self, text: &str, folder: &str) -> Vec<PrivilegeRequest> {
        let examined = manifest::examine(text);
        let mut requests = Vec::new();
        for plugin in self.plugins {
            let command = plugin.command.join(" ");
            let place = place_of(text, |line| {
                plugin
                    .command
                    .last()
                    .is_some_and(|word| line.contains(word.rsplit('/').next().unwrap_or(word)))
            });
            requests.push(request(Privilege::PlugIns, place, &command));
        }
        let Ok(file) = StateName::parse(manifest::FILE) else { return requests };
        let options = &examined.manifest.options;
        let below = (!folder.is_empty()).then(|| self.below(folder));
        let files = below.as_ref().unwrap_or(self.files);
        let widenings = in_options(&file, options, &examined.options, files, self.ceiling);
        requests.extend(widenings.into_iter().map(widened));
        requests
    }

    /// Returns the privileges that a state asks for; it refers to the files of its folder.
    fn of_state(
        &self,
        name: &StateName,
        source: &BTreeMap<String, String>,
        text: &str,
    ) -> Vec<PrivilegeRequest> {
        match StateKind::of(name) {
            Some(StateKind::Prompt) => {
                let prompt = FolderPrompt::of(text);
                let (options, places) = (&prompt.frontmatter.options, &prompt.places.options);
                let found = in_options(name, options, places, source, self.ceiling);
                found.into_iter().map(widened).collect()
            }
            Some(StateKind::Graph) => {
                let reading =
                    read(name.as_str(), None, text, self.vocabulary, source, GraphProfile::Lenient);
                match reading.graph {
                    Some(graph) => {
                        let mut requests = graphs::operations(&graph);
                        requests
                            .extend(in_graph(name, &graph, self.ceiling).into_iter().map(widened));
                        requests
                    }
                    None => of_unreadable_graph(text),
                }
            }
            Some(StateKind::Program) => {
                let reading = program::read::read(name.as_str(), text, source);
                let Some(program) = reading.program else { return Vec::new() };
                let mut requests = programs::commands(&program);
                requests.extend(in_program(name, &program, self.ceiling).into_iter().map(widened));
                requests
            }
            // A script is examined with the other files of its folder.
            Some(StateKind::Script) | None => Vec::new(),
        }
    }

    /// Returns the files of a folder, by their paths below it.
    fn below(&self, folder: &str) -> BTreeMap<String, String> {
        let prefix = if folder.is_empty() { String::new() } else { format!("{folder}/") };
        let inside = |(path, text): (&String, &String)| {
            Some((path.strip_prefix(&prefix)?.to_owned(), text.clone()))
        };
        self.files.iter().filter_map(inside).collect()
    }
}

fn request(privilege: Privilege, place: SourcePlace, purpose: &str) -> PrivilegeRequest {
    PrivilegeRequest { file: String::new(), place, privilege, purpose: purpose.trim().to_owned() }
}

fn widened(found: FoundWidening) -> PrivilegeRequest {
    PrivilegeRequest {
        file: String::new(),
        place: found.place,
        privilege: Privilege::Permissions,
        purpose: found.message,
    }
}

fn is_claude_settings(folder: &str, name: &str) -> bool {
    let is_inside = folder.split('/').any(|part| part == ".claude");
    is_inside || name == ".mcp.json"
}

/// Returns the place of the first line that fits.
fn place_of(text: &str, fits: impl Fn(&str) -> bool) -> SourcePlace {
    let line = text.lines().position(fits);
    line.map_or(SourcePlace::START, |at| SourcePlace { line: at as u64 + 1, column: 1 })
}

/// Returns the privileges of a graph that cannot be read yet, because a document it refers to may only later be in
/// the workspace.
fn of_unreadable_graph(text: &str) -> Vec<PrivilegeRequest> {
    let found = unreadable::operations(text);
    let request = |(at, kind, content): (SourcePlace, String, String)| {
        let privilege = operation_facts(&kind)?.privilege?;
        Some(request(privilege, at, &format!("{kind}: {content}")))
    };
    found.into_iter().filter_map(request).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use raymond_model::settings::Settings;

    fn found(files: &[(&str, &str)]) -> Vec<String> {
        let files = files.iter().map(|&(name, text)| (name.to_owned(), text.to_owned())).collect();
        let settings = Settings::default();
        let plugins = [PlugIn::new(vec!["python3".into(), "/w/budget.py".into()])];
        let survey = PrivilegeSurvey {
            files: &files,
            manifest: "raymond.yaml",
            ceiling: &PermissionCeiling::of(&settings),
            vocabulary: &GraphVocabulary::new(),
            executables: &BTreeSet::new(),
            entry: "START.md",
            plugins: &plugins,
        };
        let line = |request: PrivilegeRequest| {
            let PrivilegeRequest { file, place, privilege, purpose } = request;
            format!("{file}:{}:{} {privilege:?} {purpose}", place.line, place.column)
        };
        survey.requests().into_iter().map(line).collect()
    }

    const GRAPH: &str = "name: g\nversion: \"1\"\nstart_node: build\ninitial_state: { flags: {}, computed: {} }\nnodes:\n  build:\n    type: action\n    actions:\n      - type: foreach\n        items: [1]\n        actions:\n          - { type: bash_exec, command: \"make ${item}\" }\n      - { type: web_fetch, url: \"https://example.org/x\", store_as: page }\n    on_success: done\n    on_failure: done\nendings:\n  done: { type: success, message: ok }\n";

    #[test]
    fn plain_prompt_needs_no_privileges() {
        assert!(found(&[("START.md", "Say hello."), ("README.md", "bash_exec")]).is_empty());
    }

    #[test]
    fn each_kind_of_privilege_is_found_with_its_location() {
        let found = found(&[
            (".claude/settings.json", "{}"),
            ("START.md", "---\nallowed_tools: [\"Bash(rm:*)\"]\n---\nx"),
            ("raymond.yaml", "name: x\nplugins:\n  - python3 ./budget.py\n"),
            ("sub/g.yaml", GRAPH),
        ]);
        let expected = [
            ".claude/settings.json:1:1 ClaudeSettings Claude Code reads this file when it works in this folder",
            "START.md:2:17 Permissions `allowed_tools`: `Bash(rm:*)` would run unasked, which the run was not started with; allow it with --allow-tool 'Bash(rm:*)'",
            "raymond.yaml:3:1 PlugIns python3 /w/budget.py",
            "sub/g.yaml:12:21 Commands the node `build`: bash_exec: make ${item}",
            "sub/g.yaml:13:17 Network the node `build`: web_fetch: https://example.org/x",
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn command_named_in_parameter_does_not_hide_real_command() {
        let mask = "      - { type: set_state, field: computed.x, value: { type: bash_exec, command: \"echo hi\" } }\n      - type: foreach";
        let graph = GRAPH.replacen("      - type: foreach", mask, 1);
        let found = found(&[("g.yaml", &graph)]);
        assert_eq!(found[0], "g.yaml:13:21 Commands the node `build`: bash_exec: make ${item}");
    }

    #[test]
    fn invalid_graph_reports_privileges_by_action_type() {
        let broken = GRAPH.replace("on_failure: done", "on_failure: gone");
        let expected = [
            r#"g.yaml:12:21 Commands bash_exec: {"type": "bash_exec", "command": "make ${item}"}"#,
            r#"g.yaml:13:17 Network web_fetch: {"type": "web_fetch", "url": "https://example.org/x", "store_as": "page"}"#,
        ];
        assert_eq!(found(&[("g.yaml", &broken)]), expected);
        let escaped = broken.replace("type: bash_exec", "type: \"\\x62ash_exec\"");
        assert_eq!(found(&[("g.yaml", &escaped)]).len(), 2);
        let tagged = broken.replace("start_node: build", "start_node: build\nmore: !x { a: 1 }");
        assert_eq!(found(&[("g.yaml", &tagged)]).len(), 2);
        assert!(found(&[("ci.yaml", "steps:\n  - run: bash_exec\n")]).is_empty());
    }
}
