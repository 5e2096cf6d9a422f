//! Plays an agent in a graph, from record to record.

use std::collections::VecDeque;
use std::rc::Rc;

use super::stage::{Log, NOW, Played, Stage};
use crate::graph::checked_graph::Graph;
use crate::graph::interpreter::{GraphEnvironment, GraphInterpreter, GraphYield};
use raymond_model::advance::AdvanceNext;
use raymond_model::agent::Agent;
use raymond_model::apply::begin;
use raymond_model::decide::{
    NondeterministicInputs, TurnJudgement, TurnReport, answer, decide, finish_join,
};
use raymond_model::event::{Event, GraphAdvanced, NextAction};
use raymond_model::graph_execution::{GraphState, WaitResult};
use raymond_model::id::AgentId;
use raymond_model::operation::RecoveryClass;
use raymond_model::question::AnswerCommand;
use raymond_model::run::Run;
use raymond_model::tests::scene::{Scene, first, result, session, state};

/// An agent in a graph.
pub(super) struct Play<'stage> {
    stage: &'stage Stage,
    program: &'stage Rc<Graph>,
    around: &'stage GraphEnvironment,
    scene: Scene,
    wait_result: VecDeque<WaitResult>,
    log: Log,
    last: Option<GraphState>,
    dies_at: usize,
}

impl<'stage> Play<'stage> {
    pub(super) fn new(
        stage: &'stage Stage,
        program: &'stage Rc<Graph>,
        around: &'stage GraphEnvironment,
        dies_at: usize,
    ) -> Self {
        let wait_result = stage.wait_result.iter().cloned().collect();
        let (scene, log) = (enter(), Log::default());
        Self { stage, program, around, scene, wait_result, log, last: None, dies_at }
    }

    /// Plays to the end.
    pub(super) fn play(mut self) -> (Played, Log) {
        while let Some(agent) = self.scene.run.agents.get(&AgentId::main()).cloned() {
            self.step(&agent);
        }
        self.over()
    }

    fn step(&mut self, agent: &Agent) {
        if let Some(asked) = agent.question() {
            let Some(WaitResult::Answered(given)) = self.wait_result.pop_front() else {
                panic!("nobody answers {asked:?}")
            };
            let node = &asked.question.node;
            let event =
                answer(&self.scene.run, &AnswerCommand::to(node, &given.raw)).expect("an answer");
            self.scene.happens(event);
        } else if agent.pending_join().is_some() {
            let events = finish_join(&self.scene.run, agent, NOW, &|_| false);
            if events.is_empty() {
                let is_child = |id: &&AgentId| id.parent() == Some("main");
                let child = self.scene.run.agents.keys().find(is_child).cloned();
                return self.end(child.expect("a child lives").as_str());
            }
            for event in events {
                self.scene.happens(event);
            }
        } else if let Some(child) = agent.awaited_agent() {
            self.end(child.as_str());
        } else {
            self.walk(agent);
        }
    }

    /// Ends another agent with the next result.
    fn end(&mut self, child: &str) {
        match self.wait_result.pop_front() {
            Some(WaitResult::Done(value)) => {
                let payload = value.as_str().expect("an agent's result is a text");
                self.scene.take(child, result(payload));
            }
            Some(WaitResult::Failed(_)) => {
                let event = self.scene.end_badly(child);
                self.scene.happens(Event::AgentFailed(event));
            }
            other => panic!("{other:?} is not the end of an agent"),
        }
    }

    fn walk(&mut self, agent: &Agent) {
        let mut result = match agent.task() {
            Some(task) => {
                Some(self.wait_result.front().cloned().unwrap_or_else(|| panic!("{task:?}")))
            }
            None => agent.wait_result().cloned(),
        };
        let mut machine = match agent.graph() {
            Some(memory) => GraphInterpreter::resume(
                self.program,
                self.around.clone(),
                GraphState::clone(&memory.state),
            ),
            None => GraphInterpreter::begin(self.program, self.around.clone()),
        };
        let then = loop {
            self.log.calls += 1;
            if self.log.calls == self.dies_at {
                self.scene.run = through_the_journal(&self.scene.run);
                return;
            }
            let operation = match machine.next(result.take(), NOW) {
                GraphYield::Record(then) => break then,
                GraphYield::Operation(operation) => operation,
            };
            if operation.class() != RecoveryClass::Read && !machine.is_recorded() {
                break AdvanceNext::Action(NextAction::Operation(operation.name().to_owned()));
            }
            result = Some(match (self.stage.world)(&operation) {
                Ok(value) => WaitResult::Done(value),
                Err(why) => WaitResult::Failed(why),
            });
            self.log.operations.push(operation);
        };
        if agent.task().is_some() {
            self.wait_result.pop_front();
        }
        self.log.wanted.push(then.clone());
        let walk = TurnJudgement::Advanced(Box::new(machine.finish(then)));
        let report = TurnReport { judgement: walk, ..TurnReport::empty(agent.turn_id()) };
        let session = session(self.scene.next());
        let chosen = NondeterministicInputs { now: NOW, session, ready: None, chance: 0.5 };
        for event in decide(&self.scene.run, &report, chosen) {
            if let Event::GraphAdvanced(walked) = &event {
                self.log.records.push((**walked).clone());
            }
            self.scene.happens(event);
            let memory = self.scene.run.agents.get(&AgentId::main());
            let state = memory.and_then(|agent| Some(GraphState::clone(&agent.graph()?.state)));
            self.last = state.or(self.last.take());
        }
    }

    fn over(self) -> (Played, Log) {
        let visits = || self.log.records.iter().flat_map(|record| &record.visits);
        let ended = self.scene.run.finished.iter().find(|agent| agent.id == AgentId::main());
        let played = Played {
            visits: visits()
                .map(|visit| (visit.node.to_string(), visit.outcome.to_string()))
                .collect(),
            errors: visits().filter_map(|visit| visit.error.clone()).collect(),
            changes: all(&self.log, |record| &record.changes),
            shown: self.log.records.iter().flat_map(|record| record.shown.clone()).collect(),
            state: self.last.expect("it was in the graph"),
            ending: ended.expect("it has ended").ending.clone(),
        };
        (played, self.log)
    }
}

fn all<T: Clone>(log: &Log, of: impl Fn(&GraphAdvanced) -> &Vec<T>) -> Vec<T> {
    log.records.iter().flat_map(|record| of(record).clone()).collect()
}

fn through_the_journal(run: &Run) -> Run {
    let text = serde_json::to_string(run).expect("JSON");
    let read: Run = serde_json::from_str(&text).expect("a run");
    assert_eq!(read, *run);
    read
}

/// Returns a run whose first state is the graph.
fn enter() -> Scene {
    let mut first = first();
    if let Event::RunStarted(started) = &mut first.event {
        started.entry = state("flow.yaml");
    }
    Scene { run: begin(&first).expect("a start").0 }
}
