//! What keeps the agents of a run, as its records and the files of its turns tell, for people and for
//! programs.

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::actor::clock::now;
use crate::domain::agent::Agent;
use crate::domain::keeps::{Keeps, Seen};
use crate::domain::printable::one_line;
use crate::domain::settings::Answerer;
use crate::plugin::sentence::date;
use crate::process::transcript::TurnFiles;
use crate::store::layout::RunDir;
use crate::store::view::View;

/// What is asked when someone asks what keeps an agent.
pub struct Keeping<'run> {
    view: &'run View,
    steps: PathBuf,
    seen: Seen,
}

impl<'run> Keeping<'run> {
    /// Of a run as it is seen now.
    #[must_use]
    pub fn of(view: &'run View, dir: &RunDir) -> Self {
        Self { view, steps: dir.steps(), seen: Seen { now: now(), held: view.held } }
    }

    /// What keeps an agent. Where it is as good as nobody's, its files are not looked for.
    #[must_use]
    pub fn keeps(&self, agent: &'run Agent) -> Keeps<'run> {
        let run = &self.view.run;
        let begun = || TurnFiles::of(&self.steps, &agent.turn_id()).are_there();
        let begun = match run.settings.answerer {
            Answerer::Claude => Some(self.seen.held && begun()),
            Answerer::Scripted => None,
        };
        Keeps::of(run, agent, self.seen, begun)
    }
}

/// What keeps an agent; that the run holds still is said once for all of them.
#[must_use]
pub fn sentence(keeps: Keeps<'_>) -> String {
    match keeps {
        Keeps::Backoff(until) => format!("is run again {}", date(until)),
        Keeps::Stagger(until) => format!("starts {}", date(until)),
        Keeps::Plugin(held, until) => {
            format!("held until {} by the plug-in {}", date(until), one_line(held))
        }
        Keeps::Person(because) => format!("waits for someone: {}", one_line(because)),
        Keeps::Answer { node, question } => {
            format!("waits for an answer to {node}: {}", one_line(question))
        }
        Keeps::Agent(other) => format!("waits for {other}"),
        Keeps::Join { more, of, failed, until, .. } => {
            let failed = if failed > 0 { format!(", {failed} failed") } else { String::new() };
            let until = until.map(|until| format!(", until {}", date(until))).unwrap_or_default();
            format!("{}{failed}{until}", join(more, of))
        }
        Keeps::Program(awaiting) => format!("waits for {}", one_line(awaiting)),
        Keeps::AtWork => "at work".to_owned(),
        Keeps::Permit => "waits for a free process".to_owned(),
        Keeps::Limit(until) => format!("waits for the usage limit until {}", date(until)),
        Keeps::Unasked => "idle".to_owned(),
        Keeps::Due | Keeps::Run => String::new(),
    }
}

/// That more of so many agents are waited for.
#[must_use]
pub fn join(more: u32, of: u32) -> String {
    format!("waits for {more} more of {of} agent{}", if of == 1 { "" } else { "s" })
}

/// What many do that the same keeps, behind how many they are.
#[must_use]
pub fn of_many(keeps: Keeps<'_>) -> String {
    let what = match keeps {
        Keeps::AtWork => "at work",
        Keeps::Permit => "wait for a free process",
        Keeps::Due => "at work or due",
        Keeps::Limit(_) => "wait for the usage limit",
        Keeps::Backoff(_) => "run again after a pause",
        Keeps::Stagger(_) => "start in a moment",
        Keeps::Plugin(..) => "held by a plug-in",
        Keeps::Person(_) => "wait for someone",
        Keeps::Answer { .. } => "wait for an answer",
        Keeps::Agent(_) => "wait for another agent",
        Keeps::Join { .. } => "wait for agents they have forked",
        Keeps::Program(_) => "wait as their programs say",
        Keeps::Unasked => "idle",
        Keeps::Run => "hold still with the run",
    };
    what.to_owned()
}

/// The same for programs.
#[must_use]
pub fn as_json(keeps: Keeps<'_>) -> Value {
    let mut value = json!({ "by": keeps.name() });
    match keeps {
        Keeps::Backoff(until) | Keeps::Stagger(until) | Keeps::Limit(until) => {
            value["until"] = json!(until);
        }
        Keeps::Plugin(because, until) => {
            value["until"] = json!(until);
            value["because"] = json!(because);
        }
        Keeps::Person(because) => value["because"] = json!(because),
        Keeps::Answer { node, question } => {
            value["node"] = json!(node);
            value["question"] = json!(question);
        }
        Keeps::Agent(other) => value["agent"] = json!(other),
        Keeps::Join { more, of, done, failed, until } => {
            value["more"] = json!(more);
            value["of"] = json!(of);
            value["done"] = json!(done);
            value["failed"] = json!(failed);
            value["until"] = json!(until);
        }
        Keeps::Program(awaiting) => value["awaiting"] = json!(awaiting),
        Keeps::AtWork | Keeps::Permit | Keeps::Due | Keeps::Unasked | Keeps::Run => {}
    }
    value
}
