//! The progress of fan-outs: how many of their agents have ended, and the time and money that the rest may take. Pure.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use crate::actor::registry::{AgentActivity, AgentView, EndedTally, FanOutKey};
use crate::domain::agent_status::WaitReason;
use crate::domain::money::Usd;
use crate::domain::time::Timestamp;

/// The number of agents above which a fan-out is shown as one.
pub use crate::domain::tree::FAMILY_FOLD_SIZE;

/// The least number of ended agents that an estimate needs.
const MIN_ENDED: usize = 3;

/// The period in milliseconds over which a rate is measured.
const RATE_PERIOD_MS: u64 = 5 * 60 * 1000;

/// The least time in milliseconds that a rate is measured over: at first, and after a resume, it would be a guess.
const MIN_MEASURED_MS: u64 = 10 * 1000;

/// The shortest interval in milliseconds between two samples of a rate.
const SAMPLE_INTERVAL_MS: u64 = 1000;

/// The activities of live agents, counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ActivityCounts {
    /// Those that are at work.
    pub running: usize,
    /// Those whose next turn is due and has to wait for a process, a time or money.
    pub queued: usize,
    /// Those that wait for other agents or for their program.
    pub waiting: usize,
    /// Those that wait for a person.
    pub for_person: usize,
}

/// The kind of an activity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ActivityKind {
    /// It waits for a person.
    ForPerson,
    /// It is at work.
    Running,
    /// It waits for other agents or for its program.
    Waiting,
    /// Its next turn is due.
    Queued,
}

impl ActivityKind {
    /// Returns the kind of an agent's activity.
    pub fn of(activity: &AgentActivity) -> Self {
        match activity {
            AgentActivity::Waiting(reason) => Self::of_reason(reason),
            AgentActivity::Turn { .. } | AgentActivity::Executing(_) => Self::Running,
        }
    }

    /// Returns the kind of a wait.
    pub fn of_reason(reason: &WaitReason) -> Self {
        match reason {
            WaitReason::Person { .. }
            | WaitReason::Held
            | WaitReason::Answer { .. }
            | WaitReason::Approval { .. } => Self::ForPerson,
            WaitReason::Agent { .. }
            | WaitReason::Join { .. }
            | WaitReason::Program { .. }
            | WaitReason::Request => Self::Waiting,
            _ => Self::Queued,
        }
    }
}

impl ActivityCounts {
    /// Counts an agent.
    pub fn add(&mut self, kind: ActivityKind) {
        *match kind {
            ActivityKind::ForPerson => &mut self.for_person,
            ActivityKind::Running => &mut self.running,
            ActivityKind::Waiting => &mut self.waiting,
            ActivityKind::Queued => &mut self.queued,
        } += 1;
    }

    /// Returns each number that is not zero with its word.
    pub fn words(self) -> impl Iterator<Item = String> {
        let counts = [
            (self.running, "running"),
            (self.queued, "queued"),
            (self.waiting, "waiting"),
            (self.for_person, "for a person"),
        ];
        counts
            .into_iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, word)| format!("{count} {word}"))
    }
}

/// The agents of a fan-out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FanOutProgress {
    /// The live ones.
    pub live: ActivityCounts,
    /// Those that have ended.
    pub ended: EndedTally,
    /// The costs of the live ones so far.
    live_costs: Vec<Usd>,
}

impl FanOutProgress {
    /// Returns the number of its agents.
    pub fn total(&self) -> usize {
        self.left() + self.ended.ended
    }

    /// Returns the number of its live agents.
    pub fn left(&self) -> usize {
        self.live_costs.len()
    }

    /// Returns the percentage of its agents that have ended, rounded down.
    pub fn percent(&self) -> usize {
        self.ended.ended * 100 / self.total().max(1)
    }

    /// Returns the cost of its agents so far.
    pub fn cost(&self) -> Usd {
        self.live_costs.iter().fold(self.ended.cost, |sum, cost| sum.saturating_add(*cost))
    }

    /// Returns the cost that its live agents may still have, if they cost as much as those that have ended; `None` if
    /// too few have ended to tell.
    pub fn cost_to_come(&self) -> Option<Usd> {
        if self.ended.ended < MIN_ENDED {
            return None;
        }
        #[expect(clippy::cast_precision_loss, reason = "an estimate")]
        let mean = Usd::from_dollars(self.ended.cost.dollars() / self.ended.ended as f64);
        let rest = |sum: Usd, cost: &Usd| sum.saturating_add(mean.saturating_sub(*cost));
        Some(self.live_costs.iter().fold(Usd::ZERO, rest))
    }
}

/// The fan-outs of a run, those nearest to its first agent first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FanOuts(pub BTreeMap<FanOutKey, FanOutProgress>);

