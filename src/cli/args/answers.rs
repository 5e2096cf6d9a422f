//! The arguments that have to do with questions to people, and their help.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::{DirArgs, NamedRunArgs};
use crate::domain::id::RunId;

pub(super) const ANSWER_HELP: &str = "Examples:
  raymond answer RUN                     show the open questions and their options
  raymond answer RUN ask_type=git        answer with an option's id, label or number
  raymond answer RUN main.2/ask_type=git if several agents ask under the same name
  raymond answer RUN REVIEWED.md=- < notes.txt
                                         a text from stdin; an <ask> is named by its `next`

The first valid answer to a question wins. It is stored when this command returns, whether the run is live or
not; resume a run that is not live with `raymond resume RUN`.

--json prints { run, locked, answered, questions }: accepted answers with agent, node and id, and open questions
with agent, node, question, header, options (id, label, description), free, asked_at, until.";

/// Answers ahead of time, and what else a run does about questions and graphs.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Questions and graphs")]
pub struct QuestionArgs {
    /// Answer a question ahead of time: the node of a graph, or the `next` of a prompt's `<ask>`, and the id,
    /// label or number of an option, or a text. Repeatable; a question that is asked again takes the next
    #[arg(long = "answer", value_name = "NODE=TEXT", value_parser = answer)]
    pub answer: Vec<(String, String)>,

    /// The same from a YAML file of `NODE: TEXT`, or `NODE: [TEXT, …]`
    #[arg(long, value_name = "FILE")]
    pub answers: Option<PathBuf>,

    /// The behaviour while everything waits for a person, a signal or a time [default: exit for questions without
    /// a terminal to ask on, else stay]
    #[arg(long, value_name = "HOW", value_enum)]
    pub on_wait: Option<OnWait>,

    /// Resume with the workflow's files as they are now, also in edited graphs. Shows the differences; what the
    /// files ask for has to be trusted again
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
    /// Take the run that was started last
    #[arg(long)]
    pub last: bool,
    /// Answers: NODE=TEXT or AGENT/NODE=TEXT; NODE=- reads the text from stdin
    #[arg(value_name = "NODE=TEXT", value_parser = answer)]
    pub answers: Vec<(String, String)>,
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

impl AnswerArgs {
    /// Returns the run that is named, and all answers.
    ///
    /// # Errors
    /// A text that says so if a run is named in two ways.
    pub fn parts(&self) -> Result<(NamedRunArgs, Vec<(String, String)>), String> {
        let mut answers = self.answers.clone();
        let run = match &self.first {
            Some(RunOrAnswer::Run(run)) => Some(run.clone()),
            Some(RunOrAnswer::Answer(node, text)) => {
                answers.insert(0, (node.clone(), text.clone()));
                None
            }
            None => None,
        };
        match run {
            Some(run) if self.last => {
                Err(format!("{run} and --last name two runs; leave one of them out"))
            }
            run => Ok((NamedRunArgs { run, last: self.last }, answers)),
        }
    }
}

fn run_or_answer(text: &str) -> Result<RunOrAnswer, String> {
    match answer(text) {
        Ok((node, text)) => Ok(RunOrAnswer::Answer(node, text)),
        Err(_) => RunId::parse(text).map(RunOrAnswer::Run).map_err(|error| error.to_string()),
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
