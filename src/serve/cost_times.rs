//! The costs of a run over time, by state and by model.

use std::collections::{BTreeMap, HashMap};

use serde_json::{Value, json};

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

/// The most names that are told apart; the others are one.
const MAX_NAMES: usize = 7;

/// The name of costs whose state or model is not known, and of those that are not told apart.
const UNKNOWN: &str = "not known";
const OTHERS: &str = "others";

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

    fn finish(&self) -> Value {
        let began = self.began.unwrap_or_default();
        let span = self.last.since(began) / u64::from(SPANS) + 1;
        json!({
            "began": began,
            "span_ms": span,
            "states": series(&self.states, began, span),
            "models": series(&self.models, began, span),
        })
    }
}

/// Returns the sums of all spans before anything is added.
fn nothing() -> Vec<f64> {
    (0..SPANS).map(|_| 0.0).collect()
}

/// Returns the sum of each span for each name, the most expensive first.
fn series(charges: &[TimedCharge], began: Timestamp, span: u64) -> Value {
    let mut sums: BTreeMap<&str, f64> = BTreeMap::new();
    for charge in charges {
        *sums.entry(&charge.name).or_default() += charge.dollars;
    }
    let mut names: Vec<(&str, f64)> = sums.into_iter().collect();
    names.sort_by(|(_, one), (_, other)| other.total_cmp(one));
    let kept = if names.len() > MAX_NAMES + 1 { MAX_NAMES } else { names.len() };
    let mut all: Vec<(&str, Vec<f64>)> =
        names[..kept].iter().map(|(name, _)| (*name, nothing())).collect();
    if kept < names.len() {
        all.push((OTHERS, nothing()));
    }
    for charge in charges {
        let span = usize::try_from(charge.at.since(began) / span).unwrap_or(usize::MAX);
        let own = all.iter().position(|(name, _)| *name == charge.name);
        let place = own.unwrap_or(all.len().saturating_sub(1));
        if let Some(sum) = all.get_mut(place).and_then(|(_, sums)| sums.get_mut(span)) {
            *sum += charge.dollars;
        }
    }
    let rounded = |dollars: &f64| (dollars * 1e6).round() / 1e6;
    let one = |(name, sums): &(&str, Vec<f64>)| {
        let sums: Vec<f64> = sums.iter().map(rounded).collect();
        json!({ "name": name, "usd": sums })
    };
    all.iter().map(one).collect()
}

/// Reads the costs of a run over time.
///
/// # Errors
/// [`store::Error`].
pub fn read(dir: &RunDir) -> Result<Value, store::Error> {
    let mut journal = JournalReader::open(&dir.journal())?;
    let mut fold = ChargeFold::default();
    while let Some((seq, line)) = journal.read()? {
        fold.see(&record::decode(&line).map_err(|flaw| journal.damaged(seq, &flaw))?);
    }
    Ok(fold.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn charge(at: u64, name: &str, dollars: f64) -> TimedCharge {
        TimedCharge { at: Timestamp(at), name: name.to_owned(), dollars }
    }

    #[test]
    fn each_span_has_its_sum_and_small_names_are_one() {
        let mut charges: Vec<TimedCharge> = (0..9)
            .map(|number| charge(0, &format!("s{number}"), 1.0 + f64::from(number)))
            .collect();
        charges.push(charge(2500, "s8", 0.5));
        let told = series(&charges, Timestamp(0), 1000);
        let names: Vec<&str> =
            told.as_array().into_iter().flatten().filter_map(|one| one["name"].as_str()).collect();
        assert_eq!(names, ["s8", "s7", "s6", "s5", "s4", "s3", "s2", "others"]);
        assert_eq!((&told[0]["usd"][0], &told[0]["usd"][2]), (&json!(9.0), &json!(0.5)));
        assert_eq!(told[7]["usd"][0], json!(3.0), "the two cheapest");
    }
}
