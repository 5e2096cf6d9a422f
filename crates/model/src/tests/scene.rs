//! A run that a test moves along by hand, one record a second.
//!
//! The record with the number n is at second n, opens the session `sn`, ends with the message `mn`
//! and costs a cent, so that a test can tell from a value which record it came from.

use crate::agent::Agent;
use crate::agent::AgentOptions;
use crate::apply::Effect;
use crate::apply::{ApplyError, apply, begin};
use crate::event::{AgentFailed, Event, JoinBegun, Record, RunStarted, StepFinished, TurnFailed};
use crate::id::{AgentId, MessageId, RunId, SessionId, StateName};
use crate::join::{Join, JoinCondition, JoinFallback, UnjoinedPolicy};
use crate::money::Usd;
use crate::run::Run;
use crate::settings::Settings;
use crate::time::Timestamp;
use crate::transition::{TagName, Transition, Variables};
use crate::turn::TurnCost;
use crate::turn::{FailureCause, TurnId};

/// The cost of every turn of a scene, in dollars.
pub const CENT: f64 = 0.01;

pub fn state(name: &str) -> StateName {
    StateName::parse(name).expect("a state's name")
}

pub fn agent_id(name: &str) -> AgentId {
    AgentId::parse(name).expect("an agent's id")
}

pub fn session(record: u64) -> SessionId {
    SessionId::new(&format!("s{record}"))
}

pub fn message(record: u64) -> MessageId {
    MessageId::new(&format!("m{record}"))
}

pub fn variables(pairs: &[(&str, &str)]) -> Variables {
    pairs.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect()
}

/// Builds a transition from its pieces; of two attributes the one the tag needs is `continuation`.
pub fn tag(tag: TagName, continuation: &str, body: &str) -> Transition {
    let needed = tag.required_attribute().map(|name| (name.to_owned(), continuation.to_owned()));
    Transition::from_parts(tag, needed, body).expect("a transition")
}

pub fn goto(target: &str) -> Transition {
    tag(TagName::Goto, "", target)
}

pub fn result(payload: &str) -> Transition {
    tag(TagName::Result, "", payload)
}

/// Returns the record that starts a run.
pub fn first() -> Record {
    let started = RunStarted {
        workflow_id: RunId::parse("r").expect("a run's id"),
        scope_dir: "w".to_owned(),
        folder: None,
        entry: state("A.md"),
        session: session(1),
        definition: None,
        variables: Variables::new(),
        options: AgentOptions::default(),
        settings: Settings::default(),
    };
    Record {
        kept_session: None,
        seq: 1,
        at: Timestamp(1000),
        folder: None,
        snapshot: None,
        placed: Vec::new(),
        event: Event::RunStarted(Box::new(started)),
    }
}

/// A run and the events that are applied to it.
#[derive(Debug, Clone)]
pub struct Scene {
    pub run: Run,
}

impl Scene {
    /// Creates a run whose agent `main` is about to take its first turn, in `A.md`.
    pub fn begin() -> Self {
        Self { run: begin(&first()).expect("a start").0 }
    }

    /// Returns the number of the next record.
    pub fn next(&self) -> u64 {
        self.run.seq + 1
    }

    pub fn offer(&mut self, event: Event) -> Result<Vec<Effect>, ApplyError> {
        let seq = self.next();
        apply(
            &mut self.run,
            &Record {
                kept_session: None,
                seq,
                at: Timestamp(seq * 1000),
                folder: None,
                snapshot: None,
                placed: Vec::new(),
                event,
            },
        )
    }

    pub fn happens(&mut self, event: Event) -> Vec<Effect> {
        self.offer(event).expect("an event that can happen")
    }

    pub fn agent(&self, id: &str) -> &Agent {
        self.run.agents.get(&agent_id(id)).expect("a live agent")
    }

    pub fn turn(&self, id: &str) -> TurnId {
        self.agent(id).turn_id()
    }

    /// Returns the event of an agent that takes a transition now.
    pub fn step(&self, id: &str, transition: Transition) -> StepFinished {
        let agent = self.agent(id);
        let new_session = !matches!(transition.tag(), TagName::Goto | TagName::Result);
        StepFinished {
            turn: agent.turn_id(),
            state: agent.current_state.clone(),
            transition,
            implicit: false,
            overruled: None,
            without_turn: false,
            evaluator: None,
            cost: TurnCost {
                amount: Usd::from_dollars(CENT),
                duration_ms: Some(0),
                ..TurnCost::default()
            },
            session_id: agent.session.id.clone(),
            message: Some(message(self.next())),
            shown: Vec::new(),
            new_session: new_session.then(|| session(self.next())),
            options: Box::default(),
            children: Vec::new(),
            call_budget_usd: None,
            restarted: None,
        }
    }

    /// Applies a transition of an agent.
    pub fn take(&mut self, id: &str, transition: Transition) -> Vec<Effect> {
        self.happens(Event::StepFinished(self.step(id, transition)))
    }

    /// Makes an agent wait for some of those it has forked, for a minute.
    pub fn joins(&mut self, id: &str, need: JoinCondition) -> Vec<Effect> {
        let join = Join {
            need,
            timeout_ms: Some(60_000),
            on_timeout: JoinFallback::Fail,
            on_failure: JoinFallback::Fail,
            rest: UnjoinedPolicy::Leave,
        };
        let state = self.agent(id).current_state.clone();
        self.happens(Event::JoinBegun(Box::new(JoinBegun { turn: self.turn(id), state, join })))
    }

    /// Returns the event of a turn that crashes now, at the cost of a cent.
    pub fn failure(&self, id: &str) -> TurnFailed {
        TurnFailed {
            turn: self.turn(id),
            state: self.agent(id).current_state.clone(),
            cause: FailureCause::Crash,
            message: "crashed".to_owned(),
            cost: TurnCost { amount: Usd::from_dollars(CENT), ..TurnCost::default() },
            session: Some(session(self.next())),
            not_before: Some(Timestamp(self.next() * 1000 + 500)),
            counts: true,
        }
    }

    /// Returns the event of an agent that ends with an error now, at the cost of a cent.
    pub fn end_badly(&self, id: &str) -> AgentFailed {
        AgentFailed {
            turn: self.turn(id),
            state: self.agent(id).current_state.clone(),
            cause: FailureCause::Output,
            error: "unusable".to_owned(),
            cost: TurnCost { amount: Usd::from_dollars(CENT), ..TurnCost::default() },
            ends_run: false,
        }
    }
}
