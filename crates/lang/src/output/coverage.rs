//! The answers that the rules of a state cover.
//!
//! It finds answers that the schema allows and that lead nowhere, and rules that are never taken. Each field that a
//! rule names takes all values that make a difference: those of an enumeration, both truth values, the numbers at
//! and between the compared bounds, one text that no rule names. Too many combinations are not checked.

use std::collections::BTreeMap;

use serde_json::{Number, Value};

use super::rule::{FieldTest, OutputRule, ValueTest};
use super::schema::{OutputSchema, SchemaField};

/// The maximum number of combinations of values that are tried.
const MAX_COMBINATIONS: usize = 20_000;

/// The mistakes and gaps of rules.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RuleGaps {
    /// Mistakes of a rule, by its index: a field that is not in the schema, a value that it does not allow.
    pub mistakes: Vec<(usize, String)>,
    /// An answer that leads nowhere.
    pub uncovered: Option<String>,
    /// The rules that hold for no answer that the schema allows.
    pub impossible: Vec<usize>,
    /// The rules that are never taken, because others before them are.
    pub unused: Vec<usize>,
}

/// A value that a field may have.
#[derive(Debug, Clone, PartialEq)]
enum FieldSample {
    /// A single value.
    Value(Value),
    /// A value that no rule names.
    Other,
    /// No value: the field is absent.
    Absent,
}

impl FieldSample {
    fn passes(&self, test: &FieldTest) -> bool {
        match self {
            Self::Value(value) => test.accepts.accepts(value),
            Self::Other | Self::Absent => false,
        }
    }

    fn shown(&self, path: &str) -> String {
        match self {
            Self::Value(value) => format!("{path}: {value}"),
            Self::Other => format!("another {path}"),
            Self::Absent => format!("no {path}"),
        }
    }
}

impl RuleGaps {
    /// Finds the mistakes and gaps of rules under a schema.
    pub fn find(schema: &OutputSchema, rules: &[OutputRule]) -> Self {
        let mut gaps = Self::default();
        let mut tests: BTreeMap<&str, Vec<&FieldTest>> = BTreeMap::new();
        for (index, rule) in rules.iter().enumerate() {
            for test in &rule.when {
                gaps.mistakes.extend(mistake(schema, test).map(|why| (index, why)));
                tests.entry(&test.path).or_default().push(test);
            }
        }
        if !gaps.mistakes.is_empty() {
            return gaps;
        }
        let fields: Vec<(&str, Vec<FieldSample>)> =
            tests.iter().map(|(path, tests)| (*path, samples(schema, path, tests))).collect();
        gaps.try_all(&fields, rules);
        gaps
    }

    /// Tries every combination of values.
    fn try_all(&mut self, fields: &[(&str, Vec<FieldSample>)], rules: &[OutputRule]) {
        let sizes = fields.iter().map(|(_, samples)| samples.len());
        let count = sizes.fold(1usize, usize::saturating_mul);
        if count > MAX_COMBINATIONS {
            return;
        }
        let (mut used, mut possible) = (vec![false; rules.len()], vec![false; rules.len()]);
        for number in 0..count {
            let answer = combination(fields, number);
            let passes = |test: &FieldTest| {
                answer.iter().any(|(path, sample)| *path == test.path && sample.passes(test))
            };
            let mut taken = None;
            for (index, rule) in rules.iter().enumerate() {
                if rule.when.iter().all(passes) {
                    possible[index] = true;
                    taken = taken.or(Some(index));
                }
            }
            match taken {
                Some(index) => used[index] = true,
                None if self.uncovered.is_none() => {
                    let shown: Vec<String> =
                        answer.iter().map(|(path, sample)| sample.shown(path)).collect();
                    self.uncovered = Some(shown.join(", "));
                }
                None => {}
            }
        }
        self.impossible = (0..rules.len()).filter(|&index| !possible[index]).collect();
        self.unused = (0..rules.len()).filter(|&index| possible[index] && !used[index]).collect();
    }
}

/// Returns the combination with this number: a value for each field.
fn combination<'field>(
    fields: &'field [(&'field str, Vec<FieldSample>)],
    mut number: usize,
) -> Vec<(&'field str, &'field FieldSample)> {
    let mut answer = Vec::with_capacity(fields.len());
    for (path, samples) in fields {
        answer.extend(samples.get(number % samples.len().max(1)).map(|sample| (*path, sample)));
        number /= samples.len().max(1);
    }
    answer
}

