//! The tables in a database: how they are made, and what is checked of a server before it is used.

use tokio_postgres::Client;

use super::failure::{Failure, FailureKind, STANDBY};
use super::received_mail::STEP_STATEMENTS;
use crate::{EngineAddress, EngineError};

/// The version of the tables.
pub(super) const VERSION: u32 = 3;

/// Begins a change of the tables. One machine makes it while others that start at the same time wait.
const BEGINNING: &str = "BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL lock_timeout = '3s'; SET LOCAL statement_timeout = '6s'; \
    SELECT pg_advisory_xact_lock(8241893021337261);";

/// Creates the tables if they do not exist.
///
/// The collation "C" orders texts by their bytes, regardless of the settings of the database.
///
/// `request` keeps forgotten requests for a while without their content, and `command` keeps removed commands likewise.
/// So a statement that was cut off and reaches the server after its repetition finds the key taken.
const MAKE: &str = r#"
IF to_regclass('raymond.version') IS NOT NULL THEN
    RETURN;
END IF;
IF to_regnamespace('raymond') IS NULL THEN
    CREATE SCHEMA raymond;
END IF;

CREATE TABLE raymond.run (
    run text COLLATE "C" PRIMARY KEY,
    terms text NOT NULL,
    epoch int8 NOT NULL,
    holder text,
    lease_until timestamptz,
    has_ended bool NOT NULL DEFAULT false
) WITH (fillfactor = 50);

CREATE TABLE raymond.log (
    run text COLLATE "C" NOT NULL,
    seq int8 NOT NULL,
    epoch int8 NOT NULL,
    line text NOT NULL,
    PRIMARY KEY (run, seq)
);

CREATE TABLE raymond.command (
    run text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    content bytea NOT NULL,
    left_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    removed timestamptz,
    PRIMARY KEY (run, name)
);

CREATE TABLE raymond.fact (
    number int8 PRIMARY KEY,
    change text NOT NULL
);

CREATE TABLE raymond.blob (
    sha256 text COLLATE "C" PRIMARY KEY,
    content bytea NOT NULL,
    CONSTRAINT content_has_checksum CHECK (encode(sha256(content), 'hex') = sha256)
);

CREATE TABLE raymond.host (
    host text COLLATE "C" PRIMARY KEY,
    epoch int8 NOT NULL,
    worker text NOT NULL,
    standing text NOT NULL CHECK (standing IN ('active', 'draining', 'lost', 'removed')),
    seen timestamptz NOT NULL,
    report jsonb NOT NULL
) WITH (fillfactor = 50);

CREATE TABLE raymond.request (
    key text COLLATE "C" PRIMARY KEY,
    run text COLLATE "C" NOT NULL,
    host text COLLATE "C" NOT NULL,
    host_epoch int8 NOT NULL,
    sent int8 GENERATED ALWAYS AS IDENTITY,
    state text NOT NULL CHECK (state IN ('open', 'answered', 'withdrawn', 'forgotten')),
    begun bool NOT NULL DEFAULT false,
    withdrawn_by int8,
    answered timestamptz,
    answered_in int8,
    forgotten timestamptz,
    body text NOT NULL,
    reply text
) WITH (fillfactor = 80);
CREATE INDEX request_open ON raymond.request (host, host_epoch, sent) WHERE state = 'open';
CREATE INDEX request_of_run ON raymond.request (run, answered_in) WHERE state <> 'forgotten';
CREATE INDEX request_forgotten ON raymond.request (forgotten) WHERE state = 'forgotten';

CREATE TABLE raymond.version (
    is_only bool PRIMARY KEY DEFAULT true CHECK (is_only),
    version int8 NOT NULL
);
INSERT INTO raymond.version (version) VALUES (3);
"#;

/// Refuses to change tables that somebody uses.
const CHECK_UNUSED: &str = r"
IF EXISTS (SELECT FROM raymond.host WHERE standing IN ('active', 'draining') AND seen > clock_timestamp() - interval '6 seconds')
OR EXISTS (SELECT FROM raymond.run WHERE lease_until > clock_timestamp()) THEN
    RAISE EXCEPTION 'they are in use' USING ERRCODE = 'object_in_use';
END IF;
";

/// Changes the tables of version 1 into those of version 2.
const MIGRATE_1: &str = r"
IF EXISTS (SELECT FROM raymond.version WHERE version = 1) THEN
    ALTER TABLE raymond.request DROP COLUMN received;
    ALTER TABLE raymond.request RENAME COLUMN read_by TO withdrawn_by;
    UPDATE raymond.version SET version = 2;
