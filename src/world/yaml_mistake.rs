//! Sentences about YAML that cannot be read: its place, and what is wrong there.

use serde_yaml::Error;

/// Returns the place of a mistake and a sentence about it: `line 2, column 5: …`.
pub(super) fn placed_mistake(error: &Error) -> String {
    let sentence = mistake(error);
    match error.location().filter(|location| location.line() > 0) {
        Some(at) => format!("line {}, column {}: {sentence}", at.line(), at.column()),
        None => sentence,
    }
}

fn mistake(error: &Error) -> String {
    match error.without_snippet() {
        Error::DuplicateMappingKey { key: Some(key), .. } => {
            format!("the key `{key}` is given twice; remove one")
        }
        Error::DuplicateMappingKey { .. } => "a key is given twice; remove one".to_owned(),
        Error::Eof { .. } => {
            "it ends too early; something is cut off, or a bracket or quote is missing".to_owned()
        }
        Error::MultipleDocuments { .. } => {
            "a second document begins here; keep one, without `---` after it".to_owned()
        }
        Error::UnknownAnchor { .. } => "no anchor has the name of this alias".to_owned(),
        Error::InvalidUtf8Input => "it is not UTF-8 text".to_owned(),
        Error::Budget { .. }
        | Error::AliasReplayLimitExceeded { .. }
        | Error::AliasExpansionLimitExceeded { .. }
        | Error::AliasReplayStackDepthExceeded { .. } => {
            "it is too large or too deeply nested to be read".to_owned()
        }
        _ => "this is not valid YAML; look for wrong indentation, a missing quote or bracket, or a `:` in an unquoted string".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn text_that_is_no_yaml_has_place_and_sentence_of_our_own() {
        for (text, expected) in [
            ("a: [\n", "line 1, column 4: this is not valid YAML; look for wrong indentation"),
            ("a: 1\na: 2\n", "line 2, column 1: the key `a` is given twice; remove one"),
            ("a: *b\n", "line 1, column 4: no anchor has the name of this alias"),
            ("a: 1\n b: 2\n", "this is not valid YAML"),
            ("a: 1\n---\nb: 2\n", "a second document begins here"),
        ] {
            let options = serde_yaml::options! { with_snippet: false };
            let read: Result<Value, Error> = serde_yaml::from_str_with_options(text, options);
            let told = placed_mistake(&read.expect_err(text));
            assert!(told.contains(expected), "{text}: {told}");
        }
    }
}
