//! `modelUsage`: the usage of each model by a process since it began.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::script::ScriptRule;

/// The usage by the name of the model.
#[derive(Debug, Clone, Default)]
pub(crate) struct ProcessUsage(BTreeMap<String, ModelUsage>);

/// The usage of one model, and its part of the cost.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ModelUsage {
    input: u64,
    output: u64,
    cache_read: u64,
    cache_write: u64,
    cost: f64,
}

impl ProcessUsage {
    /// Returns the usage with that of a turn added.
    pub(crate) fn plus(mut self, rule: &ScriptRule, model: &str) -> Self {
        if let Some(models) = &rule.models {
            for (model, used) in models {
                self.add(model, *used);
            }
        } else {
            let plausible =
                ModelUsage { input: 1_000, output: 100, cost: rule.cost, ..ModelUsage::default() };
            self.add(model, plausible);
        }
        self
    }

    fn add(&mut self, model: &str, used: ModelUsage) {
        let sum = self.0.entry(model.to_owned()).or_default();
        sum.input += used.input;
        sum.output += used.output;
        sum.cache_read += used.cache_read;
        sum.cache_write += used.cache_write;
        sum.cost += used.cost;
    }

    /// Returns the usage as a result prints it.
    pub(crate) fn printed(&self) -> Value {
        let printed = |(model, used): (&String, &ModelUsage)| {
            let used = json!({
                "inputTokens": used.input, "outputTokens": used.output,
                "cacheReadInputTokens": used.cache_read,
                "cacheCreationInputTokens": used.cache_write, "webSearchRequests": 0,
                "costUSD": used.cost, "contextWindow": 200_000, "maxOutputTokens": 64_000,
            });
            (model.clone(), used)
        };
        self.0.iter().map(printed).collect::<serde_json::Map<_, _>>().into()
    }
}
