//! The consequences of later graphs: checks, intents, summaries; options from the state, imports, open targets.

use serde_json::{Value, json};

use super::stage::{Stage, answered, node, packed};
use raymond_model::advance::AdvanceNext;
use raymond_model::event::NextAction;
use raymond_model::operation::Operation;

#[test]
fn check_stores_its_answer_in_a_flag_or_at_a_path() {
    let stage = Stage::doing(json!([
        {"type": "bash_check", "command": "test -d x", "set_flag": "is_there"},
        {"type": "glob_check", "pattern": "x-*/", "set_flag": "flags.has_x"},
        {"type": "any_file_exists_check", "paths": ["a", "${b}"], "store_as": "any"},
        {"type": "directory_exists_check", "path": "d", "store_as": "computed.d"},
        {"type": "evaluate", "expression": "1 + 2", "store_as": "three"},
    ]))
    .beginning(json!({"b": "c"}))
    .world(|operation| Ok(json!(!matches!(operation, Operation::GlobExists { .. }))));
    let played = stage.play();
    assert_eq!(played.route(), ["start success"], "{:?}", played.errors);
    assert_eq!(
        (played.at("flags.is_there"), played.at("flags.has_x")),
        (json!(true), json!(false))
    );
    assert_eq!((played.at("computed.any"), played.at("computed.d")), (json!(true), json!(true)));
    assert_eq!(played.at("computed.three"), json!(3));
    let paths = stage.log().operations.iter().find_map(|operation| match operation {
        Operation::AnyFileExists { paths } => Some(paths.clone()),
        _ => None,
    });
    assert_eq!(paths, Some(vec!["a".to_owned(), "c".to_owned()]));
}

#[test]
fn intent_of_a_text_routes_to_the_node_that_its_rule_names() {
    let intents = "flags:\n  help: {keywords: [help]}\n  go: {keywords: [go]}\nrules:\n  - {name: h, conditions: {help: T}, action: helped}\n  - {name: g, conditions: {go: T, help: F}, action: gone}\n";
    let stage = |input: &str| {
        let mut start = node(
            json!([
                {"type": "parse_intent_flags", "input": input, "flag_definitions": "${imports.intents.flags}", "store_as": "found"},
                {"type": "match_3vl_rules", "flags": "${computed.found}", "rules": "${imports.intents.rules}", "store_as": "matches"},
                {"type": "dynamic_route", "action": "${computed.matches.top_candidates[0].rule.action}"},
            ]),
            "${computed.dynamic_target}",
        );
        start["on_failure"] = json!("failed");
        let nodes = json!({"start": start, "helped": node(json!([]), "done")});
        Stage::new(nodes)
            .file("intents.yaml", intents)
            .with("imports", json!({"intents": "intents.yaml"}))
    };
    let played = stage("help").play();
    assert_eq!(played.route(), ["start success", "helped success"], "{:?}", played.errors);
    assert_eq!(played.at("computed.found"), json!({"help": "T", "go": "U"}));
    let why = "in flow.yaml: WF202 node start: no node or ending is called `gone`, to which `${computed.dynamic_target}` leads; correct the value";
    assert_eq!(stage("go").play().error(), why);
}

#[test]
fn option_from_state_is_asked_and_its_element_is_stored() {
    let stage = |prompt: Value| {
        let mut asked =
            json!({"question": "Which?", "header": "Select", "options_from_state": "computed.all"});
        let prompt = prompt.as_object().cloned().unwrap_or_default();
        asked.as_object_mut().expect("a map").extend(prompt);
        let start = json!({
            "type": "user_prompt", "prompt": asked,
            "on_response": {
                "selected": {
                    "consequence": [{"type": "set_state", "field": "computed.chosen", "value": "${user_responses.start.selected}"}],
                    "next_node": "done",
                },
                "other": {"next_node": "failed"},
            },
        });
        let all =
            json!([{"name": "polars", "status": "built"}, {"name": "react", "status": "stale"}]);
        Stage::new(json!({"start": start})).beginning(json!({"computed": {"all": all}}))
    };
    let options = |stage: &Stage| match stage.log().wanted.first() {
        Some(AdvanceNext::Action(NextAction::Question(question))) => {
            let option = |choice: &raymond_model::question::QuestionOption| {
                format!("{}|{}|{}", choice.id, choice.label, choice.description)
            };
            question.options.iter().map(option).collect::<Vec<_>>()
        }
        other => panic!("{other:?}"),
    };
    let template = json!({"option_template": {"label": "${corpus.name} [${corpus.status}]"}});
    let asked = stage(template).hearing([answered("2")]);
    assert_eq!(options(&asked), ["polars|polars [built]|", "react|react [stale]|"]);
    let played = asked.play();
    assert_eq!(played.route(), ["start selected"], "{:?}", played.errors);
    assert_eq!(played.at("computed.chosen"), json!({"name": "react", "status": "stale"}));
    assert_eq!(played.at("user_responses.start.id"), json!("react"));
    let mapping = json!({"option_mapping": {"id": "name", "label": "name.toUpperCase()", "description": "item.status"}});
    let asked = stage(mapping).hearing([answered("something else")]);
    assert_eq!(options(&asked), ["polars|POLARS|built", "react|REACT|stale"]);
    assert_eq!(asked.play().route(), ["start other"]);
    let plain = stage(json!({})).beginning(json!({"computed": {"all": ["a", "a", "other"]}}));
    let plain = plain.hearing([answered("1")]);
    assert_eq!(options(&plain), ["a|a|", "a_2|a|", "other_2|other|"]);
    let none = stage(json!({})).beginning(json!({"computed": {"all": []}}));
    assert!(none.play().error().contains("the list of `options_from_state` is empty"));
}

