//! The frames of a stream of server-sent events, and the positions in it. Pure.

use hyper::body::Bytes;
use serde::Serialize;

/// The position after an event: the record of the journal up to which the reader has everything, and the event of this
/// stream's own count. A stream that begins anew has another name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FeedPosition {
    /// The number of the last record; 0 for a stream that is not of a journal.
    pub seq: u64,
    /// The number of the event in the stream.
    pub number: u64,
    /// The name of the stream.
    pub stream: String,
}

impl std::fmt::Display for FeedPosition {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}.{}", self.seq, self.number, self.stream)
    }
}

impl FeedPosition {
    /// Reads a position; `None` if the text is none.
    pub fn parse(text: &str) -> Option<Self> {
        let (seq, rest) = text.split_once('.')?;
        let (number, stream) = rest.split_once('.')?;
        let (seq, number) = (seq.parse().ok()?, number.parse().ok()?);
        Some(Self { seq, number, stream: stream.to_owned() })
    }
}

/// An event of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FeedEvent {
    /// The name.
    pub name: &'static str,
    /// The JSON, on one line.
    pub data: String,
}

impl FeedEvent {
    /// Returns an event with this content.
    pub fn of(name: &'static str, content: &impl Serialize) -> Self {
        Self { name, data: serde_json::to_string(content).unwrap_or_default() }
    }

    /// Returns its frame. JSON has no line ends of its own, so its data is one line.
    pub fn frame(&self, position: Option<&FeedPosition>) -> Bytes {
        let id = position.map(|position| format!("id: {position}\n")).unwrap_or_default();
        format!("{id}event: {}\ndata: {}\n\n", self.name, self.data).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn position_is_read_as_it_was_written() {
        let position = FeedPosition { seq: 7, number: 3, stream: "ab1".into() };
        assert_eq!(FeedPosition::parse(&position.to_string()), Some(position));
        for none in ["", "7", "7.3", "x.3.a", "-1.3.a"] {
            assert_eq!(FeedPosition::parse(none), None, "{none}");
        }
    }

    #[test]
    fn text_of_a_model_cannot_begin_an_event() {
        let event = FeedEvent::of("log", &"a\n\nevent: run\r\ndata: {}\u{2028}");
        let frame = event.frame(None);
        let text = std::str::from_utf8(&frame).expect("text");
        assert_eq!(text.lines().count(), 3, "{text}");
        assert!(!text.contains('\r') && text.ends_with("\n\n"));
    }
}
