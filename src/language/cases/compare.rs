//! Compares a run with what is expected of it.

use serde_json::Value;

use crate::domain::id::AgentId;
use crate::domain::observed_run::{ObservedEnding, ObservedRun};
use crate::language::cases::compare_path::{CaseMismatch, no_agent, path_mismatch, with_failures};
use crate::language::cases::expectation::{
    Expectation, ExpectedFailure, PlacedExpectation, TextRule,
};
use crate::language::cases::expected_status::ExpectedStatus;
use crate::language::cases::file::CaseTexts;
use crate::language::output::field;
use crate::language::position::SourcePlace;
use crate::language::text_pattern::TextPattern;

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

    /// Returns whether it is about what a run comes to, whatever happens to the program meanwhile: a turn that was
    /// begun may be taken twice then.
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
    expected.iter().filter_map(|(at, one)| mismatch(*at, one, run, texts)).collect()
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
        return path_mismatch(at, agent.as_ref(), (*order, states), run);
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
        // A path is compared step by step, with places of its own.
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
        wanted.agent.as_ref().is_none_or(|own| own == agent)
            && wanted.cause.is_none_or(|own| Some(own) == *cause)
            && wanted.message.as_ref().is_none_or(|own| own.is_in(message))
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
    let (mut wanted, mut found) = (golden.trim_end().lines(), text.trim_end().lines());
    for number in 1.. {
        let (one, other) = (wanted.next(), found.next());
        if one != other || one.is_none() {
            let shown =
                |line: Option<&str>| line.map_or("the end".to_owned(), |line| format!("{line:?}"));
            return format!("line {number} is {}, not {}", shown(other), shown(one));
        }
    }
    String::new()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::observed_run::ObservedStep;
    use crate::language::cases::read;

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
        let said = "C.md as step 3 of main / B.md".to_owned();
        assert_eq!(differs("path: [A.md, check, C.md]", &places), Some((23, said)));
        let said = "the end of the path of main after 2 steps / B.md".to_owned();
        assert_eq!(differs("path: [A.md, check]", &places), Some((9, said)));
        let said = "D.md as step 4 of main / the end of the path".to_owned();
        assert_eq!(differs("path: [A.md, check, B.md, D.md]", &places), Some((29, said)));
        assert_eq!(differs("path: { set: [B.md, A.md, check] }", &places), None);
    }

    #[test]
    fn field_of_a_result_is_found_by_its_path() {
        assert_eq!(differs("result: { fields: { a.0: 7 } }", &[]), None);
        let said = "the result of main has a.0: 8 / 7".to_owned();
        assert_eq!(differs("result: { fields: { a.0: 8 } }", &[]), Some((23, said)));
    }
}
