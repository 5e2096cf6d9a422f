//! The git repository by which a run's hosts exchange work, and the git settings that can make git run programs.
//!
//! An address is stored and shown, so it has no password in it. It never names a program: only ssh, https and paths are
//! taken.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::id::Folder;

/// The longest address, in bytes.
const MAX_BYTES: usize = 2048;

/// The address of a git repository: ssh, https, or an absolute path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
pub struct ExchangeAddress(String);

/// The exchange as a person names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExchangeName {
    Address(ExchangeAddress),
    /// A remote of the run's own repository.
    Remote(String),
}

/// The exchange of a run's work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GitExchange {
    /// The address of the repository.
    pub address: ExchangeAddress,
    /// The commit that the run began at.
    pub base: String,
    /// The directory of the run in its repository; `None` for the top.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<Folder>,
}

/// The direction in which a host exchanges work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExchangeDirection {
    /// The branches of the run are fetched.
    Fetch,
    /// The work of an agent is pushed.
    Push,
}

impl ExchangeAddress {
    /// Parses an address.
    ///
    /// # Errors
    /// The reason why it is not an address, and the remedy. An address with a password is not shown.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.is_empty() || text.len() > MAX_BYTES || text.contains(char::is_control) {
            return Err("the address of the exchange is empty, too long, or has control characters; name a git repository".to_owned());
        }
        match text.split_once("://") {
            Some((scheme, rest)) => check_url(scheme, rest)?,
            None if text.starts_with('/') => {}
            None => check_scp(text)?,
        }
        Ok(Self(text.to_owned()))
    }

    /// Returns the text of the address.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Checks an address with a scheme.
fn check_url(scheme: &str, rest: &str) -> Result<(), String> {
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    let user = authority.rsplit_once('@').map(|(user, _)| user);
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    if user.is_some_and(|user| user.contains(':')) || (scheme != "ssh" && user.is_some()) {
        return Err(format!(
            "the address of the exchange contains a {}, which would be stored with the run; leave it out, and let git get it from a credential helper, or use ssh",
            if scheme == "ssh" { "password" } else { "name or a password" }
        ));
    }
    match scheme {
        "ssh" | "https" if host.is_empty() || path.is_empty() => {
            Err(format!("the address of the exchange names no repository; write {scheme}://HOST/PATH"))
        }
        "ssh" | "https" if is_option(host) || user.is_some_and(is_option) => {
            Err("the address of the exchange begins with `-`; name a host".to_owned())
        }
        "https" if path.contains(['?', '#']) => Err(
            "the address of the exchange has parameters, which may be secrets and would be stored with the run; leave them out"
                .to_owned(),
        ),
        "ssh" | "https" => Ok(()),
        "file" if authority.is_empty() && !path.is_empty() => Ok(()),
        "file" => Err("a path as the exchange is written file:///PATH".to_owned()),
        _ => Err(not_taken(scheme)),
    }
}

/// Checks an address such as `git@host:path`.
fn check_scp(text: &str) -> Result<(), String> {
    if let Some((helper, _)) = text.split_once("::") {
        return Err(not_taken(helper));
    }
    let Some((authority, path)) = text.split_once(':').filter(|(before, _)| !before.contains('/'))
    else {
        return Err(format!(
            "`{text}` is not the address of an exchange; write an absolute path, ssh://…, https://… or HOST:PATH"
        ));
    };
    let (user, host) = authority.rsplit_once('@').unwrap_or(("git", authority));
    if [user, host, path].iter().any(|part| part.is_empty() || is_option(part)) {
        return Err(
            "the address of the exchange names no repository; write USER@HOST:PATH".to_owned()
        );
    }
    Ok(())
}

fn not_taken(transport: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "+.-_".contains(c);
    let shown = if transport.chars().all(plain) { transport } else { "that" };
    format!(
        "cannot reach the exchange through `{shown}`: only ssh, https and paths are allowed, because other transports may start a program or are not encrypted; give an address that begins with ssh:// or https://, or an absolute path"
    )
}

