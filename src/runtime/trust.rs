//! The trust that a workflow's folder needs before it may do more than prompt.
//!
//! Its requests are found in its files before anything runs. The starter of the run gives the trust, for the files
//! as they are.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::checked_workflow::CapturedWorkflow;
use super::error::Error;
use super::workflow::{manifest_of, settings_of};
use crate::actor::context::now;
use crate::domain::id::Folder;
use crate::domain::privilege::Privilege;
use crate::domain::sealed_terms::{WorkflowPins, is_prompt_path};
use crate::domain::settings::{PlugIn, Settings};
use crate::domain::widening::PermissionCeiling;
use crate::domain::words::joined_words;
use crate::language::graph::vocabulary::GraphVocabulary;
use crate::language::manifest;
use crate::language::privileges::{PrivilegeRequest, PrivilegeSurvey};
use crate::language::prompt::step;
use crate::language::source::WorkflowSource;
use crate::language::source::checksum;
use crate::language::trusted_form::{named_files, trusted_form, word_of};
use crate::store::trust::{
    self, ComparedContent, FolderTrust, TrustOrigin, TrustedFolder, trust_checksum,
};
use crate::store::user_state::UserState;

/// The longest part of a purpose that is shown in a line, in characters.
const MAX_SHOWN: usize = 400;

/// The person who starts a run, with their user state and their consent to this run.
#[derive(Debug, Clone)]
pub struct RunStarter {
    /// The user's own state: the key, the trust in folders, the seals.
    pub state: UserState,
    /// The user's consent to everything they start, if given.
    pub confirmation: Option<TrustOrigin>,
    /// The checksums of the folders and runs that they were shown and confirmed.
    pub confirmed: BTreeSet<String>,
}

impl RunStarter {
    /// Returns the way in which they trusted the folder with this checksum, if they did.
    pub(super) fn trust_of(&self, checksum: &str) -> Option<TrustOrigin> {
        let was_asked = self.confirmed.contains(checksum);
        if was_asked { Some(TrustOrigin::Question) } else { self.confirmation }
    }

    /// Returns whether they confirmed the run with this checksum. A confirmation for every run, from the environment,
    /// would make seals useless, so it does not count.
    pub(super) fn confirms_run(&self, checksum: &str) -> bool {
        match self.trust_of(checksum) {
            Some(TrustOrigin::Question | TrustOrigin::Command | TrustOrigin::Flag) => true,
            Some(TrustOrigin::Environment) | None => false,
        }
    }
}

/// A workflow's folder, examined for its privilege requests.
#[derive(Debug)]
pub struct ExaminedFolder {
    /// Its real path.
    pub folder: String,
    /// The path that `raymond trust` takes for it: a folder without a first state is named by a file in it.
    pub(super) target: String,
    /// The privileges that its files ask for: trust grants all of them.
    pub requests: Vec<PrivilegeRequest>,
    /// True if trust in it is remembered: its files ask for a privilege under any options.
    is_kept: bool,
    /// True if this run needs one of them that nobody has granted yet.
    needs_trust: bool,
    /// The files that trust is about.
    trusted_files: WorkflowPins,
    /// What else trust compares.
    compared: ComparedContent,
    /// Their checksum.
    pub checksum: String,
    /// The folder as the person named it.
    shown: PathBuf,
}

