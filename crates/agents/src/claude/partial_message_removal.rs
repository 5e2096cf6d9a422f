//! Takes the partial messages of a finished turn out of its process's stream.
//!
//! The child has the stream open itself, so the file is changed in place: the lines that are kept move to the front of
//! the turn's region, and the rest is cut off. Only the region of the process's last turn changes, so the noted places
//! of earlier turns stay valid.
//!
//! At that time, the turn's outcome is not in the journal yet. So the kept lines are first written to a separate file
//! as a redo record. If the runtime dies in between, [`recover`] repeats the move before the turn is read again.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, BufWriter, ErrorKind, Read, Result, Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::claude::stream::line::CompactedLengths;
use raymond_store::fault::FaultPoint;
use raymond_store::plain_file;

/// Number of rounds in which lines that the child writes meanwhile are moved, too.
const MAX_ROUNDS: usize = 16;

/// The longest header of a redo record, in bytes.
const MAX_HEADER_BYTES: u64 = 256;

/// First line of a redo record; the kept lines follow.
#[derive(Debug, Serialize, Deserialize)]
struct RedoHeader {
    /// Byte of the stream at which the turn's region begins.
    from: u64,
    /// Number of bytes that are kept.
    length: u64,
    /// Byte at which the region ended when it was read; later bytes were written after that.
    #[serde(default)]
    end: Option<u64>,
}

/// Drops the partial messages of the region that begins at `from`, and returns the new place of the
/// byte up to which the stream had been `read`.
///
/// # Errors
/// The system's error. The stream is readable as before then, or [`recover`] makes it so.
pub(crate) fn compact(stream: &Path, from: u64, read: u64) -> Result<u64> {
    let file = open_stream(stream)?;
    let region = TurnRegion { from, end: file.metadata()?.len() };
    let compacted = region.scan(&file, read, |_| Ok(()))?;
    if compacted.dropped == 0 {
        return Ok(read);
    }
    let record = redo_record(stream);
    write_redo_record(&record, region, compacted.kept, |record| {
        region.scan(&file, read, |line| record.write_all(line)).map(drop)
    })?;
    FaultPoint::CompactNoted.reach();
    let kept = open_record(&record, from)?.ok_or(ErrorKind::InvalidData)?;
    move_to_front(&file, region, kept)?;
    std::fs::remove_file(record)?;
    Ok(from + compacted.read)
}

/// Completes a compaction of the region at `from` that a crash has interrupted.
///
/// # Errors
/// The system's error.
pub(crate) fn recover(stream: &Path, from: u64) -> Result<()> {
    let record = redo_record(stream);
    match open_record(&record, from) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
        Ok(None) => {}
        Ok(Some(kept)) => {
            let file = open_stream(stream)?;
            let length = file.metadata()?.len();
            // A stream that is shorter has been cut already.
            let end = kept.end.unwrap_or(length);
            if length >= end.max(from + kept.length) {
                move_to_front(&file, TurnRegion { from, end }, kept)?;
            }
        }
    }
    std::fs::remove_file(record)
}

fn open_stream(path: &Path) -> Result<File> {
    plain_file::open_with(path, OpenOptions::new().read(true).write(true))
}

/// A turn's region of a stream, in bytes.
#[derive(Debug, Clone, Copy)]
struct TurnRegion {
    from: u64,
    end: u64,
}

impl TurnRegion {
    /// Hands each line that is kept to `keep`, and returns the lengths. `read` is the byte of the stream up to
    /// which it had been read.
    fn scan(
        self,
        file: &File,
        read: u64,
        mut keep: impl FnMut(&[u8]) -> Result<()>,
    ) -> Result<CompactedLengths> {
        let mut reader = file;
        reader.seek(SeekFrom::Start(self.from))?;
        let mut lines = BufReader::new(reader.take(self.end.saturating_sub(self.from)));
        let (mut compacted, mut at, mut line) =
            (CompactedLengths::default(), self.from, Vec::new());
        while lines.read_until(b'\n', &mut line)? > 0 {
            let length = line.len() as u64;
            if compacted.push(&line, read.saturating_sub(at).min(length)) {
                keep(&line)?;
            }
            at += length;
            line.clear();
        }
        Ok(compacted)
    }
}

/// The kept lines of a redo record.
struct KeptLines {
    record: BufReader<File>,
    length: u64,
    /// The end of the region, where the record says it.
    end: Option<u64>,
}

