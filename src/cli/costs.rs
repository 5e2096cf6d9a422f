//! `raymond costs`: a run's money by state, model and agent, and the unknown part of it.

mod cost_table;

use std::collections::BTreeMap;
use std::fmt::Write as _;

use self::cost_table::{CostPart, CostTableForm};
use super::args::readers::CostsArgs;
use super::exit::{CliExitCode, Error};
use super::{output, run_choice, status, table};
use crate::domain::id::RunId;
use crate::domain::ledger::{Ledger, LedgerLine};
use crate::domain::money::Usd;
use crate::domain::settings::AnswererKind;
use crate::domain::views::{RunCosts, most_expensive_first, unbilled_agents};
use crate::plugin::styled::StyledLine;
use crate::store::layout::RunsRoot;
use crate::store::view::{RunView, story};

/// Runs `raymond costs`.
///
/// # Errors
/// [`Error`] if the run cannot be read.
pub fn costs(args: &CostsArgs) -> Result<CliExitCode, Error> {
    let root = args.one.dir.root();
    let id = run_choice::chosen(&args.one.named, &root)?;
    if args.one.json {
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
        let agents = cost_table::rows(&self.view.run, self.ledger, all);
        parts.push(CostPart { what: "agent", rows: agents });
        let has_tokens = self.ledger.models.keys().any(Option::is_some);
        let form = |is_narrow| CostTableForm { has_tokens, is_narrow };
        let mut table = cost_table::lines(&parts, self.whole(), form(false));
        let is_wide = |columns| table.iter().any(|line| line.width() > columns);
        if has_tokens && columns.is_some_and(is_wide) {
            table = cost_table::lines(&parts, self.whole(), form(true));
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
