//! `modelUsage`: what a process has taken of each model since it began.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::script::Rule;

/// By the name of the model.
#[derive(Debug, Clone, Default)]
pub(crate) struct Usage(BTreeMap<String, Used>);

/// What is taken of one model, and its part of the cost.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Used {
    input: u64,
    output: u64,
    cache_read: u64,
    cache_write: u64,
    cost: f64,
}

impl Usage {
    /// With what a turn takes.
    pub(crate) fn plus(mut self, rule: &Rule, model: &str) -> Self {
        if let Some(models) = &rule.models {
            for (model, used) in models {
                self.add(model, *used);
            }
        } else {
            let plausible = Used { input: 1_000, output: 100, cost: rule.cost, ..Used::default() };
            self.add(model, plausible);
        }
        self
    }

    fn add(&mut self, model: &str, used: Used) {
        let sum = self.0.entry(model.to_owned()).or_default();
        sum.input += used.input;
        sum.output += used.output;
        sum.cache_read += used.cache_read;
        sum.cache_write += used.cache_write;
        sum.cost += used.cost;
    }

    /// As a result has it.
    pub(crate) fn printed(&self) -> Value {
        let printed = |(model, used): (&String, &Used)| {
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
