//! The tool calls of a turn that need approval, and those that were refused. Pure.
//!
//! A call counts as answered once the answer was written to the program, or once the program repeats it. A call that
//! the program gave up, or ran without an answer, no longer needs an answer. When a turn is over, the calls that were
//! refused only because nobody answered are left.

use std::collections::VecDeque;

use raymond_model::approval::ApprovalRequest;
use raymond_model::refusal::{NAMED_PER_TURN, ToolRefusal, ToolRefusals};
use serde_json::Value;
use serde_json::value::RawValue;

/// The calls of a turn that need approval.
#[derive(Debug, Default)]
pub struct ApprovalCalls {
    /// True if the program was given rules that hold to its end.
    pub has_given_rules: bool,
    calls: Vec<AskedCall>,
    /// True once the turn is being ended from outside: what the program says then is a consequence of that.
    is_cut_off: bool,
}

/// A call that needs approval.
#[derive(Debug)]
pub(crate) struct AskedCall {
    /// The id of the program's request.
    pub(crate) id: String,
    pub(crate) request: ApprovalRequest,
    /// The whole input, which goes back with the answer.
    pub(crate) input: Box<RawValue>,
    status: CallStatus,
}

/// The status of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CallStatus {
    /// Nobody knows of it yet.
    New,
    /// A person is asked, and the question is stored.
    Held,
    /// It has its answer, or no longer needs one.
    Settled,
}

impl ApprovalCalls {
    /// Returns the calls that were asked, in their order, without the first of them.
    pub fn asked_since(&self, count: usize) -> impl Iterator<Item = &ApprovalRequest> {
        self.calls.iter().skip(count).map(|call| &call.request)
    }

    /// Returns whether a person is asked about a call.
    pub fn are_held(&self) -> bool {
        self.calls.iter().any(|call| call.status == CallStatus::Held)
    }

    /// Returns the ids of the calls that have no answer, and so have not run.
    pub fn unanswered(&self) -> Vec<String> {
        let unanswered = self.calls.iter().filter(|call| call.is_unanswered());
        unanswered.map(|call| call.request.call.clone()).collect()
    }

    /// Returns whether a call has no answer.
    pub fn is_unanswered(&self, id: &str) -> bool {
        self.calls.iter().any(|call| call.request.call == id && call.is_unanswered())
    }

    /// Notes that a person is asked about a call.
    pub fn hold(&mut self, call: &str) {
        self.set(call, CallStatus::Held);
    }

    /// Notes that the answer to a call was written.
    pub fn answered(&mut self, call: &str) {
        self.set(call, CallStatus::Settled);
    }

    /// Returns a call that waits for an answer.
    pub(crate) fn waiting(&self, id: &str) -> Option<&AskedCall> {
        let mut unanswered = self.calls.iter().filter(|asked| asked.is_unanswered());
        unanswered.find(|asked| asked.request.call == id)
    }

    /// Notes that the program asks about a call. A repeated question changes nothing.
    pub(crate) fn asked(&mut self, id: String, request: ApprovalRequest, input: Box<RawValue>) {
        if !self.calls.iter().any(|known| known.request.call == request.call) {
            self.calls.push(AskedCall { id, request, input, status: CallStatus::New });
        }
    }

    /// Notes that the program gives one of its requests up.
    pub(crate) fn given_up(&mut self, request: &str) {
        if !self.is_cut_off {
            self.settle(|call| call.id == request);
        }
    }

    /// Notes that the program repeats the answer to one of its requests.
    pub(crate) fn repeated(&mut self, request: &str) {
        self.settle(|call| call.id == request);
    }

    /// Notes the end of the turn, with the calls that were refused in it.
    pub(crate) fn turn_ends(&mut self, refused: &[String]) {
        if !self.is_cut_off {
            self.settle(|call| !refused.contains(&call.request.call));
        }
    }

    /// Notes that the turn is being ended from outside.
    pub(crate) fn cut_off(&mut self) {
        self.is_cut_off = true;
    }

    /// Notes that a call has run.
    pub(crate) fn has_run(&mut self, id: &str) {
        self.set(id, CallStatus::Settled);
    }

    fn settle(&mut self, is_settled: impl Fn(&AskedCall) -> bool) {
        for call in self.calls.iter_mut().filter(|call| is_settled(call)) {
            call.status = CallStatus::Settled;
        }
    }

    /// Sets the status of a call that has no answer.
    fn set(&mut self, id: &str, status: CallStatus) {
        let unanswered = self.calls.iter_mut().filter(|call| call.is_unanswered());
        for call in unanswered.filter(|call| call.request.call == id) {
            call.status = status;
        }
    }
}

impl AskedCall {
    fn is_unanswered(&self) -> bool {
        self.status != CallStatus::Settled
    }
}

// The tools that were refused in a turn. A turn can have several results, and each call counts once, by its id.

/// The number of calls whose inputs and answers are remembered, and whose repetition is noticed.
const MAX_CALLS: usize = 256;

/// The number of bytes that are kept of an answer or of a text of an input.
const MAX_TEXT_BYTES: usize = 2000;

