//! All mistakes of a program are found at once.
//!
//! One does not hide the others, and none is reported that only follows from another.

use super::{assert_diagnostics, state};

#[test]
fn misspelled_form_does_not_hide_errors_inside_it() {
    let text = "(workflw many
(metadata (lable a b))
(rolez (a :modle gpt))
(state s (actoin (log)) (gotu t))
(stat t (wait (signl l :eqals k :key m) :timeuot \"1y\")))";
    assert_diagnostics(
        text,
        &[
            "1:1: SX202 unknown form `workflw`; did you mean `workflow`?",
            "2:12: SX218 `metadata` has no key `lable`; did you mean `label`?",
            "2:20: SX206 `label` takes one value; the symbol `b` is too many",
            "3:1: SX202 unknown form `rolez`; did you mean `roles`?",
            "3:11: SX203 `a` has no keyword `:modle`; did you mean `:model`?",
            "3:18: warning: SX219 `gpt` is not a known model alias; raymond passes it to Claude Code unchanged",
            "4:10: SX202 unknown form `actoin`; did you mean `action`?",
            "4:18: SX205 `log` needs a text",
            "4:25: SX202 unknown form `gotu`; did you mean `goto`?",
            "5:1: SX202 unknown form `stat`; did you mean `state`?",
            "5:15: SX202 unknown form `signl`; did you mean `signal`?",
            "5:24: SX203 `signal` has no keyword `:eqals`; did you mean `:equals`?",
            "5:41: SX203 `wait` has no keyword `:timeuot`; did you mean `:timeout`?",
            "5:50: SX215 `1y` is not a duration; write for example 200ms, 30s, 5m or 1h",
        ],
    );
}

#[test]
fn duplicate_forms_are_both_checked() {
    let text = "(workflow w
(metadata (label a b))
(metadata (model gpt))
(roles (a :cwd \"/x\"))
(roles (b :model gpt)
(a :modle opus :cwd \"/tmp\"))
(state s (goto u))
(state s (goto v)))";
    assert_diagnostics(
        text,
        &[
            "2:20: SX206 `label` takes one value; the symbol `b` is too many",
            "3:1: SX204 a workflow has one `metadata`; put both into one",
            "3:18: warning: SX219 `gpt` is not a known model alias; raymond passes it to Claude Code unchanged",
            "4:16: SX217 `:cwd` is a directory below that of the run, without `..`, which `/x` is not",
            "5:1: SX204 a workflow has one `roles`; put both into one",
            "5:18: warning: SX219 `gpt` is not a known model alias; raymond passes it to Claude Code unchanged",
            "6:2: SX302 `a` is a role in line 4 already; rename one of them",
            "6:4: SX203 `a` has no keyword `:modle`; did you mean `:model`?",
            "6:21: SX217 `:cwd` is a directory below that of the run, without `..`, which `/tmp` is not",
            "7:16: SX304 unknown state `u`; add it or name another",
            "8:8: SX301 `s` is a state in line 7 already; rename one of them",
            "8:16: SX304 unknown state `v`; add it or name another",
        ],
    );
}

#[test]
fn follow_up_errors_are_suppressed() {
    const AWAIT: &str = "(await (transcript-response :request-id r))";
    let send = |form: &str, rest: &str| {
        state(&format!("({form} (send-prompt :template x :request-id r {rest}))\n{AWAIT}"))
    };
    let table = [
        (send("actoin", ":agent a"), "3:1: SX202 unknown form `actoin`; did you mean `action`?"),
        (
            send("action", ":agnt a"),
            "3:48: SX203 `send-prompt` has no keyword `:agnt`; did you mean `:agent`?",
        ),
        (
            send("action", ":agent a :args 3"),
            "3:63: SX207 write a list of values, such as `((response REQUEST) \"text\")`, here, not the number `3`",
        ),
        (
            send("action", ":whom a"),
            "3:48: SX203 `send-prompt` has no keyword `:whom`; it takes :agent, :template, :args, :request-id, :expect, :output",
        ),
        (
            state(&format!("(send-prompt :agent a :template x :request-id r)\n{AWAIT}")),
            "3:1: SX211 `send-prompt` is an action, which is not allowed here; write `(action (send-prompt …))`",
        ),
        (
            state("(action (assert :label x :value y))"),
            "3:17: SX203 `assert` has no keyword `:label`; it takes :key, :value",
        ),
        (
            "(workflow w (states s))".to_owned(),
            "1:13: SX202 unknown form `states`; did you mean `state`?",
        ),
        (
            "(workflow w (rols (a)) (state s (action (send-prompt :agent a :template x))))"
                .to_owned(),
            "1:13: SX202 unknown form `rols`; did you mean `roles`?",
        ),
        (
            "(workflow w (state s (goto x)) (stat x))".to_owned(),
            "1:32: SX202 unknown form `stat`; did you mean `state`?",
        ),
    ];
    for (text, expected) in table {
        assert_diagnostics(&text, &[expected]);
    }
}

#[test]
fn empty_name_or_missing_argument_does_not_hide_other_errors() {
    assert_diagnostics(
        "(workflow w (state \"\" (goto t)) (state s))",
        &[
            "1:20: SX312 `` cannot be the name of a state: it is empty",
            "1:29: SX304 unknown state `t`; add it or name another",
        ],
    );
    assert_diagnostics(
        &state("(wait (matches \"a\"))\n(wait (matches \"a\" \"(\"))"),
        &[
            "3:7: SX205 `matches` needs a regular expression",
            "4:20: SX214 `(` is not a regular expression: unclosed group",
        ],
    );
}
