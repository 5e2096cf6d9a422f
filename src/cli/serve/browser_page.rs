//! Opens the page in a browser, without its token on a command line, which every user of the machine can read.

use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::cli::output;
use crate::plain_file;

/// The programs that open a file in a browser.
const OPENERS: [&str; 2] = ["xdg-open", "open"];

/// A file for this user alone that leads to the first address. It is removed with the value.
pub(super) struct BrowserPage(PathBuf);

impl BrowserPage {
    /// Writes the file, and has a browser open it; `None` if there is no program for that.
    ///
    /// # Errors
    /// The error of the system, at writing the file.
    pub(super) fn open(folder: &Path, address: &str) -> std::io::Result<Option<Self>> {
        std::fs::create_dir_all(folder)?;
        let path = folder.join(format!("page-{}.html", std::process::id()));
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true).mode(0o600);
        let page = Self(path);
        let text = format!(
            "<!doctype html><meta http-equiv=\"refresh\" content=\"0;url={address}\"><title>raymond</title>\n"
        );
        plain_file::open_with(&page.0, &mut options)?.write_all(text.as_bytes())?;
        let is_opened = OPENERS.into_iter().any(|program| is_started(program, &page.0));
        Ok(is_opened.then_some(page))
    }
}

impl Drop for BrowserPage {
    fn drop(&mut self) {
        // A file that is gone has nothing to hide.
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Starts a program with a file; returns whether there is one of that name.
fn is_started(program: &str, file: &Path) -> bool {
    let mut command = Command::new(program);
    command.arg(file).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let Ok(mut child) = command.spawn() else { return false };
    let program = program.to_owned();
    // It ends by itself, and its end is waited for, so that it does not stay behind.
    drop(std::thread::spawn(move || {
        if let Ok(status) = child.wait()
            && !status.success()
        {
            output::warn(&format!(
                "{program} has opened no browser ({status}); open the address yourself"
            ));
        }
    }));
    true
}
