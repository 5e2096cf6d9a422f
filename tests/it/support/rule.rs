//! The rules of `script.json`, written as a test reads best; `tests/fakes/script.rs` says what each
//! key does.

use serde_json::{Map, Value, json};

/// One rule of the stand-in's script: the first that matches a prompt is played.
#[derive(Debug, Clone, Default)]
pub(crate) struct Rule(Map<String, Value>);

/// A rule for prompts that contain this.
pub(crate) fn when(part: &str) -> Rule {
    always().set("when", part)
}

/// A rule for every prompt.
pub(crate) fn always() -> Rule {
    Rule::default()
}

impl Rule {
    fn set(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.0.insert(key.to_owned(), value.into());
        self
    }

    pub(crate) fn json(&self) -> Value {
        Value::Object(self.0.clone())
    }

    /// Only for this agent.
    pub(crate) fn agent(self, name: &str) -> Self {
        self.set("agent", name)
    }

    /// So many uses over all processes; then the next rule that matches.
    pub(crate) fn times(self, times: u32) -> Self {
        self.set("times", times)
    }

    pub(crate) fn once(self) -> Self {
        self.times(1)
    }

    pub(crate) fn reply(self, text: &str) -> Self {
        self.set("reply", text)
    }

    /// US dollars.
    pub(crate) fn cost(self, usd: f64) -> Self {
        self.set("cost", usd)
    }

    /// What the turn takes of a model, its part of the cost included: tokens it is given, writes, reads
    /// from a cache and puts into one. Without any, the model it was asked for has a plausible use.
    pub(crate) fn takes(mut self, model: &str, tokens: [u64; 4], dollars: f64) -> Self {
        let [input, output, cache_read, cache_write] = tokens;
        let taken = json!({
            "input": input, "output": output, "cache_read": cache_read,
            "cache_write": cache_write, "cost": dollars,
        });
        let models = self.0.entry("models").or_insert_with(|| json!({}));
        models[model] = taken;
        self
    }

    /// Tells of so many throttled requests before its answer, and before it holds.
    pub(crate) fn retries(self, number: u32) -> Self {
        self.set("retries", number)
    }

    /// What each of them announces; the stand-in does not wait for it.
    pub(crate) fn retry_delay_ms(self, delay: u64) -> Self {
        self.set("retry_delay_ms", delay)
    }

    /// Uses the tool of this name before it answers.
    pub(crate) fn tool(self, name: &str) -> Self {
        self.set("tool", name)
    }

    /// A call of a tool with this input is refused before all else, for this reason; several may be.
    pub(crate) fn refused(mut self, tool: &str, input: &Value, why: &str) -> Self {
        let call = json!({ "tool": tool, "input": input, "why": why });
        if let Value::Array(calls) = self.0.entry("refused").or_insert_with(|| json!([])) {
            calls.push(call);
        }
        self
    }

    /// The refusals are told as they happen, too, as newer versions of the program do.
    pub(crate) fn told_at_once(mut self) -> Self {
        let calls = self.0.get_mut("refused").and_then(Value::as_array_mut);
        for call in calls.into_iter().flatten() {
            call["live"] = true.into();
        }
        self
    }

    /// Its tool works until [`super::Test::release`] names this file.
    pub(crate) fn hold_tool(self, file: &str) -> Self {
        self.set("hold_tool", file)
    }

    /// Says nothing of its answer until [`super::Test::release`] names this file.
    pub(crate) fn hold_before(self, file: &str) -> Self {
        self.set("hold_before", file)
    }

    /// Stays after its result until [`super::Test::release`] names this file.
    pub(crate) fn hold_after(self, file: &str) -> Self {
        self.set("hold_after", file)
    }

    /// No result, but this exit code.
    pub(crate) fn exit(self, code: u8) -> Self {
        self.set("exit", code)
    }

    /// No result, but death by this signal.
    pub(crate) fn signal(self, number: i32) -> Self {
        self.set("signal", number)
    }

    pub(crate) fn stderr(self, text: &str) -> Self {
        self.set("stderr", text)
    }

    pub(crate) fn silent(self) -> Self {
        self.set("silent", true)
    }

    pub(crate) fn garbage(self) -> Self {
        self.set("garbage", true)
    }

    pub(crate) fn hang(self) -> Self {
        self.set("hang", true)
    }

    /// Stays after the result until killed.
    pub(crate) fn linger(self) -> Self {
        self.set("linger", true)
    }

    /// Leaves a process behind that holds stdout open.
    pub(crate) fn helper(self) -> Self {
        self.set("helper", true)
    }

    /// The same in a session of its own, its parent gone: no group of the turn's has it.
    pub(crate) fn detach(self) -> Self {
        self.set("detach", true)
    }

    /// The same with nothing in its environment and nothing of the turn's open.
    pub(crate) fn hide(self) -> Self {
        self.set("hide", true)
    }

    /// Runs a script in a shell before all else.
    pub(crate) fn runs(self, script: &str) -> Self {
        self.set("run", script)
    }

    /// After the result, a further turn with this reply that nobody asked for.
    pub(crate) fn unsolicited(self, reply: &str) -> Self {
        self.set("unsolicited", reply)
    }

    /// Exits 1 after the result, and after it was held there.
    pub(crate) fn die_idle(self) -> Self {
        self.set("die_idle", true)
    }

    /// It and its helper ignore SIGTERM.
    pub(crate) fn ignore_term(self) -> Self {
        self.set("ignore_term", true)
    }

    /// The assistant's line is at least so many bytes long.
    pub(crate) fn pad(self, bytes: usize) -> Self {
        self.set("pad", bytes)
    }

    /// Bytes that are no UTF-8 in the line of this type.
    pub(crate) fn non_utf8(self, kind: &str) -> Self {
        self.set("non_utf8", kind)
    }

    /// A result with `is_error`.
    pub(crate) fn error(self, status: impl Into<Option<u16>>, text: &str) -> Self {
        let status: Option<u16> = status.into();
        self.set("error", json!({"status": status, "text": text}))
    }

    /// The account's usage limit: an event with the reset, in seconds or in milliseconds, and the
    /// text.
    pub(crate) fn limit(self, resets: u64, text: &str) -> Self {
        self.set("limit", json!({"resets": resets, "text": text, "event": true}))
    }

    /// The account's usage limit, told by the text alone.
    pub(crate) fn limit_text(self, text: &str) -> Self {
        self.set("limit", json!({"text": text}))
    }

    /// The result of a program whose user never logged in.
    pub(crate) fn not_logged_in(self) -> Self {
        self.error(None, "Not logged in · Please run /login")
    }
}
