//! Commands for shared runs: they go by the engine, and each machine's inbox is a copy of what waits there.
//!
//! A command of this machine lies in the inbox of the run's copy first. It is left in the engine, and marked. The
//! supervisor's machine puts it into its own inbox, takes it, and removes it from the engine once a record holds it. Then the
//! other machines remove it from their inboxes, too. A name stays taken in the engine, so nothing is left there twice.
//!
//! Requests and answers that are too large for the mailbox: they are contents of the engine, and the mailbox names them.

use std::collections::BTreeSet;

use crate::domain::event::RunCommand;
use crate::domain::host_work::{MAX_MAIL_BYTES, StoredMail};
use crate::domain::id::RunId;
use crate::engine::EngineError;
use crate::engine::connect::{RunSpace, SharedCommand};
use crate::language::source::checksum;
use crate::runtime::error::Error;
use crate::runtime::sharing::claimed_run::blob_name;
use crate::runtime::sharing::mirror::EngineMirror;
use crate::runtime::sharing::run_engine::CommandRole;
use crate::store::inbox::{self, InboxCommand};
use crate::store::layout::RunDir;
use crate::store::shared_copy;

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
