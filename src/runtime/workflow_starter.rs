//! Starts programs as separate runs, for the programs of a run.
//!
//! A started run is trusted no more than the run that starts it: it has the same or a narrower permission, and its
//! folder has to be trusted separately. A start is repeated after a crash. It is identified by its step, which is in
//! the first record of the new run, so it makes only one run.

use std::sync::{Arc, Mutex, PoisonError};

use super::create::create;
use super::error::Error;
use super::graphs::GraphSetup;
use super::plugins::replace_options;
use super::request::RunRequest;
use super::root_capture::capture_root;
use super::sharing;
use super::trust::RunStarter;
use super::workflow::{Workflow, settings_of};
use crate::domain::branch::{
    MAX_START_DEPTH, MAX_STARTED_RUNS, RunOrigin, StartedRun, WorkflowStart, budget_of_started,
    is_program_file, narrower,
};
use crate::domain::graph_execution::{INSTANCE_LABEL, STATE_LABEL};
use crate::domain::id::{Folder, RunId, StateName};
use crate::domain::privilege::StarterConsent;
use crate::domain::sealed_terms::WorkflowPins;
use crate::domain::settings::PlugIn;
use crate::domain::settings::Settings;
use crate::domain::turn::TurnId;
use crate::engine::Engine;
use crate::language::hint::closest;
use crate::language::prompt::step;
use crate::runtime::graphs::{ProgramStarter, RunLauncher, StartFailure};
use crate::store;
use crate::store::dataspace::Dataspace;
use crate::store::layout::RunsRoot;
use crate::store::user_state::UserState;
use crate::store::view::{self, RunView, load_view};
use crate::store::workflow::WorkflowDir;

/// The starter of runs for the programs of a run.
#[derive(Debug)]
pub(super) struct WorkflowStarter {
    /// The directory of all runs.
    pub(super) root: RunsRoot,
    /// The run that starts others.
    pub(super) run: RunId,
    pub(super) settings: Settings,
    /// Its workflow's files as they were when it began.
    pub(super) scope: WorkflowDir,
    /// The checksums of these files.
    pub(super) pins: WorkflowPins,
    /// The user's own state.
    pub(super) user_state: UserState,
    /// The launcher of processes; `None` if this host has none.
    pub(super) launcher: Option<Arc<dyn RunLauncher>>,
    /// The engine with the facts that the runs share; `None` if their directory has them alone.
    pub(super) facts: Option<Arc<dyn Engine>>,
    /// Held while a run is made, so that two agents do not both make the last run that may be executed.
    pub(super) start_lock: Mutex<()>,
}

impl ProgramStarter for WorkflowStarter {
    fn start(&self, turn: &TurnId, start: &WorkflowStart) -> Result<StartedRun, StartFailure> {
        let Some(launcher) = &self.launcher else {
            return Err(
                "this program cannot start further runs; start the run with `raymond run` or `raymond start`"
                    .to_owned()
                    .into(),
            );
        };
        let origin = self.origin(turn)?;
        let id = start.run_id(&origin).map_err(|error| error.to_string())?;
        let start_lock = self.start_lock.lock().unwrap_or_else(PoisonError::into_inner);
        let is_new = !self.root.run(&id).path().exists();
        if is_new {
            self.create(&id, origin.clone(), start)?;
        }
        drop(start_lock);
        let view = load_view(&self.root, &id)?;
        if view.run.settings.started_by.as_ref() != Some(&origin) {
            let why = format!(
                "a run {id} already exists; give this one another `:label`, such as \"{id}-~a\" with `:args (@workflow-id)`"
            );
            return Err(why.into());
        }
        // A run that has gone further was executed, and may have been stopped since.
        if is_new || is_untouched(&view) {
            launcher.launch(&self.root, &id)?;
        }
        Ok(StartedRun { run: id, budget_usd: view.run.settings.budget_usd })
    }
}

impl WorkflowStarter {
    /// Returns the origin of a run that a step starts.
    fn origin(&self, turn: &TurnId) -> Result<RunOrigin, String> {
        let depth = self.settings.started_by.as_ref().map_or(0, |above| above.depth) + 1;
        if depth > MAX_START_DEPTH {
            return Err(format!(
                "{MAX_START_DEPTH} runs have started each other down to this one, which is the limit; start the next one from a run above"
            ));
        }
        Ok(RunOrigin { run: self.run.clone(), agent: turn.agent.clone(), step: turn.step, depth })
    }

    /// Makes the run, with its first record.
    fn create(
        &self,
        id: &RunId,
        origin: RunOrigin,
        start: &WorkflowStart,
    ) -> Result<(), StartFailure> {
        self.refuse_too_many()??;
        let workflow = self.find(&start.program)?;
        let settings = self.settings_of_started(&workflow, id, origin, start)?;
        let request = RunRequest { id: Some(id.clone()), ..RunRequest::default() };
        self.forget_state(id)?;
        let state = self.user_state.clone();
        let starter = RunStarter { state, confirmation: None, confirmed: [].into() };
        let mut graphs = GraphSetup::default();
        graphs.facts.clone_from(&self.facts);
        match create(&self.root, &workflow, &request, settings, graphs, &starter) {
            Ok(prepared) => {
                for warning in &prepared.warnings {
                    tracing::warn!("{id}: {warning}");
                }
                Ok(())
            }
            Err(Error::NotTrusted { folder, requests, .. }) => Err(StartFailure::Refused(format!(
                "its folder {folder} is not trusted as it is now; read its files and trust them with `raymond trust {}`: {}",
                workflow.scope.root().join(workflow.entry.as_str()).display(),
                requests.join("; ")
            ))),
            Err(Error::Store(error)) => Err(error.into()),
            Err(error) => Err(error.to_string().into()),
        }
    }

