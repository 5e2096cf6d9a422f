//! `raymond show`: an agent's prompts, replies and costs, step by step.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use serde_json::{Value, json};

use super::agent_selector::check_agent_exists;
use super::agent_table::AgentStatuses;
use super::args::NamedRunArgs;
use super::args::readers::ShowArgs;
use super::exit::{CliExitCode, Error};
use super::{agent_table, output, settings};
use crate::cli::agent_table::AgentTable;
use crate::cli::table::TableCell;
use crate::cli::{engine, table};
use crate::domain::event::Event;
use crate::domain::history::{AgentHistory, HistoryStep, HistoryTurn};
use crate::domain::id::{AgentId, RunId, SessionId};
use crate::domain::ledger::cost_of;
use crate::domain::money::Usd;
use crate::domain::refusal::{advice, notice};
use crate::domain::run::{AgentEnding, FinishedAgent, Run};
use crate::domain::settings::AnswererKind;
use crate::domain::tool_call::{
    ToolCall, ToolOutcome, folded, one_line, printable, printable_line,
};
use crate::domain::tree::{AgentTree, RowSubject, TreeRow};
use crate::domain::turn::{ScriptTexts, TurnId, TurnTexts};
use crate::domain::usage::ModelUse;
use crate::domain::views::{AgentDetail, AgentEndingView, StepRow, TurnRow};
use crate::plugin::sentence::{date, sentence_without_refusals};
use crate::plugin::styled::{StyledLine, TextTone, paint};
use crate::process::claude::turn_transcript::{PromptAndReply, TurnTranscript};
use crate::runtime::branch::missing;
use crate::runtime::sharing::{TurnPlace, transcripts};
use crate::store::layout::{RunDir, RunsRoot};
use crate::store::view::{RunView, load_view, story};
use crate::world::perform::script_output;

mod script;

/// The most lines and bytes of a text that are shown without `--step`.
const MAX_SHOWN_LINES: usize = 8;
const MAX_SHOWN_BYTES: usize = 600;

/// The agent that is shown.
struct AgentDetails<'run> {
    view: &'run RunView,
    dir: RunDir,
    agent: &'run AgentId,
    /// The texts of turns that ran at other hosts.
    elsewhere: TextsElsewhere,
    sessions: KeptSessions,
    /// True if one step was asked for, and so its whole texts.
    whole: bool,
    /// False if the prompts and the replies are left out.
    has_texts: bool,
}

/// Runs `raymond show`.
///
/// # Errors
/// [`Error`] if the run cannot be read, or there is no such agent or step.
pub fn show(args: &ShowArgs) -> Result<CliExitCode, Error> {
    let root = args.dir.root();
    let NamedAgent { run, agent } = named(args)?;
    let id = settings::chosen(&NamedRunArgs { run, last: args.last }, &root)?;
    let named = match agent {
        None => only_agent(&load_view(&root, &id)?.run),
        named => named,
    };
    let Some(agent) = named else { return list(args, &root, &id) };
    let (view, mut steps) = read(&root, &id, &agent)?;
    if let Some(number) = args.step {
        let last = steps.last().map_or(0, |step| step.number);
        steps.retain(|step| step.number == number);
        if steps.is_empty() {
            let why = format!("{agent} has no step {number}: its last step is {last}");
            return Err(Error::Usage(why));
        }
    }
    let dir = root.run(&id);
    let elsewhere = TextsElsewhere::fetch(args, &id, &dir, &steps)?;
    let sessions = KeptSessions::of(&view.run, &steps);
    let whole = args.step.is_some();
    let (agent, view) = (&agent, &view);
    let shown = AgentDetails { view, dir, agent, elsewhere, sessions, whole, has_texts: true };
    if args.json {
        return output::print_json(&shown.document(&steps)?);
    }
    let mut text = shown.head();
    for step in &steps {
        text.push_str(&shown.step(step)?);
    }
    output::print_styled(&painted(&text, console::colors_enabled()))
}

