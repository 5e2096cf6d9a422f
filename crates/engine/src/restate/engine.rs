//! The Restate engine: its address, the way to its objects, what it knows of waits and news, and the space of runs.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use raymond_model::hexadecimal::hexadecimal;
use raymond_model::id::RunId;
use raymond_model::mutex::lock;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use tokio::task::JoinHandle;

use super::objects::run_calls::{
    CarriedCommand, CarriedContent, LeasedDeed, RunAnswer, RunCall, RunLook, SenderNumber,
};
use super::objects::state::{
    ALL, CHANGE, CONTENT, INDEX, IndexAnswer, IndexLook, LOOK, RUN, VERSION,
};
use super::run_batches::{RunBatches, call_within};
use super::serving::{
    CALL_LIMIT, CalledHandler, LARGE_CALL_LIMIT, ObjectCaller, RestateSettings, client,
};
use crate::client::ClientThread;
use crate::connect::{RunSpace, SharedCommand, too_large};
use crate::shared_log::RunLease;
use crate::{Engine, EngineAddress, EngineError};

/// Returns the part of an answer that its call asked for. Any other answer belongs to another call.
macro_rules! part_of {
    ($engine:expr, $answer:expr, $pattern:pat => $part:expr) => {
        match $answer {
            $pattern => Ok($part),
            other => Err($engine.unexpected(&other)),
        }
    };
}
pub(super) use part_of;

/// A Restate server as an engine.
pub(crate) struct RestateEngine {
    pub(super) caller: ObjectCaller,
    pub(super) receivers: MailReceivers,
    pub(super) batches: RunBatches,
    pub(super) sent_keys: SentKeys,
    /// The last field: the thread outlives what uses it.
    _thread: ClientThread,
}

impl fmt::Debug for RestateEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RestateEngine").field(self.address()).finish()
    }
}

impl Engine for RestateEngine {
    fn address(&self) -> &EngineAddress {
        &self.caller.address
    }
}

impl RestateEngine {
    /// Connects to the server, and asks its objects for their version.
    ///
    /// # Errors
    /// [`EngineError::Address`], [`EngineError::Unreachable`], [`EngineError::Refused`], [`EngineError::Version`].
    pub(crate) fn connect(address: &EngineAddress) -> Result<Self, EngineError> {
        let settings = RestateSettings::read(address)?;
        let thread = ClientThread::start("restate", address)?;
        let client = client().map_err(|why| EngineError::refused(address, why))?;
        let (ingress, handle) = (settings.ingress, thread.handle.clone());
        let caller = ObjectCaller { address: address.clone(), handle, client, ingress };
        let (receivers, batches, sent_keys) = Default::default();
        let engine = Self { caller, receivers, batches, sent_keys, _thread: thread };
        let answer = engine.index(&IndexLook::Version)?;
        match part_of!(engine, answer, IndexAnswer::Version(found) => found)? {
            VERSION => Ok(engine),
            found => {
                let engine = address.to_string();
                Err(EngineError::Version { engine, found, known: VERSION })
            }
        }
    }

    /// Asks the index.
    pub(super) fn index(&self, look: &IndexLook) -> Result<IndexAnswer, EngineError> {
        let called = CalledHandler { service: INDEX, key: ALL, handler: LOOK };
        self.caller.call(called, look, CALL_LIMIT)
    }

    /// Calls a run.
    pub(super) fn run(&self, run: &RunId, call: &RunCall) -> Result<RunAnswer, EngineError> {
        self.run_patiently(run, call, Duration::ZERO)
    }

    /// Calls a run together with others, or after that time.
    pub(super) fn run_patiently(
        &self,
        run: &RunId,
        call: &RunCall,
        patience: Duration,
    ) -> Result<RunAnswer, EngineError> {
        let answer = self.batches.call(&self.caller, run.as_str(), call, patience)?;
        self.judged(run, answer)
    }

    /// Calls a run within this time, and not together with other calls.
    pub(super) fn run_within(
        &self,
        run: &RunId,
        call: &RunCall,
        limit: Duration,
    ) -> Result<RunAnswer, EngineError> {
        let answer = call_within(&self.caller, run.as_str(), call, limit)?;
        self.judged(run, answer)
    }

    /// Asks a run.
    pub(super) fn run_look(&self, run: &RunId, look: &RunLook) -> Result<RunAnswer, EngineError> {
        let called = CalledHandler { service: RUN, key: run.as_str(), handler: LOOK };
        let answer = self.caller.call(called, look, LARGE_CALL_LIMIT)?;
        self.judged(run, answer)
    }

