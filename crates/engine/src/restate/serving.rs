//! Serves the objects to the Restate server, and connects to it: registration, clocks, settings, calls and errors.
//!
//! A worker listens, and registers itself if nobody else serves, now or later. All workers that listen serve the same
//! objects. The server dials one of them. When that worker no longer answers, another worker moves the deployment to
//! itself, and the calls in progress continue there.

use std::error::Error as _;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use jiff::fmt::rfc2822::DateTimeParser;
use raymond_model::words::joined_words;
use reqwest::header::{CONTENT_TYPE, DATE};
use reqwest::redirect::Policy;
use reqwest::{Client, Method, Url};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::runtime::Handle;

use crate::client::{ClientThread, causes, tls, trusted_roots};
use crate::connect::{ServedEngine, ServingOptions};
use crate::restate::objects::endpoint::ObjectEndpoint;
use crate::restate::objects::state::{
    ALL, INDEX, IndexAnswer, IndexLook, LOOK, OTHER_VERSION, RUN, VERSION, VersionedCall,
};
use crate::{EngineAddress, EngineError};

/// The time between two looks at whether somebody serves the objects.
const LOOK_PAUSE: Duration = Duration::from_secs(2);
/// The time in which the worker that serves the objects has to answer.
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
pub(crate) fn serve(
    address: &EngineAddress,
    options: &ServingOptions,
) -> Result<ServedEngine, EngineError> {
    check(address, options)?;
    let settings = RestateSettings::read(address)?;
    let key = options.server_key.as_deref();
    let endpoint = ObjectEndpoint::start(options.listen, key).map_err(|why| {
        EngineError::refused(
            address,
            format!("this machine cannot listen on {} for it: {why}", options.listen),
        )
    })?;
    let url = options.advertise.clone().unwrap_or_else(|| format!("http://{}", endpoint.address));
    let thread = ClientThread::start("restate", address)?;
    let client = client().map_err(|why| EngineError::refused(address, why))?;
    let handle = thread.handle.clone();
    let (admin, address, of_errors) = (settings.admin, address.clone(), address.clone());
    let admin = DeploymentAdmin { address: address.clone(), admin, client: client.clone(), handle };
    let (ingress, handle) = (settings.ingress, thread.handle.clone());
    let caller = ObjectCaller { address, handle, client, ingress };
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
    spawned.map_err(|error| {
        EngineError::refused(&of_errors, format!("this machine has no thread: {error}"))
    })?;
    Ok(ServedEngine::new(url, ServingParts { _endpoint: endpoint, _thread: thread, _stop: stop }))
}

/// Refuses to listen where anybody else than the server could call the objects.
fn check(address: &EngineAddress, options: &ServingOptions) -> Result<(), EngineError> {
    if options.server_key.is_none() && !options.listen.ip().is_loopback() {
        let why = format!(
            "anyone who reaches {} could change its runs: give the public key of the server with --server-key (its log shows it as publickeyv1_… if it has a request-identity-private-key-pem-file), or listen on a loopback address",
            options.listen
        );
        return Err(EngineError::refused(address, why));
    }
    if options.advertise.is_none() && options.listen.ip().is_unspecified() {
        let why = format!(
            "{} is not an address that it could dial: give the URL under which it reaches this machine with --advertise URL",
            options.listen
        );
        return Err(EngineError::refused(address, why));
    }
    Ok(())
}

impl ObjectServer {
    /// Has somebody serve the objects: this worker, unless another one does.
    fn settle(&self) -> Result<(), EngineError> {
        if let Some(why) = self.clock_differs()? {
            return Err(EngineError::refused(&self.caller.address, why));
        }
        match self.admin.current()? {
            None => self.admin.register(&self.url)?,
            Some(current) if current.is_at(&self.url) => self.admin.move_to(&current, &self.url)?,
            Some(other) => match self.answers() {
                Ok(()) => tracing::info!("another worker serves raymond's objects"),
                Err(error @ EngineError::Version { .. }) => return Err(error),
                Err(_) => self.admin.move_to(&other, &self.url)?,
            },
        }
        self.answers()
    }

    /// Checks whether somebody serves the objects; returns the number of looks without an answer.
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

