//! Definitions, libraries, roles made from a list, and `for-each`, as they are read.

use std::collections::BTreeMap;

use super::super::checked_program::{InstructionKind, Program};
use super::super::read::{ParsedProgram, read};
use super::{assert_diagnostics, diagnostics, program};

/// Returns a program with these definitions in line 1, and this body of a state in line 3.
fn with(definitions: &str, body: &str) -> String {
    format!("{definitions}\n(workflow w (roles (a) (b)) (state s\n{body}))")
}

/// Returns the sent requests as `role id template argument…`.
fn sent(program: &Program) -> Vec<String> {
    let all = program.instructions();
    let sent = all.filter_map(|instruction| match &instruction.kind {
        InstructionKind::Send(send) => Some(send),
        _ => None,
    });
    let line = |send: &super::super::checked_program::SendPrompt| {
        let role = &program.roles[send.role].name;
        format!("{role} {} {}", send.request, send.template.pieces.join("~"))
    };
    sent.map(line).collect()
}

#[test]
fn definitions_stand_for_texts_lists_and_actions() {
    let text = with(
        "(define go \"Go on: ~a\") (define words (@go)) (defn ask (who id) (send-prompt :agent @who :template @go :args @words :request-id @id) (await (transcript-response :request-id @id)))",
        "(ask a one) (action (ask b two) (log @go @go))",
    );
    assert_eq!(diagnostics(&text), Vec::<String>::new());
    assert_eq!(sent(&program(&text)), ["a one Go on: ~", "b two Go on: ~"]);
}

#[test]
fn block_called_twice_sends_two_requests() {
    let block = "(defn ask (who) (send-prompt :agent @who :template x) (await (transcript-response :request-id it)))";
    let read = program(&with(block, "(ask a) (ask b)"));
    assert_eq!(sent(&read), ["a it x", "b it x"]);
    let named = "(defn ask (who) (send-prompt :agent @who :template x :request-id it))";
    assert_eq!(sent(&program(&with(named, "(ask a) (ask b)"))), ["a it x", "b it x"]);
}

#[test]
fn break_in_a_block_leaves_the_loop_it_is_called_in() {
    let block = "(defn stop () (branch (on (signal enough) (break))))";
    assert_diagnostics(
        &with(
            block,
            "(loop (wait (signal x)) (stop)) (action (send-prompt :agent a :template x) (send-prompt :agent b :template x))",
        ),
        &[],
    );
    assert_diagnostics(
        &with(
            block,
            "(stop) (action (send-prompt :agent a :template x) (send-prompt :agent b :template x))",
        ),
        &["1:43: SX211 `break` is not in a loop; write `(goto STATE)`"],
    );
}

#[test]
fn wrong_definition_is_error_at_its_place() {
    let table = [
        (
            "(define)",
            "1:1: SX205 `define` takes a name and one value: `(define NAME \"text\")` or `(define NAME (one two))`",
        ),
        ("(define label x)", "1:9: SX312 `label` means something else already; use another name"),
        (
            "(defn loop () (log x))",
            "1:7: SX312 `loop` means something else already; use another name",
        ),
        (
            "(define x 1) (define x 2)",
            "1:22: SX204 `x` is defined in line 1 already; rename one of them",
        ),
        ("(defn f (x x) (log x))", "1:12: SX204 the parameter `x` is given twice; rename one"),
        (
            "(require \"none.lisp\")",
            "1:10: SX313 `none.lisp`: there is no such file in the workflow",
        ),
    ];
    for (definition, expected) in table {
        let found = diagnostics(&with(definition, "(action (log x))"));
        assert!(found.iter().any(|line| line == expected), "{definition}: {found:#?}");
    }
    let unused = diagnostics(&with("(define x 1)", "(action (log x))"));
    assert!(
        unused.contains(&"1:9: warning: SX409 `x` is never used; remove it".to_owned()),
        "{unused:?}"
    );
    let calls = diagnostics(&with("(defn f (x) (log @x))", "(f) (f a b) (f :x a)"));
    let takes = |at: &str| format!("{at}: SX206 `f` takes one value, for `x`");
    assert_eq!(calls, [takes("3:1"), takes("3:5"), takes("3:16")]);
    let stray = diagnostics(&with("", "(define x 1)"));
    assert!(
        stray[0].starts_with("3:1: SX211 `define` is a definition, which is not allowed here"),
        "{stray:?}"
    );
}

