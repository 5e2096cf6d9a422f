//! Executes the operations that a graph asks for, among them git clones and scripts of the workflow.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio::sync::watch;
use tokio::task::JoinError;

use crate::append::OperationNotes;
use crate::changes_since_start::WorkingDirDiff;
use crate::context::{OperationContext, OperationProgram, blocking};
use crate::files::Workspace;
use crate::gate::check_protected_paths;
use crate::git::{Git, NO_WORDS};
use crate::glob::{FileAccess, resolve};
use crate::on_disk::{has_module, on_disk, perform_inline, perform_on_disk};
use crate::outcome::OperationError;
use crate::shell::{MAX_OUTPUT_BYTES, check, complaints, run_at_most_once, shell};
use crate::web::{GetError, check_branch, check_remote, check_url, client, get, masked};
use crate::{append, changes_since_start, files, packs};
use raymond_agents::child::{ProcessExit, orphans};
use raymond_agents::working_dirs::WorkingDirs;
use raymond_model::activity::ActivityResult;
use raymond_model::json_mistake::placed_mistake;
use raymond_model::operation::{Operation, RecoveryClass};
use raymond_model::turn::ScriptTexts;
use raymond_model::worktree_snapshot::WorkingDir;
use raymond_store::plain_file;
use raymond_store::plain_file::sync_directory;

/// The longest time that an operation of an added type may take.
const OPERATION_TIMEOUT: Duration = Duration::from_mins(30);

/// The executor of operations in a workspace.
#[derive(Debug, Clone)]
pub struct WorkspaceExecutor(pub(super) Arc<OperationContext>);

impl WorkspaceExecutor {
    /// Creates an executor for a workspace. Its root is resolved, without links.
    pub fn new(place: Workspace) -> Self {
        Self(Arc::new(OperationContext::new(place)))
    }

    /// Returns the same executor confined to an agent's working directory.
    ///
    /// # Errors
    /// The reason why the directory cannot be used, and the remedy.
    pub fn at(&self, working_dir: &WorkingDir) -> Result<Self, String> {
        if working_dir.is_usual() {
            Ok(self.clone())
        } else {
            Ok(Self(Arc::new(self.0.at(working_dir)?)))
        }
    }

    /// Returns the same executor for operations that are interrupted once `stop` is true.
    pub fn until(&self, stop: watch::Receiver<bool>) -> Self {
        Self(Arc::new(self.0.until(stop)))
    }

    /// Returns its directory.
    pub fn root(&self) -> &Path {
        self.0.root()
    }

    /// Returns the working directories of all agents.
    pub fn working_dirs(&self) -> &WorkingDirs {
        &self.0.place.working_dirs
    }

    /// Returns the text of a file of at most `max_bytes` bytes.
    ///
    /// # Errors
    /// [`OperationError`].
    pub async fn text(&self, file: &str, max_bytes: u64) -> Result<String, OperationError> {
        let file = file.to_owned();
        let read =
            move |shared: &OperationContext| files::read_at_most(shared.root(), &file, max_bytes);
        Ok(blocking(&self.0, read).await??)
    }

    /// Returns git for an operation of this name.
    pub(super) fn git<'op>(&'op self, stem: &'op str) -> Git<'op> {
        Git { shared: &self.0, stem }
    }

    /// Executes an operation. `stem` is its unique name, valid as a file name, and the same after
    /// a crash; `again` says that an earlier runtime may have begun it.
    ///
    /// # Errors
    /// [`OperationError`].
    pub async fn perform(
        &self,
        stem: &str,
        operation: &Operation,
        again: bool,
    ) -> Result<Value, OperationError> {
        if self.0.is_stopped() {
            return Err(OperationError::Interrupted);
        }
        let Workspace { marker, is_trusted, .. } = &*self.0.place;
        check_protected_paths(self.0.root(), &marker.dir, operation, *is_trusted)?;
        if let Some(quick) = perform_inline(&self.0, operation) {
            return Ok(quick?);
        }
        if again {
            let is_repeated = match operation {
                Operation::BashExec(command) => command.class() != RecoveryClass::Uncertain,
                operation => matches!(operation, Operation::BashCheck { .. }),
            };
            if is_repeated {
                self.await_earlier(stem).await;
            }
            // Processes of an earlier attempt would disturb this one, and nobody waits for them any longer.
            orphans::sweep(&self.0.place.marker, |process| process == stem).await;
        }
        self.long(stem, operation, again).await
    }

