//! The folders that a tag can lead to: each is a separate scope, below the run's root.

use std::fmt;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Folder, InvalidName, StateName};

shared_name! {
    /// A folder as a tag names it, seen from that of the state: `review`, `../review`, `lib:review`. A path up that an
    /// explicit tag such as `<call-workflow>` names begins with `./..`: it may lead to a folder beside the run's root.
    ScopePath
}
checked_when_read!(ScopePath);

/// The folder of the run's root in which the folders of `lib:` lie.
const LIBRARY: &str = "lib";

/// The beginning of a folder in the library.
const LIBRARY_PREFIX: &str = "lib:";

/// The folder of a run's root under which the folders beside the root are known.
pub const BESIDE: &str = "@beside";

/// The beginning of a path up that an explicit tag names.
const EXPLICIT: &str = "./..";

/// The most steps up of a path.
const MAX_UP: usize = 16;

impl ScopePath {
    /// Parses the path of a folder. Steps up stand at its beginning.
    ///
    /// # Errors
    /// [`InvalidName::Scope`] for anything else, such as an absolute path.
    pub fn parse(text: &str) -> Result<Self, InvalidName> {
        let wrong = || InvalidName::Scope(text.to_owned());
        let path = text.trim();
        if let Some(name) = path.strip_prefix(LIBRARY_PREFIX) {
            let folder = Folder::parse(name).map_err(|_| wrong())?;
            return Ok(Self(format!("{LIBRARY_PREFIX}{folder}").into()));
        }
        if path.is_empty() || path.starts_with('/') {
            return Err(wrong());
        }
        let parts: Vec<&str> =
            path.trim_end_matches('/').split('/').filter(|&part| part != ".").collect();
        let up = parts.iter().take_while(|&&part| part == "..").count();
        let below = parts[up..].join("/");
        if up > MAX_UP || (!below.is_empty() && Folder::parse(&below).is_err()) {
            return Err(wrong());
        }
        if parts.is_empty() {
            return Ok(Self(".".into()));
        }
        Ok(Self::marked(&parts.join("/"), path.starts_with(EXPLICIT)))
    }

    /// Returns a path, marked as one of an explicit tag if it leads up.
    fn marked(path: &str, is_explicit: bool) -> Self {
        let mark = if is_explicit && path.starts_with("..") { "./" } else { "" };
        Self(format!("{mark}{path}").into())
    }

    /// Returns whether an explicit tag names it and it leads up.
    pub fn is_explicit(&self) -> bool {
        self.0.starts_with(EXPLICIT)
    }

    /// Returns it as it stands in a tag.
    pub fn as_written(&self) -> &str {
        self.0.strip_prefix("./").unwrap_or(&self.0)
    }

    /// Returns the path of a folder from the run's root; `None` is the root itself.
    pub fn from_root(folder: Option<&Folder>) -> Self {
        Self::marked(&folder.map_or_else(|| ".".to_owned(), Folder::on_disk), true)
    }

    /// Returns the folder that it leads to from another folder, where `None` is the run's root.
    ///
    /// # Errors
    /// [`InvalidName::BeyondRoot`] if it leads out of the run's root, and not by an explicit tag to a folder beside it.
    pub fn seen_from(&self, here: Option<&Folder>) -> Result<Option<Folder>, InvalidName> {
        let beyond = || InvalidName::BeyondRoot(self.to_string());
        let path = self.0.strip_prefix(LIBRARY_PREFIX).map(|name| format!("{LIBRARY}/{name}"));
        let here = here.filter(|_| path.is_none());
        let mut parts: Vec<&str> =
            here.map_or(Vec::new(), |here| here.as_str().split('/').collect());
        for part in path.as_deref().unwrap_or(&self.0).split('/') {
            match part {
                "." => {}
                ".." => match parts.pop() {
                    Some(BESIDE) => return Err(beyond()),
                    Some(_) if parts != [BESIDE] || self.is_explicit() => {}
                    None if self.is_explicit() => parts.push(BESIDE),
                    _ => return Err(beyond()),
                },
                BESIDE if parts.is_empty() => return Err(beyond()),
                name => parts.push(name),
            }
        }
        if parts.is_empty() {
            return Ok(None);
        }
        if parts == [BESIDE] {
            return Err(beyond());
        }
        Folder::parse(&parts.join("/")).map(Some).map_err(|_| beyond())
    }

    /// Returns the path of a folder below.
    pub fn join(&self, below: &Folder) -> Self {
        if self.is_here() {
            Self(below.as_str().into())
        } else {
            Self(format!("{self}/{below}").into())
        }
    }

