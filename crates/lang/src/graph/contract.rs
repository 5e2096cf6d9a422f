//! The prompts that a graph sends to Claude Code, and the answers it accepts.
//!
//! The reply to a document or a skill ends with a result of a fixed form, so that the graph can use it;
//! the agent is reminded of the form after any other reply.

use serde::Deserialize;
use serde_json::{Map, Value};

use raymond_model::graph_execution::{OutputFormat, WaitResult};
use raymond_model::json_mistake::placed_mistake;

/// The instruction about the end of the reply to a document or a skill.
const ENDING: &str = r#"When you are done, end your final message with exactly one tag of this form, and nothing after it:

<result>{"status":"ok","outputs":{"name":"value"}}</result>

`outputs` is a JSON object with what you found or made: its entries become variables of the workflow. If you could not do it, say so:

<result>{"status":"error","error":"what went wrong","outputs":{}}</result>"#;

/// The instruction about the end of other replies.
const RESULT: &str = "When you are done, end your final message with your result between the tags <result> and </result>, and nothing after it.";

/// Returns the prompt for a document, or a section of it.
pub fn document(path: &str, section: Option<&str>, text: &str, context: &Value) -> String {
    let section = section.map(|section| format!(", section “{section}”")).unwrap_or_default();
    format!(
        "Carry out the following procedure ({path}{section}).\n\n<procedure>\n{}\n</procedure>\n{}",
        text.trim(),
        given(context)
    )
}

/// Returns a document for a section that no heading of it has the title of.
pub fn without_heading(text: &str, title: &str) -> String {
    format!(
        "(No heading here is “{title}”; carry out the part that is meant.)\n\n{}",
        text.trim_start()
    )
}

/// Returns the prompt for a skill.
pub fn skill(name: &str, arguments: Option<&str>, context: &Value) -> String {
    let arguments =
        arguments.map(|text| format!(" with the arguments: {text}")).unwrap_or_default();
    format!("Use the skill `{name}`{arguments}.\n{}", given(context))
}

/// Returns a prompt with the instruction about the end of its reply, unless a schema says that.
pub fn with_ending(prompt: &str, contract: OutputFormat) -> String {
    match contract {
        OutputFormat::Outputs => format!("{prompt}\n{ENDING}\n"),
        OutputFormat::Text => format!("{prompt}\n{RESULT}\n"),
        OutputFormat::Object | OutputFormat::Reply => prompt.to_owned(),
    }
}

/// Returns the prompt about a page.
pub fn page(prompt: &str, page: &Value) -> String {
    let content = page.get("content").and_then(Value::as_str).unwrap_or_default();
    let url = page.get("url").and_then(Value::as_str).unwrap_or_default();
    format!("{prompt}\n\nThe page {url}:\n\n<page>\n{content}\n</page>\n")
}

/// The largest state that the prompt about a described value has in it, in bytes.
const MAX_STATE_BYTES: usize = 64 * 1024;

/// Returns the prompt about a value that comments describe, in a graph with this state.
pub fn prose(description: &str, state: &Value) -> String {
    let lines = description.lines().map(|line| line.trim().trim_start_matches('#').trim_end());
    let lines: Vec<&str> = lines.map(|line| line.strip_prefix(' ').unwrap_or(line)).collect();
    let is_small = serde_json::to_string(state).is_ok_and(|text| text.len() <= MAX_STATE_BYTES);
    let context = if is_small { given(state) } else { String::new() };
    format!(
        "A workflow needs the value that this description yields. Find it out; change nothing for that.\n\n\
         <description>\n{}\n</description>\n{context}\nYour result is this value alone, as JSON.\n",
        lines.join("\n").trim()
    )
}

/// Returns the prompt of a further agent.
pub fn agent(kind: Option<&str>, prompt: &str) -> String {
    let kind = kind.filter(|kind| *kind != "general-purpose");
    let kind = kind.map(|kind| format!("You act as the `{kind}` agent.\n\n")).unwrap_or_default();
    format!("{kind}{}\n", prompt.trim())
}

