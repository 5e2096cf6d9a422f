//! The ledger by tables, and a check that its sums always equal the run's.

use proptest::prelude::*;

use super::*;
use crate::apply::apply;
use crate::event::{
    AgentFailed, Record, StepFinished, TransitionProposed, TurnFailed, TurnRejected,
};
use crate::tests::plausible::{Journal, pushes};
use crate::tests::scene::{CENT, Scene, goto, session, state, tag};
use crate::time::Timestamp;
use crate::transition::TagName;
use crate::turn::TurnCost;
use crate::usage::UsageByModel;

/// Applies events to a run, and counts them in a ledger.
fn ledger(scene: &mut Scene, events: impl IntoIterator<Item = Event>) -> Ledger {
    let mut ledger = Ledger::default();
    for event in events {
        ledger.count(&scene.run, &event);
        scene.happens(event);
    }
    ledger
}

fn used(model: &str, output_tokens: u64, dollars: f64) -> (String, ModelUse) {
    let cost_usd = Usd::from_dollars(dollars);
    (model.to_owned(), ModelUse { output_tokens, cost_usd, ..ModelUse::default() })
}

fn dollars(line: &LedgerLine) -> String {
    line.used.cost_usd.to_string()
}

#[test]
fn turns_are_counted_by_state_agent_and_model() {
    let mut scene = Scene::begin();
    let mut step = scene.step("main", tag(TagName::Fork, "N.md", "W.md"));
    step.cost.usage = UsageByModel::from_iter([used("opus", 10, 0.004), used("haiku", 5, 0.006)]);
    let mut book = ledger(&mut scene, [Event::StepFinished(step)]);
    let more = [
        Event::StepFinished(scene.step("main", goto("B.md"))),
        Event::TurnFailed(scene.failure("main.1")),
    ];
    for event in more {
        book.count(&scene.run, &event);
        scene.happens(event);
    }
    assert_eq!((book.total.turns, book.total.failed, book.total.unreported_turns), (3, 1, 0));
    assert_eq!((dollars(&book.total).as_str(), book.total.used.output_tokens), ("$0.03", 15));
    let by_state: Vec<(&str, u64, String)> = book
        .states
        .iter()
        .map(|(state, line)| (state.as_str(), line.turns, dollars(line)))
        .collect();
    assert_eq!(by_state, ["A.md", "N.md", "W.md"].map(|state| (state, 1, "$0.01".to_owned())));
    let main = &book.agents[&AgentId::main()];
    assert_eq!((main.turns, dollars(main).as_str()), (2, "$0.02"));
    let share = main.share(scene.run.total_cost_usd);
    assert!((share - 2.0 / 3.0).abs() < 1e-9, "{share}");
    let by_model: Vec<(Option<&str>, u64, f64)> = book
        .models
        .iter()
        .map(|(model, line)| (model.as_deref(), line.turns, line.used.cost_usd.dollars()))
        .collect();
    assert_eq!(by_model, [(None, 2, 0.02), (Some("haiku"), 1, 0.006), (Some("opus"), 1, 0.004)]);
}

#[test]
fn rejected_turn_is_counted_as_reminder_and_billed() {
    let mut scene = Scene::begin();
    let rejected = TurnRejected {
        turn: scene.turn("main"),
        state: state("A.md"),
        violation: "no tag".to_owned(),
        reminder: "end with a tag".to_owned(),
        cost: TurnCost { amount: Usd::from_dollars(CENT), ..TurnCost::default() },
        message: None,
    };
    let book = ledger(&mut scene, [Event::TurnRejected(rejected)]);
    let LedgerLine { turns, failed, reminders, .. } = book.total;
    assert_eq!((turns, failed, reminders, dollars(&book.total).as_str()), (1, 0, 1, "$0.01"));
}

