//! The statements of each step, which are functions of the schema.
//!
//! A database gets these functions when its tables are made or migrated. Whoever adds one or changes one raises the version in
//! `schema.rs`, and has `greet` migrate the tables of the version before. Each gives one row at least, also if it found
//! nothing, because no row says that the fence does not hold.
//!
//! Rows that are named by their keys are found by these alone: `IS TRUE` keeps the planner from an index that has all rows of a
//! run. A time that an index compares with is `statement_timestamp()`, since `clock_timestamp()` can change in a statement.
//!
//! Statements that the database keeps as functions: each connection of the server plans them once.
//!
//! Planning such a statement costs as much as carrying it out. A statement that is prepared by a client would be planned
//! once, too, but a pooler may stand between, which lends each transaction another connection.

/// Makes a [`StoredStatement`] of a name, the types of its parameters, these as `$1, …`, the columns of its rows, and its text.
///
/// It is planned for any values, and by its indexes: a table that has no statistics yet looks small.
macro_rules! stored_statement {
    ($name:literal, ($types:literal, $parameters:literal), $columns:literal, $body:expr) => {
        StoredStatement {
            definition: concat!(
                "CREATE OR REPLACE FUNCTION raymond.",
                $name,
                "(",
                $types,
                ") RETURNS SETOF record LANGUAGE plpgsql ",
                "SET search_path TO pg_catalog ",
                "SET plan_cache_mode TO force_generic_plan SET enable_seqscan TO off ",
                "AS $function$ BEGIN RETURN QUERY ",
                $body,
                "; END $function$;\n"
            ),
            call: concat!(
                "SELECT * FROM raymond.",
                $name,
                "(",
                $parameters,
                ") AS answer (",
                $columns,
                ")"
            ),
        }
    };
}

/// All of them.
pub(super) const STEP_STATEMENTS: [StoredStatement; 7] =
    [APPEND, SEND, REQUESTS, BEGIN, REPLY, REPLIES, FORGET];

/// Appends the lines if the one before them is the last.
///
/// The last number may be an older one than that of the newest log. Then the first line has the number of one that is
/// there, so the key of the table refuses all. It is never a newer one, since no line is ever removed: there is no gap.
pub(super) const APPEND: StoredStatement = stored_statement!(
    "append",
    ("text, int8, int8[], text[], int8", "$1, $2, $3, $4, $5"),
    "appended int8",
    concat!(
        held_run!(),
        ", put AS (INSERT INTO raymond.log (run, seq, epoch, line) \
         SELECT $1, new.seq, $2, new.line FROM held, ROWS FROM (pg_catalog.unnest($3), pg_catalog.unnest($4)) AS new (seq, line) \
         WHERE coalesce((SELECT max(seq) FROM raymond.log WHERE run = $1), 0) = $5 - 1 \
         RETURNING 1) \
         SELECT (SELECT count(*) FROM put) FROM held"
    )
);

/// A request that an earlier supervisor took back is open again: the run was stopped then, and goes on now.
pub(super) const SEND: StoredStatement = stored_statement!(
    "send",
    ("text, int8, text[], text[], int8[], text[]", "$1, $2, $3, $4, $5, $6"),
    "held int4",
    concat!(
        held_run!(),
        ", put AS (INSERT INTO raymond.request AS old (key, run, host, host_epoch, body, state) \
         SELECT new.key, $1, new.host, new.host_epoch, new.body, 'open' \
         FROM held, ROWS FROM (pg_catalog.unnest($3), pg_catalog.unnest($4), pg_catalog.unnest($5), pg_catalog.unnest($6)) WITH ORDINALITY AS new (key, host, host_epoch, body, place) \
         ORDER BY new.place ON CONFLICT (key) DO UPDATE SET state = 'open', host = excluded.host, \
         host_epoch = excluded.host_epoch, body = excluded.body, sent = DEFAULT, withdrawn_by = NULL \
         WHERE old.run = $1 AND old.state = 'withdrawn' AND NOT old.begun AND old.withdrawn_by < $2) \
         SELECT 1 FROM held"
    )
);

/// Requests that were begun had been received. It only reads, so it locks nothing.
pub(super) const REQUESTS: StoredStatement = stored_statement!(
    "requests",
    ("text, int8, int8[], text[], bool, int8", "$1, $2, $3, $4, $5, $6"),
    "key text, run text, body text, sent int8",
    "WITH held AS (SELECT 1 FROM raymond.host WHERE host = $1 AND epoch = $2 \
     AND standing IN ('active', 'draining')) \
     SELECT next.key, next.run, next.body, next.sent FROM held LEFT JOIN LATERAL \
     (SELECT key, run, body, sent FROM raymond.request \
     WHERE host = $1 AND host_epoch = $2 AND state = 'open' AND ($5 OR NOT begun) \
     AND sent <> ALL ($3) AND key <> ALL ($4) ORDER BY sent LIMIT $6) AS next ON true ORDER BY next.sent"
);

