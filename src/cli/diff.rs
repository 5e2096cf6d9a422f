//! `raymond diff`: where two runs differ.

use std::collections::HashMap;
use std::fmt::Write as _;

use serde::Serialize;

use super::agent_selector::check_agent_exists;
use super::exit::{CliExitCode, Error};
use super::{output, settings, table};
use crate::cli::args::readers::DiffArgs;
use crate::domain::cassette::reply_text;
use crate::domain::id::{AgentId, RunId};
use crate::domain::money::Usd;
use crate::domain::run_diff::{
    CostDifference, EndingDifference, FileDifference, InputDifference, MomentDifference, RunPair,
    StateCostDifference, StepDifference, StepTrace,
};
use crate::domain::run_trace::{
    TraceAspect, TracedContent, TracedEnding, TracedFile, TracedMoment, TracedText,
};
use crate::domain::tool_call::{flat, one_line};
use crate::language::diagnostic::line_difference;
use crate::plugin::styled::{StyledLine, TextTone};
use crate::runtime::comparison::{
    ComparedRun, RunComparison, WorkflowFileDifference, compare_runs,
};
use crate::store::layout::RunsRoot;
use crate::store::view::load_view;

/// Runs `raymond diff`.
///
/// # Errors
/// [`Error`] if one of the runs cannot be read, or neither has the agent.
pub(super) fn diff(args: &DiffArgs) -> Result<CliExitCode, Error> {
    let root = args.dir.real_root()?;
    let ids = chosen(args, &root)?;
    let found = compare_runs(&root, ids.as_ref(), args.agent.get())?;
    if let Some(agent) = args.agent.get() {
        let RunPair { a, b } = found.runs.as_ref().map(|run| &run.view.run);
        check_agent_exists(a, agent)
            .or_else(|missing| check_agent_exists(b, agent).map_err(|_| missing))?;
    }
    let first = FirstDifference::of(&found, &root)?;
    if args.json {
        output::print_json(&DiffDocument::of(&found, args.agent.get(), first.as_ref()))?;
    } else {
        let shown = ShownDiff { found: &found, agent: args.agent.get(), first: first.as_ref() };
        table::print(shown.lines())?;
    }
    Ok(exit(&found))
}

/// Returns 1 for runs that differ, as other programs that compare do.
fn exit(found: &RunComparison) -> CliExitCode {
    if found.diff.is_equal() { CliExitCode::Success } else { CliExitCode::AgentFailed }
}

/// Returns the runs that are named; of a branch alone, the run that it branched off comes first.
fn chosen(args: &DiffArgs, root: &RunsRoot) -> Result<RunPair<RunId>, Error> {
    let run = settings::find(root, &args.run)?;
    if let Some(other) = &args.other {
        return Ok(RunPair { a: run, b: settings::find(root, other)? });
    }
    match load_view(root, &run)?.run.branch {
        Some(origin) if !root.run(&origin.run).path().is_dir() => Err(Error::Usage(format!(
            "{run} branched off {}, which has been removed, so name another run to compare it with: raymond diff {run} RUN2",
            origin.run
        ))),
        Some(origin) => Ok(RunPair { a: origin.run, b: run }),
        None => Err(Error::Usage(format!(
            "{run} did not branch off another run, so name the run to compare it with: raymond diff {run} RUN2"
        ))),
    }
}

/// The first difference of two runs, with its texts.
#[derive(Serialize)]
struct FirstDifference<'found> {
    #[serde(flatten)]
    moment: &'found MomentDifference,
    #[serde(rename = "differs")]
    parts: Vec<DifferentPart>,
}

/// A part of a moment that differs.
#[derive(Serialize)]
struct DifferentPart {
    #[serde(rename = "what")]
    aspect: TraceAspect,
    #[serde(flatten)]
    texts: RunPair<Option<String>>,
    /// The lines that differ, if both texts are known and not too long.
    lines: Option<String>,
}

