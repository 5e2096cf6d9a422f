//! The folders that Claude Code's own tools must leave alone, as rules that deny. Pure.
//!
//! They hold in every permission mode. They do not bind a command that an agent is allowed to run, so raymond also
//! proves the files that it has to believe.

use std::path::{Path, PathBuf};

/// The folders of a user's runs, and of raymond's own state for the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProtectedFolders {
    /// The directory of the runs, the facts and the worktrees.
    pub all_runs: PathBuf,
    /// The directory of the user's key.
    pub user_state: PathBuf,
}

impl ProtectedFolders {
    /// Returns the rules. They leave out the worktrees, in which agents work.
    pub fn deny_rules(&self) -> Vec<String> {
        let runs = rule_path(&self.all_runs);
        let state = rule_path(&self.user_state);
        vec![
            format!("Edit({runs}/runs/**)"),
            format!("Edit({runs}/dataspace/**)"),
            format!("Edit({runs}/debug/**)"),
            format!("Read({runs}/runs/*/steps/**)"),
            format!("Edit({state}/**)"),
            format!("Read({state}/**)"),
        ]
    }
}

/// Returns a path in the form of a rule: absolute after two slashes, with special characters escaped.
fn rule_path(path: &Path) -> String {
    let mut text = "/".to_owned();
    for c in path.display().to_string().chars() {
        if matches!(c, '*' | '?' | '[' | ']' | '{' | '}' | '!' | '\\') {
            text.push('\\');
        }
        text.push(c);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deny_rules_name_folders_by_absolute_path() {
        let folders = ProtectedFolders {
            all_runs: "/w/a[1]/.raymond".into(),
            user_state: "/home/u/.local/state/raymond".into(),
        };
        let rules = folders.deny_rules();
        assert_eq!(rules[0], "Edit(//w/a\\[1\\]/.raymond/runs/**)");
        assert_eq!(rules[5], "Read(//home/u/.local/state/raymond/**)");
        assert!(rules.iter().all(|rule| !rule.contains("worktrees")));
    }
}
