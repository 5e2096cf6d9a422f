//! Reads the prompt that is due of an agent, from the pinned files of its run.

use serde_json::Map;

use super::error::Error;
use super::supervise::pinned_scope;
use super::visit_error::VisitError;
use crate::actor::clock::now;
use crate::domain::agent::Agent;
use crate::domain::run::Run;
use crate::domain::widening::PermissionCeiling;
use crate::language::prompt::step;
use crate::language::resume::ResumeEnvironment;
use crate::language::resume::due_prompt::due_prompt as text;
use crate::language::resume::workflow_cache::WorkflowCache;
use crate::language::source::WorkflowSource;
use crate::store::layout::RunDir;
use crate::store::pinned;

/// Returns the text that the next turn of an agent is asked, without the messages of people.
///
/// # Errors
/// [`VisitError::NoPromptDue`], or the pinned files cannot be read.
pub fn due_prompt(dir: &RunDir, run: &Run, agent: &Agent) -> Result<String, Error> {
    let no_prompt =
        |why: String| Error::from(VisitError::NoPromptDue { agent: agent.id.clone(), why });
    let pins = pinned::load(&dir.pins())?;
    let pins = pins.ok_or_else(|| no_prompt("its run has not kept its files".to_owned()))?;
    let scope = pinned_scope(run, &run.settings, dir, (pins, None))?;
    let within = match agent.folder() {
        Some(folder) => Some(scope.within(&folder).map_err(step::Error::from)?),
        None => None,
    };
    let results = format!("{}-{}.json", agent.id.file_name(), agent.step);
    let environment = ResumeEnvironment {
        agent,
        run: &run.workflow_id,
        facts: &run.facts,
        settings: &run.settings,
        granted_rules: &run.approval_rules,
        budget_left: run.budget_left(),
        ceiling: &PermissionCeiling::of(&run.settings),
        source: within.as_deref().unwrap_or(&scope),
        workflows: &WorkflowCache::default(),
        builtins: &Map::new(),
        working_dir: None,
        limits: run.supervision_of(agent).limits(),
        results_file: dir.results().join(results).display().to_string(),
        now: now(),
    };
    text(&environment).map_err(no_prompt)
}
