//! The types of conditions and actions that graphs may use: one table of their parameters, sentences and operations.
//!
//! The core has a table, and so has each pack: the vocabulary of a project, whose words nothing else knows. A row of a
//! table says everything about a type. Messages, schemas, checks and the meaning of a crash follow from it.

use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::privilege::{Privilege, obeyed_name, refused_name};

/// The way in which an operation recovers from a crash in the middle of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RecoveryClass {
    /// The operation changes nothing, and is repeated.
    Read,
    /// The operation is idempotent, and is repeated.
    Converges,
    /// The operation finds out by itself whether it was done. Appending to a file may find that another writer
    /// was there too, and then it is not known.
    Guarded,
    /// It is not known whether the operation was done. The restart policy decides.
    Uncertain,
}

impl Privilege {
    /// Returns the privilege that an operation takes, by its type. An unknown type counts as a type that runs commands.
    pub fn of_operation_type(name: &str) -> Option<Self> {
        operation_facts(name).map_or(Some(Self::Commands), |facts| facts.privilege)
    }

    /// Returns the privilege that an operation of this type takes if it is about this path, as it is written.
    pub fn of_written_path(name: &str, path: &str) -> Option<Self> {
        let path = Path::new(path);
        // What is refused with trust, too, need not be trusted.
        let needs = obeyed_name(path).is_some() && refused_name(path).is_none();
        let changed = operation_facts(name)?.changes?;
        (needs && changed.harmless.is_none()).then_some(Self::ToolFiles)
    }
}

/// The role of a type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TypeRole {
    /// A type that holds or not, and changes nothing.
    Precondition,
    /// A type that does something.
    Consequence,
}

/// The kind of value that a parameter takes. A text may have `${…}` in it; for any other value, a text
/// that is one `${…}` may stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParameterKind {
    /// Any text.
    Text,
    /// A text that is not empty: a path, an address, an id, a name.
    Filled,
    /// True or false.
    Boolean,
    /// The path of a value, not empty.
    Path,
    Number,
    List,
    /// A mapping.
    Map,
    /// Any value.
    Any,
    Expression,
    /// Preconditions.
    Conditions,
    /// Consequences.
    Actions,
    /// A word that is written out.
    Word,
}

/// A parameter of a type, built-in or added.
#[derive(Debug, Clone, Copy)]
pub struct TypeParameter<'a> {
    pub name: &'a str,
    /// The kind of its values.
    pub takes: ParameterKind,
    /// True if it has to be given.
    pub required: bool,
}

/// A type, or an operation that only other types use.
#[derive(Debug)]
pub struct GraphType {
    /// Its role; `None` if no graph names it.
    pub role: Option<TypeRole>,
    /// The group that it is listed in.
    pub group: &'static str,
    pub name: &'static str,
    /// The sentence about it.
    pub doc: &'static str,
    pub parameters: &'static [TypeParameter<'static>],
    /// The facts about the operation of this name; `None` if there is no such operation.
    pub operation: Option<OperationFacts>,
}

/// The facts about an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OperationFacts {
    /// What a crash in the middle of it means, unless its parameters say so.
    pub class: RecoveryClass,
    /// The privilege that it takes, regardless of its path.
    pub privilege: Option<Privilege>,
    /// The path that it changes, if the graph names it.
    pub changes: Option<ChangedPath>,
}

/// A path that an operation changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChangedPath {
    /// The parameter that names it.
    pub parameter: &'static str,
    /// The purpose of the access.
    pub access: FileAccess,
    /// The end of the paths that need no trust, though programs obey files of that name.
    pub harmless: Option<&'static str>,
}

/// The purpose of an access to a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileAccess {
    /// To look at what is there.
    Read,
    /// To write there: a broken link is refused.
    Write,
    /// To remove the entry of this name, even a link.
    Remove,
}

