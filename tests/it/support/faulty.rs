//! The program of `tests/faults/faulty.c`, by which calls of raymond on files fail, or kill it.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

/// The program that lets calls fail; `None` if the system has no such filters.
pub(crate) static FAULTY: LazyLock<Option<PathBuf>> = LazyLock::new(|| {
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("faulty");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/faults/faulty.c");
    let draft = program.with_extension(std::process::id().to_string());
    let built = Command::new("cc").args(["-O1", "-o"]).arg(&draft).arg(source).status();
    assert!(built.expect("a C compiler").success(), "it compiles");
    std::fs::rename(draft, &program).expect("it is put in place");
    let words = ["write", "0", "5", "/", "/dev/null", "/bin/true"];
    let works = Command::new(&program).args(words).status().expect("it starts").success();
    assert!(works || std::env::var_os("CI").is_none(), "CI must allow seccomp filters");
    works.then_some(program)
});
