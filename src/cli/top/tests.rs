//! The activity of an agent and its words, case by case.

use std::collections::HashMap;

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Cell;

use crate::cli::top::draw::{ScreenContent, cells, draw, fitting, headlines, room};
use crate::cli::top::{AgentFilter, ExpandedFamilies, TopScreen, rows};
use crate::domain::agent::{Agent, TurnHold};
use crate::domain::agent_status::{AgentStatus, WaitReason};
use crate::domain::budget::BudgetShare;
use crate::domain::event::{AgentFailed, AgentParked, Event, TurnFailed};
use crate::domain::id::AgentId;
use crate::domain::join::JoinCondition;
use crate::domain::money::Usd;
use crate::domain::run::{AgentEnding, PauseReason, Run, RunStatus};
use crate::domain::settings::AnswererKind;
use crate::domain::supervision::SupervisionPolicy;
use crate::domain::tests::scene::{Scene, agent_id, result, tag};
use crate::domain::time::Timestamp;
use crate::domain::transition::{TagName, Transition};
use crate::domain::tree::{RowSubject, TreeRow};
use crate::domain::turn::FailureCause;
use crate::plugin::screen::clock;
use crate::runtime::observing::agent_entries::{
    MonitoredRun, MonitoredTurn, TopAgentStatus, activity, entries,
};

const MINUTE: u64 = 60_000;

/// A run with an agent that waits in WORK.md beside one in NEXT.md.
fn scene() -> Scene {
    let mut scene = Scene::begin();
    scene.take("main", tag(TagName::Fork, "NEXT.md", "WORK.md"));
    scene
}

/// Returns the activity of one agent, and the words for it.
fn status_of(known: MonitoredRun<'_>, id: &str) -> (TopAgentStatus, String) {
    let entries = entries(known);
    let entry = entries.iter().find(|entry| entry.id.as_str() == id).expect("it is there");
    (
        entry.status.clone(),
        activity(known, entry, |until| format!("in {}", clock(until.since(known.now)))),
    )
}

fn seen(doing: &str, at_work: bool, progressed: Timestamp) -> HashMap<AgentId, MonitoredTurn> {
    let seen = MonitoredTurn { doing: Some(doing.to_owned()), tokens: 7, at_work, progressed };
    [(agent_id("main.1"), seen)].into()
}

#[test]
fn running_turn_is_silent_after_half_its_timeout() {
    let scene = scene();
    let start = Timestamp(10 * MINUTE);
    let after = |minutes: u64, at_work: bool| {
        let seen = seen("Bash: make", at_work, start);
        let now = start.plus(minutes * MINUTE);
        status_of(
            MonitoredRun { run: &scene.run, held: true, is_shared: false, seen: &seen, now },
            "main.1",
        )
    };
    let limits = SupervisionPolicy::default().limits();
    assert_eq!((limits.idle_timeout_ms, limits.timeout_ms), (10 * MINUTE, 30 * MINUTE));
    assert_eq!(after(4, false), (TopAgentStatus::Live(AgentStatus::Running), "Bash: make".into()));
    assert_eq!(after(6, false), (TopAgentStatus::Silent, "silent since: Bash: make".into()));
    assert_eq!(
        after(14, true).0,
        TopAgentStatus::Live(AgentStatus::Running),
        "a tool takes as long as it takes"
    );
    assert_eq!(after(16, true).0, TopAgentStatus::Silent);
}

#[test]
fn scripted_turn_runs_and_is_never_silent() {
    let mut scene = scene();
    scene.run.settings.answerer = AnswererKind::Scripted;
    let asked =
        MonitoredTurn { doing: None, tokens: 0, at_work: false, progressed: Timestamp(MINUTE) };
    let seen = [(agent_id("main.1"), asked)].into();
    let now = Timestamp(100 * MINUTE);
    let known = MonitoredRun { run: &scene.run, held: true, is_shared: false, seen: &seen, now };
    let running = TopAgentStatus::Live(AgentStatus::Running);
    assert_eq!(status_of(known, "main.1"), (running, "a script answers it".to_owned()));
    assert_eq!(status_of(known, "main").1, "waits for a free process");
}

