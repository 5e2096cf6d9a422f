//! Starts of programs as runs of their own: the names that are there, labels, and the context.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::super::checked_program::{InstructionKind, StartWorkflow, TextExpression, instructions};
use super::super::read::read;
use super::{assert_diagnostics, program, state};
use crate::source::{Error, WorkflowSource};
use raymond_model::id::{Folder, StateName};
use raymond_model::money::Usd;

fn start(text: &str) -> StartWorkflow {
    let program = program(&state(&format!("(action {text})")));
    let found =
        instructions(&program.states[0].body).into_iter().find_map(
            |instruction| match &instruction.kind {
                InstructionKind::StartWorkflow(start) => Some(start.clone()),
                _ => None,
            },
        );
    found.expect("a start")
}

#[test]
fn start_is_read_with_its_parameters() {
    let read = start(
        "(start-workflow nightly :label \"x-~a\" :args (@workflow-id) :context (item a other @label))",
    );
    assert_eq!((read.program.as_str(), read.branch.is_none()), ("nightly", true));
    assert_eq!(
        read.label.as_ref().map(|label| label.pieces.clone()),
        Some(vec!["x-".into(), String::new()])
    );
    let keys: Vec<&str> = read.context.iter().map(|(key, _)| key.as_str()).collect();
    assert_eq!(keys, ["item", "other"]);
    let read = start("(start-workflow nightly :label @context/x)");
    let label = read.label.expect("a label");
    assert!(matches!(&label.arguments[..], [TextExpression::Context(key)] if key == "x"));
}

#[test]
fn mistakes_in_a_start_are_errors_with_hint() {
    let table: [(&str, &[&str]); 6] = [
        (
            "(start-workflow)",
            &[
                "3:9: SX205 `start-workflow` needs the name of a defined program, or its file, such as `review.lisp`",
            ],
        ),
        (
            "(start-workflow gone.lisp)",
            &["3:25: SX315 `gone.lisp`: there is no such file in the workflow"],
        ),
        (
            "(start-workflow x :label \"a b\")",
            &[
                "3:34: SX312 `a b` is not a run id: use 1 to 64 letters, digits, `-`, `_` or `.`, not starting with `.` or `-`",
            ],
        ),
        ("(start-workflow x :args (@label))", &["3:9: SX205 `start-workflow` needs `:label`"]),
        (
            "(start-workflow x :context (item))",
            &["3:36: SX205 the last name of `:context` has no value; write one after it"],
        ),
        (
            "(start-workflow x :context (item a item b))",
            &["3:44: SX204 `item` is given twice in `:context`; remove one"],
        ),
    ];
    for (text, expected) in table {
        assert_diagnostics(
            &state(&format!("(action {text})")).replace("(roles (a) (b))", ""),
            expected,
        );
    }
}

/// A folder beside which programs are defined.
struct WithDefined(BTreeMap<String, String>, Vec<String>);

impl WorkflowSource for WithDefined {
    fn read(&self, name: &StateName) -> Result<String, Error> {
        self.0.read(name)
    }
    fn defined_programs(&self) -> Option<&[String]> {
        Some(&self.1)
    }
    fn check(&self, name: &StateName) -> Result<(), Error> {
        self.0.check(name)
    }
    fn within(&self, folder: &Folder) -> Result<Arc<dyn WorkflowSource>, Error> {
        self.0.within(folder)
    }
    fn names(&self) -> Result<Vec<StateName>, Error> {
        self.0.names()
    }
    fn path(&self, name: &StateName) -> String {
        self.0.path(name)
    }
    fn document(&self, path: &str) -> Result<String, Error> {
        self.0.document(path)
    }
    fn read_path(&self, path: &str) -> Result<String, Error> {
        self.0.read_path(path)
    }
    fn check_path(&self, path: &str, is_folder: bool) -> Result<(), Error> {
        self.0.check_path(path, is_folder)
    }
}

#[test]
fn unknown_program_is_error_where_defined_programs_are_known() {
    let files = BTreeMap::from([("review.lisp".to_owned(), String::new())]);
    let source = WithDefined(files, vec!["nightly".to_owned()]);
    let table = [
        ("nightly", None),
        ("review.lisp", None),
        ("nigthly", Some("no program `nigthly` is defined; did you mean `nightly`?")),
        ("review", Some("no program `review` is defined; did you mean the file `review.lisp`?")),
        (
            "other",
            Some(
                "no program `other` is defined; define it with `raymond workflow define FILE`, or name its file: `NAME.lisp`",
            ),
        ),
    ];
    for (name, expected) in table {
        let text = format!("(workflow w (state s (action (start-workflow {name}))))");
        let found = read("p.lisp", &text, &source).diagnostics;
        let found: Vec<String> = found.iter().map(ToString::to_string).collect();
        let expected = expected.map(|why| format!("p.lisp:1:46: SX315 {why}"));
        assert_eq!(found, expected.into_iter().collect::<Vec<_>>(), "{name}");
    }
}

#[test]
fn started_program_is_checked_for_its_values_and_its_state() {
    let check = |child: &str, program: &str| {
        let files = BTreeMap::from([("child.lisp".to_owned(), child.to_owned())]);
        let found = read("p.lisp", program, &files).diagnostics;
        found
            .iter()
            .map(|diagnostic| format!("{} {}", diagnostic.code, diagnostic.message))
            .collect::<Vec<_>>()
    };
    let child = "(workflow c (state s (action (log \"~a ~a ~a\" @context/a @context/b @branch))))";
    let waits = |start: &str, key: &str| {
        format!(
            "(workflow w (state s (action {start}) (wait (signal workflow/state :key {key} :equals completed))))"
        )
    };
    let publishes = child.replace("(state s", "(metadata (publish-state true)) (state s");
    let full = "(start-workflow child.lisp :label x :branch y :context (a 1 b 2) :as run)";
    assert!(check(&publishes, &waits(full, "@run")).is_empty());
    let silent = "SX411 `child.lisp` does not publish its state, so nobody can wait for it; add `(metadata (publish-state true))` there";
    assert_eq!(check(child, &waits(full, "@run")), [silent]);
    assert_eq!(check(child, &waits(full, "x")), [silent]);
    assert!(check(child, &waits(full, "other")).is_empty());
    let bare = waits("(start-workflow child.lisp :context (a 1))", "other");
    assert_eq!(
        check(child, &bare),
        [
            "SX412 `child.lisp` needs @context/b, @branch, so it cannot be started without; give it by `:context (b VALUE)` and `:branch VALUE`"
        ]
    );
    let itself = "(workflow w (state s (action (start-workflow p.lisp))))";
    let files = BTreeMap::from([("p.lisp".to_owned(), itself.to_owned())]);
    assert!(read("p.lisp", itself, &files).diagnostics.is_empty());
}

#[test]
fn budget_of_a_start_is_an_amount_above_zero() {
    assert_eq!(start("(start-workflow x :budget 0.50)").budget, Some(Usd::from_dollars(0.5)));
    for wrong in ["0", "lots"] {
        let text = state(&format!("(action (start-workflow x :budget {wrong}))"));
        let found = read("p.lisp", &text, &BTreeMap::<String, String>::new()).diagnostics;
        assert_eq!(found[0].code, "SX207", "{found:?}");
    }
}
