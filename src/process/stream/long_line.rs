//! A line that is too long to be held, without the values that make it long. Pure.
//!
//! The line that ends a turn has its cost, even if it is too long because of the answer in it. So such a line is
//! parsed while it is read, and only the short members of its object are kept.

/// The longest member that is kept, its name included, in bytes.
const MAX_MEMBER: usize = 64 * 1024;

/// The most that is kept of a line, in bytes.
const MAX_KEPT: usize = 1024 * 1024;

/// The short members of an object, as far as it has been read.
#[derive(Debug, Default)]
pub(super) struct LongLine {
    kept: Vec<u8>,
    member: Vec<u8>,
    is_member_too_long: bool,
    depth: usize,
    is_in_text: bool,
    is_escaped: bool,
}

impl LongLine {
    /// Takes the next bytes of the line.
    pub(super) fn feed(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.take(byte);
        }
    }

    /// Returns an object with the members that were kept.
    pub(super) fn finish(mut self) -> Vec<u8> {
        self.kept.push(if self.kept.is_empty() { b' ' } else { b'}' });
        self.kept
    }

    fn take(&mut self, byte: u8) {
        if self.is_in_text {
            self.is_in_text = byte != b'"' || self.is_escaped;
            self.is_escaped = byte == b'\\' && !self.is_escaped;
            return self.keep(byte);
        }
        match byte {
            b'"' => self.is_in_text = true,
            b'{' | b'[' => {
                self.depth += 1;
                if self.depth == 1 {
                    return;
                }
            }
            b'}' | b']' => {
                self.depth = self.depth.saturating_sub(1);
                if self.depth == 0 {
                    return self.end_member();
                }
            }
            b',' if self.depth == 1 => return self.end_member(),
            _ => {}
        }
        self.keep(byte);
    }

    fn keep(&mut self, byte: u8) {
        self.is_member_too_long |= self.member.len() == MAX_MEMBER;
        if !self.is_member_too_long {
            self.member.push(byte);
        }
    }

    fn end_member(&mut self) {
        let fits = self.kept.len() + self.member.len() < MAX_KEPT;
        if !self.is_member_too_long && !self.member.is_empty() && fits {
            self.kept.push(if self.kept.is_empty() { b'{' } else { b',' });
            self.kept.append(&mut self.member);
        }
        self.member.clear();
        self.is_member_too_long = false;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Map, Value, json};

    use super::*;

    fn reduced(text: &str, chunk: usize) -> Vec<u8> {
        let mut line = LongLine::default();
        text.as_bytes().chunks(chunk).for_each(|chunk| line.feed(chunk));
        line.finish()
    }

    #[test]
    fn short_members_survive_removal_of_long_members() {
        let answer = r#"a \" quote, {"total_cost_usd": 9}, ]} "#.repeat(4096);
        let denials = json!([{ "tool_input": { "total_cost_usd": 7, "text": answer } }]);
        let line = json!({
            "type": "result", "result": answer, "permission_denials": denials,
            "total_cost_usd": 0.25, "modelUsage": { "opus": { "costUSD": 0.25 } },
        });
        let kept: Value = serde_json::from_slice(&reduced(&line.to_string(), 7)).expect("JSON");
        let costs = json!({
            "type": "result", "total_cost_usd": 0.25, "modelUsage": { "opus": { "costUSD": 0.25 } },
        });
        assert_eq!(kept, costs);
    }

    #[test]
    fn invalid_or_empty_object_reduces_to_nothing() {
        for text in ["", "xxxx", "]}]}", "{", "{}", "\"text\"", "{\"a\":1"] {
            let kept = reduced(text, 1);
            assert!(kept.len() <= 2, "{text}: {kept:?}");
        }
    }

    proptest! {
        #[test]
        fn object_without_long_members_is_unchanged(
            members in proptest::collection::btree_map(".{0,6}", ".{0,12}", 1..6), chunk in 1usize..9,
        ) {
            let members = members.into_iter().map(|(name, text)| (name, json!([{ "t": text }, 1.5])));
            let object = Value::Object(members.collect::<Map<_, _>>());
            let kept: Value = serde_json::from_slice(&reduced(&object.to_string(), chunk))
                .map_err(|error| TestCaseError::fail(error.to_string()))?;
            prop_assert_eq!(kept, object);
        }

        #[test]
        fn arbitrary_bytes_are_reduced_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let mut line = LongLine::default();
            line.feed(&bytes);
            prop_assert!(line.finish().len() <= bytes.len() + 2);
        }
    }
}
