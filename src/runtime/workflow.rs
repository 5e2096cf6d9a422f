//! A workflow on disk: its folder, first prompt and manifest, the settings and the root of its runs, and its errors.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::domain::id::{Folder, StateName};
use crate::domain::privilege::{RunPermission, StarterConsent};
use crate::domain::settings::{ForkSettings, Settings};
use crate::language::diagnostic::{Diagnostic, Severity};
use crate::language::graph::profile::GraphProfile;
use crate::language::graph::read::read;
use crate::language::graph::vocabulary::GraphVocabulary;
use crate::language::manifest;
use crate::language::manifest::{ExaminedManifest, Manifest, PeerManifest};
use crate::language::prompt::check::{CheckSubject, beginning, check};
use crate::language::prompt::scopes::{USUAL_NAMES, UsualFirstState};
use crate::language::prompt::step;
use crate::language::prompt::workflow_map::FolderGraph;
use crate::language::source::SourcePlace;
use crate::language::source::{self, WorkflowSource};
use crate::language::turn_options::embed_files;
use crate::runtime::error::{Error, RefusalScope, WorkflowErrors};
use crate::runtime::plugins::asked_for;
use crate::store::workflow::WorkflowDir;

/// The prompt a folder begins with.
pub const FIRST_STATE: &str = manifest::FIRST_STATE;

/// A workflow.
#[derive(Debug, Clone)]
pub struct Workflow {
    /// The workflow's directory.
    pub scope: WorkflowDir,
    /// The root of its runs: the directory itself, or one above, within which tags may lead to other folders.
    pub root: WorkflowDir,
    /// The workflow's directory below the root, if it is another one.
    pub folder: Option<Folder>,
    /// The workflow's first state.
    pub entry: StateName,
    /// What its `raymond.yaml` sets, or the defaults. The budget may come from the manifest of `ray`.
    pub manifest: Manifest,
    /// The stored text of the first state, a program; `None` for the text of its file.
    pub program: Option<String>,
}

impl Workflow {
    /// Opens the workflow in a folder, or the workflow that begins with a prompt file.
    ///
    /// # Errors
    /// [`Error::NoWorkflow`] if nothing is there, [`Error::Workflow`] if it is not a prompt, [`Error::Check`] or
    /// [`Error::Manifest`] if its `raymond.yaml` is wrong, [`Error::Io`].
    pub fn open(path: &Path) -> Result<Self, Error> {
        if path.is_dir() {
            return Self::within(path, None);
        }
        if path.symlink_metadata().is_err() {
            return Err(Error::NoWorkflow { path: path.to_owned() });
        }
        let folder =
            path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        Self::within(
            folder,
            Some(path.file_name().and_then(|name| name.to_str()).unwrap_or_default()),
        )
    }

    /// Opens the workflow that begins with a program whose text is stored. Its file may be gone.
    ///
    /// # Errors
    /// [`Error::Manifest`] if its `raymond.yaml` is wrong, [`Error::Io`] if its folder is gone.
    pub fn kept(file: &Path, text: String) -> Result<Self, Error> {
        let RunRoot { root, folder, scope } = open(file.parent().unwrap_or(Path::new(".")))?;
        let manifest = manifest_of(&scope)?;
        let name = file.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let (entry, program) = (StateName::parse(name)?, Some(text));
        Ok(Self { scope, root, folder, entry, manifest, program })
    }

    /// Opens the workflow of a run again, by the run's root and the workflow's folder below it.
    ///
    /// # Errors
    /// [`Error::Manifest`] if its `raymond.yaml` is wrong, [`Error::Io`] if its folder is gone.
    pub(super) fn of_run(root: &Path, folder: Option<&Folder>) -> Result<Self, Error> {
        let RunRoot { root, folder, scope } = RunRoot::of(root, folder)?;
        let manifest = manifest_of(&scope)?;
        let entry = StateName::parse(FIRST_STATE)?;
        Ok(Self { scope, root, folder, entry, manifest, program: None })
    }

