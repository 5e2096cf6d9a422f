//! Every type of the vocabulary: the result of reading it, and that the world understands it.

use serde_json::{Map, Value, json};

use super::super::checked_graph::{
    ActionKind, ConditionTest, GraphCondition, GraphNode, OperationTemplate, ReferenceText,
    SpawnTask,
};
use super::super::profile::GraphProfile;
use super::super::read::read;
use super::super::vocabulary::{CustomTypeSpec, GraphVocabulary, TypeRole};
use super::{act, acting, asking, program, source};
use crate::expression::{Fuel, NameScope, ValueTemplate};
use raymond_model::operation::{Operation, RecoveryClass};
use raymond_model::privilege::Privilege;

/// A scope with a text `page.content` and nothing else.
struct Page(Value);

impl NameScope for Page {
    fn root(&self, name: &str) -> Option<&Value> {
        (name == "page").then_some(&self.0)
    }
}

fn filled(template: &ValueTemplate) -> Value {
    let page = Page(json!({ "content": "text" }));
    template.fill(&page, &mut Fuel::default()).expect("filled")
}

fn operation(work: &OperationTemplate) -> Operation {
    let Value::Object(mut map) = filled(&work.parameters) else { panic!("{work:?}") };
    if let Some(class) = work.custom_class {
        return Operation::Own { name: work.kind.clone(), parameters: map, class };
    }
    map.insert("type".to_owned(), json!(work.kind));
    serde_json::from_value(Value::Object(map)).unwrap_or_else(|error| panic!("{work:?}: {error}"))
}

fn condition(condition: &str) -> GraphCondition {
    let program = program(&asking(&format!("      {{ {condition}, error_message: Not so }}")));
    let Some(GraphNode::Conditional { condition, .. }) = program.nodes.get("a") else { panic!() };
    assert!(condition.error_message.is_some());
    condition.clone()
}

#[test]
fn every_precondition_type_is_parsed() {
    let table = [
        "config_exists",
        "index_exists",
        "index_is_placeholder",
        "file_exists, path: x",
        "directory_exists, path: x",
        "source_exists, id: x",
        "source_cloned, id: x",
        "source_has_updates, id: x",
        "tool_available, tool: x",
        "python_module_available, module: x",
        "flag_set, flag: x",
        "flag_not_set, flag: x",
        "state_equals, field: x, value:",
        "state_not_null, field: x",
        "state_is_null, field: x",
        "count_equals, field: known, count: 1",
        "count_above, field: known, min: '${known}'",
        "count_below, field: known, max: 1",
        "fetch_succeeded, from: '${known}'",
        "fetch_returned_content, from: known.page",
        "all_of, conditions: [{ type: config_exists }]",
        "any_of, conditions: []",
        "none_of, conditions: [{ type: any_of, conditions: [] }]",
        "evaluate_expression, expression: known == 1",
    ];
    let mut asked = 0;
    for text in table {
        let condition = condition(&format!("type: {text}"));
        assert!(text.starts_with(&condition.kind));
        if let ConditionTest::World(work) = &condition.test {
            assert_eq!(operation(work).class(), RecoveryClass::Read, "{text}");
            asked += 1;
        }
    }
    assert_eq!((table.len(), asked), (24, 10));
}

