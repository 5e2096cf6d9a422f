//! The messages between raymond and a plug-in that is a program: one line of JSON each.
//!
//! The program reads [`HostMessage`] on its stdin and writes [`PluginMessage`] to its stdout. `raymond schema`
//! prints both as JSON Schema, made from these types. A reader ignores fields it does not know, so that a later
//! version can add some; a change of meaning gets another [`VERSION`].

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use super::consult::{AllowSpan, ConsultVerdict, Consultation, StopScope};
use super::event::Record;
use super::id::RunId;
use super::money::Usd;
use super::time::{Timestamp, millis};
use super::transition::Transition;

/// The version of the protocol.
pub const VERSION: u32 = 2;

/// A message to a plug-in: a line on its stdin.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum HostMessage<'message> {
    /// The first line.
    Hello(HostHello<'message>),
    /// Something has happened, and is in the journal.
    Record {
        record: &'message Record,
        /// The amount the run has spent by then.
        total_cost_usd: Usd,
        /// The number of records before this one that were left out, because the program did not read them in
        /// time; the journal has them.
        missed: u64,
    },
    /// Something is about to happen. The program answers with a verdict of the same `id`.
    Consult {
        /// The number of the question.
        id: u64,
        question: &'message Consultation,
    },
    /// The last line: nothing more happens, and the program must end.
    Finish,
}

/// The greeting of raymond.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct HostHello<'message> {
    /// The version of the protocol.
    pub version: u32,
    /// The run's id.
    pub run: &'message RunId,
    /// The plug-in's name.
    pub plugin: &'message str,
    /// The run's journal, a file. How its lines are stored is raymond's own affair and changes with its
    /// versions: `raymond log --json` prints the records in it as this protocol has them.
    pub journal: &'message str,
    /// The number up to which the journal's records are not sent, because the run was there before or the
    /// program is started again. It is 0 at the beginning of a new run.
    pub seq: u64,
    /// The amount the run had spent by then.
    pub total_cost_usd: Usd,
    /// The number of times this raymond has started the program for this run, this time included.
    pub start: u64,
}

/// A message of a plug-in: a line on its stdout.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum PluginMessage {
    /// The program is ready. It is asked nothing before this.
    Hello(PluginHello),
    /// The answer to a question.
    Verdict(ConsultAnswer),
}

/// The greeting of a plug-in.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct PluginHello {
    /// The version of the protocol it speaks: 2.
    pub version: u32,
    /// The occasions on which it wants to be asked; none by default.
    #[serde(default)]
    pub consult: Vec<HookPoint>,
}

/// An occasion on which a plug-in can be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HookPoint {
    /// A turn is about to start.
    Start,
    /// An agent asks for a transition.
    Transition,
    /// A tool call needs approval.
    Approval,
}

impl HookPoint {
    /// Returns the occasion of a question.
    pub fn of(question: &Consultation) -> Self {
        match question {
            Consultation::Start(_) => Self::Start,
            Consultation::Transition(_) => Self::Transition,
            Consultation::Approval(_) => Self::Approval,
        }
    }
}

/// The answer to a question.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct ConsultAnswer {
    /// The number of the question.
    pub id: u64,
    /// The program's verdict.
    #[serde(flatten)]
    pub verdict: WireVerdict,
}

/// A verdict as a program writes it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(tag = "verdict", rename_all = "snake_case")]
pub enum WireVerdict {
    /// Go ahead.
    Proceed,
    /// The agent's next turn does not start before a time, given as `until` or as `for`; then the program is
    /// asked again.
    Hold {
        /// The end of the wait, as a point in time.
        #[serde(default)]
        until: Option<Timestamp>,
        /// The length of the wait, from now.
        #[serde(default, rename = "for")]
        lasts: Option<WireDuration>,
        /// The reason, for people.
        #[serde(default)]
        reason: String,
    },
    /// The agent takes this transition instead. It is not bound to the state's policy, but the files it names
    /// must exist.
    Override {
        transition: Transition,
        /// The reason, for people.
        #[serde(default)]
        reason: String,
    },
    /// The agent ends with an error, or the whole run pauses.
    Stop {
        /// The reason, for people.
        #[serde(default)]
        reason: String,
        /// The agent or the whole run.
        #[serde(default)]
        scope: StopScope,
    },
    /// The tool call runs.
    Allow {
        /// The calls that it is about.
        #[serde(default)]
        span: AllowSpan,
    },
    /// The tool call does not run.
    Deny {
        /// The reason, which the agent gets.
        #[serde(default)]
        reason: String,
    },
}