    /// Returns the workflow with the names of the programs that are defined, which its programs may start.
    pub fn with_defined_programs(self, names: impl IntoIterator<Item = String>) -> Self {
        Self { scope: self.scope.with_defined_programs(names), ..self }
    }

    fn within(folder: &Path, file: Option<&str>) -> Result<Self, Error> {
        let RunRoot { root, folder: below, scope } = open(folder)?;
        let manifest = manifest_of(&scope).map_err(|error| match error {
            Error::Manifest { .. } => {
                let given = file.and_then(|file| StateName::parse(file).ok());
                with_all_errors_of_manifest(error, &scope, given.as_ref())
            }
            other => other,
        })?;
        let named = manifest.entry.as_deref();
        let entry = match file.or(named) {
            Some(file) => StateName::parse(file)?,
            None => usual_first_state(folder, &scope)?,
        };
        match scope.check(&entry) {
            Err(source::Error::Missing { .. }) if named == Some(entry.as_str()) => {
                let error = format!("its `entry` is {entry}, which does not exist");
                let path = scope.root().join(manifest::FILE).display().to_string();
                Err(step::Error::from(source::Error::Unreadable { path, error }).into())
            }
            Err(error) => Err(step::Error::from(error).into()),
            Ok(()) => Ok(Self { scope, root, folder: below, entry, manifest, program: None }),
        }
    }
}

/// Returns the initial settings of a new run of a workflow: the defaults, overridden by its manifest.
pub fn settings_of(workflow: &Workflow) -> Settings {
    let manifest = &workflow.manifest;
    let defaults = Settings::default();
    let mut options = manifest.options.clone();
    let on_denied = options.on_denied.take();
    if let Some(folder) = &workflow.folder {
        options = options.below(folder);
    }
    Settings {
        model: manifest.model.clone(),
        budget_usd: manifest.budget,
        on_budget: manifest.on_budget.unwrap_or(defaults.on_budget),
        max_procs: manifest.max_procs.unwrap_or(defaults.max_procs),
        on_limit: manifest.on_limit.unwrap_or(defaults.on_limit),
        on_denied: on_denied.unwrap_or(defaults.on_denied),
        claude_args: manifest.claude_args.clone(),
        options,
        consent: StarterConsent {
            widest_mode: manifest.permission_mode.is_some().then(RunPermission::default),
            ..StarterConsent::default()
        },
        forking: ForkSettings {
            max_fan_out: manifest.max_fan_out.unwrap_or(defaults.forking.max_fan_out),
            stagger_ms: manifest.stagger_ms.unwrap_or(defaults.forking.stagger_ms),
            ..defaults.forking
        },
        supervision: defaults.supervision.with(&manifest.supervision),
        permission: manifest
            .permission_mode
            .clone()
            .map_or(defaults.permission, RunPermission::Mode),
        plugins: asked_for(&manifest.plugins, workflow.scope.root()),
        ..Settings::default()
    }
}

/// The hint about a folder that has only the manifest of `ray`.
const NO_GRAPH: &str = " (its workflow.yaml is a manifest of ray, not a graph)";

/// Returns the first state of a folder whose manifest names none.
fn usual_first_state(folder: &Path, scope: &WorkflowDir) -> Result<StateName, Error> {
    let error = match UsualFirstState::find(scope) {
        UsualFirstState::Found(state) => return Ok(state),
        UsualFirstState::Several { first, other } => format!(
            "found {first} and {other}, and nothing says which comes first; remove one, or name the first as `entry` in raymond.yaml"
        ),
        UsualFirstState::Missing => {
            let similar = match scope.check(&StateName::parse(FIRST_STATE)?) {
                Err(source::Error::Missing { similar, .. }) => similar,
                // A folder of that name, or a file that cannot be read.
                Err(error) => return Err(step::Error::from(error).into()),
                Ok(()) => None,
            };
            let peer = PeerManifest::of(scope).map(|_| NO_GRAPH.to_owned());
            let hint =
                similar.map(|name| format!(" (there is {name})")).or(peer).unwrap_or_default();
            format!(
                "a workflow begins with {USUAL_NAMES}, and none is in this folder{hint}; create one, or name its first file"
            )
        }
    };
    let path = folder.display().to_string();
    Err(step::Error::from(source::Error::Unreadable { path, error }).into())
}