/// Returns an agent as `--json` prints it, without the prompts and replies of its turns, and its run.
///
/// # Errors
/// [`Error`] if the run cannot be read, or there is no such agent.
pub(super) fn document_without_texts(
    root: &RunsRoot,
    id: &RunId,
    agent: &AgentId,
) -> Result<(RunView, AgentDetail), Error> {
    let (view, steps) = read(root, id, agent)?;
    let (dir, elsewhere) = (root.run(id), TextsElsewhere::default());
    let sessions = KeptSessions::of(&view.run, &steps);
    let (whole, has_texts) = (false, false);
    let shown = AgentDetails { view: &view, dir, agent, elsewhere, sessions, whole, has_texts };
    let document = shown.document(&steps)?;
    Ok((view, document))
}

/// Reads a run, with the steps of one of its agents.
fn read(
    root: &RunsRoot,
    id: &RunId,
    agent: &AgentId,
) -> Result<(RunView, Vec<HistoryStep>), Error> {
    let mut history = AgentHistory::of(agent.clone());
    let view = story(root, id, |before, record| history.see(before, record))?;
    check_agent_exists(&view.run, agent)?;
    let steps = history.steps(&view.run);
    Ok((view, steps))
}

/// Returns the text with the tones of its lines: steps stand out, what is only around the texts does not.
fn painted(text: &str, colours: bool) -> String {
    let tone = |(number, line): (usize, &str)| match line.trim_start() {
        words if number == 0 && words.contains("  failed: ") => TextTone::Bad,
        _ if number == 0 || line.starts_with("step ") => TextTone::Strong,
        "prompt" | "tools" | "answer" | "answer of a person" | "reminder" | "stdout" | "stderr"
            if line.starts_with("    ") && !line.starts_with("     ") =>
        {
            TextTone::Faint
        }
        _ if line.starts_with("  ") && !line.starts_with("   ") => TextTone::Faint,
        _ => TextTone::Plain,
    };
    let lines = printable(text);
    let lines = lines.lines().enumerate();
    lines.map(|(number, line)| paint(tone((number, line)), line, colours) + "\n").collect()
}

