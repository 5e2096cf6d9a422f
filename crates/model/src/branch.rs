//! Branches, which share the records of another run up to one of them, and runs that a program of another run starts.
//!
//! A branch shares the records of another run up to one of them. The cut covers the whole run, or only steps of some
//! agents and what follows from them. In the second case the new run also has the later records that do not follow from
//! these steps, in the same order.
//!
//! The agents that were alive at that record are alive in the new run. Each has its own sessions, which begin at the
//! last message before that record. The other run does not change. A turn that was running at that record is asked
//! again.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::fact::{Fact, FactChange, KnownFacts};
use super::id::{AgentId, InvalidName, RunId, SessionId, StateName};
use super::money::Usd;
use super::privilege::RunPermission;
use super::transition::Variables;
use super::turn_options::PermissionMode;

/// The place where a run branched off another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BranchOrigin {
    /// The other run.
    pub run: RunId,
    /// The number of the last record that both share.
    pub seq: u64,
    /// The number of later records of the other run that do not follow from the cut, and are in this run, too.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub kept: u64,
    /// The reply that a person has given in the place of a turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply: Option<GivenReply>,
    /// The changes of facts after that record and before the branch, which the run does not see.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hidden: Vec<HiddenChange>,
}

/// A reply that a person has given in the place of a turn: it is judged as one, and costs nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GivenReply {
    pub agent: AgentId,
    /// The number of its step.
    pub step: u64,
    /// The text of the reply.
    pub text: String,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// A change of a fact that a branch does not see.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HiddenChange {
    /// The label of the fact.
    pub label: String,
    /// The key of the fact.
    pub key: String,
    /// The number of the fact that was asserted; `None` if it was retracted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seq: Option<u64>,
    /// The number of the fact that held at the cut in its place. It is gone since, and the run can still take it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gone: Option<u64>,
}

/// An agent of a branch, and the ids of its sessions from now on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BranchedAgent {
    pub agent: AgentId,
    /// The session of its next turn, and those of its pending returns, the outermost first.
    pub sessions: Vec<SessionId>,
}

impl HiddenChange {
    /// Returns the name of a change against the facts that were known at the cut.
    pub fn of(change: &FactChange, known: &KnownFacts) -> Self {
        let (label, key, seq) = match change {
            FactChange::Asserted(fact) => (&fact.label, &fact.key, Some(fact.seq)),
            FactChange::Retracted { label, key } => (label, key, None),
        };
        let gone = known.get(label, Some(key)).map(|fact| fact.seq);
        Self { label: label.clone(), key: key.clone(), seq, gone }
    }

    fn is_of(&self, label: &str, key: &str) -> bool {
        self.label == label && self.key == key
    }
}

impl BranchOrigin {
    /// Returns whether the run does not see a change; `known` are the facts that it sees.
    pub fn hides(&self, change: &FactChange, known: &KnownFacts) -> bool {
        let is_hidden = |hidden: &HiddenChange| match change {
            FactChange::Asserted(fact) => {
                hidden.is_of(&fact.label, &fact.key) && hidden.seq == Some(fact.seq)
            }
            FactChange::Retracted { label, key } => {
                // The fact that held at the cut is gone for others only. A later fact is gone for all.
                let seen = || known.get(label, Some(key)).map(|fact| fact.seq);
                hidden.is_of(label, key)
                    && match hidden.gone {
                        Some(gone) => seen() == Some(gone),
                        None => hidden.seq.is_none(),
                    }
            }
        };
        self.hidden.iter().any(is_hidden)
    }

    /// Returns whether a fact held at the cut and is gone since, so that only this run can take it.
    pub fn keeps(&self, fact: &Fact) -> bool {
        let is_kept = |hidden: &HiddenChange| {
            hidden.is_of(&fact.label, &fact.key) && hidden.gone == Some(fact.seq)
        };
        self.hidden.iter().any(is_kept)
    }
}

// The origin of a run that a program of another run has started, and its part of the budget and the permissions.

/// The largest depth of runs that start each other: a run that a person has started has none.
pub const MAX_START_DEPTH: u32 = 8;

/// The largest number of runs in a directory that programs have started and that are being executed.
pub const MAX_STARTED_RUNS: usize = 64;

/// The longest id of a run, in bytes.
const MAX_ID_BYTES: usize = 64;

