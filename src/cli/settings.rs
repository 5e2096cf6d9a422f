//! A run's settings and its answers ahead of time, from options; and the run that a command is about.
//!
//! A new run takes all settings from the options, a resumed one those that are given.

use std::io::{IsTerminal, stderr, stdin};
use std::path::{Path, PathBuf};

use crate::actor::context::now;
use crate::cli::args::runs::{AnswererArg, LiveAnswererArg, QuestionArgs};
use crate::cli::args::{NamedRunArgs, NewRunArgs, RunArgs};
use crate::cli::candidates::DirArgs;
use crate::cli::exit::Error;
use crate::cli::options::{ProcessArgs, RunOptions, SupervisionArgs};
use crate::cli::{candidates, engine, list, output, person, table};
use crate::domain::git_exchange::ExchangeName;
use crate::domain::id::{AgentId, RunId};
use crate::domain::money::Usd;
use crate::domain::privilege::RunPermission;
use crate::domain::run::{PauseReason, Run};
use crate::domain::settings::{AnswererKind, CassetteSource, OnBudget, Settings};
use crate::domain::supervision::SupervisionOverrides;
use crate::domain::time::Timestamp;
use crate::domain::widening::without_granted_rules;
use crate::language::graph::answers::{ListedAnswer, read};
use crate::language::hint::closest_slip;
use crate::language::turn_options::model_hint;
use crate::plugin::sentence::first_and_more;
use crate::runtime::check::has_gateway;
use crate::runtime::sharing::{ClaimedRun, RunEngine, take_over};
use crate::runtime::{RunRequest, Workflow, directories, directory, replace_options, settings_of};
use crate::store::layout::RunsRoot;
use crate::store::run_store::{LockedRun, RecoveredRun};
use crate::store::user_state::UserState;
use crate::store::view::{ids_beginning, newest_first, no_such_run};
use crate::{plain_file, runtime};

/// Returns the settings of a new run.
///
/// # Errors
/// [`Error::Io`] if the working directory cannot be entered.
pub fn new(args: &RunArgs, workflow: &Workflow) -> Result<Settings, Error> {
    let new_run = &args.new_run;
    refuse_without_engine(args)?;
    let cwd = new_run.cwd.clone().unwrap_or_else(|| PathBuf::from("."));
    let mut settings = Settings {
        cwd: directory(&cwd)?,
        shared_dir: new_run.shared_dir.as_deref().map(directory).transpose()?,
        variables: new_run.variables.iter().cloned().collect(),
        label: None,
        branch: new_run.branch.clone(),
        context: new_run.context.iter().cloned().collect(),
        ..settings_of(workflow)
    };
    if let Some(shared) = settings.shared_dir.as_deref()
        && !Path::new(&settings.cwd).starts_with(shared)
    {
        return Err(Error::Usage(format!(
            "the working directory {} is not below the shared directory {shared}, so other hosts do not have it; name another with --cwd",
            settings.cwd
        )));
    }
    (settings.answerer, settings.cassette) = answerer(new_run)?;
    overlay(&args.options, &mut settings);
    add(&args.options.answers, &mut settings)?;
    refuse_reserved(&args.options)?;
    warn_of_names(&args.options, settings.answerer);
    let file = new_run.input.as_ref().map(|text| text.trim_start_matches('@'));
    if let Some(file) = file.filter(|file| Path::new(file).is_file()) {
        output::warn(&format!(
            "--input is the text `{file}`, the name of a file; for its content: --input - < {file}"
        ));
    }
    Ok(settings)
}

/// Refuses options about hosts for a run of this machine alone.
fn refuse_without_engine(args: &RunArgs) -> Result<(), Error> {
    let given = [
        ("--shared-dir", args.new_run.shared_dir.is_some()),
        ("--git-exchange", args.new_run.git_exchange.is_some()),
    ];
    match given.into_iter().find(|(_, is_given)| *is_given) {
        Some((option, _)) if engine::address(&args.dir)?.is_none() => Err(Error::Usage(format!(
            "{option} is for a run on several hosts: start it with `raymond run`, and name its engine by --engine, RAYMOND_ENGINE, or `engine:` in your config.yaml"
        ))),
        Some(_) | None => Ok(()),
    }
}

