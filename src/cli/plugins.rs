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
    /// A program that is told what happens, and may have a say; kept with the run: no secrets here.
    /// May be given several times; when a run goes on, in the place of those given before
    #[arg(long, value_name = "CMD", value_parser = command)]
    pub plugin: Vec<PlugIn>,

    /// Start none of the programs that raymond.yaml asks for, or that the run had before
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
