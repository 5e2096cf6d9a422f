//! Hostile texts and random texts: all are read, none takes long.

use crate::diagnostic::{Diagnostic, FileDiagnostics};
use proptest::prelude::*;

use super::super::parse;
use super::{SEED, diagnostics, reading, state};
use crate::program::parse::LineIndex;

#[test]
fn too_long_or_deeply_nested_program_is_error() {
    let found = diagnostics(&"a".repeat(256 * 1024 + 1));
    assert_eq!(
        found,
        [
            "1:1: SX101 this is 262145 bytes long, a program may have 262144; have prompts name files to read"
        ]
    );
    let deep = ["1:65: SX109 lists nest more than 64 deep here; move a part to another state"];
    assert_eq!(diagnostics(&"(".repeat(100_000)), deep);
    let closed = format!("{}{}", "(".repeat(100_000), ")".repeat(100_000));
    assert_eq!(diagnostics(&closed), deep);
    assert_eq!(diagnostics(&"#|".repeat(100_000)).len(), 1);
    assert_eq!(diagnostics(&")".repeat(100_000)).len(), 2);
}

#[test]
fn large_programs_are_checked_quickly() {
    for piece in [") x ", "\"\\q\" ", "(a)", ": ", "@a@ ", "\n(a", "\n   )", "(state s)", "é"] {
        let text = format!("(workflow w {}", piece.repeat(50_000 / piece.len()));
        assert!(!diagnostics(&text).is_empty(), "{piece}");
    }
    let goes = |number: usize| format!("(state s{} (goto s{number}))\n", number + 1);
    let states: String = (0..1250).rev().map(goes).collect();
    assert_eq!(reading(&format!("(workflow w {states} (state s0))")).diagnostics, []);
    let tildes = diagnostics(&state(&format!("(action (log \"{}\"))", "~b".repeat(25_000))));
    assert_eq!(tildes.len(), 25_000);
}

/// Pieces that programs are made of.
const WORDS: &[&str] = &[
    "(",
    ")",
    "(",
    ")",
    "\"",
    "\n  ",
    " ",
    ";",
    "#|",
    "|#",
    "\\",
    ":",
    "@",
    "~a",
    ":key ",
    ":args ",
    ":request-id ",
    "@workflow-id",
    "@x",
    "(workflow w ",
    "(state s ",
    "(roles (a))",
    "(action ",
    "(loop ",
    "(branch ",
    "(on ",
    "(otherwise ",
    "(goto s)",
    "(terminal)",
    "(wait ",
    "(signal l)",
    "(send-prompt :agent a :template \"x\")",
    "(await (transcript-response :request-id r))",
    "(log \"~a\" (response r))",
    "1.5",
    "true",
];

fn pieces() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        8 => prop::sample::select(WORDS).prop_map(str::to_owned),
        1 => "\\PC{0,3}",
    ];
    prop::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat())
}

/// Checks that the diagnostics of a text are about places in it, and that it gives a program or an error.
fn holds(text: &str) -> Result<(), TestCaseError> {
    let reading = reading(text);
    let lines: Vec<&str> = text.strip_prefix('\u{feff}').unwrap_or(text).split('\n').collect();
    for found in &reading.diagnostics {
        let line =
            usize::try_from(found.line).ok().and_then(|line| lines.get(line.checked_sub(1)?));
        let width = line.map(|line| line.chars().count() as u64 + 1);
        prop_assert!(found.column >= 1 && Some(found.column) <= width, "{}: {:?}", found, text);
    }
    let errors = reading.diagnostics.iter().any(Diagnostic::is_error);
    prop_assert_eq!(reading.program.is_none(), errors, "{:?}", text);
    Ok(())
}

/// Checks that a recovered text can be read.
fn mends(text: &str) -> Result<(), TestCaseError> {
    let lines = LineIndex::new(text);
    let mut report = FileDiagnostics::new("p.lisp");
    if let Some(recovered) = parse::recover(text, &lines, &mut report) {
        let mut rest = FileDiagnostics::new("p.lisp");
        parse::forms(&recovered, &lines, &mut rest);
        prop_assert_eq!(rest.sorted(), vec![], "{:?}", text);
    }
    Ok(())
}

proptest! {
    #[test]
    fn any_text_gives_program_or_located_error(text in any::<String>()) {
        holds(&text)?;
        mends(&text)?;
    }

    #[test]
    fn mixed_fragments_give_program_or_located_error(text in pieces()) {
        holds(&text)?;
        mends(&text)?;
    }

    #[test]
    fn edited_example_gives_program_or_located_error(at in 0..SEED.len(), gone in 0..40usize, piece in pieces()) {
        let mut text = SEED.to_owned();
        let (from, to) = (text.floor_char_boundary(at), text.floor_char_boundary(at + gone));
        text.replace_range(from..to, &piece);
        holds(&text)?;
        mends(&text)?;
    }

    #[test]
    fn example_without_one_character_gives_program_or_located_error(at in 0..SEED.len()) {
        let mut text = SEED.to_owned();
        text.remove(at);
        holds(&text)?;
    }
}