fn is_option(text: &str) -> bool {
    text.starts_with('-')
}

impl ExchangeName {
    /// Parses what a person names: an address, or the name of a remote.
    ///
    /// # Errors
    /// The reason why it is neither.
    pub fn parse(text: &str) -> Result<Self, String> {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        let is_name = !text.is_empty()
            && text.chars().all(plain)
            && text.starts_with(|c: char| c.is_ascii_alphanumeric());
        if is_name {
            return Ok(Self::Remote(text.to_owned()));
        }
        ExchangeAddress::parse(text).map(Self::Address)
    }
}

impl fmt::Display for ExchangeAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for ExchangeAddress {
    type Error = String;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        Self::parse(&text)
    }
}

impl From<ExchangeAddress> for String {
    fn from(address: ExchangeAddress) -> Self {
        address.0
    }
}

// What the configuration of a git repository can make git execute, and the values that take it back.
//
// Anyone who can write files can create a repository. So raymond overrides a repository's settings that name programs,
// and refuses a repository with such settings if the run did not begin in it. The form of a key's name decides, because
// a newer git has further settings.

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

/// Names whose value is a program, with the program that git uses without them.
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
fn is_any_of(of: &str, name: &[u8]) -> bool {
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
        if is_switch || is_any_of(OVERRIDDEN, name) || self.included().is_some() {
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
            || is_any_of(PROGRAM_NAMES, name)
            || PROGRAM_PARTS.split(' ').any(has);
        (is_program && !value.is_empty()).then_some("")
    }

    /// Returns whether it neither names a program nor leads git elsewhere. `core.worktree` does not count: it is
    /// compared with the place of the repository.
    pub fn is_plain(&self) -> bool {
        self.neutral().is_none()
            && !is_any_of(OVERRIDDEN, self.name())
            && !is_any_of(LEADING_SECTIONS, self.section())
            && !is_any_of(LEADING_NAMES, self.name())
    }

    /// Returns the path of another file that it includes, regardless of its condition.
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
mod git_config_tests;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_without_secrets_and_programs_are_taken() {
        for good in [
            "/srv/git/x.git",
            "file:///srv/git/x.git",
            "ssh://git@host:22/x.git",
            "https://host/x.git",
            "git@host:x/y.git",
            "host:x",
        ] {
            assert_eq!(ExchangeAddress::parse(good).map(String::from), Ok(good.to_owned()));
        }
        for (bad, why) in [
            ("", "empty"),
            ("a\nb:c", "control"),
            ("ext::sh -c x", "`ext`"),
            ("fd::3", "`fd`"),
            ("http://host/x", "`http`"),
            ("git://host/x", "`git`"),
            ("ext::ssh://host/x", "only ssh"),
            ("ssh://-oProxyCommand=x/y", "begins with `-`"),
            ("-oProxyCommand=x:y", "USER@HOST"),
            ("--upload-pack=x", "absolute path"),
            ("https://host/x?token=secret", "parameters"),
            ("https://host", "names no repository"),
            ("file://host/x", "file:///"),
            ("../x.git", "absolute path"),
        ] {
            let refused = ExchangeAddress::parse(bad).expect_err(bad);
            assert!(refused.contains(why), "{bad}: {refused}");
        }
        for secret in
            ["https://me:secret@host/x", "https://secret@host/x", "ssh://me:secret@host/x"]
        {
            let refused = ExchangeAddress::parse(secret).expect_err("it has a password");
            assert!(
                refused.contains("credential helper") && !refused.contains("secret@"),
                "{refused}"
            );
            assert!(serde_json::from_str::<ExchangeAddress>(&format!("{secret:?}")).is_err());
        }
    }

    #[test]
    fn name_without_colon_and_slash_is_a_remote() {
        assert_eq!(ExchangeName::parse("origin"), Ok(ExchangeName::Remote("origin".to_owned())));
        assert!(matches!(ExchangeName::parse("/x"), Ok(ExchangeName::Address(_))));
        assert!(ExchangeName::parse("-x").is_err() && ExchangeName::parse(".x").is_err());
    }
}
