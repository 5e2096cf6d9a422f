//! The note to a turn that is run again in a worktree which an earlier attempt has left changed. Pure.

use super::turn::FailureCause;

/// The number of changed files that are named.
const NAMED_FILES: usize = 40;

/// Returns the note on the files that differ from the last commit, as git lists them; `None` if there are none.
pub fn note_on_changes(cause: FailureCause, status: &str) -> Option<String> {
    let files: Vec<&str> = status.lines().filter(|line| !line.trim().is_empty()).collect();
    if files.is_empty() {
        return None;
    }
    let named = files.iter().take(NAMED_FILES).copied().collect::<Vec<_>>().join("\n");
    let more = match files.len().saturating_sub(NAMED_FILES) {
        0 => String::new(),
        more => format!("\n({more} more)"),
    };
    Some(format!(
        "An earlier attempt at this was interrupted ({cause}), and you know nothing of it. These files in your worktree are not committed, and may have been changed by it (`git status --short`):\n\n{named}{more}\n\nLook at them first, and do not repeat what is done already."
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changed_files_are_named_up_to_a_number() {
        assert_eq!(note_on_changes(FailureCause::Crash, "\n"), None);
        let noted = |status: &str| note_on_changes(FailureCause::Crash, status).expect("a note");
        let few = noted(" M notes.txt\n?? new.txt\n");
        assert!(few.contains(" M notes.txt\n?? new.txt\n\n"), "{few}");
        assert!(few.contains("interrupted (crash)"), "{few}");
        let many = noted(&"?? x\n".repeat(1000));
        assert!(many.contains("(960 more)") && many.len() < 1000, "{many}");
    }
}
