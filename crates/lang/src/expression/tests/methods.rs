//! Functions and methods.

use serde_json::json;

use super::*;

#[test]
fn functions_return_expected_value_or_argument_error() {
    assert_values(&[
        ("len('äbc')", json!(3)),
        ("len([1, 2])", json!(2)),
        ("len({a: 1})", json!(1)),
        ("contains(name, 'ray')", json!(true)),
        ("contains({a: 1}, {exit_code: 0, stdout: 'a', stderr: ''})", json!(true)),
        ("contains(list, 1.0)", json!(true)),
        ("contains(map, 'b-c')", json!(true)),
        ("contains([[1]], [1])", json!(true)),
        ("startswith(name, 'ray')", json!(true)),
        ("endswith(name, 'ray')", json!(false)),
        ("Object.keys({b: 1, a: 2}).length", json!(2)),
        ("Object.values({a: [1]})", json!([[1]])),
        ("Object.entries({a: 1})", json!([["a", 1]])),
        ("Object . keys(map.deep)[0]", json!("x")),
    ]);
    assert_errors(&[
        ("len(missing)", "in `len(missing)`: len takes a list, a map or a text, but got null"),
        ("len(7) > 1", "in `len(7)`: len takes a list, a map or a text, but got a number"),
        (
            "contains(null, 1)",
            "in `contains(null, 1)`: contains takes a text, a list or a map, but got null",
        ),
        (
            "contains('1', 1)",
            "in `contains('1', 1)`: contains looks for a text in a text, but got a number",
        ),
        (
            "startswith('a', n)",
            "in `startswith('a', n)`: startswith takes two texts, but got a number",
        ),
        ("Object.keys(list)", "in `Object.keys(list)`: Object.keys takes a map, but got a list"),
    ]);
}

#[test]
fn text_methods_return_expected_values() {
    assert_values(&[
        ("'a,b,,c'.split(',')", json!(["a", "b", "", "c"])),
        ("'a,b,c'.split(',', 2)", json!(["a", "b"])),
        ("'äb'.split('')", json!(["ä", "b"])),
        ("''.split(',')", json!([""])),
        ("'a1b22c'.split(/[0-9]+/)", json!(["a", "b", "c"])),
        ("'a1b22c'.split(/\\d+/, 1)", json!(["a"])),
        ("' \\t a b\\n'.trim()", json!("a b")),
        ("'a.a.a'.replace('.', '-')", json!("a-a.a")),
        ("'a.a.a'.replaceAll('.', '-')", json!("a-a-a")),
        ("'a.a.a'.replace(/\\./g, '-')", json!("a-a-a")),
        ("'abc'.replace(/(?<x>b)(c)/, '$2$1-$&-$$-$3-$<x>')", json!("acb-bc-$-$3-b")),
        ("'abc'.replace('b', '[$&$1]')", json!("a[b$1]c")),
        ("'aXbx'.replace(/x/gi, '')", json!("ab")),
        ("'abc'.replace('', '-')", json!("-abc")),
        ("'abc'.replaceAll('', '-')", json!("-a-b-c-")),
        ("'a\\nb'.match(/^b$/m)", json!(["b"])),
        ("'a\\nb'.match(/a.b/s)", json!(["a\nb"])),
        ("'a\\nb'.match(/a.b/)", json!(null)),
        ("'k=v'.match(/(\\w)=(x)?(.)/)", json!(["k=v", "k", null, "v"])),
        ("'a1b2'.match(/[a-z]\\d/g)", json!(["a1", "b2"])),
        ("'a/b'.match(/[/]./)", json!(["/b"])),
        ("'abc'.includes('bc')", json!(true)),
        ("'abc'.startsWith('ab') && !'abc'.endsWith('ab')", json!(true)),
        ("'äbc'.indexOf('b')", json!(1)),
        ("'abc'.indexOf('x')", json!(-1)),
        ("'äbc'.toUpperCase() + 'ÄB'.toLowerCase()", json!("ÄBCäb")),
        ("'äbcd'.slice(1, 3)", json!("bc")),
        ("'äbcd'.slice(-2)", json!("cd")),
        ("'äbcd'.slice(-9, -1)", json!("äbc")),
        ("'abcd'.slice(3, 1)", json!("")),
        ("'abcd'.slice()", json!("abcd")),
        ("'äbcd'.substring(3, 1)", json!("bc")),
        ("'abcd'.substring(-5, 2)", json!("ab")),
        ("'abcd'.substring(2)", json!("cd")),
        ("'abcd'.substring(9)", json!("")),
        ("'äb'.charAt(1) + 'ab'.charAt(7) + 'cd'.charAt()", json!("bc")),
        ("'a'.concat('b', 1, null)", json!("ab1null")),
        ("(1.5).toString() + true.toString() + 'a'.toString()", json!("1.5truea")),
        ("nothing?.trim()", json!(null)),
        ("nothing?.trim().length.x", json!(null)),
        ("nothing?.a.trim()", json!(null)),
    ]);
}