    /// Returns the commits that work in these directories is compared with; the empty path is the workspace.
    ///
    /// It is the commit of `branch`, if that exists, or else of HEAD. In a repository without
    /// any commit it is the empty tree, and without a repository, or without git, it is `None`. A directory
    /// that does not exist yet has the commit of the directory it will be in. `stem` and `again` are
    /// as for an [operation](Self::perform).
    ///
    /// # Errors
    /// [`OperationError`].
    pub async fn bases(
        &self,
        stem: &str,
        directories: &[String],
        branch: Option<&str>,
        again: bool,
    ) -> Result<ActivityResult, OperationError> {
        self.begin_inspection(stem, again).await?;
        changes_since_start::bases(self.git(stem), directories, branch).await
    }

    /// Returns the changes in a directory since a commit, as a diff: committed, staged and unstaged ones,
    /// and new files that git does not ignore. The repository stays unchanged.
    ///
    /// # Errors
    /// [`OperationError`].
    pub async fn changes(
        &self,
        stem: &str,
        directory: &str,
        base: &str,
        again: bool,
    ) -> Result<ActivityResult, OperationError> {
        self.begin_inspection(stem, again).await?;
        WorkingDirDiff { git: self.git(stem), directory, base }.since().await
    }

    /// Waits for the processes of an earlier try of a command that may be repeated: ended in the middle, it could
    /// leave behind what stops the next try, such as git's lock.
    async fn await_earlier(&self, stem: &str) {
        let marker = self.0.place.marker.clone();
        let earlier = blocking(&self.0, move |_| orphans::find(&marker)).await.unwrap_or_default();
        let earlier: Vec<_> =
            earlier.into_iter().filter(|process| process.process == stem).collect();
        let _ = self.0.unless_stopped(orphans::end_within(&earlier, OPERATION_TIMEOUT)).await;
    }

    async fn begin_inspection(&self, stem: &str, again: bool) -> Result<(), OperationError> {
        if self.0.is_stopped() {
            return Err(OperationError::Interrupted);
        }
        if again {
            orphans::sweep(&self.0.place.marker, |process| process == stem).await;
        }
        Ok(())
    }

    /// Stops the executor: every running operation is interrupted, and so is each later one. A write
    /// that has begun is still completed.
    pub fn stop(&self) {
        self.0.stop();
    }

    async fn long(
        &self,
        stem: &str,
        operation: &Operation,
        again: bool,
    ) -> Result<Value, OperationError> {
        let shared = &self.0;
        let git = Git { shared, stem };
        match operation {
            Operation::PythonModuleAvailable { module } => has_module(shared, stem, module).await,
            Operation::GetSha { repo_path } => git.sha(repo_path).await,
            Operation::GitFetch { repo_path } => git.fetch(repo_path).await,
            Operation::GitPull { repo_path } => git.pull(repo_path, again).await,
            Operation::CloneRepo { url, dest, branch, depth } => {
                let branch = branch.as_deref();
                GitClone { url, dest, branch, depth: *depth }.perform(shared, stem).await
            }
            Operation::WebFetch { url, allow_failure } => fetch(shared, url, *allow_failure).await,
            Operation::BashExec(command) => shell(shared, stem, command, again).await,
            Operation::RunScript { file, interpreter, environment, timeout_ms } => {
                let longest = Duration::from_millis(*timeout_ms);
                let script = ScriptRun { file, interpreter, environment, longest };
                script.perform(shared, stem, again).await
            }
            Operation::BashCheck { command } => check(shared, stem, command).await,
            Operation::Own { name, parameters, class } => {
                let work = custom(shared, name, parameters);
                let _permit = shared.permit().await?;
                match class {
                    RecoveryClass::Uncertain => {
                        run_at_most_once(shared, stem, again, name, work).await
                    }
                    RecoveryClass::Read | RecoveryClass::Converges | RecoveryClass::Guarded => {
                        work.await
                    }
                }
            }
            Operation::AppendToFile { path, content } => {
                let path = resolve(shared.root(), path, FileAccess::Write)?;
                let lock = shared.lock_path(&path).await?;
                let (content, stem) = (content.clone(), stem.to_owned());
                let work = move |shared: &OperationContext| {
                    let _lock = lock;
                    let Workspace { steps, proofs, .. } = &*shared.place;
                    let note = OperationNotes::of(steps, proofs, &stem);
                    append::append(&path, &content, &note, again)
                };
                blocking(shared, work).await?
            }
            Operation::Pack(operation) => packs::perform(shared, stem, operation).await,
            operation => {
                let operation = operation.clone();
                let work = move |shared: &OperationContext, stem: &str| {
                    perform_on_disk(shared, stem, operation)
                };
                on_disk(shared, stem, None, work).await
            }
        }
    }
}

