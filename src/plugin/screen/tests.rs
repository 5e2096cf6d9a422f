//! Tests of the rows of the live view: by the height and the width of the terminal, and by what the agents do.

use super::*;
use crate::actor::registry::EndedTally;
use crate::domain::id::{AgentId, StateKind};
use crate::plugin::fan_out::tests::{crowd, key, turn, view};

fn headline() -> RunHeadline {
    RunHeadline {
        run: "tour".into(),
        since: Timestamp(0),
        spent: Usd::from_dollars(0.25),
        budget: Some(Usd::from_dollars(1.0)),
        status: RunStatus::Running,
        limited_until: None,
    }
}

fn worker(number: u32, activity: AgentActivity) -> Arc<AgentView> {
    view(&AgentId::main().child(number), "WORKER.md", activity)
}

fn waiting(number: u32, reason: WaitReason) -> Arc<AgentView> {
    worker(number, AgentActivity::Waiting(reason))
}

fn join(more: u32, of: u32) -> WaitReason {
    WaitReason::Join { more, of, done: of - more, failed: 0, until: None }
}

fn drawn(
    views: &[Arc<AgentView>],
    ended: Vec<(FanOutKey, EndedTally)>,
    now: u64,
    size: (u16, u16),
) -> Vec<String> {
    let (fan_outs, mut rates) = (FanOuts::of(views, ended), FanOutRates::default());
    let mut none = fan_outs.clone();
    none.0.values_mut().for_each(|progress| progress.ended = EndedTally::default());
    rates.sample(&none, Timestamp(0));
    let picture = RunPicture {
        headline: &headline(),
        views,
        fan_outs: &fan_outs,
        rates: &rates,
        now: Timestamp(now),
    };
    picture.rows(size.0, size.1).iter().map(StyledLine::text).collect()
}

#[test]
fn each_agent_row_shows_its_activity() {
    let mut views = vec![
        worker(1, turn(60_000)),
        waiting(12, WaitReason::Permit),
        waiting(13, WaitReason::Backoff { until: Timestamp(67_000) }),
        waiting(14, WaitReason::Stagger { until: Timestamp(67_000) }),
        waiting(15, join(3, 5)),
        waiting(16, join(1, 1)),
        worker(17, AgentActivity::Executing(StateKind::Graph)),
        waiting(18, WaitReason::Person { reason: "it crashed".into() }),
    ];
    let ended = EndedTally { ended: 3, failed: 1, cost: Usd::ZERO };
    assert_eq!(
        drawn(&views, vec![(key("WORKER.md", 1), ended)], 65_000, (24, 100)),
        [
            "tour · 2 running, 3 queued, 2 waiting, 1 for a person, 2 finished, 1 failed · $0.25 of $1.00 · 1:05",
            "  main.18  WORKER.md        $0.02  waits for a person: it crashed",
            "  main.1   WORKER.md  0:05  $0.02  Bash",
            "  main.17  WORKER.md        $0.02  executes the graph",
            "  main.15  WORKER.md        $0.02  waits for 3 more of 5 agents",
            "  main.16  WORKER.md        $0.02  waits for 1 more of 1 agent",
            "  main.12  WORKER.md        $0.02  waits for a free process",
            "  main.13  WORKER.md        $0.02  restarts in 0:02",
            "  main.14  WORKER.md        $0.02  starts in 0:02",
        ]
    );
    views.truncate(2);
    Arc::make_mut(&mut views[0]).item = Some("src/a.rs".into());
    let rows = drawn(&views, Vec::new(), 65_000, (24, 100));
    assert_eq!(rows[1], "  main.1   WORKER.md  0:05  $0.02  src/a.rs  Bash");
    assert_eq!(rows[2], "  main.12  WORKER.md        $0.02            waits for a free process");
}

#[test]
fn activity_stays_on_narrow_terminal_and_wide_terminal_cuts_nothing() {
    let long = |activity| {
        let (id, state) = ("main.1.22.333.4444.55555", "REVIEW_OF_THE_WHOLE_LIBRARY_WORK.md");
        let mut view = view(&AgentId::parse(id).expect("an id"), state, activity);
        Arc::make_mut(&mut view).item = Some("crates/lang/src/interpreter/parallel.rs".into());
        view
    };
    let why = "the reply has no tag that its policy allows";
    let views =
        [long(AgentActivity::Waiting(WaitReason::Person { reason: why.into() })), long(turn(0))];
    let rows = |width| drawn(&views, Vec::new(), 65_000, (24, width));
    assert_eq!(
        rows(80)[1..],
        [
            "  main.1.22.333.4444.55555  REVIEW_OF_T…        $0.02  waits for a person: the…",
            "  main.1.22.333.4444.55555  REVIEW_OF_T…  1:05  $0.02  Bash",
        ]
    );
    let wide = rows(200);
    assert!(wide[1].ends_with(why) && wide[2].ends_with("Bash"), "{wide:#?}");
    assert!(!wide.concat().contains('…'), "{wide:#?}");
}