#[test]
fn every_external_consequence_maps_to_operation_and_class() {
    let table = [
        ("read_config, store_as: x", RecoveryClass::Read),
        ("read_file, path: x, store_as: computed.x", RecoveryClass::Read),
        ("write_file, path: x, content: ''", RecoveryClass::Converges),
        ("create_directory, path: x", RecoveryClass::Converges),
        ("delete_file, path: x", RecoveryClass::Converges),
        ("write_config_entry, path: a.b, value: [1]", RecoveryClass::Converges),
        ("add_source, spec: { id: x }", RecoveryClass::Guarded),
        ("update_source, id: x, fields: { a: 1 }", RecoveryClass::Converges),
        ("clone_repo, url: u, dest: d, branch: b, depth: 0", RecoveryClass::Guarded),
        ("get_sha, repo_path: x, store_as: x", RecoveryClass::Read),
        ("git_pull, repo_path: x", RecoveryClass::Converges),
        ("git_fetch, repo_path: x", RecoveryClass::Read),
        (
            "web_fetch, url: u, allow_failure: true, prompt: Sum up, store_as: x",
            RecoveryClass::Read,
        ),
        (
            "cache_web_content, from: page, dest: d, store_path_as: computed.at",
            RecoveryClass::Converges,
        ),
        ("glob_files, pattern: '*', store_as: x", RecoveryClass::Read),
        ("glob_count, pattern: '*', store_as: x", RecoveryClass::Read),
        ("bash_exec, command: ls, store_as: x", RecoveryClass::Uncertain),
        ("run_command, command: ls, interpreter: bash", RecoveryClass::Uncertain),
        ("append_to_file, path: x, content: y", RecoveryClass::Guarded),
        ("bash_check, command: ls, store_as: x", RecoveryClass::Converges),
        ("glob_check, pattern: '*', store_as: x", RecoveryClass::Read),
        ("any_file_exists_check, paths: [a, b], store_as: x", RecoveryClass::Read),
        ("directory_exists_check, path: a, store_as: x", RecoveryClass::Read),
        ("discover_plugins, pattern: 'a-*', store_as: x", RecoveryClass::Read),
        ("discover_installed_corpora, store_as: x", RecoveryClass::Read),
        ("write_config, config: { a: 1 }", RecoveryClass::Converges),
        ("update_config_index_metadata, format: x", RecoveryClass::Converges),
        ("update_source_metadata, id: x, fields: {}", RecoveryClass::Converges),
        (
            "update_marketplace_json, marketplace_path: x, plugin_name: y, plugin_path: z",
            RecoveryClass::Converges,
        ),
    ];
    for (text, class) in table {
        let page = "      - { type: web_fetch, url: u, store_as: page }";
        let program = program(&acting(&format!("{page}\n      - {{ type: {text} }}")));
        let Some(GraphNode::Action { actions, .. }) = program.nodes.get("a") else { panic!() };
        let ActionKind::World { work, store, prompt } = &actions[1].act else { panic!("{text}") };
        assert_eq!(operation(work).class(), class, "{text}");
        assert_eq!(prompt.is_some(), text.contains("prompt"), "{text}");
        assert_eq!(store.is_some(), text.contains("_as"), "{text}");
        let path = store.as_ref().map(filled);
        match text.split(',').next() {
            Some("read_file") => assert_eq!(path, Some(json!("computed.x"))),
            Some("cache_web_content") => assert_eq!(path, Some(json!("computed.at"))),
            _ => assert!(path.is_none_or(|path| path == "x")),
        }
    }
}