#[test]
fn each_wait_reason_of_an_agent_is_shown() {
    let mut scene = scene();
    let now = Timestamp(10 * MINUTE);
    let none = HashMap::new();
    let why = |run: &Run, held: bool| {
        status_of(MonitoredRun { run, held, is_shared: false, seen: &none, now }, "main.1")
    };
    assert_eq!(why(&scene.run, true).1, "waits for a free process");
    assert_eq!(why(&scene.run, false).1, "waits for the run to be resumed");

    scene.run.limited_until = Some(now.plus(MINUTE));
    let (status, text) = why(&scene.run, true);
    assert_eq!(
        status,
        TopAgentStatus::Live(AgentStatus::Waiting(WaitReason::UsageLimit {
            until: now.plus(MINUTE)
        }))
    );
    assert!(text.starts_with("waits for the usage limit until Jan 1"), "{text}");
    scene.run.limited_until = None;

    let not_before = Some(now.plus(5000));
    let failed = TurnFailed { not_before, ..scene.failure("main.1") };
    scene.happens(Event::TurnFailed(failed));
    assert_eq!(why(&scene.run, true).1, "restarts in 0:05");

    let (turn, state) = (scene.turn("main.1"), scene.agent("main.1").current_state.clone());
    let reason = "it crashed".to_owned();
    scene.happens(Event::AgentParked(AgentParked { turn, state, reason }));
    assert_eq!(
        why(&scene.run, true),
        (
            TopAgentStatus::Live(AgentStatus::Waiting(WaitReason::Person {
                reason: "it crashed".to_owned()
            })),
            "waits for a person: it crashed".to_owned()
        )
    );

    (scene.run.status, scene.run.pause) = (RunStatus::Paused, Some(PauseReason::Stopped));
    let known = MonitoredRun { run: &scene.run, held: false, is_shared: false, seen: &none, now };
    assert_eq!(status_of(known, "main").1, "waits: the run is paused");
}

#[test]
fn joining_agent_shows_how_many_agents_it_waits_for() {
    let mut scene = scene();
    (0..2).for_each(|_| {
        scene.take("main", tag(TagName::Fork, "NEXT.md", "WORK.md"));
    });
    scene.joins("main", JoinCondition::All);
    scene.take("main.1", result("done"));
    let none = HashMap::new();
    let why = |run: &Run, id: &str| {
        status_of(
            MonitoredRun { run, held: true, is_shared: false, seen: &none, now: Timestamp(0) },
            id,
        )
    };
    let (status, text) = why(&scene.run, "main");
    assert!(matches!(
        status,
        TopAgentStatus::Live(AgentStatus::Waiting(WaitReason::Join {
            more: 2,
            of: 3,
            done: 1,
            failed: 0,
            ..
        }))
    ));
    assert!(text.starts_with("waits for 2 more of 3 agents, until "), "{text}");

    scene.run.finished[0].ending = AgentEnding::Error("main continues without it".to_owned());
    scene.run.finished[0].cause = Some(FailureCause::Unneeded);
    let unneeded =
        (TopAgentStatus::Unneeded, "no longer needed: main continues without it".to_owned());
    assert_eq!(why(&scene.run, "main.1"), unneeded);
}

#[test]
fn staggered_agent_shows_time_until_start() {
    let mut scene = scene();
    let agents = std::mem::take(&mut scene.run.agents);
    let later = |agent: &Agent| Agent {
        hold: Some(TurnHold::Stagger { until: Timestamp(63_000) }),
        ..agent.clone()
    };
    scene.run.agents = agents.values().map(later).collect();
    let none = HashMap::new();
    let known = MonitoredRun {
        run: &scene.run,
        held: true,
        is_shared: false,
        seen: &none,
        now: Timestamp(MINUTE),
    };
    assert_eq!(status_of(known, "main.1").1, "starts in 0:03");
}

#[test]
fn interrupted_run_shows_no_running_agent() {
    let scene = scene();
    let seen = seen("Bash", true, Timestamp(0));
    let known = MonitoredRun {
        run: &scene.run,
        held: false,
        is_shared: false,
        seen: &seen,
        now: Timestamp(MINUTE),
    };
    assert_eq!(status_of(known, "main.1").1, "waits for the run to be resumed");
    assert!(
        headlines(known, &entries(known))[0].starts_with("r  interrupted  0 running, 2 waiting")
    );
}

#[test]
fn headline_shows_counts_and_spent_budget() {
    let mut scene = scene();
    scene.run.settings.budget_usd = Some(Usd::from_dollars(5.0));
    let seen = seen("Bash", true, Timestamp(0));
    let known = MonitoredRun {
        run: &scene.run,
        held: true,
        is_shared: false,
        seen: &seen,
        now: Timestamp(MINUTE),
    };
    let lines = headlines(known, &entries(known));
    assert_eq!(lines[0], "r  running  1 running, 1 queued  $0.01 of $5.00 spent");
    assert_eq!(fitting(&lines, 50), "r  running  1 running, 1 queued  $0.01 of $5.00");
    assert_eq!(fitting(&lines, 10), "r  running  1 running, 1 queued  $0.01");
}

