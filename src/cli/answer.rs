//! `raymond answer`: answers the questions of a run, or shows those that wait.
//!
//! Each answer is checked here against the run and against the inbox, so that a wrong one is reported at once. The
//! raymond that holds the run decides: the first valid answer wins.

use std::io::Read;

use schemars::JsonSchema;
use serde::Serialize;

use super::args::runs::AnswerArgs;
use super::exit::{CliExitCode, Error};
use super::questions::{self, OpenQuestion};
use super::{engine, output, settings};
use crate::actor::context::now;
use crate::cli::settings::agent_and_node;
use crate::domain::budget_shortage::AcceptedAnswer;
use crate::domain::decide::{AnswerError, answer as decide};
use crate::domain::event::RunCommand;
use crate::domain::id::{AgentId, RunId};
use crate::domain::question::AnswerCommand;
use crate::domain::run::Run;
use crate::domain::views::QuestionRow;
use crate::language::hint::closest;
use crate::proof::ProofKey;
use crate::runtime::command_name::{CommandNames, next_command_name};
use crate::runtime::directories;
use crate::runtime::observing::agent_entries::{InboxItem, apply_event, apply_inbox};
use crate::store;
use crate::store::inbox;
use crate::store::layout::{RunDir, RunsRoot};
use crate::store::view::{RunView, load_view};

/// Runs `raymond answer`.
///
/// # Errors
/// [`Error::Usage`] if no waiting question takes an answer, [`Error::Store`] if there is no such run.
pub fn answer(args: &AnswerArgs) -> Result<CliExitCode, Error> {
    let (named, answers) = args.parts().map_err(Error::Usage)?;
    let key = directories::user_state()?.key()?;
    let root = args.dir.root();
    let id = settings::chosen(&named, &root)?;
    if !answers.is_empty() {
        engine::must_be_named(&args.dir, &root, &id)?;
    }
    let commands = answers.iter().map(|(name, text)| given(name, text));
    let outcome = AnswerOutcome::of(&root, &id, &key, commands)?;
    if args.json {
        return output::print_json(&outcome.document());
    }
    output::print(&outcome.text())
}

/// Answers a question of a run, as `raymond answer` does; returns what `--json` prints.
///
/// # Errors
/// As [`answer`].
pub(super) fn give(
    root: &RunsRoot,
    id: &RunId,
    given: AnswerCommand,
) -> Result<AnswersDocument, Error> {
    let key = directories::user_state()?.key()?;
    Ok(AnswerOutcome::of(root, id, &key, std::iter::once(Ok(given)))?.document())
}

/// The answers that were given to a run, and its questions that are still open, for programs.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct AnswersDocument {
    run: RunId,
    locked: bool,
    answered: Vec<GivenAnswerRow>,
    questions: Vec<QuestionRow>,
}

/// An answer that was given.
#[derive(Debug, Serialize, JsonSchema)]
struct GivenAnswerRow {
    agent: AgentId,
    node: String,
    id: String,
}

/// A run after some of its questions were answered.
struct AnswerOutcome {
    run: Run,
    held: bool,
    /// The answers that were in its inbox before.
    waiting: Vec<AcceptedAnswer>,
    /// The answers that were given now.
    answered: Vec<(AnswerCommand, AcceptedAnswer)>,
    /// The questions that are still open.
    open: Vec<OpenQuestion>,
}

impl AnswerOutcome {
    /// Gives answers: all of them, or none if one is not taken.
    fn of(
        root: &RunsRoot,
        id: &RunId,
        key: &ProofKey,
        answers: impl Iterator<Item = Result<AnswerCommand, Error>>,
    ) -> Result<Self, Error> {
        let RunView { run, .. } = load_view(root, id)?;
        let dir = root.run(&run.workflow_id);
        let _one_at_a_time = inbox::turn(&dir.inbox())?;
        let RunView { mut run, held, .. } = load_view(root, id)?;
        let waiting = apply_inbox(&mut run, &dir, key)?.into_iter().filter_map(InboxItem::answer);
        let waiting: Vec<AcceptedAnswer> = waiting.collect();
        let (stored, mut answered) = (run.clone(), Vec::new());
        for given in answers {
            let given = examine(&run, given?, |given| {
                answered_twice(&answered, given)
                    .unwrap_or_else(|| nobody_asks(&stored, held, &waiting, given))
            });
            let (given, event) = given.map_err(|error| nothing_stored(error, &answered))?;
            apply_event(&mut run, event.event());
            answered.push((given, event));
        }
        let mut names = CommandNames::after(&dir.inbox(), key);
        for (given, _) in &answered {
            let command = RunCommand::Answer(given.clone());
            inbox::put(&dir.inbox(), &names.next_name(), &command, key)?;
        }
        let open = questions::open(&run);
        Ok(Self { run, held, waiting, answered, open })
    }

    fn document(&self) -> AnswersDocument {
        let answered = self.answered.iter().map(|(_, event)| GivenAnswerRow {
            agent: event.turn().agent.clone(),
            node: event.name(),
            id: event.id().to_owned(),
        });
        AnswersDocument {
            run: self.run.workflow_id.clone(),
            locked: self.held,
            answered: answered.collect(),
            questions: self.open.iter().map(OpenQuestion::row).collect(),
        }
    }

