//! Approvals of tool calls: the questions of Claude Code, the answers of people, and what an agent learns of both.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub use self::request::{ApprovalRequest, FileEdit, NO_RULE};
pub use crate::approval::request::{ApprovalRule, GrantedRule, RuleScope};
use crate::id::StateName;
use crate::question::Question;
use crate::time::Timestamp;
use crate::tool_call::one_line;

mod request;

// The approvals of an agent's step, from the question to the end of what follows from the answer.
//
// A call is answered while its turn runs, or its turn is ended first and continues in a further turn of the step. The
// answer to a call of an ended turn lets the same call run once in a later turn. A call that was allowed in a turn that
// came to nothing may or may not have run. The next attempt learns this, and asks again.

/// An approval of an agent's step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PendingApproval {
    /// Its number in the run.
    pub number: u32,
    /// The turn of the step in which it was asked.
    pub turn: u32,
    /// The time at which it was asked.
    pub since: Timestamp,
    /// The call.
    pub request: Box<ApprovalRequest>,
    pub stage: ApprovalStage,
}

/// The stage of an approval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalStage {
    /// Its turn runs and waits for the answer.
    Asked,
    /// It was answered while its turn ran.
    Answered(ApprovalVerdict),
    /// Its turn was ended, and the call has not run. It waits for the answer.
    Suspended,
    /// Its turn was ended, and the call has not run. The agent gets the answer once all answers are there.
    Decided(ApprovalVerdict),
    /// The agent has learned that the same call may run once.
    Granted,
    /// It was allowed in a turn that came to nothing, and the call may have run.
    Uncertain,
}

/// The approvals of an agent's step.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct StepApprovals(Vec<PendingApproval>);

impl PendingApproval {
    /// Returns the name of an approval with that number, under which it is answered.
    pub fn name_of(number: u32) -> String {
        format!("a{number}")
    }

    /// Returns the name under which it is answered.
    pub fn name(&self) -> String {
        Self::name_of(self.number)
    }

    /// Returns it as a question to a person.
    pub fn question(&self) -> Question {
        self.request.question(&self.name())
    }

    /// Returns whether it waits for an answer; `turn` is the current turn of the step.
    fn is_open(&self, turn: u32) -> bool {
        match self.stage {
            ApprovalStage::Asked => self.turn == turn,
            ApprovalStage::Suspended => true,
            _ => false,
        }
    }
}

impl StepApprovals {
    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the approvals that wait for an answer; `turn` is the current turn of the step.
    pub fn open(&self, turn: u32) -> impl Iterator<Item = &PendingApproval> {
        self.0.iter().filter(move |approval| approval.is_open(turn))
    }

    /// Returns whether the next turn waits for an answer.
    pub fn hold_next_turn(&self) -> bool {
        self.0.iter().any(|approval| approval.stage == ApprovalStage::Suspended)
    }

    /// Returns the approval of a call in a turn of the step.
    pub fn of_call(&self, turn: u32, call: &str) -> Option<&PendingApproval> {
        self.0.iter().find(|approval| approval.turn == turn && approval.request.call == call)
    }

    /// Returns the number of the earlier approval that lets this call run once.
    pub fn grant_for(&self, request: &ApprovalRequest) -> Option<u32> {
        let is_same = |approval: &&PendingApproval| {
            approval.stage == ApprovalStage::Granted
                && approval.request.tool == request.tool
                && approval.request.checksum == request.checksum
        };
        self.0.iter().find(is_same).map(|approval| approval.number)
    }

    /// Adds an approval. A grant that allows it is used up.
    pub(crate) fn ask(&mut self, asked: PendingApproval, grant: Option<u32>) {
        if let Some(grant) = grant {
            self.0.retain(|approval| approval.number != grant);
        }
        self.0.push(asked);
    }

