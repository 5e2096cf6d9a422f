//! The agents that each state may wait for.
//!
//! These are the forks before it, at its own level of the return stack or a deeper one, that no join has taken since.
//!
//! The analysis finds all possible agents: a state without any is certain to wait for nobody.

use std::collections::{BTreeMap, BTreeSet};

use raymond_model::id::StateName;
use raymond_model::join::{Join, JoinCondition, JoinFallback, UnjoinedPolicy};
use raymond_model::transition::Transition;
use serde_json::{Value, json};

use super::workflow_map::{FolderPrompt, FolderState, WorkflowMap, call};
use crate::diagnostic::closest;
use crate::schema;
use crate::supervision::some_time;
use crate::yaml::{Error, PlacedValue, YamlErrors, value};

/// The agents that may be waited for in a state.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JoinableAgents<'a> {
    /// The states they start in.
    pub born_in: BTreeSet<&'a StateName>,
    /// True if there may be others, because an agent on the way may take any transition.
    pub others: bool,
}

impl JoinableAgents<'_> {
    /// Returns whether there are no such agents.
    pub fn is_nobody(&self) -> bool {
        self.born_in.is_empty() && !self.others
    }

    /// Adds agents; returns whether any of them is new.
    fn add(&mut self, more: &Self) -> bool {
        let before = (self.born_in.len(), self.others);
        self.born_in.extend(&more.born_in);
        self.others |= more.others;
        before != (self.born_in.len(), self.others)
    }
}

/// Returns the agents that each state may wait for, if it waits.
pub fn awaited(workflow_map: &WorkflowMap) -> BTreeMap<&StateName, JoinableAgents<'_>> {
    let called = workflow_map.ways().filter_map(|transition| Some(call(transition)?.0));
    let mut behind = JoinAnalysis {
        levels: called.map(|target| (target, workflow_map.level([target]))).collect(),
        workflow_map,
        all: BTreeMap::new(),
    };
    if workflow_map.is_entered {
        let from_outside = JoinableAgents { others: true, ..JoinableAgents::default() };
        behind.all.insert(&workflow_map.entry, from_outside);
    }
    while behind.advance() {}
    behind.all
}

/// The agents known so far behind each state.
struct JoinAnalysis<'a> {
    workflow_map: &'a WorkflowMap,
    /// The states at the level of each called state.
    levels: BTreeMap<&'a StateName, BTreeSet<&'a StateName>>,
    all: BTreeMap<&'a StateName, JoinableAgents<'a>>,
}

impl<'a> JoinAnalysis<'a> {
    /// Advances the analysis by one step from each state; returns whether it found something new.
    fn advance(&mut self) -> bool {
        let mut is_new = false;
        for (name, prompt) in self.workflow_map.texts() {
            let left = self.left(name, prompt);
            let ways =
                prompt.ways.iter().filter_map(|way| self.behind(name, &way.transition, &left));
            let mut come_to: Vec<(Vec<&StateName>, JoinableAgents<'_>)> = ways.collect();
            let mentioned = prompt.mentioned.iter().filter(|_| prompt.is_open());
            come_to.push((mentioned.collect(), left));
            for (states, agents) in come_to {
                for state in states {
                    is_new |= self.all.entry(state).or_default().add(&agents);
                }
            }
        }
        is_new
    }

    /// Returns the agents that may be waited for after a state: a join has taken all of them.
    fn left(&self, name: &StateName, prompt: &FolderPrompt) -> JoinableAgents<'a> {
        let mut left = match prompt.frontmatter.join {
            Some(_) => JoinableAgents::default(),
            None => self.all.get(name).cloned().unwrap_or_default(),
        };
        left.others |= prompt.is_open();
        left
    }

