//! Checks a run that is resumed: the seals of what a person started, and the files that it resumes with.

use std::path::Path;
use std::sync::Arc;

use super::checked_workflow::CapturedWorkflow;
use super::error::Error;
use super::graphs::GraphSetup;
use super::trust::{self, RunStarter};
use super::workflow::{Workflow, settings_of};
use crate::domain::run::Run;
use crate::domain::sealed_terms::{
    JournalFlaw, RunSeal, SealedJournal, SealedTerms, WorkflowPins, mode,
};
use crate::domain::settings::{AnswererKind, Settings};
use crate::language::source::checksum;
use crate::runtime::root_capture::differences;
use crate::store;
use crate::store::capture::WorkflowCapture;
use crate::store::layout::RunsRoot;
use crate::store::user_state::UserState;
use crate::store::{lock, pinned, proven_journal, user_state};

/// A person's confirmation of a run's directory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct SealConfirmation {
    /// The run's first session.
    pub(super) first_session: String,
    /// The journal that needs no separate proof.
    pub(super) journal: Option<SealedJournal>,
    /// True if they have just confirmed everything in the directory.
    pub(super) is_new: bool,
}

/// Seals the terms that a run's directory may have, and the journal that was confirmed.
pub(super) fn save(
    starter: &RunStarter,
    root: &RunsRoot,
    run: &Run,
    terms: Vec<SealedTerms>,
    confirmed: &SealConfirmation,
) -> Result<(), Error> {
    let seal = RunSeal {
        run: run.workflow_id.clone(),
        directory: root.path().display().to_string(),
        scope_dir: run.scope_dir.clone(),
        first_session: confirmed.first_session.clone(),
        terms,
        journal: confirmed.journal.clone(),
    };
    Ok(user_state::save(&starter.state, &seal)?)
}

/// Checks that a run's directory has the terms that a person confirmed.
///
/// # Errors
/// [`Error::NotConfirmed`].
pub(super) fn check(
    starter: &RunStarter,
    root: &RunsRoot,
    run: &Run,
    first_session: &str,
    found: &SealedTerms,
) -> Result<SealConfirmation, Error> {
    let first_session = first_session.to_owned();
    let journal = user_state::seal_of_journal(&root.run(&run.workflow_id).journal())?;
    let shown = serde_json::to_vec(&(&run.scope_dir, found, &journal));
    let checksum = checksum(shown.unwrap_or_default());
    let seal = user_state::find(&starter.state, root, &run.workflow_id)?;
    let differences = match &seal {
        Some(seal) => {
            let mut differences = seal.differences(&run.scope_dir, found);
            let flaw = journal_flaw(&starter.state, root, run, Some(seal))?;
            differences.extend(flaw.map(|flaw| flaw.to_string()));
            differences
        }
        None => vec!["it has no seal: it was copied or moved here, another account or an older raymond started it, or your key is new".to_owned()],
    };
    if differences.is_empty() {
        return Ok(SealConfirmation {
            first_session,
            journal: seal.and_then(|seal| seal.journal),
            is_new: false,
        });
    }
    if starter.confirms_run(&checksum) {
        return Ok(SealConfirmation { first_session, journal: Some(journal), is_new: true });
    }
    let (run, would) = (run.workflow_id.clone(), execution(&run.scope_dir, &run.settings));
    Err(Error::NotConfirmed { run, differences, would, checksum })
}

/// Returns the flaw of a run's journal, if it has one.
fn journal_flaw(
    state: &UserState,
    root: &RunsRoot,
    run: &Run,
    seal: Option<&RunSeal>,
) -> Result<Option<JournalFlaw>, Error> {
    Ok(proven_journal::flaw(&root.run(&run.workflow_id), seal, &state.key()?)?)
}

/// Checks that the journal of a run that is over has not been changed.
///
/// # Errors
/// [`Error::NotConfirmed`].
pub fn check_ended(state: &UserState, root: &RunsRoot, run: &Run) -> Result<(), Error> {
    let seal = user_state::find(state, root, &run.workflow_id)?;
    match journal_flaw(state, root, run, seal.as_ref())? {
        None => Ok(()),
        Some(flaw) => Err(Error::NotConfirmed {
            run: run.workflow_id.clone(),
            differences: vec![flaw.to_string()],
            would: vec!["nothing: it has ended, and its result may be forged".to_owned()],
            checksum: String::new(),
        }),
    }
}

