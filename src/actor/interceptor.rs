//! Asks the plug-ins that may change decisions: all at once, each for no longer than its deadline.
//!
//! A plug-in that does not answer in time is not asked again before it has answered, so it delays a run once and
//! not at every turn. Its missing answer counts as "proceed", with a warning. If the plug-in is required, the run
//! pauses instead.

use std::cell::Cell;
use std::pin::Pin;
use std::rc::Rc;
use std::time::Duration;

use actix::dev::RecipientRequest;
use actix::{MailboxError, Recipient};
use tokio::time::{Instant, timeout_at};

use super::message::Consult;
use crate::domain::consult::{ConsultVerdict, Consultation, PluginVerdict, StopScope};
use crate::domain::settings::DEFAULT_DEADLINE_MS;
use crate::domain::time::format_duration;

/// The default deadline of a plug-in's answer.
pub const DEFAULT_DEADLINE: Duration = Duration::from_millis(DEFAULT_DEADLINE_MS);

/// The longest deadline that any clock can count, used where a deadline is longer.
const MAX_DEADLINE: Duration = Duration::from_hours(24 * 365 * 30);

/// A plug-in that may change decisions.
#[derive(Clone)]
pub struct PluginInterceptor {
    name: String,
    recipient: Recipient<Consult>,
    deadline: Duration,
    required: bool,
    silent: Rc<Cell<bool>>,
}

impl PluginInterceptor {
    /// Returns a plug-in of that name with this deadline. If it is `required`, the run pauses when it does not
    /// answer.
    pub fn new(
        name: String,
        recipient: Recipient<Consult>,
        deadline: Duration,
        required: bool,
    ) -> Self {
        Self { name, recipient, deadline, required, silent: Rc::default() }
    }

    /// Returns the time at which its deadline is over. A deadline that no clock can count never ends in practice.
    fn until(&self, now: Instant) -> Instant {
        now.checked_add(self.deadline).unwrap_or_else(|| now + MAX_DEADLINE)
    }

    /// Returns its verdict, once it has answered or its deadline is over.
    async fn verdict(&self, asked: Option<ConsultRequest>) -> ConsultVerdict {
        let Some(ConsultRequest { mut request, until }) = asked else {
            return self.without_an_answer("has not answered the last question yet");
        };
        match timeout_at(until, &mut request).await {
            Ok(Ok(verdict)) => verdict,
            Ok(Err(MailboxError::Closed | MailboxError::Timeout)) => {
                if !self.silent.replace(true) {
                    tracing::warn!(
                        "the plug-in {} has failed and is not asked any more",
                        self.name
                    );
                }
                self.without_an_answer("has failed")
            }
            Err(_) => {
                let deadline =
                    format_duration(u64::try_from(self.deadline.as_millis()).unwrap_or(u64::MAX));
                self.silent.set(true);
                if !self.required {
                    tracing::warn!(
                        "the plug-in {} did not answer within {deadline}: the run continues without it until it answers",
                        self.name
                    );
                }
                let silent = Rc::clone(&self.silent);
                actix::spawn(async move {
                    if request.await.is_ok() {
                        silent.set(false);
                    }
                });
                self.without_an_answer(&format!("did not answer within {deadline}"))
            }
        }
    }

    fn without_an_answer(&self, why: &str) -> ConsultVerdict {
        if self.required {
            ConsultVerdict::Stop {
                reason: format!("it is required, and {why}"),
                scope: StopScope::Run,
            }
        } else {
            ConsultVerdict::Proceed
        }
    }
}

/// A question that was asked.
struct ConsultRequest {
    request: Pin<Box<RecipientRequest<Consult>>>,
    until: Instant,
}

/// Asks all plug-ins, and returns their verdicts.
pub async fn consult(
    interceptors: &[PluginInterceptor],
    question: &Consultation,
) -> Vec<PluginVerdict> {
    let ask = |interceptor: &PluginInterceptor| {
        (!interceptor.silent.get()).then(|| ConsultRequest {
            request: Box::pin(interceptor.recipient.send(Consult(question.clone()))),
            until: interceptor.until(Instant::now()),
        })
    };
    let asked: Vec<_> = interceptors.iter().map(ask).collect();
    let mut verdicts = Vec::with_capacity(interceptors.len());
    for (interceptor, asked) in interceptors.iter().zip(asked) {
        let verdict = interceptor.verdict(asked).await;
        verdicts.push(PluginVerdict { by: interceptor.name.clone(), verdict });
    }
    verdicts
}
