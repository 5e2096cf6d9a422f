//! Graphs with types that a program adds: they run in that program, and plain raymond refuses them.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};

use raymond::domain::id::AgentId;
use raymond::domain::run::AgentEnding;
use raymond::{RecoveryClass, Runtime};
use serde_json::{Value, json};

use crate::support::Test;

#[expect(dead_code, reason = "its main is for the command line")]
#[path = "../../../examples/own_types.rs"]
mod example;

fn order() -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/order").display().to_string()
}

#[test]
fn graph_uses_custom_types_of_embedding_program() {
    let test = Test::new();
    let dir = test.dir().display().to_string();
    let stock = BTreeMap::from([("lamp".to_owned(), 3)]);
    let warehouse = Arc::new(Mutex::new(example::Warehouse { stock, orders: 0 }));
    let outcome = example::run(&order(), &dir, &warehouse).expect("a run");
    let result = outcome.result(&AgentId::main()).expect("a good end");
    let result: Value = serde_json::from_str(result).expect("JSON");
    assert_eq!(result["message"], "Order 1: 2 of lamp, 1 left");
    assert_eq!(warehouse.lock().expect("whole").orders, 1);

    let outcome = example::run(&order(), &dir, &warehouse).expect("a run");
    let [main] = outcome.run.finished.as_slice() else { panic!("{:?}", outcome.run) };
    let AgentEnding::Error(error) = &main.ending else { panic!("{main:?}") };
    assert!(error.contains("There are not 2 of lamp"), "{error}");
    assert_eq!(warehouse.lock().expect("whole").orders, 1);
}

#[test]
fn plain_raymond_rejects_custom_types() {
    let test = Test::new();
    for arguments in [["check", &order()], ["run", &order()]] {
        test.raymond(&arguments)
            .code(65)
            .says("workflow.yaml:14:24: WF301 Unknown precondition type: `in_stock`")
            .says("workflow.yaml:20:17: WF302 Unknown consequence type: `reserve`");
    }
}

#[test]
fn duplicate_type_name_is_error() {
    let test = Test::new();
    let builder = || {
        Runtime::builder().workflow(order()).dir(test.dir()).user_state(test.root().join("state"))
    };
    let never = |_| async { Ok(json!(null)) };
    let known = builder().consequence("set_flag", &[], &[], RecoveryClass::Read, never);
    let twice = builder().precondition("in_stock", &[], &[], never).precondition(
        "in_stock",
        &[],
        &[],
        never,
    );
    for (builder, name) in [(known, "set_flag"), (twice, "in_stock")] {
        let error = builder.run_here().expect_err("taken").to_string();
        assert_eq!(error, format!("the type `{name}` is there already; give yours another name"));
    }
}

#[test]
fn mismatched_type_parameters_are_rejected_before_run() {
    let test = Test::new();
    let builder =
        Runtime::builder().workflow(order()).dir(test.dir()).user_state(test.root().join("state"));
    let never = |_| async { Ok(json!(null)) };
    let error = builder
        .precondition("in_stock", &["item", "shelf"], &["count"], never)
        .consequence("reserve", &["item"], &[], RecoveryClass::Uncertain, never)
        .run_here()
        .expect_err("it does not fit");
    let error = error.to_string();
    assert!(error.contains("WF303") && error.contains("shelf"), "{error}");
    assert!(error.contains("`count`"), "{error}");
}
