//! `raymond serve`: a page in the browser for all runs of a directory.

use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use tokio::signal::unix::{SignalKind, signal};
use uuid::Uuid;

use self::actions::LocalCommands;
use super::args::hosts::ServeArgs;
use super::exit::{CliExitCode, Error};
use super::output;
use crate::plain_file;
use crate::runtime::directories;
use crate::serve::access::AccessToken;
use crate::serve::server::PageServer;
use crate::store::view::newest_first;

mod actions;
mod command_backend;
pub mod openapi;
mod run_documents;

/// Runs `raymond serve`.
///
/// # Errors
/// [`Error`] if an agent asks for it, the address cannot be bound, or the user's key is not available.
pub(super) fn serve(args: &ServeArgs) -> Result<CliExitCode, Error> {
    let root = args.dir.real_root()?;
    // If the directory cannot be read, report it here rather than on the page.
    newest_first(&root)?;
    let state = directories::user_state()?;
    let key = state.key()?;
    let token = format!("{}{}", Uuid::new_v4().simple(), Uuid::new_v4().simple());
    let backend = Arc::new(LocalCommands::new(root.clone(), args.dir.clone()));
    let named = args.listen.to_string();
    let failed = Error::io("listen on", &named);
    let access = AccessToken::new(token.clone());
    let server =
        PageServer::bind(args.listen, root.clone(), &key, access, backend).map_err(failed)?;
    let address = server.address();
    if !address.ip().is_loopback() {
        output::warn(&format!(
            "other machines can reach {address}, and the connection is not encrypted: anyone who listens in gets the key to your runs"
        ));
    }
    let shown = if address.ip().is_unspecified() {
        format!("localhost:{}", address.port())
    } else {
        address.to_string()
    };
    let first = format!("http://{shown}/?token={token}");
    output::print(&format!("{first}\n"))?;
    output::tell(&format!(
        "the runs in {}; Ctrl-C stops the page, but no run",
        root.path().display()
    ));
    let opened = args.open.then(|| BrowserPage::open(state.path(), &first));
    match &opened {
        Some(Ok(None)) => output::warn("no browser could be opened; open the address yourself"),
        Some(Err(error)) => {
            output::warn(&format!(
                "no browser could be opened ({error}); open the address yourself"
            ));
        }
        Some(Ok(Some(_))) | None => {}
    }
    server.serve(asked_to_end()).map_err(failed)?;
    Ok(CliExitCode::Success)
}

/// Waits until a signal asks the server to end.
async fn asked_to_end() {
    let both = (signal(SignalKind::interrupt()), signal(SignalKind::terminate()));
    if let (Ok(mut interrupt), Ok(mut terminate)) = both {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    } else {
        std::future::pending::<()>().await;
    }
}

// Opens the page in a browser, without its token on a command line, which every user of the machine can read.

/// The programs that open a file in a browser.
const OPENERS: [&str; 2] = ["xdg-open", "open"];

/// A file for this user alone that leads to the first address. It is removed with the value.
struct BrowserPage(PathBuf);

impl BrowserPage {
    /// Writes the file and has a browser open it. Returns `None` if no program for that is found.
    ///
    /// # Errors
    /// The system's error if the file cannot be written.
    fn open(folder: &Path, address: &str) -> std::io::Result<Option<Self>> {
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
    // It ends by itself. Wait for it, so that it does not stay behind as a zombie.
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
