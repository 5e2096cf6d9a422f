//! Steps with a judge: an evaluator, a plug-in.

use super::{TracedStory, assert_attributes};
use crate::domain::event::{Event, StepFinished, TransitionProposed};
use crate::domain::money::Usd;
use crate::domain::tests::scene::{goto, result, session, state};
use crate::domain::transition::OverruledTransition;
use crate::domain::turn::TurnCost;

#[test]
fn evaluator_has_its_own_turn_span_within_the_step() {
    let mut story = TracedStory::begin();
    let proposed = TransitionProposed {
        turn: story.scene.turn("main"),
        state: state("A.md"),
        transition: goto("B.md"),
        implicit: false,
        output: "secret".to_owned(),
        evaluator: state("CHECK.md"),
        cost: TurnCost {
            amount: Usd::from_dollars(0.25),
            duration_ms: Some(100),
            ..TurnCost::default()
        },
        session_id: session(1),
        message: None,
        shown: Vec::new(),
        new_session: session(2),
    };
    story.happens(Event::TransitionProposed(Box::new(proposed)));
    let by = "the evaluator CHECK.md".to_owned();
    let overruled =
        OverruledTransition { asked: Some(goto("B.md")), by, reason: "secret".to_owned() };
    let step = StepFinished {
        evaluator: Some(state("CHECK.md")),
        overruled: Some(Box::new(overruled)),
        ..story.scene.step("main", goto("C.md"))
    };
    story.happens(Event::StepFinished(step));
    assert_eq!(story.names(), ["chat 1900..2000", "chat 3000..3000", "step A 1000..3000"]);
    assert_attributes(&story.spans[0], &[("gen_ai.conversation.id", "s1"), ("raymond.turn", "0")]);
    assert_attributes(
        &story.spans[1],
        &[
            ("gen_ai.conversation.id", "s2"),
            ("raymond.turn", "1"),
            ("raymond.evaluator", "CHECK.md"),
        ],
    );
    assert_attributes(
        story.span("step A"),
        &[
            ("raymond.turns", "2"),
            ("raymond.cost_usd", "0.26"),
            ("raymond.transition.target", "C.md"),
            ("raymond.overruled_by", "the evaluator CHECK.md"),
        ],
    );
    assert!(!format!("{:?}", story.spans).contains("secret"));
}

#[test]
fn step_decided_by_plugin_has_no_turn_span() {
    let mut story = TracedStory::begin();
    let step = StepFinished { without_turn: true, ..story.scene.step("main", result("")) };
    story.happens(Event::StepFinished(step));
    assert_eq!(story.names()[0], "step A 1000..2000");
}
