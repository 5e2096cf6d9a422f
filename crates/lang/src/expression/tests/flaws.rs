//! Texts that are no expression: the code, the place, and the message.

use super::super::{Expression, SyntaxError};

fn assert_flaws(code: &str, table: &[(&str, usize, &str)]) {
    for (text, offset, message) in table {
        let SyntaxError { offset: at, code: found, message: reason } =
            Expression::parse(text).expect_err(text);
        assert_eq!((found, at, reason.as_str()), (code, *offset, *message), "{text}");
    }
}

#[test]
fn syntax_error_names_expected_and_found_token() {
    assert_flaws(
        "WF310",
        &[
            ("", 0, "the expression is missing"),
            (" \n", 0, "the expression is missing"),
            ("1 +", 3, "a value is expected here, and the expression ends"),
            ("1 + * 2", 4, "a value is expected here, and this is `*`"),
            (")", 0, "a value is expected here, and this is `)`"),
            ("a b", 2, "an operator is expected here, and this is `b`"),
            ("a 'b'", 2, "an operator is expected here, and this is `'`"),
            ("(a", 2, "`)` is missing, and the expression ends"),
            ("len(a, [b", 9, "`]` is missing, and the expression ends"),
            ("(a]", 2, "an operator or `)` is expected here, and this is `]`"),
            ("a)", 1, "an operator is expected here, and this is `)`"),
            ("a ? b", 5, "`:` is missing, and the expression ends"),
            ("a.", 2, "a name is expected after the dot, and the expression ends"),
            ("a..b", 2, "a name is expected after the dot, and this is `.`"),
            ("f(a,)", 4, "a value is expected here, and this is `)`"),
            ("'abc", 0, "the quote that opens here is not closed"),
            ("a == \"abc'", 5, "the quote that opens here is not closed"),
            ("'\\u12'", 0, "this escape names no character: write `\\u` and four hex digits"),
            ("1e999", 0, "the number is too large"),
            (
                "1 < 2 < 3",
                6,
                "comparisons cannot be chained; join them with &&, as in `a < b && b < c`",
            ),
            ("a = 1", 2, "`=` does not compare; write `==`"),
            ("a & b", 2, "write `&&`"),
            ("a; b", 1, "write one expression here, without `;`"),
            ("a and b", 2, "`and` is not an operator here; write `a && b`"),
            ("not a", 4, "an operator is expected here, and this is `a`"),
            ("name contains 'a'", 5, "`contains` is not an operator here; write `contains(a, b)`"),
            ("x in [1]", 2, "`in` is not an operator here; write `list.includes(x)`"),
            ("a == “b”", 5, "write plain quotes, ' or \""),
            ("a + `b", 4, "the text in backticks that opens here is not closed"),
            ("`a ${b`", 6, "an operator or `}` is expected here, and this is ```"),
            ("new Date()", 4, "the time is `new Date().toISOString()`"),
            (
                "x => x",
                2,
                "a function may only be an argument of a method, as in `list.map(x => x.id)`",
            ),
            (
                "l.map(x => { while (x) {} })",
                13,
                "unknown statement; a function has `const`, `let`, `if`, `else`, `for (const x of list)`, `list.push(x)`, assignments and `return`",
            ),
            (
                "l.map(x => { for (let i = 0; i < 3; i++) {} })",
                24,
                "unknown statement; a function has `const`, `let`, `if`, `else`, `for (const x of list)`, `list.push(x)`, assignments and `return`",
            ),
            ("l.map(x => { return x; )", 23, "a value is expected here, and this is `)`"),
            (
                "...a",
                0,
                "`...` is only allowed in a list, in a map, or among arguments, as in `[...list, x]`",
            ),
            ("l.map(([a, {b: a}]) => a)", 15, "the function has two parameters of the name a"),
            (
                "/a/.test(b)",
                0,
                "a regular expression may only be an argument, as in `text.match(/…/)`",
            ),
            ("a.match(/a", 8, "the regular expression that begins here is not complete: `/…/`"),
            ("a.match(/(/)", 8, "the regular expression cannot be read: unclosed group"),
            (
                "a.match(/a/y)",
                8,
                "unknown flag `y` of a regular expression; the flags are g, i, m and s",
            ),
        ],
    );
}

#[test]
fn unknown_function_or_wrong_argument_is_parse_error() {
    assert_flaws(
        "WF311",
        &[
            ("lenn(a)", 0, "unknown function lenn; did you mean len?"),
            ("1 + length(a)", 4, "unknown function length; did you mean len?"),
            ("trim(a)", 0, "unknown function trim; trim is a method: write `x.trim(…)`"),
            (
                "fetch(a)",
                0,
                "unknown function fetch; there are len, contains, startswith, endswith, Object.keys, Object.values, Object.entries, Object.fromEntries, Math.min, Math.max, Math.floor, Math.ceil, Math.round, parseInt, parseFloat, JSON.parse, JSON.stringify",
            ),
            ("Object.key(a)", 0, "unknown function Object.key; did you mean Object.keys?"),
            ("a.startWith('b')", 2, "unknown method startWith; did you mean startsWith?"),
            ("a?.tolower()", 3, "unknown method tolower; did you mean toLowerCase?"),
            ("a.len()", 2, "unknown method len; it is a function: write `len(…)`"),
            ("a.length()", 2, "unknown method length; write `.length` without brackets"),
            ("a.push(1)", 2, "unknown method push; write `list.concat([x])`"),
            ("a.test(1)", 2, "unknown method test; write `text.match(/…/)`"),
        ],
    );
    assert_flaws(
        "WF310",
        &[
            ("len()", 0, "len takes one argument, but got 0"),
            ("contains(a)", 0, "contains takes 2 arguments, but got 1"),
            ("len(x => x)", 0, "len does not take a function or pattern"),
            ("a.trim(1)", 2, "trim takes nothing, but got 1"),
            ("a.split()", 2, "split takes 1 to 2 arguments, but got 0"),
            ("a.join(1, 2)", 2, "join takes at most one argument, but got 2"),
            ("a.map(b)", 2, "map takes a function, as in `map(x => x.id)`"),
            (
                "a.map((x, y, z) => x)",
                2,
                "the function of map has 1 or 2 parameters, as in `x => x.id`",
            ),
            (
                "a.reduce(b, 0)",
                2,
                "reduce takes a function, as in `reduce((sum, x) => sum + x, 0)`",
            ),
            (
                "a.reduce(x => x)",
                2,
                "the function of reduce has 2 or 3 parameters, as in `(sum, x) => sum + x`",
            ),
            ("a.join(x => x)", 2, "join does not take a function here"),
            ("a.includes(/b/)", 2, "includes does not take a regular expression here"),
            ("a.match('b')", 2, "match takes a regular expression, as in `match(/[0-9]+/)`"),
            ("a[0](1)", 4, "only functions and methods by their names can be called"),
            ("(a)(1)", 3, "only functions and methods by their names can be called"),
        ],
    );
}

