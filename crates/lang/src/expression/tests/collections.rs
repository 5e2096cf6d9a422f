//! Parameters in brackets, texts in backticks, `...`, and sorting.

use serde_json::json;

use super::super::Expression;
use super::*;

#[test]
fn parameters_in_brackets_take_values_apart() {
    assert_values(&[
        ("Object.entries({a: 1, b: 2}).map(([k, v]) => k + v)", json!(["a1", "b2"])),
        ("config.sources.map(({id, type}) => id + ':' + type)", json!(["react:git", "vue:web"])),
        ("config.sources.map(({id: name}, i) => name + i)", json!(["react0", "vue1"])),
        ("[[1, {x: [2]}]].map(([a, {x: [b]}]) => a + b)", json!([3])),
        ("[{}, {id: 1}].map(({id}) => id)", json!([null, 1])),
        ("[[1]].map(([a, b,],) => b)", json!([null])),
        ("Object.entries({a: 1}).reduce((sum, [k, v]) => sum + v, 1)", json!(2)),
        ("[[2, 'n']].map(([n]) => [1].map(x => n + x))", json!([[3]])),
    ]);
    assert_errors(&[
        ("[1].map(([a]) => a)", "the function takes a list for `[…]`, but got a number"),
        ("[null].map(({a}) => a)", "the function takes a map for `{…}`, but got null"),
    ]);
}

#[test]
fn text_in_backticks_has_values_of_its_references() {
    assert_values(&[
        ("`a ${n} b`", json!("a 7 b")),
        ("`${n}${half}`", json!("70.5")),
        ("``", json!("")),
        ("`\\`\\${n}\\n'\"`", json!("`${n}\n'\"")),
        ("`${`${name}!`} ${{a: '}'}.a}`", json!("raymond! }")),
        ("`${list} ${nothing}`", json!("[3,1,2] null")),
        ("`(${list.map(x => `<${x}>`).join('')})`", json!("(<3><1><2>)")),
        ("`a\nb`.split('\\n').length", json!(2)),
        ("`${yes ? `y` : 'n'}`", json!("y")),
    ]);
}

#[test]
fn spread_inserts_elements_entries_and_arguments() {
    assert_values(&[
        ("[0, ...list, ...[4]]", json!([0, 3, 1, 2, 4])),
        ("{a: 1, ...{b: 2, a: 3}, c: 4}", json!({"a": 3, "b": 2, "c": 4})),
        ("{...nothing, n, [name]: 1, [`k${n}`]: 2}", json!({"n": 7, "raymond": 1, "k7": 2})),
        ("Math.max(...list, 2)", json!(3)),
        ("[0].concat(...[[1], 2])", json!([0, 1, 2])),
        ("'a-b'.replace(...['-', '+'])", json!("a+b")),
    ]);
    assert_errors(&[
        ("[...n]", "`...` takes a list here, but got a number"),
        ("{...list}", "`...` takes a map here, but got a list"),
        ("'a'.replace(...list)", "in `'a'.replace(...list)`: replace takes 2 arguments, but got 3"),
        (
            "Math.max(...[])",
            "in `Math.max(...[])`: Math.max takes at least one argument, but got 0",
        ),
    ]);
}

#[test]
fn sort_orders_values_or_follows_its_function() {
    assert_values(&[
        ("list.sort()", json!([1, 2, 3])),
        ("[10, 9, 1.5, -1].sort()", json!([-1, 1.5, 9, 10])),
        ("words.sort()", json!(["a", "b", null])),
        ("list.sort((a, b) => b - a)", json!([3, 2, 1])),
        ("list", json!([3, 1, 2])),
        (
            "[{k: 1, v: 'x'}, {k: 0, v: 'y'}, {k: 1, v: 'z'}].sort((a, b) => a.k - b.k).map(x => x.v)",
            json!(["y", "x", "z"]),
        ),
        ("[3, 1, 2, 5, 4].sort((a, b) => -1)", json!([3, 1, 2, 5, 4])),
        (
            "Object.entries({b: 1, a: 2}).sort(([a], [b]) => a < b ? -1 : 1)",
            json!([["a", 2], ["b", 1]]),
        ),
        ("[].sort()", json!([])),
    ]);
    let why = "in `[1, 'a'].sort()`: sort orders numbers or texts, but got a number and a text; give it a function, as in `sort((a, b) => a.size - b.size)`";
    assert_errors(&[
        ("[1, 'a'].sort()", why),
        (
            "list.sort((a, b) => a > b)",
            "in `list.sort((a, b) => a > b)`: the function of sort returns a number, as in `(a, b) => a - b`, but got a boolean",
        ),
    ]);
}

#[test]
fn sort_and_spread_of_long_list_spend_fuel() {
    let list = json!((0..200).rev().collect::<Vec<_>>());
    let scope = Names(json!({ "list": list }));
    let mut fuel = Fuel { steps: 1500, ..Fuel::default() };
    let sorted = Expression::parse("list.sort((a, b) => a - b)").expect("an expression");
    let error = sorted.evaluate(&scope, &mut fuel).expect_err("too many steps");
    assert!(error.to_string().contains("too many steps"), "{error}");
    let mut fuel = Fuel { list: 300, ..Fuel::default() };
    let doubled = Expression::parse("[...list, ...list]").expect("an expression");
    let error = doubled.evaluate(&scope, &mut fuel).expect_err("too long");
    assert!(error.to_string().contains("more than 300 elements"), "{error}");
}
