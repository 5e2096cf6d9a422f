//! Programs that advance: roles that are asked, answer, fail and end, and facts that wake them.

use std::sync::Arc;

use super::*;
use crate::advance::{Advance, AdvanceNext, AdvanceOutput};
use crate::apply::Effect;
use crate::event::{
    AdvancePosition, NextAction, ProgramProgress, ProgramStarted, ProgramStatus, RoleResponded,
};
use crate::fact::{Fact, FactChange};
use crate::graph_execution::{
    OutputFormat, ProgramPosition, ProgramSource, ProgramWait, PromptTask, RequestBody,
    RequestStatus,
};
use crate::id::AgentId;
use crate::money::Usd;
use crate::run::{AgentEnding, RunStatus};
use crate::session::SessionOrigin;
use crate::transition::Variables;
use crate::turn::TurnCost;
use crate::turn_options::TurnOptions;

const FILE: &str = "review.lisp";

/// Returns the events with which `main` begins its program.
fn beginning(scene: &Scene) -> Vec<Event> {
    let definition = ProgramSource {
        file: state(FILE),
        folder: None,
        name: "review".into(),
        program: "sha256:1".into(),
        text: "(workflow review …)".into(),
        labels: vec!["plan/ready".into()],
    };
    let started = ProgramStarted {
        turn: scene.turn("main"),
        state: state(FILE),
        program: "sha256:1".into(),
        name: "review".into(),
        label: "r".into(),
        branch: None,
        context: Variables::new(),
        start: Arc::from("start"),
    };
    program_started(&scene.run, scene.agent("main"), definition, started)
}

/// Creates a run whose agent `main` runs a program.
fn begin() -> Scene {
    let mut scene = Scene::begin();
    scene.take("main", goto(FILE));
    let events = beginning(&scene);
    assert_eq!(events.len(), 2, "the text is kept, then the execution begins");
    all(&mut scene, events);
    scene
}

fn all(scene: &mut Scene, events: Vec<Event>) -> Vec<Effect> {
    events.into_iter().flat_map(|event| scene.happens(event)).collect()
}

fn advance(outputs: Vec<AdvanceOutput>, next: AdvanceNext) -> Advance {
    let wait = (next == AdvanceNext::Action(NextAction::Wait)).then(|| ProgramWait {
        awaiting: "(signal plan/ready)".into(),
        since: Timestamp(0),
        until: None,
        outside: true,
    });
    let current = Arc::from("start");
    let position = ProgramPosition { current, wait, ..ProgramPosition::default() };
    let status = match &next {
        AdvanceNext::Action(NextAction::Wait) => ProgramStatus::Waiting,
        AdvanceNext::End { error: None, .. } => ProgramStatus::Completed,
        _ => ProgramStatus::Failed,
    };
    let progress = ProgramProgress::at(position, status);
    Advance { outputs, position: AdvancePosition::Program(Box::new(progress)), next }
}

fn request(handle: &str, name: &str) -> AdvanceOutput {
    let task = PromptTask {
        prompt: format!("{name}?"),
        model: None,
        options: TurnOptions::default(),
        output: None,
        contract: OutputFormat::Reply,
        expect: Vec::new(),
        name: state(&format!("{FILE}#{handle}")),
    };
    request_for(handle, name, RequestBody::Prompt(Box::new(task)))
}

fn request_for(handle: &str, name: &str, body: RequestBody) -> AdvanceOutput {
    let (role, handle, name) = (handle.into(), handle.into(), name.into());
    AdvanceOutput::Request { role, handle, cwd: None, name, body, session: None }
}

/// Advances the program of `main`.
fn goes_on(scene: &mut Scene, commands: Vec<AdvanceOutput>, then: AdvanceNext) -> Vec<Effect> {
    let advance = advance(commands, then).with_sessions(|n| SessionId::new(&format!("role{n}")));
    let events = decided(scene, advance);
    all(scene, events)
}

