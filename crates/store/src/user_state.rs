//! The user's state outside all workspaces, the proofs that raymond began a turn, and the seals of runs.
//!
//! The state has a key, the trust of folders, and the seals of runs. Agents may write into the workspace, which usually
//! contains `.raymond`. Data that has to be believed is stored here, with a proof that only a reader of the key can
//! make.

use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use raymond_lang::source::{checksum, short_name};
use raymond_model::hexadecimal::hexadecimal;
use raymond_model::id::RunId;
use raymond_model::sealed_terms::{RunSeal, SealedJournal, SealedTerms, WorkflowPins};
use raymond_model::settings::Settings;
use raymond_model::turn::TurnOffset;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::draft::{draft_beside, remove_abandoned};
use super::layout::RunsRoot;
use super::{Error, files};
use crate::journal::JournalFile;
use crate::plain_file;
use crate::plain_file::is_unfit;
use crate::proof::{ProofKey, StepProofs};

/// The least length of a key, in characters.
const KEY_LENGTH: usize = 64;

/// The most bytes of a document that is kept here.
const MAX_DOCUMENT: u64 = 4 * 1024 * 1024;

/// The directory of a user's state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserState(PathBuf);

/// A document with its proof, as it lies on the disk.
#[derive(Debug, Serialize, Deserialize)]
struct ProvenDocument {
    /// The document as JSON, byte by byte.
    document: String,
    proof: String,
}

impl UserState {
    /// Takes the directory as it is.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    /// Returns the directory itself.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Returns the directory of the copies of an engine's runs, by the engine's address.
    pub fn copies(&self, engine: &str) -> PathBuf {
        self.0.join("engines").join(short_name(engine))
    }

    /// Returns the path of the key's file.
    pub fn key_file(&self) -> PathBuf {
        self.0.join("key")
    }

    /// Returns the user's key; it is made when it is first needed.
    ///
    /// # Errors
    /// [`Error::Key`] if others can read it, [`Error::Io`].
    pub fn key(&self) -> Result<ProofKey, Error> {
        let path = self.key_file();
        self.refuse_if_others_write()?;
        match read_key(&path) {
            Err(Error::Io { error, .. }) if error.kind() == ErrorKind::NotFound => {
                self.make_key().and_then(|()| read_key(&path))
            }
            read => read,
        }
        .map_err(Error::of_user_state)
    }

    /// Refuses a directory in which others can replace the user's key.
    fn refuse_if_others_write(&self) -> Result<(), Error> {
        let Ok(metadata) = self.0.metadata() else { return Ok(()) };
        if metadata.mode() & 0o022 == 0 {
            return Ok(());
        }
        let why = "others can write to it; restrict it with chmod 700";
        Err(Error::Key { path: self.0.clone(), why })
    }

    /// Puts a new key in place, unless another process or thread was faster. Each has its own draft, because a shared
    /// draft would be written again after it became the key.
    fn make_key(&self) -> Result<(), Error> {
        files::make_dir(&self.0)?;
        let path = self.key_file();
        let random = || Uuid::new_v4().simple().to_string();
        let draft = draft_beside(&self.0.join(format!("key-{}", random())));
        remove_abandoned(&self.0);
        let written = files::private().write(true).create_new(true).open(&draft);
        written
            .and_then(|mut file| {
                file.write_all(format!("{}{}{}", random(), random(), random()).as_bytes())?;
                file.sync_all()
            })
            .map_err(Error::io("write", &draft))?;
        let linked = std::fs::hard_link(&draft, &path);
        let _ = std::fs::remove_file(&draft);
        match linked {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => {
                Err(Error::io("write", &path)(error))
            }
            _ => files::sync_dir(&self.0),
        }
    }

