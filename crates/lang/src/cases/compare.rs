//! Compares a run with what is expected of it: its outcome, its path, and the texts of its files and facts.

use std::fmt::Write as _;

use serde::Serialize;
use serde_json::Value;

use crate::cases::CaseTexts;
use crate::cases::expectation::{
    Expectation, ExpectedFailure, PathOrder, PlacedExpectation, TextRule,
};
use crate::cases::keys::ExpectedStatus;
use crate::output::field;
use crate::source::SourcePlace;
use crate::text_pattern::TextPattern;
use raymond_model::id::AgentId;
use raymond_model::observed_run::{ObservedEnding, ObservedRun};

impl Expectation {
    /// Returns the file beside the case that it is about, and the text of the run that has to equal it.
    pub fn golden<'run>(
        &'run self,
        run: &'run ObservedRun,
        texts: &'run CaseTexts,
    ) -> Option<(&'run str, Option<&'run str>)> {
        match self {
            Self::Result(agent, TextRule::Golden(file)) => Some((file.as_str(), run.result(agent))),
            Self::FileText(path, TextRule::Golden(file)) => {
                Some((file.as_str(), texts.files.get(path.as_str()).map(String::as_str)))
            }
            _ => None,
        }
    }

    /// Returns whether it is about the outcome of a run, which does not depend on what happens to the program
    /// meanwhile: a turn that was begun may then be taken twice.
    pub fn is_about_outcome(&self) -> bool {
        !matches!(self, Self::TurnsAtMost(_) | Self::CostAtMost(_) | Self::NoWarning)
    }

    /// Returns the file of the working directory that it is about.
    pub fn file(&self) -> Option<&str> {
        match self {
            Self::FileExists(path, _) | Self::FileText(path, _) => Some(path.as_str()),
            _ => None,
        }
    }
}

/// Returns the expectations that do not hold, in their order.
pub fn mismatches(
    expected: &[PlacedExpectation],
    run: &ObservedRun,
    texts: &CaseTexts,
) -> Vec<CaseMismatch> {
    expected.iter().filter_map(|(at, wanted)| mismatch(*at, wanted, run, texts)).collect()
}

/// An expectation and what was found instead, in words.
type ExpectedAndFound = (String, String);

fn mismatch(
    at: SourcePlace,
    expectation: &Expectation,
    run: &ObservedRun,
    texts: &CaseTexts,
) -> Option<CaseMismatch> {
    if let Expectation::Path(agent, order, states) = expectation {
        return match order {
            PathOrder::Any => set_mismatch(at, agent.as_ref(), states, run),
            PathOrder::Listed => step_mismatch(at, agent.as_ref(), states, run),
        };
    }
    let (expected, found) = difference(expectation, run, texts)?;
    Some(CaseMismatch { at, expected, found, path: None })
}

/// Returns the difference of a run from an expectation that is about no path.
fn difference(
    expectation: &Expectation,
    run: &ObservedRun,
    texts: &CaseTexts,
) -> Option<ExpectedAndFound> {
    let at_most = |is_more: bool, what: &str, most: String, found: String| {
        is_more.then(|| (format!("at most {most}{what}"), format!("{found}{what}")))
    };
    match expectation {
        // A path is compared step by step, with its own places.
        Expectation::Path(..) => None,
        Expectation::Result(agent, rule) => result(agent, rule, run, texts),
        Expectation::Agents(count) => agents(*count, run),
        Expectation::CostAtMost(most) => {
            at_most(run.cost > *most, "", most.to_string(), run.cost.to_string())
        }
        Expectation::TurnsAtMost(most) => {
            at_most(run.turns > *most, " turns", most.to_string(), run.turns.to_string())
        }
        Expectation::FileExists(path, wanted) => file_exists(path.as_str(), *wanted, texts),
        Expectation::FileText(path, rule) => file_text(path.as_str(), rule, texts),
        Expectation::Fact(label, wanted) => fact(label, wanted.as_ref(), texts),
        Expectation::Failure(wanted) => failure(wanted, run),
        Expectation::Status(wanted) => status(*wanted, run),
        Expectation::Exit(code) => (u64::from(run.exit) != *code)
            .then(|| (format!("exit code {code}"), with_failures(run.exit.to_string(), run))),
        Expectation::NoWarning => (!run.warnings.is_empty())
            .then(|| ("no warning and no reminder".to_owned(), run.warnings.join("; "))),
    }
}

