//! Tests of the prompt asked in a state, and of the targets that a reply may name.

use std::collections::BTreeMap;

use super::*;
use raymond_model::id::{AgentId, RunId};

fn scope(files: &[(&str, &str)]) -> BTreeMap<String, String> {
    files.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect()
}

fn at(state: &str, variables: &[(&str, &str)]) -> PromptContext {
    PromptContext {
        workflow: RunId::parse("run-1").expect("a run"),
        agent: AgentId::main().child(2),
        state: StateName::parse(state).expect("a state"),
        variables: variables.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect(),
        results: None,
        run_variables: [
            ("who".to_owned(), "run".to_owned()),
            ("only".to_owned(), "run".to_owned()),
        ]
        .into(),
    }
}

#[test]
fn prompt_is_filled_from_state_before_run_variables() {
    let files = scope(&[(
        "A.md",
        "{{workflow_id}} {{agent_id}} {{state}} {{result}} {{who}} {{only}} {{nobody}}",
    )]);
    let ask =
        step(&at("A.md", &[("result", "{{who}}"), ("who", "state")]), &files).expect("a prompt");
    assert_eq!(ask.prompt, "run-1 main.2 A.md {{who}} state run {{nobody}}");
    let nobody = UnfilledPlaceholder { name: "nobody".into(), place: "A.md:1".into() };
    assert_eq!(ask.unfilled, [nobody]);
}

#[test]
fn built_in_placeholder_is_not_overridden_by_variable() {
    let ask =
        step(&at("A.md", &[("state", "x")]), &scope(&[("A.md", "{{state}}")])).expect("a prompt");
    assert_eq!(ask.prompt, "A.md");
}

#[test]
fn invalid_or_missing_prompt_file_is_error_with_location() {
    let files = scope(&[("A.md", "---\nmodel: x y\n---\nDo it.")]);
    let message = |state: &str| step(&at(state, &[]), &files).expect_err("wrong").to_string();
    assert_eq!(
        message("A.md"),
        "A.md:2:8: `x y` cannot be the name of a model; write one word, such as opus, sonnet, haiku or a full name"
    );
    assert_eq!(message("a.MD"), "a.MD: there is no such file in the workflow; did you mean A.md?");
}

#[test]
fn transition_to_missing_file_is_violation() {
    let files = scope(&[("NEXT.md", "x")]);
    let policy = TransitionPolicy::default();
    assert!(read(&policy, &files, "<goto>NEXT.md</goto>").is_ok());
    let violation = read(&policy, &files, "<goto>NEXTT.md</goto>").expect_err("no such file");
    assert_eq!(
        violation.to_string(),
        "<goto>NEXTT.md</goto>: NEXTT.md: there is no such file in the workflow; did you mean NEXT.md?"
    );
    let late = "<ask next=\"NEXT.md\" timeout=\"1h\" timeout_next=\"LATE.md\">?</ask>";
    let violation = read(&policy, &files, late).expect_err("no such file");
    assert!(violation.to_string().contains("LATE.md"), "{violation}");
    let violation =
        read(&policy, &files, "<fork next=\"GONE.md\">NEXT.md</fork>").expect_err("no such file");
    assert!(violation.to_string().contains("GONE.md"), "{violation}");
}
