//! Plays a program in a test: the run is a real one, the test is the world and the roles.

mod facts;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use serde_json::Value;

use super::super::{ProgramEnvironment, advance};
use crate::program::checked_program::Program;
use crate::program::read::read;
use raymond_model::activity::{Activity, ActivityResult};
use raymond_model::advance::AdvanceOutput;
use raymond_model::decide::{
    NondeterministicInputs, TurnJudgement, TurnReport, decide, program_started,
};
use raymond_model::event::ProgramStarted;
use raymond_model::fact::Fact;
use raymond_model::graph_execution::{ProgramExecution, RequestBody, RequestStatus};
use raymond_model::id::{AgentId, SessionId};
use raymond_model::policy::AcceptedTransition;
use raymond_model::run::AgentEnding;
use raymond_model::tests::scene::{self, goto};
use raymond_model::time::Timestamp;
use raymond_model::transition::Variables;
use raymond_model::turn::{FailureCause, TurnFailure};

/// A program that is played, up to where it blocks.
pub(super) struct Play {
    program: Program,
    pub(super) scene: scene::Scene,
    /// The facts that hold; the run knows those that its program can match.
    world: BTreeMap<(String, String), Fact>,
    /// The time in milliseconds.
    now: u64,
    /// The directories that are repositories.
    repositories: BTreeSet<String>,
    /// True if other runs always take a fact before this one.
    pub(super) too_late: bool,
    /// The error of every activity outside, if they fail.
    pub(super) fails_outside: Option<String>,
    /// The requests and their roles.
    pub(super) asked: Vec<String>,
    /// The messages and warnings for people.
    pub(super) shown: Vec<String>,
    /// The activities outside.
    pub(super) done: Vec<String>,
    /// The outcomes of its commands, in order.
    pub(super) outputs: VecDeque<Result<Value, String>>,
    /// The commands of bodies that do not end yet.
    pub(super) held: BTreeSet<String>,
}

impl Play {
    /// Begins with a program, and plays it until it blocks.
    pub(super) fn of(text: &str) -> Self {
        let mut play = Self::before(text);
        play.go();
        play
    }

    /// Creates a program that is not advanced yet; the run is `r`, the label `l`, and the context has `k`.
    pub(super) fn before(text: &str) -> Self {
        let schema = r#"{"type":"object","properties":{"verdict":{"type":"string"},"at":{"type":"object","properties":{"line":{"type":"integer"}}}}}"#;
        let files = BTreeMap::from(
            [("START.md", "x"), ("verdict.json", schema)]
                .map(|(name, text)| (name.to_owned(), text.to_owned())),
        );
        let reading = read("p.lisp", text, &files);
        let program = reading.program.unwrap_or_else(|| panic!("{:#?}", reading.diagnostics));
        let mut scene = scene::Scene::begin();
        scene.take("main", goto("p.lisp"));
        let definition = program.kept(scene::state("p.lisp"), None);
        let started = ProgramStarted {
            turn: scene.turn("main"),
            state: scene::state("p.lisp"),
            program: Arc::clone(&program.hash),
            name: program.name.to_string(),
            label: "l".into(),
            branch: None,
            context: Variables::from([("k".to_owned(), "v".to_owned())]),
            start: Arc::clone(&program.states[0].name),
        };
        for event in program_started(&scene.run, scene.agent("main"), definition, started) {
            scene.happens(event);
        }
        Self {
            program,
            scene,
            world: BTreeMap::new(),
            now: 1_000_000,
            repositories: BTreeSet::new(),
            too_late: false,
            fails_outside: None,
            asked: Vec::new(),
            shown: Vec::new(),
            done: Vec::new(),
            outputs: VecDeque::new(),
            held: BTreeSet::new(),
        }
    }

    /// Makes a directory a repository.
    pub(super) fn repository(mut self, directory: &str) -> Self {
        self.repositories.insert(directory.to_owned());
        self
    }

    pub(super) fn execution(&self) -> &ProgramExecution {
        self.scene.agent("main").program().expect("it has not ended")
    }

