//! The decisions about the log of a run, its head, and the requests that were forgotten a while ago.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde::{Deserialize, Serialize};

use super::host::NewsWaiters;
use super::run_calls::{FactChangeCall, RunAnswer, SenderNumber};
use super::state::{ObjectState, Undecided};
use crate::shared_log::HostClaim;

// The decisions about the log of a run.
//
// The lines are stored in chunks of a fixed number of lines. So the chunk of a record follows from its number, an
// append rewrites only the last chunk, and no call loads more than it needs. A long line has a separate value.

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
    /// Its text is in a separate value.
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
        head.lines.add(state);
    }
    Ok(RunAnswer::Done)
}

/// Appends a change of facts if it follows the last change. The same change in the same place was appended by an
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
    head.lines.add(state);
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

// The head of a run: who supervises it, how far its log is, and who waits for it.

/// The key of the head.
pub(super) const HEAD: &str = "head";
/// The key of the terms.
pub(super) const TERMS: &str = "terms";

/// The head of a run. It is small: nearly every call reads and writes it.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct RunHead {
    /// The number of times that it was taken over.
    pub(super) epoch: u64,
    /// The supervisor; `None` if the lease was given back.
    pub(super) holder: Option<String>,
    /// The number of the lease's last extension: the end of an earlier one does not count.
    pub(super) lease: u64,
    pub(super) has_run_out: bool,
    pub(super) has_ended: bool,
    /// The number of the last record.
    pub(super) last: u64,
    /// The hosts that know that they have requests of this run.
    #[serde(rename = "told")]
    pub(super) notified: BTreeSet<String>,
    /// By host: the oldest epoch that is not over, as far as the run knows.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) fences: BTreeMap<String, u64>,
    /// The number of the next batch of bodies.
    #[serde(default)]
    pub(super) batches: u64,
    #[serde(default, rename = "forgotten_requests")]
    pub(super) forgotten: ForgottenRequests,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) newest_sending: Option<SenderNumber>,
    pub(super) mail: NewsWaiters,
    pub(super) lines: NewsWaiters,
}

impl RunHead {
    /// Loads the head; `None` if there is no such run.
    pub(super) fn load(state: &ObjectState<'_>) -> Result<Option<Self>, Undecided> {
        state.get(HEAD)
    }

    pub(super) fn save(&self, state: &mut ObjectState<'_>) -> Result<(), Undecided> {
        state.set(HEAD, self)
    }

    /// Notes that the epochs of a host before this one are over.
    pub(super) fn fence(&mut self, host: &str, oldest_valid: u64) {
        let known = self.fences.entry(host.to_owned()).or_default();
        *known = oldest_valid.max(*known);
    }

    /// Returns whether the epoch of a host is over, as far as the run knows.
    pub(super) fn is_fenced(&self, by: &HostClaim) -> bool {
        self.fences.get(by.host.as_str()).is_some_and(|oldest_valid| by.epoch.0 < *oldest_valid)
    }

    /// Notes a sending. Returns whether it comes after a newer one, comes twice, or is the first one of its sender
    /// after those of another.
    pub(super) fn note_sending(&mut self, by: &SenderNumber) -> bool {
        let newest = self.newest_sending.as_ref();
        let of_same = newest.filter(|newest| newest.sender == by.sender);
        let is_overtaken = of_same.is_some_and(|newest| by.number <= newest.number);
        let is_late = is_overtaken || (newest.is_some() && of_same.is_none());
        if !is_overtaken {
            self.newest_sending = Some(by.clone());
        }
        is_late
    }
}

// The requests that were forgotten a while ago. A call that was cut off and sends such a request late finds its key
// taken.
//
// Looking for each key would cost the server more than sending it. So the lists are read only if a sending could be
// late: if its sender began it before it last had something forgotten, if it is from another sender, or if it has a
// key that the sender knows to have sent before.

/// The number of requests at which a list is full.
const LIST: usize = 256;
/// The most lists before the last one. They have the last 10,000 requests.
const MOST: u64 = 40;

/// A request that was forgotten.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ForgottenRequest {
    #[serde(rename = "k")]
    pub(super) key: String,
    #[serde(rename = "g", default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) was_begun: bool,
}

/// The lists, and who had something forgotten last.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ForgottenRequests {
    first: u64,
    last: u64,
    by: Option<SenderNumber>,
}

fn list_key(number: u64) -> String {
    format!("forgotten_requests/{number}")
}

impl ForgottenRequests {
    /// Adds requests, and removes those that were forgotten long ago.
    pub(super) fn add(
        &mut self,
        by: &SenderNumber,
        forgotten: Vec<ForgottenRequest>,
        state: &mut ObjectState<'_>,
    ) -> Result<(), Undecided> {
        let is_later = |last: &SenderNumber| by.sender != last.sender || by.number > last.number;
        if self.by.as_ref().is_none_or(is_later) {
            self.by = Some(by.clone());
        }
        if forgotten.is_empty() {
            return Ok(());
        }
        let key = list_key(self.last);
        let mut list: Vec<ForgottenRequest> = state.get_or_default(&key)?;
        list.extend(forgotten);
        state.set(&key, &list)?;
        if list.len() >= LIST {
            self.last += 1;
        }
        while self.last - self.first > MOST {
            state.clear(&list_key(self.first));
            self.first += 1;
        }
        Ok(())
    }

    /// Returns whether a sending could have keys that were forgotten.
    pub(super) fn concerns(&self, sending: &SenderNumber) -> bool {
        self.by.as_ref().is_some_and(|by| by.sender != sending.sender || sending.number < by.number)
    }

    /// Returns all keys, and whether each had been begun.
    pub(super) fn all(&self, state: &ObjectState<'_>) -> Result<HashMap<String, bool>, Undecided> {
        state.need((self.first..=self.last).map(list_key))?;
        let mut all = HashMap::new();
        for number in self.first..=self.last {
            let list: Vec<ForgottenRequest> = state.get_or_default(&list_key(number))?;
            all.extend(list.into_iter().map(|request| (request.key, request.was_begun)));
        }
        Ok(all)
    }
}
