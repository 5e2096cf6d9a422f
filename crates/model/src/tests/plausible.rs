//! Journals as runs write them: a run driven through `decide` by chance.
//!
//! Chance gives a list of pushes that fit any run (an agent is named by an index into those that live), so a
//! failing case shrinks to the few pushes that matter.

mod forks;
mod programs;

use proptest::prelude::*;
use proptest::sample::{Index, select};

use super::scene;
use crate::agent::{Agent, AgentOptions};
use crate::apply::{apply, begin};
use crate::consult::{ConsultVerdict, PluginVerdict, StopScope};
use crate::decide::{NondeterministicInputs, TurnJudgement, TurnReport, decide};
use crate::event::{Event, Record, RunCommand};
use crate::host::HostLabel;
use crate::id::{MessageId, ScopePath, SessionId, StateName};
use crate::money::Usd;
use crate::policy::{AcceptedTransition, TransitionPolicy};
use crate::refusal::{NAMED_PER_TURN, ToolRefusal, ToolRefusals};
use crate::run::{PauseReason, Run, RunStatus};
use crate::settings::Settings;
use crate::supervision::{OnExhausted, RestartPolicy, SupervisionOverrides};
use crate::time::Timestamp;
use crate::transition::{Transition, Variables};
use crate::turn::TurnCost;
use crate::turn::{FailureCause, TurnFailure};
use crate::usage::{ModelUse, UsageByModel};

/// Something that may happen next.
#[derive(Debug, Clone)]
pub enum Push {
    /// An agent reports.
    Report { agent: Index, judgement: TurnJudgement, cents: u32, marked: bool, chance: f64 },
    /// The last report comes again.
    Again,
    /// The run is paused, or resumes if it is.
    Toggle { budget: Option<u32> },
    /// A stop is requested.
    Command,
    /// Facts change.
    Facts { dice: u32 },
}

pub fn states() -> impl Strategy<Value = StateName> {
    select(&["A.md", "B.md", "C.md", "Ü b.md", "x", programs::FILE][..]).prop_map(scene::state)
}

fn texts() -> impl Strategy<Value = String> {
    prop_oneof![Just("\",\"crc\":\"\n\0\u{2028}".to_owned()), ".{0,12}"]
}

fn variables() -> impl Strategy<Value = Variables> {
    proptest::collection::btree_map("[a-z]{1,3}", texts(), 0..3).prop_map(Variables::from)
}

/// Returns folders that a tag leads to, and mostly none.
fn scopes() -> impl Strategy<Value = Option<ScopePath>> {
    let scope = |path: &str| Just(ScopePath::parse(path).ok());
    prop_oneof![4 => Just(None), 1 => scope("review"), 1 => scope("lib:worker"), 1 => scope(".")]
}

pub fn transitions() -> impl Strategy<Value = Transition> {
    let parts = || ((states(), scopes()), states(), variables());
    prop_oneof![
        1 => parts().prop_map(|((target, scope), _, variables)| Transition::Goto { target, scope, variables }),
        1 => (parts(), prop::bool::ANY).prop_map(|(((target, scope), _, variables), keeps_stack)| {
            Transition::Reset { target, scope, keeps_stack, variables }
        }),
        1 => parts().prop_map(|((target, scope), return_to, variables)| {
            Transition::Call { target, scope, return_to, variables }
        }),
        1 => parts().prop_map(|((target, scope), return_to, variables)| {
            Transition::Function { target, scope, return_to, variables }
        }),
        3 => parts().prop_map(|((target, scope), next, variables)| {
            let (each, cwd, also) = (None, None, Vec::new());
            Transition::Fork { target, scope, next, each, cwd, variables, also }
        }),
        2 => (texts(), variables())
            .prop_map(|(payload, variables)| Transition::Result { payload, variables, structured: false }),
    ]
}

