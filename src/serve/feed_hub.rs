//! The streams that are read now, each with a thread that reads its source.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use uuid::Uuid;

use super::agent_feed::AgentFeedSource;
use super::backend::CommandBackend;
use super::feed::{EventStream, FeedSource, SharedFeed};
use super::run_feed::RunFeedSource;
use super::runs_feed::RunsFeedSource;
use crate::domain::id::{AgentId, RunId};
use crate::serve::feed::FeedPosition;
use crate::store;
use crate::store::layout::RunsRoot;
use crate::store::view::no_such_run;

/// The most streams that are open at once.
const MAX_FEEDS: usize = 64;

/// The subject of a stream.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum FeedSubject {
    /// All runs.
    Runs,
    /// One run.
    Run(RunId),
    /// The conversation of an agent.
    Agent(RunId, AgentId),
}

/// The reason why a stream cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum FeedError {
    /// The run cannot be read.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// Too many streams are open.
    #[error("too many streams are open; close some pages")]
    TooMany,
    /// No thread can be started.
    #[error("no thread can be started: {0}")]
    Thread(std::io::Error),
}

/// The place of a subject's stream, which one reader at a time opens.
type FeedSlot = Arc<Mutex<Option<Arc<SharedFeed>>>>;

/// All streams of a server.
pub struct FeedHub {
    root: RunsRoot,
    backend: Arc<dyn CommandBackend>,
    slots: Mutex<HashMap<FeedSubject, FeedSlot>>,
}

impl std::fmt::Debug for FeedHub {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FeedHub").field("root", &self.root).finish_non_exhaustive()
    }
}

impl FeedHub {
    /// Returns a hub without streams.
    pub fn new(root: RunsRoot, backend: Arc<dyn CommandBackend>) -> Self {
        Self { root, backend, slots: Mutex::new(HashMap::new()) }
    }

    /// Adds a reader of a subject. It may read a run from its beginning, and so take a while: readers that come
    /// meanwhile wait for the same stream, and those of other subjects do not.
    ///
    /// # Errors
    /// [`FeedError`].
    pub fn read(
        self: &Arc<Self>,
        subject: &FeedSubject,
        position: Option<&FeedPosition>,
    ) -> Result<EventStream, FeedError> {
        let slot = self.slot(subject)?;
        let mut opened = slot.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let feed = match &*opened {
                Some(feed) => Arc::clone(feed),
                None => Arc::clone(opened.insert(self.open(subject)?)),
            };
            if let Some(stream) = feed.read_from(position) {
                return Ok(stream);
            }
            *opened = None;
        }
    }

    /// Ends all streams.
    pub fn end(&self) {
        let slots: Vec<FeedSlot> = self.slots().values().cloned().collect();
        // A stream that is being opened now has no readers yet.
        for slot in slots {
            if let Ok(opened) = slot.try_lock()
                && let Some(feed) = &*opened
            {
                feed.end();
            }
        }
    }

    fn slots(&self) -> MutexGuard<'_, HashMap<FeedSubject, FeedSlot>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn slot(&self, subject: &FeedSubject) -> Result<FeedSlot, FeedError> {
        let mut slots = self.slots();
        if let Some(slot) = slots.get(subject) {
            return Ok(Arc::clone(slot));
        }
        // Streams that nobody reads any longer make room for others.
        slots.retain(|_, slot| Arc::strong_count(slot) > 1 || is_read(slot));
        if slots.len() >= MAX_FEEDS {
            return Err(FeedError::TooMany);
        }
        Ok(Arc::clone(slots.entry(subject.clone()).or_default()))
    }

    fn open(self: &Arc<Self>, subject: &FeedSubject) -> Result<Arc<SharedFeed>, FeedError> {
        let name = Uuid::new_v4().simple().to_string()[..8].to_owned();
        let feed = Arc::new(SharedFeed::new(name, self.source(subject)?));
        let reads = Arc::clone(&feed);
        let run = move || reads.run();
        std::thread::Builder::new()
            .name("feed".to_owned())
            .spawn(run)
            .map_err(FeedError::Thread)?;
        Ok(feed)
    }

    fn source(&self, subject: &FeedSubject) -> Result<Box<dyn FeedSource>, FeedError> {
        Ok(match subject {
            FeedSubject::Runs => Box::new(RunsFeedSource::new(Arc::clone(&self.backend))),
            FeedSubject::Run(run) => {
                self.must_exist(run)?;
                Box::new(RunFeedSource::open(&self.root.run(run), Arc::clone(&self.backend))?)
            }
            FeedSubject::Agent(run, agent) => {
                self.must_exist(run)?;
                Box::new(AgentFeedSource::open(&self.root.run(run), agent.clone()))
            }
        })
    }

    fn must_exist(&self, run: &RunId) -> Result<(), store::Error> {
        let is_there = self.root.run(run).path().is_dir();
        is_there.then_some(()).ok_or_else(|| no_such_run(&self.root, run))
    }
}

/// Returns whether a stream is open or being opened.
fn is_read(slot: &FeedSlot) -> bool {
    slot.try_lock().map_or(true, |opened| opened.as_ref().is_some_and(|feed| !feed.is_over()))
}