END IF;
";

/// Changes the tables of version 2 into those of version 3.
const MIGRATE_2: &str = r"
DROP INDEX IF EXISTS raymond.request_of_run;
DROP FUNCTION IF EXISTS raymond.replies(text, int8, text[], int8);
ALTER TABLE raymond.request ADD COLUMN answered_in int8;
UPDATE raymond.request SET answered_in = 0 WHERE state = 'answered';
CREATE INDEX request_of_run ON raymond.request (run, answered_in) WHERE state <> 'forgotten';
UPDATE raymond.version SET version = 3;
";

/// Returns the script that makes the tables and the functions, if there are none.
fn making() -> String {
    script(&[MAKE])
}

/// Returns the script that changes the tables of an earlier version, unless somebody else has done so meanwhile.
fn migration() -> String {
    let is_done = format!(
        "IF NOT EXISTS (SELECT FROM raymond.version WHERE version < {VERSION}) THEN RETURN; END IF;"
    );
    script(&[&is_done, CHECK_UNUSED, MIGRATE_1, MIGRATE_2])
}

/// Returns a script of these changes, and of the functions.
fn script(changes: &[&str]) -> String {
    let (changes, functions) =
        (changes.concat(), STEP_STATEMENTS.map(|function| function.definition).concat());
    format!("{BEGINNING} DO $make$ BEGIN {changes}{functions} END $make$; COMMIT;")
}

/// Asks a server what it is. The columns are those that `greet` reads.
const ASK: &str = "SELECT pg_is_in_recovery(), current_setting('synchronous_commit'), \
    to_regclass('raymond.version') IS NOT NULL, current_setting('server_version_num')::int8, \
    current_setting('server_encoding')";

/// The oldest server that has what the statements need.
const OLDEST_SERVER: i64 = 120_000;

/// Checks the server of a new connection, and makes the tables if there are none.
pub(super) async fn greet(client: &Client, address: &EngineAddress) -> Result<(), Failure> {
    let failed = |error| Failure::of_statement(address, &error);
    let row = client.query_typed_one(ASK, &[]).await.map_err(failed)?;
    if row.get::<_, i64>(3) < OLDEST_SERVER {
        return Err(Failure::refused(address, "it is older than PostgreSQL 12; update it"));
    }
    // The other one of these stores any bytes as they are.
    let encoding = row.get::<_, &str>(4).to_ascii_lowercase();
    if !["utf8", "sql_ascii"].contains(&encoding.as_str()) {
        let why = format!(
            "its encoding is {encoding}, which cannot store all texts; make a database with `CREATE DATABASE … ENCODING 'UTF8'`"
        );
        return Err(Failure::refused(address, why));
    }
    if row.get(0) {
        return Err(Failure::unreachable(address, STANDBY));
    }
    if row.get::<_, &str>(1) == "off" {
        let why = "synchronous_commit is off, so it could lose what it has acknowledged; set it with `ALTER ROLE … SET synchronous_commit = on`";
        return Err(Failure::refused(address, why));
    }
    if !row.get::<_, bool>(2) {
        client.batch_execute(&making()).await.map_err(failed)?;
    }
    let mut found = version(client, address).await?;
    if (1..VERSION).contains(&found) {
        let changed = client.batch_execute(&migration()).await;
        changed.map_err(|error| Failure::of_migration(address, &error))?;
        found = version(client, address).await?;
    }
    if found != VERSION {
        let engine = address.to_string();
        let error = EngineError::Version { engine, found, known: VERSION };
        return Err(Failure { kind: FailureKind::Final, error });
    }
    Ok(())
}

/// Returns the version of the tables.
async fn version(client: &Client, address: &EngineAddress) -> Result<u32, Failure> {
    let row = client.query_typed_opt("SELECT version FROM raymond.version", &[]).await;
    let row = row.map_err(|error| Failure::of_statement(address, &error))?;
    let Some(row) = row else {
        return Err(Failure::damaged(address, "the schema raymond", "it has no version"));
    };
    Ok(u32::try_from(row.get::<_, i64>(0)).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_made_with_the_version_that_is_checked() {
        assert!(
            MAKE.contains(&format!("INSERT INTO raymond.version (version) VALUES ({VERSION});"))
        );
    }
}
