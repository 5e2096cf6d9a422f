//! The arguments that have to do with questions to people, and their help.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::OneRunArgs;

pub(super) const ANSWER_HELP: &str = "Examples:
  raymond answer RUN                     what waits for an answer, and what can be chosen
  raymond answer RUN ask_type=git        by the id of an option, its label or its number
  raymond answer RUN main.2/ask_type=git where several agents ask under the same name
  raymond answer RUN REVIEWED.md=- < notes.txt
                                         a text from stdin; a prompt's <ask> goes by its `next`

The first valid answer to a question wins. It is kept when this command returns, whether the run is on
or not; a run that nobody holds goes on with `raymond run RUN`.

--json prints { run, held, answered, questions }: what was taken, each with agent, node and id, and what
waits, each with agent, node, question, header, options (id, label, description), free, asked_at, until.";

/// Answers ahead of time, and what else a run does about questions and graphs.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Questions and graphs")]
pub struct QuestionArgs {
    /// Answer a question before it is asked: the node of a graph, or the `next` of a prompt's `<ask>`, and
    /// the id of an option, its label or its number, or a text. May be given several times; to a
    /// question that is asked again, one by one
    #[arg(long = "answer", value_name = "NODE=TEXT", value_parser = answer)]
    pub answer: Vec<(String, String)>,

    /// The same from a YAML file of `NODE: TEXT`, or `NODE: [TEXT, …]`
    #[arg(long, value_name = "FILE")]
    pub answers: Option<PathBuf>,

    /// Whether to stay up when nothing goes on before someone does something, or to end with exit 2
    /// [default: end for questions, unless there is a terminal to ask them on; stay for what programs wait
    /// for, signals and times]
    #[arg(long, value_name = "HOW", value_enum)]
    pub on_wait: Option<OnWait>,

    /// Take up the workflow's files as they are now, and go on in graphs that have been edited; what is different
    /// is shown, and what the files ask for has to be trusted again
    #[arg(long)]
    pub migrate: bool,
}

/// The behaviour of a run that waits for someone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum OnWait {
    /// Stay up
    Stay,
    /// End with exit 2; `raymond run RUN` goes on
    Exit,
}

/// Options of `answer`.
#[derive(Debug, Clone, Args)]
pub struct AnswerArgs {
    /// The run.
    #[command(flatten)]
    pub one: OneRunArgs,
    /// What is answered: NODE=TEXT or AGENT/NODE=TEXT; NODE=- reads the text from stdin
    #[arg(value_name = "NODE=TEXT", value_parser = answer)]
    pub answers: Vec<(String, String)>,
}

fn answer(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((node, text)) if !node.trim().is_empty() => {
            Ok((node.trim().to_owned(), text.to_owned()))
        }
        _ => Err("write NODE=TEXT".to_owned()),
    }
}