    /// Retracts the state that an earlier run of this id has published, so that a wait for the new run's state does not
    /// mistake it for that.
    fn forget_state(&self, id: &RunId) -> Result<(), store::Error> {
        let key = self.user_state.key()?;
        let space = sharing::facts_of(&self.root, &key, self.facts.as_ref());
        for label in [INSTANCE_LABEL, STATE_LABEL] {
            space.retract(label, id.as_str(), None)?;
        }
        Ok(())
    }

    /// Refuses another run if too many that programs have started are being executed.
    fn refuse_too_many(&self) -> Result<Result<(), String>, store::Error> {
        let mut number = 0;
        for id in view::ids(&self.root)? {
            let is_started = view::is_held(&self.root, &id).unwrap_or_default()
                && load_view(&self.root, &id)
                    .is_ok_and(|view| view.run.settings.started_by.is_some());
            number += usize::from(is_started);
        }
        Ok(if number < MAX_STARTED_RUNS {
            Ok(())
        } else {
            Err(format!(
                "{number} runs that programs have started are being executed, which is the limit; wait for one to end, or stop one: raymond stop RUN"
            ))
        })
    }

    /// Finds the program of a name: that of a file of the run's workflow, or a defined one.
    fn find(&self, program: &str) -> Result<Workflow, StartFailure> {
        if is_program_file(program) {
            return Ok(self.file(program).map_err(|error| error.to_string())?);
        }
        let key = self.user_state.key()?;
        let space = Dataspace::of(&self.root).with_key(&key);
        let Some(defined) = space.defined(program)? else {
            let all = space.all_defined().unwrap_or_default().defined;
            let hint = match closest(program, all.iter().map(|known| known.name.as_str())) {
                Some(similar) => format!("did you mean {similar}?"),
                None => "define it with `raymond workflow define FILE`".to_owned(),
            };
            return Err(format!("no program {program} is defined; {hint}").into());
        };
        let file = space.file_of(&defined)?;
        Ok(Workflow::kept(&file, defined.text).map_err(|error| error.to_string())?)
    }

    /// Opens a program of the run's workflow, as it was when the run began: in its folder if that is unchanged, else in
    /// the run's copy.
    fn file(&self, path: &str) -> Result<Workflow, Error> {
        let (folder, name) = match path.rsplit_once('/') {
            Some((folder, name)) => (Some(Folder::parse(folder)?), name),
            None => (None, path),
        };
        let live = self.scope.live_root();
        let is_as_it_was = self.settings.live
            || capture_root(&live, self.root.path())
                .is_ok_and(|capture| capture.pins() == self.pins);
        let root = if is_as_it_was {
            live
        } else {
            self.scope.check_copy().map_err(step::Error::from)?;
            self.scope.root().to_owned()
        };
        let entry = StateName::parse(name)?;
        Ok(Workflow { entry, ..Workflow::of_run(&root, folder.as_ref())? })
    }

    /// Returns the settings of a started run: those of its workflow, within what the starter of this run allowed.
    fn settings_of_started(
        &self,
        workflow: &Workflow,
        id: &RunId,
        origin: RunOrigin,
        start: &WorkflowStart,
    ) -> Result<Settings, String> {
        let (above, mut started) = (&self.settings, settings_of(workflow));
        let part = start.budget_usd;
        if above.budget_usd.is_some() && part.is_none() {
            return Err(
                "it was not given a part of the budget of this run; start it again".to_owned()
            );
        }
        let granted = above.consent.widest_mode.as_ref().unwrap_or(&above.permission).clone();
        let granted = narrower(granted, above.permission.clone());
        let has_mode = workflow.manifest.permission_mode.is_some();
        let permission = if has_mode {
            narrower(started.permission, above.permission.clone())
        } else {
            granted.clone()
        };
        let claude_args = if above.claude_args.is_empty() {
            started.claude_args
        } else {
            above.claude_args.clone()
        };
        started.options.forget_given(&claude_args);
        let mut plugins = started.plugins;
        let given: Vec<PlugIn> =
            above.plugins.iter().filter(|plugin| !plugin.by_workflow).cloned().collect();
        replace_options(&mut plugins, &given);
        let mut forking = started.forking;
        forking.max_agents = forking.max_agents.min(above.forking.max_agents);
        Ok(Settings {
            model: started.model.or_else(|| above.model.clone()),
            budget_usd: budget_of_started(started.budget_usd, part),
            options: started.options,
            on_denied: started.on_denied,
            supervision: started.supervision,
            consent: StarterConsent {
                tools: above.consent.tools.clone(),
                every_state: above.consent.every_state.clone(),
                trusts_workflow: false,
                widest_mode: has_mode.then_some(granted),
            },
            forking,
            permission,
            claude_args,
            plugins,
            label: Some(start.label.clone().unwrap_or_else(|| id.to_string())),
            branch: start.branch.clone(),
            context: start.context.clone(),
            started_by: Some(origin),
            variables: [].into(),
            answers: [].into(),
            ..above.clone()
        })
    }
}

/// Returns whether a run was made, and never executed.
fn is_untouched(view: &RunView) -> bool {
    !view.held && view.run.seq == 1
}
