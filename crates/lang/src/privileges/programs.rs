//! The privileges that the commands of a program ask for.

use super::{PrivilegeRequest, request};
use crate::program::checked_program::{InstructionKind, Program, ProgramCommand, RunRepetition};
use crate::program::walk::instructions;
use raymond_model::privilege::Privilege;

/// Returns the privileges that the commands of a program ask for, each once. A command of a library has its file.
pub(super) fn commands(program: &Program) -> Vec<PrivilegeRequest> {
    let mut requests: Vec<PrivilegeRequest> = Vec::new();
    for state in &program.states {
        for instruction in instructions(&state.body) {
            let InstructionKind::Run(run) = &instruction.kind else { continue };
            let (library, place) = program.files.resolve(instruction.at);
            let purpose = format!("the state `{}`: run: {}", state.name, commands_of(run));
            let found = PrivilegeRequest {
                file: library.unwrap_or_default().to_owned(),
                ..request(Privilege::Commands, place, &purpose)
            };
            if !requests.contains(&found) {
                requests.push(found);
            }
        }
    }
    requests
}

fn commands_of(run: &ProgramCommand) -> String {
    match &run.repetition {
        RunRepetition::Unless(test) => format!("{}, unless: {test}", run.command),
        RunRepetition::Unknown | RunRepetition::Once | RunRepetition::Idempotent => {
            run.command.clone()
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::program::read::read;

    #[test]
    fn each_command_is_request_at_its_place_in_its_file() {
        let library = "(defn check ()\n  (run :command \"sh check.sh\" :unless \"test -e done\"))";
        let text = "(require lib.lisp)\n(workflow w (state s (for-each x in (1 2)\n (run :command \"make\"))) (state t (action (check))))";
        let files = BTreeMap::from([("lib.lisp".to_owned(), library.to_owned())]);
        let reading = read("p.lisp", text, &files);
        let program = reading.program.unwrap_or_else(|| panic!("{:?}", reading.diagnostics));
        let line = |one: PrivilegeRequest| {
            let PrivilegeRequest { file, place, purpose, .. } = one;
            format!("{file}:{}:{} {purpose}", place.line, place.column)
        };
        let found: Vec<String> = commands(&program).into_iter().map(line).collect();
        assert_eq!(
            found,
            [
                ":3:2 the state `s`: run: make",
                "lib.lisp:2:3 the state `t`: run: sh check.sh, unless: test -e done",
            ]
        );
    }
}
