//! Expressions: the operators, truth, members, functions and methods, each with a value, and the errors of a run.

use serde_json::{Value, json};

use super::super::test;
use super::{ActionRow, fails, gives, play};

/// Each expression has its own text as its name.
fn value_rows() -> Vec<(&'static str, Value)> {
    vec![
        ("1 + 2 * 3 - 4 / 2", json!(5)),
        ("7 % 3", json!(1)),
        ("'a' + 'b' + 1", json!("ab1")),
        ("-number", json!(-7)),
        ("1 == 1.0", json!(true)),
        ("1 === 1", json!(true)),
        ("'1' == 1", json!(false)),
        ("null == gone", json!(true)),
        ("1 != 2 && 1 !== 2", json!(true)),
        ("[1, {a: 2}] == [1, {a: 2}]", json!(true)),
        ("2 > 1 && 2 >= 2 && 1 < 2 && 2 <= 2", json!(true)),
        ("'a' < 'b'", json!(true)),
        ("text && number", json!(7)),
        ("'' && number", json!("")),
        ("'' || text", json!("git")),
        ("0 || null || 'last'", json!("last")),
        ("nothing ?? text", json!("git")),
        ("0 ?? text", json!(0)),
        ("!nothing", json!(true)),
        ("!!'false'", json!(true)),
        ("[] ? 1 : 2", json!(1)),
        ("{} ? 1 : 2", json!(1)),
        ("0 ? 1 : 2", json!(2)),
        ("'' ? 1 : false ? 2 : 3", json!(3)),
        ("true || number < text", json!(true)),
        ("false && number < text", json!(false)),
        ("(1 + 2) * 3", json!(9)),
        ("map.a", json!(1)),
        ("map['a']", json!(1)),
        ("map[text]", json!("by key")),
        ("map.gone", Value::Null),
        ("nothing.below.more", Value::Null),
        ("nothing?.below", Value::Null),
        ("nothing?.['below']", Value::Null),
        ("list[0]", json!(3)),
        ("list[-1]", json!(2)),
        ("list[9]", Value::Null),
        ("list[-9]", Value::Null),
        ("text[0]", json!("g")),
        ("list.length", json!(3)),
        ("text.length", json!(3)),
        ("'äß'.length", json!(2)),
        ("${map.a} + 1", json!(2)),
        ("'${text}'", json!("git")),
        ("`a ${text} b`", json!("a git b")),
        ("{a: 1, ...map}.text", Value::Null),
        ("[0, ...list]", json!([0, 3, 1, 2])),
        ("len(list)", json!(3)),
        ("len(text)", json!(3)),
        ("len(map)", json!(2)),
        ("contains(text, 'i')", json!(true)),
        ("contains(list, 3)", json!(true)),
        ("contains(map, 'a')", json!(true)),
        ("startswith(text, 'g')", json!(true)),
        ("endswith(text, 'g')", json!(false)),
        ("Object.keys(map)", json!(["a", "git"])),
        ("Object.values(map)", json!([1, "by key"])),
        ("'a,b'.split(',')", json!(["a", "b"])),
        ("' a '.trim()", json!("a")),
        ("list.map(x => x * 2)", json!([6, 2, 4])),
        ("list.map((x, i) => i)", json!([0, 1, 2])),
        ("'a-b-c'.replace('-', '+')", json!("a+b-c")),
        ("'a-b-c'.replace(/-/g, '+')", json!("a+b+c")),
        ("list.filter(x => x > 1)", json!([3, 2])),
        ("list.includes(1)", json!(true)),
        ("text.includes('it')", json!(true)),
        ("list.pop()", json!(2)),
        ("list.pop() + list.length", json!(5)),
        ("'AB'.toLowerCase()", json!("ab")),
        ("'ab'.toUpperCase()", json!("AB")),
        ("list.join('-')", json!("3-1-2")),
        ("list.find(x => x < 3)", json!(1)),
        ("list.find(x => x > 3)", Value::Null),
        ("text.startsWith('gi')", json!(true)),
        ("list.slice(1)", json!([1, 2])),
        ("text.slice(-2)", json!("it")),
        ("'v1.2'.match(/(\\d)\\.(\\d)/)[2]", json!("2")),
        ("'v'.match(/\\d/)", Value::Null),
        ("list.concat([4])", json!([3, 1, 2, 4])),
        ("list.some(x => x > 2)", json!(true)),
        ("list.every(x => x > 2)", json!(false)),
        ("list.flatMap(x => [x, x])", json!([3, 3, 1, 1, 2, 2])),
        ("list.reduce((sum, x) => sum + x, 10)", json!(16)),
        ("text.charAt(1)", json!("i")),
        ("text.substring(1, 3)", json!("it")),
        ("list.map(x => { const y = x + 1; return y; })", json!([4, 2, 3])),
        ("list.sort((a, b) => a - b)", json!([1, 2, 3])),
        ("1 == 1 ? 'yes' : 'no'", json!("yes")),
        ("0.1 + 0.2 > 0.3", json!(true)),
        ("\"double\" + 'single'", json!("doublesingle")),
    ]
}

fn error_rows() -> Vec<(&'static str, &'static str)> {
    vec![
        ("number < text", "WF403"),
        ("nothing.trim()", "WF403"),
        ("len(nothing)", "len takes a list"),
        ("number.trim()", "WF403"),
        ("list.trim()", "WF403"),
        ("list < list", "WF403"),
        ("map - 1", "WF403"),
        ("1 / 0", "WF403"),
        ("list[text]", "the index of a list"),
        ("many.reduce((s, x) => s + s, 'x')", "longer than"),
        ("many.reduce((s, x) => [s], [])", "nests more than"),
        (
            "many.map(a => many.map(b => many.map(c => many.map(d => many.length))))",
            "too many steps",
        ),
    ]
}

pub(super) fn names() -> Vec<&'static str> {
    let values = value_rows().into_iter().map(|(text, _)| text);
    values.chain(error_rows().into_iter().map(|(text, _)| text)).collect()
}

#[test]
fn expressions_have_their_values_and_errors() {
    let compute =
        |text: &str| json!({"type": "compute", "expression": text, "store_as": "computed.is"});
    let mut rows: Vec<ActionRow> = value_rows()
        .into_iter()
        .map(|(text, value)| gives(text, json!([compute(text)]), "${computed.is}", value))
        .collect();
    rows.extend(error_rows().into_iter().map(|(text, why)| fails(text, compute(text), why)));
    let initial = json!({
        "number": 7, "text": "git", "nothing": null, "gone": null, "list": [3, 1, 2],
        "map": {"a": 1, "git": "by key"}, "many": (0..80).collect::<Vec<i32>>(),
    });
    play(test(&json!({})), initial, json!([]), &rows);
}