impl<'found> FirstDifference<'found> {
    /// Returns the first difference; `None` if there is none.
    fn of(found: &'found RunComparison, root: &RunsRoot) -> Result<Option<Self>, Error> {
        let Some(moment) = &found.diff.first else { return Ok(None) };
        let texts = |run: &ComparedRun, moment: &Option<_>| {
            let turn = moment.as_ref().map(|moment: &TracedMoment| &moment.turn);
            turn.map(|turn| run.texts(root, turn)).transpose()
        };
        let texts = RunPair {
            a: texts(&found.runs.a, &moment.moments.a)?.unwrap_or_default(),
            b: texts(&found.runs.b, &moment.moments.b)?.unwrap_or_default(),
        };
        let part = |(aspect, pair): &(TraceAspect, RunPair<Option<TracedText>>)| {
            let texts = match aspect {
                TraceAspect::Prompt => texts.as_ref().map(|turn| turn.prompt.clone()),
                TraceAspect::Reply => texts
                    .as_ref()
                    .map(|turn| reply_text(turn.answer.as_deref(), turn.structured.as_deref())),
                _ => pair.as_ref().map(|text| text.as_ref().map(|text| text.text.clone())),
            };
            let lines = texts.a.as_ref().zip(texts.b.as_ref());
            let lines =
                lines.and_then(|(a, b)| line_difference(a, &with_ids_of(&found.runs, a, b)));
            DifferentPart { aspect: *aspect, texts, lines }
        };
        Ok(Some(Self { moment, parts: moment.aspects.iter().map(part).collect() }))
    }
}

/// Returns the text of the second run with those lines of the first that differ from its own only in the ids of the
/// runs.
fn with_ids_of(runs: &RunPair<ComparedRun>, a: &str, b: &str) -> String {
    let lines = a.split_inclusive('\n').map(|line| (runs.a.without_ids(line), line));
    let lines: HashMap<String, &str> = lines.collect();
    let same = |line| lines.get(&runs.b.without_ids(line)).copied().unwrap_or(line);
    b.split_inclusive('\n').map(same).collect()
}

/// The difference of two runs, for programs.
#[derive(Serialize)]
struct DiffDocument<'found> {
    runs: RunPair<ComparedRunRow<'found>>,
    agent: Option<&'found AgentId>,
    equal: bool,
    shared_records: u64,
    first_difference: Option<&'found FirstDifference<'found>>,
    steps: &'found [StepDifference],
    results: &'found [EndingDifference],
    cost: CostDifference,
    states: &'found [StateCostDifference],
    files: Vec<FileRow<'found>>,
    commands: RunPair<u64>,
    inputs: &'found [InputDifference],
    workflow_files: &'found [WorkflowFileDifference],
}

/// A run that is compared.
#[derive(Serialize)]
struct ComparedRunRow<'found> {
    run: &'found RunId,
    status: &'static str,
    records: u64,
}

/// A file that differs, with its changed lines.
#[derive(Serialize)]
struct FileRow<'found> {
    #[serde(flatten)]
    file: &'found FileDifference,
    lines: Option<String>,
}

impl<'found> DiffDocument<'found> {
    /// Returns the difference of two runs, of `agent` alone if one is named.
    fn of(
        found: &'found RunComparison,
        agent: Option<&'found AgentId>,
        first: Option<&'found FirstDifference<'found>>,
    ) -> Self {
        let diff = &found.diff;
        let run = |run: &'found ComparedRun| ComparedRunRow {
            run: &run.view.run.workflow_id,
            status: table::word(&run.view),
            records: run.trace.lineage.last(),
        };
        Self {
            runs: found.runs.as_ref().map(run),
            agent,
            equal: diff.is_equal(),
            shared_records: diff.shared,
            first_difference: first,
            steps: &diff.steps,
            results: &diff.results,
            cost: diff.cost,
            states: &diff.state_costs,
            files: diff
                .files
                .iter()
                .map(|file| FileRow { file, lines: file_lines(file) })
                .collect(),
            commands: found.runs.as_ref().map(|run| run.trace.files.commands),
            inputs: &diff.inputs,
            workflow_files: &found.workflow,
        }
    }
}

