//! `raymond serve`: a page in the browser for all runs of a directory.

mod actions;
mod browser_page;
mod command_backend;
pub mod openapi;
mod run_documents;

use std::sync::Arc;

use tokio::signal::unix::{SignalKind, signal};
use uuid::Uuid;

use self::actions::LocalCommands;
use self::browser_page::BrowserPage;
use super::args::serve::ServeArgs;
use super::exit::{CliExitCode, Error};
use super::output;
use crate::runtime::directories;
use crate::serve::access::AccessToken;
use crate::serve::server::PageServer;
use crate::store::view::newest_first;

/// Runs `raymond serve`.
///
/// # Errors
/// [`Error`] if an agent asks for it, the address cannot be taken, or there is no key.
pub(super) fn serve(args: &ServeArgs) -> Result<CliExitCode, Error> {
    let root = args.dir.real_root()?;
    // A directory that cannot be read is told now, and not by the page.
    newest_first(&root)?;
    let state = directories::user_state()?;
    let key = state.key()?;
    let token = format!("{}{}", Uuid::new_v4().simple(), Uuid::new_v4().simple());
    let backend = Arc::new(LocalCommands::new(root.clone(), args.dir.clone()));
    let access = (&key, AccessToken::new(token.clone()));
    let failed =
        |error| Error::Io { doing: "listen on", path: args.listen.to_string().into(), error };
    let server = PageServer::bind(args.listen, root.clone(), access, backend).map_err(failed)?;
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
