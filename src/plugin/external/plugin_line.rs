//! Parses the lines of a program, and names the errors in them.
//!
//! A program cannot do harm by its lines: useless ones are left out, with a warning for the first of each kind.

use std::collections::HashSet;

use serde::Deserialize;

use super::pipe::{MAX_LINE_BYTES, PluginLine};
use crate::domain::json_mistake::mistake;
use crate::domain::protocol::{PluginMessage, VERSION};
use crate::plugin::external::plugin_handle::start_of;

/// The number of characters of a line that a warning shows.
const MAX_SHOWN_CHARS: usize = 100;

/// An error in a line.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct PluginLineError {
    /// The kind: each is warned of once.
    pub(super) kind: PluginLineErrorKind,
    /// The text of the warning.
    pub(super) text: String,
    /// The question it was meant to answer.
    pub(super) id: Option<u64>,
}

/// The kind of error in a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum PluginLineErrorKind {
    /// It is no message.
    Garbage,
    /// It is too long.
    TooLong,
    /// It is a greeting in another version.
    Version,
    /// It is an answer that cannot be understood.
    Answer,
    /// It answers a question that was not asked.
    Unasked,
}

/// Parses a line.
pub(super) fn read(line: PluginLine) -> Result<PluginMessage, PluginLineError> {
    let line = match line {
        PluginLine::Whole(line) => line,
        PluginLine::TooLong => {
            let text = format!("wrote a line of more than {MAX_LINE_BYTES} bytes");
            return Err(PluginLineError { kind: PluginLineErrorKind::TooLong, text, id: None });
        }
    };
    let text = String::from_utf8_lossy(&line);
    match serde_json::from_str(&text) {
        Ok(PluginMessage::Hello(hello)) if hello.version != VERSION => {
            let spoken = hello.version;
            let text = format!(
                "speaks version {spoken} of the protocol, and this raymond speaks {VERSION}, so it is not asked; events and fields have other names now: docs/formats.md"
            );
            Err(PluginLineError { kind: PluginLineErrorKind::Version, text, id: None })
        }
        Ok(message) => Ok(message),
        Err(error) => Err(flaw(&text, &mistake(&error))),
    }
}

fn flaw(line: &str, error: &str) -> PluginLineError {
    #[derive(Deserialize)]
    struct Outline {
        r#type: String,
        id: Option<u64>,
    }
    let start = start_of(line.trim_end(), MAX_SHOWN_CHARS);
    match serde_json::from_str(line) {
        Ok(Outline { r#type, id }) if r#type == "verdict" => PluginLineError {
            kind: PluginLineErrorKind::Answer,
            text: format!("gave an answer that cannot be understood: {error}: {start}"),
            id,
        },
        _ => PluginLineError {
            kind: PluginLineErrorKind::Garbage,
            text: format!("wrote a line that is not a message: {error}: {start}"),
            id: None,
        },
    }
}

/// Warns of the first error of each kind.
#[derive(Debug, Default)]
pub(super) struct WarnOnce(HashSet<PluginLineErrorKind>);

impl WarnOnce {
    /// Warns of an error, unless its kind was warned of before.
    pub(super) fn about(&mut self, plugin: &str, flaw: &PluginLineError) {
        if self.0.insert(flaw.kind) {
            tracing::warn!(
                "the plug-in {plugin} {} (see `raymond schema`; further lines like this are ignored silently)",
                flaw.text
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flawed(line: &str) -> PluginLineError {
        read(PluginLine::Whole(line.as_bytes().to_vec())).expect_err(line)
    }

    #[test]
    fn each_invalid_message_is_an_error_with_reason() {
        let table = [
            (
                "hello",
                PluginLineErrorKind::Garbage,
                "is not a message: expected a JSON value",
                None,
            ),
            (
                "{\"type\":\"shout\"}",
                PluginLineErrorKind::Garbage,
                "`shout` is not allowed here; known here",
                None,
            ),
            (
                "{\"type\":\"hello\",\"version\":1}",
                PluginLineErrorKind::Version,
                "speaks version 1 of the protocol, and this raymond speaks 2",
                None,
            ),
            (
                "{\"type\":\"hello\",\"version\":2,\"consult\":[\"end\"]}",
                PluginLineErrorKind::Garbage,
                "`end`",
                None,
            ),
            (
                "{\"type\":\"verdict\",\"id\":3,\"verdict\":\"maybe\"}",
                PluginLineErrorKind::Answer,
                "`maybe` is not allowed here; known here",
                Some(3),
            ),
            (
                "{\"type\":\"verdict\",\"id\":3,\"verdict\":\"override\",\"transition\":{\"tag\":\"goto\",\"target\":\"../x\"}}",
                PluginLineErrorKind::Answer,
                "`../x` is not a file of the workflow",
                Some(3),
            ),
        ];
        for (line, kind, text, id) in table {
            let flaw = flawed(line);
            assert_eq!((flaw.kind, flaw.id), (kind, id), "{line}");
            assert!(flaw.text.contains(text), "{}", flaw.text);
        }
        assert_eq!(
            read(PluginLine::TooLong).map_err(|flaw| flaw.kind),
            Err(PluginLineErrorKind::TooLong)
        );
    }

    #[test]
    fn unknown_fields_are_ignored() {
        let line = "{\"type\":\"verdict\",\"id\":3,\"verdict\":\"proceed\",\"later\":true}";
        assert!(read(PluginLine::Whole(line.into())).is_ok());
    }
}
