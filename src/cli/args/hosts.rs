//! The arguments of `worker`, `hosts`, `serve` and `trust`, and their help.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::DirArgs;
use crate::cli::logging::LoggingArgs;
use crate::domain::host::{HostLabel, HostName};
use crate::domain::time::millis;

const WORKER_HELP: &str = "Examples:
  raymond worker --engine postgres://ray@db/work --host build-1 --slots 8
  raymond worker --engine postgres://ray@db/work --host-label gpu --allow commands --host-timeout 10m
  RAYMOND_ENGINE=postgres://ray@db/work raymond worker
  raymond worker --engine restate://restate:8080 --listen 10.0.0.5:9080 --server-key publickeyv1_…

The worker runs until it is interrupted, and then exits after its running turns. At the second interrupt it exits at once,
and the next worker with the same directory continues the turns. It keeps its files in hosts/NAME below --dir.";

const HOSTS_HELP: &str = "Examples:
  raymond hosts --engine postgres://ray@db/work      all hosts: alive or silent, turns, labels
  raymond hosts --json | jq -r '.[] | select(.alive | not) | .host'
  raymond hosts drain build-1                        it keeps its agents, and gets no new ones
  raymond hosts lost build-1                         its agents continue on other hosts

Declare a host lost only if it will not come back: a turn that it had begun may be paid for twice. Its agents continue on
other hosts, with the sessions that the engine keeps.

--json prints an array of { host, epoch, standing, alive, silent_ms, slots, room, busy, agents, sessions, labels, raymond, wire, claude }.";

const DRAIN_HELP: &str = "Examples:
  raymond hosts drain build-1
  raymond hosts drain build-1 --engine postgres://ray@db/work";

const LOST_HELP: &str = "Examples:
  raymond hosts lost build-1
  raymond hosts lost build-1 --engine postgres://ray@db/work";

const REMOVE_HELP: &str = "Examples:
  raymond hosts remove build-1
  raymond hosts remove build-1 --engine postgres://ray@db/work";

/// Something that a host allows runs to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum AllowArg {
    /// Commands, scripts and requests of trusted workflows, and tools that run without asking
    Commands,
    /// Claude Code with fewer permission checks than `acceptEdits`, or none
    SkipPermissions,
    /// Arguments for Claude Code from the person who starts the run
    ClaudeArgs,
    /// Exchanging work through a git repository, which this host fetches from and pushes to
    GitExchange,
    /// Plug-in programs of runs that are supervised here
    Plugins,
    /// Another program instead of `claude`, given with --claude
    Program,
}

/// Options of `worker`.
#[derive(Debug, Clone, Args)]
#[command(after_help = WORKER_HELP)]
pub struct WorkerArgs {
    /// The directory of the runs, and the engine.
    #[command(flatten)]
    pub dir: DirArgs,
    /// The name of this host [default: the machine's name]
    #[arg(long, value_name = "NAME", value_parser = HostName::parse)]
    pub host: Option<HostName>,
    /// Maximum number of turns at a time [default: by the machine's cores and memory]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub slots: Option<u32>,
    /// A label that states can ask for; repeatable
    #[arg(long = "host-label", alias = "label", value_name = "LABEL", value_parser = HostLabel::parse)]
    pub labels: Vec<HostLabel>,
    /// What runs may do on this host, beyond prompts; repeatable
    #[arg(long, value_enum, value_delimiter = ',')]
    pub allow: Vec<AllowArg>,
    /// Declare this host lost after it has been silent for this long; a person can declare it sooner [default: a person
    /// decides]
    #[arg(long, value_name = "TIME", value_parser = host_timeout)]
    pub host_timeout: Option<u64>,
    /// Take over runs whose supervisor is gone
    #[arg(long)]
    pub takes_runs: bool,
    /// A directory that all hosts have under the same path
    #[arg(long, value_name = "DIR")]
    pub shared_dir: Option<PathBuf>,
    /// Serve raymond's objects to a Restate server, which connects to this address
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub listen: Option<SocketAddr>,
    /// The URL under which the Restate server reaches that address [default: <http://ADDRESS:PORT>]
    #[arg(long, value_name = "URL", requires = "listen")]
    pub advertise: Option<String>,
    /// The public key of the Restate server: calls without its signature are refused
    #[arg(long, value_name = "KEY", requires = "listen")]
    pub server_key: Option<String>,
    /// The logging options.
    #[command(flatten)]
    pub logging: LoggingArgs,
}

/// The shortest silence after which a host may count as lost: a connection may be made again meanwhile.
const SHORTEST_TIMEOUT_MS: u64 = 10_000;

fn host_timeout(text: &str) -> Result<u64, String> {
    match millis(text)? {
        short if short < SHORTEST_TIMEOUT_MS => Err("write a time of at least 10s".to_owned()),
        time => Ok(time),
    }
}

/// Options of `hosts`.
#[derive(Debug, Clone, Args)]
#[command(after_help = HOSTS_HELP)]
pub struct HostsArgs {
    /// The decision about a host; absent to list all.
    #[command(subcommand)]
    pub command: Option<HostsCommand>,
    /// The directory of the runs, and the engine.
    #[command(flatten)]
    pub dir: DirArgs,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// A decision about a host.
#[derive(Debug, Clone, Subcommand)]
pub enum HostsCommand {
    /// Give a host no new agents; it keeps its current agents
    #[command(after_help = DRAIN_HELP)]
    Drain(SingleHostArgs),
    /// Declare a host lost: its agents continue on other hosts
    #[command(after_help = LOST_HELP)]
    Lost(SingleHostArgs),
    /// Remove a host that is lost or silent from the list
    #[command(after_help = REMOVE_HELP)]
    Remove(SingleHostArgs),
}

impl HostsCommand {
    /// Returns the host that it is about.
    pub fn host(&self) -> &SingleHostArgs {
        match self {
            Self::Drain(host) | Self::Lost(host) | Self::Remove(host) => host,
        }
    }
}

/// A command about one host.
#[derive(Debug, Clone, Args)]
pub struct SingleHostArgs {
    /// The name of the host
    #[arg(value_parser = HostName::parse)]
    pub host: HostName,
    /// The engine.
    #[command(flatten)]
    pub dir: DirArgs,
}

// The arguments of `raymond serve`, and its help.

const SERVE_HELP: &str = "Examples:
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
#[command(after_help = SERVE_HELP)]
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

// The arguments of `raymond trust`, and its help.

const TRUST_HELP: &str = "Examples:
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
#[command(after_help = TRUST_HELP)]
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
mod serve_tests {
    use super::*;

    #[test]
    fn address_is_one_of_ip_or_this_machine() {
        for (text, address) in [
            ("localhost:1", "127.0.0.1:1"),
            ("127.0.0.1:0", "127.0.0.1:0"),
            ("[::1]:8123", "[::1]:8123"),
        ] {
            assert_eq!(
                listen_address(text).map(|address| address.to_string()),
                Ok(address.to_owned())
            );
        }
        for text in ["localhost", "8123", "127.0.0.1", "example.org:80", "localhost:x"] {
            let refused = listen_address(text).expect_err(text);
            assert!(refused.contains("127.0.0.1:8123"), "{text}: {refused}");
        }
    }
}
