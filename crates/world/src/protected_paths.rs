//! Protects what no graph may change: the directories of runs and worktrees, and files that programs obey.
//!
//! A journal that a workflow could write into would prove nothing. A worktree is the working directory of one agent,
//! and other agents must not change it. Files that programs obey need trust in the workflow.

use std::path::Path;

use crate::glob::resolve;
use raymond_model::graph_types::FileAccess;
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
    let Some((given, changed)) = operation.changed_path() else { return Ok(()) };
    let wanted = changed.access;
    let path = resolve(root, given, wanted)?;
    let is_harmless = changed.harmless.is_some_and(|end| path.ends_with(end));
    let below = path.strip_prefix(root).unwrap_or(&path);
    if let Some(name) = obeyed_name(below).filter(|_| !is_trusted && !is_harmless) {
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

#[cfg(test)]
mod tests {
    use serde_json::json;

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
        assert_eq!(
            check_protected_paths(
                &root,
                &mine,
                &Operation::FileExists { path: "mine/runs".into() },
                false
            ),
            Ok(())
        );
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
        let list = |path: &str| {
            let plugin = json!({
                "type": "update_marketplace_json", "marketplace_path": path,
                "plugin_name": "a", "plugin_path": "./a",
            });
            let operation = serde_json::from_value(plugin).expect("an operation");
            check_protected_paths(&root, &root.join("mine"), &operation, false)
        };
        assert_eq!(list(".claude-plugin/marketplace.json"), Ok(()));
        assert!(list(".vimrc").is_err(), "only that list needs no trust");
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
