//! Requests to Claude Code and to further agents, and the use of their answers.

use serde_json::{Value, json};

use super::stage::{Stage, answered, done, failed, node};
use raymond_model::advance::AdvanceNext;
use raymond_model::event::NextAction;
use raymond_model::graph_execution::{OutputFormat, PromptTask};
use raymond_model::turn_options::{EffortLevel, OnDenied, TurnOptions};

const DOC: &str = "# Git\n\nIntro.\n\n## Clone\n\nClone it.\n\n```sh\n# not a heading\n```\n\n### Deep\n\nMore.\n\n## Other\n\nNo.\n";

fn reference(more: &Value) -> Stage {
    let mut start = json!({
        "type": "reference", "doc": "git.md", "section": "Clone",
        "context": {"url": "https://x/${source}"}, "next_node": "done",
    });
    let more = more.as_object().cloned().unwrap_or_default();
    start.as_object_mut().expect("a map").extend(more);
    Stage::new(json!({"start": start})).file("git.md", DOC).beginning(json!({"source": "react"}))
}

fn task(then: &AdvanceNext) -> &PromptTask {
    let AdvanceNext::Action(NextAction::Task(task)) = then else { panic!("{then:?}") };
    task
}

#[test]
fn reference_prompts_with_its_section_and_context() {
    let stage = reference(&json!({})).hearing([done(json!({"path": "p", "n": [1]}))]);
    let log = stage.log();
    let task = task(&log.wanted[0]);
    assert_eq!((task.name.as_str(), task.contract), ("flow.yaml#start", OutputFormat::Outputs));
    for part in
        ["Clone it.", "# not a heading", "### Deep", "\"url\": \"https://x/react\"", "<result>"]
    {
        assert!(task.prompt.contains(part), "{part}: {}", task.prompt);
    }
    assert!(!task.prompt.contains("Intro") && !task.prompt.contains("No."), "{}", task.prompt);
    let played = stage.play();
    assert_eq!(played.route(), ["start success"]);
    assert_eq!((played.at("computed.path"), played.at("computed.n")), (json!("p"), json!([1])));
}

#[test]
fn reference_section_is_resolved_at_run_time() {
    let stage = reference(&json!({"section": "${part}"}))
        .beginning(json!({"source": "x", "part": "Other"}));
    let log = stage.hearing([done(json!({}))]).log();
    assert!(task(&log.wanted[0]).prompt.contains("No."));
    let stage =
        reference(&json!({"section": "${part}"})).beginning(json!({"source": "x", "part": "Gone"}));
    let stage = stage.hearing([done(json!({}))]);
    let log = stage.log();
    let prompt = &task(&log.wanted[0]).prompt;
    assert!(prompt.contains("No heading here is “Gone”") && prompt.contains("No."), "{prompt}");
    let warning =
        "warning: WF321 git.md has no section `Gone`; Claude Code gets the whole document";
    assert_eq!(stage.play().shown[0], warning);
}

#[test]
fn failed_reference_takes_on_failure_edge_or_fails_agent() {
    let stage = reference(&json!({"on_failure": "failed"})).hearing([failed("no network")]);
    let played = stage.play();
    assert_eq!(
        (played.route(), played.failure()),
        (vec!["start failure".to_owned()], "no network")
    );
    assert_eq!(played.error(), "in flow.yaml: failed: no network");
    let played = reference(&json!({})).hearing([failed("no network")]).play();
    assert_eq!(played.error(), "in flow.yaml: node start: no network");
}

#[test]
fn patterns_and_skills_run_in_order_among_other_actions() {
    let pattern = json!({"type": "invoke_pattern", "path": "git.md", "section": "Clone", "context": {"a": 1}});
    let mut kept = pattern.clone();
    kept["store_as"] = json!("computed.clone");
    let stage = Stage::doing(json!([
        {"type": "set_flag", "flag": "before", "value": true}, pattern, kept,
        {"type": "invoke_skill", "skill": "tidy", "args": "--fast"},
        {"type": "set_flag", "flag": "after", "value": true},
    ]))
    .file("git.md", DOC)
    .hearing([done(json!({"a": 1})), done(json!({"b": 2})), done(json!({"c": 3}))]);
    let played = stage.play();
    let computed = (played.at("computed.a"), played.at("computed.clone"), played.at("computed.c"));
    assert_eq!(computed, (json!(1), json!({"b": 2}), json!(3)));
    assert_eq!((played.at("flags.before"), played.at("flags.after")), (json!(true), json!(true)));
    let skill = &stage.log().wanted[2];
    assert!(task(skill).prompt.starts_with("Use the skill `tidy` with the arguments: --fast."));
}

