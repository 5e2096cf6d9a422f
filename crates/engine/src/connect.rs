//! An engine as an interface: its address, the connection to it, the space of runs, and the service of workers.

use std::any::Any;
use std::fmt;
use std::fmt::Debug;
use std::net::SocketAddr;
use std::sync::Arc;

use strum::{Display, EnumString, IntoStaticStr};

use crate::EngineError;
use raymond_model::id::RunId;

use crate::shared_log::{FactLog, HostMailbox, HostQuestions, HostRegistry, RunLease, SharedLog};

/// An engine.
pub trait Engine:
    SharedLog + RunSpace + FactLog + HostRegistry + HostMailbox + HostQuestions + Debug + Send + Sync
{
    /// Returns its address, which never shows a password.
    fn address(&self) -> &EngineAddress;
}

/// Connects to an engine.
///
/// # Errors
/// [`EngineError::NotBuilt`] if this program was built without it, [`EngineError::Address`],
/// [`EngineError::Unreachable`], [`EngineError::Refused`], [`EngineError::Version`].
pub fn connect(address: &EngineAddress) -> Result<Arc<dyn Engine>, EngineError> {
    match address.kind() {
        #[cfg(feature = "postgres")]
        EngineKind::Postgres => Ok(Arc::new(super::postgres::PostgresEngine::connect(address)?)),
        #[cfg(not(feature = "postgres"))]
        kind @ EngineKind::Postgres => Err(EngineError::NotBuilt { kind: kind.into() }),
        #[cfg(feature = "restate")]
        EngineKind::Restate => Ok(Arc::new(super::restate::RestateEngine::connect(address)?)),
        #[cfg(not(feature = "restate"))]
        kind @ EngineKind::Restate => Err(EngineError::NotBuilt { kind: kind.into() }),
    }
}

/// Serves an engine what it needs of a worker. Returns when somebody serves it: this one, or another one whose place it
/// takes when that is gone.
///
/// # Errors
/// As [`connect`]; [`EngineError::Refused`] if the engine needs nobody, or the options are not safe.
pub fn serve(
    address: &EngineAddress,
    options: &ServingOptions,
) -> Result<ServedEngine, EngineError> {
    match address.kind() {
        EngineKind::Postgres => Err(EngineError::Refused {
            engine: address.to_string(),
            why: format!("it does not need a listener on {}; leave out --listen", options.listen),
        }),
        #[cfg(feature = "restate")]
        EngineKind::Restate => super::restate::serving::serve(address, options),
        #[cfg(not(feature = "restate"))]
        kind @ EngineKind::Restate => Err(EngineError::NotBuilt { kind: kind.into() }),
    }
}

// The space of runs in an engine: commands from any machine, and large contents by their checksum.

/// A command that waits for the supervisor of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharedCommand {
    /// Its name, which is that of a file in an inbox.
    pub name: String,
    pub content: Vec<u8>,
}

/// Commands and contents.
pub trait RunSpace {
    /// Leaves a command for a run; it is durable when this returns. The same name again changes nothing.
    ///
    /// # Errors
    /// [`EngineError::NoSuchRun`].
    fn leave_command(&self, run: &RunId, command: &SharedCommand) -> Result<(), EngineError>;

    /// Returns the commands that wait, in the order of their names.
    ///
    /// # Errors
    /// [`EngineError::NoSuchRun`].
    fn commands(&self, run: &RunId) -> Result<Vec<SharedCommand>, EngineError>;

    /// Removes a command that a record of the run holds by now.
    ///
    /// # Errors
    /// [`EngineError::TakenOver`] if the lease is not the newest.
    fn remove_command(&self, lease: &RunLease, name: &str) -> Result<(), EngineError>;

    /// Keeps a content under its SHA-256 checksum, in hexadecimal digits. The same content again changes nothing.
    ///
    /// # Errors
    /// [`EngineError`] if it cannot be kept.
    fn put_blob(&self, sha256: &str, content: &[u8]) -> Result<(), EngineError>;

    /// Returns the content with a checksum. One of more than `most` bytes is not loaded.
    ///
    /// # Errors
    /// [`EngineError::Damaged`] if it is larger, [`EngineError`] if the engine cannot be asked.
    fn blob(&self, sha256: &str, most: u64) -> Result<Option<Vec<u8>>, EngineError>;
}

/// Returns why a content is not loaded.
#[cfg(any(feature = "postgres", feature = "restate"))]
pub(super) fn too_large(bytes: u64, most: u64) -> String {
    format!("it has at least {bytes} bytes, and at most {most} are loaded")
}

// The service of workers for an engine that dials them, as a Restate server does.

/// The options of a worker that serves an engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServingOptions {
    /// The address that it listens on.
    pub listen: SocketAddr,
    /// The URL under which the server reaches it; `None` for that of the address.
    pub advertise: Option<String>,
    /// The public key of the server; `None` if nobody else reaches the address.
    pub server_key: Option<String>,
}

/// A worker that serves an engine, until this is dropped.
pub struct ServedEngine {
    /// The URL under which it is reached.
    pub url: String,
    _serving: Box<dyn Any + Send>,
}

impl ServedEngine {
    #[cfg(feature = "restate")]
    pub(super) fn new(url: String, serving: impl Any + Send) -> Self {
        Self { url, _serving: Box::new(serving) }
    }
}

impl fmt::Debug for ServedEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ServedEngine").field(&self.url).finish()
    }
}

// The address of an engine. Its password is used, and never shown.

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
        if host.is_empty() && !rest.contains("host=") {
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
mod address_tests {
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
    fn other_texts_are_no_addresses() {
        for (text, why) in [
            ("db.example", "no `://`"),
            ("mysql://u:s3cret@db/x", "unknown engine `mysql`"),
            ("postgres://", "names no machine"),
            ("postgres:///work", "names no machine"),
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
        assert!(EngineAddress::parse("postgres:///work?host=/run/postgresql").is_ok());
    }
}
