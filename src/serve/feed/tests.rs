//! Readers that come, return, and are too slow.

use std::sync::{Arc, Mutex};

use super::*;

/// A source that counts, and tells each number.
#[derive(Clone, Default)]
struct CountingSource(Arc<Mutex<(u64, u64)>>);

impl CountingSource {
    fn add(&self, more: u64) {
        self.0.lock().expect("counted").1 += more;
    }
}

impl FeedSource for CountingSource {
    fn refresh(&mut self) -> Result<Vec<FeedEvent>, store::Error> {
        let mut counted = self.0.lock().expect("counted");
        let (sent, all) = *counted;
        counted.0 = all;
        Ok((sent + 1..=all).map(|number| FeedEvent::of("one", &number)).collect())
    }

    fn whole(&self, after: Option<u64>) -> Vec<FeedEvent> {
        let sent = self.0.lock().expect("counted").0;
        (after.unwrap_or(0) + 1..=sent).map(|number| FeedEvent::of("one", &number)).collect()
    }

    fn seq(&self) -> u64 {
        self.0.lock().expect("counted").0
    }

    fn interval(&self) -> Duration {
        Duration::from_millis(1)
    }
}

fn feed() -> (CountingSource, SharedFeed) {
    let source = CountingSource::default();
    (source.clone(), SharedFeed::new("a".into(), Box::new(source)))
}

fn step(feed: &SharedFeed) -> bool {
    feed.state().step("a")
}

/// Returns the data of the frames that a reader has, and the last position.
fn read(stream: &mut EventStream) -> (Vec<String>, Option<FeedPosition>) {
    let mut frames: Vec<Bytes> = stream.behind.drain(..).collect();
    while let Ok(frame) = stream.coming.try_recv() {
        frames.push(frame);
    }
    let text: String = frames.iter().map(|frame| String::from_utf8_lossy(frame)).collect();
    let all = |what: &str| -> Vec<String> {
        text.lines().filter_map(|line| line.strip_prefix(what)).map(str::to_owned).collect()
    };
    (all("data: "), all("id: ").last().and_then(|id| FeedPosition::parse(id)))
}

#[test]
fn reader_that_returns_gets_what_it_lacks_and_nothing_twice() {
    let (source, feed) = feed();
    source.add(2);
    assert!(step(&feed));
    let mut first = feed.read_from(None).expect("a stream");
    let (seen, position) = read(&mut first);
    assert_eq!(seen, ["2", "1", "2", "2"], "reset, both, whole");
    source.add(1);
    assert!(step(&feed));
    assert_eq!(read(&mut first).0, ["3"]);
    drop(first);
    source.add(1);
    assert!(step(&feed));
    let mut again = feed.read_from(position.as_ref()).expect("a stream");
    let (seen, position) = read(&mut again);
    assert_eq!(seen, ["3", "4"]);
    assert_eq!(position.map(|position| position.number), Some(4));
}

#[test]
fn reader_of_another_stream_gets_later_records() {
    let (source, feed) = feed();
    source.add(5);
    assert!(step(&feed));
    let position = FeedPosition { seq: 3, number: 3, stream: "before".into() };
    let mut stream = feed.read_from(Some(&position)).expect("a stream");
    assert_eq!(read(&mut stream).0, ["5", "4", "5", "5"], "reset, the later two, whole");
}

#[test]
fn reader_that_is_too_slow_loses_its_stream_and_comes_back() {
    let (source, feed) = feed();
    let mut slow = feed.read_from(None).expect("a stream");
    let position = read(&mut slow).1.expect("a position");
    source.add(MAX_WAITING_FRAMES as u64 + 1);
    assert!(step(&feed));
    assert_eq!(feed.state().readers.len(), 0, "nothing waits for it");
    assert_eq!(read(&mut slow).0.len(), MAX_WAITING_FRAMES);
    let mut back = feed.read_from(Some(&position)).expect("a stream");
    assert_eq!(read(&mut back).0.len(), MAX_WAITING_FRAMES + 1);
}

#[test]
fn kept_events_are_bounded_and_older_positions_get_everything() {
    let (source, feed) = feed();
    source.add(MAX_KEPT_EVENTS as u64 + 10);
    assert!(step(&feed));
    assert_eq!(feed.state().kept.len(), MAX_KEPT_EVENTS);
    assert!(feed.state().since(5).is_none());
    assert_eq!(feed.state().since(10).map(|frames| frames.len()), Some(MAX_KEPT_EVENTS));
    assert!(feed.state().since(100_000).is_none(), "a position that never was");
}

#[test]
fn everything_is_written_once_for_all_readers() {
    let (source, feed) = feed();
    source.add(3);
    assert!(step(&feed));
    let first = feed.read_from(None).expect("a stream");
    let second = feed.read_from(None).expect("a stream");
    let pairs = first.behind.iter().zip(&second.behind);
    assert!(pairs.clone().count() > 3);
    for (first, second) in pairs {
        assert_eq!(first.as_ptr(), second.as_ptr());
    }
}

#[test]
fn ended_feed_has_no_readers() {
    let (_source, feed) = feed();
    let mut stream = feed.read_from(None).expect("a stream");
    feed.end();
    assert!(!step(&feed) && feed.read_from(None).is_none());
    read(&mut stream);
    assert!(stream.coming.try_recv().is_err());
}
