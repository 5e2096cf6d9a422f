//! A run that a test moves along by hand, one record a second.
//!
//! The record with the number n is at second n, opens the session `sn`, ends with the message `mn`
//! and costs a cent, so that a test can tell from a value which record it came from.

use crate::domain::agent::Agent;
use crate::domain::agent::AgentOptions;
use crate::domain::apply::Effect;
use crate::domain::apply::{ApplyError, apply, begin};
use crate::domain::event::{
    AgentFailed, Event, JoinBegun, Record, RunStarted, StepFinished, TurnFailed,
};
use crate::domain::id::{AgentId, MessageId, RunId, SessionId, StateName};
use crate::domain::join::{Join, JoinCondition, JoinFallback, UnjoinedPolicy};
use crate::domain::money::Usd;
use crate::domain::run::Run;
use crate::domain::settings::Settings;
use crate::domain::time::Timestamp;
use crate::domain::transition::{TagName, Transition, Variables};
use crate::domain::turn::TurnCost;
use crate::domain::turn::{FailureCause, TurnId};

/// The cost of every turn of a scene, in dollars.
pub(crate) const CENT: f64 = 0.01;

pub(crate) fn state(name: &str) -> StateName {
    StateName::parse(name).expect("a state's name")
}

pub(crate) fn agent_id(name: &str) -> AgentId {
    AgentId::parse(name).expect("an agent's id")
}

pub(crate) fn session(record: u64) -> SessionId {
    SessionId::new(&format!("s{record}"))
}

pub(crate) fn message(record: u64) -> MessageId {
    MessageId::new(&format!("m{record}"))
}

pub(crate) fn variables(pairs: &[(&str, &str)]) -> Variables {
    pairs.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect()
}

/// Builds a transition from its pieces; of two attributes the one the tag needs is `continuation`.
pub(crate) fn tag(tag: TagName, continuation: &str, body: &str) -> Transition {
    let needed = tag.required_attribute().map(|name| (name.to_owned(), continuation.to_owned()));
    Transition::from_parts(tag, needed, body).expect("a transition")
}

pub(crate) fn goto(target: &str) -> Transition {
    tag(TagName::Goto, "", target)
}

pub(crate) fn result(payload: &str) -> Transition {
    tag(TagName::Result, "", payload)
}

/// Returns the record that starts a run.
pub(crate) fn first() -> Record {
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
pub(crate) struct Scene {
    pub(crate) run: Run,
}

impl Scene {
    /// Creates a run whose agent `main` is about to take its first turn, in `A.md`.
    pub(crate) fn begin() -> Self {
        Self { run: begin(&first()).expect("a start").0 }
    }

    /// Returns the number of the next record.
    pub(crate) fn next(&self) -> u64 {
        self.run.seq + 1
    }

    pub(crate) fn offer(&mut self, event: Event) -> Result<Vec<Effect>, ApplyError> {
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

    pub(crate) fn happens(&mut self, event: Event) -> Vec<Effect> {
        self.offer(event).expect("an event that can happen")
    }

    pub(crate) fn agent(&self, id: &str) -> &Agent {
        self.run.agents.get(&agent_id(id)).expect("a live agent")
    }

    pub(crate) fn turn(&self, id: &str) -> TurnId {
        self.agent(id).turn_id()
    }

    /// Returns the event of an agent that takes a transition now.
    pub(crate) fn step(&self, id: &str, transition: Transition) -> StepFinished {
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
    pub(crate) fn take(&mut self, id: &str, transition: Transition) -> Vec<Effect> {
        self.happens(Event::StepFinished(self.step(id, transition)))
    }

    /// Makes an agent wait for some of those it has forked, for a minute.
    pub(crate) fn joins(&mut self, id: &str, need: JoinCondition) -> Vec<Effect> {
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
    pub(crate) fn failure(&self, id: &str) -> TurnFailed {
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
    pub(crate) fn end_badly(&self, id: &str) -> AgentFailed {
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