const READ: OperationFacts = OperationFacts::of(RecoveryClass::Read);
const CONVERGES: OperationFacts = OperationFacts::of(RecoveryClass::Converges);
const GUARDED: OperationFacts = OperationFacts::of(RecoveryClass::Guarded);
const UNCERTAIN: OperationFacts = OperationFacts::of(RecoveryClass::Uncertain);

impl OperationFacts {
    const fn of(class: RecoveryClass) -> Self {
        Self { class, privilege: None, changes: None }
    }

    const fn needs(self, privilege: Privilege) -> Self {
        Self { privilege: Some(privilege), ..self }
    }

    const fn changes(self, parameter: &'static str, access: FileAccess) -> Self {
        Self { changes: Some(ChangedPath { parameter, access, harmless: None }), ..self }
    }

    const fn writes(self, parameter: &'static str) -> Self {
        self.changes(parameter, FileAccess::Write)
    }

    const fn removes(self, parameter: &'static str) -> Self {
        self.changes(parameter, FileAccess::Remove)
    }

    /// Changes what is in a directory.
    const fn works_in(self, parameter: &'static str) -> Self {
        self.changes(parameter, FileAccess::Read)
    }
}

const fn need(name: &'static str, takes: ParameterKind) -> TypeParameter<'static> {
    TypeParameter { name, takes, required: true }
}

const fn may(name: &'static str, takes: ParameterKind) -> TypeParameter<'static> {
    TypeParameter { name, takes, required: false }
}

const PRECONDITION: Option<TypeRole> = Some(TypeRole::Precondition);
const CONSEQUENCE: Option<TypeRole> = Some(TypeRole::Consequence);

/// The role of operations that only other types use.
const INNER: Option<TypeRole> = None;

/// Defines types by their roles and groups: `name(need PARAMETER: KIND, may PARAMETER: KIND) "sentence" = operation;`.
macro_rules! graph_types {
    (@facts) => { None };
    (@facts $facts:expr) => { Some($facts) };
    ($($role:ident $group:literal {
        $($name:ident($($mode:ident $parameter:ident: $kind:ident),*) $doc:literal $(= $facts:expr)?;)*
    })*) => {
        &[$($(GraphType {
            role: $role,
            group: $group,
            name: stringify!($name),
            doc: $doc,
            parameters: &[$($mode(stringify!($parameter), ParameterKind::$kind)),*],
            operation: graph_types!(@facts $($facts)?),
        },)*)*]
    };
}

/// Defines the sentences about parameters, by their names.
macro_rules! parameter_docs {
    ($($name:ident $doc:literal;)*) => { &[$((stringify!($name), $doc)),*] };
}

/// The types of the core, or those of a pack.
#[derive(Debug)]
pub struct TypePack {
    pub types: &'static [GraphType],
    /// The sentences about parameters that no earlier pack has.
    pub parameters: &'static [(&'static str, &'static str)],
    /// The parameters of operations that may not be empty.
    pub filled: &'static [&'static str],
    /// The parameters that are paths of files or directories, unless they are paths of values.
    pub paths: &'static [&'static str],
    /// The beginning of the directories of skills whose graphs are named without it.
    pub skill_prefix: Option<&'static str>,
}

/// The core and the packs.
pub static PACKS: [&TypePack; 2] = [&PACK, &corpus::PACK];

/// Returns all types, those of the core first, and the operations that only they use.
pub fn all_types() -> impl Iterator<Item = &'static GraphType> + Clone {
    PACKS.iter().flat_map(|pack| pack.types)
}

/// Returns a type, or an operation that only other types use.
pub fn graph_type(name: &str) -> Option<&'static GraphType> {
    all_types().find(|known| known.name == name)
}

/// Returns the facts about an operation, by its name.
pub fn operation_facts(name: &str) -> Option<&'static OperationFacts> {
    graph_type(name)?.operation.as_ref()
}