#[test]
fn every_other_consequence_maps_to_its_action_kind() {
    type Is = fn(&ActionKind) -> bool;
    let table: [(&str, Is); 32] = [
        ("set_flag, flag: x, value: true", |act| matches!(act, ActionKind::SetFlag { .. })),
        ("set_state, field: x, value:", |act| matches!(act, ActionKind::SetState { .. })),
        ("append_state, field: x, value: 1", |act| matches!(act, ActionKind::AppendState { .. })),
        ("clear_state, field: x", |act| matches!(act, ActionKind::ClearState { .. })),
        ("merge_state, field: x, value: { a: 1 }", |act| {
            matches!(act, ActionKind::MergeState { .. })
        }),
        ("mutate_state, operation: set, field: x, value: 1", |act| {
            matches!(act, ActionKind::SetState { .. })
        }),
        ("mutate_state, operation: append, field: x, value: 1", |act| {
            matches!(act, ActionKind::AppendState { .. })
        }),
        ("mutate_state, operation: clear, field: x", |act| {
            matches!(act, ActionKind::ClearState { .. })
        }),
        ("mutate_state, operation: merge, field: x, value: {}", |act| {
            matches!(act, ActionKind::MergeState { .. })
        }),
        ("evaluate, expression: known, set_flag: x", |act| {
            matches!(act, ActionKind::Evaluate { .. })
        }),
        (
            "compute, expression: known, store_as: computed.x",
            |act| matches!(act, ActionKind::Compute { store, .. } if filled(store) == "computed.x"),
        ),
        ("display_message, message: ''", |act| matches!(act, ActionKind::DisplayMessage { .. })),
        ("display_table, headers: [a], rows: '${known}'", |act| {
            matches!(act, ActionKind::DisplayTable { .. })
        }),
        ("evaluate, expression: known, store_as: x", |act| {
            matches!(act, ActionKind::Compute { .. })
        }),
        ("display, content: x", |act| matches!(act, ActionKind::Display { json: false, .. })),
        ("dynamic_route, action: x", |act| matches!(act, ActionKind::SetState { .. })),
        ("output_ci_summary, format: json", |act| matches!(act, ActionKind::Pack(_))),
        ("apply_log_retention, strategy: none", |act| matches!(act, ActionKind::Pack(_))),
        ("compute_hash, content: '${known}', store_as: x", |act| {
            matches!(act, ActionKind::HashValue { .. })
        }),
        ("create_checkpoint, name: x", |act| matches!(act, ActionKind::CreateCheckpoint { .. })),
        ("rollback_checkpoint, name: x", |act| {
            matches!(act, ActionKind::RollbackCheckpoint { .. })
        }),
        (
            "set_timestamp, store_as: computed.x",
            |act| matches!(act, ActionKind::SetTimestamp { store, .. } if filled(store) == "computed.x"),
        ),
        (
            "compute_hash, from: '${known}', store_as: x",
            |act| matches!(act, ActionKind::ComputeHash { from, .. } if filled(from) == "known"),
        ),
        (
            "invoke_pattern, path: lib/git.md",
            |act| matches!(act, ActionKind::Reference { reference, store: None } if matches!(reference.text, ReferenceText::Document { .. })),
        ),
        (
            "invoke_skill, skill: x, args: y, store_as: z",
            |act| matches!(act, ActionKind::Reference { reference, store: Some(_) } if matches!(reference.text, ReferenceText::Skill { .. })),
        ),
        (
            "invoke_skill, skill_path: '${CLAUDE_PLUGIN_ROOT}/skills/do-it/SKILL.md'",
            |act| matches!(act, ActionKind::Reference { reference, .. } if matches!(&reference.text, ReferenceText::Skill { name, .. } if filled(name) == "do-it")),
        ),
        ("compute, expression: '# the files that changed', store_as: x", |act| {
            matches!(act, ActionKind::Prose { .. })
        }),
        (
            "spawn_agent, subagent_type: x, prompt: y, store_as: z, run_in_background: true",
            |act| matches!(act, ActionKind::Spawn(spawn) if spawn.background.is_some()),
        ),
        (
            "foreach, items: [1], actions: []",
            |act| matches!(act, ActionKind::ForEach { name, .. } if name == "item"),
        ),
        (
            "run_folder, path: x",
            |act| matches!(act, ActionKind::Spawn(spawn) if spawn.store.is_none()),
        ),
        ("run_folder, path: x, input: hi, variables: { a: 1 }", |act| {
            let ActionKind::Spawn(spawn) = act else { return false };
            let SpawnTask::State { variables, folder, state } = &spawn.task else { return false };
            let given = filled(variables) == json!({ "a": 1, "input": "hi" });
            given && folder.is_some() && state.is_none()
        }),
        (
            "run_state, state: A.md, store_as: x",
            |act| matches!(act, ActionKind::Spawn(spawn) if matches!(&spawn.task, SpawnTask::State { folder: None, state: Some(_), .. })),
        ),
    ];
    for (text, is) in table {
        let act = act(&format!("      - {{ type: {text} }}"));
        assert!(is(&act), "{text}: {act:?}");
    }
}