impl KeptLines {
    /// Writes the lines into a stream.
    fn copy_to(self, stream: &File, mut at: u64) -> Result<()> {
        let mut lines = self.record.take(self.length);
        loop {
            let chunk = lines.fill_buf()?;
            if chunk.is_empty() {
                return Ok(());
            }
            stream.write_all_at(chunk, at)?;
            let length = chunk.len();
            at += length as u64;
            lines.consume(length);
        }
    }
}

/// Path of the redo record of a stream.
fn redo_record(stream: &Path) -> PathBuf {
    stream.with_extension("compact")
}

/// Writes a redo record: a header, and the kept lines.
fn write_redo_record(
    path: &Path,
    region: TurnRegion,
    length: u64,
    write_lines: impl FnOnce(&mut BufWriter<File>) -> Result<()>,
) -> Result<()> {
    let mut record = BufWriter::new(plain_file::create(path)?);
    let TurnRegion { from, end } = region;
    serde_json::to_writer(&mut record, &RedoHeader { from, length, end: Some(end) })?;
    record.write_all(b"\n")?;
    write_lines(&mut record)?;
    record.flush()
}

/// Opens a redo record at its lines; `None` if it was not written to its end, or is about another region.
fn open_record(path: &Path, from: u64) -> Result<Option<KeptLines>> {
    let file = plain_file::open(path)?;
    let whole = file.metadata()?.len();
    let mut record = BufReader::new(file);
    let mut line = Vec::new();
    record.by_ref().take(MAX_HEADER_BYTES).read_until(b'\n', &mut line)?;
    let Ok(RedoHeader { from: begin, length, end }) = serde_json::from_slice(&line) else {
        return Ok(None);
    };
    let is_whole = line.ends_with(b"\n") && line.len() as u64 + length == whole;
    Ok((begin == from && is_whole).then_some(KeptLines { record, length, end }))
}