/// Returns what a person asks of a new run, besides its settings.
///
/// # Errors
/// [`Error::Usage`] if the repository for the exchange of work has no address, or a password in it.
pub fn request(new_run: &NewRunArgs, engine: Option<RunEngine>) -> Result<RunRequest, Error> {
    let exchange = new_run.git_exchange.as_deref().map(ExchangeName::parse).transpose();
    Ok(RunRequest {
        id: new_run.id.clone(),
        input: new_run.input.clone(),
        no_check: new_run.no_check,
        engine,
        git_exchange: exchange.map_err(|why| Error::Usage(format!("--git-exchange: {why}")))?,
    })
}

/// Returns the answerer of a new run, and its cassette.
fn answerer(new_run: &NewRunArgs) -> Result<(AnswererKind, Option<CassetteSource>), Error> {
    let answerer = match &new_run.agent {
        Some(AnswererArg::Replay(dir)) => {
            let path = std::path::absolute(dir).unwrap_or_else(|_| dir.clone());
            let path = path.into_os_string().into_string();
            let path = path.map_err(|_| {
                Error::Usage("the path of a cassette must be UTF-8 text".to_owned())
            })?;
            let (checksum, strict) = (String::new(), new_run.strict_replay);
            let answerer = match new_run.then {
                None => AnswererKind::Replay,
                Some(LiveAnswererArg::Claude) => AnswererKind::Claude,
                Some(LiveAnswererArg::Scripted) => AnswererKind::Scripted,
            };
            let until = new_run.replay_until;
            return Ok((answerer, Some(CassetteSource { path, checksum, strict, until })));
        }
        Some(AnswererArg::Scripted) => AnswererKind::Scripted,
        Some(AnswererArg::Claude) | None => AnswererKind::Claude,
    };
    if new_run.replay_until.is_some() {
        return Err(Error::Usage("--replay-until goes with --agent replay:DIR".to_owned()));
    }
    if new_run.strict_replay {
        return Err(Error::Usage("--strict-replay goes with --agent replay:DIR".to_owned()));
    }
    Ok((answerer, None))
}

/// Returns the settings of a resumed run: its own, overridden by the options that are given now.
///
/// # Errors
/// [`Error::Usage`] for options that only a new run can take.
pub fn for_resume(
    new_run: &NewRunArgs,
    options: &RunOptions,
    mut settings: Settings,
) -> Result<Settings, Error> {
    let fixed = [
        ("--id", new_run.id.is_some()),
        ("--input", new_run.input.is_some()),
        ("--var", !new_run.variables.is_empty()),
        ("--base-branch", new_run.branch.is_some()),
        ("--context", !new_run.context.is_empty()),
        ("--cwd", new_run.cwd.is_some()),
        ("--agent", new_run.agent.is_some()),
        ("--strict-replay", new_run.strict_replay),
        ("--replay-until", new_run.replay_until.is_some()),
        ("--then", new_run.then.is_some()),
        ("--no-check", new_run.no_check),
        ("--shared-dir", new_run.shared_dir.is_some()),
        ("--git-exchange", new_run.git_exchange.is_some()),
    ];
    if let Some((option, _)) = fixed.into_iter().find(|(_, given)| *given) {
        return Err(Error::Usage(format!(
            "{option} is fixed when a run starts, and cannot change on resume; leave it out, or start a new run"
        )));
    }
    overlay(options, &mut settings);
    add(&options.answers, &mut settings)?;
    refuse_reserved(options)?;
    warn_of_names(options, settings.answerer);
    Ok(settings)
}

/// Warns of a `--model` that is not known, and of options of Claude Code that are probably misspelt.
fn warn_of_names(options: &RunOptions, answerer: AnswererKind) {
    if answerer != AnswererKind::Claude {
        return;
    }
    let mut before = "";
    for given in &options.claude_args {
        // A word behind an option may be its value.
        let is_value = before.starts_with('-') && !before.contains('=');
        before = given;
        let name = given.split('=').next().unwrap_or_default();
        let known = || CLAUDE_OPTIONS.split_whitespace();
        let option = name.strip_prefix("--").filter(|name| !is_value && !name.contains(' '));
        let meant = option.filter(|name| !known().any(|known| known == *name));
        if let Some(meant) = meant.and_then(|name| closest_slip(name, known())) {
            output::warn(&format!("-- {name}: did you mean --{meant}?"));
        }
    }
    let hint = options.model.as_ref().and_then(model_hint);
    if let Some(hint) = hint.filter(|_| !has_gateway()) {
        output::warn(&format!("--model: {hint}"));
    }
}

