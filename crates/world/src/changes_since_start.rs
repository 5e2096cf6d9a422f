//! The work of a program's roles: the changes in a directory since the program began.
//!
//! The changes are read with the real git and from the files, whether they are committed, staged or neither. git needs
//! an index to know about new files, and writes to it. So it gets a copy of the index and a separate object directory,
//! both in the run's directory, and the repository stays unchanged. The user's configuration does not change the format
//! of diffs, and no external diff program runs.
//!
//! The repository may begin above the directory, as it does for git itself. Files outside the directory and raymond's
//! own files are not shown.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use super::context::{OperationContext, blocking};
use super::git::{Git, GitCall, NO_WORDS, copy_index, is_object, left_out, succeeded};
use super::outcome::OperationError;
use crate::glob::{FileAccess, resolve};
use raymond_agents::captured_output::CapturedOutput;
use raymond_agents::child::ProcessExit;
use raymond_agents::command::locate;
use raymond_model::activity::ActivityResult;
use raymond_store::plain_file::if_there;

/// The longest diff, in bytes.
const MAX_DIFF_BYTES: usize = 1024 * 1024;

/// The settings for the format of a diff, which override all configurations.
const DIFF_SETTINGS: &str = "\
    advice.addEmbeddedRepo=false core.abbrev=auto core.quotePath=false core.safecrlf=false \
    core.splitIndex=false diff.algorithm=default diff.autoRefreshIndex=true diff.context=3 \
    diff.dstPrefix=b/ diff.indentHeuristic=true diff.interHunkContext=0 \
    diff.mnemonicPrefix=false diff.noprefix=false diff.orderFile=/dev/null diff.relative=false \
    diff.srcPrefix=a/ diff.suppressBlankEmpty=false";

/// The command for a diff.
const DIFF: &str = "\
    diff --patch --no-ext-diff --no-textconv --no-color --find-renames --submodule=short \
    --ignore-submodules=dirty";

/// The names of raymond's directories in a directory of runs that does not have the usual name.
const RESERVED_DIRECTORIES: [&str; 4] = ["runs", "dataspace", "debug", "worktrees"];

/// Returns the base commits of directories.
pub(super) async fn bases(
    git: Git<'_>,
    directories: &[String],
    branch: Option<&str>,
) -> Result<ActivityResult, OperationError> {
    let mut bases = BTreeMap::new();
    let is_there = locate("git", git.shared.place.path()).is_some();
    for directory in directories {
        let mut path = resolve_directory(git.shared.root(), directory)?;
        while !path.is_dir() && path != git.shared.root() && path.pop() {}
        let base = if is_there { base(git, &path, branch).await } else { Ok(None) };
        let base =
            base.map_err(|error| failed_in_directory(error, "find the commit of", directory))?;
        bases.insert(directory.clone(), base);
    }
    Ok(ActivityResult::Bases(bases))
}

async fn base(
    git: Git<'_>,
    path: &Path,
    branch: Option<&str>,
) -> Result<Option<String>, OperationError> {
    let git = git.at(path);
    if git.is_bare().await? {
        return Ok(None);
    }
    let inside = "rev-parse --is-inside-work-tree";
    let ended = git.ended(inside, NO_WORDS).await?;
    if ended.exit != ProcessExit::Code(0)
        && ended.stderr.last_lines(1).contains("not a git repository")
    {
        return Ok(None);
    }
    if succeeded(inside, ended)?.stdout.text().trim_end() != "true" {
        return Ok(None);
    }
    let names = branch.into_iter().flat_map(|name| [format!("refs/heads/{name}"), name.to_owned()]);
    for name in names {
        if let Some(commit) = git.commit(&name).await? {
            return Ok(Some(commit));
        }
    }
    match (git.commit("HEAD").await?, branch) {
        (Some(head), None) => return Ok(Some(head)),
        (Some(_), Some(name)) => {
            let why = format!(
                "no branch or commit `{name}`; --base-branch names what work is compared with"
            );
            return Err(OperationError::Failed(why));
        }
        (None, _) => {}
    }
    git.text("hash-object -t tree /dev/null", NO_WORDS).await.map(Some)
}

/// Reads the changes in a directory.
pub(super) struct WorkingDirDiff<'changes> {
    pub(super) git: Git<'changes>,
    pub(super) directory: &'changes str,
    /// The commit, or the empty tree.
    pub(super) base: &'changes str,
}