/// Examines a workflow's folder.
///
/// # Errors
/// [`Error::Unsteady`] if its manifest was another one when the workflow was opened.
pub fn examine(
    read: &CapturedWorkflow,
    settings: &Settings,
    vocabulary: &GraphVocabulary,
) -> Result<ExaminedFolder, Error> {
    let subject = TrustSubject::of(read, vocabulary)?;
    let workflow = &read.workflow;
    // Trust does not depend on the options of this run.
    let usual = Asked {
        ceiling: PermissionCeiling::of(&Settings::default()),
        plugins: settings_of(workflow).plugins,
    };
    let mut requests = subject.requests(&usual);
    let is_kept = !requests.is_empty();
    let requesting: BTreeSet<String> =
        requests.iter().map(|needed_request| needed_request.file.clone()).collect();
    let covered = subject.covered(&requests, &requesting);
    let trusted_files = subject.pins.trusted_files(&requesting.union(&covered).cloned().collect());
    let form = |path: &String| {
        let is_free = requesting.contains(path)
            && !covered.contains(path)
            && !subject.executables.contains(path);
        let form = trusted_form(path, subject.files.get(path).filter(|_| is_free)?)?;
        Some((path.clone(), checksum(form)))
    };
    let request = |needed_request: &PrivilegeRequest| {
        let PrivilegeRequest { file, privilege, purpose, .. } = needed_request;
        (checksum(format!("{file}\n{}\n{purpose}", privilege.name())), file.clone())
    };
    let compared = ComparedContent {
        forms: trusted_files.files.keys().filter_map(form).collect(),
        requests: requests.iter().map(request).collect(),
    };
    let plugins = settings.plugins.iter().filter(|plugin| plugin.by_workflow).cloned();
    let asked = Asked { ceiling: PermissionCeiling::of(settings), plugins: plugins.collect() };
    let mut untrusted = settings.clone();
    untrusted.consent.trusts_workflow = false;
    let ceiling = PermissionCeiling::of(&untrusted);
    let untrusted = Asked { ceiling, plugins: asked.plugins.clone() };
    // The list also names requests beyond the options of this run, although trust does not cover them.
    let needed = if untrusted == usual { requests.clone() } else { subject.requests(&untrusted) };
    let needs_trust =
        !if asked == untrusted { needed.is_empty() } else { subject.requests(&asked).is_empty() };
    let is_listed = |needed_request: &PrivilegeRequest| {
        requests
            .iter()
            .any(|other| (&other.file, other.place) == (&needed_request.file, needed_request.place))
    };
    let further: Vec<_> =
        needed.into_iter().filter(|needed_request| !is_listed(needed_request)).collect();
    requests.extend(further);
    let folder = workflow.root.root().display().to_string();
    let entry = subject.entry;
    let has_first_state = ["START.md", "workflow.yaml", "workflow.lisp"].contains(&entry.as_str());
    Ok(ExaminedFolder {
        target: if has_first_state { folder.clone() } else { format!("{folder}/{entry}") },
        folder,
        needs_trust,
        requests,
        is_kept,
        checksum: trust_checksum(&trusted_files),
        trusted_files,
        compared,
        shown: workflow.root.shown().to_owned(),
    })
}

/// What the files of a workflow ask for privileges beyond.
#[derive(PartialEq)]
struct Asked {
    /// The permissions that are granted already.
    ceiling: PermissionCeiling,
    /// The plug-ins that are started at the workflow's request.
    plugins: Vec<PlugIn>,
}

/// The files that a run would use.
struct TrustSubject<'a> {
    /// The texts; of a program for the machine only the name is looked at.
    files: BTreeMap<String, String>,
    executables: BTreeSet<String>,
    pins: WorkflowPins,
    /// The path of the first state below the root.
    entry: String,
    /// The path of the manifest.
    manifest: String,
    vocabulary: &'a GraphVocabulary,
}

impl<'a> TrustSubject<'a> {
    fn of(read: &CapturedWorkflow, vocabulary: &'a GraphVocabulary) -> Result<Self, Error> {
        let CapturedWorkflow { workflow, capture } = read;
        let mut files = capture.texts();
        let executables: BTreeSet<String> = capture.executables().map(str::to_owned).collect();
        for path in &executables {
            files.entry(path.clone()).or_default();
        }
        let below = workflow.folder.as_ref().map(|below| files.within(below)).transpose();
        let folder_files = below.map_err(step::Error::from)?;
        let folder_files: &dyn WorkflowSource = folder_files.as_deref().unwrap_or(&files);
        let is_steady =
            manifest_of(folder_files).is_ok_and(|manifest| manifest == workflow.manifest);
        if !is_steady {
            return Err(Error::Unsteady { folder: workflow.root.root().to_owned() });
        }
        let in_workflow = |name: &str| match &workflow.folder {
            Some(folder) => format!("{folder}/{name}"),
            None => name.to_owned(),
        };
        let (entry, manifest) = (in_workflow(workflow.entry.as_str()), in_workflow(manifest::FILE));
        let mut pins = capture.pins();
        if let Some(program) = &workflow.program {
            // The stored text is executed, even if its file has changed.
            files.insert(entry.clone(), program.clone());
            pins.replace(&entry, checksum(program));
        }
        Ok(Self { files, executables, pins, entry, manifest, vocabulary })
    }