#[test]
fn log_of_sources_is_summarized_and_old_files_are_removed() {
    let stage = |retention: Value, format: &str| {
        Stage::doing(json!([
            {"type": "init_log", "workflow_name": "re-fresh"},
            {"type": "log_source_status", "source_id": "a", "status": "stale", "source_type": "git"},
            {"type": "log_source_changes", "source_id": "a", "changes": {"added": ["x.md"]}},
            {"type": "log_index_update", "files": ["index.md"], "entries_added": 2},
            {"type": "log_session_snapshot", "description": "half"},
            {"type": "log_warning", "message": "old\n::error::no"},
            {"type": "finalize_log", "outcome": "success"},
            retention,
            {"type": "output_ci_summary", "format": format},
        ]))
        .world(|_| Ok(json!(1)))
    };
    let keep = |strategy: Value| {
        let mut retention = json!({"type": "apply_log_retention", "location": "logs/"});
        retention
            .as_object_mut()
            .expect("a map")
            .extend(strategy.as_object().cloned().unwrap_or_default());
        retention
    };
    let all = keep(json!({"strategy": "none"}));
    let played = stage(all.clone(), "plain").play();
    assert_eq!(played.route(), ["start success"], "{:?}", played.errors);
    let log = played.at("computed.log");
    assert_eq!((&log["sources"]["checked"], &log["sources"]["updated"]), (&json!(1), &json!(1)));
    assert_eq!(log["sources"]["details"][0]["action"], "pending");
    assert_eq!(log["changes"][0]["added_files"], json!(["x.md"]));
    assert_eq!(log["changes"][0]["deleted_files"], json!([]));
    assert_eq!(log["index_updates"]["entries_added"], 2);
    assert_eq!(log["snapshots"][0]["description"], "half");
    let shown = |format: &str| stage(all.clone(), format).play().shown[0].clone();
    assert!(shown("plain").starts_with("RE_FRESH_OUTCOME=success\nRE_FRESH_SOURCES_CHECKED=1\n"));
    assert!(shown("github").contains("::endgroup::\n::warning::old ::error::no"), "one line");
    let json: Value = serde_json::from_str(&shown("json")).expect("JSON");
    assert_eq!(json["sources_updated"], 1);
    assert!(stage(all.clone(), "none").play().shown.iter().all(|line| !line.contains("OUTCOME")));
    let removed = |strategy| stage(keep(strategy), "none").log().operations;
    assert!(removed(json!({"strategy": "none"})).is_empty());
    let days = removed(json!({"strategy": "days", "days": "${2}"}));
    let removal =
        json!({"type": "apply_log_retention", "location": "logs/", "since": "2023-11-12"});
    assert_eq!(days, [packed(removal)]);
    let count = removed(json!({"strategy": "count", "count": 3}));
    let removal = json!({"type": "apply_log_retention", "location": "logs/", "count": 3});
    assert_eq!(count, [packed(removal)]);
    let why = stage(keep(json!({"strategy": "days"})), "none").play();
    assert_eq!(
        why.failure(),
        "apply_log_retention: WF403 `days` is not a number of days, 0 or more"
    );
}

#[test]
fn ending_gives_its_delegate_and_advice() {
    let ending = |more: Value| {
        let mut ending = json!({"type": "error", "message": "no"});
        ending
            .as_object_mut()
            .expect("a map")
            .extend(more.as_object().cloned().unwrap_or_default());
        let stage = Stage::doing(json!([])).beginning(json!({"url": "u"}));
        stage.with("endings", json!({"done": ending, "failed": {"type": "error", "message": "x"}}))
    };
    let advice = json!({"recovery": {"suggestion": "Look", "related_skill": "fix"}, "code": "E1"});
    let played = ending(advice).play();
    assert_eq!(played.shown.last().map(String::as_str), Some("no\nLook\nTry running: /fix"));
    let text = ending(json!({"recovery": "Check the disk.\nThen again.\n"})).play();
    assert_eq!(text.shown.last().map(String::as_str), Some("no\nCheck the disk.\nThen again."));
    let next = json!({"type": "success", "message": "", "delegate": {"skill": "add", "context": {"url": "${url}"}}});
    let played = ending(next).play();
    assert_eq!(played.payload()["delegate"], json!({"skill": "add", "context": {"url": "u"}}));
    assert_eq!(played.shown.last().map(String::as_str), Some("Continue with: /add"));
}

#[test]
fn display_and_hash_take_values() {
    let played = Stage::doing(json!([
        {"type": "display", "content": "plain", "title": "T"},
        {"type": "display", "format": "json", "content": {"a": 1}},
        {"type": "display", "format": "table", "headers": ["h"], "content": [["c"]]},
        {"type": "compute_hash", "content": "text", "store_as": "hash"},
    ]))
    .play();
    assert_eq!(played.route(), ["start success"], "{:?}", played.errors);
    assert_eq!(played.shown[..2], ["T\n\nplain".to_owned(), "{\n  \"a\": 1\n}".to_owned()]);
    assert!(played.shown[2].contains('c'));
    assert!(
        played.at("computed.hash").as_str().is_some_and(|hash| hash.starts_with("sha256:982d"))
    );
}

#[test]
fn plugins_of_a_person_are_listed_if_a_value_says_so() {
    for (user, is_listed) in [(json!(true), true), (json!("false"), false)] {
        let discover = json!({"type": "discover_plugins", "pattern": "a-*", "user": "${all}", "store_as": "found"});
        let stage = Stage::doing(json!([discover])).beginning(json!({"all": user, "HOME": "/h"}));
        let asked = stage.world(|_| Ok(json!([]))).log().operations;
        let listing = json!({"type": "discover_user_plugins", "pattern": "a-*", "home": "/h", "user": is_listed});
        assert_eq!(asked, [packed(listing)]);
    }
}
