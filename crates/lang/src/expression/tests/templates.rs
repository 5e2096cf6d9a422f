//! Texts to fill.

use serde_json::{Value, json};

use super::super::{Error, Expression, Fuel, ValueTemplate};
use super::{Names, scope};

fn fill(value: &Value) -> Result<Value, Error> {
    let template = ValueTemplate::parse(value).unwrap_or_else(|flaw| panic!("{value}: {flaw:?}"));
    template.fill(&scope(), &mut Fuel::default())
}

#[test]
fn single_reference_keeps_type_of_its_value() {
    let table = [
        (json!("${n}"), json!(7)),
        (json!("${ n }"), json!(7)),
        (json!("${list}"), json!([3, 1, 2])),
        (json!("${nothing}"), json!(null)),
        (json!("${yes}"), json!(true)),
        (json!("${n + 1}"), json!(8)),
        (json!("${map[\"b-c\"]}"), json!(1)),
        (json!("${list[-1]}"), json!(2)),
        (json!("${list.length}"), json!(3)),
        (json!("${map.deep.x[1].y}"), json!("z")),
        (json!("${missing ?? 'none'}"), json!("none")),
        (json!("${computed?.missing}"), json!(null)),
        (json!("${'}'}"), json!("}")),
        (json!("${ {a: {b: 1}}.a }"), json!({"b": 1})),
        (json!("${name.match(/[}]|d/)[0]}"), json!("d")),
    ];
    for (value, filled) in table {
        assert_eq!(fill(&value), Ok(filled), "{value}");
    }
}

#[test]
fn template_with_other_content_is_filled_as_text() {
    let table = [
        ("", ""),
        ("plain } text { with $ and $n", "plain } text { with $ and $n"),
        (" ${n}", " 7"),
        ("${n}${n}", "77"),
        ("Source '${computed.repo_url}' added", "Source 'https://example.org/react.git' added"),
        ("${nothing} ${yes} ${list} ${map.deep}", "null true [3,1,2] {\"x\":[1,{\"y\":\"z\"}]}"),
        ("${name}", "raymond"),
        ("$${n}", "${n}"),
        ("$$${n} $${", "$${n} ${"),
        ("$${n} is ${n}", "${n} is 7"),
        ("ä${n}ö", "ä7ö"),
    ];
    for (text, filled) in table {
        assert_eq!(fill(&json!(text)), Ok(json!(filled)), "{text}");
    }
}

#[test]
fn list_items_map_values_and_keys_are_filled() {
    let value =
        json!({"a": ["${n}", {"${name}-${n}": "x${n}", "$${n}": 1}], "b": 1, "c": ["$${n}"]});
    let filled = json!({"a": [7, {"raymond-7": "x7", "${n}": 1}], "b": 1, "c": ["${n}"]});
    assert_eq!(fill(&value), Ok(filled));
    let key = ValueTemplate::parse(&json!({"${gone.x}": 1})).expect("a template");
    assert_eq!(key.reads().into_iter().map(|read| read.path).collect::<Vec<_>>(), ["gone.x"]);
    assert!(ValueTemplate::parse(&json!({"${a +}": 1})).is_err());
}

#[test]
fn known_parts_are_filled_and_others_stay() {
    let value = json!({"a": "${n} of ${gone.x}", "b": ["${gone}", "${n}"], "${gone}": "${name}"});
    let template = ValueTemplate::parse(&value).expect("a template");
    let known = json!({"a": "7 of ${gone.x}", "b": ["${gone}", 7], "${gone}": "raymond"});
    assert_eq!(template.fill_known(&scope(), &mut Fuel::default()), known);
}

#[test]
fn result_of_command_is_its_output_as_text() {
    let scope = Names(json!({"made": {"exit_code": 0, "stdout": "/repo\n", "stderr": ""}, "n": 1}));
    let filled = ValueTemplate::parse(&json!("at ${made}!")).expect("a text");
    assert_eq!(filled.fill(&scope, &mut Fuel::default()), Ok(json!("at /repo!")));
    let joined = Expression::parse("made + '/x' + made.exit_code").expect("a sum");
    assert_eq!(joined.evaluate(&scope, &mut Fuel::default()), Ok(json!("/repo/x0")));
}

#[test]
fn template_without_references_is_constant() {
    let constant = json!({"a": ["x", 1, null], "b": {"c": "$${n}"}});
    let template = ValueTemplate::parse(&constant).expect("a template");
    let value = json!({"a": ["x", 1, null], "b": {"c": "${n}"}});
    assert_eq!(template.as_constant(), Some(&value));
    assert!(ValueTemplate::parse(&json!(["${n}"])).expect("a template").as_constant().is_none());
}