/// Refuses a budget with which a run that is resumed could only pause again.
///
/// # Errors
/// [`Error::Usage`] that names what is spent.
pub fn check_budget(given: Option<Usd>, settings: &Settings, run: &Run) -> Result<(), Error> {
    let spent = run.committed_usd();
    // Without that pause, its turns may only have to end, or the rest may cost nothing.
    let is_paused = matches!(run.pause, Some(PauseReason::Budget { .. }));
    let is_used = |budget: &Usd| *budget < spent || (*budget == spent && is_paused);
    let Some(budget) = given.filter(is_used) else { return Ok(()) };
    if settings.on_budget == OnBudget::End {
        return Ok(());
    }
    let id = &run.workflow_id;
    let given = if run.given_usd.is_zero() { "" } else { " or given to runs that it has started" };
    Err(Error::Usage(format!(
        "--budget {budget} is not above the {spent} that the run {id} has spent already{given}, so it could not continue; a budget counts earlier spending: give more than {spent}, or end its agents with --on-budget end"
    )))
}

/// The options of Claude Code by which a misspelt one is recognized.
const CLAUDE_OPTIONS: &str = "add-dir agent agent-color agent-id agent-name agent-type agents allowed-tools allowedTools \
    append-subagent-system-prompt append-system-prompt append-system-prompt-file autocompact bare betas brief \
    dangerously-skip-permissions debug debug-file debug-to-stderr disable-slash-commands disallowed-tools disallowedTools \
    effort fallback-model fast-mode file json-schema max-budget-usd max-turns mcp-config model name permission-mode \
    permission-prompt-tool permission-prompts plugin-dir plugin-dir-no-mcp plugin-url restricted safe-mode setting-sources \
    settings strict-mcp-config system-prompt system-prompt-file system-prompt-snapshot tools verbose worktree";

/// The arguments of Claude Code that only raymond sets: another value would break every turn.
const RESERVED_ARGUMENTS: &str = "-p --print -c --continue -r --resume --fork-session --input-format --output-format \
    --replay-user-messages --resume-session-at --session-id --no-session-persistence";

fn refuse_reserved(options: &RunOptions) -> Result<(), Error> {
    let mut names = options.claude_args.iter().filter_map(|argument| argument.split('=').next());
    match names.find(|name| RESERVED_ARGUMENTS.split(' ').any(|reserved| reserved == *name)) {
        None => Ok(()),
        Some(name) => Err(Error::Usage(format!(
            "{name} is set by raymond for each turn; leave it out after --"
        ))),
    }
}

fn overlay(args: &RunOptions, settings: &mut Settings) {
    settings.model = args.model.clone().or_else(|| settings.model.take());
    settings.budget_usd = args.budget.or(settings.budget_usd);
    settings.on_budget = args.on_budget.map_or(settings.on_budget, |named| named.0);
    settings.debug |= args.debug;
    settings.strict |= args.strict;
    settings.live |= args.live;
    settings.on_limit = args.on_limit.map_or(settings.on_limit, |named| named.0);
    if let Some(given) = &args.claude {
        settings.claude = program(given);
    }
    let (claude_args, rules) = without_granted_rules(&args.claude_args);
    if !claude_args.is_empty() {
        settings.options.forget_given(&claude_args);
        settings.claude_args = claude_args;
    }
    settings.consent.trusts_workflow |= person::trust_origin(&args.consent).is_some();
    let every_state = &mut settings.consent.every_state;
    every_state.extend(args.consent.allow_tools.iter().cloned().chain(rules));
    every_state.sort();
    every_state.dedup();
    settings.allowed_addresses.extend(args.consent.allow_address.iter().cloned());
    settings.allowed_addresses.sort();
    settings.allowed_addresses.dedup();
    if args.consent.dangerously_skip_permissions || args.permission_mode.is_some() {
        settings.consent.widest_mode = None;
    }
    if args.consent.dangerously_skip_permissions {
        settings.permission = RunPermission::SkipAll;
    } else if let Some(mode) = &args.permission_mode {
        settings.permission = RunPermission::Mode(mode.clone());
    }
    if let Some(named) = args.permissions {
        settings.options.permissions = Some(named.0);
    }
    settings.approval_hold_ms = args.approval_hold.unwrap_or(settings.approval_hold_ms);
    if args.plugins.no_plugins {
        settings.plugins.clear();
    }
    if !args.plugins.plugin.is_empty() {
        replace_options(&mut settings.plugins, &args.plugins.plugin);
    }
    overlay_processes(&args.processes, settings);
    settings.supervision = settings.supervision.with(&overrides(&args.supervision));
}