#[test]
fn fan_out_of_many_is_one_row_with_progress_and_estimates() {
    let (mut views, ended) = crowd(2, 1561, 437);
    views.insert(0, view(&AgentId::main(), "START.md", AgentActivity::Waiting(join(1563, 2000))));
    let rows = drawn(&views, ended.clone(), 437_000, (24, 120));
    assert_eq!(
        rows,
        [
            "tour · 2 running, 1561 queued, 1 waiting, 436 finished, 1 failed · $0.25 of $1.00, about $125.29 in all · 7:17",
            "  WORK.md  437 of 2000 (21%)  about 27 min left  2 running, 1561 queued  1 failed  $74.96  60/min",
            "  main.1  WORK.md   6:17  $0.02  Bash",
            "  main.2  WORK.md   6:17  $0.02  Bash",
            "  main    START.md        $0.02  waits for 1563 more of 2000 agents",
        ]
    );
    let usual = drawn(&views, ended.clone(), 437_000, (24, 80));
    assert_eq!(
        usual[..2],
        [
            "tour · 2 running, 1561 queued, 436 finished, 1 failed · $0.25 of $1.00 · 7:17",
            "  WORK.md  437 of 2000 (21%)  27 min left  2 running  1 failed  $74.96  60/min",
        ]
    );
    let narrow = drawn(&views, ended, 437_000, (24, 40));
    assert_eq!(narrow[1], "  WORK.md  437 of 2000 (21%)  27 min l…");
    assert!(narrow.iter().all(|row| measure_text_width(row) < 40), "{narrow:#?}");
}

#[test]
fn long_name_of_run_leaves_room_for_cost_and_time() {
    let headline = RunHeadline {
        run: "review-folder-20260115-143022-1a2b".into(),
        spent: Usd::from_dollars(143.86),
        budget: Some(Usd::from_dollars(200.0)),
        ..headline()
    };
    let (views, ended) = crowd(8, 1555, 437);
    let (fan_outs, rates) = (FanOuts::of(&views, ended), FanOutRates::default());
    let now = Timestamp(437_000);
    let picture =
        RunPicture { headline: &headline, views: &views, fan_outs: &fan_outs, rates: &rates, now };
    let head = |width| picture.rows(24, width)[0].text();
    assert_eq!(
        head(81),
        "review-fold… · 8 running, 436 finished, 1 failed · $143.86 of $200.00 · 7:17"
    );
    assert_eq!(head(66), "review-fold… · 8 running, 436 finished, 1 failed · $143.86 · 7:17");
    assert!(head(200).starts_with("review-folder-20260115-143022-1a2b · 8 running, 1555 queued"));
}

#[test]
fn fan_out_whose_agents_have_all_ended_has_no_percentage() {
    let rows = drawn(&[], crowd(0, 0, 50).1, 437_000, (24, 80));
    assert_eq!(rows[1], "  WORK.md  all 50 ended  1 failed  $5.00");
}

#[test]
fn thousands_of_agents_are_cut_to_a_few_rows() {
    let (views, ended) = crowd(300, 1700, 0);
    let table = [
        (3, vec!["300 running, 1700 queued", "0 of 2000 (0%)", "… and 300 more: 300 running"]),
        (6, vec!["main.1 ", "… and 299 more: 299 running"]),
        (24, vec!["main.11 ", "… and 289 more: 289 running"]),
        (200, vec!["main.11 ", "… and 289 more: 289 running"]),
    ];
    for (height, parts) in table {
        let rows = drawn(&views, ended.clone(), 61_000, (height, 80));
        assert!(rows.len() <= usize::from(height).max(3), "{height}: {rows:#?}");
        let text = rows.join("\n");
        for part in parts {
            assert!(text.contains(part), "{height}: {part}:\n{text}");
        }
    }
}

#[test]
fn usage_limit_and_pause_are_in_the_headline() {
    let limited = RunHeadline { limited_until: Some(Timestamp(600_000)), ..headline() };
    let pausing = RunHeadline { status: RunStatus::Paused, ..headline() };
    let head = |headline: &RunHeadline| {
        let (fan_outs, rates) = (FanOuts::default(), FanOutRates::default());
        let now = Timestamp(0);
        let picture = RunPicture { headline, views: &[], fan_outs: &fan_outs, rates: &rates, now };
        picture.rows(24, 100)[0].text()
    };
    assert!(
        head(&limited)
            .starts_with("tour · 0 running · $0.25 of $1.00 · 0:00 · usage limit, continues ")
    );
    assert_eq!(head(&pausing), "tour · 0 running · $0.25 of $1.00 · 0:00 · pausing");
}

#[test]
fn progress_line_tells_cost_and_time_of_the_rest() {
    let (views, ended) = crowd(8, 1555, 437);
    let fan_outs = FanOuts::of(&views, ended);
    let (key, progress) = fan_outs.large().next().expect("a fan-out of many");
    let line = progress_line(key, progress, &FanOutRates::default(), Timestamp(0));
    assert_eq!(
        line.text(),
        "WORK.md  437 of 2000 (21%)  8 running, 1555 queued  1 failed  $74.96, about $200.00 in all"
    );
}

#[test]
fn elapsed_time_is_formatted_as_clock() {
    assert_eq!([clock(5_400), clock(754_000), clock(3_723_000)], ["0:05", "12:34", "1:02:03"]);
}
