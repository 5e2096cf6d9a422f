//! `raymond edit`: a person edits the prompt that is due of an agent.

use std::ffi::OsString;
use std::io::{IsTerminal, stdin, stdout};
use std::path::{Path, PathBuf};

use uuid::Uuid;

use super::args::orders::VisitArgs;
use super::exit::{CliExitCode, Error};
use super::output;
use super::visited_agent::{OrderState, VisitedAgent};
use crate::domain::agent::Agent;
use crate::domain::event::PromptEdit;
use crate::domain::event::RunCommand;
use crate::plain_file;
use crate::process::attach::ForegroundProgram;
use crate::runtime::given_reply::due_prompt;
use crate::store::files;

/// The editor if the environment names none.
const USUAL_EDITOR: &str = "vi";

/// The longest prompt that is edited, in bytes.
const MAX_LENGTH: u64 = 1024 * 1024;

/// Runs `raymond edit`.
///
/// # Errors
/// [`Error`] if no prompt of the agent is due, if it has gone on meanwhile, or if an agent gives the order.
pub(super) fn edit(args: &VisitArgs) -> Result<CliExitCode, Error> {
    let visited = VisitedAgent::hold(&args.dir, &args.run, &args.agent)?;
    let ordered = edit_in_editor(&visited).and_then(|edit| match edit {
        None => Ok("nothing was changed; ".to_owned()),
        Some((edit, draft)) => {
            order(&visited, edit).map_err(|error| with_draft_named(&draft, error)).inspect(|_| {
                // The run has the text now.
                let _ = std::fs::remove_file(&draft);
            })
        }
    });
    visited.finish(ordered)
}

/// Gives the run the edited prompt; returns what the person is told.
fn order(visited: &VisitedAgent<'_>, edit: PromptEdit) -> Result<String, Error> {
    let (agent, text) = (edit.turn.agent.clone(), edit.text.clone());
    let has_effect = |agent: &Agent| agent.asked_text(String::new()) == text;
    match visited.order(&RunCommand::Edit(edit), has_effect)? {
        OrderState::Taken | OrderState::Waiting => Ok(format!("{agent} is asked:\n\n{text}\n\n")),
        OrderState::Refused => Err(Error::Usage(format!(
            "{agent} continued in the meantime, so its prompt was not edited"
        ))),
    }
}

/// Has the person edit the prompt. Returns the edit and the file that holds it, or `None` if it is empty or as before.
fn edit_in_editor(visited: &VisitedAgent<'_>) -> Result<Option<(PromptEdit, PathBuf)>, Error> {
    let (run, agent) = visited.at_rest()?;
    let turn = agent.turn_id();
    let before = due_prompt(&visited.dir(), &run, &agent)?;
    // Nothing else has this name, so what a failed edit has left stays.
    let name = format!("edit-{}-{}.md", turn.stem(), Uuid::new_v4().simple());
    let draft = visited.dir().path().join(name);
    files::replace(&draft, before.as_bytes())?;
    let failed = |error| Error::Io { doing: "start", path: "sh".into(), error };
    let without_draft = |_: &Error| {
        let _ = std::fs::remove_file(&draft);
    };
    let (editor, program) = editor(&draft).inspect_err(without_draft)?;
    let status = program.run().map_err(failed).map_err(|error| with_draft_named(&draft, error))?;
    let is_as_before =
        || plain_file::read(&draft, MAX_LENGTH).is_ok_and(|now| now == before.as_bytes());
    if !status.success() {
        let editor = editor.display();
        let why = Error::Usage(match status.code() {
            Some(127) => format!("the editor `{editor}` was not found; set VISUAL or EDITOR"),
            _ => format!("the editor `{editor}` ended with {status}, so nothing was changed"),
        });
        if is_as_before() {
            let _ = std::fs::remove_file(&draft);
            return Err(why);
        }
        return Err(with_draft_named(&draft, why));
    }
    let read = plain_file::read(&draft, MAX_LENGTH)
        .and_then(|bytes| String::from_utf8(bytes).map_err(std::io::Error::other));
    let read = read.map_err(|error| Error::Io { doing: "read", path: draft.clone(), error });
    let after = read.map_err(|error| with_draft_named(&draft, error))?;
    let text = after.trim_end().to_owned();
    if text.is_empty() || text == before.trim_end() {
        let _ = std::fs::remove_file(&draft);
        return Ok(None);
    }
    Ok(Some((PromptEdit { turn, text, is_late: false }, draft)))
}

/// Tells where the text of an edit is that has failed, and returns its error.
fn with_draft_named(draft: &Path, error: Error) -> Error {
    output::tell(&format!("the text is kept in {}", draft.display()));
    error
}

/// Returns the person's editor, and the program for a file. Its words are those of a shell, as other programs read them.
fn editor(file: &Path) -> Result<(OsString, ForegroundProgram), Error> {
    let named = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    let named = ["VISUAL", "EDITOR"].into_iter().find_map(named);
    if named.is_none() && !(stdin().is_terminal() && stdout().is_terminal()) {
        let why = "no terminal for an editor; set VISUAL or EDITOR to an editor that does not need a terminal";
        return Err(Error::Usage(why.to_owned()));
    }
    let editor = named.unwrap_or_else(|| USUAL_EDITOR.into());
    let mut words = editor.clone();
    words.push(" \"$@\"");
    let arguments = vec!["-c".into(), words, "editor".into(), file.into()];
    let program =
        ForegroundProgram { program: "sh".into(), arguments, ..ForegroundProgram::default() };
    Ok((editor, program))
}