/// Returns the manifest of a workflow's files.
///
/// # Errors
/// [`Error::Manifest`] if its `raymond.yaml` is wrong.
pub(super) fn manifest_of(scope: &dyn WorkflowSource) -> Result<Manifest, Error> {
    let name = StateName::parse(manifest::FILE)?;
    let path = scope.path(&name);
    match scope.read(&name) {
        Ok(text) => {
            let ExaminedManifest { mut manifest, options, mut errors, .. } =
                manifest::examine(&text);
            errors.add(embed_files(&mut manifest.options, &options, scope));
            let manifest = manifest.with_peer(scope);
            errors.or_else_first(manifest).map_err(|error| Error::Manifest { path, error })
        }
        Err(source::Error::Missing { .. }) => Ok(Manifest::default().with_peer(scope)),
        Err(error) => Err(step::Error::from(error).into()),
    }
}

// The root of a run: the folder within which tags may lead to other folders, and which is pinned and trusted.
//
// It is the workflow's folder, or the nearest folder above it whose `raymond.yaml` says `root: true`. Only a file of
// the owner of the workflow's folder counts, so that nobody else can widen what a run may enter.

/// The root of a run, and the workflow's folder below it.
#[derive(Debug)]
struct RunRoot {
    root: WorkflowDir,
    folder: Option<Folder>,
    scope: WorkflowDir,
}

impl RunRoot {
    /// Opens a root and a folder below it.
    ///
    /// # Errors
    /// [`Error::Io`] if the root is gone, [`Error::Workflow`] if the folder is.
    fn of(root: &Path, folder: Option<&Folder>) -> Result<Self, Error> {
        let root = opened(root)?;
        let scope = root.at(folder).map_err(step::Error::from)?;
        Ok(Self { root, folder: folder.cloned(), scope })
    }
}

fn opened(folder: &Path) -> Result<WorkflowDir, Error> {
    WorkflowDir::open(folder).map_err(|error| Error::Io {
        doing: "open the directory",
        path: folder.to_owned(),
        error,
    })
}

/// Opens a workflow's folder with the root of its runs.
///
/// # Errors
/// [`Error::Io`] if it cannot be opened.
fn open(folder: &Path) -> Result<RunRoot, Error> {
    let scope = opened(folder)?;
    match above(scope.root()) {
        Some((root, folder)) => RunRoot::of(&root, Some(&folder)),
        None => Ok(RunRoot { root: scope.clone(), folder: None, scope }),
    }
}

/// Opens a workflow's folder, from which tags lead to other folders of its run's root.
///
/// # Errors
/// [`Error::Io`] if it cannot be opened.
pub fn folder_within_root(folder: &Path) -> Result<WorkflowDir, Error> {
    Ok(open(folder)?.scope)
}

/// Returns the nearest root above a folder, and the folder's path below it.
fn above(folder: &Path) -> Option<(PathBuf, Folder)> {
    let owner = folder.metadata().ok()?.uid();
    let root = folder.ancestors().skip(1).find(|above| is_root(above, owner))?;
    let below = folder.strip_prefix(root).ok()?.to_str()?;
    Some((root.to_owned(), Folder::parse(below).ok()?))
}

/// Returns whether the manifest of a folder says that it is a root, in a file of this owner.
fn is_root(folder: &Path, owner: u32) -> bool {
    let is_owned = |path: &Path| {
        path.symlink_metadata().is_ok_and(|found| found.uid() == owner && found.is_file())
    };
    if !is_owned(&folder.join(manifest::FILE)) {
        return false;
    }
    let text = StateName::parse(manifest::FILE).ok().and_then(|name| {
        let scope = WorkflowDir::open(folder).ok()?;
        scope.read(&name).ok()
    });
    text.is_some_and(|text| manifest::examine(&text).manifest.is_root)
}

// The errors of `raymond check` in the files that a first state leads to.

