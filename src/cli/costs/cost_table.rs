//! The tables of `raymond costs`: what was spent by state, model and agent, in a wide form and a narrow one. Pure.

use super::agent_rows::AgentCostRow;
use crate::cli::output::{self, short_number};
use crate::cli::table::{self, TableCell};
use crate::domain::ledger::LedgerLine;
use crate::domain::money::Usd;
use crate::plugin::styled::{StyledLine, TextTone};

/// The lines of one kind: of states, models or agents.
pub(super) struct CostPart {
    /// The kind; empty for the sum of all.
    pub(super) what: &'static str,
    /// Its rows.
    pub(super) rows: Vec<AgentCostRow>,
}

/// The form of the tables.
#[derive(Debug, Clone, Copy)]
pub(super) struct CostTableForm {
    /// True if the numbers of tokens are known.
    pub(super) has_tokens: bool,
    /// True for heads of two lines and short numbers.
    pub(super) is_narrow: bool,
}

impl CostPart {
    /// Makes a part of named lines.
    pub(super) fn of(what: &'static str, lines: Vec<(String, LedgerLine)>) -> Self {
        let row = |(name, line)| AgentCostRow { name, line, mean_and_most: None };
        Self { what, rows: lines.into_iter().map(row).collect() }
    }
}

/// A row of cells, and the tone of all of them.
type ToneRow = (TextTone, Vec<String>);

/// Returns the lines of all parts, with columns of equal width.
pub(super) fn lines(parts: &[CostPart], whole: Usd, form: CostTableForm) -> Vec<StyledLine> {
    let mut rows: Vec<ToneRow> = Vec::new();
    for part in parts {
        if !part.what.is_empty() {
            rows.push((TextTone::Plain, Vec::new()));
        }
        let has_mean = part.rows.iter().any(|row| row.mean_and_most.is_some());
        let heads = heads(part.what, has_mean, form);
        rows.extend(heads.into_iter().map(|head| (TextTone::Faint, head)));
        let costs: Vec<Usd> = part.rows.iter().map(|row| row.line.used.cost_usd).collect();
        let tone = if part.what.is_empty() { TextTone::Strong } else { TextTone::Plain };
        let cells = part.rows.iter().zip(percentages(&costs, whole));
        rows.extend(cells.map(|(row, percent)| (tone, cells_of(row, percent, form))));
    }
    let (tones, cells): (Vec<TextTone>, Vec<Vec<String>>) = rows.into_iter().unzip();
    let cells = output::right_align(cells, usize::MAX);
    let styled = tones.into_iter().zip(&cells).map(|(tone, row)| {
        row.iter().map(|cell| TableCell::of(tone, cell)).collect::<Vec<TableCell>>()
    });
    table::lines(&styled.collect::<Vec<_>>())
}

/// Returns the heads of a part; in the narrow form those of two words stand in two lines.
fn heads(what: &str, has_mean: bool, form: CostTableForm) -> Vec<Vec<String>> {
    let tokens: &[&str] =
        if form.has_tokens { &["in", "out", "cache read", "cache write"] } else { &[] };
    let mean: &[&str] = if has_mean { &["mean", "most expensive"] } else { &[] };
    let all = [&[what, "turns", "failed", "reminders"], tokens, &["cost", "share"], mean].concat();
    if !form.is_narrow {
        return vec![all.into_iter().map(str::to_owned).collect()];
    }
    let split = |head: &str| match head.split_once(' ') {
        Some((first, second)) => (first.to_owned(), second.to_owned()),
        None if head == "reminders" => ("re-".to_owned(), "minders".to_owned()),
        None => (String::new(), head.to_owned()),
    };
    let (first, second) = all.into_iter().map(split).unzip();
    vec![first, second]
}

