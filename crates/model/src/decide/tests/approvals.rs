//! Tool calls that need approval: asked once, answered once, and what follows for the turn.

use serde_json::json;

use super::*;
use crate::apply::Effect;
use crate::approval::{ApprovalRequest, ApprovalRule, ApprovalVerdict};
use crate::consult::{AllowSpan, ConsultVerdict, PluginVerdict};
use crate::decide::advised_answer;
use crate::decide::approval_asked;
use crate::event::TurnFailed;
use crate::id::AgentId;
use crate::question::AnswerCommand;
use crate::session::SessionOrigin;
use crate::turn::SuspendedTurn;

fn request(call: &str) -> ApprovalRequest {
    let input = json!({ "command": "touch a" });
    let rule = ApprovalRule { tool: "Bash".into(), content: Some("touch a *".into()) };
    ApprovalRequest::new(call.to_owned(), "Bash".to_owned(), &input, "sum".into(), vec![rule])
}

fn asks(scene: &mut Scene, call: &str) -> Vec<Effect> {
    let turn = scene.turn("main");
    let event = approval_asked(&scene.run, &turn, &request(call)).expect("it is asked");
    scene.happens(event)
}

fn answers(scene: &mut Scene, name: &str, text: &str) -> Vec<Effect> {
    let event = answer(&scene.run, &AnswerCommand::to(name, text)).expect("an answer");
    scene.happens(event)
}

/// Ends the turn while calls have no answer.
fn suspend(scene: &mut Scene, calls: &[&str]) -> Vec<Effect> {
    let suspended = SuspendedTurn {
        calls: calls.iter().map(|&call| call.to_owned()).collect(),
        unsure: false,
        message: Some(crate::id::MessageId::new("m")),
    };
    let failure = TurnFailure {
        suspended: Some(Box::new(suspended)),
        ..TurnFailure::new(FailureCause::Unapproved, "")
    };
    let report = TurnReport::failed(scene.turn("main"), failure);
    let mut events = decide(&scene.run, &report, chosen());
    assert_eq!(events.len(), 1, "{events:?}");
    scene.happens(events.remove(0))
}

fn reported(call: &str, verdict: Option<ApprovalVerdict>) -> Vec<Effect> {
    let agent = scene_agent();
    vec![Effect::TellApproval { agent, call: call.to_owned(), verdict }]
}

fn scene_agent() -> AgentId {
    AgentId::main()
}

#[test]
fn call_is_asked_once_and_answered_once_while_its_turn_runs() {
    let mut scene = Scene::begin();
    assert_eq!(asks(&mut scene, "t1"), reported("t1", None));
    let turn = scene.turn("main");
    assert_eq!(approval_asked(&scene.run, &turn, &request("t1")), None, "it was asked before");
    let later = TurnId { turn: 1, ..turn };
    assert_eq!(approval_asked(&scene.run, &later, &request("t2")), None, "its turn is not due");
    assert!(!scene.agent("main").waits(), "its turn runs");

    let wrong = answer(&scene.run, &AnswerCommand::to("a1", "alow")).expect_err("no verdict");
    assert!(wrong.to_string().contains("use one of allow, "), "{wrong}");
    let unknown = answer(&scene.run, &AnswerCommand::to("a2", "allow")).expect_err("not asked");
    assert!(unknown.to_string().contains("open questions: main/a1"), "{unknown}");
    let given = AnswerCommand::to("a1", "allow");
    let event = answer(&scene.run, &given).expect("an answer");
    assert_eq!(scene.happens(event.clone()), reported("t1", Some(ApprovalVerdict::Allow)));
    assert!(scene.offer(event).is_err() && answer(&scene.run, &given).is_err());
    assert!(scene.run.approval_rules.is_empty());
}

#[test]
fn rules_come_with_an_answer_and_are_of_the_state_or_the_run() {
    let mut scene = Scene::begin();
    asks(&mut scene, "t1");
    answers(&mut scene, "a1", "allow-always");
    asks(&mut scene, "t2");
    answers(&mut scene, "a2", "allow-always-in-run");
    let granted = |scene: &Scene, prompt: &str| -> Vec<u32> {
        let prompt = state(prompt);
        let rules = scene.run.approval_rules.iter().filter(|granted| granted.is_for(&prompt));
        rules.map(|granted| granted.approval).collect()
    };
    assert_eq!(granted(&scene, "A.md"), [1, 2]);
    assert_eq!(granted(&scene, "B.md"), [2]);
    let rule = &scene.run.approval_rules[0].rule;
    assert_eq!(rule.to_string(), "Bash(touch a *)");
}

