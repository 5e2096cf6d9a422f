//! Tests of the files that are kept: each version is read once, and no more of them than the bound.

use std::collections::BTreeMap;

use super::*;
use raymond_model::tests::scene::{Scene, goto, state};

const GRAPH: &str = "{ name: g, version: 1.0.0, description: d, initial_state: {}, start_node: n, \
    nodes: { n: { type: action, actions: [], on_success: e, on_failure: e } }, \
    endings: { e: { type: success, message: m } } }";

const PROGRAM: &str = "(workflow w (state s (terminal)))";

fn files(files: &[(&str, &str)]) -> BTreeMap<String, String> {
    files.iter().map(|&(name, text)| (name.to_owned(), text.to_owned())).collect()
}

/// Returns the workflow of a file for an agent in it.
fn loaded(cache: &WorkflowCache, file: &str, text: &str) -> Result<LoadedWorkflow, TurnFailure> {
    let mut scene = Scene::begin();
    scene.take("main", goto(file));
    cache.load(scene.agent("main"), None, &files(&[(file, text)]))
}

/// Returns the address of what was read.
fn address(workflow: &LoadedWorkflow) -> *const () {
    match workflow {
        LoadedWorkflow::Graph(graph) => Rc::as_ptr(graph).cast(),
        LoadedWorkflow::Program(program, _) => Rc::as_ptr(program).cast(),
        LoadedWorkflow::Script(script) => Rc::as_ptr(script).cast(),
        LoadedWorkflow::Prompts => std::ptr::null(),
    }
}

#[test]
fn each_version_of_each_kind_of_file_is_read_once() {
    let cache = WorkflowCache::default();
    for (file, text) in [("g.yaml", GRAPH), ("p.lisp", PROGRAM), ("b.sh", "echo")] {
        let first = loaded(&cache, file, text).expect(file);
        let again = loaded(&cache, file, text).expect(file);
        assert!(!address(&first).is_null(), "{file}");
        assert_eq!(address(&first), address(&again), "{file}");
    }
    let document = |text: &str| {
        cache.document(None, &state("A.md"), &files(&[("A.md", text)])).expect("a prompt")
    };
    let (first, again, other) = (document("one"), document("one"), document("two"));
    assert!(Rc::ptr_eq(&first, &again) && !Rc::ptr_eq(&first, &other));
    assert_eq!(cache.kept.borrow().len(), 5);
}

#[test]
fn graph_and_script_stay_as_first_entered_and_program_follows_its_text() {
    let cache = WorkflowCache::default();
    let same = |file: &str, old: &str, new: &str| {
        let old = loaded(&cache, file, old).expect(file);
        address(&old) == address(&loaded(&cache, file, new).expect(file))
    };
    assert!(same("g.yaml", GRAPH, &GRAPH.replace("message: m", "message: other")));
    assert!(same("b.sh", "echo", "true"));
    assert!(!same("p.lisp", PROGRAM, &PROGRAM.replace("state s", "state t")));
}

#[test]
fn mistakes_are_not_kept_and_number_of_files_is_bounded() {
    let cache = WorkflowCache::default();
    let wrong = loaded(&cache, "p.lisp", "(workflow").map(|_| ()).expect_err("wrong");
    assert_eq!(wrong.cause, FailureCause::Workflow);
    assert!(cache.kept.borrow().is_empty());
    for number in 0..=MAX_KEPT {
        let text = number.to_string();
        cache.document(None, &state("A.md"), &files(&[("A.md", &text)])).expect("a prompt");
    }
    assert_eq!(cache.kept.borrow().len(), 1);
}
