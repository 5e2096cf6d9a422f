//! The debug directory: everything a run did, in files for people to read.
//!
//! `<run id>_<YYYYMMDD_HHMMSS>/` with one JSON array a turn, `main_START_001.json`, and `transitions.log`. It
//! never makes a run fail: a file that cannot be written is a warning.

use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use actix::{Actor, Context, Handler};

use super::sentence::{destination, local, sentence};
use crate::actor::observer::{FinishPublishing, Published};
use crate::domain::event::{
    Event, GraphAdvanced, Record, RoleResponded, StepFinished, TransitionProposed,
};
use crate::domain::id::{AgentId, RunId, SessionId, StateName};
use crate::domain::time::Timestamp;
use crate::domain::transition::Transition;
use crate::domain::turn::FailureCause;
use crate::plain_file;
use crate::plugin::schema::write_turn_json;

/// The debug directory's actor.
pub struct DebugPlugin {
    dir: PathBuf,
    steps: PathBuf,
    numbers: HashMap<AgentId, u64>,
    sessions: HashSet<SessionId>,
}

impl DebugPlugin {
    /// Makes the directory for a run under `root`; `steps` is the directory of the transcripts.
    ///
    /// # Errors
    /// The directory, and the error of the system.
    pub fn create(
        root: &Path,
        run: &RunId,
        now: Timestamp,
        steps: PathBuf,
    ) -> Result<Self, (PathBuf, std::io::Error)> {
        let dir = root.join(format!("{run}_{}", local(now).strftime("%Y%m%d_%H%M%S")));
        let mut builder = std::fs::DirBuilder::new();
        builder.recursive(true).mode(0o700).create(&dir).map_err(|error| (dir.clone(), error))?;
        Ok(Self { dir, steps, numbers: HashMap::new(), sessions: HashSet::new() })
    }

    /// Returns the directory of all these files.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Keeps the output of Claude Code in the turn that an event ends, under the name of the turn's prompt.
    fn keep_turn(&mut self, event: &Event, prompt: &StateName) -> Option<(&'static str, String)> {
        let (turn, cost) = (event.turn()?, event.cost()?);
        let number = self.numbers.entry(turn.agent.clone()).or_default();
        *number += 1;
        let name = format!("{}_{}_{number:03}.json", turn.agent.file_name(), prompt.stem());
        let path = self.dir.join(&name);
        let written = plain_file::create(&path);
        let copied =
            written.and_then(|file| write_turn_json(&self.steps, &turn.stem(), cost.amount, file));
        if let Err(error) = copied {
            tracing::warn!("debug: {}: {error}", path.display());
        }
        Some(("output", name))
    }

    /// Appends an entry about a record to the log.
    fn log(&self, record: &Record, what: &str, details: &[(&str, String)]) {
        let agent = record.event.agent().map_or("run", AgentId::as_str);
        let at = local(record.at).strftime("%Y-%m-%d %H:%M:%S");
        let mut entry = format!("{at} [{agent}] {what}\n");
        for (name, value) in details {
            let _ = writeln!(entry, "  {name}: {value}");
        }
        entry.push('\n');
        let path = self.dir.join("transitions.log");
        let mut append = File::options();
        append.append(true).create(true).mode(0o600);
        let written = plain_file::open_with(&path, &mut append)
            .and_then(|mut file| file.write_all(entry.as_bytes()));
        if let Err(error) = written {
            tracing::warn!("debug: {}: {error}", path.display());
        }
    }

    fn step(&mut self, step: &StepFinished, published: &Published) {
        let output = if step.without_turn {
            None
        } else {
            self.keep_turn(&published.record.event, step.prompt())
        };
        let tag = step.transition.tag();
        let folder = published.record.folder.as_ref();
        let to = match (&published.agent, destination(&step.transition, folder)) {
            (None, _) => format!("({tag}, terminated)"),
            (Some(_), Some(state)) => format!("{state} ({tag})"),
            (Some(agent), None) => format!("{} ({tag})", agent.state),
        };
        let resumed = if self.sessions.insert(step.session_id.clone()) { "" } else { " (resumed)" };
        let mut details = vec![("session_id", format!("{}{resumed}", step.session_id))];
        details.extend(costs(published));
        if let Some(agent) = published.agent.as_ref().filter(|agent| agent.stack > 0) {
            details.push(("stack_depth", agent.stack.to_string()));
        }
        if step.implicit {
            details.push(("implicit", "true".to_owned()));
        }
        match (&step.transition, &step.new_session) {
            (Transition::Fork { .. }, Some(session)) => {
                let target = step.transition.destination();
                let target = target.map(|target| target.shown_in(folder).to_string());
                let target = target.unwrap_or_default();
                details.push(("forked", format!("{target} (session_id: {session})")));
            }
            (Transition::Fork { .. }, None) => {
                for group in &step.children {
                    let many = group.agents.len();
                    let at = group.target().shown_in(folder);
                    details.push(("forked", format!("{at} ({many} agents)")));
                }
            }
            (_, Some(session)) => details.push(("new_session_id", session.to_string())),
            (_, None) => {}
        }
        for (name, value) in step.transition.variables() {
            details.push(("variable", format!("{name}={value:?}")));
        }
        if let Transition::Result { payload, .. } = &step.transition {
            details.push(("result", format!("{payload:?}")));
        }
        if let Some(overruled) = &step.overruled {
            let asked = overruled.asked.as_ref().map(ToString::to_string);
            details.push(("overruled_by", format!("{}: {}", overruled.by, overruled.reason)));
            details.extend(asked.map(|asked| ("asked", asked)));
        }
        details.extend(output);
        self.log(&published.record, &format!("{} -> {to}", step.state.shown_in(folder)), &details);
    }

