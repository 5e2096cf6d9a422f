//! Functions with braces: statements on variables of their own.

use serde_json::json;

use super::super::{Expression, Fuel, SyntaxError, ValueTemplate};
use super::{Names, assert_errors, assert_values, evaluate, scope};

#[test]
fn reduce_collects_in_a_separate_map() {
    assert_values(&[
        (
            "config.sources.reduce((acc, r) => { acc[r.id] = r.type; return acc; }, {})",
            json!({"react": "git", "vue": "web"}),
        ),
        (
            "list.reduce((acc, n) => {\n  const key = n > 1 ? 'big' : 'small';\n  if (!acc[key]) acc[key] = [];\n  acc[key].push(n);\n  return acc;\n}, {})",
            json!({"big": [3, 2], "small": [1]}),
        ),
        ("list.reduce((acc, n) => { acc.push(n * 2); return acc }, [])", json!([6, 2, 4])),
        (
            "list.reduce((acc, n) => ({...acc, [n]: true}), {})",
            json!({"3": true, "1": true, "2": true}),
        ),
        ("[1, 2].reduce((sum, x) => { sum += x; return sum; })", json!(3)),
        ("list.reduce((acc, n) => { acc.n = n; return acc; }, map).length", json!("own")),
        ("map.n", json!(null)),
    ]);
}

#[test]
fn statements_have_javascript_meaning() {
    assert_values(&[
        ("list.map(x => { return x + 1; })", json!([4, 2, 3])),
        ("list.map(x => { return { v: x }; })", json!([{"v": 3}, {"v": 1}, {"v": 2}])),
        ("list.map(x => { x + 1 })".replace("x + 1", "return").as_str(), json!([null, null, null])),
        (
            "list.map(x => { if (x == 1) { return 'one' } else if (x == 2) return 'two'; else { return 'many' } })",
            json!(["many", "one", "two"]),
        ),
        (
            "[[1, 2], [3, 4]].map(([a, b]) => { const {c, d: [e]} = {c: a, d: [b]}; return c * 10 + e; })",
            json!([12, 34]),
        ),
        ("list.map((x, i) => { let a = x, b; b ??= i; a -= b; return a })", json!([3, 0, 0])),
        (
            "[1].map(x => { let n = 5; n++; n *= 2; n--; n /= 11; n ||= 9; n &&= 4; n %= 3; return n; })",
            json!([1]),
        ),
        (
            "[list].map(all => { let sum = 0; for (const n of all) { if (n == 1) continue; sum += n; if (sum > 4) break; } return sum; })",
            json!([5]),
        ),
        (
            "[map].map(m => { const out = []; for (const [k, v] of Object.entries(m)) out.push(k); return out.sort(); })",
            json!([["2", "b-c", "deep", "length"]]),
        ),
        (
            "[list].map(all => { const out = {}; all.forEach((n, i) => { if (i == 1) return; out[n] = i; }); return out; })",
            json!([{"3": 0, "2": 2}]),
        ),
        (
            "[list].map(all => { const out = []; all.forEach(n => { if (n == 3) return out; out.push(n); }); return out; })",
            json!([[1, 2]]),
        ),
        (
            "[list].map(all => { const out = []; all.forEach(n => out.unshift(n, 0)); return out; })",
            json!([[2, 0, 1, 0, 3, 0]]),
        ),
        ("[{a: 1, b: 2}].map(m => { delete m.a; return m; })", json!([{"b": 2}])),
        ("[[1, 2]].map(l => { l[0] = 9; l[-1] = 8; l[2] = 7; return l; })", json!([[9, 8, 7]])),
        ("list.filter(x => { const least = n - 5; return x > least; })", json!([3])),
        ("list.sort((a, b) => { if (a < b) return -1; return 1; })", json!([1, 2, 3])),
        ("[1].map(x => { const y = 1; { const y = 2; } return y; })", json!([1])),
        (
            "[1].map(x => { const f = [2].map(y => { let x = y; x += n; return x; }); return f[0] + x; })",
            json!([10]),
        ),
        (
            "[1].map(x => { ; return [x].map(y => { return { x, y } })[0]; ; })",
            json!([{"x": 1, "y": 1}]),
        ),
        (
            "[{l: [1]}].map(m => { const l = m.l; l.push(2); m.l = l; return m; })",
            json!([{"l": [1, 2]}]),
        ),
    ]);
}

