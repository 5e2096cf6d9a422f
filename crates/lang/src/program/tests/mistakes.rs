//! One bad program for each mistake in its forms and names: the place and the words.

use std::collections::BTreeSet;

use super::super::codes::CODES;
use super::super::read::ParsedProgram;
use super::{assert_diagnostics, diagnostics, reading, state};

#[test]
fn invalid_workflow_structure_is_error_with_hint() {
    let table: [(&str, &[&str]); 16] = [
        (
            "(workflwo w (state s))",
            &["1:1: SX202 unknown form `workflwo`; did you mean `workflow`?"],
        ),
        (
            "(state s)",
            &[
                "1:1: SX211 `state` is a part of a workflow, which is not allowed here; write a workflow such as `(workflow NAME …)`",
            ],
        ),
        (
            "x",
            &["1:1: SX207 write a workflow such as `(workflow NAME …)` here, not the symbol `x`"],
        ),
        (
            "(workflow v (state s))\n(workflow w (state s)) x",
            &[
                "2:1: SX201 a file has one workflow, and this file has another in line 1; put it into a separate file",
                "2:24: SX201 the symbol `x` is outside the workflow; move it inside, or remove it",
            ],
        ),
        ("(workflow w)", &["1:1: SX208 this workflow has no state; write `(state NAME …)` in it"]),
        ("(workflow (state s))", &["1:1: SX205 `workflow` needs a name: `(workflow NAME …)`"]),
        (
            "(workflow 3 (state s))",
            &["1:11: SX207 write the name of the workflow here, not the number `3`"],
        ),
        ("(workflow w (state))", &["1:13: SX205 `state` needs a name: `(state NAME …)`"]),
        (
            "(workflow w (satte r) (state s))",
            &["1:13: SX202 unknown form `satte`; did you mean `state`?"],
        ),
        (
            "(workflow w (state \"\"))",
            &["1:20: SX312 `` cannot be the name of a state: it is empty"],
        ),
        (
            "(workflow w\n(state s)\n(state s))",
            &["3:8: SX301 `s` is a state in line 2 already; rename one of them"],
        ),
        (
            "(workflow w (roles) (roles) (state s))",
            &["1:21: SX204 a workflow has one `roles`; put both into one"],
        ),
        (
            "(workflow w (metadata (lable x) (label x) (label y)) (state s))",
            &[
                "1:24: SX218 `metadata` has no key `lable`; did you mean `label`?",
                "1:44: SX204 `label` is given twice in `metadata`; remove one of them",
            ],
        ),
        (
            "(workflow w (metadata (max-iterations 0) (max-budget-usd x) (model gpt)) (state s))",
            &[
                "1:39: SX207 `max-iterations` is a whole number greater than 0, not the number `0`",
                "1:58: SX207 write an amount in US dollars, such as 2 or 0.50",
                "1:68: warning: SX219 `gpt` is not a known model alias; raymond passes it to Claude Code unchanged",
            ],
        ),
        (
            "(workflow w (metadata (label) (description a b) label) (state s))",
            &[
                "1:23: SX205 `label` needs a value",
                "1:46: SX206 `description` takes one value; the symbol `b` is too many",
                "1:49: SX207 write an entry such as `(label \"…\")` here, not the symbol `label`",
            ],
        ),
        (
            "(workflow w :x 1 (state s) ())",
            &[
                "1:13: SX203 `workflow` has no keyword `:x`; it takes none",
                "1:28: SX205 this list is empty; write a part of a workflow such as `(state NAME …)`",
            ],
        ),
    ];
    for (text, expected) in table {
        assert_diagnostics(text, expected);
    }
}

