//! Answers to the questions of a graph that are given before it runs.
//!
//! They are read from a file, and each must belong to a question of the graph.

use super::checked_graph::{Graph, GraphNode, UserPrompt};
use crate::diagnostic::{Diagnostic, FileDiagnostics};
use crate::hint::closest;
use crate::source::SourcePlace;
use crate::yaml::tree::{self, YamlFileKind};
use crate::yaml::{YamlContent, YamlValue};
use raymond_model::question::{OTHER, Question, QuestionOption};

/// An answer in a file, and its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedAnswer {
    /// The name of the question.
    pub node: String,
    /// The answer.
    pub text: String,
    /// The line, from 1.
    pub line: u64,
    /// The column in characters, from 1.
    pub column: u64,
}

/// Reads a file of answers: a mapping of names to an answer, or to a list of them for a question that is
/// asked again.
///
/// # Errors
/// All mistakes in the file.
pub fn read(path: &str, text: &str) -> Result<Vec<ListedAnswer>, Vec<Diagnostic>> {
    if text.lines().all(|line| line.trim().is_empty() || line.trim_start().starts_with('#')) {
        return Ok(Vec::new());
    }
    let mut report = FileDiagnostics::new(path);
    let (root, faults) = tree::parse(YamlFileKind::ANSWERS, text);
    for fault in faults {
        report.error(fault.at, fault.code, fault.message);
    }
    let mut listed = Vec::new();
    match root.as_ref().map(|root| (root.at, &root.value)) {
        Some((_, YamlContent::Map(entries))) => {
            for entry in &**entries {
                match &entry.value.value {
                    YamlContent::List(answers) => {
                        for answer in &**answers {
                            listed.extend(answer_of(&entry.key, answer, &mut report));
                        }
                    }
                    _ => listed.extend(answer_of(&entry.key, &entry.value, &mut report)),
                }
            }
        }
        Some((at, _)) => {
            report.error(at, "WF102", "answers are a mapping: NODE: ANSWER, a line each");
        }
        None => {}
    }
    let wrong = report.sorted();
    if wrong.is_empty() { Ok(listed) } else { Err(wrong) }
}

fn answer_of(node: &str, answer: &YamlValue, report: &mut FileDiagnostics) -> Option<ListedAnswer> {
    let text = match &answer.value {
        YamlContent::Text(text) => text.text.to_string(),
        YamlContent::Bool(value) => value.to_string(),
        YamlContent::Number(number) => number.to_string(),
        YamlContent::Null | YamlContent::List(_) | YamlContent::Map(_) => {
            let message = format!(
                "an answer to {node} is a text, and this is {}; write `{node}: ANSWER`, or a list of answers",
                answer.sort()
            );
            report.error(answer.at, "WF102", message);
            return None;
        }
    };
    let SourcePlace { line, column } = answer.at;
    Some(ListedAnswer { node: node.to_owned(), text, line, column })
}

/// Checks that a graph will ask for an answer. A graph that starts other agents accepts unknown names,
/// because those agents may ask under their own names.
///
/// # Errors
/// A message with the reason, and with the answers that the graph asks for.
pub fn check(program: &Graph, node: &str, text: &str) -> Result<(), String> {
    let prompts = || {
        program.nodes.iter().filter_map(|(name, node)| match node {
            GraphNode::UserPrompt(prompt) => Some((&**name, prompt)),
            _ => None,
        })
    };
    if let Some((_, prompt)) = prompts().find(|(name, _)| *name == node) {
        return valid(node, prompt, text);
    }
    if program.starts_agents() {
        return Ok(());
    }
    let names: Vec<&str> = prompts().map(|(name, _)| name).collect();
    let hint = match (closest(node, names.iter().copied()), names.as_slice()) {
        (Some(name), _) => format!("; did you mean {name}?"),
        (None, []) => "; it does not ask anything".to_owned(),
        (None, names) => format!("; it asks {}", names.join(", ")),
    };
    Err(if program.nodes.contains_key(node) {
        format!("the node {node} asks no question{hint}")
    } else {
        format!("the graph {} has no question {node}{hint}", program.name)
    })
}

