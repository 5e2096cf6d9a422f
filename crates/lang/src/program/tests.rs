//! Tests of reading programs, good ones and bad ones.

use std::collections::BTreeMap;

use super::checked_program::Program;
use super::read::{ParsedProgram, read};

mod all_at_once;
mod bombs;
mod definitions;
mod meanings;
mod mistakes;
mod remarks;
mod requests;
mod slips;
mod starts;
mod syntax_fixes;

/// The example of the specification.
const SEED: &str = include_str!("tests/planner-worker-review.lisp");

fn reading(text: &str) -> ParsedProgram {
    let schema = r#"{"type":"object","properties":{"verdict":{"type":"string"}}}"#;
    let child = "(workflow c (state s (action (log \"~a\" @context/a))))";
    let files = [
        ("review/START.md", "x"),
        ("own.yaml", "x"),
        ("WORK.md", "x"),
        ("verdict.json", schema),
        ("child.lisp", child),
    ];
    let source: BTreeMap<String, String> =
        files.map(|(name, text)| (name.to_owned(), text.to_owned())).into();
    read("p.lisp", text, &source)
}

/// Returns the diagnostics of a program, without its path.
fn diagnostics(text: &str) -> Vec<String> {
    let found = reading(text).diagnostics;
    let diagnostics = found.iter().map(ToString::to_string);
    diagnostics
        .map(|diagnostics| diagnostics.strip_prefix("p.lisp:").unwrap_or(&diagnostics).to_owned())
        .collect()
}

fn program(text: &str) -> Program {
    let ParsedProgram { program, diagnostics } = reading(text);
    program.unwrap_or_else(|| panic!("{diagnostics:#?}\n{text}"))
}

/// Returns a program with the roles `a` and `b` and one state, whose body begins at 3:1.
fn state(body: &str) -> String {
    format!("(workflow w (roles (a) (b))\n(state s\n{body}))")
}

/// Asserts that the program has these mistakes and no others.
fn assert_diagnostics(text: &str, expected: &[&str]) {
    assert_eq!(diagnostics(text), expected, "{text}");
}