    /// Logs a turn without a transition.
    fn no_step(&mut self, to: &str, why: &str, published: &Published) {
        let event = &published.record.event;
        let Some(from) = event.turn_state() else { return };
        let output = self.keep_turn(event, from);
        let from = from.shown_in(published.record.folder.as_ref());
        let mut details = vec![("error", why.to_owned())];
        details.extend(costs(published));
        details.extend(output);
        self.log(&published.record, &format!("{from} -> {to}"), &details);
    }

    /// Logs a transition that an evaluator checks first.
    fn proposed(&mut self, proposed: &TransitionProposed, published: &Published) {
        let output = self.keep_turn(&published.record.event, &proposed.state);
        let mut details = vec![("asked", proposed.transition.to_string())];
        details.extend(costs(published));
        details.extend(output);
        let shown = |state: &StateName| state.shown_in(published.record.folder.as_ref());
        let (from, evaluator) = (shown(&proposed.state), shown(&proposed.evaluator));
        let what = format!("{from} -> {evaluator} (evaluator)");
        self.log(&published.record, &what, &details);
    }

    /// Logs the answer of a role of a program.
    fn answered(&mut self, answered: &RoleResponded, published: &Published) {
        let output = self.keep_turn(&published.record.event, &answered.state);
        let mut details = costs(published);
        details.extend(output);
        let state = answered.state.shown_in(published.record.folder.as_ref());
        let what = format!("{state} answers {}", answered.request);
        self.log(&published.record, &what, &details);
    }

    /// Logs the executed nodes of a graph, and the turn of one of them.
    fn advanced(&mut self, advanced: &GraphAdvanced, published: &Published) {
        let nodes = advanced.visits.iter().map(|visit| &*visit.node);
        let path = nodes.chain([&*advanced.node]).collect::<Vec<_>>().join(" -> ");
        let output = self.keep_turn(&published.record.event, &advanced.file);
        let details: Vec<_> = output.into_iter().collect();
        let file = advanced.file.shown_in(published.record.folder.as_ref());
        self.log(&published.record, &format!("{file}: {path}"), &details);
    }
}

/// Returns the cost of the turn that a record ends, and of the whole run.
fn costs(published: &Published) -> Vec<(&'static str, String)> {
    let cost = published.record.event.cost().map(|cost| ("cost", cost.amount.to_string()));
    cost.into_iter().chain([total_cost(published)]).collect()
}

fn total_cost(published: &Published) -> (&'static str, String) {
    ("total_cost", published.total_cost.to_string())
}

impl Actor for DebugPlugin {
    type Context = Context<Self>;
}

impl Handler<Published> for DebugPlugin {
    type Result = ();

    fn handle(&mut self, published: Published, _: &mut Self::Context) {
        let record = &published.record;
        let shown = |state: &StateName| state.shown_in(record.folder.as_ref());
        match &record.event {
            Event::StepFinished(step) => self.step(step, &published),
            Event::TurnRejected(rejected) => {
                let to = format!("{} (reminder)", shown(&rejected.state));
                self.no_step(&to, &rejected.violation, &published);
            }
            Event::TurnFailed(failed) => {
                let to = format!("{} (run again)", shown(&failed.state));
                self.no_step(&to, &failed.message, &published);
            }
            Event::AgentFailed(failed)
                if matches!(failed.cause, FailureCause::Restarts | FailureCause::Budget) =>
            {
                self.log(record, "(failed)", &[("error", failed.error.clone())]);
            }
            Event::AgentFailed(failed) => self.no_step("(failed)", &failed.error, &published),
            Event::TransitionProposed(proposed) => self.proposed(proposed, &published),
            Event::GraphAdvanced(advanced) => self.advanced(advanced, &published),
            Event::RoleResponded(answered) => self.answered(answered, &published),
            Event::QuestionAnswered(answered) => {
                let what = format!("{} (answered)", answered.node);
                self.log(record, &what, &[("answer", answered.answer.raw.clone())]);
            }
            Event::QuestionTimedOut(late) => {
                let (from, to) = (shown(&late.state), shown(&late.enters));
                let what = format!("{from} -> {to} (nobody answered)");
                self.log(record, &what, &[]);
            }
            Event::TurnHeld(held) => {
                let details = [("by", held.by.clone()), ("reason", held.reason.clone())];
                self.log(record, "(held)", &details);
            }
            Event::AgentParked(parked) => {
                let reason = ("reason", parked.reason.clone());
                self.log(record, "(waits for a person)", &[reason]);
            }
            Event::RunPaused { pause } => {
                self.log(record, &format!("paused: {pause}"), &[total_cost(&published)]);
            }
            Event::LimitReached { message, .. } => {
                self.log(record, &format!("usage limit: {message}"), &[total_cost(&published)]);
            }
            Event::RunStarted(_)
            | Event::ProgramDefined(_)
            | Event::RunResumed { .. }
            | Event::CostCounted { .. }
            | Event::CommandReceived { .. }
            | Event::MessagesTaken { .. } => {}
            _ => self.log(record, &sentence(record), &[]),
        }
    }
}

impl Handler<FinishPublishing> for DebugPlugin {
    type Result = ();

    fn handle(&mut self, _: FinishPublishing, _: &mut Self::Context) {}
}
