//! Resumes a run in another process that outlives this one and its terminal, or supervises it in this process.
//!
//! The other process runs in its own session, without a terminal: closing the terminal sends it no SIGHUP, and none of
//! its children can ask for a password there. The process leaves the starter's session itself, as its first step. The
//! starter waits for that by reading from a pipe, which is the child's standard input, until the child has detached or
//! ended. The session does not show whether the child has detached: in a container, the session's leader may have no
//! process id there.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{IsTerminal, Read, stdin, stdout};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::sync::Arc;
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::setsid;
use rustix::stdio::dup2_stdin;
use tokio::sync::oneshot;
use uuid::Uuid;

use super::engine::NONE;
use super::exit::Error;
use super::{output, person};
use crate::actor::process::StayUp;
use crate::actor::registry::AgentRegistry;
use crate::cli::answer_prompt::{AnswerPrompt, KeyboardGuard};
use crate::cli::args::runs::OnWait;
use crate::cli::candidates::with_dir;
use crate::cli::exit::CliExitCode;
use crate::cli::interrupts::signals;
use crate::cli::on_event::{CountedTimes, TurnTimesPlugin};
use crate::cli::options::RunOptions;
use crate::cli::summary::{ClosingPlace, TurnTimes};
use crate::cli::{diagnostics, on_event, options, questions, summary, worktrees};
use crate::domain::id::RunId;
use crate::domain::run::Run;
use crate::engine::Engine;
use crate::plugin::console::{ConsolePlugin, Verbosity};
use crate::plugin::notify::{DesktopSink, NotificationPlugin, NotificationTracker};
use crate::plugin::styled::JsonLinesPlugin;
use crate::plugin::telemetry::actor::TelemetryPlugin;
use crate::plugin::telemetry::export::TelemetryConfig;
use crate::plugin::telemetry::trace::RunTrace;
use crate::plugin::terminal::Terminal;
use crate::process::ancestry::ActingAgent;
use crate::process::child::cgroup::leave_turn;
use crate::process::child::subreaper;
use crate::process::command::DETACHED;
use crate::process::plugin_process::{ENGINE, FACTS_ENGINE, NamedVariables};
use crate::process::registry;
use crate::runtime::{InterruptReceiver, PlugIns, PreparedRun, RunLauncher};
use crate::store::journal::JournalReader;
use crate::store::layout::RunsRoot;
use crate::store::run_store::LockedRun;
use crate::store::view::story;
use crate::store::{lock, record, view};
use crate::{plain_file, runtime, store};

/// The poll interval while waiting for the process.
const POLL_INTERVAL: Duration = Duration::from_millis(2);

/// Starts `raymond resume ID` with further arguments in the background; its output goes to the run's `output.log`.
///
/// # Errors
/// [`Error::Io`].
pub fn resume_detached(
    root: &RunsRoot,
    id: &RunId,
    further: &[OsString],
) -> Result<DetachedRun, Error> {
    start_detached(root, &root.run(id).output(), &resuming(id, further), &[])
}

/// Starts a command that supervises a run in the background, and waits until it holds the run. Its output goes to the
/// run's `output.log`.
///
/// # Errors
/// [`Error::Usage`] with what the command says if it ends before.
pub(super) fn in_background(root: &RunsRoot, id: &RunId, words: &[OsString]) -> Result<(), Error> {
    held_in_background(root, id, words, &root.run(id).output())
}

/// Starts a command that makes a run and supervises it in the background, and waits until it holds the run. Its output
/// goes to a file beside the runs until there is the run, whose `output.log` it becomes.
///
/// # Errors
/// As [`in_background`].
pub(super) fn new_in_background(
    root: &RunsRoot,
    id: &RunId,
    words: &[OsString],
) -> Result<(), Error> {
    let path = root.path().join(format!("{id}.log"));
    held_in_background(root, id, words, &path).inspect_err(|_| {
        let _ = std::fs::remove_file(&path);
    })?;
    std::fs::rename(&path, root.run(id).output()).map_err(Error::io("move", &path))
}

fn held_in_background(
    root: &RunsRoot,
    id: &RunId,
    words: &[OsString],
    output: &Path,
) -> Result<(), Error> {
    let before = std::fs::metadata(output).map_or(0, |file| file.len());
    let mut process = start_detached(root, output, words, &[])?;
    let ended = process.held_or_ended(root, id)?;
    if ended.is_some_and(|status| !status.success()) {
        return Err(Error::Usage(text_from(output, before)));
    }
    process.leave();
    Ok(())
}

/// Returns what a command has told from a place in a file on.
fn text_from(path: &Path, start: u64) -> String {
    let text = std::fs::read(path).unwrap_or_default();
    let new = text.get(usize::try_from(start).unwrap_or_default()..).unwrap_or_default();
    String::from_utf8_lossy(new).trim().trim_start_matches("error: ").to_owned()
}

