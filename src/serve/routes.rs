//! The addresses of the page and of its data, the page's files, and the check of an action's body. Pure.
//!
//! An address leads from a method and a path to what is asked. Names in a path are parsed as what they name, so no path
//! leads out of the runs.

use hyper::Method;
use serde_json::Value;

use super::backend::CommandQuery;
use super::feed_hub::FeedSubject;
use crate::domain::id::{AgentId, RunId};
use crate::domain::percent::percent_decoded;
use crate::domain::turn::TurnId;

/// Something that the server has or does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PageRoute {
    /// The page; its own script shows what the path names.
    Page,
    /// A file of the page.
    Asset(&'static PageAsset),
    /// The description of these addresses.
    OpenApi,
    /// A page of the list of runs.
    Runs,
    /// Another document that a command has, too.
    Document(CommandQuery),
    /// A stream.
    Feed(FeedSubject),
    /// The agents of a run.
    Agents(RunId),
    /// The costs of a run over time.
    CostTimes(RunId),
    /// The records of a run.
    Log(RunId),
    /// The turns of a run over time.
    Timeline(RunId),
    /// The conversation of a turn.
    Turn(RunId, TurnId),
    /// An action by its name, which need not exist. Only `POST` reaches it.
    Action(String),
}

/// The reason why an address has nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RouteError {
    /// There is nothing.
    #[error("nothing at this address")]
    Unknown,
    /// There is something, but for another method.
    #[error("this address does not accept this method")]
    Method,
}

impl PageRoute {
    /// Returns what a method asks of a path.
    ///
    /// # Errors
    /// [`RouteError`].
    pub fn of(method: &Method, path: &str) -> Result<Self, RouteError> {
        let parts: Vec<&str> = path.split('/').skip(1).collect();
        let route = match parts.as_slice() {
            ["api", rest @ ..] => Self::of_api(rest),
            ["assets", name] => PageAsset::named(name).map(Self::Asset),
            ["" | "needs-you" | "start"] => Some(Self::Page),
            ["runs", run] => RunId::parse(run).ok().map(|_| Self::Page),
            ["runs", run, "agents", agent] => {
                (RunId::parse(run).is_ok() && AgentId::parse(agent).is_ok()).then_some(Self::Page)
            }
            _ => None,
        };
        let route = route.ok_or(RouteError::Unknown)?;
        let is_fit = match (&route, method) {
            (Self::Action(_), method) => *method == Method::POST,
            (_, method) => *method == Method::GET,
        };
        is_fit.then_some(route).ok_or(RouteError::Method)
    }

    fn of_api(parts: &[&str]) -> Option<Self> {
        Some(match parts {
            ["openapi.json"] => Self::OpenApi,
            ["runs"] => Self::Runs,
            ["events"] => Self::Feed(FeedSubject::Runs),
            ["questions"] => Self::Document(CommandQuery::Questions),
            ["workflows"] => Self::Document(CommandQuery::Workflows),
            ["actions", name] => Self::Action(action_name(name)?),
            ["runs", run, rest @ ..] => Self::of_run(RunId::parse(run).ok()?, rest)?,
            _ => return None,
        })
    }

    fn of_run(run: RunId, parts: &[&str]) -> Option<Self> {
        Some(match parts {
            [] => Self::Document(CommandQuery::Run(run)),
            ["events"] => Self::Feed(FeedSubject::Run(run)),
            ["agents"] => Self::Agents(run),
            ["costs"] => Self::Document(CommandQuery::Costs(run)),
            ["cost-times"] => Self::CostTimes(run),
            ["log"] => Self::Log(run),
            ["graph"] => Self::Document(CommandQuery::Graph(run)),
            ["timeline"] => Self::Timeline(run),
            ["agents", agent, rest @ ..] => Self::of_agent(run, AgentId::parse(agent).ok()?, rest)?,
            _ => return None,
        })
    }

