//! `raymond worker`: this machine performs turns and activities for runs of an engine.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::args::hosts::{AllowArg, WorkerArgs};
use super::exit::{CliExitCode, Error};
use super::interrupts::signals;
use super::{background, diagnostics, engine, output, person};
use crate::domain::capacity;
use crate::domain::host::HostName;
use crate::domain::id::RunId;
use crate::engine::Engine;
use crate::engine::connect::{ServedEngine, ServingOptions};
use crate::process::child::subreaper;
use crate::process::plugin_process::ENGINE;
use crate::process::{host, registry};
use crate::runtime::directories;
use crate::runtime::worker::{HostPolicy, SupervisorLauncher, Takeover, WorkerOptions, serve};
use crate::store::layout::RunsRoot;

/// Runs `raymond worker`.
///
/// # Errors
/// [`Error`] if no engine is named, it cannot be reached, or the host was declared lost.
pub fn worker(args: &WorkerArgs) -> Result<CliExitCode, Error> {
    diagnostics::begin(&args.logging)?;
    // Without a run, the terminal shows warnings but no live view.
    let _ = diagnostics::terminal(false);
    let _served = serving(args)?;
    let connected = engine::required(&args.dir)?;
    let host = match &args.host {
        Some(host) => host.clone(),
        None => machine()?,
    };
    let all_runs = args.dir.without_engine().real_root()?;
    let root = RunsRoot::new(all_runs.path().join("hosts").join(host.as_str()));
    let slots = args.slots.unwrap_or_else(|| {
        u32::try_from(capacity::processes(host::cores(), host::memory())).unwrap_or(u32::MAX)
    });
    let shared_dir = args.shared_dir.as_deref().map(directories::directory).transpose()?;
    let allows = |allowed: AllowArg| args.allow.contains(&allowed);
    let options = WorkerOptions {
        host: host.clone(),
        slots,
        labels: args.labels.iter().cloned().collect(),
        root,
        shared_dir: shared_dir.map(Into::into),
        policy: HostPolicy {
            commands: allows(AllowArg::Commands),
            skip_permissions: allows(AllowArg::SkipPermissions),
            claude_args: allows(AllowArg::ClaudeArgs),
            git_exchange: allows(AllowArg::GitExchange),
            plugins: allows(AllowArg::Plugins),
            program: allows(AllowArg::Program),
        },
        state: directories::user_state()?,
        timeout: args.host_timeout.map(Duration::from_millis),
        takeover: takeover(args, &connected)?,
    };
    output::tell(&format!(
        "host {host} is to serve {} with {slots} slots; interrupt it to end it",
        connected.address()
    ));
    person::keep_registry();
    registry::supervise("");
    subreaper::take_orphans();
    actix::System::new().block_on(async {
        actix::spawn(subreaper::reap_orphans());
        let mut interrupts = signals()?;
        serve(connected, options, &mut interrupts).await?;
        Ok::<(), Error>(())
    })?;
    Ok(CliExitCode::Success)
}

/// Has this worker serve its engine, if it listens.
fn serving(args: &WorkerArgs) -> Result<Option<ServedEngine>, Error> {
    let Some(listen) = args.listen else { return Ok(None) };
    let (advertise, server_key) = (args.advertise.clone(), args.server_key.clone());
    let served = engine::serve(&args.dir, &ServingOptions { listen, advertise, server_key })?;
    output::tell(&format!(
        "the worker listens on {listen}; the engine reaches it at {}",
        served.url
    ));
    Ok(Some(served))
}

/// Returns the takeover of runs, if the worker takes any.
fn takeover(args: &WorkerArgs, connected: &Arc<dyn Engine>) -> Result<Option<Takeover>, Error> {
    let Some(url) = engine::address(&args.dir)?.filter(|_| args.takes_runs) else {
        return Ok(None);
    };
    let mirror = engine::mirror(Arc::clone(connected))?;
    Ok(Some(Takeover { mirror, launcher: Arc::new(DetachedSupervisor { url }) }))
}

/// Starts supervisors that outlive this process.
struct DetachedSupervisor {
    /// The address of the engine, which may have a password in it.
    url: String,
}

impl fmt::Debug for DetachedSupervisor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DetachedSupervisor")
    }
}

impl SupervisorLauncher for DetachedSupervisor {
    fn launch(&self, copies: &RunsRoot, run: &RunId) -> Result<(), String> {
        let engine = [(ENGINE, self.url.as_str())];
        background::take_over_detached(copies, run, &engine).map_err(|error| error.to_string())
    }
}

/// Returns the name of this machine.
fn machine() -> Result<HostName, Error> {
    let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
    HostName::parse(&name).map_err(|error| {
        Error::Usage(format!("{error}; the machine is called so: name the host with --host"))
    })
}