fn overlay_processes(args: &ProcessArgs, settings: &mut Settings) {
    settings.max_procs = args.max_procs.unwrap_or(settings.max_procs);
    let forking = &mut settings.forking;
    forking.max_agents = args.max_agents.unwrap_or(forking.max_agents);
    forking.stagger_ms = args.stagger.unwrap_or(forking.stagger_ms);
    settings.order = args.order.map_or(settings.order, |named| named.0);
    settings.patience_ms = args.patience.unwrap_or(settings.patience_ms);
    settings.prestart = args.prestart.map_or(settings.prestart, usize::from);
    settings.warm_for_ms = args.warm_for.unwrap_or(settings.warm_for_ms);
    if args.no_warm {
        (settings.warm, settings.prestart) = (false, 0);
    } else if args.warm_for.is_some() || args.prestart.is_some() {
        settings.warm = true;
    }
}

fn overrides(args: &SupervisionArgs) -> SupervisionOverrides {
    SupervisionOverrides {
        restart: args.restart.map(|named| named.0),
        max_restarts: args.max_restarts.map(|(count, _)| count),
        period_ms: args.max_restarts.and_then(|(_, period)| period),
        backoff_min_ms: args.backoff.map(|(min, _)| min),
        backoff_max_ms: args.backoff.map(|(_, max)| max),
        timeout_ms: args.timeout,
        idle_timeout_ms: args.idle_timeout,
        shutdown_ms: args.shutdown,
        on_exhausted: args.on_exhausted.map(|named| named.0),
        ..SupervisionOverrides::default()
    }
}

/// Makes the path of a program absolute, so that it stays valid wherever the run is resumed.
fn program(given: &str) -> String {
    let path = if given.contains('/') { std::path::absolute(given).ok() } else { None };
    path.and_then(|path| path.into_os_string().into_string().ok())
        .unwrap_or_else(|| given.to_owned())
}

// Answers that are given ahead of time: by `--answer` and in the file of `--answers`, kept with the run.

/// Adds the answers that are given now to the earlier ones.
///
/// # Errors
/// [`Error::Usage`] for a name with an agent before it, [`Error::Answers`] or [`Error::Io`] for a file that
/// cannot be used.
pub fn add(given: &QuestionArgs, settings: &mut Settings) -> Result<(), Error> {
    for (node, text) in &given.answer {
        if let Some((agent, name)) = agent_and_node(node) {
            return Err(Error::Usage(format!(
                "--answer {node}={text}: answers ahead of time name only the question, not the agent: --answer {name}={text}; once {agent} asks, `raymond answer RUN {node}={text}` answers only that agent"
            )));
        }
        settings.answers.entry(node.clone()).or_default().push(text.clone());
    }
    let Some(path) = &given.answers else { return Ok(()) };
    for ListedAnswer { node, text, .. } in listed(path)? {
        settings.answers.entry(node).or_default().push(text);
    }
    Ok(())
}

/// Splits a name at its slash into an agent and a node; `None` without an agent.
pub fn agent_and_node(name: &str) -> Option<(AgentId, &str)> {
    let (agent, node) = name.split_once('/')?;
    Some((AgentId::parse(agent).ok()?, node))
}

fn listed(path: &Path) -> Result<Vec<ListedAnswer>, Error> {
    let text = plain_file::text(path).map_err(Error::io("read the answers in", path))?;
    read(&path.display().to_string(), &text).map_err(Error::Answers)
}

