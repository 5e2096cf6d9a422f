//! The results of live tests: many runs of each case with each model, as rows of a table, and their pass rates.

use serde::Serialize;

use crate::money::Usd;

/// The end of one live run of a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
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

/// One live run of a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LiveRun {
    pub end: LiveEnd,
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
        let percent = |part: f64| format!("{:.0}%", part * 100.0);
        let none = || "–".to_owned();
        let rate = self.rate.rate().map_or_else(none, percent);
        let interval = self
            .rate
            .interval()
            .map_or_else(none, |(low, high)| format!("{:.0}–{:.0}%", low * 100.0, high * 100.0));
        let seconds =
            self.median_ms().map_or_else(none, |ms| format!("{}.{} s", ms / 1000, ms % 1000 / 100));
        [format!("{passed}/{runs}"), rate, interval, self.cost.to_string(), seconds]
    }
}

/// The heads of the cells of a row.
pub const LIVE_HEADS: [&str; 5] = ["passed", "rate", "95 % interval", "cost", "median time"];

// The rate at which runs pass, and how far a few runs tell it.

/// The number of standard deviations around the middle that holds 95 % of a normal distribution.
const Z_95: f64 = 1.959_963_984_540_054;

/// The number of runs, and of those that passed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct PassRate {
    /// The number of runs that passed.
    pub passed: u32,
    /// The number of runs.
    pub runs: u32,
}

impl PassRate {
    /// Counts a run.
    pub fn count(&mut self, has_passed: bool) {
        self.runs = self.runs.saturating_add(1);
        self.passed = self.passed.saturating_add(has_passed.into());
    }

    /// Returns the part of the runs that passed, from 0 to 1; `None` without any run.
    pub fn rate(self) -> Option<f64> {
        (self.runs > 0).then(|| f64::from(self.passed) / f64::from(self.runs))
    }

    /// Returns the 95 % interval of Wilson: the rates, from 0 to 1, at which this number of passes is not surprising.
    /// `None` without any run.
    pub fn interval(self) -> Option<(f64, f64)> {
        let (rate, runs) = (self.rate()?, f64::from(self.runs));
        let square = Z_95 * Z_95;
        let scale = 1.0 + square / runs;
        let middle = (rate + square / (2.0 * runs)) / scale;
        let spread = (rate * (1.0 - rate) / runs + square / (4.0 * runs * runs)).sqrt();
        let half = Z_95 * spread / scale;
        // At the ends the formula gives exactly 0 and 1, which floats miss by a hair.
        let low = if self.passed == 0 { 0.0 } else { middle - half };
        let high = if self.passed == self.runs { 1.0 } else { middle + half };
        Some((low.max(0.0), high.min(1.0)))
    }
}

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
        assert_eq!(row.cells(), ["2/3", "67%", "21–94%", "$0.10", "2.0 s"]);
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

#[cfg(test)]
mod pass_rate_tests {
    use proptest::prelude::*;

    use super::*;

    fn rounded(passed: u32, runs: u32) -> Option<(f64, f64)> {
        let (low, high) = PassRate { passed, runs }.interval()?;
        Some(((low * 1000.0).round() / 1000.0, (high * 1000.0).round() / 1000.0))
    }

    #[test]
    fn interval_is_that_of_the_published_tables() {
        assert_eq!(rounded(0, 0), None);
        assert_eq!(rounded(5, 5), Some((0.566, 1.0)));
        assert_eq!(rounded(0, 5), Some((0.0, 0.434)));
        assert_eq!(rounded(4, 5), Some((0.376, 0.964)));
        assert_eq!(rounded(1, 1), Some((0.207, 1.0)));
        assert_eq!(rounded(50, 100), Some((0.404, 0.596)));
        assert_eq!(rounded(81, 263), Some((0.255, 0.366)));
    }

    proptest! {
        #[test]
        fn interval_holds_the_rate_and_narrows_with_more_runs(passed in 0u32..500, more in 0u32..500) {
            let few = PassRate { passed, runs: passed + more.max(1) };
            let many = PassRate { passed: few.passed * 10, runs: few.runs * 10 };
            let (low, high) = few.interval().expect("there are runs");
            let rate = few.rate().expect("there are runs");
            prop_assert!((0.0..=1.0).contains(&low) && low <= rate && rate <= high && high <= 1.0);
            let (low_of_many, high_of_many) = many.interval().expect("there are runs");
            prop_assert!(high_of_many - low_of_many < high - low);
        }
    }
}
