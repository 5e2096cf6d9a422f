//! The privileges that a workflow's files ask for, found before anything of it runs.
//!
//! All prompts, graphs and programs count, because an agent may go to any of them. Of scripts only those count that a
//! way leads to: others may lie there for people.

use std::collections::{BTreeMap, BTreeSet};

use raymond_model::graph_types::operation_facts;
use raymond_model::id::{StateKind, StateName};
use raymond_model::privilege::Privilege;
use raymond_model::settings::PlugIn;
use raymond_model::widening::PermissionCeiling;

use super::graph::profile::GraphProfile;
use super::graph::read::read;
use super::graph::vocabulary::GraphVocabulary;
use super::prompt::widenings::{FoundWidening, in_graph, in_options, in_program};
use super::prompt::workflow_map::FolderPrompt;
use super::source::SourcePlace;
use super::{manifest, program};
use crate::graph::checked_graph::{
    ActionKind, ConditionTest, Graph, GraphCondition, GraphNode, OperationTemplate,
};
use crate::program::checked_program::{
    InstructionKind, Program, ProgramCommand, RunRepetition, instructions,
};
use crate::prompt::frontmatter;
use crate::prompt::scopes::STARTS;
use crate::yaml::tree::{YamlFileKind, parse};
use crate::yaml::{YamlContent, YamlValue};

/// A privilege that a file asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrivilegeRequest {
    /// The file, by its path below the workflow's folder.
    pub file: String,
    /// Its place in the file.
    pub place: SourcePlace,
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
                        let mut requests = graph_operations(&graph);
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
                let mut requests = commands(&program);
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
    let found = unreadable_operations(text);
    let request = |(at, kind, content): (SourcePlace, String, String)| {
        let privilege = operation_facts(&kind)?.privilege?;
        Some(request(privilege, at, &format!("{kind}: {content}")))
    };
    found.into_iter().filter_map(request).collect()
}

/// Returns the privileges that the operations of a graph ask for, in its nodes and before it begins.
fn graph_operations(graph: &Graph) -> Vec<PrivilegeRequest> {
    let mut requests = Vec::new();
    let mut add = |node: Option<&str>, work: &OperationTemplate| {
        let privilege = Privilege::of_operation_type(&work.kind)
            .or_else(|| Privilege::of_written_path(&work.kind, &work.path));
        let Some(privilege) = privilege else { return };
        if work.custom_class.is_some() {
            return;
        }
        let node = node.map_or("before it begins".to_owned(), |node| format!("the node `{node}`"));
        let subject = if work.subject.is_empty() { &work.path } else { &work.subject };
        let subject = if subject.is_empty() { "" } else { &format!(": {subject}") };
        let purpose = format!("{node}: {}{subject}", work.kind);
        requests.push(request(privilege, work.at, &purpose));
    };
    graph.entry.iter().for_each(|condition| conditions(condition, &mut |work| add(None, work)));
    for (name, node) in &graph.nodes {
        let mut add = |work: &OperationTemplate| add(Some(name), work);
        for act in node.acts() {
            if let ActionKind::World { work, .. } = act {
                add(work);
            }
        }
        match node {
            GraphNode::Conditional { condition, .. } => conditions(condition, &mut add),
            GraphNode::ValidationGate { validations, .. } => {
                for condition in validations {
                    conditions(condition, &mut add);
                }
            }
            _ => {}
        }
    }
    requests
}

fn conditions(condition: &GraphCondition, add: &mut dyn FnMut(&OperationTemplate)) {
    match &condition.test {
        ConditionTest::All(all) | ConditionTest::Any(all) | ConditionTest::None(all) => {
            for condition in all {
                conditions(condition, add);
            }
        }
        ConditionTest::World(work) => add(work),
        _ => {}
    }
}

/// Returns the privileges that the commands of a program ask for, each once. A command of a library has its file.
fn commands(program: &Program) -> Vec<PrivilegeRequest> {
    let mut requests: Vec<PrivilegeRequest> = Vec::new();
    for state in &program.states {
        for instruction in instructions(&state.body) {
            let InstructionKind::Run(run) = &instruction.kind else { continue };
            let (library, place) = program.files.resolve(instruction.at);
            let purpose = format!("the state `{}`: run: {}", state.name, commands_of(run));
            let found = PrivilegeRequest {
                file: library.unwrap_or_default().to_owned(),
                ..request(Privilege::Commands, place, &purpose)
            };
            if !requests.contains(&found) {
                requests.push(found);
            }
        }
    }
    requests
}