    /// Returns the folder that a further path leads to from this one, as a path from where this one begins; `None` if
    /// that is unknown.
    pub fn then(&self, further: &Self) -> Option<Self> {
        if further.0.starts_with(LIBRARY_PREFIX) {
            return Some(further.clone());
        }
        let in_library = self.0.strip_prefix(LIBRARY_PREFIX);
        let mut parts: Vec<&str> =
            in_library.unwrap_or(&self.0).split('/').filter(|part| *part != ".").collect();
        for part in further.0.split('/') {
            match part {
                "." => {}
                ".." if parts.last().is_some_and(|last| *last != "..") => drop(parts.pop()),
                part => parts.push(part),
            }
        }
        let path = parts.join("/");
        match in_library {
            Some(_) => Self::parse(&format!("{LIBRARY_PREFIX}{path}")).ok(),
            None if path.is_empty() => Some(Self::from_root(None)),
            None => {
                let is_explicit = self.is_explicit() || further.is_explicit();
                Self::parse(Self::marked(&path, is_explicit).as_str()).ok()
            }
        }
    }

    /// Returns the name under which the beginning of this path sees a state that a map of its folder names.
    pub fn see(&self, name: &StateName) -> StateName {
        let Some((further, state)) = name.in_other_folder() else {
            return StateName::beyond(self, name);
        };
        match self.then(&further) {
            Some(path) if path.is_here() => state,
            Some(path) => StateName::beyond(&path, &state),
            None => name.clone(),
        }
    }

    /// Returns whether it is the folder of the state itself.
    pub fn is_here(&self) -> bool {
        &*self.0 == "."
    }
}

impl Folder {
    /// Returns the folder beside the run's root that it is, or lies in.
    pub fn sibling(&self) -> Option<Self> {
        let name = self.as_str().strip_prefix(BESIDE)?.strip_prefix('/')?.split('/').next()?;
        Self::parse(&format!("{BESIDE}/{name}")).ok()
    }

    /// Returns its path from the run's root where that is not a copy: `../review` for a folder beside it.
    pub fn on_disk(&self) -> String {
        let beside = self.sibling().and_then(|_| self.as_str().strip_prefix(BESIDE));
        beside.map_or_else(|| self.to_string(), |below| format!("..{below}"))
    }
}

impl StateName {
    /// The name that stands for the first state of a folder, until that is known.
    const ENTRY: &'static str = ".";

    /// Returns the name that stands for the first state of a folder, until that is known.
    ///
    /// # Errors
    /// None: the name is fixed.
    pub fn entry() -> Result<Self, InvalidName> {
        Self::parse(Self::ENTRY)
    }

    /// Returns the name that stands for a state of another folder in a map of this folder. It is not the name of a
    /// file, because file names have no `/`.
    pub fn beyond(scope: &ScopePath, state: &Self) -> Self {
        let target = TagTarget { scope: Some(scope.clone()), state: state.clone() };
        Self::unchecked(&target.to_string())
    }

    /// Returns the name under which people see it: with its folder below the run's root, if it has one.
    pub fn shown_in(&self, folder: Option<&Folder>) -> Self {
        let Some(folder) = folder else { return self.clone() };
        let name = if self.is_entry() { "" } else { self.as_str() };
        Self::unchecked(&format!("{}/{name}", folder.on_disk()))
    }

    /// Returns the state of another folder that it stands for in a map, if it does.
    pub fn in_other_folder(&self) -> Option<(ScopePath, Self)> {
        let name = self.as_str();
        let TagTarget { scope, state } =
            TagTarget::parse(name).ok().filter(|_| name.contains('/'))?;
        Some((scope?, state))
    }

    /// Returns whether it stands for the first state of a folder that is not known.
    pub fn is_entry(&self) -> bool {
        self.as_str() == Self::ENTRY
    }
}

/// A state as a tag names it: in the same folder, or in another folder, which is a separate scope.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TagTarget {
    /// The other folder.
    pub scope: Option<ScopePath>,
    pub state: StateName,
}

impl TagTarget {
    /// Parses what stands between the tags. A path that ends in `/` is a folder's first state.
    ///
    /// # Errors
    /// [`InvalidName`] if it is neither a bare file name nor a path.
    pub fn parse(text: &str) -> Result<Self, InvalidName> {
        let path = text.trim();
        let is_library = path.starts_with(LIBRARY_PREFIX);
        if path.contains(['\\', '\0']) || !(is_library || path.contains('/')) {
            return StateName::parse(path).map(|state| Self { scope: None, state });
        }
        let (folder, file) = match path.rsplit_once('/') {
            Some((folder, file)) => (folder, file),
            None => (path, ""),
        };
        let state = if file.is_empty() { StateName::entry() } else { StateName::parse(file) }?;
        let scope = ScopePath::parse(folder)?;
        Ok(Self { scope: Some(scope).filter(|scope| !scope.is_here() || file.is_empty()), state })
    }

    /// Returns the name under which people see the state that a tag in a folder leads to.
    pub fn shown_in(&self, here: Option<&Folder>) -> StateName {
        match self.scope.as_ref().map_or(Ok(here.cloned()), |scope| scope.seen_from(here)) {
            Ok(folder) => self.state.shown_in(folder.as_ref()),
            // No run has such a folder.
            Err(_) => StateName::unchecked(&self.to_string()),
        }
    }
}

impl fmt::Display for TagTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_target(self.scope.as_ref().map(ScopePath::as_str), &self.state, f)
    }
}

