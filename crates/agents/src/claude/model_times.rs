//! The time that the model took of each turn, as the results in the streams tell it.
//!
//! A result tells the time of all requests to the model that its process has made so far; what has come to it since the
//! result before is that of the turn.

use std::collections::HashMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use memchr::{memmem, memrchr};
use raymond_model::turn::TurnId;
use raymond_store::plain_file;
use serde_json::Value;

use crate::transcript::TurnFiles;

/// The bytes before the end of a turn's output in which its result is looked for.
const TAIL_BYTES: u64 = 64 * 1024;

/// The most bytes that are read for a run, so that the result for a long run comes soon, too.
const MAX_BYTES: u64 = 128 * 1024 * 1024;

/// The turns that one process served: the places in its stream where they begin, and their indices.
type ServedTurns = Vec<(u64, usize)>;

/// Returns the time that the model took in each turn, in milliseconds; `None` if it is not known.
pub fn read(steps: &Path, turns: &[TurnId]) -> Vec<Option<u64>> {
    let mut processes: HashMap<String, ServedTurns> = HashMap::new();
    for (index, turn) in turns.iter().enumerate() {
        let (process, from) = TurnFiles::of(steps, turn).place();
        processes.entry(process).or_default().push((from, index));
    }
    let mut times = vec![None; turns.len()];
    let mut left = MAX_BYTES;
    for (process, mut served) in processes {
        served.sort_unstable();
        if let Ok(stream) = plain_file::open(&TurnFiles::named(steps, &process).stream) {
            // Turns that cannot be read are left out, and the rest is reported.
            let _ = read_process(stream, &served, &mut left, &mut times);
        }
    }
    times
}

fn read_process(
    mut stream: File,
    served: &[(u64, usize)],
    left: &mut u64,
    times: &mut [Option<u64>],
) -> std::io::Result<()> {
    let length = stream.metadata()?.len();
    let mut before = match served.first() {
        Some((0, _)) | None => Some(0),
        Some((first, _)) => reported_before(&mut stream, 0, *first, left)?,
    };
    for (place, (from, index)) in served.iter().enumerate() {
        let end = served.get(place + 1).map_or(length, |(next, _)| *next);
        let reported = reported_before(&mut stream, *from, end, left)?;
        if let Some(slot) = times.get_mut(*index) {
            *slot = before.zip(reported).map(|(before, total)| total.saturating_sub(before));
        }
        before = reported;
    }
    Ok(())
}

/// Returns the time that the last result between two places reports, if there is one shortly before the second.
fn reported_before(
    stream: &mut File,
    from: u64,
    end: u64,
    left: &mut u64,
) -> std::io::Result<Option<u64>> {
    let begin = from.max(end.saturating_sub(TAIL_BYTES));
    let length = end.saturating_sub(begin);
    if length > *left {
        return Ok(None);
    }
    *left -= length;
    stream.seek(SeekFrom::Start(begin))?;
    let mut tail = Vec::new();
    stream.take(length).read_to_end(&mut tail)?;
    Ok(last_reported(&tail))
}

/// Returns the time in the last result of some lines, of which the first may be cut.
fn last_reported(lines: &[u8]) -> Option<u64> {
    let mut rest = lines;
    loop {
        let end = rest.trim_ascii_end().len();
        if end == 0 {
            return None;
        }
        let begin = memrchr(b'\n', &rest[..end]).map_or(0, |at| at + 1);
        let line = &rest[begin..end];
        if memmem::find(line, br#""duration_api_ms""#).is_some()
            && let Ok(event) = serde_json::from_slice::<Value>(line)
            && event["type"] == "result"
        {
            return event["duration_api_ms"].as_u64();
        }
        rest = &rest[..begin];
    }
}

#[cfg(test)]
mod model_times_tests {
    use serde_json::json;

    use super::*;
    use raymond_model::id::AgentId;

    fn turn(step: u64) -> TurnId {
        TurnId { agent: AgentId::parse("main").expect("an agent"), step, turn: 0 }
    }

    fn result(so_far: u64) -> String {
        format!("{}\n", json!({ "type": "result", "duration_ms": 9, "duration_api_ms": so_far }))
    }

    #[test]
    fn time_of_a_turn_is_what_came_to_that_of_its_process() {
        let steps = tempfile::tempdir().expect("a directory");
        let first = format!("{{\"type\":\"user\"}}\n{}", result(40));
        let second = format!("{}{{\"type\":\"system\"}}\n", result(100));
        let stream = steps.path().join(format!("{}.jsonl", turn(1).stem()));
        std::fs::write(&stream, format!("{first}{second}{{\"type\":\"assi")).expect("written");
        let served = [(0, 0), (first.len() as u64, 1)];
        let mut times = vec![None; 2];
        let open = || plain_file::open(&stream).expect("a stream");
        read_process(open(), &served, &mut { MAX_BYTES }, &mut times).expect("read");
        assert_eq!(times, [Some(40), Some(60)]);
        assert_eq!(read(steps.path(), &[turn(1), turn(2)]), [Some(100), None]);

        let mut later = vec![None];
        let alone = [(first.len() as u64, 0)];
        read_process(open(), &alone, &mut { MAX_BYTES }, &mut later).expect("read");
        assert_eq!(later, [Some(60)], "the turn before is not asked for");
        let mut none = vec![None; 2];
        read_process(open(), &served, &mut 1, &mut none).expect("read");
        assert_eq!(none, [None, None], "no more is read than may be");
    }

    #[test]
    fn only_a_whole_result_tells_a_time() {
        assert_eq!(last_reported(b""), None);
        assert_eq!(last_reported(result(7).as_bytes()), Some(7));
        assert_eq!(last_reported(b"{\"type\":\"result\",\"duration_api_ms\":"), None);
        let answer = json!({ "type": "assistant", "text": "\"duration_api_ms\":3" });
        assert_eq!(last_reported(format!("{}{answer}\n", result(7)).as_bytes()), Some(7));
    }
}