/// The code of mistakes in `raymond.yaml`, or in a file that should have this name.
pub(super) const MANIFEST: &str = "RF003";

/// The code of mistakes in `replies.yaml`. They stop only a run that takes its answers from there.
pub(super) const SCRIPT: &str = "RF004";

/// The code of a reply in `replies.yaml` for a state that does not exist.
pub(super) const UNKNOWN_STATE: &str = "RF005";

/// Returns the errors that `raymond check` finds in the files that a first state leads to.
pub(super) fn errors_from(
    scope: &WorkflowDir,
    entry: &StateName,
    settings: &Settings,
    vocabulary: &GraphVocabulary,
) -> Vec<Diagnostic> {
    let mut found = found_from(scope, entry, settings, vocabulary);
    found.retain(Diagnostic::is_error);
    found
}

/// Returns all that `raymond check` finds there.
pub(super) fn found_from(
    scope: &WorkflowDir,
    entry: &StateName,
    settings: &Settings,
    vocabulary: &GraphVocabulary,
) -> Vec<Diagnostic> {
    let variables: Vec<String> = settings.variables.keys().cloned().collect();
    let findings = check(CheckSubject {
        source: scope,
        entry: Some(entry),
        variables: &variables,
        consent: &settings.consent,
        graphs: &|source, name| {
            read_graph(scope, source, Some(entry), vocabulary, GraphProfile::Lenient, name)
        },
    });
    findings.diagnostics
}

/// Reads a graph of a folder whose first state is `entry`, or the usual one, or of another folder that is entered
/// from there.
pub fn read_graph(
    scope: &WorkflowDir,
    source: &dyn WorkflowSource,
    entry: Option<&StateName>,
    vocabulary: &GraphVocabulary,
    profile: GraphProfile,
    name: &StateName,
) -> FolderGraph {
    let text = match source.read(name) {
        Ok(text) => text,
        Err(error) => return unreadable(source, name, &error),
    };
    let path = source.path(name);
    let is_in_scope = path == scope.path(name);
    let is_first = (is_in_scope && entry == Some(name)) || name.as_str() == manifest::GRAPH;
    let folder = if is_in_scope { Some(scope.root()) } else { Path::new(&path).parent() };
    let directory = folder.and_then(|folder| folder.file_name()?.to_str()).filter(|_| is_first);
    let reading = read(&path, directory, &text, vocabulary, source, profile);
    FolderGraph { graph: reading.graph, diagnostics: reading.diagnostics }
}

/// Returns a graph that only has the error of reading it. A missing one is reported where it is named.
fn unreadable(source: &dyn WorkflowSource, name: &StateName, error: &source::Error) -> FolderGraph {
    if matches!(error, source::Error::Missing { .. }) {
        return FolderGraph::default();
    }
    let SourcePlace { line, column } = error.place();
    let diagnostic = Diagnostic {
        path: source.path(name),
        line,
        column,
        code: "WF001",
        severity: Severity::Error,
        message: error.reason(),
    };
    FolderGraph { graph: None, diagnostics: vec![diagnostic] }
}

/// Returns all errors of a workflow whose manifest has some: without its manifest no run can begin.
pub(super) fn with_all_errors_of_manifest(
    error: Error,
    scope: &WorkflowDir,
    given: Option<&StateName>,
) -> Error {
    let Ok(entry) = beginning(scope, given) else { return error };
    let vocabulary = GraphVocabulary::default();
    let mut errors = errors_from(scope, &entry, &Settings::default(), &vocabulary);
    let manifest = StateName::parse(manifest::FILE).map(|file| scope.path(&file)).ok();
    // Whether the script is read is known only with the options that are given.
    errors.retain(|diagnostic| diagnostic.code != SCRIPT);
    let is_manifest = |diagnostic: &Diagnostic| Some(&diagnostic.path) == manifest.as_ref();
    if !errors.iter().any(is_manifest) {
        return error;
    }
    let refusal = RefusalScope::WithRequired(manifest::FILE);
    WorkflowErrors::new(scope, &entry, errors, refusal).map_or(error, Error::from)
}