/// Adds the place of an impossible answer to the error about it.
pub fn placed(error: runtime::Error, given: &QuestionArgs) -> Error {
    let runtime::Error::Answer { node, text, why } = &error else { return error.into() };
    if given.answer.iter().any(|(name, answer)| name == node && answer == text) {
        return Error::Usage(format!("--answer {node}={text}: {why}"));
    }
    let Some(path) = &given.answers else { return error.into() };
    let listed = listed(path).unwrap_or_default();
    match listed.into_iter().find(|listed| listed.node == *node && listed.text == *text) {
        Some(ListedAnswer { line, column, .. }) => {
            Error::Usage(format!("{}:{line}:{column}: {why}", path.display()))
        }
        None => error.into(),
    }
}

// The run that a command is about: by its id, by the beginning of one, as the last, or by asking at the terminal.

/// The most runs that an error or a question lists.
const MAX_CANDIDATES: usize = 10;
const MAX_CHOICES: usize = 20;

/// Returns the run that is named; asks for one on a terminal if none is.
///
/// # Errors
/// [`Error::Usage`] if none is named and nobody can be asked, or the beginning of an id fits several runs;
/// [`Error::Store`] if there is no such run.
pub(super) fn chosen(named: &NamedRunArgs, root: &RunsRoot) -> Result<RunId, Error> {
    if let Some(run) = &named.run {
        return find(root, run);
    }
    let runs = newest_first(root)?;
    let Some((last, _)) = runs.first() else { return Err(no_runs(root)) };
    if named.last {
        return Ok(last.clone());
    }
    if stdin().is_terminal() && stderr().is_terminal() {
        return ask(root, &runs);
    }
    Err(Error::Usage(
        "name a run, or give --last for the run that was started last; `raymond list` shows all runs".to_owned(),
    ))
}

/// Returns the run of this id, else the only one whose id begins with it.
///
/// # Errors
/// As [`chosen`].
pub(super) fn find(root: &RunsRoot, beginning: &RunId) -> Result<RunId, Error> {
    match ids_beginning(root, beginning)?.as_slice() {
        [] => Err(match candidates::elsewhere(root, beginning) {
            Some(other) => Error::Usage(format!(
                "no run {beginning} in {}; there is one in {other}: give --dir {other}",
                std::path::absolute(root.runs()).unwrap_or(root.runs()).display(),
            )),
            None => no_such_run(root, beginning).into(),
        }),
        [only] => Ok(only.clone()),
        several => Err(Error::Usage(ambiguous(beginning, several))),
    }
}

/// Returns the error for a directory without runs.
pub(super) fn no_runs(root: &RunsRoot) -> Error {
    Error::Usage(format!("no runs in {}; start one: raymond run PATH", root.runs().display()))
}

fn ambiguous(beginning: &RunId, candidates: &[RunId]) -> String {
    let shown = first_and_more(candidates, MAX_CANDIDATES, RunId::to_string);
    format!(
        "{} runs begin with {beginning}: {}; write more of the id",
        candidates.len(),
        shown.join(", ")
    )
}

/// Asks the person at the terminal which of the newest runs they mean.
fn ask(root: &RunsRoot, runs: &[(RunId, Timestamp)]) -> Result<RunId, Error> {
    let shown = &runs[..runs.len().min(MAX_CHOICES)];
    let now = now();
    let row = |(number, (id, started)): (usize, &(RunId, Timestamp))| {
        let age = table::span(now.since(*started));
        vec![format!("{:>2}", number + 1), id.to_string(), list::word_of(root, id).to_owned(), age]
    };
    let rows: Vec<Vec<String>> = shown.iter().enumerate().map(row).collect();
    let question = match shown.len() {
        1 => "which run? 1, or an id (empty: none):".to_owned(),
        count => format!("which run? 1-{count}, or an id (empty: none):"),
    };
    output::tell_lines(&format!("{}{question}", table::text(&rows)));
    let mut line = String::new();
    stdin().read_line(&mut line).map_err(Error::io("read the choice from", "stdin"))?;
    let answer = line.trim();
    if answer.is_empty() {
        return Err(Error::Usage("no run was chosen".to_owned()));
    }
    let numbered =
        answer.parse::<usize>().ok().and_then(|number| shown.get(number.checked_sub(1)?));
    match numbered {
        Some((id, _)) => Ok(id.clone()),
        None => find(root, &RunId::parse(answer)?),
    }
}