#[test]
fn list_methods_return_expected_values() {
    assert_values(&[
        ("list.map(x => x * 2)", json!([6, 2, 4])),
        ("list.map((x, i) => x + i)", json!([3, 2, 4])),
        ("words.map(Boolean)", json!([true, true, false])),
        ("list.filter(x => x > 1)", json!([3, 2])),
        ("words.filter(Boolean)", json!(["b", "a"])),
        ("config.sources.find(s => s.type == 'web').id", json!("vue")),
        ("list.find(x => x > 5)", json!(null)),
        ("list.some(x => x > 2) && list.every((x) => x > 0)", json!(true)),
        ("[].some(x => true) || ![].every(x => false)", json!(false)),
        ("[[1, 2], 3].flatMap(x => x)", json!([1, 2, 3])),
        ("list.flatMap((x, i) => [x, [i]])", json!([3, [0], 1, [1], 2, [2]])),
        ("list.reduce((a, x) => a + x)", json!(6)),
        ("list.reduce((a, x, i) => a + x * i, 'n')", json!("n014")),
        ("list.reduce((a, x) => a > x ? a : x, 0)", json!(3)),
        ("[].reduce((a, x) => a, null)", json!(null)),
        ("list.includes(2) && !list.includes('2')", json!(true)),
        ("list.indexOf(2)", json!(2)),
        ("list.indexOf(9)", json!(-1)),
        ("list.pop()", json!(2)),
        ("list.pop() + list.length", json!(5)),
        ("[].pop()", json!(null)),
        ("words.join()", json!("b,a,")),
        ("list.join('')", json!("312")),
        ("[[1], {a: 2}].join(' ')", json!("[1] {\"a\":2}")),
        ("list.slice(1)", json!([1, 2])),
        ("list.slice(-2, -1)", json!([1])),
        ("list.concat([4, [5]], 6, [])", json!([3, 1, 2, 4, [5], 6])),
        ("list.map(x => list.filter(y => y < x).length)", json!([2, 0, 1])),
        ("list.map(n => n) .length + n", json!(10)),
        ("config.sources.map(s => ({id: s.id}))[0]", json!({"id": "react"})),
    ]);
}

#[test]
fn wrong_receiver_or_argument_of_method_is_error() {
    assert_errors(&[
        (
            "missing.trim()",
            "in `missing.trim()`: trim is a method of a text, but got null; where it may be null, write `?.trim`",
        ),
        (
            "missing.map(x => x)",
            "in `missing.map(x => x)`: map is a method of a list, but got null; where it may be null, write `?.map`",
        ),
        ("1 + list.trim()", "in `list.trim()`: trim is a method of a text, but got a list"),
        (
            "map.filter(x => x)",
            "in `map.filter(x => x)`: filter is a method of a list, but got a map",
        ),
        ("n.slice(1)", "in `n.slice(1)`: slice is a method of a text or a list, but got a number"),
        (
            "list.toString()",
            "in `list.toString()`: toString is a method of a text, a number or a boolean, but got a list",
        ),
        ("name.split(1)", "in `name.split(1)`: split takes a text, but got a number"),
        (
            "name.replace('a', null)",
            "in `name.replace('a', null)`: replace takes a text, but got null",
        ),
        ("name.slice('1')", "in `name.slice('1')`: slice takes a whole number, but got a text"),
        (
            "name.slice(1, 1.5)",
            "in `name.slice(1, 1.5)`: slice takes a whole number, but got a number",
        ),
        ("list.join(1)", "in `list.join(1)`: join takes a text, but got a number"),
        ("name.includes(7)", "in `name.includes(7)`: includes takes a text, but got a number"),
        ("list.map(x => x.trim())", "in `x.trim()`: trim is a method of a text, but got a number"),
        (
            "[].reduce((a, x) => a)",
            "in `[].reduce((a, x) => a)`: reduce of an empty list needs a second argument to begin with",
        ),
    ]);
}