impl AgentDetails<'_> {
    fn is_scripted(&self) -> bool {
        !self.view.run.settings.answerer.calls_model()
    }

    fn ended(&self) -> Option<&FinishedAgent> {
        self.view.run.finished.iter().find(|ended| ended.id == *self.agent)
    }

    fn cost(&self) -> Usd {
        let live = || self.view.run.agents.get(self.agent).map(|agent| agent.cost_usd);
        self.ended().map(|ended| ended.cost_usd).or_else(live).unwrap_or_default()
    }

    /// Reads the prompt and the reply of a turn; `None` if it has left no files.
    fn prompt_and_reply(&self, turn: &HistoryTurn) -> Result<Option<PromptAndReply>, Error> {
        if !self.has_texts {
            return Ok(None);
        }
        if let Some(texts) = self.elsewhere.texts(turn) {
            return Ok(Some(texts));
        }
        let steps = self.dir.steps();
        let transcript = TurnTranscript::find(&steps, &turn.id.stem());
        let texts = transcript.map(TurnTranscript::prompt_and_reply).transpose();
        texts.map_err(Error::io("read the files in", &steps))
    }

    fn head(&self) -> String {
        let mut text =
            format!("{}  of {}  {}  ", self.agent, self.view.run.workflow_id, self.cost());
        match (self.ended(), self.view.run.agents.get(self.agent)) {
            (Some(FinishedAgent { ending: AgentEnding::Result(payload), .. }), _) => {
                let _ = writeln!(text, "finished: {}", one_line(payload));
            }
            (Some(FinishedAgent { ending: AgentEnding::Error(error), .. }), _) => {
                let mut lines = error.lines().map(printable_line);
                let _ = writeln!(text, "failed: {}", lines.next().unwrap_or_default());
                for line in lines {
                    let _ = writeln!(text, "  {line}");
                }
            }
            (None, Some(agent)) => {
                let _ = writeln!(text, "at {}, step {}", agent.shown_place(), agent.step);
            }
            (None, None) => text.push('\n'),
        }
        for message in self.ended().iter().flat_map(|ended| &ended.untold) {
            let _ = writeln!(text, "ended before it got the message: {}", one_line(message));
        }
        if let Some(note) = self.view.run.settings.answerer.note_on_costs() {
            let _ = writeln!(text, "{note}");
        }
        text
    }

    fn step(&self, step: &HistoryStep) -> Result<String, Error> {
        let HistoryStep { number, state, folder, since, turns } = step;
        let state = state.shown_in(folder.as_ref());
        let mut text =
            format!("\nstep {number}  {state}  since {}  {}\n", date(*since), step.cost());
        let (mut is_cut, mut calls) = (false, Vec::new());
        for (place, turn) in turns.iter().enumerate() {
            let is_new = place == 0 || turns[place - 1].id != turn.id;
            let prompt_and_reply = if is_new { self.prompt_and_reply(turn)? } else { None };
            if is_new {
                calls.clear();
                let whose = turn.evaluator.as_ref().map(|asked| format!("  evaluator {asked}"));
                let (number, whose) = (turn.id.turn + 1, whose.unwrap_or_default());
                let session = if self.sessions.has(turn) {
                    format!("  session {}", turn.session)
                } else {
                    String::new()
                };
                let _ = writeln!(text, "  turn {number}{whose}{session}");
            }
            if let Some(why) = self.elsewhere.missing(turn).filter(|_| is_new) {
                let _ = writeln!(text, "    {}", printable_line(&why));
            }
            if let Some(prompt_and_reply) = prompt_and_reply {
                let asked = if turn.reminder.is_some() { "reminder" } else { "prompt" };
                is_cut |= self.quote(&mut text, asked, prompt_and_reply.prompt.as_deref());
                is_cut |= self.tools(&mut text, &prompt_and_reply.calls);
                is_cut |= self.quote(&mut text, "answer", prompt_and_reply.answer.as_deref());
                calls = prompt_and_reply.calls;
            } else if let Some(reminder) = turn.reminder.as_deref().filter(|_| is_new) {
                is_cut |= self.quote(&mut text, "reminder", Some(reminder));
            }
            if is_new {
                is_cut |= self.quote(&mut text, "answer of a person", turn.given.as_deref());
                is_cut |= self.script(&mut text, step, turn)?;
            }
            self.end(&mut text, turn, self.named(&calls))?;
        }
        if is_cut {
            let (run, agent) = (&self.view.run.workflow_id, self.agent);
            let _ = writeln!(text, "  texts are cut: raymond show {run} {agent} --step {number}");
        }
        Ok(text)
    }

    /// Quotes a text, or its beginning; returns whether something was left out.
    fn quote(&self, out: &mut String, what: &str, text: Option<&str>) -> bool {
        let Some(text) = text else { return false };
        let text = text.trim_end();
        let shown = if self.whole { text } else { beginning(text) };
        let _ = writeln!(out, "    {what}");
        for line in shown.lines() {
            let _ = writeln!(out, "{}", format!("      {line}").trim_end());
        }
        let left = text.len() - shown.len();
        if left > 0 {
            let _ = writeln!(out, "      … {left} more bytes");
        }
        left > 0
    }

    /// Returns whether the end of a turn is the agent's own, rather than that of another agent that ended it.
    fn is_of_turn(&self, turn: &HistoryTurn) -> bool {
        turn.end.as_ref().is_some_and(|end| end.event.agent() == Some(self.agent))
    }

    /// Writes the end of a turn, or the agent's wait reason. Refusals of calls that were `named` are not repeated.
    fn end(&self, out: &mut String, turn: &HistoryTurn, named: &[ToolCall]) -> Result<(), Error> {
        let Some(record) = &turn.end else {
            let live = self.view.run.agents.get(self.agent);
            let statuses = AgentStatuses::of(self.view, &self.dir)?;
            let status = live.map(|agent| agent_table::sentence(agent, &statuses.status(agent)));
            let status = status.as_deref().unwrap_or("not finished yet");
            let _ = writeln!(out, "    {}", printable_line(status));
            return Ok(());
        };
        let sentence = sentence_without_refusals(record);
        let sentence = sentence.strip_prefix(&format!("{}  ", self.agent)).unwrap_or(&sentence);
        let _ = writeln!(out, "    {}  {sentence}", date(record.at));
        let Some(charge) = cost_of(&record.event).filter(|_| self.is_of_turn(turn)) else {
            return Ok(());
        };
        if !matches!(record.event, Event::StepFinished(_)) && charge.cost.amount > Usd::ZERO {
            let known =
                if charge.cost.estimated { "it reported no cost, estimated at" } else { "it cost" };
            let _ = writeln!(out, "    {known} {}", charge.cost.amount);
        }
        let refusals = charge.cost.refused_tools.calls.iter();
        for refusal in
            refusals.filter(|refusal| !named.iter().any(|call| call.is_named_by(refusal)))
        {
            let line = format!("    {}: {}", notice(refusal), refusal.why);
            let _ = writeln!(out, "{}", printable_line(&line));
        }
        if charge.cost.refused_tools.more > 0 {
            let _ = writeln!(out, "    refused: {} more", charge.cost.refused_tools.more);
        }
        if let Some(advice) = advice(&charge.cost.refused_tools) {
            let _ = writeln!(out, "    allowed with: {}", printable_line(&advice));
        }
        for (model, used) in charge.cost.usage.iter() {
            let _ = writeln!(out, "    {model}: {}", tokens(used));
        }
        Ok(())
    }
}

