//! The plug-ins of a run: each on its own thread, with a bounded mailbox; and the programs among them.
//!
//! The plug-ins of raymond itself share one thread. Every other plug-in has a separate thread, so a plug-in that blocks
//! delays nothing else. A plug-in with a full mailbox misses records, and the run never waits for it. Mailboxes close
//! when the run is over. Each actor then gets a moment to process its records, and ends by itself.

use std::future::Future;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use actix::dev::channel::channel;
use actix::{Actor, Addr, Arbiter, Context, Handler, Recipient};
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout_at};

use super::error::Error;
use crate::actor::observer::{
    Consult, DEFAULT_DEADLINE, FinishPublishing, Observer, ObserverKind, PluginInterceptor,
    Published,
};
use crate::domain::restart::AgentFailures;
use crate::domain::run::Run;
use crate::domain::settings::{PlugIn, Settings, tell_apart};
use crate::plugin::external::{
    ExternalPlugin, PluginExit, PluginHandle, PluginSpawner, RunPosition, SpawnedPlugin,
};
use crate::process::child::ProcessExit;
use crate::process::command::EnvironmentMarker;
use crate::process::plugin_process;
use crate::process::plugin_process::{NamedVariables, PluginProcess};
use crate::store::workflow::WorkflowDir;

/// The maximum number of records that wait for a plug-in.
const MAILBOX_CAPACITY: usize = 4096;

/// The time that the end of a run waits for a companion plug-in to deal with its records.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(5);

/// The time that the end of a run waits for plug-ins that get no notice of the end. A plug-in with its own timer does
/// not end.
const STOP_TIMEOUT: Duration = Duration::from_secs(1);

/// The plug-ins of a run.
pub struct PlugIns {
    builtin_arbiter: Arbiter,
    others: Vec<Arbiter>,
    ends: Vec<oneshot::Receiver<()>>,
    observers: Vec<Observer>,
    interceptors: Vec<PluginInterceptor>,
    finish: Vec<(Recipient<FinishPublishing>, Option<Duration>)>,
}

/// The options of a plug-in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PluginOptions {
    /// True if the run pauses when the plug-in fails, or does not answer in time.
    pub required: bool,
    /// The time that it may take to answer.
    pub deadline: Duration,
}

impl Default for PluginOptions {
    /// Returns the options of a plug-in that is not required and has two seconds to answer.
    fn default() -> Self {
        Self { required: false, deadline: DEFAULT_DEADLINE }
    }
}

impl Default for PlugIns {
    fn default() -> Self {
        Self {
            builtin_arbiter: Arbiter::new(),
            others: Vec::new(),
            ends: Vec::new(),
            observers: Vec::new(),
            interceptors: Vec::new(),
            finish: Vec::new(),
        }
    }
}

impl PlugIns {
    /// Adds one of raymond's own plug-ins. It receives everything, and the run waits for it at the end.
    pub fn add_builtin<A>(&mut self, name: &str, actor: A)
    where
        A: Actor<Context = Context<A>> + Handler<Published> + Handler<FinishPublishing> + Send,
    {
        let address: Addr<A> = A::start_in_arbiter(&self.builtin_arbiter.handle(), |_| actor);
        self.observers.push(Observer::new(
            name,
            address.clone().recipient(),
            ObserverKind::BuiltIn,
        ));
        self.finish.push((address.recipient(), None));
    }

    /// Adds an observer.
    pub fn add_observer<A>(&mut self, name: &str, options: PluginOptions, actor: A)
    where
        A: Actor<Context = Context<A>> + Handler<Published> + Send,
    {
        let (address, end) = self.start(actor);
        self.ends.push(end);
        self.observe(name, options, address.recipient());
    }

    /// Adds an observer that is also asked for advice.
    pub fn add_interceptor<A>(&mut self, name: &str, options: PluginOptions, actor: A)
    where
        A: Actor<Context = Context<A>> + Handler<Published> + Handler<Consult> + Send,
    {
        let (address, end) = self.start(actor);
        self.ends.push(end);
        self.advise(name, options, address.clone().recipient());
        self.observe(name, options, address.recipient());
    }

    /// Adds an interceptor for which the run waits a moment at the end.
    pub fn add_companion<A>(&mut self, name: &str, options: PluginOptions, actor: A)
    where
        A: Actor<Context = Context<A>>
            + Handler<Published>
            + Handler<Consult>
            + Handler<FinishPublishing>
            + Send,
    {
        let (address, _) = self.start(actor);
        self.advise(name, options, address.clone().recipient());
        self.finish.push((address.clone().recipient(), Some(FLUSH_TIMEOUT)));
        self.observe(name, options, address.recipient());
    }

