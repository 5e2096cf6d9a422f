//! The binding of awaited requests to sends.

use super::super::checked_program::{Instruction, InstructionKind, Program, ProgramCondition};
use super::{SEED, assert_said, program, said, state};

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
                InstructionKind::Action(body) | InstructionKind::Loop(body) => visit(body, found),
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
fn the_awaits_of_the_example_have_their_sends() {
    let (sent, awaited) = requests(&program(SEED));
    assert_eq!(awaited, ["handoff-request", "review-request", "implementer-fix"]);
    assert_eq!(sent, awaited);
}

#[test]
fn an_await_takes_the_nearest_free_send_before_it() {
    let text = state(&format!("{SEND}{SEND}{}{}{SEND}{}", awaits("x"), awaits("y"), awaits("x")));
    assert_eq!(requests(&program(&text)).0, ["y", "x", "s-1"]);
    let named = "(action (send-prompt :agent a :template x :request-id s-1))";
    let text = state(&format!("{SEND}{named}{SEND}{}{}", awaits("z"), awaits("s-1")));
    assert_eq!(requests(&program(&text)).0, ["s-2", "s-1", "z"]);
}

#[test]
fn a_value_binds_as_an_await_does_and_runs_are_sends() {
    let run = "(action (run-folder :agent a :start review/START.md :input (response before)))";
    let text = state(&format!("{SEND}{run}(action (log \"~a\" (response ran)))"));
    assert_eq!(requests(&program(&text)).0, ["before", "ran"]);
}

#[test]
fn a_block_does_not_look_into_another() {
    let outer = state(&format!("{SEND}(loop {})", awaits("x")));
    let found = said(&outer);
    assert!(found[0].contains("SX307 no request is called `x`, and no send"), "{found:?}");
    let arm = state(&format!("(branch (on (signal l) {SEND})){}", awaits("x")));
    assert!(said(&arm)[0].contains("SX307"));
    let later = state(&format!("{}{SEND}", awaits("x")));
    assert!(said(&later)[0].contains("SX307"));
    let named = "(action (send-prompt :agent a :template x :request-id work))";
    let text = state(&format!("{named}\n{}", awaits("wrok")));
    assert_said(&text, &["4:41: SX307 no request is called `wrok`; did you mean `work`?"]);
}

#[test]
fn a_name_means_one_send_everywhere() {
    let text = format!(
        "(workflow w (roles (a)) (state s {SEND}{}) (state t {SEND} (action (log \"~a\" (response x)))))",
        awaits("x")
    );
    assert_eq!(requests(&program(&text)).0, ["x", "t-1"]);
}
