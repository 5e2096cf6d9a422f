//! The bounds: the nesting depth of a text, and the steps and sizes of an evaluation.

use proptest::prelude::*;
use serde_json::json;

use super::super::{Error, Expression, Fuel, ValueTemplate};
use super::{Names, evaluate, scope};

/// Runs the work on a thread with a small stack, which has to be enough for any expression.
fn on_a_small_stack(work: impl FnOnce() + Send + 'static) {
    let thread = std::thread::Builder::new().stack_size(1024 * 1024).spawn(work);
    thread.expect("a thread").join().expect("no overflow");
}

fn nested(depth: usize, open: &str, middle: &str, close: &str) -> String {
    format!("{}{middle}{}", open.repeat(depth), close.repeat(depth))
}

#[test]
fn expression_over_nesting_limit_is_syntax_error() {
    on_a_small_stack(|| {
        let bombs = [
            ("(", ")"),
            ("[", "]"),
            ("{a: ", "}"),
            ("${", "}"),
            ("a[", "]"),
            ("len(", ")"),
            ("l.map(x => ", ")"),
            ("a ? ", " : b"),
            ("l.split(/'/, ", ")"),
            ("l.split(/[/'(]/, ", ")"),
            ("(\"(\" + ", ")"),
        ];
        for (open, close) in bombs {
            let flaw = Expression::parse(&nested(500, open, "a", close)).expect_err(open);
            assert_eq!(flaw.message, "the expression nests more than 64 deep; compute it in steps");
            assert!(Expression::parse(&nested(500, open, "", "")).is_err(), "{open}");
            let value = json!(format!("${{{}}}", nested(500, open, "a", close)));
            assert!(ValueTemplate::parse(&value).is_err(), "{open}");
            let deepest = Expression::parse(&nested(64, open, "a", close));
            let deepest = deepest.unwrap_or_else(|flaw| panic!("{open}: {flaw:?}"));
            let _ = deepest.evaluate(&Names(json!({"l": [1], "a": "a"})), &mut Fuel::default());
            let _ = deepest.reads();
        }
    });
}

#[test]
fn nested_blocks_are_bounded_like_brackets() {
    on_a_small_stack(|| {
        // Each level opens two or three brackets, of which there may be 64.
        let bombs = [
            ("l.map(x => { return ", "; })", 32),
            ("l.map(x => { if (x) { return ", " } })", 21),
            ("l.map(x => { let y = 1; for (const z of l) { y = ", " } return y; })", 20),
        ];
        for (open, close, levels) in bombs {
            let flaw = Expression::parse(&nested(100, open, "a", close)).expect_err(open);
            assert_eq!(flaw.message, "the expression nests more than 64 deep; compute it in steps");
            let deepest = Expression::parse(&nested(levels, open, "a", close));
            let deepest = deepest.unwrap_or_else(|flaw| panic!("{open}: {flaw:?}"));
            let _ = deepest.evaluate(&Names(json!({"l": [1], "a": "a"})), &mut Fuel::default());
            let _ = deepest.reads();
        }
        let chain =
            format!("l.map(x => {{ if (x) return 1;{} }})", " else if (x) return 2;".repeat(500));
        assert!(Expression::parse(&chain).is_ok());
        let unbraced = format!("l.map(x => {{ {} return 1; }})", "if (x) ".repeat(500));
        assert!(Expression::parse(&unbraced).is_err());
    });
}

#[test]
fn long_operator_chain_is_evaluated_on_small_stack() {
    on_a_small_stack(|| {
        let rows = [
            ("!".repeat(10_000) + "a", json!(true)),
            ("- ".repeat(5_000) + "1", json!(1)),
            ("1".to_owned() + &" + 1".repeat(3_000), json!(3_001)),
            ("a".to_owned() + &".b".repeat(5_000), json!(null)),
            ("null".to_owned() + &" ?? null".repeat(1_500), json!(null)),
            ("null ? 0 : ".repeat(1_000) + "1", json!(1)),
            ("1".to_owned() + &" * 1 + 0".repeat(1_000), json!(1)),
        ];
        for (text, value) in rows {
            let scope = Names(json!({"a": "x"}));
            let parsed = Expression::parse(&text).unwrap_or_else(|flaw| panic!("{flaw:?}"));
            assert_eq!(parsed.evaluate(&scope, &mut Fuel::default()), Ok(value));
        }
        let flaw = Expression::parse(&"a+".repeat(9_000)).expect_err("a long text");
        assert_eq!(flaw.message, "the expression is longer than 16384 bytes; compute it in steps");
    });
}

const THOUSAND: &str = "'0123456789'.split('').flatMap(a => '0123456789'.split('')).flatMap(a => '0123456789'.split(''))";

