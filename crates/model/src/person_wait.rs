//! The waits of a run that a person can end, and the signals in the description of a program's wait.
//!
//! A person can end waits for answers, for approvals and for signals, and the waits of agents that are held or parked.

use schemars::JsonSchema;
use serde::Serialize;
use strum::{IntoStaticStr, VariantNames};

use crate::agent::{Agent, TurnHold};
use crate::fact::Fact;
use crate::graph_execution::{STATE_LABEL, is_ending};
use crate::id::AgentId;
use crate::run::{Run, RunStatus};
use crate::time::Timestamp;

/// A wait that a person can end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PersonWait {
    /// The agent that waits.
    pub agent: AgentId,
    /// The time at which the wait began.
    pub since: Timestamp,
    /// The time at which it ends in any case; `None` for no limit.
    pub until: Option<Timestamp>,
    /// The subject of the wait.
    pub subject: PersonWaitSubject,
}

/// The subject of such a wait.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema, IntoStaticStr, VariantNames)]
#[serde(untagged)]
#[strum(serialize_all = "snake_case")]
pub enum PersonWaitSubject {
    /// The answer to a question.
    Answer {
        /// The name of the question.
        node: String,
        /// The text of the question.
        question: String,
    },
    /// The approval of a tool call.
    Approval {
        /// The name of the approval.
        #[serde(rename = "approval")]
        name: String,
        /// The call in short.
        call: String,
    },
    /// A signal that its program waits for.
    Signal(AwaitedSignal),
    /// The person who holds the agent.
    Held,
    /// Whatever keeps the agent from going on. It goes on when the run is resumed.
    Parked { reason: String },
}

impl PersonWaitSubject {
    /// The names of all subjects.
    pub const NAMES: &'static [&'static str] = Self::VARIANTS;

    /// Returns its name for programs.
    pub fn name(&self) -> &'static str {
        self.into()
    }
}

/// Returns the waits of a run that a person can end, the longest first; none of a run that has ended.
pub fn person_waits(run: &Run) -> Vec<PersonWait> {
    match run.status {
        RunStatus::Running | RunStatus::Paused => {
            let mut waits: Vec<PersonWait> = run.agents.values().flat_map(of_agent).collect();
            waits.sort_by_key(|wait| wait.since);
            waits
        }
        RunStatus::Completed | RunStatus::Failed => Vec::new(),
    }
}

fn of_agent(agent: &Agent) -> Vec<PersonWait> {
    let wait =
        |since, until, subject| PersonWait { agent: agent.id.clone(), since, until, subject };
    let mut waits = Vec::new();
    if let Some(asked) = agent.question() {
        let (node, question) = (asked.question.node.clone(), asked.question.text.clone());
        let until = asked.late.as_ref().map(|late| late.at);
        waits.push(wait(asked.since, until, PersonWaitSubject::Answer { node, question }));
    }
    waits.extend(agent.open_approvals().map(|asked| {
        let (name, call) = (asked.name(), asked.request.summary());
        wait(asked.since, None, PersonWaitSubject::Approval { name, call })
    }));
    if let Some(program) = agent.program_wait() {
        let signals = AwaitedSignal::all_in(&program.awaiting);
        let of_people = signals.into_iter().filter(AwaitedSignal::is_for_people);
        waits.extend(
            of_people.map(|signal| {
                wait(program.since, program.until, PersonWaitSubject::Signal(signal))
            }),
        );
    }
    if let Some(since) = agent.orders.held() {
        waits.push(wait(since, None, PersonWaitSubject::Held));
    }
    if let Some(TurnHold::Person { reason }) = &agent.hold {
        let subject = PersonWaitSubject::Parked { reason: reason.clone() };
        waits.push(wait(agent.since, None, subject));
    }
    waits
}

// The signals in the description of a program's wait.
//
// The description is the condition in the words of the program, with its values at the time: all that a reader of the
// run's record needs in order to tell which facts the wait is about.

/// The beginning of a signal in a condition.
const SIGNAL: &str = "(signal ";

/// The description of a value that is not known yet.
const UNKNOWN: &str = "…";

/// A signal that a program waits for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct AwaitedSignal {
    pub label: String,
    /// The key; `None` for any.
    pub key: Option<String>,
    /// The payload; `None` for any.
    pub value: Option<String>,
}

impl AwaitedSignal {
    /// Returns the signals in the description of a wait, in their order.
    pub fn all_in(awaiting: &str) -> Vec<Self> {
        let mut found = Vec::new();
        let mut rest = awaiting;
        while let Some(first) = rest.chars().next() {
            if first == '"' {
                rest = atom(rest).1;
            } else if let Some(signal) = rest.strip_prefix(SIGNAL) {
                let (signal, after) = Self::read(signal);
                found.push(signal);
                rest = after;
            } else {
                rest = &rest[first.len_utf8()..];
            }
        }
        found
    }

    /// Reads a signal from behind its name; returns what follows it, too.
    fn read(text: &str) -> (Self, &str) {
        let (label, mut rest) = atom(text);
        let mut signal = Self { label, ..Self::default() };
        for (keyword, slot) in [(" :key ", &mut signal.key), (" :equals ", &mut signal.value)] {
            if let Some(value) = rest.strip_prefix(keyword) {
                let (value, after) = atom(value);
                *slot = Some(value).filter(|value| value != UNKNOWN);
                rest = after;
            }
        }
        (signal, rest)
    }