/// Returns the beginning of a text.
fn beginning(text: &str) -> &str {
    let lines =
        text.match_indices('\n').nth(MAX_SHOWN_LINES - 1).map_or(text.len(), |(end, _)| end);
    &text[..lines.min(text.floor_char_boundary(MAX_SHOWN_BYTES))]
}

fn tokens(used: &ModelUse) -> String {
    let mut text = format!("{} tokens in, {} out", used.input_tokens, used.output_tokens);
    if used.cache_read_tokens > 0 {
        let _ = write!(text, ", {} from cache", used.cache_read_tokens);
    }
    if used.cache_write_tokens > 0 {
        let _ = write!(text, ", {} into cache", used.cache_write_tokens);
    }
    format!("{text}, {}", used.cost_usd)
}

// The agent that `raymond show` displays: the named agent, or else the only agent.

/// The run and the agent that the arguments name.
#[derive(Debug, PartialEq, Eq)]
struct NamedAgent {
    run: Option<RunId>,
    agent: Option<AgentId>,
}

/// Returns what the arguments name. A single word is an agent if it can be one, else a run.
///
/// # Errors
/// [`Error::Usage`] if a run is given besides `--last`, [`Error::Name`] for a word that is neither.
fn named(args: &ShowArgs) -> Result<NamedAgent, Error> {
    let (run, agent) = match (&args.run, &args.agent) {
        (Some(word), None) => match AgentId::parse(word) {
            Ok(agent) => (None, Some(agent)),
            Err(_) => (Some(RunId::parse(word)?), None),
        },
        (run, agent) => (run.as_deref().map(RunId::parse).transpose()?, agent.clone()),
    };
    if args.last && run.is_some() {
        return Err(Error::Usage("name a run, or give --last; not both".to_owned()));
    }
    Ok(NamedAgent { run, agent })
}

