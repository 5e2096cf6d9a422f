//! Tests of the seam: each language by what it yields for an agent that enters its state.

use std::collections::BTreeMap;
use std::rc::Rc;

use serde_json::{Map, json};

use super::*;
use crate::domain::apply::tests::scene::{Scene, goto, state};
use crate::domain::operation::Operation;
use crate::language::graph::profile::GraphProfile;
use crate::language::graph::read::read as read_graph;
use crate::language::graph::vocabulary::GraphVocabulary;
use crate::language::program::read::read as read_program;

/// Returns a run whose agent is in the state of a file.
fn in_state(file: &str) -> Scene {
    let mut scene = Scene::begin();
    scene.take("main", goto(file));
    scene
}

fn resumed(workflow: &LoadedWorkflow, scene: &Scene, input: ResumeInput) -> ResumeOutcome {
    let builtins = Map::new();
    let environment = ResumeEnvironment {
        agent: scene.agent("main"),
        run: &scene.run.workflow_id,
        facts: &scene.run.facts,
        settings: &scene.run.settings,
        builtins: &builtins,
        working_dir: None,
        script_timeout_ms: 1000,
        now: Timestamp(0),
    };
    resume(workflow, SuspendedExecution::Entered, input, &environment)
}

/// Returns a graph whose first node has these actions.
fn graph(actions: &serde_json::Value) -> LoadedWorkflow {
    let text = json!({
        "name": "flow", "version": "1.0.0", "description": "a flow", "entry_preconditions": [],
        "initial_state": {}, "start_node": "start",
        "nodes": {"start": {"type": "action", "actions": actions, "on_success": "done", "on_failure": "done"}},
        "endings": {"done": {"type": "success", "message": "done"}},
    });
    let files: BTreeMap<String, String> = BTreeMap::new();
    let vocabulary = GraphVocabulary::default();
    let reading = read_graph(
        "flow.yaml",
        None,
        &text.to_string(),
        &vocabulary,
        &files,
        GraphProfile::Lenient,
    );
    LoadedWorkflow::Graph(Rc::new(reading.program.expect("a graph")))
}

#[test]
fn prompt_needs_turn() {
    let scene = Scene::begin();
    let next = resumed(&LoadedWorkflow::Prompts, &scene, ResumeInput::Entered);
    assert!(matches!(next, ResumeOutcome::Turn));
}

#[test]
fn graph_reads_before_it_is_recorded_and_records_before_it_writes() {
    let scene = in_state("flow.yaml");
    let reads = graph(&json!([{"type": "read_file", "path": "a", "store_as": "computed.a"}]));
    let next = resumed(&reads, &scene, ResumeInput::Entered);
    let ResumeOutcome::Needs { activity: Activity::Operation(operation), suspended } = next else {
        panic!("{next:?}")
    };
    assert_eq!(operation, Operation::ReadFile { path: "a".to_owned() });
    assert!(matches!(suspended, SuspendedExecution::Walk(_)));
    let writes = graph(&json!([{"type": "write_file", "path": "a", "content": "x"}]));
    let next = resumed(&writes, &scene, ResumeInput::Entered);
    let ResumeOutcome::Advanced(advance) = next else { panic!("{next:?}") };
    assert_eq!(advance.next, AdvanceNext::Activity("write_file".to_owned()));
}

#[test]
fn program_begins_before_it_advances() {
    let files: BTreeMap<String, String> = BTreeMap::new();
    let reading = read_program("p.lisp", "(workflow w (state s (terminal)))", &files);
    let program = reading.program.expect("a program");
    let workflow = LoadedWorkflow::Program(Rc::new(program), "p.lisp".to_owned());
    let next = resumed(&workflow, &in_state("p.lisp"), ResumeInput::Entered);
    let ResumeOutcome::Begins(start) = next else { panic!("{next:?}") };
    assert_eq!((&*start.start, start.definition.file.as_str()), ("s", "p.lisp"));
}

#[test]
fn script_runs_and_its_last_line_is_the_reply() {
    let files: BTreeMap<String, String> = [("b.sh".to_owned(), "echo".to_owned())].into();
    let script = PreparedScript::read(&state("b.sh"), None, &files).expect("a script");
    let (workflow, scene) = (LoadedWorkflow::Script(script), in_state("b.sh"));
    let next = resumed(&workflow, &scene, ResumeInput::Entered);
    let ResumeOutcome::Needs { activity: Activity::Operation(operation), .. } = next else {
        panic!("{next:?}")
    };
    let Operation::RunScript { file, interpreter, timeout_ms, .. } = operation else {
        panic!("{operation:?}")
    };
    assert_eq!((file.as_str(), interpreter, timeout_ms), ("b.sh", vec!["sh".to_owned()], 1000));
    let output = ActivityResult::Value(json!({"stdout": "x\n<result>y</result>\n"}));
    let next = resumed(&workflow, &scene, ResumeInput::Activity(Ok(output)));
    assert!(matches!(next, ResumeOutcome::Replied(reply) if reply == "<result>y</result>"));
    let failed = resumed(&workflow, &scene, ResumeInput::Activity(Err("it broke".to_owned())));
    assert!(
        matches!(failed, ResumeOutcome::Failed(failure) if failure.cause == FailureCause::Crash)
    );
    let refused = resumed(&workflow, &scene, ResumeInput::Refused("no trust".to_owned()));
    assert!(
        matches!(refused, ResumeOutcome::Failed(failure) if failure.cause == FailureCause::Workflow)
    );
}
