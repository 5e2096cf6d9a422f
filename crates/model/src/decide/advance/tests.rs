//! Decisions on states of another language than those of graphs and programs: its position is kept as it was written.

use serde_json::json;

use super::*;
use crate::agent::AgentExecution;
use crate::decide::{TurnJudgement, answer, decide};
use crate::graph_execution::{LanguagePosition, WaitResult};
use crate::question::{AnswerCommand, Question};
use crate::tests::scene::{Scene, goto, session};
use crate::time::Timestamp;

fn chosen() -> NondeterministicInputs {
    NondeterministicInputs { now: Timestamp(1), session: session(77), ready: None, chance: 0.5 }
}

fn position(line: u64) -> LanguagePosition {
    LanguagePosition { language: "steps".to_owned(), position: json!({ "line": line }) }
}

/// Advances `main` to a line; returns the events.
fn advance(scene: &mut Scene, line: u64, next: AdvanceNext) -> Vec<Event> {
    let judgement = TurnJudgement::Advanced(Box::new(Advance {
        outputs: vec![AdvanceOutput::Shown("a line".to_owned())],
        position: AdvancePosition::Other(Box::new(position(line))),
        next,
    }));
    let report = TurnReport { judgement, ..TurnReport::empty(scene.turn("main")) };
    let events = decide(&scene.run, &report, chosen());
    events.iter().cloned().for_each(|event| {
        scene.happens(event);
    });
    events
}

fn in_script() -> Scene {
    let mut scene = Scene::begin();
    scene.take("main", goto("B.sh"));
    scene
}

#[test]
fn position_of_other_language_is_kept_until_its_state_is_left() {
    let mut scene = in_script();
    let events = advance(&mut scene, 1, AdvanceNext::Action(NextAction::Walk));
    let [Event::LanguageAdvanced(recorded)] = events.as_slice() else { panic!("{events:?}") };
    assert_eq!((&recorded.next_action, recorded.shown.len()), (&NextAction::Walk, 1));
    let kept = serde_json::to_value(&scene.agent("main").execution).expect("JSON");
    assert_eq!(kept, json!({ "other": { "language": "steps", "position": { "line": 1 } } }));
    let execution: AgentExecution = serde_json::from_value(kept).expect("an execution");
    assert_eq!(execution, scene.agent("main").execution);
    scene.take("main", goto("A.md"));
    assert!(scene.agent("main").execution.is_prompts());
}

#[test]
fn other_language_is_given_answer_and_ends_with_result() {
    let mut scene = in_script();
    advance(&mut scene, 1, AdvanceNext::Action(NextAction::Walk));
    let question = Question {
        node: "B".to_owned(),
        text: "which?".to_owned(),
        header: None,
        options: Vec::new(),
        free: true,
    };
    advance(&mut scene, 2, AdvanceNext::Action(NextAction::Question(Box::new(question))));
    assert!(scene.agent("main").waits());
    scene.happens(answer(&scene.run, &AnswerCommand::to("B", "this")).expect("it is asked"));
    let result = scene.agent("main").wait_result();
    assert!(matches!(result, Some(WaitResult::Answered(given)) if given.raw == "this"));
    advance(&mut scene, 3, AdvanceNext::End { payload: "over".to_owned(), error: None });
    assert!(scene.run.agents.is_empty());
}