#[test]
fn agent_waits_for_reserved_budget_and_share_is_shown() {
    let mut scene = scene();
    scene.run.settings.budget_usd = Some(Usd::from_dollars(5.0));
    let seen = seen("Bash", true, Timestamp(0));
    let known = MonitoredRun {
        run: &scene.run,
        held: true,
        is_shared: false,
        seen: &seen,
        now: Timestamp(MINUTE),
    };
    let (status, text) = status_of(known, "main");
    assert_eq!(
        status,
        TopAgentStatus::Live(AgentStatus::Waiting(WaitReason::Budget)),
        "of two states nobody knows one goes first"
    );
    assert_eq!(text, "waits for money that running turns have reserved");

    let (limit_usd, spent_usd) = (Usd::from_dollars(2.0), Usd::from_dollars(0.5));
    scene.run.shares.insert(agent_id("main.1"), BudgetShare { limit_usd, spent_usd, live: 1 });
    let now = Timestamp(MINUTE);
    let known = MonitoredRun { run: &scene.run, held: true, is_shared: false, seen: &seen, now };
    let entries = entries(known);
    let place = entries.iter().position(|entry| entry.id.as_str() == "main.1").expect("there");
    let row = cells(known, &entries, &TreeRow { depth: 0, of: RowSubject::One(place), cut: false });
    assert_eq!((&*row.spent, &*row.tokens), ("$0.50 of $2.00", "7"));
}

/// Returns the drawn lines of a screen of this size.
fn drawn(known: MonitoredRun<'_>, (width, height): (u16, u16)) -> Vec<String> {
    let entries = entries(known);
    let rows = rows(&entries, &AgentFilter::default(), &ExpandedFamilies::default());
    let headlines = headlines(known, &entries);
    let (headlines, entries, rows) = (&*headlines, &*entries, &*rows);
    let content = ScreenContent { known, headlines, entries, rows, messages: &[], colours: false };
    let screen = TopScreen { room: room(height), ..TopScreen::default() };
    let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("a terminal");
    terminal.draw(|frame| draw(frame, &content, &screen)).expect("drawn");
    let cells = terminal.backend().buffer().content().chunks(width.into());
    let lines = cells.map(|line| line.iter().map(Cell::symbol).collect::<String>());
    lines.map(|line| line.trim_end().to_owned()).collect()
}

#[test]
fn screen_keeps_cause_and_cuts_nothing_that_fits() {
    let mut scene = Scene::begin();
    let state = "REVIEW_OF_THE_WHOLE_LIBRARY_WORK.md";
    let item = "crates/lang/src/interpreter/parallel.rs";
    let attributes = [("next", "NEXT.md"), ("item", item)];
    let attributes = attributes.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let fork = Transition::from_parts(TagName::Fork, attributes, state).expect("a fork");
    scene.take("main", fork.clone());
    scene.take("main", fork);
    let cause = "the reply has no tag that its policy allows";
    let failed = AgentFailed { error: cause.to_owned(), ..scene.end_badly("main.2") };
    scene.happens(Event::AgentFailed(failed));
    let seen = seen("Bash: cargo test --lib", true, Timestamp(0));
    let now = Timestamp(MINUTE);
    let known = MonitoredRun { run: &scene.run, held: true, is_shared: false, seen: &seen, now };
    let row = |lines: &[String], id: &str| -> String {
        lines.iter().find(|line| line.contains(id)).cloned().expect("a row")
    };

    let narrow = drawn(known, (80, 24));
    assert!(row(&narrow, "main.1").starts_with("  ▶ main.1  REVIEW_OF_T…"), "{narrow:#?}");
    assert!(row(&narrow, "main.2").contains("unusable output: the"), "{narrow:#?}");
    assert!(row(&narrow, "main.1").contains("Bash: cargo test --lib"), "{narrow:#?}");
    assert!(narrow[2].contains("item"), "{narrow:#?}");

    let wide = drawn(known, (200, 50));
    let texts = [state, item, "Bash: cargo test --lib", "7"];
    assert!(texts.iter().all(|text| row(&wide, "main.1").contains(text)), "{wide:#?}");
    assert!(row(&wide, "main.2").ends_with(cause), "{wide:#?}");
    assert!(!wide.concat().contains('…'), "{wide:#?}");
}
