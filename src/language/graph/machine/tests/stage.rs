//! A graph, all that is around it, and what came of playing it.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};

use serde_json::{Map, Value, json};

use crate::domain::agent::Agent;
use crate::domain::apply::begin;
use crate::domain::apply::tests::scene::{Scene, first, result, session, state};
use crate::domain::decide::{Chosen, Judgement, Report, answer, decide};
use crate::domain::event::{Event, GraphWalked};
use crate::domain::graph::{Change, Heard, State};
use crate::domain::id::AgentId;
use crate::domain::operation::{Class, Done, Operation};
use crate::domain::question::Given;
use crate::domain::run::{Ending, Run};
use crate::domain::time::Timestamp;
use crate::domain::transition::Variables;
use crate::domain::walk::Then;
use crate::language::graph::machine::{Around, Machine, Need};
use crate::language::graph::program::Program;
use crate::language::graph::read::{Profile, read};
use crate::language::graph::vocabulary::Vocabulary;

/// Every walk is at this time, so that one that is repeated comes to the same.
const NOW: Timestamp = Timestamp(1_700_000_000_000);

/// What the others say, one after another: Claude Code, a further agent, a person.
pub(super) fn done(value: Value) -> Heard {
    Heard::Done(value)
}

pub(super) fn failed(why: &str) -> Heard {
    Heard::Failed(why.to_owned())
}

pub(super) fn answered(raw: &str) -> Heard {
    let answer = crate::domain::question::Answer { id: String::new(), raw: raw.to_owned() };
    Heard::Answered(answer)
}

/// A graph that is about to be played.
pub(super) struct Stage {
    graph: Map<String, Value>,
    files: BTreeMap<String, String>,
    heard: Vec<Heard>,
    variables: Variables,
    world: Box<dyn Fn(&Operation) -> Done>,
}

/// What came of it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Played {
    /// The nodes and how they came out.
    pub(super) visits: Vec<(String, String)>,
    /// Why nodes failed.
    pub(super) errors: Vec<String>,
    pub(super) changes: Vec<Change>,
    pub(super) shown: Vec<String>,
    /// What the nodes saw in the end.
    pub(super) state: State,
    pub(super) ending: Ending,
}

/// What happened on the way, which may differ from one time to the next.
#[derive(Debug, Default)]
pub(super) struct Log {
    pub(super) operations: Vec<Operation>,
    pub(super) wanted: Vec<Then>,
    pub(super) records: Vec<GraphWalked>,
    /// How often the machine was asked what it needs.
    pub(super) calls: usize,
}

impl Stage {
    /// A graph of these nodes that begins with `start`; it can end in `done` or in `failed`.
    pub(super) fn new(nodes: Value) -> Self {
        let graph = json!({
            "name": "flow",
            "version": "1.0.0",
            "description": "a flow",
            "entry_preconditions": [],
            "initial_state": {},
            "start_node": "start",
            "nodes": nodes,
            "endings": {
                "done": {"type": "success", "message": "done"},
                "failed": {"type": "error", "message": "failed: ${computed.last_error}"},
            },
        });
        Self {
            graph: graph.as_object().cloned().unwrap_or_default(),
            files: BTreeMap::new(),
            heard: Vec::new(),
            variables: Variables::new(),
            world: Box::new(|operation| panic!("nobody performs {operation:?}")),
        }
    }

    /// A graph that does this, and ends.
    pub(super) fn doing(actions: Value) -> Self {
        Self::new(json!({"start": node(actions, "done")}))
    }

    /// Another part of the graph.
    pub(super) fn with(mut self, key: &str, value: Value) -> Self {
        self.graph.insert(key.to_owned(), value);
        self
    }

    pub(super) fn beginning(self, fields: Value) -> Self {
        self.with("initial_state", fields)
    }

    pub(super) fn file(mut self, name: &str, text: &str) -> Self {
        self.files.insert(name.to_owned(), text.to_owned());
        self
    }

    pub(super) fn hearing(mut self, heard: impl IntoIterator<Item = Heard>) -> Self {
        self.heard.extend(heard);
        self
    }

    pub(super) fn given(mut self, name: &str, value: &str) -> Self {
        self.variables.insert(name.to_owned(), value.to_owned());
        self
    }

