//! The protocol of plug-ins as JSON Schema, and the output of a turn as a JSON array.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Value, json};

use crate::domain::consult::Consultation;
use crate::domain::event::Record;
use crate::domain::money::Usd;
use crate::domain::protocol::{ConsultAnswer, HostMessage, PluginMessage, VERSION};
use crate::process::claude::turn_transcript::TurnTranscript;

// The protocol of plug-ins as JSON Schema, made from the types themselves.

/// A part of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProtocolPart {
    /// Each line, in both directions.
    All,
    /// A message to a plug-in.
    HostMessage,
    /// A message of a plug-in.
    PluginMessage,
    /// A record, as plug-ins and readers of `--json` see it.
    Record,
    /// A consultation.
    Consult,
    /// The answer to a consultation.
    Verdict,
}

/// Returns the JSON Schema of a part.
pub fn schema(part: ProtocolPart) -> Value {
    match part {
        ProtocolPart::All => {
            let lines = |generator: &mut SchemaGenerator| {
                json!({"anyOf": [
                    generator.subschema_for::<HostMessage<'static>>(),
                    generator.subschema_for::<PluginMessage>(),
                ]})
            };
            document("all", "a line to a plug-in, or of one", lines)
        }
        ProtocolPart::HostMessage => {
            only::<HostMessage<'static>>("host-message", "a line to a plug-in")
        }
        ProtocolPart::PluginMessage => {
            only::<PluginMessage>("plugin-message", "a line of a plug-in")
        }
        ProtocolPart::Record => only::<Record>("record", "a record"),
        ProtocolPart::Consult => only::<Consultation>("consult", "a question"),
        ProtocolPart::Verdict => only::<ConsultAnswer>("verdict", "an answer"),
    }
}

fn only<T: JsonSchema>(name: &str, title: &str) -> Value {
    document(name, title, |generator| {
        let reference = generator.subschema_for::<T>();
        json!({ "allOf": [reference] })
    })
}

fn document(name: &str, title: &str, of: impl FnOnce(&mut SchemaGenerator) -> Value) -> Value {
    let mut generator = SchemaGenerator::default();
    let mut document = of(&mut generator);
    document["$schema"] = json!("https://json-schema.org/draft/2020-12/schema");
    document["$id"] = json!(format!("urn:raymond:plugin:v{VERSION}:{name}"));
    document["title"] = json!(format!("raymond's plug-in protocol, version {VERSION}: {title}"));
    document["$defs"] = Value::Object(generator.take_definitions(true));
    document
}

// The output of Claude Code in one turn, taken out of its stream as a JSON array.

/// Writes the output of the turn of that name, a line at a time. A turn without a stream, like a script's, gets
/// its cost.
///
/// # Errors
/// The error of the system.
pub fn write_turn_json(steps: &Path, name: &str, cost: Usd, out: File) -> io::Result<()> {
    let mut array = JsonArrayWriter { out: BufWriter::new(out), separator: "[\n" };
    match TurnTranscript::find(steps, name) {
        None => array.push(&json!({ "type": "result", "total_cost_usd": cost }))?,
        // A line that is not JSON becomes a string.
        Some(transcript) => transcript.for_each_line(|line| {
            array.push(&serde_json::from_str(line).unwrap_or_else(|_| json!(line)))
        })?,
    }
    array.end()
}

/// A JSON array that is written as it comes.
struct JsonArrayWriter {
    out: BufWriter<File>,
    separator: &'static str,
}

impl JsonArrayWriter {
    fn push(&mut self, value: &Value) -> io::Result<()> {
        let text = serde_json::to_string_pretty(value).unwrap_or_default();
        let indented: Vec<String> = text.lines().map(|line| format!("  {line}")).collect();
        write!(self.out, "{}{}", self.separator, indented.join("\n"))?;
        self.separator = ",\n";
        Ok(())
    }

    fn end(mut self) -> io::Result<()> {
        let open = if self.separator == "[\n" { "[" } else { "" };
        writeln!(self.out, "{open}\n]")?;
        self.out.flush()
    }
}

#[cfg(test)]
mod extract_tests {
    use super::*;
    use crate::domain::id::MessageId;
    use crate::domain::turn::TurnOffset;
    use crate::domain::usage::ProcessSpending;

    fn extracted(steps: &Path, name: &str) -> Value {
        let out = steps.join("out.json");
        write_turn_json(steps, name, Usd::ZERO, File::create(&out).expect("a file"))
            .expect("copied");
        serde_json::from_slice(&std::fs::read(out).expect("there")).expect("JSON")
    }

    #[test]
    fn extract_returns_only_lines_of_its_turn() {
        let steps = tempfile::tempdir().expect("a directory");
        let write = |name: &str, text: &str| {
            std::fs::write(steps.path().join(name), text).expect("written");
        };
        let first = "{\"type\":\"system\"}\n{\"type\":\"result\",\"result\":\"one\"}\n";
        let unasked =
            "{\"type\":\"result\",\"result\":\"?\",\"origin\":{\"kind\":\"task-notification\"}}\n";
        let second =
            "{\"type\":\"user\",\"uuid\":\"m\"}\n{\"type\":\"result\",\"result\":\"two\"}\n";
        write("main-1-0.jsonl", &format!("{first}{unasked}{second}{{\"type\":\"later\"}}\n"));
        let turn_offset = TurnOffset {
            process: "main-1-0".to_owned(),
            from: first.len() as u64,
            spent: ProcessSpending::default(),
            message: MessageId::new("m"),
        };
        write("main-2-0.turn", &serde_json::to_string(&turn_offset).expect("written"));

        let texts = |value: Value| -> Vec<Value> {
            value.as_array().expect("an array").iter().map(|line| line["result"].clone()).collect()
        };
        assert_eq!(texts(extracted(steps.path(), "main-1-0")), [Value::Null, json!("one")]);
        assert_eq!(
            texts(extracted(steps.path(), "main-2-0")),
            [json!("?"), Value::Null, json!("two")]
        );
        write("main-1-0.prompt", "one turn only");
        assert_eq!(texts(extracted(steps.path(), "main-1-0")).len(), 6);
        assert_eq!(extracted(steps.path(), "main-9-0")[0]["total_cost_usd"], 0.0);
    }
}
