//! The meaning of an answer: finding its object, the transition that follows, its mistakes.

use std::collections::BTreeMap;

use super::*;

const SCHEMA: &str = r#"{"type":"object","properties":{"verdict":{"enum":["approve","revise"]},"score":{"type":"integer"}},"required":["verdict"]}"#;

fn goto(target: &str) -> Transition {
    let target = StateName::parse(target).expect("a state");
    Transition::Goto { target, scope: None, variables: Variables::new() }
}

fn result(payload: &str) -> Transition {
    Transition::Result {
        payload: payload.to_owned(),
        variables: Variables::new(),
        structured: true,
    }
}

fn key(schema: SchemaOrigin) -> OutputKey {
    let when = |verdict: &str| {
        OutputRule::tests(&serde_json::json!({ "verdict": verdict })).expect("tests")
    };
    let rules = vec![
        OutputRule { when: when("revise"), transition: goto("FIX.md") },
        OutputRule { when: when("approve"), transition: result("") },
    ];
    OutputKey { schema, place: SourcePlace { line: 2, column: 9 }, rules }
}

fn contract() -> OutputContract {
    let written = serde_json::from_str(SCHEMA).expect("JSON");
    key(SchemaOrigin::Inline(written)).load(&BTreeMap::new()).expect("a contract")
}

#[test]
fn structured_output_takes_precedence_over_text() {
    let read = contract().read(Some(r#"{"verdict":"approve"}"#), r#"{"verdict":"revise"}"#);
    assert_eq!(read, Ok(result(r#"{"verdict":"approve"}"#)));
}

#[test]
fn json_answer_must_be_whole_text_or_only_code_block() {
    let object = r#"{"verdict":"revise","score":3}"#;
    let mut expected = goto("FIX.md");
    if let Transition::Goto { variables, .. } = &mut expected {
        variables.insert(RESULT.to_owned(), object.to_owned());
    }
    for text in [
        object.to_owned(),
        format!("\n {object}\n"),
        format!("```json\n{object}\n```"),
        format!("Here it is:\n```\n{object}\n```\nDone."),
    ] {
        assert_eq!(contract().read(None, &text), Ok(expected.clone()), "{text}");
    }
    for text in
        ["", "Approved.", "[1]", &format!("I say {object}"), &format!("<result>{object}</result>")]
    {
        assert!(
            matches!(contract().read(None, text), Err(ProtocolViolation::Answer { .. })),
            "{text}"
        );
    }
}

#[test]
fn invalid_answer_is_error_that_names_broken_rule() {
    let why = |text: &str| contract().read(None, text).expect_err("wrong").to_string();
    assert_eq!(why("Fine."), "the answer is not one JSON object, it is: \"Fine.\"");
    let schema = why(r#"{"verdict":"maybe"}"#);
    assert!(
        schema.contains("does not match the schema: at /verdict: \"maybe\" is not one of"),
        "{schema}"
    );
    assert!(schema.contains("(rule /properties/verdict/enum)"), "{schema}");
    let mut contract = contract();
    contract.rules.truncate(1);
    let nowhere = contract.read(None, r#"{"verdict":"approve"}"#).expect_err("no rule");
    assert_eq!(nowhere.to_string(), "no transition of this state is for this answer");
}

#[test]
fn a_schema_is_read_from_json_and_yaml_files() {
    let files = |name: &str, text: &str| BTreeMap::from([(name.to_owned(), text.to_owned())]);
    let load = |name: &str, files: &BTreeMap<String, String>| {
        key(SchemaOrigin::File(StateName::parse(name).expect("a name"))).load(files)
    };
    let yaml = "type: object\nproperties:\n  verdict: { enum: [approve, revise] }\n  score: { type: integer }\nrequired: [verdict]\n";
    assert_eq!(load("s.json", &files("s.json", SCHEMA)), Ok(contract()));
    assert_eq!(load("s.yaml", &files("s.yaml", yaml)), Ok(contract()));
    let table = [
        (
            "s.json",
            "{\n \"type\": }",
            Some("s.json"),
            2,
            "this is not valid JSON: expected a JSON value",
        ),
        ("s.json", "{\"type\":\"array\"}", Some("s.json"), 1, "give its schema `type: object`"),
        ("s.yaml", "type: object\ntype: object\n", Some("s.yaml"), 2, "is already on line 1"),
        ("t.json", "{}", None, 2, "s.json: there is no such file"),
    ];
    for (name, text, file, line, words) in table {
        let asked = if name == "t.json" { "s.json" } else { name };
        let SchemaError { file: of, error } = load(asked, &files(name, text)).expect_err(words);
        assert_eq!((of.as_ref().map(StateName::as_str), error.at.line), (file, line), "{error}");
        assert!(error.message.contains(words), "{error}");
    }
    assert!(schema_file("s.txt").expect_err("no schema").contains("NAME.json or NAME.yaml"));
}