fn commands_of(run: &ProgramCommand) -> String {
    match &run.repetition {
        RunRepetition::Unless(test) => format!("{}, unless: {test}", run.command),
        RunRepetition::Unknown | RunRepetition::Once | RunRepetition::Idempotent => {
            run.command.clone()
        }
    }
}

// The scripts of a workflow that its states lead to. Others may lie there for people, and need no trust.

/// The scripts that are entered, by their folders.
#[derive(Debug, Default)]
struct EnteredScripts<'files> {
    by_folder: BTreeMap<&'files str, BTreeSet<StateName>>,
    /// The names that lead to other folders.
    crossed: Option<BTreeSet<StateName>>,
}

impl<'files> EnteredScripts<'files> {
    /// Returns whether a file is a script that is entered.
    fn is_entered(
        &mut self,
        survey: &PrivilegeSurvey<'_>,
        folder: &'files str,
        name: &str,
    ) -> bool {
        let Some(name) = StateName::parse(name).ok().filter(StateName::is_script) else {
            return false;
        };
        let Self { by_folder, crossed } = self;
        let entered = by_folder.entry(folder).or_insert_with(|| {
            let targets = crossed.get_or_insert_with(|| crossed_folders(survey.files));
            let (at, entry) = survey.entry.rsplit_once('/').unwrap_or(("", survey.entry));
            let entry = StateName::parse(entry).ok().filter(|_| at == folder);
            let is_executable = |name: &StateName| {
                let path =
                    if folder.is_empty() { name.to_string() } else { format!("{folder}/{name}") };
                survey.executables.contains(&path)
            };
            entered(&survey.below(folder), entry.iter().chain(&*targets), &is_executable)
        });
        entered.contains(&name)
    }
}

/// Returns the scripts of a folder that a way in it leads to, its manifest, or one of `others`. `files` are those of
/// the folder, by their names.
fn entered<'name>(
    files: &BTreeMap<String, String>,
    others: impl Iterator<Item = &'name StateName>,
    is_executable: &dyn Fn(&StateName) -> bool,
) -> BTreeSet<StateName> {
    let is_script =
        |name: &StateName| name.is_script_by_name() || (name.is_script() && is_executable(name));
    let names: Vec<StateName> =
        files.keys().filter_map(|name| StateName::parse(name).ok()).collect();
    if !names.iter().any(is_script) {
        return BTreeSet::new();
    }
    let mut entered: Vec<StateName> = others.cloned().collect();
    let first = files.get(manifest::FILE).map(|text| manifest::examine(text).manifest.entry);
    entered.extend(first.flatten().and_then(|name| StateName::parse(&name).ok()));
    for name in &names {
        let Some(text) = files.get(name.as_str()) else { continue };
        match StateKind::of(name) {
            Some(StateKind::Prompt | StateKind::Script) => {
                let edges = FolderPrompt::of(text).edges;
                entered.extend(edges.iter().flat_map(|edge| edge.transition.states()).cloned());
            }
            // The names of the states that they begin are values or texts in them.
            Some(StateKind::Graph | StateKind::Program) => entered.extend(
                names.iter().filter(|script| is_script(script) && mentions(text, script)).cloned(),
            ),
            None => {}
        }
    }
    for name in &mut entered {
        frontmatter::resolve(name, files);
    }
    entered.into_iter().filter(|name| is_script(name) && names.contains(name)).collect()
}

/// Returns whether a text has the name of a file with its ending.
fn mentions(text: &str, name: &StateName) -> bool {
    name.has_ending() && text.contains(name.as_str())
}

/// Returns the names of states in other folders that a tag, a policy, a graph or a program leads to. Where they lie is
/// not looked at, so that a script of that name counts in each folder.
fn crossed_folders(files: &BTreeMap<String, String>) -> BTreeSet<StateName> {
    let named = |path: &String| StateName::parse(path.rsplit('/').next().unwrap_or(path)).ok();
    let scripts: BTreeSet<StateName> =
        files.keys().filter_map(named).filter(StateName::is_script).collect();
    let mut crossed = BTreeSet::new();
    for (path, text) in files {
        match named(path).and_then(|name| StateKind::of(&name)) {
            Some(StateKind::Prompt | StateKind::Script) => {
                let edges = FolderPrompt::of(text).edges;
                let targets = edges.iter().flat_map(|edge| edge.transition.states());
                crossed.extend(targets.filter_map(|name| Some(name.in_other_folder()?.1)));
                if crossed.iter().any(|state| state.is_entry() || !state.has_ending()) {
                    crossed.extend(STARTS.iter().filter_map(|name| StateName::parse(name).ok()));
                }
            }
            Some(StateKind::Graph | StateKind::Program) => {
                crossed.extend(scripts.iter().filter(|script| mentions(text, script)).cloned());
            }
            None => {}
        }
    }
    crossed
}

