//! Finds the files that a pattern names.
//!
//! A pattern is matched name by name, as in a shell: `*` and `?` do not match a `/`, `**`
//! stands for any number of directories, `[…]` and `{…,…}` for one of several, and a name that begins
//! with a dot is found only by a pattern that does. Only files are found. Symbolic links are followed
//! if they stay inside the workspace, but never by `**`, which would run in circles.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use globset::{GlobBuilder, GlobMatcher};

use super::paths::{FileAccess, resolve};

/// The maximum number of files that are found.
const MAX_FILES: usize = 100_000;

/// The maximum number of names that are checked.
const MAX_ENTRIES_READ: usize = 2_000_000;

/// A part of a pattern between slashes.
enum GlobSegment {
    /// This exact name.
    Name(String),
    /// Any name that matches.
    Like(GlobMatcher, bool),
    /// Any directories.
    Directories,
}

/// Returns the paths of the files, below the root and in order.
pub(super) fn glob(root: &Path, pattern: &str) -> Result<Vec<String>, String> {
    let parts = parse(root, pattern)?;
    let mut walk = GlobWalk { root, pattern, directories: false, found: BTreeSet::new(), looks: 0 };
    walk.down(root, "", &parts)?;
    Ok(walk.found.into_iter().collect())
}

/// Returns the paths of the directories that a pattern names, below the root and in order.
pub(super) fn glob_directories(root: &Path, pattern: &str) -> Result<Vec<String>, String> {
    let parts = parse(root, pattern)?;
    let mut walk = GlobWalk { root, pattern, directories: true, found: BTreeSet::new(), looks: 0 };
    walk.down(root, "", &parts)?;
    Ok(walk.found.into_iter().collect())
}

/// Returns whether a pattern names a file, or a directory if it ends with a `/`.
pub(super) fn glob_exists(root: &Path, pattern: &str) -> Result<bool, String> {
    let find = if pattern.ends_with('/') { glob_directories } else { glob };
    find(root, pattern).map(|found| !found.is_empty())
}

fn parse(root: &Path, pattern: &str) -> Result<Vec<GlobSegment>, String> {
    if pattern.trim().is_empty() {
        return Err("the pattern is empty: name files, such as `docs/**/*.md`".to_owned());
    }
    let below = match Path::new(pattern).strip_prefix(root) {
        Ok(below) => below.to_str().unwrap_or(pattern),
        Err(_) => pattern,
    };
    if below.starts_with('/') || below.split('/').any(|name| name == "..") {
        let root = root.display();
        return Err(format!("the pattern `{pattern}` leads out of the workspace {root}"));
    }
    let mut parts = Vec::new();
    for name in below.split('/').filter(|name| !name.is_empty() && *name != ".") {
        match name {
            "**" if matches!(parts.last(), Some(GlobSegment::Directories)) => {}
            "**" => parts.push(GlobSegment::Directories),
            _ if name.contains(['*', '?', '[', ']', '{', '}', '\\']) => {
                parts.push(like(name, pattern)?);
            }
            _ => parts.push(GlobSegment::Name(name.to_owned())),
        }
    }
    Ok(parts)
}

fn like(name: &str, pattern: &str) -> Result<GlobSegment, String> {
    let glob = GlobBuilder::new(name).literal_separator(true).backslash_escape(true).build();
    let glob = glob.map_err(|error| {
        format!(
            "the pattern `{pattern}` is not one, at `{name}`: {} (`{{…}}` may have no `/`)",
            error.kind()
        )
    })?;
    Ok(GlobSegment::Like(glob.compile_matcher(), name.starts_with(['.', '{', '[', '\\'])))
}

struct GlobWalk<'walk> {
    root: &'walk Path,
    pattern: &'walk str,
    /// True if directories are looked for, and no files.
    directories: bool,
    found: BTreeSet<String>,
    looks: usize,
}

