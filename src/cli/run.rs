//! `raymond run`, `resume` and `start`: a run in the foreground or background, new or resumed; and `run --dry-run`.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::io::{IsTerminal, stderr, stdin};
use std::sync::Arc;

use serde::Serialize;
use serde_json::{Value, json};

use super::check;
use crate::cli::args::{NamedRunArgs, NewRunArgs, ResumeArgs, RunArgs};
use crate::cli::background::{DetachedLauncher, supervise_here, turn_times};
use crate::cli::exit::{CliExitCode, Error};
use crate::cli::options::RunOptions;
use crate::cli::settings::{OpenedRun, RunAccess};
use crate::cli::summary::ClosingPlace;
use crate::cli::target::RunTarget;
use crate::cli::{
    background, candidates, engine, options, output, person, settings, summary, table, target,
};
use crate::domain::id::RunId;
use crate::domain::model::{PRICES_OF, estimated_tokens, input_cost};
use crate::domain::money::Usd;
use crate::domain::privilege::RunPermission;
use crate::domain::run::RunStatus;
use crate::domain::sealed_terms::mode;
use crate::domain::settings::{AnswererKind, MaxProcs, Settings};
use crate::domain::time::format_duration;
use crate::domain::tool_call::printable;
use crate::domain::turn_options::TurnOptions;
use crate::engine::Engine;
use crate::language::manifest::{FILE, Manifest};
use crate::process::child::cgroup::{RunGroups, prepare_moves};
use crate::process::child::orphans;
use crate::process::command::EnvironmentMarker;
use crate::runtime::graphs::GraphSetup;
use crate::runtime::sharing::facts_of;
use crate::runtime::start_plan::{PlannedState, StartPlan, plan};
use crate::runtime::{PreparedRun, RunStarter, Workflow, directories, seals};
use crate::store::layout::RunsRoot;
use crate::store::trust::FolderTrust;
use crate::store::view;
use crate::{runtime, store};

/// Runs `raymond run`.
///
/// # Errors
/// [`Error`] if it cannot begin, or cannot be recorded.
pub fn run(args: &RunArgs) -> Result<CliExitCode, Error> {
    let root = args.dir.real_root()?;
    if args.dry_run {
        return dry_run(args, &root);
    }
    match target::resolve(&args.target, &root)? {
        RunTarget::Workflow(workflow) => {
            let prepared = create(args, &root, &workflow)?;
            supervise_here(&args.options, &root, prepared)
        }
        RunTarget::Run(id) => {
            resume_target(&args.new_run, &args.options, &RunAccess::of(&args.dir, &root)?, &id)
        }
    }
}

/// Runs `raymond resume`.
///
/// # Errors
/// [`Error`] if there is no such run, or it cannot be recorded.
pub fn resume(args: &ResumeArgs) -> Result<CliExitCode, Error> {
    if args.detached {
        background::detach()?;
    }
    let root = args.dir.real_root()?;
    let run = args.run.as_deref().map(|run| {
        RunId::parse(run).map_err(|_| {
            Error::Usage(format!(
                "{run} is not a run; `raymond resume` takes the id of a run, `raymond run PATH` starts a workflow"
            ))
        })
    });
    let named = NamedRunArgs { run: run.transpose()?, last: args.last };
    let id = settings::chosen(&named, &root)?;
    let access = RunAccess::of(&args.dir, &root)?;
    resume_target(&NewRunArgs::default(), &args.options, &access, &id)
}

/// Creates a run from a workflow and the options.
pub(super) fn create(
    args: &RunArgs,
    root: &RunsRoot,
    workflow: &Workflow,
) -> Result<PreparedRun, Error> {
    let settings = settings::new(args, workflow)?;
    prepare_processes(&settings);
    let request = settings::request(&args.new_run, engine::of_run(&args.dir)?)?;
    let facts = engine::with_facts(request.engine.as_ref().map(|of_run| &of_run.engine))?;
    confirmed(&args.options, |starter| {
        let graphs = graph_setup(facts.clone());
        runtime::create(root, workflow, &request, settings.clone(), graphs, starter)
    })
    .map_err(|error| settings::placed(error, &args.options.answers))
}