    fn of_agent(run: RunId, agent: AgentId, parts: &[&str]) -> Option<Self> {
        Some(match parts {
            [] => Self::Document(CommandQuery::Agent(run, agent)),
            ["events"] => Self::Feed(FeedSubject::Agent(run, agent)),
            ["diff"] => Self::Document(CommandQuery::AgentDiff(run, agent)),
            ["turns", step, turn] => {
                let (step, turn) = (step.parse().ok()?, turn.parse().ok()?);
                Self::Turn(run, TurnId { agent, step, turn })
            }
            _ => return None,
        })
    }

    /// Checks that a query has only parameters that are read here, each once. The page itself may have any.
    ///
    /// # Errors
    /// [`ParameterMisfit`].
    pub fn check_query(&self, query: Option<&str>) -> Result<(), ParameterMisfit> {
        let known: &[&str] = match self {
            Self::Page | Self::Asset(_) => return Ok(()),
            Self::Runs => &["offset", "limit"],
            Self::Feed(_) => &["position"],
            Self::Agents(_) => &["after", "limit"],
            Self::Log(_) => &["before", "after", "agent", "text", "limit"],
            Self::Turn(..) => &["from"],
            Self::OpenApi
            | Self::Document(_)
            | Self::CostTimes(_)
            | Self::Timeline(_)
            | Self::Action(_) => &[],
        };
        let mut seen = Vec::new();
        for pair in query.unwrap_or_default().split('&').filter(|pair| !pair.is_empty()) {
            let name = pair.split_once('=').map_or(pair, |(name, _)| name);
            if !known.contains(&name) {
                let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
                return Err(ParameterMisfit::Unknown { name: name.to_owned(), known });
            }
            if seen.contains(&name) {
                return Err(ParameterMisfit::Repeated { name: name.to_owned() });
            }
            seen.push(name);
        }
        Ok(())
    }

    /// Returns whether only who has a key may ask for it. The page itself holds nothing secret, and a browser that
    /// comes from another site's link sends its cookie only with what the page asks for then.
    pub fn is_guarded(&self) -> bool {
        !matches!(self, Self::Page | Self::Asset(_))
    }
}

fn action_name(name: &str) -> Option<String> {
    let is_plain = |c: char| c.is_ascii_lowercase() || c == '-';
    (!name.is_empty() && name.chars().all(is_plain)).then(|| name.to_owned())
}

/// A parameter of a query that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParameterMisfit {
    /// Its value has no meaning.
    #[error("the parameter `{name}` has to be {wanted}")]
    Value {
        /// The parameter.
        name: &'static str,
        /// What its values are.
        wanted: &'static str,
    },
    /// The address does not have it.
    #[error("unknown parameter `{name}`; this address takes {known}")]
    Unknown {
        /// The parameter as it was given.
        name: String,
        /// The parameters that the address has.
        known: String,
    },
    /// It was given more than once.
    #[error("the parameter `{name}` is there twice")]
    Repeated {
        /// The parameter.
        name: String,
    },
}

/// Returns the value of a parameter of a query. Only names and numbers are asked for in queries, and texts of filters.
///
/// # Errors
/// [`ParameterMisfit`] if it is not a percent-encoded text.
pub fn parameter(
    query: Option<&str>,
    name: &'static str,
) -> Result<Option<String>, ParameterMisfit> {
    let mut pairs = query.unwrap_or_default().split('&');
    let value = pairs.find_map(|pair| match pair.split_once('=').unwrap_or((pair, "")) {
        (parameter, value) if parameter == name => Some(value),
        _ => None,
    });
    let decoded = |value: &str| {
        percent_decoded(&value.replace('+', " "))
            .ok_or(ParameterMisfit::Value { name, wanted: "percent-encoded UTF-8" })
    };
    value.map(decoded).transpose()
}

/// Returns what the value of a parameter stands for. `wanted` says what values have a meaning.
///
/// # Errors
/// [`ParameterMisfit`] if the value has none.
pub fn parsed<T>(
    query: Option<&str>,
    name: &'static str,
    wanted: &'static str,
    parse: impl FnOnce(&str) -> Option<T>,
) -> Result<Option<T>, ParameterMisfit> {
    let value = parameter(query, name)?;
    value.map(|value| parse(&value).ok_or(ParameterMisfit::Value { name, wanted })).transpose()
}

