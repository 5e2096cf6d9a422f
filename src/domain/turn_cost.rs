//! The cost of a turn: one type for all events that end one.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::money::Usd;
use super::refusal::ToolRefusals;
use super::turn::{TurnFailure, TurnReply};
use super::usage::UsageByModel;

/// The cost of a turn that has ended.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TurnCost {
    /// The amount. It is counted despite a failure.
    #[serde(rename = "cost_usd")]
    pub amount: Usd,
    /// The amount is an estimate: the known maximum of such a turn.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub estimated: bool,
    /// The usage of each model for that amount.
    #[serde(default, skip_serializing_if = "UsageByModel::is_empty")]
    pub usage: UsageByModel,
    /// The tools that were refused in the turn.
    #[serde(default, skip_serializing_if = "ToolRefusals::is_empty")]
    pub refused_tools: ToolRefusals,
    /// The time the model took, in milliseconds, if it answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
}

impl TurnCost {
    /// Returns the cost of a turn that was answered.
    pub fn of_reply(reply: &TurnReply) -> Self {
        Self {
            amount: reply.cost,
            estimated: false,
            usage: reply.usage.clone(),
            refused_tools: reply.refused_tools.clone(),
            duration_ms: Some(reply.duration_ms),
        }
    }

    /// Returns the reported cost of a turn that failed.
    pub fn of_failure(failure: &TurnFailure) -> Self {
        Self {
            amount: failure.cost,
            estimated: false,
            usage: failure.usage.clone(),
            refused_tools: failure.refused_tools.clone(),
            duration_ms: None,
        }
    }

    /// Returns whether nothing was spent, as far as it is known.
    pub fn is_zero(&self) -> bool {
        self.amount == Usd::ZERO && !self.estimated
    }
}