/// Returns the events of an advance of the program of `main`.
fn decided(scene: &Scene, advance: Advance) -> Vec<Event> {
    let judgement = TurnJudgement::Advanced(Box::new(advance));
    let report = TurnReport { judgement, ..TurnReport::empty(scene.turn("main")) };
    decide(&scene.run, &report, chosen(scene))
}

fn chosen(scene: &Scene) -> NondeterministicInputs {
    NondeterministicInputs {
        now: Timestamp(scene.next() * 1000),
        session: session(scene.next()),
        ready: None,
        chance: 0.5,
    }
}

/// Ends a role's turn with this reply.
fn answers(scene: &mut Scene, role: &str, text: &str) -> Vec<Effect> {
    let report = TurnReport {
        cost: TurnCost { amount: Usd::from_dollars(0.25), ..TurnCost::default() },
        message: Some(MessageId::new(&format!("m-{text}"))),
        judgement: TurnJudgement::Accepted(AcceptedTransition::plain_result(text)),
        ..TurnReport::empty(scene.turn(role))
    };
    let events = decide(&scene.run, &report, chosen(scene));
    assert!(matches!(events[..], [Event::RoleResponded(_)]), "{events:?}");
    all(scene, events)
}

fn status(scene: &Scene, name: &str) -> RequestStatus {
    let execution = scene.agent("main").program().expect("an execution");
    execution.requests[name].status.clone()
}

fn proceeds(effects: &[Effect]) -> Vec<&str> {
    let agents = effects.iter().filter_map(|effect| match effect {
        Effect::Proceed(agent) => Some(agent.as_str()),
        _ => None,
    });
    agents.collect()
}

#[test]
fn role_answers_requests_in_order_in_one_session() {
    let mut scene = begin();
    let commands = vec![request("a", "first"), request("b", "other"), request("a", "second")];
    let effects = goes_on(&mut scene, commands, AdvanceNext::Action(NextAction::Wait));
    assert_eq!(proceeds(&effects), ["main.1", "main.2", "main"]);
    let asked = scene.agent("main.1").task().expect("a task").prompt.clone();
    assert_eq!(
        (asked.as_str(), scene.agent("main.1").session.id.to_string()),
        ("first?", "role0".into())
    );
    let effects = answers(&mut scene, "main.1", "one");
    assert_eq!(proceeds(&effects), ["main", "main.1"]);
    assert_eq!(status(&scene, "first"), RequestStatus::Answer("one".into()));
    assert_eq!(status(&scene, "second"), RequestStatus::Pending);
    let role = scene.agent("main.1");
    assert_eq!(role.task().expect("the next").prompt, "second?");
    assert_eq!(
        (role.session.id.to_string(), &role.session.origin),
        ("role0".into(), &SessionOrigin::Resumed)
    );
    assert_eq!(role.cost_usd, Usd::from_dollars(0.25));
    answers(&mut scene, "main.1", "two");
    assert!(scene.agent("main.1").waits() && !scene.agent("main.2").waits());
    let ids: Vec<String> = scene
        .agent("main")
        .program()
        .iter()
        .flat_map(|execution| {
            execution
                .requests
                .iter()
                .map(|(name, sent)| format!("{name}/{}", sent.number))
                .collect::<Vec<_>>()
        })
        .collect();
    assert_eq!(ids, ["first/1", "other/1", "second/1"]);
}

#[test]
fn latest_request_with_same_name_determines_answer() {
    let mut scene = begin();
    goes_on(
        &mut scene,
        vec![request("a", "ask"), request("a", "ask")],
        AdvanceNext::Action(NextAction::Wait),
    );
    answers(&mut scene, "main.1", "early");
    assert_eq!(status(&scene, "ask"), RequestStatus::Pending);
    answers(&mut scene, "main.1", "late");
    assert_eq!(status(&scene, "ask"), RequestStatus::Answer("late".into()));
    let execution = scene.agent("main").program().expect("an execution");
    assert_eq!(&*execution.answers["a"], "late");
}