/// Executes an operation of a type that a program using the library has added.
async fn custom(
    shared: &OperationContext,
    name: &str,
    parameters: &Map<String, Value>,
) -> Result<Value, OperationError> {
    let unknown = || format!("this program no longer provides `{name}`, which the run began with");
    let added = shared.place.custom_types.get(name).ok_or_else(unknown)?;
    let parameters = parameters.clone();
    // It runs in a separate task, so that a panic does not end the executor.
    let mut task = tokio::spawn(async move { added.perform(parameters).await });
    let ended = shared.unless_stopped(tokio::time::timeout(OPERATION_TIMEOUT, &mut task)).await;
    task.abort();
    match ended? {
        Ok(Ok(done)) => Ok(done?),
        Ok(Err(error)) => Err(panicked(error).into()),
        Err(_) => Err(format!("it took longer than {OPERATION_TIMEOUT:?} and was dropped").into()),
    }
}

fn panicked(error: JoinError) -> String {
    let Ok(panic) = error.try_into_panic() else { return "it was dropped".to_owned() };
    let message = panic.downcast_ref::<String>().map(String::as_str);
    let message = message.or_else(|| panic.downcast_ref::<&str>().copied());
    message.map_or_else(|| "it panicked".to_owned(), |message| format!("it panicked: {message}"))
}

/// Fetches a page of the web: `{status, content, url}`. With `allow_failure` there is always an answer: its status is 0
/// if no server answered, and its content null if it could not be read.
pub(super) async fn fetch(
    shared: &OperationContext,
    given: &str,
    allow_failure: bool,
) -> Result<Value, OperationError> {
    let url = check_url(given)?;
    let _permit = shared.permit().await?;
    let web = shared.web().get_or_try_init(|| client(Arc::clone(&shared.place))).await?;
    let page = shared.unless_stopped(get(web, url)).await?;
    let shown = masked(given);
    match page {
        Err(GetError::Refused(refused)) => Err(format!("cannot fetch {shown}: {refused}").into()),
        Err(_) if allow_failure => Ok(json!({"status": 0, "content": null, "url": shown})),
        Err(error) => Err(format!("cannot fetch {shown}: {error}").into()),
        Ok((response, body)) => {
            let status = response.status;
            // A status of 300 or more is not a page, but an error or a redirect that was not followed.
            if (status >= 300 || body.is_err()) && !allow_failure {
                let why = body.err().unwrap_or_else(|| format!("the server answered {status}"));
                return Err(format!("cannot fetch {shown}: {why}").into());
            }
            Ok(json!({"status": status, "content": body.ok(), "url": response.url}))
        }
    }
}

// Clones: made aside and put in place as a whole, so that a partial clone never has the name.

/// A clone that is to be made.
pub(super) struct GitClone<'clone> {
    pub(super) url: &'clone str,
    pub(super) dest: &'clone str,
    pub(super) branch: Option<&'clone str>,
    /// The number of commits; 0 for all.
    pub(super) depth: u32,
}

/// The current content of the destination.
enum CloneDestination {
    Nothing,
    Repository,
    Other,
}