#[test]
fn quoted_text_takes_values_of_paths() {
    assert_values(&[
        ("'${name}/skills'", json!("raymond/skills")),
        ("\"at ${computed.repo_url} (${n})\"", json!("at https://example.org/react.git (7)")),
        ("'${n}'", json!("7")),
        ("'$${name} ${} ${1 + 1} ${name'", json!("${name} ${} ${1 + 1} ${name")),
        ("list.map(x => '${x}!')[0]", json!("3!")),
    ]);
}

#[test]
fn doubled_backslashes_of_regex_are_read_as_single_ones() {
    let text = r"'https://docs.example.org/x'.replace(/^https?:\\/\\//, '').split('/')[0].replace(/^docs?\\./, '')";
    assert_values(&[
        (text, json!("example.org")),
        (r"'a\\b'.split('\\').length", json!(2)),
        (r"'a.b'.replace(/\./, '-')", json!("a-b")),
        (r"'/a/'.replace(/\/$/, '')", json!("/a")),
    ]);
    let flaw = Expression::parse(r"a.replace(/\\(/, '') +").expect_err("no value");
    assert_eq!(flaw.code, "WF310");
}

#[test]
fn braces_with_entries_are_a_map() {
    assert_values(&[
        ("[1].map(x => {a: x})", json!([{"a": 1}])),
        ("[1].map(x => {})", json!([{}])),
    ]);
}

#[test]
fn statement_without_meaning_is_evaluation_error() {
    assert_errors(&[
        (
            "[1].map(x => { x.a.b = 1; return x; })",
            "in `x.a.b`: only parts of lists and maps change, but this is a number",
        ),
        (
            "[{}].map(m => { m.a.push(1); return m; })",
            "in `m.a.push(1)`: push adds to a list, but got null",
        ),
        (
            "[[1]].map(l => { l[5] = 1; return l; })",
            "in `l[5]`: the list has no element 5 to change",
        ),
        (
            "[1].map(x => { for (const y of map) { x = y; } return x; })",
            "in `map`: a loop takes a list; for a map write `Object.entries(map)`",
        ),
        (
            "[1].map(x => { const [a] = x; return a; })",
            "in `[a] = x`: a name takes a list for `[…]`, but got a number",
        ),
    ]);
}

#[test]
fn change_outside_function_is_syntax_error() {
    let refused = "is not a name of this function; a function changes only its parameters and what it declares with `let` or `const`";
    let table = [
        ("list.map(x => { n = x; return x; })", 16, format!("n {refused}")),
        ("[1].map(x => { const f = [2].map(y => { x = y; return y; }); return x; })", 40, format!("x {refused}")),
        ("[1].map(x => { { let y = 1; } y = 2; return x; })", 30, format!("y {refused}")),
        ("[1].map(x => { const y = 1; y = 2; return y; })", 28, "y cannot change here; declare it with `let`".to_owned()),
        ("[1].map(x => { const y; return y; })", 21, "the const y has no value".to_owned()),
        (
            "list.reduce((acc, n) => { const all = acc[n] || []; all.push(n); return acc; }, {})",
            52,
            "all is a copy, so this change would be lost; change the value in its place, as in `acc[key].push(x)`, or put all back".to_owned(),
        ),
        (
            "[list].map(l => { l.trim(); return l; })",
            18,
            "this has no effect; a statement is `name = …`, `list.push(x)`, `list.forEach(x => …)`, `if`, `for (const x of list)` or `return`".to_owned(),
        ),
        ("[1].map(x => { len(x) = 1; return x; })", 15, "a change is of a name or its parts, as in `acc[key].count = 1`".to_owned()),
        ("[1].map(x => { x.push(); return x; })", 15, "push takes a value".to_owned()),
        ("[1].map(x => { x.forEach(1); return x; })", 15, "forEach takes a function, as in `list.forEach(x => { acc[x.id] = x; })`".to_owned()),
    ];
    for (text, offset, message) in table {
        let SyntaxError { offset: at, message: reason, .. } =
            Expression::parse(text).expect_err(text);
        assert_eq!((at, reason), (offset, message), "{text}");
    }
}

