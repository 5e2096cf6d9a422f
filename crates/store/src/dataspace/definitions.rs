//! Defined programs: kept as they were when they were defined, to be started by their names.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{Dataspace, entries, fact, is_absent, remove};
use crate::capture::WorkflowCapture;
use crate::{Error, files, pinned, plain_file};
use raymond_model::json_mistake::placed_mistake;
use raymond_model::sealed_terms::WorkflowPins;
use raymond_model::time::Timestamp;

/// The longest file of a definition, in bytes.
const MAX_LENGTH: u64 = 16 * 1024 * 1024;

/// The purpose of the proofs of definitions.
const DEFINITION: &str = "definition";

/// A program as it was when it was defined.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DefinedProgram {
    pub name: String,
    /// The label for people, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Its file, where it was defined.
    pub file: PathBuf,
    /// The checksum of its text.
    pub program: String,
    pub text: String,
    /// The time at which it was defined.
    pub at: Timestamp,
    /// The checksums of the files of its folder, which are kept with it; an earlier raymond kept none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pins: Option<WorkflowPins>,
}

/// The programs that were defined.
#[derive(Debug, Default)]
pub struct ProgramListing {
    /// The programs, by name.
    pub defined: Vec<DefinedProgram>,
    /// The files that are not definitions, and the reasons.
    pub warnings: Vec<String>,
}

impl Dataspace {
    /// Keeps a program with the files of its folder, and replaces an older program with its name. It is durable when
    /// this returns.
    ///
    /// # Errors
    /// [`Error::Unfit`] if its name is too long, [`Error::Io`].
    pub fn define(&self, defined: &DefinedProgram, folder: &WorkflowCapture) -> Result<(), Error> {
        let path = self.definition(&defined.name)?;
        files::make_dir(&self.definitions())?;
        let (contents, copy) = self.kept_files(&defined.name)?;
        remove(&contents)?;
        files::save(&contents, folder)?;
        replace_copy(&copy, folder)?;
        let text = fact::close(defined, self.key.as_ref(), DEFINITION)
            .map_err(std::io::Error::other)
            .map_err(Error::io("write", &path))?;
        files::replace(&path, &text)
    }

    /// Returns the file of a defined program, in a folder that is as it was when the program was defined: its own, or a
    /// copy.
    ///
    /// # Errors
    /// [`Error::Io`], also if the kept files are damaged.
    pub fn file_of(&self, defined: &DefinedProgram) -> Result<PathBuf, Error> {
        let Some(pins) = &defined.pins else { return Ok(defined.file.clone()) };
        let own = defined.file.parent().unwrap_or(Path::new("."));
        let apart = self.path.parent().unwrap_or(&self.path);
        if WorkflowCapture::of(own, apart).is_ok_and(|own| own.pins() == *pins) {
            return Ok(defined.file.clone());
        }
        let (contents, copy) = self.kept_files(&defined.name)?;
        if !pinned::is_copy_whole(&copy, pins) {
            let folder = files::load(&contents, std::slice::from_ref(&copy), pins)?;
            let damaged = || {
                std::io::Error::other(
                    "it has changed since it was stored; define the program again",
                )
            };
            let folder = folder.ok_or_else(damaged).map_err(Error::io("read", &contents))?;
            replace_copy(&copy, &folder)?;
        }
        Ok(defined.file.file_name().map_or_else(|| copy.clone(), |name| copy.join(name)))
    }

    /// Returns the places of the kept files of a program: their contents, and the copy of its folder.
    fn kept_files(&self, program: &str) -> Result<(PathBuf, PathBuf), Error> {
        let name = fact::of_key(program)?;
        let within = |ending: &str| self.definitions().join(format!("{name}.{ending}"));
        Ok((within("contents"), within("files")))
    }

    /// Returns the program of a name, if it was defined.
    ///
    /// # Errors
    /// [`Error::Io`], also for a file that is not a definition.
    pub fn defined(&self, name: &str) -> Result<Option<DefinedProgram>, Error> {
        let path = self.definition(name)?;
        match plain_file::read(&path, MAX_LENGTH) {
            Ok(bytes) => fact::open(&bytes, self.key.as_ref(), DEFINITION)
                .map(Some)
                .map_err(std::io::Error::other)
                .map_err(Error::io("read", &path)),
            Err(error) if is_absent(&error) => Ok(None),
            Err(error) => Err(Error::io("read", &path)(error)),
        }
    }

    /// Returns all programs that were defined, by name.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn all_defined(&self) -> Result<ProgramListing, Error> {
        let mut all = ProgramListing::default();
        for path in entries(&self.definitions())? {
            if path.extension().is_some_and(|ending| ending == "json") {
                let read = plain_file::read(&path, MAX_LENGTH);
                let defined = read.and_then(|bytes| {
                    serde_json::from_slice::<DefinedProgram>(&bytes)
                        .map_err(|error| std::io::Error::other(placed_mistake(&error)))
                });
                match defined {
                    Ok(defined) => all.defined.push(defined),
                    Err(error) => all.warnings.push(format!(
                        "{}: this is not a definition ({error}); remove the file",
                        path.display()
                    )),
                }
            }
        }
        all.defined.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(all)
    }

    fn definitions(&self) -> PathBuf {
        self.path.join("definitions")
    }

    fn definition(&self, name: &str) -> Result<PathBuf, Error> {
        Ok(self.definitions().join(format!("{}.json", fact::of_key(name)?)))
    }
}

/// Replaces the copy of a folder.
fn replace_copy(copy: &Path, folder: &WorkflowCapture) -> Result<(), Error> {
    match std::fs::remove_dir_all(copy) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            return Err(Error::io("remove the directory", copy)(error));
        }
        _ => {}
    }
    folder.write(copy)
}