/// Returns the changed lines of a file, if both texts are known.
fn file_lines(file: &FileDifference) -> Option<String> {
    let known = |side: &Option<TracedFile>| match side.as_ref().map(|side| side.content.clone()) {
        Some(TracedContent::Known(text)) => Some(text),
        Some(TracedContent::Edited(_)) | None => None,
    };
    line_difference(&known(&file.files.a)?, &known(&file.files.b)?)
}

// The difference of two runs for people.

/// The most entries of a section that are shown of a whole run; of one agent all are.
const MAX_ENTRIES: usize = 12;

/// The most bytes of a way that are shown.
const MAX_TRANSITION_BYTES: usize = 300;

/// The most bytes of each of two texts that are shown beside each other, and those before the place in which they
/// differ.
const MAX_SIDE_BYTES: usize = 160;
const BEFORE_DIFFERENCE: usize = 40;

/// The most bytes of a text that are looked at for the difference.
const MAX_TEXT_BYTES: usize = 64 * 1024;

/// The difference of two runs for people.
struct ShownDiff<'found> {
    found: &'found RunComparison,
    agent: Option<&'found AgentId>,
    first: Option<&'found FirstDifference<'found>>,
}

impl ShownDiff<'_> {
    /// Returns the lines.
    fn lines(&self) -> Vec<StyledLine> {
        let diff = &self.found.diff;
        let mut lines = self.head();
        self.first(&mut lines);
        self.section(&mut lines, "transitions", &diff.steps, step);
        self.section(&mut lines, "results", &diff.results, |found| {
            let texts = found.endings.as_ref().map(|ending| ending.as_ref().map(ending_text));
            sides(found.agent.as_str(), texts)
        });
        self.costs(&mut lines);
        self.section(&mut lines, "files", &diff.files, file);
        self.commands(&mut lines);
        self.section(&mut lines, "inputs", &diff.inputs, |input| {
            let text = |text: &Option<TracedText>| {
                text.as_ref().map(|text| flat(&text.text, MAX_TEXT_BYTES))
            };
            sides(&input.name, input.values.as_ref().map(text))
        });
        self.section(&mut lines, "workflow", &self.found.workflow, workflow_file);
        lines
    }

    fn head(&self) -> Vec<StyledLine> {
        let RunPair { a, b } = self.found.runs.as_ref().map(run_words);
        let width = a.0.len().max(b.0.len());
        let line = |sign: &str, tone, words: &(String, &'static str, String)| {
            let (id, status, records) = words;
            StyledLine::of(tone, &format!("{sign} {id:width$}"))
                .with(table::tone(status), &format!("  {status}"))
                .with(TextTone::Plain, records)
        };
        let mut lines = vec![line("-", TextTone::Bad, &a), line("+", TextTone::Good, &b)];
        let plain = |text: &str| StyledLine::of(TextTone::Plain, text);
        match self.found.diff.shared {
            0 => {}
            1 => lines.push(plain("the first record is shared")),
            shared => lines.push(plain(&format!("the first {shared} records are shared"))),
        }
        if self.found.diff.is_equal() {
            let of = self.agent.map_or("the runs are equal".to_owned(), |agent| {
                format!("{agent} is equal in both runs")
            });
            lines.push(StyledLine::of(TextTone::Good, &of));
        }
        lines
    }

    fn first(&self, lines: &mut Vec<StyledLine>) {
        let Some(FirstDifference { moment, parts }) = self.first else { return };
        heading(lines, "first difference");
        let mut place = format!("  {}#{}", moment.agent, moment.step);
        for (sign, traced) in [("-", &moment.moments.a), ("+", &moment.moments.b)] {
            let _ = match traced {
                Some(traced) => {
                    write!(place, "  {sign} record {}, turn {}", traced.seq, traced.turn.turn + 1)
                }
                None => write!(place, "  {sign} nothing more"),
            };
        }
        lines.push(StyledLine::of(TextTone::Strong, &place));
        if let (Some(only), None) | (None, Some(only)) = (&moment.moments.a, &moment.moments.b) {
            lines.push(StyledLine::of(TextTone::Plain, &format!("    {}", moment_text(only))));
        }
        for part in parts {
            different_part(lines, part);
        }
    }

    /// Adds a section with an entry for each difference, up to the most that are shown.
    fn section<T>(
        &self,
        lines: &mut Vec<StyledLine>,
        name: &str,
        entries: &[T],
        of: impl Fn(&T) -> Vec<StyledLine>,
    ) {
        if entries.is_empty() {
            return;
        }
        heading(lines, name);
        let most = if self.agent.is_some() { usize::MAX } else { MAX_ENTRIES };
        lines.extend(entries.iter().take(most).flat_map(of));
        if let Some(more) = entries.len().checked_sub(most).filter(|&more| more > 0) {
            let text = format!("  … and {more} more: name an AGENT, or --json");
            lines.push(StyledLine::of(TextTone::Faint, &text));
        }
    }

    fn costs(&self, lines: &mut Vec<StyledLine>) {
        let diff = &self.found.diff;
        let costs = diff.cost.costs;
        if costs.a == costs.b && diff.state_costs.is_empty() {
            return;
        }
        heading(lines, "cost");
        let row = |name: &str, pair: &RunPair<Usd>| {
            let text = format!("  {name}  - {}  + {}  {}", pair.a, pair.b, change(*pair));
            StyledLine::of(TextTone::Plain, &text)
        };
        lines.push(row("in all", &costs));
        let states = diff.state_costs.iter().take(MAX_ENTRIES);
        lines.extend(states.map(|found| row(found.state.as_str(), &found.cost.costs)));
        let notes =
            self.found.runs.as_ref().map(|run| run.view.run.settings.answerer.note_on_costs());
        for (sign, note) in [("-", notes.a), ("+", notes.b)] {
            if let Some(note) = note {
                lines.push(StyledLine::of(TextTone::Faint, &format!("  {sign} {note}")));
            }
        }
    }

    /// Says that changes by commands are not known, if files may differ because of them.
    fn commands(&self, lines: &mut Vec<StyledLine>) {
        let RunPair { a, b } = self.found.runs.as_ref().map(|run| run.trace.files.commands);
        if a + b > 0 {
            let text = format!(
                "files that commands (Bash) changed are not compared: - {a} commands, + {b}"
            );
            lines.push(StyledLine::default());
            lines.push(StyledLine::of(TextTone::Faint, &text));
        }
    }
}

