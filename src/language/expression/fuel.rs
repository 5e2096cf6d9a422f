//! How much an evaluation may still do, so that no graph can hold up the process it runs in.
//!
//! Each part of an expression costs a step each time it is evaluated, and what is read through or made
//! costs by its size. So a text that doubles in a `reduce` ends after a few rounds, and a value that
//! goes into the journal can be read back from it.

use serde_json::Value;

use super::flaw::Error;

/// How deep lists and maps may lie in one another in a value that is made.
const DEEPEST: usize = 64;

/// How many bytes of a text cost a step.
const BYTES: usize = 64;

/// How much may still be computed, and how large one text or list may become.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fuel {
    /// Steps that are left.
    pub steps: u64,
    /// The most bytes in one text.
    pub text: usize,
    /// The most elements in one list.
    pub list: usize,
}

impl Default for Fuel {
    /// Five million steps, which take less than a second; a text of 1 MiB; a list of 100,000 elements.
    fn default() -> Self {
        Self { steps: 5_000_000, text: 1024 * 1024, list: 100_000 }
    }
}

impl Fuel {
    /// Takes some steps.
    pub(super) fn spend(&mut self, steps: usize) -> Result<(), Error> {
        let left = self.steps.checked_sub(steps as u64);
        self.steps = left.unwrap_or(0);
        let why = || Error::Evaluation("the expression takes too many steps".to_owned());
        left.map(|_| ()).ok_or_else(why)
    }

    /// Takes what it costs to go through a text.
    pub(super) fn read(&mut self, bytes: usize) -> Result<(), Error> {
        self.spend(1 + bytes / BYTES)
    }

    /// Takes what a text of so many bytes costs to make, unless it would be too long.
    pub(super) fn text(&mut self, bytes: usize) -> Result<(), Error> {
        self.fits(bytes)?;
        self.read(bytes)
    }

    /// Whether a text of so many bytes would be too long.
    pub(super) fn fits(&self, bytes: usize) -> Result<(), Error> {
        if bytes > self.text {
            return Err(Error::Evaluation(format!("the text is longer than {} bytes", self.text)));
        }
        Ok(())
    }

    /// Takes what it costs to find one match of a regular expression in so many bytes. A search that
    /// finds much may look at the same text many times, so what is left of the text counts a little.
    pub(super) fn search(&mut self, bytes: usize) -> Result<(), Error> {
        self.spend(1 + bytes / 4096)
    }

    /// Takes what a list of so many elements costs to make, unless it would be too long.
    pub(super) fn list(&mut self, elements: usize) -> Result<(), Error> {
        self.room(elements)?;
        self.spend(elements)
    }

    /// Whether a list of so many elements would be too long.
    pub(super) fn room(&self, elements: usize) -> Result<(), Error> {
        if elements > self.list {
            let most = self.list;
            return Err(Error::Evaluation(format!("the list has more than {most} elements")));
        }
        Ok(())
    }

    /// A copy of a value.
    pub(super) fn copy(&mut self, value: &Value) -> Result<Value, Error> {
        self.spend(weigh(value).cost)?;
        Ok(value.clone())
    }

    /// A list or map that was put together, unless it nests too deep.
    pub(super) fn made(&mut self, value: Value) -> Result<Value, Error> {
        let weight = weigh(&value);
        self.spend(weight.cost)?;
        if weight.depth > DEEPEST {
            let why = format!("the value nests more than {DEEPEST} lists and maps in one another");
            return Err(Error::Evaluation(why));
        }
        Ok(value)
    }
}

/// What a value costs to copy, and how deep it nests.
struct ValueSize {
    cost: usize,
    depth: usize,
}

fn weigh(value: &Value) -> ValueSize {
    let all = |values: &mut dyn Iterator<Item = &Value>| {
        values.map(weigh).fold(ValueSize { cost: 1, depth: 1 }, |sum, part| ValueSize {
            cost: sum.cost + part.cost,
            depth: sum.depth.max(part.depth + 1),
        })
    };
    match value {
        Value::String(text) => ValueSize { cost: 1 + text.len() / BYTES, depth: 0 },
        Value::Array(list) => all(&mut list.iter()),
        Value::Object(map) => all(&mut map.values()),
        _ => ValueSize { cost: 1, depth: 0 },
    }
}