/// The longest part of an agent's id in the id of a run that it has started, in characters.
const MAX_AGENT_CHARS: usize = 24;

/// The step of another run that has started a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunOrigin {
    /// The other run.
    pub run: RunId,
    pub agent: AgentId,
    /// The step of that agent.
    pub step: u64,
    /// The number of runs above this one that have started each other.
    pub depth: u32,
}

/// The start of a program as a run of its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WorkflowStart {
    /// The name of a defined program, or the path of its file below the run's root.
    pub program: String,
    /// `@label`, and the id of the run; by default the id is made of the step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// `@branch`
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// `@context/x`
    #[serde(default, skip_serializing_if = "Variables::is_empty")]
    pub context: Variables,
    /// The part of the starter's budget that the run is given; `None` if the starter has no budget, and gives none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget_usd: Option<Usd>,
}

/// A run that was started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StartedRun {
    /// Its id.
    pub run: RunId,
    /// Its budget, if it has one.
    pub budget_usd: Option<Usd>,
}

/// Returns whether a program is named by its file, and not by the name in it.
pub fn is_program_file(name: &str) -> bool {
    let file = name.rsplit_once('/').map_or(name, |(_, file)| file);
    StateName::parse(file).is_ok_and(|file| file.is_program())
}

impl WorkflowStart {
    /// Returns the id of the run: its label, else a name made of the step that starts it.
    ///
    /// # Errors
    /// [`InvalidName::Run`] if the label cannot be an id.
    pub fn run_id(&self, origin: &RunOrigin) -> Result<RunId, InvalidName> {
        if let Some(label) = &self.label {
            return RunId::parse(label);
        }
        // What is cut off is in the origin, which tells runs with the same name apart.
        let agent: String = origin.agent.as_str().chars().take(MAX_AGENT_CHARS).collect();
        let step = format!("-{agent}-{}", origin.step);
        let room = MAX_ID_BYTES.saturating_sub(step.len());
        let beginning: String = origin.run.as_str().chars().take(room).collect();
        RunId::parse(&format!("{beginning}{step}"))
    }
}

/// Returns the part of its budget that a run gives to a run that it starts: the part that was `asked` for, else half of
/// what is `left`. `None` if the run has no budget and no part was asked for.
///
/// # Errors
/// The reason why there is no such part.
pub fn part_for_started(asked: Option<Usd>, left: Option<Usd>) -> Result<Option<Usd>, String> {
    let Some(left) = left else { return Ok(asked) };
    let part = asked.unwrap_or_else(|| left.half());
    if left.is_zero() || part.is_zero() {
        return Err("the budget of this run is used up, or given to the runs that it has started"
            .to_owned());
    }
    if part > left {
        return Err(format!(
            "its `:budget` is {part}, and no more than {left} of the budget of this run is left"
        ));
    }
    Ok(Some(part))
}

/// Returns the spending limit of a started run: the part that it is given, if its starter has a budget, and no more
/// than the program's own.
pub fn budget_of_started(declared: Option<Usd>, given: Option<Usd>) -> Option<Usd> {
    match (declared, given) {
        (Some(declared), Some(given)) => Some(declared.min(given)),
        (declared, given) => declared.or(given),
    }
}

