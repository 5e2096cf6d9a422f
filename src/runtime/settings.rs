//! The settings of a new run before anyone has said anything else: the defaults, and over them what
//! the workflow says about itself.

use crate::domain::settings::{Permission, Settings};
use crate::language::manifest::Manifest;

/// The settings of a new run of a workflow.
#[must_use]
pub fn settings_of(manifest: &Manifest) -> Settings {
    let defaults = Settings::default();
    Settings {
        model: manifest.model,
        budget_usd: manifest.budget,
        on_budget: manifest.on_budget.unwrap_or(defaults.on_budget),
        max_procs: manifest.max_procs.unwrap_or(defaults.max_procs),
        on_limit: manifest.on_limit.unwrap_or(defaults.on_limit),
        claude_args: manifest.claude_args.clone(),
        supervision: defaults.supervision.with(&manifest.supervision),
        permission: manifest.permission_mode.clone().map_or(defaults.permission, Permission::Mode),
        ..Settings::default()
    }
}
