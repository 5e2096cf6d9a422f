//! The way from a request to its reply, the costs of a run over time, and the server that accepts connections.

use std::collections::{BTreeMap, HashMap};
use std::convert::Infallible;
use std::future::poll_fn;
use std::net::{SocketAddr, TcpListener as StdListener};
use std::pin::Pin;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use hyper::body::{Body, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use super::access::AccessToken;
use crate::actor::context::now;
use crate::domain::event::Record;
use crate::domain::id::{AgentId, RunId};
use crate::domain::ledger::cost_of;
use crate::domain::time::Timestamp;
use crate::proof::ProofKey;
use crate::serve::access::{AccessRules, RequestHead};
use crate::serve::agent_feed::agents;
use crate::serve::backend::{CommandBackend, CommandQuery};
use crate::serve::feed::FeedPosition;
use crate::serve::feed_hub::FeedHub;
use crate::serve::routes::{PAGE, PageReply, PageRoute, ParameterMisfit, parameter, parsed};
use crate::serve::run_feed::LogRange;
use crate::serve::{agent_feed, routes, run_feed};
use crate::store;
use crate::store::journal::JournalReader;
use crate::store::layout::{RunDir, RunsRoot};
use crate::store::record;
use crate::store::view::no_such_run;

/// The most bytes of a request's body.
const MAX_BODY_BYTES: usize = 1024 * 1024;

/// The time in which a body has to come.
const BODY_TIMEOUT: Duration = Duration::from_secs(10);

/// The most items of a page, and how many there are if nothing is asked for.
const MAX_PAGE: usize = 500;
const DEFAULT_PAGE: usize = 100;

/// Everything that a request may need.
#[derive(Clone)]
pub struct PageHandler {
    /// The checks.
    pub rules: Arc<AccessRules>,
    /// The streams.
    pub hub: Arc<FeedHub>,
    /// The commands.
    pub backend: Arc<dyn CommandBackend>,
    /// The runs.
    pub root: RunsRoot,
}

/// The reason why a body is not taken.
enum BodyError {
    TooLong,
    TooSlow,
    NoJson,
}

impl PageHandler {
    /// Returns the reply to a request.
    pub async fn reply(&self, request: Request<Incoming>) -> PageReply {
        let (parts, body) = request.into_parts();
        let head = RequestHead::read(&parts.method, &parts.uri, &parts.headers);
        if let Err(refusal) = self.rules.check_source(&head) {
            return routes::refused(refusal);
        }
        let query = parts.uri.query().map(str::to_owned);
        let route = match PageRoute::of(&parts.method, parts.uri.path()) {
            Ok(route) => route,
            Err(failure) => return routes::no_route(failure),
        };
        if route == PageRoute::Page
            && let Ok(Some(token)) = parameter(query.as_deref(), "token")
        {
            return self.enter(&token);
        }
        if route.is_guarded()
            && let Err(refusal) = self.rules.check_key(&head, now())
        {
            return routes::refused(refusal);
        }
        if let PageRoute::Action(name) = &route {
            return match whole(body).await {
                Ok(body) => self.act(name.clone(), body).await,
                Err(error) => refused_body(&error),
            };
        }
        // What reads files may take a while, and is done beside the other requests.
        let (handler, last_event) = (self.clone(), head.last_event_id);
        let read = move || {
            let reply = handler.read(route, query.as_deref(), last_event.as_deref());
            reply.unwrap_or_else(|misfit| routes::wrong_parameter(&misfit))
        };
        tokio::task::spawn_blocking(read).await.unwrap_or_else(|_| failed())
    }

    fn enter(&self, token: &str) -> PageReply {
        if self.rules.is_token(token) {
            routes::entry(&self.rules.cookie(now()))
        } else {
            routes::asset(&PAGE)
        }
    }

    async fn act(&self, name: String, body: Value) -> PageReply {
        if let Err(misfit) = routes::check(&name, &body) {
            return routes::misfit(&misfit);
        }
        let backend = Arc::clone(&self.backend);
        let act = move || routes::command(backend.act(&name, &body));
        tokio::task::spawn_blocking(act).await.unwrap_or_else(|_| failed())
    }

    fn read(
        &self,
        route: PageRoute,
        query: Option<&str>,
        last_event: Option<&str>,
    ) -> Result<PageReply, ParameterMisfit> {
        let document = |query: &CommandQuery| routes::command(self.backend.document(query));
        Ok(match route {
            PageRoute::Page => routes::asset(&PAGE),
            PageRoute::Asset(asset) => routes::asset(asset),
            PageRoute::OpenApi => routes::json_text(routes::DOCUMENT),
            PageRoute::Runs => document(&CommandQuery::Runs {
                offset: number(query, "offset")?.unwrap_or(0),
                limit: limit(query)?,
            }),
            PageRoute::Document(query) => document(&query),
            PageRoute::Feed(subject) => {
                let position = position(query, last_event)?;
                routes::feed(self.hub.read(&subject, position.as_ref()))
            }
            PageRoute::Agents(run) => {
                let (after, limit) = (agent(query, "after")?, limit(query)?);
                self.of_run(&run, |dir| agents(dir, after.as_ref(), limit))
            }
            PageRoute::Log(run) => {
                let range = range(query)?;
                self.of_run(&run, |dir| run_feed::read(dir, &range))
            }
            PageRoute::Timeline(run) => self.of_run(&run, run_feed::read_timeline),
            PageRoute::CostTimes(run) => self.of_run(&run, read),
            PageRoute::Turn(run, turn) => {
                let from = number(query, "from")?.unwrap_or(0);
                self.of_run(&run, |dir| Ok(agent_feed::page(&dir.steps(), &turn, from)))
            }
            // Its body is read first.
            PageRoute::Action(_) => failed(),
        })
    }

    fn of_run<T: Serialize>(
        &self,
        run: &RunId,
        read: impl FnOnce(&RunDir) -> Result<T, store::Error>,
    ) -> PageReply {
        let dir = self.root.run(run);
        if !dir.path().is_dir() {
            return routes::unread(&no_such_run(&self.root, run));
        }
        routes::read(read(&dir))
    }
}

/// Reads a whole body as JSON.
async fn whole(mut body: Incoming) -> Result<Value, BodyError> {
    let read = async {
        let mut bytes = Vec::new();
        while let Some(frame) = poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await {
            let data = frame.map_err(|_| BodyError::NoJson)?.into_data().unwrap_or_default();
            if bytes.len() + data.len() > MAX_BODY_BYTES {
                return Err(BodyError::TooLong);
            }
            bytes.extend_from_slice(&data);
        }
        serde_json::from_slice(&bytes).map_err(|_| BodyError::NoJson)
    };
    tokio::time::timeout(BODY_TIMEOUT, read).await.unwrap_or(Err(BodyError::TooSlow))
}

fn refused_body(error: &BodyError) -> PageReply {
    let (status, message) = match error {
        BodyError::TooLong => (StatusCode::PAYLOAD_TOO_LARGE, "the body is longer than 1 MiB"),
        BodyError::TooSlow => (StatusCode::REQUEST_TIMEOUT, "the body did not come in time"),
        BodyError::NoJson => (StatusCode::BAD_REQUEST, "the body is not valid JSON"),
    };
    routes::error(status, message)
}

fn failed() -> PageReply {
    routes::error(StatusCode::INTERNAL_SERVER_ERROR, "the request could not be carried out")
}

/// Returns the position from which a stream continues: the header of a browser that comes back, else the parameter of a
/// page that has left its stream. A browser may bring the header of another server, and then gets everything.
fn position(
    query: Option<&str>,
    last_event: Option<&str>,
) -> Result<Option<FeedPosition>, ParameterMisfit> {
    let asked = parsed(query, "position", "the id of an event", FeedPosition::parse)?;
    Ok(last_event.map_or(asked, FeedPosition::parse))
}

fn number<T: FromStr>(
    query: Option<&str>,
    name: &'static str,
) -> Result<Option<T>, ParameterMisfit> {
    parsed(query, name, "a whole number", |text| text.parse().ok())
}

fn agent(query: Option<&str>, name: &'static str) -> Result<Option<AgentId>, ParameterMisfit> {
    parsed(query, name, "the id of an agent, such as main.1", |id| AgentId::parse(id).ok())
}

fn limit(query: Option<&str>) -> Result<usize, ParameterMisfit> {
    Ok(match number(query, "limit")?.unwrap_or(0) {
        0 => DEFAULT_PAGE,
        limit => limit.min(MAX_PAGE),
    })
}

fn range(query: Option<&str>) -> Result<LogRange, ParameterMisfit> {
    Ok(LogRange {
        before: number(query, "before")?,
        after: number(query, "after")?,
        agent: agent(query, "agent")?,
        text: parameter(query, "text")?
            .filter(|text| !text.is_empty())
            .map(|text| text.to_lowercase()),
        limit: limit(query)?,
    })
}

// The costs of a run over time, by state and by model.

/// The number of spans that the time of a run is divided into.
const SPANS: u32 = 60;

/// The maximum number of names that are distinguished. The others are combined.
const MAX_NAMES: usize = 7;

/// The name of costs whose state or model is not known, and of those that are not distinguished.
const UNKNOWN: &str = "not known";
const OTHERS: &str = "others";

/// The costs of a run over time.
#[derive(Debug, Serialize, JsonSchema)]
pub struct CostTimes {
    /// The beginning of the run
    began: Timestamp,
    /// The length of a span, in milliseconds
    span_ms: u64,
    /// The costs by state, the most expensive first
    states: Vec<CostSeries>,
    /// The costs by model
    models: Vec<CostSeries>,
}

/// The costs of a state or a model in each span.
#[derive(Debug, Serialize, JsonSchema)]
struct CostSeries {
    /// Its name
    name: String,
    /// Its cost in each span, in US dollars
    usd: Vec<f64>,
}

/// A charge of a time.
#[derive(Debug, Clone, PartialEq)]
struct TimedCharge {
    at: Timestamp,
    name: String,
    dollars: f64,
}

/// The charges of a run.
#[derive(Debug, Default)]
struct ChargeFold {
    began: Option<Timestamp>,
    last: Timestamp,
    states: Vec<TimedCharge>,
    models: Vec<TimedCharge>,
    /// The last known state of each agent.
    known: HashMap<AgentId, String>,
}

impl ChargeFold {
    fn see(&mut self, record: &Record) {
        let at = record.at;
        self.began.get_or_insert(at);
        self.last = self.last.max(at);
        let Some(charge) = cost_of(&record.event) else { return };
        let agent = &charge.turn.agent;
        let name = match charge.prompt {
            Some(prompt) => prompt.shown_in(record.folder.as_ref()).to_string(),
            None => self.known.get(agent).cloned().unwrap_or_else(|| UNKNOWN.to_owned()),
        };
        self.known.insert(agent.clone(), name.clone());
        let dollars = charge.cost.amount.dollars();
        if dollars <= 0.0 {
            return;
        }
        self.states.push(TimedCharge { at, name, dollars });
        let mut rest = dollars;
        for (model, used) in charge.cost.usage.iter() {
            let dollars = used.cost_usd.dollars();
            rest -= dollars;
            self.models.push(TimedCharge { at, name: model.to_owned(), dollars });
        }
        if rest > dollars / 1000.0 {
            self.models.push(TimedCharge { at, name: UNKNOWN.to_owned(), dollars: rest });
        }
    }

    fn finish(&self) -> CostTimes {
        let began = self.began.unwrap_or_default();
        let span_ms = self.last.since(began) / u64::from(SPANS) + 1;
        CostTimes {
            began,
            span_ms,
            states: series(&self.states, began, span_ms),
            models: series(&self.models, began, span_ms),
        }
    }
}

/// Returns the sums of all spans before anything is added.
fn nothing() -> Vec<f64> {
    (0..SPANS).map(|_| 0.0).collect()
}

/// Returns the sum of each span for each name, the most expensive first.
fn series(charges: &[TimedCharge], began: Timestamp, span: u64) -> Vec<CostSeries> {
    let mut sums: BTreeMap<&str, f64> = BTreeMap::new();
    for charge in charges {
        *sums.entry(&charge.name).or_default() += charge.dollars;
    }
    let mut names: Vec<(&str, f64)> = sums.into_iter().collect();
    names.sort_by(|(_, sum), (_, other)| other.total_cmp(sum));
    let kept = if names.len() > MAX_NAMES + 1 { MAX_NAMES } else { names.len() };
    let mut all: Vec<(&str, Vec<f64>)> =
        names[..kept].iter().map(|(name, _)| (*name, nothing())).collect();
    if kept < names.len() {
        all.push((OTHERS, nothing()));
    }
    for charge in charges {
        let span = usize::try_from(charge.at.since(began) / span).unwrap_or(usize::MAX);
        let place = all.iter().position(|(name, _)| *name == charge.name);
        let place = place.unwrap_or(all.len().saturating_sub(1));
        if let Some(sum) = all.get_mut(place).and_then(|(_, sums)| sums.get_mut(span)) {
            *sum += charge.dollars;
        }
    }
    let rounded = |dollars: &f64| (dollars * 1e6).round() / 1e6;
    let of_name = |(name, sums): &(&str, Vec<f64>)| CostSeries {
        name: (*name).to_owned(),
        usd: sums.iter().map(rounded).collect(),
    };
    all.iter().map(of_name).collect()
}

/// Reads the costs of a run over time.
///
/// # Errors
/// [`store::Error`].
pub fn read(dir: &RunDir) -> Result<CostTimes, store::Error> {
    let mut fold = ChargeFold::default();
    JournalReader::open(&dir.journal())?.read_all(|_, line| {
        fold.see(&record::decode(line)?);
        Ok(())
    })?;
    Ok(fold.finish())
}

// The server: it accepts connections, and ends on request.

/// The most connections at once.
const MAX_CONNECTIONS: usize = 256;

/// The most threads that read runs for requests.
const MAX_READERS: usize = 64;

/// The time in which the head of a request has to come.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);

/// The most bytes of a head.
const MAX_HEAD_BYTES: usize = 16 * 1024;

/// The time that open requests have when the server ends.
const END_TIMEOUT: Duration = Duration::from_secs(2);

/// The pause after an error at taking a connection, such as too many open files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// A server that has its address and takes no connections yet.
pub struct PageServer {
    listener: StdListener,
    address: SocketAddr,
    handler: PageHandler,
}

impl PageServer {
    /// Takes an address.
    ///
    /// # Errors
    /// The error of the system.
    pub fn bind(
        address: SocketAddr,
        root: RunsRoot,
        key: &ProofKey,
        token: AccessToken,
        backend: Arc<dyn CommandBackend>,
    ) -> std::io::Result<Self> {
        let listener = StdListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let runs = root.path().display().to_string();
        let rules = Arc::new(AccessRules::new(key, token, address, runs));
        let hub = Arc::new(FeedHub::new(root.clone(), Arc::clone(&backend)));
        Ok(Self { listener, address, handler: PageHandler { rules, hub, backend, root } })
    }

    /// Returns the address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `end` is done.
    ///
    /// # Errors
    /// The error of the system.
    pub fn serve(self, end: impl Future<Output = ()>) -> std::io::Result<()> {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        let runtime = builder.enable_all().max_blocking_threads(MAX_READERS).build()?;
        let outcome = runtime.block_on(self.take_connections(end));
        // A reader that is at a large run is not waited for.
        runtime.shutdown_background();
        outcome
    }

    async fn take_connections(self, end: impl Future<Output = ()>) -> std::io::Result<()> {
        let listener = TcpListener::from_std(self.listener)?;
        let places = Arc::new(Semaphore::new(MAX_CONNECTIONS));
        let (is_over, ending) = watch::channel(false);
        let mut end = std::pin::pin!(end);
        loop {
            // Who comes when all places are taken waits in the line of the system.
            let place = tokio::select! {
                () = &mut end => break,
                place = Arc::clone(&places).acquire_owned() => place,
            };
            let Ok(place) = place else { break };
            tokio::select! {
                () = &mut end => break,
                taken = listener.accept() => match taken {
                    Ok((stream, _)) => {
                        tokio::spawn(serve_one(stream, self.handler.clone(), ending.clone(), place));
                    }
                    Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
                },
            }
        }
        drop(listener);
        self.handler.hub.end();
        let _ = is_over.send(true);
        let all = u32::try_from(MAX_CONNECTIONS).unwrap_or(u32::MAX);
        let _ = tokio::time::timeout(END_TIMEOUT, places.acquire_many(all)).await;
        Ok(())
    }
}

/// Serves a connection until it ends.
async fn serve_one(
    stream: TcpStream,
    handler: PageHandler,
    mut ending: watch::Receiver<bool>,
    place: OwnedSemaphorePermit,
) {
    let _ = stream.set_nodelay(true);
    let service = service_fn(move |request| {
        let handler = handler.clone();
        async move { Ok::<_, Infallible>(handler.reply(request).await) }
    });
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(HEAD_TIMEOUT).max_buf_size(MAX_HEAD_BYTES);
    let mut connection = std::pin::pin!(builder.serve_connection(TokioIo::new(stream), service));
    // A connection that fails is the loss of its client alone.
    tokio::select! {
        _ = connection.as_mut() => {}
        _ = ending.changed() => {
            connection.as_mut().graceful_shutdown();
            let _ = connection.await;
        }
    }
    drop(place);
}

#[cfg(test)]
mod cost_times_tests {
    use super::*;

    fn charge(at: u64, name: &str, dollars: f64) -> TimedCharge {
        TimedCharge { at: Timestamp(at), name: name.to_owned(), dollars }
    }

    #[test]
    fn each_span_has_its_sum_and_small_names_are_one() {
        let mut charges: Vec<TimedCharge> = (0..9)
            .map(|number| charge(0, &format!("s{number}"), 1.0 + f64::from(number)))
            .collect();
        charges.push(charge(2500, "s8", 0.5));
        let series = series(&charges, Timestamp(0), 1000);
        let names: Vec<&str> = series.iter().map(|of_name| of_name.name.as_str()).collect();
        assert_eq!(names, ["s8", "s7", "s6", "s5", "s4", "s3", "s2", "others"]);
        assert!((series[0].usd[0] - 9.0).abs() < 1e-9 && (series[0].usd[2] - 0.5).abs() < 1e-9);
        assert!((series[7].usd[0] - 3.0).abs() < 1e-9, "the two cheapest");
    }
}