impl GitClone<'_> {
    /// Makes the clone. An existing clone of the same address is fine.
    pub(super) async fn perform(
        &self,
        shared: &Arc<OperationContext>,
        stem: &str,
    ) -> Result<Value, OperationError> {
        check_remote(self.url)?;
        self.branch.map_or(Ok(()), check_branch)?;
        let path = resolve(shared.root(), self.dest, FileAccess::Write)?;
        let _lock = shared.lock_path(&path).await?;
        let git = Git { shared, stem };
        let inspected = path.clone();
        match blocking(shared, move |_| inspect(&inspected)).await? {
            CloneDestination::Repository => return self.is_same(git, &path).await,
            CloneDestination::Other => {
                return Err(self.refused("something else has that name"));
            }
            CloneDestination::Nothing => {}
        }
        let draft = path.with_file_name(format!(".{stem}.raymond-clone"));
        let fresh = draft.clone();
        let prepared = blocking(shared, move |_| prepare(&fresh)).await?;
        prepared.map_err(|error| self.refused(&error.to_string()))?;
        // Local clones go through git's own transport, too, because direct copies have no depth.
        let clone = "clone --quiet --no-local --template=";
        let cloned = git.only_at(shared.root()).output(clone, self.words(&draft)).await;
        let placed = blocking(shared, move |_| match cloned {
            Ok(_) => Ok(put(&draft, &path)),
            Err(error) => {
                let _ = std::fs::remove_dir_all(&draft);
                Err(error)
            }
        });
        placed.await??.map_err(|error| self.refused(&error.to_string()))?;
        Ok(Value::Null)
    }

    fn words(&self, draft: &Path) -> Vec<OsString> {
        let mut words: Vec<OsString> = Vec::new();
        if self.depth > 0 {
            words.push(format!("--depth={}", self.depth).into());
        }
        if let Some(branch) = self.branch {
            words.push(format!("--branch={branch}").into());
        }
        words.extend(["--".into(), self.url.into(), draft.into()]);
        words
    }

    /// Checks that the existing clone has the same address.
    async fn is_same(&self, git: Git<'_>, path: &Path) -> Result<Value, OperationError> {
        let origin = match git.only_at(path).text("config --get remote.origin.url", NO_WORDS).await
        {
            Err(OperationError::Failed(_)) => String::new(),
            origin => origin?,
        };
        if origin == self.url {
            return Ok(Value::Null);
        }
        let of = if origin.is_empty() { "nothing".to_owned() } else { masked(&origin) };
        Err(self.refused(&format!("it is a clone of {of}")))
    }

    fn refused(&self, why: &str) -> OperationError {
        let (url, dest) = (masked(self.url), self.dest);
        OperationError::Failed(format!("cannot clone {url} to `{dest}`: {why}"))
    }
}

fn inspect(path: &Path) -> CloneDestination {
    match std::fs::read_dir(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => CloneDestination::Nothing,
        Err(_) => CloneDestination::Other,
        Ok(_) if path.join(".git").exists() => CloneDestination::Repository,
        Ok(mut entries) => match entries.next() {
            None => CloneDestination::Nothing,
            Some(_) => CloneDestination::Other,
        },
    }
}

/// Makes the parent of a draft, and removes the draft of an earlier try.
fn prepare(draft: &Path) -> std::io::Result<()> {
    plain_file::if_there(std::fs::remove_dir_all(draft))?;
    draft.parent().map_or(Ok(()), std::fs::create_dir_all)
}

fn put(draft: &PathBuf, path: &Path) -> std::io::Result<()> {
    std::fs::rename(draft, path).inspect_err(|_| {
        let _ = std::fs::remove_dir_all(draft);
    })?;
    path.parent().map_or(Ok(()), sync_directory)
}

// Runs a script of the workflow, at most once for a step.

/// The longest value of a variable, in bytes: what Linux takes, less the name.
const MAX_VALUE_BYTES: usize = 128 * 1024 - 512;

/// The beginnings of the names of a script's variables.
const VARIABLE_PREFIXES: [&str; 3] = ["RAYMOND_VAR_", "RAYMOND_INPUT", "RAYMOND_RESULT"];

