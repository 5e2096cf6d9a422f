//! The initial settings of a new run: the defaults, overridden by the workflow's manifest.

use super::plugin_programs::asked_for;
use super::workflow::Workflow;
use crate::domain::permission::{RunPermission, StarterConsent};
use crate::domain::settings::ForkSettings;
use crate::domain::settings::Settings;

/// Returns the settings of a new run of a workflow.
pub fn settings_of(workflow: &Workflow) -> Settings {
    let manifest = &workflow.manifest;
    let defaults = Settings::default();
    let mut options = manifest.options.clone();
    let on_denied = options.on_denied.take();
    if let Some(folder) = &workflow.folder {
        options = options.below(folder);
    }
    Settings {
        model: manifest.model.clone(),
        budget_usd: manifest.budget,
        on_budget: manifest.on_budget.unwrap_or(defaults.on_budget),
        max_procs: manifest.max_procs.unwrap_or(defaults.max_procs),
        on_limit: manifest.on_limit.unwrap_or(defaults.on_limit),
        on_denied: on_denied.unwrap_or(defaults.on_denied),
        claude_args: manifest.claude_args.clone(),
        options,
        consent: StarterConsent {
            widest_mode: manifest.permission_mode.is_some().then(RunPermission::default),
            ..StarterConsent::default()
        },
        forking: ForkSettings {
            max_fan_out: manifest.max_fan_out.unwrap_or(defaults.forking.max_fan_out),
            stagger_ms: manifest.stagger_ms.unwrap_or(defaults.forking.stagger_ms),
            ..defaults.forking
        },
        supervision: defaults.supervision.with(&manifest.supervision),
        permission: manifest
            .permission_mode
            .clone()
            .map_or(defaults.permission, RunPermission::Mode),
        plugins: asked_for(&manifest.plugins, workflow.scope.root()),
        ..Settings::default()
    }
}
