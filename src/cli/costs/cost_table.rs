//! The tables of `raymond costs`: what was spent by state, model and agent, in a wide form and a narrow one. Pure.
//!
//! The rows of agents: each in its own, or those of a fan-out in one, the most expensive first. Pure.

use std::collections::BTreeMap;

use crate::actor::registry::FanOutKey;
use crate::cli::output::{self, short_number};
use crate::cli::table::{self, TableCell};
use crate::domain::id::{AgentId, StateName};
use crate::domain::ledger::{Ledger, LedgerLine};
use crate::domain::money::Usd;
use crate::domain::run::Run;
use crate::domain::tree::fold::FAMILY_FOLD_SIZE;
use crate::domain::views::agents_by_cost;
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
        let tone = if part.what.is_empty() { TextTone::Strong } else { TextTone::Plain };
        rows.extend(part.rows.iter().map(|row| (tone, cells_of(row, whole, form))));
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

fn cells_of(row: &AgentCostRow, whole: Usd, form: CostTableForm) -> Vec<String> {
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
    cells.extend([used.cost_usd.to_string(), format!("{:.0}%", 100.0 * line.share(whole))]);
    if let Some((mean, most, cost)) = mean_and_most {
        cells.extend([mean.to_string(), format!("{most} {cost}")]);
    }
    cells
}

/// The number of agents from which fan-outs are folded.
const MIN_FOLDED_AGENTS: usize = 20;

/// The number of rows that are shown unless all are.
const DEFAULT_ROWS: usize = 10;

/// A row of one agent or of several.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct AgentCostRow {
    /// The agent, or the number of agents and their first state.
    pub(super) name: String,
    /// The sum of its charges.
    pub(super) line: LedgerLine,
    /// The mean cost of several agents, and the most expensive of them with its cost.
    pub(super) mean_and_most: Option<(Usd, AgentId, Usd)>,
}

/// Returns the rows of all agents that have had a charge; with `all`, each in its own.
pub(super) fn rows(run: &Run, ledger: &Ledger, all: bool) -> Vec<AgentCostRow> {
    let agents = agents_by_cost(ledger);
    if all || agents.len() < MIN_FOLDED_AGENTS {
        let max_rows = if all { usize::MAX } else { DEFAULT_ROWS };
        return cut(agents.into_iter().map(|one| row_of(&[one], "")).collect(), max_rows);
    }
    let began = first_states(run);
    let mut fan_outs: BTreeMap<FanOutKey, Vec<(&AgentId, &LedgerLine)>> = BTreeMap::new();
    for (agent, line) in agents {
        let key = FanOutKey::of(agent, began.get(agent));
        fan_outs.entry(key).or_default().push((agent, line));
    }
    let mut rows = Vec::new();
    for (key, members) in fan_outs {
        if members.len() > FAMILY_FOLD_SIZE {
            let state = key.began.map_or("an unknown state".to_owned(), |began| began.to_string());
            rows.push(row_of(&members, &state));
        } else {
            rows.extend(members.iter().map(|one| row_of(std::slice::from_ref(one), "")));
        }
    }
    rows.sort_by_key(|row| std::cmp::Reverse(row.line.used.cost_usd));
    cut(rows, DEFAULT_ROWS)
}

/// Returns the state that each agent began in.
fn first_states(run: &Run) -> BTreeMap<&AgentId, StateName> {
    let live = run.agents.values().map(|agent| (&agent.id, agent.spec.shown_state()));
    let ended = run.finished.iter().filter_map(|ended| Some((&ended.id, ended.began()?)));
    live.chain(ended).collect()
}

/// Returns the row of agents, the most expensive of which is the first.
fn row_of(members: &[(&AgentId, &LedgerLine)], state: &str) -> AgentCostRow {
    let line = LedgerLine::sum(members);
    match members {
        [(most, dearest), _, ..] => {
            #[expect(clippy::cast_precision_loss, reason = "a mean for people")]
            let mean = Usd::from_dollars(line.used.cost_usd.dollars() / members.len() as f64);
            AgentCostRow {
                name: format!("{} agents of {state}", members.len()),
                line,
                mean_and_most: Some((mean, (*most).clone(), dearest.used.cost_usd)),
            }
        }
        one => {
            let name = one.iter().map(|(agent, _)| agent.to_string()).collect();
            AgentCostRow { name, line, mean_and_most: None }
        }
    }
}

/// Returns the first rows, and one for the others.
fn cut(mut rows: Vec<AgentCostRow>, max_rows: usize) -> Vec<AgentCostRow> {
    if rows.len() > max_rows {
        let rest = rows.split_off(max_rows);
        let lines: Vec<((), &LedgerLine)> = rest.iter().map(|row| ((), &row.line)).collect();
        rows.push(AgentCostRow {
            name: format!("{} others (--all)", rest.len()),
            line: LedgerLine::sum(&lines),
            mean_and_most: None,
        });
    }
    rows
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

#[cfg(test)]
mod agent_rows_tests {
    use super::*;
    use crate::domain::tests::scene::{Scene, tag};
    use crate::domain::transition::TagName;
    use crate::domain::usage::ModelUse;

    /// Returns a run with that many workers, and its ledger: the n-th worker has cost n cents.
    fn crowd(workers: u32) -> (Run, Ledger) {
        let mut scene = Scene::begin();
        let mut ledger = Ledger::default();
        let line = |cents: u32| {
            let cost_usd = Usd::from_dollars(f64::from(cents) / 100.0);
            LedgerLine {
                turns: 1,
                used: ModelUse { cost_usd, ..ModelUse::default() },
                ..LedgerLine::default()
            }
        };
        ledger.agents.insert(AgentId::main(), line(500));
        for number in 1..=workers {
            scene.take("main", tag(TagName::Fork, "NEXT.md", "WORK.md"));
            ledger.agents.insert(AgentId::main().child(number), line(number));
        }
        (scene.run, ledger)
    }

    fn texts(workers: u32, all: bool) -> Vec<String> {
        let (run, ledger) = crowd(workers);
        let text = |row: &AgentCostRow| {
            let more = row.mean_and_most.as_ref();
            let more = more.map(|(mean, most, cost)| format!(", mean {mean}, most {most} {cost}"));
            format!("{} {}{}", row.name, row.line.used.cost_usd, more.unwrap_or_default())
        };
        rows(&run, &ledger, all).iter().map(text).collect()
    }

    #[test]
    fn fan_out_of_many_is_one_row_with_mean_and_most() {
        assert_eq!(
            texts(30, false),
            ["main $5.00", "30 agents of WORK.md $4.65, mean $0.1550, most main.30 $0.30"]
        );
        assert_eq!(texts(30, true).len(), 31);
    }

    #[test]
    fn few_agents_have_rows_of_their_own_and_the_cheapest_are_summed() {
        let rows = texts(15, false);
        assert_eq!(rows[..2], ["main $5.00", "main.15 $0.15"]);
        assert_eq!(rows[10], "6 others (--all) $0.21");
    }
}
