//! The warnings about sound programs.

use super::{SEED, assert_diagnostics, diagnostics};

fn send(request: &str) -> String {
    format!("(action (send-prompt :agent a :template x :request-id {request}))")
}

fn awaits(request: &str) -> String {
    format!("(await (transcript-response :request-id {request}))")
}

/// Returns the warnings about a program with these states, which begin in line 2.
fn remarks(states: &str) -> Vec<String> {
    let found =
        diagnostics(&format!("(workflow w (roles (a))\n{states}\n(state z {}))", send("z")));
    found.into_iter().map(|diagnostics| diagnostics.replacen("warning: ", "", 1)).collect()
}

#[test]
fn example_program_has_no_diagnostics() {
    assert_diagnostics(SEED, &[]);
}

#[test]
fn unreachable_state_is_reported() {
    let expected = "3:1: SX401 the state `b` cannot be reached; remove it, or add a path to it";
    assert_eq!(remarks("(state a (goto z))\n(state b (goto z))"), [expected]);
    assert_eq!(
        remarks("(state a (loop (wait (signal l)) (branch (on (signal m) (goto z)))))\n(state b)"),
        [expected]
    );
    for states in [
        "(state a (wait (signal l) :timeout 5 :on-timeout b) (goto z))\n(state b)",
        "(state a (branch (on (signal l) (goto b))) (goto z))\n(state b)",
        "(state a (branch (on (signal l) (goto z))))\n(state b)",
        "(state a (action (send-prompt :agent a :template x)) (await (transcript-response :request-id r :on-error b)) (goto z))\n(state b)",
    ] {
        assert_eq!(remarks(states), Vec::<String>::new(), "{states}");
    }
}

#[test]
fn unreachable_instruction_is_reported() {
    let expected = |column| {
        format!("2:{column}: SX402 this is unreachable: control never continues here; remove it")
    };
    assert_eq!(remarks("(state a (goto z) (goto a))"), [expected(19)]);
    assert_eq!(remarks("(state a (loop (wait (signal l)) (goto z)) (goto a))"), [expected(44)]);
    let branch = "(state a (branch (on (signal l) (goto z)) (otherwise (goto z))) (goto a))";
    assert_eq!(remarks(branch), [expected(65)]);
}

#[test]
fn loop_without_exit_or_wait_is_reported() {
    let text = "(state a (branch (on (signal l) (goto z))) (loop (wait (signal l))))";
    let expected = "2:44: SX403 nothing leaves this loop; write `(break)`, `(goto STATE)` or `(terminal)` in it";
    assert_eq!(remarks(text), [expected]);
    let slips = "2:10: SX404 a turn of this loop may pass without waiting, which fails the execution; put an `await` or a `wait` where each turn comes by";
    assert_eq!(remarks("(state a (loop (branch (on (signal l) (goto z)))))"), [slips]);
    let slipping = "(state a (loop (branch (on (signal l) (goto z)) (on (signal m)) (otherwise (wait (signal n))))))";
    assert_eq!(remarks(slipping), [slips]);
    let next = "(state a (loop (branch (on (signal l) (continue))) (wait (signal m)) (branch (on (signal n) (goto z)))))";
    assert_eq!(remarks(next), [slips]);
    let inner = "(state a (loop (loop (wait (signal l)) (branch (on (signal n) (break)))) (wait (signal m))) (goto z))";
    let dead = "2:93: SX402 this is unreachable: control never continues here; remove it";
    assert_eq!(remarks(inner), [expected.replace("2:44", "2:10").as_str(), dead]);
    for fine in [
        "(state a (loop (wait (signal l)) (branch (on (signal m) (break)))) (goto z))",
        "(state a (loop :max 3 :on-max z (wait (signal l))))",
        "(state a (loop (branch (on (signal l) (goto z)) (otherwise (wait (signal n))))))",
        "(state a (loop (action (log \"~a\" (signal x))) (branch (on (signal l) (goto z)))))",
        "(state a (loop (goto z)))",
        "(state a (loop (loop (wait (signal l)) (break)) (branch (on (signal m) (goto z)))))",
    ] {
        assert_eq!(remarks(fine), Vec::<String>::new(), "{fine}");
    }
}

