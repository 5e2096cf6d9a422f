//! The names of facts on disk: a person can read them, and they cannot lead elsewhere.
//!
//! Letters, digits and a few signs stand for themselves. Every other byte becomes `%` and two hexadecimal digits:
//! `plan/ready` is `plan%2Fready`. A lone `%` occurs in no other name, so it is the empty one.

use std::borrow::Cow;
use std::fmt::Write as _;

/// The most bytes of a name on disk, without its ending.
const MAX_NAME: usize = 200;

/// The most bytes of a value.
pub(super) const MAX_FACT_BYTES: usize = 1024 * 1024;

/// The reason why something cannot be a fact.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidFact {
    /// Its label is invalid.
    #[error("`{0}` is not a label: write a word without white space, such as plan/ready")]
    Label(String),
    /// Its label or key is too long.
    #[error(
        "the {what} `{}…` is too long: its file would have a name of {bytes} bytes, the maximum is {MAX_NAME}, and other characters than ASCII letters and digits count three or more; use a shorter one, and put the rest into the value", .text.chars().take(40).collect::<String>()
    )]
    Long {
        /// The part that is too long: a label or a key.
        what: &'static str,
        /// The text of that part.
        text: String,
        /// The length of its name, in bytes.
        bytes: usize,
    },
    /// Its value is too large.
    #[error(
        "the value of {} has {bytes} bytes, the maximum is {MAX_FACT_BYTES}; write it to a file, and assert the file's path", format!("{label} {key}").trim_end()
    )]
    Large {
        /// The fact's label.
        label: String,
        /// Its key.
        key: String,
        /// The length of its value, in bytes.
        bytes: usize,
    },
    /// Too many values wait behind it.
    #[error(
        "too many queued values of {}: at most 1000, with {MAX_FACT_BYTES} bytes in total; append again after a program has taken some, or replace them: leave out --append", format!("{label} {key}").trim_end()
    )]
    Full {
        /// The fact's label.
        label: String,
        /// Its key.
        key: String,
    },
}

/// Returns the name of the directory of a label.
pub(super) fn of_label(label: &str) -> Result<String, InvalidFact> {
    if label.is_empty() || label.contains(char::is_whitespace) {
        return Err(InvalidFact::Label(label.to_owned()));
    }
    short("label", label)
}

/// Returns the name of the file of a key, without its ending.
pub(super) fn of_key(key: &str) -> Result<String, InvalidFact> {
    short("key", key)
}

/// Returns the name of the file of a key like [`of_key`]; a plain key is its own name.
pub(super) fn of_borrowed_key(key: Cow<'_, str>) -> Result<Cow<'_, str>, InvalidFact> {
    let is_own_name = (1..=MAX_NAME).contains(&key.len())
        && key.bytes().enumerate().all(|(place, byte)| is_plain(place, byte));
    if is_own_name { Ok(key) } else { of_key(&key).map(Cow::Owned) }
}

/// Returns the name of a file of a fact without its ending.
pub(super) fn stem(file: &str) -> Option<&str> {
    file.strip_suffix(".json")
}

/// Refuses a value that is too large.
pub(super) fn check_value(label: &str, key: &str, value: &str) -> Result<(), InvalidFact> {
    if value.len() <= MAX_FACT_BYTES {
        return Ok(());
    }
    Err(InvalidFact::Large { label: label.to_owned(), key: key.to_owned(), bytes: value.len() })
}

fn short(what: &'static str, text: &str) -> Result<String, InvalidFact> {
    let name = encode(text);
    if name.len() <= MAX_NAME {
        return Ok(name);
    }
    Err(InvalidFact::Long { what, text: text.to_owned(), bytes: name.len() })
}

/// Returns whether a byte stands for itself at its place in a name.
fn is_plain(place: usize, byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-_~@+=,:".contains(&byte) || (byte == b'.' && place > 0)
}

fn encode(text: &str) -> String {
    if text.is_empty() {
        return "%".to_owned();
    }
    let mut name = String::with_capacity(text.len());
    for (place, byte) in text.bytes().enumerate() {
        if is_plain(place, byte) {
            name.push(char::from(byte));
        } else {
            let _ = write!(name, "%{byte:02X}");
        }
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn special_characters_are_percent_encoded() {
        let table = [
            ("plan/ready", "plan%2Fready"),
            ("feature-42", "feature-42"),
            ("", "%"),
            ("%", "%25"),
            ("..", "%2E."),
            (".hidden", "%2Ehidden"),
            ("a b\n", "a%20b%0A"),
            ("ü", "%C3%BC"),
        ];
        for (text, name) in table {
            assert_eq!(encode(text), name);
        }
    }

    #[test]
    fn invalid_label_key_or_value_is_an_error() {
        for label in ["", " ", "a b", "a\tb", "a\n"] {
            assert_eq!(of_label(label), Err(InvalidFact::Label(label.to_owned())));
        }
        assert!(of_key(&"k".repeat(200)).is_ok());
        let told = |unfit: Result<String, InvalidFact>| unfit.expect_err("too long").to_string();
        let long = told(of_key(&"k".repeat(201)));
        assert!(long.contains("the key `kkk") && long.contains("201 bytes"), "{long}");
        let long = told(of_label(&"ü".repeat(40)));
        assert!(long.contains("the label `üüü") && long.contains("240 bytes"), "{long}");
        assert_eq!(check_value("l", "k", &"v".repeat(MAX_FACT_BYTES)), Ok(()));
        let large = check_value("l", "k", &"v".repeat(MAX_FACT_BYTES + 1)).expect_err("too large");
        assert!(large.to_string().contains("of l k has 1048577 bytes"), "{large}");
    }

    proptest! {
        #[test]
        fn different_texts_have_different_names(a in "\\PC{0,8}", b in "\\PC{0,8}") {
            prop_assert_eq!(encode(&a) == encode(&b), a == b);
            prop_assert_eq!(of_borrowed_key(Cow::Borrowed(&a)), Ok(Cow::Owned(encode(&a))));
        }

        #[test]
        fn encoded_name_is_a_bare_file_name(text in any::<String>()) {
            let name = encode(&text);
            let bare = !name.starts_with('.') && !name.contains(['/', '\0']) && name.is_ascii();
            prop_assert!(bare && !name.is_empty(), "{}", name);
        }
    }
}