    /// Takes the answer to an open approval; returns whether its turn runs, and `None` if there is no such approval.
    pub(crate) fn answer(
        &mut self,
        number: u32,
        turn: u32,
        verdict: ApprovalVerdict,
    ) -> Option<&PendingApproval> {
        let approval = self
            .0
            .iter_mut()
            .find(|approval| approval.number == number && approval.is_open(turn))?;
        let is_running = approval.stage == ApprovalStage::Asked;
        approval.stage = if is_running {
            ApprovalStage::Answered(verdict)
        } else {
            ApprovalStage::Decided(verdict)
        };
        Some(approval)
    }

    /// Notes that a turn of the step was ended before these calls had their answers. What else was asked in it is over.
    /// If that is `unsure`, those that were allowed may have run.
    pub(crate) fn suspend(&mut self, turn: u32, calls: &[String], unsure: bool) {
        self.0.retain_mut(|approval| {
            if approval.turn != turn {
                return true;
            }
            let has_not_run = calls.contains(&approval.request.call);
            let stage = std::mem::replace(&mut approval.stage, ApprovalStage::Suspended);
            match stage {
                ApprovalStage::Asked => has_not_run,
                ApprovalStage::Answered(verdict) if has_not_run => {
                    approval.stage = if unsure && verdict.allows() {
                        ApprovalStage::Uncertain
                    } else {
                        ApprovalStage::Decided(verdict)
                    };
                    true
                }
                ApprovalStage::Answered(_) => false,
                other => {
                    approval.stage = other;
                    true
                }
            }
        });
    }

    /// Returns the prompt of the turn that goes on after all answers, which are taken in by it.
    pub(crate) fn resume(&mut self) -> String {
        let prompt = resumption_prompt(&self.0);
        self.0.retain_mut(|approval| match &approval.stage {
            ApprovalStage::Decided(verdict) if verdict.allows() => {
                approval.stage = ApprovalStage::Granted;
                true
            }
            ApprovalStage::Decided(_) | ApprovalStage::Asked | ApprovalStage::Answered(_) => false,
            ApprovalStage::Suspended | ApprovalStage::Granted | ApprovalStage::Uncertain => true,
        });
        prompt
    }

    /// Notes that a turn of the step has come to nothing, and is run again.
    pub(crate) fn fail_turn(&mut self, turn: u32) {
        self.0.retain_mut(|approval| match &approval.stage {
            ApprovalStage::Answered(verdict) if approval.turn == turn && verdict.allows() => {
                approval.stage = ApprovalStage::Uncertain;
                true
            }
            ApprovalStage::Answered(_) | ApprovalStage::Asked => approval.turn != turn,
            _ => true,
        });
    }

    /// Forgets the answers that Claude Code has not received yet, so that raymond asks for them again.
    pub(crate) fn forget_answers(&mut self) {
        self.0.retain_mut(|approval| match &approval.stage {
            ApprovalStage::Decided(_) => {
                approval.stage = ApprovalStage::Suspended;
                true
            }
            ApprovalStage::Granted => false,
            _ => true,
        });
    }

    /// Returns the note about calls that may have run, for the prompt of a turn that is run again.
    pub fn uncertainty_note(&self) -> Option<String> {
        uncertainty_note(&self.0)
    }
}

// The texts by which an agent learns what became of calls that needed approval.

/// The number of calls that a text names.
const MAX_NAMED: usize = 16;

/// Returns the prompt of the turn that goes on after the calls of an ended turn were answered.
fn resumption_prompt(approvals: &[PendingApproval]) -> String {
    let decided = approvals.iter().filter_map(|approval| {
        let ApprovalStage::Decided(verdict) = &approval.stage else { return None };
        let again = if verdict.allows() {
            "; it has not run: make the same call again"
        } else {
            "; it has not run: do not make it again"
        };
        let call = one_line(&approval.request.summary());
        Some(format!("- {call}: {}{again}", verdict.phrase()))
    });
    let lines: Vec<String> = decided.take(MAX_NAMED).collect();
    if lines.is_empty() {
        return "Your last turn was ended before you were done. Go on with your task, and end as you were asked to.".to_owned();
    }
    format!(
        "Your last turn was ended while tool calls waited for a person to approve them. Each has its answer now:\n{}\nGo on with your task, and end as you were asked to.",
        lines.join("\n")
    )
}

