//! The goldens of cases: files beside a case that a text of its run has to equal.

use std::path::Path;

use super::case_report::CaseReport;
use super::discovery::shown;
use crate::cli::exit::Error;
use crate::cli::output;
use crate::language::cases::CaseMismatch;
use crate::world::scripted_files::ScriptedFiles;

/// Returns whether an expectation that does not hold is about a golden that is written anew: the run has such a text.
pub(super) fn is_renewed(report: &CaseReport, mismatch: &CaseMismatch) -> bool {
    let expected = report.loaded.case.expected.iter();
    let mut own = expected.filter(|(at, _)| *at == mismatch.at);
    own.any(|(_, one)| matches!(one.golden(&report.run, &report.texts), Some((_, Some(_)))))
}

/// Writes the goldens of all cases that differ, and says which.
///
/// # Errors
/// [`Error::Io`] if one cannot be written.
pub(super) fn update(reports: &[CaseReport]) -> Result<(), Error> {
    let mut written = 0;
    for report in reports.iter().filter(|report| report.error.is_none()) {
        for (_, expectation) in &report.loaded.case.expected {
            // Without such a text the case fails, and its line says so.
            let Some((name, Some(text))) = expectation.golden(&report.run, &report.texts) else {
                continue;
            };
            let path = report.loaded.beside(name);
            let known = report.texts.goldens.get(name);
            if known.is_some_and(|known| known.trim_end() == text.trim_end()) {
                continue;
            }
            // A folder of others may have a link in the place of a golden.
            let write = vec![(name.to_owned(), format!("{}\n", text.trim_end()))];
            let files = ScriptedFiles { write, delete: Vec::new() };
            let folder = report.loaded.beside("");
            let made = if is_within(&folder, &report.loaded.workflow) {
                files.apply(&folder, &[], "golden")
            } else {
                Err("a link leads out of the workflow's folder".to_owned())
            };
            made.map_err(|why| {
                let error = std::io::Error::other(why);
                Error::Io { doing: "write the golden", path: path.clone(), error }
            })?;
            output::tell(&format!("{}: written", shown(&path)));
            written += 1;
        }
    }
    if written == 0 {
        output::tell("no golden has changed");
    }
    Ok(())
}

/// Returns whether a folder really lies in another one.
fn is_within(folder: &Path, other: &Path) -> bool {
    match (folder.canonicalize(), other.canonicalize()) {
        (Ok(folder), Ok(other)) => folder.starts_with(other),
        (Ok(_) | Err(_), Err(_)) | (Err(_), Ok(_)) => false,
    }
}
