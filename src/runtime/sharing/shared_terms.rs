//! The terms of a run that several machines share: what another one needs to supervise it, besides its log.

use serde::{Deserialize, Serialize};

use crate::domain::id::RunId;
use crate::domain::sealed_terms::{RunSeal, SealedTerms};
use crate::domain::workflow_pins::WorkflowPins;
use crate::engine::{Engine, EngineError};
use crate::runtime::error::Error;
use crate::store::layout::RunsRoot;

/// The version of [`SharedTerms`].
pub(super) const TERMS_VERSION: u32 = 1;

/// The part of the terms that each version has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
struct TermsVersion {
    /// The version of the document.
    version: u32,
}

/// The terms of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SharedTerms {
    /// The version of this document.
    pub(super) version: u32,
    /// The workflow's folder on the machine where the run was started.
    pub(super) scope_dir: String,
    /// The first session, which no other run has.
    pub(super) first_session: String,
    /// The terms that a person confirmed.
    pub(super) terms: Vec<SealedTerms>,
    /// The workflow's files; the engine has their contents by their checksums.
    pub(super) pins: WorkflowPins,
    /// The checksums of the two files of the cassette that answers its prompts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) cassette: Option<CassetteBlobs>,
}

/// The checksums of the files of a cassette.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct CassetteBlobs {
    pub(super) header: String,
    pub(super) turns: String,
}

impl SharedTerms {
    /// Returns the seal of the run's copy on this machine.
    pub(super) fn seal(&self, run: &RunId, root: &RunsRoot) -> RunSeal {
        RunSeal {
            run: run.clone(),
            directory: root.path().display().to_string(),
            scope_dir: self.scope_dir.clone(),
            first_session: self.first_session.clone(),
            terms: self.terms.clone(),
            journal: None,
        }
    }
}

/// Returns the name of a blob for a checksum: its digits.
pub(super) fn blob_name(checksum: &str) -> &str {
    checksum.strip_prefix("sha256:").unwrap_or(checksum)
}

/// Returns the terms of a run.
pub(super) fn terms(engine: &dyn Engine, run: &RunId) -> Result<SharedTerms, Error> {
    let text = engine.terms(run)?;
    let unreadable = |error: serde_json::Error| damaged(engine, run, &error.to_string());
    // Those of another version may have other parts.
    let version: TermsVersion = serde_json::from_str(&text).map_err(unreadable)?;
    if version.version != TERMS_VERSION {
        let (found, known) = (version.version, TERMS_VERSION);
        let engine = engine.address().to_string();
        return Err(EngineError::Version { engine, found, known }.into());
    }
    serde_json::from_str(&text).map_err(unreadable)
}

/// Returns the error about data of a run that no raymond writes.
pub(super) fn damaged(engine: &dyn Engine, run: &RunId, why: &str) -> Error {
    let engine = engine.address().to_string();
    EngineError::Damaged { engine, what: format!("the run {run}"), why: why.to_owned() }.into()
}
