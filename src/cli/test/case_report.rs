//! The report of a case that was run.

use std::time::Duration;

use super::discovery::LoadedCase;
use crate::domain::observed_run::ObservedRun;
use crate::language::cases::{CaseMismatch, CaseTexts};

/// A case that was run.
#[derive(Debug)]
pub(super) struct CaseReport {
    pub(super) loaded: LoadedCase,
    pub(super) duration: Duration,
    /// The reason why there was no run to compare.
    pub(super) error: Option<String>,
    pub(super) mismatches: Vec<CaseMismatch>,
    pub(super) run: ObservedRun,
    pub(super) texts: CaseTexts,
    pub(super) sweep: Option<KillSweep>,
}

impl CaseReport {
    /// Returns the report of a case that has not been run yet.
    pub(super) fn new(loaded: LoadedCase) -> Self {
        Self {
            loaded,
            duration: Duration::ZERO,
            error: None,
            mismatches: Vec::new(),
            run: ObservedRun::default(),
            texts: CaseTexts::default(),
            sweep: None,
        }
    }

    /// Returns whether all that is expected holds.
    pub(super) fn has_passed(&self) -> bool {
        let is_swept = self.sweep.as_ref().is_none_or(KillSweep::has_passed);
        self.error.is_none() && self.mismatches.is_empty() && is_swept
    }
}

/// The kills of a case.
#[derive(Debug, Default)]
pub(super) struct KillSweep {
    /// The number of kills.
    pub(super) kills: u64,
    /// The records after which the run came to something else, each with the difference.
    pub(super) differences: Vec<(u64, String)>,
}

impl KillSweep {
    /// Returns whether each resumed run came to the same.
    pub(super) fn has_passed(&self) -> bool {
        self.differences.is_empty()
    }
}
