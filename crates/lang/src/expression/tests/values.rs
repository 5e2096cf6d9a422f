//! Literals, paths and operators.

use serde_json::json;

use super::super::{Expression, truth};
use super::*;

#[test]
fn literals_evaluate_to_their_values() {
    assert_values(&[
        ("42", json!(42)),
        ("1.50", json!(1.5)),
        ("1e3", json!(1000)),
        ("'it\\'s'", json!("it's")),
        ("\"a\\nb\"", json!("a\nb")),
        ("true", json!(true)),
        ("false", json!(false)),
        ("null", json!(null)),
        ("undefined", json!(null)),
        ("[]", json!([])),
        ("[1, 'a', [null],]", json!([1, "a", [null]])),
        ("{}", json!({})),
        ("{a: 1, 'b-c': [n], }", json!({"a": 1, "b-c": [7]})),
        (" \n( (1) ) ", json!(1)),
    ]);
}

#[test]
fn huge_number_can_be_negated() {
    assert_values(&[("-1e99", json!(-1e99)), ("--1e99", json!(1e99)), ("---1e99", json!(-1e99))]);
}

#[test]
fn path_evaluates_to_value_or_null() {
    assert_values(&[
        ("n", json!(7)),
        ("${n}", json!(7)),
        ("${ computed.repo_url }", json!("https://example.org/react.git")),
        ("computed . files [ 0 ]", json!("a.md")),
        ("missing", json!(null)),
        ("missing.a.b[0].c", json!(null)),
        ("n.a", json!(null)),
        ("n[0]", json!(null)),
        ("yes['a']", json!(null)),
        ("nothing?.a.b", json!(null)),
        ("nothing?.[0]", json!(null)),
        ("map?.deep?.x?.[1].y", json!("z")),
        ("map['b-c']", json!(1)),
        ("map[2]", json!("two")),
        ("map.length", json!("own")),
        ("map.deep.x.length", json!(2)),
        ("path.length", json!(21)),
        ("list[-1]", json!(2)),
        ("list[-3]", json!(3)),
        ("list[-4]", json!(null)),
        ("list[3]", json!(null)),
        ("list[0.5]", json!(null)),
        ("name[0] + name[-1]", json!("rd")),
        ("name[99]", json!(null)),
        ("[1, [2, 3]][1][0]", json!(2)),
        ("{a: {b: 1}}.a.b", json!(1)),
        ("truely", json!(null)),
        ("config.sources[list[1]].id", json!("vue")),
    ]);
    assert_errors(&[
        ("list['a']", "in `list['a']`: the index of a list is a number, but got a text"),
        ("name[null]", "in `name[null]`: the index of a text is a number, but got null"),
        ("1 + map[true]", "in `map[true]`: the index of a map is a text, but got a boolean"),
    ]);
}

#[test]
fn each_operator_evaluates_as_expected() {
    assert_values(&[
        ("1 + 2 * 3", json!(7)),
        ("(1 + 2) * 3", json!(9)),
        ("10 - 4 - 3", json!(3)),
        ("2 * 3 % 4", json!(2)),
        ("8 / 2", json!(4)),
        ("7 / 2", json!(3.5)),
        ("-7 % 3", json!(-1)),
        ("7.5 % 2", json!(1.5)),
        ("half + half", json!(1)),
        ("-n", json!(-7)),
        ("- -n", json!(7)),
        ("3--2", json!(5)),
        ("-'a'.length", json!(-1)),
        ("-9223372036854775807 - 1", json!(i64::MIN)),
        ("9223372036854775807 + 1", json!(9_223_372_036_854_775_808.0)),
        ("4611686018427387904 * 2", json!(9_223_372_036_854_775_808.0)),
        ("'a' + 1 + 2", json!("a12")),
        ("1 + 2 + 'a'", json!("3a")),
        ("'v' + null + true", json!("vnulltrue")),
        ("'x' + [1, {a: 'b'}]", json!("x[1,{\"a\":\"b\"}]")),
        ("[1] + [2]", json!([1, 2])),
        ("1 == 1.0", json!(true)),
        ("1 === '1'", json!(false)),
        ("null == undefined", json!(true)),
        ("missing == null", json!(true)),
        ("'' == 0", json!(false)),
        ("[1, {a: 2}] == [1.0, {a: 2}]", json!(true)),
        ("{a: 1} == {b: 1}", json!(false)),
        ("{a: 1} != {a: 2}", json!(true)),
        ("list !== [3, 1]", json!(true)),
        ("2 < 10", json!(true)),
        ("'2' < '10'", json!(false)),
        ("'a' <= 'a'", json!(true)),
        ("half >= 1", json!(false)),
        ("9007199254740993 > 9007199254740992", json!(true)),
        ("!empty", json!(true)),
        ("!![]", json!(true)),
        ("!!{}", json!(true)),
        ("!0", json!(true)),
        ("!!'0'", json!(true)),
        ("!yes == false", json!(true)),
        ("empty || 'default'", json!("default")),
        ("empty ?? 'default'", json!("")),
        ("missing ?? nothing ?? 'default'", json!("default")),
        ("name && list", json!([3, 1, 2])),
        ("nothing && nothing.x.trim()", json!(null)),
        ("yes || nothing.trim()", json!(true)),
        ("0 || null", json!(null)),
        ("true || false && false", json!(true)),
        ("1 == 1 && 2 > 1 || false", json!(true)),
        ("1 + 1 == 2", json!(true)),
        ("n > 5 ? 'big' : 'small'", json!("big")),
        ("n < 5 ? 'a' : n < 6 ? 'b' : 'c'", json!("c")),
        ("yes ? false ? 1 : 2 : 3", json!(2)),
        ("yes ? nothing?.a : 1", json!(null)),
        ("1 ? [2]?.[0] : 3", json!(2)),
        ("missing ?? yes ? 1 : 2", json!(1)),
    ]);
}