fn result(
    agent: &AgentId,
    rule: &TextRule,
    run: &ObservedRun,
    texts: &CaseTexts,
) -> Option<ExpectedAndFound> {
    let name = format!("the result of {agent}");
    match run.endings.get(agent) {
        Some(ObservedEnding::Result(text)) => {
            let (expected, found) = broken(rule, text, texts)?;
            Some((format!("{name} {expected}"), found))
        }
        Some(ObservedEnding::Failure { message, .. }) => {
            Some((name, format!("it has failed: {message}")))
        }
        None if run.agents.contains(agent) => Some((name, "it has not ended".to_owned())),
        None => Some((name, no_agent(agent, run))),
    }
}

fn agents(count: u64, run: &ObservedRun) -> Option<ExpectedAndFound> {
    let found = run.agents.len() as u64;
    let names = || run.agents.iter().map(AgentId::as_str).collect::<Vec<_>>().join(", ");
    (found != count).then(|| (format!("{count} agents"), format!("{found}: {}", names())))
}

fn file_exists(path: &str, wanted: bool, texts: &CaseTexts) -> Option<ExpectedAndFound> {
    let there = texts.files.contains_key(path);
    let words = |there| if there { "is there" } else { "is not there" };
    (there != wanted)
        .then(|| (format!("the file {path} {}", words(wanted)), format!("it {}", words(there))))
}

fn file_text(path: &str, rule: &TextRule, texts: &CaseTexts) -> Option<ExpectedAndFound> {
    let Some(text) = texts.files.get(path) else {
        return Some((format!("the file {path}"), "it is not there".to_owned()));
    };
    let (expected, found) = broken(rule, text, texts)?;
    Some((format!("the file {path} {expected}"), found))
}

fn status(wanted: ExpectedStatus, run: &ObservedRun) -> Option<ExpectedAndFound> {
    let found = status_of(run.exit);
    let words =
        || found.map_or_else(|| format!("exit code {}", run.exit), |found| found.to_string());
    (found != Some(wanted)).then(|| (format!("status {wanted}"), with_failures(words(), run)))
}

/// Returns the end that an exit code stands for.
fn status_of(exit: u8) -> Option<ExpectedStatus> {
    match exit {
        0 => Some(ExpectedStatus::Completed),
        1 => Some(ExpectedStatus::Failed),
        2 => Some(ExpectedStatus::Waiting),
        75 => Some(ExpectedStatus::Paused),
        _ => None,
    }
}

fn fact(label: &str, wanted: Option<&TextPattern>, texts: &CaseTexts) -> Option<(String, String)> {
    let values = texts.facts.get(label).map(Vec::as_slice).unwrap_or_default();
    let found = || match values {
        [] => "it does not hold".to_owned(),
        values => format!("{values:?}"),
    };
    match wanted {
        None => (!values.is_empty()).then(|| (format!("no fact {label}"), found())),
        Some(pattern) => (!values.iter().any(|value| pattern.fits(value)))
            .then(|| (format!("the fact {label} with {pattern}"), found())),
    }
}

fn failure(wanted: &ExpectedFailure, run: &ObservedRun) -> Option<(String, String)> {
    let fits = |(agent, ending): (&AgentId, &ObservedEnding)| {
        let ObservedEnding::Failure { cause, message } = ending else { return false };
        wanted.agent.as_ref().is_none_or(|wanted| wanted == agent)
            && wanted.cause.is_none_or(|wanted| Some(wanted) == *cause)
            && wanted.message.as_ref().is_none_or(|wanted| wanted.is_in(message))
    };
    if run.endings.iter().any(fits) {
        return None;
    }
    let mut expected = "a failure".to_owned();
    for (word, part) in [
        ("of", wanted.agent.as_ref().map(ToString::to_string)),
        ("by", wanted.cause.map(|cause| cause.to_string())),
        ("that says", wanted.message.as_ref().map(ToString::to_string)),
    ] {
        expected.push_str(&part.map(|part| format!(" {word} {part}")).unwrap_or_default());
    }
    let failures: Vec<String> = run
        .endings
        .iter()
        .filter_map(|(agent, ending)| match ending {
            ObservedEnding::Failure { cause: Some(cause), message } => {
                Some(format!("{agent} ({cause}): {message}"))
            }
            ObservedEnding::Failure { cause: None, message } => Some(format!("{agent}: {message}")),
            ObservedEnding::Result(_) => None,
        })
        .collect();
    let found = if failures.is_empty() {
        with_failures("no agent has failed".to_owned(), run)
    } else {
        failures.join("; ")
    };
    Some((expected, found))
}