    pub(super) fn world(mut self, world: impl Fn(&Operation) -> Done + 'static) -> Self {
        self.world = Box::new(world);
        self
    }

    pub(super) fn program(&self) -> Program {
        let text = Value::Object(self.graph.clone()).to_string();
        let vocabulary = Vocabulary::new();
        let read = read("w/flow.yaml", None, &text, &vocabulary, &self.files, Profile::Lenient);
        read.program.unwrap_or_else(|| panic!("{:#?}", read.diagnostics))
    }

    pub(super) fn play(&self) -> Played {
        self.play_and_die(usize::MAX).0
    }

    pub(super) fn log(&self) -> Log {
        self.play_and_die(usize::MAX).1
    }

    /// Plays it; before the machine says for the so-manieth time what it needs, all is lost that is not
    /// recorded.
    pub(super) fn play_and_die(&self, at: usize) -> (Played, Log) {
        let program = self.program();
        let around = Around {
            file: state("flow.yaml"),
            folder: None,
            builtins: json!({"PWD": "/work", "HOME": "/home/me", "arguments": "--all"})
                .as_object()
                .cloned()
                .unwrap_or_default(),
            variables: self.variables.clone(),
        };
        let mut play = Play {
            stage: self,
            program: &program,
            around: &around,
            scene: enter(),
            heard: self.heard.iter().cloned().collect(),
            log: Log::default(),
            last: None,
            dies_at: at,
        };
        while let Some(agent) = play.scene.run.agents.get(&AgentId::main()).cloned() {
            play.step(&agent);
        }
        play.over()
    }
}

/// A node that does something and goes on; if that fails, to the ending `failed`.
pub(super) fn node(actions: Value, next: &str) -> Value {
    json!({"type": "action", "actions": actions, "on_success": next, "on_failure": "failed"})
}

/// A run whose first state is the graph.
fn enter() -> Scene {
    let mut first = first();
    if let Event::RunStarted(started) = &mut first.event {
        started.entry = state("flow.yaml");
    }
    Scene { run: begin(&first).expect("a start").0 }
}

struct Play<'stage> {
    stage: &'stage Stage,
    program: &'stage Program,
    around: &'stage Around,
    scene: Scene,
    heard: VecDeque<Heard>,
    log: Log,
    last: Option<State>,
    dies_at: usize,
}

impl Play<'_> {
    fn step(&mut self, agent: &Agent) {
        if let Some(asked) = &agent.asked {
            let Some(Heard::Answered(given)) = self.heard.pop_front() else {
                panic!("nobody answers {asked:?}")
            };
            let node = &asked.question.node;
            let event = answer(&self.scene.run, &Given::to(node, &given.raw)).expect("an answer");
            self.scene.happens(event);
        } else if let Some(child) = &agent.awaits {
            match self.heard.pop_front() {
                Some(Heard::Done(value)) => {
                    let payload = value.as_str().expect("an agent's result is a text");
                    self.scene.take(child.as_str(), result(payload));
                }
                Some(Heard::Failed(_)) => {
                    let event = self.scene.end_badly(child.as_str());
                    self.scene.happens(Event::AgentFailed(event));
                }
                other => panic!("{other:?} is not the end of an agent"),
            }
        } else {
            self.walk(agent);
        }
    }

    fn walk(&mut self, agent: &Agent) {
        let mut told = match &agent.task {
            Some(task) => Some(self.heard.front().cloned().unwrap_or_else(|| panic!("{task:?}"))),
            None => agent.heard.as_deref().cloned(),
        };
        let mut machine = match &agent.graph {
            Some(memory) => Machine::go_on(self.program, self.around, State::clone(&memory.state)),
            None => Machine::begin(self.program, self.around),
        };
        let then = loop {
            self.log.calls += 1;
            if self.log.calls == self.dies_at {
                self.scene.run = through_the_journal(&self.scene.run);
                return;
            }
            let operation = match machine.next(told.take(), NOW) {
                Need::Record(then) => break then,
                Need::Operation(operation) => operation,
            };
            if operation.class() != Class::Read && !machine.is_recorded() {
                break Then::Operation(operation.name());
            }
            told = Some(match (self.stage.world)(&operation) {
                Ok(value) => Heard::Done(value),
                Err(why) => Heard::Failed(why),
            });
            self.log.operations.push(operation);
        };
        if agent.task.is_some() {
            self.heard.pop_front();
        }
        self.log.wanted.push(then.clone());
        let walk = Judgement::Walked(Box::new(machine.finish(then)));
        let report = Report { judgement: walk, ..Report::empty(agent.turn_id()) };
        let session = session(self.scene.next());
        let chosen = Chosen { now: NOW, session, ready: None, chance: 0.5 };
        for event in decide(&self.scene.run, &report, chosen) {
            if let Event::GraphWalked(walked) = &event {
                self.log.records.push((**walked).clone());
            }
            self.scene.happens(event);
            let memory = self.scene.run.agents.get(&AgentId::main());
            let state = memory.and_then(|agent| Some(State::clone(&agent.graph.as_ref()?.state)));
            self.last = state.or(self.last.take());
        }
    }

    fn over(self) -> (Played, Log) {
        let visits = || self.log.records.iter().flat_map(|record| &record.visits);
        let ended = self.scene.run.finished.iter().find(|one| one.id == AgentId::main());
        let played = Played {
            visits: visits()
                .map(|visit| (visit.node.to_string(), visit.outcome.to_string()))
                .collect(),
            errors: visits().filter_map(|visit| visit.error.clone()).collect(),
            changes: all(&self.log, |record| &record.changes),
            shown: all(&self.log, |record| &record.shown),
            state: self.last.expect("it was in the graph"),
            ending: ended.expect("it has ended").ending.clone(),
        };
        (played, self.log)
    }
}