    fn requests(&self, asked: &Asked) -> Vec<PrivilegeRequest> {
        PrivilegeSurvey {
            files: &self.files,
            manifest: &self.manifest,
            ceiling: &asked.ceiling,
            vocabulary: self.vocabulary,
            executables: &self.executables,
            entry: &self.entry,
            plugins: &asked.plugins,
        }
        .requests()
    }

    /// Returns the files that requests name, and those that one of them may read.
    fn covered(
        &self,
        requests: &[PrivilegeRequest],
        requesting: &BTreeSet<String>,
    ) -> BTreeSet<String> {
        // What the manifest permits, all prompts may use.
        let by_manifest = requests
            .iter()
            .any(|asked| asked.file == self.manifest && asked.privilege == Privilege::Permissions);
        let is_covered = |path: &&String| {
            requests.iter().any(|request| names(request, path))
                || by_manifest && is_prompt_path(path)
        };
        let mut covered: BTreeSet<String> =
            self.pins.files.keys().filter(is_covered).cloned().collect();
        let mut by_word: BTreeMap<String, Vec<&String>> = BTreeMap::new();
        for path in self.pins.files.keys() {
            by_word.entry(word_of(path).unwrap_or_default()).or_default().push(path);
        }
        // A command, a hook or an agent may read what the file with it names, and what that one names.
        let mut readers: Vec<String> = requesting.union(&covered).cloned().collect();
        while let Some(reader) = readers.pop() {
            let text = self.files.get(&reader);
            let words = text.map(|text| named_files(&reader, text)).unwrap_or_default();
            let named = words.iter().filter_map(|word| by_word.get(word)).flatten().copied();
            for path in named.filter(|path| **path != reader) {
                if covered.insert(path.clone()) && !requesting.contains(path) {
                    readers.push(path.clone());
                }
            }
        }
        covered
    }
}

impl ExaminedFolder {
    /// Returns whether a run of it needs trust that nobody has given yet.
    pub(super) fn needs_trust(&self) -> bool {
        self.needs_trust
    }

    /// Records that the folder is trusted in its present form.
    ///
    /// # Errors
    /// [`Error::Store`].
    pub fn remember(&self, state: &UserState, origin: TrustOrigin) -> Result<(), Error> {
        let (folder, checksum) = (self.folder.clone(), self.checksum.clone());
        let (files, compared) = (Some(self.trusted_files.clone()), self.compared.clone());
        let trusted = TrustedFolder { folder, checksum, at: now(), origin, files, compared };
        Ok(trust::remember(state, &trusted)?)
    }

    /// Grants a run of the folder the privileges that its files ask for, if its starter trusts them.
    ///
    /// # Errors
    /// [`Error::NotTrusted`] if they do not.
    pub(super) fn admit(&self, settings: &mut Settings, starter: &RunStarter) -> Result<(), Error> {
        let confirmation = starter.trust_of(&self.checksum);
        if let Some(origin) = confirmation.filter(|_| self.is_kept) {
            self.remember(&starter.state, origin)?;
        }
        if !self.needs_trust && confirmation.is_none() {
            return Ok(());
        }
        if confirmation.is_none() && !settings.consent.trusts_workflow {
            let trust = self.trust(&starter.state)?;
            if trust != FolderTrust::Trusted {
                return Err(Error::NotTrusted {
                    folder: self.folder.clone(),
                    target: self.target.clone(),
                    requests: self.lines(),
                    trust: Box::new(trust),
                    checksum: self.checksum.clone(),
                });
            }
        }
        settings.consent.trusts_workflow = true;
        Ok(())
    }