/// Returns the note about calls that were allowed in a turn that came to nothing.
fn uncertainty_note(approvals: &[PendingApproval]) -> Option<String> {
    let uncertain = approvals.iter().filter(|approval| approval.stage == ApprovalStage::Uncertain);
    let lines: Vec<String> = uncertain
        .take(MAX_NAMED)
        .map(|approval| format!("- {}", one_line(&approval.request.summary())))
        .collect();
    (!lines.is_empty()).then(|| {
        format!(
            "An earlier try of this task was cut off. A person had allowed these tool calls in it, and it is not known whether they have run:\n{}\nFind out before you make one of them again; each needs a new approval.",
            lines.join("\n")
        )
    })
}

// The input of a tool call, cut to a size that can be kept and shown.

/// The number of bytes of texts that are kept of an input.
const MAX_BYTES: usize = 16 * 1024;

/// The number of values that are kept of an input, and the depth of them.
const MAX_VALUES: usize = 256;
const MAX_DEPTH: usize = 8;

/// The input of a tool call, cut to a size that can be kept and shown.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BoundedInput {
    /// The input, or its beginning.
    pub value: Value,
    /// The number of bytes of the whole input that are left out.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub left_out_bytes: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// The room that is left for the rest of an input.
struct InputRoom {
    bytes: usize,
    values: usize,
    left_out: usize,
}

impl BoundedInput {
    /// Returns an input, cut if it is too large.
    pub fn of(input: &Value) -> Self {
        let mut room = InputRoom { bytes: MAX_BYTES, values: MAX_VALUES, left_out: 0 };
        let value = room.cut(input, MAX_DEPTH).unwrap_or_default();
        Self { value, left_out_bytes: u64::try_from(room.left_out).unwrap_or(u64::MAX) }
    }

    /// Returns a text of the input.
    pub fn text(&self, key: &str) -> Option<&str> {
        self.value.get(key)?.as_str()
    }
}

impl InputRoom {
    /// Returns as much of a value as there is room for; `None` without any room.
    fn cut(&mut self, value: &Value, depth: usize) -> Option<Value> {
        if self.values == 0 || depth == 0 || self.bytes == 0 {
            self.left_out = self.left_out.saturating_add(value.to_string().len());
            return None;
        }
        self.values -= 1;
        Some(match value {
            Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
            Value::String(text) => Value::String(self.text(text)),
            Value::Array(items) => {
                items.iter().filter_map(|item| self.cut(item, depth - 1)).collect()
            }
            Value::Object(fields) => {
                let mut kept = Map::new();
                for (key, value) in fields {
                    let key = self.text(key);
                    let cut = self.cut(value, depth - 1);
                    kept.extend(cut.map(|value| (key, value)));
                }
                Value::Object(kept)
            }
        })
    }

    fn text(&mut self, text: &str) -> String {
        let cut = text.floor_char_boundary(self.bytes);
        self.bytes -= cut;
        self.left_out = self.left_out.saturating_add(text.len() - cut);
        text[..cut].to_owned()
    }
}

// The answers to approvals: how they are read, and what they allow.

/// The answer to an approval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "verdict", rename_all = "snake_case")]
pub enum ApprovalVerdict {
    /// The call runs, once.
    Allow,
    /// The call runs, and Claude Code does not ask for calls that these rules cover.
    AllowAlways {
        rules: Vec<ApprovalRule>,
        /// The turns that they are for.
        scope: RuleScope,
    },
    /// The call does not run.
    Deny {
        /// The reason, which the agent is told; empty for none.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        reason: String,
    },
}

