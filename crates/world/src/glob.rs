//! Finds the files that a pattern names, and resolves the paths of a workflow within its workspace.
//!
//! A pattern is matched name by name, as in a shell: `*` and `?` do not match a `/`, `**`
//! stands for any number of directories, `[…]` and `{…,…}` for one of several, and a name that begins
//! with a dot is found only by a pattern that does. Only files are found. Symbolic links are followed
//! if they stay inside the workspace, but never by `**`, which would run in circles.

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};

use globset::{GlobBuilder, GlobMatcher};

pub(super) use raymond_model::graph_types::FileAccess;
use raymond_model::privilege::refused_name;

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
    find(root, pattern, false)
}

/// Returns the paths of the directories that a pattern names, below the root and in order.
pub(super) fn glob_directories(root: &Path, pattern: &str) -> Result<Vec<String>, String> {
    find(root, pattern, true)
}

fn find(root: &Path, pattern: &str, directories: bool) -> Result<Vec<String>, String> {
    let parts = parse(root, pattern)?;
    let mut walk = GlobWalk { root, pattern, directories, found: BTreeSet::new(), looks: 0 };
    walk.down(root, "", &parts)?;
    Ok(walk.found.into_iter().collect())
}

/// Returns whether a pattern names a file, or a directory if it ends with a `/`.
pub(super) fn glob_exists(root: &Path, pattern: &str) -> Result<bool, String> {
    find(root, pattern, pattern.ends_with('/')).map(|found| !found.is_empty())
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

// Resolves paths of a workflow, and refuses those that lead outside the workspace.
//
// A path is walked name by name. A symbolic link in it is resolved by the system, so the result has neither links nor
// `..` in it, and it is inside the root or refused. Between this and its use a program that may write in the workspace
// could add a link: such a program can do as much harm without raymond. The check keeps out paths that a workflow, or a
// model's output in it, should not name.

/// The directory of runs, where nothing may write but raymond itself.
const RUNS_DIRECTORY: &str = ".raymond";

/// The directory in it that workflows may write, such as the list of a fan-out; git ignores it with the rest.
const SCRATCH: &str = ".raymond/tmp";

/// Resolves `given` below `root`, which is canonical.
pub(super) fn resolve(root: &Path, given: &str, wanted: FileAccess) -> Result<PathBuf, String> {
    check(given)?;
    let path = Path::new(given);
    let mut here = if path.is_absolute() { PathBuf::from("/") } else { root.to_owned() };
    let mut components = path.components().peekable();
    while let Some(component) = components.next() {
        match component {
            Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
            Component::ParentDir => {
                here.pop();
            }
            Component::Normal(name) => {
                here.push(name);
                let last = components.peek().is_none();
                if !(last && wanted == FileAccess::Remove) {
                    follow(&mut here, given, wanted)?;
                }
            }
        }
    }
    let Ok(below) = here.strip_prefix(root) else {
        return Err(format!(
            "the path `{given}` leads out of the workspace {}: name one below it",
            root.display()
        ));
    };
    if wanted != FileAccess::Read {
        may_change(below, given)?;
    } else if below.ends_with("raymond/key") {
        return Err(format!("the path `{given}` is a key of raymond's, which no workflow reads"));
    }
    Ok(here)
}

fn check(given: &str) -> Result<(), String> {
    if given.trim().is_empty() {
        return Err("the path is empty: name one below the workspace".to_owned());
    }
    if given.contains('\0') {
        return Err(format!("the path {given:?} contains a NUL character"));
    }
    Ok(())
}

/// Replaces a link by its target.
fn follow(here: &mut PathBuf, given: &str, wanted: FileAccess) -> Result<(), String> {
    let missing = |kind| matches!(kind, ErrorKind::NotFound | ErrorKind::NotADirectory);
    let is_link = match std::fs::symlink_metadata(&*here) {
        Ok(found) => found.is_symlink(),
        Err(error) if missing(error.kind()) => false,
        Err(error) => {
            return Err(format!("cannot look at {} of `{given}`: {error}", here.display()));
        }
    };
    if !is_link {
        return Ok(());
    }
    match std::fs::canonicalize(&*here) {
        Ok(target) => *here = target,
        Err(error) if missing(error.kind()) && wanted == FileAccess::Read => {}
        Err(error) => {
            return Err(format!(
                "the symbolic link {} of the path `{given}` leads nowhere: {error}",
                here.display()
            ));
        }
    }
    Ok(())
}

/// Refuses to change the root itself and raymond's own directories.
fn may_change(below: &Path, given: &str) -> Result<(), String> {
    if below.as_os_str().is_empty() {
        return Err(format!("the path `{given}` is the workspace itself: name one below it"));
    }
    let scratch = below.strip_prefix(SCRATCH).ok().filter(|inner| *inner != Path::new(""));
    let changed = scratch.unwrap_or(below);
    if changed.iter().any(|name| name.eq_ignore_ascii_case(RUNS_DIRECTORY)) {
        return Err(format!(
            "the path `{given}` is in {RUNS_DIRECTORY}, where raymond keeps its runs: write to {SCRATCH} or elsewhere"
        ));
    }
    if let Some(name) = refused_name(below) {
        return Err(format!(
            "the path `{given}` is in {}, which other programs take commands from: write elsewhere, or use a command (bash_exec)",
            name.display()
        ));
    }
    Ok(())
}

/// Returns a path for people: below the root.
pub(super) fn shown(root: &Path, path: &Path) -> String {
    let below = path.strip_prefix(root).unwrap_or(path);
    let below = if below.as_os_str().is_empty() { Path::new(".") } else { below };
    below.display().to_string()
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

#[cfg(test)]
mod paths_tests {
    use std::os::unix::fs::symlink;

    use super::*;

    struct Ground {
        _kept: tempfile::TempDir,
        root: PathBuf,
        outside: PathBuf,
    }

    fn ground() -> Ground {
        let kept = tempfile::tempdir().expect("a directory");
        let base = kept.path().canonicalize().expect("it is there");
        let (root, outside) = (base.join("root"), base.join("outside"));
        std::fs::create_dir_all(root.join("a/b")).expect("made");
        std::fs::create_dir(&outside).expect("made");
        std::fs::write(outside.join("secret"), "x").expect("written");
        symlink(&outside, root.join("out")).expect("linked");
        symlink("a", root.join("in")).expect("linked");
        symlink("nowhere", root.join("dangling")).expect("linked");
        symlink(outside.join("new"), root.join("later")).expect("linked");
        Ground { _kept: kept, root, outside }
    }

    #[test]
    fn path_inside_workspace_resolves_in_any_spelling() {
        let Ground { root, .. } = &ground();
        let read = |given: &str| resolve(root, given, FileAccess::Read);
        assert_eq!(read("a/b"), Ok(root.join("a/b")));
        assert_eq!(read("./a/../a//b/."), Ok(root.join("a/b")));
        assert_eq!(read("in/b"), Ok(root.join("a/b")));
        assert_eq!(read("in/../x"), Ok(root.join("x")), "`..` is that of the link's target");
        assert_eq!(read("no/such/../x"), Ok(root.join("no/x")));
        assert_eq!(read("."), Ok(root.clone()));
        let absolute = root.join("a/x").display().to_string();
        assert_eq!(read(&absolute), Ok(root.join("a/x")));
        assert_eq!(read("dangling"), Ok(root.join("dangling")));
    }

    #[test]
    fn path_leading_out_of_workspace_is_refused() {
        let Ground { root, outside, .. } = &ground();
        for wanted in [FileAccess::Read, FileAccess::Write, FileAccess::Remove] {
            for given in ["..", "../outside/secret", "a/../../outside", "out/secret", "/etc/passwd"]
            {
                let why = resolve(root, given, wanted).expect_err(given);
                assert!(why.contains("leads out of the workspace"), "{given}: {why}");
            }
        }
        let absolute = outside.join("secret").display().to_string();
        assert!(resolve(root, &absolute, FileAccess::Read).is_err());
        assert!(resolve(root, "out", FileAccess::Write).is_err());
        assert_eq!(
            resolve(root, "out", FileAccess::Remove),
            Ok(root.join("out")),
            "the link is inside"
        );
    }

    #[test]
    fn write_through_dangling_link_or_into_runs_dir_is_refused() {
        let Ground { root, .. } = &ground();
        let write = |given: &str| resolve(root, given, FileAccess::Write);
        for given in ["later", "dangling"] {
            let why = write(given).expect_err("refused");
            assert!(why.contains("leads nowhere"), "{why}");
        }
        for given in
            [".raymond/runs/x", "a/.Raymond", ".raymond", ".raymond/tmp", ".raymond/tmp/.raymond/x"]
        {
            let why = write(given).expect_err("refused");
            assert!(why.contains("keeps its runs"), "{why}");
        }
        assert!(resolve(root, ".raymond/x", FileAccess::Read).is_ok());
        assert!(resolve(root, ".raymond/tmp/a/list.json", FileAccess::Write).is_ok());
        assert!(write("a/..").expect_err("refused").contains("the workspace itself"));
        assert!(write("  ").expect_err("refused").contains("is empty"));
        assert!(write("a\0b").expect_err("refused").contains("NUL"));
    }

    #[test]
    fn symlink_loop_is_an_error() {
        let Ground { root, .. } = &ground();
        symlink("round", root.join("round")).expect("linked");
        let why = resolve(root, "round/x", FileAccess::Read).expect_err("refused");
        assert!(why.contains("symbolic link"), "{why}");
    }
}
