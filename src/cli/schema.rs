//! `raymond schema`: the protocol of plug-ins as JSON Schema.

use clap::{Args, ValueEnum};

use super::exit::{CliExitCode, Error};
use super::output;
use crate::plugin::schema::{self, schema};

/// Options of `schema`.
#[derive(Debug, Clone, Args)]
pub struct SchemaArgs {
    /// The part to print [default: all]
    #[arg(value_enum)]
    pub part: Option<ProtocolPartArg>,
}

/// A part of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ProtocolPartArg {
    /// Messages to a plug-in
    Told,
    /// Messages from a plug-in
    Said,
    /// A record of an event
    Record,
    /// Queries to a plug-in
    Consult,
    /// Answers of a plug-in
    Verdict,
}

/// Runs `raymond schema`.
///
/// # Errors
/// [`Error::Io`] if it cannot be printed.
pub fn print(args: &SchemaArgs) -> Result<CliExitCode, Error> {
    let part = match args.part {
        None => schema::ProtocolPart::All,
        Some(ProtocolPartArg::Told) => schema::ProtocolPart::Told,
        Some(ProtocolPartArg::Said) => schema::ProtocolPart::Said,
        Some(ProtocolPartArg::Record) => schema::ProtocolPart::Record,
        Some(ProtocolPartArg::Consult) => schema::ProtocolPart::Consult,
        Some(ProtocolPartArg::Verdict) => schema::ProtocolPart::Verdict,
    };
    output::print_json(&schema(part))
}