    /// Writes a document with its proof. `purpose` keeps one kind from being mistaken for another.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn put<T: Serialize>(&self, purpose: &str, name: &Path, value: &T) -> Result<(), Error> {
        let path = self.0.join(name);
        let document = serde_json::to_string(value).map_err(Error::json("write", &path))?;
        let proof = self.key()?.proof(purpose, document.as_bytes());
        let text = serde_json::to_string_pretty(&ProvenDocument { document, proof });
        let text = text.map_err(Error::json("write", &path))?;
        let directory = path.parent().unwrap_or(&self.0);
        files::make_dir(directory).map_err(Error::of_user_state)?;
        [directory, &self.0].into_iter().for_each(remove_abandoned);
        files::replace_among_others(&path, text.as_bytes()).map_err(Error::of_user_state)
    }

    /// Returns a document whose proof holds; `None` if there is none.
    ///
    /// # Errors
    /// [`Error::Unproven`] if its proof does not hold, [`Error::Io`].
    pub fn get<T: DeserializeOwned>(&self, purpose: &str, name: &Path) -> Result<Option<T>, Error> {
        let path = self.0.join(name);
        let Some(bytes) = files::read(&path, MAX_DOCUMENT)? else { return Ok(None) };
        let unproven = || Error::Unproven { path: path.clone() };
        let kept: ProvenDocument = serde_json::from_slice(&bytes).map_err(|_| unproven())?;
        if !self.key()?.holds(purpose, kept.document.as_bytes(), &kept.proof) {
            return Err(unproven());
        }
        serde_json::from_str(&kept.document).map(Some).map_err(|_| unproven())
    }

    /// Removes a document.
    ///
    /// # Errors
    /// [`Error::Io`], but not if it is gone already.
    pub fn remove(&self, name: &Path) -> Result<(), Error> {
        files::remove(&self.0.join(name))
    }

    /// Returns the names of the documents in a directory here, in order.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn names(&self, directory: &str) -> Result<Vec<PathBuf>, Error> {
        let entries = files::entries(&self.0.join(directory))?.into_iter();
        let names = entries.map(|entry| Path::new(directory).join(entry.file_name()));
        let mut names: Vec<_> =
            names.filter(|name| name.extension().is_some_and(|ending| ending == "json")).collect();
        names.sort();
        Ok(names)
    }
}

fn read_key(path: &Path) -> Result<ProofKey, Error> {
    let refused = |why: &'static str| Error::Key { path: path.to_owned(), why };
    let file = match plain_file::open(path) {
        Err(error) if is_unfit(&error) => {
            return Err(refused(
                "it is not a plain file; remove it, and raymond creates a new one",
            ));
        }
        opened => opened.map_err(Error::io("read", path))?,
    };
    let metadata = file.metadata().map_err(Error::io("read", path))?;
    if metadata.mode() & 0o077 != 0 || metadata.uid() != rustix::process::geteuid().as_raw() {
        return Err(refused("others can read or write it; restrict it with chmod 600"));
    }
    let mut text = String::new();
    file.take(1024).read_to_string(&mut text).map_err(Error::io("read", path))?;
    if text.trim().len() < KEY_LENGTH {
        return Err(refused("it is too short; remove it, and raymond creates a new one"));
    }
    Ok(ProofKey::new(text.trim()))
}

// Proofs that raymond began a turn.
//
// Without them, any program that can write into the directory of all turns could put a finished stream there before
// the turn begins.
//
// A process has its proof in a file beside its stream, which is written first; a further turn has it in the
// file of its offset.

/// The longest file of a proof, in bytes.
const MAX_PROOF: u64 = 1024;

/// The kind of the proof that a process was started by raymond.
const PROCESS: &str = "process";

/// The kind of the proof that a turn was asked of a process.
const TURN_OFFSET: &str = "passage";

/// The offset of a turn and its proof, side by side.
#[derive(Debug, Serialize, Deserialize)]
struct ProvenTurnOffset {
    #[serde(flatten)]
    turn_offset: TurnOffset,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    proof: String,
}