/// Returns the operation of this name that a pack, not the core, has.
pub(crate) fn operation_of_pack(name: &str) -> Option<&'static GraphType> {
    let mut types = PACKS[1..].iter().flat_map(|pack| pack.types);
    types.find(|known| known.name == name && known.operation.is_some())
}

/// Returns the sentence about a parameter.
pub fn parameter_doc(name: &str) -> Option<&'static str> {
    let mut known = PACKS.iter().flat_map(|pack| pack.parameters);
    known.find(|(known, _)| *known == name).map(|(_, doc)| *doc)
}

// The types of the core.
//
// Later graphs have other names for some types: `mutate_state` is `set_state`, `append_state`, `clear_state` and
// `merge_state` by its `operation`; `run_command` is `bash_exec`; `state_check` is `state_equals`, `state_not_null` and
// `state_is_null`; `path_check` is `file_exists` and `directory_exists`; `tool_check` is `tool_available`. `run_folder`
// and `run_state` are this program's own: a further agent that begins with a prompt or a graph.

static PACK: TypePack = TypePack {
    types: TYPES,
    parameters: PARAMETERS,
    filled: &["path", "url", "id", "dest", "repo_path", "pattern", "command"],
    paths: &["path", "dest", "repo_path", "pattern", "location"],
    skill_prefix: None,
};