/// The word before the reason of a denial.
const DENY: &str = "deny";
const ALLOW_ALWAYS: &str = "allow-always";
const ALLOW_IN_RUN: &str = "allow-always-in-run";

impl ApprovalVerdict {
    /// Reads an answer: the name of a verdict, or the number under which the question shows it. `prompt` is the prompt
    /// of the turn, with its folder.
    ///
    /// # Errors
    /// The answers that would be valid, in words.
    pub fn read(given: &str, request: &ApprovalRequest, prompt: StateName) -> Result<Self, String> {
        Self::read_for(given, request, || RuleScope::State(prompt))
    }

    fn read_for(
        given: &str,
        request: &ApprovalRequest,
        named_scope: impl FnOnce() -> RuleScope,
    ) -> Result<Self, String> {
        let question = request.question("");
        let text = given.trim();
        if let Some(reason) = text.strip_prefix(DENY).and_then(|rest| rest.strip_prefix(':')) {
            return Ok(Self::Deny { reason: reason.trim().to_owned() });
        }
        let by_number = || {
            let number: usize = text.parse().ok()?;
            question.options.get(number.checked_sub(1)?).map(|option| option.id.as_str())
        };
        let always = |scope| Self::AllowAlways { rules: request.rules.clone(), scope };
        let text = by_number().unwrap_or(text);
        if let Some((word @ ("allow" | ALLOW_ALWAYS | ALLOW_IN_RUN), rules)) = text.split_once(':')
        {
            let rules = ApprovalRule::parse_all(rules)?;
            request.check_rules(&rules)?;
            let scope = if word == ALLOW_IN_RUN { RuleScope::Run } else { named_scope() };
            return Ok(Self::AllowAlways { rules, scope });
        }
        match text {
            "allow" => Ok(Self::Allow),
            DENY => Ok(Self::Deny { reason: String::new() }),
            ALLOW_ALWAYS | ALLOW_IN_RUN if request.rules.is_empty() => Err(
                "Claude Code offers no rule for this call; use allow, deny or allow-always: RULE"
                    .to_owned(),
            ),
            ALLOW_ALWAYS => Ok(always(named_scope())),
            ALLOW_IN_RUN => Ok(always(RuleScope::Run)),
            _ => {
                let ids: Vec<&str> =
                    question.options.iter().map(|option| option.id.as_str()).collect();
                Err(format!(
                    "use one of {}, \"deny: REASON\" or \"allow-always: RULE\"",
                    ids.join(", ")
                ))
            }
        }
    }

    /// Checks whether a text is an answer.
    ///
    /// # Errors
    /// The answers that would be valid, in words.
    pub fn check(given: &str, request: &ApprovalRequest) -> Result<(), String> {
        Self::read_for(given, request, || RuleScope::Run).map(drop)
    }

    /// Returns the name of the answer.
    pub fn id(&self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::AllowAlways { scope: RuleScope::State(_), .. } => ALLOW_ALWAYS,
            Self::AllowAlways { scope: RuleScope::Run, .. } => ALLOW_IN_RUN,
            Self::Deny { .. } => DENY,
        }
    }

    /// Returns whether the call may run.
    pub fn allows(&self) -> bool {
        match self {
            Self::Allow | Self::AllowAlways { .. } => true,
            Self::Deny { .. } => false,
        }
    }

    /// Returns it in words.
    pub fn phrase(&self) -> String {
        match self {
            Self::Allow => "allowed".to_owned(),
            Self::AllowAlways { rules, scope } => {
                let rules: Vec<String> = rules.iter().map(ToString::to_string).collect();
                let place = match scope {
                    RuleScope::State(state) => state.to_string(),
                    RuleScope::Run => "the whole run".to_owned(),
                };
                format!("allowed, and from now on {} in {place}", rules.join(", "))
            }
            Self::Deny { reason } if reason.is_empty() => "denied".to_owned(),
            Self::Deny { reason } => format!("denied: {reason}"),
        }
    }
}

