//! Keeps sessions of Claude Code in an engine after their turns, and brings them to this host before a turn that needs them.

use std::collections::HashMap;
use std::fmt::Display;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::domain::id::SessionId;
use crate::domain::session::{
    KeptSession, MANIFEST_VERSION, MAX_KEPT_SESSION_BYTES, MAX_MANIFEST_BYTES,
    MAX_SESSION_PART_BYTES, SessionManifest, SessionPart, parts_to_keep,
};
use crate::engine::connect::RunSpace;
use crate::language::source::checksum;
use crate::process::said_in_session::{find_session, open_session, session_path, write_session};
use crate::runtime::sharing::{fetch_content, put_content};

/// The most manifests that are remembered. Those of other sessions are read from the engine.
const MAX_REMEMBERED: usize = 4096;

/// The places of Claude Code for a turn.
#[derive(Debug, Clone)]
pub(super) struct ClaudePlaces {
    /// Its own directory.
    pub(super) config_dir: PathBuf,
    /// The directory that the turn runs in.
    pub(super) cwd: PathBuf,
}

/// The keeper of the sessions of a host.
pub(super) struct SessionKeeper {
    space: Arc<dyn RunSpace + Send + Sync>,
    /// The manifests of the sessions that are on this host, as far as they are remembered.
    here: Mutex<HashMap<SessionId, SessionManifest>>,
}

impl SessionKeeper {
    pub(super) fn new(space: Arc<dyn RunSpace + Send + Sync>) -> Self {
        Self { space, here: Mutex::default() }
    }

    /// Has the engine keep a session after a turn. Of what it keeps already, under the manifest `before`, only what has
    /// changed is put.
    ///
    /// # Errors
    /// The reason why the session is only on this host.
    pub(super) fn keep(
        &self,
        places: &ClaudePlaces,
        session: &SessionId,
        before: Option<&str>,
    ) -> Result<KeptSession, String> {
        let path = find_session(&places.config_dir, &places.cwd, session).ok_or_else(|| {
            format!("Claude Code has left no file of it in {}", places.config_dir.display())
        })?;
        let unreadable = |error| format!("{} cannot be read: {error}", path.display());
        let mut file = open_session(&path).map_err(unreadable)?;
        let bytes = file.metadata().map_err(unreadable)?.len();
        if bytes > MAX_KEPT_SESSION_BYTES {
            let mib = MAX_KEPT_SESSION_BYTES / 1024 / 1024;
            return Err(format!("it has {bytes} bytes, and at most {mib} MiB are kept"));
        }
        let known = self.known(session, before).map_or_else(Vec::new, |known| known.parts);
        let mut parts = unchanged(&mut file, known).map_err(unreadable)?;
        parts.truncate(parts_to_keep(&parts, bytes));
        let start = parts.iter().map(|part| part.bytes).sum();
        file.seek(SeekFrom::Start(start)).map_err(unreadable)?;
        let mut rest = file.take(bytes.saturating_sub(start));
        loop {
            let mut part = Vec::new();
            rest.by_ref()
                .take(MAX_SESSION_PART_BYTES)
                .read_to_end(&mut part)
                .map_err(unreadable)?;
            if part.is_empty() {
                break;
            }
            parts.push(self.put(&part)?);
        }
        let session_id = session.clone();
        let manifest = SessionManifest { version: MANIFEST_VERSION, session_id, parts };
        let text = serde_json::to_vec(&manifest).map_err(|error| error.to_string())?;
        let sum = self.put(&text)?.checksum;
        self.remember(manifest);
        Ok(KeptSession { session_id: session.clone(), manifest: sum })
    }

    /// Brings a session to this host as it was kept. One that is here with all of that, or more, stays as it is.
    ///
    /// # Errors
    /// The reason why it cannot be continued here.
    pub(super) fn bring(
        &self,
        places: &ClaudePlaces,
        session: &SessionId,
        sum: &str,
    ) -> Result<(), String> {
        if self.here().contains_key(session) {
            return Ok(());
        }
        let unusable = || format!("{session} is not a valid session of Claude Code");
        let path = session_path(&places.config_dir, &places.cwd, session).ok_or_else(unusable)?;
        let manifest = self.manifest(session, sum)?;
        let unwritable = |error: &dyn Display| format!("{}: {error}", path.display());
        match open_session(&path) {
            Ok(mut file) => {
                let own = unchanged(&mut file, manifest.parts.clone());
                if own.map_err(|error| unwritable(&error))? == manifest.parts {
                    self.remember(manifest);
                    return Ok(());
                }
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(unwritable(&error)),
        }
        let written = write_session(&path, |file| {
            manifest.parts.iter().try_for_each(|part| {
                let content = self.content(part).map_err(std::io::Error::other)?;
                file.write_all(&content)
            })
        });
        if let Some(aside) = written.map_err(|error| unwritable(&error))? {
            let (path, aside) = (path.display(), aside.display());
            tracing::warn!("{path} was not the session that was kept; it is now {aside}");
        }
        tracing::info!(
            "the session {session} was brought to this host, {} bytes",
            manifest.bytes()
        );
        self.remember(manifest);
        Ok(())
    }

    fn put(&self, content: &[u8]) -> Result<SessionPart, String> {
        let put = put_content(&*self.space, content).map_err(|error| error.to_string())?;
        Ok(SessionPart { checksum: put.into(), bytes: content.len() as u64 })
    }

    fn content(&self, part: &SessionPart) -> Result<Vec<u8>, String> {
        let content = fetch_content(&*self.space, &part.checksum, part.bytes)?;
        if content.len() as u64 == part.bytes {
            return Ok(content);
        }
        Err(format!("its part {} has another length than its manifest says", part.checksum))
    }

    /// Returns the manifest of a session.
    fn manifest(&self, session: &SessionId, sum: &str) -> Result<SessionManifest, String> {
        let text = fetch_content(&*self.space, sum, MAX_MANIFEST_BYTES)?;
        let read = serde_json::from_slice::<SessionManifest>(&text);
        let usable = read.ok().filter(|manifest| manifest.is_usable_for(session));
        usable.ok_or_else(|| format!("{sum} is not a manifest of the session {session}"))
    }

    /// Returns the manifest under which a session was kept last. Without one, all of the session is put.
    fn known(&self, session: &SessionId, before: Option<&str>) -> Option<SessionManifest> {
        let here = self.here().get(session).cloned();
        here.or_else(|| self.manifest(session, before?).ok())
    }

    fn remember(&self, manifest: SessionManifest) {
        let mut here = self.here();
        if here.len() >= MAX_REMEMBERED {
            here.clear();
        }
        here.insert(manifest.session_id.clone(), manifest);
    }

    fn here(&self) -> MutexGuard<'_, HashMap<SessionId, SessionManifest>> {
        self.here.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns those of the first parts that a file begins with, unchanged.
fn unchanged(file: &mut File, mut parts: Vec<SessionPart>) -> std::io::Result<Vec<SessionPart>> {
    let mut content = Vec::new();
    for place in 0..parts.len() {
        let part = &parts[place];
        content.clear();
        Read::by_ref(file).take(part.bytes).read_to_end(&mut content)?;
        if content.len() as u64 != part.bytes || checksum(&content) != *part.checksum {
            parts.truncate(place);
            break;
        }
    }
    Ok(parts)
}

#[cfg(test)]
mod tests;