#[test]
fn evaluation_over_step_or_size_limit_is_error() {
    let text = "the text is longer than 1048576 bytes";
    let steps = "the expression takes too many steps";
    let list = "the list has more than 100000 elements";
    let table = [
        (".reduce((s, x) => s + s, 'x')", text),
        (".reduce((s, x) => s.concat(s), ['x'])", list),
        (".reduce((s, x) => s + s, ['x'])", list),
        (".map(a => t.map(b => t.map(c => 1)))", steps),
        (".every(a => t.every(b => t.every(c => c)))", steps),
        (".every(a => t.flatMap(b => t).length)", list),
        (".reduce((s, x) => [s], 0)", "the value nests more than 64 lists and maps in one another"),
        (
            ".reduce((s, x) => {a: s}, 0)",
            "the value nests more than 64 lists and maps in one another",
        ),
        (".reduce((s, x) => s.replaceAll('x', '$&$&'), 'x')", text),
        (".reduce((s, x) => [s, s].join(''), 'x')", text),
        (".reduce((s, x) => s.concat(s), 'x')", text),
        (".flatMap(x => t)", list),
        (".reduce((s, x) => [s, s], 0)", steps),
    ];
    let thousand = evaluate(THOUSAND).expect("a list");
    let scope = Names(json!({ "t": thousand }));
    for (rest, why) in table {
        let parsed = Expression::parse(&format!("t{rest}")).expect(rest);
        let error = parsed.evaluate(&scope, &mut Fuel::default()).expect_err(rest);
        assert!(error.to_string().ends_with(why), "{rest}: {error}");
    }
}

#[test]
fn large_keys_and_json_over_a_limit_are_errors() {
    let (key, ones) = ("k".repeat(1 << 20), format!("[{}1]", "1,".repeat(200_000)));
    let wide = (0..40).fold(json!(vec![1; 50_000]), |inside, _| json!([inside]));
    let thousand = evaluate(THOUSAND).expect("a list");
    let scope = Names(json!({ "k": key, "ones": ones, "wide": wide, "t": thousand }));
    for (text, why) in [
        ("t.map(x => Object.fromEntries([[k, x]]))", "the expression takes too many steps"),
        ("JSON.parse(ones)", "the list has more than 100000 elements"),
        ("JSON.stringify(wide, null, 10)", "the text is longer than 1048576 bytes"),
        ("JSON.stringify({ k: k })", "the text is longer than 1048576 bytes"),
    ] {
        let parsed = Expression::parse(text).expect(text);
        let error = parsed.evaluate(&scope, &mut Fuel::default()).expect_err(text);
        assert!(error.to_string().contains(why), "{text}: {error}");
    }
}

#[test]
fn filled_template_over_size_or_depth_limit_is_error() {
    let scope = Names(json!({"x": "a".repeat(600_000), "l": [[[0]]]}));
    let twice = ValueTemplate::parse(&json!("${x}${x}")).expect("a template");
    let error = twice.fill(&scope, &mut Fuel::default()).expect_err("too long");
    assert_eq!(error.to_string(), "WF403 the text is longer than 1048576 bytes");
    let deep = (0..63).fold(json!("${l}"), |inside, _| json!([inside]));
    let error = ValueTemplate::parse(&deep).expect("a template").fill(&scope, &mut Fuel::default());
    let why = "the value nests more than 64 lists and maps in one another";
    assert_eq!(error, Err(Error::Evaluation(why.to_owned())));
}

#[test]
fn fuel_is_shared_between_evaluations() {
    let mut fuel = Fuel { steps: 10, ..Fuel::default() };
    let sum = Expression::parse("1 + 1").expect("a sum");
    while sum.evaluate(&scope(), &mut fuel).is_ok() {}
    assert_eq!(fuel.steps, 0);
}

const PIECES: [&str; 67] = [
    "a",
    "list",
    "name",
    "n",
    "x",
    "map",
    "1",
    "2.5",
    "'s'",
    "\"d\"",
    "'",
    "\"",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    "${",
    ":",
    "?",
    "?.",
    "??",
    ".",
    ",",
    "+",
    "-",
    "*",
    "/",
    "%",
    "!",
    "==",
    "!=",
    "<",
    ">=",
    "&&",
    "||",
    "|",
    "&",
    "=",
    "=>",
    "x => x",
    "(s, x) => s + x",
    ".map(",
    ".reduce(",
    ".push(",
    "x => {",
    "return",
    "const",
    "if (",
    "else",
    "for (const y of",
    ";",
    "+=",
    ".split(",
    ".replace(",
    ".trim()",
    ".length",
    "/[a-z]/g",
    "len(",
    "Object.keys(",
    "null",
    "true",
    "`",
    "#",
    "é",
    "\\",
];

proptest! {
    #[test]
    fn any_text_parses_or_gives_syntax_error(text in ".*") {
        if let Err(flaw) = Expression::parse(&text) {
            prop_assert!(text.is_char_boundary(flaw.offset) && !flaw.message.is_empty());
        }
        let _ = ValueTemplate::parse(&json!(text));
    }

    #[test]
    fn random_tokens_parse_or_give_syntax_error(
        pieces in prop::collection::vec(prop::sample::select(PIECES.to_vec()), 0..30),
        blank in prop::bool::ANY,
    ) {
        let text = pieces.join(if blank { " " } else { "" });
        match Expression::parse(&text) {
            Ok(expression) => {
                let mut fuel = Fuel { steps: 10_000, ..Fuel::default() };
                let _ = expression.evaluate(&scope(), &mut fuel);
                let _ = expression.reads();
            }
            Err(flaw) => prop_assert!(text.is_char_boundary(flaw.offset), "{flaw:?}"),
        }
        if let Err((flaw, within)) = ValueTemplate::parse(&json!(format!("a ${{{text}}} b"))) {
            prop_assert!(within.is_char_boundary(flaw.offset), "{flaw:?}");
        }
    }

    #[test]
    fn text_without_references_is_constant(text in "[^$]*") {
        let template = ValueTemplate::parse(&json!(text)).expect("no flaw");
        prop_assert_eq!(template.as_constant(), Some(&json!(text)));
    }
}
