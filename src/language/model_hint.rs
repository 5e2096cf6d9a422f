//! Hints about the names of models: a slip in an alias is found before a run is paid for.
//!
//! A name that is not known here is no error, because Claude Code decides which models there are.

use super::hint::closest;
use crate::domain::model::ModelName;

/// The aliases that Claude Code 2.1.197 to 2.1.330 know.
const ALIASES: [&str; 7] = ["sonnet", "opus", "haiku", "fable", "best", "default", "opusplan"];

/// The end of an alias that stands for a larger context.
const LARGE_CONTEXT: &str = "[1m]";

/// The codes of the warnings with these hints: of graphs, programs and prompts.
pub const HINT_CODES: [&str; 3] = ["WF104", "SX219", "RF403"];

/// Returns a hint about a name that is neither a known alias nor looks like a full name.
pub fn model_hint(model: &ModelName) -> Option<String> {
    let name = model.as_str();
    let alias = name.strip_suffix(LARGE_CONTEXT).unwrap_or(name);
    let is_full = name.contains("claude") || name.contains(['/', ':', '.', '@']);
    if is_full || ALIASES.iter().any(|known| known.eq_ignore_ascii_case(alias)) {
        return None;
    }
    let meant = closest(alias, ALIASES).map(|alias| format!("did you mean `{alias}`?"));
    let meant = meant.unwrap_or_else(|| "raymond passes it to Claude Code unchanged".to_owned());
    Some(format!("`{name}` is not a known model alias; {meant}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hint(name: &str) -> Option<String> {
        model_hint(&ModelName::parse(name).expect("a name"))
    }

    #[test]
    fn known_aliases_and_full_names_have_no_hint() {
        for name in
            ["opus", "Sonnet", "opus[1m]", "claude-x-9", "us.vendor.x-v1:0", "models/x", "x@1"]
        {
            assert_eq!(hint(name), None, "{name}");
        }
    }

    #[test]
    fn misspelled_or_unknown_alias_gets_hint() {
        let meant = "`sonet` is not a known model alias; did you mean `sonnet`?";
        assert_eq!(hint("sonet").as_deref(), Some(meant));
        assert!(hint("haku[1m]").is_some_and(|hint| hint.ends_with("did you mean `haiku`?")));
        let other = "`gpt` is not a known model alias; raymond passes it to Claude Code unchanged";
        assert_eq!(hint("gpt").as_deref(), Some(other));
    }
}