impl StepProofs {
    /// Writes the proof that a process is about to be started; does nothing without a key.
    ///
    /// # Errors
    /// The system's error.
    pub fn prove_start(&self, process: &str, file: &Path) -> std::io::Result<()> {
        if self.key.is_none() {
            return Ok(());
        }
        let proof = self.proof(PROCESS, process.as_bytes());
        plain_file::create(file)?.write_all(proof.as_bytes())
    }

    /// Returns the offset of a turn with its proof, as they are stored.
    ///
    /// # Errors
    /// It cannot be written as JSON.
    pub fn stored_turn_offset(
        &self,
        stem: &str,
        turn_offset: &TurnOffset,
    ) -> serde_json::Result<Vec<u8>> {
        let content = serde_json::to_vec(&(stem, turn_offset))?;
        let proof = self.proof(TURN_OFFSET, &content);
        serde_json::to_vec(&ProvenTurnOffset { turn_offset: turn_offset.clone(), proof })
    }

    /// Returns whether stored bytes are the offset of this turn, as raymond wrote it.
    pub fn believe_turn_offset(&self, stem: &str, stored: &[u8]) -> bool {
        let Ok(ProvenTurnOffset { turn_offset, proof }) = serde_json::from_slice(stored) else {
            return false;
        };
        let content = serde_json::to_vec(&(stem, &turn_offset)).unwrap_or_default();
        !turn_offset.process.contains('/') && self.believe(TURN_OFFSET, &content, &proof)
    }

    /// Returns whether a file proves that raymond started the process.
    pub fn believe_start(&self, process: &str, file: &Path) -> bool {
        let proof = plain_file::read(file, MAX_PROOF).unwrap_or_default();
        self.believe(PROCESS, process.as_bytes(), &String::from_utf8_lossy(&proof))
    }
}

// The seals of runs: the terms with which a person started each of them, kept outside the workspace.

/// The kind of the documents, and their directory.
const PURPOSE: &str = "runs";

/// The number of bytes of a journal that are read at a time.
const CHUNK: usize = 256 * 1024;

/// Saves the seal of a run, in place of an older one.
///
/// # Errors
/// [`Error::Io`], [`Error::Key`].
pub fn save(state: &UserState, seal: &RunSeal) -> Result<(), Error> {
    state.put(PURPOSE, &name(&seal.directory, &seal.run), seal)
}

