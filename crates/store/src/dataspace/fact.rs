//! A fact as the journal has it, the proofs of values in files, and the names of facts and definitions on disk.

use std::fmt::Write as _;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::proof::ProofKey;
use raymond_model::fact::Fact;
use raymond_model::json_mistake::placed_mistake;
use raymond_model::time::Timestamp;

/// Why a value that nobody has proven is not believed.
pub(super) const UNPROVEN: &str = "it has no proof that you or your runs wrote it";

// A fact as the journal has it: with the further values that wait behind the present one.

/// The most values that wait behind one.
const MAX_LATER: usize = 1000;

/// A fact, and the values that follow it, each once the one before is taken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct QueuedFact {
    pub(super) label: String,
    pub(super) key: String,
    pub(super) value: String,
    pub(super) seq: u64,
    pub(super) source: String,
    #[serde(default)]
    pub(super) at: Timestamp,
    /// The values after this one, in the order in which they were appended.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) later: Vec<LaterValue>,
}

/// A value that waits behind another one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct LaterValue {
    pub(super) value: String,
    pub(super) seq: u64,
    pub(super) source: String,
    pub(super) at: Timestamp,
}

impl QueuedFact {
    /// Returns the fact that holds.
    pub(super) fn fact(&self) -> Fact {
        let Self { label, key, value, seq, source, at, later: _ } = self;
        let (label, key, value) = (label.clone(), key.clone(), value.clone());
        Fact { label, key, value, seq: *seq, source: source.clone(), at: *at }
    }

    /// Returns the number of the last change of the fact.
    pub(super) fn last_seq(&self) -> u64 {
        self.later.last().map_or(self.seq, |last| last.seq)
    }

    /// Returns the fact with a further value.
    ///
    /// # Errors
    /// [`InvalidFact::Full`] if too many values wait, or too long ones.
    pub(super) fn followed_by(mut self, value: LaterValue) -> Result<Self, InvalidFact> {
        let bytes: usize = self.later.iter().map(|later| later.value.len()).sum();
        if self.later.len() >= MAX_LATER || bytes + value.value.len() > MAX_FACT_BYTES {
            return Err(InvalidFact::Full { label: self.label, key: self.key });
        }
        self.later.push(value);
        Ok(self)
    }

    /// Returns the fact once its value is taken; `None` if no value waits.
    pub(super) fn without_first(&self) -> Option<Self> {
        let (first, later) = self.later.split_first()?;
        let LaterValue { value, seq, source, at } = first.clone();
        let (label, key) = (self.label.clone(), self.key.clone());
        Some(Self { label, key, value, seq, source, at, later: later.to_vec() })
    }
}

// Values in files, with the proof that they were written with the user's key.

/// A value and its proof, side by side, so that people read it as before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ProvenValue<T> {
    #[serde(flatten)]
    pub(super) value: T,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    proof: String,
}

impl<T: Serialize> ProvenValue<T> {
    /// Returns the value if its proof holds; without a key, each value is believed.
    pub(super) fn believed(self, key: Option<&ProofKey>, purpose: &str) -> Result<T, String> {
        let Some(key) = key else { return Ok(self.value) };
        let content = serde_json::to_vec(&self.value).map_err(|error| placed_mistake(&error))?;
        if key.holds(purpose, &content, &self.proof) {
            return Ok(self.value);
        }
        Err(UNPROVEN.to_owned())
    }
}

/// Writes a value with its proof. Without a key, the proof is empty.
pub(super) fn close<T: Serialize>(
    value: &T,
    key: Option<&ProofKey>,
    purpose: &str,
) -> serde_json::Result<Vec<u8>> {
    let text = serde_json::to_vec(value)?;
    let proof = key.map(|key| key.proof(purpose, &text)).unwrap_or_default();
    serde_json::to_vec(&ProvenValue { value, proof })
}

/// Reads a value whose proof holds; without a key, reads the value as it is.
pub(super) fn open<T: Serialize + DeserializeOwned>(
    bytes: &[u8],
    key: Option<&ProofKey>,
    purpose: &str,
) -> Result<T, String> {
    let proven: ProvenValue<T> =
        serde_json::from_slice(bytes).map_err(|error| placed_mistake(&error))?;
    proven.believed(key, purpose)
}

// The names of definitions on disk, and of facts in an old store: a person can read them, and they cannot lead
// elsewhere. Letters, digits and a few signs stand for themselves. Every other byte becomes `%` and two hexadecimal
// digits: `plan/ready` is `plan%2Fready`. A lone `%` occurs in no other name, so it is the empty one.

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
        /// The key within the label. The message leaves it out if it is empty.
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
        /// The key within the label, whose queue is full.
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
mod proof_tests {
    use super::*;

    #[test]
    fn value_without_valid_proof_is_refused() {
        let (key, other) = (ProofKey::new("k"), ProofKey::new("l"));
        let value = serde_json::json!({"label": "a", "value": "b"});
        let written = close(&value, Some(&key), "fact").expect("written");
        let read = |bytes: &[u8], key| open::<serde_json::Value>(bytes, key, "fact");
        assert_eq!(read(&written, Some(&key)), Ok(value.clone()));
        assert_eq!(read(&written, None), Ok(value.clone()));
        assert!(read(&written, Some(&other)).is_err());
        let plain = serde_json::to_vec(&value).expect("written");
        assert_eq!(read(&plain, None), Ok(value));
        let why = read(&plain, Some(&key)).expect_err("not proven");
        assert_eq!(why, "it has no proof that you or your runs wrote it");
        let forged = String::from_utf8(written).expect("text").replace("\"b\"", "\"c\"");
        assert!(read(forged.as_bytes(), Some(&key)).is_err());
    }
}

#[cfg(test)]
mod name_tests {
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
        let message = |unfit: Result<String, InvalidFact>| unfit.expect_err("too long").to_string();
        let long = message(of_key(&"k".repeat(201)));
        assert!(long.contains("the key `kkk") && long.contains("201 bytes"), "{long}");
        let long = message(of_label(&"ü".repeat(40)));
        assert!(long.contains("the label `üüü") && long.contains("240 bytes"), "{long}");
        assert_eq!(check_value("l", "k", &"v".repeat(MAX_FACT_BYTES)), Ok(()));
        let large = check_value("l", "k", &"v".repeat(MAX_FACT_BYTES + 1)).expect_err("too large");
        assert!(large.to_string().contains("of l k has 1048577 bytes"), "{large}");
    }

    proptest! {
        #[test]
        fn different_texts_have_different_names(a in "\\PC{0,8}", b in "\\PC{0,8}") {
            prop_assert_eq!(encode(&a) == encode(&b), a == b);
        }

        #[test]
        fn encoded_name_is_a_bare_file_name(text in any::<String>()) {
            let name = encode(&text);
            let bare = !name.starts_with('.') && !name.contains(['/', '\0']) && name.is_ascii();
            prop_assert!(bare && !name.is_empty(), "{}", name);
        }
    }
}
