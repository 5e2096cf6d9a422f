//! A worker that serves the objects: it listens, and registers itself if nobody else serves, now or later.
//!
//! All workers that listen serve the same objects. The server dials one of them. When that does not answer any more,
//! another one moves the deployment to itself, and what was under way goes on there.

use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, SystemTime};

use super::calls::{CalledHandler, ObjectCaller};
use super::client::{ClientThread, client};
use super::deployment::DeploymentAdmin;
use super::failure::{refused, unreachable};
use super::objects::endpoint::ObjectEndpoint;
use super::objects::index_calls::{IndexAnswer, IndexLook};
use super::objects::names::{ALL, INDEX, LOOK};
use crate::engine::connect::{ServedEngine, ServingOptions};
use crate::engine::restate::client::RestateSettings;
use crate::engine::restate::client::difference;
use crate::engine::{EngineAddress, EngineError};

/// The time between two looks at whether somebody serves the objects.
const LOOK_PAUSE: Duration = Duration::from_secs(2);
/// The time in which whoever serves the objects has to answer.
const ANSWER_LIMIT: Duration = Duration::from_secs(4);
/// The number of looks without an answer after which the place is taken.
const SILENT_LOOKS: u32 = 2;

/// Somebody who serves the objects.
struct ObjectServer {
    caller: ObjectCaller,
    admin: DeploymentAdmin,
    url: String,
}

/// The service of a worker, until it is dropped.
struct ServingParts {
    _endpoint: ObjectEndpoint,
    _thread: ClientThread,
    /// The look at the others ends when this is dropped.
    _stop: Sender<()>,
}

/// Listens, and returns when somebody serves the objects.
///
/// # Errors
/// [`EngineError::Refused`] if the options are not safe or it cannot listen, and those of the server.
pub(in crate::engine) fn serve(
    address: &EngineAddress,
    options: &ServingOptions,
) -> Result<ServedEngine, EngineError> {
    check(address, options)?;
    let settings = RestateSettings::read(address)?;
    let key = options.server_key.as_deref();
    let endpoint = ObjectEndpoint::start(options.listen, key).map_err(|why| {
        refused(address, format!("this machine cannot listen on {} for it: {why}", options.listen))
    })?;
    let url = options.advertise.clone().unwrap_or_else(|| format!("http://{}", endpoint.address));
    let thread = ClientThread::start().map_err(|error| {
        unreachable(address, format!("this machine has no thread for it: {error}"))
    })?;
    let client = client().map_err(|why| refused(address, why))?;
    let handle = thread.handle.clone();
    let (admin, address, of_errors) = (settings.admin, address.clone(), address.clone());
    let admin = DeploymentAdmin { address: address.clone(), admin, client: client.clone(), handle };
    let caller = ObjectCaller::new(address, settings.ingress, client, thread.handle.clone());
    let server = ObjectServer { caller, admin, url: url.clone() };
    server.settle()?;
    let (stop, stopped) = channel::<()>();
    let look = move || {
        let (mut silent, mut is_wrong) = (0, false);
        while stopped.recv_timeout(LOOK_PAUSE) == Err(RecvTimeoutError::Timeout) {
            silent = server.look(silent);
            is_wrong = server.look_at_clock(is_wrong);
        }
    };
    let spawned = thread::Builder::new().name("restate-serving".to_owned()).spawn(look);
    spawned.map_err(|error| refused(&of_errors, format!("this machine has no thread: {error}")))?;
    Ok(ServedEngine::new(url, ServingParts { _endpoint: endpoint, _thread: thread, _stop: stop }))
}

/// Refuses to listen where anybody else than the server could call the objects.
fn check(address: &EngineAddress, options: &ServingOptions) -> Result<(), EngineError> {
    if options.server_key.is_none() && !options.listen.ip().is_loopback() {
        let why = format!(
            "anyone who reaches {} could change its runs: give the public key of the server with --server-key (its log shows it as publickeyv1_… if it has a request-identity-private-key-pem-file), or listen on a loopback address",
            options.listen
        );
        return Err(refused(address, why));
    }
    if options.advertise.is_none() && options.listen.ip().is_unspecified() {
        let why = format!(
            "{} is not an address that it could dial: give the URL under which it reaches this machine with --advertise URL",
            options.listen
        );
        return Err(refused(address, why));
    }
    Ok(())
}

impl ObjectServer {
    /// Has somebody serve the objects: this worker, unless another one does.
    fn settle(&self) -> Result<(), EngineError> {
        if let Some(why) = self.clock_differs()? {
            return Err(refused(&self.caller.address, why));
        }
        match self.admin.current()? {
            None => self.admin.register(&self.url)?,
            Some(own) if own.is_at(&self.url) => self.admin.move_to(&own, &self.url)?,
            Some(other) => match self.answers() {
                Ok(()) => tracing::info!("another worker serves raymond's objects"),
                Err(error @ EngineError::Version { .. }) => return Err(error),
                Err(_) => self.admin.move_to(&other, &self.url)?,
            },
        }
        self.answers()
    }

    /// Looks whether somebody serves the objects; returns the number of looks without an answer.
    fn look(&self, silent: u32) -> u32 {
        match self.answers() {
            Ok(()) | Err(EngineError::Version { .. }) => 0,
            Err(_) if silent + 1 < SILENT_LOOKS => silent + 1,
            Err(error) => {
                self.take_over(&error);
                0
            }
        }
    }

    /// Takes the place of whoever does not answer.
    fn take_over(&self, silence: &EngineError) {
        let moved = self.admin.current().and_then(|current| match current {
            None => self.admin.register(&self.url).map(|()| true),
            // This one is registered, so the reason is with the server.
            Some(own) if own.is_at(&self.url) => Ok(false),
            Some(other) => self.admin.move_to(&other, &self.url).map(|()| true),
        });
        match moved {
            Ok(true) => tracing::warn!(
                "no worker served raymond's objects any longer ({silence}); this worker now does, at {}",
                self.url
            ),
            Ok(false) => {}
            Err(error) => tracing::debug!(%error, "the objects were not taken over"),
        }
    }

    /// Returns why the clock of this machine is wrong.
    fn clock_differs(&self) -> Result<Option<String>, EngineError> {
        let date = self.caller.date()?;
        Ok(date.and_then(|date| difference(&date, SystemTime::now())))
    }

    /// Warns of a clock that was right, and is no more.
    fn look_at_clock(&self, was_wrong: bool) -> bool {
        match self.clock_differs() {
            Ok(Some(why)) => {
                if !was_wrong {
                    tracing::warn!("{why}");
                }
                true
            }
            Ok(None) => false,
            Err(_) => was_wrong,
        }
    }

    /// Asks the objects, wherever they are, for their version.
    fn answers(&self) -> Result<(), EngineError> {
        let called = CalledHandler { service: INDEX, key: ALL, handler: LOOK };
        self.caller.call::<_, IndexAnswer>(called, IndexLook::Version, ANSWER_LIMIT).map(drop)
    }
}
