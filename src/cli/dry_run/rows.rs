//! The settings of a run that would start, each with its origin.

use serde::Serialize;

use crate::cli::args::RunArgs;
use crate::cli::options::RunOptions;
use crate::domain::permission::RunPermission;
use crate::domain::sealed_terms::mode;
use crate::domain::settings::MaxProcs;
use crate::domain::time::format_duration;
use crate::language::manifest::{FILE, Manifest, ON_BUDGET, ON_LIMIT};
use crate::runtime::start_plan::StartPlan;

/// A setting.
#[derive(Serialize)]
pub(super) struct SettingRow {
    pub(super) name: &'static str,
    pub(super) value: String,
    pub(super) origin: String,
}

/// The model if nobody names one.
const OWN_MODEL: &str = "Claude Code's default";

/// Returns the model of the first turn, and its origin.
pub(super) fn model_of(plan: &StartPlan, given: Option<&RunOptions>) -> (String, String) {
    let of_state = plan.prompt.as_ref().and_then(|prompt| prompt.model.as_ref());
    if let Some(model) = of_state {
        return (model.to_string(), plan.first.name.clone());
    }
    match &plan.settings.model {
        Some(model) => {
            let is_given = given.is_some_and(|options| options.model.is_some());
            (model.to_string(), origin("--model", is_given, true))
        }
        None => (OWN_MODEL.to_owned(), "default".to_owned()),
    }
}

fn origin(option: &str, is_given: bool, is_in_manifest: bool) -> String {
    match (is_given, is_in_manifest) {
        (true, _) => option.to_owned(),
        (false, true) => FILE.to_owned(),
        (false, false) => "default".to_owned(),
    }
}

/// Returns a setting whose option has its name.
fn row(name: &'static str, value: String, is_given: bool, is_in_manifest: bool) -> SettingRow {
    let option = format!("--{}", name.replace('_', "-"));
    SettingRow { name, value, origin: origin(&option, is_given, is_in_manifest) }
}

/// Returns the settings.
pub(super) fn rows(args: &RunArgs, manifest: &Manifest, plan: &StartPlan) -> Vec<SettingRow> {
    let (options, settings) = (&args.options, &plan.settings);
    let (value, origin) = model_of(plan, Some(options));
    let mut rows = vec![SettingRow { name: "model", value, origin }];
    rows.extend(permission_rows(args, manifest, plan));
    let budget = settings.budget_usd.map_or("none".to_owned(), |budget| budget.to_string());
    let (on_budget, on_limit) =
        (named(&ON_BUDGET, settings.on_budget), named(&ON_LIMIT, settings.on_limit));
    rows.extend([
        row("budget", budget, options.budget.is_some(), settings.budget_usd.is_some()),
        row("on_budget", on_budget, options.on_budget.is_some(), manifest.on_budget.is_some()),
        row("on_limit", on_limit, options.on_limit.is_some(), manifest.on_limit.is_some()),
    ]);
    rows.extend(process_rows(args, manifest, plan));
    rows.extend(supervision_rows(args, manifest, plan));
    rows.push(row("cwd", settings.cwd.clone(), args.new_run.cwd.is_some(), false));
    rows
}

