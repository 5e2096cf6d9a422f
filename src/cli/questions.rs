//! The questions of a run that wait for an answer, for programs and for people.

use std::fmt::Write as _;

use serde::Serialize;

use crate::domain::agent::Agent;
use crate::domain::approval::{ApprovalRequest, ApprovalVerdict};
use crate::domain::id::{AgentId, RunId};
use crate::domain::question::{InvalidAnswer, Question};
use crate::domain::run::{PauseReason, Run};
use crate::domain::time::Timestamp;
use crate::domain::tool_call::{printable_block, printable_json, printable_line};
use crate::domain::views::QuestionRow;
use crate::plugin::sentence::date;

/// A question that waits for an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenQuestion {
    /// The agent that asks.
    pub agent: AgentId,
    /// The step of the agent.
    pub step: u64,
    /// The text and the possible answers. For a tool call, they are those of its approval.
    pub question: Question,
    /// The time at which it was asked.
    pub since: Timestamp,
    /// The time until which an answer is taken; `None` for no limit.
    pub until: Option<Timestamp>,
    /// The tool call, if the question is whether it may run.
    pub approval: Option<Box<ApprovalRequest>>,
}

impl OpenQuestion {
    /// Returns an agent's open question, if it has one.
    pub fn of(agent: &Agent) -> Option<Self> {
        let asked = agent.question()?;
        Some(Self {
            agent: agent.id.clone(),
            step: agent.step,
            question: asked.question.clone(),
            since: asked.since,
            until: asked.late.as_ref().map(|late| late.at),
            approval: None,
        })
    }

    /// Returns an agent's open approvals.
    pub fn approvals_of(agent: &Agent) -> impl Iterator<Item = Self> {
        agent.open_approvals().map(|asked| Self {
            agent: agent.id.clone(),
            step: agent.step,
            question: asked.question(),
            since: asked.since,
            until: None,
            approval: Some(asked.request.clone()),
        })
    }

    /// Checks whether a text is an answer.
    ///
    /// # Errors
    /// [`InvalidAnswer`].
    pub fn check(&self, text: &str) -> Result<(), InvalidAnswer> {
        let Some(request) = &self.approval else { return self.question.read(text).map(drop) };
        ApprovalVerdict::check(text, request).map_err(|expected| InvalidAnswer {
            given: text.to_owned(),
            node: self.question.node.clone(),
            expected,
        })
    }

    /// Returns the question for programs.
    pub fn row(&self) -> QuestionRow {
        QuestionRow {
            until: self.until,
            approval: self.approval.clone(),
            ..QuestionRow::of(&self.agent, &self.question, self.since)
        }
    }

    /// Returns the question and its options, a line each, after `head`, the name of the one who asks.
    pub fn text(&self, head: &str) -> String {
        let Question { text, header, options, free, .. } = &self.question;
        let header = header.as_ref().map(|header| format!(" ({header})")).unwrap_or_default();
        let mut shown = printable_block(&format!("{head} asks{header}: {text}")) + "\n";
        let widest = options.iter().map(|option| option.id.chars().count()).max().unwrap_or(0);
        for (option, number) in options.iter().zip(1..) {
            let meaning = if option.description.is_empty() {
                ""
            } else {
                &format!(": {}", option.description)
            };
            let choice = format!("  {number}  {:widest$}  {}{meaning}", option.id, option.label);
            let _ = writeln!(shown, "{}", printable_line(&choice));
        }
        if *free && !options.is_empty() {
            let _ = writeln!(shown, "  or a text of your own");
        }
        shown
    }
}

/// The last output of a run that is stopped for its questions.
#[derive(Serialize)]
struct QuestionDocument<'open> {
    run: &'open RunId,
    questions: Vec<QuestionRow>,
}

/// Returns all open questions of a run.
pub fn open(run: &Run) -> Vec<OpenQuestion> {
    let questions = run.agents.values().filter_map(OpenQuestion::of);
    let approvals = run.agents.values().flat_map(OpenQuestion::approvals_of);
    let mut open: Vec<OpenQuestion> = questions.chain(approvals).collect();
    open.sort_by(|question, other| question.agent.cmp_by_number(&other.agent));
    open
}

/// Returns all open questions of a run for programs.
pub fn rows(run: &Run) -> Vec<QuestionRow> {
    open(run).iter().map(OpenQuestion::row).collect()
}

/// Returns the last line of a run that is stopped for its questions, as JSON; empty if it is not stopped for them.
pub fn document(run: &Run) -> String {
    if !matches!(run.pause, Some(PauseReason::Asking { .. })) {
        return String::new();
    }
    let document = QuestionDocument { run: &run.workflow_id, questions: rows(run) };
    serde_json::to_string(&document).map(|line| printable_json(&line) + "\n").unwrap_or_default()
}

/// Returns the questions as text, each with the command that answers it.
pub fn as_text(run: &Run, open: &[OpenQuestion]) -> String {
    let id = &run.workflow_id;
    open.iter().fold(String::new(), |mut text, asked| {
        let (agent, node) = (&asked.agent, &asked.question.node);
        let alone = open.iter().filter(|other| other.question.node == *node).count() == 1;
        let name = if alone { node.clone() } else { format!("{agent}/{node}") };
        let first = asked.question.options.first();
        let example = first.map_or("TEXT", |option| &option.id);
        let _ = write!(text, "{}", asked.text(&format!("{agent}/{node}")));
        if asked.approval.is_some() {
            let _ = writeln!(text, "  answer: raymond answer {id} {node} allow");
        } else {
            let named = printable_line(&format!("{name}={example}"));
            let _ = writeln!(text, "  answer: raymond answer {id} {}", quoted(&named));
        }
        if let Some(until) = asked.until {
            let _ = writeln!(
                text,
                "  until {}: then the run continues without an answer, if it is live",
                date(until)
            );
        }
        text
    })
}

/// Quotes a word for a shell if needed.
pub(super) fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "=_-./".contains(c);
    if word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::domain::question::QuestionOption;

    fn asks(agent: &str, options: &[&str]) -> OpenQuestion {
        let option = |id: &&str| QuestionOption {
            id: (*id).into(),
            label: id.to_uppercase(),
            description: "one".into(),
        };
        OpenQuestion {
            agent: AgentId::parse(agent).expect("an agent"),
            step: 1,
            question: Question {
                node: "kind".into(),
                text: "Which?".into(),
                header: None,
                options: options.iter().map(option).collect(),
                free: true,
            },
            since: Timestamp(0),
            until: None,
            approval: None,
        }
    }

    #[test]
    fn question_lists_its_options() {
        let text = asks("main", &["git", "a"]).text("main/kind");
        assert_eq!(
            text,
            "main/kind asks: Which?\n  1  git  GIT: one\n  2  a    A: one\n  or a text of your own\n"
        );
        let json = json!(asks("main", &[]).row());
        assert_eq!(
            (&json["free"], json["options"].as_array().map(Vec::len)),
            (&json!(true), Some(0))
        );
        assert!(json.get("until").is_none());
    }

    #[test]
    fn name_is_shell_quoted_only_when_needed() {
        assert_eq!(quoted("NEXT.md=TEXT"), "NEXT.md=TEXT");
        assert_eq!(quoted("ask it=don't"), "'ask it=don'\\''t'");
    }
}
