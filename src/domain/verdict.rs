//! Verdicts: the one word of a list that an answer has to have.

use super::policy::ProtocolViolation;

/// Returns the word of a list that a text has, as a word of its own.
///
/// # Errors
/// [`ProtocolViolation::Contract`] if it has none of them, or more than one.
pub fn verdict<'word>(text: &str, words: &'word [String]) -> Result<&'word str, ProtocolViolation> {
    let found: Vec<&str> =
        words.iter().map(String::as_str).filter(|word| has_word(text, word)).collect();
    let why = match found.as_slice() {
        [word] => return Ok(word),
        [] => format!("it has none of the words {}", words.join(", ")),
        several => format!("it has {}, where one of them is needed", several.join(" and ")),
    };
    Err(ProtocolViolation::Contract { why })
}

/// Returns the prompt that asks for an answer with one of the words.
pub fn verdict_reminder(words: &[String], violation: &ProtocolViolation) -> String {
    format!(
        "Your last reply cannot be used: {violation}.\n\n\
         Do not repeat your work. Reply again, with exactly one of these words, written so: {}\n",
        words.join(", ")
    )
}

/// Returns whether a word stands in a text, and no letter, digit, `_` or `-` beside it.
fn has_word(text: &str, word: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
    text.match_indices(word).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = text[at + word.len()..].chars().next();
        !before.is_some_and(is_part) && !after.is_some_and(is_part)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdict_is_the_only_word_of_the_list_in_the_text() {
        let words = ["APPROVE", "REVISE", "REVISE-ALL"].map(str::to_owned);
        let found = |text: &str| verdict(text, &words).map_err(|error| error.to_string());
        assert_eq!(found("Good.\n\n**APPROVE**"), Ok("APPROVE"));
        assert_eq!(found("REVISE-ALL, please"), Ok("REVISE-ALL"));
        assert_eq!(found("REVISE: or REVISE it"), Ok("REVISE"));
        let none = Err("it has none of the words APPROVE, REVISE, REVISE-ALL".to_owned());
        for text in ["approve", "APPROVED", "DISAPPROVE", "éAPPROVE", ""] {
            assert_eq!(found(text), none, "{text}");
        }
        let both = "it has APPROVE and REVISE, where one of them is needed";
        assert_eq!(found("I do not APPROVE: REVISE."), Err(both.to_owned()));
        let violation = verdict("", &words).expect_err("there is none");
        let reminder = verdict_reminder(&words, &violation);
        assert!(reminder.ends_with("written so: APPROVE, REVISE, REVISE-ALL\n"), "{reminder}");
    }
}