/// Returns the command that resumes a run.
fn resuming(id: &RunId, further: &[OsString]) -> Vec<OsString> {
    [&["resume".into(), id.as_str().into()], further].concat()
}

/// Starts a raymond that takes a run of an engine over; `variables` name the engine.
///
/// # Errors
/// [`Error::Io`].
pub(super) fn take_over_detached(
    copies: &RunsRoot,
    id: &RunId,
    variables: &[(&str, &str)],
) -> Result<(), Error> {
    let output = copies.run(id).output();
    start_detached(copies, &output, &resuming(id, &[]), variables)?.leave();
    Ok(())
}

fn start_detached(
    root: &RunsRoot,
    path: &Path,
    words: &[OsString],
    variables: &[(&str, &str)],
) -> Result<DetachedRun, Error> {
    let program = self_program()?;
    let failed = Error::io("start in the background with the output", path);
    let output =
        plain_file::open_with(path, OpenOptions::new().append(true).create(true).mode(0o600))
            .map_err(failed)?;
    let stdout = output.try_clone().map_err(failed)?;
    let mut command = Command::new(program);
    let (target, further) = words.split_at(words.len().min(2));
    command.args(target).arg("--detached").arg("--dir").arg(root.path()).args(further);
    // A run started from inside a turn is a separate run: it does not end with that turn.
    for name in ["RAYMOND_RUN", "RAYMOND_AGENT", "RAYMOND_TURN", "RAYMOND_PLUGIN"] {
        command.env_remove(name);
    }
    // The log of the run is here unless the engine is named. Neither what this process works on nor what the user has
    // set counts.
    command.env(ENGINE, NONE).env_remove(FACTS_ENGINE);
    let starter = person::acting_agent();
    let starter =
        starter.map_or("1".to_owned(), |ActingAgent { run, agent, .. }| format!("{run}/{agent}"));
    command.env(DETACHED, starter).envs(variables.iter().copied());
    person::keep_registry();
    let (mut detached, attached) = std::io::pipe().map_err(failed)?;
    command.stdin(attached).stdout(stdout).stderr(output);
    let child = subreaper::start_detached(&mut command).map_err(failed)?;
    // The child has the only other end then.
    drop(command);
    detached.read_to_end(&mut Vec::new()).map_err(failed)?;
    Ok(DetachedRun(child))
}

/// Returns the program of this process. After an update its file may be gone, and a worker that runs for weeks still
/// has to start supervisors of the worker's version.
pub(super) fn self_program() -> Result<PathBuf, Error> {
    let program =
        std::env::current_exe().map_err(Error::io("find the program of", "this process"))?;
    let running = Path::new("/proc/self/exe");
    Ok(if !program.exists() && running.exists() { running.to_owned() } else { program })
}

/// Leaves the session of the terminal that this process was started from, and the turn if it was started in one;
/// then lets go of its standard input, for which its starter waits.
///
/// # Errors
/// [`Error::Io`].
pub(super) fn detach() -> Result<(), Error> {
    let failed = Error::io("leave the terminal's session in", "this process");
    leave_turn();
    // Only a group leader cannot leave, and the process that started it as a leader has taken it out of the terminal's
    // group.
    match setsid() {
        Ok(_) | Err(Errno::PERM) => {}
        Err(error) => return Err(failed(error.into())),
    }
    let nothing = File::open("/dev/null").map_err(failed)?;
    dup2_stdin(nothing).map_err(|error| failed(error.into()))
}

/// Executes the runs that programs start, each in a process that outlives this one.
#[derive(Debug)]
pub(super) struct DetachedLauncher {
    /// The engine with the facts that these runs share.
    pub(super) facts: Option<Arc<dyn Engine>>,
}

impl RunLauncher for DetachedLauncher {
    fn launch(&self, root: &RunsRoot, id: &RunId) -> Result<(), String> {
        let facts = self.facts.as_ref().map(|engine| (FACTS_ENGINE, engine.address().url()));
        let output = root.run(id).output();
        let process = start_detached(root, &output, &resuming(id, &[]), facts.as_slice());
        let mut process = process.map_err(|error| error.to_string())?;
        let ended = process.held_or_ended(root, id).map_err(|error| error.to_string())?;
        process.leave();
        let is_refused = || view::load_view(root, id).is_ok_and(|view| view.run.seq == 1);
        if ended.is_some() && is_refused() {
            let output = root.run(id).output();
            return Err(format!("the run {id} has ended at once; see {}", output.display()));
        }
        Ok(())
    }
}

/// A run that another process resumes.
#[derive(Debug)]
pub struct DetachedRun(Child);