#[cfg(test)]
mod stage_tests {
    use serde_json::json;

    use super::*;

    fn asked(number: u32, turn: u32) -> PendingApproval {
        let input = json!({ "command": format!("touch {number}") });
        let (call, tool) = (format!("toolu_{number}"), "Bash".to_owned());
        let request = ApprovalRequest::new(call, tool, &input, format!("c{number}"), Vec::new());
        PendingApproval {
            number,
            turn,
            since: Timestamp(0),
            request: Box::new(request),
            stage: ApprovalStage::Asked,
        }
    }

    fn open(approvals: &StepApprovals, turn: u32) -> Vec<u32> {
        approvals.open(turn).map(|approval| approval.number).collect()
    }

    #[test]
    fn answer_is_taken_once() {
        let mut approvals = StepApprovals::default();
        approvals.ask(asked(1, 0), None);
        assert_eq!(open(&approvals, 0), [1]);
        assert_eq!(open(&approvals, 1), [0; 0], "the turn is over");
        assert!(approvals.answer(1, 0, ApprovalVerdict::Allow).is_some());
        assert!(approvals.answer(1, 0, ApprovalVerdict::Allow).is_none());
    }

    #[test]
    fn calls_of_suspended_turn_wait_and_are_granted_once() {
        let mut approvals = StepApprovals::default();
        (1..=4).for_each(|number| approvals.ask(asked(number, 0), None));
        approvals.answer(2, 0, ApprovalVerdict::Allow).expect("open");
        approvals.answer(3, 0, ApprovalVerdict::Allow).expect("open");
        let not_run = ["toolu_1", "toolu_3"].map(str::to_owned);
        approvals.suspend(0, &not_run, false);
        assert_eq!(open(&approvals, 1), [1], "2 has run, and nobody needs 4 any more");
        assert!(approvals.hold_next_turn());
        approvals.answer(1, 1, ApprovalVerdict::Deny { reason: "no".into() }).expect("open");
        assert!(!approvals.hold_next_turn());
        let prompt = approvals.resume();
        assert!(prompt.contains("Bash: touch 1: denied: no"), "{prompt}");
        assert!(prompt.contains("Bash: touch 3: allowed"), "{prompt}");
        let same = asked(3, 1).request;
        assert_eq!(approvals.grant_for(&same), Some(3));
        let other = ApprovalRequest { checksum: "other".into(), ..*same };
        assert_eq!(approvals.grant_for(&other), None);
        approvals.ask(asked(5, 1), Some(3));
        assert_eq!(approvals.grant_for(&asked(3, 1).request), None, "it is used up");
    }

    #[test]
    fn answer_that_may_have_been_delivered_is_not_a_grant() {
        let mut approvals = StepApprovals::default();
        (1..=2).for_each(|number| approvals.ask(asked(number, 0), None));
        approvals.answer(1, 0, ApprovalVerdict::Allow).expect("open");
        approvals.suspend(0, &["toolu_1", "toolu_2"].map(str::to_owned), true);
        assert_eq!(open(&approvals, 1), [2]);
        assert!(approvals.uncertainty_note().is_some_and(|note| note.contains("touch 1")));
        approvals.answer(2, 1, ApprovalVerdict::Allow).expect("open");
        approvals.resume();
        assert_eq!(approvals.grant_for(&asked(1, 1).request), None);
        assert_eq!(approvals.grant_for(&asked(2, 1).request), Some(2), "it was never told");
    }

    #[test]
    fn allowed_call_of_failed_turn_is_reported_and_not_granted() {
        let mut approvals = StepApprovals::default();
        (1..=3).for_each(|number| approvals.ask(asked(number, 0), None));
        approvals.answer(1, 0, ApprovalVerdict::Allow).expect("open");
        approvals.answer(2, 0, ApprovalVerdict::Deny { reason: String::new() }).expect("open");
        assert_eq!(approvals.uncertainty_note(), None);
        approvals.fail_turn(0);
        assert_eq!(open(&approvals, 1), [0; 0]);
        assert_eq!(approvals.grant_for(&asked(1, 1).request), None);
        let note = approvals.uncertainty_note().expect("a note");
        assert!(note.contains("Bash: touch 1") && !note.contains("touch 2"), "{note}");
    }
}

