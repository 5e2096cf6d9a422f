//! Histories by hand and by chance.

use proptest::prelude::*;

use super::*;
use crate::event::{AgentFailed, JoinFinished, StoppedChild, TurnRejected};
use crate::join::{JoinCondition, JoinOutcome, JoinTally};
use crate::tests::plausible::{Journal, pushes};
use crate::tests::scene::{CENT, Scene, agent_id, goto, result, session, state, tag};
use crate::transition::TagName;
use crate::turn::TurnCost;

/// The session of each turn, and whether the turn has ended.
type Turns = Vec<(String, bool)>;

/// A scene whose records an agent's history sees.
struct Seen {
    scene: Scene,
    history: AgentHistory,
}

impl Seen {
    fn of(agent: &str) -> Self {
        Self { scene: Scene::begin(), history: AgentHistory::of(agent_id(agent)) }
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
        self.history.see(&self.scene.run, &record);
        self.scene.happens(event);
    }

    /// Returns the steps: number, state, and the sessions of its turns with whether each has ended.
    fn steps(&self) -> Vec<(u64, String, Turns)> {
        let steps = self.history.clone().steps(&self.scene.run);
        let turn = |turn: &HistoryTurn| (turn.session.to_string(), turn.end.is_some());
        steps
            .iter()
            .map(|step| {
                (step.number, step.state.to_string(), step.turns.iter().map(turn).collect())
            })
            .collect()
    }
}

fn turns(turns: &[(u64, bool)]) -> Turns {
    turns.iter().map(|&(number, ended)| (session(number).to_string(), ended)).collect()
}

#[test]
fn step_lists_failed_rejected_and_finished_turns() {
    let mut seen = Seen::of("main");
    let failure = seen.scene.failure("main");
    seen.happens(Event::TurnFailed(failure));
    let reminder = "end with a tag".to_owned();
    let rejected = TurnRejected {
        turn: seen.scene.turn("main"),
        state: state("A.md"),
        violation: String::new(),
        reminder: reminder.clone(),
        cost: TurnCost { amount: Usd::from_dollars(CENT), ..TurnCost::default() },
        message: None,
    };
    seen.happens(Event::TurnRejected(rejected));
    let step = seen.scene.step("main", goto("B.md"));
    seen.happens(Event::StepFinished(step));
    assert_eq!(
        seen.steps(),
        [
            (1, "A.md".to_owned(), turns(&[(1, true), (2, true), (2, true)])),
            (2, "B.md".to_owned(), turns(&[(2, false)])),
        ]
    );
    let steps = seen.history.steps(&seen.scene.run);
    let reminders: Vec<_> = steps[0].turns.iter().map(|turn| turn.reminder.clone()).collect();
    assert_eq!(reminders, [None, None, Some(reminder)]);
    assert_eq!((steps[0].cost(), steps[1].cost()), (Usd::from_dollars(0.03), Usd::ZERO));
    assert_eq!((steps[0].since, steps[1].since), (Timestamp(1000), Timestamp(4000)));
}

#[test]
fn child_history_starts_at_fork_without_siblings() {
    let mut seen = Seen::of("main.1");
    let fork = seen.scene.step("main", tag(TagName::Fork, "N.md", "W.md"));
    seen.happens(Event::StepFinished(fork));
    let other = seen.scene.step("main", goto("B.md"));
    seen.happens(Event::StepFinished(other));
    assert_eq!(seen.steps(), [(1, "W.md".to_owned(), turns(&[(2, false)]))]);
    let end = seen.scene.step("main.1", result("done"));
    seen.happens(Event::StepFinished(end));
    assert_eq!(seen.steps(), [(1, "W.md".to_owned(), turns(&[(2, true)]))]);
}

#[test]
fn agent_ended_by_run_failure_records_cause_and_late_cost() {
    let mut seen = Seen::of("main");
    let fork = seen.scene.step("main", tag(TagName::Fork, "N.md", "W.md"));
    seen.happens(Event::StepFinished(fork));
    let turn = seen.scene.turn("main");
    let failure = AgentFailed { ends_run: true, ..seen.scene.end_badly("main.1") };
    seen.happens(Event::AgentFailed(failure));
    let cost_usd = Usd::from_dollars(0.5);
    seen.happens(Event::CostCounted {
        turn,
        cost: TurnCost { amount: cost_usd, ..TurnCost::default() },
    });
    let steps = seen.history.steps(&seen.scene.run);
    let ends: Vec<_> = steps[1].turns.iter().filter_map(|turn| turn.end.as_ref()).collect();
    assert_eq!(ends.len(), 2);
    assert_eq!(ends[0].event.agent(), Some(&agent_id("main.1")));
    assert_eq!(steps[1].cost(), cost_usd);
}

#[test]
fn agent_that_a_join_has_stopped_has_its_turn_and_its_late_cost_in_its_step() {
    let mut seen = Seen::of("main.1");
    let fork = seen.scene.step("main", tag(TagName::Fork, "N.md", "W.md"));
    seen.happens(Event::StepFinished(fork));
    let step = seen.scene.step("main.1", goto("V.md"));
    seen.happens(Event::StepFinished(step));
    seen.scene.joins("main", JoinCondition::Any);
    let (turn, child) = (seen.scene.turn("main"), seen.scene.turn("main.1"));
    let stopped = StoppedChild { agent: agent_id("main.1"), at_work: true };
    seen.happens(Event::JoinFinished(Box::new(JoinFinished {
        turn,
        state: seen.scene.agent("main").current_state.clone(),
        outcome: JoinOutcome::Met,
        tally: JoinTally { count: 1, done: 0, failed: 0 },
        enters: None,
        stopped: vec![stopped],
    })));
    let cost_usd = Usd::from_dollars(0.5);
    let cost = TurnCost { amount: cost_usd, ..TurnCost::default() };
    seen.happens(Event::CostCounted { turn: child, cost });
    let steps = seen.history.steps(&seen.scene.run);
    let numbers: Vec<(u64, usize)> =
        steps.iter().map(|step| (step.number, step.turns.len())).collect();
    assert_eq!(numbers, [(1, 1), (2, 2)]);
    assert_eq!(steps[1].cost(), cost_usd);
    assert!(
        steps[1].turns[0].end.as_ref().is_some_and(|end| end.event.ends_other(&agent_id("main.1")))
    );
}

proptest! {
    #[test]
    fn step_costs_sum_to_agent_cost(pushes in pushes(60)) {
        let journal = Journal::of(&pushes);
        let run = &journal.run;
        let ended = run.finished.iter().map(|agent| (agent.id.clone(), agent.cost_usd));
        let live = run.agents.values().map(|agent| (agent.id.clone(), agent.cost_usd));
        for (agent, cost) in ended.chain(live) {
            let mut history = AgentHistory::of(agent.clone());
            for (before, record) in &journal.records {
                if let Some(before) = before {
                    history.see(before, record);
                }
            }
            let steps = history.steps(run);
            let sum = steps.iter().fold(Usd::ZERO, |sum, step| sum.saturating_add(step.cost()));
            prop_assert_eq!(sum, cost);
            prop_assert!(steps.is_sorted_by(|a, b| a.number < b.number), "{:?}", agent);
            let due = steps.iter().flat_map(|step| &step.turns).filter(|turn| turn.end.is_none());
            prop_assert_eq!(due.count(), usize::from(run.agents.contains_key(&agent)));
        }
    }
}