/// The refused tools of a turn, as far as its stream has been read.
#[derive(Debug, Default)]
pub struct RefusedTools {
    /// The calls that have been seen, with what is needed to describe a refusal.
    calls: VecDeque<SeenCall>,
    /// The refused calls that are certain.
    certain: ToolRefusals,
    /// The last refusal that was seen as it happened.
    latest: Option<ToolRefusal>,
    /// The number of refusals that were seen as they happened.
    seen: u32,
    has_result: bool,
}

/// A call that was seen.
#[derive(Debug, Default)]
struct SeenCall {
    id: String,
    tool: String,
    input: Value,
    why: String,
    status: RefusalStatus,
}

/// The certainty of a call's refusal.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum RefusalStatus {
    #[default]
    Open,
    /// Its answer reads like a refusal.
    Presumed,
    /// The program said so.
    Refused,
}

/// A call that a program says it has refused.
#[derive(Debug)]
pub(crate) struct RefusedCall {
    pub(crate) id: String,
    pub(crate) tool: String,
    pub(crate) input: Value,
}

impl RefusedTools {
    /// Returns the refused calls of the turn.
    pub fn refusals(&self) -> ToolRefusals {
        let mut refusals = self.certain.clone();
        let presumed = self.calls.iter().filter(|call| call.status == RefusalStatus::Presumed);
        for call in presumed.filter(|_| !self.has_result) {
            refusals.add(&call.refusal(), NAMED_PER_TURN);
        }
        refusals
    }

    /// Returns the number of refusals that were seen as they happened, and the last of them.
    pub fn latest(&self) -> Option<(u32, &ToolRefusal)> {
        self.latest.as_ref().map(|refusal| (self.seen, refusal))
    }

    /// Notes a tool's call.
    pub(crate) fn called(&mut self, id: String, tool: String, input: Value) {
        let call = self.call(id);
        call.tool = tool;
        call.input = shortened(input);
    }

    /// Notes that a tool failed with an answer. Older versions of a program only give the words of the answer; if they
    /// read like a refusal, it is `presumed` until a result names the refusals.
    pub(crate) fn failed(&mut self, id: String, answer: String, presumed: impl Fn(&str) -> bool) {
        let why = beginning(answer);
        let call = self.call(id);
        let is_news = call.status == RefusalStatus::Open && presumed(&why);
        if is_news {
            call.status = RefusalStatus::Presumed;
        }
        if call.why.is_empty() {
            call.why = why;
        }
        if is_news {
            let refusal = call.refusal();
            self.see(refusal);
        }
    }

    /// Notes a refusal that the program reports as it happens.
    pub(crate) fn denied(&mut self, id: String, tool: Option<String>, why: Option<String>) {
        let call = self.call(id);
        if call.status == RefusalStatus::Refused {
            return;
        }
        let was_seen =
            std::mem::replace(&mut call.status, RefusalStatus::Refused) != RefusalStatus::Open;
        call.tool = tool.unwrap_or_else(|| std::mem::take(&mut call.tool));
        call.why = why.map_or_else(|| std::mem::take(&mut call.why), beginning);
        let refusal = call.refusal();
        self.certain.add(&refusal, NAMED_PER_TURN);
        if !was_seen {
            self.see(refusal);
        }
    }

    /// Notes the refusals that a result names. All results of the turn count.
    pub(crate) fn turn_ends(&mut self, refused: impl IntoIterator<Item = RefusedCall>) {
        self.has_result = true;
        for RefusedCall { id, tool, input } in refused {
            let call = self.call(id);
            if std::mem::replace(&mut call.status, RefusalStatus::Refused) == RefusalStatus::Refused
            {
                continue;
            }
            call.tool = tool;
            call.input = input;
            let refusal = call.refusal();
            call.input = Value::Null;
            self.certain.add(&refusal, NAMED_PER_TURN);
        }
    }

    fn see(&mut self, refusal: ToolRefusal) {
        self.latest = Some(refusal);
        self.seen = self.seen.saturating_add(1);
    }

    /// Returns the call of that id. An unknown call is added; if there are too many, the oldest is forgotten.
    fn call(&mut self, id: String) -> &mut SeenCall {
        let known = self.calls.iter().rposition(|call| call.id == id);
        let place = known.unwrap_or_else(|| {
            if self.calls.len() == MAX_CALLS {
                self.calls.pop_front();
            }
            self.calls.push_back(SeenCall { id, ..SeenCall::default() });
            self.calls.len() - 1
        });
        &mut self.calls[place]
    }
}

impl SeenCall {
    fn refusal(&self) -> ToolRefusal {
        ToolRefusal::new(&self.tool, &self.input, &self.why)
    }
}

/// Returns an input without texts that are too long to keep for every call, such as a file's contents.
fn shortened(mut input: Value) -> Value {
    for value in input.as_object_mut().into_iter().flat_map(|fields| fields.values_mut()) {
        let is_short = match value {
            Value::String(text) => text.len() <= MAX_TEXT_BYTES,
            Value::Array(_) | Value::Object(_) => false,
            Value::Null | Value::Bool(_) | Value::Number(_) => true,
        };
        if !is_short {
            *value = value.as_str().map(|text| beginning(text.to_owned())).into();
        }
    }
    input
}

fn beginning(mut text: String) -> String {
    text.truncate(text.floor_char_boundary(MAX_TEXT_BYTES));
    text
}
