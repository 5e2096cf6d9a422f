//! Consultations: questions to plug-ins before something happens, and their possible verdicts.
//!
//! A plug-in is asked twice in a step: before a turn starts, and before the transition that a turn asked for is
//! taken. Its verdict is part of the event it leads to, so a replay needs no plug-in. To proceed is the rule and
//! leaves no trace. If several plug-ins differ, the strictest counts: stop before override before hold. Of several
//! holds, the longest counts. Otherwise the plug-in that was registered first wins.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::approval::ApprovalRequest;
use super::id::{Folder, StateName};
use super::model::ModelName;
use super::money::Usd;
use super::time::Timestamp;
use super::transition::Transition;
use super::turn::TurnId;

/// The minimum time a turn is held, in milliseconds: a plug-in that holds it again and again cannot flood the
/// journal.
pub const SHORTEST_HOLD_MS: u64 = 1000;

/// A question to a plug-in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "question", rename_all = "snake_case")]
pub enum Consultation {
    /// May this turn start?
    Start(TurnStartQuery),
    /// May the agent take this transition?
    Transition(TransitionQuery),
    /// May this tool call run?
    Approval(ApprovalQuery),
}

/// A turn that is about to start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TurnStartQuery {
    #[serde(flatten)]
    pub turn: TurnId,
    /// The state that the turn belongs to.
    pub state: StateName,
    /// The folder of the state below the run's root, if it is another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<Folder>,
    /// The model, or the one Claude Code would take by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<ModelName>,
    /// The spending of the agent and the run.
    #[serde(flatten)]
    pub spent: SpendingTotals,
}

/// A transition that an agent asks for and its state allows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TransitionQuery {
    /// The turn that ended with it.
    #[serde(flatten)]
    pub turn: TurnId,
    /// The state it ran in.
    pub state: StateName,
    /// The folder of the state below the run's root, if it is another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<Folder>,
    /// The transition it asks for.
    pub transition: Transition,
    /// The cost of the turn.
    pub cost_usd: Usd,
    /// The spending of the agent and the run when the turn was dispatched, without this turn.
    #[serde(flatten)]
    pub spent: SpendingTotals,
}

/// A tool call that needs approval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ApprovalQuery {
    /// The turn, which runs.
    #[serde(flatten)]
    pub turn: TurnId,
    /// The prompt of the turn.
    pub state: StateName,
    /// The folder of the state below the run's root, if it is another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<Folder>,
    /// The call.
    pub request: Box<ApprovalRequest>,
}

/// The totals of spending.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SpendingTotals {
    /// By the agent.
    pub agent_cost_usd: Usd,
    /// By the whole run.
    pub total_cost_usd: Usd,
    /// The budget of the whole run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget_usd: Option<Usd>,
}

impl Consultation {
    /// Returns the turn it is about.
    pub fn turn(&self) -> &TurnId {
        match self {
            Self::Start(start) => &start.turn,
            Self::Transition(asked) => &asked.turn,
            Self::Approval(asked) => &asked.turn,
        }
    }
}

/// A plug-in's answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "verdict", rename_all = "snake_case")]
pub enum ConsultVerdict {
    /// Go ahead.
    Proceed,
    /// The agent's next turn starts at this time at the earliest; then the plug-in is asked again.
    Hold {
        /// The earliest start.
        until: Timestamp,
        /// The reason, for people.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        reason: String,
    },
    /// The agent takes this transition instead of the turn, or instead of the transition it asked for. The state's
    /// policy does not apply to it, but the files it names must exist.
    Override {
        transition: Transition,
        /// The reason, for people.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        reason: String,
    },
    /// The agent, or the whole run, stops.
    Stop {
        /// The reason, for people.
        reason: String,
        /// The agent or the run.
        #[serde(default)]
        scope: StopScope,
    },
    /// The tool call runs. At another question it is as good as to proceed.
    Allow {
        /// The calls that it is about.
        #[serde(default)]
        span: AllowSpan,
    },
    /// The tool call does not run. At another question it is as good as to proceed.
    Deny {
        /// The reason, which the agent gets.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        reason: String,
    },
}

/// The calls that a plug-in allows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum AllowSpan {
    /// The call that was asked about.
    #[default]
    Once,
    /// Also calls in this state that the suggested rules cover.
    State,
    /// Also calls in the whole run that the suggested rules cover.
    Run,
}

/// The scope of a stop.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum StopScope {
    /// The agent ends with an error; the others continue.
    #[default]
    Agent,
    /// The run pauses, and can resume.
    Run,
}