/// Returns the id, the status, and the number of records of a run.
fn run_words(run: &ComparedRun) -> (String, &'static str, String) {
    let status = table::word(&run.view);
    let records = format!("  {} records", run.trace.lineage.last());
    (run.view.run.workflow_id.to_string(), status, records)
}

fn heading(lines: &mut Vec<StyledLine>, name: &str) {
    lines.push(StyledLine::default());
    lines.push(StyledLine::of(TextTone::Strong, name));
}

/// Returns what only one of the runs has at the place of the first difference.
fn moment_text(moment: &TracedMoment) -> String {
    let shown = moment.aspects.iter().filter(|(aspect, _)| !aspect.is_checksum());
    let parts: Vec<String> =
        shown.map(|(aspect, text)| format!("{} {}", aspect.word(), one_line(&text.text))).collect();
    parts.join("  ")
}

/// Adds the name of a part and its lines: the changed ones of long texts, or both texts.
fn different_part(lines: &mut Vec<StyledLine>, part: &DifferentPart) {
    lines.push(StyledLine::of(TextTone::Faint, &format!("    {}", part.aspect.word())));
    let is_long = |text: &Option<String>| text.as_ref().is_some_and(|text| text.contains('\n'));
    match &part.lines {
        Some(changed) if is_long(&part.texts.a) || is_long(&part.texts.b) => {
            lines.extend(changed.lines().map(|line| changed_line(line, 6)));
        }
        _ => {
            for (sign, text) in [("-", &part.texts.a), ("+", &part.texts.b)] {
                let text = text
                    .as_ref()
                    .map_or("(none)".to_owned(), |text| flat(text, MAX_TRANSITION_BYTES));
                lines.push(changed_line(&format!("{sign} {text}"), 6));
            }
        }
    }
}

