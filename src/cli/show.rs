//! `raymond show`: an agent's prompts, replies and costs, step by step.

mod choose;
mod document;
mod elsewhere;
mod script;
mod tools;

use std::fmt::Write as _;

use self::choose::NamedAgent;
use self::elsewhere::KeptSessions;
use self::elsewhere::TextsElsewhere;
use super::agent_selector::check_agent_exists;
use super::agent_statuses::{self, AgentStatuses};
use super::args::NamedRunArgs;
use super::args::readers::ShowArgs;
use super::exit::{CliExitCode, Error};
use super::{output, run_choice};
use crate::domain::event::Event;
use crate::domain::history::{AgentHistory, HistoryStep, HistoryTurn};
use crate::domain::id::{AgentId, RunId};
use crate::domain::ledger::cost_of;
use crate::domain::money::Usd;
use crate::domain::printable::{one_line, printable, printable_line};
use crate::domain::refusal::{advice, notice};
use crate::domain::run::{AgentEnding, FinishedAgent};
use crate::domain::tool_call::ToolCall;
use crate::domain::usage::ModelUse;
use crate::domain::views::AgentDetail;
use crate::plugin::sentence::{date, sentence_without_refusals};
use crate::plugin::styled::TextTone;
use crate::process::turn_transcript::{PromptAndReply, TurnTranscript};
use crate::store::layout::{RunDir, RunsRoot};
use crate::store::view::{RunView, load_view, story};

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
    let NamedAgent { run, agent } = choose::named(args)?;
    let id = run_choice::chosen(&NamedRunArgs { run, last: args.last }, &root)?;
    let named = match agent {
        None => choose::only_agent(&load_view(&root, &id)?.run),
        named => named,
    };
    let Some(agent) = named else { return choose::list(args, &root, &id) };
    let mut history = AgentHistory::of(agent.clone());
    let view = story(&root, &id, |before, record| history.see(before, record))?;
    check_agent_exists(&view.run, &agent)?;
    let mut steps = history.steps(&view.run);
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
    let mut history = AgentHistory::of(agent.clone());
    let view = story(root, id, |before, record| history.see(before, record))?;
    check_agent_exists(&view.run, agent)?;
    let steps = history.steps(&view.run);
    let (dir, elsewhere) = (root.run(id), TextsElsewhere::default());
    let sessions = KeptSessions::of(&view.run, &steps);
    let (whole, has_texts) = (false, false);
    let shown = AgentDetails { view: &view, dir, agent, elsewhere, sessions, whole, has_texts };
    let document = shown.document(&steps)?;
    Ok((view, document))
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
    lines.map(|(number, line)| tone((number, line)).paint(line, colours) + "\n").collect()
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
        let prompt_and_reply = TurnTranscript::find(&steps, &turn.id.stem())
            .map(TurnTranscript::prompt_and_reply)
            .transpose();
        prompt_and_reply.map_err(|error| Error::Io {
            doing: "read the files in",
            path: steps,
            error,
        })
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

    /// Returns whether a turn's end is the agent's own, and not that of another one that ended it.
    fn is_own(&self, turn: &HistoryTurn) -> bool {
        turn.end.as_ref().is_some_and(|end| end.event.agent() == Some(self.agent))
    }

    /// Writes the end of a turn, or the agent's wait reason. Refusals of calls that were `named` are not repeated.
    fn end(&self, out: &mut String, turn: &HistoryTurn, named: &[ToolCall]) -> Result<(), Error> {
        let Some(record) = &turn.end else {
            let live = self.view.run.agents.get(self.agent);
            let statuses = AgentStatuses::of(self.view, &self.dir)?;
            let status = live.map(|agent| agent_statuses::sentence(agent, &statuses.status(agent)));
            let status = status.as_deref().unwrap_or("not finished yet");
            let _ = writeln!(out, "    {}", printable_line(status));
            return Ok(());
        };
        let told = sentence_without_refusals(record);
        let told = told.strip_prefix(&format!("{}  ", self.agent)).unwrap_or(&told);
        let _ = writeln!(out, "    {}  {told}", date(record.at));
        let Some(charge) = cost_of(&record.event).filter(|_| self.is_own(turn)) else {
            return Ok(());
        };
        if !matches!(record.event, Event::StepFinished(_)) && charge.cost.amount > Usd::ZERO {
            let known =
                if charge.cost.estimated { "it reported no cost, estimated at" } else { "it cost" };
            let _ = writeln!(out, "    {known} {}", charge.cost.amount);
        }
        let refusals = charge.cost.refused_tools.calls.iter();
        for refusal in refusals.filter(|one| !named.iter().any(|call| call.is_named_by(one))) {
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
