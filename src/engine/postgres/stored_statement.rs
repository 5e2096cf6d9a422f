//! Statements that the database keeps as functions: each connection of the server plans them once.
//!
//! Planning such a statement costs as much as carrying it out. A statement that is prepared by a client would be planned
//! once, too, but a pooler may stand between, which lends each transaction another connection.

/// A statement as a function of the schema.
#[derive(Debug, Clone, Copy)]
pub(super) struct StoredStatement {
    /// The statement that makes the function, or replaces it.
    pub(super) definition: &'static str,
    /// The statement that calls it, with the same parameters.
    pub(super) call: &'static str,
}

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
