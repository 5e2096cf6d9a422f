//! A new run goes to an engine: its files by their checksums, its terms, and its first record.

use std::collections::BTreeSet;

use super::claimed_run::ClaimedRun;
use super::run_engine::{HeldRun, LEASE_TIME, RunEngine};
use crate::domain::event::Record;
use crate::domain::host::HostLabel;
use crate::domain::host::PlacedAgent;
use crate::domain::host_work::WIRE_VERSION;
use crate::domain::id::AgentId;
use crate::domain::placement::{HostSighting, HostTable, PlacementGroup};
use crate::domain::sealed_terms::RunSeal;
use crate::domain::settings::AnswererKind;
use crate::domain::working_dir::WorkingDir;
use crate::engine::host_registry::RegisteredHost;
use crate::engine::shared_log::{LogLine, NewSharedRun};
use crate::language::source::checksum;
use crate::runtime::error::Error;
use crate::runtime::sharing::claimed_run::{CassetteBlobs, SharedTerms, TERMS_VERSION, blob_name};
use crate::runtime::sharing::copy::side_by_side;
use crate::store::capture::WorkflowCapture;
use crate::store::cassette::CassetteFiles;
use crate::store::record::encode;

/// The files of a new run.
pub(in crate::runtime) struct SharedFiles<'a> {
    /// The workflow's files.
    pub(in crate::runtime) workflow: &'a WorkflowCapture,
    /// The cassette that answers its prompts.
    pub(in crate::runtime) cassette: Option<&'a CassetteFiles>,
}

/// Adds a new run to an engine, and takes its lease. The first record comes last, so a run that is there is whole.
///
/// # Errors
/// [`Error::Engine`].
pub(in crate::runtime) fn publish(
    to: &RunEngine,
    first: &Record,
    seal: &RunSeal,
    files: &SharedFiles<'_>,
) -> Result<ClaimedRun, Error> {
    let engine = &to.engine;
    let put = |content: &[u8]| {
        let sum = checksum(content);
        engine.put_blob(blob_name(&sum), content).map(|()| sum)
    };
    let contents: BTreeSet<&[u8]> =
        files.workflow.files.values().map(|file| file.content.as_ref()).collect();
    side_by_side(&Vec::from_iter(contents), |content| put(content))?;
    let cassette = match files.cassette {
        Some(cassette) => {
            Some(CassetteBlobs { header: put(&cassette.header)?, turns: put(&cassette.turns)? })
        }
        None => None,
    };
    let terms = SharedTerms {
        version: TERMS_VERSION,
        scope_dir: seal.scope_dir.clone(),
        first_session: seal.first_session.clone(),
        terms: seal.terms.clone(),
        pins: files.workflow.pins(),
        cassette,
    };
    let unwritable = |why: String| Error::NotShared { run: seal.run.clone(), why };
    let new = NewSharedRun {
        run: seal.run.clone(),
        terms: serde_json::to_string(&terms).map_err(|error| unwritable(error.to_string()))?,
        lines: vec![LogLine { seq: first.seq, text: encode(first).map_err(unwritable)? }],
    };
    let lease = engine.create_run(&new, &to.holder, LEASE_TIME)?;
    Ok(ClaimedRun::new(HeldRun { engine: engine.clone(), lease }))
}

/// Returns the host that the first agent of a new run is given. If there is none yet, it is given one later.
///
/// # Errors
/// [`Error::Engine`].
pub(in crate::runtime) fn first_home(
    to: &RunEngine,
    label: Option<&HostLabel>,
    is_shared_dir: bool,
    answerer: AnswererKind,
) -> Result<Vec<PlacedAgent>, Error> {
    let mut table = HostTable::new(WIRE_VERSION).starting_claude(answerer == AnswererKind::Claude);
    let seen = to.engine.hosts()?.into_iter().map(sighting).collect();
    let _ = table.observe_all(seen);
    let group = PlacementGroup::of(&WorkingDir::default(), is_shared_dir);
    let home = table.place(label, group.as_ref()).ok();
    let placed = home.and_then(|home| {
        Some(PlacedAgent { agent: AgentId::main(), host: home.host?, epoch: home.epoch })
    });
    Ok(placed.into_iter().collect())
}

/// Returns what a supervisor sees of a host.
pub(in crate::runtime) fn sighting(host: RegisteredHost) -> HostSighting {
    let is_alive = host.is_alive();
    let RegisteredHost { host, epoch, standing, silent_for: _, report } = host;
    HostSighting { host, epoch, standing, is_alive, report }
}
