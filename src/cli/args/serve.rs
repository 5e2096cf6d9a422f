//! The arguments of `raymond serve`, and its help.

use std::net::SocketAddr;

use clap::Args;

use super::DirArgs;

pub(super) const SERVE_HELP: &str = "Examples:
  raymond serve                          prints an address to open in a browser
  raymond serve --open                   opens it
  raymond serve --listen 127.0.0.1:8123  keeps its address, so that a page stays open when it is started again
  raymond serve --listen 0.0.0.0:8123    for other machines, such as a phone: read the warning

The page shows all runs of the directory, live or not, and the questions that wait for a person. It reads what `raymond top`
reads, and acts as the commands do; runs need no server, and go on without it. It listens on this machine alone unless
--listen says otherwise. The first address has a token; a browser that opens it gets a cookie for a day. A program sends the
token as `Authorization: Bearer TOKEN`. Ctrl-C ends the server and no run.";

/// Options of `serve`.
#[derive(Debug, Clone, Args)]
pub struct ServeArgs {
    /// Open the page in the browser of this machine
    #[arg(long)]
    pub open: bool,

    /// The address to listen on; port 0 is a free one
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:0")]
    pub listen: SocketAddr,

    /// The directory of the runs.
    #[command(flatten)]
    pub dir: DirArgs,
}