fn judgements() -> impl Strategy<Value = TurnJudgement> {
    let accepted = (transitions(), any::<bool>()).prop_map(|(transition, implicit)| {
        TurnJudgement::Accepted(AcceptedTransition { transition, implicit, overruled: None })
    });
    let proposed =
        (transitions(), states(), texts()).prop_map(|(transition, evaluator, output)| {
            let accepted = AcceptedTransition { transition, implicit: false, overruled: None };
            TurnJudgement::Proposed { accepted, output, evaluator }
        });
    let violated = (texts(), proptest::option::weighted(0.9, texts()))
        .prop_map(|(violation, reminder)| TurnJudgement::Violated { violation, reminder });
    let failed = (select(FailureCause::ALL), texts()).prop_map(|(cause, message)| {
        let unsettled = message.len() % 2 == 1;
        TurnJudgement::Failed(TurnFailure { unsettled, ..TurnFailure::new(cause, message) })
    });
    let unstarted = Just(TurnJudgement::NotStarted);
    let arrived = forks::joins().prop_map(|join| TurnJudgement::JoinDue(Box::new(join)));
    prop_oneof![8 => accepted, 2 => violated, 2 => failed, 1 => proposed, 1 => unstarted, 1 => arrived]
}

fn push() -> impl Strategy<Value = Push> {
    let report = (any::<Index>(), judgements(), 0u32..500, any::<bool>(), 0.0..1.0f64).prop_map(
        |(agent, judgement, cents, marked, chance)| Push::Report {
            agent,
            judgement,
            cents,
            marked,
            chance,
        },
    );
    prop_oneof![
        20 => report,
        1 => Just(Push::Again),
        1 => proptest::option::of(0u32..1000).prop_map(|budget| Push::Toggle { budget }),
        1 => Just(Push::Command),
        1 => any::<u32>().prop_map(|dice| Push::Facts { dice }),
    ]
}

/// Returns the supervision of a child: one of two, chosen by the cents its birth costs.
fn differing(cents: u32) -> SupervisionOverrides {
    let named = |restart, on_exhausted| SupervisionOverrides {
        restart: Some(restart),
        on_exhausted: Some(on_exhausted),
        max_restarts: Some(1),
        ..SupervisionOverrides::default()
    };
    match cents % 5 {
        0 => named(RestartPolicy::Permanent, OnExhausted::FailAgent),
        1 => named(RestartPolicy::Permanent, OnExhausted::Wait),
        2 => named(RestartPolicy::Transient, OnExhausted::FailRun),
        3 => named(RestartPolicy::Temporary, OnExhausted::Wait),
        _ => SupervisionOverrides::default(),
    }
}

/// Returns lists of up to `most` pushes.
pub fn pushes(most: usize) -> impl Strategy<Value = Vec<Push>> {
    proptest::collection::vec(push(), 0..most)
}

/// A run and the records that led to it.
#[derive(Debug, Clone)]
pub struct Journal {
    /// The run after the last record.
    pub run: Run,
    /// All records, with the run as it was before each but the first.
    pub records: Vec<(Option<Run>, Record)>,
    last: Option<TurnReport>,
}

/// Returns the verdicts of a plug-in: mostly none.
fn verdicts(chance: u32, seq: u64) -> Vec<PluginVerdict> {
    let reason = "because".to_owned();
    let verdict = match chance % 11 {
        1 => ConsultVerdict::Hold { until: Timestamp(seq * 1000 + 500), reason },
        2 => ConsultVerdict::Override { transition: scene::goto("B.md"), reason },
        3 => ConsultVerdict::Stop { reason, scope: StopScope::Agent },
        4 => ConsultVerdict::Stop { reason, scope: StopScope::Run },
        _ => ConsultVerdict::Proceed,
    };
    vec![PluginVerdict { by: "guard".to_owned(), verdict }]
}

impl Journal {
    /// Applies the pushes to a new run.
    pub fn of(pushes: &[Push]) -> Self {
        let first = scene::first();
        let (run, _) = begin(&first).expect("a start");
        let mut journal = Self { run, records: vec![(None, first)], last: None };
        for push in pushes {
            journal.push(push);
        }
        journal
    }

    /// Returns the records alone.
    pub fn records(&self) -> impl Iterator<Item = &Record> {
        self.records.iter().map(|(_, record)| record)
    }

    fn now(&self) -> Timestamp {
        Timestamp(self.run.seq * 60_000)
    }