fn given(context: &Value) -> String {
    match context {
        Value::Null => String::new(),
        Value::Object(map) if map.is_empty() => String::new(),
        context => format!(
            "\nIts context, as JSON:\n\n```json\n{}\n```\n",
            serde_json::to_string_pretty(context).unwrap_or_default()
        ),
    }
}

/// Reads the result of a turn.
///
/// # Errors
/// A description of the mistake, as a reminder for the agent.
pub fn read(contract: OutputFormat, payload: &str) -> Result<WaitResult, String> {
    match contract {
        OutputFormat::Text => Ok(WaitResult::Done(payload.trim().into())),
        OutputFormat::Reply => Ok(WaitResult::Done(payload.into())),
        OutputFormat::Outputs => outputs(payload),
        OutputFormat::Object => {
            serde_json::from_str(payload).map(WaitResult::Done).map_err(|error| {
                format!("the answer is not one JSON object: {}", placed_mistake(&error))
            })
        }
    }
}

fn outputs(payload: &str) -> Result<WaitResult, String> {
    #[derive(Deserialize)]
    struct Given {
        status: String,
        #[serde(default)]
        outputs: Map<String, Value>,
        #[serde(default)]
        error: Option<String>,
    }
    let shape = "the result has to be JSON of the form {\"status\":\"ok\",\"outputs\":{…}}";
    let text = payload.trim();
    let text = text.strip_prefix("```json").or(text.strip_prefix("```")).unwrap_or(text);
    let text = text.trim().trim_end_matches("```");
    let given: Given = serde_json::from_str(text)
        .map_err(|error| format!("{shape}; {}", placed_mistake(&error)))?;
    match given.status.as_str() {
        "ok" => Ok(WaitResult::Done(given.outputs.into())),
        "error" => Ok(WaitResult::Failed(given.error.unwrap_or_else(|| {
            match given.outputs.get("error").and_then(Value::as_str) {
                Some(error) => error.to_owned(),
                None => "it was not done, and it was not said why".to_owned(),
            }
        }))),
        other => Err(format!("{shape}, and `status` is ok or error, not `{other}`")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn outputs_reply_is_read_by_its_status() {
        let read = |text| read(OutputFormat::Outputs, text);
        let done = read("{\"status\":\"ok\",\"outputs\":{\"n\":1}}");
        assert_eq!(done, Ok(WaitResult::Done(json!({"n": 1}))));
        assert_eq!(read("```json\n{\"status\":\"ok\"}\n```"), Ok(WaitResult::Done(json!({}))));
        let failed = read("{\"status\":\"error\",\"error\":\"no network\"}");
        assert_eq!(failed, Ok(WaitResult::Failed("no network".into())));
        let wrong = read("done").expect_err("no JSON");
        assert!(wrong.starts_with("the result has to be JSON of the form"), "{wrong}");
        assert!(wrong.ends_with("; line 1, column 1: expected a JSON value: a quoted string, a number, true, false or null"), "{wrong}");
        assert!(read("{\"status\":\"fine\"}").expect_err("no status").contains("not `fine`"));
    }

    #[test]
    fn prompt_contains_text_context_and_output_format() {
        let prompt = document("git.md", Some("Clone"), "\nDo it.\n", &json!({"url": "u"}));
        for part in ["(git.md, section “Clone”)", "<procedure>\nDo it.\n", "\"url\": \"u\""] {
            assert!(prompt.contains(part), "{part} is missing in {prompt}");
        }
        assert!(!document("git.md", None, "x", &json!({})).contains("context"));
        assert!(agent(Some("general-purpose"), "x").starts_with("x\n"));
        assert!(with_ending("x", OutputFormat::Outputs).ends_with(&format!("x\n{ENDING}\n")));
        assert!(with_ending("x", OutputFormat::Text).contains("<result>"));
        assert_eq!(with_ending("x", OutputFormat::Object), "x", "the schema says it");
    }
}