const TYPES: &[GraphType] = graph_types! {
    PRECONDITION "state" {
        flag_set(need flag: Path) "Holds if the flag is true.";
        flag_not_set(need flag: Path) "Holds if the flag is not true.";
        state_equals(need field: Path, need value: Any) "Holds if the field has this value.";
        state_is_null(need field: Path) "Holds if the field has no value.";
        state_not_null(need field: Path) "Holds if the field has a value.";
        state_check(need field: Path, need operator: Word, may value: Any)
            "Holds if the field is as the operator says.";
        count_equals(need field: Path, need count: Number) "Holds if the field has exactly so many elements.";
        count_above(need field: Path, need min: Number) "Holds if the field has more elements.";
        count_below(need field: Path, need max: Number) "Holds if the field has fewer elements.";
        fetch_succeeded(need from: Path) "Holds if the page was fetched.";
        fetch_returned_content(need from: Path) "Holds if the page was fetched and is not empty.";
    }
    PRECONDITION "logic" {
        all_of(need conditions: Conditions) "Holds if all of the preconditions hold.";
        any_of(need conditions: Conditions) "Holds if one of the preconditions holds.";
        none_of(need conditions: Conditions) "Holds if none of the preconditions holds.";
        evaluate_expression(need expression: Expression) "Holds if the expression is true.";
    }
    PRECONDITION "files and programs" {
        file_exists(need path: Filled) "Holds if there is such a file." = READ;
        directory_exists(need path: Filled) "Holds if there is such a directory." = READ;
        path_check(need path: Filled, may check: Word) "Holds if there is such a file or directory.";
        tool_available(need tool: Filled) "Holds if there is such a program on the search path." = READ;
        tool_check(need tool: Filled, may capability: Word)
            "Holds if there is such a program on the search path.";
        python_module_available(need module: Filled)
            "Holds if Python has such a module." = READ.needs(Privilege::Commands);
    }
    CONSEQUENCE "state" {
        set_flag(need flag: Path, need value: Boolean) "Sets a flag.";
        set_state(need field: Path, need value: Any) "Sets a field.";
        append_state(need field: Path, need value: Any) "Appends a value to a list.";
        clear_state(need field: Path) "Sets a field to null.";
        merge_state(need field: Path, need value: Map) "Sets the fields of a mapping.";
        mutate_state(need operation: Word, need field: Path, may value: Any)
            "Sets, appends to, clears or merges a field.";
        evaluate(need expression: Expression, may set_flag: Path, may store_as: Path)
            "Sets a flag to the truth of an expression.";
        compute(need expression: Expression, need store_as: Path) "Stores the value of an expression.";
        compute_hash(may from: Path, may content: Any, need store_as: Path) "Stores the checksum of a value.";
        set_timestamp(need store_as: Path, may format: Filled) "Stores the time.";
        evaluate_keywords(need input: Text, need keyword_sets: Map, need store_as: Path)
            "Stores the name of the first set that has a keyword in a text.";
        dynamic_route(need action: Filled) "Stores the name of a node in `computed.dynamic_target`.";
        create_checkpoint(need name: Filled) "Remembers the state under a name.";
        rollback_checkpoint(need name: Filled) "Restores the state that was remembered under a name.";
    }
    CONSEQUENCE "loops and output" {
        foreach(need items: List, may as: Word, need actions: Actions)
            "Has consequences for each item of a list.";
        display_message(need message: Text) "Shows a text.";
        display_table(may title: Text, need headers: List, need rows: List) "Shows a table.";
        display(need content: Any, may format: Word, may title: Text, may headers: List)
            "Shows a text, a table or JSON.";
    }
    CONSEQUENCE "log" {
        init_log(
            may workflow_name: Text, may workflow_version: Text, may skill_name: Text,
            may plugin_name: Text, may execution_path: Text, may metadata: Map, may store_as: Path
        ) "Begins a log in the state.";
        log_node(need node: Filled, need outcome: Filled, may details: Any) "Logs the outcome of a node.";
        log_event(need event_type: Filled, may data: Any, may level: Filled) "Logs an event.";
        log_entry(need message: Text, may level: Filled, may context: Any) "Logs a message of some level.";
        log_warning(need message: Text, may context: Any, may node: Filled) "Logs a warning.";
        log_error(
            need message: Text, may details: Any, may error_type: Filled, may context: Any,
            may node: Filled, may recoverable: Boolean
        ) "Logs an error.";
        finalize_log(need outcome: Filled, may ending_node: Filled, may summary: Any) "Ends the log.";
        write_log(may format: Filled, may location: Filled, may filename: Filled, may path: Filled)
            "Writes the log to a file.";
    }
    CONSEQUENCE "files" {
        read_file(need path: Filled, need store_as: Path) "Stores the text of a file." = READ;
        write_file(need path: Filled, need content: Text) "Writes a file." = CONVERGES.writes("path");
        append_to_file(need path: Filled, need content: Text)
            "Appends a text to a file." = GUARDED.writes("path");
        create_directory(need path: Filled) "Creates a directory." = CONVERGES.works_in("path");
        delete_file(need path: Filled) "Deletes a file." = CONVERGES.removes("path");
        glob_files(need pattern: Filled, need store_as: Path)
            "Stores the paths of the files that match a pattern." = READ;
        glob_count(need pattern: Filled, need store_as: Path)
            "Stores the number of the files that match a pattern." = READ;
        file_exists_check(need path: Filled, may set_flag: Path, may store_as: Path)
            "Sets a flag to whether there is such a file.";
        directory_exists_check(need path: Filled, may set_flag: Path, may store_as: Path)
            "Sets a flag to whether there is such a directory.";
        any_file_exists_check(need paths: List, may set_flag: Path, may store_as: Path)
            "Sets a flag to whether one of several files is there.";
        glob_check(need pattern: Filled, may set_flag: Path, may store_as: Path)
            "Sets a flag to whether a pattern matches a file or, with a `/` at its end, a directory.";
    }
    CONSEQUENCE "commands" {
        bash_exec(
            need command: Filled, may unless: Filled, may idempotent: Boolean, may once: Boolean,
            may store_as: Path
        ) "Runs a shell command." = UNCERTAIN.needs(Privilege::Commands);
        run_command(
            need command: Filled, may interpreter: Word, may unless: Filled, may idempotent: Boolean,
            may once: Boolean, may store_as: Path
        ) "Runs a shell command." = UNCERTAIN.needs(Privilege::Commands);
        bash_check(need command: Filled, may set_flag: Path, may store_as: Path)
            "Sets a flag to whether a shell command succeeds." = CONVERGES.needs(Privilege::Commands);
    }
    CONSEQUENCE "git" {
        clone_repo(need url: Filled, need dest: Filled, may branch: Filled, may depth: Number)
            "Clones a git repository." = GUARDED.writes("dest").needs(Privilege::Network);
        get_sha(need repo_path: Filled, need store_as: Path)
            "Stores the commit that a repository is at." = READ;
        git_fetch(need repo_path: Filled) "Fetches a repository." = READ.needs(Privilege::Network);
        git_pull(need repo_path: Filled, may store_as: Path)
            "Pulls a repository." = CONVERGES.works_in("repo_path").needs(Privilege::Network);
    }
    CONSEQUENCE "web" {
        web_fetch(need url: Filled, need store_as: Path, may allow_failure: Boolean, may prompt: Filled)
            "Fetches a page." = READ.needs(Privilege::Network);
        cache_web_content(need from: Path, need dest: Filled, may store_path_as: Path)
            "Writes the content of a fetched page to a file." = CONVERGES.writes("dest");
    }
    CONSEQUENCE "Claude Code" {
        invoke_pattern(need path: Filled, may section: Filled, may context: Map, may store_as: Path)
            "Has Claude Code carry out a document, or a section of one.";
        invoke_skill(may skill: Filled, may skill_path: Filled, may args: Any, may store_as: Path)
            "Has Claude Code use a skill.";
        spawn_agent(
            need subagent_type: Filled, need prompt: Filled, need store_as: Path,
            may run_in_background: Boolean
        ) "Has a further agent answer a prompt.";
        spawn_agents_parallel(
            need foreach: Path, may as: Word, may agent_type: Filled, may subagent_type: Filled,
            may prompt_template: Filled, may prompt: Filled, may collect_as: Path, may store_as: Path,
            may join: Any, may timeout: Word, may rest: Word
        ) "Has an agent for each item of a list, all at the same time.";
        run_state(need state: Filled, may variables: Map, may store_as: Path, may run_in_background: Boolean)
            "Starts a further agent in a state of the workflow.";
        run_folder(
            need path: Filled, may state: Filled, may variables: Map, may input: Text, may store_as: Path,
            may run_in_background: Boolean
        ) "Starts a further agent in a folder of the workflow.";
    }
    INNER "operations" {
        any_file_exists(need paths: List) "" = READ;
        glob_exists(need pattern: Text) "" = READ;
        run_script() "" = UNCERTAIN.needs(Privilege::Commands);
    }
};

