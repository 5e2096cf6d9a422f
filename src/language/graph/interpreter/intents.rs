//! Intents in a text, in three-valued logic: flags that are T (true), F (false) or U (unknown), and rules for them.

use serde_json::{Map, Value, json};

use crate::language::expression::text;

/// The number of rules that are listed as the best.
const MAX_TOP: usize = 3;

/// The lead that makes a rule the clear winner.
const CLEAR_LEAD: i64 = 2;

/// Returns the flags of a text: F if it has one of a flag's negative keywords, else T if it has one of its keywords,
/// else U.
pub(super) fn flags_of(input: &Value, definitions: &Value) -> Result<Value, String> {
    let input = match input {
        Value::Null => String::new(),
        other => text(other).to_lowercase(),
    };
    let Value::Object(definitions) = definitions else {
        return Err("WF403 `flag_definitions` is not a map".to_owned());
    };
    let mut flags = Map::new();
    for (name, definition) in definitions {
        let has = |key: &str| match definition.get(key) {
            None | Some(Value::Null) => Ok(false),
            Some(Value::Array(words)) => {
                let mut words = words.iter().filter_map(Value::as_str).map(str::to_lowercase);
                Ok(words.any(|word| input.contains(&word)))
            }
            Some(_) => Err(format!("WF403 `{key}` of the flag `{name}` is not a list")),
        };
        let value = match (has("negative_keywords")?, has("keywords")?) {
            (true, _) => "F",
            (false, true) => "T",
            (false, false) => "U",
        };
        flags.insert(name.clone(), value.into());
    }
    Ok(Value::Object(flags))
}

/// Returns the rules that fit the flags, the best first. A rule is excluded if one of its conditions contradicts its
/// flag. Equal ones count 2, a known and an unknown one count 1.
pub(super) fn matches(flags: &Value, rules: &Value) -> Result<Value, String> {
    let Value::Object(flags) = flags else {
        return Err("WF403 `flags` is not a map".to_owned());
    };
    let Value::Array(rules) = rules else {
        return Err("WF403 `rules` is not a list".to_owned());
    };
    let mut candidates: Vec<(i64, i64, &Value)> = Vec::new();
    for rule in rules {
        let conditions = match rule.get("conditions") {
            None | Some(Value::Null) => &Map::new(),
            Some(Value::Object(conditions)) => conditions,
            Some(_) => return Err("WF403 `conditions` of a rule is not a map".to_owned()),
        };
        let scores = conditions
            .iter()
            .map(|(name, wanted)| score(flags.get(name).and_then(Value::as_str), wanted.as_str()));
        if let Some(score) = scores.sum::<Option<i64>>() {
            let priority = rule.get("priority").and_then(Value::as_i64).unwrap_or_default();
            candidates.push((score, priority, rule));
        }
    }
    candidates.sort_by_key(|(score, priority, _)| (-score, -priority));
    let clear = match candidates.as_slice() {
        [] => false,
        [_] => true,
        [first, second, ..] => first.0 >= second.0 + CLEAR_LEAD,
    };
    let winner = candidates.first().filter(|_| clear).map(|(.., rule)| (*rule).clone());
    let listed = |some: &[(i64, i64, &Value)]| -> Vec<Value> {
        some.iter().map(|(score, _, rule)| json!({ "rule": rule, "score": score })).collect()
    };
    let top = &candidates[..candidates.len().min(MAX_TOP)];
    Ok(json!({
        "clear_winner": clear,
        "winner": winner,
        "top_candidates": listed(top),
        "all_candidates": listed(&candidates),
    }))
}

/// Returns the score of a condition; `None` if it contradicts its flag.
fn score(flag: Option<&str>, wanted: Option<&str>) -> Option<i64> {
    match (flag.unwrap_or("U"), wanted.unwrap_or("U")) {
        ("T", "T") | ("F", "F") => Some(2),
        ("T", "F") | ("F", "T") => None,
        ("T" | "F", _) | (_, "T" | "F") => Some(1),
        _ => Some(0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn definitions() -> Value {
        json!({
            "has_help": { "keywords": ["help", "?"] },
            "has_init": { "keywords": ["create"], "negative_keywords": ["don't create"] },
            "has_list": {},
        })
    }

    #[test]
    fn flag_is_false_by_negative_keyword_true_by_keyword_and_unknown_without() {
        let flags = |text: Value| flags_of(&text, &definitions()).expect("flags");
        let of =
            |help: &str, init: &str| json!({"has_help": help, "has_init": init, "has_list": "U"});
        assert_eq!(flags(json!("HELP me create")), of("T", "T"));
        assert_eq!(flags(json!("please don't create it")), of("U", "F"));
        assert_eq!(flags(Value::Null), of("U", "U"));
        let why = flags_of(&json!("x"), &json!({"a": {"keywords": "x"}})).expect_err("refused");
        assert_eq!(why, "WF403 `keywords` of the flag `a` is not a list");
        assert!(flags_of(&json!("x"), &json!([])).is_err());
    }

    #[test]
    fn best_rule_wins_with_a_lead_and_contradicted_rules_are_excluded() {
        let rules = json!([
            {"name": "help", "conditions": {"has_help": "T", "has_init": "F"}, "priority": 100},
            {"name": "init", "conditions": {"has_init": "T"}, "priority": 90},
            {"name": "both", "conditions": {"has_help": "T", "has_init": "T"}, "priority": 80},
        ]);
        let of = |help: &str, init: &str| {
            matches(&json!({"has_help": help, "has_init": init}), &rules).expect("matches")
        };
        let both = of("T", "T");
        assert_eq!(both["clear_winner"], true);
        assert_eq!(both["winner"]["name"], "both");
        assert_eq!(both["all_candidates"].as_array().map(Vec::len), Some(2));
        let help = of("T", "U");
        assert_eq!((&help["clear_winner"], &help["winner"]), (&json!(false), &Value::Null));
        assert_eq!(help["top_candidates"][0], json!({"rule": rules[0], "score": 3}));
        assert_eq!(help["top_candidates"][1]["rule"]["name"], "both");
        let none = matches(&json!({"a": "F"}), &json!([{"conditions": {"a": "T"}}]));
        assert_eq!(none.expect("matches")["clear_winner"], false);
    }
}