#[test]
fn invalid_role_is_error_with_hint() {
    let table = [
        (
            "(a :agent-kind \"claude\")",
            "2:16: SX306 unknown agent kind `claude`; did you mean `claude-code`?",
        ),
        ("(a) (a)", "2:6: SX302 `a` is a role in line 2 already; rename one of them"),
        ("(a/b)", "2:2: SX309 a role's name has no `/`, as `a/b` has; use `-`"),
        (
            "(a :handle-ref x :cwd one) (b :handle-ref x)",
            "2:29: SX310 `b` shares the session `x` with `a`, but not its `:cwd`; give both the same, or another `:handle-ref`",
        ),
        (
            "(a :cwd \"/etc\")",
            "2:9: SX217 `:cwd` is a directory below that of the run, without `..`, which `/etc` is not",
        ),
        (
            "(a :cwd \"../x\")",
            "2:9: SX217 `:cwd` is a directory below that of the run, without `..`, which `../x` is not",
        ),
        (
            "(a :model -x)",
            "2:11: SX207 `-x` cannot be the name of a model; write one word, such as opus, sonnet, haiku or a full name",
        ),
        ("(a :effort hgh)", "2:12: SX220 unknown value `hgh` of `effort`; did you mean `high`?"),
        ("(a :settings gone.json)", "2:14: SX220 gone.json: there is no such file in the workflow"),
        (
            "(a :on-denied stop)",
            "2:15: SX220 unknown value `stop` of `on_denied`; use continue, fail",
        ),
        ("(a :output gone.json)", "2:12: SX220 gone.json: there is no such file in the workflow"),
        ("(a :efort low)", "2:4: SX203 `a` has no keyword `:efort`; did you mean `:effort`?"),
        ("(a :modle opus)", "2:4: SX203 `a` has no keyword `:modle`; did you mean `:model`?"),
        (
            "(a :model opus :model opus)",
            "2:16: SX204 `:model` is given twice in this `a`; remove one of them",
        ),
        ("(a :model)", "2:4: SX205 `:model` has no value; write one after it"),
        ("(a b)", "2:4: SX206 `a` takes no value without a keyword; the symbol `b` is too many"),
    ];
    for (roles, expected) in table {
        let text = format!("(workflow w (roles\n{roles})\n(state s))");
        let found: Vec<_> = diagnostics(&text)
            .into_iter()
            .filter(|diagnostics| !diagnostics.contains("warning"))
            .collect();
        assert_eq!(found, [expected], "{text}");
    }
}

#[test]
fn invalid_instruction_is_error_with_hint() {
    let table: [(&str, &str); 25] = [
        ("(gotu s)", "3:1: SX202 unknown form `gotu`; did you mean `goto`?"),
        (
            "(\"goto\" s)",
            "3:2: SX202 an instruction begins with its name, as `(goto STATE)` does, and not with the text `goto`",
        ),
        ("s", "3:1: SX207 write an instruction such as `(goto STATE)` here, not the symbol `s`"),
        (
            "(send-prompt :agent a :template x)",
            "3:1: SX211 `send-prompt` is an action, which is not allowed here; write `(action (send-prompt …))`",
        ),
        (
            "(action (goto s))",
            "3:9: SX211 `goto` is an instruction, which is not allowed here; `action` contains actions, `wait` and `await`; write it after the action",
        ),
        (
            "(signal l)",
            "3:1: SX211 `signal` is a condition, which is not allowed here; write `(wait (signal …))`",
        ),
        (
            "(action)",
            "3:1: SX209 this `action` is empty; write an action such as `(log \"…\")` in it",
        ),
        (
            "(loop)",
            "3:1: SX209 this `loop` is empty; write an instruction such as `(goto STATE)` in it",
        ),
        ("(goto)", "3:1: SX205 `goto` needs the name of a state"),
        ("(goto s s)", "3:9: SX206 `goto` takes one value; the symbol `s` is too many"),
        ("(goto (s))", "3:7: SX207 write the name of a state here, not the list `(s …)`"),
        ("(goto ss)", "3:7: SX304 unknown state `ss`; did you mean `s`?"),
        ("(branch)", "3:1: SX205 `branch` needs at least one `(on CONDITION …)`"),
        ("(branch (on))", "3:9: SX205 `on` needs a condition, such as `(signal LABEL)`"),
        (
            "(branch (otherwise) (on (signal l)))",
            "3:9: SX210 `otherwise` must be last in a branch; raymond never reads what comes after it",
        ),
        (
            "(branch (on (signal l)) (otherwise) (otherwise))",
            "3:37: SX204 a branch has one `otherwise`; make an `(on CONDITION …)` of it",
        ),
        (
            "(terminal :status fine)",
            "3:19: SX207 write `completed` or `failed` here, not the symbol `fine`",
        ),
        ("(wait (signal l) :on-timeout s)", "3:1: SX205 `wait` needs `:timeout`"),
        (
            "(wait (signal l) :timeout 1y)",
            "3:27: SX108 `1y` is neither a number nor a name; put it in quotes if it is a text",
        ),
        (
            "(wait (signal l) :timeout '1y')",
            "3:27: SX108 `'1y'` has single quotes; a text has double quotes: \"TEXT\"",
        ),
        (
            "(wait (signal l) :timeout \"1y\")",
            "3:27: SX215 `1y` is not a duration; write for example 200ms, 30s, 5m or 1h",
        ),
        ("(action (log))", "3:9: SX205 `log` needs a text"),
        (
            "(action (assert))",
            "3:9: SX205 `assert` needs the label of a fact, such as `plan/ready`",
        ),
        (
            "(action (retract l :value x))",
            "3:20: SX203 `retract` has no keyword `:value`; it takes :key",
        ),
        (
            "(on (signal l))",
            "3:1: SX211 `on` is an arm of a branch, which is not allowed here; write an instruction such as `(goto STATE)`",
        ),
    ];
    for (body, expected) in table {
        assert_eq!(diagnostics(&state(body))[0], expected, "{body}");
    }
}

