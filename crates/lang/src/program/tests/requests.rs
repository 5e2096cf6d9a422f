//! The binding of awaited requests to sends.

use super::super::checked_program::{Instruction, InstructionKind, Program, ProgramCondition};
use super::{SEED, assert_diagnostics, diagnostics, program, state};

/// Returns the ids of the sent requests and of the awaited ones, in the order of the text.
fn requests(program: &Program) -> (Vec<String>, Vec<String>) {
    fn visit(body: &[Instruction], found: &mut (Vec<String>, Vec<String>)) {
        for instruction in body {
            match &instruction.kind {
                InstructionKind::Send(send) => found.0.push(send.request.to_string()),
                InstructionKind::RunFolder(run) => found.0.push(run.request.to_string()),
                InstructionKind::Wait(wait) => {
                    if let ProgramCondition::Response { request, .. } = &wait.condition {
                        found.1.push(request.to_string());
                    }
                }
                InstructionKind::Action(body) => visit(body, found),
                InstructionKind::Loop(repeat) => visit(&repeat.body, found),
                InstructionKind::Branch { arms, otherwise } => {
                    for body in arms.iter().map(|arm| &arm.body).chain(otherwise) {
                        visit(body, found);
                    }
                }
                _ => {}
            }
        }
    }
    let mut found = (Vec::new(), Vec::new());
    program.states.iter().for_each(|state| visit(&state.body, &mut found));
    found
}

const SEND: &str = "(action (send-prompt :agent a :template x))";

fn awaits(request: &str) -> String {
    format!("(await (transcript-response :request-id {request}))")
}

#[test]
fn each_await_of_example_is_bound_to_its_send() {
    let (sent, awaited) = requests(&program(SEED));
    assert_eq!(awaited, ["handoff-request", "review-request", "implementer-fix"]);
    assert_eq!(sent, awaited);
}

#[test]
fn await_binds_to_nearest_unbound_send_before_it() {
    let text = state(&format!("{SEND}{SEND}{}{}{SEND}{}", awaits("x"), awaits("y"), awaits("x")));
    assert_eq!(requests(&program(&text)).0, ["y", "x", "s-1"]);
    let named = "(action (send-prompt :agent a :template x :request-id s-1))";
    let text = state(&format!("{SEND}{named}{SEND}{}{}", awaits("z"), awaits("s-1")));
    assert_eq!(requests(&program(&text)).0, ["s-2", "s-1", "z"]);
}

#[test]
fn response_value_binds_to_send_prompt_or_run_folder() {
    let run = "(action (run-folder :agent a :start review/START.md :input (response before)))";
    let text = state(&format!("{SEND}{run}(action (log \"~a\" (response ran)))"));
    assert_eq!(requests(&program(&text)).0, ["before", "ran"]);
}

#[test]
fn await_does_not_bind_to_send_in_another_block() {
    let outer = state(&format!("{SEND}(loop {})", awaits("x")));
    let found = diagnostics(&outer);
    assert!(found[0].contains("SX307 unknown request `x`, and no send"), "{found:?}");
    let arm = state(&format!("(branch (on (signal l) {SEND})){}", awaits("x")));
    assert!(diagnostics(&arm)[0].contains("SX307"));
    let later = state(&format!("{}{SEND}", awaits("x")));
    assert!(diagnostics(&later)[0].contains("SX307"));
    let named = "(action (send-prompt :agent a :template x :request-id work))";
    let text = state(&format!("{named}\n{}", awaits("wrok")));
    assert_diagnostics(&text, &["4:41: SX307 unknown request `wrok`; did you mean `work`?"]);
}

#[test]
fn request_name_refers_to_same_send_in_all_states() {
    let text = format!(
        "(workflow w (roles (a)) (state s {SEND}{}) (state t {SEND} (action (log \"~a\" (response x)))))",
        awaits("x")
    );
    assert_eq!(requests(&program(&text)).0, ["x", "t-1"]);
}
