//! Totals of cost and use that a process reports, for each model.
//!
//! A result and the answer to `get_usage` have them, with the totals of sub-agents and of compaction. (The `usage` of
//! a result counts the main conversation alone.)

use std::collections::BTreeMap;

use serde_json::value::RawValue;

use super::line::{ControlResponse, ModelUsage, RawField, StreamLine, UsageResponse, get, text};
use super::whole;
use crate::domain::money::Usd;
use crate::domain::usage::{ModelUse, ProcessSpending};

/// Returns the totals of a result; a field that is missing or has another form counts as 0.
pub(super) fn of_result(event: &StreamLine<'_>) -> ProcessSpending {
    totals(event.total_cost_usd, event.model_usage)
}

/// Returns the totals of an answer to `get_usage`, with the id of the request.
pub(super) fn of_usage_response(event: &StreamLine<'_>) -> Option<(String, ProcessSpending)> {
    let answer: ControlResponse<'_> = get(event.response)?;
    let UsageResponse { session } = get(answer.response)?;
    session.total_cost_usd?;
    Some((text(answer.request_id)?, totals(session.total_cost_usd, session.model_usage)))
}

fn totals(cost: RawField<'_>, model_usage: RawField<'_>) -> ProcessSpending {
    let models: BTreeMap<String, &RawValue> = get(model_usage).unwrap_or_default();
    let used = |(model, used): (String, &RawValue)| Some((model, model_use(&get(Some(used))?)));
    ProcessSpending { cost: dollars(cost), usage: models.into_iter().filter_map(used).collect() }
}

fn model_use(reported: &ModelUsage<'_>) -> ModelUse {
    ModelUse {
        input_tokens: tokens(reported.input_tokens),
        output_tokens: tokens(reported.output_tokens),
        cache_read_tokens: tokens(reported.cache_read_input_tokens),
        cache_write_tokens: tokens(reported.cache_creation_input_tokens),
        cost_usd: dollars(reported.cost_usd),
    }
}

fn tokens(field: RawField<'_>) -> u64 {
    whole(get(field).unwrap_or(0.0))
}

fn dollars(field: RawField<'_>) -> Usd {
    Usd::from_dollars(get(field).unwrap_or(0.0))
}

#[cfg(test)]
mod tests {
    use super::super::StreamParser;
    use super::*;
    use crate::domain::id::MessageId;
    use crate::domain::usage::UsageByModel;

    const LINE: &str = concat!(
        r#"{"type":"result","total_cost_usd":0.25,"modelUsage":{"claude-opus-4-8":{"inputTokens":2000,"#,
        r#""outputTokens":200,"cacheReadInputTokens":400,"cacheCreationInputTokens":600,"#,
        r#""webSearchRequests":0,"costUSD":0.25,"contextWindow":200000,"maxOutputTokens":64000},"#,
        r#""odd":{"inputTokens":"many","outputTokens":-1,"costUSD":null},"worse":7}}"#,
        "\n"
    );

    fn opus(tokens: u64, dollars: f64) -> ProcessSpending {
        let cost = Usd::from_dollars(dollars);
        let used = ModelUse {
            input_tokens: tokens * 10,
            output_tokens: tokens,
            cache_read_tokens: tokens * 2,
            cache_write_tokens: tokens * 3,
            cost_usd: cost,
        };
        ProcessSpending {
            cost,
            usage: UsageByModel::from_iter([("claude-opus-4-8".to_owned(), used)]),
        }
    }

    #[test]
    fn turn_spending_excludes_earlier_process_spending() {
        for before in [ProcessSpending::default(), opus(150, 0.125)] {
            let mut stream = StreamParser::answer_to(MessageId::new("m"), before.clone());
            stream.feed(LINE.as_bytes()).expect("a short line");
            assert_eq!(*stream.total(), opus(200, 0.25), "what is odd counts as nothing");
            assert_eq!(*stream.taken(), opus(200, 0.25).since(&before));
        }
    }

    #[test]
    fn empty_or_invalid_model_usage_counts_as_zero() {
        for usage in ["null", "7", "[]", "{}"] {
            let mut stream = StreamParser::default();
            let line = format!("{{\"type\":\"result\",\"modelUsage\":{usage}}}\n");
            stream.feed(line.as_bytes()).expect("a short line");
            assert_eq!(*stream.taken(), ProcessSpending::default());
        }
    }
}
