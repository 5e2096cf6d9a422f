//! The arguments that have to do with questions to people, and their help.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use clap_complete::engine::ArgValueCompleter;

use super::{DirArgs, NamedRunArgs};
use crate::cli::completions::{complete_agents, complete_runs};
use crate::cli::target::AgentSelector;
use crate::domain::id::{AgentId, RunId};

pub(super) const ANSWER_HELP: &str = "Examples:
  raymond answer RUN                     show the open questions and their options
  raymond answer RUN ask_type=git        answer with an option's id, label or number
  raymond answer RUN main.2/ask_type=git if several agents ask under the same name
  raymond answer RUN a3 allow            approve the tool call with the id a3
  raymond answer RUN a3 deny --reason 'use the staging database'
                                         refuse it, and tell the agent why
  raymond answer RUN a3 allow --rule 'Bash(cargo test:*)'
                                         approve it, and all calls that this rule covers in its state
  raymond answer RUN REVIEWED.md=- < notes.txt
                                         a text from stdin; an <ask> is named by its `next`

The first valid answer to a question wins. It is stored when this command returns, even if the run is not
live. Resume such a run with `raymond resume RUN`.

A tool call of a state with `permissions: ask` accepts allow, allow-always (similar calls in this state run without
asking), allow-always-in-run or deny. `raymond rules RUN` shows the rules from such answers.

--json prints { run, locked, answered, questions }: accepted answers with agent, node and id, and open questions
with agent, node, question, header, options (id, label, description), free, asked_at, until, and for a tool call
approval (call, tool, input, edits, rules).";

pub(super) const RULES_HELP: &str = "Examples:
  raymond rules RUN
  raymond rules RUN --json | jq -r '.rules[].rule'

Answering a tool call that needs approval with allow-always or allow-always-in-run creates a rule. raymond keeps it in
the run, never in a settings file, and passes it to Claude Code for each turn of its state or of the run.

--json prints { run, rules }: each with rule, tool, content, state (null for the whole run), approval, by.";

/// Answers ahead of time, and what else a run does about questions and graphs.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Questions and graphs")]
pub struct QuestionArgs {
    /// Answer a question ahead of time: the node of a graph, or the `next` of a prompt's `<ask>`, and the id,
    /// label or number of an option, or a text. Repeatable: each repetition of the question uses the next answer
    #[arg(long = "answer", value_name = "NODE=TEXT", value_parser = answer)]
    pub answer: Vec<(String, String)>,

    /// Read answers from a YAML file of `NODE: TEXT`, or `NODE: [TEXT, …]`
    #[arg(long, value_name = "FILE")]
    pub answers: Option<PathBuf>,

    /// What to do while everything waits for a person, a signal or a time [default: exit if there are questions and
    /// no terminal to ask on, else stay]
    #[arg(long, value_name = "HOW", value_enum)]
    pub on_wait: Option<OnWait>,

    /// Resume with the workflow's files as they are now, including edited graphs. Shows the differences. What the
    /// files ask for must be trusted again
    #[arg(long)]
    pub migrate: bool,
}

/// The behaviour of a run that waits for a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum OnWait {
    /// Keep running
    Stay,
    /// End with exit 2; `raymond resume RUN` resumes the run
    Exit,
}

/// Options of `answer`.
#[derive(Debug, Clone, Args)]
pub struct AnswerArgs {
    /// The run's id, or the beginning of one [default: asks on a terminal]
    #[arg(value_name = "RUN", value_parser = run_or_answer)]
    pub first: Option<RunOrAnswer>,
    /// Use the most recently started run
    #[arg(long)]
    pub last: bool,
    /// Answers: NODE=TEXT or AGENT/NODE=TEXT; NODE=- reads the text from stdin. For a tool call that needs approval:
    /// its name and allow, allow-always, allow-always-in-run or deny
    #[arg(value_name = "NODE=TEXT", value_parser = answer_word)]
    pub answers: Vec<AnswerWord>,
    /// The reason for a denial; the agent sees it
    #[arg(long, value_name = "TEXT")]
    pub reason: Option<String>,
    /// Allow with a wider rule than Claude Code suggests, such as `Bash(cargo test:*)`: from now on for its state, or
    /// with allow-always-in-run for the run; agents that run already share it
    #[arg(long, value_name = "RULE", conflicts_with = "reason")]
    pub rule: Option<String>,
    /// The directory of the runs.
    #[command(flatten)]
    pub dir: DirArgs,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// The first argument of `answer`: no id of a run contains `=`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunOrAnswer {
    /// The run.
    Run(RunId),
    /// The first answer, if no run is named.
    Answer(String, String),
}