#[test]
fn unchanged_program_position_leaves_no_record() {
    let mut scene = begin();
    goes_on(&mut scene, Vec::new(), AdvanceNext::Action(NextAction::Wait));
    let still = advance(Vec::new(), AdvanceNext::Action(NextAction::Wait));
    assert_eq!(decided(&scene, still), []);
}

#[test]
fn failed_role_fails_its_requests_and_wakes_program() {
    let mut scene = begin();
    goes_on(
        &mut scene,
        vec![request("a", "first"), request("a", "second")],
        AdvanceNext::Action(NextAction::Wait),
    );
    let effects = scene.happens(Event::AgentFailed(scene.end_badly("main.1")));
    assert!(proceeds(&effects).contains(&"main"), "{effects:?}");
    for name in ["first", "second"] {
        assert_eq!(status(&scene, name), RequestStatus::Failed("unusable".into()));
    }
    let effects =
        goes_on(&mut scene, vec![request("a", "first")], AdvanceNext::Action(NextAction::Wait));
    assert_eq!(proceeds(&effects), ["main.2", "main"], "another agent is asked then");
    answers(&mut scene, "main.2", "well");
    goes_on(&mut scene, Vec::new(), AdvanceNext::End { payload: "done".into(), error: None });
    let dismissed = role_stopped(scene.agent("main.2")).expect("it is over");
    scene.happens(dismissed);
    assert_eq!(scene.run.status, RunStatus::Completed, "the failure was the program's matter");
}

#[test]
fn roles_end_after_program_end_and_last_request() {
    let mut scene = begin();
    goes_on(
        &mut scene,
        vec![request("a", "one"), request("b", "two")],
        AdvanceNext::Action(NextAction::Wait),
    );
    answers(&mut scene, "main.1", "well");
    let end = AdvanceNext::End { payload: "done".into(), error: None };
    let effects = goes_on(&mut scene, Vec::new(), end);
    assert!(proceeds(&effects).contains(&"main.1"));
    assert!(!scene.run.agents.contains_key(&agent_id("main")));
    assert_eq!(role_stopped(scene.agent("main.2")), None, "it is asked something still");
    let over = role_stopped(scene.agent("main.1")).expect("it is over");
    scene.happens(over);
    answers(&mut scene, "main.2", "late");
    let over = role_stopped(scene.agent("main.2")).expect("it is over now");
    let effects = scene.happens(over);
    assert_eq!(effects.last(), Some(&Effect::End));
    let ends: Vec<&AgentEnding> = scene.run.finished.iter().map(|ended| &ended.ending).collect();
    let expected = ["done", "answered 1 request as a", "answered 1 request as b"]
        .map(|text| AgentEnding::Result(text.to_owned()));
    assert_eq!(ends, expected.iter().collect::<Vec<_>>());
    assert_eq!(scene.run.status, RunStatus::Completed);
}

#[test]
fn failed_program_fails_agent_and_drops_pending_requests() {
    let mut scene = begin();
    goes_on(
        &mut scene,
        vec![request("a", "one"), request("a", "two")],
        AdvanceNext::Action(NextAction::Wait),
    );
    let end = AdvanceNext::End { payload: "{}".into(), error: Some("review.lisp:3:5: why".into()) };
    goes_on(&mut scene, Vec::new(), end);
    let ended = scene.run.finished.first().expect("main");
    let expected = AgentEnding::Error("in review.lisp: review.lisp:3:5: why".into());
    assert_eq!((&ended.ending, ended.cause), (&expected, Some(FailureCause::Ending)));
    answers(&mut scene, "main.1", "late");
    let over = role_stopped(scene.agent("main.1")).expect("the second was never asked");
    scene.happens(over);
    assert_eq!(scene.run.status, RunStatus::Failed);
}

#[test]
fn program_outcome_is_returned_to_calling_prompt() {
    for error in [None, Some("why".to_owned())] {
        let mut scene = Scene::begin();
        let call = crate::tests::scene::tag(crate::transition::TagName::Call, "NEXT.md", FILE);
        scene.take("main", call);
        let events = beginning(&scene);
        all(&mut scene, events);
        let end = AdvanceNext::End { payload: "outcome".into(), error };
        goes_on(&mut scene, Vec::new(), end);
        let main = scene.agent("main");
        assert_eq!((main.current_state.as_str(), main.program().is_some()), ("NEXT.md", false));
        assert_eq!(main.variables.get("result").map(String::as_str), Some("outcome"));
    }
}

