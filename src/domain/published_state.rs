//! The states that programs publish as facts, for programs of other runs.

/// The label of these facts; the key is the label of the program that publishes.
pub const STATE_LABEL: &str = "workflow/state";

/// The label of the facts that tell the executions of programs; the key is the label of the program.
pub const INSTANCE_LABEL: &str = "workflow-instance";

/// The state of a program that has ended well.
pub const COMPLETED: &str = "completed";

/// The state of a program that has failed.
pub const FAILED: &str = "failed";

/// Returns the state of a program that is in a state of its text.
pub fn running(state: &str) -> String {
    format!("running {state}")
}

/// Returns whether a published state is the last one of its program.
pub fn is_ending(state: &str) -> bool {
    [COMPLETED, FAILED].contains(&state)
}
