//! The plug-ins of a run: each on a thread of its own, with a bounded mailbox.
//!
//! The plug-ins of raymond itself share one thread. Any other plug-in has a thread of its own, so a plug-in that
//! blocks delays nothing else. A plug-in with a full mailbox misses records; the run never waits for it. Mailboxes
//! close when the run is over: each actor then gets a moment to deal with its records and ends by itself.

use std::sync::Arc;
use std::time::Duration;

use actix::dev::channel::channel;
use actix::{Actor, Addr, Arbiter, Context, Handler, Recipient};
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout_at};

use crate::actor::interceptor::{DEFAULT_DEADLINE, PluginInterceptor};
use crate::actor::message::{Consult, FinishPublishing, Published};
use crate::actor::observer::{Observer, ObserverKind};
use crate::domain::failures::AgentFailures;
use crate::domain::run::Run;

/// The maximum number of records that wait for a plug-in.
const MAILBOX_CAPACITY: usize = 4096;

/// The time that the end of a run waits for a companion plug-in to deal with its records.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(5);

/// The time that the end of a run waits for plug-ins that are not told of the end. A plug-in with a timer of its own
/// does not end.
const STOP_TIMEOUT: Duration = Duration::from_secs(1);

/// The plug-ins of a run.
pub struct PlugIns {
    own: Arbiter,
    others: Vec<Arbiter>,
    ends: Vec<oneshot::Receiver<()>>,
    observers: Vec<Observer>,
    interceptors: Vec<PluginInterceptor>,
    finish: Vec<(Recipient<FinishPublishing>, Option<Duration>)>,
}

/// The options of a plug-in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PluginOptions {
    /// True if the run pauses when the plug-in fails, or does not answer in time.
    pub required: bool,
    /// The time that it may take to answer.
    pub deadline: Duration,
}

impl Default for PluginOptions {
    /// Returns the options of a plug-in that is not required and has two seconds to answer.
    fn default() -> Self {
        Self { required: false, deadline: DEFAULT_DEADLINE }
    }
}

impl Default for PlugIns {
    fn default() -> Self {
        Self {
            own: Arbiter::new(),
            others: Vec::new(),
            ends: Vec::new(),
            observers: Vec::new(),
            interceptors: Vec::new(),
            finish: Vec::new(),
        }
    }
}

impl PlugIns {
    /// Adds a plug-in of raymond's own: it is told everything, and waited for at the end.
    pub fn add_own<A>(&mut self, name: &str, actor: A)
    where
        A: Actor<Context = Context<A>> + Handler<Published> + Handler<FinishPublishing> + Send,
    {
        let address: Addr<A> = A::start_in_arbiter(&self.own.handle(), |_| actor);
        self.observers.push(Observer::new(name, address.clone().recipient(), ObserverKind::Own));
        self.finish.push((address.recipient(), None));
    }

    /// Adds an observer.
    pub fn add_observer<A>(&mut self, name: &str, options: PluginOptions, actor: A)
    where
        A: Actor<Context = Context<A>> + Handler<Published> + Send,
    {
        let (address, end) = self.start(actor);
        self.ends.push(end);
        self.observe(name, options, address.recipient());
    }

    /// Adds an observer that is also asked for advice.
    pub fn add_interceptor<A>(&mut self, name: &str, options: PluginOptions, actor: A)
    where
        A: Actor<Context = Context<A>> + Handler<Published> + Handler<Consult> + Send,
    {
        let (address, end) = self.start(actor);
        self.ends.push(end);
        self.advise(name, options, address.clone().recipient());
        self.observe(name, options, address.recipient());
    }

    /// Adds an interceptor that is waited for a moment at the end.
    pub fn add_companion<A>(&mut self, name: &str, options: PluginOptions, actor: A)
    where
        A: Actor<Context = Context<A>>
            + Handler<Published>
            + Handler<Consult>
            + Handler<FinishPublishing>
            + Send,
    {
        let (address, _) = self.start(actor);
        self.advise(name, options, address.clone().recipient());
        self.finish.push((address.clone().recipient(), Some(FLUSH_TIMEOUT)));
        self.observe(name, options, address.recipient());
    }

    /// Starts an actor on a thread of its own, and tells when it has ended.
    fn start<A: Actor<Context = Context<A>> + Send>(
        &mut self,
        actor: A,
    ) -> (Addr<A>, oneshot::Receiver<()>) {
        let arbiter = Arbiter::new();
        let (mailbox, read) = channel(MAILBOX_CAPACITY);
        let (ended, end) = oneshot::channel::<()>();
        arbiter.spawn_fn(move || {
            let life = Context::with_receiver(read).into_future(actor);
            actix::spawn(async move {
                let _ended = ended;
                life.await;
            });
        });
        self.others.push(arbiter);
        (Addr::new(mailbox), end)
    }

    fn observe(&mut self, name: &str, options: PluginOptions, recipient: Recipient<Published>) {
        let kind = ObserverKind::PlugIn { required: options.required };
        self.observers.push(Observer::new(name, recipient, kind));
    }

    fn advise(&mut self, name: &str, options: PluginOptions, asked: Recipient<Consult>) {
        self.interceptors.push(PluginInterceptor::new(
            name.to_owned(),
            asked,
            options.deadline,
            options.required,
        ));
    }

    /// Returns the observers and the interceptors, once.
    pub(super) fn take(&mut self) -> (Vec<Observer>, Vec<PluginInterceptor>) {
        (std::mem::take(&mut self.observers), std::mem::take(&mut self.interceptors))
    }

    /// Waits until raymond's own plug-ins have dealt with everything, and a moment for the others; failed ones are
    /// not waited for. All handles given out by `take` must be dropped before.
    pub(super) async fn finish(mut self, run: Option<&Run>) {
        let failures = run.map(|run| Arc::new(AgentFailures::of(run)));
        let finish = |(recipient, limit): &(Recipient<FinishPublishing>, Option<Duration>)| {
            let message = FinishPublishing { failures: failures.clone() };
            (recipient.send(message), limit.map(|limit| Instant::now() + limit))
        };
        let finishing: Vec<_> = std::mem::take(&mut self.finish).iter().map(finish).collect();
        for (finished, until) in finishing {
            match until {
                None => drop(finished.await),
                Some(until) => drop(timeout_at(until, finished).await),
            }
        }
        let until = Instant::now() + STOP_TIMEOUT;
        for end in std::mem::take(&mut self.ends) {
            let _ = timeout_at(until, end).await;
        }
    }
}

impl Drop for PlugIns {
    /// Stops the threads of a run that is over, or that could not begin.
    fn drop(&mut self) {
        self.own.stop();
        for arbiter in &self.others {
            arbiter.stop();
        }
    }
}