/// Returns what was expected of a text and what it is instead, if the rule is broken.
pub(super) fn broken(rule: &TextRule, text: &str, texts: &CaseTexts) -> Option<(String, String)> {
    let quoted = || format!("{text:?}");
    match rule {
        TextRule::Is(pattern) => (!pattern.fits(text)).then(|| match pattern {
            TextPattern::Text(whole) => (format!("is {whole:?}"), quoted()),
            TextPattern::Regex(_) => (format!("matches {pattern}"), quoted()),
        }),
        TextRule::Contains(part) => {
            (!part.is_in(text)).then(|| (format!("contains {part}"), quoted()))
        }
        TextRule::Schema(schema) => {
            let expected = "is JSON that matches the schema".to_owned();
            let Ok(value) = serde_json::from_str::<Value>(text) else {
                return Some((expected, format!("it is not valid JSON: {text:?}")));
            };
            let validator = jsonschema::draft7::new(schema).ok()?;
            let errors: Vec<String> = validator
                .iter_errors(&value)
                .map(|error| format!("at {}: {error}", error.instance_path().as_str()))
                .collect();
            (!errors.is_empty()).then(|| (expected, errors.join("; ")))
        }
        TextRule::Field(path, wanted) => {
            let value = serde_json::from_str::<Value>(text).unwrap_or_default();
            let found = field(&value, path);
            (found != Some(wanted)).then(|| {
                let found = found.map_or_else(
                    || format!("there is no such field in {text:?}"),
                    Value::to_string,
                );
                (format!("has {path}: {wanted}"), found)
            })
        }
        TextRule::Golden(file) => {
            let file = file.as_str();
            let expected = format!("equals {file}");
            match texts.goldens.get(file) {
                None => Some((
                    expected,
                    format!("the file {file} is missing beside the case; --update creates it"),
                )),
                Some(golden) if golden.trim_end() != text.trim_end() => {
                    Some((expected, first_difference(golden, text)))
                }
                Some(_) => None,
            }
        }
    }
}

/// Returns the first line in which two texts differ.
fn first_difference(golden: &str, text: &str) -> String {
    // A line keeps its carriage return, which may be all the difference.
    let (mut wanted, mut found) = (golden.trim_end().split('\n'), text.trim_end().split('\n'));
    let mut number = 1;
    loop {
        let (expected, actual) = (wanted.next(), found.next());
        if expected != actual || expected.is_none() {
            let shown =
                |line: Option<&str>| line.map_or("the end".to_owned(), |line| format!("{line:?}"));
            return format!("line {number} is {}, not {}", shown(actual), shown(expected));
        }
        number += 1;
    }
}

/// Returns whether a state of a path is the expected one. The file of a graph or a program may be left out.
fn fits(expected: &str, place: &str) -> bool {
    expected == place || place.split_once('#').is_some_and(|(_, part)| part == expected)
}

/// Returns the name of the agent, or of all.
fn owner(agent: Option<&AgentId>) -> String {
    agent.map_or_else(|| "all agents".to_owned(), ToString::to_string)
}

fn set_mismatch(
    at: SourcePlace,
    agent: Option<&AgentId>,
    states: &[(SourcePlace, String)],
    run: &ObservedRun,
) -> Option<CaseMismatch> {
    let (steps, whose) = (run.path(agent), owner(agent));
    let missing = states.iter().find(|(_, state)| !steps.iter().any(|step| fits(state, step)));
    let extra = steps.iter().find(|step| !states.iter().any(|(_, state)| fits(state, step)));
    let (at, expected, found) = match (missing, extra) {
        (Some((at, state)), _) => {
            (*at, format!("{state} in the path of {whose}"), "it was never entered".to_owned())
        }
        (None, Some(step)) => {
            (at, format!("no other states in the path of {whose}"), (*step).to_owned())
        }
        (None, None) => return None,
    };
    Some(CaseMismatch { at, expected, found, path: None })
}