const PARAMETERS: &[(&str, &str)] = parameter_docs! {
    actions "The consequences for each item.";
    allow_failure "True if the graph continues when the page cannot be fetched.";
    args "The arguments of the skill.";
    as "The name of the current item; `item` without one.";
    branch "The branch.";
    capability "The only capability is `available`.";
    check "The kind of path: `exists`, `is_file` or `is_directory`.";
    command "The command.";
    conditions "The preconditions.";
    content "The text.";
    context "The values that the document may use.";
    count "The number of elements.";
    data "The data of the event.";
    depth "The number of commits to clone.";
    details "Further details.";
    ending_node "The ending that the graph comes to.";
    error_type "The kind of error.";
    event_type "The kind of event.";
    execution_path "The path of the skill.";
    filename "The name of the file.";
    format "The form of the time, such as `YYYY-MM-DD`; of a log `yaml`, `json` or `markdown`.";
    keyword_sets "The keywords of each set, a list.";
    level "The level: `debug`, `info`, `warning` or `error`.";
    location "The directory of the file.";
    metadata "Further facts about the run.";
    node "The name of the node.";
    outcome "The outcome.";
    plugin_name "The name of the plug-in.";
    recoverable "True if the graph continued after the error.";
    skill_name "The name of the skill.";
    summary "A sentence about the run.";
    workflow_name "The name of the workflow.";
    workflow_version "The version of the workflow.";
    dest "The path to write to.";
    expression "The expression, in quotes.";
    field "The path of a value in the state.";
    flag "The name of the flag.";
    from "The path of a value in the state.";
    headers "The titles of the columns.";
    idempotent "True if the command may run twice: a crash in the middle has it repeated.";
    input "The input of the agent.";
    interpreter "The shell: `auto`, `bash` or `sh`.";
    items "The list.";
    max "The number of elements that is not reached.";
    message "The text.";
    min "The number of elements that is exceeded.";
    module "The name of the module.";
    name "The name of the checkpoint.";
    once "True if the command is never repeated: a crash in the middle fails the action.";
    operation "The change: `set`, `append`, `clear` or `merge`.";
    operator "The test: `equals`, `not_equals`, `null`, `not_null`, `true`, `false` or `not_true`.";
    path "The path; for an entry of the configuration, its keys with dots between.";
    pattern "The pattern of the paths, such as `docs/**/*.md`; of plug-ins that of their names.";
    prompt "The prompt.";
    repo_path "The path of the repository.";
    rows "The rows, each a list or a mapping.";
    run_in_background "True if the graph continues without waiting for the agent.";
    section "The heading of the section.";
    set_flag "The name of the flag.";
    skill "The name of the skill.";
    skill_path "The path of its `SKILL.md`, in whose directory's name it has its name.";
    state "The file of the state.";
    store_as "The path below `computed` that the result is stored at.";
    store_path_as "The path in the state that the file's path is stored at.";
    subagent_type "The kind of agent.";
    title "The title of the table.";
    tool "The name of the program.";
    unless "A command that runs first; if its exit code is 0, the other was done and is left out.";
    url "The address.";
    agent_type "The kind of agent.";
    collect_as "The path below `computed` that the list of results is stored at.";
    foreach "The path of the list.";
    join "The number of agents that have to succeed: `all`, `any` or `{ count: N }`.";
    prompt_template "The prompt of each agent, in which the item has a name.";
    rest "The fate of the agents that are not waited for: `leave` or `stop`.";
    timeout "The longest time that is waited, such as `10m`.";
    action "The node; of a log, what was done.";
    paths "The paths of the files.";
    value "The value.";
    variables "The variables of the agent.";
};