    /// Starts an actor on its own thread. The receiver shows when it has ended.
    fn start<A: Actor<Context = Context<A>> + Send>(
        &mut self,
        actor: A,
    ) -> (Addr<A>, oneshot::Receiver<()>) {
        let arbiter = Arbiter::new();
        let (mailbox, read) = channel(MAILBOX_CAPACITY);
        let (ended, end) = oneshot::channel::<()>();
        arbiter.spawn_fn(move || {
            let life = Context::with_receiver(read).into_future(actor);
            actix::spawn(async move {
                let _ended = ended;
                life.await;
            });
        });
        self.others.push(arbiter);
        (Addr::new(mailbox), end)
    }

    fn observe(&mut self, name: &str, options: PluginOptions, recipient: Recipient<Published>) {
        let kind = ObserverKind::PlugIn { required: options.required };
        self.observers.push(Observer::new(name, recipient, kind));
    }

    fn advise(&mut self, name: &str, options: PluginOptions, asked: Recipient<Consult>) {
        self.interceptors.push(PluginInterceptor::new(
            name.to_owned(),
            asked,
            options.deadline,
            options.required,
        ));
    }

    /// Returns the observers and the interceptors, once.
    pub(super) fn take(&mut self) -> (Vec<Observer>, Vec<PluginInterceptor>) {
        (std::mem::take(&mut self.observers), std::mem::take(&mut self.interceptors))
    }

    /// Waits until raymond's own plug-ins have dealt with everything, and a moment for the others; failed ones are
    /// not waited for. All handles given out by `take` must be dropped before.
    pub(super) async fn finish(mut self, run: Option<&Run>) {
        let failures = run.map(|run| Arc::new(AgentFailures::of(run)));
        let finish = |(recipient, limit): &(Recipient<FinishPublishing>, Option<Duration>)| {
            let message = FinishPublishing { failures: failures.clone() };
            (recipient.send(message), limit.map(|limit| Instant::now() + limit))
        };
        let finishing: Vec<_> = std::mem::take(&mut self.finish).iter().map(finish).collect();
        for (finished, until) in finishing {
            match until {
                None => drop(finished.await),
                Some(until) => drop(timeout_at(until, finished).await),
            }
        }
        let until = Instant::now() + STOP_TIMEOUT;
        for end in std::mem::take(&mut self.ends) {
            let _ = timeout_at(until, end).await;
        }
    }
}

impl Drop for PlugIns {
    /// Stops the threads of a run that is over, or that could not begin.
    fn drop(&mut self) {
        self.builtin_arbiter.stop();
        for arbiter in &self.others {
            arbiter.stop();
        }
    }
}

// The programs among a run's plug-ins: found, started, and ended with the run.

/// Returns the plug-ins that a workflow asks for; their programs are searched in its folder.
pub(super) fn asked_for(plugins: &[PlugIn], scope: &Path) -> Vec<PlugIn> {
    let folder = std::path::absolute(scope).unwrap_or_else(|_| scope.to_owned());
    let mut plugins: Vec<PlugIn> = plugins
        .iter()
        .map(|plugin| PlugIn { by_workflow: true, ..placed(plugin.clone(), &folder) })
        .collect();
    tell_apart(&mut plugins);
    plugins
}

/// Replaces the plug-ins that the user asked for before by those given now. Their programs are searched in the
/// working directory of this process.
pub fn replace_options(plugins: &mut Vec<PlugIn>, given: &[PlugIn]) {
    let here = std::path::absolute(".").unwrap_or_default();
    plugins.retain(|plugin| plugin.by_workflow);
    plugins.extend(given.iter().map(|plugin| placed(plugin.clone(), &here)));
    tell_apart(plugins);
}

/// Makes the command path and existing file arguments absolute.
fn placed(mut plugin: PlugIn, folder: &Path) -> PlugIn {
    for (at, word) in plugin.command.iter_mut().enumerate() {
        let path = Path::new(word.as_str());
        if !word.contains('/') || path.is_absolute() {
            continue;
        }
        let placed: PathBuf = folder.join(path).components().collect();
        if at > 0 && !placed.is_file() {
            continue;
        }
        if let Some(text) = placed.to_str() {
            text.clone_into(word);
        }
    }
    plugin
}

/// Checks that the programs of the required plug-ins exist.
///
/// # Errors
/// [`Error::NoPlugIn`].
pub(super) fn check(settings: &Settings, marker: &EnvironmentMarker) -> Result<(), Error> {
    for plugin in settings.plugins.iter().filter(|plugin| plugin.required) {
        start_of(plugin, settings, marker)
            .program()
            .map_err(|error| no_plug_in(plugin, error.to_string()))?;
    }
    Ok(())
}