/// Returns the only agent of a run; `None` if there are several.
fn only_agent(run: &Run) -> Option<AgentId> {
    let ended = run.finished.iter().map(|ended| &ended.id);
    let mut all = run.agents.keys().chain(ended);
    let first = all.next()?;
    all.next().is_none().then(|| first.clone())
}

/// Prints the agents of a run of several, each with the command that shows it.
///
/// # Errors
/// [`Error::Usage`] if something was asked for that only one agent has; [`Error::Store`] if the run cannot be read.
fn list(args: &ShowArgs, root: &RunsRoot, id: &RunId) -> Result<CliExitCode, Error> {
    if args.json || args.step.is_some() {
        return Err(Error::Usage(format!(
            "{id} has several agents; name one: raymond show {id} AGENT; `raymond tree {id}` shows all"
        )));
    }
    let view = load_view(root, id)?;
    let statuses = AgentStatuses::of(&view, &root.run(id))?;
    table::print(commands(&view.run, &statuses))
}

fn commands(run: &Run, statuses: &AgentStatuses<'_>) -> Vec<StyledLine> {
    let table = AgentTable::of(AgentTree::of(run), |agent| statuses.status(agent));
    let rows = table.rows(false);
    let row = |row: &TreeRow| {
        let name = match &row.of {
            RowSubject::One(_) => format!("raymond show {} {}", run.workflow_id, table.name(row)),
            RowSubject::Many { .. } => table.name(row),
        };
        let state = TableCell::of(table.tone(row), &table.state_text(row));
        vec![name.into(), state, TableCell::of(TextTone::Plain, &table.summary(row))]
    };
    let cells: Vec<Vec<TableCell>> = rows.iter().map(row).collect();
    let count = run.agents.len() + run.finished.len();
    let head = format!("{} has {count} agents. To see one:", run.workflow_id);
    let mut lines = vec![StyledLine::of(TextTone::Strong, &head)];
    lines.extend(table::lines(&cells));
    lines.extend(table::plain(&AgentTable::hint(&rows, &run.workflow_id)));
    lines
}

// The document of an agent for `raymond show --json` and the page.

impl AgentDetails<'_> {
    /// Returns the agent with its steps for programs.
    fn document(&self, steps: &[HistoryStep]) -> Result<AgentDetail, Error> {
        let row = |step: &HistoryStep| {
            let turns = step.turns.iter().map(|turn| self.turn(step, turn));
            Ok(StepRow::of(step, turns.collect::<Result<_, Error>>()?))
        };
        Ok(AgentDetail {
            run: self.view.run.workflow_id.clone(),
            agent: self.agent.clone(),
            parent: self.agent.parent().map(str::to_owned),
            live: self.ended().is_none(),
            cost_usd: self.cost(),
            scripted: self.is_scripted(),
            steps: steps.iter().map(row).collect::<Result<_, Error>>()?,
            ending: self.ended().map(AgentEndingView::of),
        })
    }

    fn turn(&self, step: &HistoryStep, turn: &HistoryTurn) -> Result<Value, Error> {
        let texts = self.prompt_and_reply(turn)?.unwrap_or_default();
        let output = self.script_json(step, turn)?;
        let (script, command) =
            if step.state.is_script() { (output, None) } else { (None, output) };
        let row = TurnRow {
            agent: &turn.id.agent,
            step: turn.id.step,
            turn: turn.id.turn,
            state: &step.state,
            at: turn.end.as_ref().map(|end| end.at),
            session_id: &turn.session,
            can_resume_session: self.sessions.has(turn),
            prompt: texts.prompt,
            answer: turn.given.clone().or(texts.answer),
            tool_calls: texts.calls,
            host: turn.host.as_ref(),
            missing_texts: self.elsewhere.missing(turn),
            script,
            command,
            evaluator: turn.evaluator.as_ref(),
        };
        Ok(row.with_end(turn, self.agent))
    }
}