fn resume_target(
    new_run: &NewRunArgs,
    options: &RunOptions,
    access: &RunAccess<'_>,
    id: &RunId,
) -> Result<CliExitCode, Error> {
    let root = access.root;
    person::must_resume(root, id)?;
    let OpenedRun { store, mut recovered, held } = access.open(id)?;
    let settings = settings::for_resume(new_run, options, recovered.run.settings.clone())?;
    if !recovered.run.can_resume() {
        if !options.consent.trust {
            seals::check_ended(&directories::user_state()?, root, &recovered.run)?;
        }
        store.save_last_snapshot(&recovered.run)?;
        let key = directories::user_state()?.key()?;
        facts_of(root, &key, held.as_ref().map(|claimed| &claimed.held().engine)).ended(id)?;
        sweep(root, id)?;
        if let Some(claimed) = held {
            claimed.end();
        }
        recovered.run.settings.strict |= settings.strict;
        if !options.json {
            let times = || turn_times(root, &recovered.run);
            let verbosity = options.verbosity.verbosity();
            output::print_exactly(&summary::results(&recovered.run, verbosity, times))?;
        }
        let closing = summary::closing(&recovered.run, ClosingPlace::Alone);
        let failed = recovered.run.status == RunStatus::Failed;
        let mut text = format!("nothing to do: {closing}");
        if failed && !closing.contains("raymond retry") {
            let _ = write!(text, "; `raymond retry {id}` retries it");
        }
        output::tell(&candidates::with_dir(&text, root, id));
        if let Some(refused) = summary::refused_tools(&recovered.run) {
            output::tell(&refused);
        }
        return Ok(CliExitCode::of(&recovered.run));
    }
    let opened = OpenedRun { store, recovered, held };
    let prepared = prepared_to_resume(options, access, &settings, opened)?;
    supervise_here(options, root, prepared)
}

/// Prepares an opened run to resume under these settings, once the person at the terminal trusts it.
///
/// # Errors
/// [`Error`] if it cannot be resumed.
pub(super) fn prepared_to_resume(
    options: &RunOptions,
    access: &RunAccess<'_>,
    settings: &Settings,
    opened: OpenedRun,
) -> Result<PreparedRun, Error> {
    let recovered = &opened.recovered;
    settings::check_budget(options.budget, settings, &recovered.run)?;
    prepare_processes(settings);
    let (id, retry) = (&recovered.run.workflow_id.clone(), recovered.retry.clone());
    let facts = engine::with_facts(opened.held.as_ref().map(|claimed| &claimed.held().engine))?;
    let mut already_opened = Some(opened);
    confirmed(options, |starter| {
        let opened = already_opened.take().map_or_else(|| access.open(id), Ok)?;
        let OpenedRun { store, mut recovered, held } = opened;
        recovered.retry.clone_from(&retry);
        let mut graphs = graph_setup(facts.clone());
        graphs.migrate = options.answers.migrate;
        let mut prepared =
            runtime::resume(store, recovered, settings.clone(), graphs, access.root, starter)?;
        if let Some(claimed) = &held {
            claimed.share_terms(settings)?;
        }
        prepared.held = held;
        Ok(prepared)
    })
    .map_err(|error| settings::placed(error, &options.answers))
}

/// Returns the environment of a run's graphs and programs in this process; `facts` has the facts that it shares.
pub(super) fn graph_setup(facts: Option<Arc<dyn Engine>>) -> GraphSetup {
    let mut graphs = GraphSetup::default();
    graphs.launcher = Some(Arc::new(DetachedLauncher { facts: facts.clone() }));
    graphs.facts = facts;
    graphs
}

/// Prepares the start of processes while the run is made or read.
fn prepare_processes(settings: &Settings) {
    match settings.answerer {
        AnswererKind::Claude => prepare_moves(),
        AnswererKind::Scripted | AnswererKind::Replay => {}
    }
}

/// Ends the processes left by a raymond that was killed right after its run had ended.
fn sweep(root: &RunsRoot, id: &RunId) -> Result<(), Error> {
    let marker = EnvironmentMarker { run: id.clone(), dir: root.path().to_owned() };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
    let runtime = runtime.map_err(Error::io("look for processes of", root.run(id).path()))?;
    runtime.block_on(async {
        orphans::sweep(&marker, |_| true).await;
        RunGroups::of(&marker, &root.run(id).steps()).end_all_but(&[]).await;
        orphans::sweep_plugins(&marker).await;
    });
    Ok(())
}

// Asks the person at the terminal before something runs that they have not confirmed.

/// The most questions before a run: about the run, and about the folder whose files it uses.
const MAX_QUESTIONS: usize = 2;