impl GlobWalk<'_> {
    /// Continues in the directory `here`, which is `below` the root, with the rest of the pattern.
    fn down(&mut self, here: &Path, below: &str, parts: &[GlobSegment]) -> Result<(), String> {
        let Some((part, rest)) = parts.split_first() else { return Ok(()) };
        match part {
            GlobSegment::Name(name) => self.enter(here, below, name, rest),
            GlobSegment::Like(glob, dotted) => {
                for (name, _) in self.names(here)? {
                    if (*dotted || !name.starts_with('.')) && glob.is_match(&name) {
                        self.enter(here, below, &name, rest)?;
                    }
                }
                Ok(())
            }
            GlobSegment::Directories => {
                // At the end of a pattern it stands for all files below.
                if rest.is_empty() {
                    for (name, _) in self.names(here)?.into_iter().filter(|(name, _)| visible(name))
                    {
                        self.enter(here, below, &name, rest)?;
                    }
                }
                self.down(here, below, rest)?;
                for (name, is_dir) in self.names(here)? {
                    if is_dir && visible(&name) {
                        self.down(&here.join(&name), &joined(below, &name), parts)?;
                    }
                }
                Ok(())
            }
        }
    }

    fn enter(
        &mut self,
        here: &Path,
        below: &str,
        name: &str,
        rest: &[GlobSegment],
    ) -> Result<(), String> {
        let below = joined(below, name);
        // A link that leads out of the workspace is ignored.
        let Ok(path) = resolve(self.root, &here.join(name).to_string_lossy(), FileAccess::Read)
        else {
            return Ok(());
        };
        if !rest.is_empty() {
            return if path.is_dir() { self.down(&path, &below, rest) } else { Ok(()) };
        }
        if if self.directories { path.is_dir() } else { path.is_file() } {
            self.found.insert(below);
        }
        if self.found.len() > MAX_FILES {
            return Err(self.too_many(&format!("names more than {MAX_FILES} files")));
        }
        Ok(())
    }

    /// Returns the names in a directory that are text, and whether they are directories themselves.
    fn names(&mut self, here: &Path) -> Result<Vec<(String, bool)>, String> {
        // A directory that is gone or not readable has no names.
        let Ok(entries) = std::fs::read_dir(here) else { return Ok(Vec::new()) };
        let mut names = Vec::new();
        for entry in entries.filter_map(Result::ok) {
            self.looks += 1;
            if self.looks > MAX_ENTRIES_READ {
                return Err(
                    self.too_many(&format!("has more than {MAX_ENTRIES_READ} names looked at"))
                );
            }
            if let Ok(name) = entry.file_name().into_string() {
                names.push((name, entry.file_type().is_ok_and(|kind| kind.is_dir())));
            }
        }
        Ok(names)
    }

    fn too_many(&self, what: &str) -> String {
        format!("the pattern `{}` {what}: make it narrower", self.pattern)
    }
}

fn visible(name: &str) -> bool {
    !name.starts_with('.')
}

fn joined(below: &str, name: &str) -> String {
    let path: PathBuf = [below, name].iter().collect();
    path.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn ground() -> (tempfile::TempDir, PathBuf) {
        let kept = tempfile::tempdir().expect("a directory");
        let base = kept.path().canonicalize().expect("it is there");
        let root = base.join("root");
        for file in ["a.md", "b.txt", "docs/c.md", "docs/deep/d.md", ".source/x/e.md", ".hidden.md"]
        {
            let path = root.join(file);
            std::fs::create_dir_all(path.parent().expect("one")).expect("made");
            std::fs::write(path, "").expect("written");
        }
        std::fs::write(base.join("outside.md"), "").expect("written");
        symlink("..", root.join("docs/up")).expect("linked");
        symlink("../../outside.md", root.join("docs/out.md")).expect("linked");
        symlink("docs", root.join("same")).expect("linked");
        (kept, root)
    }

    fn named(root: &Path, pattern: &str) -> String {
        glob(root, pattern).expect(pattern).join(" ")
    }

    #[test]
    fn glob_pattern_matches_files_like_a_shell() {
        let (_kept, root) = &ground();
        assert_eq!(named(root, "*.md"), "a.md");
        assert_eq!(named(root, "**/*.md"), "a.md docs/c.md docs/deep/d.md");
        assert_eq!(named(root, "docs/**"), "docs/c.md docs/deep/d.md");
        assert_eq!(named(root, "docs/**/deep/**/*.md"), "docs/deep/d.md");
        assert_eq!(named(root, "{a,b}.*"), "a.md b.txt");
        assert_eq!(named(root, "[ab].md"), "a.md");
        assert_eq!(named(root, ".source/*/*.md"), ".source/x/e.md");
        assert_eq!(named(root, ".*.md"), ".hidden.md");
        assert_eq!(named(root, "docs"), "", "a directory is no file");
        assert_eq!(named(root, "none/*.md"), "");
        assert_eq!(named(root, &root.join("*.txt").display().to_string()), "b.txt");
    }

    #[test]
    fn glob_follows_links_inside_workspace_without_loops() {
        let (_kept, root) = &ground();
        assert_eq!(named(root, "same/*.md"), "same/c.md");
        assert_eq!(named(root, "docs/*.md"), "docs/c.md", "the link out is not there");
        assert_eq!(named(root, "docs/up/*.md"), "docs/up/a.md");
    }

    #[test]
    fn invalid_or_outside_glob_pattern_is_refused() {
        let (_kept, root) = &ground();
        let why = |pattern: &str| glob(root, pattern).expect_err("refused");
        assert!(why("../*").contains("leads out of the workspace"));
        assert!(why("/etc/*").contains("leads out of the workspace"));
        assert!(why("").contains("the pattern is empty"));
        assert!(why("a[").starts_with("the pattern `a[` is not one, at `a[`: "));
        assert!(why("{a/b,c}").contains("may have no `/`"));
    }
}