/// A span of time, in milliseconds; as text it is written like `30s`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct WireDuration(pub u64);

impl TryFrom<String> for WireDuration {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        millis(&text).map(Self)
    }
}

impl JsonSchema for WireDuration {
    fn schema_name() -> Cow<'static, str> {
        "Span".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A span of time: 200ms, 30s, 1.5m or 2h.",
            "type": "string",
            "pattern": r"^\s*[0-9]+(\.[0-9]+)?\s*(ms|s|m|h)?\s*$",
        })
    }
}

impl WireVerdict {
    /// Returns the verdict as of `now`.
    ///
    /// # Errors
    /// A text that names what is missing.
    pub fn verdict(self, now: Timestamp) -> Result<ConsultVerdict, &'static str> {
        Ok(match self {
            Self::Proceed => ConsultVerdict::Proceed,
            Self::Hold { until, lasts, reason } => {
                let until = match (until, lasts) {
                    (Some(until), None) => until,
                    (None, Some(WireDuration(millis))) => now.plus(millis),
                    _ => return Err("to hold needs either `until` or `for`"),
                };
                ConsultVerdict::Hold { until, reason }
            }
            Self::Override { transition, reason } => {
                ConsultVerdict::Override { transition, reason }
            }
            Self::Stop { reason, scope } => ConsultVerdict::Stop { reason, scope },
            Self::Allow { span } => ConsultVerdict::Allow { span },
            Self::Deny { reason } => ConsultVerdict::Deny { reason },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Event, TurnHeld};
    use crate::id::{AgentId, StateName};
    use crate::turn::TurnId;

    fn verdict(json: &str) -> Result<ConsultVerdict, String> {
        match serde_json::from_str::<PluginMessage>(json).map_err(|error| error.to_string())? {
            PluginMessage::Verdict(answer) => {
                answer.verdict.verdict(Timestamp(1000)).map_err(str::to_owned)
            }
            PluginMessage::Hello(hello) => Err(format!("{hello:?}")),
        }
    }

    #[test]
    fn hold_verdict_takes_either_duration_or_timestamp() {
        let held =
            |until| Ok(ConsultVerdict::Hold { until: Timestamp(until), reason: String::new() });
        let line = |rest: &str| format!(r#"{{"type":"verdict","id":1,"verdict":"hold"{rest}}}"#);
        assert_eq!(verdict(&line(r#","for":"30s""#)), held(31_000));
        assert_eq!(verdict(&line(r#","until":"1970-01-01T00:01:00Z""#)), held(60_000));
        for wrong in ["", r#","for":"soon""#, r#","for":"1s","until":"1970-01-01T00:01:00Z""#] {
            assert!(verdict(&line(wrong)).is_err(), "{wrong}");
        }
    }

    #[test]
    fn record_message_uses_protocol_field_names() {
        let event = Event::TurnHeld(TurnHeld {
            turn: TurnId { agent: AgentId::main(), step: 2, turn: 0 },
            state: StateName::parse("A.md").expect("a state"),
            by: "x".to_owned(),
            until: Timestamp(1_768_487_422_123),
            reason: String::new(),
        });
        let record = &Record {
            kept_session: None,
            seq: 7,
            at: Timestamp(0),
            folder: None,
            snapshot: None,
            placed: Vec::new(),
            event,
        };
        let message =
            HostMessage::Record { record, total_cost_usd: Usd::from_dollars(0.5), missed: 0 };
        assert_eq!(
            serde_json::to_string(&message).expect("it is JSON"),
            r#"{"type":"record","record":{"seq":7,"at":"1970-01-01T00:00:00.000Z","event":"turn_held","agent":"main","step":2,"turn":0,"state":"A.md","by":"x","until":"2026-01-15T14:30:22.123Z"},"total_cost_usd":0.5,"missed":0}"#
        );
    }
}
