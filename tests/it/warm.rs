//! Warm processes: the next turn of a session goes to the process that is still there. The output is the same
//! as with one process a turn, so these tests look at the processes: the turns of each, their number, and
//! their end.

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

/// Returns a workflow in which START calls SUB, which is held at `go`, and BACK continues the session of
/// START.
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

/// Returns a workflow of START, NEXT and LAST in one session.
fn three() -> Test {
    Test::new()
        .prompt("START.md", "start")
        .prompt("NEXT.md", "next")
        .prompt("LAST.md", "last")
        .rule(when("start").reply("<goto>NEXT.md</goto>").cost(0.05))
        .rule(when("last").reply("<result>ok</result>").cost(0.01))
}
