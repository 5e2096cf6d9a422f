//! Tests of counts and estimates, and the fan-outs that other tests show.

use super::*;
use crate::domain::id::{AgentId, SessionId, StateName};

pub(crate) fn view(id: &AgentId, began: &str, activity: AgentActivity) -> Arc<AgentView> {
    let state = StateName::parse(began).expect("a state");
    Arc::new(AgentView {
        id: id.clone(),
        began: state.clone(),
        state,
        item: None,
        session: SessionId::new("s"),
        stack: 0,
        activity,
        cost: Usd::from_dollars(0.02),
    })
}

pub(crate) fn key(began: &str, depth: usize) -> FanOutKey {
    FanOutKey { depth, began: StateName::parse(began).ok() }
}

pub(crate) fn turn(since: u64) -> AgentActivity {
    AgentActivity::Turn { since: Timestamp(since), seen: "Bash".into() }
}

/// Returns a fan-out of which this many run, wait for a process, and have ended, at 10 cents each.
pub(crate) fn crowd(
    running: u32,
    queued: u32,
    ended: usize,
) -> (Vec<Arc<AgentView>>, Vec<(FanOutKey, EndedTally)>) {
    let worker = |number| {
        let activity = if number <= running {
            turn(60_000)
        } else {
            AgentActivity::Waiting(WaitReason::Permit)
        };
        view(&AgentId::main().child(number), "WORK.md", activity)
    };
    let cost = Usd::from_dollars(0.1).times(ended);
    let tally = EndedTally { ended, failed: usize::from(ended > 0), cost };
    ((1..=running + queued).map(worker).collect(), vec![(key("WORK.md", 1), tally)])
}

#[test]
fn agents_of_a_state_and_a_depth_are_counted_together() {
    let (mut views, ended) = crowd(8, 1555, 437);
    let join = WaitReason::Join { more: 1, of: 2000, done: 1, failed: 0, until: None };
    views.push(view(&AgentId::main(), "START.md", AgentActivity::Waiting(join)));
    let fan_outs = FanOuts::of(&views, ended);
    let work = &fan_outs.0[&key("WORK.md", 1)];
    assert_eq!((work.total(), work.left(), work.percent()), (2000, 1563, 21));
    assert_eq!(work.live.words().collect::<Vec<_>>(), ["8 running", "1555 queued"]);
    assert!(fan_outs.is_large(&key("WORK.md", 1)) && !fan_outs.is_large(&key("START.md", 0)));
    let (live, sum) = fan_outs.sum();
    assert_eq!((live.running, live.waiting, sum.ended, sum.failed), (8, 1, 437, 1));
}

#[test]
fn cost_to_come_is_that_of_ended_agents_less_what_is_spent() {
    let to_come = |running, queued, ended| {
        let (views, tallies) = crowd(running, queued, ended);
        FanOuts::of(&views, tallies).cost_to_come().map(|cost| cost.to_string())
    };
    assert_eq!(to_come(5, 5, 10).as_deref(), Some("$0.80"));
    assert_eq!(to_come(5, 6, 2), None, "too few have ended");
    assert_eq!(to_come(1, 1, 5), None, "too few agents for a fan-out of many");
    assert_eq!(to_come(0, 0, 20), None, "all have ended");
}

#[test]
fn estimate_follows_the_rate_of_the_last_minutes() {
    let mut rates = FanOutRates::default();
    let at = |ended: usize| {
        let (views, tallies) = crowd(4, 100 - 4 - u32::try_from(ended).expect("few"), ended);
        FanOuts::of(&views, tallies)
    };
    let estimate = |rates: &FanOutRates, fan_outs: &FanOuts, now| {
        rates.estimate(&key("WORK.md", 1), &fan_outs.0[&key("WORK.md", 1)], Timestamp(now))
    };
    rates.sample(&at(10), Timestamp(0));
    assert_eq!(estimate(&rates, &at(12), 10_000), None, "too few");
    assert_eq!(estimate(&rates, &at(40), 9_000), None, "too short a time");
    let expected = FanOutEstimate { left_ms: 160_000, per_hour: 1800 };
    assert_eq!(estimate(&rates, &at(20), 20_000), Some(expected));
    for seconds in 1..=400_usize {
        rates.sample(&at(10 + seconds / 20), Timestamp(1000 * seconds as u64));
    }
    let slower = estimate(&rates, &at(30), 400_000).expect("known");
    assert_eq!(slower.per_hour, 180, "the first minutes count no longer");
    assert_eq!(estimate(&rates, &FanOuts::of(&[], crowd(0, 0, 100).1), 400_000), None);
}

#[test]
fn rates_and_times_are_shown_in_fitting_units() {
    assert_eq!([rate_text(6240), rate_text(59)], ["104/min", "59/h"]);
    let texts = [1, 41_000, 60_000, 60_001, 99 * 60_000, 150 * 60_000].map(left_text);
    let expected = [
        "about 10 s left",
        "about 50 s left",
        "about a minute left",
        "about 2 min left",
        "about 99 min left",
        "about 2:30 h left",
    ];
    assert_eq!(texts, expected);
}
