//! `raymond costs`: a run's money by state, model and agent, and the unknown part of it.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::args::readers::CostsArgs;
use super::exit::{CliExitCode, Error};
use super::{output, settings, status, table};
use crate::actor::registry::FanOutKey;
use crate::cli::output::short_number;
use crate::cli::table::TableCell;
use crate::domain::id::{AgentId, RunId, StateName};
use crate::domain::ledger::{Ledger, LedgerLine};
use crate::domain::money::Usd;
use crate::domain::run::Run;
use crate::domain::settings::AnswererKind;
use crate::domain::tree::FAMILY_FOLD_SIZE;
use crate::domain::views::{RunCosts, agents_by_cost, most_expensive_first, unbilled_agents};
use crate::plugin::styled::{StyledLine, TextTone};
use crate::store::layout::RunsRoot;
use crate::store::view::{RunView, story};

/// Runs `raymond costs`.
///
/// # Errors
/// [`Error`] if the run cannot be read.
pub fn costs(args: &CostsArgs) -> Result<CliExitCode, Error> {
    let root = args.target.dir.root();
    let id = settings::chosen(&args.target.named, &root)?;
    if args.target.json {
        return output::print_json(&document(&root, &id)?);
    }
    let mut ledger = Ledger::default();
    let view = story(&root, &id, |before, record| ledger.count(before, &record.event))?;
    let lines =
        CostReport { view: &view, ledger: &ledger }.as_lines(&root, args.all, table::columns());
    table::print(lines)
}

/// Returns the costs of a run as `--json` prints them.
///
/// # Errors
/// [`Error`] if the run cannot be read.
pub(super) fn document(root: &RunsRoot, id: &RunId) -> Result<RunCosts, Error> {
    let mut ledger = Ledger::default();
    let view = story(root, id, |before, record| ledger.count(before, &record.event))?;
    Ok(RunCosts::of(&view.run, view.held, &ledger))
}

/// Adds up the lines of each model's variants: `claude-x-20251001` and `claude-x[1m]` are `claude-x`.
fn merged_variants(
    models: &BTreeMap<Option<String>, LedgerLine>,
) -> BTreeMap<Option<String>, LedgerLine> {
    let mut merged: BTreeMap<Option<String>, LedgerLine> = BTreeMap::new();
    for (model, line) in models {
        let model = model.as_deref().map(|model| base_model(model).to_owned());
        merged.entry(model).or_default().add(*line);
    }
    merged
}

fn base_model(model: &str) -> &str {
    let model = model.split('[').next().unwrap_or(model);
    let is_date = |tail: &str| tail.len() == 8 && tail.chars().all(|c| c.is_ascii_digit());
    match model.rsplit_once('-') {
        Some((base, date)) if is_date(date) => base,
        _ => model,
    }
}

struct CostReport<'run> {
    view: &'run RunView,
    ledger: &'run Ledger,
}

