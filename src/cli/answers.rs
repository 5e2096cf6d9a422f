//! Answers that are given ahead of time: by `--answer` and in the file of `--answers`, kept with the run.

use std::path::Path;

use super::args::answers::QuestionArgs;
use super::exit::Error;
use crate::domain::id::AgentId;
use crate::domain::settings::Settings;
use crate::language::graph::answers::{ListedAnswer, read};
use crate::plain_file;
use crate::runtime;

/// Adds the answers that are given now to the earlier ones.
///
/// # Errors
/// [`Error::Usage`] for a name with an agent before it, [`Error::Answers`] or [`Error::Io`] for a file that
/// cannot be used.
pub fn add(given: &QuestionArgs, settings: &mut Settings) -> Result<(), Error> {
    for (node, text) in &given.answer {
        if let Some((agent, name)) = agent_and_node(node) {
            return Err(Error::Usage(format!(
                "--answer {node}={text}: answers ahead of time name only the question, not the agent: --answer {name}={text}; once {agent} asks, `raymond answer RUN {node}={text}` answers only that agent"
            )));
        }
        settings.answers.entry(node.clone()).or_default().push(text.clone());
    }
    let Some(path) = &given.answers else { return Ok(()) };
    for ListedAnswer { node, text, .. } in listed(path)? {
        settings.answers.entry(node).or_default().push(text);
    }
    Ok(())
}

/// Splits a name at its slash into an agent and a node; `None` without an agent.
pub fn agent_and_node(name: &str) -> Option<(AgentId, &str)> {
    let (agent, node) = name.split_once('/')?;
    Some((AgentId::parse(agent).ok()?, node))
}

fn listed(path: &Path) -> Result<Vec<ListedAnswer>, Error> {
    let text = plain_file::text(path).map_err(|error| Error::Io {
        doing: "read the answers in",
        path: path.to_owned(),
        error,
    })?;
    read(&path.display().to_string(), &text).map_err(Error::Answers)
}

/// Adds the place of an impossible answer to the error about it.
pub fn placed(error: runtime::Error, given: &QuestionArgs) -> Error {
    let runtime::Error::Answer { node, text, why } = &error else { return error.into() };
    let is_it = |one: &(String, String)| one.0 == *node && one.1 == *text;
    if given.answer.iter().any(is_it) {
        return Error::Usage(format!("--answer {node}={text}: {why}"));
    }
    let Some(path) = &given.answers else { return error.into() };
    let listed = listed(path).unwrap_or_default();
    match listed.into_iter().find(|one| one.node == *node && one.text == *text) {
        Some(ListedAnswer { line, column, .. }) => {
            Error::Usage(format!("{}:{line}:{column}: {why}", path.display()))
        }
        None => error.into(),
    }
}
