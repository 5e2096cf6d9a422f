//! The results of live tests: many runs of each case with each model, as rows of a table. Pure.

use super::money::Usd;
use super::pass_rate::PassRate;

/// The end of one live run of a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LiveEnd {
    /// All that is expected holds.
    Passed,
    /// Something that is expected does not hold.
    Failed,
    /// The money of the tests ended it, so nothing can be said.
    CutOff,
    /// It was not run, or an interrupt ended it.
    NotRun,
}

impl LiveEnd {
    /// Returns the word for it in JSON.
    pub fn word(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Failed => "failed",
            Self::CutOff => "cut_off",
            Self::NotRun => "not_run",
        }
    }
}

/// One live run of a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LiveRun {
    /// Its end.
    pub end: LiveEnd,
    /// Its cost.
    pub cost: Usd,
    /// Its time, in milliseconds.
    pub duration_ms: u64,
}

/// The runs of one case with one model.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LiveRow {
    /// The runs of which it is known whether they passed.
    pub rate: PassRate,
    /// The number of runs that the money ended.
    pub cut_off: u32,
    /// The number of runs that were not run.
    pub not_run: u32,
    /// The cost of all.
    pub cost: Usd,
    /// The times of the judged runs, in milliseconds, in their order.
    durations: Vec<u64>,
}

impl LiveRow {
    /// Returns the row of these runs.
    pub fn of(runs: impl IntoIterator<Item = LiveRun>) -> Self {
        let mut row = Self::default();
        for LiveRun { end, cost, duration_ms } in runs {
            row.cost += cost;
            match end {
                LiveEnd::Passed | LiveEnd::Failed => {
                    row.rate.count(end == LiveEnd::Passed);
                    row.durations.push(duration_ms);
                }
                LiveEnd::CutOff => row.cut_off += 1,
                LiveEnd::NotRun => row.not_run += 1,
            }
        }
        row.durations.sort_unstable();
        row
    }

    /// Returns the median time of a judged run, in milliseconds; of an even number the mean of the two in the middle.
    pub fn median_ms(&self) -> Option<u64> {
        let half = self.durations.len() / 2;
        let upper = *self.durations.get(half)?;
        if self.durations.len() % 2 == 1 {
            return Some(upper);
        }
        Some(self.durations.get(half.checked_sub(1)?)?.midpoint(upper))
    }

    /// Returns the cells of its line, as [`LIVE_HEADS`] names them.
    pub fn cells(&self) -> [String; 5] {
        let PassRate { passed, runs } = self.rate;
        let percent = |part: f64| format!("{:.0} %", part * 100.0);
        let none = || "–".to_owned();
        let rate = self.rate.rate().map_or_else(none, percent);
        let interval = self
            .rate
            .interval()
            .map_or_else(none, |(low, high)| format!("{:.0}–{:.0} %", low * 100.0, high * 100.0));
        let seconds =
            self.median_ms().map_or_else(none, |ms| format!("{}.{} s", ms / 1000, ms % 1000 / 100));
        [format!("{passed}/{runs}"), rate, interval, self.cost.to_string(), seconds]
    }
}

/// The heads of the cells of a row.
pub const LIVE_HEADS: [&str; 5] = ["passed", "rate", "95 % interval", "cost", "median time"];

#[cfg(test)]
mod tests {
    use super::*;

    fn run(end: LiveEnd, cents: u32, duration_ms: u64) -> LiveRun {
        LiveRun { end, cost: Usd::from_dollars(f64::from(cents) / 100.0), duration_ms }
    }

    #[test]
    fn row_judges_only_runs_that_came_to_their_end() {
        let row = LiveRow::of([
            run(LiveEnd::Passed, 2, 4100),
            run(LiveEnd::Failed, 1, 900),
            run(LiveEnd::CutOff, 5, 99_000),
            run(LiveEnd::Passed, 2, 2000),
            run(LiveEnd::NotRun, 0, 0),
        ]);
        assert_eq!((row.rate, row.cut_off, row.not_run), (PassRate { passed: 2, runs: 3 }, 1, 1));
        assert_eq!(row.cells(), ["2/3", "67 %", "21–94 %", "$0.10", "2.0 s"]);
    }

    #[test]
    fn median_of_an_even_number_is_between_the_two_in_the_middle() {
        let row = |times: &[u64]| LiveRow::of(times.iter().map(|ms| run(LiveEnd::Passed, 0, *ms)));
        assert_eq!(row(&[]).median_ms(), None);
        assert_eq!(row(&[7]).median_ms(), Some(7));
        assert_eq!(row(&[9, 1]).median_ms(), Some(5));
        assert_eq!(row(&[9, 1, 2]).median_ms(), Some(2));
        assert_eq!(row(&[]).cells(), ["0/0", "–", "–", "$0.00", "–"]);
    }
}
