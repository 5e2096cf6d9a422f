//! Where the pinned Claude Code is.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

/// The native executable of the pinned Claude Code, which needs no node to run.
pub(super) fn claude() -> &'static Path {
    static FOUND: LazyLock<PathBuf> = LazyLock::new(locate);
    &FOUND
}

fn locate() -> PathBuf {
    let os = if cfg!(target_os = "macos") { "darwin" } else { "linux" };
    let machine = if cfg!(target_arch = "aarch64") { "arm64" } else { "x64" };
    let libc = if Path::new("/etc/alpine-release").exists() { "-musl" } else { "" };
    let packages =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/claude-code/node_modules/@anthropic-ai");
    let program = packages.join(format!("claude-code-{os}-{machine}{libc}/claude"));
    assert!(
        program.exists(),
        "{} is missing: tests/run installs it, and `cargo test -- --skip claude_code::` does without",
        program.display()
    );
    program
}
