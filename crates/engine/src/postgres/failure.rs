//! Errors of the server and of connections: what they mean for a call, and their texts, which never hold a password.

use std::error::Error as _;

use raymond_model::words::joined_words;
use tokio_postgres::Error;
use tokio_postgres::error::SqlState;

use crate::client::causes;
use crate::{EngineAddress, EngineError};

/// What an error means for the call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FailureKind {
    /// The connection is no longer usable. Another connection may be.
    Broken,
    /// The statement lost against another one. It may be made again at once.
    Crossed,
    /// A row with that key is there already.
    Taken,
    /// The statement failed, and would again.
    Final,
}

/// A call that failed.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) kind: FailureKind,
    pub(super) error: EngineError,
}

impl From<Failure> for EngineError {
    fn from(failure: Failure) -> Self {
        failure.error
    }
}

/// The remedy for rights that are missing.
const GRANTS: &str = "the owner of the schema gives them: GRANT USAGE ON SCHEMA raymond TO …; \
    GRANT SELECT ON ALL TABLES IN SCHEMA raymond TO …; \
    GRANT INSERT ON raymond.run, raymond.log, raymond.fact, raymond.command, raymond.blob, raymond.host, raymond.request TO …; \
    GRANT UPDATE ON raymond.run, raymond.command, raymond.host, raymond.request TO …; \
    GRANT DELETE ON raymond.command, raymond.request TO …; \
    GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA raymond TO …; the role that creates it needs GRANT CREATE ON DATABASE … TO …";

impl Failure {
    /// Returns an error of the connection: it may pass.
    pub(super) fn unreachable(address: &EngineAddress, why: impl Into<String>) -> Self {
        Self { kind: FailureKind::Broken, error: EngineError::unreachable(address, why) }
    }

    /// Returns an error that stays.
    pub(super) fn refused(address: &EngineAddress, why: impl Into<String>) -> Self {
        Self { kind: FailureKind::Final, error: EngineError::refused(address, why) }
    }

    /// Returns an error about what is stored.
    pub(super) fn damaged(address: &EngineAddress, what: &str, why: impl Into<String>) -> Self {
        Self { kind: FailureKind::Final, error: EngineError::damaged(address, what, why) }
    }

    /// Judges an error of the statements that change the tables of the version before.
    pub(super) fn of_migration(address: &EngineAddress, error: &Error) -> Self {
        match error.as_db_error() {
            Some(refused) if *refused.code() == SqlState::INSUFFICIENT_PRIVILEGE => {
                let why = "its tables are of an earlier version, and only their owner can change them: run `raymond hosts` once with the owner's address";
                Self::refused(address, why)
            }
            Some(refused)
                if [SqlState::OBJECT_IN_USE, SqlState::LOCK_NOT_AVAILABLE]
                    .contains(refused.code()) =>
            {
                let why = "its tables have an earlier version, which other raymond processes are using: end their workers and stop their runs, then connect with this version";
                Self::refused(address, why)
            }
            _ => Self::of_statement(address, error),
        }
    }

    /// Judges an error of a statement.
    pub(super) fn of_statement(address: &EngineAddress, error: &Error) -> Self {
        let Some(from_server) = error.as_db_error() else {
            return Self::unreachable(
                address,
                format!("the connection broke: {}", causes(Some(error))),
            );
        };
        let (code, message) = (from_server.code(), joined_words(from_server.message()));
        let class = code.code().get(..2).unwrap_or_default();
        if *code == SqlState::T_R_SERIALIZATION_FAILURE || *code == SqlState::T_R_DEADLOCK_DETECTED
        {
            return Self { kind: FailureKind::Crossed, ..Self::unreachable(address, message) };
        }
        if *code == SqlState::UNIQUE_VIOLATION {
            return Self { kind: FailureKind::Taken, ..Self::refused(address, message) };
        }
        if *code == SqlState::INSUFFICIENT_PRIVILEGE {
            return Self::refused(address, format!("{message}; {GRANTS}"));
        }
        if *code == SqlState::READ_ONLY_SQL_TRANSACTION {
            return Self::unreachable(address, STANDBY);
        }
        if *code == SqlState::DISK_FULL {
            return Self::refused(address, format!("{message}; make room on its disk"));
        }
        let missing = [
            SqlState::UNDEFINED_TABLE,
            SqlState::UNDEFINED_COLUMN,
            SqlState::UNDEFINED_FUNCTION,
            SqlState::INVALID_SCHEMA_NAME,
        ];
        if missing.contains(code) {
            return Self::damaged(address, "the schema raymond", message);
        }
        match class {
            // It cannot be reached, has no memory or connection left, was shut down, or cancelled the statement.
            "08" | "53" | "57" | "58" => Self::unreachable(address, message),
            // A value that no column takes, or that breaks a rule of its table or a limit of the program.
            "22" | "23" | "54" => {
                let engine = address.to_string();
                let why = format!("{message} (SQLSTATE {})", code.code());
                Self { kind: FailureKind::Final, error: EngineError::Unstorable { engine, why } }
            }
            _ => Self::refused(address, format!("{message} (SQLSTATE {})", code.code())),
        }
    }

    /// Judges an error of a new connection.
    pub(super) fn of_connection(address: &EngineAddress, error: &Error) -> Self {
        if let Some(from_server) = error.as_db_error() {
            let (code, message) = (from_server.code(), joined_words(from_server.message()));
            let remedy = match code.code() {
                "28P01" | "28000" => {
                    "give the right user and password, as in postgres://USER:PASSWORD@HOST/DATABASE, or have pg_hba.conf let this machine in"
                }
                "3D000" => "name a database that is there, or make it with `createdb`",
                _ => return Self::of_statement(address, error),
            };
            return Self::refused(address, format!("{message}; {remedy}"));
        }
        let why = causes(Some(error));
        if why.contains("password missing") {
            let remedy = "write it as postgres://USER:PASSWORD@HOST/DATABASE";
            return Self::refused(
                address,
                format!("it asks for a password, but none is given; {remedy}"),
            );
        }
        if why.contains("does not support TLS") {
            let remedy = "enable TLS on the server, or write ?sslmode=disable if nobody else can read the connection";
            return Self::refused(address, format!("it offers no TLS; {remedy}"));
        }
        if is_about_certificate(error) {
            let remedy = "name the file of its authority with ?sslrootcert=FILE, and the machine as the certificate does";
            return Self::refused(
                address,
                format!("its certificate is not trusted: {why}; {remedy}"),
            );
        }
        let remedy =
            "check that PostgreSQL listens there, and the machine and the port of the address";
        Self::unreachable(address, format!("{why}; {remedy}"))
    }
}

/// What is wrong with a server that takes no writes.
pub(super) const STANDBY: &str = "it is a standby, which does not accept writes; name the primary, or all servers and ?target_session_attrs=read-write";

/// Returns whether TLS failed because the certificate was not accepted.
fn is_about_certificate(error: &Error) -> bool {
    let mut next = error.source();
    while let Some(cause) = next {
        let inner = cause.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
        let tls = cause
            .downcast_ref::<rustls::Error>()
            .or_else(|| inner.and_then(|inner| inner.downcast_ref()));
        if let Some(rustls::Error::InvalidCertificate(_)) = tls {
            return true;
        }
        next = cause.source();
    }
    false
}
