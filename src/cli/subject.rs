//! The workflow that a command inspects without running it: a folder, a prompt of it, a graph, or a program.

use std::path::{Path, PathBuf};

use super::exit::Error;
use super::target::similar_path;
use crate::domain::id::{StateKind, StateName};
use crate::language::graph::profile::GraphProfile;
use crate::language::graph::vocabulary::GraphVocabulary;
use crate::language::prompt::step;
use crate::language::prompt::workflow_map::FolderGraph;
use crate::language::source::WorkflowSource;
use crate::runtime;
use crate::runtime::workflow::above;
use crate::store::workflow::WorkflowDir;

/// The workflow that is inspected.
pub(super) struct InspectedWorkflow {
    /// Its folder, displayed as it was given.
    pub(super) scope: WorkflowDir,
    /// The prompt, the graph or the program; `None` for the whole folder.
    pub(super) entry: Option<StateName>,
}

impl InspectedWorkflow {
    /// Opens the workflow that a path names. Its documents are looked for in the repository that it is in, too: the
    /// result does not depend on the current directory.
    ///
    /// # Errors
    /// [`Error`] if there is none, or the path is no workflow.
    pub(super) fn open(path: &Path) -> Result<Self, Error> {
        let scope = |folder: &Path| {
            let opened = WorkflowDir::open(folder).map(within_root).and_then(|scope| {
                let repository = scope.root().ancestors().find(|above| above.join(".git").exists());
                let repository = repository.map(Path::to_owned);
                repository.map_or(Ok(scope.clone()), |root| scope.with_workspace(&root))
            });
            opened.map(|scope| scope.shown_as(folder)).map_err(|error| Error::Io {
                doing: "open the directory",
                path: folder.to_owned(),
                error,
            })
        };
        if path.is_dir() {
            return Ok(Self { scope: scope(path)?, entry: None });
        }
        if path.symlink_metadata().is_err() {
            return Err(match similar_path(path) {
                Some(similar) => Error::Usage(format!(
                    "{}: there is no such file or folder; did you mean {}?",
                    path.display(),
                    similar.display()
                )),
                None => runtime::Error::NoWorkflow { path: path.to_owned() }.into(),
            });
        }
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let entry = StateName::parse(name)?;
        if StateKind::of(&entry).is_none() {
            let path = path.display().to_string();
            return Err(runtime::Error::from(step::Error::NotAPrompt { path }).into());
        }
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        Ok(Self { scope: scope(folder.unwrap_or(Path::new(".")))?, entry: Some(entry) })
    }

    /// Returns a reader of its graphs.
    pub(super) fn graphs(
        &self,
        profile: GraphProfile,
    ) -> impl Fn(&dyn WorkflowSource, &StateName) -> FolderGraph {
        let vocabulary = GraphVocabulary::default();
        move |source: &dyn WorkflowSource, name: &StateName| {
            runtime::reachable_errors::read_graph(
                (&self.scope, source),
                self.entry.as_ref(),
                &vocabulary,
                profile,
                name,
            )
        }
    }

    /// Returns its title: the path that was given.
    pub(super) fn title(path: &Path) -> String {
        let whole: PathBuf = path.components().collect();
        whole.display().to_string()
    }
}

/// Returns a folder of the run's root that it lies in, so that tags lead from there to other folders.
fn within_root(scope: WorkflowDir) -> WorkflowDir {
    let root = above(scope.root())
        .and_then(|(root, folder)| WorkflowDir::open(&root).ok()?.below(&folder).ok());
    root.unwrap_or(scope)
}
