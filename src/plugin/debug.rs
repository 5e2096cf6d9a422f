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

use super::extract::write_turn_json;
use super::sentence::{destination, local, sentence};
use crate::actor::message::{FinishPublishing, Published};
use crate::domain::event::{
    AgentFailed, Event, GraphAdvanced, RoleResponded, StepFinished, TurnFailed, TurnRejected,
};
use crate::domain::id::{AgentId, RunId, SessionId, StateName};
use crate::domain::money::Usd;
use crate::domain::time::Timestamp;
use crate::domain::transition::Transition;
use crate::domain::turn::{FailureCause, TurnId};
use crate::plain_file;

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
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Keeps the output of Claude Code in a turn.
    fn keep_turn(&mut self, turn: &TurnId, state: &StateName, cost: Usd) -> (&'static str, String) {
        let number = self.numbers.entry(turn.agent.clone()).or_default();
        *number += 1;
        let name = format!("{}_{}_{number:03}.json", turn.agent.file_name(), state.stem());
        let path = self.dir.join(&name);
        let written = plain_file::create(&path);
        let copied =
            written.and_then(|file| write_turn_json(&self.steps, &turn.stem(), cost, file));
        if let Err(error) = copied {
            tracing::warn!("debug: {}: {error}", path.display());
        }
        ("output", name)
    }

    fn log(&self, at: Timestamp, agent: &str, what: &str, details: &[(&str, String)]) {
        let mut entry = format!("{} [{agent}] {what}\n", local(at).strftime("%Y-%m-%d %H:%M:%S"));
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
        let at = published.record.at;
        let output = (!step.without_turn)
            .then(|| self.keep_turn(&step.turn, step.prompt(), step.cost.amount));
        let tag = step.transition.tag();
        let to = match (&published.agent, destination(&step.transition)) {
            (None, _) => format!("({tag}, terminated)"),
            (Some(_), Some(state)) => format!("{state} ({tag})"),
            (Some(agent), None) => format!("{} ({tag})", agent.state),
        };
        let resumed = if self.sessions.insert(step.session_id.clone()) { "" } else { " (resumed)" };
        let mut details = vec![
            ("session_id", format!("{}{resumed}", step.session_id)),
            ("cost", step.cost.amount.to_string()),
            ("total_cost", published.total_cost.to_string()),
        ];
        if let Some(agent) = published.agent.as_ref().filter(|agent| agent.stack > 0) {
            details.push(("stack_depth", agent.stack.to_string()));
        }
        if step.implicit {
            details.push(("implicit", "true".to_owned()));
        }
        match (&step.transition, &step.new_session) {
            (Transition::Fork { target, .. }, Some(session)) => {
                details.push(("forked", format!("{target} (session_id: {session})")));
            }
            (Transition::Fork { .. }, None) => {
                for group in &step.children {
                    let many = group.agents.len();
                    details.push(("forked", format!("{} ({many} agents)", group.state)));
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
        self.log(at, step.turn.agent.as_str(), &format!("{} -> {to}", step.state), &details);
    }

    /// Logs a turn without a transition.
    fn no_step(
        &mut self,
        turn: &TurnId,
        from: &StateName,
        cost: Usd,
        to: &str,
        why: &str,
        published: &Published,
    ) {
        let output = self.keep_turn(turn, from, cost);
        let details = [
            ("error", why.to_owned()),
            ("cost", cost.to_string()),
            ("total_cost", published.total_cost.to_string()),
            output,
        ];
        self.log(published.record.at, turn.agent.as_str(), &format!("{from} -> {to}"), &details);
    }

    /// Logs the answer of a role of a program.
    fn answered(&mut self, answered: &RoleResponded, published: &Published) {
        let output = self.keep_turn(&answered.turn, &answered.state, answered.cost.amount);
        let details = [
            ("cost", answered.cost.amount.to_string()),
            ("total_cost", published.total_cost.to_string()),
            output,
        ];
        let way = format!("{} answers {}", answered.state, answered.request);
        self.log(published.record.at, answered.turn.agent.as_str(), &way, &details);
    }

    /// Logs the nodes of a graph that were walked, and the turn of one of them.
    fn walked(&mut self, walked: &GraphAdvanced, published: &Published) {
        let nodes = walked.visits.iter().map(|visit| &*visit.node);
        let way = nodes.chain([&*walked.node]).collect::<Vec<_>>().join(" -> ");
        let output = walked
            .task
            .as_ref()
            .map(|paid| self.keep_turn(&walked.turn, &walked.state, paid.cost.amount));
        let details: Vec<_> = output.into_iter().collect();
        let way = format!("{}: {way}", walked.state);
        self.log(published.record.at, walked.turn.agent.as_str(), &way, &details);
    }
}

impl Actor for DebugPlugin {
    type Context = Context<Self>;
}

impl Handler<Published> for DebugPlugin {
    type Result = ();

    fn handle(&mut self, published: Published, _: &mut Self::Context) {
        match &published.record.event {
            Event::StepFinished(step) => self.step(step, &published),
            Event::TurnRejected(TurnRejected { turn, state, violation, cost, .. }) => {
                self.no_step(
                    turn,
                    state,
                    cost.amount,
                    &format!("{state} (reminder)"),
                    violation,
                    &published,
                );
            }
            Event::TurnFailed(TurnFailed { turn, state, message, cost, .. }) => {
                self.no_step(
                    turn,
                    state,
                    cost.amount,
                    &format!("{state} (run again)"),
                    message,
                    &published,
                );
            }
            Event::AgentFailed(AgentFailed {
                turn,
                cause: FailureCause::Restarts | FailureCause::Budget,
                error,
                ..
            }) => {
                let why = ("error", error.clone());
                self.log(published.record.at, turn.agent.as_str(), "(failed)", &[why]);
            }
            Event::AgentFailed(AgentFailed { turn, state, error, cost, .. }) => {
                self.no_step(turn, state, cost.amount, "(failed)", error, &published);
            }
            Event::TransitionProposed(proposed) => {
                let output = self.keep_turn(&proposed.turn, &proposed.state, proposed.cost.amount);
                let details = [
                    ("asked", proposed.transition.to_string()),
                    ("cost", proposed.cost.amount.to_string()),
                    ("total_cost", published.total_cost.to_string()),
                    output,
                ];
                let way = format!("{} -> {} (evaluator)", proposed.state, proposed.evaluator);
                self.log(published.record.at, proposed.turn.agent.as_str(), &way, &details);
            }
            Event::GraphAdvanced(walked) => self.walked(walked, &published),
            Event::RoleResponded(answered) => self.answered(answered, &published),
            event @ (Event::ProgramStarted(_)
            | Event::ProgramAdvanced(_)
            | Event::ProgramLogged(_)
            | Event::RoleRequested(_)
            | Event::RoleDelegated(_)
            | Event::JoinBegun(_)
            | Event::JoinFinished(_)
            | Event::FactsSeen { .. }) => {
                let agent = event.agent().map_or("run", AgentId::as_str);
                self.log(published.record.at, agent, &sentence(&published.record), &[]);
            }
            Event::QuestionAnswered(answered) => {
                let answer = ("answer", answered.answer.raw.clone());
                let way = format!("{} (answered)", answered.node);
                self.log(published.record.at, answered.turn.agent.as_str(), &way, &[answer]);
            }
            Event::QuestionTimedOut(late) => {
                let way = format!("{} -> {} (nobody answered)", late.state, late.enters);
                self.log(published.record.at, late.turn.agent.as_str(), &way, &[]);
            }
            Event::TurnHeld(held) => {
                let by = ("by", held.by.clone());
                let agent = held.turn.agent.as_str();
                self.log(
                    published.record.at,
                    agent,
                    "(held)",
                    &[by, ("reason", held.reason.clone())],
                );
            }
            Event::RunPaused { pause } => {
                let total = ("total_cost", published.total_cost.to_string());
                self.log(published.record.at, "run", &format!("paused: {pause}"), &[total]);
            }
            Event::AgentParked(event) => {
                let because = ("reason", event.reason.clone());
                let agent = event.turn.agent.as_str();
                self.log(published.record.at, agent, "(waits for a person)", &[because]);
            }
            Event::LimitReached { message, .. } => {
                let total = ("total_cost", published.total_cost.to_string());
                self.log(published.record.at, "run", &format!("usage limit: {message}"), &[total]);
            }
            Event::RunStarted(_)
            | Event::ProgramDefined(_)
            | Event::RunResumed { .. }
            | Event::CostCounted { .. }
            | Event::CommandReceived { .. } => {}
        }
    }
}

impl Handler<FinishPublishing> for DebugPlugin {
    type Result = ();

    fn handle(&mut self, _: FinishPublishing, _: &mut Self::Context) {}
}
