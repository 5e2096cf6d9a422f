//! Protects what no graph may change: the directories of runs and worktrees, and files that programs obey.
//!
//! A journal that a workflow could write into would prove nothing. A worktree is the working directory of one agent,
//! and other agents must not change it. Files that programs obey need trust in the workflow.

use std::path::Path;

use crate::glob::{FileAccess, resolve};
use raymond_model::operation::Operation;
use raymond_model::privilege::obeyed_name;

/// The protected directories below raymond's own, and their purposes.
const PROTECTED_DIRECTORIES: [(&str, &str); 3] = [
    ("runs", "its runs in"),
    ("worktrees", "the worktrees of agents in"),
    ("dataspace", "the facts of runs in"),
];

/// Refuses an operation that would change something in the protected directories of `dir`, or, if the workflow is not
/// `trusted`, a file that programs obey.
pub(super) fn check_protected_paths(
    root: &Path,
    dir: &Path,
    operation: &Operation,
    is_trusted: bool,
) -> Result<(), String> {
    let Some((given, wanted)) = changes(operation) else { return Ok(()) };
    let path = resolve(root, given, wanted)?;
    // An entry in this list starts nothing, and the operation writes nothing else.
    let is_list = matches!(operation, Operation::UpdateMarketplaceJson { .. })
        && path.ends_with(".claude-plugin/marketplace.json");
    let below = path.strip_prefix(root).unwrap_or(&path);
    if let Some(name) = obeyed_name(below).filter(|_| !is_trusted && !is_list) {
        return Err(format!(
            "the path `{given}` has the name {}, and programs obey hidden files and those with such names: write elsewhere, or trust the workflow's folder with --trust",
            name.display()
        ));
    }
    for (name, what) in PROTECTED_DIRECTORIES {
        let kept = dir.join(name);
        let kept = kept.canonicalize().unwrap_or(kept);
        let inside = path.starts_with(&kept) && !root.starts_with(&kept);
        if inside || (wanted != FileAccess::Read && kept.starts_with(&path)) {
            return Err(format!(
                "the path `{given}` is in {}, which raymond keeps {what}: write elsewhere",
                kept.display()
            ));
        }
    }
    Ok(())
}

/// Returns the path that an operation changes, if the graph names it.
fn changes(operation: &Operation) -> Option<(&str, FileAccess)> {
    match operation {
        Operation::WriteFile { path, .. }
        | Operation::AppendToFile { path, .. }
        | Operation::CacheWebContent { dest: path, .. }
        | Operation::UpdateMarketplaceJson { marketplace_path: path, .. }
        | Operation::CloneRepo { dest: path, .. } => Some((path, FileAccess::Write)),
        Operation::DeleteFile { path } => Some((path, FileAccess::Remove)),
        Operation::CreateDirectory { path }
        | Operation::ApplyLogRetention { location: path, .. }
        | Operation::GitPull { repo_path: path } => {
            Some((path, FileAccess::Read))
        }
        // These operations only read, or change the configuration, whose path no graph names.
        Operation::ConfigExists
        | Operation::IndexExists
        | Operation::IndexIsPlaceholder
        | Operation::FileExists { .. }
        | Operation::DirectoryExists { .. }
        | Operation::SourceExists { .. }
        | Operation::SourceCloned { .. }
        | Operation::SourceHasUpdates { .. }
        | Operation::ToolAvailable { .. }
        | Operation::PythonModuleAvailable { .. }
        | Operation::AnyFileExists { .. }
        | Operation::GlobExists { .. }
        | Operation::DiscoverPlugins { .. }
        | Operation::DiscoverUserPlugins { .. }
        | Operation::WriteConfig { .. }
        | Operation::UpdateConfigIndexMetadata { .. }
        | Operation::BashCheck { .. }
        | Operation::ReadConfig
        | Operation::ReadFile { .. }
        | Operation::GlobFiles { .. }
        | Operation::GlobCount { .. }
        | Operation::GetSha { .. }
        | Operation::GitFetch { .. }
        | Operation::WebFetch { .. }
        | Operation::AddSource { .. }
        | Operation::UpdateSource { .. }
        | Operation::WriteConfigEntry { .. }
        // These operations need trust, or belong to the program that uses the library.
        | Operation::BashExec(_)
        | Operation::RunScript { .. }
        | Operation::Own { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(path: &str) -> Operation {
        Operation::WriteFile { path: path.to_owned(), content: String::new() }
    }

    #[test]
    fn write_into_runs_dir_is_refused() {
        let kept = tempfile::tempdir().expect("a directory");
        let root = kept.path().canonicalize().expect("it is there");
        let mine = root.join("mine");
        std::fs::create_dir_all(mine.join("runs/z")).expect("made");
        let write = |path: &str| check_protected_paths(&root, &mine, &write(path), false);
        let refused = write("mine/runs/z/journal.jsonl").expect_err("refused");
        assert!(refused.ends_with("which raymond keeps its runs in: write elsewhere"), "{refused}");
        assert_eq!(write("minerals/x"), Ok(()));
        let delete = Operation::DeleteFile { path: "mine/runs/z/state.json".into() };
        assert!(check_protected_paths(&root, &mine, &delete, false).is_err());
        assert_eq!(check_protected_paths(&root, &mine, &Operation::ConfigExists, false), Ok(()));
    }

    #[test]
    fn files_that_programs_obey_need_trust_also_behind_a_link() {
        let kept = tempfile::tempdir().expect("a directory");
        let root = kept.path().canonicalize().expect("it is there");
        std::fs::create_dir(root.join(".github")).expect("made");
        std::os::unix::fs::symlink(".github", root.join("ci")).expect("linked");
        let check = |path: &str, is_trusted| {
            check_protected_paths(&root, &root.join("mine"), &write(path), is_trusted)
        };
        for path in [".vimrc", "ci/x.yml", "a/../Makefile", "web/.env", "CLAUDE.md"] {
            let why = check(path, false).expect_err("refused");
            assert!(why.contains("programs obey") && why.contains("--trust"), "{why}");
            assert_eq!(check(path, true), Ok(()), "{path}");
        }
        assert!(check(".git/config", true).is_err(), "only a command may");
        assert_eq!(check("notes/a.md", false), Ok(()));
        let list = Operation::UpdateMarketplaceJson {
            marketplace_path: ".claude-plugin/marketplace.json".into(),
            plugin_name: "a".into(),
            plugin_path: "./a".into(),
        };
        assert_eq!(check_protected_paths(&root, &root.join("mine"), &list, false), Ok(()));
    }

    #[test]
    fn worktree_is_writable_only_by_its_own_agent() {
        let kept = tempfile::tempdir().expect("a directory");
        let root = kept.path().canonicalize().expect("it is there");
        let mine = root.join("mine");
        let tree = mine.join("worktrees/z/main.1");
        std::fs::create_dir_all(&tree).expect("made");
        for path in ["mine/worktrees/z/main.1/x", "mine/worktrees/z/main.1.json"] {
            let refused =
                check_protected_paths(&root, &mine, &write(path), false).expect_err("refused");
            assert!(refused.contains("keeps the worktrees of agents in"), "{refused}");
        }
        assert_eq!(check_protected_paths(&tree, &mine, &write("x"), false), Ok(()));
        for path in ["../main.1.json", "../main.2/x"] {
            assert!(
                check_protected_paths(&tree, &mine, &write(path), false).is_err(),
                "{path} was taken"
            );
        }
    }
}
