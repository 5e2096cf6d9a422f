//! Expressions by tables.