#[test]
fn unresolved_path_is_error() {
    let unresolved = [
        "${missing}",
        "a ${computed.missing} b",
        "${nothing.x}",
        "${n.x}",
        "${list[3]}",
        "${list['a']}",
        "${map['x-y']}",
        "${name.x}",
    ];
    for text in unresolved {
        let path = &text[text.find('{').unwrap_or(0) + 1..text.find('}').unwrap_or(0)];
        let error = fill(&json!([text])).expect_err(text);
        assert_eq!(error, Error::Unresolved(path.to_owned()), "{text}");
        assert_eq!(error.to_string(), format!("WF402 Unresolved variable: ${{{path}}}"));
    }
    let error = fill(&json!("${missing.trim()}")).expect_err("a method of null");
    assert!(error.to_string().starts_with("WF403 in `missing.trim()`"), "{error}");
}

#[test]
fn syntax_error_is_located_within_template_text() {
    let literally = "; for `${` itself write `$${`";
    let table = [
        ("a ${n + } b", 8, "WF310", "a value is expected here, and the expression ends".to_owned()),
        ("${}", 2, "WF310", "the expression is missing".to_owned()),
        ("a ${n", 2, "WF310", format!("the `${{` that opens here has no `}}`{literally}")),
        ("${n} ${x:-0}", 8, "WF312", format!("`:-` is a shell's form; write `x ?? 0`{literally}")),
        ("${lenn(n)}", 2, "WF311", "unknown function lenn; did you mean len?".to_owned()),
    ];
    for (text, offset, code, message) in table {
        let (flaw, within) = ValueTemplate::parse(&json!({"k": [text]})).expect_err(text);
        assert_eq!((flaw.offset, flaw.code, flaw.message), (offset, code, message), "{text}");
        assert_eq!(within, text);
    }
}

#[test]
fn template_reads_are_listed_as_required_or_optional() {
    let value =
        json!({"a": "${n} ${x ?? 1} ${y.z}", "b": ["${x}", "${list[0].id}", "${l.length}"]});
    let reads = ValueTemplate::parse(&value).expect("a template").reads();
    let reads: Vec<_> = reads.iter().map(|read| (read.path.as_str(), read.optional)).collect();
    assert_eq!(reads, [("l", false), ("list", false), ("n", false), ("x", false), ("y.z", false)]);
    let optional = ValueTemplate::parse(&json!("${x ?? y}")).expect("a template").reads();
    assert!(optional.len() == 2 && optional.iter().all(|read| read.optional));
}

#[test]
fn answer_and_result_of_command_are_texts_where_text_is_expected() {
    let scope = Names(json!({
        "out": {"exit_code": 0, "stdout": "a b\n", "stderr": "e"},
        "none": {"exit_code": 0, "stdout": "\n", "stderr": "", "skipped": true},
        "chosen": {"id": "git", "raw": "1"}, "typed": {"id": "other", "raw": "a b"},
        "plain": {"stdout": "x"}, "list": ["git", "svn"], "map": {"git": 1},
    }));
    for (text, value) in [
        ("out == 'a b' && 'a b' == out && out != 'a b\\n'", json!(true)),
        ("out == typed && chosen != typed", json!(true)),
        ("out + '!' + chosen", json!("a b!git")),
        ("out + typed", json!("a ba b")),
        ("out.split(' ')", json!(["a", "b"])),
        ("chosen.toUpperCase()", json!("GIT")),
        ("'git-x'.startsWith(chosen)", json!(true)),
        ("list.includes(chosen)", json!(true)),
        ("contains(list, chosen) && contains(out, 'b')", json!(true)),
        ("startswith(out, 'a') && endswith(typed, 'b')", json!(true)),
        ("[len(out), out.length, typed.length]", json!([3, 3, 3])),
        ("[out ? 1 : 0, none ? 1 : 0, !chosen]", json!([1, 0, false])),
        ("out < chosen", json!(true)),
        ("[out.exit_code, out.stderr, chosen.id, chosen.raw]", json!([0, "e", "git", "1"])),
        ("`${out}, ${typed}`", json!("a b, a b")),
        ("parseInt(chosen.raw) + 1", json!(2)),
        ("JSON.stringify(chosen)", json!("{\"id\":\"git\",\"raw\":\"1\"}")),
        ("[plain == 'x', plain.length, Object.keys(plain)]", json!([false, null, ["stdout"]])),
        ("{[chosen]: 1}", json!({"git": 1})),
        ("map[chosen]", json!(1)),
    ] {
        let expression = Expression::parse(text).expect(text);
        assert_eq!(expression.evaluate(&scope, &mut Fuel::default()), Ok(value), "{text}");
    }
}