    /// Returns the description of its wait.
    #[track_caller]
    pub(super) fn awaiting(&self) -> &str {
        let Some(wait) = &self.execution().position.wait else {
            panic!("{:?}", self.execution().position)
        };
        &wait.awaiting
    }

    /// Returns the time until it continues in any case, in milliseconds from now.
    pub(super) fn due_in(&self) -> Option<u64> {
        let until = self.execution().position.wait.as_ref()?.until?;
        Some(until.since(Timestamp(self.now)))
    }

    /// Returns whether its wait may end by something from outside the run.
    pub(super) fn waits_for_outside(&self) -> bool {
        self.execution().position.wait.as_ref().is_some_and(|wait| wait.outside)
    }

    /// Returns its result; an error begins with the place.
    #[track_caller]
    pub(super) fn ended(&self) -> &str {
        let ended = self.scene.run.finished.iter().find(|ended| ended.id == AgentId::main());
        let Some(ended) = ended else { panic!("it waits for {}", self.awaiting()) };
        match &ended.ending {
            AgentEnding::Result(text) => text,
            AgentEnding::Error(text) => {
                text.strip_prefix("in p.lisp: ").expect("the agent's state")
            }
        }
    }

    pub(super) fn is_over(&self) -> bool {
        self.scene.run.finished.iter().any(|ended| ended.id == AgentId::main())
    }

    /// Returns the state in which it was completed.
    #[track_caller]
    pub(super) fn completed_in(&self) -> String {
        let outcome: Value = serde_json::from_str(self.ended()).expect("an outcome");
        assert_eq!(outcome["status"], "completed");
        outcome["state"].as_str().expect("a state").to_owned()
    }

    /// Lets time pass without advancing the program.
    pub(super) fn sleeps(&mut self, millis: u64) -> &mut Self {
        self.now += millis;
        self
    }

    /// Lets time pass, and advances the program.
    pub(super) fn after(&mut self, millis: u64) -> &mut Self {
        self.now += millis;
        self.go()
    }

    /// Lets a role answer its current request.
    pub(super) fn answers(&mut self, role: &str, text: &str) -> &mut Self {
        self.reports(role, TurnJudgement::Accepted(AcceptedTransition::plain_result(text)))
    }

    /// Lets a role fail for good.
    pub(super) fn fails(&mut self, role: &str, why: &str) -> &mut Self {
        self.reports(role, TurnJudgement::Failed(TurnFailure::new(FailureCause::Workflow, why)))
    }

    fn reports(&mut self, role: &str, judgement: TurnJudgement) -> &mut Self {
        let at = |agent: &&raymond_model::agent::Agent| {
            agent.mailbox().is_some_and(|service| service.role == role)
        };
        let agent = self.scene.run.agents.values().find(at).expect("such a role");
        let report = TurnReport { judgement, ..TurnReport::empty(agent.turn_id()) };
        for event in decide(&self.scene.run, &report, self.chosen()) {
            self.scene.happens(event);
        }
        self.go()
    }

    fn chosen(&self) -> NondeterministicInputs {
        let session = scene::session(self.scene.next());
        NondeterministicInputs { now: Timestamp(self.now), session, ready: None, chance: 0.5 }
    }

    /// Plays until it blocks or has ended.
    pub(super) fn go(&mut self) -> &mut Self {
        let commands = |due: &Activity| matches!(due, Activity::Commands(_));
        let mut fetched = self.program_activity().filter(commands).map(|due| self.fetch(due));
        for _ in 0..10_000 {
            let main = self.scene.run.agents.get(&AgentId::main());
            if main.is_none_or(|agent| agent.program().is_none()) {
                return self;
            }
            let is_asked = main.is_some_and(|agent| agent.question().is_some());
            if is_asked && self.due_in().is_none_or(|left| left > 0) {
                return self;
            }
            if !self.stretch(fetched.take()) {
                return self;
            }
            fetched = self.program_activity().map(|activity| self.fetch(activity));
        }
        panic!("it goes on for ever");
    }

    fn program_activity(&self) -> Option<Activity> {
        let agent = self.scene.run.agents.get(&AgentId::main())?;
        agent.program()?.position.activity.clone()
    }