impl DetachedRun {
    /// Waits until the process holds the run, so that it can be told to stop; also returns if the process has
    /// ended before.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn wait_until_held(mut self, root: &RunsRoot, id: &RunId) -> Result<(), Error> {
        let ended = self.held_or_ended(root, id)?;
        if let Some(status) = ended
            && !status.success()
        {
            let output = root.run(id).output();
            output::tell(&format!("{id} has stopped already ({status}); see {}", output.display()));
        }
        Ok(())
    }

    /// Waits until the process holds the run, or has ended; returns how it has ended.
    pub(super) fn held_or_ended(
        &mut self,
        root: &RunsRoot,
        id: &RunId,
    ) -> Result<Option<ExitStatus>, Error> {
        let lock = root.run(id).lock();
        while lock::is_held(&lock)?.is_none() {
            let ended = self.0.try_wait().map_err(Error::io("wait for", root.run(id).path()))?;
            if ended.is_some() {
                return Ok(ended);
            }
            std::thread::sleep(POLL_INTERVAL);
        }
        Ok(None)
    }

    /// Lets the process continue. It is a child of this process until one of them ends.
    fn leave(mut self) {
        std::thread::spawn(move || self.0.wait());
    }

    /// Waits until the process has ended, and returns its exit code.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn wait(mut self, root: &RunsRoot, id: &RunId) -> Result<Option<i32>, Error> {
        let ended = self.0.wait().map_err(Error::io("wait for", root.run(id).path()))?;
        Ok(ended.code())
    }
}

// A run in this process, with someone watching who may want it to end.

/// Supervises a run until it has ended or is stopped, and returns its exit code.
///
/// # Errors
/// [`Error`] if it cannot begin, or cannot be recorded.
pub(super) fn supervise_here(
    options: &RunOptions,
    root: &RunsRoot,
    mut prepared: PreparedRun,
) -> Result<CliExitCode, Error> {
    let (json, verbosity) = (options.json, options.verbosity.verbosity());
    let terminal = diagnostics::terminal(!json && verbosity != Verbosity::Quiet);
    for line in options::announced(&prepared) {
        terminal.line(&line);
    }
    for note in &prepared.notes {
        output::tell(note);
    }
    for warning in &prepared.warnings {
        tracing::warn!("{warning}");
    }
    let watcher = person_at(&terminal, options, &mut prepared);
    let (times_plugin, counted) = CountedTimes::of_new_run(&prepared.run).unzip();
    person::keep_registry();
    registry::supervise(prepared.run.workflow_id.as_str());
    subreaper::take_orphans();
    let run = actix::System::new().block_on(async {
        actix::spawn(subreaper::reap_orphans());
        let mut interrupts = signals()?;
        let observers =
            RunObservers { terminal: &terminal, person: watcher.as_ref(), times: times_plugin };
        let run = Box::pin(supervised(options, root, prepared, observers, &mut interrupts)).await;
        terminal.clear();
        let run = run?;
        let times =
            || counted.and_then(|counted| counted.take()).unwrap_or_else(|| turn_times(root, &run));
        let mut last = if json { String::new() } else { summary::results(&run, verbosity, times) };
        if json || verbosity != Verbosity::Quiet {
            last.push_str(&questions::document(&run));
        }
        print_patiently(last, &mut interrupts).await?;
        Ok::<Run, Error>(run)
    })?;
    let named = |text: &str| with_dir(text, root, &run.workflow_id);
    let open = questions::as_text(&run, &questions::open(&run));
    if !open.is_empty() {
        output::tell_lines(&named(open.trim_end()));
    }
    output::tell(&named(&summary::closing(&run, ClosingPlace::BelowQuestions)));
    if let Some(refused) = summary::refused_tools(&run) {
        output::tell(&refused);
    }
    if let Some(left) = worktrees::left(root, &run) {
        output::tell(&named(&left));
    }
    Ok(CliExitCode::of(&run))
}

/// Returns the times of all turns of a run; none if its journal cannot be read.
pub(super) fn turn_times(root: &RunsRoot, run: &Run) -> TurnTimes {
    let mut times = TurnTimes::default();
    let read = story(root, &run.workflow_id, |_, record| times.count(&record.event));
    read.map(|_| times).unwrap_or_default()
}

/// Returns the person to ask, if one is there. The run stays up for them, or because `--on-wait stay` says so.
fn person_at(
    terminal: &Terminal,
    options: &RunOptions,
    prepared: &mut PreparedRun,
) -> Option<KeyboardGuard> {
    let is_there = terminal.is_live() && stdin().is_terminal() && person::acting_agent().is_none();
    let on_wait = options.answers.on_wait;
    prepared.graphs.stay_up = match on_wait {
        Some(OnWait::Exit) => StayUp::never(),
        Some(OnWait::Stay) => StayUp::for_all(),
        None if is_there => StayUp::for_all(),
        None => StayUp::default(),
    };
    let stays_up = on_wait == Some(OnWait::Stay);
    let while_there = if stays_up { StayUp::default() } else { prepared.graphs.stay_up.clone() };
    (is_there && on_wait != Some(OnWait::Exit)).then(|| KeyboardGuard::for_whom(while_there))
}

