//! Waits for mail and for lines: the object answers when there are news.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::calls::{CALL_LIMIT, CalledHandler};
use super::engine::{RestateEngine, millis};
use super::objects::names::{HOST, RUN, WAIT};
use super::objects::run_calls::RunTopic;
use super::objects::wait_calls::{LONGEST_WAIT_MS, WaitCall};
use crate::domain::id::RunId;
use crate::engine::EngineError;
use crate::engine::host_mailbox::MailReceiver;

/// The numbers of the last news that waiters were told of.
#[derive(Debug, Default)]
pub(super) struct SeenNews(Mutex<HashMap<(&'static str, String), u64>>);

impl SeenNews {
    fn of(&self, receiver: &(&'static str, String)) -> u64 {
        self.lock().get(receiver).copied().unwrap_or_default()
    }

    fn see(&self, receiver: (&'static str, String), news: u64) {
        self.lock().insert(receiver, news);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<(&'static str, String), u64>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RestateEngine {
    /// Waits for mail of which nobody here was told.
    pub(super) fn wait_for_mail_of(
        &self,
        receiver: MailReceiver<'_>,
        longest: Duration,
    ) -> Result<(), EngineError> {
        let (service, key) = match receiver {
            MailReceiver::Host(host) => (HOST, host.as_str()),
            MailReceiver::Run(run) => (RUN, run.as_str()),
        };
        let waiter = (service, key.to_owned());
        let seen = self.seen.of(&waiter);
        let news = self.wait((service, key), (RunTopic::Mail, seen), longest)?;
        self.seen.see(waiter, news);
        Ok(())
    }

    /// Waits for news of a run.
    pub(super) fn wait_for_news_of(
        &self,
        run: &RunId,
        (topic, seen): (RunTopic, u64),
        longest: Duration,
    ) -> Result<u64, EngineError> {
        self.wait((RUN, run.as_str()), (topic, seen), longest)
    }

    fn wait(
        &self,
        (service, key): (&'static str, &str),
        (topic, seen): (RunTopic, u64),
        longest: Duration,
    ) -> Result<u64, EngineError> {
        let start = Instant::now();
        let called = CalledHandler { service, key, handler: WAIT };
        loop {
            let left = longest.saturating_sub(start.elapsed());
            let longest_ms = millis(left).min(LONGEST_WAIT_MS);
            let call = WaitCall { topic, seen, longest_ms };
            let limit = CALL_LIMIT + Duration::from_millis(longest_ms);
            let news: u64 = self.caller.call(called, call, limit)?;
            // Of a log other numbers are seen than those of its news. Whoever waits for it looks, and waits again.
            let is_over = topic == RunTopic::Lines || news != seen;
            if is_over || start.elapsed() >= longest {
                return Ok(news);
            }
        }
    }
}
