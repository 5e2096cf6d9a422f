//! The processes of a cluster, found by their environment.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::process::{Pid, Signal, kill_process};

/// A process that a test started, itself or through others.
#[derive(Debug)]
pub(crate) struct OwnProcess {
    pub(crate) pid: i32,
    environment: Vec<u8>,
    words: Vec<u8>,
}

impl OwnProcess {
    /// Returns the value of a variable in its environment.
    pub(crate) fn variable(&self, name: &str) -> Option<String> {
        let mut pairs = parts(&self.environment);
        pairs.find_map(|pair| Some(pair.strip_prefix(name)?.strip_prefix('=')?.to_owned()))
    }

    /// Returns whether it was started with this argument.
    pub(crate) fn has_word(&self, word: &str) -> bool {
        parts(&self.words).any(|one| one == word)
    }

    /// Returns whether a text stands in its environment or its arguments.
    pub(crate) fn has_text(&self, text: &str) -> bool {
        let text = text.as_bytes();
        [&self.environment, &self.words]
            .iter()
            .any(|all| all.windows(text.len()).any(|part| part == text))
    }

    pub(crate) fn signal(&self, signal: Signal) {
        send(self.pid, signal);
    }
}

fn parts(text: &[u8]) -> impl Iterator<Item = &str> {
    text.split(|&byte| byte == 0).filter_map(|part| std::str::from_utf8(part).ok())
}

/// Sends a signal to a process that a test started. It may have ended just before.
pub(crate) fn send(pid: i32, signal: Signal) {
    if let Some(pid) = Pid::from_raw(pid) {
        let _ = kill_process(pid, signal);
    }
}

/// Returns the living processes whose home is below a folder.
pub(crate) fn below(folder: &Path) -> Vec<OwnProcess> {
    let mark = [b"HOME=", folder.as_os_str().as_bytes(), b"/"].concat();
    let own = |entry: fs::DirEntry| {
        let pid = entry.file_name().to_str()?.parse().ok()?;
        let environment = fs::read(entry.path().join("environ")).ok()?;
        let is_own = environment.split(|&byte| byte == 0).any(|pair| pair.starts_with(&mark));
        let words = fs::read(entry.path().join("cmdline")).ok()?;
        is_own.then_some(OwnProcess { pid, environment, words })
    };
    fs::read_dir("/proc").expect("processes").flatten().filter_map(own).collect()
}
