//! Events of the run as a whole: it pauses, waits for a limit, resumes.

use crate::domain::agent::Agent;
use crate::domain::effect::Effect;
use crate::domain::run::{PauseReason, Run, RunStatus};
use crate::domain::settings::{OnLimit, Settings};
use crate::domain::time::Timestamp;

pub(super) fn limit_reached(run: &mut Run, until: Timestamp) -> Vec<Effect> {
    run.limited_until = run.limited_until.max(Some(until));
    vec![Effect::AwaitLimit]
}

pub(super) fn run_paused(run: &mut Run, pause: &PauseReason) -> Vec<Effect> {
    if run.status == RunStatus::Running {
        run.status = RunStatus::Paused;
        run.pause = Some(pause.clone());
    }
    vec![Effect::Hold]
}

pub(super) fn run_resumed(run: &mut Run, settings: &Settings) -> Vec<Effect> {
    run.settings = settings.clone();
    if run.agents.is_empty() {
        return vec![Effect::End];
    }
    if run.status == RunStatus::Paused || settings.on_limit != OnLimit::Wait {
        run.limited_until = None;
    }
    run.status = RunStatus::Running;
    run.pause = None;
    run.agents.values_mut().for_each(Agent::unpark);
    let limited = run.limited_until.map(|_| Effect::AwaitLimit);
    run.agents.keys().cloned().map(Effect::Proceed).chain(limited).collect()
}