impl FanOuts {
    /// Counts agents.
    pub fn of(views: &[Arc<AgentView>], ended: Vec<(FanOutKey, EndedTally)>) -> Self {
        let mut all: BTreeMap<FanOutKey, FanOutProgress> = BTreeMap::new();
        for (key, tally) in ended {
            all.entry(key).or_default().ended = tally;
        }
        for view in views {
            let progress = all.entry(FanOutKey::of(&view.id, Some(&view.began))).or_default();
            progress.live.add(ActivityKind::of(&view.activity));
            progress.live_costs.push(view.cost);
        }
        Self(all)
    }

    /// Returns those with more agents than are shown one by one.
    pub fn large(&self) -> impl Iterator<Item = (&FanOutKey, &FanOutProgress)> {
        self.0.iter().filter(|(_, progress)| progress.total() > FAMILY_FOLD_SIZE)
    }

    /// Returns whether a fan-out has more agents than are shown one by one.
    pub fn is_large(&self, key: &FanOutKey) -> bool {
        self.0.get(key).is_some_and(|progress| progress.total() > FAMILY_FOLD_SIZE)
    }

    /// Returns the numbers of all agents together.
    pub fn sum(&self) -> (ActivityCounts, EndedTally) {
        let (mut live, mut ended) = (ActivityCounts::default(), EndedTally::default());
        for progress in self.0.values() {
            live.running += progress.live.running;
            live.queued += progress.live.queued;
            live.waiting += progress.live.waiting;
            live.for_person += progress.live.for_person;
            ended.ended += progress.ended.ended;
            ended.failed += progress.ended.failed;
            ended.cost += progress.ended.cost;
        }
        (live, ended)
    }

    /// Returns the cost that the large fan-outs may still have; `None` if none of them can tell.
    pub fn cost_to_come(&self) -> Option<Usd> {
        let known = self.large().filter(|(_, progress)| progress.left() > 0);
        let known = known.filter_map(|(_, progress)| progress.cost_to_come());
        known.reduce(Usd::saturating_add)
    }
}

/// The rates at which the agents of each fan-out end, measured over the last minutes.
#[derive(Debug, Clone, Default)]
pub struct FanOutRates(BTreeMap<FanOutKey, VecDeque<(Timestamp, usize)>>);

/// The rate of a fan-out and the time that it may still take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FanOutEstimate {
    /// The milliseconds until its last agent ends.
    pub left_ms: u64,
    /// The agents that end in an hour.
    pub per_hour: u64,
}

impl FanOutRates {
    /// Takes a sample.
    pub fn sample(&mut self, fan_outs: &FanOuts, now: Timestamp) {
        for (key, progress) in fan_outs.large() {
            let samples = self.0.entry(key.clone()).or_default();
            let is_due = samples.back().is_none_or(|(at, _)| now.since(*at) >= SAMPLE_INTERVAL_MS);
            if is_due {
                samples.push_back((now, progress.ended.ended));
            }
            while samples.len() > 2 && now.since(samples[1].0) >= RATE_PERIOD_MS {
                samples.pop_front();
            }
        }
    }

    /// Returns the estimate of a fan-out; `None` if it has ended, or if too few of its agents have ended, or for too
    /// short a time, to tell.
    pub fn estimate(
        &self,
        key: &FanOutKey,
        progress: &FanOutProgress,
        now: Timestamp,
    ) -> Option<FanOutEstimate> {
        let (since, before) = *self.0.get(key)?.front()?;
        let ended = progress.ended.ended.saturating_sub(before);
        let took = now.since(since).max(1);
        if progress.left() == 0 || ended < MIN_ENDED || took < MIN_MEASURED_MS {
            return None;
        }
        let (ended, left) = (ended as u64, progress.left() as u64);
        Some(FanOutEstimate {
            left_ms: took.saturating_mul(left) / ended,
            per_hour: ended.saturating_mul(3_600_000) / took,
        })
    }
}

/// Returns a rate in words, such as `104/min` or `12/h`.
pub fn rate_text(per_hour: u64) -> String {
    if per_hour >= 60 { format!("{}/min", per_hour / 60) } else { format!("{per_hour}/h") }
}

/// Returns the time left in words: a few units rather than seconds, because it is an estimate.
pub fn left_text(millis: u64) -> String {
    let (tens, minutes) = (millis.div_ceil(10_000), millis.div_ceil(60_000));
    match minutes {
        _ if tens <= 5 => format!("about {} s left", 10 * tens.max(1)),
        0..=1 => "about a minute left".to_owned(),
        2..=99 => format!("about {minutes} min left"),
        _ => format!("about {}:{:02} h left", minutes / 60, minutes % 60),
    }
}

#[cfg(test)]
pub(super) mod tests;
