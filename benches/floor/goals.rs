//! The goals and the measurements: one row for each goal, at the end of the report.
//!
//! A goal that is missed is a row like any other: nothing fails here, and nothing is left out.

use crate::table::{Table, short};

/// The good side of a goal.
#[derive(Debug, Clone, Copy)]
pub(crate) enum GoalBound {
    AtLeast(f64),
    AtMost(f64),
}

#[derive(Debug)]
struct GoalRow {
    figure: String,
    measured: String,
    bound: GoalBound,
    unit: &'static str,
    verdict: &'static str,
}

/// The goals of the report: those that were measured, and those that could not be.
#[derive(Debug, Default)]
pub(crate) struct Goals(Vec<GoalRow>);

impl Goals {
    /// Adds a goal and its measurement, usually a median.
    pub(crate) fn add(
        &mut self,
        figure: impl Into<String>,
        measured: f64,
        bound: GoalBound,
        unit: &'static str,
    ) {
        let verdict = match bound {
            GoalBound::AtLeast(goal) if measured >= goal => "met",
            GoalBound::AtMost(goal) if measured <= goal => "met",
            _ if measured.is_nan() => "not measured",
            _ => "short",
        };
        let measured = format!("{}{unit}", short(measured));
        self.0.push(GoalRow { figure: figure.into(), measured, bound, unit, verdict });
    }

    /// Adds a goal that could not be measured.
    pub(crate) fn missing(&mut self, figure: &str, bound: GoalBound, unit: &'static str) {
        let (figure, measured) = (figure.to_owned(), "–".to_owned());
        self.0.push(GoalRow { figure, measured, bound, unit, verdict: "not measured" });
    }

    pub(crate) fn table(&self) -> Table {
        let mut table = Table::new("Goals", ["", "measured", "goal", ""]);
        for row in &self.0 {
            let goal = match row.bound {
                GoalBound::AtLeast(goal) => format!("≥ {}{}", plain(goal), row.unit),
                GoalBound::AtMost(goal) => format!("≤ {}{}", plain(goal), row.unit),
            };
            let verdict = row.verdict.to_owned();
            table.row([row.figure.clone(), row.measured.clone(), goal, verdict]);
        }
        table
    }
}

/// Returns a goal as people write it.
fn plain(number: f64) -> String {
    if number >= 10.0 { short(number.round()).replace(".0", "") } else { format!("{number}") }
}