/// A script to run.
pub(super) struct ScriptRun<'operation> {
    /// The path of the file.
    pub(super) file: &'operation str,
    /// The program that executes it, and its first arguments; empty if it is executed itself.
    pub(super) interpreter: &'operation [String],
    /// The variables that are added to its environment.
    pub(super) environment: &'operation BTreeMap<String, String>,
    /// The longest time that it may take.
    pub(super) longest: Duration,
}

impl ScriptRun<'_> {
    /// Runs the script, and returns `{exit_code, stdout, stderr}`.
    pub(super) async fn perform(
        &self,
        shared: &Arc<OperationContext>,
        stem: &str,
        again: bool,
    ) -> Result<Value, OperationError> {
        let what = format!("the script {}", self.file);
        let work = async {
            let ended = shared.run(self.program(shared, stem)?).await?;
            if ended.exit != ProcessExit::Code(0) {
                return Err(format!("{what} {}{}", ended.exit, complaints(&ended)).into());
            }
            Ok(json!({
                "exit_code": 0,
                "stdout": ended.stdout.text(),
                "stderr": ended.stderr.text(),
            }))
        };
        // The permit comes before the note, because an operation that still waits has not begun.
        let _permit = shared.permit().await?;
        run_at_most_once(shared, stem, again, &what, work).await
    }

    fn program<'run>(
        &'run self,
        shared: &OperationContext,
        stem: &'run str,
    ) -> Result<OperationProgram<'run>, OperationError> {
        // Without an interpreter it is a program for the machine, which is executed itself.
        let mut words = self.interpreter.iter().map(String::as_str).chain([self.file]);
        let program = words.next().unwrap_or(self.file);
        let arguments: Vec<OsString> = words.map(OsString::from).collect();
        if let Some((name, _)) =
            self.environment.iter().find(|(_, text)| text.len() > MAX_VALUE_BYTES)
        {
            return Err(format!(
                "{}: the value of {name} is too long for an environment, which takes {MAX_VALUE_BYTES} bytes; write it to a file in the state before",
                self.file
            )
            .into());
        }
        let mut environment = shared.environment();
        // Only this run says what these are; and a script leaves no files beside those that it imports from the copy.
        environment.retain(|(name, _)| {
            let name = name.as_encoded_bytes();
            !VARIABLE_PREFIXES.iter().any(|prefix| name.starts_with(prefix.as_bytes()))
        });
        environment.push(("PYTHONDONTWRITEBYTECODE".into(), "1".into()));
        let added = self.environment.iter();
        environment.extend(added.map(|(name, value)| (name.into(), value.into())));
        Ok(OperationProgram {
            stem,
            program,
            arguments,
            cwd: shared.root().to_owned(),
            environment,
            longest: self.longest,
            kept: MAX_OUTPUT_BYTES,
        })
    }
}

// Reads the note that a script or a command has left of its outcome, for people. Its proof is not looked at.

/// The longest note that is read, in bytes.
const MAX_LENGTH: u64 = 16 * 1024 * 1024;

#[derive(Deserialize)]
struct NotedOutcome {
    outcome: Result<Value, String>,
}

/// Returns the output of the script or the command of a turn, or the reason why it failed; `None` if it has not ended,
/// if raymond noted nothing, or if it was another operation.
///
/// # Errors
/// The error of the system, or a note that is none.
pub fn script_output(steps: &Path, turn: &str) -> io::Result<Option<Result<ScriptTexts, String>>> {
    let note = plain_file::read(&steps.join(format!("{turn}.done")), MAX_LENGTH);
    let Some(bytes) = plain_file::if_there(note)? else { return Ok(None) };
    let noted: NotedOutcome =
        serde_json::from_slice(&bytes).map_err(|error| io::Error::other(placed_mistake(&error)))?;
    let output = |value| serde_json::from_value::<ScriptTexts>(value).ok();
    Ok(match noted.outcome {
        Ok(value) => output(value).map(Ok),
        Err(why) => Some(Err(why)),
    })
}