impl CostReport<'_> {
    fn whole(&self) -> Usd {
        self.ledger.total.used.cost_usd
    }

    /// Returns the report; if its tables are wider than that many columns, in a narrow form.
    fn as_lines(&self, root: &RunsRoot, all: bool, columns: Option<usize>) -> Vec<StyledLine> {
        let mut parts = vec![CostPart::of("", vec![("in all".to_owned(), self.ledger.total)])];
        let states = most_expensive_first(&self.ledger.states).into_iter();
        let states = states.map(|(state, line)| (state.to_string(), *line));
        parts.push(CostPart::of("state", states.collect()));
        let model = |(model, line): (&Option<String>, &LedgerLine)| {
            (model.clone().unwrap_or_else(|| "not known".to_owned()), *line)
        };
        if self.view.run.settings.answerer != AnswererKind::Scripted {
            let merged = merged_variants(&self.ledger.models);
            let models = most_expensive_first(&merged).into_iter().map(model);
            parts.push(CostPart::of("model", models.collect()));
        }
        let agents = rows(&self.view.run, self.ledger, all);
        parts.push(CostPart { what: "agent", rows: agents });
        let has_tokens = self.ledger.models.keys().any(Option::is_some);
        let form = |is_narrow| CostTableForm { has_tokens, is_narrow };
        let mut table = lines(&parts, self.whole(), form(false));
        let is_wide = |columns| table.iter().any(|line| line.width() > columns);
        if has_tokens && columns.is_some_and(is_wide) {
            table = lines(&parts, self.whole(), form(true));
        }
        let mut lines = status::headline(root, self.view);
        lines.extend(table);
        lines.extend(table::plain(&self.not_known()));
        lines
    }

    /// Returns the notes on costs that the sums leave out.
    fn not_known(&self) -> String {
        let mut text = String::new();
        let unreported_turns = self.ledger.total.unreported_turns;
        let unbilled_agents = unbilled_agents(&self.view.run);
        if self.view.held && !self.view.run.agents.is_empty() {
            text.push_str("\nrunning turns are counted when they have ended\n");
        }
        if let Some(note) = self.view.run.settings.answerer.note_on_costs() {
            let _ = writeln!(text, "\n{note}");
        } else if unreported_turns > 0 {
            let estimated = match self.ledger.total.estimated {
                Usd::ZERO => "their cost is not included".to_owned(),
                some => format!("{some} is included for them, an estimate from similar turns"),
            };
            let _ = writeln!(
                text,
                "\n{unreported_turns} failed turns ended before they reported a cost; {estimated}"
            );
        }
        if unbilled_agents > 0 {
            let _ = writeln!(
                text,
                "\n{unbilled_agents} agents ended with the run, perhaps in a turn of unknown cost"
            );
        }
        text
    }
}

// The tables of `raymond costs`: what was spent by state, model and agent, in a wide form and a narrow one. Pure.

/// The lines of one kind: of states, models or agents.
struct CostPart {
    /// The kind; empty for the sum of all.
    what: &'static str,
    rows: Vec<AgentCostRow>,
}

/// The form of the tables.
#[derive(Debug, Clone, Copy)]
struct CostTableForm {
    /// True if the numbers of tokens are known.
    has_tokens: bool,
    /// True for heads of two lines and short numbers.
    is_narrow: bool,
}

impl CostPart {
    /// Makes a part of named lines.
    fn of(what: &'static str, lines: Vec<(String, LedgerLine)>) -> Self {
        let row = |(name, line)| AgentCostRow { name, line, mean_and_most: None };
        Self { what, rows: lines.into_iter().map(row).collect() }
    }
}

/// A row of cells, and the tone of all of them.
type ToneRow = (TextTone, Vec<String>);

/// Returns the lines of all parts, with columns of equal width.
fn lines(parts: &[CostPart], whole: Usd, form: CostTableForm) -> Vec<StyledLine> {
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
    let cells = table::right_align(cells, usize::MAX);
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

// The rows of agents: each in its own, or those of a fan-out in one, the most expensive first. Pure.

/// The number of agents from which fan-outs are folded.
const MIN_FOLDED_AGENTS: usize = 20;

/// The number of rows that are shown unless all are.
const DEFAULT_ROWS: usize = 10;

/// A row of one agent or of several.
#[derive(Debug, Clone, PartialEq)]
struct AgentCostRow {
    /// The agent, or the number of agents and their first state.
    name: String,
    /// The sum of its charges.
    line: LedgerLine,
    /// The mean cost of several agents, and the most expensive of them with its cost.
    mean_and_most: Option<(Usd, AgentId, Usd)>,
}

/// Returns the rows of all agents that have had a charge; with `all`, each in its own.
fn rows(run: &Run, ledger: &Ledger, all: bool) -> Vec<AgentCostRow> {
    let agents = agents_by_cost(ledger);
    if all || agents.len() < MIN_FOLDED_AGENTS {
        let max_rows = if all { usize::MAX } else { DEFAULT_ROWS };
        return cut(agents.into_iter().map(|agent| row_of(&[agent], "")).collect(), max_rows);
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
            rows.extend(members.iter().map(|agent| row_of(std::slice::from_ref(agent), "")));
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
        only => {
            let name = only.iter().map(|(agent, _)| agent.to_string()).collect();
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
mod cost_table_tests {
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
    fn few_agents_have_separate_rows_and_the_cheapest_are_summed() {
        let rows = texts(15, false);
        assert_eq!(rows[..2], ["main $5.00", "main.15 $0.15"]);
        assert_eq!(rows[10], "6 others (--all) $0.21");
    }
}
