//! What Claude Code printed in one turn, taken out of its stream as a JSON array.
//!
//! A process that stays writes all its turns into one stream; where a further one begins stands in a
//! file of its own, and each ends with its result. A process that was given its prompt as a file had
//! one turn only, and all it printed is of that turn.

use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Seek, SeekFrom, Write};
use std::path::Path;

use serde_json::{Value, json};

use crate::domain::money::Usd;
use crate::domain::passage::{Expected, Passage};

/// A turn's part of a stream.
struct Part {
    stream: BufReader<File>,
    /// What its end is known by; absent, if it ends with the stream.
    expected: Option<Expected>,
}

/// Writes what was printed in the turn of that name, a line at a time. A turn without a stream, as a
/// script's is, gets its cost.
///
/// # Errors
/// What the system said.
pub fn copy_turn(steps: &Path, name: &str, cost: Usd, out: File) -> io::Result<()> {
    let mut array = Array { out: BufWriter::new(out), separator: "[\n" };
    match Part::find(steps, name) {
        None => array.push(&json!({ "type": "result", "total_cost_usd": cost }))?,
        Some(part) => part.copy(&mut array)?,
    }
    array.end()
}

impl Part {
    fn find(steps: &Path, name: &str) -> Option<Self> {
        let file = |name: &str, ending: &str| steps.join(format!("{name}.{ending}"));
        if let Ok(stream) = File::open(file(name, "jsonl")) {
            let alone = file(name, "prompt").exists();
            let expected = (!alone).then(Expected::default);
            return Some(Self { stream: BufReader::new(stream), expected });
        }
        let passage = std::fs::read(file(name, "turn")).ok()?;
        let passage: Passage = serde_json::from_slice(&passage).ok()?;
        let mut stream = File::open(file(&passage.process, "jsonl")).ok()?;
        stream.seek(SeekFrom::Start(passage.from)).ok()?;
        let expected = Some(Expected::answer_to(passage.message));
        Some(Self { stream: BufReader::new(stream), expected })
    }

    fn copy(mut self, array: &mut Array) -> io::Result<()> {
        for line in self.stream.split(b'\n') {
            let line = line?;
            let text = String::from_utf8_lossy(&line);
            if text.is_empty() {
                continue;
            }
            let value = serde_json::from_str(&text).unwrap_or_else(|_| json!(text));
            array.push(&value)?;
            if self.expected.as_mut().is_some_and(|expected| ends(expected, &value)) {
                break;
            }
        }
        Ok(())
    }
}

/// Whether a line is the last of the turn.
fn ends(expected: &mut Expected, line: &Value) -> bool {
    match line["type"].as_str() {
        Some("user") => {
            expected.repeated(line["uuid"].as_str().unwrap_or_default());
            false
        }
        Some("result") => expected.is_ended_by(line["origin"]["kind"].as_str()),
        _ => false,
    }
}

/// A JSON array that is written as it comes.
struct Array {
    out: BufWriter<File>,
    separator: &'static str,
}

impl Array {
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
    use crate::domain::usage::Spent;

    fn extracted(steps: &Path, name: &str) -> Value {
        let out = steps.join("out.json");
        copy_turn(steps, name, Usd::ZERO, File::create(&out).expect("a file")).expect("copied");
        serde_json::from_slice(&std::fs::read(out).expect("there")).expect("JSON")
    }

    #[test]
    fn each_turn_of_a_process_has_its_own_lines() {
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
        let passage = Passage {
            process: "main-1-0".to_owned(),
            from: first.len() as u64,
            spent: Spent::default(),
            message: MessageId::new("m"),
        };
        write("main-2-0.turn", &serde_json::to_string(&passage).expect("written"));

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