/// Returns the narrower of two permissions.
pub fn narrower(left: RunPermission, right: RunPermission) -> RunPermission {
    let rank = |permission: &RunPermission| match permission {
        RunPermission::SkipAll => u32::MAX,
        RunPermission::Mode(name) => {
            PermissionMode::from_name(name).map_or(0, |mode| u32::from(mode.rank()))
        }
    };
    if rank(&right) < rank(&left) { right } else { left }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Timestamp;

    fn fact(seq: u64) -> Fact {
        Fact {
            label: "a".to_owned(),
            key: "k".to_owned(),
            value: seq.to_string(),
            seq,
            source: "signal".to_owned(),
            at: Timestamp(seq),
        }
    }

    fn retracted() -> FactChange {
        FactChange::Retracted { label: "a".to_owned(), key: "k".to_owned() }
    }

    fn origin(change: &FactChange, known: &KnownFacts) -> BranchOrigin {
        BranchOrigin {
            run: RunId::parse("r").expect("an id"),
            seq: 1,
            kept: 0,
            reply: None,
            hidden: vec![HiddenChange::of(change, known)],
        }
    }

    #[test]
    fn fact_that_is_gone_since_the_cut_stays_until_another_comes() {
        let mut known = KnownFacts::default();
        known.change(&FactChange::Asserted(fact(3)));
        let taken = origin(&retracted(), &known);
        assert!(taken.hides(&retracted(), &known) && taken.keeps(&fact(3)));
        assert!(!taken.keeps(&fact(9)) && !taken.hides(&FactChange::Asserted(fact(9)), &known));
        known.change(&FactChange::Asserted(fact(9)));
        assert!(!taken.hides(&retracted(), &known), "the later one is gone for all");
    }

    #[test]
    fn fact_that_was_replaced_since_the_cut_stays_though_the_other_goes() {
        let mut known = KnownFacts::default();
        known.change(&FactChange::Asserted(fact(3)));
        let replaced = origin(&FactChange::Asserted(fact(9)), &known);
        assert!(replaced.hides(&FactChange::Asserted(fact(9)), &known));
        assert!(replaced.hides(&retracted(), &known) && replaced.keeps(&fact(3)));
        let unknown = origin(&FactChange::Asserted(fact(9)), &KnownFacts::default());
        assert!(!unknown.hides(&retracted(), &KnownFacts::default()) && !unknown.keeps(&fact(9)));
    }
}

#[cfg(test)]
mod run_origin_tests {
    use super::*;

    fn origin(run: &str) -> RunOrigin {
        let run = RunId::parse(run).expect("an id");
        RunOrigin { run, agent: AgentId::main().child(2), step: 7, depth: 1 }
    }

    fn start(label: Option<&str>) -> WorkflowStart {
        WorkflowStart {
            program: "w".to_owned(),
            label: label.map(str::to_owned),
            branch: None,
            context: Variables::new(),
            budget_usd: None,
        }
    }

    #[test]
    fn label_is_the_id_of_the_run_else_the_step_is() {
        let id = |start: WorkflowStart, run: &str| start.run_id(&origin(run)).expect("an id");
        assert_eq!(id(start(Some("feature-42")), "t").as_str(), "feature-42");
        assert_eq!(id(start(None), "t").as_str(), "t-main.2-7");
        let long = id(start(None), &"x".repeat(64));
        assert!(long.as_str().len() == 64 && long.as_str().ends_with("x-main.2-7"), "{long}");
        let refused = start(Some("../x")).run_id(&origin("t")).expect_err("no id");
        assert_eq!(refused, InvalidName::Run("../x".to_owned()));
    }

    #[test]
    fn started_run_is_given_half_of_what_is_left_or_the_part_that_was_asked_for() {
        let usd = |dollars| Some(Usd::from_dollars(dollars));
        assert_eq!(part_for_started(None, None), Ok(None));
        assert_eq!(part_for_started(usd(2.0), None), Ok(usd(2.0)));
        assert_eq!(part_for_started(None, usd(1.0)), Ok(usd(0.5)));
        assert_eq!(part_for_started(usd(1.0), usd(1.0)), Ok(usd(1.0)));
        let why = part_for_started(usd(2.0), usd(1.0)).expect_err("it is more");
        assert_eq!(
            why,
            "its `:budget` is $2.00, and no more than $1.00 of the budget of this run is left"
        );
        let why = part_for_started(None, usd(0.0)).expect_err("there is none");
        assert!(why.contains("is used up, or given"), "{why}");
    }

    #[test]
    fn started_run_has_the_smaller_budget_and_the_narrower_permission() {
        let usd = |dollars| Some(Usd::from_dollars(dollars));
        assert_eq!(budget_of_started(usd(5.0), usd(2.0)), usd(2.0));
        assert_eq!(budget_of_started(usd(1.0), usd(2.0)), usd(1.0));
        assert_eq!(budget_of_started(None, usd(2.0)), usd(2.0));
        assert_eq!(budget_of_started(None, None), None);
        let mode = |name: &str| RunPermission::Mode(name.to_owned());
        assert_eq!(narrower(RunPermission::SkipAll, mode("plan")), mode("plan"));
        assert_eq!(narrower(mode("plan"), mode("bypassPermissions")), mode("plan"));
        assert_eq!(narrower(mode("acceptEdits"), mode("acceptEdits")), mode("acceptEdits"));
    }
}