#[test]
fn evaluator_turn_is_counted_by_its_prompt_and_skipped_turn_is_not() {
    let mut scene = Scene::begin();
    let first = scene.step("main", goto("B.md"));
    let proposed = TransitionProposed {
        turn: first.turn.clone(),
        state: state("A.md"),
        transition: first.transition.clone(),
        implicit: false,
        output: String::new(),
        evaluator: state("CHECK.md"),
        cost: TurnCost { amount: Usd::from_dollars(CENT), ..TurnCost::default() },
        session_id: first.session_id.clone(),
        message: None,
        shown: Vec::new(),
        new_session: session(7),
    };
    let checked = StepFinished {
        turn: TurnId { turn: 1, ..first.turn.clone() },
        evaluator: Some(state("CHECK.md")),
        ..first
    };
    let mut book = ledger(
        &mut scene,
        [Event::TransitionProposed(Box::new(proposed)), Event::StepFinished(checked)],
    );
    let without_turn = StepFinished {
        without_turn: true,
        cost: TurnCost::default(),
        ..scene.step("main", goto("C.md"))
    };
    book.count(&scene.run, &Event::StepFinished(without_turn));
    let turns = |name: &str| book.states.get(&state(name)).map_or(0, |line| line.turns);
    assert_eq!((turns("A.md"), turns("CHECK.md"), turns("B.md")), (1, 1, 0));
    assert_eq!((book.total.turns, dollars(&book.total).as_str()), (2, "$0.02"));
}

#[test]
fn turns_of_unknown_cost_are_counted_separately() {
    let mut scene = Scene::begin();
    for (cause, turns, unreported_turns) in [
        (FailureCause::Crash, 1, 1),
        (FailureCause::Lost, 1, 1),
        (FailureCause::Throttle, 1, 0),
        (FailureCause::Unavailable, 0, 0),
        (FailureCause::Panic, 1, 0),
    ] {
        let failure = TurnFailed { cause, cost: TurnCost::default(), ..scene.failure("main") };
        let book = ledger(&mut scene, [Event::TurnFailed(failure)]);
        assert_eq!(
            (book.total.turns, book.total.unreported_turns),
            (turns, unreported_turns),
            "{cause}"
        );
    }
}

#[test]
fn cost_reported_after_end_is_counted_in_its_state() {
    let mut scene = Scene::begin();
    scene.take("main", tag(TagName::Fork, "N.md", "W.md"));
    let late = scene.turn("main");
    let failure = AgentFailed { ends_run: true, ..scene.end_badly("main.1") };
    let counted = Event::CostCounted {
        turn: late,
        cost: TurnCost { amount: Usd::from_dollars(CENT), estimated: true, ..TurnCost::default() },
    };
    let book = ledger(&mut scene, [Event::AgentFailed(failure), counted]);
    assert_eq!(dollars(&book.states[&state("N.md")]), "$0.01");
    let LedgerLine { turns, failed, unreported_turns, estimated, .. } = book.total;
    assert_eq!((turns, failed, unreported_turns), (2, 2, 1));
    assert_eq!((dollars(&book.total).as_str(), estimated), ("$0.02", Usd::from_dollars(CENT)));
}

proptest! {
    #[test]
    fn ledger_sums_match_run_spending(pushes in pushes(60)) {
        let journal = Journal::of(&pushes);
        let mut book = Ledger::default();
        for (before, record) in &journal.records {
            if let Some(before) = before {
                book.count(before, &record.event);
            }
        }
        let total = journal.run.total_cost_usd;
        let sum = |lines: &mut dyn Iterator<Item = &LedgerLine>| {
            lines.fold(Usd::ZERO, |sum, line| sum.saturating_add(line.used.cost_usd))
        };
        prop_assert_eq!(book.total.used.cost_usd, total);
        prop_assert_eq!(sum(&mut book.agents.values()), total);
        prop_assert_eq!(sum(&mut book.states.values()), total);
        for agent in journal.run.agents.values() {
            let counted = book.agents.get(&agent.id).map_or(Usd::ZERO, |line| line.used.cost_usd);
            prop_assert_eq!(counted, agent.cost_usd);
        }
    }

    #[test]
    fn only_charges_change_run_spending(pushes in pushes(40)) {
        for (before, record) in Journal::of(&pushes).records {
            let Some(mut run) = before else { continue };
            let charged = cost_of(&record.event).map_or(Usd::ZERO, |charge| charge.cost.amount);
            let expected = run.total_cost_usd.saturating_add(charged);
            let record = Record { at: Timestamp(1), ..record };
            prop_assert!(apply(&mut run, &record).is_ok());
            prop_assert_eq!(run.total_cost_usd, expected);
        }
    }
}
