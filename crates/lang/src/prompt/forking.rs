//! The frontmatter keys of forks and joins.
//!
//! ```yaml
//! forks: many             # several <fork> tags in one reply are one step
//! max_fan_out: 200        # how many agents one reply may fork
//! stagger: 3s             # how long the first of them starts ahead of the others
//! ```
//!
//! ```yaml
//! join: all               # all, any, or how many have to end well
//! timeout: 2h
//! on_timeout: fail        # fail, keep or STATE.md
//! on_failure: keep        # fail, keep or STATE.md
//! rest: leave             # leave or stop: those that still live then
//! ```

use serde_json::{Value, json};

use crate::hint::closest;
use crate::schema::shape;
use raymond_model::id::StateName;
use raymond_model::join::{JoinCondition, JoinFallback, UnjoinedPolicy};

pub(super) fn join_condition(text: &str) -> Result<JoinCondition, String> {
    match (text, text.parse()) {
        ("all", _) => Ok(JoinCondition::All),
        ("any", _) => Ok(JoinCondition::Any),
        (_, Ok(count)) if count > 0 => Ok(JoinCondition::Count(count)),
        _ => Err(format!(
            "`{text}` is not a number of agents; write all, any, or how many of them have to succeed"
        )),
    }
}

pub(super) fn join_fallback(text: &str) -> Result<JoinFallback, String> {
    match text {
        "fail" => return Ok(JoinFallback::Fail),
        "keep" => return Ok(JoinFallback::Keep),
        _ => {}
    }
    let state = StateName::parse(text).map_err(|error| error.to_string())?;
    // A script without an ending could be any word.
    if state.is_state_by_ending() {
        return Ok(JoinFallback::State(state));
    }
    let meant = closest(text, ["fail", "keep"]).map(|word| format!("; did you mean `{word}`?"));
    let meant = meant.unwrap_or_else(|| "; write fail, keep, or a file such as LATE.md".to_owned());
    Err(format!("`{text}` is not a valid fallback{meant}"))
}

pub(super) fn unjoined_policy(text: &str) -> Result<UnjoinedPolicy, String> {
    match text {
        "leave" => Ok(UnjoinedPolicy::Leave),
        "stop" => Ok(UnjoinedPolicy::Stop),
        _ => Err(format!("`{text}` is not a policy for the remaining agents; write leave or stop")),
    }
}

/// Returns the values of `forks` as JSON Schema.
pub(super) fn forks_shape() -> Value {
    shape::one_of(["one", "many"])
}

/// Returns the values of `join` as JSON Schema.
pub(super) fn join_shape() -> Value {
    json!({ "anyOf": [{ "enum": ["all", "any"] }, shape::count()] })
}

/// Returns the values of `rest` as JSON Schema.
pub(super) fn rest_shape() -> Value {
    shape::one_of(["leave", "stop"])
}

/// Returns whether one reply may have several `<fork>` tags.
pub(super) fn forks(text: &str) -> Result<bool, String> {
    match text {
        "many" => Ok(true),
        "one" => Ok(false),
        _ => Err(format!("`{text}` is not how often a reply may fork; write many, or one")),
    }
}

/// Reads a number of agents.
///
/// # Errors
/// A text that says what is expected.
pub fn count(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(count) if count > 0 => Ok(count),
        _ => Err("write how many agents there may be at the most, such as 200".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::frontmatter::parse;
    use super::*;
    use raymond_model::settings::ForkRules;

    fn wrong(yaml: &str) -> String {
        parse(yaml).expect_err("wrong").to_string()
    }

    #[test]
    fn fork_options_are_parsed_and_invalid_values_are_errors() {
        let read = parse("forks: many\nmax_fan_out: 20\nstagger: 1500ms\n").expect("valid");
        assert!(read.policy.many_forks);
        let rules = ForkRules { max_fan_out: Some(20), stagger_ms: Some(1500) };
        assert_eq!(read.forks, rules);
        assert_eq!(
            wrong("forks: lots\n"),
            "1:8: `lots` is not how often a reply may fork; write many, or one"
        );
        assert_eq!(
            wrong("max_fan_out: 0\n"),
            "1:14: write how many agents there may be at the most, such as 200"
        );
    }

    #[test]
    fn join_options_are_parsed() {
        let read = |yaml: &str| parse(yaml).expect("valid").join.expect("a join");
        let plain = read("join: all\n");
        assert_eq!((plain.need, plain.timeout_ms), (JoinCondition::All, None));
        assert_eq!((plain.on_failure, plain.rest), (JoinFallback::Fail, UnjoinedPolicy::Leave));
        let whole =
            read("join: 7\ntimeout: 2h\non_timeout: LATE.md\non_failure: keep\nrest: stop\n");
        assert_eq!((whole.need, whole.timeout_ms), (JoinCondition::Count(7), Some(7_200_000)));
        let late = StateName::parse("LATE.md").expect("a state");
        assert_eq!(whole.on_timeout, JoinFallback::State(late));
        assert_eq!((whole.on_failure, whole.rest), (JoinFallback::Keep, UnjoinedPolicy::Stop));
        assert_eq!(read("join: any\n").need, JoinCondition::Any);
        let script = StateName::parse("FIX.sh").expect("a state");
        let failed = read("join: all\non_failure: FIX.sh\n").on_failure;
        assert_eq!(failed, JoinFallback::State(script));
    }

    #[test]
    fn invalid_join_is_error_with_location() {
        assert_eq!(
            wrong("join: most\n"),
            "1:7: `most` is not a number of agents; write all, any, or how many of them have to succeed"
        );
        assert!(wrong("join: 0\n").starts_with("1:7: `0` is not a number"));
        assert_eq!(
            wrong("join: all\non_timeout: keep\n"),
            "2:13: `on_timeout` needs a `timeout` beside it, such as 2h"
        );
        assert_eq!(
            wrong("join: all\non_failure: kep\n"),
            "2:13: `kep` is not a valid fallback; did you mean `keep`?"
        );
        assert_eq!(
            wrong("join: all\nrest: kill\n"),
            "2:7: `kill` is not a policy for the remaining agents; write leave or stop"
        );
        assert!(wrong("on_failure: keep\n").contains("needs `join: all`, `any` or a number"));
        assert!(wrong("timeout: 1h\n").contains("supervision: { timeout: … }"));
    }
}
