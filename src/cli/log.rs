//! `raymond log`: the records of a run or an agent, optionally as they are written; and the wait for a takeover.

use std::path::Path;
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::cli::agent_selector::check_agent_exists;
use crate::cli::args::readers::LogArgs;
use crate::cli::exit::{CliExitCode, Error};
use crate::cli::{output, settings};
use crate::domain::event::{Event, Record};
use crate::domain::id::RunId;
use crate::domain::ledger::{ChargeKind, cost_of};
use crate::domain::tool_call::{ToolCall, folded, printable_json, printable_line};
use crate::plugin::sentence::{moment, sentence};
use crate::plugin::styled::{StyledLine, TextTone};
use crate::process::claude::turn_transcript::TurnTranscript;
use crate::store::engine_note::EngineNote;
use crate::store::journal::JournalReader;
use crate::store::layout::{RunDir, RunsRoot};
use crate::store::record::RecordError;
use crate::store::view::{load_view, no_such_run};
use crate::store::{self, lock, record};

/// The poll interval of a journal that is followed.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Runs `raymond log`.
///
/// # Errors
/// [`Error`] if there is no such run, a record is damaged, or there has been no such agent.
pub fn log(args: &LogArgs) -> Result<CliExitCode, Error> {
    let root = args.target.dir.root();
    let id = settings::chosen(&args.target.named, &root)?;
    let steps = root.run(&id).steps();
    if !follow(&root, &id, args.follow, |line| text(line, args, &steps))? {
        return Ok(CliExitCode::Success);
    }
    if let Some(whose) = args.agent() {
        check_agent_exists(&load_view(&root, &id)?.run, whose.agent())?;
    }
    Ok(CliExitCode::Success)
}

/// Prints the records of a run, as they are written if asked to, each as `text` renders its printable line; returns
/// whether the reader stayed to the end.
///
/// # Errors
/// [`Error`] if there is no such run, or a record is damaged.
pub(super) fn follow(
    root: &RunsRoot,
    id: &RunId,
    stays: bool,
    text: impl Fn(&str) -> Result<Option<String>, RecordError>,
) -> Result<bool, Error> {
    let dir = root.run(id);
    if !dir.path().is_dir() {
        return Err(no_such_run(root, id).into());
    }
    let mut journal = JournalReader::open(&dir.journal())?;
    let mut takeover = AwaitedTakeover::default();
    loop {
        let held = stays && (lock::is_held(&dir.lock())?.is_some() || takeover.is_due(&dir)?);
        while let Some((seq, line)) = journal.read()? {
            let text = text(&line).map_err(|flaw| journal.damaged(seq, &flaw))?;
            if !text.map_or(Ok(true), |text| output::print_printable_line(&text))? {
                return Ok(false);
            }
        }
        if !held && journal.extent().last == 0 {
            return Err(store::Error::Empty { path: dir.journal() }.into());
        }
        if !held {
            return Ok(true);
        }
        std::thread::sleep(POLL_INTERVAL);
    }
}

/// Returns a record as a line of JSON, under the names that plug-ins see.
pub(super) fn json_line(record: &impl Serialize) -> String {
    serde_json::to_string(record).map(|line| printable_json(&line)).unwrap_or_default()
}

/// A record, and the tool calls of the turn that it ends.
#[derive(Serialize)]
struct RecordWithCalls<'record> {
    #[serde(flatten)]
    record: &'record Record,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<ToolCall>,
}

/// Returns the tool calls of the turn that an event ends, if its stream is on this machine. After a failure without a
/// session the same turn continues.
fn tool_calls(steps: &Path, event: &Event) -> Vec<ToolCall> {
    let goes_on = matches!(event, Event::TurnFailed(failed) if failed.session.is_none());
    let ended = cost_of(event).filter(|charge| charge.on != ChargeKind::Nothing && !goes_on);
    let transcript = ended.and_then(|charge| TurnTranscript::find(steps, &charge.turn.stem()));
    let found = transcript.and_then(|transcript| transcript.prompt_and_reply().ok());
    found.unwrap_or_default().calls
}

/// Returns the text of a record; `None` if it is about another agent.
fn text(line: &str, args: &LogArgs, steps: &Path) -> Result<Option<String>, RecordError> {
    let record = record::decode(line)?;
    if args.agent().is_some_and(|whose| !whose.is_about(&record.event)) {
        return Ok(None);
    }
    let tool_calls = tool_calls(steps, &record.event);
    if args.target.json {
        return Ok(Some(json_line(&RecordWithCalls { record: &record, tool_calls })));
    }
    let texts: Vec<String> =
        record.event.facets().shown.iter().map(|text| text.replace('\n', " ")).collect();
    let texts = texts.iter().fold(String::new(), |all, text| all + "; shows: " + text);
    let tools = match folded(&tool_calls) {
        tools if tools.is_empty() => tools,
        tools => format!("  tools: {}", printable_line(&tools)),
    };
    let line = StyledLine::of(TextTone::Faint, &moment(record.at))
        .with(record.event.facets().tone, &format!("  {}{texts}", sentence(&record)))
        .with(TextTone::Faint, &tools);
    let line = output::fitted(&line.painted(console::colors_enabled()));
    Ok(Some(line.trim_end().to_owned()))
}

// The wait for another raymond that takes a shared run over, after its supervisor has vanished.

/// The time within which a worker that takes runs has taken one over.
const TAKEOVER_TIMEOUT: Duration = Duration::from_secs(20);

/// The wait for a takeover.
#[derive(Debug, Default)]
pub(super) struct AwaitedTakeover {
    since: Option<Instant>,
}

impl AwaitedTakeover {
    /// Returns whether another raymond may still take over a run that has lost its supervisor. Says once that it waits
    /// for a takeover, and once that nobody took the run over.
    ///
    /// # Errors
    /// [`Error`] if the note in the copy of the run cannot be read.
    pub(super) fn is_due(&mut self, dir: &RunDir) -> Result<bool, Error> {
        if !EngineNote::of(dir.path())?.is_some_and(|note| note.is_abandoned) {
            self.since = None;
            return Ok(false);
        }
        let Some(since) = self.since else {
            self.since = Some(Instant::now());
            output::tell(
                "the run has lost its supervisor; waiting until another raymond takes it over",
            );
            return Ok(true);
        };
        let is_due = since.elapsed() < TAKEOVER_TIMEOUT;
        if !is_due {
            output::tell(
                "no other raymond has taken over the run: continue it with `raymond resume`, or start a worker with --takes-runs",
            );
        }
        Ok(is_due)
    }
}