fn permission_rows(args: &RunArgs, manifest: &Manifest, plan: &StartPlan) -> Vec<SettingRow> {
    let (consent, settings) = (&args.options.consent, &plan.settings);
    let state = plan.prompt.as_ref().map(|prompt| &prompt.options);
    let own_mode = state.and_then(|options| options.permission_mode);
    let (value, of_mode) = if let Some(mode) = own_mode {
        (mode.name().to_owned(), plan.first.name.clone())
    } else {
        let option = match settings.permission {
            RunPermission::SkipAll => "--dangerously-skip-permissions",
            RunPermission::Mode(_) => "--permission-mode",
        };
        let is_given =
            consent.dangerously_skip_permissions || args.options.permission_mode.is_some();
        let origin = origin(option, is_given, manifest.permission_mode.is_some());
        (mode(&settings.permission).to_owned(), origin)
    };
    let mut rows = vec![SettingRow { name: "permission mode", value, origin: of_mode }];
    let mut tools = |name, own: Option<&Vec<String>>, general: Option<&Vec<String>>| {
        let origin = if own.is_some() { plan.first.name.clone() } else { FILE.to_owned() };
        if let Some(listed) = own.or(general) {
            rows.push(SettingRow { name, value: listed.join(", "), origin });
        }
    };
    let general = &settings.options;
    tools("tools", state.and_then(|own| own.tools.as_ref()), general.tools.as_ref());
    tools(
        "allowed tools",
        state.and_then(|own| own.allowed_tools.as_ref()),
        general.allowed_tools.as_ref(),
    );
    tools(
        "disallowed tools",
        state.and_then(|own| own.disallowed_tools.as_ref()),
        general.disallowed_tools.as_ref(),
    );
    if !settings.consent.every_state.is_empty() {
        rows.push(SettingRow {
            name: "tools allowed in every state",
            value: settings.consent.every_state.join(", "),
            origin: "--allow-tool".to_owned(),
        });
    }
    rows
}

fn process_rows(args: &RunArgs, manifest: &Manifest, plan: &StartPlan) -> Vec<SettingRow> {
    let (given, settings) = (&args.options.processes, &plan.settings);
    let procs = match settings.max_procs {
        MaxProcs::Auto => "auto".to_owned(),
        MaxProcs::Count(count) => count.to_string(),
    };
    let warm = if settings.warm {
        format!("for {}", format_duration(settings.warm_for_ms))
    } else {
        "no".to_owned()
    };
    let is_warm_given = given.no_warm || given.warm_for.is_some() || given.prestart.is_some();
    let (agents, stagger) = (settings.forking.max_agents, settings.forking.stagger_ms);
    let stagger = format_duration(stagger);
    vec![
        row("max_procs", procs, given.max_procs.is_some(), manifest.max_procs.is_some()),
        row("max_agents", agents.to_string(), given.max_agents.is_some(), false),
        row("stagger", stagger, given.stagger.is_some(), manifest.stagger_ms.is_some()),
        SettingRow {
            name: "warm processes",
            value: warm,
            origin: origin("--warm-for", is_warm_given, false),
        },
    ]
}

fn supervision_rows(args: &RunArgs, manifest: &Manifest, plan: &StartPlan) -> Vec<SettingRow> {
    let (given, own) = (&args.options.supervision, &manifest.supervision);
    let policy = &plan.settings.supervision;
    let restarts = format!("{} in {}", policy.max_restarts, format_duration(policy.period_ms));
    let backoff = format!(
        "{}..{}",
        format_duration(policy.backoff_min_ms),
        format_duration(policy.backoff_max_ms)
    );
    let word = |value: serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    let (restart, on_exhausted) =
        (word(serde_json::json!(policy.restart)), word(serde_json::json!(policy.on_exhausted)));
    let timeout = format_duration(policy.timeout_ms);
    let idle = format_duration(policy.idle_timeout_ms);
    vec![
        row("restart", restart, given.restart.is_some(), own.restart.is_some()),
        row("max_restarts", restarts, given.max_restarts.is_some(), own.max_restarts.is_some()),
        row("backoff", backoff, given.backoff.is_some(), own.backoff_min_ms.is_some()),
        row("timeout", timeout, given.timeout.is_some(), own.timeout_ms.is_some()),
        row("idle_timeout", idle, given.idle_timeout.is_some(), own.idle_timeout_ms.is_some()),
        row("on_exhausted", on_exhausted, given.on_exhausted.is_some(), own.on_exhausted.is_some()),
    ]
}

fn named<T: PartialEq + Copy>(names: &[(&'static str, T)], value: T) -> String {
    let name = names.iter().find(|(_, known)| *known == value);
    name.map_or_else(String::new, |(name, _)| (*name).to_owned())
}