impl WorkingDirDiff<'_> {
    /// Returns the diff.
    pub(super) async fn since(&self) -> Result<ActivityResult, OperationError> {
        let diff = self.text().await;
        let in_directory =
            |error| failed_in_directory(error, "tell what has changed in", self.directory);
        diff.map(ActivityResult::Changes).map_err(in_directory)
    }

    async fn text(&self) -> Result<String, OperationError> {
        if !is_object(self.base) {
            return Err(format!("{:?} is not a commit", self.base).into());
        }
        let shared = self.git.shared;
        let path = resolve_directory(shared.root(), self.directory)?;
        if !path.is_dir() {
            return Err("there is no such directory".to_owned().into());
        }
        let git = self.git.at(&path);
        let index = path.join(git.text("rev-parse --git-path index", NO_WORDS).await?);
        let objects = path.join(git.text("rev-parse --git-path objects", NO_WORDS).await?);
        let place = shared.place.steps.join(format!("{}.look", self.git.stem));
        let fresh = place.clone();
        let copied = blocking(shared, move |_| copy(&index, &fresh)).await?;
        copied.map_err(|error| format!("cannot copy its index to {}: {error}", place.display()))?;
        let git = git
            .set(DIFF_SETTINGS)
            .with("GIT_INDEX_FILE", place.join("index"))
            .with("GIT_OBJECT_DIRECTORY", place.join("objects"))
            .with("GIT_ALTERNATE_OBJECT_DIRECTORIES", quoted(objects.as_os_str()));
        let diff = self.diff(&git, &shown(shared, &path)).await;
        let _ = std::fs::remove_dir_all(&place);
        diff
    }

    async fn diff(&self, git: &GitCall<'_>, shown: &[OsString]) -> Result<String, OperationError> {
        // Files outside a sparse checkout are only added with this option, which an older git does not have.
        let add = "--intent-to-add --ignore-errors";
        let mut ended = git.add(&format!("{add} --sparse"), shown).await?;
        if ended.exit == ProcessExit::Code(129) {
            ended = git.add(add, shown).await?;
        }
        // 1: some of them cannot be added, such as a repository without commits; the others are.
        if ended.exit != ProcessExit::Code(1) {
            succeeded("add", ended)?;
        }
        let git = git.clone().keeping(MAX_DIFF_BYTES);
        let words = [self.base, "--", "."].map(OsString::from);
        let output = git.output(DIFF, words.iter().chain(shown)).await?;
        Ok(bounded(&output.stdout))
    }
}

fn resolve_directory(root: &Path, given: &str) -> Result<PathBuf, String> {
    if given.is_empty() { Ok(root.to_owned()) } else { resolve(root, given, FileAccess::Read) }
}

fn failed_in_directory(error: OperationError, doing: &str, directory: &str) -> OperationError {
    let place = match directory {
        "" => "the workspace".to_owned(),
        directory => format!("`{directory}`"),
    };
    error.described(|why| format!("cannot {doing} {place}: {why}"))
}

/// Makes a directory with a copy of an index; a repository without added files has none.
fn copy(index: &Path, place: &Path) -> std::io::Result<()> {
    if_there(std::fs::remove_dir_all(place))?;
    std::fs::create_dir_all(place.join("objects"))?;
    copy_index(Some(index), &place.join("index"))
}

/// Returns the pathspecs that leave out raymond's own files.
fn shown(shared: &OperationContext, path: &Path) -> Vec<OsString> {
    let directories = RESERVED_DIRECTORIES.iter().filter_map(|name| {
        let directory = shared.place.marker.dir.join(name);
        Some(left_out(directory.strip_prefix(path).ok()?.as_os_str()))
    });
    [":(exclude,icase,glob)**/.raymond/**".into()].into_iter().chain(directories).collect()
}

/// Returns a path quoted for a list of paths, so that a colon in it separates none.
fn quoted(path: &OsStr) -> OsString {
    let mut quoted = vec![b'"'];
    for &byte in path.as_bytes() {
        if matches!(byte, b'"' | b'\\') {
            quoted.push(b'\\');
        }
        quoted.push(byte);
    }
    quoted.push(b'"');
    OsString::from_vec(quoted)
}

/// Returns a diff that fits into a prompt. A longer diff is cut, with a note.
fn bounded(output: &CapturedOutput) -> String {
    let (beginning, more) = output.beginning();
    if more == 0 {
        return output.text();
    }
    let cut = beginning.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
    let more = more + (beginning.len() - cut) as u64;
    let shown = String::from_utf8_lossy(&beginning[..cut]);
    format!("{shown}[the diff is cut here: {more} more bytes are not shown]\n")
}