    fn text(&self) -> String {
        let Self { run, held, waiting, answered, open } = self;
        let id = &run.workflow_id;
        if answered.is_empty() {
            let mut text: String = waiting.iter().map(AcceptedAnswer::line).collect();
            text.push_str(&questions::as_text(run, open));
            if text.is_empty() {
                return format!("no question of {id} waits for an answer\n");
            }
            return text;
        }
        let text: String = answered.iter().map(|(_, event)| event.line()).collect();
        let others = match open.len() {
            0 => String::new(),
            1 => "one more question waits\n".to_owned(),
            more => format!("{more} more questions wait\n"),
        };
        let next = if *held { String::new() } else { format!("resume: raymond resume {id}\n") };
        text + &others + &next
    }
}

/// Puts an answer into a run's inbox; it is durable when this returns.
///
/// # Errors
/// [`store::Error`].
pub(super) fn put(dir: &RunDir, given: AnswerCommand, key: &ProofKey) -> Result<(), store::Error> {
    let name = next_command_name(&dir.inbox(), key);
    inbox::put(&dir.inbox(), &name, &RunCommand::Answer(given), key)
}

/// Parses NAME=TEXT; reads the text from stdin if it is `-`.
fn given(name: &str, text: &str) -> Result<AnswerCommand, Error> {
    let (agent, node) = match agent_and_node(name) {
        Some((agent, node)) => (Some(agent), node),
        None => (None, name),
    };
    let mut text = text.to_owned();
    if text == "-" {
        text = from_stdin("read the answer from")?;
    }
    Ok(AnswerCommand { agent, step: None, node: node.to_owned(), text })
}

/// Reads stdin, and returns it without the line ends after it.
pub(super) fn from_stdin(doing: &'static str) -> Result<String, Error> {
    let mut text = String::new();
    let read = std::io::stdin().read_to_string(&mut text);
    read.map_err(Error::io(doing, "stdin"))?;
    text.truncate(text.trim_end_matches(['\n', '\r']).len());
    Ok(text)
}

/// Returns an answer addressed to the very question that it answers, and the event that it leads to.
fn examine(
    run: &Run,
    given: AnswerCommand,
    nobody_asks: impl Fn(&AnswerCommand) -> String,
) -> Result<(AnswerCommand, AcceptedAnswer), Error> {
    let id = &run.workflow_id;
    let event = match decide(run, &given) {
        Ok(event) => AcceptedAnswer::of(event)
            .ok_or_else(|| Error::Usage(format!("{} is not asked", given.node)))?,
        Err(AnswerError::NoQuestion { .. }) => {
            return Err(Error::Usage(nobody_asks(&given)));
        }
        Err(error) => return Err(Error::Usage(error.to_string())),
    };
    let agent = run.agents.get(&event.turn().agent);
    let late = agent.and_then(|agent| agent.question()?.late.clone());
    if let Some(late) = late.filter(|late| late.at <= now()) {
        return Err(Error::Usage(format!(
            "the time for {} has passed: {} continues at {} once the run is resumed: raymond resume {id}",
            given.node,
            event.turn().agent,
            late.state
        )));
    }
    let to = AnswerCommand {
        agent: Some(event.turn().agent.clone()),
        step: Some(event.turn().step),
        ..given
    };
    Ok((to, event))
}

/// Returns the error text for a question that an earlier answer of this command line answers.
fn answered_twice(
    earlier: &[(AnswerCommand, AcceptedAnswer)],
    given: &AnswerCommand,
) -> Option<String> {
    let AnswerCommand { agent, node, text, .. } = given;
    let is_same = |earlier: &AcceptedAnswer| {
        earlier.name() == *node && agent.as_ref().is_none_or(|agent| *agent == earlier.turn().agent)
    };
    let first = earlier.iter().find(|(_, earlier)| is_same(earlier))?.1.chosen();
    Some(format!("{node} is answered twice on this command line: {first}, {text}; give one answer"))
}

/// Adds to an error that the earlier answers of this command line are not stored, either.
fn nothing_stored(error: Error, earlier: &[(AnswerCommand, AcceptedAnswer)]) -> Error {
    let Some((_, first)) = earlier.first() else { return error };
    let (why, name, text) = (error.to_string(), first.name(), first.chosen());
    Error::Usage(format!("{why}. Nothing was stored, not even {name}={text}"))
}

/// Returns the error text for a name under which nobody asks: answered already, or another one was meant.
fn nobody_asks(run: &Run, held: bool, waiting: &[AcceptedAnswer], given: &AnswerCommand) -> String {
    let (id, node) = (&run.workflow_id, &given.node);
    let is_meant = |agent: &AgentId| given.agent.as_ref().is_none_or(|named| named == agent);
    let before =
        waiting.iter().find(|answer| answer.name() == *node && is_meant(&answer.turn().agent));
    if let Some(answer) = before {
        let used = if held {
            String::new()
        } else {
            format!(", and is used once the run is resumed: raymond resume {id}")
        };
        return format!(
            "{}/{node} has been answered already: {}; the first answer counts{used}",
            answer.turn().agent,
            answer.chosen()
        );
    }
    let open = questions::open(run);
    if open.is_empty() {
        return format!(
            "no question of {id} waits for an answer; `raymond status {id}` shows its state"
        );
    }
    let names: Vec<&str> = open.iter().map(|open| open.question.node.as_str()).collect();
    let is_asked = names.contains(&node.as_str());
    let meant = closest(node, names.iter().copied().filter(|_| !is_asked));
    let meant = meant.map(|name| format!("; did you mean {name}?"));
    let all: Vec<String> =
        open.iter().map(|open| format!("{}/{}", open.agent, open.question.node)).collect();
    let shown = format!("; open questions: {}", all.join(", "));
    let of_agent = given.agent.as_ref().map(|agent| format!(" of {agent}")).unwrap_or_default();
    format!("{id} has no open question {node}{of_agent}{}", meant.unwrap_or(shown))
}