    /// Returns the states to which a way leads the agent itself, at its own level, and the agents behind it there. A
    /// called or forked state has no agents behind it.
    fn behind(
        &self,
        name: &StateName,
        transition: &'a Transition,
        left: &JoinableAgents<'a>,
    ) -> Option<(Vec<&'a StateName>, JoinableAgents<'a>)> {
        let mut behind = left.clone();
        let states = match transition {
            Transition::Result { .. } => return None,
            Transition::Goto { target, .. } => vec![target],
            Transition::Ask { .. } => transition.states().collect(),
            Transition::Reset { target, .. } => {
                // The agents behind all callers are behind it, too.
                behind.others |= self.levels.values().any(|level| level.contains(name));
                vec![target]
            }
            Transition::Fork { target, next, .. } => {
                behind.born_in.insert(target);
                vec![next]
            }
            Transition::Call { target, return_to, .. }
            | Transition::Function { target, return_to, .. } => {
                for name in self.levels.get(target).into_iter().flatten() {
                    let state = self.workflow_map.states.get(*name).and_then(FolderState::text);
                    // What a subroutine leaves in another folder is not known here.
                    behind.others |= name.in_other_folder().is_some();
                    if let Some(prompt) = state.filter(|prompt| prompt.may_end()) {
                        behind.add(&self.left(name, prompt));
                    }
                }
                vec![return_to]
            }
        };
        Some((states, behind))
    }
}

// The frontmatter keys of forks and joins.
//
// ```yaml
// forks: many             # several <fork> tags in one reply are one step
// max_fan_out: 200        # how many agents one reply may fork
// stagger: 3s             # how long the first of them starts ahead of the others
// ```
//
// ```yaml
// join: all               # all, any, or how many have to end well
// timeout: 2h
// on_timeout: fail        # fail, keep or STATE.md
// on_failure: keep        # fail, keep or STATE.md
// rest: leave             # leave or stop: those that still live then
// ```

/// The keys of a join as they are written.
pub(super) struct RawJoin {
    pub(super) join: Option<PlacedValue<String>>,
    pub(super) timeout: Option<PlacedValue<String>>,
    pub(super) on_timeout: Option<PlacedValue<String>>,
    pub(super) on_failure: Option<PlacedValue<String>>,
    pub(super) rest: Option<PlacedValue<String>>,
}

impl RawJoin {
    /// Returns the join that the keys describe; without `join`, the others are mistakes.
    pub(super) fn read(self, errors: &mut YamlErrors) -> Option<Join> {
        let Self { join, timeout, on_timeout, on_failure, rest } = self;
        if join.is_none() {
            let keys = [
                ("timeout", &timeout),
                ("on_timeout", &on_timeout),
                ("on_failure", &on_failure),
                ("rest", &rest),
            ];
            for (key, written) in keys {
                if let Some(written) = written {
                    let message = format!(
                        "`{key}` says how long or how a join waits; it needs `join: all`, `any` or a number beside it{}",
                        if key == "timeout" {
                            "; how long a turn may take is `supervision: { timeout: … }`"
                        } else {
                            ""
                        }
                    );
                    errors.keep::<()>(Err(Error::at(written.at, message)));
                }
            }
            return None;
        }
        if let (Some(late), None) = (&on_timeout, &timeout) {
            let message = "`on_timeout` needs a `timeout` beside it, such as 2h".to_owned();
            errors.keep::<()>(Err(Error::at(late.at, message)));
        }
        let need = errors.keep(value(join, join_condition)).flatten();
        let timeout_ms = errors.keep(value(timeout, some_time)).flatten();
        let on_timeout = errors.keep(value(on_timeout, join_fallback)).flatten();
        let on_failure = errors.keep(value(on_failure, join_fallback)).flatten();
        let rest = errors.keep(value(rest, unjoined_policy)).flatten();
        Some(Join {
            need: need?,
            timeout_ms,
            on_timeout: on_timeout.unwrap_or_default(),
            on_failure: on_failure.unwrap_or_default(),
            rest: rest.unwrap_or_default(),
        })
    }
}

fn join_condition(text: &str) -> Result<JoinCondition, String> {
    match (text, text.parse()) {
        ("all", _) => Ok(JoinCondition::All),
        ("any", _) => Ok(JoinCondition::Any),
        (_, Ok(count)) if count > 0 => Ok(JoinCondition::Count(count)),
        _ => Err(format!(
            "`{text}` is not a number of agents; write all, any, or how many of them have to succeed"
        )),
    }
}

