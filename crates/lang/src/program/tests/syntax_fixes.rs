//! Lexical mistakes: brackets, strings, comments, words.

use super::{SEED, assert_diagnostics, diagnostics, program, state};

#[test]
fn syntax_error_is_reported_with_location_and_fix() {
    let table: [(&str, &[&str]); 14] = [
        (
            "(workflow w (state s)",
            &["1:1: SX102 this list is never closed; add its `)` at the end of the file"],
        ),
        ("(workflow w (state s)))", &["1:23: SX103 this `)` does not close anything; remove it"]),
        (
            "(workflow w (state s))) ) ; x\n)",
            &[
                "1:23: SX103 these 2 `)` do not close anything; remove them",
                "2:1: SX103 this `)` does not close anything; remove it",
            ],
        ),
        (
            "(workflow w (state \"s))",
            &[
                "1:20: SX104 the string that begins here is never closed; end it with `\"`, and write `\\\"` for a quote in it",
            ],
        ),
        (
            "(workflow w #| #| |# (state s))",
            &["1:13: SX105 the comment that begins here is never closed; end it with `|#`"],
        ),
        (
            "(workflow \"a\\q\\é\" (state s))",
            &[
                "1:13: SX106 unknown escape `\\q`; the escapes are `\\n`, `\\t`, `\\r`, `\\\"`, `\\\\` and `\\u{e9}`",
                "1:15: SX106 unknown escape `\\é`; the escapes are `\\n`, `\\t`, `\\r`, `\\\"`, `\\\\` and `\\u{e9}`",
            ],
        ),
        (
            "(workflow \"\\u{110000}\" (state s))",
            &["1:12: SX106 `\\u` needs the number of a character, such as `\\u{e9}`"],
        ),
        (
            "(workflow \"\\u12\" (state s))",
            &["1:12: SX106 `\\u` needs the number of a character, such as `\\u{e9}`"],
        ),
        (
            "(workflow w (roles (a : x)) (state s (wait (signal l :key @))))",
            &[
                "1:23: SX107 a `:` alone has no meaning; write a keyword, such as `:key`",
                "1:59: SX107 an `@` alone has no meaning; write a placeholder, such as `@workflow-id`",
            ],
        ),
        (
            "(workflow w (state s (goto 3rd)))",
            &["1:28: SX108 `3rd` is neither a number nor a name; put it in quotes if it is a text"],
        ),
        (
            "(workflow w (state s (wait (signal l :a:b x))))",
            &["1:38: SX108 `:a:b` is not a keyword; write one such as `:request-id`"],
        ),
        (
            "(workflow w (state s (wait (signal l :key @a@b))))",
            &["1:43: SX108 `@a@b` is not a placeholder; write one such as `@workflow-id`"],
        ),
        (
            "(workflow w, (state s))",
            &["1:11: SX108 `w,` is neither a number nor a name; put it in quotes if it is a text"],
        ),
        ("", &["1:1: SX201 this file has no workflow; write `(workflow NAME (state …))`"]),
    ];
    for (text, expected) in table {
        assert_diagnostics(text, expected);
    }
}

#[test]
fn missing_bracket_is_located_by_indentation() {
    for line in SEED.lines().filter(|line| line.ends_with("))")) {
        let text =
            SEED.replacen(&format!("{line}\n"), &format!("{}\n", &line[..line.len() - 1]), 1);
        let found = diagnostics(&text);
        let [message] = &found[..] else { panic!("{line}: {found:#?}") };
        assert!(message.contains("SX102 this list is never closed; add its `)`"), "{message}");
    }
    let text = SEED.replace(
        "(label \"Planner/Worker review loop\"))",
        "(label \"Planner/Worker review loop\")",
    );
    assert_diagnostics(&text, &["2:3: SX102 this list is never closed; add its `)` before line 5"]);
    let text =
        SEED.replace("@workflow-id)))\n\n  (state handoff", "@workflow-id))\n\n  (state handoff");
    assert_diagnostics(
        &text,
        &["9:3: SX102 this list is never closed; add its `)` before line 12"],
    );
    let text = text.replace("    (terminal)))", "    (terminal))");
    assert_eq!(diagnostics(&text).len(), 2);
}

#[test]
fn extra_bracket_is_located_by_indentation() {
    let text = SEED.replace("(goto complete))", "(goto complete)))");
    assert_diagnostics(&text, &["31:29: SX103 this `)` does not close anything; remove it"]);
    let text = SEED.replace("(terminal)))", "(terminal))))");
    assert_diagnostics(&text, &["41:17: SX103 this `)` does not close anything; remove it"]);
}

#[test]
fn unbalanced_bracket_does_not_hide_later_error() {
    let text = SEED
        .replace("review loop\"))", "review loop\")")
        .replace("(goto complete)", "(goto compelte)");
    assert_diagnostics(
        &text,
        &[
            "2:3: SX102 this list is never closed; add its `)` before line 5",
            "31:19: SX304 unknown state `compelte`; did you mean `complete`?",
        ],
    );
}

#[test]
fn unclosed_string_is_reported_at_its_likely_start() {
    let text = SEED.replace("changes:\\n~a\"", "changes:\\n~a");
    assert_diagnostics(
        &text,
        &[
            "25:21: SX104 the string that begins here is never closed; end it with `\"`, and write `\\\"` for a quote in it",
        ],
    );
}

#[test]
fn comments_and_whitespace_are_allowed_anywhere() {
    let comment = "\u{a0}#| a ) \" #| b |# |#\t(";
    let text = SEED.replace('(', comment).replace('\n', " ; ( \" #|\r\n");
    let read = program(&text);
    assert_eq!((read.states.len(), read.roles.len()), (4, 2));
    assert_eq!(program(&format!("\u{feff}{SEED}")).hash, program(SEED).hash);
    assert_eq!(program("(workflow w(state\"s\"#|x|#(action(log\"~~\"))))").states.len(), 1);
}

#[test]
fn one_error_does_not_hide_others() {
    let text = "(workflow w (roles (a :agent-kind claude :handle-ref : x))
(state s
  (action (send-prompt :agent aa :template \"~a ~b \\q\")
          (goto s))
  (wait (signal l :kee k))
  (branch (otherwise) (on (after \"1y\")))
  (goto t))
(state s (loop)))
)";
    let found = diagnostics(text);
    let codes: Vec<&str> =
        found.iter().map(|diagnostics| diagnostics.split(' ').nth(1).expect("a code")).collect();
    let expected = [
        "SX306", "SX107", "SX305", "SX212", "SX106", "SX211", "SX203", "SX210", "SX211", "SX304",
        "SX301", "SX209", "SX103",
    ];
    assert_eq!(codes, expected, "{found:#?}");
}

#[test]
fn string_escapes_are_decoded() {
    let read = program(&state("(action (log \"a\\n\\t\\r\\\"\\\\\\u{e9}~~\"))"));
    let super::super::checked_program::InstructionKind::Action(actions) =
        &read.states[0].body[0].kind
    else {
        panic!()
    };
    let super::super::checked_program::InstructionKind::Log(text) = &actions[0].kind else {
        panic!()
    };
    assert_eq!(text.pieces, ["a\n\t\r\"\\é~"]);
}
