//! Resolves paths of a workflow, and refuses those that lead outside the workspace.
//!
//! A path is walked name by name. A symbolic link in it is resolved by the system, so the result
//! has neither links nor `..` in it, and it is inside the root or refused. Between this and its use
//! a program that may write in the workspace could add a link: such a program
//! can do as much harm without raymond. The check keeps out paths that a workflow, or a model's output in it,
//! should not name.

use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};

use crate::domain::obeyed_name::refused_name;

/// The directory of runs, where nothing may write but raymond itself.
const RUNS_DIRECTORY: &str = ".raymond";

/// The directory in it that workflows may write, such as the list of a fan-out; git ignores it with the rest.
const SCRATCH: &str = ".raymond/tmp";

/// The purpose of an access to a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FileAccess {
    /// To look at what is there.
    Read,
    /// To write there: a broken link is refused.
    Write,
    /// To remove the entry of this name, even a link.
    Remove,
}

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