/// Prepares a run; if it asks for more than was confirmed and someone is at the terminal, asks them and
/// prepares it again.
pub(super) fn confirmed(
    options: &RunOptions,
    mut prepare: impl FnMut(&RunStarter) -> Result<PreparedRun, runtime::Error>,
) -> Result<PreparedRun, runtime::Error> {
    let confirmation = person::trust_origin(&options.consent);
    let state = directories::user_state()?;
    let mut starter = RunStarter { state, confirmation, confirmed: BTreeSet::new() };
    let is_person = is_person_at_terminal();
    let may_ask = is_person && !options.json;
    for _ in 0..MAX_QUESTIONS {
        let error = match prepare(&starter) {
            Err(error) if is_person => error,
            prepared => return prepared,
        };
        if let runtime::Error::NotTrusted { folder, trust, checksum, .. } = &error
            && let FolderTrust::Reworded(files) = &**trust
        {
            let files = files.join(", ");
            output::tell(&format!(
                "{folder} keeps your trust: only texts have changed, in {files}"
            ));
            starter.confirmed.insert(checksum.clone());
            continue;
        }
        if !may_ask {
            return Err(error);
        }
        let Some(question) = question(&error) else { return Err(error) };
        output::tell(&error.to_string());
        if !is_answered_yes(question.text) {
            return Err(runtime::Error::Declined);
        }
        // The answer covers only the files that the question was about, not later changes.
        starter.confirmed.insert(question.checksum);
    }
    prepare(&starter)
}

/// Returns whether a person, not an agent, sits at the terminal.
pub(super) fn is_person_at_terminal() -> bool {
    stdin().is_terminal() && stderr().is_terminal() && person::acting_agent().is_none()
}

/// A question about an error.
struct TrustQuestion {
    text: &'static str,
    /// The checksum of what the person is shown.
    checksum: String,
}

/// Returns the question that settles an error; `None` for an error that no answer settles.
fn question(error: &runtime::Error) -> Option<TrustQuestion> {
    let (text, checksum) = match error {
        runtime::Error::NotTrusted { checksum, .. } => (
            "Type yes to trust it as it is and run it; the trust is stored, `raymond trust --remove` undoes it: ",
            checksum,
        ),
        runtime::Error::NotConfirmed { checksum, .. } => {
            ("Type yes to resume the run as its directory is now: ", checksum)
        }
        _ => return None,
    };
    Some(TrustQuestion { text, checksum: checksum.clone() })
}

/// Asks a question at the terminal; returns whether the answer is yes.
pub(super) fn is_answered_yes(question: &str) -> bool {
    output::tell(question);
    let mut line = String::new();
    stdin().read_line(&mut line).is_ok() && matches!(line.trim(), "y" | "yes")
}

// `raymond start`: a run in the background.

/// Runs `raymond start`: makes all checks here, and prints the run's id once the run is durable.
///
/// # Errors
/// [`Error`] if it cannot begin.
pub fn start(args: &RunArgs) -> Result<CliExitCode, Error> {
    let root = args.dir.real_root()?;
    if args.dry_run {
        return dry_run(args, &root);
    }
    let id = match target::resolve(&args.target, &root)? {
        RunTarget::Workflow(workflow) => {
            return take_off(args, &root, create(args, &root, &workflow)?);
        }
        RunTarget::Run(id) => {
            person::must_resume(&root, &id)?;
            id
        }
    };
    let view = view::load_view(&root, &id)?;
    if view.held {
        return Err(store::Error::Held { id, pid: view.holder }.into());
    }
    let settings = settings::for_resume(&args.new_run, &args.options, view.run.settings.clone())?;
    settings::check_budget(args.options.budget, &settings, &view.run)?;
    in_background(&root, &id, &given_options(&id))
}

/// Continues a new run in the background.
pub(super) fn take_off(
    args: &RunArgs,
    root: &RunsRoot,
    prepared: PreparedRun,
) -> Result<CliExitCode, Error> {
    let id = release(&prepared);
    drop(prepared);
    in_background(root, &id, &args.options.not_kept())
}

fn in_background(root: &RunsRoot, id: &RunId, further: &[OsString]) -> Result<CliExitCode, Error> {
    background::resume_detached(root, id, further)?.wait_until_held(root, id)?;
    output::print(&format!("{id}\n"))
}

/// Reports the plug-ins, notes and warnings of a prepared run, and returns its id.
fn release(prepared: &PreparedRun) -> RunId {
    for line in options::announced(prepared) {
        output::tell(&line);
    }
    for note in &prepared.notes {
        output::tell(note);
    }
    for warning in &prepared.warnings {
        output::warn(warning);
    }
    prepared.id().clone()
}

