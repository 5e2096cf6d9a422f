//! Removes old log files by the dates in their names.

use std::path::Path;

use super::files;
use super::paths::{FileAccess, resolve};

/// The ends of the names of log files.
const ENDS: [&str; 3] = [".yaml", ".json", ".md"];

/// Removes the log files from before a date, and all but the newest `count`. Returns the number of files that were
/// removed. Only files that have a date in their name count as log files.
pub(super) fn remove_old(
    root: &Path,
    location: &str,
    since: Option<&str>,
    count: Option<u32>,
) -> Result<usize, String> {
    let directory = resolve(root, location, FileAccess::Read)?;
    // Without the directory there is no log file.
    let Ok(entries) = std::fs::read_dir(&directory) else { return Ok(0) };
    let files = entries
        .filter_map(Result::ok)
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file()));
    let names = files.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    let old = old(names, since, count);
    for name in &old {
        files::delete(root, &format!("{}/{name}", directory.display()))?;
    }
    Ok(old.len())
}

/// Returns the names of the files that are not kept.
fn old(names: Vec<String>, since: Option<&str>, count: Option<u32>) -> Vec<String> {
    let dated = names.into_iter().filter(|name| ENDS.iter().any(|end| name.ends_with(end)));
    let mut dated: Vec<(String, String)> =
        dated.filter_map(|name| Some((date(&name)?.to_owned(), name))).collect();
    dated.sort();
    dated.reverse();
    let kept = count.map_or(usize::MAX, |count| usize::try_from(count).unwrap_or(usize::MAX));
    let is_old = |(place, (date, _)): &(usize, (String, String))| {
        *place >= kept || since.is_some_and(|since| date.as_str() < since)
    };
    dated.into_iter().enumerate().filter(is_old).map(|(_, (_, name))| name).collect()
}

/// Returns the name from its date on, such as `2026-01-15-143022.yaml`.
fn date(name: &str) -> Option<&str> {
    let is_date = |part: &str| {
        let bytes = part.as_bytes();
        bytes.len() >= 10
            && bytes[..10].iter().enumerate().all(|(place, byte)| match place {
                4 | 7 => *byte == b'-',
                _ => byte.is_ascii_digit(),
            })
    };
    name.char_indices().map(|(place, _)| &name[place..]).find(|part| is_date(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: [&str; 6] = [
        "refresh-2026-01-15-100000.yaml",
        "refresh-2026-01-16-090000.yaml",
        "refresh-2026-01-16-100000.json",
        "README.md",
        "2026-01-01.txt",
        "notes.yaml",
    ];

    fn names() -> Vec<String> {
        NAMES.map(str::to_owned).to_vec()
    }

    #[test]
    fn files_before_date_and_beyond_count_are_old_and_undated_ones_are_kept() {
        assert_eq!(old(names(), Some("2026-01-16"), None), [NAMES[0]]);
        assert_eq!(old(names(), None, Some(1)), [NAMES[1], NAMES[0]]);
        assert_eq!(old(names(), None, Some(0)).len(), 3);
        assert!(old(names(), None, None).is_empty());
    }

    #[test]
    fn old_files_are_removed_and_repetition_removes_none() {
        let kept = tempfile::tempdir().expect("a directory");
        let root = kept.path().canonicalize().expect("there");
        assert_eq!(remove_old(&root, "logs/", None, Some(1)), Ok(0), "there is no directory");
        std::fs::create_dir(root.join("logs")).expect("made");
        for name in NAMES {
            std::fs::write(root.join("logs").join(name), "x").expect("written");
        }
        assert_eq!(remove_old(&root, "logs/", None, Some(1)), Ok(2));
        assert_eq!(remove_old(&root, "logs/", None, Some(1)), Ok(0));
        assert!(root.join("logs").join(NAMES[2]).exists());
        assert!(remove_old(&root, "../..", None, Some(0)).is_err());
    }
}
