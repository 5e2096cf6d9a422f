//! The agents of a run by the state they began in: their number, their ends, their cost, and the slowest. Pure.

use std::collections::{BTreeMap, HashMap};

use crate::cli::output;
use crate::domain::event::Event;
use crate::domain::id::{AgentId, StateName};
use crate::domain::money::Usd;
use crate::domain::run::{AgentEnding, Run};
use crate::domain::time::seconds;
use crate::plugin::screen::clock;

/// The time that the turns of each agent took, in milliseconds.
#[derive(Debug, Default)]
pub struct TurnTimes(HashMap<AgentId, u64>);

impl TurnTimes {
    /// Adds the time of the turn that an event ends.
    pub fn count(&mut self, event: &Event) {
        if let (Some(agent), Some(cost)) = (event.agent(), event.cost())
            && let Some(took) = cost.duration_ms
        {
            *self.0.entry(agent.clone()).or_default() += took;
        }
    }
}

/// The agents that began in one state.
#[derive(Debug, Default)]
struct StateSummary<'run> {
    agents: usize,
    finished: usize,
    failed: usize,
    live: usize,
    cost: Usd,
    slowest: Option<(u64, &'run AgentId)>,
}

impl<'run> StateSummary<'run> {
    fn add(&mut self, id: &'run AgentId, cost: Usd, times: &TurnTimes) {
        self.agents += 1;
        self.cost += cost;
        let took = times.0.get(id).copied().filter(|&took| took > 0);
        if let Some(took) = took.filter(|&took| self.slowest.is_none_or(|(most, _)| took > most)) {
            self.slowest = Some((took, id));
        }
    }
}

/// Returns a table with a line for each state.
pub(super) fn table(run: &Run, times: &TurnTimes) -> String {
    let mut states: BTreeMap<Option<StateName>, StateSummary<'_>> = BTreeMap::new();
    for agent in &run.finished {
        let state = states.entry(agent.began()).or_default();
        state.add(&agent.id, agent.cost_usd, times);
        state.finished += usize::from(matches!(agent.ending, AgentEnding::Result(_)));
        state.failed += usize::from(agent.has_failed());
    }
    for agent in run.agents.values() {
        let state = states.entry(Some(agent.spec.shown_state())).or_default();
        state.add(&agent.id, agent.cost_usd, times);
        state.live += 1;
    }
    let has_live = states.values().any(|state| state.live > 0);
    let live: &[&str] = if has_live { &["live"] } else { &[] };
    let head = [&["started in", "agents", "ok", "failed"], live, &["cost", "slowest"]].concat();
    let mut rows = vec![head.into_iter().map(str::to_owned).collect::<Vec<_>>()];
    for (name, state) in &states {
        let mut row = vec![name.as_ref().map_or("unknown state".to_owned(), ToString::to_string)];
        row.extend([state.agents, state.finished, state.failed].map(|count| count.to_string()));
        row.extend(has_live.then(|| state.live.to_string()));
        let slowest = state.slowest.map(|(took, id)| format!("{} {id}", time(took)));
        row.extend([state.cost.to_string(), slowest.unwrap_or_default()]);
        rows.push(row);
    }
    let last = rows[0].len() - 1;
    output::table(&output::right_align(rows, last))
}

/// Returns a time, with a tenth of a second if it is short.
fn time(millis: u64) -> String {
    if millis < 60_000 { seconds(millis) } else { clock(millis) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::tests::scene::{Scene, result, tag};
    use crate::domain::transition::TagName;

    #[test]
    fn agents_are_summed_up_by_the_state_they_began_in() {
        let mut scene = Scene::begin();
        let mut times = TurnTimes::default();
        (0..3).for_each(|_| {
            scene.take("main", tag(TagName::Fork, "NEXT.md", "WORK.md"));
        });
        for (agent, seconds) in [("main.1", 5), ("main.2", 65)] {
            let mut step = scene.step(agent, result("done"));
            step.cost.duration_ms = Some(seconds * 1000);
            times.count(&Event::StepFinished(step));
        }
        scene.take("main.1", result("done"));
        let failed = Event::AgentFailed(scene.end_badly("main.2"));
        scene.happens(failed);
        let text = table(&scene.run, &times);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 3, "{text}");
        assert_eq!(
            lines[0].split_whitespace().collect::<Vec<_>>(),
            ["started", "in", "agents", "ok", "failed", "live", "cost", "slowest"]
        );
        let work = lines.iter().find(|line| line.starts_with("WORK.md")).expect("a line");
        let words: Vec<&str> = work.split_whitespace().collect();
        assert_eq!(words[..5], ["WORK.md", "3", "1", "1", "1"]);
        assert_eq!(words[6..], ["1:05", "main.2"]);
        assert_eq!([time(150), time(59_999), time(60_000)], ["0.1s", "59.9s", "1:00"]);
    }
}
