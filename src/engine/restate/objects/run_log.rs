//! The decisions about the log of a run.
//!
//! The lines are in chunks of a fixed number of lines, so that the chunk of a record follows from its number, an append
//! rewrites the last chunk alone, and no call loads more than it needs. A long line has a value of its own.

use serde::{Deserialize, Serialize};

use super::run_calls::{FactChangeCall, RunAnswer};
use super::run_head::RunHead;
use super::state::{ObjectState, Undecided};

/// The lines of a chunk.
const CHUNK: u64 = 64;
/// The longest line that a chunk holds, in bytes.
const LONGEST: usize = 8 * 1_024;
/// The size at which an answer ends, in bytes.
const ANSWER: usize = 4 * 1_024 * 1_024;

/// A line as a chunk has it, with the epoch of the lease that it was appended with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
enum KeptLine {
    Here(u64, String),
    /// Its text has a value of its own.
    Apart(u64),
}

impl KeptLine {
    fn epoch(&self) -> u64 {
        match self {
            Self::Here(epoch, _) | Self::Apart(epoch) => *epoch,
        }
    }
}

pub(super) fn chunk_key(seq: u64) -> String {
    format!("chunk/{}", seq.saturating_sub(1) / CHUNK)
}

fn line_key(seq: u64) -> String {
    format!("line/{seq}")
}

/// Adds lines to the end of the log.
pub(super) fn put(
    head: &mut RunHead,
    lines: &[String],
    state: &mut ObjectState<'_>,
) -> Result<(), Undecided> {
    let mut rest = lines;
    while !rest.is_empty() {
        let key = chunk_key(head.last + 1);
        let mut chunk: Vec<KeptLine> = if head.last.is_multiple_of(CHUNK) {
            Vec::new()
        } else {
            state.get_or_default(&key)?
        };
        let room = usize::try_from(CHUNK - head.last % CHUNK).unwrap_or(usize::MAX);
        let (now, later) = rest.split_at(room.min(rest.len()));
        for line in now {
            head.last += 1;
            if line.len() > LONGEST {
                state.set(&line_key(head.last), line)?;
                chunk.push(KeptLine::Apart(head.epoch));
            } else {
                chunk.push(KeptLine::Here(head.epoch, line.clone()));
            }
        }
        state.set(&key, &chunk)?;
        rest = later;
    }
    Ok(())
}

/// Appends lines, all or none. Those that are there already, from the same lease, were appended by an earlier call.
pub(super) fn append(
    head: &mut RunHead,
    first: u64,
    lines: &[String],
    state: &mut ObjectState<'_>,
) -> Result<RunAnswer, Undecided> {
    if first == 0 || first > head.last + 1 {
        let why = format!("record {first} cannot follow record {}, the last one", head.last);
        return Ok(RunAnswer::Unfit { why });
    }
    let there = usize::try_from(head.last + 1 - first).unwrap_or(usize::MAX).min(lines.len());
    let (known, new) = lines.split_at(there);
    if let Some(seq) = difference(first, known, Some(head.epoch), state)? {
        return Ok(RunAnswer::Unfit { why: format!("there is another record {seq} already") });
    }
    if !new.is_empty() {
        put(head, new, state)?;
        head.lines.tell(head.lines.news + 1, state);
    }
    Ok(RunAnswer::Done)
}

/// Appends a change of facts if the one that it follows is the last. The same change in the same place was appended by an
/// earlier call.
pub(super) fn append_fact(
    head: &mut RunHead,
    FactChangeCall { after, text }: &FactChangeCall,
    state: &mut ObjectState<'_>,
) -> Result<RunAnswer, Undecided> {
    let change = std::slice::from_ref(text);
    if *after > head.last {
        let why = format!("a change cannot follow change {after}, which is not there");
        return Ok(RunAnswer::Unfit { why });
    }
    if *after < head.last {
        let is_same = difference(after + 1, change, None, state)?.is_none();
        return Ok(if is_same { RunAnswer::Done } else { RunAnswer::Crossed });
    }
    put(head, change, state)?;
    head.lines.tell(head.lines.news + 1, state);
    Ok(RunAnswer::Done)
}

/// Returns whether the log begins with these lines, from the first lease.
pub(super) fn begins_with(lines: &[String], state: &ObjectState<'_>) -> Result<bool, Undecided> {
    Ok(difference(1, lines, Some(1), state)?.is_none())
}

/// Returns the number of the first line that differs from the one in the log.
fn difference(
    first: u64,
    lines: &[String],
    epoch: Option<u64>,
    state: &ObjectState<'_>,
) -> Result<Option<u64>, Undecided> {
    for (line, seq) in lines.iter().zip(first..) {
        let same = match kept(seq, state)? {
            Some(kept) if epoch.is_some_and(|epoch| epoch != kept.epoch()) => false,
            Some(KeptLine::Here(_, text)) => text == *line,
            Some(KeptLine::Apart(_)) => {
                state.get::<String>(&line_key(seq))?.is_some_and(|text| text == *line)
            }
            None => false,
        };
        if !same {
            return Ok(Some(seq));
        }
    }
    Ok(None)
}

fn kept(seq: u64, state: &ObjectState<'_>) -> Result<Option<KeptLine>, Undecided> {
    let chunk: Vec<KeptLine> = state.get_or_default(&chunk_key(seq))?;
    let place = usize::try_from((seq - 1) % CHUNK).unwrap_or(usize::MAX);
    Ok(chunk.into_iter().nth(place))
}

/// Returns lines after a record, so many that an answer does not become too large.
pub(super) fn read(
    head: &RunHead,
    after: u64,
    limit: usize,
    state: &ObjectState<'_>,
) -> Result<RunAnswer, Undecided> {
    let most = u64::try_from(limit).unwrap_or(u64::MAX).min(CHUNK * 16);
    let end = after.saturating_add(most).min(head.last);
    let (mut lines, mut size) = (Vec::new(), 0);
    if after < end {
        let chunks = after / CHUNK..=(end - 1) / CHUNK;
        state.need(chunks.clone().map(|chunk| chunk_key(chunk * CHUNK + 1)))?;
        for chunk in chunks {
            let begin = chunk * CHUNK + 1;
            let kept: Vec<KeptLine> = state.get_or_default(&chunk_key(begin))?;
            for (line, seq) in kept.into_iter().zip(begin..=end) {
                if seq <= after || size > ANSWER {
                    continue;
                }
                let text = match line {
                    KeptLine::Here(_, text) => text,
                    KeptLine::Apart(_) => state.get_or_default(&line_key(seq))?,
                };
                size += text.len();
                lines.push(text);
            }
        }
    }
    Ok(RunAnswer::Lines { lines, last: head.last })
}
