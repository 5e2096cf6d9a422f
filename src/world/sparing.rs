//! What no graph may change: the directory of the runs, wherever it is.
//!
//! A journal that a workflow could write into would promise nothing.

use std::path::{Path, PathBuf};

use super::paths::{Use, resolve};
use crate::domain::operation::Operation;

/// Refuses an operation that would change something in the directory of the runs.
pub(super) fn spare(root: &Path, runs: &Path, operation: &Operation) -> Result<(), String> {
    let Some((given, wanted)) = changes(operation) else { return Ok(()) };
    let path = resolve(root, given, wanted)?;
    let runs: PathBuf = runs.canonicalize().unwrap_or_else(|_| runs.to_owned());
    if path.starts_with(&runs) || (wanted != Use::Read && runs.starts_with(&path)) {
        return Err(format!(
            "the path `{given}` is in {}, which raymond keeps its runs in: write elsewhere",
            runs.display()
        ));
    }
    Ok(())
}

/// The path an operation changes, if it changes one that the graph names.
fn changes(operation: &Operation) -> Option<(&str, Use)> {
    match operation {
        Operation::WriteFile { path, .. }
        | Operation::AppendToFile { path, .. }
        | Operation::CacheWebContent { dest: path, .. }
        | Operation::CloneRepo { dest: path, .. } => Some((path, Use::Write)),
        Operation::DeleteFile { path } => Some((path, Use::Remove)),
        Operation::CreateDirectory { path } | Operation::GitPull { repo_path: path } => {
            Some((path, Use::Read))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_journal_is_not_a_graphs_to_write() {
        let kept = tempfile::tempdir().expect("a directory");
        let root = kept.path().canonicalize().expect("it is there");
        let runs = root.join("mine");
        std::fs::create_dir_all(runs.join("runs/z")).expect("made");
        let write = |path: &str| {
            let (path, content) = (path.to_owned(), String::new());
            spare(&root, &runs, &Operation::WriteFile { path, content })
        };
        let refused = write("mine/runs/z/journal.jsonl").expect_err("refused");
        assert!(refused.ends_with("which raymond keeps its runs in: write elsewhere"), "{refused}");
        assert_eq!(write("minerals/x"), Ok(()));
        let delete = Operation::DeleteFile { path: "mine/runs/z/state.json".into() };
        assert!(spare(&root, &runs, &delete).is_err());
        assert_eq!(spare(&root, &runs, &Operation::ConfigExists), Ok(()));
    }
}
