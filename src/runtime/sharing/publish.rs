//! What goes to an engine: a new run (files by checksum, terms, first record), commands of shared runs, large mail.

use std::collections::BTreeSet;

use super::claimed_run::{ClaimedRun, HeldRun, LEASE_TIME, RunEngine};
use crate::domain::event::{Record, RunCommand};
use crate::domain::host::{HostLabel, PlacedAgent};
use crate::domain::host_work::{MAX_MAIL_BYTES, StoredMail, WIRE_VERSION};
use crate::domain::id::{AgentId, RunId};
use crate::domain::placement::{HostSighting, HostTable, PlacementGroup};
use crate::domain::sealed_terms::RunSeal;
use crate::domain::settings::AnswererKind;
use crate::domain::worktree_snapshot::WorkingDir;
use crate::engine::EngineError;
use crate::engine::connect::{RunSpace, SharedCommand};
use crate::engine::shared_log::{LogLine, NewSharedRun, RegisteredHost};
use crate::language::source::checksum;
use crate::runtime::error::Error;
use crate::runtime::sharing::claimed_run::{
    CassetteBlobs, CommandRole, SharedTerms, TERMS_VERSION, blob_name,
};
use crate::runtime::sharing::mirror::{EngineMirror, side_by_side};
use crate::store::capture::WorkflowCapture;
use crate::store::cassette::CassetteFiles;
use crate::store::inbox::InboxCommand;
use crate::store::layout::RunDir;
use crate::store::record::encode;
use crate::store::{inbox, shared_copy};

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

// Commands for shared runs: they go by the engine, and each machine's inbox is a copy of what waits there.
//
// A command of this machine lies in the inbox of the run's copy first. It is left in the engine, and marked. The
// supervisor's machine puts it into its own inbox, takes it, and removes it from the engine once a record holds it.
// Then the other machines remove it from their inboxes, too. A name stays taken in the engine, so nothing is left there
// twice.

impl EngineMirror {
    /// Exchanges the commands of a run's inbox with those that wait in the engine.
    ///
    /// # Errors
    /// [`Error`] if the engine cannot be asked, or the inbox cannot be used.
    pub fn exchange_commands(&self, run: &RunId, role: CommandRole<'_>) -> Result<(), Error> {
        let dir = self.root.run(run);
        let key = self.state.key()?;
        let here = inbox::list(&dir.inbox(), Some(&key))?;
        let there = self.engine.commands(run)?;
        let names: BTreeSet<&str> = there.iter().map(|command| command.name.as_str()).collect();
        for waiting in &here {
            let is_marked = shared_copy::is_marked(&dir, &waiting.name);
            match role {
                _ if !is_marked => self.leave(run, &dir, waiting)?,
                CommandRole::Sender if !names.contains(waiting.name.as_str()) => {
                    // The record that took it has to be here before the command is gone.
                    self.refresh_log(run)?;
                    inbox::remove(&dir.inbox(), &waiting.name)?;
                    shared_copy::unmark(&dir, &waiting.name)?;
                }
                CommandRole::Sender | CommandRole::Supervisor(_) => {}
            }
        }
        let held: BTreeSet<&str> = here.iter().map(|waiting| waiting.name.as_str()).collect();
        for command in there.iter().filter(|command| !held.contains(command.name.as_str())) {
            self.receive(run, &dir, command, role)?;
        }
        Ok(())
    }

    /// Leaves a command of this machine in the engine.
    fn leave(&self, run: &RunId, dir: &RunDir, waiting: &InboxCommand) -> Result<(), Error> {
        let Some(command) = &waiting.command else { return Ok(()) };
        let content = serde_json::to_vec(command).unwrap_or_default();
        self.engine.leave_command(run, &SharedCommand { name: waiting.name.clone(), content })?;
        shared_copy::mark(dir, &waiting.name)?;
        Ok(())
    }

    /// Takes a command of the engine that does not lie here: it is new, or it was taken here.
    fn receive(
        &self,
        run: &RunId,
        dir: &RunDir,
        shared: &SharedCommand,
        role: CommandRole<'_>,
    ) -> Result<(), Error> {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        if shared.name.is_empty() || !shared.name.chars().all(is_plain) {
            tracing::warn!("{run}: ignoring a command with the name {:?}", shared.name);
            return Ok(());
        }
        let is_new = !shared_copy::is_marked(dir, &shared.name);
        if is_new && !shared_copy::has_received(dir, &shared.name)? {
            let command: Result<RunCommand, _> = serde_json::from_slice(&shared.content);
            if let Ok(command) = command {
                inbox::put(&dir.inbox(), &shared.name, &command, &self.state.key()?)?;
                shared_copy::mark(dir, &shared.name)?;
                return Ok(());
            }
            tracing::warn!("{run}: this raymond does not understand the command {}", shared.name);
        }
        match role {
            CommandRole::Supervisor(lease) => {
                self.engine.remove_command(lease, &shared.name)?;
                Ok(shared_copy::unmark(dir, &shared.name)?)
            }
            CommandRole::Sender => Ok(()),
        }
    }
}

// Requests and answers that are too large for the mailbox: they are contents of the engine, and the mailbox names them.

/// The largest request or answer that is fetched, in bytes.
const MAX_FETCHED_BYTES: u64 = 256 * 1024 * 1024;

/// Has an engine keep a request or an answer, if it is too large for the mailbox; `None` if it is not.
///
/// # Errors
/// [`EngineError`] if the engine cannot be reached, or refuses.
pub(in crate::runtime) fn store_if_large(
    space: &dyn RunSpace,
    body: &str,
) -> Result<Option<StoredMail>, EngineError> {
    if body.len() <= MAX_MAIL_BYTES {
        return Ok(None);
    }
    let sum = checksum(body);
    space.put_blob(blob_name(&sum), body.as_bytes())?;
    Ok(Some(StoredMail { checksum: sum.into(), bytes: body.len() as u64 }))
}

/// Fetches a request or an answer; the inner error says why it cannot be used.
///
/// # Errors
/// [`EngineError`] if the engine cannot be reached, or refuses.
pub(in crate::runtime) fn fetch_mail(
    space: &dyn RunSpace,
    mail: &StoredMail,
) -> Result<Result<String, String>, EngineError> {
    let StoredMail { checksum: sum, bytes } = mail;
    if *bytes > MAX_FETCHED_BYTES {
        return Ok(Err(format!(
            "it has {bytes} bytes, more than the {MAX_FETCHED_BYTES} that are fetched"
        )));
    }
    let content = match space.blob(blob_name(sum), *bytes) {
        Err(error @ EngineError::Damaged { .. }) => return Ok(Err(error.to_string())),
        content => content?,
    };
    let content = content.filter(|content| checksum(content) == **sum);
    let text = content.map(String::from_utf8).and_then(Result::ok);
    Ok(text.ok_or_else(|| format!("its content {sum} is gone or was changed in the engine")))
}
