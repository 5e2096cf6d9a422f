//! The goldens of cases: files beside a case that a text of its run has to equal.

use super::case_report::CaseReport;
use super::discovery::{LoadedCase, shown};
use crate::cli::exit::Error;
use crate::cli::output;
use crate::domain::observed_run::ObservedRun;
use crate::language::cases::{CaseMismatch, CaseTexts};
use crate::world::scripted_files::ScriptedFiles;

/// Returns whether an expectation that does not hold is about a golden, which is written anew.
pub(super) fn is_of_golden(loaded: &LoadedCase, mismatch: &CaseMismatch) -> bool {
    let (run, texts) = (ObservedRun::default(), CaseTexts::default());
    loaded
        .case
        .expected
        .iter()
        .any(|(at, one)| *at == mismatch.at && one.golden(&run, &texts).is_some())
}

/// Writes the goldens of all cases that differ, and says which.
///
/// # Errors
/// [`Error::Io`] if one cannot be written.
pub(super) fn update(reports: &[CaseReport]) -> Result<(), Error> {
    let mut written = 0;
    for report in reports.iter().filter(|report| report.error.is_none()) {
        for (at, expectation) in &report.loaded.case.expected {
            let Some((name, text)) = expectation.golden(&report.run, &report.texts) else {
                continue;
            };
            let path = report.loaded.beside(name);
            let Some(text) = text else {
                let place = format!("{}:{}:{}", shown(&report.loaded.file), at.line, at.column);
                output::tell(&format!("{place}: {name} is not written: the run has no such text"));
                continue;
            };
            let known = report.texts.goldens.get(name);
            if known.is_some_and(|known| known.trim_end() == text.trim_end()) {
                continue;
            }
            // A folder of others may have a link in the place of a golden.
            let write = vec![(name.to_owned(), format!("{}\n", text.trim_end()))];
            let files = ScriptedFiles { write, delete: Vec::new() };
            files.apply(&report.loaded.beside(""), &[], "golden").map_err(|why| {
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