// The files of the page, which are within the program. They are written by hand: nothing builds them.

/// A file of the page.
#[derive(Debug, PartialEq, Eq)]
pub struct PageAsset {
    /// The name of its file in `src/serve/assets`, such as `app.js`.
    pub name: &'static str,
    /// The type of its content.
    pub kind: &'static str,
    /// The content.
    pub text: &'static str,
}

macro_rules! assets {
    ($($name:literal: $kind:literal),* $(,)?) => {
        &[$(PageAsset { name: $name, kind: $kind, text: include_str!(concat!("assets/", $name)) }),*]
    };
}

/// All files but the page itself.
const ASSETS: &[PageAsset] = assets! {
    "style.css": "text/css; charset=utf-8",
    "app.js": "text/javascript; charset=utf-8",
    "dom.js": "text/javascript; charset=utf-8",
    "api.js": "text/javascript; charset=utf-8",
    "format.js": "text/javascript; charset=utf-8",
    "runs.js": "text/javascript; charset=utf-8",
    "run.js": "text/javascript; charset=utf-8",
    "tree.js": "text/javascript; charset=utf-8",
    "rows.js": "text/javascript; charset=utf-8",
    "log.js": "text/javascript; charset=utf-8",
    "graph.js": "text/javascript; charset=utf-8",
    "timeline.js": "text/javascript; charset=utf-8",
    "costs.js": "text/javascript; charset=utf-8",
    "agent.js": "text/javascript; charset=utf-8",
    "conversation.js": "text/javascript; charset=utf-8",
    "diff.js": "text/javascript; charset=utf-8",
    "needs.js": "text/javascript; charset=utf-8",
    "question.js": "text/javascript; charset=utf-8",
    "actions.js": "text/javascript; charset=utf-8",
    "start.js": "text/javascript; charset=utf-8",
    "icon.svg": "image/svg+xml",
};

/// The page.
pub const PAGE: PageAsset = PageAsset {
    name: "index.html",
    kind: "text/html; charset=utf-8",
    text: include_str!("assets/index.html"),
};

impl PageAsset {
    /// Returns the file of a name.
    pub fn named(name: &str) -> Option<&'static Self> {
        ASSETS.iter().find(|asset| asset.name == name)
    }
}

// The check of an action's body against its description. Pure.

/// The reason why a body does not fit its action.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BodyMisfit {
    /// It is not an object.
    #[error("the body of the action is not a JSON object")]
    NoObject,
    /// A field that the action needs is not there.
    #[error("the body of the action has no `{0}`")]
    Missing(String),
    /// The action has no such field.
    #[error("the action has no field `{field}`; it has {known}")]
    Unknown {
        /// The name of the field, as the body has it.
        field: String,
        /// The fields that it has.
        known: String,
    },
    /// A value is of another type.
    #[error("`{field}` has to be of the type {wanted}")]
    Type {
        /// The name of the field, as the body has it.
        field: String,
        /// The type.
        wanted: String,
    },
}

impl BodyMisfit {
    /// Returns the field that does not fit; `None` if it is the whole body.
    pub fn field(&self) -> Option<&str> {
        match self {
            Self::NoObject => None,
            Self::Missing(field) | Self::Unknown { field, .. } | Self::Type { field, .. } => {
                Some(field)
            }
        }
    }
}

/// Checks the body of an action. An action that is not described has no rule.
///
/// # Errors
/// [`BodyMisfit`], about the first field that does not fit.
pub fn check(action: &str, body: &Value) -> Result<(), BodyMisfit> {
    let document: Value = serde_json::from_str(DOCUMENT).unwrap_or_default();
    let described = &document["paths"][format!("/api/actions/{action}")]["post"];
    let schema = &described["requestBody"]["content"]["application/json"]["schema"];
    let Some(fields) = schema["properties"].as_object() else { return Ok(()) };
    let body = body.as_object().ok_or(BodyMisfit::NoObject)?;
    for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        if body.get(name).is_none_or(Value::is_null) {
            return Err(BodyMisfit::Missing(name.to_owned()));
        }
    }
    for (name, value) in body {
        let Some(field) = fields.get(name) else {
            let known: Vec<&str> = fields.keys().map(String::as_str).collect();
            return Err(BodyMisfit::Unknown { field: name.clone(), known: known.join(", ") });
        };
        check_type(name, field, value)?;
    }
    Ok(())
}