// A run that this process is to supervise, opened: on this machine, or taken over from an engine.

/// The place that a run is opened from.
#[derive(Debug)]
pub(super) struct RunAccess<'a> {
    pub(super) root: &'a RunsRoot,
    /// The engine, and the state with the key that proves the copy.
    engine: Option<(RunEngine, UserState)>,
}

/// A run that was opened.
pub(super) struct OpenedRun {
    pub(super) store: LockedRun,
    pub(super) recovered: RecoveredRun,
    /// The right to supervise it in its engine.
    pub(super) held: Option<ClaimedRun>,
}

impl<'a> RunAccess<'a> {
    /// Returns the access for the directory or the engine that was named.
    ///
    /// # Errors
    /// [`Error`] if the engine cannot be reached.
    pub(super) fn of(dir: &DirArgs, root: &'a RunsRoot) -> Result<Self, Error> {
        let engine = match engine::of_run(dir)? {
            Some(engine) => Some((engine, directories::user_state()?)),
            None => None,
        };
        Ok(Self { root, engine })
    }

    /// Opens a run.
    ///
    /// # Errors
    /// [`runtime::Error`] if there is no such run, another raymond supervises it, or it cannot be recovered.
    pub(super) fn open(&self, id: &RunId) -> Result<OpenedRun, runtime::Error> {
        if let Some((engine, state)) = &self.engine {
            let (store, recovered, held) = take_over(engine, id, self.root, state)?;
            return Ok(OpenedRun { store, recovered, held: Some(held) });
        }
        let (store, recovered) = LockedRun::open(self.root, id)?;
        Ok(OpenedRun { store, recovered, held: None })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::tests::scene::Scene;

    #[test]
    fn budget_below_what_is_spent_is_refused_with_the_amount() {
        let mut run = Scene::begin().run;
        run.total_cost_usd = Usd::from_dollars(0.3);
        let check = |dollars: f64, on_budget| {
            let settings = Settings { on_budget, ..Settings::default() };
            check_budget(Some(Usd::from_dollars(dollars)), &settings, &run)
        };
        let refused = check(0.2, OnBudget::Pause).expect_err("refused").to_string();
        assert!(
            refused.starts_with("--budget $0.20 is not above the $0.30 that the run"),
            "{refused}"
        );
        assert!(check(0.3, OnBudget::Pause).is_ok() && check(0.2, OnBudget::End).is_ok());
        let asking = Run { pause: Some(PauseReason::Interrupted), ..run.clone() };
        let pause = PauseReason::Budget { spent: Usd::ZERO, limit: Usd::ZERO, given: Usd::ZERO };
        let paused = Run { pause: Some(pause), ..run.clone() };
        let given = |dollars| Some(Usd::from_dollars(dollars));
        assert!(check_budget(given(0.3), &Settings::default(), &paused).is_err());
        assert!(check_budget(given(0.31), &Settings::default(), &paused).is_ok());
        assert!(check_budget(given(0.3), &Settings::default(), &asking).is_ok());
        assert!(check_budget(None, &Settings::default(), &run).is_ok());
    }
}

#[cfg(test)]
mod run_choice_tests {
    use super::*;

    #[test]
    fn ambiguous_beginning_lists_ten_candidates() {
        let run = |name: String| RunId::parse(&name).expect("an id");
        let two = [run("tour-1".into()), run("tour-2".into())];
        assert_eq!(
            ambiguous(&run("tour".into()), &two),
            "2 runs begin with tour: tour-1, tour-2; write more of the id"
        );
        let many: Vec<RunId> = (0..12).map(|number| run(format!("t{number}"))).collect();
        assert_eq!(
            ambiguous(&run("t".into()), &many),
            "12 runs begin with t: t0, t1, t2, t3, t4, t5, t6, t7, t8, t9, and 2 more; write more of the id"
        );
    }
}