fn all<T: Clone>(log: &Log, of: impl Fn(&GraphWalked) -> &Vec<T>) -> Vec<T> {
    log.records.iter().flat_map(|record| of(record).clone()).collect()
}

fn through_the_journal(run: &Run) -> Run {
    let text = serde_json::to_string(run).expect("JSON");
    let read: Run = serde_json::from_str(&text).expect("a run");
    assert_eq!(read, *run);
    read
}

impl Played {
    /// The value at a path of the state; null if there is none.
    pub(super) fn at(&self, path: &str) -> Value {
        let fields = Value::Object(self.state.fields.clone());
        fields.pointer(&format!("/{}", path.replace('.', "/"))).cloned().unwrap_or_default()
    }

    /// What the graph gave back.
    #[track_caller]
    pub(super) fn payload(&self) -> Value {
        match &self.ending {
            Ending::Result(payload) => serde_json::from_str(payload).expect("JSON"),
            Ending::Error(error) => panic!("it failed: {error}"),
        }
    }

    /// Why it failed.
    #[track_caller]
    pub(super) fn error(&self) -> &str {
        match &self.ending {
            Ending::Error(error) => error,
            Ending::Result(payload) => panic!("it ended well: {payload}"),
        }
    }

    /// The nodes and how they came out, as `node outcome`.
    pub(super) fn way(&self) -> Vec<String> {
        self.visits.iter().map(|(node, outcome)| format!("{node} {outcome}")).collect()
    }

    /// Why its only node that failed did.
    #[track_caller]
    pub(super) fn failure(&self) -> &str {
        assert_eq!(self.errors.len(), 1, "{self:#?}");
        &self.errors[0]
    }
}

/// A world in which every operation that changes something comes to the same when it is done again.
pub(super) fn converging() -> impl Fn(&Operation) -> Done {
    let files: RefCell<BTreeMap<String, String>> = RefCell::default();
    move |operation| match operation {
        Operation::WriteFile { path, content } => {
            files.borrow_mut().insert(path.clone(), content.clone());
            Ok(Value::Null)
        }
        Operation::ReadFile { path } => match files.borrow().get(path) {
            Some(text) => Ok(text.as_str().into()),
            None => Err(format!("there is no {path}")),
        },
        Operation::FileExists { path } => Ok(files.borrow().contains_key(path).into()),
        Operation::WebFetch { url, .. } => {
            Ok(json!({"status": 200, "content": format!("the page {url}"), "url": url}))
        }
        Operation::GetSha { repo_path } => Ok(format!("sha of {repo_path}").into()),
        other => Err(format!("{} is out of order", other.name())),
    }
}