/// Reads texts that together have every mistake of the table.
#[test]
fn every_diagnostic_code_can_be_produced() {
    let deep = "(".repeat(100);
    let long = "x".repeat(300_000);
    let blocks = (0..30).map(|n| format!("(defn f{} () (f{n}) (f{n}))", n + 1));
    let blocks: String = blocks.collect();
    let explosion = format!("(defn f0 () (log x)) {blocks} (workflow w (state s (f30)))");
    let texts = [
        "(",
        ")",
        "\"",
        "#|",
        "(workflow \"\\q\" (state s (goto :)))",
        "(workflow 1x)",
        &deep,
        &long,
        "",
        "(workflow w (x))",
        "(workflow w (state s))) x",
        "(workflow w (metadata (x y) (model gpt) (label a) (label a b)) (roles (a :effort x :x y :cwd \"..\" :agent-kind c :handle-ref h) (a) (b/c :handle-ref h :cwd x)) (state \"\"))",
        &state("(action) (branch (otherwise) (on (after 1))) (goto t) (terminal :status x) (wait)"),
        &state(
            "(action (log \"~b\") (log \"~a\") (log \"~a\" @x) (send-prompt :agent c :template x :request-id a) (send-prompt :agent c :template x :request-id a) (run-folder :agent a :start x.md))",
        ),
        &state(
            "(wait (or (matches x \"(\") (after x) (at x) (transcript-response :request-id r)))",
        ),
        "(workflow w (state s) (state s))",
        "(workflow w (roles (a)) (state s (terminal :result (feedback a :field x))))",
        "(workflow w (roles (a :output verdict.json)) (state s (terminal :result (feedback a :field verdict))))",
        &state("(loop (action (log x))) (loop (wait (signal l)))"),
        "(workflow w (roles (a)) (state s (wait (transcript-response :request-id r)) (goto s)) (state t (action (send-prompt :agent a :template x :request-id r))))",
        "(require x) (define x (@x)) (workflow w (state s (wait (and (signal @x) (not (signal x))))))",
        "(define unused x) (workflow w (state s (wait (and (signal x) (not (signal x))))))",
        "(workflow w (roles (a)) (state s (action (send-prompt :agent a :template x :request-id r)) (branch (on (verdict r A)))))",
        "(workflow w (state s (action (run :command x :as y))))",
        &explosion,
        "(workflow w (state s (action (start-workflow gone.lisp))))",
        "(workflow w (state s (action (start-workflow child.lisp :as x)) (wait (signal workflow/state :key @x))))",
    ];
    let diagnostics: BTreeSet<&str> =
        texts.iter().flat_map(|text| reading(text).diagnostics).map(|found| found.code).collect();
    let known: BTreeSet<&str> = CODES.into_iter().map(|(code, _)| code).collect();
    assert_eq!(diagnostics, known);
    for (code, meaning) in CODES {
        let is_warning = |text: &&str| {
            reading(text).diagnostics.iter().any(|found| found.code == code && !found.is_error())
        };
        assert_eq!(meaning.ends_with("(warning)"), texts.iter().any(is_warning), "{code}");
    }
}

#[test]
fn program_with_errors_is_not_returned() {
    let ParsedProgram { program, diagnostics } = reading("(workflow w (state s (goto t)))");
    assert!(program.is_none() && diagnostics.len() == 1);
}

#[test]
fn unknown_answer_field_is_error_with_hint() {
    let table = [
        (
            ":output verdict.json",
            "(response r :field verdct)",
            "4:38: SX221 the schema of the role `a` has no field `verdct`; did you mean `verdict`?",
        ),
        (
            "",
            "(feedback a :field verdict)",
            "4:38: SX221 the role `a` has no `:output`, so its answers have no fields; give it a schema, such as `:output verdict.schema.json`",
        ),
        (
            ":output verdict.json",
            "(artifact a :field verdict)",
            "4:31: SX203 `artifact` has no keyword `:field`; it takes none",
        ),
    ];
    for (output, value, expected) in table {
        let send = "(action (send-prompt :agent a :template x :request-id r))";
        let text = format!(
            "(workflow w (roles (a {output}))\n(state s {send}\n(await (transcript-response :request-id r))\n(terminal :result {value})))"
        );
        let found = diagnostics(&text);
        assert_eq!(found.first().map(String::as_str), Some(expected), "{found:#?}");
    }
}
