//! The files in which Claude Code keeps its sessions: one for each, below a folder for the directory it ran in.
//!
//! Claude Code removes old ones by itself, 30 days after their last turn by default.

use std::collections::BTreeSet;
use std::path::Path;

use crate::domain::id::SessionId;

/// Returns the sessions that have no file in Claude Code's own directory, sorted.
///
/// # Errors
/// The directory cannot be read.
pub fn missing_sessions(
    config_dir: &Path,
    sessions: impl IntoIterator<Item = SessionId>,
) -> std::io::Result<BTreeSet<SessionId>> {
    let mut missing: BTreeSet<SessionId> = sessions.into_iter().collect();
    if missing.is_empty() {
        return Ok(missing);
    }
    let folders = match std::fs::read_dir(config_dir.join("projects")) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(missing),
        folders => folders?,
    };
    for folder in folders {
        let folder = folder?.path();
        if folder.is_dir() {
            missing.retain(|id| !folder.join(format!("{id}.jsonl")).is_file());
        }
    }
    Ok(missing)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn session_is_missing_if_no_folder_has_its_file() {
        let config = tempfile::tempdir().expect("a directory");
        let missing = || {
            let asked = ["a", "b"].map(SessionId::new);
            let found = missing_sessions(config.path(), asked).expect("read");
            found.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(missing(), ["a", "b"], "there is no directory at all");
        for folder in ["-home-x", "-home-y"] {
            std::fs::create_dir_all(config.path().join("projects").join(folder)).expect("made");
        }
        std::fs::write(config.path().join("projects/-home-y/b.jsonl"), "").expect("written");
        assert_eq!(missing(), ["a"]);
        assert!(missing_sessions(config.path(), []).expect("read").is_empty());
    }
}