fn join_fallback(text: &str) -> Result<JoinFallback, String> {
    match text {
        "fail" => return Ok(JoinFallback::Fail),
        "keep" => return Ok(JoinFallback::Keep),
        _ => {}
    }
    let state = StateName::parse(text).map_err(|error| error.to_string())?;
    // A script without an ending could be any word.
    if state.is_state_by_ending() {
        return Ok(JoinFallback::State(state));
    }
    let meant = closest(text, ["fail", "keep"]).map(|word| format!("; did you mean `{word}`?"));
    let meant = meant.unwrap_or_else(|| "; write fail, keep, or a file such as LATE.md".to_owned());
    Err(format!("`{text}` is not a valid fallback{meant}"))
}

fn unjoined_policy(text: &str) -> Result<UnjoinedPolicy, String> {
    match text {
        "leave" => Ok(UnjoinedPolicy::Leave),
        "stop" => Ok(UnjoinedPolicy::Stop),
        _ => Err(format!("`{text}` is not a policy for the remaining agents; write leave or stop")),
    }
}

/// Returns the values of `forks` as JSON Schema.
pub(super) fn forks_shape() -> Value {
    schema::one_of(["one", "many"])
}

/// Returns the values of `join` as JSON Schema.
pub(super) fn join_shape() -> Value {
    json!({ "anyOf": [{ "enum": ["all", "any"] }, schema::count()] })
}

/// Returns the values of `rest` as JSON Schema.
pub(super) fn rest_shape() -> Value {
    schema::one_of(["leave", "stop"])
}

/// Returns whether one reply may have several `<fork>` tags.
pub(super) fn forks(text: &str) -> Result<bool, String> {
    match text {
        "many" => Ok(true),
        "one" => Ok(false),
        _ => Err(format!("`{text}` is not how often a reply may fork; write many, or one")),
    }
}

