//! What the configuration of a git repository can make git execute, and the values that take it back. Pure.
//!
//! Anyone who can write files can create a repository. So raymond overrides a repository's settings that name programs,
//! and refuses a repository with such settings if the run did not begin in it. The form of a key's name decides, because
//! a newer git has further settings.

/// A setting in a configuration file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GitSetting {
    /// Its key as git spells it: `section.name` or `section.subsection.name`, with a lowercase section and name.
    pub key: Vec<u8>,
    /// Its value; `None` for a name alone, which means true.
    pub value: Option<Vec<u8>>,
}

/// The settings that every call of git overrides.
pub const FIXED_SETTINGS: [(&str, &str); 9] = [
    ("safe.bareRepository", "explicit"),
    ("protocol.ext.allow", "never"),
    ("core.hooksPath", "/dev/null"),
    ("core.fsmonitor", "false"),
    ("submodule.recurse", "false"),
    ("fetch.recurseSubmodules", "false"),
    ("push.recurseSubmodules", "no"),
    ("gc.auto", "0"),
    ("maintenance.auto", "false"),
];

/// Parts of the last name of a key that say that its value is a program.
const PROGRAM_PARTS: &str = "\
    askpass cmd command difffilter driver editor external helper hook pager program textconv vcs";

/// Whole names of such keys. `cookiefile` names a file that git writes.
const PROGRAM_NAMES: &str = "clean cookiefile gitproxy path process smudge";

/// Names whose value is a program, with the one that git uses without them.
const PROGRAM_DEFAULTS: [(&str, &str); 4] = [
    ("receivepack", "git-receive-pack"),
    ("sshcommand", "ssh"),
    ("update", "checkout"),
    ("uploadpack", "git-upload-pack"),
];

/// Sections, and keys of the section `core`, that lead git to other files, places or people.
const LEADING_SECTIONS: &str = "credential http include includeif protocol url";
const LEADING_NAMES: &str = "attributesfile excludesfile partialclone promisor";

/// Names that [`FIXED_SETTINGS`] override.
const OVERRIDDEN: &str = "hookspath fsmonitor";

/// Returns whether a name is one of those in a table.
fn is_one(of: &str, name: &[u8]) -> bool {
    of.split(' ').any(|known| known.as_bytes() == name)
}

impl GitSetting {
    fn section(&self) -> &[u8] {
        self.key.split(|&byte| byte == b'.').next().unwrap_or_default()
    }

    fn name(&self) -> &[u8] {
        self.key.rsplit(|&byte| byte == b'.').next().unwrap_or_default()
    }

    /// Returns the value that takes a program back: empty, or the program that git has by default. `None` if the
    /// setting names none.
    pub fn neutral(&self) -> Option<&'static str> {
        let value = self.value.as_deref().unwrap_or(b"true");
        let (section, name) = (self.section(), self.name());
        if name == b"savecookies" {
            return Some("false");
        }
        let is_number = !value.is_empty() && value.iter().all(u8::is_ascii_digit);
        let is_switch = is_number || matches!(value, b"true" | b"false");
        if is_switch || is_one(OVERRIDDEN, name) || self.included().is_some() {
            return None;
        }
        let is_shell = value.starts_with(b"!");
        let usual = PROGRAM_DEFAULTS.iter().find(|(known, _)| name == known.as_bytes());
        if let Some((_, usual)) = usual.filter(|(known, _)| is_shell || *known != "update") {
            return Some(usual);
        }
        let has = |part: &str| name.windows(part.len()).any(|window| window == part.as_bytes());
        let is_program = section == b"hook"
            || is_shell
            || is_one(PROGRAM_NAMES, name)
            || PROGRAM_PARTS.split(' ').any(has);
        (is_program && !value.is_empty()).then_some("")
    }

    /// Returns whether it neither names a program nor leads git elsewhere. `core.worktree` does not count: it is compared
    /// with the place of the repository.
    pub fn is_plain(&self) -> bool {
        self.neutral().is_none()
            && !is_one(OVERRIDDEN, self.name())
            && !is_one(LEADING_SECTIONS, self.section())
            && !is_one(LEADING_NAMES, self.name())
    }

    /// Returns the path of another file that it includes, whatever its condition is.
    pub fn included(&self) -> Option<&[u8]> {
        let includes =
            matches!(self.section(), b"include" | b"includeif") && self.name() == b"path";
        self.value.as_deref().filter(|_| includes)
    }

    /// Returns whether it may make the repository a bare one.
    pub fn is_bare(&self) -> bool {
        self.key == b"core.bare" && self.value.as_deref() != Some(b"false")
    }

    /// Returns the working tree that it gives the repository.
    pub fn worktree(&self) -> Option<&[u8]> {
        self.value.as_deref().filter(|_| self.key == b"core.worktree")
    }
}

/// Reads the list that `git config --list --null` prints.
pub fn read_git_config(list: &[u8]) -> Vec<GitSetting> {
    let entries = list.split(|&byte| byte == 0).filter(|entry| !entry.is_empty());
    let read = |entry: &[u8]| {
        let mut parts = entry.splitn(2, |&byte| byte == b'\n').map(<[u8]>::to_vec);
        GitSetting { key: parts.next().unwrap_or_default(), value: parts.next() }
    };
    entries.map(read).collect()
}

#[cfg(test)]
mod tests;
