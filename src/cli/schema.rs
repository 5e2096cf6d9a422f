//! `raymond schema`: the protocol of plug-ins as JSON Schema.

use clap::{Args, ValueEnum};

use super::exit::{Error, Exit};
use super::output;
use crate::plugin::schema::{self, schema};

/// Options of `schema`.
#[derive(Debug, Clone, Args)]
pub struct SchemaArgs {
    /// Which part [default: all of it]
    #[arg(value_enum)]
    pub part: Option<Part>,
}

/// A part of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Part {
    /// Each line that a plug-in is told
    Told,
    /// Each line that it may say
    Said,
    /// A record: so it is told, and so it stands in the journal
    Record,
    /// What a plug-in is asked
    Consult,
    /// What it answers
    Verdict,
}

/// `raymond schema`
///
/// # Errors
/// [`Error::Io`] if it cannot be printed.
pub fn print(args: &SchemaArgs) -> Result<Exit, Error> {
    let part = match args.part {
        None => schema::Part::All,
        Some(Part::Told) => schema::Part::Told,
        Some(Part::Said) => schema::Part::Said,
        Some(Part::Record) => schema::Part::Record,
        Some(Part::Consult) => schema::Part::Consult,
        Some(Part::Verdict) => schema::Part::Verdict,
    };
    output::print_json(&schema(part))
}