// The operations of a graph that cannot be read as a whole, by their types and places.

/// The parts of a graph that contain operations.
const PARTS: [&str; 2] = ["entry_preconditions", "nodes"];

/// Returns the operations that stand anywhere in the nodes of a graph, or before them: places, types and contents. A
/// text that is not YAML has none. It will never be a graph, because its content is pinned.
fn unreadable_operations(text: &str) -> Vec<(SourcePlace, String, String)> {
    let mut found = Vec::new();
    let (Some(graph), _) = parse(YamlFileKind::GRAPH, text) else { return found };
    for entry in graph.entries().iter().filter(|entry| PARTS.contains(&&*entry.key)) {
        collect(&entry.value, &mut found);
    }
    found
}

fn collect(node: &YamlValue, found: &mut Vec<(SourcePlace, String, String)>) {
    if let YamlContent::List(nodes) = &node.value {
        nodes.iter().for_each(|node| collect(node, found));
    }
    for entry in node.entries() {
        if let (true, Some(kind)) = (&*entry.key == "type", entry.value.text()) {
            found.push((entry.value.at, kind.text.to_string(), node.written_json()));
        }
        collect(&entry.value, found);
    }
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

#[cfg(test)]
mod programs_tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::program::read::read;

    #[test]
    fn each_command_is_request_at_its_place_in_its_file() {
        let library = "(defn check ()\n  (run :command \"sh check.sh\" :unless \"test -e done\"))";
        let text = "(require lib.lisp)\n(workflow w (state s (for-each x in (1 2)\n (run :command \"make\"))) (state t (action (check))))";
        let files = BTreeMap::from([("lib.lisp".to_owned(), library.to_owned())]);
        let reading = read("p.lisp", text, &files);
        let program = reading.program.unwrap_or_else(|| panic!("{:?}", reading.diagnostics));
        let line = |request: PrivilegeRequest| {
            let PrivilegeRequest { file, place, purpose, .. } = request;
            format!("{file}:{}:{} {purpose}", place.line, place.column)
        };
        let found: Vec<String> = commands(&program).into_iter().map(line).collect();
        assert_eq!(
            found,
            [
                ":3:2 the state `s`: run: make",
                "lib.lisp:2:3 the state `t`: run: sh check.sh, unless: test -e done",
            ]
        );
    }
}

#[cfg(test)]
mod scripts_tests {
    use super::*;

    #[test]
    fn only_scripts_that_are_entered_are_found() {
        let files = [
            (
                "START.md",
                "<goto>BUILD</goto> or <goto>CHECK.tool</goto> or <goto>NOTES.tool</goto> or run helper.sh",
            ),
            ("BUILD.sh", "echo '<goto>TEST.py</goto>'"),
            ("TEST.py", "print('<result>x</result>')"),
            ("helper.sh", "true"),
            ("LICENSE", "text"),
            ("graph.yaml", "state: SPAWNED.sh"),
            ("SPAWNED.sh", "true"),
            ("LINT.sh", "true"),
            ("CHECK.tool", "echo"),
            ("NOTES.tool", "echo"),
        ];
        let files: BTreeMap<String, String> =
            files.map(|(name, text)| (name.to_owned(), text.to_owned())).into();
        let names = |entry: Option<&str>| {
            let entry = entry.map(|name| StateName::parse(name).expect("a name"));
            let found = entered(&files, entry.iter(), &|name| name.as_str() == "CHECK.tool");
            found.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(names(None), ["BUILD.sh", "CHECK.tool", "SPAWNED.sh", "TEST.py"]);
        assert_eq!(
            names(Some("LINT")),
            ["BUILD.sh", "CHECK.tool", "LINT.sh", "SPAWNED.sh", "TEST.py"]
        );
        assert_eq!(
            names(Some("helper.sh")),
            ["BUILD.sh", "CHECK.tool", "SPAWNED.sh", "TEST.py", "helper.sh"]
        );
    }
}
