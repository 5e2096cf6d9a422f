//! The costs of a run over time, by state and by model.

use std::collections::{BTreeMap, HashMap};

use schemars::JsonSchema;
use serde::Serialize;

use crate::domain::event::Record;
use crate::domain::id::AgentId;
use crate::domain::ledger::cost_of;
use crate::domain::time::Timestamp;
use crate::store;
use crate::store::journal::JournalReader;
use crate::store::layout::RunDir;
use crate::store::record;

/// The number of spans that the time of a run is divided into.
const SPANS: u32 = 60;

/// The maximum number of names that are distinguished. The others are combined.
const MAX_NAMES: usize = 7;

/// The name of costs whose state or model is not known, and of those that are not distinguished.
const UNKNOWN: &str = "not known";
const OTHERS: &str = "others";

/// The costs of a run over time.
#[derive(Debug, Serialize, JsonSchema)]
pub struct CostTimes {
    /// The beginning of the run
    began: Timestamp,
    /// The length of a span, in milliseconds
    span_ms: u64,
    /// The costs by state, the most expensive first
    states: Vec<CostSeries>,
    /// The costs by model
    models: Vec<CostSeries>,
}

/// The costs of a state or a model in each span.
#[derive(Debug, Serialize, JsonSchema)]
struct CostSeries {
    /// Its name
    name: String,
    /// Its cost in each span, in US dollars
    usd: Vec<f64>,
}

/// A charge of a time.
#[derive(Debug, Clone, PartialEq)]
struct TimedCharge {
    at: Timestamp,
    name: String,
    dollars: f64,
}

/// The charges of a run.
#[derive(Debug, Default)]
struct ChargeFold {
    began: Option<Timestamp>,
    last: Timestamp,
    states: Vec<TimedCharge>,
    models: Vec<TimedCharge>,
    /// The last known state of each agent.
    known: HashMap<AgentId, String>,
}

impl ChargeFold {
    fn see(&mut self, record: &Record) {
        let at = record.at;
        self.began.get_or_insert(at);
        self.last = self.last.max(at);
        let Some(charge) = cost_of(&record.event) else { return };
        let agent = &charge.turn.agent;
        let name = match charge.prompt {
            Some(prompt) => prompt.shown_in(record.folder.as_ref()).to_string(),
            None => self.known.get(agent).cloned().unwrap_or_else(|| UNKNOWN.to_owned()),
        };
        self.known.insert(agent.clone(), name.clone());
        let dollars = charge.cost.amount.dollars();
        if dollars <= 0.0 {
            return;
        }
        self.states.push(TimedCharge { at, name, dollars });
        let mut rest = dollars;
        for (model, used) in charge.cost.usage.iter() {
            let dollars = used.cost_usd.dollars();
            rest -= dollars;
            self.models.push(TimedCharge { at, name: model.to_owned(), dollars });
        }
        if rest > dollars / 1000.0 {
            self.models.push(TimedCharge { at, name: UNKNOWN.to_owned(), dollars: rest });
        }
    }

    fn finish(&self) -> CostTimes {
        let began = self.began.unwrap_or_default();
        let span_ms = self.last.since(began) / u64::from(SPANS) + 1;
        CostTimes {
            began,
            span_ms,
            states: series(&self.states, began, span_ms),
            models: series(&self.models, began, span_ms),
        }
    }
}

/// Returns the sums of all spans before anything is added.
fn nothing() -> Vec<f64> {
    (0..SPANS).map(|_| 0.0).collect()
}

/// Returns the sum of each span for each name, the most expensive first.
fn series(charges: &[TimedCharge], began: Timestamp, span: u64) -> Vec<CostSeries> {
    let mut sums: BTreeMap<&str, f64> = BTreeMap::new();
    for charge in charges {
        *sums.entry(&charge.name).or_default() += charge.dollars;
    }
    let mut names: Vec<(&str, f64)> = sums.into_iter().collect();
    names.sort_by(|(_, sum), (_, other)| other.total_cmp(sum));
    let kept = if names.len() > MAX_NAMES + 1 { MAX_NAMES } else { names.len() };
    let mut all: Vec<(&str, Vec<f64>)> =
        names[..kept].iter().map(|(name, _)| (*name, nothing())).collect();
    if kept < names.len() {
        all.push((OTHERS, nothing()));
    }
    for charge in charges {
        let span = usize::try_from(charge.at.since(began) / span).unwrap_or(usize::MAX);
        let place = all.iter().position(|(name, _)| *name == charge.name);
        let place = place.unwrap_or(all.len().saturating_sub(1));
        if let Some(sum) = all.get_mut(place).and_then(|(_, sums)| sums.get_mut(span)) {
            *sum += charge.dollars;
        }
    }
    let rounded = |dollars: &f64| (dollars * 1e6).round() / 1e6;
    let of_name = |(name, sums): &(&str, Vec<f64>)| CostSeries {
        name: (*name).to_owned(),
        usd: sums.iter().map(rounded).collect(),
    };
    all.iter().map(of_name).collect()
}

/// Reads the costs of a run over time.
///
/// # Errors
/// [`store::Error`].
pub fn read(dir: &RunDir) -> Result<CostTimes, store::Error> {
    let mut fold = ChargeFold::default();
    JournalReader::open(&dir.journal())?.read_all(|_, line| {
        fold.see(&record::decode(line)?);
        Ok(())
    })?;
    Ok(fold.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn charge(at: u64, name: &str, dollars: f64) -> TimedCharge {
        TimedCharge { at: Timestamp(at), name: name.to_owned(), dollars }
    }

    #[test]
    fn each_span_has_its_sum_and_small_names_are_merged() {
        let mut charges: Vec<TimedCharge> = (0..9)
            .map(|number| charge(0, &format!("s{number}"), 1.0 + f64::from(number)))
            .collect();
        charges.push(charge(2500, "s8", 0.5));
        let series = series(&charges, Timestamp(0), 1000);
        let names: Vec<&str> = series.iter().map(|of_name| of_name.name.as_str()).collect();
        assert_eq!(names, ["s8", "s7", "s6", "s5", "s4", "s3", "s2", "others"]);
        assert!((series[0].usd[0] - 9.0).abs() < 1e-9 && (series[0].usd[2] - 0.5).abs() < 1e-9);
        assert!((series[7].usd[0] - 3.0).abs() < 1e-9, "the two cheapest");
    }
}