// The texts of turns that ran at other hosts, and the sessions of an agent's turns that can be resumed.

/// The texts of turns that ran at other hosts, or why their hosts did not give them.
#[derive(Debug, Default)]
struct TextsElsewhere(BTreeMap<TurnId, Result<TurnTexts, String>>);

impl TextsElsewhere {
    /// Asks the hosts for the texts of those turns that this machine has no files of.
    ///
    /// # Errors
    /// [`Error`] if the engine cannot be asked.
    fn fetch(
        args: &ShowArgs,
        run: &RunId,
        dir: &RunDir,
        steps: &[HistoryStep],
    ) -> Result<Self, Error> {
        let Some(engine) = engine::connected(&args.dir)? else { return Ok(Self::default()) };
        let files = dir.steps();
        let is_here = |turn: &TurnId| {
            TurnTranscript::find(&files, &turn.stem()).is_some()
                || matches!(script_output(&files, &turn.stem()), Ok(Some(_)))
        };
        let turns = steps.iter().flat_map(|step| &step.turns);
        let places = turns
            .filter_map(|turn| Some(TurnPlace { turn: turn.id.clone(), host: turn.host.clone()? }));
        let mut places: Vec<TurnPlace> = places.filter(|place| !is_here(&place.turn)).collect();
        places.dedup_by(|place, before| place.turn == before.turn);
        Ok(Self(transcripts(&*engine, run, places)?))
    }

    /// Returns the prompt and the reply of a turn, if its host gave them.
    fn texts(&self, turn: &HistoryTurn) -> Option<PromptAndReply> {
        let TurnTexts { prompt, answer, .. } = self.given(turn)?;
        let (prompt, answer) = (prompt.clone(), answer.clone());
        let texts = PromptAndReply { prompt, answer, ..PromptAndReply::default() };
        (texts.prompt.is_some() || texts.answer.is_some()).then_some(texts)
    }

    /// Returns the output of the script of a turn, if its host gave it.
    fn script(&self, turn: &HistoryTurn) -> Option<Result<ScriptTexts, String>> {
        self.given(turn)?.script.clone()
    }

    /// Returns why the texts of a turn are not shown, or not whole.
    fn missing(&self, turn: &HistoryTurn) -> Option<String> {
        let was_answered = || {
            let cost = turn.end.as_ref().and_then(|end| end.event.cost());
            cost.is_some_and(|cost| cost.duration_ms.is_some())
        };
        match self.0.get(&turn.id)? {
            Ok(texts) if texts.is_cut => {
                Some("a text is longer than what its host gives, its first MiB".to_owned())
            }
            Ok(texts) if texts.is_empty() && was_answered() => {
                let host = turn.host.as_ref()?;
                Some(format!("the host {host} no longer has its files"))
            }
            Ok(_) => None,
            Err(why) => Some(why.clone()),
        }
    }

    fn given(&self, turn: &HistoryTurn) -> Option<&TurnTexts> {
        self.0.get(&turn.id)?.as_ref().ok()
    }
}

/// The sessions of turns, and those among them that Claude Code does not have any more.
#[derive(Debug, Default)]
struct KeptSessions {
    missing: BTreeSet<SessionId>,
    /// True if the turns have had no session of Claude Code at all.
    has_none: bool,
}

impl KeptSessions {
    /// Looks up the sessions. A session that cannot be looked up counts as kept.
    fn of(run: &Run, steps: &[HistoryStep]) -> Self {
        let turns = steps.iter().flat_map(|step| &step.turns);
        let sessions = turns.map(|turn| turn.session.clone());
        let missing = missing(&run.settings, sessions).ok().flatten();
        Self {
            missing: missing.map(|missing| missing.ids).unwrap_or_default(),
            has_none: run.settings.answerer != AnswererKind::Claude,
        }
    }

