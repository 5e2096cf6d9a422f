//! `raymond hosts`: the hosts of an engine, and what people decide about them; and the report of silent hosts.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::cli::args::hosts::{HostsArgs, HostsCommand, SingleHostArgs};
use crate::cli::candidates::DirArgs;
use crate::cli::exit::{CliExitCode, Error};
use crate::cli::table::{self, TableCell};
use crate::cli::{engine, output};
use crate::domain::host::{HostLabel, HostName, HostStanding};
use crate::domain::time::millis_of;
use crate::engine::Engine;
use crate::engine::shared_log::RegisteredHost;
use crate::plugin::styled::TextTone;
use crate::runtime::sharing::{EngineMirror, SilentHosts, silences};
use crate::store::engine_note::EngineNote;
use crate::store::layout::RunDir;
use crate::store::view::load_view;

/// Runs `raymond hosts`.
///
/// # Errors
/// [`Error`] if no engine is named, it cannot be reached, or it does not know the host.
pub fn hosts(args: &HostsArgs) -> Result<CliExitCode, Error> {
    let Some(command) = &args.command else {
        let connected = engine::required(&args.dir)?;
        let hosts = connected.hosts()?;
        return list(&hosts, &AgentsAtHosts::of(&engine::mirror(connected)?)?, args.json);
    };
    let SingleHostArgs { host, dir } = command.host();
    let connected = engine::required(if dir.engine.is_some() { dir } else { &args.dir })?;
    let registered = connected.hosts()?.into_iter().find(|registered| registered.host == *host);
    let is_alive = registered.as_ref().is_some_and(RegisteredHost::is_alive);
    let is_lost = registered.is_some_and(|host| host.standing == HostStanding::Lost);
    let outcome = match command {
        HostsCommand::Drain(_) if is_lost => {
            return Err(Error::Usage(format!(
                "the host {host} was declared lost, so its agents continue on other hosts: nothing to drain"
            )));
        }
        HostsCommand::Drain(_) => {
            connected.set_standing(host, HostStanding::Draining)?;
            "keeps its agents, and gets no new ones"
        }
        HostsCommand::Lost(_) => {
            connected.set_standing(host, HostStanding::Lost)?;
            if is_alive {
                output::tell(&format!(
                    "{host} was alive: its worker stops what it runs, and can be started again"
                ));
            }
            "is declared lost: its agents continue on other hosts, with the sessions that the engine keeps; a turn that it had begun may be paid for twice"
        }
        HostsCommand::Remove(_) if is_alive => {
            return Err(Error::Usage(format!(
                "the host {host} is alive: end its worker first, or declare it lost with `raymond hosts lost {host}`"
            )));
        }
        HostsCommand::Remove(_) => {
            connected.remove_host(host)?;
            "is removed"
        }
    };
    output::print(&format!("{host} {outcome}\n"))
}

/// The number of live agents by their hosts.
struct AgentsAtHosts(BTreeMap<HostName, usize>);

impl AgentsAtHosts {
    /// Counts the live agents of all runs of an engine, in the copies of them.
    fn of(mirror: &EngineMirror) -> Result<Self, Error> {
        let mut agents = BTreeMap::new();
        for run in mirror.refresh_going_on()? {
            let view = load_view(mirror.root(), &run)?;
            for agent in view.run.agents.values() {
                if let Some(host) = &agent.spec.working_dir.home.host {
                    *agents.entry(host.clone()).or_default() += 1;
                }
            }
        }
        Ok(Self(agents))
    }

    fn at(&self, host: &HostName) -> usize {
        self.0.get(host).copied().unwrap_or_default()
    }
}

fn list(
    hosts: &[RegisteredHost],
    agents: &AgentsAtHosts,
    as_json: bool,
) -> Result<CliExitCode, Error> {
    if as_json {
        let hosts: Vec<Value> = hosts.iter().map(|host| document(host, agents)).collect();
        return output::print_json(&Value::from(hosts));
    }
    if hosts.is_empty() {
        return output::print("no hosts; start `raymond worker` on one\n");
    }
    let head = ["HOST", "STATE", "BUSY", "SLOTS", "AGENTS", "LABELS", "RAYMOND", "CLAUDE"];
    table::print(table::with_head(&head, hosts.iter().map(|host| row(host, agents))))
}

