//! `raymond log`: the records of a run or an agent, as they are written if asked to.

use std::time::Duration;

use super::agent_selector::check_agent_exists;
use super::args::readers::LogArgs;
use super::awaited_takeover::AwaitedTakeover;
use super::exit::{CliExitCode, Error};
use super::{output, run_choice};
use crate::domain::event::Record;
use crate::domain::id::RunId;
use crate::domain::printable::printable_json;
use crate::plugin::line_choice::tone;
use crate::plugin::sentence::{moment, sentence, shown_texts};
use crate::plugin::styled::{StyledLine, TextTone};
use crate::store::journal::JournalReader;
use crate::store::layout::RunsRoot;
use crate::store::record::RecordError;
use crate::store::view::{load_view, no_such_run};
use crate::store::{lock, record};

/// The poll interval of a journal that is followed.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Runs `raymond log`.
///
/// # Errors
/// [`Error`] if there is no such run, a record is damaged, or there has been no such agent.
pub fn log(args: &LogArgs) -> Result<CliExitCode, Error> {
    let root = args.one.dir.root();
    let id = run_choice::chosen(&args.one.named, &root)?;
    if !follow(&root, &id, args.follow, |line| text(line, args))? {
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
        if !held {
            return Ok(true);
        }
        std::thread::sleep(POLL_INTERVAL);
    }
}

/// Returns a record as a line of JSON, under the names that plug-ins see.
pub(super) fn json_line(record: &Record) -> String {
    serde_json::to_string(record).map(|line| printable_json(&line)).unwrap_or_default()
}

/// Returns the text of a record; `None` if it is about another agent.
fn text(line: &str, args: &LogArgs) -> Result<Option<String>, RecordError> {
    let record = record::decode(line)?;
    if args.agent().is_some_and(|whose| !whose.is_about(&record.event)) {
        return Ok(None);
    }
    if args.one.json {
        return Ok(Some(json_line(&record)));
    }
    let texts: Vec<String> =
        shown_texts(&record.event).iter().map(|text| text.replace('\n', " ")).collect();
    let texts = texts.iter().fold(String::new(), |all, text| all + "; shows: " + text);
    let line = StyledLine::of(TextTone::Faint, &moment(record.at))
        .with(tone(&record.event), &format!("  {}{texts}", sentence(&record)));
    Ok(Some(line.painted(console::colors_enabled())))
}