    /// Replaces the worker that does not answer.
    fn take_over(&self, silence: &EngineError) {
        let moved = self.admin.current().and_then(|current| match current {
            None => self.admin.register(&self.url).map(|()| true),
            // This one is registered, so the reason is with the server.
            Some(current) if current.is_at(&self.url) => Ok(false),
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

    /// Warns about a clock that was right and is now wrong. Returns whether it is wrong.
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

// The HTTP client for the server.

/// The time for a new connection.
const CONNECT_LIMIT: Duration = Duration::from_secs(3);

/// Returns a client that asks the server directly, without a proxy, and follows no redirects.
///
/// # Errors
/// A text that says why the client cannot be created.
pub(super) fn client() -> Result<Client, String> {
    Client::builder()
        .tls_backend_preconfigured(tls(trusted_roots())?)
        .redirect(Policy::none())
        .connect_timeout(CONNECT_LIMIT)
        .tcp_nodelay(true)
        .no_proxy()
        .build()
        .map_err(|error| error.to_string())
}

// The clocks of the worker and of the server, which have to agree.
//
// A lease that a handler extends ends by the server's timers, at a time that the worker's clock has said.

/// The most that the clocks may differ. The server says its time in whole seconds, and a lease takes six.
const MOST: Duration = Duration::from_secs(3);

/// Returns why the clock of this machine disagrees with the Date header of an answer; `None` if it does, or there is none.
pub(super) fn difference(date: &str, now: SystemTime) -> Option<String> {
    let server = DateTimeParser::new().parse_timestamp(date).ok()?;
    let server = UNIX_EPOCH.checked_add(Duration::try_from(server.as_duration()).ok()?)?;
    let (by, direction) = match now.duration_since(server) {
        Ok(ahead) => (ahead, "ahead of"),
        Err(behind) => (behind.duration(), "behind"),
    };
    (by > MOST).then(|| {
        format!(
            "the clock of this machine is {} s {direction} that of the server, so leases would run out at the wrong time; synchronize both with NTP",
            by.as_secs()
        )
    })
}

// The settings of a connection, read from an address: `restate://HOST:PORT?admin=URL&tls=true`.

/// The port of the server's ingress, unless the address names one.
const INGRESS_PORT: u16 = 8080;
/// The port of the server's admin interface on the same machine, unless the address says where it is.
const ADMIN_PORT: u16 = 9070;

/// The settings of a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RestateSettings {
    /// The address of the ingress, for calls.
    pub(super) ingress: Url,
    /// The address of the admin interface, for deployments.
    pub(super) admin: Url,
}

impl RestateSettings {
    /// Reads an address.
    ///
    /// # Errors
    /// [`EngineError::Address`] if it has an unknown parameter or an invalid value.
    pub(super) fn read(address: &EngineAddress) -> Result<Self, EngineError> {
        let wrong =
            |why: &str| EngineError::Address { address: address.to_string(), why: why.to_owned() };
        let rest = address.url().split_once("://").map_or("", |(_, rest)| rest);
        let given = Url::parse(&format!("http://{rest}"));
        let given = given.map_err(|error| wrong(&format!("it cannot be read: {error}")))?;
        if !matches!(given.path(), "" | "/") {
            return Err(wrong("it has a path; a Restate server has none"));
        }
        let (mut is_encrypted, mut admin) = (false, None);
        for (name, value) in given.query_pairs() {
            match (&*name, &*value) {
                ("tls", "true") => is_encrypted = true,
                ("tls", "false") => is_encrypted = false,
                ("tls", _) => return Err(wrong("tls is none of true, false")),
                ("admin", url) => admin = Some(admin_url(url).map_err(|why| wrong(&why))?),
                _ => {
                    return Err(wrong(
                        "one of its parameters is unknown; the parameters are admin, tls",
                    ));
                }
            }
        }
        let scheme = if is_encrypted { "https" } else { "http" };
        let at = |port: u16| {
            let mut url = given.clone();
            url.set_query(None);
            url.set_fragment(None);
            url.set_path("/");
            // The scheme comes first: a URL takes the usual port of its scheme for none.
            let is_set = url.set_scheme(scheme).is_ok() && url.set_port(Some(port)).is_ok();
            if is_set { Ok(url) } else { Err(wrong("it names no machine")) }
        };
        let port = port_of(rest).unwrap_or(INGRESS_PORT);
        Ok(Self { ingress: at(port)?, admin: admin.map_or_else(|| at(ADMIN_PORT), Ok)? })
    }
}

/// Returns the port that stands in an address, also if it is the usual one of HTTP.
fn port_of(rest: &str) -> Option<u16> {
    let place = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = place.rsplit_once('@').map_or(place, |(_, host)| host);
    host.rsplit_once(':').and_then(|(_, port)| port.parse().ok())
}

fn admin_url(text: &str) -> Result<Url, String> {
    let url = Url::parse(text).map_err(|error| format!("admin is not a URL: {error}"))?;
    if matches!(url.scheme(), "http" | "https") && url.has_host() {
        Ok(url)
    } else {
        Err("admin is not an http or https URL".to_owned())
    }
}

/// Returns the URL of a path below another one.
fn below(url: &Url, path: &[&str]) -> Url {
    let mut url = url.clone();
    if let Ok(mut segments) = url.path_segments_mut() {
        segments.pop_if_empty().extend(path);
    }
    url
}

// The deployment of raymond's objects, as the server's admin interface has it.

/// The time for a call. The server dials the worker meanwhile.
const ADMIN_LIMIT: Duration = Duration::from_secs(15);

/// The service that tells where the objects are.
#[derive(Debug, Deserialize)]
struct RegisteredService {
    deployment_id: String,
}

/// A deployment of the objects.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(super) struct ObjectDeployment {
    id: String,
    uri: String,
}

impl ObjectDeployment {
    /// Returns whether it is at a URL.
    pub(super) fn is_at(&self, url: &str) -> bool {
        self.uri.trim_end_matches('/') == url.trim_end_matches('/')
    }
}

/// The admin interface of the server.
#[derive(Debug, Clone)]
pub(super) struct DeploymentAdmin {
    pub(super) address: EngineAddress,
    pub(super) admin: Url,
    pub(super) client: Client,
    pub(super) handle: Handle,
}

impl DeploymentAdmin {
    /// Returns the deployment that serves the objects; `None` if none was registered.
    pub(super) fn current(&self) -> Result<Option<ObjectDeployment>, EngineError> {
        let Some(service) = self.ask::<RegisteredService>(Method::GET, &["services", RUN], None)?
        else {
            return Ok(None);
        };
        self.ask(Method::GET, &["deployments", &service.deployment_id], None)
    }

    /// Registers the objects at a URL.
    pub(super) fn register(&self, url: &str) -> Result<(), EngineError> {
        let body = json!({ "uri": url, "force": true });
        self.ask::<Value>(Method::POST, &["deployments"], Some(&body)).map(drop)
    }

    /// Moves a deployment to a URL. What was under way goes on there.
    pub(super) fn move_to(
        &self,
        deployment: &ObjectDeployment,
        url: &str,
    ) -> Result<(), EngineError> {
        let body = json!({ "uri": url, "overwrite": true });
        let path = ["deployments", &deployment.id];
        self.ask::<Value>(Method::PATCH, &path, Some(&body)).map(drop)
    }

    /// Asks the interface; `None` if there is no such thing.
    fn ask<A: DeserializeOwned>(
        &self,
        method: Method,
        path: &[&str],
        body: Option<&Value>,
    ) -> Result<Option<A>, EngineError> {
        let url = below(&self.admin, path);
        let mut request = self.client.request(method, url).timeout(ADMIN_LIMIT);
        if let Some(body) = body {
            let body = body.to_string();
            request = request.header("content-type", "application/json").body(body);
        }
        let answered = self.handle.block_on(async {
            let response = request.send().await?;
            let status = response.status().as_u16();
            Ok::<_, reqwest::Error>((status, response.bytes().await?))
        });
        match answered {
            Ok((200..=299, body)) => serde_json::from_slice(&body).map(Some).map_err(|error| {
                self.of_admin(EngineError::refused(
                    &self.address,
                    format!("an answer cannot be read: {error}"),
                ))
            }),
            Ok((404, body)) if serde_json::from_slice::<Value>(&body).is_ok() => Ok(None),
            Ok((status, body)) => Err(self.of_admin(of_answer(&self.address, status, &body))),
            Err(error) => Err(self.of_admin(of_request(&self.address, &error))),
        }
    }

    /// Returns an error with the part of the server that it is about.
    fn of_admin(&self, error: EngineError) -> EngineError {
        let place = format!(
            "its admin interface at {}:{}, which ?admin=URL names",
            self.admin.host_str().unwrap_or_default(),
            self.admin.port_or_known_default().unwrap_or_default()
        );
        match error {
            EngineError::Unreachable { why, .. } => {
                EngineError::unreachable(&self.address, format!("{place}: {why}"))
            }
            EngineError::Refused { why, .. } => {
                EngineError::refused(&self.address, format!("{place}: {why}"))
            }
            other => other,
        }
    }
}

// Calls of objects through the server's ingress. Each ends in time, and is made again if its connection was cut.

/// The time for a call.
pub(super) const CALL_LIMIT: Duration = Duration::from_secs(8);
/// The time for a call that carries much.
pub(super) const LARGE_CALL_LIMIT: Duration = Duration::from_secs(30);

/// A handler of an object.
#[derive(Debug, Clone, Copy)]
pub(super) struct CalledHandler<'n> {
    pub(super) service: &'static str,
    pub(super) key: &'n str,
    pub(super) handler: &'static str,
}

/// The way to the objects.
#[derive(Debug, Clone)]
pub(super) struct ObjectCaller {
    pub(super) address: EngineAddress,
    pub(super) handle: Handle,
    pub(super) client: Client,
    pub(super) ingress: Url,
}

impl ObjectCaller {
    /// Calls a handler, and waits for its answer on this thread, which must not be one of a runtime.
    pub(super) fn call<C: Serialize, A: DeserializeOwned>(
        &self,
        called: CalledHandler<'_>,
        call: C,
        limit: Duration,
    ) -> Result<A, EngineError> {
        self.handle.block_on(self.ask(called, call, limit))
    }

