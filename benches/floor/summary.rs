//! Several measurements of one thing: their median and their range.

use crate::table::short;

/// Measurements, sorted.
#[derive(Debug, Clone)]
pub(crate) struct Summary(Vec<f64>);

impl Summary {
    pub(crate) fn of(numbers: impl IntoIterator<Item = f64>) -> Self {
        let mut numbers: Vec<f64> =
            numbers.into_iter().filter(|number| number.is_finite()).collect();
        numbers.sort_by(f64::total_cmp);
        Self(numbers)
    }

    /// Returns the median; of an even number of measurements, the mean of the two in the middle.
    pub(crate) fn median(&self) -> f64 {
        let Self(numbers) = self;
        match numbers.len() {
            0 => f64::NAN,
            odd if odd % 2 == 1 => numbers[odd / 2],
            even => f64::midpoint(numbers[even / 2 - 1], numbers[even / 2]),
        }
    }

    /// Returns the same measurements in another unit.
    pub(crate) fn scaled(&self, factor: f64) -> Self {
        Self(self.0.iter().map(|number| number * factor).collect())
    }

    /// Returns `median (least–greatest)`.
    pub(crate) fn shown(&self) -> String {
        match (self.0.first(), self.0.last()) {
            (Some(&least), Some(&greatest)) => {
                format!("{} ({}–{})", short(self.median()), short(least), short(greatest))
            }
            _ => "not measured".to_owned(),
        }
    }
}