/// Writes a state as a tag names it.
pub(crate) fn write_target(
    scope: Option<&str>,
    state: &StateName,
    f: &mut fmt::Formatter<'_>,
) -> fmt::Result {
    match scope {
        None => f.write_str(state.as_str()),
        Some(scope) if state.is_entry() => write!(f, "{scope}/"),
        Some(scope) => write!(f, "{scope}/{state}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        TagTarget::parse(text)
            .map_or_else(|error| format!("error: {error}"), |target| target.to_string())
    }

    #[test]
    fn target_is_bare_name_or_path_of_folder() {
        for (text, expected) in [
            ("CHECK.md", "CHECK.md"),
            ("./CHECK.md", "CHECK.md"),
            ("review/", "review/"),
            (" ./review/CHECK.md\n", "review/CHECK.md"),
            ("../review/", "../review/"),
            ("../../a/b/C.md", "../../a/b/C.md"),
            ("lib:review", "lib:review/"),
            ("lib:review/CHECK.md", "lib:review/CHECK.md"),
        ] {
            assert_eq!(shown(text), expected, "{text}");
        }
        for bad in ["", "/etc/passwd", "a\\b.md", "a/../../b/", "lib:", "lib:../x/"] {
            assert!(TagTarget::parse(bad).is_err(), "{bad:?} was taken");
        }
    }

    #[test]
    fn state_is_seen_from_the_beginning_of_a_path() {
        let seen = |path: &str, name: &str| {
            let path = ScopePath::parse(path).expect("a path");
            let TagTarget { scope, state } = TagTarget::parse(name).expect("a name");
            let name = scope.map_or(state.clone(), |scope| StateName::beyond(&scope, &state));
            path.see(&name).to_string()
        };
        for (path, name, expected) in [
            ("review", "A.md", "review/A.md"),
            ("review", "../A.md", "A.md"),
            ("review", "../b/A.md", "b/A.md"),
            ("../review", "../A.md", "../A.md"),
            ("..", "../A.md", "../../A.md"),
            ("lib:b", "../c/A.md", "lib:c/A.md"),
            ("a", "lib:b/A.md", "lib:b/A.md"),
        ] {
            assert_eq!(seen(path, name), expected, "{name} from {path}");
        }
    }

    #[test]
    fn people_see_a_state_with_its_folder_below_the_root() {
        let shown = |text: &str, here: &str| {
            let target = TagTarget::parse(text).expect("a target");
            target.shown_in(Folder::parse(here).ok().as_ref()).to_string()
        };
        assert_eq!(shown("A.md", ""), "A.md");
        assert_eq!(shown("A.md", "review"), "review/A.md");
        assert_eq!(shown("../b/A.md", "review"), "b/A.md");
        assert_eq!(shown("../A.md", "review"), "A.md");
        assert_eq!(shown("lib:b/A.md", "review"), "lib/b/A.md");
        assert_eq!(shown("../A.md", ""), "../A.md", "no run has it");
    }

    #[test]
    fn folder_is_seen_from_another_within_the_root() {
        let seen = |path: &str, here: &str| {
            let path = ScopePath::parse(path).expect("a path");
            path.seen_from(Folder::parse(here).ok().as_ref())
                .map(|folder| folder.map(|folder| folder.to_string()).unwrap_or_default())
        };
        assert_eq!(seen("review", ""), Ok("review".into()));
        assert_eq!(seen("../b", "a"), Ok("b".into()));
        assert_eq!(seen("..", "a"), Ok(String::new()));
        assert_eq!(seen("lib:b", "a/c"), Ok("lib/b".into()));
        assert!(seen("../b", "").is_err() && seen("../../b", "a").is_err());
    }

    #[test]
    fn explicit_path_leads_to_a_folder_beside_the_root_and_no_further() {
        let seen = |path: &str, here: &str| {
            let path = ScopePath::parse(path).expect("a path");
            let found = path.seen_from(Folder::parse(here).ok().as_ref()).ok();
            found.map(|folder| folder.map(|folder| folder.on_disk()).unwrap_or_default())
        };
        let is = |text: &str| Some(text.to_owned());
        assert_eq!(seen("./../b/", ""), is("../b"));
        assert_eq!(seen("./../../b/c", "a"), is("../b/c"));
        assert_eq!(seen("./../b", "a"), is("b"));
        assert_eq!(seen("./../c", "@beside/b"), is("../c"));
        assert_eq!((seen("..", "@beside/b/c"), seen("c", "@beside/b")), (is("../b"), is("../b/c")));
        for (path, here) in [
            ("./..", ""),
            ("./../../b", ""),
            ("./../../c", "@beside/b"),
            ("../c", "@beside/b"),
            ("..", "@beside/b"),
            ("@beside/b", ""),
        ] {
            assert_eq!(seen(path, here), None, "{path} from {here}");
        }
        let beside = Folder::parse("@beside/b").expect("a folder");
        let path = ScopePath::from_root(Some(&beside));
        assert_eq!((path.as_str(), path.as_written()), ("./../b", "../b"));
        assert_eq!(path.seen_from(None), Ok(Some(beside)));
    }
}