#[test]
fn failed_pattern_fails_its_node() {
    let stage = Stage::doing(json!([{"type": "invoke_pattern", "path": "git.md"}]));
    let played = stage.file("git.md", DOC).hearing([failed("not done")]).play();
    assert_eq!(played.failure(), "invoke_pattern: not done");
}

fn fetching() -> Stage {
    Stage::doing(json!([
        {"type": "web_fetch", "url": "http://x/", "store_as": "page", "prompt": "What is it, ${who}?"},
        {"type": "set_state", "field": "seen", "value": "${computed.page.content}"},
    ]))
    .beginning(json!({"who": "you"}))
    .world(|_| Ok(json!({"status": 200, "content": "a long page", "url": "http://x/"})))
}

#[test]
fn web_fetch_prompt_replaces_page_content_with_reply() {
    let stage = fetching().hearing([done(json!("a page"))]);
    let log = stage.log();
    let (task, cursor) = (task(&log.wanted[0]), &log.records[0].cursor);
    assert!(task.prompt.starts_with("What is it, you?") && task.prompt.contains("a long page"));
    assert_eq!((task.contract, cursor.partial.is_some()), (OutputFormat::Text, true));
    assert_eq!(log.operations.len(), 1, "the page is fetched once");
    let played = stage.play();
    let page = json!({"status": 200, "content": "a page", "url": "http://x/"});
    assert_eq!((played.at("computed.page"), played.at("seen")), (page, json!("a page")));
    assert_eq!(played.state.cursor.partial, None);
}

#[test]
fn failed_web_fetch_prompt_fails_node() {
    assert_eq!(fetching().hearing([failed("no")]).play().failure(), "web_fetch: no");
}

#[test]
fn missing_page_skips_web_fetch_prompt() {
    for status in [0, 404] {
        let page = json!({"status": status, "content": null, "url": "http://x/"});
        let stage = fetching().world(move |_| Ok(page.clone()));
        assert_eq!((stage.play().at("seen"), stage.log().wanted.len()), (json!(null), 1));
    }
}

fn spawning(action: &Value) -> Stage {
    let then = json!({"type": "set_state", "field": "seen", "value": "${computed.got}"});
    let stage = Stage::doing(json!([action, then])).file("sub/START.md", "Do it.");
    stage.beginning(json!({"who": "you", "seen": null}))
}

fn agent(more: &Value) -> Value {
    let mut agent = json!({"type": "spawn_agent", "subagent_type": "scout", "prompt": "Look, ${who}", "store_as": "got"});
    agent.as_object_mut().expect("a map").extend(more.as_object().cloned().unwrap_or_default());
    agent
}

#[test]
fn spawned_agent_is_awaited_and_its_result_stored() {
    for (result, got) in
        [("text", json!("text")), ("{\"a\":[1]}", json!({"a": [1]})), ("12", json!("12"))]
    {
        let stage = spawning(&agent(&json!({}))).hearing([done(json!(result))]);
        assert_eq!(stage.play().at("seen"), got);
        let log = stage.log();
        let AdvanceNext::Action(NextAction::Agent { spec, background: false, joined: false }) =
            &log.wanted[0]
        else {
            panic!("{:?}", log.wanted)
        };
        let task = spec.task.as_deref().expect("a task");
        assert!(task.prompt.starts_with("You act as the `scout` agent.\n\nLook, you"), "{task:?}");
    }
    let played = spawning(&agent(&json!({}))).hearing([failed("it was said why")]).play();
    assert_eq!(played.failure(), "spawn_agent: unusable");
}