/// Returns the options of this process, without the command, the target and the directory.
fn given_options(id: &RunId) -> Vec<OsString> {
    let mut arguments = std::env::args_os().skip(2);
    let mut options = Vec::new();
    let mut target = Some(id.as_str());
    while let Some(argument) = arguments.next() {
        match argument.to_str() {
            Some("--") => {
                options.push(argument);
                options.extend(arguments);
                break;
            }
            Some("--dir") => drop(arguments.next()),
            Some(dir) if dir.starts_with("--dir=") => {}
            text if text.is_some() && text == target => target = None,
            _ => options.push(argument),
        }
    }
    options
}

// `raymond run --dry-run`: what a start would do, without starting or writing anything.

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
#[derive(Serialize)]
struct LeastCost {
    model: String,
    estimated_tokens: u64,
    /// The cost; `None` for a model that the table does not know.
    at_least_usd: Option<Usd>,
    prices_of: &'static str,
}

fn least_cost(plan: &StartPlan) -> Option<LeastCost> {
    let is_asked = plan.settings.answerer.calls_model() && plan.settings.replayed_part().is_none();
    let prompt = plan.prompt.as_ref().filter(|_| is_asked)?;
    let estimated_tokens = estimated_tokens(&prompt.text);
    let (model, _) = model_of(plan, None);
    let at_least_usd = input_cost(&model, estimated_tokens);
    Some(LeastCost { model, estimated_tokens, at_least_usd, prices_of: PRICES_OF })
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
    text.push_str(&table::text(&cells));
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
    text.push_str(&table::text(&plan.states.iter().map(state).collect::<Vec<_>>()));
    let _ = write!(text, "\ncost\n  {}\n", cost_sentence(plan));
    text
}

fn cost_sentence(plan: &StartPlan) -> String {
    if plan.settings.replayed_part().is_some() {
        return "nothing for the turns that the cassette answers; the cost of the other turns is not known in advance".to_owned();
    }
    let Some(LeastCost { model, estimated_tokens: tokens, at_least_usd, .. }) = least_cost(plan)
    else {
        return match plan.settings.answerer.note_on_costs() {
            Some(_) => "nothing: no model is called".to_owned(),
            None => "not known before the first prompt is".to_owned(),
        };
    };
    match at_least_usd {
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
        "cost": least_cost(plan),
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
const DEFAULT_MODEL: &str = "Claude Code's default";

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
        None => (DEFAULT_MODEL.to_owned(), "default".to_owned()),
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
    let (on_budget, on_limit) = (word(settings.on_budget), word(settings.on_limit));
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
    let mode_of_state = state.and_then(|options| options.permission_mode);
    let (value, of_mode) = if let Some(mode) = mode_of_state {
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
    let mut tools = |name, listed: fn(&TurnOptions) -> Option<&Vec<String>>| {
        let of_state = state.and_then(listed);
        let origin = if of_state.is_some() { plan.first.name.clone() } else { FILE.to_owned() };
        if let Some(listed) = of_state.or_else(|| listed(&settings.options)) {
            rows.push(SettingRow { name, value: listed.join(", "), origin });
        }
    };
    tools("tools", |options| options.tools.as_ref());
    tools("allowed tools", |options| options.allowed_tools.as_ref());
    tools("disallowed tools", |options| options.disallowed_tools.as_ref());
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
    let (given, known) = (&args.options.supervision, &manifest.supervision);
    let policy = &plan.settings.supervision;
    let restarts = format!("{} in {}", policy.max_restarts, format_duration(policy.period_ms));
    let backoff = format!(
        "{}..{}",
        format_duration(policy.backoff_min_ms),
        format_duration(policy.backoff_max_ms)
    );
    let (restart, on_exhausted) = (word(policy.restart), word(policy.on_exhausted));
    let timeout = format_duration(policy.timeout_ms);
    let idle = format_duration(policy.idle_timeout_ms);
    vec![
        row("restart", restart, given.restart.is_some(), known.restart.is_some()),
        row("max_restarts", restarts, given.max_restarts.is_some(), known.max_restarts.is_some()),
        row("backoff", backoff, given.backoff.is_some(), known.backoff_min_ms.is_some()),
        row("timeout", timeout, given.timeout.is_some(), known.timeout_ms.is_some()),
        row("idle_timeout", idle, given.idle_timeout.is_some(), known.idle_timeout_ms.is_some()),
        row(
            "on_exhausted",
            on_exhausted,
            given.on_exhausted.is_some(),
            known.on_exhausted.is_some(),
        ),
    ]
}

/// Returns the name of a value that is given by its name.
fn word(value: impl Serialize) -> String {
    json!(value).as_str().unwrap_or_default().to_owned()
}
