//! Warm processes: a session's next turn goes to the process that is still there. What a person sees
//! is the same as with one process a turn, so each of these tests looks at the processes: which one
//! took which turn, how many there were, what became of them.

mod alone;
mod chain;
mod death;
mod kill;
mod order;
mod room;
mod shown;
mod stop;
mod used;

use crate::support::{Test, when};

/// START calls SUB, which is held at `go`; BACK goes on in the session of START.
fn called() -> Test {
    Test::new()
        .prompt("START.md", "start")
        .prompt("SUB.md", "sub")
        .prompt("BACK.md", "back with {{result}}")
        .rule(when("sub").hold_before("go").reply("<result>found</result>").cost(0.02))
        .rule(when("back with found").reply("<result>ok</result>").cost(0.04))
}

/// The answer of START in [`called`].
const CALL: &str = r#"<function return="BACK.md">SUB.md</function>"#;

/// START, NEXT and LAST in one session.
fn three() -> Test {
    Test::new()
        .prompt("START.md", "start")
        .prompt("NEXT.md", "next")
        .prompt("LAST.md", "last")
        .rule(when("start").reply("<goto>NEXT.md</goto>").cost(0.05))
        .rule(when("last").reply("<result>ok</result>").cost(0.01))
}
