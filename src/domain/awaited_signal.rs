//! The signals in the description of a program's wait.
//!
//! The description is the condition in the words of the program, with its values at the time: all that a reader of the
//! run's record needs in order to tell which facts the wait is about.

use super::fact::Fact;
use super::published_state::{STATE_LABEL, is_ending};

/// The beginning of a signal in a condition.
const SIGNAL: &str = "(signal ";

/// The description of a value that is not known yet.
const UNKNOWN: &str = "…";

/// A signal that a program waits for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AwaitedSignal {
    /// The label.
    pub label: String,
    /// The key; `None` for any.
    pub key: Option<String>,
    /// The payload; `None` for any.
    pub value: Option<String>,
}

impl AwaitedSignal {
    /// Returns the signals in the description of a wait, in their order.
    pub fn all_in(awaiting: &str) -> Vec<Self> {
        let mut found = Vec::new();
        let mut rest = awaiting;
        while let Some(first) = rest.chars().next() {
            if first == '"' {
                rest = atom(rest).1;
            } else if let Some(signal) = rest.strip_prefix(SIGNAL) {
                let (signal, after) = Self::read(signal);
                found.push(signal);
                rest = after;
            } else {
                rest = &rest[first.len_utf8()..];
            }
        }
        found
    }

    /// Reads a signal from behind its name; returns what follows it, too.
    fn read(text: &str) -> (Self, &str) {
        let (label, mut rest) = atom(text);
        let mut signal = Self { label, ..Self::default() };
        for (keyword, slot) in [(" :key ", &mut signal.key), (" :equals ", &mut signal.value)] {
            if let Some(value) = rest.strip_prefix(keyword) {
                let (value, after) = atom(value);
                *slot = Some(value).filter(|value| value != UNKNOWN);
                rest = after;
            }
        }
        (signal, rest)
    }

    /// Returns whether people assert such facts: the states of runs are asserted by these themselves.
    pub fn is_for_people(&self) -> bool {
        self.label != STATE_LABEL
    }

    /// Returns whether a fact decides this signal: it matches, or it tells that the run has ended otherwise.
    pub fn is_decided_by(&self, fact: &Fact) -> bool {
        let is_ended = !self.is_for_people() && self.key.is_some() && is_ending(&fact.value);
        self.label == fact.label
            && self.key.as_ref().is_none_or(|key| *key == fact.key)
            && (is_ended || self.value.as_ref().is_none_or(|value| *value == fact.value))
    }
}

/// Reads a value, with or without quotes; returns what follows it, too.
fn atom(text: &str) -> (String, &str) {
    let Some(quoted) = text.strip_prefix('"') else {
        let end = text.find([' ', ')']).unwrap_or(text.len());
        return (text[..end].to_owned(), &text[end..]);
    };
    let mut value = String::new();
    let mut chars = quoted.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return (value, &quoted[at + 1..]),
            '\\' => match chars.next() {
                Some((_, 'n')) => value.push('\n'),
                Some((_, 'r')) => value.push('\r'),
                Some((_, 't')) => value.push('\t'),
                Some((_, '0')) => value.push('\0'),
                Some((_, 'u')) => {
                    let digits = chars.by_ref().map(|(_, c)| c).skip(1);
                    let digits: String = digits.take_while(|c| *c != '}').collect();
                    let code = u32::from_str_radix(&digits, 16).ok().and_then(char::from_u32);
                    value.extend(code);
                }
                Some((_, other)) => value.push(other),
                None => {}
            },
            c => value.push(c),
        }
    }
    (value, "")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::time::Timestamp;

    fn signal(label: &str, key: Option<&str>, value: Option<&str>) -> AwaitedSignal {
        let [key, value] = [key, value].map(|text| text.map(str::to_owned));
        AwaitedSignal { label: label.to_owned(), key, value }
    }

    fn fact(label: &str, key: &str, value: &str) -> Fact {
        let [label, key, value, source] = [label, key, value, "t"].map(str::to_owned);
        Fact { label, key, value, seq: 1, source, at: Timestamp(0) }
    }

    #[test]
    fn signals_are_read_from_the_description_of_a_wait() {
        let text = "(or (signal go) (and (signal a/b :key \"x \\\"y\\\" \\u{301}\" :equals yes) (matches (signal c :key t) \"(signal no)\")) (signal d :equals …))";
        let expected = [
            signal("go", None, None),
            signal("a/b", Some("x \"y\" \u{301}"), Some("yes")),
            signal("c", Some("t"), None),
            signal("d", None, None),
        ];
        assert_eq!(AwaitedSignal::all_in(text), expected);
        assert!(
            AwaitedSignal::all_in("(transcript-response :request-id \"(signal x)\")").is_empty()
        );
        for cut in ["(signal", "(signal ", "(signal a :key", "(signal a :key \"x\\"] {
            let _ = AwaitedSignal::all_in(cut);
        }
    }

    #[test]
    fn fact_decides_the_signals_of_its_label_key_and_value() {
        let yes = signal("plan", Some("t"), Some("yes"));
        assert!(yes.is_decided_by(&fact("plan", "t", "yes")));
        for other in [fact("plan", "t", "no"), fact("plan", "u", "yes"), fact("p", "t", "yes")] {
            assert!(!yes.is_decided_by(&other), "{other:?}");
        }
        assert!(signal("plan", None, None).is_decided_by(&fact("plan", "u", "no")));
        let state = signal(STATE_LABEL, Some("f"), Some("completed"));
        assert!(state.is_decided_by(&fact(STATE_LABEL, "f", "failed")), "it has ended otherwise");
        assert!(!state.is_decided_by(&fact(STATE_LABEL, "f", "running s")));
        assert!(!state.is_decided_by(&fact(STATE_LABEL, "g", "failed")));
        let any = signal(STATE_LABEL, None, Some("completed"));
        assert!(!any.is_decided_by(&fact(STATE_LABEL, "f", "failed")), "another run may complete");
    }
}
