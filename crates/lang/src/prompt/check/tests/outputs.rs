//! Outputs: schemas, rules over their fields, and the placeholders of fields.

use super::*;

const SCHEMA: &str = r#"{"type":"object","properties":{"verdict":{"enum":["approve","revise"]},"score":{"type":"integer","minimum":0,"maximum":10},"why":{"type":"string"}},"required":["verdict","score","why"],"additionalProperties":false}"#;

/// Returns the problems of a state with an output and these entries, which leads to FIX.
fn diagnostics_of(schema: &str, output: &str, entries: &[&str], text: &str) -> Vec<String> {
    let entries: Vec<String> = entries.iter().map(|entry| format!("  - {{ {entry} }}\n")).collect();
    let entries = entries.concat();
    let start = format!("---\noutput: {output}\nallowed_transitions:\n{entries}---\njudge\n");
    let fix = prompt("tag: result", text);
    checked(&[("START.md", &start), ("FIX.md", &fix), ("v.json", schema)], None, &[])
}

const REVISE: &str = "tag: goto, target: FIX.md, when: { verdict: revise }";
const APPROVE: &str = "tag: result, when: { verdict: approve }";

#[test]
fn valid_output_has_no_diagnostics() {
    let text = "{{result}} {{result.score}} {{result.why}}";
    assert_eq!(diagnostics_of(SCHEMA, "v.json", &[REVISE, APPROVE], text), [""; 0]);
    let low = "tag: goto, target: FIX.md, when: { verdict: revise, score: \"< 5\" }";
    assert_eq!(diagnostics_of(SCHEMA, "v.json", &[low, REVISE, APPROVE], text), [""; 0]);
    let alone = format!("---\noutput: {SCHEMA}\n---\njudge");
    assert_eq!(checked(&[("START.md", &alone)], None, &[]), [""; 0]);
}

#[test]
fn invalid_output_is_reported_with_location() {
    let both = &[REVISE, APPROVE][..];
    let table: [(&str, &str, &[&str], &str); 16] = [
        (
            "{",
            "v.json",
            both,
            "v.json:1:1: RF501 this is not valid JSON: it ends too early; something is cut off, or a bracket or quote is missing",
        ),
        (r#"{"type":"array"}"#, "v.json", both, "v.json:1:1: RF501 an answer is an object"),
        (
            SCHEMA,
            "w.json",
            both,
            "START.md:2:9: RF501 w.json: there is no such file in the workflow; did you mean v.json?",
        ),
        (
            SCHEMA,
            "v.txt",
            both,
            "START.md:2:9: RF002 v.txt: a schema is a file NAME.json or NAME.yaml",
        ),
        (
            SCHEMA,
            "{ type: object, propertis: {} }",
            both,
            "START.md:2:9: RF501 `propertis` is not a schema keyword; did you mean `properties`?",
        ),
        (SCHEMA, "[a]", both, "START.md:2:9: RF002 `output` is a JSON schema"),
        (
            SCHEMA,
            "v.json",
            &[REVISE],
            "START.md:4:3: RF503 an answer with verdict: \"approve\" leads nowhere",
        ),
        (
            SCHEMA,
            "v.json",
            &["tag: goto, target: FIX.md, when: { verdct: revise }", "tag: result"],
            "START.md:4:40: RF502 `verdct` is not a field of the output's schema; did you mean `verdict`?",
        ),
        (
            SCHEMA,
            "v.json",
            &["tag: goto, target: FIX.md, when: { verdict: revsie }", "tag: result"],
            "`verdict` is never \"revsie\": the schema allows \"approve\", \"revise\"",
        ),
        (
            SCHEMA,
            "v.json",
            &["tag: result", REVISE],
            "START.md:5:40: warning: RF504 this entry is never taken",
        ),
        (
            SCHEMA,
            "v.json",
            &["tag: goto, target: FIX.md, when: revise"],
            "START.md:4:40: RF002 `when` names fields of the answer",
        ),
        (
            SCHEMA,
            "v.json",
            &[
                "tag: goto, target: FIX.md, when: { score: \"> 3\" }",
                "tag: result, when: { score: \"< 3\" }",
            ],
            "an answer with score: 3 leads nowhere",
        ),
        (SCHEMA, "v.json", &["tag: ask, next: FIX.md"], "RF002 an `output` cannot say what to ask"),
        (
            SCHEMA,
            "v.json",
            &["tag: fork, target: FIX.md, next: FIX.md, each: any"],
            "RF002 an `output` cannot name the list",
        ),
        (
            SCHEMA,
            "v.json\nevaluator: { prompt: FIX.md }",
            both,
            "RF002 the fields of an `output` decide what follows; leave the evaluator out",
        ),
        (SCHEMA, "v.json\noutpt: x", both, "RF002 unknown key `outpt`; did you mean `output`?"),
    ];
    for (schema, output, entries, words) in table {
        let found = diagnostics_of(schema, output, entries, "x");
        assert!(found.iter().any(|line| line.contains(words)), "{words}: {found:#?}");
    }
    let found = checked(&[("START.md", &prompt(APPROVE, "x"))], None, &[]);
    assert!(
        found[0].contains("START.md:3:26: RF002 `when` decides by the fields of an `output`"),
        "{found:?}"
    );
}

#[test]
fn placeholder_for_unknown_output_field_is_reported() {
    let both = [REVISE, APPROVE];
    let found =
        diagnostics_of(SCHEMA, "v.json", &both, "{{result.scor}} {{result.why.x}} {{other.x}}");
    assert_eq!(found.len(), 3, "{found:#?}");
    assert!(found[0].contains("FIX.md:5:1: warning: RF401 nothing fills {{result.scor}}: the output of START.md has no such field; did you mean `score`?"), "{found:#?}");
    assert!(
        found[1].contains("{{result.why.x}}: the output of START.md has no such field"),
        "{found:#?}"
    );
    assert!(found[2].contains("nothing fills {{other.x}}"), "{found:#?}");
}

#[test]
fn call_result_fields_are_checked_if_all_results_are_outputs() {
    let start = prompt("tag: call, target: SUB.md, return: BACK.md", "x");
    let back = prompt("tag: result", "{{result.nothing}}");
    let judge = format!("---\noutput: {SCHEMA}\n---\njudge");
    let found = |sub: &str| {
        checked(&[("START.md", &start), ("SUB.md", sub), ("BACK.md", &back)], None, &[])
    };
    assert_eq!(found(&prompt("tag: result", "x")), [""; 0], "a text may be any JSON");
    let lines = found(&judge);
    assert!(lines[0].contains("the output of SUB.md has no such field"), "{lines:?}");
}

#[test]
fn tag_in_text_of_state_with_output_is_reported() {
    let start = format!("---\noutput: {SCHEMA}\n---\nEnd with <result>x</result>");
    let found = checked(&[("START.md", &start)], None, &[]);
    assert_eq!(
        found,
        [
            "START.md:4:10: warning: RF204 the text shows a tag, and tags have no meaning where the answer is an `output`"
        ]
    );
}
