//! Options for programs as plug-ins, and the notices about those that a workflow asks for.

use clap::Args;

use crate::domain::plugin::PlugIn;
use crate::language::manifest;
use crate::language::plugins::command;
use crate::runtime::PreparedRun;

/// The programs that run as plug-ins.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Plug-ins")]
pub struct PluginArgs {
    /// A plug-in: a program that gets all events and may decide on some; stored with the run, so pass no
    /// secrets. Repeatable; on resume it replaces those given before
    #[arg(long, value_name = "CMD", value_parser = command)]
    pub plugin: Vec<PlugIn>,

    /// Start no plug-ins, neither those of raymond.yaml nor those the run had before
    #[arg(long)]
    pub no_plugins: bool,
}

/// Returns a line for each program that is started because the workflow asks for it.
pub(super) fn announced(prepared: &PreparedRun) -> Vec<String> {
    let settings = prepared.start.settings(&prepared.run);
    let by_workflow = settings.plugins.iter().filter(|plugin| plugin.by_workflow);
    by_workflow
        .map(|plugin| {
            let (name, command) = (&plugin.name, plugin.command.join(" "));
            format!("plug-in {name}: {command} (asked for by {})", manifest::FILE)
        })
        .collect()
}