fn step_mismatch(
    at: SourcePlace,
    agent: Option<&AgentId>,
    states: &[(SourcePlace, String)],
    run: &ObservedRun,
) -> Option<CaseMismatch> {
    let (steps, whose) = (run.path(agent), owner(agent));
    let step = (0..states.len().max(steps.len())).find(|&step| {
        match (states.get(step), steps.get(step)) {
            (Some((_, expected)), Some(place)) => !fits(expected, place),
            _ => true,
        }
    })?;
    let wanted = states.get(step);
    let expected = match wanted {
        Some((_, state)) => format!("{state} as step {} of {whose}", step + 1),
        None => format!("the end of the path of {whose} after {step} steps"),
    };
    let found = match steps.get(step) {
        Some(place) => (*place).to_owned(),
        None if agent.is_some_and(|agent| !run.agents.contains(agent)) => {
            agent.map(|agent| no_agent(agent, run)).unwrap_or_default()
        }
        None => with_failures("the end of the path".to_owned(), run),
    };
    let difference = agent.map(|agent| PathDifference {
        agent: agent.clone(),
        step,
        expected: wanted.map(|(_, state)| state.clone()),
    });
    Some(CaseMismatch { at: wanted.map_or(at, |(at, _)| *at), expected, found, path: difference })
}

/// An expectation that does not hold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CaseMismatch {
    /// The place of the expectation.
    #[serde(flatten)]
    pub at: SourcePlace,
    /// The expectation, in words.
    pub expected: String,
    /// The run's own value, in words.
    pub found: String,
    /// The first difference of a path.
    #[serde(skip)]
    pub path: Option<PathDifference>,
}

/// The first step of a path that is not as expected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathDifference {
    pub agent: AgentId,
    /// The number of the step, from 0.
    pub step: usize,
    /// The state that was expected there, if there was to be one.
    pub expected: Option<String>,
}

/// Adds the failures of agents and the reason of a pause to a text.
pub(super) fn with_failures(mut text: String, run: &ObservedRun) -> String {
    for (agent, ending) in &run.endings {
        if let ObservedEnding::Failure { message, .. } = ending {
            let _ = write!(text, "; {agent} has failed: {message}");
        }
    }
    if let Some(pause) = &run.pause {
        let _ = write!(text, "; it is paused: {pause}");
    }
    text
}

/// Returns the text that there is no such agent, and which there are.
pub(super) fn no_agent(agent: &AgentId, run: &ObservedRun) -> String {
    let names: Vec<&str> = run.agents.iter().map(AgentId::as_str).collect();
    format!("no agent {agent}; the agents are {}", names.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases::read;
    use raymond_model::observed_run::ObservedStep;

    fn run(places: &[&str]) -> ObservedRun {
        let step =
            |place: &&str| ObservedStep { agent: AgentId::main(), place: (*place).to_owned() };
        let mut run =
            ObservedRun { steps: places.iter().map(step).collect(), ..ObservedRun::default() };
        run.agents.insert(AgentId::main());
        run.endings.insert(AgentId::main(), ObservedEnding::Result("{\"a\": [7]}".to_owned()));
        run
    }

    /// Returns the first difference of a run from an expectation.
    fn differs(expect: &str, places: &[&str]) -> Option<(u64, String)> {
        let text = format!("expect:\n  {expect}\n");
        let cases = read("x", &text).unwrap_or_else(|errors| panic!("{errors:?}"));
        let texts = CaseTexts::default();
        let found = mismatches(&cases[0].expected, &run(places), &texts).into_iter().next()?;
        Some((found.at.column, format!("{} / {}", found.expected, found.found)))
    }

    #[test]
    fn path_differs_at_its_first_step_that_is_not_as_expected() {
        let places = ["A.md", "flow.yaml#check", "B.md"];
        assert_eq!(differs("path: [A.md, check, B.md]", &places), None);
        let difference = "C.md as step 3 of main / B.md".to_owned();
        assert_eq!(differs("path: [A.md, check, C.md]", &places), Some((23, difference)));
        let difference = "the end of the path of main after 2 steps / B.md".to_owned();
        assert_eq!(differs("path: [A.md, check]", &places), Some((9, difference)));
        let difference = "D.md as step 4 of main / the end of the path".to_owned();
        assert_eq!(differs("path: [A.md, check, B.md, D.md]", &places), Some((29, difference)));
        assert_eq!(differs("path: { set: [B.md, A.md, check] }", &places), None);
    }

    #[test]
    fn field_of_a_result_is_found_by_its_path() {
        assert_eq!(differs("result: { fields: { a.0: 7 } }", &[]), None);
        let difference = "the result of main has a.0: 8 / 7".to_owned();
        assert_eq!(differs("result: { fields: { a.0: 8 } }", &[]), Some((23, difference)));
    }

    #[test]
    fn first_difference_shows_a_carriage_return() {
        assert_eq!(first_difference("a\r\nb", "a\nb"), r#"line 1 is "a", not "a\r""#);
        assert_eq!(first_difference("a\nb\n", "a"), r#"line 2 is the end, not "b""#);
    }
}
