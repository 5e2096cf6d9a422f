//! `raymond hosts`: the hosts of an engine, and what people decide about them.

use std::time::Duration;

use serde_json::{Value, json};

use super::args::hosts::{HostsArgs, HostsCommand};
use super::exit::{CliExitCode, Error};
use super::table::{self, TableCell};
use super::{engine, output, person};
use crate::domain::host::{HostLabel, HostStanding};
use crate::engine::host_registry::RegisteredHost;
use crate::plugin::styled::TextTone;
use crate::runtime;

/// The time without a heartbeat after which a host is shown as silent.
const SILENCE: Duration = Duration::from_secs(6);

/// Runs `raymond hosts`.
///
/// # Errors
/// [`Error`] if there is no engine, it cannot be reached, or it knows no such host.
pub fn hosts(args: &HostsArgs) -> Result<CliExitCode, Error> {
    let refused = |error| Error::from(runtime::Error::from(error));
    let dir =
        match &args.command {
            Some(
                HostsCommand::Drain(one) | HostsCommand::Lost(one) | HostsCommand::Remove(one),
            ) if one.dir.engine.is_some() => &one.dir,
            Some(_) | None => &args.dir,
        };
    let connected = engine::required(dir)?;
    let done = match &args.command {
        None => return list(&connected.hosts().map_err(refused)?, args.json),
        Some(HostsCommand::Drain(one)) => {
            person::must_act("drain a host")?;
            connected.set_standing(&one.host, HostStanding::Draining).map_err(refused)?;
            format!("{} keeps its agents, and gets no others", one.host)
        }
        Some(HostsCommand::Lost(one)) => {
            person::must_act("declare a host lost")?;
            connected.set_standing(&one.host, HostStanding::Lost).map_err(refused)?;
            format!(
                "{} is declared lost: its agents go on elsewhere, with the sessions that the engine keeps; a turn that it had begun may be paid for twice",
                one.host
            )
        }
        Some(HostsCommand::Remove(one)) => {
            person::must_act("remove a host")?;
            let hosts = connected.hosts().map_err(refused)?;
            if hosts.iter().any(|host| host.host == one.host && is_alive(host)) {
                return Err(Error::Usage(format!(
                    "the host {0} is alive: end its worker first, or declare it lost with `raymond hosts lost {0}`",
                    one.host
                )));
            }
            connected.remove_host(&one.host).map_err(refused)?;
            format!("{} is removed", one.host)
        }
    };
    output::print(&format!("{done}\n"))
}

fn list(hosts: &[RegisteredHost], as_json: bool) -> Result<CliExitCode, Error> {
    if as_json {
        let hosts: Vec<Value> = hosts.iter().map(document).collect();
        return output::print_json(&Value::from(hosts));
    }
    if hosts.is_empty() {
        return output::print("there is no host; start `raymond worker` on one\n");
    }
    let head = ["HOST", "STATE", "BUSY", "SLOTS", "AGENTS", "LABELS", "RAYMOND", "CLAUDE"];
    let head = head.map(|title| TableCell::of(TextTone::Faint, title)).to_vec();
    let rows: Vec<Vec<TableCell>> = std::iter::once(head).chain(hosts.iter().map(row)).collect();
    table::print(table::lines(&rows))
}

fn row(host: &RegisteredHost) -> Vec<TableCell> {
    let RegisteredHost { host: name, report, .. } = host;
    let labels: Vec<&str> = report.labels.iter().map(HostLabel::as_str).collect();
    let tone = if is_alive(host) { TextTone::Good } else { TextTone::Bad };
    vec![
        name.to_string().into(),
        TableCell::of(tone, &state(host)),
        report.busy.to_string().into(),
        report.slots.to_string().into(),
        report.sessions.to_string().into(),
        labels.join(",").into(),
        report.raymond.clone().into(),
        report.claude.clone().unwrap_or_default().into(),
    ]
}

fn is_alive(host: &RegisteredHost) -> bool {
    host.silent_for < SILENCE && host.standing != HostStanding::Lost
}

fn state(host: &RegisteredHost) -> String {
    match host.standing {
        HostStanding::Lost => "lost".to_owned(),
        HostStanding::Active if is_alive(host) => "alive".to_owned(),
        HostStanding::Draining if is_alive(host) => "draining".to_owned(),
        HostStanding::Active | HostStanding::Draining => {
            format!("silent for {} s", host.silent_for.as_secs())
        }
    }
}

fn document(host: &RegisteredHost) -> Value {
    json!({
        "host": host.host,
        "epoch": host.epoch,
        "standing": host.standing,
        "alive": is_alive(host),
        "silent_ms": u64::try_from(host.silent_for.as_millis()).unwrap_or(u64::MAX),
        "slots": host.report.slots,
        "room": host.report.room,
        "busy": host.report.busy,
        "sessions": host.report.sessions,
        "labels": host.report.labels,
        "raymond": host.report.raymond,
        "wire": host.report.wire,
        "claude": host.report.claude,
    })
}
