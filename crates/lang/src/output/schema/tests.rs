//! Schemas that are refused, answers that do not match, fields by their path.

use serde_json::json;

use super::*;

fn schema(text: &str) -> Result<OutputSchema, String> {
    OutputSchema::new(serde_json::from_str(text).expect("JSON"))
}

const REVIEW: &str = r##"{
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "properties": {
        "why": { "type": "string" },
        "score": { "$ref": "#/$defs/score" },
        "author": { "type": "object", "properties": { "name": { "type": "string" } }, "required": ["name"] },
        "tags": { "type": "array", "items": { "type": "string" } },
        "free": { "type": "object" }
    },
    "required": ["why", "score", "author"],
    "additionalProperties": false,
    "$defs": { "score": { "type": "integer", "minimum": 0, "maximum": 10 } }
}"##;

#[test]
fn invalid_schema_is_error_with_path() {
    let table = [
        ("[]", "a schema is an object"),
        (r#"{"properties":{}}"#, "give its schema `type: object`"),
        (r#"{"type":"array"}"#, "give its schema `type: object`"),
        (r#"{"type":"object","propertes":{}}"#, "did you mean `properties`?"),
        (
            r#"{"type":"object","properties":{"a":{"type":"string","x":1}}}"#,
            "at /properties/a: `x` is not a schema keyword; Claude Code accepts draft-07",
        ),
        (
            r#"{"type":"object","anyOf":[{},{"prefixItems":[]}]}"#,
            "at /anyOf/1: `prefixItems` is not a schema keyword",
        ),
        (
            r#"{"type":"object","properties":{"a":{"$ref":"https://example.com/a"}}}"#,
            "at /properties/a: `$ref: https://example.com/a` leads out of the schema",
        ),
        (
            r##"{"type":"object","properties":{"a":{"$ref":"#/$defs/nobody"}}}"##,
            "this is not a JSON schema",
        ),
        (
            r#"{"type":"object","properties":{"a":{"type":"strin"}}}"#,
            "this is not a JSON schema: at /properties/a/type",
        ),
        (r#"{"type":"object","required":"a"}"#, "this is not a JSON schema: at /required"),
        (
            r#"{"type":"object","properties":{"a":{"pattern":"("}}}"#,
            "this is not a JSON schema: at /properties/a/pattern",
        ),
        (r#"{"type":"object","if":{}}"#, "`if` has no effect without `then` or `else`"),
        (r#"{"type":"object","additionalItems":{}}"#, "unless `items` is a list"),
    ];
    for (text, words) in table {
        let why = schema(text).expect_err(text);
        assert!(why.contains(words), "{text}: {why}");
    }
    let long = format!(r#"{{"type":"object","title":"{}"}}"#, "x".repeat(MAX_SCHEMA_LENGTH));
    assert!(schema(&long).expect_err("too long").contains("bytes long, and may have 65536"));
}

#[test]
fn schema_text_preserves_key_order_and_omits_draft() {
    let read = schema(r#"{"type":"object","$schema":"x","properties":{"why":{},"a":{}}}"#);
    let text = read.expect("a schema").text().to_string();
    assert_eq!(text, r#"{"type":"object","properties":{"why":{},"a":{}}}"#);
}

#[test]
fn invalid_answer_is_error_with_path_and_rule() {
    let schema = schema(REVIEW).expect("a schema");
    let good = json!({"why": "x", "score": 7, "author": {"name": "A"}});
    assert_eq!(schema.check(&good), Ok(()));
    let table = [
        (json!("x"), "at /: \"x\" is not of type \"object\" (rule /type)"),
        (
            json!({"why": "x", "score": 11, "author": {"name": "A"}}),
            "at /score: 11 is greater than the maximum of 10 (rule /$defs/score/maximum)",
        ),
        (
            json!({"why": "x", "score": 1, "author": {}}),
            "at /author: \"name\" is a required property (rule /properties/author/required)",
        ),
        (
            json!({"why": "x", "score": 1, "author": {"name": "A"}, "more": 1}),
            "at /: Additional properties are not allowed ('more' was unexpected) (rule /additionalProperties)",
        ),
    ];
    for (answer, words) in table {
        assert_eq!(schema.check(&answer), Err(words.to_owned()), "{answer}");
    }
    let many = schema.check(&json!({"tags": [1, 2, 3, 4, 5, 6]})).expect_err("many mistakes");
    assert!(many.ends_with("; and 4 more"), "{many}");
}

#[test]
fn field_path_resolves_to_known_missing_or_open() {
    let schema = schema(REVIEW).expect("a schema");
    let required = |path: &str| match schema.field(path) {
        SchemaField::Known { is_required, .. } => is_required,
        other => panic!("{path}: {other:?}"),
    };
    assert!(required("why") && required("score") && required("author.name"));
    assert!(!required("tags") && !required("tags.0"));
    let table = [
        ("scor", SchemaField::Missing { similar: Some("score") }),
        ("author.nmae", SchemaField::Missing { similar: Some("name") }),
        ("why.deeper", SchemaField::Missing { similar: None }),
        ("free.anything", SchemaField::Open),
    ];
    for (path, field) in table {
        assert_eq!(schema.field(path), field, "{path}");
    }
}