mod corpus;

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_type_has_another_name_and_every_parameter_a_sentence() {
        let names: BTreeSet<&str> = all_types().map(|known| known.name).collect();
        assert_eq!(names.len(), all_types().count());
        let of_graphs = all_types().filter(|known| known.role.is_some());
        assert!(of_graphs.clone().all(|known| !known.doc.is_empty()));
        let parameters: BTreeSet<&str> =
            of_graphs.flat_map(|known| known.parameters).map(|parameter| parameter.name).collect();
        let described = PACKS.iter().flat_map(|pack| pack.parameters).map(|(name, _)| *name);
        let described: Vec<&str> = described.collect();
        assert_eq!(parameters.len(), described.len(), "one sentence each");
        assert_eq!(parameters, described.into_iter().collect());
    }

    #[test]
    fn core_knows_no_word_of_a_pack() {
        let is_core = |name: &str| PACK.types.iter().any(|known| known.name == name);
        let packs = PACKS[1..].iter().flat_map(|pack| pack.types);
        assert!(packs.clone().count() > 20 && !packs.into_iter().any(|known| is_core(known.name)));
    }

    #[test]
    fn seed_has_24_preconditions_and_29_consequences() {
        // Later graphs have 3 preconditions and 41 consequences more, or the program has them itself.
        let of = |role| all_types().filter(|known| known.role == Some(role)).count();
        assert_eq!((of(TypeRole::Precondition), of(TypeRole::Consequence)), (24 + 3, 29 + 41));
    }
}