fn check_type(name: &str, described: &Value, value: &Value) -> Result<(), BodyMisfit> {
    // A field that may be left out may also be `null`.
    let types = described["type"].as_array().and_then(|types| types.first());
    let wanted = types.unwrap_or(&described["type"]).as_str().unwrap_or_default();
    let is_fitting = match value {
        // As if the field were not there.
        Value::Null => true,
        Value::Bool(_) => wanted == "boolean",
        Value::Number(_) => wanted == "number",
        Value::String(_) => wanted == "string",
        Value::Array(_) => wanted == "array",
        Value::Object(_) => wanted == "object",
    };
    if is_fitting {
        Ok(())
    } else {
        Err(BodyMisfit::Type { field: name.to_owned(), wanted: wanted.to_owned() })
    }
}

// The description of the addresses, which tests compare with what the server does.

/// The document, in version 3.1 of `OpenAPI`.
pub const DOCUMENT: &str = include_str!("../../schema/openapi.json");

#[cfg(test)]
mod tests {
    use super::*;

    fn get(path: &str) -> Result<PageRoute, RouteError> {
        PageRoute::of(&Method::GET, path)
    }

    #[test]
    fn paths_lead_to_what_they_name() {
        let run = RunId::parse("t").expect("a run");
        let agent = AgentId::parse("main.1").expect("an agent");
        let turn = TurnId { agent: agent.clone(), step: 2, turn: 0 };
        for page in ["/", "/needs-you", "/start", "/runs/t", "/runs/t/agents/main.1"] {
            assert_eq!(get(page), Ok(PageRoute::Page), "{page}");
        }
        let document = |query| Ok(PageRoute::Document(query));
        assert_eq!(get("/api/runs/t"), document(CommandQuery::Run(run.clone())));
        let feed = PageRoute::Feed(FeedSubject::Run(run.clone()));
        assert_eq!(get("/api/runs/t/events"), Ok(feed));
        let agent = CommandQuery::Agent(run.clone(), agent);
        assert_eq!(get("/api/runs/t/agents/main.1"), document(agent));
        assert_eq!(get("/api/runs/t/agents/main.1/turns/2/0"), Ok(PageRoute::Turn(run, turn)));
        let action = PageRoute::Action("answer".into());
        assert_eq!(PageRoute::of(&Method::POST, "/api/actions/answer"), Ok(action));
        assert_eq!(get("/api/actions/answer"), Err(RouteError::Method));
        assert_eq!(PageRoute::of(&Method::POST, "/api/runs"), Err(RouteError::Method));
        assert!(matches!(get("/assets/app.js"), Ok(PageRoute::Asset(_))));
    }

    #[test]
    fn no_path_leads_out_of_the_runs() {
        let none = [
            "/..",
            "/assets/",
            "/assets/../Cargo.toml",
            "/assets/%2e%2e",
            "/api/runs/..",
            "/api/runs/.",
            "/api/runs/../../etc/passwd",
            "/api/runs/%2e%2e",
            "/api/runs/..%2f..",
            "/api/runs/t/agents/..",
            "/api/runs/t/agents/main.1/turns/../0",
            "/api/runs/t/agents/main.1/turns/-1/0",
            "/api/runs//agents",
            "/runs/..",
            "/api/runs/t/",
            "/api/runs/t\0",
            "//etc/passwd",
            "",
        ];
        for path in none {
            assert_eq!(get(path), Err(RouteError::Unknown), "{path}");
        }
        assert_eq!(PageRoute::of(&Method::POST, "/api/actions/../x"), Err(RouteError::Unknown));
        assert_eq!(PageRoute::of(&Method::POST, "/api/actions/A"), Err(RouteError::Unknown));
    }

