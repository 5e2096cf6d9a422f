//! Finds the Claude Code under test.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use serde_json::Value;

/// The variable that names the folder of `tests/claude-code/` in which the program is installed.
const CLAUDE_VARIABLE: &str = "RAYMOND_TEST_CLAUDE";

/// Returns the native executable of the Claude Code under test, which needs no node to run.
pub(super) fn claude() -> &'static Path {
    static FOUND: LazyLock<PathBuf> = LazyLock::new(locate);
    &FOUND
}

/// Returns the version of the Claude Code under test.
pub(super) fn version() -> &'static str {
    static READ: LazyLock<String> = LazyLock::new(|| {
        let package = claude().with_file_name("package.json");
        let package = fs::read_to_string(package).expect("a package says what it is");
        let package: Value =
            serde_json::from_str(&package).expect("a package is described in JSON");
        package["version"].as_str().expect("a package has a version").to_owned()
    });
    &READ
}

fn locate() -> PathBuf {
    let os = if cfg!(target_os = "macos") { "darwin" } else { "linux" };
    let machine = if cfg!(target_arch = "aarch64") { "arm64" } else { "x64" };
    let libc = if Path::new("/etc/alpine-release").exists() { "-musl" } else { "" };
    let chosen = std::env::var(CLAUDE_VARIABLE).unwrap_or_else(|_| "oldest".to_owned());
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/claude-code").join(chosen);
    let packages = folder.join("node_modules/@anthropic-ai");
    let program = packages.join(format!("claude-code-{os}-{machine}{libc}/claude"));
    assert!(
        program.exists(),
        "{} is missing: tests/run installs it, and `cargo test -- --skip claude_code::` does without",
        program.display()
    );
    program
}