    /// Advances once, and returns whether anything changed.
    fn stretch(&mut self, fetched: Option<Result<ActivityResult, String>>) -> bool {
        self.look_at_facts();
        let advance = advance(&self.environment(), fetched);
        for output in &advance.outputs {
            self.note(output);
        }
        let seq = self.scene.next();
        let advance = advance.with_sessions(|n| SessionId::new(&format!("r{seq}.{n}")));
        let turn = self.scene.agent("main").turn_id();
        let judgement = TurnJudgement::Advanced(Box::new(advance));
        let report = TurnReport { judgement, ..TurnReport::empty(turn) };
        let events = decide(&self.scene.run, &report, self.chosen());
        let went_on = !events.is_empty();
        for event in events {
            self.scene.happens(event);
        }
        went_on
    }

    fn environment(&self) -> ProgramEnvironment<'_> {
        let (run, agent) = (&self.scene.run, self.scene.agent("main"));
        ProgramEnvironment {
            program: &self.program,
            execution: self.execution(),
            facts: &run.facts,
            run: &run.workflow_id,
            file: &agent.current_state,
            folder: agent.folder(),
            step: agent.step,
            budget_left: run.budget_left(),
            path: "p.lisp",
            now: Timestamp(self.now),
        }
    }

    fn note(&mut self, command: &AdvanceOutput) {
        match command {
            AdvanceOutput::Request { role, body: RequestBody::Prompt(task), .. } => {
                self.asked.push(format!("{role}: {}", task.prompt));
            }
            AdvanceOutput::Request {
                role, body: RequestBody::Folder { start, input, .. }, ..
            } => {
                self.asked.push(format!("{role}: {start} {input}"));
            }
            AdvanceOutput::Shown(text) => self.shown.push(text.clone()),
            AdvanceOutput::Log { text, warning } => {
                self.shown.push(format!("{}{text}", if *warning { "warning: " } else { "" }));
            }
        }
    }

    /// Carries out an activity.
    fn fetch(&mut self, activity: Activity) -> Result<ActivityResult, String> {
        if let Some(why) = &self.fails_outside {
            return Err(why.clone());
        }
        Ok(match activity {
            Activity::Operation(operation) => return Err(format!("no {} here", operation.name())),
            Activity::Command(run) => {
                self.done.push(format!("run {} {:?}", run.command, run.arguments));
                return self.outputs.pop_front().expect("an output").map(ActivityResult::Value);
            }
            Activity::Commands(all) => super::parallel::outcomes(self, &all),
            Activity::StartWorkflow(start) => return super::starts::started(self, &start),
            Activity::Bases { directories, .. } => {
                let base = |at: String| {
                    let base = self.repositories.contains(&at).then(|| format!("c0 of {at:?}"));
                    (at, base)
                };
                ActivityResult::Bases(directories.into_iter().map(base).collect())
            }
            Activity::Changes { directory, base } => {
                ActivityResult::Changes(format!("{directory:?} since {base}"))
            }
            Activity::Assert { label, key, value } => {
                self.done.push(format!("assert {label} {key} {value}"));
                let before = self.world.get(&(label.clone(), key.clone())).cloned();
                self.assert(&label, &key, &value);
                match before.filter(|before| before.value != value) {
                    Some(before) => ActivityResult::Replaced(before, 0),
                    None => ActivityResult::Done,
                }
            }
            Activity::Retract { label, key } => {
                self.done.push(format!("retract {label} {key}"));
                self.world.remove(&(label, key));
                ActivityResult::Done
            }
            Activity::Claim { label, key, seq } => {
                let fact = self.scene.run.facts.get(&label, Some(&key));
                let fact = fact.filter(|fact| fact.seq == seq).expect("what it saw is there");
                self.world.remove(&(label.clone(), key.clone()));
                if self.too_late {
                    return Ok(ActivityResult::Claimed(None));
                }
                self.done.push(format!("take {label} {key}"));
                ActivityResult::Claimed(Some(fact))
            }
        })
    }

    /// Returns the status of a request.
    pub(super) fn response(&self, name: &str) -> &RequestStatus {
        &self.execution().requests[name].status
    }
}
