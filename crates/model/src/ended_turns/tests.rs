//! Ended turns by hand.

use super::*;
use crate::event::TurnRejected;
use crate::retry::RetriedAgent;
use crate::tests::scene::{Scene, goto, session, tag};
use crate::time::Timestamp;
use crate::transition::TagName;

/// A scene whose records the fold sees.
struct Seen {
    scene: Scene,
    turns: EndedTurns,
}

impl Seen {
    fn begin() -> Self {
        Self { scene: Scene::begin(), turns: EndedTurns::default() }
    }

    fn happens(&mut self, event: Event) {
        let seq = self.scene.next();
        let record = Record {
            kept_session: None,
            seq,
            at: Timestamp(seq * 1000),
            folder: None,
            snapshot: None,
            placed: Vec::new(),
            event: event.clone(),
        };
        self.turns.see(&self.scene.run, &record);
        self.scene.happens(event);
    }

    fn takes(&mut self, id: &str, transition: crate::transition::Transition) {
        let step = self.scene.step(id, transition);
        self.happens(Event::StepFinished(step));
    }

    /// Returns the turns: name, state, visit and ending.
    fn finish(self) -> Vec<(String, String, u32, TurnEnding)> {
        let turns = self.turns.finish(&self.scene.run).into_iter();
        turns
            .map(|turn| (turn.id.stem(), turn.state.to_string(), turn.visit, turn.ending))
            .collect()
    }
}

#[test]
fn failed_turns_have_the_visit_of_the_turn_that_is_run_again() {
    let mut seen = Seen::begin();
    let failure = seen.scene.failure("main");
    seen.happens(Event::TurnFailed(failure));
    let rejected = TurnRejected {
        turn: seen.scene.turn("main"),
        state: seen.scene.agent("main").current_state.clone(),
        violation: String::new(),
        reminder: "r".to_owned(),
        cost: TurnCost { duration_ms: Some(1), ..TurnCost::default() },
        message: None,
    };
    seen.happens(Event::TurnRejected(rejected));
    seen.takes("main", goto("B.md"));
    let failed = TurnEnding::Failed { cause: FailureCause::Crash, message: "crashed".to_owned() };
    let turn = |name: &str, visit, ending: &TurnEnding| {
        (name.to_owned(), "A.md".to_owned(), visit, ending.clone())
    };
    let expected = [
        turn("main-1-0", 0, &failed),
        turn("main-1-1", 0, &TurnEnding::Replied),
        turn("main-1-2", 1, &TurnEnding::Replied),
    ];
    assert_eq!(seen.finish(), expected);
}

#[test]
fn turn_that_others_end_is_cut_and_failure_has_its_message() {
    let mut seen = Seen::begin();
    seen.takes("main", tag(TagName::Fork, "B.md", "W.md"));
    let mut failed = seen.scene.end_badly("main");
    failed.ends_run = true;
    failed.error = "in B.md: unusable (restarted 3 times within 10m)".to_owned();
    seen.happens(Event::AgentFailed(failed));
    let turns = seen.finish();
    let message = "unusable".to_owned();
    assert_eq!(turns[1].3, TurnEnding::AgentFailed { cause: FailureCause::Output, message });
    let child = ("main.1-1-0".to_owned(), "W.md".to_owned(), 0, TurnEnding::Cut);
    assert_eq!(turns[2..], [child]);
}

#[test]
fn turns_of_retried_step_are_marked_up_to_the_accepted_turn() {
    let mut seen = Seen::begin();
    seen.takes("main", goto("B.md"));
    let failure = seen.scene.failure("main");
    seen.happens(Event::TurnFailed(failure));
    let failed = seen.scene.end_badly("main");
    seen.happens(Event::AgentFailed(failed));
    let agents = vec![RetriedAgent { agent: AgentId::main(), session: session(9) }];
    seen.happens(Event::AgentsRetried { agents });
    seen.takes("main", goto("C.md"));
    let turns = seen.turns.finish(&seen.scene.run);
    let retried: Vec<(u64, bool)> =
        turns.iter().map(|turn| (turn.id.step, turn.is_retried)).collect();
    assert_eq!(retried, [(1, false), (2, true), (2, true), (2, false)]);
}