    /// Returns whether people assert such facts: the states of runs are asserted by these themselves.
    pub fn is_for_people(&self) -> bool {
        self.label != STATE_LABEL
    }

    /// Returns whether a fact decides this signal: it matches, or it tells that the run has ended otherwise.
    pub fn is_decided_by(&self, fact: &Fact) -> bool {
        let is_ended = !self.is_for_people() && self.key.is_some() && is_ending(&fact.value);
        self.label == fact.label
            && self.key.as_ref().is_none_or(|key| *key == fact.key)
            && (is_ended || self.value.as_ref().is_none_or(|value| *value == fact.value))
    }
}

/// Reads a value, with or without quotes; returns what follows it, too.
fn atom(text: &str) -> (String, &str) {
    let Some(quoted) = text.strip_prefix('"') else {
        let end = text.find([' ', ')']).unwrap_or(text.len());
        return (text[..end].to_owned(), &text[end..]);
    };
    let mut value = String::new();
    let mut chars = quoted.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return (value, &quoted[at + 1..]),
            '\\' => match chars.next() {
                Some((_, 'n')) => value.push('\n'),
                Some((_, 'r')) => value.push('\r'),
                Some((_, 't')) => value.push('\t'),
                Some((_, '0')) => value.push('\0'),
                Some((_, 'u')) => {
                    let digits = chars.by_ref().map(|(_, c)| c).skip(1);
                    let digits: String = digits.take_while(|c| *c != '}').collect();
                    let code = u32::from_str_radix(&digits, 16).ok().and_then(char::from_u32);
                    value.extend(code);
                }
                Some((_, other)) => value.push(other),
                None => {}
            },
            c => value.push(c),
        }
    }
    (value, "")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::scene::{Scene, tag};
    use crate::transition::TagName;

    #[test]
    fn parked_agents_wait_for_a_person_until_the_run_ends() {
        let mut scene = Scene::begin();
        scene.take("main", tag(TagName::Fork, "NEXT.md", "WORK.md"));
        assert_eq!(person_waits(&scene.run), []);
        let mut agent = scene.agent("main.1").clone();
        agent.hold = Some(TurnHold::Person { reason: "broken".to_owned() });
        scene.run.agents.insert(agent.clone());
        let waits = person_waits(&scene.run);
        let [PersonWait { agent: id, since, subject, .. }] = &waits[..] else {
            panic!("{waits:?}")
        };
        assert_eq!((id, *since), (&agent.id, agent.since));
        let PersonWaitSubject::Parked { reason } = subject else { panic!("{subject:?}") };
        assert_eq!((reason.as_str(), subject.name()), ("broken", "parked"));
        scene.run.status = RunStatus::Completed;
        assert_eq!(person_waits(&scene.run), []);
    }
}

#[cfg(test)]
mod awaited_signal_tests {
    use super::*;
    use crate::time::Timestamp;

    fn signal(label: &str, key: Option<&str>, value: Option<&str>) -> AwaitedSignal {
        let [key, value] = [key, value].map(|text| text.map(str::to_owned));
        AwaitedSignal { label: label.to_owned(), key, value }
    }

    fn fact(label: &str, key: &str, value: &str) -> Fact {
        let [label, key, value, source] = [label, key, value, "t"].map(str::to_owned);
        Fact { label, key, value, seq: 1, source, at: Timestamp(0) }
    }

    #[test]
    fn signals_are_read_from_the_description_of_a_wait() {
        let text = "(or (signal go) (and (signal a/b :key \"x \\\"y\\\" \\u{301}\" :equals yes) (matches (signal c :key t) \"(signal no)\")) (signal d :equals …))";
        let expected = [
            signal("go", None, None),
            signal("a/b", Some("x \"y\" \u{301}"), Some("yes")),
            signal("c", Some("t"), None),
            signal("d", None, None),
        ];
        assert_eq!(AwaitedSignal::all_in(text), expected);
        assert!(
            AwaitedSignal::all_in("(transcript-response :request-id \"(signal x)\")").is_empty()
        );
        for cut in ["(signal", "(signal ", "(signal a :key", "(signal a :key \"x\\"] {
            let _ = AwaitedSignal::all_in(cut);
        }
    }

    #[test]
    fn fact_decides_the_signals_of_its_label_key_and_value() {
        let yes = signal("plan", Some("t"), Some("yes"));
        assert!(yes.is_decided_by(&fact("plan", "t", "yes")));
        for other in [fact("plan", "t", "no"), fact("plan", "u", "yes"), fact("p", "t", "yes")] {
            assert!(!yes.is_decided_by(&other), "{other:?}");
        }
        assert!(signal("plan", None, None).is_decided_by(&fact("plan", "u", "no")));
        let state = signal(STATE_LABEL, Some("f"), Some("completed"));
        assert!(state.is_decided_by(&fact(STATE_LABEL, "f", "failed")), "it has ended otherwise");
        assert!(!state.is_decided_by(&fact(STATE_LABEL, "f", "running s")));
        assert!(!state.is_decided_by(&fact(STATE_LABEL, "g", "failed")));
        let any = signal(STATE_LABEL, None, Some("completed"));
        assert!(!any.is_decided_by(&fact(STATE_LABEL, "f", "failed")), "another run may complete");
    }
}
