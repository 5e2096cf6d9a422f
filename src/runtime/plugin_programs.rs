//! The programs among a run's plug-ins: found, started, and ended with the run.

use std::future::Future;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::time::Duration;

use tokio::sync::oneshot;

use super::error::Error;
use super::plugins::{PlugIns, PluginOptions};
use crate::domain::settings::Settings;
use crate::domain::settings::{PlugIn, tell_apart};
use crate::plugin::external::{
    ExternalPlugin, PluginExit, PluginHandle, PluginSpawner, RunPosition, SpawnedPlugin,
};
use crate::process::child::group::ProcessExit;
use crate::process::command::EnvironmentMarker;
use crate::process::helper_environment::NamedVariables;
use crate::process::plugin_process::{self, PluginProcess};
use crate::store::workflow::WorkflowDir;

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
pub fn replace_own(plugins: &mut Vec<PlugIn>, given: &[PlugIn]) {
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
    (marker, scope): (&EnvironmentMarker, &WorkflowDir),
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
mod tests {
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
        replace_own(&mut plugins, &[plugin("log"), plugin("budget")]);
        replace_own(&mut plugins, &[plugin("budget")]);
        let names: Vec<_> = plugins.iter().map(|plugin| plugin.name.as_str()).collect();
        assert_eq!(names, ["budget", "budget-2"]);
    }
}
