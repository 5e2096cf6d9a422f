//! Whole runs through the actors, with nothing outside but a run directory.
//!
//! Runs come to their end, records come before effects, permits are kept.

mod interceptors;
mod late;
mod limits;
mod memory;
pub(crate) mod nothing;
mod panics;
mod stage;

use std::rc::Rc;

use self::stage::{Player, Stage, ended, files, says, settings};
use crate::domain::admission::TurnOrder;
use crate::domain::event::Event;
use crate::domain::run::RunStatus;
use crate::domain::settings::Settings;
use crate::store::view;

/// `A.md` forks three workers, one after the other, and calls a subroutine in between.
const WORKFLOW: &[(&str, &str)] = &[
    ("A.md", "<fork next=\"B.md\" item=\"one\">W.md</fork>"),
    ("B.md", "<call return=\"C.md\">SUB.md</call>"),
    ("SUB.md", "<goto>SUB2.md</goto>"),
    ("SUB2.md", "<result>sub by {{agent_id}}</result>"),
    ("C.md", "<fork next=\"D.md\" item=\"{{result}}\">W.md</fork>"),
    ("D.md", "<reset>E.md</reset>"),
    ("E.md", "<fork next=\"F.md\" item=\"three\">P.md</fork>"),
    ("F.md", "<result>all of {{workflow_id}}</result>"),
    ("P.md", "<fork next=\"W.md\" item=\"{{item}}'s own\">W.md</fork>"),
    ("W.md", "<result>{{item}}</result>"),
];

#[test]
fn forked_run_completes_with_result_of_every_agent() {
    let stage = Stage::new();
    let outcome = stage.play(settings(2), files(WORKFLOW), &Player::echo());
    assert_eq!(outcome.run.status, RunStatus::Completed);
    let expected = [
        ("main", ended("all of r")),
        ("main.1", ended("one")),
        ("main.2", ended("sub by main")),
        ("main.3", ended("three")),
        ("main.3.1", ended("three's own")),
    ];
    let found = outcome.endings();
    assert_eq!(found.len(), expected.len(), "{found:?}");
    for (agent, ending) in &expected {
        assert_eq!(found.get(agent), Some(&ending), "{agent}");
    }
    assert!(stage.registry.is_empty());
}

#[test]
fn published_run_matches_stored_run() {
    let stage = Stage::new();
    let outcome = stage.play(settings(2), files(WORKFLOW), &Player::echo());
    assert_eq!(stage.stored(), outcome.run);
    let numbers: Vec<u64> = outcome.records.iter().map(|record| record.seq).collect();
    assert_eq!(numbers, (1..=outcome.run.seq).collect::<Vec<_>>());
    assert!(matches!(outcome.records[0].event, Event::RunStarted(_)));
}

#[test]
fn next_step_resumes_session_at_its_last_message() {
    let stage = Stage::new();
    let player = Player::echo();
    stage.play(settings(1), files(WORKFLOW), &player);
    let turns = player.turns.borrow();
    for step in turns.windows(2).filter(|pair| pair[0].turn.agent == pair[1].turn.agent) {
        if step[0].session.id == step[1].session.id {
            let last = step[1].session.checkpoint.as_ref().map(ToString::to_string);
            assert_eq!(last, Some(step[0].turn.stem()), "{}", step[1].turn);
        }
    }
}

#[test]
fn record_is_on_disk_before_it_is_published() {
    let stage = Stage::new();
    let journal = stage.root.run(&Stage::id()).journal();
    let look = move |published: &crate::actor::observer::Published| {
        let text = std::fs::read_to_string(&journal).expect("a journal");
        let number = usize::try_from(published.record.seq).expect("a small number");
        assert!(text.matches('\n').count() >= number, "record {number} is not a whole line yet");
        let line = text.lines().nth(number - 1).expect("its line");
        assert_eq!(crate::store::record::decode(line).as_ref(), Ok(&*published.record));
    };
    let outcome = stage.play_before(look, settings(4), files(WORKFLOW), &Player::echo());
    assert_eq!(outcome.records.len() as u64, outcome.run.seq);
}

#[test]
fn turn_starts_after_its_record_is_on_disk() {
    let stage = Stage::new();
    let root = stage.root.clone();
    let player = Player::new(move |input| {
        let run = view::load_view(&root, &Stage::id()).expect("a readable run").run;
        let agent = run.agents.get(&input.turn.agent).expect("an agent the journal knows");
        assert_eq!(agent.turn_id(), input.turn);
        assert_eq!(agent.session, input.session);
        Box::pin(std::future::ready(says(input, &input.prompt)))
    });
    let outcome = stage.play(settings(4), files(WORKFLOW), &player);
    assert_eq!(outcome.run.status, RunStatus::Completed, "{:?}", outcome.run.finished);
    let failed = |event: &Event| matches!(event, Event::TurnFailed(_) | Event::AgentFailed(_));
    assert!(
        !outcome.records.iter().any(|record| failed(&record.event)),
        "a turn started too early"
    );
}

/// `A.md` forks four workers; each has two steps.
const WORKERS: &[(&str, &str)] = &[
    ("A.md", "<fork next=\"B.md\">W.md</fork>"),
    ("B.md", "<fork next=\"C.md\">W.md</fork>"),
    ("C.md", "<fork next=\"D.md\">W.md</fork>"),
    ("D.md", "<fork next=\"E.md\">W.md</fork>"),
    ("E.md", "<result>forked</result>"),
    ("W.md", "<goto>X.md</goto>"),
    ("X.md", "<result>worked</result>"),
];

/// Returns a player that lets all others take many turns of the event loop while it thinks.
fn slow() -> Rc<Player> {
    Player::new(|input| {
        let outcome = says(input, &input.prompt);
        Box::pin(async move {
            for _ in 0..200 {
                tokio::task::yield_now().await;
            }
            outcome
        })
    })
}

#[test]
fn concurrent_turns_do_not_exceed_permits() {
    for permits in [1, 2, 3] {
        let player = slow();
        let outcome = Stage::new().play(settings(permits), files(WORKERS), &player);
        assert_eq!(outcome.run.status, RunStatus::Completed);
        assert_eq!(outcome.run.finished.len(), 5);
        assert!(player.most.get() <= permits, "{} with {permits} permits", player.most.get());
    }
}

#[test]
fn breadth_runs_turns_in_order_of_request() {
    let player = slow();
    let settings = Settings { order: TurnOrder::Breadth, ..settings(1) };
    Stage::new().play(settings, files(WORKERS), &player);
    let expected = [
        "main#1", "main#2", "main.1#1", "main#3", "main.2#1", "main.1#2", "main#4", "main.3#1",
        "main.2#2", "main#5", "main.4#1", "main.3#2", "main.4#2",
    ];
    assert_eq!(player.names(), expected);
}

#[test]
fn depth_finishes_each_agent_before_the_next_begins() {
    let player = slow();
    Stage::new().play(settings(1), files(WORKERS), &player);
    let expected = [
        "main#1", "main#2", "main#3", "main#4", "main#5", "main.1#1", "main.1#2", "main.2#1",
        "main.2#2", "main.3#1", "main.3#2", "main.4#1", "main.4#2",
    ];
    assert_eq!(player.names(), expected);
}