fn row(host: &RegisteredHost, agents: &AgentsAtHosts) -> Vec<TableCell> {
    let RegisteredHost { host: name, report, .. } = host;
    let labels: Vec<&str> = report.labels.iter().map(HostLabel::as_str).collect();
    let tone = if host.is_alive() { TextTone::Good } else { TextTone::Bad };
    vec![
        name.to_string().into(),
        TableCell::of(tone, &state(host)),
        report.busy.to_string().into(),
        report.slots.to_string().into(),
        agents.at(name).to_string().into(),
        labels.join(",").into(),
        report.raymond.clone().into(),
        report.claude.clone().unwrap_or_default().into(),
    ]
}

fn state(host: &RegisteredHost) -> String {
    match host.standing {
        HostStanding::Lost => "lost".to_owned(),
        HostStanding::Active if host.is_alive() => "alive".to_owned(),
        HostStanding::Draining if host.is_alive() => "draining".to_owned(),
        HostStanding::Active | HostStanding::Draining => {
            format!("silent for {} s", host.silent_for.as_secs())
        }
    }
}

fn document(host: &RegisteredHost, agents: &AgentsAtHosts) -> Value {
    json!({
        "host": host.host,
        "epoch": host.epoch,
        "standing": host.standing,
        "alive": host.is_alive(),
        "silent_ms": millis_of(host.silent_for),
        "slots": host.report.slots,
        "room": host.report.room,
        "busy": host.report.busy,
        "agents": agents.at(&host.host),
        "sessions": host.report.sessions,
        "labels": host.report.labels,
        "raymond": host.report.raymond,
        "wire": host.report.wire,
        "claude": host.report.claude,
    })
}

// The hosts that a command waits for with a shared run: it says which of them are silent.

/// The time between two looks at the hosts.
const LOOK_INTERVAL: Duration = Duration::from_millis(500);

/// The hosts of an engine, if there is one.
#[derive(Debug)]
pub(super) struct WaitedHosts {
    engine: Option<Arc<dyn Engine>>,
    silent: SilentHosts,
    next_look: Instant,
}

impl WaitedHosts {
    /// Returns the hosts of the engine that a command names.
    ///
    /// # Errors
    /// [`Error`] if it cannot be reached.
    pub(super) fn of(dir: &DirArgs) -> Result<Self, Error> {
        let engine = engine::connected(dir)?;
        Ok(Self { engine, silent: SilentHosts::default(), next_look: Instant::now() })
    }

    /// Says which hosts are silent while turns of the run are there, once for each silence.
    ///
    /// # Errors
    /// [`Error`] if the note in the copy of the run cannot be read.
    pub(super) fn look(&mut self, dir: &RunDir) -> Result<(), Error> {
        let Some(engine) = self.engine.as_ref().filter(|_| self.next_look <= Instant::now()) else {
            return Ok(());
        };
        self.next_look = Instant::now() + LOOK_INTERVAL;
        let note = EngineNote::of(dir.path())?;
        // If the engine cannot be reached, the code that keeps the copy up to date says so.
        let seen = engine.hosts().unwrap_or_default();
        let is_waited_for = |host: &_| note.as_ref().is_some_and(|note| note.has_turns_at(host));
        for news in self.silent.news(&seen, is_waited_for) {
            output::tell(&news);
        }
        Ok(())
    }
}

/// Says which hosts are silent now while they have turns of a run. If the engine cannot be reached, the update of the
/// run's copy has already said so.
///
/// # Errors
/// [`Error`] if the note in the copy of the run cannot be read.
pub(super) fn tell_silent(dir: &DirArgs, run: &RunDir) -> Result<(), Error> {
    let Some(note) = EngineNote::of(run.path())? else { return Ok(()) };
    let Ok(Some(engine)) = engine::connected(dir) else { return Ok(()) };
    for silence in silences(&engine.hosts().unwrap_or_default(), |host| note.has_turns_at(host)) {
        output::tell(&silence);
    }
    Ok(())
}