#[test]
fn background_agent_stores_its_id_without_waiting() {
    for yes in [json!("true"), json!("${flags.ready}")] {
        let stage = spawning(&agent(&json!({"run_in_background": yes})));
        let stage = stage.beginning(json!({"who": "you", "seen": null, "flags": {"ready": true}}));
        assert!(matches!(
            stage.log().wanted[0],
            AdvanceNext::Action(NextAction::Agent { background: true, .. })
        ));
    }
    let stage = spawning(&agent(&json!({"run_in_background": true})));
    let (played, log) = stage.play_and_die(usize::MAX);
    assert_eq!(played.at("seen"), json!("main.1"));
    assert!(matches!(
        log.wanted[0],
        AdvanceNext::Action(NextAction::Agent { background: true, .. })
    ));
}

#[test]
fn run_folder_and_run_state_spawn_agents() {
    let folder = json!({"type": "run_folder", "path": "sub", "variables": {"a": "${who}", "n": 1}, "input": "in", "store_as": "got"});
    let log = spawning(&folder).hearing([done(json!("x"))]).log();
    let AdvanceNext::Action(NextAction::Agent { spec, .. }) = &log.wanted[0] else {
        panic!("{:?}", log.wanted)
    };
    assert_eq!(spec.folder.as_ref().map(raymond_model::id::Folder::as_str), Some("sub"));
    assert_eq!(spec.state.as_str(), "START.md");
    let given: Vec<_> =
        spec.variables.iter().map(|(name, value)| format!("{name}={value}")).collect();
    assert_eq!(given, ["a=you", "input=in", "n=1"]);
    let state = json!({"type": "run_state", "state": "${who}.md", "store_as": "got"});
    let log = spawning(&state).hearing([done(json!("x"))]).log();
    let AdvanceNext::Action(NextAction::Agent { spec, .. }) = &log.wanted[0] else {
        panic!("{:?}", log.wanted)
    };
    assert_eq!((spec.folder.is_none(), spec.state.as_str()), (true, "you.md"));
}

#[test]
fn each_turn_gets_its_own_record() {
    let pattern = json!({"type": "invoke_pattern", "path": "git.md"});
    let stage = Stage::new(json!({
        "start": node(json!([pattern, pattern]), "then"),
        "then": {"type": "reference", "doc": "git.md", "next_node": "done"},
    }));
    let wait_result = [done(json!({})), done(json!({})), done(json!({}))];
    let log = stage.file("git.md", DOC).hearing(wait_result).log();
    assert_eq!(
        log.wanted
            .iter()
            .filter(|then| matches!(then, AdvanceNext::Action(NextAction::Task(_))))
            .count(),
        3
    );
    assert_eq!(log.records.iter().filter(|record| record.task.is_some()).count(), 3);
}

#[test]
fn node_options_apply_to_each_of_its_turns() {
    let needs = json!({"model": "opus", "effort": "low", "on_denied": "fail"});
    let options_of = |task: &PromptTask| {
        let TurnOptions { effort, on_denied, .. } = task.options;
        (task.model.as_ref().map(ToString::to_string), effort, on_denied)
    };
    let expected = (Some("opus".to_owned()), Some(EffortLevel::Low), Some(OnDenied::Fail));
    let log = reference(&needs).with("model", json!("haiku")).hearing([done(json!({}))]).log();
    assert_eq!(options_of(task(&log.wanted[0])), expected);
    let mut skill = node(json!([{"type": "invoke_skill", "skill": "tidy"}]), "done");
    skill.as_object_mut().expect("a map").extend(needs.as_object().cloned().unwrap_or_default());
    let log = Stage::new(json!({"start": skill})).hearing([done(json!({}))]).log();
    assert_eq!(options_of(task(&log.wanted[0])), expected);
    let spawn =
        json!({"type": "spawn_agent", "subagent_type": "x", "prompt": "look", "store_as": "a"});
    let mut spawn = node(json!([spawn]), "done");
    spawn.as_object_mut().expect("a map").extend(needs.as_object().cloned().unwrap_or_default());
    let log = Stage::new(json!({"start": spawn})).hearing([done(json!("x"))]).log();
    let AdvanceNext::Action(NextAction::Agent { spec, .. }) = &log.wanted[0] else {
        panic!("{:?}", log.wanted)
    };
    assert_eq!(options_of(spec.task.as_deref().expect("a task")), expected);
}