/// Starts the programs of a run's plug-ins, once orphans of an earlier raymond are gone.
///
/// # Errors
/// [`Error::NoPlugIn`] if a required one cannot be started.
pub(super) async fn start(
    plugins: &mut PlugIns,
    settings: &Settings,
    marker: &EnvironmentMarker,
    scope: &WorkflowDir,
    place: &RunPosition,
) -> Result<(), Error> {
    for plugin in &settings.plugins {
        let options = PluginOptions {
            required: plugin.required,
            deadline: Duration::from_millis(plugin.deadline_ms),
        };
        let start = start_of(plugin, settings, marker);
        let scope = plugin.by_workflow.then(|| scope.clone());
        let spawner = Box::new(PluginProcessSpawner { start, scope });
        let (ready, started) = oneshot::channel();
        let actor = ExternalPlugin::new(plugin.clone(), spawner, place.clone(), ready);
        plugins.add_companion(&plugin.name, options, actor);
        match started.await {
            Ok(Ok(())) => {}
            Ok(Err(why)) if plugin.required => return Err(no_plug_in(plugin, why)),
            Ok(Err(why)) => {
                tracing::warn!("{}; the run continues without it", no_plug_in(plugin, why));
            }
            Err(_) => tracing::warn!("the plug-in {} has failed", plugin.name),
        }
    }
    Ok(())
}

fn no_plug_in(plugin: &PlugIn, why: String) -> Error {
    let command = plugin.command.join(" ");
    Error::NoPlugIn { name: plugin.name.clone(), command, why }
}

fn start_of(
    plugin: &PlugIn,
    settings: &Settings,
    marker: &EnvironmentMarker,
) -> plugin_process::PluginProcessSpec {
    plugin_process::PluginProcessSpec {
        command: plugin.command.clone(),
        cwd: PathBuf::from(&settings.cwd),
        environment: plugin_process::environment(
            std::env::vars_os(),
            &NamedVariables::of(&settings.options),
            marker,
            &plugin.name,
        ),
    }
}

struct PluginProcessSpawner {
    start: plugin_process::PluginProcessSpec,
    /// The workflow's files, if it is the workflow that asks for the program.
    scope: Option<WorkflowDir>,
}

impl PluginProcessSpawner {
    /// Returns the command to start, with the workflow's files as they were when the run began.
    fn pinned(&self) -> std::io::Result<plugin_process::PluginProcessSpec> {
        let mut start = self.start.clone();
        let Some(scope) = &self.scope else { return Ok(start) };
        for word in &mut start.command {
            let copy = scope.executable_copy(Path::new(word.as_str()));
            let copy = copy.map_err(|error| std::io::Error::other(error.to_string()))?;
            if let Some(copy) = copy.as_deref().and_then(Path::to_str) {
                copy.clone_into(word);
            }
        }
        // Python must not write compiled modules beside the copy, because they would not be trusted.
        start.environment.push(("PYTHONDONTWRITEBYTECODE".into(), "1".into()));
        Ok(start)
    }
}

impl PluginSpawner for PluginProcessSpawner {
    fn spawn(&self) -> std::io::Result<SpawnedPlugin> {
        let (process, pipes) = PluginProcess::start(&self.pinned()?)?;
        Ok(SpawnedPlugin {
            stdin: Box::new(pipes.stdin),
            stdout: Box::new(pipes.stdout),
            stderr: Box::new(pipes.stderr),
            life: Box::new(PluginProcessHandle(process)),
        })
    }
}

struct PluginProcessHandle(PluginProcess);

impl PluginHandle for PluginProcessHandle {
    fn exited(&mut self) -> Pin<Box<dyn Future<Output = PluginExit> + '_>> {
        Box::pin(async {
            let exit = self.0.exited().await;
            PluginExit { well: exit == ProcessExit::Code(0), how: exit.to_string() }
        })
    }

    fn terminate(&self) {
        self.0.terminate();
    }

    fn kill(&self) {
        self.0.kill();
    }
}

#[cfg(test)]
mod plugin_programs_tests {
    use super::*;

    #[test]
    fn relative_plugin_path_resolves_against_declaring_folder() {
        let folder = tempfile::tempdir().expect("a directory");
        std::fs::write(folder.path().join("budget.py"), "").expect("written");
        let at = |name: &str| folder.path().join(name).to_str().expect("text").to_owned();
        let table = [
            (["./budget.py", "2"], [at("budget.py"), "2".into()]),
            (["tools/none", "a/b"], [at("tools/none"), "a/b".into()]),
            (["python3", "./budget.py"], ["python3".into(), at("budget.py")]),
            (["python3", "budget.py"], ["python3".into(), "budget.py".into()]),
            (["/bin/cat", "https://x/y"], ["/bin/cat".into(), "https://x/y".into()]),
        ];
        for (command, expected) in table {
            let plugin = PlugIn::new(command.map(str::to_owned).into());
            let placed = &asked_for(&[plugin], folder.path())[0];
            assert_eq!(placed.command, expected);
            assert!(placed.by_workflow);
        }
    }

    #[test]
    fn plugin_options_replace_earlier_options_but_not_workflow_plugins() {
        let plugin = |name: &str| PlugIn::new(vec![name.to_owned()]);
        let mut plugins = asked_for(&[plugin("budget")], Path::new("/"));
        replace_options(&mut plugins, &[plugin("log"), plugin("budget")]);
        replace_options(&mut plugins, &[plugin("budget")]);
        let names: Vec<_> = plugins.iter().map(|plugin| plugin.name.as_str()).collect();
        assert_eq!(names, ["budget", "budget-2"]);
    }
}