/// Reads a number of agents.
///
/// # Errors
/// A text that says what is expected.
pub fn count(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(count) if count > 0 => Ok(count),
        _ => Err("write how many agents there may be at the most, such as 200".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prompt::workflow_map::WorkflowMapOptions;

    /// Returns the states with a join, each with the agents it may wait for; `?` stands for others.
    fn found(files: &[(&str, &str)]) -> Vec<String> {
        let policy = |entries: &str| {
            let (head, entries) = entries.split_once(" | ").unwrap_or(("", entries));
            let entries = entries.split("; ").map(|entry| format!("  - {{ tag: {entry} }}\n"));
            let head = if head.is_empty() { String::new() } else { format!("{head}\n") };
            format!("---\n{head}allowed_transitions:\n{}---\nx\n", entries.collect::<String>())
        };
        let text = |text: &str| {
            if text.contains('<') { text.to_owned() } else { policy(text) }
        };
        let source: BTreeMap<String, String> =
            files.iter().map(|(name, entries)| ((*name).to_owned(), text(entries))).collect();
        let reach = WorkflowMapOptions { by_text: true, max_states: 100, graphs: None };
        let workflow_map =
            WorkflowMap::of(&StateName::parse("A.md").expect("a state"), &source, reach);
        let awaited = awaited(&workflow_map);
        let joins = workflow_map.prompts().filter(|(_, prompt)| prompt.frontmatter.join.is_some());
        let shown = joins.map(|(name, _)| {
            let agents = awaited.get(name).cloned().unwrap_or_default();
            let born: Vec<&str> = agents.born_in.iter().map(|name| name.as_str()).collect();
            format!("{name}: {}{}", born.join(" "), if agents.others { "?" } else { "" })
        });
        shown.collect()
    }

    #[test]
    fn join_waits_for_forks_on_path_to_it() {
        let end = ("END.md", "join: all | result");
        let of = |files: &[(&str, &str)]| found(&[files, &[end, ("W.md", "result")]].concat());
        assert_eq!(of(&[("A.md", "fork, target: W.md, next: END.md")]), ["END.md: W.md"]);
        assert_eq!(of(&[("A.md", "goto, target: END.md")]), ["END.md: "]);
        let through = [
            ("A.md", "fork, target: W.md, next: B.md"),
            ("B.md", "ask, next: C.md; call, target: W.md, return: C.md"),
            ("C.md", "reset, target: END.md"),
        ];
        assert_eq!(of(&through), ["END.md: W.md"]);
        let workers_wait = [("A.md", "fork, target: END.md, next: W.md")];
        assert_eq!(of(&workers_wait), ["END.md: "], "a worker has forked nobody yet");
    }

    #[test]
    fn join_leaves_no_forks_for_later_joins() {
        let files = [
            ("A.md", "fork, target: W.md, next: B.md"),
            ("B.md", "join: all | goto, target: C.md"),
            ("C.md", "join: all\non_failure: D.md | result"),
            ("D.md", "join: any | result"),
            ("W.md", "result"),
        ];
        assert_eq!(found(&files), ["B.md: W.md", "C.md: ", "D.md: "]);
    }

    #[test]
    fn callee_forks_reach_caller_join_but_not_vice_versa() {
        let files = [
            ("A.md", "fork, target: V.md, next: B.md"),
            ("B.md", "call, target: SUB.md, return: END.md"),
            ("SUB.md", "join: all | fork, target: W.md, next: LAST.md"),
            ("LAST.md", "result"),
            ("END.md", "join: all | result"),
            ("V.md", "result"),
            ("W.md", "result"),
        ];
        assert_eq!(found(&files), ["SUB.md: ", "END.md: V.md W.md"]);
    }

    #[test]
    fn state_without_policy_may_fork() {
        let files = [("A.md", "Go to B.md, or <result>x</result>"), ("B.md", "join: all | result")];
        assert_eq!(found(&files), ["B.md: ?"]);
    }
}

#[cfg(test)]
mod forking_tests {
    use super::super::frontmatter::parse;
    use super::*;
    use raymond_model::settings::ForkRules;

    fn wrong(yaml: &str) -> String {
        parse(yaml).expect_err("wrong").to_string()
    }

    #[test]
    fn fork_options_are_parsed_and_invalid_values_are_errors() {
        let read = parse("forks: many\nmax_fan_out: 20\nstagger: 1500ms\n").expect("valid");
        assert!(read.policy.many_forks);
        let rules = ForkRules { max_fan_out: Some(20), stagger_ms: Some(1500) };
        assert_eq!(read.forks, rules);
        assert_eq!(
            wrong("forks: lots\n"),
            "1:8: `lots` is not how often a reply may fork; write many, or one"
        );
        assert_eq!(
            wrong("max_fan_out: 0\n"),
            "1:14: write how many agents there may be at the most, such as 200"
        );
    }

    #[test]
    fn join_options_are_parsed() {
        let read = |yaml: &str| parse(yaml).expect("valid").join.expect("a join");
        let plain = read("join: all\n");
        assert_eq!((plain.need, plain.timeout_ms), (JoinCondition::All, None));
        assert_eq!((plain.on_failure, plain.rest), (JoinFallback::Fail, UnjoinedPolicy::Leave));
        let whole =
            read("join: 7\ntimeout: 2h\non_timeout: LATE.md\non_failure: keep\nrest: stop\n");
        assert_eq!((whole.need, whole.timeout_ms), (JoinCondition::Count(7), Some(7_200_000)));
        let late = StateName::parse("LATE.md").expect("a state");
        assert_eq!(whole.on_timeout, JoinFallback::State(late));
        assert_eq!((whole.on_failure, whole.rest), (JoinFallback::Keep, UnjoinedPolicy::Stop));
        assert_eq!(read("join: any\n").need, JoinCondition::Any);
        let script = StateName::parse("FIX.sh").expect("a state");
        let failed = read("join: all\non_failure: FIX.sh\n").on_failure;
        assert_eq!(failed, JoinFallback::State(script));
    }

    #[test]
    fn invalid_join_is_error_with_location() {
        assert_eq!(
            wrong("join: most\n"),
            "1:7: `most` is not a number of agents; write all, any, or how many of them have to succeed"
        );
        assert!(wrong("join: 0\n").starts_with("1:7: `0` is not a number"));
        assert_eq!(
            wrong("join: all\non_timeout: keep\n"),
            "2:13: `on_timeout` needs a `timeout` beside it, such as 2h"
        );
        assert_eq!(
            wrong("join: all\non_failure: kep\n"),
            "2:13: `kep` is not a valid fallback; did you mean `keep`?"
        );
        assert_eq!(
            wrong("join: all\nrest: kill\n"),
            "2:7: `kill` is not a policy for the remaining agents; write leave or stop"
        );
        assert!(wrong("on_failure: keep\n").contains("needs `join: all`, `any` or a number"));
        assert!(wrong("timeout: 1h\n").contains("supervision: { timeout: … }"));
    }
}