    /// Returns whether the session of a turn can be resumed. A host has those of its turns itself.
    fn has(&self, turn: &HistoryTurn) -> bool {
        !self.has_none && (turn.host.is_some() || !self.missing.contains(&turn.session))
    }
}

// The tool calls of a turn, as `raymond show` lists them.

/// The most calls of a turn that are listed without `--step`.
const MAX_CALLS: usize = 5;

impl AgentDetails<'_> {
    /// Returns the calls that are listed.
    fn named<'calls>(&self, calls: &'calls [ToolCall]) -> &'calls [ToolCall] {
        if self.whole { calls } else { &calls[..calls.len().min(MAX_CALLS)] }
    }

    /// Lists the calls, with `--step` with their inputs and outputs; returns whether something was left out.
    fn tools(&self, out: &mut String, calls: &[ToolCall]) -> bool {
        let named = self.named(calls);
        if !named.is_empty() {
            out.push_str("    tools\n");
        }
        for call in named {
            let _ = writeln!(out, "      {}", call.line());
            if self.whole {
                for (name, value) in call.input.as_object().into_iter().flatten() {
                    add_field(out, name, value);
                }
                // The line of a refused call has the reason.
                if let Some(output) = &call.output
                    && call.outcome != ToolOutcome::Refused
                {
                    add_field(out, "output", &json!(output));
                }
            }
        }
        let rest = &calls[named.len()..];
        if !rest.is_empty() {
            let _ = writeln!(out, "      … {} more: {}", rest.len(), folded(rest));
        }
        !rest.is_empty()
    }
}

/// Adds the beginning of a value.
fn add_field(out: &mut String, name: &str, value: &Value) {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let shown = beginning(&text);
    let name = printable_line(name);
    let mark = if shown.len() < text.len() { "…" } else { "" };
    let _ = writeln!(out, "        {name}: {}{mark}", shown.replace('\n', "\n          "));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_and_failures_stand_out_in_colours_only() {
        let text =
            "main  of t  $0.01  failed: no\n\nstep 1  A.md\n  turn 1\n    prompt\n      step 2\n";
        assert_eq!(painted(text, false), text);
        let painted = painted(text, true);
        for part in ["\u{1b}[31mmain", "\u{1b}[1mstep 1", "\u{1b}[2m  turn 1", "\n      step 2\n"] {
            assert!(painted.contains(part), "{part:?} in {painted:?}");
        }
    }

    #[test]
    fn long_text_is_cut_to_its_beginning() {
        assert_eq!(beginning("a\nb"), "a\nb");
        assert_eq!(beginning(&"a\n".repeat(20)).lines().count(), MAX_SHOWN_LINES);
        assert_eq!(beginning(&"ü".repeat(1000)).len(), MAX_SHOWN_BYTES);
    }
}

#[cfg(test)]
mod choose_tests {
    use super::*;
    use crate::cli::args::Cli;
    use crate::cli::args::CliCommand;
    use clap::Parser;

    fn parsed(line: &str) -> Result<NamedAgent, Error> {
        match Cli::try_parse_from(line.split(' ')).expect("arguments").command {
            CliCommand::Show(args) => named(&args),
            _ => panic!("another command"),
        }
    }

    #[test]
    fn single_word_is_an_agent_or_else_a_run() {
        let table = [
            ("raymond show tour main.1", Some("tour"), Some("main.1")),
            ("raymond show main.1", None, Some("main.1")),
            ("raymond show tour", Some("tour"), None),
            ("raymond show --last", None, None),
            ("raymond show --last main", None, Some("main")),
        ];
        for (line, run, agent) in table {
            let found = parsed(line).expect("names");
            assert_eq!(found.run.as_ref().map(RunId::as_str), run, "{line}");
            assert_eq!(found.agent.as_ref().map(AgentId::as_str), agent, "{line}");
        }
        assert!(parsed("raymond show --last tour").is_err());
        assert!(parsed("raymond show ../tour").is_err());
    }
}