#[test]
fn suspended_turn_waits_and_goes_on_in_its_session_with_the_answer() {
    let mut scene = Scene::begin();
    asks(&mut scene, "t1");
    assert_eq!(suspend(&mut scene, &["t1"]), [Effect::AwaitApproval(scene_agent())]);
    let agent = scene.agent("main");
    assert!(agent.waits() && agent.reminder.is_none());
    assert_eq!((agent.turn, &agent.session.origin), (1, &SessionOrigin::Resumed));
    let pause = scene.run.waiting().expect("everything waits");
    assert_eq!(pause.to_string(), "a question waits for an answer: Bash: touch a");

    assert_eq!(answers(&mut scene, "a1", "allow"), [Effect::Proceed(scene_agent())]);
    let agent = scene.agent("main");
    assert!(!agent.waits() && scene.run.waiting().is_none());
    let prompt = agent.reminder.as_deref().expect("a prompt");
    assert!(prompt.contains("- Bash: touch a: allowed; it has not run"), "{prompt}");
    assert_eq!(asks(&mut scene, "t2"), reported("t2", Some(ApprovalVerdict::Allow)));
    assert_eq!(asks(&mut scene, "t3"), reported("t3", None), "the answer is used up");
}

#[test]
fn undelivered_answer_goes_into_the_next_turn() {
    let mut scene = Scene::begin();
    asks(&mut scene, "t1");
    answers(&mut scene, "a1", "deny: no");
    assert_eq!(suspend(&mut scene, &["t1"]), [Effect::Proceed(scene_agent())]);
    let prompt = scene.agent("main").reminder.clone().expect("a prompt");
    assert!(prompt.contains("Bash: touch a: denied: no"), "{prompt}");
    assert_eq!(asks(&mut scene, "t2"), reported("t2", None));
}

#[test]
fn next_turn_waits_for_all_answers() {
    let mut scene = Scene::begin();
    asks(&mut scene, "t1");
    asks(&mut scene, "t2");
    suspend(&mut scene, &["t1", "t2"]);
    assert_eq!(answers(&mut scene, "a2", "allow"), []);
    assert!(scene.agent("main").waits());
    assert_eq!(answers(&mut scene, "a1", "deny"), [Effect::Proceed(scene_agent())]);
}

#[test]
fn allowed_call_of_a_lost_turn_is_reported_and_not_granted() {
    let mut scene = Scene::begin();
    asks(&mut scene, "t1");
    answers(&mut scene, "a1", "allow");
    let failed = TurnFailed { cause: FailureCause::Lost, ..scene.failure("main") };
    scene.happens(Event::TurnFailed(failed));
    let note = scene.agent("main").approvals.uncertainty_note().expect("a note");
    assert!(note.contains("Bash: touch a"), "{note}");
    assert_eq!(asks(&mut scene, "t2"), reported("t2", None));
    scene.take("main", goto("B.md"));
    assert!(scene.agent("main").approvals.is_empty(), "they are of one step");
}

#[test]
fn plug_in_answers_by_its_verdict_and_a_denial_counts_first() {
    let verdict = |by: &str, verdict| PluginVerdict { by: by.to_owned(), verdict };
    let allow = |span| ConsultVerdict::Allow { span };
    let deny = || ConsultVerdict::Deny { reason: "no".to_owned() };
    let mut scene = Scene::begin();
    asks(&mut scene, "t1");
    let turn = scene.turn("main");
    let answered = |scene: &Scene, verdicts: &[PluginVerdict]| match advised_answer(
        &scene.run, &turn, "t1", verdicts,
    ) {
        Some(Event::ApprovalAnswered(event)) => Some((event.by, event.verdict.phrase())),
        _ => None,
    };
    assert_eq!(answered(&scene, &[verdict("a", ConsultVerdict::Proceed)]), None);
    let both = [verdict("a", allow(AllowSpan::Once)), verdict("b", deny())];
    assert_eq!(answered(&scene, &both), Some((Some("b".into()), "denied: no".into())));
    let always = answered(&scene, &[verdict("a", allow(AllowSpan::State))]);
    let phrase = "allowed, and from now on Bash(touch a *) in A.md";
    assert_eq!(always, Some((Some("a".into()), phrase.into())));
    answers(&mut scene, "a1", "allow");
    assert_eq!(answered(&scene, &both), None, "a person was first");
}