/// Returns the mistake in a test, if the schema tells.
fn mistake(schema: &OutputSchema, test: &FieldTest) -> Option<String> {
    let path = &test.path;
    let field = match schema.field(path) {
        SchemaField::Known { schema, .. } => schema,
        SchemaField::Open => return None,
        SchemaField::Missing { similar } => {
            let hint = similar.map(|name| format!("; did you mean `{name}`?"));
            let hint = hint.unwrap_or_default();
            return Some(format!("`{path}` is not a field of the output's schema{hint}"));
        }
    };
    let known = values(field)?;
    let impossible = match &test.accepts {
        ValueTest::OneOf(wanted) => {
            let is_known = |value: &&Value| {
                let one = ValueTest::OneOf(vec![(*value).clone()]);
                known.iter().any(|known| one.accepts(known))
            };
            wanted.iter().find(|value| !is_known(value))?.to_string()
        }
        ValueTest::Compares(..) if known.iter().any(|value| test.accepts.accepts(value)) => {
            return None;
        }
        ValueTest::Compares(..) => test.to_string(),
    };
    let known: Vec<String> = known.iter().map(ToString::to_string).collect();
    Some(format!("`{path}` is never {impossible}: the schema allows {}", known.join(", ")))
}

/// Returns the values that a field may have, if the schema lists them.
fn values(field: &Value) -> Option<Vec<Value>> {
    if let Some(value) = field.get("const") {
        return Some(vec![value.clone()]);
    }
    if let Some(values) = field.get("enum").and_then(Value::as_array) {
        return Some(values.clone());
    }
    match field.get("type").and_then(Value::as_str) {
        Some("boolean") => Some(vec![Value::Bool(true), Value::Bool(false)]),
        Some("null") => Some(vec![Value::Null]),
        _ => None,
    }
}

/// Returns the values of a field that make a difference to its tests.
fn samples(schema: &OutputSchema, path: &str, tests: &[&FieldTest]) -> Vec<FieldSample> {
    let SchemaField::Known { schema: field, is_required } = schema.field(path) else {
        return others(tests).chain([FieldSample::Absent]).collect();
    };
    let mut samples: Vec<FieldSample> = match (values(field), number_kind(field)) {
        (Some(values), _) => values.into_iter().map(FieldSample::Value).collect(),
        (None, Some(is_integer)) => numbers(field, is_integer, tests),
        (None, None) => others(tests).collect(),
    };
    if !is_required {
        samples.push(FieldSample::Absent);
    }
    samples
}

