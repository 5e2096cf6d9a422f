//! The interactive Claude Code that a person opens in the session of an agent.
//!
//! It runs in a branch of the session, so that the agent can go on without it if nothing is said, or if it cannot be recorded.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::answerer::no_claude;
use super::error::Error;
use super::graphs::working_dirs;
use crate::domain::agent::Agent;
use crate::domain::id::SessionId;
use crate::domain::run::Run;
use crate::domain::settings::AnswererKind;
use crate::domain::turn_options::EnvValue;
use crate::process::ancestry::ATTACHED_TO;
use crate::process::attach::ForegroundProgram;
use crate::process::command::{interactive_arguments, locate};
use crate::process::said_in_session::{CONFIG_DIR, config_dir, find_session, session_path};
use crate::process::said_in_session::{SaidInSession, said};
use crate::process::turn_arguments::ProtectedFolders;
use crate::process::working_dirs::REPOSITORY;
use crate::runtime::error::VisitError;
use crate::store::layout::RunsRoot;

/// An interactive process that is to be started.
#[derive(Debug, PartialEq, Eq)]
pub struct SessionAttachment {
    /// The process.
    pub program: ForegroundProgram,
    /// The session of the agent.
    pub from: SessionId,
    /// The branch that the person speaks in.
    pub session: SessionId,
    origin_file: PathBuf,
    session_file: PathBuf,
}

impl SessionAttachment {
    /// Prepares the process for an agent of which nothing runs; `session` is the id of the branch.
    ///
    /// # Errors
    /// [`VisitError::NotAttachable`], or there is no Claude Code.
    pub fn prepare(
        (root, user_state): (&RunsRoot, &Path),
        run: &Run,
        agent: &Agent,
        session: SessionId,
    ) -> Result<Self, Error> {
        let wrong =
            |why: String| Error::from(VisitError::NotAttachable { agent: agent.id.clone(), why });
        let settings = &run.settings;
        if settings.answerer != AnswererKind::Claude {
            return Err(wrong("its run is answered by a script, not by Claude Code".to_owned()));
        }
        let Some(from) = agent.session.history().cloned() else {
            let why = "its next turn begins a new one; `raymond tell` adds to the prompt, and `raymond edit` changes it";
            return Err(wrong(why.to_owned()));
        };
        let working_dir = &agent.spec.working_dir;
        let directory =
            working_dirs(root, &run.workflow_id, settings).directory(working_dir).map_err(wrong)?;
        let variables = settings.options.env.as_ref();
        let inherited = std::env::var_os(CONFIG_DIR).map(PathBuf::from);
        let config = config_dir(variables, inherited, std::env::home_dir())
            .ok_or_else(|| wrong("no home directory to look for it".to_owned()))?;
        let origin_file = find_session(&config, &directory, &from).ok_or_else(|| {
            let config = config.display();
            wrong(format!("Claude Code has no session {from} in {config} any more"))
        })?;
        let branch = agent.session.branched(session.clone());
        let session_file = session_path(&config, &directory, &session).unwrap_or_default();
        let search: Option<OsString> = std::env::var_os("PATH");
        let program = locate(&settings.claude, search.as_deref())
            .ok_or_else(|| no_claude(&settings.claude))?;
        let program = std::path::absolute(&program).unwrap_or(program);
        let set = variables.into_iter().flatten().filter_map(|(name, value)| match value {
            EnvValue::Set(text) => Some((name.clone(), text.clone())),
            EnvValue::Pass => None,
        });
        let mut added: Vec<(String, String)> = set.collect();
        // What its model does is done by the agent, not by the person.
        added.push((ATTACHED_TO.to_owned(), format!("{}/{}", run.workflow_id, agent.id)));
        let in_tree = working_dir.tree.is_some();
        if in_tree {
            added.push(("PWD".to_owned(), directory.display().to_string()));
        }
        let all_runs = root.path().to_owned();
        let protected = ProtectedFolders { all_runs, user_state: user_state.to_owned() };
        let arguments = interactive_arguments(&branch, settings.model.as_ref(), &protected);
        Ok(Self {
            program: ForegroundProgram {
                program: program.into_os_string(),
                arguments: arguments.into_iter().map(Into::into).collect(),
                directory: Some(directory),
                added,
                removed: if in_tree { REPOSITORY.to_vec() } else { Vec::new() },
            },
            from,
            session,
            origin_file,
            session_file,
        })
    }

    /// Returns what was said in it.
    ///
    /// # Errors
    /// The system's error for the files of the sessions.
    pub fn said(&self) -> std::io::Result<SaidInSession> {
        said(&self.session_file, &self.origin_file)
    }

    /// Returns the file of the branch, for messages.
    pub fn session_file(&self) -> &Path {
        &self.session_file
    }
}