/// Returns the seal of a run; `None` if there is none, or its proof does not hold.
///
/// # Errors
/// [`Error::Io`], [`Error::Key`].
pub fn find(state: &UserState, root: &RunsRoot, run: &RunId) -> Result<Option<RunSeal>, Error> {
    let directory = root.path().display().to_string();
    match state.get::<RunSeal>(PURPOSE, &name(&directory, run)) {
        Ok(seal) => Ok(seal.filter(|seal| seal.run == *run && seal.directory == directory)),
        Err(Error::Unproven { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Returns the directories in which a run of this id has not ended.
pub fn directories(state: &UserState, run: &RunId) -> Vec<PathBuf> {
    let ending = format!("-{run}.json");
    let mut names = state.names(PURPOSE).unwrap_or_default();
    names.retain(|name| name.to_string_lossy().ends_with(&ending));
    let seals = names.iter().filter_map(|name| state.get::<RunSeal>(PURPOSE, name).ok().flatten());
    seals.filter(|seal| seal.run == *run).map(|seal| seal.directory.into()).collect()
}

/// Returns the seal of a journal: its length and checksum.
///
/// # Errors
/// [`Error::Io`].
pub fn seal_of_journal(path: &Path) -> Result<SealedJournal, Error> {
    let failed = || Error::io("read", path);
    let mut file = JournalFile::open(path)?;
    let (mut hash, mut length) = (Sha256::new(), 0);
    let mut chunk = vec![0; CHUNK];
    loop {
        let count = file.read(&mut chunk).map_err(failed())?;
        if count == 0 {
            return Ok(SealedJournal { length, checksum: hexadecimal(hash.finalize()) });
        }
        length += count as u64;
        hash.update(&chunk[..count]);
    }
}

/// Removes the seal of a run that is over.
///
/// # Errors
/// [`Error::Io`].
pub fn remove(state: &UserState, root: &RunsRoot, run: &RunId) -> Result<(), Error> {
    state.remove(&name(&root.path().display().to_string(), run))
}

/// Returns the checksum of a list of pinned files; it is empty for a run without a list.
pub fn pins_checksum(pins: Option<&WorkflowPins>) -> String {
    let text = pins.and_then(|pins| serde_json::to_string(pins).ok());
    text.map_or_else(String::new, checksum)
}

/// Returns the terms of a run with these settings and these files.
pub fn sealed_terms(settings: &Settings, pins: Option<&WorkflowPins>) -> SealedTerms {
    SealedTerms { settings: settings.clone(), pins: pins_checksum(pins) }
}

fn name(directory: &str, run: &RunId) -> PathBuf {
    Path::new(PURPOSE).join(format!("{}-{run}.json", short_name(directory)))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn document_reads_back_unless_changed() {
        let place = tempfile::tempdir().expect("a directory");
        let state = UserState::new(place.path().join("state"));
        let name = Path::new("trust/a.json");
        assert_eq!(state.get::<String>("trust", name).expect("read"), None);
        state.put("trust", name, &"text").expect("written");
        assert_eq!(state.get::<String>("trust", name).expect("read"), Some("text".to_owned()));
        assert_eq!(state.names("trust").expect("listed"), [name]);
        assert!(matches!(state.get::<String>("seal", name), Err(Error::Unproven { .. })));
        let path = state.path().join(name);
        let text = std::fs::read_to_string(&path).expect("read");
        std::fs::write(&path, text.replace("text", "test")).expect("written");
        assert!(matches!(state.get::<String>("trust", name), Err(Error::Unproven { .. })));
    }

    #[test]
    fn threads_that_need_the_key_first_get_the_same() {
        for _ in 0..50 {
            let place = tempfile::tempdir().expect("a directory");
            let state = UserState::new(place.path().join("state"));
            let begin = std::sync::Barrier::new(4);
            let proof = || {
                begin.wait();
                state.key().expect("made").proof("x", b"y")
            };
            let proofs: Vec<_> = std::thread::scope(|scope| {
                let threads: Vec<_> = (0..4).map(|_| scope.spawn(proof)).collect();
                threads.into_iter().map(|thread| thread.join().expect("a proof")).collect()
            });
            let kept = state.key().expect("kept");
            assert!(proofs.iter().all(|proof| kept.holds("x", b"y", proof)));
            assert_eq!(std::fs::read_dir(state.path()).expect("listed").count(), 1, "no drafts");
        }
    }

    #[test]
    fn key_accessible_to_others_is_refused() {
        let place = tempfile::tempdir().expect("a directory");
        let state = UserState::new(place.path());
        let made = state.key().expect("made");
        let proof = made.proof("x", b"y");
        assert!(state.key().expect("read").holds("x", b"y", &proof));
        let permissions = std::fs::Permissions::from_mode;
        let file = state.key_file();
        assert_eq!(file.metadata().expect("there").permissions().mode() & 0o777, 0o600);
        std::fs::set_permissions(place.path(), permissions(0o777)).expect("changed");
        let error = state.key().expect_err("refused").to_string();
        assert!(error.contains("others can write to it"), "{error}");
        std::fs::set_permissions(place.path(), permissions(0o700)).expect("changed");
        std::fs::set_permissions(&file, permissions(0o644)).expect("changed");
        let error = state.key().expect_err("refused").to_string();
        assert!(
            error.contains("others can read or write it; restrict it with chmod 600"),
            "{error}"
        );
    }
}

#[cfg(test)]
mod turn_proofs_tests {
    use super::*;
    use crate::proof::ProofKey;
    use raymond_model::id::MessageId;
    use raymond_model::usage::ProcessSpending;

    fn proofs(key: &str) -> StepProofs {
        StepProofs { key: Some(ProofKey::new(key)), believes_unproven: false }
    }

    #[test]
    fn start_proof_is_valid_only_for_its_key_and_process() {
        let steps = tempfile::tempdir().expect("a directory");
        let file = steps.path().join("main-1-0.started");
        assert!(!proofs("k").believe_start("main-1-0", &file), "nothing is there");
        assert!(StepProofs::default().believe_start("main-1-0", &file));
        assert!(StepProofs { believes_unproven: true, ..proofs("k") }.believe_start("x", &file));
        proofs("k").prove_start("main-1-0", &file).expect("written");
        assert!(proofs("k").believe_start("main-1-0", &file));
        assert!(!proofs("l").believe_start("main-1-0", &file), "another key");
        assert!(!proofs("k").believe_start("main-2-0", &file), "another process");
    }

    #[test]
    fn turn_offset_proof_is_valid_only_for_its_turn_and_content() {
        let (process, message) = ("main-1-0".to_owned(), MessageId::new("m"));
        let turn_offset =
            TurnOffset { process, from: 7, spent: ProcessSpending::default(), message };
        let stored = proofs("k").stored_turn_offset("main-2-0", &turn_offset).expect("JSON");
        let is_believed =
            |key: &str, stem: &str, stored: &[u8]| proofs(key).believe_turn_offset(stem, stored);
        assert!(is_believed("k", "main-2-0", &stored));
        assert!(!is_believed("l", "main-2-0", &stored) && !is_believed("k", "main-3-0", &stored));
        let changed = String::from_utf8(stored).expect("text").replace(":7", ":8");
        assert!(!is_believed("k", "main-2-0", changed.as_bytes()));
        let plain = serde_json::to_vec(&turn_offset).expect("JSON");
        assert!(!is_believed("k", "main-2-0", &plain) && !is_believed("k", "main-2-0", b"{"));
        assert!(StepProofs::default().believe_turn_offset("main-2-0", &plain));
        let outside = TurnOffset { process: "../x".to_owned(), ..turn_offset };
        let stored = proofs("k").stored_turn_offset("main-2-0", &outside).expect("JSON");
        assert!(!is_believed("k", "main-2-0", &stored));
    }
}

#[cfg(test)]
mod seal_tests {
    use super::*;
    use raymond_model::money::Usd;

    #[test]
    fn seal_is_found_by_run_and_directory() {
        let place = tempfile::tempdir().expect("a directory");
        let state = UserState::new(place.path());
        let root = RunsRoot::new("/w/.raymond");
        let run = RunId::parse("r").expect("a run");
        assert_eq!(find(&state, &root, &run).expect("looked"), None);
        let budget_usd = Some(Usd::from_dollars(0.01));
        let settings = Settings { budget_usd, ..Settings::default() };
        let terms = SealedTerms { settings, pins: "p".to_owned() };
        let seal = RunSeal {
            run: run.clone(),
            directory: "/w/.raymond".to_owned(),
            scope_dir: "/w/flow".to_owned(),
            first_session: "b".to_owned(),
            terms: vec![terms],
            journal: None,
        };
        save(&state, &seal).expect("kept");
        let copied = RunsRoot::new("/x/.raymond");
        assert_eq!(find(&state, &copied, &run).expect("looked"), None);
        assert_eq!(
            state.get::<RunSeal>(PURPOSE, &name("/w/.raymond", &run)).expect("proven"),
            Some(seal.clone())
        );
        assert_eq!(find(&state, &root, &run).expect("looked"), Some(seal));
        remove(&state, &root, &run).expect("removed");
        assert_eq!(find(&state, &root, &run).expect("looked"), None);
    }
}