    #[test]
    fn only_the_page_itself_needs_no_key() {
        assert!(!get("/runs/t").expect("a page").is_guarded());
        assert!(get("/api/runs").expect("runs").is_guarded());
        assert!(get("/api/openapi.json").expect("a document").is_guarded());
    }

    #[test]
    fn parameters_are_decoded() {
        let query =
            Some("a=1&text=x%20%C3%BC+y&empty&large=256&bad=%zz&short=%4&signed=%+4&latin=%fc");
        let value = |name| parameter(query, name).map_err(|misfit| misfit.to_string());
        assert_eq!(value("text"), Ok(Some("x ü y".to_owned())));
        assert_eq!((value("none"), parameter(None, "a")), (Ok(None), Ok(None)));
        assert_eq!(value("empty"), Ok(Some(String::new())));
        for name in ["bad", "short", "signed", "latin"] {
            let misfit = format!("the parameter `{name}` has to be percent-encoded UTF-8");
            assert_eq!(value(name), Err(misfit));
        }
        let number = |name| parsed(query, name, "a number", |text| text.parse::<u8>().ok());
        assert_eq!((number("a"), number("none")), (Ok(Some(1)), Ok(None)));
        let misfit = |name| number(name).map_err(|misfit| misfit.to_string());
        for name in ["text", "empty", "large"] {
            assert_eq!(misfit(name), Err(format!("the parameter `{name}` has to be a number")));
        }
    }
}

#[cfg(test)]
mod assets_tests {
    use super::*;

    /// The ways in which a text could become HTML or a program.
    const FORBIDDEN: [&str; 12] = [
        "innerHTML",
        "outerHTML",
        "insertAdjacentHTML",
        "document.write",
        "eval(",
        "new Function",
        "DOMParser",
        "srcdoc",
        "javascript:",
        "createContextualFragment",
        "setHTML",
        "http://",
    ];

    #[test]
    fn no_script_makes_html_of_a_text() {
        for asset in ASSETS.iter().filter(|asset| asset.kind.starts_with("text/javascript")) {
            for word in FORBIDDEN {
                let found = asset.text.replace("http://www.w3.org/2000/svg", "");
                assert!(!found.contains(word), "{}: {word}", asset.name);
            }
        }
    }

    #[test]
    fn page_has_no_inline_script_and_loads_only_its_files() {
        let page = PAGE.text;
        assert!(!page.contains("style=") && !page.contains("<style") && !page.contains(" on"));
        for part in page.split("src=\"").chain(page.split("href=\"")).skip(1) {
            let path = part.split('"').next().unwrap_or_default();
            let is_of_server =
                path.strip_prefix("/assets/").is_some_and(|name| PageAsset::named(name).is_some());
            assert!(
                is_of_server
                    || path == "/"
                    || path == "/needs-you"
                    || path == "/start"
                    || path.starts_with('#')
                    || path.starts_with("<!"),
                "{path}"
            );
        }
    }

    #[test]
    fn page_asks_for_all_its_modules_at_once() {
        let is_module = |asset: &&PageAsset| asset.kind.starts_with("text/javascript");
        for asset in ASSETS.iter().filter(is_module).filter(|asset| asset.name != "app.js") {
            let line = format!("<link rel=\"modulepreload\" href=\"/assets/{}\">", asset.name);
            assert!(PAGE.text.contains(&line), "{line}");
        }
    }

    #[test]
    fn each_module_imports_only_modules_that_are_here() {
        for asset in ASSETS.iter().filter(|asset| asset.kind.starts_with("text/javascript")) {
            for line in asset.text.lines().filter(|line| line.starts_with("import ")) {
                let from = line.rsplit('"').nth(1).unwrap_or_default();
                let name = from.strip_prefix("./").unwrap_or_default();
                assert!(PageAsset::named(name).is_some(), "{}: {line}", asset.name);
            }
        }
    }
}

