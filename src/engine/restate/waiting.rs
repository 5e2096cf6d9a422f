//! Waits for mail and for lines: the object answers when there are news.

use std::time::{Duration, Instant};

use super::calls::{CALL_LIMIT, CalledHandler};
use super::engine::{RestateEngine, millis};
use super::objects::names::{FACTS, HOST, RUN, WAIT};
use super::objects::run_calls::RunTopic;
use super::objects::wait_calls::{LONGEST_WAIT_MS, WaitCall};
use crate::engine::EngineError;
use crate::engine::host_mailbox::MailReceiver;

impl RestateEngine {
    /// Waits for mail that came after the last wait. Whoever has found some a moment ago is told to look again.
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
        let news = self.wait((service, key), (RunTopic::Mail, seen), longest)?;
        self.seen.see(waiter, news);
        Ok(())
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
