//! Programs in a run that is driven by chance: executions that begin, ask, wait and end, and their roles.

use std::collections::BTreeMap;

use super::{Journal, scene};
use crate::activity::Activity;
use crate::advance::{Advance, AdvanceNext, AdvanceOutput};
use crate::agent::{Agent, AgentOptions};
use crate::decide::{
    NondeterministicInputs, TurnJudgement, TurnReport, decide, program_started, role_event,
};
use crate::event::Event;
use crate::event::{AdvancePosition, NextAction, ProgramProgress, ProgramStarted, ProgramStatus};
use crate::fact::{Fact, FactChange};
use crate::graph_execution::{
    BlockFrame, OutputFormat, ProgramExecution, ProgramPosition, ProgramSource, ProgramWait,
    PromptTask, RequestBody,
};
use crate::id::SessionId;
use crate::time::Timestamp;
use crate::transition::Variables;
use crate::turn_options::TurnOptions;

/// The program of such a run; the state is one of those that chance leads to.
pub(super) const FILE: &str = "p.lisp";

impl Journal {
    /// Starts an agent's program, or advances it as chance has it.
    pub fn advance(&mut self, agent: &Agent, dice: u32, chance: f64) {
        let events = match agent.program() {
            None => {
                let (definition, started) = beginning(agent, dice);
                program_started(&self.run, agent, definition, started)
            }
            Some(execution) => {
                let advance = advance(execution, dice, self.now());
                let seq = self.run.seq + 1;
                let advance = advance.with_sessions(|n| SessionId::new(&format!("s{seq}.{n}")));
                let chosen = NondeterministicInputs {
                    now: self.now(),
                    session: SessionId::new(&format!("s{seq}")),
                    ready: None,
                    chance,
                };
                let judgement = TurnJudgement::Advanced(Box::new(advance));
                let report = TurnReport { judgement, ..TurnReport::empty(agent.turn_id()) };
                decide(&self.run, &report, chosen)
            }
        };
        for event in events {
            self.record(event);
        }
    }

    /// Advances a role that has no turn to take: it ends, passes on an answer, or delegates to an agent.
    pub fn serve(&mut self, role: &Agent) {
        let session = SessionId::new(&format!("s{}", self.run.seq + 1));
        let event = role_event(role, AgentOptions::default(), session);
        if let Some(event) = event {
            self.record(event);
        }
    }

    /// Changes facts.
    pub fn facts(&mut self, dice: u32) {
        let (label, key) = (["go", "stop"][dice as usize % 2].to_owned(), "k".to_owned());
        let change = if dice.is_multiple_of(3) {
            FactChange::Retracted { label, key }
        } else {
            let (value, source) = (dice.to_string(), "chance".to_owned());
            FactChange::Asserted(Fact {
                label,
                key,
                value,
                seq: self.run.seq,
                source,
                at: self.now(),
            })
        };
        self.record(Event::FactsSeen { changes: vec![change] });
    }
}

/// Returns whether an agent is a role that has no turn to take.
pub(super) fn takes_no_turn(agent: &Agent) -> bool {
    agent.mailbox().is_some_and(|mailbox| {
        let work = mailbox.current.as_deref().map(|request| &request.body);
        !matches!(work, Some(RequestBody::Prompt(_)))
    })
}

fn beginning(agent: &Agent, dice: u32) -> (ProgramSource, ProgramStarted) {
    let definition = ProgramSource {
        file: scene::state(FILE),
        folder: None,
        name: "p".to_owned(),
        program: ["sha256:1", "sha256:2"][dice as usize % 2].into(),
        text: "(workflow p …)".into(),
        labels: vec!["go".to_owned()],
    };
    let started = ProgramStarted {
        turn: agent.turn_id(),
        state: agent.current_state.clone(),
        program: definition.program.clone(),
        name: definition.name.clone(),
        label: "l".to_owned(),
        branch: None,
        context: Variables::new(),
        start: "s".into(),
    };
    (definition, started)
}

fn advance(execution: &ProgramExecution, dice: u32, now: Timestamp) -> Advance {
    let outputs: Vec<AdvanceOutput> = (0..dice % 4).map(|n| command(dice / 4 + n)).collect();
    let wait = ProgramWait {
        awaiting: dice.to_string(),
        since: now,
        until: None,
        outside: dice.is_multiple_of(2),
    };
    let activity =
        Activity::Assert { label: "go".to_owned(), key: "k".to_owned(), value: dice.to_string() };
    let error = || Some("p.lisp:1:1: by chance".to_owned());
    let (next, wait, activity) = match dice % 13 {
        0 => (AdvanceNext::End { payload: "over".to_owned(), error: None }, None, None),
        1 => (AdvanceNext::End { payload: "over".to_owned(), error: error() }, None, None),
        2..5 => {
            (AdvanceNext::Action(NextAction::Operation("assert".to_owned())), None, Some(activity))
        }
        _ => (AdvanceNext::Action(NextAction::Wait), Some(wait), None),
    };
    let level = BlockFrame { at: dice as usize, ..BlockFrame::default() };
    let position = ProgramPosition {
        current: ["s", "t"][dice as usize % 2].into(),
        cursor: vec![level],
        wait,
        activity,
        ..ProgramPosition::default()
    };
    let bound = dice.is_multiple_of(5).then(|| ("it".to_owned(), execution.id.clone()));
    let status = match &next {
        AdvanceNext::End { error: None, .. } => ProgramStatus::Completed,
        AdvanceNext::End { .. } => ProgramStatus::Failed,
        AdvanceNext::Action(NextAction::Wait) => ProgramStatus::Waiting,
        _ => ProgramStatus::Running,
    };
    let bindings = bound.into_iter().collect();
    let progress =
        ProgramProgress { bindings, bases: bases(dice), ..ProgramProgress::at(position, status) };
    Advance { outputs, position: AdvancePosition::Program(Box::new(progress)), next }
}

fn bases(dice: u32) -> Option<BTreeMap<String, Option<String>>> {
    dice.is_multiple_of(7).then(|| BTreeMap::from([(String::new(), Some(dice.to_string()))]))
}

fn command(dice: u32) -> AdvanceOutput {
    let role = ["a", "b", "c"][dice as usize % 3].to_owned();
    let body = match dice % 5 {
        0 => {
            return AdvanceOutput::Log {
                text: "by chance".to_owned(),
                warning: dice.is_multiple_of(2),
            };
        }
        1 => RequestBody::Folder {
            folder: None,
            start: scene::state("A.md"),
            input: "all".to_owned(),
        },
        _ => RequestBody::Prompt(Box::new(PromptTask {
            prompt: format!("{role}?"),
            model: None,
            options: TurnOptions::default(),
            output: None,
            contract: OutputFormat::Reply,
            expect: Vec::new(),
            name: scene::state(&format!("{FILE}#{role}")),
        })),
    };
    let handle = if role == "c" { "a".to_owned() } else { role.clone() };
    let name = format!("r{}", dice % 2);
    AdvanceOutput::Request { role, handle, cwd: None, name, body, session: None }
}
