//! A stream that many readers share: one source is read for all, and each event is written once.
//!
//! A reader that returns within the kept events gets the events that it lacks. Any other reader gets everything again.
//! A reader that is too slow loses its stream and comes back with its position, so it holds no memory in the meantime.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use hyper::body::Bytes;
use serde::Serialize;
use tokio::sync::mpsc;

use crate::store;

/// The maximum number of events that are kept for readers that come back, and their maximum size in bytes. Beyond that
/// it costs less to send everything again, which is about as much for 10,000 agents.
const MAX_KEPT_EVENTS: usize = 256;
const MAX_KEPT_BYTES: usize = 2 * 1024 * 1024;

/// The number of frames that wait for one reader before it counts as too slow.
const MAX_WAITING_FRAMES: usize = 64;

/// The time without a reader after which a source is closed.
const IDLE_TIMEOUT: Duration = Duration::from_secs(5);

/// The interval of frames that only show that the stream lives.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// A stream of events: what has happened, then what happens.
#[derive(Debug)]
pub struct EventStream {
    /// The frames that the reader lacks.
    pub(super) behind: VecDeque<Bytes>,
    /// The frames that come. It is closed if the reader is too slow, or when the server ends.
    pub(super) coming: mpsc::Receiver<Bytes>,
}

/// The origin of a stream's events.
pub trait FeedSource: Send {
    /// Reads what is new, and returns the events that tell it.
    ///
    /// # Errors
    /// [`store::Error`] if the run can no longer be read.
    fn refresh(&mut self) -> Result<Vec<FeedEvent>, store::Error>;

    /// Returns the events that tell everything to a reader that has the records up to `after`.
    fn whole(&self, after: Option<u64>) -> Vec<FeedEvent>;

    /// Returns the number of the last record that was read; 0 if it reads no journal.
    fn seq(&self) -> u64 {
        0
    }

    /// Returns the interval between two reads.
    fn interval(&self) -> Duration;
}

/// A stream with its readers.
pub struct SharedFeed {
    /// The name of this stream. Another stream counts from the start.
    name: String,
    state: Mutex<FeedState>,
    wake: Condvar,
}

impl std::fmt::Debug for SharedFeed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SharedFeed").field("name", &self.name).finish_non_exhaustive()
    }
}

struct FeedState {
    source: Box<dyn FeedSource>,
    number: u64,
    /// The last events, each with its number.
    kept: VecDeque<(u64, Bytes)>,
    kept_bytes: usize,
    /// The frames of everything without any earlier record, at this number.
    whole: Option<(u64, Vec<Bytes>)>,
    readers: Vec<mpsc::Sender<Bytes>>,
    idle_since: Option<Instant>,
    alive_at: Instant,
    is_over: bool,
}

impl SharedFeed {
    /// Makes a stream of a source.
    pub fn new(name: String, source: Box<dyn FeedSource>) -> Self {
        let state = FeedState {
            source,
            number: 0,
            kept: VecDeque::new(),
            kept_bytes: 0,
            whole: None,
            readers: Vec::new(),
            idle_since: Some(Instant::now()),
            alive_at: Instant::now(),
            is_over: false,
        };
        Self { name, state: Mutex::new(state), wake: Condvar::new() }
    }

    fn state(&self) -> MutexGuard<'_, FeedState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a reader that has everything up to a position; `None` if the stream is over.
    pub fn read_from(&self, position: Option<&FeedPosition>) -> Option<EventStream> {
        let mut state = self.state();
        if state.is_over {
            return None;
        }
        let behind = match position.filter(|position| position.stream == self.name) {
            Some(position) => state.since(position.number),
            None => None,
        };
        let seq = position.map(|position| position.seq).filter(|&seq| seq > 0);
        let behind = behind.unwrap_or_else(|| state.everything(&self.name, seq));
        let (sender, coming) = mpsc::channel(MAX_WAITING_FRAMES);
        state.readers.push(sender);
        state.idle_since = None;
        Some(EventStream { behind: behind.into(), coming })
    }

    /// Reads the source until nobody has read the stream for a while, or it is ended.
    pub fn run(&self) {
        loop {
            let mut state = self.state();
            if !state.step(&self.name) {
                state.close();
                return;
            }
            let interval = state.source.interval();
            drop(self.wake.wait_timeout(state, interval));
        }
    }

    /// Returns whether it has ended.
    pub fn is_over(&self) -> bool {
        self.state().is_over
    }

    /// Ends the stream for all.
    pub fn end(&self) {
        self.state().close();
        self.wake.notify_all();
    }
}

/// The source of a stream that has ended: it holds nothing of its run.
struct EndedSource;

