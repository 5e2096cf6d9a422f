//! Going on in spite of SIGTERM: a handler that does nothing, put in place when a rule asks for it,
//! for whether to ignore it is known only once the prompt is there.

use std::path::Path;
use std::process::Command;

use tokio::signal::unix::{SignalKind, signal};

/// From here on SIGTERM does nothing to this process.
pub(crate) fn ignore() -> Result<(), String> {
    let listen = || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
        let _context = runtime.enter();
        // The handler outlives both: nothing ever puts the default back.
        signal(SignalKind::terminate()).map(drop)
    };
    listen().map_err(|error: std::io::Error| format!("fake-claude: SIGTERM: {error}"))
}

/// The program, to be started deaf to SIGTERM: unlike a handler, `trap ""` stays over `exec`.
pub(crate) fn deaf(program: &Path) -> Command {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", r#"trap "" TERM; exec "$0" "$@""#]).arg(program);
    command
}
