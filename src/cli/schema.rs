//! `raymond schema`: the protocol of plug-ins, and the files of workflows, as JSON Schema.

use clap::{Args, ValueEnum};
use serde_json::Value;

use super::exit::{CliExitCode, Error};
use super::output;
use crate::language::graph::vocabulary::GraphVocabulary;
use crate::language::schema::FileSchema;
use crate::plugin::schema::{ProtocolPart, schema};

const SCHEMA_HELP: &str = "Examples:
  raymond schema                         the whole protocol of plug-ins
  raymond schema record                  a line of `raymond log --json`
  raymond schema graph > graph.schema.json";

/// Options of `schema`.
#[derive(Debug, Clone, Args)]
#[command(after_help = SCHEMA_HELP)]
pub struct SchemaArgs {
    /// The schema to print
    #[arg(value_enum, default_value_t = SchemaNameArg::Plugin)]
    pub name: SchemaNameArg,
}

/// A schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SchemaNameArg {
    /// All messages to and from a plug-in
    Plugin,
    /// Messages to a plug-in
    #[value(alias = "told")]
    HostMessage,
    /// Messages from a plug-in
    #[value(alias = "said")]
    PluginMessage,
    /// A record of an event, as plug-ins and readers of --json see it
    Record,
    /// Queries to a plug-in
    Consult,
    /// Answers of a plug-in
    Verdict,
    /// The frontmatter of a prompt
    Frontmatter,
    /// raymond.yaml, the manifest of a workflow
    RaymondYaml,
    /// replies.yaml, the scripted replies of a workflow
    Replies,
    /// A graph
    Graph,
    /// tests/*.yaml, the test cases of a workflow
    Tests,
}

/// Runs `raymond schema`.
///
/// # Errors
/// [`Error::Io`] if it cannot be printed.
pub fn print(args: &SchemaArgs) -> Result<CliExitCode, Error> {
    let mut schema = match args.name {
        SchemaNameArg::Plugin => schema(ProtocolPart::All),
        SchemaNameArg::HostMessage => schema(ProtocolPart::HostMessage),
        SchemaNameArg::PluginMessage => schema(ProtocolPart::PluginMessage),
        SchemaNameArg::Record => schema(ProtocolPart::Record),
        SchemaNameArg::Consult => schema(ProtocolPart::Consult),
        SchemaNameArg::Verdict => schema(ProtocolPart::Verdict),
        SchemaNameArg::Frontmatter => of_file(FileSchema::Frontmatter),
        SchemaNameArg::RaymondYaml => of_file(FileSchema::Manifest),
        SchemaNameArg::Replies => of_file(FileSchema::Replies),
        SchemaNameArg::Graph => of_file(FileSchema::Graph),
        SchemaNameArg::Tests => of_file(FileSchema::Tests),
    };
    // The kept copies are compared and merged as text, so their order does not depend on that of the code.
    schema.sort_all_objects();
    output::print_json(&schema)
}

fn of_file(file: FileSchema) -> Value {
    file.schema(&GraphVocabulary::new())
}