#[test]
fn prose_shell_and_jq_syntax_is_error_with_hint() {
    let prose = "this is prose; write an expression, such as `len(files) > 0`";
    let test = "this is a shell's test; use a precondition such as file_exists";
    assert_flaws(
        "WF312",
        &[
            ("# count the sources", 0, prose),
            ("Check whether the file exists", 6, prose),
            ("${x:-0}", 3, "`:-` is a shell's form; write `x ?? 0`"),
            ("${a.b:=0} > 1", 5, "`:=` is a shell's form; write `a.b ?? 0`"),
            ("${x:0:3}", 3, "this is a shell's form; write `x.slice(0, 3)`"),
            ("${#x}", 2, "`#` is a shell's form; write `name.length`, or `name.replace('a', '')`"),
            (
                "${x##*/}",
                3,
                "`#` is a shell's form; write `name.length`, or `name.replace('a', '')`",
            ),
            ("${x:-}", 3, "`:-` is a shell's form; write `x ?? ''`"),
            ("format:-md", 6, "`:-` is a shell's form; write `format ?? 'md'`"),
            ("x:+yes", 1, "`:+` is a shell's form; write `x ? 'yes' : ''`"),
            ("path%.*", 5, "`%` with a pattern is a shell's form; write `name.replace(/…$/, '')`"),
            ("x | tojson", 2, "`|` is a form of jq and the shell; write `JSON.stringify(x)`"),
            ("x | fromjson", 2, "`|` is a form of jq and the shell; write `JSON.parse(x)`"),
            (
                "x | keys | length",
                2,
                "`|` is a form of jq and the shell; write `Object.keys(x).length`",
            ),
            ("x | join('-')", 2, "`|` is a form of jq and the shell; write `x.join(…)`"),
            ("x | length", 2, "`|` is a form of jq and the shell; write `x.length`"),
            ("a.b | keys", 4, "`|` is a form of jq and the shell; write `Object.keys(a.b)`"),
            (
                "x | tr a b",
                2,
                "`|` is a form of jq and the shell; write a method or a function, as in `x.trim()`",
            ),
            (
                ".sources | length",
                0,
                "a path that begins with a dot is jq's form; begin with a name",
            ),
            (
                "x // 0",
                3,
                "`//` is a form of jq and the shell; write `a ?? b` or `a.replaceAll('x', 'y')`",
            ),
            ("$(date)", 0, "`$(…)` is a shell's form; run the command in an action"),
            ("$x == 1", 0, "a `$` before a name is shell syntax; write only the name"),
            ("a -eq 1", 6, "`-eq` is a shell's comparison; write `==`"),
            ("[ -f data ]", 0, test),
            ("[[ -n x ]]", 0, test),
            ("-f data", 0, test),
        ],
    );
}

#[test]
fn statement_outside_of_a_function_is_named() {
    for text in [
        "const a = list.map(x => x.id); a.length",
        "let a = 1\na",
        "const { id } = map; id",
        "# first\n\n  var a = 1;",
        "if (a) { return b }",
        "if (a) return b; return c",
        "for (const x of list) { n += x }",
        "function f(x) { return x }",
        "return len(files) > 0;",
    ] {
        let flaw = Expression::parse(text).expect_err(text);
        assert_eq!(flaw.code, "WF310", "{text}: {flaw:?}");
        assert!(flaw.message.contains("only allowed in the braces of a function"), "{flaw:?}");
    }
    for prose in ["return the list of files", "if the config exists", "let people choose"] {
        let flaw = Expression::parse(prose).expect_err(prose);
        assert!(!flaw.message.contains("a statement"), "{flaw:?}");
    }
}

#[test]
fn comment_lines_before_an_expression_are_skipped() {
    for text in ["# keep a note\n1 + 1", "\n  # a\n\n# ü\n  1 + 1\n", "# a\r\n1 + 1", "// a\n1 + 1"]
    {
        let value = super::evaluate(text);
        assert_eq!(value, Ok(2.into()), "{text:?}");
    }
    let flaw = Expression::parse("# ü\n1 +").expect_err("no expression");
    assert_eq!(flaw.offset, 8, "{flaw:?}");
    assert_flaws(
        "WF312",
        &[("# only this", 0, "this is prose; write an expression, such as `len(files) > 0`")],
    );
}
