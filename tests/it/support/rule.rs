//! Builds the rules of `script.json` in tests; `tests/fakes/script.rs` says what each key does.

use serde_json::{Map, Value, json};

/// One rule of the stand-in's script: the first that matches a prompt is played.
#[derive(Debug, Clone, Default)]
pub(crate) struct FakeRule(Map<String, Value>);

/// Begins a rule for prompts that contain this text.
pub(crate) fn when(part: &str) -> FakeRule {
    always().set("when", part)
}

/// Begins a rule for all prompts.
pub(crate) fn always() -> FakeRule {
    FakeRule::default()
}

impl FakeRule {
    fn set(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.0.insert(key.to_owned(), value.into());
        self
    }

    pub(crate) fn json(&self) -> Value {
        Value::Object(self.0.clone())
    }

    /// Limits the rule to this agent.
    pub(crate) fn agent(self, name: &str) -> Self {
        self.set("agent", name)
    }

    /// Limits the rule to so many uses over all processes; then the next rule that matches is used.
    pub(crate) fn times(self, times: u32) -> Self {
        self.set("times", times)
    }

    pub(crate) fn once(self) -> Self {
        self.times(1)
    }

    pub(crate) fn reply(self, text: &str) -> Self {
        self.set("reply", text)
    }

    /// Sets the cost of the turn, in US dollars.
    pub(crate) fn cost(self, usd: f64) -> Self {
        self.set("cost", usd)
    }

    /// Adds the usage of a model: its tokens of input, output, cache reads and cache writes, and its part of
    /// the cost. By default the model of the turn has a plausible usage.
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

    /// Announces so many throttled requests before the answer, and before it is held.
    pub(crate) fn retries(self, number: u32) -> Self {
        self.set("retries", number)
    }

    /// Sets the delay that each of those announces; the stand-in does not wait for it.
    pub(crate) fn retry_delay_ms(self, delay: u64) -> Self {
        self.set("retry_delay_ms", delay)
    }

    /// Uses the tool of this name before the answer.
    pub(crate) fn tool(self, name: &str) -> Self {
        self.set("tool", name)
    }

    /// Refuses a call of a tool with this input first, for this reason; may be repeated.
    pub(crate) fn refused(mut self, tool: &str, input: &Value, why: &str) -> Self {
        let call = json!({ "tool": tool, "input": input, "why": why });
        if let Value::Array(calls) = self.0.entry("refused").or_insert_with(|| json!([])) {
            calls.push(call);
        }
        self
    }

    /// Calls a tool that needs approval; Claude Code suggests the rules with these contents. May be repeated.
    pub(crate) fn asked(mut self, tool: &str, input: &Value, rules: &[&str]) -> Self {
        let call = json!({ "tool": tool, "input": input, "rules": rules });
        if let Value::Array(calls) = self.0.entry("asked").or_insert_with(|| json!([])) {
            calls.push(call);
        }
        self
    }

    /// Holds the tool that was asked last until [`super::Test::release`] names this file.
    pub(crate) fn hold_asked(mut self, file: &str) -> Self {
        let calls = self.0.get_mut("asked").and_then(Value::as_array_mut);
        if let Some(call) = calls.and_then(|calls| calls.last_mut()) {
            call["hold"] = file.into();
        }
        self
    }

    /// Announces the refusals as they happen, too, as newer versions of the program do.
    pub(crate) fn told_at_once(mut self) -> Self {
        let calls = self.0.get_mut("refused").and_then(Value::as_array_mut);
        for call in calls.into_iter().flatten() {
            call["live"] = true.into();
        }
        self
    }

    /// Holds the tool until [`super::Test::release`] names this file.
    pub(crate) fn hold_tool(self, file: &str) -> Self {
        self.set("hold_tool", file)
    }

    /// Holds the answer until [`super::Test::release`] names this file.
    pub(crate) fn hold_before(self, file: &str) -> Self {
        self.set("hold_before", file)
    }

    /// Holds the turn after its result until [`super::Test::release`] names this file.
    pub(crate) fn hold_after(self, file: &str) -> Self {
        self.set("hold_after", file)
    }

    /// Ends the turn with this exit code, without a result.
    pub(crate) fn exit(self, code: u8) -> Self {
        self.set("exit", code)
    }

    /// Ends the turn with this signal, without a result.
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

    /// Keeps the process after the result until it is killed.
    pub(crate) fn linger(self) -> Self {
        self.set("linger", true)
    }

    /// Leaves a process behind that holds stdout open.
    pub(crate) fn helper(self) -> Self {
        self.set("helper", true)
    }

    /// Leaves a process behind in a session of its own whose parent is gone, so that no process group of the
    /// turn contains it.
    pub(crate) fn detach(self) -> Self {
        self.set("detach", true)
    }

    /// Leaves such a process behind with an empty environment and none of the turn's open files.
    pub(crate) fn hide(self) -> Self {
        self.set("hide", true)
    }

    /// Runs a script in a shell first.
    pub(crate) fn runs(self, script: &str) -> Self {
        self.set("run", script)
    }

    /// Adds a further turn after the result with this reply, which raymond did not ask for.
    pub(crate) fn unsolicited(self, reply: &str) -> Self {
        self.set("unsolicited", reply)
    }

    /// Exits with 1 after the result, and after it was held there.
    pub(crate) fn die_idle(self) -> Self {
        self.set("die_idle", true)
    }

    /// Makes the process and its helper ignore SIGTERM.
    pub(crate) fn ignore_term(self) -> Self {
        self.set("ignore_term", true)
    }

    /// Makes the assistant's line at least so many bytes long.
    pub(crate) fn pad(self, bytes: usize) -> Self {
        self.set("pad", bytes)
    }

    /// Puts bytes that are not UTF-8 into the line of this type.
    pub(crate) fn non_utf8(self, kind: &str) -> Self {
        self.set("non_utf8", kind)
    }

    /// Prints these lines in place of the answer.
    pub(crate) fn lines(self, lines: impl IntoIterator<Item = Value>) -> Self {
        self.set("lines", lines.into_iter().collect::<Vec<_>>())
    }

    /// Ends the turn with a result that has `is_error`.
    pub(crate) fn error(self, status: impl Into<Option<u16>>, text: &str) -> Self {
        let status: Option<u16> = status.into();
        self.set("error", json!({"status": status, "text": text}))
    }

    /// Reports the account's usage limit with its text and an event with its end, in seconds or milliseconds.
    pub(crate) fn limit(self, resets: u64, text: &str) -> Self {
        self.set("limit", json!({"resets": resets, "text": text, "event": true}))
    }

    /// Reports the account's usage limit with its text alone.
    pub(crate) fn limit_text(self, text: &str) -> Self {
        self.set("limit", json!({"text": text}))
    }

    /// Ends the turn as for a user who never logged in.
    pub(crate) fn not_logged_in(self) -> Self {
        self.error(None, "Not logged in · Please run /login")
    }
}
