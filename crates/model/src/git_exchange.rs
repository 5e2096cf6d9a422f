//! The git repository by which the hosts of a run exchange the work of its agents.
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
    /// An address.
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
    /// The reason why it is none, and the remedy. An address with a password is not shown.
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
    let Some((authority, path)) = text.split_once(':').filter(|(one, _)| !one.contains('/')) else {
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