    /// Has a run do what only its newest supervisor may.
    pub(super) fn leased(
        &self,
        lease: &RunLease,
        deed: LeasedDeed,
    ) -> Result<RunAnswer, EngineError> {
        self.run(&lease.run, &RunCall::Leased { epoch: lease.epoch, deed })
    }

    /// Returns the error that an answer stands for.
    fn judged(&self, run: &RunId, answer: RunAnswer) -> Result<RunAnswer, EngineError> {
        let (engine, run) = (self.address().to_string(), run.clone());
        match answer {
            RunAnswer::NoSuchRun => Err(EngineError::NoSuchRun { engine, run }),
            RunAnswer::RunExists => Err(EngineError::RunExists { engine, run }),
            RunAnswer::Supervised { holder } => {
                Err(EngineError::Supervised { engine, run, holder })
            }
            RunAnswer::TakenOver => Err(EngineError::TakenOver { run }),
            RunAnswer::Unfit { why } => {
                Err(EngineError::damaged(self.address(), format!("the run {run}"), why))
            }
            answer => Ok(answer),
        }
    }

    /// Returns the error about an answer that belongs to another call.
    pub(super) fn unexpected(&self, answer: &impl fmt::Debug) -> EngineError {
        let shown = format!("{answer:?}");
        let start: String = shown.chars().take(100).collect();
        EngineError::damaged(
            self.address(),
            "an object",
            format!("it gave the answer to another call: {start}"),
        )
    }
}