/// A word of `answer`: a whole answer, or one word of two.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AnswerWord {
    /// A name and its answer.
    Answer(String, String),
    /// A name, or the answer after it.
    Word(String),
}

/// The error for words that are not answers.
const NOT_PAIRED: &str = "write NODE=TEXT, where NODE is the name of a question (`raymond status RUN` shows it, such as SAVE.md), or the name of a tool call that needs approval and allow, allow-always, allow-always-in-run or deny";

impl AnswerArgs {
    /// Returns the run that is named, and all answers.
    ///
    /// # Errors
    /// A text that says so if a run is named in two ways.
    pub fn parts(&self) -> Result<(NamedRunArgs, Vec<(String, String)>), String> {
        let mut words = self.answers.clone();
        let run = match &self.first {
            // With --last the first word is the name of a tool call.
            Some(RunOrAnswer::Run(name)) if self.last && self.answers.len() % 2 == 1 => {
                words.insert(0, AnswerWord::Word(name.to_string()));
                None
            }
            Some(RunOrAnswer::Run(run)) => Some(run.clone()),
            Some(RunOrAnswer::Answer(node, text)) => {
                words.insert(0, AnswerWord::Answer(node.clone(), text.clone()));
                None
            }
            None => None,
        };
        if let Some(run) = run.as_ref().filter(|_| self.last) {
            return Err(format!("{run} and --last name two runs; leave one of them out"));
        }
        let answers = with_reason(pairs(words)?, self.reason.as_deref())?;
        let answers = with_rule(answers, self.rule.as_deref())?;
        Ok((NamedRunArgs { run, last: self.last }, answers))
    }
}

/// Returns the answers that words are, each with its name.
fn pairs(words: Vec<AnswerWord>) -> Result<Vec<(String, String)>, String> {
    let mut answers = Vec::new();
    let mut words = words.into_iter();
    while let Some(word) = words.next() {
        answers.push(match (word, words.as_slice().first()) {
            (AnswerWord::Answer(name, text), _) => (name, text),
            (AnswerWord::Word(name), Some(AnswerWord::Word(_))) => match words.next() {
                Some(AnswerWord::Word(text)) => (name, text),
                Some(AnswerWord::Answer(..)) | None => return Err(NOT_PAIRED.to_owned()),
            },
            (AnswerWord::Word(word), _) => {
                let quoted = |(name, text): &(String, String)| {
                    format!("put a text with spaces in quotes: '{name}={text} {word}'")
                };
                return Err(answers.last().map_or_else(|| NOT_PAIRED.to_owned(), quoted));
            }
        });
    }
    Ok(answers)
}

/// Adds the reason of a denial.
fn with_reason(
    mut answers: Vec<(String, String)>,
    reason: Option<&str>,
) -> Result<Vec<(String, String)>, String> {
    let Some(reason) = reason else { return Ok(answers) };
    match answers.as_mut_slice() {
        [(_, verdict)] if verdict == "deny" => {
            *verdict = format!("deny: {reason}");
            Ok(answers)
        }
        _ => Err("--reason goes with a single deny".to_owned()),
    }
}

/// Adds the rule of an approval.
fn with_rule(
    mut answers: Vec<(String, String)>,
    rule: Option<&str>,
) -> Result<Vec<(String, String)>, String> {
    let Some(rule) = rule else { return Ok(answers) };
    match answers.as_mut_slice() {
        [(_, verdict)] if verdict.starts_with("allow") => {
            if verdict == "allow" {
                verdict.push_str("-always");
            }
            *verdict = format!("{verdict}: {rule}");
            Ok(answers)
        }
        _ => Err("--rule goes with a single allow, allow-always or allow-always-in-run".to_owned()),
    }
}