/// Those who watch a run in this process.
struct RunObservers<'here> {
    terminal: &'here Terminal,
    person: Option<&'here KeyboardGuard>,
    times: Option<TurnTimesPlugin>,
}

async fn supervised(
    options: &RunOptions,
    root: &RunsRoot,
    prepared: PreparedRun,
    RunObservers { terminal, person, times }: RunObservers<'_>,
    interrupts: &mut InterruptReceiver,
) -> Result<Run, Error> {
    let registry = Arc::new(AgentRegistry::default());
    let mut plugins = PlugIns::default();
    if options.json {
        plugins.add_builtin("lines", JsonLinesPlugin::new(stdout()));
    } else {
        let (terminal, verbosity) = (terminal.clone(), options.verbosity.verbosity());
        let console = ConsolePlugin::new(terminal, Arc::clone(&registry), &prepared.run, verbosity);
        plugins.add_builtin("console", console);
        if let Some(times) = times {
            plugins.add_builtin("times", times);
        }
    }
    if terminal.is_live() {
        let sink = DesktopSink::new(terminal.clone(), &prepared.run.workflow_id);
        let tracker = NotificationTracker::new(&prepared.run);
        plugins.add_builtin("desktop", NotificationPlugin::new(tracker, sink));
    }
    if let Some(person) = person {
        let (dir, key) = (prepared.store.dir().clone(), prepared.user_state.key()?);
        let prompt = AnswerPrompt::new(terminal.clone(), dir, key, person, &prepared.run);
        plugins.add_builtin("asking", prompt);
    }
    let named = NamedVariables::of(&prepared.start.settings(&prepared.run).options);
    let hook = options.on_event.as_ref().map(|command| command.hook(&named)).transpose()?;
    if let Some(hook) = &hook {
        plugins.add_builtin("on-event", on_event::notify(hook, root, &prepared.run));
    }
    if let Some(telemetry) = exporter(options.otlp.as_deref(), &prepared) {
        plugins.add_builtin("telemetry", telemetry);
    }
    let ended = runtime::supervised(prepared, root, plugins, registry, interrupts).await;
    if let Some(hook) = hook {
        hook.abandon();
    }
    Ok(ended?)
}

/// Prints a text to a reader that may not be reading; an interrupt ends the wait.
///
/// # Errors
/// [`Error::Io`] if it cannot be written.
async fn print_patiently(text: String, interrupts: &mut InterruptReceiver) -> Result<(), Error> {
    let (done, printed) = oneshot::channel();
    let printing = std::thread::Builder::new().spawn(move || {
        let _ = done.send(output::print_exactly(&text));
    });
    if printing.is_err() {
        return Ok(());
    }
    tokio::select! {
        printed = printed => printed.unwrap_or(Ok(CliExitCode::Success)).map(drop),
        _ = interrupts.recv() => Ok(()),
    }
}

// Prepares telemetry if it is wanted. An error in it never stops a run.

/// Returns the plug-in that exports a run's telemetry, if `--otlp` or the environment asks for it.
pub(super) fn exporter(option: Option<&str>, prepared: &PreparedRun) -> Option<TelemetryPlugin> {
    let config = match TelemetryConfig::of(option, |name| std::env::var(name).ok()) {
        Ok(Some(config)) => config,
        Ok(None) => {
            if option.is_some() {
                tracing::warn!(
                    "telemetry is not exported: OTEL_SDK_DISABLED or OTEL_…_EXPORTER overrides --otlp"
                );
            }
            return None;
        }
        Err(problem) => return refused(&problem),
    };
    let trace = match recalled(&prepared.store) {
        Ok(trace) => trace,
        Err(error) => return refused(&error),
    };
    let instance = Uuid::new_v4().to_string();
    TelemetryPlugin::start(&config, prepared.id(), trace, instance)
        .map_or_else(|problem| refused(&problem), Some)
}

/// Reads the trace of the run so far from the journal.
fn recalled(store: &LockedRun) -> Result<RunTrace, store::Error> {
    let mut trace = RunTrace::default();
    JournalReader::open(&store.dir().journal())?.read_all(|_, line| {
        trace.replay(&record::decode(line)?);
        Ok(())
    })?;
    Ok(trace)
}

fn refused(why: &dyn std::fmt::Display) -> Option<TelemetryPlugin> {
    tracing::warn!("telemetry is not exported: {why}");
    None
}