/// Seals the journal of a run that this raymond has released, unless another process holds it by now, or a record in
/// it has no proof. A run that is over keeps its seal: agents of it can be retried, and other runs can branch off it.
pub(super) fn let_go(state: &UserState, root: &RunsRoot, run: &Run) -> Result<(), Error> {
    let id = &run.workflow_id;
    let dir = root.run(id);
    let _lock = match lock::acquire(&dir.lock(), id) {
        Err(store::Error::Held { .. }) => return Ok(()),
        lock => lock?,
    };
    let Some(seal) = user_state::find(state, root, id)? else { return Ok(()) };
    if journal_flaw(state, root, run, Some(&seal))?.is_some() {
        return Ok(());
    }
    let journal = Some(user_state::seal_of_journal(&dir.journal())?);
    Ok(user_state::save(state, &RunSeal { journal, ..seal })?)
}

/// Returns the privileged parts that a run would execute, a text each.
fn execution(scope_dir: &str, settings: &Settings) -> Vec<String> {
    let mut parts = vec![
        format!("the workflow {scope_dir}"),
        match settings.answerer {
            AnswererKind::Claude => format!("the program {} in {}", settings.claude, settings.cwd),
            AnswererKind::Scripted => {
                format!("nothing for prompts, which replies.yaml answers, in {}", settings.cwd)
            }
            AnswererKind::Replay => {
                let cassette = settings.cassette.as_ref().map_or("", |cassette| &cassette.path);
                format!(
                    "nothing for prompts, which the cassette {cassette} answers; its changes of files, in {}",
                    settings.cwd
                )
            }
        },
        format!("the permission mode {}", mode(&settings.permission)),
    ];
    parts.extend(settings.replayed_part().map(|(cassette, until)| {
        let path = &cassette.path;
        format!("the changes of files of the cassette {path}, which answers up to record {until}")
    }));
    if settings.consent.trusts_workflow {
        parts.push("everything that the workflow's files ask for".to_owned());
    }
    let rules: Vec<&str> = settings.consent.rules().map(String::as_str).collect();
    if !rules.is_empty() {
        parts.push(format!("the tools {}", rules.join(", ")));
    }
    if !settings.claude_args.is_empty() {
        parts.push(format!("the arguments {}", settings.claude_args.join(" ")));
    }
    let plugins = settings.plugins.iter();
    parts.extend(plugins.map(|plugin| format!("the plug-in {}", plugin.command.join(" "))));
    if !settings.allowed_addresses.is_empty() {
        let addresses = settings.allowed_addresses.iter().map(ToString::to_string);
        parts.push(format!("requests to {}", addresses.collect::<Vec<_>>().join(", ")));
    }
    if !settings.options.is_empty() {
        parts.push("additional options of Claude Code".to_owned());
    }
    if let Some(exchange) = &settings.git_exchange {
        parts.push(format!("the exchange of work by git with {}", exchange.address));
    }
    if settings.live {
        parts.push("prompts as they are now".to_owned());
    }
    parts
}

/// The files that replace those of a run when it is resumed.
pub(super) struct FileMigration {
    pub(super) capture: Arc<WorkflowCapture>,
    pub(super) pins: WorkflowPins,
    /// The differences, a line each.
    pub(super) notes: Vec<String>,
}

/// Replaces the run's files by the workflow's current ones, which were read, if the person trusts them. `copy` is where
/// the run keeps its own.
///
/// # Errors
/// [`Error`] if they cannot be read, or are not trusted.
pub(super) fn migrate(
    current: Arc<WorkflowCapture>,
    copy: &Path,
    run: &Run,
    settings: &mut Settings,
    graphs: &GraphSetup,
    pins: Option<&WorkflowPins>,
    starter: &RunStarter,
) -> Result<FileMigration, Error> {
    let workflow = Workflow::of_run(Path::new(&run.scope_dir), run.folder.as_ref())?;
    let read = CapturedWorkflow::of(workflow, current);
    settings.consent.trusts_workflow = false;
    let fresh = settings_of(&read.workflow);
    settings.plugins.retain(|plugin| !plugin.by_workflow || fresh.plugins.contains(plugin));
    trust::examine(&read, settings, graphs.vocabulary())?.admit(settings, starter)?;
    let capture = read.capture;
    let notes = pins.map_or_else(Vec::new, |pins| differences(pins, copy, &capture));
    Ok(FileMigration { pins: capture.pins(), capture, notes })
}

/// Returns how the workflow's files differ from those of a run, a text each. Nothing is asked or changed.
///
/// # Errors
/// [`Error`] if they cannot be read.
pub fn edited_files(root: &RunsRoot, run: &Run) -> Result<Vec<String>, Error> {
    let workflow = Workflow::of_run(Path::new(&run.scope_dir), run.folder.as_ref())?;
    let dir = root.run(&run.workflow_id);
    let Some(pins) = pinned::load(&dir.pins())? else { return Ok(Vec::new()) };
    let current = CapturedWorkflow::read(root, workflow)?.capture;
    Ok(differences(&pins, &dir.workflow(), &current))
}
