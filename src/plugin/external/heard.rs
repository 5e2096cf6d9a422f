//! What a line of a program means, or what is wrong with it.
//!
//! Nothing that it writes can do harm: what is of no use is left out, with a warning for the first of
//! each kind.

use std::collections::HashSet;

use serde::Deserialize;

use super::chatter::start_of;
use super::pipe::{LONGEST_LINE, Line};
use crate::domain::protocol::{Said, VERSION};

/// How much of a line a warning shows, in characters.
const SHOWN: usize = 100;

/// What is wrong with a line.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Flaw {
    /// The kind: each is told of once.
    pub(super) kind: Kind,
    /// What is to be said of it.
    pub(super) text: String,
    /// The question it was meant to answer.
    pub(super) id: Option<u64>,
}

/// What can be wrong with a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Kind {
    /// It is no message.
    Garbage,
    /// It is too long.
    TooLong,
    /// It is a greeting in another version.
    Version,
    /// It is an answer that cannot be understood.
    Answer,
    /// It answers what was not asked.
    Unasked,
}

/// What a line says.
pub(super) fn read(line: Line) -> Result<Said, Flaw> {
    let line = match line {
        Line::Whole(line) => line,
        Line::TooLong => {
            let text = format!("wrote a line of more than {LONGEST_LINE} bytes");
            return Err(Flaw { kind: Kind::TooLong, text, id: None });
        }
    };
    let text = String::from_utf8_lossy(&line);
    match serde_json::from_str(&text) {
        Ok(Said::Hello(hello)) if hello.version != VERSION => {
            let spoken = hello.version;
            let text = format!(
                "speaks version {spoken} of the protocol, and this raymond speaks {VERSION}, so it is not asked"
            );
            Err(Flaw { kind: Kind::Version, text, id: None })
        }
        Ok(said) => Ok(said),
        Err(error) => Err(flaw(&text, &error.to_string())),
    }
}

fn flaw(line: &str, error: &str) -> Flaw {
    #[derive(Deserialize)]
    struct Outline {
        r#type: String,
        id: Option<u64>,
    }
    let start = start_of(line.trim_end(), SHOWN);
    match serde_json::from_str(line) {
        Ok(Outline { r#type, id }) if r#type == "verdict" => Flaw {
            kind: Kind::Answer,
            text: format!("gave an answer that cannot be understood: {error}: {start}"),
            id,
        },
        _ => Flaw {
            kind: Kind::Garbage,
            text: format!("wrote a line that is no message: {error}: {start}"),
            id: None,
        },
    }
}

/// Tells of the first flaw of each kind.
#[derive(Debug, Default)]
pub(super) struct Complaints(HashSet<Kind>);

impl Complaints {
    /// Complains of a line, unless that has been done.
    pub(super) fn about(&mut self, plugin: &str, flaw: &Flaw) {
        if self.0.insert(flaw.kind) {
            tracing::warn!(
                "the plug-in {plugin} {} (`raymond schema` says what it may write; further lines like this are left out without a word)",
                flaw.text
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flawed(line: &str) -> Flaw {
        read(Line::Whole(line.as_bytes().to_vec())).expect_err(line)
    }

    #[test]
    fn each_flaw_is_named() {
        let table = [
            ("hello", Kind::Garbage, "is no message: expected value", None),
            ("{\"type\":\"shout\"}", Kind::Garbage, "unknown variant `shout`", None),
            ("{\"type\":\"hello\",\"version\":2}", Kind::Version, "speaks version 2", None),
            (
                "{\"type\":\"hello\",\"version\":1,\"consult\":[\"end\"]}",
                Kind::Garbage,
                "`end`",
                None,
            ),
            (
                "{\"type\":\"verdict\",\"id\":3,\"verdict\":\"maybe\"}",
                Kind::Answer,
                "unknown variant `maybe`",
                Some(3),
            ),
            (
                "{\"type\":\"verdict\",\"id\":3,\"verdict\":\"override\",\"transition\":{\"tag\":\"goto\",\"target\":\"../x\"}}",
                Kind::Answer,
                "`../x` is not a file of the workflow",
                Some(3),
            ),
        ];
        for (line, kind, text, id) in table {
            let flaw = flawed(line);
            assert_eq!((flaw.kind, flaw.id), (kind, id), "{line}");
            assert!(flaw.text.contains(text), "{}", flaw.text);
        }
        assert_eq!(read(Line::TooLong).map_err(|flaw| flaw.kind), Err(Kind::TooLong));
    }

    #[test]
    fn what_is_not_known_here_is_left_out() {
        let line = "{\"type\":\"verdict\",\"id\":3,\"verdict\":\"proceed\",\"later\":true}";
        assert!(read(Line::Whole(line.into())).is_ok());
    }
}
