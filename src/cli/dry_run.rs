//! `raymond run --dry-run`: what a start would do, without starting or writing anything.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use serde::Serialize;
use serde_json::{Value, json};

use super::args::RunArgs;
use super::exit::{CliExitCode, Error};
use super::target::RunTarget;
use super::{check, output, person, settings, target};
use crate::cli::options::RunOptions;
use crate::domain::model::{PRICES_OF, estimated_tokens, input_cost};
use crate::domain::money::Usd;
use crate::domain::printable::printable;
use crate::domain::privilege::RunPermission;
use crate::domain::sealed_terms::mode;
use crate::domain::settings::{AnswererKind, MaxProcs};
use crate::domain::time::format_duration;
use crate::language::manifest::{FILE, Manifest, ON_BUDGET, ON_LIMIT};
use crate::runtime;
use crate::runtime::graphs::GraphSetup;
use crate::runtime::start_plan::{PlannedState, StartPlan, plan};
use crate::runtime::{RunStarter, directories};
use crate::store::layout::RunsRoot;

/// The most lines and bytes of the prompt that are shown.
const MAX_SHOWN_LINES: usize = 12;
const MAX_SHOWN_BYTES: usize = 1000;

/// Runs `raymond run --dry-run`. The exit code is that of the start before its run begins.
///
/// # Errors
/// [`Error`] if no run of the workflow could begin.
pub(super) fn dry_run(args: &RunArgs, root: &RunsRoot) -> Result<CliExitCode, Error> {
    let workflow = match target::resolve(&args.target, root)? {
        RunTarget::Workflow(workflow) => *workflow,
        RunTarget::Run(id) => {
            let why = format!(
                "--dry-run shows what the start of a workflow would do, and {id} is a run; `raymond status {id}` shows it"
            );
            return Err(Error::Usage(why));
        }
    };
    let settings = settings::new(args, &workflow)?;
    let request = settings::request(&args.new_run, None)?;
    let starter = RunStarter {
        state: directories::user_state()?,
        confirmation: person::trust_origin(&args.options.consent),
        confirmed: BTreeSet::new(),
    };
    let plan = plan(root, &workflow, &request, settings, &GraphSetup::default(), &starter)?;
    let rows = rows(args, &workflow.manifest, &plan);
    if args.options.json {
        output::print_json(&as_json(&plan, &rows))?;
    } else {
        output::print(&as_text(&plan, &rows))?;
        for warning in &plan.warnings {
            output::warn(warning);
        }
    }
    let mut exit = CliExitCode::Success;
    for refusal in plan.refusals.into_iter().rev() {
        if let runtime::Error::Check(found) = &refusal {
            check::complain_of(found);
        } else {
            output::complain(&refusal.to_string());
        }
        exit = Error::from(refusal).exit();
    }
    Ok(exit)
}

/// The least that the first turn costs, as far as the prices are known.
struct LeastCost {
    model: String,
    tokens: u64,
    /// The cost; `None` for a model that the table does not know.
    cost: Option<Usd>,
}

fn least_cost(plan: &StartPlan) -> Option<LeastCost> {
    let is_asked = plan.settings.answerer.calls_model() && plan.settings.replayed_part().is_none();
    let prompt = plan.prompt.as_ref().filter(|_| is_asked)?;
    let tokens = estimated_tokens(&prompt.text);
    let (model, _) = model_of(plan, None);
    let cost = input_cost(&model, tokens);
    Some(LeastCost { model, tokens, cost })
}

fn as_text(plan: &StartPlan, rows: &[SettingRow]) -> String {
    let mut text = String::from("nothing was started; a run would do this\n\nfirst\n");
    let _ = writeln!(text, "  state     {} ({})", plan.first.name, plan.first.kind);
    let _ = writeln!(text, "  answerer  {}", answerer(plan));
    match &plan.prompt {
        Some(prompt) => {
            let size = format!(
                "{} bytes, about {} tokens",
                prompt.text.len(),
                estimated_tokens(&prompt.text)
            );
            let _ = writeln!(text, "  session   a fresh one\n  prompt    {size}");
            for line in beginning(&printable(&prompt.text)) {
                let _ = writeln!(text, "{}", format!("    {line}").trim_end());
            }
        }
        None if plan.asks => {
            text.push_str("  prompt    what it asks first depends on what it does before\n");
        }
        None => text.push_str("  prompt    it asks nothing by itself\n"),
    }
    text.push_str("\nsettings\n");
    let cells: Vec<Vec<String>> = rows
        .iter()
        .map(|row| vec![format!("  {}", row.name), row.value.clone(), row.origin.clone()])
        .collect();
    text.push_str(&output::table(&cells));
    text.push_str("\ntrust\n");
    text.push_str(match (plan.trust.is_needed, plan.trust.is_given) {
        (false, _) => "  none is needed\n",
        (true, true) => "  it is needed, and given\n",
        (true, false) => "  it is needed, and not given\n",
    });
    for request in &plan.trust.requests {
        let _ = writeln!(text, "  {request}");
    }
    text.push_str("\nstates that can be reached\n");
    let state = |state: &PlannedState| {
        let model = state.model.as_ref().map(ToString::to_string);
        vec![format!("  {}", state.name), state.kind.to_owned(), model.unwrap_or_default()]
    };
    text.push_str(&output::table(&plan.states.iter().map(state).collect::<Vec<_>>()));
    let _ = write!(text, "\ncost\n  {}\n", cost_sentence(plan));
    text
}

