//! The arguments of `raymond serve`, and its help.
//!
//! The arguments of `raymond trust`, and its help.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use clap::Args;

use crate::cli::args::DirArgs;

pub(super) const SERVE_HELP: &str = "Examples:
  raymond serve                          prints an address to open in a browser
  raymond serve --open                   opens it
  raymond serve --listen 127.0.0.1:8123  uses a fixed address, so that an open page survives a restart
  raymond serve --listen 0.0.0.0:8123    accepts other machines, such as a phone: read the warning

The page shows all runs of the directory, live or not, and the questions that wait for a person. It reads the same data
as `raymond top`, and acts like the commands. Runs do not need the server, and continue without it. It listens on this
machine only, unless --listen says otherwise. The printed address contains a token, and a browser that opens it gets a
cookie for a day. A program sends the token as `Authorization: Bearer TOKEN`. Ctrl-C stops the server, but no run.";

/// Options of `serve`.
#[derive(Debug, Clone, Args)]
pub struct ServeArgs {
    /// Open the page in a browser on this machine
    #[arg(long)]
    pub open: bool,

    /// The address to listen on; port 0 picks a free port
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:0", value_parser = listen_address)]
    pub listen: SocketAddr,

    /// The directory of the runs.
    #[command(flatten)]
    pub dir: DirArgs,
}

/// Reads an address to listen on. The name of this machine is its loopback address; no other name is looked up.
fn listen_address(text: &str) -> Result<SocketAddr, String> {
    let of_this_machine =
        text.strip_prefix("localhost:").map(|port| format!("{}:{port}", Ipv4Addr::LOCALHOST));
    of_this_machine.as_deref().unwrap_or(text).parse().map_err(|_| {
        "give an IP address and a port, such as 127.0.0.1:8123, or [::1]:8123; port 0 picks a free port".to_owned()
    })
}

pub(super) const TRUST_HELP: &str = "Examples:
  raymond trust workflows/release        show what it asks for, and trust it
  raymond trust workflows/release --show show what it asks for, without trusting it
  raymond trust --list                   trusted folders, since when, and how trust was given
  raymond trust --remove workflows/release

A workflow's folder needs trust for everything beyond prompts: commands, other hosts, plug-ins, and wider permissions
of Claude Code. Trust is stored outside the folder and holds for the content of its files: raymond asks again when a
file changes that can do more than prompt. Without trust, a run asks on a terminal. Without a terminal, it exits 77 and
starts nothing. `raymond run --trust` gives the same trust.";

/// Options of `trust`.
#[derive(Debug, Clone, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a separate switch")]
pub struct TrustArgs {
    /// A folder with a workflow, or a file of a workflow
    #[arg(value_name = "PATH", required_unless_present = "list")]
    pub path: Option<PathBuf>,
    /// Show all trusted folders
    #[arg(long, conflicts_with = "path")]
    pub list: bool,
    /// Show what the workflow asks for, and change nothing
    #[arg(long, requires = "path")]
    pub show: bool,
    /// Stop trusting the folder
    #[arg(long, requires = "path", conflicts_with = "show")]
    pub remove: bool,
    /// The directory of the runs, which is no part of a workflow.
    #[command(flatten)]
    pub dir: DirArgs,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn address_is_one_of_ip_or_this_machine() {
        for (text, address) in [
            ("localhost:1", "127.0.0.1:1"),
            ("127.0.0.1:0", "127.0.0.1:0"),
            ("[::1]:8123", "[::1]:8123"),
        ] {
            assert_eq!(listen_address(text).map(|one| one.to_string()), Ok(address.to_owned()));
        }
        for text in ["localhost", "8123", "127.0.0.1", "example.org:80", "localhost:x"] {
            let refused = listen_address(text).expect_err(text);
            assert!(refused.contains("127.0.0.1:8123"), "{text}: {refused}");
        }
    }
}