#[test]
fn await_before_any_send_is_reported() {
    let (sends, awaits) = (send("r"), awaits("r"));
    let early = |column| {
        format!(
            "2:{column}: SX405 the request `r` is awaited here, but nothing on any way to this place sends it"
        )
    };
    assert_eq!(remarks(&format!("(state a {awaits} {sends})")), [early(10)]);
    assert_eq!(
        remarks(&format!("(state a (loop {awaits} {sends} (branch (on (signal l) (goto z)))))")),
        [early(16)]
    );
    assert_eq!(
        remarks(&format!(
            "(state a {awaits})\n(state b {sends} (branch (on (signal l) (goto z))) (goto a))"
        )),
        [early(10)]
    );
    for fine in [
        format!("(state a {sends})\n(state b {awaits})"),
        format!("(state a (goto c))\n(state b {awaits} (goto z))\n(state c {sends} (goto b))"),
        format!(
            "(state a (loop (branch (on (signal l) {awaits} (goto z)) (otherwise {sends} (wait (signal m))))))"
        ),
        format!("(state a (branch (on (signal l) {sends})) {awaits})"),
        format!("(state a (loop (wait (signal l)) {sends} (break)) {awaits})"),
    ] {
        assert_eq!(remarks(&fine), Vec::<String>::new(), "{fine}");
    }
}

#[test]
fn answer_that_is_read_before_any_send_is_reported() {
    let sends = send("r");
    let early = |column| {
        format!(
            "2:{column}: SX405 the request `r` is read here, but nothing on any way to this place sends it"
        )
    };
    let log = "(action (log \"~a\" (response r)))";
    assert_eq!(remarks(&format!("(state a {log} {sends})")), [early(18)]);
    let branch = "(branch (on (matches (response r) x) (goto z)))";
    assert_eq!(remarks(&format!("(state a {branch} {sends})")), [early(10)]);
    let or = "(wait (or (signal x) (matches (response r) x)))";
    assert_eq!(remarks(&format!("(state a {or} {sends})")), [early(10)]);
    assert_eq!(remarks(&format!("(state a {sends} {log} {branch} {or})")), Vec::<String>::new());
}

#[test]
fn contradictory_condition_is_reported() {
    for condition in [
        "(and (signal x) (not (signal x)))",
        "(and (signal x :key k) (not (or (signal y) (signal x))))",
        "(and (signal x :key k :equals a) (and (signal x :key k :equals b)))",
        "(or (and (after 5) (not (after 5))) (not (or (signal x) (not (signal x)))))",
        "(matches abc x)",
    ] {
        let diagnostics = remarks(&format!("(state a (wait {condition}))"));
        assert!(
            diagnostics.len() == 1 && diagnostics[0].contains("2:10: SX408 this condition"),
            "{diagnostics:?}"
        );
    }
    let arm = "(state a (branch (on (and (signal x) (not (signal x))) (goto z))))";
    assert!(remarks(arm)[0].contains("SX408 an arm of this branch is never chosen"));
    for fine in [
        "(and (signal x) (not (signal x :key k)))",
        "(and (signal x :key k :equals a) (signal x :key j :equals b))",
        "(or (signal x) (and (signal x) (not (signal x))))",
        "(and (after 5) (not (after 9)))",
    ] {
        assert_eq!(remarks(&format!("(state a (wait {fine}))")), Vec::<String>::new(), "{fine}");
    }
}

#[test]
fn unused_role_is_reported() {
    let text = "(workflow w (roles\n(a)) (state s (action (log \"~a\" (feedback a)))))";
    assert_diagnostics(text, &["2:1: warning: SX406 the role `a` is never used; remove it"]);
}

#[test]
fn command_with_unread_exit_code_is_reported() {
    let run = |more: &str| format!("(workflow w (state s\n(action (run :command x{more}))))");
    let why = "2:9: warning: SX410 nothing checks `@y/exit-code`, so a failure of this command goes unnoticed; check it in a branch, or write `:on-error STATE`";
    assert_diagnostics(&run(" :as y"), &[why]);
    assert_diagnostics(&run(""), &[]);
    assert_diagnostics(&run(" :as y :on-error s"), &[]);
    assert_diagnostics(&run(" :as y) (log \"~a\" @y/exit-code"), &[]);
}
