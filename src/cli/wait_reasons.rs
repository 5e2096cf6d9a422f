//! The wait reasons of a run's agents, from its records and the files of its turns, for people and for programs.

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::actor::clock::now;
use crate::domain::agent::Agent;
use crate::domain::printable::one_line;
use crate::domain::settings::AnswererKind;
use crate::domain::wait_reason::{RunObservation, WaitReason};
use crate::plugin::sentence::date;
use crate::process::transcript::TurnFiles;
use crate::store::layout::RunDir;
use crate::store::view::RunView;

/// The source of the wait reasons of a run's agents.
pub struct WaitReasons<'run> {
    view: &'run RunView,
    steps: PathBuf,
    seen: RunObservation,
}

impl<'run> WaitReasons<'run> {
    /// Observes a run as it is now.
    #[must_use]
    pub fn of(view: &'run RunView, dir: &RunDir) -> Self {
        Self { view, steps: dir.steps(), seen: RunObservation { now: now(), held: view.held } }
    }

    /// Returns an agent's wait reason. Looks for turn files only in a locked run of Claude Code.
    #[must_use]
    pub fn keeps(&self, agent: &'run Agent) -> WaitReason<'run> {
        let run = &self.view.run;
        let begun = || TurnFiles::of(&self.steps, &agent.turn_id()).are_there();
        let begun = match run.settings.answerer {
            AnswererKind::Claude => Some(self.seen.held && begun()),
            AnswererKind::Scripted => None,
        };
        WaitReason::of(run, agent, self.seen, begun)
    }
}

/// Returns a wait reason as a sentence; empty if the turn is due or the whole run waits.
#[must_use]
pub fn sentence(keeps: WaitReason<'_>) -> String {
    match keeps {
        WaitReason::Backoff(until) => format!("is run again {}", date(until)),
        WaitReason::Stagger(until) => format!("starts {}", date(until)),
        WaitReason::Plugin(held, until) => {
            format!("held until {} by the plug-in {}", date(until), one_line(held))
        }
        WaitReason::Person(because) => format!("waits for a person: {}", one_line(because)),
        WaitReason::Answer { node, question } => {
            format!("waits for an answer to {node}: {}", one_line(question))
        }
        WaitReason::Agent(other) => format!("waits for {other}"),
        WaitReason::Join { more, of, failed, until, .. } => {
            let failed = if failed > 0 { format!(", {failed} failed") } else { String::new() };
            let until = until.map(|until| format!(", until {}", date(until))).unwrap_or_default();
            format!("{}{failed}{until}", join(more, of))
        }
        WaitReason::Program(awaiting) => format!("waits for {}", one_line(awaiting)),
        WaitReason::AtWork => "at work".to_owned(),
        WaitReason::Permit => "waits for a free process".to_owned(),
        WaitReason::Limit(until) => format!("waits for the usage limit until {}", date(until)),
        WaitReason::Unasked => "idle".to_owned(),
        WaitReason::Due | WaitReason::Run => String::new(),
    }
}

/// Returns the sentence that `more` of `of` agents are waited for.
#[must_use]
pub fn join(more: u32, of: u32) -> String {
    format!("waits for {more} more of {of} agent{}", if of == 1 { "" } else { "s" })
}

/// Returns the activity of several agents with the same wait reason, to stand behind their number.
#[must_use]
pub fn of_many(keeps: WaitReason<'_>) -> String {
    let what = match keeps {
        WaitReason::AtWork => "at work",
        WaitReason::Permit => "wait for a free process",
        WaitReason::Due => "at work or due",
        WaitReason::Limit(_) => "wait for the usage limit",
        WaitReason::Backoff(_) => "run again after a pause",
        WaitReason::Stagger(_) => "start in a moment",
        WaitReason::Plugin(..) => "held by a plug-in",
        WaitReason::Person(_) => "wait for a person",
        WaitReason::Answer { .. } => "wait for an answer",
        WaitReason::Agent(_) => "wait for another agent",
        WaitReason::Join { .. } => "wait for agents they have forked",
        WaitReason::Program(_) => "wait as their programs say",
        WaitReason::Unasked => "idle",
        WaitReason::Run => "hold still with the run",
    };
    what.to_owned()
}

/// Returns a wait reason as JSON.
#[must_use]
pub fn as_json(keeps: WaitReason<'_>) -> Value {
    let mut value = json!({ "by": keeps.name() });
    match keeps {
        WaitReason::Backoff(until) | WaitReason::Stagger(until) | WaitReason::Limit(until) => {
            value["until"] = json!(until);
        }
        WaitReason::Plugin(because, until) => {
            value["until"] = json!(until);
            value["because"] = json!(because);
        }
        WaitReason::Person(because) => value["because"] = json!(because),
        WaitReason::Answer { node, question } => {
            value["node"] = json!(node);
            value["question"] = json!(question);
        }
        WaitReason::Agent(other) => value["agent"] = json!(other),
        WaitReason::Join { more, of, done, failed, until } => {
            value["more"] = json!(more);
            value["of"] = json!(of);
            value["done"] = json!(done);
            value["failed"] = json!(failed);
            value["until"] = json!(until);
        }
        WaitReason::Program(awaiting) => value["awaiting"] = json!(awaiting),
        WaitReason::AtWork
        | WaitReason::Permit
        | WaitReason::Due
        | WaitReason::Unasked
        | WaitReason::Run => {}
    }
    value
}
