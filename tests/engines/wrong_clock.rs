//! A clock that is wrong: a library that shifts the time that a process is told.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

/// The variable with the seconds by which the clock is ahead.
pub(crate) const AHEAD: &str = "TEST_CLOCK_AHEAD";

/// The variable that has a program load the library first.
pub(crate) const PRELOAD: &str = "LD_PRELOAD";

const SOURCE: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <time.h>

int clock_gettime(clockid_t clock, struct timespec *told)
{
    static int (*own)(clockid_t, struct timespec *);
    if (!own) own = dlsym(RTLD_NEXT, "clock_gettime");
    const char *ahead = getenv("TEST_CLOCK_AHEAD");
    int failed = own(clock, told);
    if (!failed && ahead && clock == CLOCK_REALTIME) told->tv_sec += atol(ahead);
    return failed;
}
"#;

/// Returns the path of the library. Rust's linker is a compiler of C, too.
pub(crate) fn library() -> &'static str {
    static MADE: LazyLock<PathBuf> = LazyLock::new(make);
    MADE.to_str().expect("a path")
}

fn make() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let draft = format!("clock-{}", std::process::id());
    let (source, draft) = (folder.join(format!("{draft}.c")), folder.join(format!("{draft}.so")));
    std::fs::write(&source, SOURCE).expect("the source is written");
    let mut compiler = Command::new("cc");
    compiler.args(["-shared", "-fPIC", "-o"]).arg(&draft).arg(&source).arg("-ldl");
    let made = compiler.output().expect("a compiler of C");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let library = folder.join("wrong-clock.so");
    std::fs::rename(draft, &library).expect("it is in place");
    std::fs::remove_file(source).expect("the source is removed");
    library
}