/// Returns the values that tests name, the numbers around the compared numbers, and one other value.
fn others<'test>(tests: &'test [&'test FieldTest]) -> impl Iterator<Item = FieldSample> + 'test {
    let named = tests.iter().filter_map(|test| match &test.accepts {
        ValueTest::OneOf(values) => Some(values.iter().cloned().map(FieldSample::Value)),
        ValueTest::Compares(..) => None,
    });
    let compares = tests.iter().any(|test| matches!(test.accepts, ValueTest::Compares(..)));
    let numbers = compares.then(|| numbers(&Value::Null, false, tests));
    named.flatten().chain(numbers.into_iter().flatten()).chain([FieldSample::Other])
}

/// Returns whether a field is a whole number, or `None` if it is no number.
fn number_kind(field: &Value) -> Option<bool> {
    match field.get("type").and_then(Value::as_str) {
        Some("integer") => Some(true),
        Some("number") => Some(false),
        _ => None,
    }
}

/// Returns the numbers that tests name, and numbers between and beyond them, within the bounds of the schema.
fn numbers(field: &Value, is_integer: bool, tests: &[&FieldTest]) -> Vec<FieldSample> {
    let bound = |keyword: &str| field.get(keyword).and_then(Value::as_f64);
    let mut edges: Vec<f64> = tests
        .iter()
        .flat_map(|test| match &test.accepts {
            ValueTest::OneOf(values) => values.iter().filter_map(Value::as_f64).collect(),
            ValueTest::Compares(_, number) => Vec::from_iter(number.as_f64()),
        })
        .chain(
            ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"]
                .into_iter()
                .filter_map(bound),
        )
        .collect();
    edges.sort_by(f64::total_cmp);
    edges.dedup();
    let mut found: Vec<f64> =
        edges.windows(2).map(|pair| f64::midpoint(pair[0], pair[1])).collect();
    found.extend(edges.iter().flat_map(|edge| [edge - 1.0, *edge, edge + 1.0]));
    if is_integer {
        found = found.iter().flat_map(|number| [number.floor(), number.ceil()]).collect();
    }
    let is_within = |number: &f64| {
        bound("minimum").is_none_or(|least| *number >= least)
            && bound("maximum").is_none_or(|most| *number <= most)
            && bound("exclusiveMinimum").is_none_or(|least| *number > least)
            && bound("exclusiveMaximum").is_none_or(|most| *number < most)
    };
    found.retain(is_within);
    found.sort_by(f64::total_cmp);
    found.dedup();
    found.into_iter().map(|number| FieldSample::Value(shown(number))).collect()
}

/// Returns a number, without a fraction if it is whole.
fn shown(number: f64) -> Value {
    let text = number.to_string();
    let read: Option<Number> = serde_json::from_str(&text).ok();
    read.map_or(Value::Null, Value::Number)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use raymond_model::transition::{Transition, Variables};

    fn gaps(fields: &str, required: &str, rules: &[Value]) -> RuleGaps {
        let text =
            format!("{{\"type\":\"object\",\"properties\":{{{fields}}},\"required\":{required}}}");
        let schema = OutputSchema::new(serde_json::from_str(&text).expect("JSON"));
        let rule = |when: &Value| OutputRule {
            when: OutputRule::tests(when).expect("tests"),
            transition: Transition::Result {
                payload: String::new(),
                variables: Variables::new(),
                structured: true,
            },
        };
        let rules: Vec<OutputRule> = rules.iter().map(rule).collect();
        RuleGaps::find(&schema.expect("a schema"), &rules)
    }

    #[test]
    fn answer_without_matching_rule_is_reported() {
        let verdict = r#""verdict":{"enum":["approve","revise","reject"]}"#;
        let score = r#""score":{"type":"integer","minimum":0,"maximum":10}"#;
        let ratio = r#""ratio":{"type":"number"}"#;
        let sure = r#""sure":{"type":"boolean"}"#;
        let text = r#""text":{"type":"string"}"#;
        let approve = json!({"verdict": "approve"});
        let others = json!({"verdict": ["revise", "reject"]});
        let [high, low] = [json!({"score": ">= 7"}), json!({"score": "< 7"})];
        let two = format!("{verdict},{sure}");
        let table: [(&str, &str, Vec<Value>, Option<&str>); 13] = [
            (verdict, r#"["verdict"]"#, vec![approve.clone(), others.clone()], None),
            (verdict, r#"["verdict"]"#, vec![approve.clone()], Some("verdict: \"revise\"")),
            (verdict, "[]", vec![approve.clone(), others], Some("no verdict")),
            (verdict, "[]", vec![approve.clone(), json!({})], None),
            (score, r#"["score"]"#, vec![high.clone(), low.clone()], None),
            (score, r#"["score"]"#, vec![high, json!({"score": "< 6"})], Some("score: 6")),
            (score, r#"["score"]"#, vec![low, json!({"score": "> 7"})], Some("score: 7")),
            (score, r#"["score"]"#, vec![json!({"score": "<= 10"})], None),
            (
                ratio,
                r#"["ratio"]"#,
                vec![json!({"ratio": "> 1"}), json!({"ratio": "< 1"})],
                Some("ratio: 1"),
            ),
            (
                ratio,
                r#"["ratio"]"#,
                vec![json!({"ratio": "> 2"}), json!({"ratio": "<= 1"})],
                Some("ratio: 1.5"),
            ),
            (sure, r#"["sure"]"#, vec![json!({"sure": true}), json!({"sure": false})], None),
            (text, r#"["text"]"#, vec![json!({"text": "a"})], Some("another text")),
            (
                &two,
                r#"["verdict","sure"]"#,
                vec![approve, json!({"sure": true})],
                Some("sure: false, verdict: \"revise\""),
            ),
        ];
        for (fields, required, rules, uncovered) in table {
            let found = gaps(fields, required, &rules);
            assert!(found.mistakes.is_empty(), "{found:?}");
            assert_eq!(found.uncovered.as_deref(), uncovered, "{rules:?}");
        }
    }

    #[test]
    fn rule_with_unknown_field_or_value_is_error() {
        let verdict = r#""verdict":{"enum":["approve","revise"]}"#;
        let found = gaps(
            verdict,
            r#"["verdict"]"#,
            &[json!({"verdct": "approve"}), json!({"verdict": ["approve", "aprove"]}), json!({})],
        );
        let mistakes = [
            (
                0,
                "`verdct` is not a field of the output's schema; did you mean `verdict`?"
                    .to_owned(),
            ),
            (
                1,
                "`verdict` is never \"aprove\": the schema allows \"approve\", \"revise\""
                    .to_owned(),
            ),
        ];
        assert_eq!(found.mistakes, mistakes);
    }

    #[test]
    fn unreachable_rule_is_reported() {
        let verdict = r#""verdict":{"enum":["approve","revise"]}"#;
        let rules = [json!({"verdict": "approve"}), json!({}), json!({"verdict": "revise"})];
        assert_eq!(gaps(verdict, r#"["verdict"]"#, &rules).unused, [2]);
        let score = r#""score":{"type":"integer","maximum":10}"#;
        let rules = [json!({"score": "> 10"}), json!({})];
        assert_eq!(gaps(score, r#"["score"]"#, &rules).impossible, [0]);
    }
}
