//! What the configuration of a git repository can make git execute, and the values that take it back. Pure.
//!
//! Whoever can write files can write a repository. So a setting of a repository that names a program is overridden, and
//! a repository that was made during a run may have no such setting at all. A key counts by the form of its name, because
//! a newer git has settings that are not known here.

/// A setting in a configuration file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GitSetting {
    /// Its key as git spells it: `section.name` or `section.subsection.name`, with a lowercase section and name.
    pub key: Vec<u8>,
    /// Its value; `None` for a name alone, which means true.
    pub value: Option<Vec<u8>>,
}

/// The settings that every call of git overrides.
pub const FIXED_SETTINGS: [(&str, &str); 8] = [
    ("safe.bareRepository", "explicit"),
    ("protocol.ext.allow", "never"),
    ("core.hooksPath", "/dev/null"),
    ("core.fsmonitor", "false"),
    ("submodule.recurse", "false"),
    ("fetch.recurseSubmodules", "false"),
    ("gc.auto", "0"),
    ("maintenance.auto", "false"),
];

/// Parts of the last name of a key that say that its value is a program.
const PROGRAM_PARTS: &str = "\
    askpass cmd command difffilter driver editor external helper hook pager program textconv vcs";

/// Whole names of such keys.
const PROGRAM_NAMES: &str = "clean gitproxy path process smudge";

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
    #[must_use]
    pub fn neutral(&self) -> Option<&'static str> {
        let value = self.value.as_deref().unwrap_or(b"true");
        let (section, name) = (self.section(), self.name());
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
    #[must_use]
    pub fn is_plain(&self) -> bool {
        self.neutral().is_none()
            && !is_one(OVERRIDDEN, self.name())
            && !is_one(LEADING_SECTIONS, self.section())
            && !is_one(LEADING_NAMES, self.name())
    }

    /// Returns the path of another file that it includes, whatever its condition is.
    #[must_use]
    pub fn included(&self) -> Option<&[u8]> {
        let includes =
            matches!(self.section(), b"include" | b"includeif") && self.name() == b"path";
        self.value.as_deref().filter(|_| includes)
    }

    /// Returns the working tree that it gives the repository.
    #[must_use]
    pub fn worktree(&self) -> Option<&[u8]> {
        self.value.as_deref().filter(|_| self.key == b"core.worktree")
    }
}

/// Reads a configuration file as git does.
///
/// # Errors
/// The number of the line that git would not take either.
pub fn read_git_config(text: &[u8]) -> Result<Vec<GitSetting>, usize> {
    let mut reader =
        ConfigReader { rest: text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text), line: 1 };
    // A name in C ends there.
    let settings = if text.contains(&0) { None } else { reader.settings() };
    settings.ok_or(reader.line)
}

/// Reads a configuration file byte by byte.
struct ConfigReader<'text> {
    rest: &'text [u8],
    line: usize,
}

impl ConfigReader<'_> {
    /// Returns the next byte; a line's end at the end of the file.
    fn next(&mut self) -> u8 {
        self.rest = match self.rest {
            [b'\r', b'\n', ..] => &self.rest[1..],
            rest => rest,
        };
        let Some((&first, rest)) = self.rest.split_first() else { return b'\n' };
        self.rest = rest;
        self.line += usize::from(first == b'\n');
        first
    }

    fn settings(&mut self) -> Option<Vec<GitSetting>> {
        let (mut settings, mut section) = (Vec::new(), Vec::new());
        while !self.rest.is_empty() {
            match self.next() {
                b'\n' | b' ' | b'\t' | b'\r' => {}
                b'#' | b';' => while self.next() != b'\n' {},
                b'[' => section = self.section()?,
                first if first.is_ascii_alphabetic() => {
                    let mut key = section.clone();
                    key.push(first.to_ascii_lowercase());
                    let value = self.value_of(&mut key)?;
                    settings.push(GitSetting { key, value });
                }
                _ => return None,
            }
        }
        Some(settings)
    }

    /// Reads the head of a section after its bracket.
    fn section(&mut self) -> Option<Vec<u8>> {
        let mut name = Vec::new();
        loop {
            match self.next() {
                b']' => break,
                b' ' | b'\t' | b'\r' => {
                    self.subsection(&mut name)?;
                    break;
                }
                byte if is_key(byte) || byte == b'.' => name.push(byte.to_ascii_lowercase()),
                _ => return None,
            }
        }
        name.push(b'.');
        Some(name)
    }

    fn subsection(&mut self, name: &mut Vec<u8>) -> Option<()> {
        let quote = loop {
            match self.next() {
                b' ' | b'\t' | b'\r' => {}
                other => break other,
            }
        };
        if quote != b'"' {
            return None;
        }
        name.push(b'.');
        loop {
            match self.next() {
                b'\n' => return None,
                b'"' => return (self.next() == b']').then_some(()),
                b'\\' => match self.next() {
                    b'\n' => return None,
                    byte => name.push(byte),
                },
                byte => name.push(byte),
            }
        }
    }

    /// Reads the rest of a key, and its value.
    #[expect(clippy::option_option, reason = "a wrong line, and a key without a value")]
    fn value_of(&mut self, key: &mut Vec<u8>) -> Option<Option<Vec<u8>>> {
        let mut byte = self.next();
        while is_key(byte) {
            key.push(byte.to_ascii_lowercase());
            byte = self.next();
        }
        while matches!(byte, b' ' | b'\t') {
            byte = self.next();
        }
        match byte {
            b'\n' => Some(None),
            b'=' => self.value().map(Some),
            _ => None,
        }
    }

    fn value(&mut self) -> Option<Vec<u8>> {
        let (mut value, mut is_quoted, mut trimmed) = (Vec::new(), false, 0);
        loop {
            match self.next() {
                b'\n' if is_quoted => return None,
                b'\n' => break,
                b' ' | b'\t' | b'\r' if !is_quoted && value.is_empty() => continue,
                byte @ (b' ' | b'\t' | b'\r') if !is_quoted => {
                    value.push(byte);
                    continue;
                }
                b'#' | b';' if !is_quoted => {
                    while self.next() != b'\n' {}
                    break;
                }
                b'"' => is_quoted = !is_quoted,
                b'\\' => match self.next() {
                    b'\n' => {}
                    b't' => value.push(b'\t'),
                    b'b' => value.push(8),
                    b'n' => value.push(b'\n'),
                    byte @ (b'\\' | b'"') => value.push(byte),
                    _ => return None,
                },
                byte => value.push(byte),
            }
            trimmed = value.len();
        }
        value.truncate(trimmed);
        Some(value)
    }
}

fn is_key(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'-'
}

#[cfg(test)]
mod tests;
