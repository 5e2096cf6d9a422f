//! The words of a text on one line.

/// Returns the words of a text with single blanks between them, and so without line breaks.
pub fn joined_words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_joined_by_single_blanks() {
        for (text, joined) in
            [("", ""), (" \n\t", ""), ("a", "a"), (" a \r\n  b\u{2028}c\n", "a b c")]
        {
            assert_eq!(joined_words(text), joined, "{text:?}");
        }
    }
}
