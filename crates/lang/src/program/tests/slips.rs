//! One bad program for each mistake in sends, waits, and templates.

use super::{diagnostics, state};

#[test]
fn invalid_request_is_error_with_hint() {
    let send = |rest: &str| state(&format!("(action (send-prompt :agent a {rest}))"));
    let run = |start: &str| state(&format!("(action (run-folder :agent a :start {start}))"));
    let table = [
        (state("(action (send-prompt :template x))"), "3:9: SX205 `send-prompt` needs `:agent`"),
        (send(""), "3:9: SX205 `send-prompt` needs `:template`"),
        (
            send(":template x :args y"),
            "3:49: SX207 write a list of values, such as `((response REQUEST) \"text\")`, here, not the symbol `y`",
        ),
        (
            send(":template x :args (artifact a)"),
            "3:49: SX207 write a list of values, `((artifact …))`, here, not the list `(artifact …)`",
        ),
        (
            send(":template \"~a ~a\" :args (x)"),
            "3:41: SX213 this template has 2 places `~a`, but one value to put there; write `~~` for a tilde",
        ),
        (
            send(":template \"é\\n~c\""),
            "3:45: SX212 `~c` has no meaning in a template; write `~a` for the next value and `~~` for a tilde",
        ),
        (
            send(":template \"x~\""),
            "3:43: SX212 `~` has no meaning in a template; write `~a` for the next value and `~~` for a tilde",
        ),
        (
            send(":template ~a"),
            "3:41: SX108 `~a` is neither a number nor a name; put it in quotes if it is a text",
        ),
        (
            state("(action (send-prompt :agent c :template x))"),
            "3:29: SX305 unknown role `c`; add it to `roles`",
        ),
        (run("GONE.md"), "3:37: SX311 `GONE.md`: there is no such file in the workflow"),
        (
            run("review/STRAT.md"),
            "3:37: SX311 `review/STRAT.md`: there is no such file in the workflow; did you mean START.md?",
        ),
        (
            run("x.txt"),
            "3:37: SX311 `x.txt`: that is not a state: a state is a prompt, NAME.md, a graph, NAME.yaml, a program, NAME.lisp, or a script such as NAME.sh or any file that can be executed",
        ),
        (
            run("\"../x.md\""),
            "3:37: SX311 `..` is not a folder of the workflow: name one below the folder of the first state, without `..`",
        ),
        (
            state(
                "(action (send-prompt :agent a :template x :request-id r)\n(send-prompt :agent a :template x :request-id r))",
            ),
            "4:47: SX303 the request `r` is already sent in line 3; give this one another id",
        ),
    ];
    for (text, expected) in table {
        assert_eq!(diagnostics(&text)[0], expected, "{text}");
    }
}

#[test]
fn invalid_condition_or_value_is_error_with_hint() {
    let wait = |condition: &str| state(&format!("(wait {condition})"));
    let log = |value: &str| state(&format!("(action (log \"~a\" {value}))"));
    let table = [
        (wait(""), "3:1: SX205 `wait` needs a condition, such as `(signal LABEL)`"),
        (wait("(singal l)"), "3:7: SX202 unknown form `singal`; did you mean `signal`?"),
        (
            wait("(response l)"),
            "3:7: SX211 `response` is a value, which is not allowed here; write a condition such as `(signal LABEL)`",
        ),
        (wait("(signal)"), "3:7: SX205 `signal` needs the label of a fact, such as `plan/ready`"),
        (
            wait("(signal @label)"),
            "3:15: SX207 write the label of a fact here, not the placeholder `@label`",
        ),
        (
            wait("(signal \"x y\" :key k)"),
            "3:15: SX312 `x y` cannot be the label of a fact: it has white space; write a word, such as plan/ready",
        ),
        (
            wait(&format!("(signal {})", "é".repeat(40))),
            "3:15: SX312 `éééééééééééééééééééééééééééééééééééééééé` cannot be the label of a fact: it is too long, because all but letters and digits of ASCII counts three times or more",
        ),
        (
            state("(action (assert \"\"))"),
            "3:17: SX312 `` cannot be the label of a fact: it is empty",
        ),
        (
            wait("(signal l :consume yes)"),
            "3:26: SX207 write `true` or `false` here, not the symbol `yes`",
        ),
        (wait("(signal l :as x)"), "3:21: SX205 `:as` names the taken value; add `:consume true`"),
        (
            wait("(signal l :consume true :as label)"),
            "3:35: SX312 `@label` means something else already; use another name",
        ),
        (
            wait("(not (signal l :consume true))"),
            "3:31: SX211 a fact is taken only if it is the whole condition, or a part of `or`: `(wait (signal … :consume true))`",
        ),
        (wait("(and)"), "3:7: SX205 `and` needs at least one condition"),
        (
            wait("(not (signal l) (signal m))"),
            "3:23: SX206 `not` takes one value; the list `(signal …)` is too many",
        ),
        (wait("(matches x)"), "3:7: SX205 `matches` needs a regular expression"),
        (wait("(matches x \"(\")"), "3:18: SX214 `(` is not a regular expression: unclosed group"),
        (
            wait("(after soon)"),
            "3:14: SX215 `soon` is not a duration; write for example 200ms, 30s, 5m or 1h",
        ),
        (
            wait("(at \"tomorrow\")"),
            "3:11: SX216 `tomorrow` is not a point in time; write for example 2026-01-15T14:30:22.123Z",
        ),
        (
            state("(branch (on (after \"1m\")))"),
            "3:13: SX211 a branch does not wait, so `after` has nothing to count from; use it in `wait`",
        ),
        (
            state("(branch (on (signal l :consume true)))"),
            "3:32: SX211 a fact is taken only if it is the whole condition, or a part of `or`: `(wait (signal … :consume true))`",
        ),
        (
            wait("(matches (artifact r) \"x\")"),
            "3:16: SX211 a program cannot wait for work, because nothing reports when it changes; check it in a branch, or send it to a role",
        ),
        (wait("(transcript-response)"), "3:7: SX205 `transcript-response` needs `:request-id`"),
        (
            wait("(transcript-response :request-id r)"),
            "3:40: SX307 unknown request `r`, and no send without a name stands before it in the same block; write `:request-id r` where it is sent",
        ),
        (log("(respone r)"), "3:19: SX202 unknown form `respone`; did you mean `response`?"),
        (log("(feedback c)"), "3:29: SX305 unknown role `c`; add it to `roles`"),
        (log("(artifact)"), "3:19: SX205 `artifact` needs the name of a role"),
        (
            log("@workflow"),
            "3:19: SX308 nothing fills the placeholder `@workflow`; did you mean `@workflow-id`?",
        ),
        (
            log("@zzz"),
            "3:19: SX308 nothing fills the placeholder `@zzz`; there are `@workflow-id`, `@label`, `@branch` and `@context/NAME`",
        ),
        (
            state("(action (log \"x\" :key y))"),
            "3:18: SX203 `log` has no keyword `:key`; it takes none",
        ),
    ];
    for (text, expected) in table {
        assert_eq!(diagnostics(&text)[0], expected, "{text}");
    }
}