/// Writes the kept lines at the front of the region, then the lines that the child has written since the region was
/// read, and cuts off the rest.
fn move_to_front(file: &File, region: TurnRegion, kept: KeptLines) -> Result<()> {
    let TurnRegion { from, mut end } = region;
    let mut new_end = from + kept.length;
    kept.copy_to(file, from)?;
    FaultPoint::CompactMoved.reach();
    for _ in 0..MAX_ROUNDS {
        let length = file.metadata()?.len();
        if length <= end {
            return file.set_len(new_end);
        }
        let mut grown = vec![0; usize::try_from(length - end).unwrap_or(usize::MAX)];
        file.read_exact_at(&mut grown, end)?;
        file.write_all_at(&grown, new_end)?;
        (end, new_end) = (length, new_end + grown.len() as u64);
    }
    file.set_len(new_end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claude::stream::StreamParser;

    const EARLIER: &str = "{\"type\":\"result\",\"result\":\"earlier\"}\n";
    const INIT: &str = "{\"type\":\"system\",\"subtype\":\"init\"}\n";
    const DELTA: &str = "{\"type\":\"stream_event\",\"event\":{\"delta\":{\"text\":\"he\"}}}\n";
    const SAID: &str = "{\"type\":\"assistant\",\"uuid\":\"u\",\"message\":{\"content\":[]}}\n";
    const RESULT: &str = "{\"type\":\"result\",\"result\":\"hello\",\"total_cost_usd\":1}\n";

    fn turn() -> String {
        [INIT, DELTA, DELTA, SAID, DELTA, RESULT].concat()
    }

    /// A stream with an earlier turn, and where the last one begins.
    fn stream(folder: &Path) -> (PathBuf, u64) {
        let path = folder.join("main-1-0.jsonl");
        std::fs::write(&path, EARLIER.to_owned() + &turn()).expect("written");
        (path, EARLIER.len() as u64)
    }

    /// Writes the redo record of a stream.
    fn noted(stream: &Path, from: u64, kept: &str) {
        let write = |record: &mut BufWriter<File>| record.write_all(kept.as_bytes());
        let length = kept.len() as u64;
        let end = stream.metadata().expect("known").len();
        let region = TurnRegion { from, end };
        write_redo_record(&redo_record(stream), region, length, write).expect("written");
    }

    fn content(path: &Path) -> String {
        std::fs::read_to_string(path).expect("read")
    }

    fn compacted() -> String {
        [EARLIER, INIT, SAID, RESULT].concat()
    }

    #[test]
    fn only_partial_messages_of_last_turn_are_removed() {
        let folder = tempfile::tempdir().expect("a directory");
        let (path, from) = stream(folder.path());
        let end = compact(&path, from, from + turn().len() as u64).expect("compacted");
        assert_eq!((content(&path), end), (compacted(), compacted().len() as u64));
        assert_eq!(compact(&path, from, end).expect("nothing to do"), end);
        assert_eq!(std::fs::read_dir(folder.path()).expect("read").count(), 1);
    }

    #[test]
    fn running_child_appends_to_compacted_file() {
        let folder = tempfile::tempdir().expect("a directory");
        let (path, from) = stream(folder.path());
        let mut child = OpenOptions::new().append(true).open(&path).expect("opened");
        compact(&path, from, from).expect("compacted");
        child.write_all(b"{\"type\":\"later\"}\n").expect("written");
        assert_eq!(content(&path), compacted() + "{\"type\":\"later\"}\n");
    }

    #[test]
    fn lines_written_during_compaction_are_preserved() {
        let folder = tempfile::tempdir().expect("a directory");
        let (path, from) = stream(folder.path());
        let file = OpenOptions::new().read(true).write(true).open(&path).expect("opened");
        let end = file.metadata().expect("known").len();
        let region = TurnRegion { from, end };
        noted(&path, from, &[INIT, SAID, RESULT].concat());
        let lines = open_record(&redo_record(&path), from).expect("opened").expect("whole");
        let mut child = OpenOptions::new().append(true).open(&path).expect("opened");
        child.write_all(b"{\"type\":\"later\"}\n").expect("written");
        move_to_front(&file, region, lines).expect("moved");
        assert_eq!(content(&path), compacted() + "{\"type\":\"later\"}\n");
    }

    #[test]
    fn crash_while_writing_redo_record_changes_nothing() {
        let folder = tempfile::tempdir().expect("a directory");
        let (path, from) = stream(folder.path());
        let kept = [INIT, SAID, RESULT].concat();
        let record = redo_record(&path);
        noted(&path, from, &kept);
        let whole = std::fs::read(&record).expect("read");
        for cut in 0..whole.len() {
            std::fs::write(&record, &whole[..cut]).expect("written");
            recover(&path, from).expect("recovered");
            assert_eq!(content(&path), EARLIER.to_owned() + &turn(), "cut at {cut}");
        }
    }

    #[test]
    fn crash_at_any_byte_of_move_is_recovered() {
        let folder = tempfile::tempdir().expect("a directory");
        let kept = [INIT, SAID, RESULT].concat();
        for moved in 0..=kept.len() {
            for is_cut in [false, true] {
                let (path, from) = stream(folder.path());
                noted(&path, from, &kept);
                let file = OpenOptions::new().write(true).open(&path).expect("opened");
                file.write_all_at(&kept.as_bytes()[..moved], from).expect("written");
                if is_cut && moved == kept.len() {
                    file.set_len(from + kept.len() as u64).expect("cut");
                }
                recover(&path, from).expect("recovered");
                assert_eq!(content(&path), compacted(), "moved {moved}");
            }
        }
    }

    #[test]
    fn result_moved_before_truncation_is_billed_once() {
        let folder = tempfile::tempdir().expect("a directory");
        let (path, from) = stream(folder.path());
        let kept = [INIT, SAID, RESULT].concat();
        let file = OpenOptions::new().write(true).open(&path).expect("opened");
        file.write_all_at(kept.as_bytes(), from).expect("written");
        let mut read = StreamParser::default();
        let from = usize::try_from(from).expect("short");
        read.feed(&content(&path).as_bytes()[from..]).expect("short lines");
        let result = read.progress.result.as_ref().expect("a result");
        assert_eq!(result.text.as_deref(), Some("hello"));
        assert!((read.progress.taken().cost.dollars() - 1.0).abs() < 1e-9, "it is paid for once");
    }

    #[test]
    fn recovery_preserves_lines_written_after_crash() {
        let folder = tempfile::tempdir().expect("a directory");
        let (path, from) = stream(folder.path());
        noted(&path, from, &[INIT, SAID, RESULT].concat());
        let mut child = OpenOptions::new().append(true).open(&path).expect("opened");
        child.write_all(b"{\"type\":\"later\"}\n").expect("written");
        recover(&path, from).expect("recovered");
        assert_eq!(content(&path), compacted() + "{\"type\":\"later\"}\n");
    }

    #[test]
    fn redo_record_of_other_turn_is_discarded() {
        let folder = tempfile::tempdir().expect("a directory");
        let (path, from) = stream(folder.path());
        noted(&path, from - 1, "{}\n");
        recover(&path, from).expect("recovered");
        assert_eq!(content(&path), EARLIER.to_owned() + &turn());
        assert!(!redo_record(&path).exists());
    }
}