#[test]
fn definition_by_itself_is_error() {
    let itself = diagnostics(&with("(define x (@x))", "(action (log x :y @x))"));
    assert!(
        itself.iter().any(|line| line == "1:12: SX314 `x` is defined by itself, which never ends"),
        "{itself:?}"
    );
    let circle = diagnostics(&with("(defn f () (g)) (defn g () (f))", "(f)"));
    assert!(
        circle.iter().any(|line| line.contains("SX314 `f` is defined by itself")),
        "{circle:?}"
    );
}

#[test]
fn definitions_that_explode_are_error_at_once() {
    let lists = (0..30).map(|n| format!("(define x{} (@x{n} @x{n}))", n + 1));
    let text = format!("(define x0 \"0123456789\"){}", lists.collect::<String>());
    let found = diagnostics(&with(&text, "(action (send-prompt :agent a :template x :args @x30))"));
    assert!(found.iter().any(|n| n.contains("SX110") || n.contains("SX109")), "{found:?}");
    let blocks = (0..30).map(|n| format!("(defn f{} () (f{n}) (f{n}))", n + 1));
    let text = format!("(defn f0 () (log x)){}", blocks.collect::<String>());
    let found = diagnostics(&with(&text, "(f30)"));
    assert!(found.iter().any(|n| n.contains("SX110")), "{:?}", &found[..1]);
    let deep = "(defn f (x) (g (and (and (and (and (and (and (and (and @x)))))))))) (defn g (x) (f (and (and (and @x)))))";
    let found = diagnostics(&with(deep, "(f (signal x))"));
    assert!(found.iter().any(|n| n.contains("SX314")), "{found:?}");
}

/// Reads `p.lisp` with libraries beside it.
fn with_files(text: &str, files: &[(&str, &str)]) -> ParsedProgram {
    let files: BTreeMap<String, String> =
        files.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
    read("flows/p.lisp", text, &files)
}

#[test]
fn library_is_read_and_its_mistakes_have_its_path() {
    let ask = "; asks\n(defn ask (who)\n  (send-prompt :agent @who :template @words))\n(require more.lisp)";
    let more = "(require \"lib.lisp\")\n(define words \"ho ~q\")";
    let text = "(require \"lib.lisp\")\n(workflow w (roles (a)) (state s (ask a) (ask c)))";
    let ParsedProgram { diagnostics, .. } =
        with_files(text, &[("lib.lisp", ask), ("more.lisp", more)]);
    let found: Vec<_> = diagnostics.iter().map(ToString::to_string).collect();
    assert_eq!(
        found,
        [
            "flows/p.lisp:2:47: SX305 unknown role `c`; add it to `roles`",
            "flows/more.lisp:1:10: SX313 `lib.lisp` requires itself: `lib.lisp` requires `more.lisp` requires `lib.lisp`; remove one of these lines",
            "flows/more.lisp:2:19: SX212 `~q` has no meaning in a template; write `~a` for the next value and `~~` for a tilde",
        ]
    );
    let torn = with_files(text, &[("lib.lisp", "(define x")]);
    assert!(torn.program.is_none());
    assert!(
        torn.diagnostics
            .iter()
            .any(|diagnostic| diagnostic.to_string().starts_with("flows/lib.lisp:1:1: SX102"))
    );
    let wrong = with_files(text, &[("lib.lisp", "(defn ask (x) (log @x))\n(state x)")]);
    assert!(
        wrong
            .diagnostics
            .iter()
            .any(|diagnostic| diagnostic.to_string().starts_with("flows/lib.lisp:2:1: SX201 "))
    );
    let fine = with_files(
        text.replace("(ask c)", "").as_str(),
        &[("lib.lisp", "(defn ask (who) (send-prompt :agent @who :template x))")],
    );
    assert_eq!(fine.diagnostics, []);
    let program = fine.program.expect("it is sound");
    let at = program.states[0].body[0].at;
    assert_eq!(program.files.resolve(at).0, Some("flows/lib.lisp"));
}

#[test]
fn role_with_each_is_a_role_of_each_name() {
    let text = "(define names (safety speed))\n(workflow w (roles (reviewer :each @names :model haiku))\n(state s (for-each who in reviewer (send-prompt :agent @who :template \"~a\" :args (@who)))))";
    let read = program(text);
    let roles: Vec<_> = read.roles.iter().map(|role| role.name.to_string()).collect();
    assert_eq!(roles, ["safety", "speed"]);
    assert!(read.roles.iter().all(|role| role.model.is_some()));
    assert_eq!(sent(&read).len(), 2);
    let twice = diagnostics("(workflow w (roles (r :each (a a)))\n(state s (action (log x))))");
    assert_eq!(twice, ["1:32: SX204 `a` is in this list twice; remove one"]);
}

