//! The addresses of the page and of its data: from a method and a path to what is asked. Pure.
//!
//! Names in a path are parsed as what they name, so no path leads out of the runs.
//!
//! The files of the page, which are within the program. They are written by hand: nothing builds them.

use hyper::Method;

use crate::domain::id::{AgentId, RunId};
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
    /// The runs.
    Runs,
    /// The stream of the runs.
    RunsFeed,
    /// The open questions of all runs.
    Questions,
    /// The workflows that can be started.
    Workflows,
    /// One run.
    Run(RunId),
    /// The stream of a run.
    RunFeed(RunId),
    /// The agents of a run.
    Agents(RunId),
    /// The costs of a run.
    Costs(RunId),
    /// The costs of a run over time.
    CostTimes(RunId),
    /// The records of a run.
    Log(RunId),
    /// The picture of a run's workflow.
    Graph(RunId),
    /// The turns of a run over time.
    Timeline(RunId),
    /// One agent.
    Agent(RunId, AgentId),
    /// The stream of an agent's conversation.
    AgentFeed(RunId, AgentId),
    /// The changes in the worktree of an agent.
    AgentDiff(RunId, AgentId),
    /// The conversation of a turn.
    Turn(RunId, TurnId),
    /// An action.
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
            ["runs", run, "agents", agent] => names(run, agent).map(|_| Self::Page),
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
            ["events"] => Self::RunsFeed,
            ["questions"] => Self::Questions,
            ["workflows"] => Self::Workflows,
            ["actions", name] => Self::Action(action_name(name)?),
            ["runs", run, rest @ ..] => Self::of_run(RunId::parse(run).ok()?, rest)?,
            _ => return None,
        })
    }

    fn of_run(run: RunId, parts: &[&str]) -> Option<Self> {
        Some(match parts {
            [] => Self::Run(run),
            ["events"] => Self::RunFeed(run),
            ["agents"] => Self::Agents(run),
            ["costs"] => Self::Costs(run),
            ["cost-times"] => Self::CostTimes(run),
            ["log"] => Self::Log(run),
            ["graph"] => Self::Graph(run),
            ["timeline"] => Self::Timeline(run),
            ["agents", agent, rest @ ..] => Self::of_agent(run, AgentId::parse(agent).ok()?, rest)?,
            _ => return None,
        })
    }

    fn of_agent(run: RunId, agent: AgentId, parts: &[&str]) -> Option<Self> {
        Some(match parts {
            [] => Self::Agent(run, agent),
            ["events"] => Self::AgentFeed(run, agent),
            ["diff"] => Self::AgentDiff(run, agent),
            ["turns", step, turn] => {
                let (step, turn) = (step.parse().ok()?, turn.parse().ok()?);
                Self::Turn(run, TurnId { agent, step, turn })
            }
            _ => return None,
        })
    }

    /// Returns whether only who has a key may ask for it. The page itself holds nothing secret, and a browser that comes from
    /// another site's link sends its cookie only with what the page asks for then.
    pub fn is_guarded(&self) -> bool {
        !matches!(self, Self::Page | Self::Asset(_))
    }
}

fn names(run: &str, agent: &str) -> Option<(RunId, AgentId)> {
    Some((RunId::parse(run).ok()?, AgentId::parse(agent).ok()?))
}

fn action_name(name: &str) -> Option<String> {
    let is_plain = |c: char| c.is_ascii_lowercase() || c == '-';
    (!name.is_empty() && name.chars().all(is_plain)).then(|| name.to_owned())
}

/// Returns the value of a parameter of a query. Only names and numbers are asked for in queries, and texts of filters.
pub fn parameter(query: Option<&str>, name: &str) -> Option<String> {
    let pairs = query?.split('&').filter_map(|pair| pair.split_once('='));
    pairs.into_iter().find(|(one, _)| *one == name).and_then(|(_, value)| decoded(value))
}

/// Returns a percent-decoded text, or `None` if the result is not a text.
fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'+' => b' ',
            b'%' => {
                let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
                let (high, low) = (digit(rest.next())?, digit(rest.next())?);
                u8::try_from(high * 16 + low).ok()?
            }
            byte => byte,
        });
    }
    String::from_utf8(bytes).ok()
}

/// A file of the page.
#[derive(Debug, PartialEq, Eq)]
pub struct PageAsset {
    /// The name.
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
        assert_eq!(get("/api/runs/t"), Ok(PageRoute::Run(run.clone())));
        assert_eq!(get("/api/runs/t/events"), Ok(PageRoute::RunFeed(run.clone())));
        let own = PageRoute::Agent(run.clone(), agent);
        assert_eq!(get("/api/runs/t/agents/main.1"), Ok(own));
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
        let query = Some("a=1&text=x%20%C3%BC+y&bad=%zz");
        assert_eq!(parameter(query, "text").as_deref(), Some("x ü y"));
        assert_eq!(parameter(query, "bad"), None);
        assert_eq!(parameter(query, "none"), None);
        assert_eq!(parameter(None, "a"), None);
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
    fn page_has_no_script_of_its_own_and_loads_only_its_files() {
        let page = PAGE.text;
        assert!(!page.contains("style=") && !page.contains("<style") && !page.contains(" on"));
        for part in page.split("src=\"").chain(page.split("href=\"")).skip(1) {
            let path = part.split('"').next().unwrap_or_default();
            let is_own =
                path.strip_prefix("/assets/").is_some_and(|name| PageAsset::named(name).is_some());
            assert!(
                is_own
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
