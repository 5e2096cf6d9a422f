//! The description of the page's addresses in `OpenAPI`, made from a table and from the types of the documents.
//!
//! The kept copy is `schema/openapi.json`, which the server hands out; a test compares it with this one.

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Map, Value, json};

use super::actions::ACTIONS;
use super::command_backend::{PageAgent, WorkflowsDocument, WorktreeDiff};
use super::run_documents::{RunQuestions, RunStateDocument, RunsPage};
use crate::domain::views::RunCosts;
use crate::language::drawing::svg::PlacedDrawing;
use crate::serve::agent_feed::{AgentsPage, ConversationPage};
use crate::serve::cost_times::CostTimes;
use crate::serve::log_page::LogPage;
use crate::serve::timeline::RunTimeline;

/// The beginning of the description.
const ABOUT: &str = "The addresses that the page of `raymond serve` uses. A browser sends the cookie that it got for the token; a program sends `Authorization: Bearer TOKEN`. The host of each request is the address of the server.";

/// An address from which a document or a stream can be read.
struct PageAddress {
    path: &'static str,
    summary: &'static str,
    /// The names of the parameters in the query.
    query: &'static [&'static str],
    reply: AddressReply,
}

/// The reply of an address.
enum AddressReply {
    /// A document of a type.
    Document(fn(&mut SchemaGenerator) -> Schema),
    /// A document that is refused in some states of the run.
    Refusable(fn(&mut SchemaGenerator) -> Schema),
    /// A stream, and the sentences about its events.
    Stream(&'static str),
}

/// Makes the table of the addresses: the path, the parameters in the query, the reply, and the sentence about it.
macro_rules! addresses {
    (@document $of:ty) => { AddressReply::Document(<$of>::json_schema) };
    (@refusable $of:ty) => { AddressReply::Refusable(<$of>::json_schema) };
    (@stream $events:literal) => { AddressReply::Stream($events) };
    ($($path:literal $query:tt $kind:ident ($($of:tt)*) $summary:literal;)*) => {
        [$(PageAddress {
            path: $path,
            summary: $summary,
            query: &$query,
            reply: addresses!(@$kind $($of)*),
        }),*]
    };
}

/// The addresses, but those of the actions.
const ADDRESSES: [PageAddress; 17] = addresses! {
    "openapi.json" [] document(OpenApiDocument)
        "This document";
    "runs" ["offset", "limit"] document(RunsPage)
        "The runs, the newest first: each as `raymond list --json` has it, with its open questions";
    "events" ["position"] stream("Events: `reset`, then `run` for each run and `whole`; later `run` for one that is new or has changed, `gone` with the id of one that was removed; `failure` with the reason why the runs cannot be read.")
        "The runs as they come, change and go";
    "questions" [] document(Vec<RunQuestions>)
        "The open questions of all runs: for each run as `raymond answer RUN --json`";
    "workflows" [] document(WorkflowsDocument)
        "The workflows that can be started, in trusted folders and of earlier runs, with the inputs that they declare";
    "runs/{run}" [] document(RunStateDocument)
        "A run as `raymond status RUN --json`, without its agents";
    "runs/{run}/events" ["position"] stream("The id of an event is SEQ.NUMBER.STREAM: the record of the journal up to which the reader has everything, and the place in this stream. A reader that comes back with it gets what it lacks; if that is no longer kept, `reset` and everything anew, but only the log lines after SEQ. Events: `run` (status, counts, costs), `agents` (rows that are new or different), `log` (lines of records), `log_gap` (the numbers of records that are to be asked for), `whole` (everything has been told), `unreadable`.")
        "A run as it lives";
    "runs/{run}/agents" ["after", "limit"] document(AgentsPage)
        "The agents, parents before their children";
    "runs/{run}/costs" [] document(RunCosts)
        "The costs as `raymond costs RUN --json`, with the 100 most expensive agents";
    "runs/{run}/cost-times" [] document(CostTimes)
        "The costs over time, by state and by model";
    "runs/{run}/log" ["before", "after", "agent", "text", "limit"] document(LogPage)
        "Records, each as `raymond log RUN --json` prints it, with its line: the last ones, or the first after `after`";
    "runs/{run}/graph" [] refusable(PlacedDrawing)
        "The picture of the workflow, from its files as they were when the run began, with the places of its parts";
    "runs/{run}/timeline" [] document(RunTimeline)
        "The turns that have ended: when each was due, began, was asked and ended, and how long the model took of it; the last 3000";
    "runs/{run}/agents/{agent}" [] document(PageAgent)
        "An agent as `raymond show RUN AGENT --json` without the texts of its turns; `now` has its variables, stack, session and directory if it lives";
    "runs/{run}/agents/{agent}/events" ["position"] stream("Events: `reset`, `turn` (step and turn), `entries` (from a place on), `writing` (what is written or done now), `whole`.")
        "The conversation of the last turn, as it is written";
    "runs/{run}/agents/{agent}/turns/{step}/{turn}" ["from"] document(ConversationPage)
        "The conversation of a turn, in pages of 50 entries";
    "runs/{run}/agents/{agent}/diff" [] refusable(WorktreeDiff)
        "The changes in the worktree of an agent against the commit that it began at";
};

/// The parameters: the name, the place, the meaning, the type, and the pattern if there is one.
const PARAMETERS: [[&str; 5]; 12] = [
    ["run", "path", "The id of the run", "string", "^[A-Za-z0-9_][A-Za-z0-9._-]{0,63}$"],
    ["agent", "path", "The id of the agent", "string", r"^main(\.[0-9]+)*$"],
    ["step", "path", "The number of the step, from 1", "integer", ""],
    ["turn", "path", "The number of the turn in the step, from 0", "integer", ""],
    ["offset", "query", "The number of runs that are left out", "integer", ""],
    ["limit", "query", "The most items, up to 500; 100 if it is left out", "integer", ""],
    ["position", "query", "The same, for a reader that has left its stream", "string", ""],
    [
        "after",
        "query",
        "Only agents after this one (an id), or records after this one (a number)",
        "string",
        "",
    ],
    ["before", "query", "Only records before this one", "integer", ""],
    ["agent", "query", "Only records of this agent", "string", ""],
    ["text", "query", "Only records whose line has this text", "string", ""],
    ["from", "query", "The number of entries that are left out", "integer", ""],
];

/// This description, as far as it describes itself.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "only its schema is used")]
struct OpenApiDocument {
    openapi: String,
    paths: Map<String, Value>,
}

/// An error.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "only its schema is used")]
struct Error {
    /// The reason, in a sentence
    error: String,
    /// The value in the body that is refused, such as `budget` or `inputs.NAME`, if it is one
    #[serde(skip_serializing_if = "Option::is_none")]
    field: Option<String>,
}

/// Returns the description, in version 3.1 of `OpenAPI`.
pub fn document() -> Value {
    let settings = SchemaSettings::draft2020_12()
        .with(|settings| settings.definitions_path = "/components/schemas".into())
        .for_serialize();
    let mut generator = settings.into_generator();
    let error = json!(generator.subschema_for::<Error>());
    let mut paths = Map::new();
    for PageAddress { path, summary, query, reply } in ADDRESSES {
        let mut get = json!({ "summary": summary });
        let mut parameters = parameters(path, query);
        let mut statuses = if query.is_empty() { vec![] } else { vec!["400"] };
        statuses.extend(["401", "403"]);
        statuses.extend(path.contains("{run}").then_some("404"));
        let (media, description, schema) = match reply {
            AddressReply::Document(schema) => {
                ("application/json", "The document", schema(&mut generator))
            }
            AddressReply::Refusable(schema) => {
                statuses.push("409");
                ("application/json", "The document", schema(&mut generator))
            }
            AddressReply::Stream(events) => {
                get["description"] = json!(events);
                statuses = vec!["400", "401", "403", "404", "503"];
                let last = "The id of the last event that came: the stream continues after it";
                parameters.push(parameter(["Last-Event-ID", "header", last, "string", ""]));
                let about = "Server-sent events; the data of each is JSON on one line";
                ("text/event-stream", about, String::json_schema(&mut generator))
            }
        };
        if !parameters.is_empty() {
            get["parameters"] = json!(parameters);
        }
        get["responses"] = responses(&statuses, &error, description, &content(media, &schema));
        paths.insert(format!("/api/{path}"), json!({ "get": get }));
    }
    let mut bodies = SchemaSettings::draft2020_12().into_generator();
    for action in ACTIONS {
        let body = content("application/json", &(action.body)(&mut bodies));
        let statuses = ["400", "401", "403", "404", "409", "413", "415"];
        let reply = content("application/json", &Map::<String, Value>::json_schema(&mut generator));
        let post = json!({
            "summary": action.summary,
            "requestBody": { "required": true, "content": body },
            "responses": responses(&statuses, &error, "What the command tells", &reply),
        });
        paths.insert(format!("/api/actions/{}", action.name), json!({ "post": post }));
    }
    json!({
        "openapi": "3.1.0",
        "info": { "title": "raymond serve", "version": "1", "description": ABOUT },
        "security": [{ "token": [] }, { "cookie": [] }],
        "paths": paths,
        "components": {
            "securitySchemes": {
                "token": { "type": "http", "scheme": "bearer" },
                "cookie": { "type": "apiKey", "in": "cookie", "name": "raymond-PORT" },
            },
            "schemas": generator.take_definitions(true),
        },
    })
}

/// Returns the parameters of a path and of its query.
fn parameters(path: &str, query: &[&str]) -> Vec<Value> {
    let has = |[name, place, ..]: &[&str; 5]| match *place {
        "path" => path.contains(&format!("{{{name}}}")),
        _ => query.contains(name),
    };
    PARAMETERS.into_iter().filter(has).map(parameter).collect()
}

fn parameter([name, place, description, kind, pattern]: [&str; 5]) -> Value {
    let mut schema = json!({ "type": kind });
    if !pattern.is_empty() {
        schema["pattern"] = json!(pattern);
    }
    let mut parameter =
        json!({ "name": name, "in": place, "description": description, "schema": schema });
    if place == "path" {
        parameter["required"] = json!(true);
    }
    parameter
}

fn content(media: &str, schema: &Schema) -> Value {
    json!({ media: { "schema": schema } })
}

/// Returns the responses: the success with the requested content, and the errors with these statuses.
fn responses(statuses: &[&str], error: &Value, description: &str, content: &Value) -> Value {
    let mut all = json!({ "200": { "description": description, "content": content } });
    for status in statuses {
        all[*status] = json!({
            "description": "The reason, in a sentence",
            "content": { "application/json": { "schema": error } },
        });
    }
    all
}
