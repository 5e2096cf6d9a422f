//! Ignoring SIGTERM: a handler that does nothing. It is installed when the rule is known, and that is only
//! after the prompt was read.

use std::path::Path;
use std::process::Command;

use tokio::signal::unix::{SignalKind, signal};

/// Makes this process ignore SIGTERM from now on.
pub(crate) fn ignore() -> Result<(), String> {
    let listen = || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
        let _context = runtime.enter();
        // The handler outlives both; the default is never restored.
        signal(SignalKind::terminate()).map(drop)
    };
    listen().map_err(|error: std::io::Error| format!("fake-claude: SIGTERM: {error}"))
}

/// Returns the program as a command that ignores SIGTERM. Unlike a handler, `trap ""` survives `exec`.
pub(crate) fn command_ignoring_term(program: &Path) -> Command {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", r#"trap "" TERM; exec "$0" "$@""#]).arg(program);
    command
}