/// Returns a line of a difference, in the tone of its run.
fn changed_line(line: &str, indent: usize) -> StyledLine {
    let tone = match line.chars().next() {
        Some('-') => TextTone::Bad,
        Some('+') => TextTone::Good,
        Some('@') => TextTone::Faint,
        _ => TextTone::Plain,
    };
    StyledLine::of(TextTone::Plain, &" ".repeat(indent)).with(tone, line)
}

/// Returns the lines of an entry with a text for each run.
fn sides(name: &str, texts: RunPair<Option<String>>) -> Vec<StyledLine> {
    let texts = around_difference(texts);
    let mut lines = vec![StyledLine::of(TextTone::Plain, &format!("  {name}"))];
    for (sign, text) in [("-", texts.a), ("+", texts.b)] {
        let text = text.unwrap_or_else(|| "(none)".to_owned());
        lines.push(changed_line(&format!("{sign} {text}"), 4));
    }
    lines
}

/// Returns two texts of a line each, long ones from shortly before the place in which they differ.
fn around_difference(texts: RunPair<Option<String>>) -> RunPair<Option<String>> {
    let (Some(a), Some(b)) = (&texts.a, &texts.b) else {
        let short = |text: String| flat(&text, MAX_SIDE_BYTES);
        return texts.map(|text| text.map(short));
    };
    let same = a.chars().zip(b.chars()).take_while(|(a, b)| a == b);
    let same: usize = same.map(|(c, _)| c.len_utf8()).sum();
    let is_long = a.len().max(b.len()) > MAX_SIDE_BYTES && same > BEFORE_DIFFERENCE;
    let from = if is_long { a.floor_char_boundary(same - BEFORE_DIFFERENCE) } else { 0 };
    let mark = if from > 0 { "…" } else { "" };
    texts.map(|text| text.map(|text| format!("{mark}{}", flat(&text[from..], MAX_SIDE_BYTES))))
}

fn step(step: &StepDifference) -> Vec<StyledLine> {
    let trace = |trace: &Option<StepTrace>| {
        let trace = trace.as_ref();
        trace.map(|trace| {
            let outcomes: Vec<&str> =
                trace.outcomes.iter().map(|text| text.text.as_str()).collect();
            let all = format!("{} {}", trace.state.text, outcomes.join(", then "));
            format!("{}  (record {})", flat(&all, MAX_TEXT_BYTES), trace.seq)
        })
    };
    sides(&format!("{}#{}", step.agent, step.step), step.traces.as_ref().map(trace))
}

fn ending_text(ending: &TracedEnding) -> String {
    match ending {
        TracedEnding::Result { result } => flat(&result.text, MAX_TEXT_BYTES),
        TracedEnding::Failed { error } => format!("failed: {}", flat(&error.text, MAX_TEXT_BYTES)),
        TracedEnding::Unneeded => "ended, because nobody needed it".to_owned(),
        TracedEnding::Live => "has not ended".to_owned(),
    }
}

fn change(pair: RunPair<Usd>) -> String {
    match pair.b.saturating_sub(pair.a) {
        Usd::ZERO => format!("-{}", pair.a.saturating_sub(pair.b)),
        more => format!("+{more}"),
    }
}

fn file(file: &FileDifference) -> Vec<StyledLine> {
    let by = |side: &Option<TracedFile>| {
        let side = side.as_ref();
        side.map(|side| {
            let by: Vec<String> = side.steps().collect();
            format!("changed by {}", by.join(", "))
        })
        .or_else(|| Some("not changed".to_owned()))
    };
    let tree =
        file.tree.as_ref().map_or(String::new(), |agent| format!("  in the worktree of {agent}"));
    let mut lines = sides(&format!("{}{tree}", file.path), file.files.as_ref().map(by));
    let changed = file_lines(file).unwrap_or_default();
    lines.extend(changed.lines().map(|line| changed_line(line, 6)));
    lines
}

fn workflow_file(file: &WorkflowFileDifference) -> Vec<StyledLine> {
    let text = format!("  {}: {}", file.path, file.how.word());
    let mut lines = vec![StyledLine::of(TextTone::Plain, &text)];
    let changed = file.lines.as_deref().unwrap_or("the file is too long to be compared");
    lines.extend(changed.lines().map(|line| changed_line(line, 4)));
    lines
}
