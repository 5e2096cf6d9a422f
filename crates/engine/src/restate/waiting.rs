//! Waits for mail and for lines: the object answers when there are news.
//!
//! The waits for mail that outlive their callers: the next caller for the same receiver goes on with them.

use std::time::{Duration, Instant};

use tokio::time::timeout;

use super::calls::{CALL_LIMIT, CalledHandler};
use super::engine::{RestateEngine, millis};
use super::failure::unreachable;
use super::objects::run_calls::RunTopic;
use crate::EngineError;
use crate::host_mailbox::MailReceiver;
use crate::restate::engine::OpenWait;
use crate::restate::objects::host::{LONGEST_WAIT_MS, WaitCall};
use crate::restate::objects::shell::{FACTS, HOST, RUN, WAIT};

/// The time for which a wait for mail stays open on the server. To open one costs three calls, so it outlives callers that give
/// up earlier.
const MAIL_WAIT_MS: u64 = 5_000;

impl RestateEngine {
    /// Waits for mail that came after the last wait. Returns at once if some was found a moment ago, so that the caller looks again.
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
        if self.looks.tell_to_look_again(&waiter, Instant::now()) {
            return Ok(());
        }
        let seen = self.seen.of(&waiter);
        let start = || self.start_wait((service, key), seen);
        let mut wait = self.waits.take(&waiter).unwrap_or_else(start);
        let news = self.caller.handle.block_on(async { timeout(longest, &mut wait).await });
        match news {
            Err(_) => {
                self.waits.keep(waiter.clone(), wait);
                self.looks.note_empty_wait(waiter);
            }
            Ok(Ok(news)) => {
                let news = news?;
                if news == seen {
                    self.looks.note_empty_wait(waiter);
                } else {
                    self.seen.see(waiter, news);
                }
            }
            Ok(Err(_)) => {
                return Err(unreachable(&self.caller.address, "the wait for mail was ended"));
            }
        }
        Ok(())
    }

    /// Starts a wait for mail, which goes on for longer than its first caller waits.
    fn start_wait(&self, (service, key): (&'static str, &str), seen: u64) -> OpenWait {
        let (caller, key) = (self.caller.clone(), key.to_owned());
        let call = WaitCall { topic: RunTopic::Mail, seen, longest_ms: MAIL_WAIT_MS };
        let limit = CALL_LIMIT + Duration::from_millis(MAIL_WAIT_MS);
        self.caller.handle.spawn(async move {
            let handler = CalledHandler { service, key: &key, handler: WAIT };
            caller.ask(handler, call, limit).await
        })
    }

    /// Waits for changes of facts.
    pub(super) fn wait_for_facts(&self, after: u64, longest: Duration) -> Result<(), EngineError> {
        self.wait((RUN, FACTS), (RunTopic::Lines, after), longest).map(drop)
    }

    fn wait(
        &self,
        (service, key): (&'static str, &str),
        (topic, seen): (RunTopic, u64),
        longest: Duration,
    ) -> Result<u64, EngineError> {
        let longest_ms = millis(longest).min(LONGEST_WAIT_MS);
        let call = WaitCall { topic, seen, longest_ms };
        let limit = CALL_LIMIT + Duration::from_millis(longest_ms);
        self.caller.call(CalledHandler { service, key, handler: WAIT }, call, limit)
    }
}