#[test]
fn answer_to_node_with_schema_is_merged_as_object() {
    let schema = json!({"type": "object", "properties": {"score": {"type": "integer"}}});
    let stage = reference(&json!({ "output": schema })).hearing([done(json!({"score": 7}))]);
    let log = stage.log();
    let task = task(&log.wanted[0]);
    assert_eq!((task.contract, task.output.is_some()), (OutputFormat::Object, true));
    assert!(!task.prompt.contains("<result>"), "the schema says the form: {}", task.prompt);
    assert_eq!(stage.play().at("computed.score"), json!(7));
}

#[test]
fn raw_answer_has_fields_and_is_its_text_as_a_whole() {
    let option = |id: &str| json!({"id": id, "label": id.to_uppercase(), "description": "d"});
    let show = json!({"type": "display_message", "message": "${user_responses.start.raw}: ${user_responses.start.raw.text ?? 'none'}, ${user_responses.start.raw.selected ?? 'none'}"});
    let compute = json!({"type": "compute", "expression": "user_responses.start.raw == 'svn' && start.raw.text.split('v').length == 2", "store_as": "computed.same"});
    let ask = |options: Value, expected: Value| {
        json!({
            "start": {
                "type": "user_prompt",
                "prompt": {"question": "q", "header": "h", "options": options},
                "on_response": {
                    "git": {"next_node": "show"},
                    "other": {"next_node": "show"},
                },
            },
            "show": node(json!([show]), "ask"),
            "ask": {
                "type": "conditional",
                "condition": {"type": "state_equals", "field": "user_responses.start.raw.selected", "value": expected},
                "branches": {"true": "done", "false": "compute"},
            },
            "compute": node(json!([compute]), "done"),
        })
    };
    let typed =
        Stage::new(ask(json!([option("git")]), json!("git"))).hearing([answered("svn")]).play();
    assert_eq!(typed.shown[0], "svn: svn, none");
    assert_eq!(typed.at("computed.same"), json!(true));
    let chosen =
        Stage::new(ask(json!([option("git")]), json!("git"))).hearing([answered("1")]).play();
    assert_eq!(chosen.shown[0], "1: none, git");
    assert_eq!(chosen.at("computed.same"), json!(null));
    let options = || json!([option("git"), option("other")]);
    let other = Stage::new(ask(options(), json!("other"))).hearing([answered("2")]).play();
    assert_eq!(other.shown[0], "2: none, other");
    let typed = Stage::new(ask(options(), json!("git"))).hearing([answered("svn")]).play();
    assert_eq!(typed.shown[0], "svn: svn, none");
}

#[test]
fn described_value_is_asked_for_and_stored_as_data() {
    let prose = "# Scan for files with ${who}.\n#\n#  - Return: [{ name }]\n";
    let stage = || {
        Stage::doing(json!([
            {"type": "compute", "expression": prose, "store_as": "computed.found"},
            {"type": "evaluate", "expression": "len(computed.found) == 1", "set_flag": "one"},
        ]))
        .beginning(json!({"who": "you"}))
    };
    let asked = stage().hearing([done(json!("```json\n[{\"name\": \"a\"}]\n```"))]);
    let log = asked.log();
    let task = task(&log.wanted[0]);
    assert_eq!(task.contract, OutputFormat::Text);
    let described =
        "<description>\nScan for files with you.\n\n - Return: [{ name }]\n</description>";
    assert!(
        task.prompt.contains(described) && task.prompt.contains("\"who\": \"you\""),
        "{}",
        task.prompt
    );
    let played = asked.play();
    assert_eq!(played.at("computed.found"), json!([{"name": "a"}]));
    assert_eq!(played.at("flags.one"), json!(true));
    let text = stage().hearing([done(json!("nothing"))]).play();
    assert_eq!(text.at("computed.found"), json!("nothing"));
    assert_eq!(stage().hearing([failed("no")]).play().failure(), "compute: no");
}