fn run_or_answer(text: &str) -> Result<RunOrAnswer, String> {
    match answer(text) {
        Ok((node, text)) => Ok(RunOrAnswer::Answer(node, text)),
        Err(_) => RunId::parse(text).map(RunOrAnswer::Run).map_err(|error| error.to_string()),
    }
}

fn answer_word(text: &str) -> Result<AnswerWord, String> {
    match answer(text) {
        Ok((node, text)) => Ok(AnswerWord::Answer(node, text)),
        Err(_) if text.contains('=') || text.trim().is_empty() => Err("write NODE=TEXT".to_owned()),
        Err(_) => Ok(AnswerWord::Word(text.to_owned())),
    }
}

fn answer(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((node, text)) if !node.trim().is_empty() => {
            Ok((node.trim().to_owned(), text.to_owned()))
        }
        _ => Err("write NODE=TEXT".to_owned()),
    }
}

// The arguments of orders to single agents: `tell`, `hold` and `release`.

pub(super) const TELL_HELP: &str = "Examples:
  raymond tell RUN main.2 \"Leave the tests alone.\"
  git diff | raymond tell RUN main.2 -   the message is read from stdin

A running turn gets the message with its next request to the model. Otherwise, raymond appends it to the agent's next
prompt. The message survives a stop of the run. The log shows when it was given and delivered.

--json prints { run, agent, command, is_live }.";

pub(super) const HOLD_HELP: &str = "Examples:
  raymond hold RUN main.2                main.2 starts nothing new until it is released
  raymond hold RUN 'main.2.*'            main.2 and its descendants
  raymond release RUN main.2

A running turn ends as usual. A hold survives a stop and resume of the run.

--json prints { run, agent, command, is_live }.";

pub(super) const EDIT_HELP: &str = "Examples:
  raymond edit RUN main.2                opens the next prompt of main.2 in $VISUAL or $EDITOR
  EDITOR='code --wait' raymond edit RUN main.2

raymond waits for a running turn of the agent, and holds the agent until the editor exits. The agent then gets the saved
text instead of its prompt. An empty or unchanged text changes nothing.";

pub(super) const ATTACH_HELP: &str = "Examples:
  raymond attach RUN main.2              opens the session of main.2 in Claude Code

raymond waits for a running turn of the agent, and holds the agent until you exit. Claude Code runs in the agent's
directory, in a branch of its session, and asks before it uses a tool. The agent then continues with what was said. If
nothing was said, nothing changes.";

/// Options of `tell`.
#[derive(Debug, Clone, Args)]
pub struct TellArgs {
    /// The run's id, or the beginning of one
    #[arg(value_name = "RUN", value_parser = RunId::parse, add = ArgValueCompleter::new(complete_runs))]
    pub run: RunId,
    /// The agent's id, as in `main.2`
    #[arg(value_name = "AGENT", value_parser = AgentId::parse, add = ArgValueCompleter::new(complete_agents))]
    pub agent: AgentId,
    /// The message; `-` reads it from stdin
    #[arg(value_name = "TEXT")]
    pub text: String,
    /// The directory of the runs.
    #[command(flatten)]
    pub dir: DirArgs,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Options of `edit` and `attach`.
#[derive(Debug, Clone, Args)]
pub struct VisitArgs {
    /// The run's id, or the beginning of one
    #[arg(value_name = "RUN", value_parser = RunId::parse, add = ArgValueCompleter::new(complete_runs))]
    pub run: RunId,
    /// The agent's id, as in `main.2`
    #[arg(value_name = "AGENT", value_parser = AgentId::parse, add = ArgValueCompleter::new(complete_agents))]
    pub agent: AgentId,
    /// The directory of the runs.
    #[command(flatten)]
    pub dir: DirArgs,
}

/// Options of `hold` and `release`.
#[derive(Debug, Clone, Args)]
pub struct HoldArgs {
    /// The run's id, or the beginning of one
    #[arg(value_name = "RUN", value_parser = RunId::parse, add = ArgValueCompleter::new(complete_runs))]
    pub run: RunId,
    /// The agent's id, as in `main.2`, or `main.2.*` for it and its descendants
    #[arg(value_name = "AGENT", value_parser = AgentSelector::parse, add = ArgValueCompleter::new(complete_agents))]
    pub agent: AgentSelector,
    /// The directory of the runs.
    #[command(flatten)]
    pub dir: DirArgs,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}
