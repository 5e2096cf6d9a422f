//! A run in this process, with someone watching who may want it to end.
//!
//! Prepares telemetry if it is wanted. An error in it never stops a run.

use std::io::{Error as IoError, ErrorKind, IsTerminal, stdin, stdout};
use std::sync::Arc;

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::{mpsc, oneshot};
use uuid::Uuid;

use crate::actor::process::StayUp;
use crate::actor::registry::AgentRegistry;
use crate::cli::answer_prompt::{AnswerPrompt, KeyboardGuard};
use crate::cli::args::answers::OnWait;
use crate::cli::exit::{CliExitCode, Error};
use crate::cli::on_event::{CountedTimes, TurnTimesPlugin};
use crate::cli::options::RunOptions;
use crate::cli::runs_dir::with_dir;
use crate::cli::summary::{ClosingPlace, TurnTimes};
use crate::cli::{diagnostics, on_event, options, output, person, questions, summary, worktrees};
use crate::domain::run::Run;
use crate::plugin::console::{ConsolePlugin, Verbosity};
use crate::plugin::notify::{DesktopSink, NotificationPlugin, NotificationTracker};
use crate::plugin::styled::JsonLinesPlugin;
use crate::plugin::telemetry::config::TelemetryConfig;
use crate::plugin::telemetry::meters::TelemetryPlugin;
use crate::plugin::telemetry::trace::RunTrace;
use crate::plugin::terminal::Terminal;
use crate::process::child::orphans;
use crate::process::plugin_process::NamedVariables;
use crate::process::registry;
use crate::runtime::{InterruptReceiver, PlugIns, PreparedRun};
use crate::store::journal::JournalReader;
use crate::store::layout::RunsRoot;
use crate::store::record;
use crate::store::run_store::LockedRun;
use crate::store::snapshot::story;
use crate::{runtime, store};

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
    orphans::take_orphans();
    let run = actix::System::new().block_on(async {
        actix::spawn(orphans::reap_orphans());
        let mut interrupts = signals()?;
        let shown = (&terminal, watcher.as_ref(), times_plugin);
        let run = Box::pin(supervised(options, root, prepared, shown, &mut interrupts)).await;
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

async fn supervised(
    options: &RunOptions,
    root: &RunsRoot,
    prepared: PreparedRun,
    (terminal, person, times): (&Terminal, Option<&KeyboardGuard>, Option<TurnTimesPlugin>),
    interrupts: &mut InterruptReceiver,
) -> Result<Run, Error> {
    let registry = Arc::new(AgentRegistry::default());
    let mut plugins = PlugIns::default();
    if options.json {
        plugins.add_own("lines", JsonLinesPlugin::new(stdout()));
    } else {
        let (terminal, verbosity) = (terminal.clone(), options.verbosity.verbosity());
        let console = ConsolePlugin::new(terminal, Arc::clone(&registry), &prepared.run, verbosity);
        plugins.add_own("console", console);
        if let Some(times) = times {
            plugins.add_own("times", times);
        }
    }
    if terminal.is_live() {
        let sink = DesktopSink::new(terminal.clone(), &prepared.run.workflow_id);
        let tracker = NotificationTracker::new(&prepared.run);
        plugins.add_own("desktop", NotificationPlugin::new(tracker, sink));
    }
    if let Some(person) = person {
        let inbox = (prepared.store.dir().clone(), prepared.user_state.key()?);
        plugins
            .add_own("asking", AnswerPrompt::new(terminal.clone(), inbox, person, &prepared.run));
    }
    let named = NamedVariables::of(&prepared.start.settings(&prepared.run).options);
    let hook = options.on_event.as_ref().map(|command| command.hook(&named)).transpose()?;
    if let Some(hook) = &hook {
        plugins.add_own("on-event", on_event::notify(hook, root, &prepared.run));
    }
    if let Some(telemetry) = exporter(options.otlp.as_deref(), &prepared) {
        plugins.add_own("telemetry", telemetry);
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

// Signals that ask a run in the foreground to end.
//
// SIGINT and SIGTERM each count: the second ends running turns at once. A terminal that is closed may tell
// of it several times, by the kernel and by the shell, so SIGHUP counts once and leaves running turns their
// grace. A SIGHUP that is ignored when raymond starts, as under `nohup`, stays ignored.

/// The bit of SIGHUP in a mask of signals.
const HANGUP_BIT: u64 = 1;

/// The system's number for an operation on a terminal that is gone, `EIO`.
const TERMINAL_IS_GONE: i32 = 5;

/// Returns a message for each signal from now on that asks this process to end.
///
/// # Errors
/// [`Error::Io`].
pub(super) fn signals() -> Result<InterruptReceiver, Error> {
    let (sender, receiver) = mpsc::unbounded_channel();
    for kind in [SignalKind::interrupt(), SignalKind::terminate()] {
        listen(kind, usize::MAX, sender.clone())?;
    }
    if !ignores_hangup() {
        listen(SignalKind::hangup(), 1, sender)?;
    }
    Ok(receiver)
}

/// Passes on the first `times` signals of a kind.
fn listen(kind: SignalKind, times: usize, sender: UnboundedSender<()>) -> Result<(), Error> {
    let mut stream = signal(kind).map_err(|error| Error::Io {
        doing: "listen for signals of",
        path: "this process".into(),
        error,
    })?;
    actix::spawn(async move {
        for _ in 0..times {
            if stream.recv().await.is_none() || sender.send(()).is_err() {
                return;
            }
        }
    });
    Ok(())
}

/// Returns whether this process was started with SIGHUP ignored, where the system tells.
fn ignores_hangup() -> bool {
    std::fs::read_to_string("/proc/self/status").is_ok_and(|status| is_hangup_ignored(&status))
}

fn is_hangup_ignored(status: &str) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .is_some_and(|mask| mask & HANGUP_BIT != 0)
}

/// Returns whether an error of a write means that nobody reads any more: a closed pipe, or a terminal that
/// has been closed.
pub(super) fn is_reader_gone(error: &IoError, stream: &impl IsTerminal) -> bool {
    error.kind() == ErrorKind::BrokenPipe
        || (error.raw_os_error() == Some(TERMINAL_IS_GONE) && !stream.is_terminal())
}

#[cfg(test)]
mod interrupts_tests {
    use super::*;

    #[test]
    fn ignored_hangup_is_read_from_signal_mask() {
        let status =
            |mask: &str| format!("Name:\traymond\nSigBlk:\t0\nSigIgn:\t{mask}\nSigCgt:\t1\n");
        assert!(is_hangup_ignored(&status("0000000000000001")));
        assert!(is_hangup_ignored(&status("0000000000001003")));
        assert!(!is_hangup_ignored(&status("0000000000001000")));
        assert!(!is_hangup_ignored("Name:\traymond\n") && !is_hangup_ignored(&status("x")));
    }

    #[test]
    fn broken_pipe_or_lost_terminal_means_reader_is_gone() {
        let file = tempfile::tempfile().expect("a file");
        let gone = |error: IoError| is_reader_gone(&error, &file);
        assert!(gone(ErrorKind::BrokenPipe.into()));
        assert!(gone(IoError::from_raw_os_error(TERMINAL_IS_GONE)));
        assert!(!gone(ErrorKind::StorageFull.into()));
    }
}