fn cells_of(row: &AgentCostRow, percent: u64, form: CostTableForm) -> Vec<String> {
    let AgentCostRow { name, line, mean_and_most } = row;
    let used = line.used;
    let mut cells = vec![name.clone()];
    cells.extend([line.turns, line.failed, line.reminders].map(|count| count.to_string()));
    if form.has_tokens {
        let tokens = [
            used.input_tokens,
            used.output_tokens,
            used.cache_read_tokens,
            used.cache_write_tokens,
        ];
        let shown = |count: u64| {
            if form.is_narrow { short_number(count) } else { count.to_string() }
        };
        cells.extend(tokens.map(shown));
    }
    cells.extend([used.cost_usd.to_string(), format!("{percent}%")]);
    if let Some((mean, most, cost)) = mean_and_most {
        cells.extend([mean.to_string(), format!("{most} {cost}")]);
    }
    cells
}

/// Returns the percentages of amounts, rounded so that those of a whole add to 100: what rounding down leaves goes to
/// those with the largest remainders.
fn percentages(amounts: &[Usd], whole: Usd) -> Vec<u64> {
    if whole == Usd::ZERO {
        return vec![0; amounts.len()];
    }
    let exact = |amount: &Usd| amount.dollars() * 100.0 / whole.dollars();
    let exact: Vec<f64> = amounts.iter().map(exact).collect();
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a percentage is small and not negative"
    )]
    let down = |share: f64| share.max(0.0) as u64;
    let mut percentages: Vec<u64> = exact.iter().map(|share| down(*share)).collect();
    let sum = down(exact.iter().sum::<f64>().round());
    let missing = sum.saturating_sub(percentages.iter().sum());
    let mut order: Vec<usize> = (0..exact.len()).collect();
    order.sort_by(|&one, &other| exact[other].fract().total_cmp(&exact[one].fract()));
    for place in order.into_iter().take(usize::try_from(missing).unwrap_or(0)) {
        percentages[place] += 1;
    }
    percentages
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::usage::ModelUse;

    fn part(what: &'static str, names: &[&str]) -> CostPart {
        let used = ModelUse {
            input_tokens: 1_234_567,
            cache_read_tokens: 12_345_678,
            cost_usd: Usd::from_dollars(1.0),
            ..ModelUse::default()
        };
        let line = LedgerLine { turns: 3, used, ..LedgerLine::default() };
        CostPart::of(what, names.iter().map(|name| ((*name).to_owned(), line)).collect())
    }

    #[test]
    fn percentages_of_a_whole_add_to_hundred() {
        let thirds = [1.0, 1.0, 1.0].map(Usd::from_dollars);
        assert_eq!(percentages(&thirds, Usd::from_dollars(3.0)), [34, 33, 33]);
        let uneven = [0.5, 0.25, 0.125, 0.125].map(Usd::from_dollars);
        assert_eq!(percentages(&uneven, Usd::from_dollars(1.0)), [50, 25, 13, 12]);
        let some = [0.2, 0.2].map(Usd::from_dollars);
        assert_eq!(percentages(&some, Usd::from_dollars(1.0)), [20, 20]);
        assert_eq!(percentages(&some, Usd::ZERO), [0, 0]);
        assert!(percentages(&[], Usd::ZERO).is_empty());
    }

    #[test]
    fn narrow_table_fits_into_eighty_columns() {
        let parts = [part("", &["in all"]), part("state", &["REVIEW.md", "WORK.md", "START.md"])];
        let whole = Usd::from_dollars(3.0);
        let drawn = |is_narrow| lines(&parts, whole, CostTableForm { has_tokens: true, is_narrow });
        let widest = |lines: &[StyledLine]| lines.iter().map(StyledLine::width).max();
        assert!(widest(&drawn(false)) > Some(80));
        let narrow = drawn(true);
        assert!(widest(&narrow) <= Some(80), "{narrow:#?}");
        let text: Vec<String> = narrow.iter().map(StyledLine::text).collect();
        assert!(text[0].trim_start().starts_with("re-  "), "{text:#?}");
        assert!(text.iter().any(|line| line.contains("12.3M")), "{text:#?}");
        assert!(narrow[0].painted(true).contains("\u{1b}[2m"));
    }
}
