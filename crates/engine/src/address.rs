//! The address of an engine. Its password is used, and never shown.

use std::fmt;

use strum::{Display, EnumString, IntoStaticStr};

use crate::EngineError;

/// A kind of engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Display, IntoStaticStr, EnumString)]
#[strum(serialize_all = "lowercase")]
pub enum EngineKind {
    /// A `PostgreSQL` database.
    #[strum(to_string = "postgres", serialize = "postgresql")]
    Postgres,
    /// A Restate server.
    Restate,
}

/// The address of an engine.
#[derive(Clone, PartialEq, Eq)]
pub struct EngineAddress {
    kind: EngineKind,
    url: String,
    shown: String,
}

impl EngineAddress {
    /// Parses `postgres://…` or `restate://…`.
    ///
    /// # Errors
    /// [`EngineError::Address`] for anything else.
    pub fn parse(text: &str) -> Result<Self, EngineError> {
        let url = text.trim();
        let shown = without_password(url);
        let wrong =
            |why: &str| EngineError::Address { address: shown.clone(), why: why.to_owned() };
        let (scheme, rest) = url.split_once("://").ok_or_else(|| wrong("it has no `://`"))?;
        let kind = scheme
            .to_ascii_lowercase()
            .parse()
            .map_err(|_| wrong(&format!("unknown engine `{scheme}`")))?;
        let place = rest.split(['/', '?', '#']).next().unwrap_or_default();
        let host = place.rsplit_once('@').map_or(place, |(_, host)| host);
        if has_stray_at(rest) {
            return Err(wrong(
                "its user name or password contains a reserved character: write `@` as %40, `/` as %2F, `?` as %3F and `#` as %23",
            ));
        }
        if host.is_empty() && !(kind == EngineKind::Postgres && names_machine(rest)) {
            return Err(wrong("it names no machine"));
        }
        if url.chars().any(|c| c.is_whitespace() || c.is_control()) {
            return Err(wrong("it contains a space"));
        }
        Ok(Self { kind, url: url.to_owned(), shown })
    }

    /// Returns the kind of the engine.
    pub fn kind(&self) -> EngineKind {
        self.kind
    }

    /// Returns the whole address, for the connection alone: it may have a password in it.
    pub fn url(&self) -> &str {
        &self.url
    }
}

impl fmt::Display for EngineAddress {
    /// Writes the address without its password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.shown)
    }
}

impl fmt::Debug for EngineAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.shown, f)
    }
}

/// Returns whether the machine would be looked for in the user name or the password, because of a sign in them. Behind
/// the machine there may be none either: readers of such addresses take all that is before it for a password.
fn has_stray_at(rest: &str) -> bool {
    let (place, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    place.matches('@').count() > 1 || path.contains('@')
}

/// Returns whether the parameters of an address name a machine.
fn names_machine(rest: &str) -> bool {
    let (_, query) = rest.split_once('?').unwrap_or_default();
    let mut parameters = query.split('&').filter_map(|pair| pair.split_once('='));
    parameters.any(|(name, value)| name == "host" && !value.is_empty())
}

/// Returns an address without the password of its user, and without its parameters, which can hold another.
fn without_password(whole: &str) -> String {
    let url = whole.split(['?', '#']).next().unwrap_or_default();
    let Some((scheme, rest)) = url.split_once("://") else {
        return url.rsplit_once('@').map_or(url, |(_, place)| place).to_owned();
    };
    match rest.rsplit_once('@') {
        Some((user, place)) => {
            let name = user.split(':').next().unwrap_or_default();
            format!("{scheme}://{name}@{place}")
        }
        // The `?` may be one of the password, which ends at the `@` behind it.
        None if whole.contains('@') => {
            let name = rest.split(':').next().unwrap_or_default();
            format!("{scheme}://{name}")
        }
        None => url.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn password_of_an_address_is_never_shown() {
        for (url, shown) in [
            ("postgres://ray:s3cret@db.example:5432/work", "postgres://ray@db.example:5432/work"),
            ("postgresql://ray:a%2Fb%40c@db/work?sslmode=require", "postgresql://ray@db/work"),
            ("postgres://db/work?user=ray&password=s3cret", "postgres://db/work"),
            ("postgres://db/work?user=ray%40example", "postgres://db/work"),
            ("restate://10.0.0.7:8080", "restate://10.0.0.7:8080"),
        ] {
            let address = EngineAddress::parse(url).expect("an address");
            assert_eq!(address.to_string(), shown);
            assert_eq!(format!("{address:?}"), format!("{shown:?}"));
            assert_eq!(address.url(), url);
        }
    }

    #[test]
    fn other_texts_are_not_addresses() {
        for (text, why) in [
            ("db.example", "no `://`"),
            ("mysql://u:s3cret@db/x", "unknown engine `mysql`"),
            ("postgres://", "names no machine"),
            ("postgres:///work", "names no machine"),
            ("postgres:///host=work", "names no machine"),
            ("postgres:///work?host=", "names no machine"),
            ("postgres:///work?application_name=host=db", "names no machine"),
            ("postgres://ray@/work?ghost=db", "names no machine"),
            ("restate://?host=db", "names no machine"),
            ("restate://a b", "contains a space"),
            ("postgres://ray:s3cret@x@db/work", "write `@` as %40"),
            ("postgres://ray:s3cret/x=y@db/work", "`/` as %2F"),
            ("postgres://ray:s3cret?x@db/work", "`?` as %3F"),
            ("postgres://ray:s3cret#x@db/work", "`#` as %23"),
            ("postgres://db/work?user=ray&password=s3cret@x", "`@` as %40"),
            ("postgres://db/work?user=ray@example", "`@` as %40"),
        ] {
            let error = EngineAddress::parse(text).expect_err("no address").to_string();
            assert!(error.contains(why) && error.contains("postgres://USER@HOST"), "{error}");
            assert!(!error.contains("s3cret"), "{error}");
        }
        let unnamed = EngineAddress::parse("postgres:///work?hostaddr=10.0.0.7");
        assert!(unnamed.is_err(), "TLS needs the name");
        for url in [
            "postgres:///work?host=/run/postgresql",
            "postgres://?host=db",
            "postgresql://ray@/work?user=ray&hostaddr=10.0.0.7&host=db",
        ] {
            assert!(EngineAddress::parse(url).is_ok(), "{url}");
        }
    }
}