impl FeedSource for EndedSource {
    fn refresh(&mut self) -> Result<Vec<FeedEvent>, store::Error> {
        Ok(Vec::new())
    }

    fn whole(&self, _after: Option<u64>) -> Vec<FeedEvent> {
        Vec::new()
    }

    fn interval(&self) -> Duration {
        IDLE_TIMEOUT
    }
}

impl FeedState {
    /// Ends the stream, and lets go of all that it holds.
    fn close(&mut self) {
        self.is_over = true;
        self.source = Box::new(EndedSource);
        (self.kept, self.kept_bytes, self.whole) = (VecDeque::new(), 0, None);
        self.readers.clear();
    }

    /// Reads what is new and passes it on; returns whether the stream goes on.
    fn step(&mut self, name: &str) -> bool {
        if self.is_over {
            return false;
        }
        let events = match self.source.refresh() {
            Ok(events) => events,
            Err(error) => {
                let event = FeedEvent::of("unreadable", &error.to_string());
                self.pass_on(&event.frame(None));
                return false;
            }
        };
        if !events.is_empty() {
            // Who comes now gets them, too.
            self.whole = None;
        }
        for event in &events {
            self.number += 1;
            let position = self.position(name);
            let frame = event.frame(Some(&position));
            self.keep(frame.clone());
            self.pass_on(&frame);
        }
        if self.alive_at.elapsed() >= KEEP_ALIVE {
            self.pass_on(&Bytes::from_static(b": alive\n\n"));
        }
        self.readers.retain(|reader| !reader.is_closed());
        if !self.readers.is_empty() {
            self.idle_since = None;
            return true;
        }
        self.idle_since.get_or_insert_with(Instant::now).elapsed() < IDLE_TIMEOUT
    }

    fn position(&self, name: &str) -> FeedPosition {
        FeedPosition { seq: self.source.seq(), number: self.number, stream: name.to_owned() }
    }

    /// Passes a frame to each reader. A reader that already has too many loses its stream.
    fn pass_on(&mut self, frame: &Bytes) {
        self.readers.retain(|reader| reader.try_send(frame.clone()).is_ok());
        self.alive_at = Instant::now();
    }

    fn keep(&mut self, frame: Bytes) {
        self.kept_bytes += frame.len();
        self.kept.push_back((self.number, frame));
        while self.kept.len() > MAX_KEPT_EVENTS || self.kept_bytes > MAX_KEPT_BYTES {
            let Some((_, oldest)) = self.kept.pop_front() else { break };
            self.kept_bytes -= oldest.len();
        }
    }

    /// Returns the frames after an event; `None` if some of them are no longer kept.
    fn since(&self, number: u64) -> Option<Vec<Bytes>> {
        let first = self.kept.front().map_or(self.number + 1, |(first, _)| *first);
        let is_known = number <= self.number && number + 1 >= first;
        let later = self.kept.iter().filter(|(kept, _)| *kept > number);
        is_known.then(|| later.map(|(_, frame)| frame.clone()).collect())
    }

    /// Returns the frames of everything, which are made once for all readers that come now.
    fn everything(&mut self, name: &str, after: Option<u64>) -> Vec<Bytes> {
        if let Some((number, frames)) = &self.whole
            && *number == self.number
            && after.is_none()
        {
            return frames.clone();
        }
        let position = self.position(name);
        let mut frames = vec![FeedEvent::of("reset", &position.seq).frame(None)];
        // Each event is let go once it has its frame.
        frames.extend(self.source.whole(after).into_iter().map(|event| event.frame(None)));
        // Only who has all of it has this position.
        frames.push(FeedEvent::of("whole", &position.seq).frame(Some(&position)));
        if after.is_none() {
            self.whole = Some((self.number, frames.clone()));
        }
        frames
    }
}

// The frames of a stream of server-sent events, and the positions in it. Pure.

/// The position after an event: the record of the journal up to which the reader has everything, and the number of the
/// event in this stream. A stream that starts over has another name.
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
    /// The text after `event:` in the stream, such as `agents`.
    pub name: &'static str,
    /// The JSON, on one line.
    pub data: String,
}

impl FeedEvent {
    /// Returns an event with this content.
    pub fn of(name: &'static str, content: &impl Serialize) -> Self {
        Self { name, data: serde_json::to_string(content).unwrap_or_default() }
    }

    /// Returns its frame. Compact JSON contains no line ends, so its data is one line.
    pub fn frame(&self, position: Option<&FeedPosition>) -> Bytes {
        let id = position.map(|position| format!("id: {position}\n")).unwrap_or_default();
        format!("{id}event: {}\ndata: {}\n\n", self.name, self.data).into()
    }
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod event_frame_tests {
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