    /// Calls a handler.
    pub(super) async fn ask<C: Serialize, A: DeserializeOwned>(
        &self,
        called: CalledHandler<'_>,
        call: C,
        limit: Duration,
    ) -> Result<A, EngineError> {
        let body = serde_json::to_vec(&VersionedCall::new(call)).map_err(|error| {
            EngineError::refused(&self.address, format!("the call cannot be written: {error}"))
        })?;
        let answer = self.send(called, body, limit).await?;
        serde_json::from_slice(&answer).map_err(|error| {
            EngineError::damaged(
                &self.address,
                format!("{} {}", called.service, called.key),
                error.to_string(),
            )
        })
    }

    /// Sends bytes to a handler. A call that was cut off may have been carried out: then it changes nothing the second
    /// time.
    pub(super) async fn send(
        &self,
        called: CalledHandler<'_>,
        body: Vec<u8>,
        limit: Duration,
    ) -> Result<Vec<u8>, EngineError> {
        let url = below(&self.ingress, &[called.service, called.key, called.handler]);
        match self.attempt(url.clone(), body.clone(), limit).await {
            Err(error) if !error.is_timeout() && !error.is_connect() => {}
            answered => return self.judged(answered),
        }
        let answered = self.attempt(url, body, limit).await;
        self.judged(answered)
    }