/// Returns the answer of a run, or `None` if there is no such run.
pub(super) fn if_there<T>(asked: Result<T, EngineError>) -> Result<Option<T>, EngineError> {
    match asked {
        Ok(answer) => Ok(Some(answer)),
        Err(EngineError::NoSuchRun { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// A wait that is under way. It brings the number of the last news.
pub(super) type OpenWait = JoinHandle<Result<u64, EngineError>>;

// The requests that this process has sent lately, so that it can say which sending is not the first one.

/// The number of keys after which older keys are no longer known. The objects know fewer.
const MOST: usize = 16_384;

/// The hashes of the keys. Two keys with the same one cost no more than a longer look.
#[derive(Debug, Default)]
struct KnownHashes {
    newer: HashSet<u64>,
    older: HashSet<u64>,
    number: u64,
}

/// The keys that were sent, and the name that the objects know this process by.
#[derive(Debug)]
pub(super) struct SentKeys {
    sender: String,
    hasher: RandomState,
    known: Mutex<KnownHashes>,
}

impl Default for SentKeys {
    fn default() -> Self {
        // Its seeds are random, so no other process has the name.
        let hasher = RandomState::new();
        let sender = format!("{:016x}", hasher.hash_one("sender"));
        Self { sender, hasher, known: Mutex::default() }
    }
}

impl SentKeys {
    /// Returns the number of a call that sends these keys, and whether one of them was sent before.
    pub(super) fn send<'k>(&self, keys: impl Iterator<Item = &'k str>) -> (SenderNumber, bool) {
        let mut known = lock(&self.known);
        let mut is_again = false;
        for hash in keys.map(|key| self.hasher.hash_one(key)) {
            let is_new = known.newer.insert(hash);
            is_again |= !is_new || known.older.contains(&hash);
            if known.newer.len() >= MOST {
                known.older = std::mem::take(&mut known.newer);
            }
        }
        known.number += 1;
        (SenderNumber { sender: self.sender.clone(), number: known.number }, is_again)
    }

    /// Returns the number of a call that sends nothing.
    pub(super) fn number(&self) -> SenderNumber {
        self.send(std::iter::empty()).0
    }
}

// The receivers of mail, as this process knows them: those that just found mail look again soon, and those that wait
// in vain look rarely.
//
// Waking a receiver costs the server more than a look, and a look that goes with other calls costs it little.

/// The time after which a receiver that found mail looks again, unless another call has included the look before.
pub(super) const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(15);

/// The time after mail was found for which the receiver looks instead of waiting.
const LOOKING_TIME: Duration = Duration::from_millis(60);

/// The time for which the runs of a host need not be asked for. While there is mail all the time, a new run is found at
/// most this much later.
const KNOWN_RUNS: Duration = Duration::from_millis(200);

/// The time for which a look that found nothing need not be made again while a wait brings no news.
const EMPTY_LOOK_TIME: Duration = Duration::from_secs(3);

/// Somebody who has mail: the name of the service, and the key of the object.
pub(super) type ReceiverName = (&'static str, String);

/// The runs that a host asks when it looks again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum RunsToAsk {
    Known(Vec<RunId>),
    Unknown,
}

/// What is known of a receiver.
#[derive(Debug, Default)]
struct MailReceiverState {
    /// The time at which mail was last found, and whether the receiver has been asked to look since.
    found: Option<(Instant, bool)>,
    /// The receiver was asked to look again, and has not done so.
    looks_again: bool,
    /// The time of the last look if it found nothing, and whether a wait has brought no news since.
    empty: Option<(Instant, bool)>,
    /// The runs that a host last learned, and when.
    runs: Option<(Vec<RunId>, Instant)>,
    /// The number of the last news that a waiter has seen, so that the same news does not wake it twice.
    seen: u64,
    /// A wait that has outlived its caller: the next caller goes on with it.
    wait: Option<OpenWait>,
}

/// The receivers.
#[derive(Debug, Default)]
pub(super) struct MailReceivers(Mutex<HashMap<ReceiverName, MailReceiverState>>);

impl MailReceivers {
    /// Returns the number of the last news that a waiter has seen, and takes the wait that is under way.
    pub(super) fn take_wait(&self, receiver: &ReceiverName) -> (u64, Option<OpenWait>) {
        let mut all = self.lock();
        let Some(state) = all.get_mut(receiver) else { return (0, None) };
        (state.seen, state.wait.take())
    }

    /// Keeps a wait for the next caller: it has brought no news yet.
    pub(super) fn keep_wait(&self, receiver: ReceiverName, wait: OpenWait) {
        self.note_empty_wait(receiver.clone());
        self.lock().entry(receiver).or_default().wait = Some(wait);
    }

    /// Notes the news that a waiter has seen.
    pub(super) fn see(&self, receiver: ReceiverName, news: u64) {
        self.lock().entry(receiver).or_default().seen = news;
    }

    /// Notes a look, and whether it has found mail.
    pub(super) fn note(&self, receiver: ReceiverName, has_found: bool, now: Instant) {
        let mut all = self.lock();
        let look = all.entry(receiver).or_default();
        if has_found {
            (look.found, look.empty) = (Some((now, false)), None);
        } else {
            look.empty = Some((now, false));
        }
    }

    /// Notes that a wait has brought no news.
    pub(super) fn note_empty_wait(&self, receiver: ReceiverName) {
        if let Some((_, has_waited)) = &mut self.lock().entry(receiver).or_default().empty {
            *has_waited = true;
        }
    }

    /// Returns whether a receiver may skip its next look: the last one has found nothing, a moment ago, and a wait has
    /// brought no news since.
    pub(super) fn take_empty_wait(&self, receiver: &ReceiverName, now: Instant) -> bool {
        let mut all = self.lock();
        let empty = all.get_mut(receiver).and_then(|look| look.empty.as_mut());
        empty.is_some_and(|(at, has_waited)| {
            std::mem::take(has_waited) && now.duration_since(*at) < EMPTY_LOOK_TIME
        })
    }

    /// Returns whether a receiver should look again instead of waiting: at least once, however long it took to read
    /// what it found. Senders in the meantime rely on that.
    pub(super) fn ask_to_look_again(&self, receiver: &ReceiverName, now: Instant) -> bool {
        let mut all = self.lock();
        let Some(look) = all.get_mut(receiver) else { return false };
        let Some((found, was_asked)) = &mut look.found else { return false };
        let is_first = !std::mem::replace(was_asked, true);
        look.looks_again = is_first || now.duration_since(*found) < LOOKING_TIME;
        look.looks_again
    }

    /// Notes the runs of a host.
    pub(super) fn note_runs(&self, host: ReceiverName, runs: Vec<RunId>, now: Instant) {
        self.lock().entry(host).or_default().runs = Some((runs, now));
    }

    /// Returns whom a receiver asks if it was asked to look again and has not done so. The runs of a host are known if
    /// it learned them a moment ago.
    pub(super) fn take_look_again(
        &self,
        receiver: &ReceiverName,
        now: Instant,
    ) -> Option<RunsToAsk> {
        let mut all = self.lock();
        let look = all.get_mut(receiver)?;
        if !std::mem::take(&mut look.looks_again) {
            return None;
        }
        let is_fresh = |(_, at): &&(Vec<RunId>, Instant)| now.duration_since(*at) < KNOWN_RUNS;
        let known = look.runs.as_ref().filter(is_fresh);
        Some(known.map_or(RunsToAsk::Unknown, |(runs, _)| RunsToAsk::Known(runs.clone())))
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ReceiverName, MailReceiverState>> {
        lock(&self.0)
    }
}

// The space of runs: commands, and contents by their checksum.
//
// Small content is stored as it is. Larger content is stored in pieces, each in a separate object. The list of the
// pieces is stored last, so content that exists is complete.

/// The size of a piece, in bytes.
const PIECE: usize = 1_024 * 1_024;

/// The size up to which a content is small, in bytes.
const SMALL: usize = 64 * 1_024;

/// The first byte of a content that is stored as it is.
const WHOLE: u8 = 0;
/// The first byte of the list of the pieces of a content.
const LIST: u8 = 1;

/// The list of the pieces of a content.
#[derive(Debug, Serialize, Deserialize)]
struct ContentPieces {
    pieces: usize,
}

impl RunSpace for RestateEngine {
    fn leave_command(&self, run: &RunId, command: &SharedCommand) -> Result<(), EngineError> {
        let content = CarriedContent::of(&command.content);
        let command = CarriedCommand { name: command.name.clone(), content };
        let call = RunCall::LeaveCommand { command };
        self.run_within(run, &call, LARGE_CALL_LIMIT).map(drop)
    }

    fn commands(&self, run: &RunId) -> Result<Vec<SharedCommand>, EngineError> {
        let answer = self.run_look(run, &RunLook::Commands)?;
        let carried = part_of!(self, answer, RunAnswer::Commands(commands) => commands)?;
        let command = |CarriedCommand { name, content }| {
            let content = content.into_bytes();
            SharedCommand { name, content }
        };
        Ok(carried.into_iter().map(command).collect())
    }

    fn remove_command(&self, lease: &RunLease, name: &str) -> Result<(), EngineError> {
        self.leased(lease, LeasedDeed::RemoveCommand { name: name.to_owned() }).map(drop)
    }

    fn put_blob(&self, sha256: &str, content: &[u8]) -> Result<(), EngineError> {
        if checksum(content) != sha256 {
            return Err(EngineError::refused(
                self.address(),
                format!("`{sha256}` is not the checksum of the content"),
            ));
        }
        if content.len() <= SMALL {
            return self.put_piece(sha256, [&[WHOLE], content].concat());
        }
        // What is there already does not cross the network again.
        if self.piece(sha256)?.is_some() {
            return Ok(());
        }
        let pieces = content.chunks(PIECE);
        let list = ContentPieces { pieces: pieces.len() };
        for (number, piece) in pieces.enumerate() {
            self.put_piece(&format!("{sha256}.{number}"), piece.to_vec())?;
        }
        let list = serde_json::to_vec(&list)
            .map_err(|error| EngineError::refused(self.address(), error.to_string()))?;
        self.put_piece(sha256, [&[LIST], &list[..]].concat())
    }

    fn blob(&self, sha256: &str, most: u64) -> Result<Option<Vec<u8>>, EngineError> {
        let Some(stored) = self.piece(sha256)? else { return Ok(None) };
        let content = match stored.split_first() {
            Some((&WHOLE, content)) => content.to_vec(),
            Some((&LIST, list)) => self.joined(sha256, list, most)?,
            // Objects of version 4 had the list alone.
            Some((b'{', _)) => self.joined(sha256, &stored, most)?,
            Some(_) | None => return Err(self.broken(sha256, "it is neither whole nor a list")),
        };
        if content.len() as u64 > most {
            return Err(self.broken(sha256, too_large(content.len() as u64, most)));
        }
        if checksum(&content) == sha256 {
            Ok(Some(content))
        } else {
            Err(self.broken(sha256, "it has another checksum"))
        }
    }
}

impl RestateEngine {
    /// Returns the pieces of a list, joined.
    fn joined(&self, sha256: &str, list: &[u8], most: u64) -> Result<Vec<u8>, EngineError> {
        let list: ContentPieces =
            serde_json::from_slice(list).map_err(|error| self.broken(sha256, error.to_string()))?;
        // All pieces but the last one have the same size.
        let least = list.pieces.saturating_sub(1).saturating_mul(PIECE) as u64;
        if least > most {
            return Err(self.broken(sha256, too_large(least, most)));
        }
        let mut content = Vec::new();
        for number in 0..list.pieces {
            let piece = self.piece(&format!("{sha256}.{number}"))?;
            let missing = || self.broken(sha256, format!("piece {number} is missing"));
            content.extend(piece.ok_or_else(missing)?);
            if content.len() as u64 > most {
                break;
            }
        }
        Ok(content)
    }

    fn broken(&self, sha256: &str, why: impl Into<String>) -> EngineError {
        EngineError::damaged(self.address(), format!("the content {sha256}"), why)
    }

    fn put_piece(&self, key: &str, piece: Vec<u8>) -> Result<(), EngineError> {
        let called = CalledHandler { service: CONTENT, key, handler: CHANGE };
        self.caller.handle.block_on(self.caller.send(called, piece, LARGE_CALL_LIMIT)).map(drop)
    }

    fn piece(&self, key: &str) -> Result<Option<Vec<u8>>, EngineError> {
        let called = CalledHandler { service: CONTENT, key, handler: LOOK };
        let asked = self.caller.send(called, Vec::new(), LARGE_CALL_LIMIT);
        let answer = self.caller.handle.block_on(asked)?;
        Ok(answer
            .split_first()
            .filter(|(is_there, _)| **is_there == 1)
            .map(|(_, piece)| piece.to_vec()))
    }
}

fn checksum(content: &[u8]) -> String {
    hexadecimal(Sha256::digest(content))
}

#[cfg(test)]
mod sent_keys_tests {
    use super::*;

    #[test]
    fn key_is_known_for_as_many_others_as_the_objects_know() {
        let sent = SentKeys::default();
        let is_again = |key: &str| sent.send([key].into_iter()).1;
        assert_eq!((is_again("a"), is_again("b"), is_again("a")), (false, false, true));
        for number in 0..MOST {
            assert!(!is_again(&number.to_string()));
        }
        assert!(is_again("b"));
        assert_eq!(sent.number().number, 4 + MOST as u64 + 1);
        assert_eq!(sent.number().sender, sent.number().sender);
    }
}

#[cfg(test)]
mod receivers_tests {
    use super::*;

    #[test]
    fn receiver_that_found_mail_looks_again_for_a_while() {
        let (looks, host) = (MailReceivers::default(), ("host", "a".to_owned()));
        let (now, run) = (Instant::now(), RunId::parse("r").expect("an id"));
        assert!(!looks.ask_to_look_again(&host, now));
        looks.note_runs(host.clone(), vec![run.clone()], now);
        assert_eq!(looks.take_look_again(&host, now), None, "it was notified of news");
        looks.note(host.clone(), true, now);
        assert!(looks.ask_to_look_again(&host, now));
        assert_eq!(looks.take_look_again(&host, now), Some(RunsToAsk::Known(vec![run])));
        assert_eq!(looks.take_look_again(&host, now), None);
        assert!(looks.ask_to_look_again(&host, now + LOOKING_TIME / 2));
        assert_eq!(looks.take_look_again(&host, now + KNOWN_RUNS), Some(RunsToAsk::Unknown));
        assert!(!looks.ask_to_look_again(&host, now + LOOKING_TIME));
        assert_eq!(looks.take_look_again(&host, now + LOOKING_TIME), None);
        looks.note(host.clone(), true, now);
        assert!(looks.ask_to_look_again(&host, now + LOOKING_TIME), "it has not looked since");
        assert!(!looks.ask_to_look_again(&host, now + LOOKING_TIME));
    }

    #[test]
    fn receiver_that_found_nothing_looks_after_news_or_a_while() {
        let (looks, run) = (MailReceivers::default(), ("run", "r".to_owned()));
        let now = Instant::now();
        looks.note_empty_wait(run.clone());
        assert!(!looks.take_empty_wait(&run, now), "it has never looked");
        looks.note(run.clone(), false, now);
        assert!(!looks.take_empty_wait(&run, now), "it has not waited since");
        looks.note_empty_wait(run.clone());
        assert!(looks.take_empty_wait(&run, now));
        assert!(!looks.take_empty_wait(&run, now), "it has not waited again");
        looks.note_empty_wait(run.clone());
        assert!(!looks.take_empty_wait(&run, now + EMPTY_LOOK_TIME));
        looks.note(run.clone(), true, now);
        looks.note_empty_wait(run.clone());
        assert!(!looks.take_empty_wait(&run, now), "it has found something");
    }
}