    /// Returns whether the folder is trusted in its present form.
    ///
    /// # Errors
    /// [`Error::Store`].
    pub fn trust(&self, state: &UserState) -> Result<FolderTrust, Error> {
        Ok(trust::find(state, &self.folder, &self.trusted_files, &self.compared)?)
    }

    /// Returns a line for each request, with its place.
    pub fn lines(&self) -> Vec<String> {
        self.requests.iter().map(|asked| line(&self.shown, asked)).collect()
    }
}

/// Returns whether the purpose of a request names a file, or a folder that contains it, also as the file that asks sees
/// them. A command may execute a file that it names, and a plug-in of Claude Code is a folder.
fn names(request: &PrivilegeRequest, path: &str) -> bool {
    let purpose = &request.purpose;
    let folder = request.file.rsplit_once('/').map_or("", |(folder, _)| folder);
    let seen = path.strip_prefix(folder).map_or(path, |below| below.trim_start_matches('/'));
    let name = path.rsplit('/').next().unwrap_or_default();
    let folders = |path: &str| {
        path.match_indices('/')
            .any(|(end, _)| path.get(..end).is_some_and(|at| has_word(purpose, at)))
    };
    let whole = ["`.`", "`./`", "`..`", "`../`"].iter().any(|all| purpose.contains(all));
    whole || purpose.contains(name) || folders(path) || folders(seen)
}

/// Returns whether a text contains a word that no letter, digit or dot continues.
fn has_word(text: &str, word: &str) -> bool {
    let ends =
        |c: Option<char>| c.is_none_or(|c| !(c.is_alphanumeric() || matches!(c, '_' | '-' | '.')));
    text.match_indices(word).any(|(at, _)| {
        let before = text[..at].chars().next_back().filter(|&c| c != '/' && c != '.');
        ends(before) && ends(text[at + word.len()..].chars().next())
    })
}

/// Returns a request as a line for people.
fn line(folder: &Path, request: &PrivilegeRequest) -> String {
    let PrivilegeRequest { file, place, privilege, purpose } = request;
    let file = Folder::parse(file).map_or_else(|_| file.clone(), |file| file.on_disk());
    let file = folder.join(file).display().to_string();
    let place = format!("{}:{}", place.line, place.column);
    let lines = purpose.trim().lines().map(joined_words);
    let whole = lines.collect::<Vec<_>>().join(" ⏎ ");
    let mut shown: String = whole.chars().take(MAX_SHOWN).collect();
    let hidden = whole.chars().count().saturating_sub(MAX_SHOWN);
    if hidden > 0 {
        shown = format!("{shown}… ({hidden} more characters: read the file)");
    }
    format!("{file}:{place}: {}: {shown}", privilege.meaning())
}

/// Returns the real path of a folder as text, the key of its records.
pub fn folder_name(path: &Path) -> String {
    path.canonicalize().unwrap_or_else(|_| path.to_owned()).display().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::language::source::SourcePlace;

    #[test]
    fn request_names_file_by_its_path_or_its_folder() {
        let named = |file: &str, purpose: &str, path: &str| {
            let (file, purpose) = (file.to_owned(), purpose.to_owned());
            let place = SourcePlace::START;
            let privilege = Privilege::Commands;
            names(&PrivilegeRequest { file, place, privilege, purpose }, path)
        };
        assert!(named("g.yaml", "sh tools/build.sh", "tools/build.sh"));
        let painter = "`plugin_dirs`: `helpers` is a plug-in";
        assert!(named("A.md", painter, "helpers/skills/paint/SKILL.md"));
        assert!(named("sub/A.md", painter, "sub/helpers/skills/paint/SKILL.md"));
        assert!(named("A.md", "`plugin_dirs`: `./more/helpers`", "more/helpers/commands/a.md"));
        assert!(named("A.md", "`plugin_dirs`: `.` is a plug-in", "commands/a.md"));
        assert!(!named("A.md", "`plugin_dirs`: `helpers2`", "helpers/a.md"));
        assert!(!named("A.md", "make all", "docs/a.md"));
    }
}
