//! Functions of numbers and of JSON, and the time.

use serde_json::json;

use super::super::Expression;
use super::*;

#[test]
fn functions_of_math_compute_with_numbers() {
    assert_values(&[
        ("Math.min(3, 1.5, 2)", json!(1.5)),
        ("Math.max(3)", json!(3)),
        ("Math.floor(-1.5)", json!(-2)),
        ("Math.ceil(1.2)", json!(2)),
        ("[2.5, -2.5, 2.4, 7].map(x => Math.round(x))", json!([3, -2, 2, 7])),
        ("Math.round(9007199254740993)", json!(9_007_199_254_740_993_i64)),
    ]);
    assert_errors(&[
        (
            "Math.max('2', 1)",
            "in `Math.max('2', 1)`: Math.max takes numbers, or `...list` for those in a list, but got a text",
        ),
        ("Math.floor(null)", "in `Math.floor(null)`: Math.floor takes a number, but got null"),
    ]);
}

#[test]
fn number_is_read_from_beginning_of_text_or_is_null() {
    assert_values(&[
        ("parseInt(' 42px')", json!(42)),
        ("parseInt('9007199254740993')", json!(9_007_199_254_740_993_i64)),
        ("parseInt('-9999999999999999999')", json!(-1e19)),
        ("parseInt('-')", json!(null)),
        ("Math.round(0.49999999999999994)", json!(0)),
        ("parseInt('-7')", json!(-7)),
        ("parseInt('ff', 16)", json!(255)),
        ("parseInt(3.9)", json!(3)),
        ("parseInt('x') ?? 0", json!(0)),
        ("parseInt('')", json!(null)),
        ("parseFloat('1.50 s')", json!(1.5)),
        ("parseFloat('-2e3x')", json!(-2000)),
        ("parseFloat('3.')", json!(3)),
        ("parseFloat('.')", json!(null)),
        ("parseFloat(0.5)", json!(0.5)),
    ]);
    assert_errors(&[
        ("parseInt(null)", "in `parseInt(null)`: parseInt takes a text, but got null"),
        (
            "parseInt('1', 1)",
            "in `parseInt('1', 1)`: the base of parseInt is a number from 2 to 36",
        ),
    ]);
}

#[test]
fn json_is_parsed_and_written() {
    assert_values(&[
        ("JSON.parse('{\"b\": [1, null], \"a\": 2}')", json!({"b": [1, null], "a": 2})),
        ("JSON.stringify({a: [1, null], b: 'x'})", json!("{\"a\":[1,null],\"b\":\"x\"}")),
        ("JSON.stringify([1], null, 2)", json!("[\n  1\n]")),
        ("JSON.parse(JSON.stringify(config)).sources.length", json!(2)),
        ("Object.fromEntries([['a', 1]])", json!({"a": 1})),
    ]);
    assert_errors(&[
        (
            "JSON.parse('{a}')",
            "in `JSON.parse('{a}')`: the text is not valid JSON: line 1, column 2",
        ),
        ("JSON.parse(1)", "in `JSON.parse(1)`: JSON.parse takes a text, but got a number"),
    ]);
}

/// A scope without names and without a time.
struct TimelessScope;

impl NameScope for TimelessScope {
    fn root(&self, _: &str) -> Option<&Value> {
        None
    }
}

#[test]
fn time_is_that_of_scope_and_unknown_without_scope() {
    assert_values(&[
        ("new Date().toISOString()", json!("2026-01-15T14:30:22.123Z")),
        ("new  Date() . toISOString().split('T')[0]", json!("2026-01-15")),
        ("`at ${new Date().toISOString().slice(0, 4)}`", json!("at 2026")),
        ("newer", json!(null)),
    ]);
    let now = Expression::parse("new Date().toISOString()").expect("an expression");
    let error = now.evaluate(&TimelessScope, &mut Fuel::default()).expect_err("no time");
    assert!(error.to_string().contains("time is not known"), "{error}");
}