#[test]
fn added_types_are_accepted_only_in_their_role() {
    let spec = |role, class| CustomTypeSpec {
        role,
        required: vec!["channel".into()],
        optional: vec!["text".into()],
        class,
    };
    let mut vocabulary = GraphVocabulary::new();
    vocabulary.add("post", spec(TypeRole::Consequence, RecoveryClass::Uncertain)).expect("new");
    vocabulary.add("is_open", spec(TypeRole::Precondition, RecoveryClass::Read)).expect("new");
    let read =
        |text: &str| read("g.yaml", None, text, &vocabulary, &source(), GraphProfile::Lenient);
    let reading = read(&acting("      - { type: post, channel: general, text: [1], store_as: x }"));
    assert!(reading.diagnostics.is_empty(), "{:?}", reading.diagnostics);
    let program = reading.graph.expect("sound");
    let Some(GraphNode::Action { actions, .. }) = program.nodes.get("a") else { panic!() };
    let ActionKind::World { work, store: Some(_), .. } = &actions[0].act else { panic!() };
    let parameters: Map<_, _> =
        [("channel".to_owned(), json!("general")), ("text".to_owned(), json!([1]))]
            .into_iter()
            .collect();
    let name = "post".to_owned();
    assert_eq!(
        operation(work),
        Operation::Own { name, parameters, class: RecoveryClass::Uncertain }
    );

    assert!(read(&asking("      { type: is_open, channel: x }")).graph.is_some());
    let diagnostic = |text: &str| read(text).diagnostics[0].to_string();
    assert_eq!(
        diagnostic(&acting("      - type: post")),
        "g.yaml:12:15: WF303 `post` needs `channel`"
    );
    assert!(diagnostic(&acting("      - { type: is_open, channel: x }")).contains("WF302"));
}

#[test]
fn later_type_with_wrong_parameters_is_an_error_that_says_what_it_needs() {
    let diagnostic = |action: &str| {
        let text = acting(&format!("      - {{ type: {action} }}"));
        let reading =
            read("g.yaml", None, &text, &GraphVocabulary::new(), &source(), GraphProfile::Lenient);
        reading.diagnostics.first().map(ToString::to_string).unwrap_or_default()
    };
    for (action, expected) in [
        ("glob_check, pattern: x", "WF303 `glob_check` needs `set_flag` or `store_as`"),
        (
            "evaluate, expression: known, set_flag: a, store_as: b",
            "WF303 `evaluate` has `set_flag` and `store_as`; give one of them",
        ),
        ("compute_hash, store_as: x", "WF303 `compute_hash` needs `from` or `content`"),
        ("display, format: table, content: []", "WF303 `display` needs `headers`"),
        ("display, format: html, content: x", "WF303 `format` of `display` cannot be `html`"),
        (
            "update_marketplace_json, marketplace_path: ../x, plugin_name: a, plugin_path: b",
            "WF304",
        ),
    ] {
        let first = diagnostic(action);
        assert!(first.contains(expected), "{action}: {first}");
    }
}

#[test]
fn corpora_of_the_home_directory_need_a_privilege() {
    for (user, privilege) in [
        ("true", Some(Privilege::Outside)),
        ("'true'", Some(Privilege::Outside)),
        ("'${computed.x}'", Some(Privilege::Outside)),
        ("false", None),
        ("'false'", None),
    ] {
        for kind in ["discover_installed_corpora", "discover_plugins, pattern: 'a-*'"] {
            let act = act(&format!("      - {{ type: {kind}, user: {user}, store_as: x }}"));
            let ActionKind::World { work, .. } = act else { panic!("{act:?}") };
            assert_eq!(Privilege::of_operation_type(&work.kind), privilege, "{kind} {user}");
        }
    }
}

#[test]
fn import_of_another_machine_and_own_definitions_are_refused() {
    let diagnostic = |more: &str| {
        let text = format!("{more}\n{}", acting(""));
        let reading =
            read("g.yaml", None, &text, &GraphVocabulary::new(), &source(), GraphProfile::Lenient);
        reading.diagnostics.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    };
    let remote = diagnostic("imports: { a: 'https://x.example/a.yaml' }");
    assert!(remote.contains("WF320 `https://x.example/a.yaml` is on another machine"), "{remote}");
    assert!(remote.contains("a graph imports only local files"), "{remote}");
    assert!(diagnostic("imports: { a: gone.yaml }").contains("WF320 the import is missing"));
    assert!(
        diagnostic("definitions: { types: [] }").contains("unknown key `types` in `definitions`")
    );
    let known = diagnostic("definitions: { source: someone/lib@v3.0.0, version: v3.0.0 }");
    assert!(!known.contains("definitions"), "{known}");
}