#[test]
fn fact_wakes_only_agents_waiting_for_its_label() {
    let mut scene = begin();
    goes_on(&mut scene, Vec::new(), AdvanceNext::Action(NextAction::Wait));
    let fact = |label: &str| {
        let (key, value, source) = ("r".into(), String::new(), "someone".into());
        let (label, at) = (label.into(), Timestamp(0));
        FactChange::Asserted(Fact { label, key, value, seq: 1, source, at })
    };
    let seen = |label| Event::FactsSeen { changes: vec![fact(label)] };
    assert!(proceeds(&scene.happens(seen("other"))).is_empty());
    assert_eq!(proceeds(&scene.happens(seen("plan/ready"))), ["main"]);
    assert!(scene.run.facts.get("plan/ready", Some("r")).is_some());
}

#[test]
fn waiting_run_names_awaited_signal() {
    let mut scene = begin();
    goes_on(&mut scene, Vec::new(), AdvanceNext::Action(NextAction::Wait));
    let pause = scene.run.waiting().expect("all wait");
    assert_eq!(pause.to_string(), "it waits for (signal plan/ready)");
    goes_on(&mut scene, vec![request("a", "one")], AdvanceNext::Action(NextAction::Wait));
    assert_eq!(scene.run.waiting(), None, "a role is at work");
}

#[test]
fn role_delegates_folder_request_to_child_agent() {
    let mut scene = begin();
    let body = RequestBody::Folder { folder: None, start: state("START.md"), input: "go".into() };
    goes_on(&mut scene, vec![request_for("a", "run", body)], AdvanceNext::Action(NextAction::Wait));
    assert_eq!(delegated_answer(scene.agent("main.1")), None);
    let beginning =
        role_delegated(scene.agent("main.1"), AgentOptions::default(), session(77)).expect("begun");
    let effects = scene.happens(beginning);
    assert_eq!(proceeds(&effects), ["main.1.1"]);
    assert_eq!(
        role_delegated(scene.agent("main.1"), AgentOptions::default(), session(78)),
        None,
        "once"
    );
    let child = scene.agent("main.1.1");
    assert_eq!(
        (child.current_state.as_str(), child.variables["input"].as_str()),
        ("START.md", "go")
    );
    scene.take("main.1.1", result("made"));
    let answer = delegated_answer(scene.agent("main.1")).expect("it has ended");
    let Event::RoleResponded(event) = &answer else { panic!("{answer:?}") };
    let RoleResponded { without_turn, cost, .. } = &**event;
    assert_eq!((*without_turn, cost.amount), (true, Usd::ZERO));
    scene.happens(answer);
    assert_eq!(status(&scene, "run"), RequestStatus::Answer("made".into()));
    let idle: Vec<AgentId> = scene
        .run
        .agents
        .values()
        .filter(|waiting| waiting.waits())
        .map(|waiting| waiting.id.clone())
        .collect();
    assert!(idle.contains(&agent_id("main.1")), "{idle:?}");
}

#[test]
fn transition_from_role_fails_its_agent() {
    let mut scene = begin();
    goes_on(&mut scene, vec![request("a", "one")], AdvanceNext::Action(NextAction::Wait));
    let transition = goto("A.md");
    let accepted = AcceptedTransition { transition, implicit: false, overruled: None };
    let report = TurnReport {
        judgement: TurnJudgement::Accepted(accepted),
        ..TurnReport::empty(scene.turn("main.1"))
    };
    let events = decide(&scene.run, &report, chosen(&scene));
    let [Event::AgentFailed(failed)] = &events[..] else { panic!("{events:?}") };
    assert!(failed.error.contains("answers, it takes no transition"), "{}", failed.error);
}