#[test]
fn invalid_operation_is_error_with_reason() {
    assert_errors(&[
        ("1 / 0", "in `1 / 0`: division by zero"),
        ("1 % 0.0", "in `1 % 0.0`: division by zero"),
        ("1e308 * 10", "in `1e308 * 10`: the number is too large"),
        (
            "n + null",
            "in `n + null`: `+` adds numbers, or joins texts or two lists, but got a number and null",
        ),
        ("'a' * 2", "in `'a' * 2`: `*` takes two numbers, but got a text and a number"),
        (
            "map.b-c",
            "in `map.b-c`: `-` takes two numbers, but got null and null; a key with a dash is written a[\"b-c\"]",
        ),
        ("-name", "in `-name`: `-` takes a number, but got a text"),
        (
            "1 < '2'",
            "in `1 < '2'`: only two numbers or two texts have an order, but got a number and a text",
        ),
        (
            "missing > 1 ",
            "in `missing > 1`: only two numbers or two texts have an order, but got null and a number",
        ),
        (
            "'a long text that is cut somewhere, with an umlaut: öööööööööö' - 1",
            "in `'a long text that is cut somewhere, with an umlaut: öööö…`: `-` takes two numbers, but got a text and a number",
        ),
    ]);
}

#[test]
fn truthiness_matches_javascript() {
    for value in [json!(null), json!(false), json!(0), json!(0.0), json!(-0.0), json!("")] {
        assert!(!truth(&value), "{value}");
    }
    for value in [json!(true), json!(-1), json!(0.1), json!("0"), json!([]), json!({})] {
        assert!(truth(&value), "{value}");
    }
    let holds =
        |text: &str| Expression::parse(text).expect(text).holds(&scope(), &mut Fuel::default());
    assert_eq!(holds("list"), Ok(true));
    assert_eq!(holds("missing"), Ok(false));
}

#[test]
fn language_examples_evaluate_as_expected() {
    assert_values(&[
        ("len(config.sources) == 0", json!(false)),
        ("${source_type} == 'git'", json!(true)),
        ("${computed.repo_url}.split('/').pop().replace('.git', '')", json!("react")),
        ("flags.manifest_detected && !flags.config_found", json!(true)),
        ("arguments.match(/https?:\\/\\/\\S+/i)[0]", json!("https://example.org/x.git")),
        ("config.sources.some(s => s.id === 'vue')", json!(true)),
        ("config.sources.filter((s, i) => i > 0).map(s => s.type)[0]", json!("web")),
        ("computed.files.filter(f => endswith(f, '.md')).length", json!(1)),
        ("Object.keys(map.deep).join(', ')", json!("x")),
        ("list.reduce((sum, x) => sum + x, 0)", json!(6)),
    ]);
}

#[test]
fn paths_read_by_expression_are_listed() {
    let table: &[(&str, &[&str])] = &[
        ("1 + 'a'", &[]),
        ("a.b.c == ${d} || !e", &["a.b.c", "d", "e"]),
        ("len(computed.files.length)", &["computed.files"]),
        ("a['b-c'].d[0].e", &["a.b-c.d"]),
        ("a[i.j]?.k", &["a", "i.j"]),
        ("a.b.map((x, i) => x.id + i + y.z).join(s)", &["a.b", "s", "y.z"]),
        ("a.map(x => x.map(y => x + y + z))", &["a", "z"]),
        ("x + a.map(x => x)", &["a", "x"]),
        ("Object.keys(m).filter(Boolean)", &["m"]),
        ("[a, {k: b}, c ? d : e, f && g, -h]", &["a", "b", "c", "d", "e", "f", "g", "h"]),
        ("a.replace(/x/, b)", &["a", "b"]),
        ("(a.b).c", &["a.b"]),
    ];
    for (text, paths) in table {
        let reads = Expression::parse(text).expect(text).reads();
        assert!(reads.iter().all(|read| read.optional), "{text}");
        let read: Vec<&str> = reads.iter().map(|read| read.path.as_str()).collect();
        assert_eq!(read, *paths, "{text}");
    }
}