    /// Returns the date that the server says; `None` if it says none.
    pub(super) fn date(&self) -> Result<Option<String>, EngineError> {
        let url = below(&self.ingress, &["restate", "health"]);
        let ask = async { self.client.get(url).timeout(CALL_LIMIT).send().await };
        let answer = self.handle.block_on(ask);
        let answer = answer.map_err(|error| of_request(&self.address, &error))?;
        Ok(answer.headers().get(DATE).and_then(|date| date.to_str().ok()).map(str::to_owned))
    }

    async fn attempt(
        &self,
        url: Url,
        body: Vec<u8>,
        limit: Duration,
    ) -> Result<(u16, Vec<u8>), reqwest::Error> {
        let request = self.client.post(url).header(CONTENT_TYPE, "application/octet-stream");
        let response = request.body(body).timeout(limit).send().await?;
        let status = response.status().as_u16();
        Ok((status, response.bytes().await?.to_vec()))
    }

    fn judged(
        &self,
        answered: Result<(u16, Vec<u8>), reqwest::Error>,
    ) -> Result<Vec<u8>, EngineError> {
        match answered {
            Ok((200..=299, answer)) => Ok(answer),
            Ok((status, answer)) => Err(of_answer(&self.address, status, &answer)),
            Err(error) => Err(of_request(&self.address, &error)),
        }
    }
}

// Errors of calls: what the server's answers mean, and their texts.

/// The remedy if nobody serves the objects.
const NOBODY_SERVES: &str = "no worker has registered raymond's objects there: start one with `raymond worker --listen ADDRESS:PORT`";

/// An answer of the server that reports a failure.
#[derive(Debug, Deserialize)]
struct ServerMessage {
    message: String,
}

/// Judges a request that got no answer.
pub(super) fn of_request(address: &EngineAddress, error: &reqwest::Error) -> EngineError {
    if error.is_timeout() {
        let why = "no answer within the time for a call; the server, or the worker that serves raymond's objects to it, may be down or busy";
        return EngineError::unreachable(address, why);
    }
    let why = match error.source() {
        // The text of the error itself has the URL, which may have a password in it.
        Some(cause) => causes(Some(cause)),
        None => "no answer".to_owned(),
    };
    if error.is_connect() {
        let remedy = "check that a Restate server listens there, and the machine and the port of the address";
        return EngineError::unreachable(address, format!("{why}; {remedy}"));
    }
    EngineError::unreachable(address, format!("the connection broke: {why}"))
}

/// Judges an answer that reports a failure.
pub(super) fn of_answer(address: &EngineAddress, status: u16, body: &[u8]) -> EngineError {
    let message: Option<ServerMessage> = serde_json::from_slice(body).ok();
    let text = match &message {
        Some(answer) => joined_words(&answer.message),
        None => joined_words(&String::from_utf8_lossy(body.get(..200).unwrap_or(body))),
    };
    match status {
        OTHER_VERSION => {
            let found = text.rsplit(' ').next().and_then(|found| found.parse().ok());
            let engine = address.to_string();
            EngineError::Version { engine, found: found.unwrap_or_default(), known: VERSION }
        }
        404 if message.is_some() && text.contains("Raymond") => {
            EngineError::refused(address, NOBODY_SERVES)
        }
        401 | 403 => EngineError::refused(
            address,
            format!(
                "{text} (status {status}); give a user and a password, as in restate://USER:PASSWORD@HOST:PORT"
            ),
        ),
        413 => EngineError::refused(
            address,
            format!(
                "{text} (status {status}); raise the server's limits of the size of a request and of a message"
            ),
        ),
        422 => EngineError::damaged(address, "an object", text),
        404 | 405 | 400 | 415 if message.is_none() => EngineError::refused(
            address,
            format!(
                "status {status}: no ingress of a Restate server answers there; check the port, which is 8080 unless the server is configured otherwise"
            ),
        ),
        429 | 500..=599 => EngineError::unreachable(address, format!("{text} (status {status})")),
        _ => EngineError::refused(address, format!("{text} (status {status})")),
    }
}

#[cfg(test)]
mod clock_tests {
    use super::*;

