//! The plug-ins of a run: each on a thread of its own, with a mailbox that has an end.
//!
//! What comes with raymond shares one thread; a plug-in never shares one with the run or with another
//! plug-in, so one that blocks its thread holds up nobody. A mailbox that is full makes its owner
//! miss records, never the run wait. Nobody can tell it anything any more when the run is over: then an
//! actor ends by itself once it has dealt with what it was told, and for that it is given a moment.

use std::time::Duration;

use actix::dev::channel::channel;
use actix::{Actor, Addr, Arbiter, Context, Handler, Recipient};
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout_at};

use crate::actor::adviser::{DEADLINE, PluginInterceptor};
use crate::actor::message::{Consult, FinishPublishing, Published};
use crate::actor::observer::{Observer, ObserverKind};

/// How many records may wait for a plug-in.
const MAILBOX: usize = 4096;

/// How long the end waits for a plug-in that has still to deal with what it was told.
const FAREWELL: Duration = Duration::from_secs(5);

/// How long it waits for those to end who are not told that it is the end: one that has a clock of its own
/// does not.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// The plug-ins of a run.
pub struct PlugIns {
    own: Arbiter,
    others: Vec<Arbiter>,
    ends: Vec<oneshot::Receiver<()>>,
    observers: Vec<Observer>,
    advisers: Vec<PluginInterceptor>,
    finish: Vec<(Recipient<FinishPublishing>, Option<Duration>)>,
}

/// On what terms a plug-in takes part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PluginTerms {
    /// Whether the run pauses when it fails, or does not answer in time.
    pub required: bool,
    /// How long it may take to answer.
    pub deadline: Duration,
}

impl Default for PluginTerms {
    /// A plug-in the run can do without, which has two seconds to answer.
    fn default() -> Self {
        Self { required: false, deadline: DEADLINE }
    }
}

impl Default for PlugIns {
    fn default() -> Self {
        Self {
            own: Arbiter::new(),
            others: Vec::new(),
            ends: Vec::new(),
            observers: Vec::new(),
            advisers: Vec::new(),
            finish: Vec::new(),
        }
    }
}

impl PlugIns {
    /// One that comes with raymond: it is told everything, and waited for at the end.
    pub fn add_own<A>(&mut self, name: &str, actor: A)
    where
        A: Actor<Context = Context<A>> + Handler<Published> + Handler<FinishPublishing> + Send,
    {
        let address: Addr<A> = A::start_in_arbiter(&self.own.handle(), |_| actor);
        self.observers.push(Observer::new(name, address.clone().recipient(), ObserverKind::Own));
        self.finish.push((address.recipient(), None));
    }

    /// A plug-in that looks on.
    pub fn add_observer<A>(&mut self, name: &str, terms: PluginTerms, actor: A)
    where
        A: Actor<Context = Context<A>> + Handler<Published> + Send,
    {
        let (address, end) = self.start(actor);
        self.ends.push(end);
        self.observe(name, terms, address.recipient());
    }

    /// A plug-in that looks on and has a say.
    pub fn add_adviser<A>(&mut self, name: &str, terms: PluginTerms, actor: A)
    where
        A: Actor<Context = Context<A>> + Handler<Published> + Handler<Consult> + Send,
    {
        let (address, end) = self.start(actor);
        self.ends.push(end);
        self.advise(name, terms, address.clone().recipient());
        self.observe(name, terms, address.recipient());
    }

    /// A plug-in that looks on and has a say, and that is waited for a moment at the end.
    pub fn add_companion<A>(&mut self, name: &str, terms: PluginTerms, actor: A)
    where
        A: Actor<Context = Context<A>>
            + Handler<Published>
            + Handler<Consult>
            + Handler<FinishPublishing>
            + Send,
    {
        let (address, _) = self.start(actor);
        self.advise(name, terms, address.clone().recipient());
        self.finish.push((address.clone().recipient(), Some(FAREWELL)));
        self.observe(name, terms, address.recipient());
    }

    /// Starts an actor on a thread of its own, and tells when it has ended.
    fn start<A: Actor<Context = Context<A>> + Send>(
        &mut self,
        actor: A,
    ) -> (Addr<A>, oneshot::Receiver<()>) {
        let arbiter = Arbiter::new();
        let (mailbox, read) = channel(MAILBOX);
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

    fn observe(&mut self, name: &str, terms: PluginTerms, told: Recipient<Published>) {
        let kind = ObserverKind::PlugIn { required: terms.required };
        self.observers.push(Observer::new(name, told, kind));
    }

    fn advise(&mut self, name: &str, terms: PluginTerms, asked: Recipient<Consult>) {
        self.advisers.push(PluginInterceptor::new(
            name.to_owned(),
            asked,
            terms.deadline,
            terms.required,
        ));
    }

    /// Hands out those who are told and those who are asked.
    pub(super) fn take(&mut self) -> (Vec<Observer>, Vec<PluginInterceptor>) {
        (std::mem::take(&mut self.observers), std::mem::take(&mut self.advisers))
    }

    /// Waits until what comes with raymond has dealt with everything, and a moment for the others;
    /// one that has failed is not waited for. Nobody may hold those any more who were taken.
    pub(super) async fn finish(mut self) {
        let told = |(recipient, patience): &(Recipient<FinishPublishing>, Option<Duration>)| {
            (recipient.send(FinishPublishing), patience.map(|patience| Instant::now() + patience))
        };
        let finishing: Vec<_> = std::mem::take(&mut self.finish).iter().map(told).collect();
        for (finished, until) in finishing {
            match until {
                None => drop(finished.await),
                Some(until) => drop(timeout_at(until, finished).await),
            }
        }
        let until = Instant::now() + LAST_WORDS;
        for end in std::mem::take(&mut self.ends) {
            let _ = timeout_at(until, end).await;
        }
    }
}

impl Drop for PlugIns {
    /// No thread is left of a run that is over, or that could not begin.
    fn drop(&mut self) {
        self.own.stop();
        for arbiter in &self.others {
            arbiter.stop();
        }
    }
}
