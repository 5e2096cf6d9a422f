//! A line of input, and the effect of each byte on it. Pure.

use std::mem;

/// The longest line, in bytes; further input is left out.
const MAX_LINE_BYTES: usize = 64 * 1024;

/// The text typed so far.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct LineEditor {
    text: String,
    /// The first bytes of a character that is not complete yet.
    begun: Vec<u8>,
    escape: EscapeState,
}

/// The progress within an escape sequence.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum EscapeState {
    #[default]
    No,
    Begun,
    Sequence,
}

/// The effect of a key beyond a change of the line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum LineInput {
    /// The line is entered.
    Entered(String),
    /// The input has ended: Ctrl-D on an empty line.
    End,
}

const CTRL_D: u8 = 0x04;
const BACKSPACE: u8 = 0x08;
const CTRL_U: u8 = 0x15;
const CTRL_W: u8 = 0x17;
const ESCAPE: u8 = 0x1b;
const DELETE: u8 = 0x7f;

impl LineEditor {
    /// Returns the text typed so far.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Clears the line.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Takes a byte.
    pub(super) fn press(&mut self, byte: u8) -> Option<LineInput> {
        match (self.escape, byte) {
            (EscapeState::Begun, b'[' | b'O') => self.escape = EscapeState::Sequence,
            (EscapeState::Sequence, 0x40..=0x7e) | (EscapeState::Begun, _) => {
                self.escape = EscapeState::No;
            }
            (EscapeState::No, ESCAPE) => self.escape = EscapeState::Begun,
            (EscapeState::No, b'\r' | b'\n') => {
                self.begun.clear();
                return Some(LineInput::Entered(mem::take(&mut self.text)));
            }
            (EscapeState::No, CTRL_D) if self.text.is_empty() => return Some(LineInput::End),
            (EscapeState::No, BACKSPACE | DELETE) => drop(self.text.pop()),
            (EscapeState::No, CTRL_U) => self.text.clear(),
            (EscapeState::No, CTRL_W) => {
                let kept = self.text.trim_end().rfind(char::is_whitespace);
                self.text.truncate(kept.map_or(0, |space| space + 1));
            }
            (EscapeState::No, b'\t') => self.text.push(' '),
            (EscapeState::Sequence, _) | (EscapeState::No, 0..0x20) => {}
            (EscapeState::No, byte) => self.extend(byte),
        }
        None
    }

    fn extend(&mut self, byte: u8) {
        self.begun.push(byte);
        match str::from_utf8(&self.begun) {
            Ok(whole) if self.text.len() + whole.len() <= MAX_LINE_BYTES => {
                self.text.push_str(whole);
            }
            Err(error) if error.error_len().is_none() => return,
            _ => {}
        }
        self.begun.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(bytes: &str) -> (Vec<LineInput>, String) {
        let mut line = LineEditor::default();
        let keys = bytes.bytes().filter_map(|byte| line.press(byte)).collect();
        (keys, line.text().to_owned())
    }

    #[test]
    fn editing_keys_delete_text_and_escape_sequences_are_ignored() {
        let table = [
            ("abc", "abc"),
            ("ab\u{8}\u{7f}c", "c"),
            ("äö€\u{7f}", "äö"),
            ("one two  \u{17}", "one "),
            ("one\u{17}", ""),
            ("gone\u{15}new", "new"),
            ("a\u{1b}[A\u{1b}[3~\u{1b}OPb\u{1b}xc", "abc"),
            ("a\tb\u{1}", "a b"),
            ("a\u{4}", "a"),
        ];
        for (keys, line) in table {
            assert_eq!(typed(keys), (Vec::new(), line.to_owned()), "{keys:?}");
        }
    }

    #[test]
    fn enter_submits_line_and_ctrl_d_ends_input() {
        let entered = |text: &str| LineInput::Entered(text.to_owned());
        let (keys, rest) = typed("git\rno\n\u{4}");
        assert_eq!(
            (keys, rest.as_str()),
            (vec![entered("git"), entered("no"), LineInput::End], "")
        );
    }

    #[test]
    fn invalid_utf8_bytes_are_ignored() {
        let mut line = LineEditor::default();
        for byte in [0xff, b'a', 0xe2, 0x82, b'b'] {
            assert_eq!(line.press(byte), None);
        }
        assert_eq!(line.text(), "a");
    }
}
