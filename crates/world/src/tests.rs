//! Tests of the world as a graph sees it: operations in a workspace of a test's own.

mod again;
mod exchange;
mod files;
mod git;
mod hostile;
mod locks;
mod programs;
mod prune;
mod trees;
mod web;
mod work;

use core::net::IpAddr;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::context::note_repository;
use super::files::Workspace;
use super::gate::NameLookup;
use super::outcome::OperationError;
use super::perform::WorkspaceExecutor;
use crate::custom_types::CustomTypeRegistry;
use raymond_agents::command::EnvironmentMarker;
use raymond_agents::working_dirs::WorkingDirs;
use raymond_model::id::RunId;
use raymond_model::operation::{Operation, OperationResult};
use raymond_store::proof::StepProofs;

/// A workspace with its world.
struct Ground {
    kept: tempfile::TempDir,
    world: WorkspaceExecutor,
}

/// Returns the reason of a failure that is known.
#[track_caller]
fn failure(error: &OperationError) -> String {
    let OperationError::Failed(why) = error else { panic!("{error:?}") };
    why.clone()
}

impl Ground {
    fn new() -> Self {
        Self::with(CustomTypeRegistry::default(), &[])
    }

    fn with(custom_types: CustomTypeRegistry, variables: &[(&str, &str)]) -> Self {
        let kept = tempfile::tempdir().expect("a directory");
        std::fs::create_dir(kept.path().join("root")).expect("made");
        let world = world_at(kept.path(), custom_types, variables);
        Self { kept, world }
    }

    /// Returns a workspace in which pages may also be fetched from these addresses.
    fn allowing(allowed: &[&str], variables: &[(&str, &str)]) -> Self {
        let kept = tempfile::tempdir().expect("a directory");
        std::fs::create_dir(kept.path().join("root")).expect("made");
        let working_dirs =
            WorkingDirs::new(kept.path().join("root"), kept.path().join("worktrees/world"));
        let place = place_with(kept.path(), working_dirs, CustomTypeRegistry::default(), variables);
        let allowed_addresses =
            allowed.iter().map(|address| address.parse().expect("an address")).collect();
        let world = WorkspaceExecutor::new(Workspace { allowed_addresses, ..place });
        Self { kept, world }
    }

    fn base(&self) -> PathBuf {
        self.kept.path().canonicalize().expect("it is there")
    }

    fn root(&self) -> PathBuf {
        self.base().join("root")
    }

    /// Begins the run now: what is there counts as older than the run.
    fn begin(&mut self, variables: &[(&str, &str)]) {
        let base = self.base();
        let steps = base.join("run/steps");
        std::fs::create_dir_all(&steps).expect("made");
        note_repository(&base.join("run"), &base.join("root"));
        let dirs = WorkingDirs::new(base.join("root"), base.join("worktrees/world"));
        let place = place_with(&base, dirs, CustomTypeRegistry::default(), variables);
        self.world = WorkspaceExecutor::new(Workspace { steps, ..place });
    }

    /// Restarts as after a crash: only the disk keeps its state.
    fn restart(&mut self) {
        self.world = world_at(self.kept.path(), CustomTypeRegistry::default(), &[]);
    }

    async fn perform(
        &self,
        stem: &str,
        operation: Value,
        again: bool,
    ) -> Result<Value, OperationError> {
        let operation: Operation = serde_json::from_value(operation).expect("an operation");
        self.world.perform(stem, &operation, again).await
    }

    async fn done(&self, operation: Value) -> OperationResult {
        let performed = self.perform("main.1", operation, false).await;
        performed.map_err(|error| failure(&error))
    }

    async fn value(&self, operation: Value) -> Value {
        self.done(operation).await.expect("it succeeds")
    }

    async fn why(&self, operation: Value) -> String {
        self.done(operation).await.expect_err("it fails")
    }

    fn put(&self, path: &str, content: &str) {
        let path = self.root().join(path);
        std::fs::create_dir_all(path.parent().expect("one")).expect("made");
        std::fs::write(path, content).expect("written");
    }

    fn text(&self, path: &str) -> String {
        std::fs::read_to_string(self.root().join(path)).expect("there")
    }
}

fn world_at(
    base: &Path,
    custom_types: CustomTypeRegistry,
    variables: &[(&str, &str)],
) -> WorkspaceExecutor {
    let working_dirs = WorkingDirs::new(base.join("root"), base.join("worktrees/world"));
    world_with(base, working_dirs, custom_types, variables)
}

fn world_with(
    base: &Path,
    working_dirs: WorkingDirs,
    custom_types: CustomTypeRegistry,
    variables: &[(&str, &str)],
) -> WorkspaceExecutor {
    WorkspaceExecutor::new(place_with(base, working_dirs, custom_types, variables))
}

fn place_with(
    base: &Path,
    working_dirs: WorkingDirs,
    custom_types: CustomTypeRegistry,
    variables: &[(&str, &str)],
) -> Workspace {
    let fixed = [
        ("PATH", "/usr/local/bin:/usr/bin:/bin"),
        ("GIT_CONFIG_GLOBAL", "/dev/null"),
        ("GIT_CONFIG_NOSYSTEM", "1"),
        ("GIT_DIR", "/nowhere/of/a/hook"),
        ("ANTHROPIC_API_KEY", "secret"),
    ];
    let is_fixed = |(name, _): &&(&str, &str)| !variables.iter().any(|(other, _)| other == name);
    let variables = fixed.iter().filter(is_fixed).chain(variables);
    Workspace {
        working_dirs,
        environment: variables
            .map(|(name, value)| (OsString::from(name), OsString::from(value)))
            .collect(),
        proofs: StepProofs::default(),
        steps: base.join("steps"),
        marker: EnvironmentMarker {
            run: RunId::parse("world").expect("an id"),
            dir: base.to_owned(),
        },
        allowed_addresses: vec!["127.0.0.1".parse().expect("an address")],
        lookup: NameLookup::by(|name| Box::pin(async move { known(&name) })),
        is_trusted: false,
        custom_types,
    }
}

/// Returns the addresses of known names: no other machine is asked.
fn known(name: &str) -> std::io::Result<Vec<IpAddr>> {
    let addresses: &[&str] = match name {
        "a.test" => &["8.8.8.8"],
        "here.test" => &["127.0.0.1"],
        "inside.test" => &["10.0.0.1", "fd00::1"],
        "both.test" => &["10.0.0.1", "127.0.0.1"],
        _ => return Err(std::io::ErrorKind::NotFound.into()),
    };
    Ok(addresses.iter().map(|address| address.parse().expect("an address")).collect())
}