#[test]
fn function_without_return_is_syntax_error_at_its_end() {
    let table = [
        "list.reduce((acc, n) => { acc.push(n); }, [])",
        "list.map(n => { let s = 0; n.forEach(m => { return m; }); })",
        "list.map(n => { for (const m of list) { n += m; } })",
    ];
    for text in table {
        let flaw = Expression::parse(text).expect_err(text);
        let why = "the function ends here without a value; `return` one, as in `return acc;`";
        assert_eq!((flaw.code, flaw.message.as_str()), ("WF310", why), "{text}");
        assert_eq!(text[flaw.offset..].chars().next(), Some('}'), "{text}");
    }
    for text in [
        "list.map(n => { for (const m of list) { if (m) return m; } })",
        "list.map(n => { { return null; } })",
        "list.map(n => { if (n) return; })",
        "list.map(n => { if (n) n += 1; else return 2; })",
    ] {
        assert!(Expression::parse(text).is_ok(), "{text}");
    }
}

#[test]
fn statements_spend_fuel_and_respect_sizes() {
    let hundred = json!((0..100).collect::<Vec<_>>());
    let scope = Names(json!({ "t": hundred }));
    let table = [
        ("t.reduce((acc, x) => { acc.a = acc; return acc; }, {})", "nests more than 64"),
        ("t.map(x => { let s = 'x'; for (const y of t) { s += s; } return s; })", "longer than"),
        (
            "t.map(x => { let l = [1]; for (const y of t) { l = l.concat(l); } return l; })",
            "more than 100000",
        ),
        ("t.map(a => { for (const b of t) for (const c of t) {} return a; })", "statement"),
        (
            "t.map(a => { let n = 0; for (const b of t) { for (const c of t) { for (const d of t) { n += d; } } } return n; })",
            "too many steps",
        ),
    ];
    for (text, why) in table {
        let error = match Expression::parse(text) {
            Ok(parsed) => {
                parsed.evaluate(&scope, &mut Fuel::default()).expect_err(text).to_string()
            }
            Err(SyntaxError { message, .. }) => message + " statement",
        };
        assert!(error.contains(why), "{text}: {error}");
    }
}

#[test]
fn long_reduce_does_not_copy_what_it_collects() {
    let many = json!((0..20_000).map(|at| json!({"id": at, "k": at % 7})).collect::<Vec<_>>());
    let scope = Names(json!({ "t": many }));
    let text = "t.reduce((acc, r) => { if (!acc[r.k]) acc[r.k] = []; acc[r.k].push(r.id); return acc; }, {})";
    let made = Expression::parse(text).expect(text).evaluate(&scope, &mut Fuel::default());
    assert_eq!(made.expect("within the limits")["3"][1], json!(10));
}

#[test]
fn reads_are_those_outside_the_function() {
    let text = "list.reduce((acc, r) => { const k = r.id + names.x; acc[keys.y] = other; for (const z of all) { acc[z] = k; } return acc; }, {})";
    let reads = Expression::parse(text).expect(text).reads();
    let paths: Vec<_> = reads.into_iter().map(|read| read.path).collect();
    assert_eq!(paths, ["all", "keys.y", "list", "names.x", "other"]);
}

#[test]
fn block_is_found_in_text_with_references() {
    let text =
        json!("found ${list.map(x => { if (x > 1) { return '}'; } return x; }).join('')} of them");
    let filled = ValueTemplate::parse(&text).expect("a text").fill(&scope(), &mut Fuel::default());
    assert_eq!(filled, Ok(json!("found }1} of them")));
    assert_eq!(evaluate("list.length"), Ok(json!(3)));
}