/// Rows are locked in the order of their keys, as everywhere where one statement locks several.
pub(super) const BEGIN: StoredStatement = stored_statement!(
    "begin_requests",
    ("text, int8, text[]", "$1, $2, $3"),
    "key text",
    concat!(
        held_host!(),
        ", picked AS MATERIALIZED (SELECT key FROM raymond.request \
         WHERE key = ANY ($3) AND (host = $1 AND host_epoch = $2 AND state IN ('open', 'answered')) IS TRUE \
         AND EXISTS (SELECT FROM held) ORDER BY key FOR UPDATE), \
         put AS (UPDATE raymond.request AS old SET begun = true FROM picked WHERE old.key = picked.key) \
         SELECT picked.key FROM held LEFT JOIN picked ON true"
    )
);

/// The first reply stays.
pub(super) const REPLY: StoredStatement = stored_statement!(
    "reply",
    ("text, int8, text[], text[]", "$1, $2, $3, $4"),
    "run text",
    concat!(
        held_host!(),
        ", picked AS MATERIALIZED (SELECT old.key, new.body FROM ROWS FROM (pg_catalog.unnest($3), pg_catalog.unnest($4)) AS new (key, body) \
         JOIN raymond.request AS old ON old.key = new.key \
         WHERE (old.host = $1 AND old.host_epoch = $2 AND old.state = 'open') IS TRUE \
         AND EXISTS (SELECT FROM held) ORDER BY old.key FOR UPDATE OF old), \
         put AS (UPDATE raymond.request AS old \
         SET state = 'answered', reply = picked.body, answered = clock_timestamp(), \
         answered_in = pg_catalog.txid_current(), begun = true \
         FROM picked WHERE old.key = picked.key RETURNING old.run) \
         SELECT DISTINCT put.run FROM held LEFT JOIN put ON true"
    )
);

/// The replies from a transaction on, but for some, and the first transaction that may still reply: all before it are over.
///
/// It only reads, so it locks nothing.
pub(super) const REPLIES: StoredStatement = stored_statement!(
    "replies",
    ("text, int8, int8, text[], int8", "$1, $2, $3, $4, $5"),
    "key text, reply text, answered_in int8, first_open int8",
    "WITH held AS (SELECT 1 FROM raymond.run WHERE run = $1 AND epoch = $2) \
     SELECT next.key, next.reply, next.answered_in, \
     pg_catalog.txid_snapshot_xmin(pg_catalog.txid_current_snapshot()) FROM held LEFT JOIN LATERAL \
     (SELECT key, reply, answered_in FROM raymond.request \
     WHERE run = $1 AND state = 'answered' AND answered_in >= $3 AND key NOT LIKE '?%' \
     AND NOT EXISTS (SELECT FROM pg_catalog.unnest($4) AS known (key) WHERE known.key = request.key) \
     ORDER BY answered_in, key LIMIT $5) AS next ON true ORDER BY next.answered_in, next.key"
);

/// Rows are locked in the order of their keys. Old ones, of any run, are deleted by the way.
pub(super) const FORGET: StoredStatement = stored_statement!(
    "forget",
    ("text, int8, text[]", "$1, $2, $3"),
    "held int4",
    concat!(
        held_run!(unflushed),
        ", picked AS MATERIALIZED (SELECT key FROM raymond.request \
         WHERE key = ANY ($3) AND (run = $1 AND state <> 'forgotten') IS TRUE AND EXISTS (SELECT FROM held) \
         ORDER BY key FOR UPDATE), \
         gone AS (UPDATE raymond.request AS old \
         SET state = 'forgotten', forgotten = clock_timestamp(), body = '', reply = NULL \
         FROM picked WHERE old.key = picked.key), \
         purged AS (DELETE FROM raymond.request WHERE key IN (SELECT key FROM raymond.request \
         WHERE state = 'forgotten' AND forgotten < statement_timestamp() - interval '10 minutes' \
         AND EXISTS (SELECT FROM held) ORDER BY forgotten LIMIT 500 FOR UPDATE SKIP LOCKED)) \
         SELECT 1 FROM held"
    )
);

/// A statement as a function of the schema.
#[derive(Debug, Clone, Copy)]
pub(super) struct StoredStatement {
    /// The statement that makes the function, or replaces it.
    pub(super) definition: &'static str,
    /// The statement that calls it, with the same parameters.
    pub(super) call: &'static str,
}