#[cfg(test)]
mod bounded_input_tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn small_input_is_kept_whole() {
        let input = json!({ "command": "touch a", "timeout": 5, "list": [true, null] });
        let bounded = BoundedInput::of(&input);
        assert_eq!((bounded.value.clone(), bounded.left_out_bytes), (input, 0));
        assert_eq!(bounded.text("command"), Some("touch a"));
    }

    #[test]
    fn large_input_is_cut_and_says_how_much_is_left_out() {
        let bounded = BoundedInput::of(&json!({ "content": "é".repeat(MAX_BYTES) }));
        let kept = bounded.text("content").expect("a text").len();
        let room = MAX_BYTES - "content".len();
        assert!(kept <= room && kept > room - 2, "{kept}");
        assert!(bounded.left_out_bytes >= (MAX_BYTES) as u64, "{}", bounded.left_out_bytes);
        let many: Vec<u32> = (0..1000).collect();
        let bounded = BoundedInput::of(&json!({ "many": many }));
        assert!(bounded.value["many"].as_array().is_some_and(|kept| kept.len() < MAX_VALUES));
        assert!(bounded.left_out_bytes > 0);
        let mut deep = json!("end");
        (0..100).for_each(|_| deep = json!([deep]));
        assert!(BoundedInput::of(&deep).left_out_bytes > 0);
    }
}

#[cfg(test)]
mod verdict_tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn verdict_is_read_by_name_number_or_with_reason() {
        let rule = ApprovalRule { tool: "Bash".into(), content: Some("touch a *".into()) };
        let request = |rules| {
            let input = json!({ "command": "touch a" });
            ApprovalRequest::new("t".into(), "Bash".into(), &input, "c".into(), rules)
        };
        let state = || StateName::parse("START.md").expect("a name");
        let ruled = request(vec![rule.clone()]);
        let read = |text: &str| ApprovalVerdict::read(text, &ruled, state());
        let always = |scope| Ok(ApprovalVerdict::AllowAlways { rules: vec![rule.clone()], scope });
        assert_eq!(read(" allow "), Ok(ApprovalVerdict::Allow));
        assert_eq!(read("2"), always(RuleScope::State(state())));
        assert_eq!(read("allow-always-in-run"), always(RuleScope::Run));
        let denied = |reason: &str| Ok(ApprovalVerdict::Deny { reason: reason.into() });
        assert_eq!(read("4"), denied(""));
        assert_eq!(read("deny: allow"), denied("allow"));
        for wrong in ["alow", "", "Allow", "yes", "0", "6", "denyx"] {
            let error = read(wrong).expect_err(wrong);
            assert!(error.starts_with("use one of allow, "), "{error}");
        }
        let wider = ApprovalRule { tool: "Bash".into(), content: Some("touch:*".into()) };
        let widely = |scope| Ok(ApprovalVerdict::AllowAlways { rules: vec![wider.clone()], scope });
        for text in ["5", "allow: Bash(touch:*)", "allow-always: Bash(touch:*)"] {
            assert_eq!(read(text), widely(RuleScope::State(state())), "{text}");
        }
        assert_eq!(read("allow-always-in-run: Bash(touch:*)"), widely(RuleScope::Run));
        for rule in ["", "Bash(tuoch:*)", "Bsh(touch:*)", "WebFetch", "Bash(a(b)"] {
            assert!(read(&format!("allow: {rule}")).is_err(), "{rule}");
        }
        let without = ApprovalVerdict::read("allow-always", &request(Vec::new()), state());
        assert!(without.is_err_and(|error| error.contains("no rule")));
    }
}