#[cfg(test)]
mod action_body_tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn body_has_the_described_fields_and_no_others() {
        let wrong = |action: &str, body: Value| check(action, &body).map_err(|why| why.to_string());
        let whole = json!({ "run": "r", "node": "n", "text": "t", "agent": null });
        assert_eq!(wrong("answer", whole), Ok(()));
        assert_eq!(
            wrong("answer", json!([])),
            Err("the body of the action is not a JSON object".into())
        );
        let missing = Err("the body of the action has no `run`".to_owned());
        assert_eq!(wrong("stop", json!({})), missing);
        assert_eq!(wrong("stop", json!({ "run": null })), missing);
        let unknown = Err("the action has no field `agnet`; it has run, agent, dry_run".to_owned());
        assert_eq!(wrong("retry", json!({ "run": "r", "agnet": "main" })), unknown);
        let number = Err("`dry_run` has to be of the type boolean".to_owned());
        assert_eq!(wrong("retry", json!({ "run": "r", "dry_run": 1 })), number);
        assert_eq!(
            wrong("none", json!(1)),
            Ok(()),
            "the commands say that there is no such action"
        );
    }
}

#[cfg(test)]
mod openapi_tests {
    use std::collections::BTreeSet;

    use hyper::Method;
    use serde_json::Value;

    use super::*;
    use crate::serve::routes::PageRoute;

    /// Returns an example of the path of each route; the compiler asks for a further one.
    fn path_of(route: &PageRoute) -> &'static str {
        match route {
            PageRoute::Page => "/",
            PageRoute::Asset(_) => "/assets/app.js",
            PageRoute::OpenApi => "/api/openapi.json",
            PageRoute::Runs => "/api/runs",
            PageRoute::Document(query) => match query {
                CommandQuery::Runs { .. } => "/api/runs",
                CommandQuery::Questions => "/api/questions",
                CommandQuery::Workflows => "/api/workflows",
                CommandQuery::Run(_) => "/api/runs/{run}",
                CommandQuery::Costs(_) => "/api/runs/{run}/costs",
                CommandQuery::Graph(_) => "/api/runs/{run}/graph",
                CommandQuery::Agent(..) => "/api/runs/{run}/agents/{agent}",
                CommandQuery::AgentDiff(..) => "/api/runs/{run}/agents/{agent}/diff",
            },
            PageRoute::Feed(subject) => match subject {
                FeedSubject::Runs => "/api/events",
                FeedSubject::Run(_) => "/api/runs/{run}/events",
                FeedSubject::Agent(..) => "/api/runs/{run}/agents/{agent}/events",
            },
            PageRoute::Agents(_) => "/api/runs/{run}/agents",
            PageRoute::CostTimes(_) => "/api/runs/{run}/cost-times",
            PageRoute::Log(_) => "/api/runs/{run}/log",
            PageRoute::Timeline(_) => "/api/runs/{run}/timeline",
            PageRoute::Turn(..) => "/api/runs/{run}/agents/{agent}/turns/{step}/{turn}",
            PageRoute::Action(_) => "/api/actions/answer",
        }
    }

    #[test]
    fn every_described_path_is_a_separate_route() {
        let document: Value = serde_json::from_str(DOCUMENT).expect("JSON");
        let mut routes = BTreeSet::new();
        for (path, operations) in document["paths"].as_object().expect("paths") {
            for method in operations.as_object().expect("operations").keys() {
                let method: Method = method.to_uppercase().parse().expect("a method");
                let real = path.replace("{run}", "t").replace("{agent}", "main");
                let real = real.replace("{step}", "1").replace("{turn}", "0");
                let route = PageRoute::of(&method, &real).expect(path);
                assert!(route.is_guarded(), "{path}");
                match &route {
                    PageRoute::Action(name) => assert!(path.ends_with(name.as_str()), "{path}"),
                    route => assert_eq!(path_of(route), path),
                }
                routes.insert(path.clone());
            }
        }
        // Each variant but the page, its files and the actions, which are ten.
        assert_eq!(routes.len(), 17 + 10);
    }
}