    fn push(&mut self, push: &Push) {
        match push {
            Push::Report { agent, judgement, cents, marked, chance } => {
                if let Some(acting) = self.agent(*agent).filter(|_| cents % 10 > 0) {
                    if acting.runs_program() {
                        return self.advance(&acting, *cents, *chance);
                    }
                    if programs::takes_no_turn(&acting) {
                        return self.serve(&acting);
                    }
                }
                if !self.run.agents.is_empty() {
                    let report = self.report(*agent, judgement, *cents, *marked);
                    self.settle(&report, *chance);
                    self.last = Some(report);
                }
            }
            Push::Again => {
                if let Some(report) = self.last.clone() {
                    self.settle(&report, 0.0);
                }
            }
            Push::Toggle { budget } => self.toggle(*budget),
            Push::Facts { dice } => self.facts(*dice),
            Push::Command => {
                let id = format!("c{}", self.run.seq);
                self.record(Event::CommandReceived { id, command: RunCommand::Stop });
            }
        }
    }

    /// Returns one of the live agents.
    fn agent(&self, agent: Index) -> Option<Agent> {
        let live: Vec<_> = self.run.agents.values().collect();
        (!live.is_empty()).then(|| live[agent.index(live.len())].clone())
    }

    fn report(
        &self,
        agent: Index,
        judgement: &TurnJudgement,
        cents: u32,
        marked: bool,
    ) -> TurnReport {
        let turn = self.agent(agent).expect("one lives").turn_id();
        let message = marked.then(|| MessageId::new(&format!("m{}", self.run.seq + 1)));
        let started = *judgement != TurnJudgement::NotStarted;
        let cost = Usd::from_dollars(if started { f64::from(cents) / 100.0 } else { 0.0 });
        let judgement = judgement.clone();
        let budget_usd = cents.is_multiple_of(3).then_some(cost);
        let child_options = AgentOptions {
            supervision: differing(cents),
            budget_usd,
            worktree: cents.is_multiple_of(5),
            no_snapshots: cents.is_multiple_of(10),
            host: cents.is_multiple_of(3).then(|| HostLabel::parse("gpu").expect("a label")),
        };
        let used = ModelUse { cost_usd: cost, ..ModelUse::default() };
        let usage = UsageByModel::from_iter([("opus".to_owned(), used)]);
        TurnReport {
            kept_session: None,
            stuck: None,
            turn,
            cost: TurnCost {
                amount: cost,
                estimated: false,
                usage,
                refused_tools: refused(cents),
                duration_ms: started.then_some(u64::from(cents)),
            },
            message,
            shown: Vec::new(),
            judgement,
            child_options,
            call_budget_usd: cents.is_multiple_of(4).then_some(cost),
            children: self.fork_groups(cents),
            stagger_ms: cents.is_multiple_of(2).then_some(u64::from(cents)),
            allowed: TransitionPolicy::default(),
            verdicts: verdicts(cents, self.run.seq),
            snapshot: None,
        }
    }

    fn settle(&mut self, report: &TurnReport, chance: f64) {
        let session = SessionId::new(&format!("s{}", self.run.seq + 1));
        let events = decide(
            &self.run,
            report,
            NondeterministicInputs { now: self.now(), session, ready: None, chance },
        );
        for event in events {
            self.record(event);
        }
        self.join(chance);
    }

    fn toggle(&mut self, budget: Option<u32>) {
        let budget_usd = budget.map(|cents| Usd::from_dollars(f64::from(cents) / 100.0));
        self.record(if self.run.status == RunStatus::Running {
            Event::RunPaused { pause: PauseReason::Interrupted }
        } else {
            let settings = Settings { budget_usd, ..self.run.settings.clone() };
            Event::RunResumed { settings: Box::new(settings) }
        });
    }

    fn record(&mut self, event: Event) {
        let record = Record::next(&self.run, self.now(), event);
        let before = self.run.clone();
        apply(&mut self.run, &record).expect("what was decided can happen");
        self.records.push((Some(before), record));
    }
}

/// Returns refused tools, for some turns.
fn refused(cents: u32) -> ToolRefusals {
    let mut refused = ToolRefusals::default();
    for number in 0..cents % 3 {
        let call = ToolRefusal { tool: format!("T{cents}{number}"), ..ToolRefusal::default() };
        refused.add(&ToolRefusal { times: 1, ..call }, NAMED_PER_TURN);
    }
    refused
}