/// The verdict of one plug-in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PluginVerdict {
    /// Its name.
    pub by: String,
    /// The plug-in's verdict.
    pub verdict: ConsultVerdict,
}

/// Returns the verdict that counts; `None` if all say to proceed.
pub fn strictest(verdicts: Vec<PluginVerdict>) -> Option<PluginVerdict> {
    let weight = |verdict: &PluginVerdict| match verdict.verdict {
        ConsultVerdict::Proceed | ConsultVerdict::Allow { .. } | ConsultVerdict::Deny { .. } => {
            (0, 0)
        }
        ConsultVerdict::Hold { until, .. } => (1, until.0),
        ConsultVerdict::Override { .. } => (2, 0),
        ConsultVerdict::Stop { scope: StopScope::Agent, .. } => (3, 0),
        ConsultVerdict::Stop { scope: StopScope::Run, .. } => (4, 0),
    };
    let counts = verdicts.into_iter().rev().max_by_key(weight)?;
    (counts.verdict != ConsultVerdict::Proceed).then_some(counts)
}

/// Returns the answer of plug-ins to a tool call that needs approval, in the words of a person, and the plug-in that
/// gave it. A denial counts first; `None` if a person is to decide.
pub fn approval_answer(verdicts: &[PluginVerdict]) -> Option<(String, String)> {
    let denied = verdicts.iter().find_map(|PluginVerdict { by, verdict }| match verdict {
        ConsultVerdict::Deny { reason } | ConsultVerdict::Stop { reason, .. } => {
            Some((by.clone(), format!("deny: {reason}")))
        }
        _ => None,
    });
    denied.or_else(|| {
        verdicts.iter().find_map(|PluginVerdict { by, verdict }| {
            let answer = match verdict {
                ConsultVerdict::Allow { span: AllowSpan::Once } => "allow",
                ConsultVerdict::Allow { span: AllowSpan::State } => "allow-always",
                ConsultVerdict::Allow { span: AllowSpan::Run } => "allow-always-in-run",
                _ => return None,
            };
            Some((by.clone(), answer.to_owned()))
        })
    })
}

/// An actor that is a plug-in answers with a verdict. Only the crate of the type can say so.
#[cfg(feature = "actix")]
impl<A, M> actix::dev::MessageResponse<A, M> for ConsultVerdict
where
    A: actix::Actor,
    M: actix::Message<Result = ConsultVerdict>,
{
    fn handle(self, _: &mut A::Context, asks: Option<actix::dev::OneshotSender<ConsultVerdict>>) {
        if let Some(asks) = asks {
            let _ = asks.send(self);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(by: &str, verdict: ConsultVerdict) -> PluginVerdict {
        PluginVerdict { by: by.to_owned(), verdict }
    }

    fn hold(until: u64) -> ConsultVerdict {
        ConsultVerdict::Hold { until: Timestamp(until), reason: String::new() }
    }

    fn stop(scope: StopScope) -> ConsultVerdict {
        ConsultVerdict::Stop { reason: "no".to_owned(), scope }
    }

    #[test]
    fn strictest_verdict_wins_and_first_wins_ties() {
        let by = |verdicts: &[(&str, ConsultVerdict)]| {
            let verdicts = verdicts.iter().map(|(by, given)| verdict(by, given.clone()));
            strictest(verdicts.collect()).map(|verdict| verdict.by)
        };
        assert_eq!(by(&[]), None);
        assert_eq!(by(&[("a", ConsultVerdict::Proceed)]), None);
        assert_eq!(by(&[("a", hold(1)), ("b", hold(2)), ("c", hold(2))]).as_deref(), Some("b"));
        assert_eq!(by(&[("a", hold(9)), ("b", stop(StopScope::Agent))]).as_deref(), Some("b"));
        let both = [("a", stop(StopScope::Agent)), ("b", stop(StopScope::Agent))];
        assert_eq!(by(&both).as_deref(), Some("a"));
        let wider = [("a", stop(StopScope::Agent)), ("b", stop(StopScope::Run))];
        assert_eq!(by(&wider).as_deref(), Some("b"));
    }

    #[test]
    fn verdict_json_from_plugin_is_parsed() {
        let read = |json: &str| serde_json::from_str::<ConsultVerdict>(json).expect(json);
        assert_eq!(read(r#"{"verdict":"proceed"}"#), ConsultVerdict::Proceed);
        assert_eq!(read(r#"{"verdict":"stop","reason":"no"}"#), stop(StopScope::Agent));
        let overriding =
            r#"{"verdict":"override","transition":{"tag":"goto","target":"A.md"},"reason":"x"}"#;
        assert!(matches!(read(overriding), ConsultVerdict::Override { .. }));
    }
}