    #[test]
    fn clocks_that_differ_are_reported() {
        let date = "Thu, 26 Nov 2026 14:49:42 GMT";
        let at = |seconds: i64| {
            let time = UNIX_EPOCH + Duration::from_secs(1_795_704_582);
            match u64::try_from(seconds) {
                Ok(later) => time + Duration::from_secs(later),
                Err(_) => time - Duration::from_secs(seconds.unsigned_abs()),
            }
        };
        for seconds in [-3, 0, 3] {
            assert_eq!(difference(date, at(seconds)), None, "{seconds}");
        }
        let reported = |seconds| difference(date, at(seconds)).expect("a difference");
        assert!(reported(60).contains("60 s ahead of that of the server"), "{}", reported(60));
        assert!(reported(-61).contains("61 s behind that of the server"), "{}", reported(-61));
        assert_eq!(difference("yesterday", at(0)), None);
    }
}

#[cfg(test)]
mod settings_tests {
    use super::*;

    fn read(url: &str) -> Result<(String, String), String> {
        let address = EngineAddress::parse(url).expect("an address");
        let settings = RestateSettings::read(&address).map_err(|error| error.to_string())?;
        Ok((settings.ingress.to_string(), settings.admin.to_string()))
    }

    #[test]
    fn addresses_name_the_ingress_and_the_admin_interface() {
        for (url, ingress, admin) in [
            ("restate://db", "http://db:8080/", "http://db:9070/"),
            ("restate://db:80/", "http://db/", "http://db:9070/"),
            ("restate://[::1]:8081", "http://[::1]:8081/", "http://[::1]:9070/"),
            ("restate://db:443?tls=true", "https://db/", "https://db:9070/"),
            ("restate://db?admin=http://x:1/a", "http://db:8080/", "http://x:1/a"),
            ("restate://u:p@db", "http://u:p@db:8080/", "http://u:p@db:9070/"),
        ] {
            assert_eq!(read(url), Ok((ingress.to_owned(), admin.to_owned())), "{url}");
        }
    }

    #[test]
    fn wrong_parameters_are_reported() {
        for (url, why) in [
            ("restate://db?tsl=true", "the parameters are admin, tls"),
            ("restate://db?tls=yes", "none of true, false"),
            ("restate://db?admin=db:9070", "not an http or https URL"),
            ("restate://db/work", "it has a path"),
        ] {
            let error = read(url).expect_err("a wrong address");
            assert!(error.contains(why), "{error}");
        }
    }
}