fn cost_sentence(plan: &StartPlan) -> String {
    if plan.settings.replayed_part().is_some() {
        return "nothing for the turns that the cassette answers; the cost of the other turns is not known in advance".to_owned();
    }
    let Some(LeastCost { model, tokens, cost }) = least_cost(plan) else {
        return plan.settings.answerer.note_on_costs().map_or_else(
            || "not known before the first prompt is".to_owned(),
            |_| "nothing: no model is called".to_owned(),
        );
    };
    match cost {
        Some(cost) => format!(
            "at least {cost}: about {tokens} input tokens of the first prompt with {model}, by the prices of {PRICES_OF}; the system prompt, tools, answers and all further turns cost extra"
        ),
        None => format!(
            "unknown: the price of {model} is not in the table of {PRICES_OF}; the first prompt has about {tokens} tokens"
        ),
    }
}

/// Returns who answers, for people.
fn answerer(plan: &StartPlan) -> String {
    let part = plan.settings.replayed_part().map_or(String::new(), |(cassette, until)| {
        format!("the cassette {} up to record {until}, then ", cassette.path)
    });
    let rest = match (plan.settings.answerer, &plan.claude) {
        (AnswererKind::Claude, Some(program)) => {
            let version = program.version.as_deref();
            let version = version.unwrap_or("version not known without starting it");
            format!("Claude Code {version}, {}", program.path.display())
        }
        (AnswererKind::Claude, None) => format!("Claude Code, not found: {}", plan.settings.claude),
        (AnswererKind::Replay, _) => {
            let cassette = plan.settings.cassette.as_ref();
            format!("the cassette {}", cassette.map_or("", |cassette| &cassette.path))
        }
        (answerer @ AnswererKind::Scripted, _) => answerer.meaning().to_owned(),
    };
    part + &rest
}

fn as_json(plan: &StartPlan, rows: &[SettingRow]) -> Value {
    let prompt = plan.prompt.as_ref().map(|prompt| {
        json!({
            "text": prompt.text,
            "bytes": prompt.text.len(),
            "estimated_tokens": estimated_tokens(&prompt.text),
            "session": "fresh",
        })
    });
    let refusal = |error: &runtime::Error| json!({ "message": error.to_string(), "exit_code": super::exit::of_runtime(error).code() });
    let cost = least_cost(plan).map(|least| {
        json!({
            "model": least.model,
            "estimated_tokens": least.tokens,
            "at_least_usd": least.cost,
            "prices_of": PRICES_OF,
        })
    });
    json!({
        "first": plan.first,
        "asks": plan.asks,
        "prompt": prompt,
        "answerer": {
            "kind": plan.settings.answerer,
            "program": plan.claude.as_ref().map(|program| program.path.display().to_string()),
            "version": plan.claude.as_ref().and_then(|program| program.version.clone()),
            "cassette": plan.settings.cassette.as_ref().map(|cassette| &cassette.path),
            "until": plan.settings.replayed_part().map(|(_, until)| until),
        },
        "settings": rows,
        "trust": plan.trust,
        "states": plan.states,
        "cost": cost,
        "warnings": plan.warnings,
        "refusals": plan.refusals.iter().map(refusal).collect::<Vec<_>>(),
    })
}

/// Returns the first lines of a text, and how much is left.
fn beginning(text: &str) -> Vec<String> {
    let cut = &text[..text.floor_char_boundary(MAX_SHOWN_BYTES)];
    let mut lines: Vec<String> = cut.lines().take(MAX_SHOWN_LINES).map(str::to_owned).collect();
    let shown: usize = lines.iter().map(|line| line.len() + 1).sum();
    let left = text.len().saturating_sub(shown);
    if left > 0 {
        lines.push(format!("… {left} more bytes"));
    }
    lines
}

// The settings of a run that would start, each with its origin.

/// A setting.
#[derive(Serialize)]
struct SettingRow {
    name: &'static str,
    value: String,
    origin: String,
}

/// The model if nobody names one.
const OWN_MODEL: &str = "Claude Code's default";

/// Returns the model of the first turn, and its origin.
fn model_of(plan: &StartPlan, given: Option<&RunOptions>) -> (String, String) {
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
fn rows(args: &RunArgs, manifest: &Manifest, plan: &StartPlan) -> Vec<SettingRow> {
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