/// Checks that a text is a valid answer. A label that is filled only when it is asked may be anything.
fn valid(node: &str, prompt: &UserPrompt, text: &str) -> Result<(), String> {
    let mut known = true;
    let mut choice = |option: &super::checked_graph::UserPromptOption| {
        let label = option.label.as_constant().and_then(|label| label.as_str());
        known &= label.is_some();
        QuestionOption {
            id: option.id.clone(),
            label: label.unwrap_or_default().to_owned(),
            description: String::new(),
        }
    };
    let question = Question {
        node: node.to_owned(),
        text: String::new(),
        header: None,
        options: prompt.options.iter().map(&mut choice).collect(),
        free: prompt.responses.contains_key(OTHER),
    };
    match question.read(text) {
        Err(invalid) if known => Err(invalid.to_string()),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::profile::GraphProfile;
    use crate::graph::read::read as read_graph;
    use crate::graph::vocabulary::GraphVocabulary;

    const GRAPH: &str = "name: g\nversion: 1.0.0\ndescription: Asks.\nstart_node: ask_type\nnodes:\n  ask_type:\n    type: user_prompt\n    prompt:\n      question: Which?\n      header: Type\n      options:\n        - { id: git, label: Git repository, description: a }\n        - { id: web, label: Web site, description: b }\n    on_response:\n      git: { next_node: done }\n      web: { next_node: done }\nendings:\n  done: { type: success, message: Done. }\n";

    fn program() -> Graph {
        let files = std::collections::BTreeMap::<String, String>::new();
        let vocabulary = GraphVocabulary::default();
        let reading =
            read_graph("g/workflow.yaml", None, GRAPH, &vocabulary, &files, GraphProfile::Lenient);
        reading.graph.expect("a graph")
    }

    #[test]
    fn answers_file_is_parsed_with_locations() {
        let listed = read("a.yaml", "ask_type: git\nagain:\n  - 1\n  - yes\n").expect("valid");
        let shown: Vec<_> = listed
            .iter()
            .map(|answer| (&*answer.node, &*answer.text, answer.line, answer.column))
            .collect();
        assert_eq!(
            shown,
            [("ask_type", "git", 1, 11), ("again", "1", 3, 5), ("again", "yes", 4, 5)]
        );
        assert_eq!(read("a.yaml", "# nothing\n"), Ok(Vec::new()));
    }

    #[test]
    fn invalid_answers_file_is_error_with_location() {
        let wrong = |text: &str| {
            let wrong = read("a.yaml", text).expect_err(text);
            wrong.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(
            wrong("- git\n"),
            ["a.yaml:1:1: WF102 answers are a mapping: NODE: ANSWER, a line each"]
        );
        assert_eq!(
            wrong("a: { b: c }\nd: [[e]]\n"),
            [
                "a.yaml:1:4: WF102 an answer to a is a text, and this is a mapping; write `a: ANSWER`, or a list of answers",
                "a.yaml:2:5: WF102 an answer to d is a text, and this is a list; write `d: ANSWER`, or a list of answers",
            ]
        );
        assert!(wrong("a: x\na: y\n")[0].starts_with("a.yaml:2:1: WF002"));
        assert!(wrong("a: [\n")[0].contains("WF001"));
    }

    #[test]
    fn answer_to_unknown_question_or_option_is_error() {
        let program = program();
        assert_eq!(check(&program, "ask_type", "Web Site"), Ok(()));
        assert_eq!(check(&program, "ask_type", "2"), Ok(()));
        let wrong = |node, text| check(&program, node, text).expect_err("refused");
        assert_eq!(
            wrong("ask_type", "svn"),
            "WF504 `svn` is not an answer to ask_type: use one of git, web"
        );
        assert_eq!(
            wrong("ask_typ", "git"),
            "the graph g has no question ask_typ; did you mean ask_type?"
        );
        assert_eq!(wrong("zzz", "git"), "the graph g has no question zzz; it asks ask_type");
    }
}
