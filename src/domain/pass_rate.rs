//! The rate at which runs pass, and how far a few runs tell it.

use serde::Serialize;

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

    /// Returns the 95 % interval of Wilson: the rates, from 0 to 1, with which such a number of passes is no surprise.
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
