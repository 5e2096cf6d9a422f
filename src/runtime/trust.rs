//! The trust that a workflow's folder needs before it may do more than prompt.
//!
//! What it asks for is found in its files before anything runs. It is given by the person who starts the
//! run, for the files as they are.

use std::collections::BTreeSet;
use std::path::Path;

use super::error::Error;
use super::settings::settings_of;
use super::workflow::{Workflow, manifest_of};
use crate::actor::clock::now;
use crate::domain::settings::Settings;
use crate::domain::widening::PermissionCeiling;
use crate::language::checksum::checksum;
use crate::language::graph::vocabulary::Vocabulary;
use crate::language::privileges::{PrivilegeRequest, PrivilegeSurvey};
use crate::store;
use crate::store::capture::WorkflowCapture;
use crate::store::layout::Root;
use crate::store::trust::{self, TrustOrigin, TrustedFolder, trust_checksum};
use crate::store::user_state::UserState;

/// The longest part of a purpose that is shown in a line, in characters.
const MAX_SHOWN: usize = 400;

/// The person who starts a run, with the place of their trust and their word about this run.
#[derive(Debug, Clone)]
pub struct RunStarter {
    /// What raymond keeps for them.
    pub state: UserState,
    /// How they say that they trust what they start, if they do.
    pub confirms: Option<TrustOrigin>,
    /// The checksum of what they were shown, if they were asked: another thing is not trusted.
    pub shown: Option<String>,
}

impl RunStarter {
    /// Returns how they say that they trust something, which is known by its checksum.
    #[must_use]
    pub(super) fn confirmation_of(&self, checksum: &str) -> Option<TrustOrigin> {
        self.confirms.filter(|_| self.shown.as_deref().is_none_or(|shown| shown == checksum))
    }
}

/// A workflow's folder, looked at for what it asks for.
#[derive(Debug)]
pub struct ExaminedFolder {
    /// Its real path.
    pub folder: String,
    /// What its files ask for: trust gives all of it.
    pub requests: Vec<PrivilegeRequest>,
    /// Whether this run needs any of it that nobody has allowed yet.
    needs_trust: bool,
    /// The checksum that trust is given for.
    pub checksum: String,
    /// Its files.
    pub capture: WorkflowCapture,
}

/// Looks at a workflow's folder.
///
/// # Errors
/// [`Error::Store`] if it cannot be read, [`Error::Unsteady`] if it changes meanwhile.
pub fn examine(
    root: &Root,
    workflow: &Workflow,
    settings: &Settings,
    vocabulary: &Vocabulary,
    program: Option<&str>,
) -> Result<ExaminedFolder, Error> {
    let folder = workflow.scope.root();
    let capture = WorkflowCapture::of(folder, root.path())?;
    let mut files = capture.texts();
    let is_steady = manifest_of(&files).is_ok_and(|manifest| manifest == workflow.manifest);
    if !is_steady {
        return Err(Error::Unsteady { folder: folder.to_owned() });
    }
    if let Some(program) = program {
        // The text that was kept is what runs, whatever its file says now.
        files.insert(workflow.entry.to_string(), program.to_owned());
    }
    let plugins: Vec<_> =
        settings.plugins.iter().filter(|plugin| plugin.by_workflow).cloned().collect();
    let survey = |ceiling: &PermissionCeiling, plugins: &[_]| {
        PrivilegeSurvey { files: &files, ceiling, vocabulary, plugins }.requests()
    };
    // What trust is about does not depend on how this run is started.
    let usual = PermissionCeiling::of(&Settings::default());
    let requests = survey(&usual, &settings_of(workflow).plugins);
    let asking: BTreeSet<String> = requests.iter().map(|one| one.file.clone()).collect();
    let mut pins = capture.pins();
    if let Some(program) = program {
        pins.replace(workflow.entry.as_str(), checksum(program));
    }
    // A text that a command names may be executed.
    let is_named = |path: &str| {
        let name = path.rsplit('/').next().unwrap_or_default();
        requests.iter().any(|one| one.purpose.contains(name))
    };
    let named: Vec<String> = pins.files.keys().filter(|path| is_named(path)).cloned().collect();
    let asking: BTreeSet<String> = asking.into_iter().chain(named).collect();
    Ok(ExaminedFolder {
        folder: folder.display().to_string(),
        needs_trust: !survey(&PermissionCeiling::of(settings), &plugins).is_empty(),
        requests,
        checksum: trust_checksum(pins.trusted_files(&asking)),
        capture,
    })
}

impl ExaminedFolder {
    /// Remembers that the folder is trusted as it is.
    ///
    /// # Errors
    /// [`Error::Store`].
    pub fn remember(&self, state: &UserState, origin: TrustOrigin) -> Result<(), Error> {
        let (folder, checksum) = (self.folder.clone(), self.checksum.clone());
        Ok(trust::remember(state, &TrustedFolder { folder, checksum, at: now(), origin })?)
    }

    /// Lets a run of the folder do what its files ask for, if the person who starts it trusts them.
    ///
    /// # Errors
    /// [`Error::NotTrusted`] if they have not said so.
    pub(super) fn admit(&self, settings: &mut Settings, starter: &RunStarter) -> Result<(), Error> {
        let confirmation = starter.confirmation_of(&self.checksum);
        if let Some(origin) = confirmation.filter(|_| !self.requests.is_empty()) {
            self.remember(&starter.state, origin)?;
        }
        if !self.needs_trust {
            return Ok(());
        }
        let is_trusted = confirmation.is_some()
            || settings.consent.trusts_workflow
            || self.is_trusted(&starter.state)?;
        if !is_trusted {
            return Err(Error::NotTrusted {
                folder: self.folder.clone(),
                requests: self.requests.clone(),
                was_trusted: self.was_trusted(&starter.state),
                checksum: self.checksum.clone(),
            });
        }
        settings.consent.trusts_workflow = true;
        Ok(())
    }

    /// Returns whether the folder is trusted as it is. Trust that was given with another key is none.
    ///
    /// # Errors
    /// [`Error::Store`].
    pub fn is_trusted(&self, state: &UserState) -> Result<bool, Error> {
        match trust::is_trusted(state, &self.folder, &self.checksum) {
            Err(store::Error::Unproven { .. }) => Ok(false),
            trusted => Ok(trusted?),
        }
    }

    fn was_trusted(&self, state: &UserState) -> bool {
        trust::was_trusted(state, &self.folder).unwrap_or(true)
    }

    /// Returns a line for each request, with its place.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        self.requests.iter().map(line).collect()
    }
}

/// Returns a request as people read it.
pub(super) fn line(request: &PrivilegeRequest) -> String {
    let PrivilegeRequest { file, place, privilege, purpose } = request;
    let place = format!("{}:{}", place.line, place.column);
    let lines =
        purpose.trim().lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
    let whole = lines.collect::<Vec<_>>().join(" ⏎ ");
    let mut shown: String = whole.chars().take(MAX_SHOWN).collect();
    let hidden = whole.chars().count().saturating_sub(MAX_SHOWN);
    if hidden > 0 {
        shown = format!("{shown}… ({hidden} more characters: read the file)");
    }
    format!("{file}:{place}: {}: {shown}", privilege.meaning())
}

/// Returns the real path of a folder as text, for what is kept of it.
#[must_use]
pub fn folder_name(path: &Path) -> String {
    path.canonicalize().unwrap_or_else(|_| path.to_owned()).display().to_string()
}
