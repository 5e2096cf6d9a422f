//! The output of Claude Code in one turn, taken out of its stream as a JSON array.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use serde_json::{Value, json};

use crate::domain::money::Usd;
use crate::process::turn_transcript::TurnTranscript;

/// Writes the output of the turn of that name, a line at a time. A turn without a stream, like a script's, gets
/// its cost.
///
/// # Errors
/// The error of the system.
pub fn write_turn_json(steps: &Path, name: &str, cost: Usd, out: File) -> io::Result<()> {
    let mut array = JsonArrayWriter { out: BufWriter::new(out), separator: "[\n" };
    match TurnTranscript::find(steps, name) {
        None => array.push(&json!({ "type": "result", "total_cost_usd": cost }))?,
        // A line that is no JSON is a text.
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
mod tests {
    use super::*;
    use crate::domain::id::MessageId;
    use crate::domain::turn_offset::TurnOffset;
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
