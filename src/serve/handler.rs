//! The way from a request to its reply.

use std::future::poll_fn;
use std::pin::Pin;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use hyper::body::{Body, Incoming};
use hyper::{Request, StatusCode};
use serde::Serialize;
use serde_json::Value;

use crate::actor::context::now;
use crate::domain::id::{AgentId, RunId};
use crate::serve::access::{AccessRules, RequestHead};
use crate::serve::agent_feed::agents;
use crate::serve::backend::{CommandBackend, CommandQuery};
use crate::serve::feed::{EventStream, FeedPosition};
use crate::serve::feed_hub::{FeedError, FeedHub};
use crate::serve::log_page::LogRange;
use crate::serve::reply::PageReply;
use crate::serve::routes::{PAGE, PageRoute, ParameterMisfit, parameter, parsed};
use crate::serve::{agent_feed, cost_times, log_page, reply, routes, timeline};
use crate::store;
use crate::store::layout::{RunDir, RunsRoot};
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
            return reply::refused(refusal);
        }
        let query = parts.uri.query().map(str::to_owned);
        let route = match PageRoute::of(&parts.method, parts.uri.path()) {
            Ok(route) => route,
            Err(failure) => return reply::no_route(failure),
        };
        if route == PageRoute::Page
            && let Ok(Some(token)) = parameter(query.as_deref(), "token")
        {
            return self.enter(&token);
        }
        if route.is_guarded()
            && let Err(refusal) = self.rules.check_key(&head, now())
        {
            return reply::refused(refusal);
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
            handler
                .read(route, query.as_deref(), last_event.as_deref())
                .unwrap_or_else(|misfit| reply::wrong_parameter(&misfit))
        };
        tokio::task::spawn_blocking(read).await.unwrap_or_else(|_| failed())
    }

    fn enter(&self, token: &str) -> PageReply {
        if self.rules.is_token(token) {
            reply::entry(&self.rules.cookie(now()))
        } else {
            reply::asset(&PAGE)
        }
    }

    async fn act(&self, name: String, body: Value) -> PageReply {
        if let Err(misfit) = routes::check(&name, &body) {
            return reply::misfit(&misfit);
        }
        let backend = Arc::clone(&self.backend);
        let act = move || reply::command(backend.act(&name, &body));
        tokio::task::spawn_blocking(act).await.unwrap_or_else(|_| failed())
    }

    fn read(
        &self,
        route: PageRoute,
        query: Option<&str>,
        last_event: Option<&str>,
    ) -> Result<PageReply, ParameterMisfit> {
        route.check_query(query)?;
        let document = |query: &CommandQuery| reply::command(self.backend.document(query));
        Ok(match route {
            PageRoute::Page => reply::asset(&PAGE),
            PageRoute::Asset(asset) => reply::asset(asset),
            PageRoute::OpenApi => reply::json_text(routes::DOCUMENT),
            PageRoute::Runs => document(&CommandQuery::Runs {
                offset: number(query, "offset")?.unwrap_or(0),
                limit: limit(query)?,
            }),
            PageRoute::Document(query) => document(&query),
            PageRoute::Feed(subject) => {
                let position = position(query, last_event)?;
                feed(self.hub.read(&subject, position.as_ref()))
            }
            PageRoute::Agents(run) => {
                let (after, limit) = (agent(query, "after")?, limit(query)?);
                self.of_run(&run, |dir| agents(dir, after.as_ref(), limit))
            }
            PageRoute::Log(run) => {
                let range = range(query)?;
                self.of_run(&run, |dir| log_page::read(dir, &range))
            }
            PageRoute::Timeline(run) => self.of_run(&run, timeline::read),
            PageRoute::CostTimes(run) => self.of_run(&run, cost_times::read),
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
            return reply::unread(&no_such_run(&self.root, run));
        }
        reply::read(read(&dir))
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
    reply::error(status, message)
}

/// Returns the reply for a stream.
fn feed(answer: Result<EventStream, FeedError>) -> PageReply {
    match answer {
        Ok(events) => reply::stream(events),
        Err(FeedError::Store(failure)) => reply::unread(&failure),
        Err(failure @ (FeedError::TooMany | FeedError::Thread(_))) => {
            reply::error(StatusCode::SERVICE_UNAVAILABLE, &failure.to_string())
        }
    }
}

fn failed() -> PageReply {
    reply::error(StatusCode::INTERNAL_SERVER_ERROR, "the request could not be carried out")
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
    parsed(query, name, "a number, 0 or more", |text| text.parse().ok())
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
