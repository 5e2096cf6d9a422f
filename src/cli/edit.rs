//! `raymond edit`: a person edits the prompt that is due of an agent.

use std::path::Path;

use super::args::orders::VisitArgs;
use super::exit::{CliExitCode, Error};
use super::visited_agent::VisitedAgent;
use super::{output, person};
use crate::domain::event::RunCommand;
use crate::domain::person_command::PromptEdit;
use crate::process::foreground_program::ForegroundProgram;
use crate::runtime::due_prompt::due_prompt;
use crate::store::files;

/// The editor if the environment names none.
const USUAL_EDITOR: &str = "vi";

/// Runs `raymond edit`.
///
/// # Errors
/// [`Error`] if no prompt of the agent is due, or an agent gives the order.
pub(super) fn edit(args: &VisitArgs) -> Result<CliExitCode, Error> {
    person::must_act("edit the prompt of an agent")?;
    let root = args.dir.root();
    let visited = VisitedAgent::hold((&root, &args.dir), &args.run, &args.agent)?;
    match edited(&visited, args) {
        Ok(Some(edit)) => {
            let later = visited.leave(Some(&RunCommand::Edit(edit)))?;
            output::print(&format!("{} is asked the edited prompt{later}\n", args.agent))
        }
        Ok(None) => {
            visited.leave(None)?;
            output::print(&format!("nothing was changed; {} is asked its prompt\n", args.agent))
        }
        Err(error) => {
            // One that has ended meanwhile cannot be released.
            let _ = visited.leave(None);
            Err(error)
        }
    }
}

/// Has the person edit the prompt; `None` if it is empty or as before.
fn edited(visited: &VisitedAgent<'_>, args: &VisitArgs) -> Result<Option<PromptEdit>, Error> {
    let run = visited.at_rest()?;
    let agent = run.agents.get(&args.agent);
    let agent = agent.ok_or_else(|| Error::Usage(format!("{} has ended", args.agent)))?;
    let turn = agent.turn_id();
    let before = due_prompt(&visited.dir(), &run, agent)?;
    let draft = visited.dir().path().join(format!("edit-{}.md", turn.stem()));
    files::replace(&draft, before.as_bytes())?;
    let kept = |error| {
        let path = draft.display();
        output::tell(&format!("the text is kept in {path}"));
        error
    };
    let failed = |error| Error::Io { doing: "start", path: "sh".into(), error };
    let status = editor(&draft).run().map_err(failed).map_err(kept)?;
    if !status.success() {
        let why = format!("the editor ended with {status}, so nothing was changed");
        return Err(kept(Error::Usage(why)));
    }
    let read = std::fs::read_to_string(&draft);
    let after = read
        .map_err(|error| Error::Io { doing: "read", path: draft.clone(), error })
        .map_err(kept)?;
    // It is in the draft no longer once the order has it.
    let text = after.trim_end();
    let is_changed = !text.is_empty() && text != before.trim_end();
    let removed = std::fs::remove_file(&draft);
    removed.map_err(|error| Error::Io { doing: "remove", path: draft.clone(), error })?;
    Ok(is_changed.then(|| PromptEdit { turn, text: text.to_owned() }))
}

/// Returns the command of the person's editor. Its words are those of a shell, as other programs read them.
fn editor(file: &Path) -> ForegroundProgram {
    let named = ["VISUAL", "EDITOR"]
        .into_iter()
        .find_map(|name| std::env::var_os(name).filter(|value| !value.is_empty()));
    let mut words = named.unwrap_or_else(|| USUAL_EDITOR.into());
    words.push(" \"$@\"");
    let arguments = vec!["-c".into(), words, "editor".into(), file.into()];
    ForegroundProgram { program: "sh".into(), arguments, ..ForegroundProgram::default() }
}
