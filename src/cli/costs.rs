//! `raymond costs`: a run's money by state, model and agent, and the unknown part of it.

mod cost_table;

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::{Value, json};

use self::cost_table::{CostPart, CostTableForm};
use super::args::readers::CostsArgs;
use super::exit::{CliExitCode, Error};
use super::{output, run_choice, status, status_word, table};
use crate::domain::id::RunId;
use crate::domain::ledger::{Ledger, LedgerLine};
use crate::domain::money::Usd;
use crate::domain::settings::AnswererKind;
use crate::plugin::styled::StyledLine;
use crate::store::layout::RunsRoot;
use crate::store::view::{RunView, story};

/// Runs `raymond costs`.
///
/// # Errors
/// [`Error`] if the run cannot be read.
pub fn costs(args: &CostsArgs) -> Result<CliExitCode, Error> {
    let mut ledger = Ledger::default();
    let root = args.one.dir.root();
    let id = run_choice::chosen(&args.one.named, &root)?;
    let view = story(&root, &id, |before, record| ledger.count(before, &record.event))?;
    let costs = CostReport { view: &view, ledger: &ledger };
    if args.one.json {
        return output::print_json(&costs.as_json());
    }
    let lines = costs.as_lines(&root, args.all, table::columns());
    table::print(lines)
}

/// Returns the costs of a run as `--json` prints them.
///
/// # Errors
/// [`Error`] if the run cannot be read.
pub(super) fn document(root: &RunsRoot, id: &RunId) -> Result<Value, Error> {
    let mut ledger = Ledger::default();
    let view = story(root, id, |before, record| ledger.count(before, &record.event))?;
    Ok(CostReport { view: &view, ledger: &ledger }.as_json())
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

    fn is_scripted(&self) -> bool {
        !self.view.run.settings.answerer.calls_model()
    }

    /// Returns the number of agents that ended with the run, perhaps in the midst of a turn.
    fn unbilled_agents(&self) -> usize {
        self.view.run.finished.iter().filter(|ended| ended.unbilled_turn.is_some()).count()
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
        let (unreported_turns, unbilled_agents) =
            (self.ledger.total.unreported_turns, self.unbilled_agents());
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

    fn as_json(&self) -> Value {
        let run = &self.view.run;
        let named = |what: &str, name: Value, line: &LedgerLine| {
            let mut value = as_json(line, self.whole());
            value[what] = name;
            value
        };
        let ledger = self.ledger;
        let states = most_expensive_first(&ledger.states).into_iter();
        let models = most_expensive_first(&ledger.models).into_iter();
        let mut agents = most_expensive_first(&ledger.agents);
        agents.sort_by(|(one, cost), (other, other_cost)| {
            let dearer = other_cost.used.cost_usd.cmp(&cost.used.cost_usd);
            dearer.then_with(|| one.cmp_by_number(other))
        });
        let agents = agents.into_iter();
        json!({
            "run": run.workflow_id,
            "status": status_word::word(self.view),
            "total_cost_usd": run.total_cost_usd,
            "budget_usd": run.settings.budget_usd,
            "scripted": self.is_scripted(),
            "unbilled_agents": self.unbilled_agents(),
            "total": as_json(&ledger.total, self.whole()),
            "states": states.map(|(name, line)| named("state", json!(name), line)).collect::<Vec<_>>(),
            "models": models.map(|(name, line)| named("model", json!(name), line)).collect::<Vec<_>>(),
            "agents": agents.map(|(name, line)| named("agent", json!(name), line)).collect::<Vec<_>>(),
        })
    }
}

/// Returns the lines, the most expensive first.
fn most_expensive_first<N>(lines: &BTreeMap<N, LedgerLine>) -> Vec<(&N, &LedgerLine)> {
    let mut lines: Vec<_> = lines.iter().collect();
    lines.sort_by_key(|(_, line)| std::cmp::Reverse(line.used.cost_usd));
    lines
}

fn as_json(line: &LedgerLine, whole: Usd) -> Value {
    json!({
        "turns": line.turns,
        "failed": line.failed,
        "reminders": line.reminders,
        "unreported_turns": line.unreported_turns,
        "estimated_usd": line.estimated,
        "input_tokens": line.used.input_tokens,
        "output_tokens": line.used.output_tokens,
        "cache_read_tokens": line.used.cache_read_tokens,
        "cache_write_tokens": line.used.cache_write_tokens,
        "cost_usd": line.used.cost_usd,
        "share": line.share(whole),
    })
}