#[test]
fn for_each_has_separate_requests_for_each_element() {
    let each = "(for-each who in (a b) (action (send-prompt :agent @who :template x)) (await (transcript-response :request-id look)))";
    let after =
        "(await (transcript-response :request-id look)) (action (log \"~a\" (response look)))";
    let read = program(&with("", &format!("{each} {after}")));
    assert_eq!(sent(&read), ["a look/a x", "b look/b x"]);
    let known = program(&with("", &format!("{each} (action (log \"~a\" (response look/b)))")));
    assert_eq!(sent(&known).len(), 2);
    let table = [
        (
            "(for-each who (a b) (log x))",
            "3:1: SX205 `for-each` takes a name, `in`, a list, and instructions: `(for-each who in (one two) …)`",
        ),
        (
            "(for-each who in c (log x))",
            "3:18: SX207 write a list of texts here, such as `(security speed)`, or a role with `:each`, not the symbol `c`",
        ),
        (
            "(for-each label in (a) (log x))",
            "3:11: SX312 `@label` means something else already; use another name",
        ),
        (
            "(loop (for-each who in (a) (wait (signal x)) (break)))",
            "3:46: SX211 `break` is not in a loop; write `(goto STATE)`",
        ),
    ];
    for (body, expected) in table {
        let found = diagnostics(&with("", body));
        assert!(found.iter().any(|line| line == expected), "{body}: {found:#?}");
    }
}

#[test]
fn matches_looks_at_each_line() {
    let text = with("", "(branch (on (matches (signal x) \"^yes$\") (terminal)))");
    let read = program(&text);
    let InstructionKind::Branch { arms, .. } = &read.states[0].body[0].kind else {
        panic!("{read:?}")
    };
    let super::super::checked_program::ProgramCondition::Matches { pattern, .. } =
        &arms[0].condition
    else {
        panic!("{arms:?}")
    };
    assert!(pattern.is_match("well:\nyes\n") && !pattern.is_match("yes and no"));
}

#[test]
fn wrong_verdict_is_error_with_hint() {
    let send = "(send-prompt :agent a :template x :expect (APPROVE REVISE) :request-id r)";
    let test = |rest: &str| diagnostics(&with("", &format!("(action {send})\n{rest}")));
    let table = [
        (
            "(branch (on (verdict r APROVE)))",
            "4:24: SX222 `APROVE` is not in the `:expect` of `r`; did you mean `APPROVE`?",
        ),
        (
            "(branch (on (verdict r) MAYBE))",
            "4:25: SX222 `MAYBE` is not in the `:expect` of `r`; it has APPROVE, REVISE",
        ),
        ("(branch (on (verdict r)))", "4:13: SX205 `verdict` needs a word of its `:expect`"),
        (
            "(action (send-prompt :agent b :template x :request-id q) (log \"~a\" (verdict q)))",
            "4:77: SX222 the request `q` has no verdict; write `:expect (APPROVE REVISE)`, or other words, where it is sent",
        ),
        (
            "(action (send-prompt :agent b :template x :expect YES))",
            "4:51: SX207 write a list of words, such as `(APPROVE REVISE)`, here, not the symbol `YES`",
        ),
        (
            "(action (send-prompt :agent b :template x :expect (YES YES)))",
            "4:56: SX204 `YES` is given twice in `:expect`; remove one",
        ),
        (
            "(action (send-prompt :agent b :template x :expect (YES) :output verdict.json))",
            "4:9: SX222 an answer with `:output` is an object, and has no `:expect`; read a field of it",
        ),
    ];
    for (rest, expected) in table {
        let found = test(rest);
        assert!(found.iter().any(|line| line == expected), "{rest}: {found:#?}");
    }
    let fields = "(action (send-prompt :agent b :template x :output verdict.json :request-id q) (log \"~a\" (response q :field verdict)))";
    assert_eq!(
        test(fields),
        [
            "4:108: warning: SX407 `verdict` is not `required` by the schema; an answer without it fails the program"
        ]
    );
}

#[test]
fn name_of_element_without_its_sign_is_hinted_at() {
    let text = "(workflow w (roles (a) (b)) (state s (for-each r in (a b)\n(send-prompt :agent r :template x :request-id q))))";
    let why = "2:21: SX305 unknown role `r`; did you mean `@r`?";
    assert_eq!(diagnostics(text)[0], why);
}
