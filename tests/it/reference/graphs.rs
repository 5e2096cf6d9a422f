//! Graphs, their conditions, actions and expressions: each type, each parameter and each example.

use std::collections::BTreeSet;

use jsonschema::Validator;
use raymond::language::expression::{function_names, method_names};
use raymond::language::graph::vocabulary::GraphVocabulary;
use raymond::language::schema::FileSchema;
use raymond::language::turn_options;
use serde_json::{Value, json};

use super::page::{listed, row_of, section, spans};
use super::{assert_lists, keys_below, reference};

fn schema() -> Value {
    FileSchema::Graph.schema(&GraphVocabulary::new())
}

/// Returns the types that a definition of the schema distinguishes, each with its shape.
fn types(definition: &str) -> Vec<(String, Value)> {
    let schema = schema();
    let cases = schema["definitions"][definition]["allOf"].as_array().expect("cases").clone();
    let of_case = |case: Value| {
        let name = case["if"]["properties"]["type"]["const"].as_str().expect("a name").to_owned();
        (name, case["then"].clone())
    };
    cases.into_iter().map(of_case).collect()
}

#[test]
fn graphs_lists_each_node_type_with_its_keys() {
    let page = reference("graphs.md");
    let shared = listed(&section(&page, "Nodes"));
    let mut missing = Vec::new();
    for (name, shape) in types("node") {
        let own = listed(&section(&page, &format!("`{name}`")));
        let parts: BTreeSet<&str> = own.iter().flat_map(|name| name.split('.')).collect();
        let keys = keys_below(&shape).into_iter().filter(|key| {
            !turn_options::KEYS.contains(&key.as_str())
                && !["type", "description", "model"].contains(&key.as_str())
        });
        missing.extend(
            keys.filter(|key| !parts.contains(key.as_str())).map(|key| (name.clone(), key)),
        );
    }
    assert!(missing.is_empty(), "graphs.md does not list {missing:?}");
    assert!(shared.contains("type") && shared.contains("description"), "the keys of all nodes");
}

#[test]
fn graphs_lists_each_key_of_endings() {
    let own = listed(&section(&reference("graphs.md"), "Endings"));
    let known = keys_below(&schema()["properties"]["endings"]["additionalProperties"]);
    let missing: Vec<&String> = known.iter().filter(|key| !own.contains(*key)).collect();
    assert!(missing.is_empty(), "graphs.md does not list {missing:?}");
}

/// Returns the names in a cell of parameters, each with whether it is optional: `` `path`, `check? = exists`
/// word ``.
fn parameters(cell: &str) -> BTreeSet<(&str, bool)> {
    fn parameter(span: &str) -> (&str, bool) {
        let name = span.split(' ').next().unwrap_or(span);
        name.strip_suffix('?').map_or((name, false), |name| (name, true))
    }
    spans(cell).map(parameter).collect()
}

#[test]
fn each_condition_and_action_has_its_parameters_and_an_example() {
    let page = reference("conditions-and-actions.md");
    let mut wrong = Vec::new();
    for (name, shape) in [types("precondition"), types("consequence")].concat() {
        let Some(row) = row_of(&page, &name) else {
            wrong.push(format!("{name} has no row"));
            continue;
        };
        let required: Vec<&str> = shape["required"]
            .as_array()
            .expect("a list")
            .iter()
            .filter_map(Value::as_str)
            .collect();
        let names = shape["properties"].as_object().expect("a mapping").keys();
        let known: BTreeSet<(&str, bool)> = names
            .filter(|key| !["type", "error_message"].contains(&key.as_str()))
            .map(|key| (key.as_str(), !required.contains(&key.as_str())))
            .collect();
        let told = parameters(&row[1]);
        if told != known {
            wrong.push(format!(
                "{name} has the parameters {known:?}, not {told:?} (true: optional)"
            ));
        }
        if !page.contains(&format!("type: {name}")) {
            wrong.push(format!("{name} has no example"));
        }
    }
    assert!(wrong.is_empty(), "conditions-and-actions.md: {wrong:#?}");
}

#[test]
fn examples_of_conditions_and_actions_fit_the_schema() {
    // The examples are lists of conditions or of actions.
    let page = reference("conditions-and-actions.md");
    let validator = |definition: &str| -> Validator {
        let mut schema = schema();
        schema["allOf"] = json!([{ "$ref": format!("#/definitions/{definition}") }]);
        for key in ["properties", "required", "additionalProperties"] {
            schema.as_object_mut().expect("a mapping").remove(key);
        }
        jsonschema::validator_for(&schema).expect("it is a schema")
    };
    let [conditions, actions] = ["precondition", "consequence"].map(validator);
    let mut count = 0;
    for block in page.split("```yaml\n").skip(1).filter_map(|rest| rest.split("```").next()) {
        let steps: Vec<Value> = serde_yaml::from_str(block).expect(block);
        for step in steps {
            let fits = conditions.is_valid(&step) || actions.is_valid(&step);
            assert!(fits, "neither a condition nor an action: {step}");
            count += 1;
        }
    }
    assert!(count > 50, "only {count} examples were found");
}

#[test]
fn expressions_lists_each_function_and_method() {
    assert_lists("expressions.md", function_names().chain(method_names()));
}
