//! The actions of a program that something outside answers: commands, starts of runs, and questions to a person.

use super::{ProgramSymbol, TextExpression, TextTemplate};
use raymond_model::id::{Folder, StateName};
use raymond_model::money::Usd;
use raymond_model::run_origin::is_program_file;

/// `run`
#[derive(Debug, Clone)]
pub struct ProgramCommand {
    /// The command.
    pub command: String,
    /// `:args`: the values of `$1`, `$2` and so on in it.
    pub arguments: Vec<TextExpression>,
    /// `:cwd`: the directory below that of the run.
    pub cwd: Option<Folder>,
    /// `:timeout`, in milliseconds.
    pub timeout_ms: Option<u64>,
    /// `:unless`, `:once` or `:idempotent`: the meaning of its repetition.
    pub repetition: RunRepetition,
    /// `:as`: the name of its output. Without it, the command has to succeed.
    pub bind: Option<ProgramSymbol>,
    /// `:on-error`: the number of the state to continue in if it fails; without it the program fails.
    pub on_error: Option<usize>,
}

/// The meaning of the repetition of a command, after a crash in the middle of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunRepetition {
    /// The restart policy decides.
    Unknown,
    /// `:unless CMD`: it runs unless this command succeeds.
    Unless(String),
    /// `:once true`: it never runs again.
    Once,
    /// `:idempotent true`: it may run again.
    Idempotent,
}

/// `start-workflow`
#[derive(Debug, Clone)]
pub struct StartWorkflow {
    /// The name of a defined program, or the path of its file below the folder of this one.
    pub program: String,
    /// `:label`: `@label` there, and the id of the run.
    pub label: Option<TextTemplate>,
    /// `:branch`: `@branch` there.
    pub branch: Option<TextExpression>,
    /// `:context`: the values of `@context/x` there, by `x`.
    pub context: Vec<(String, TextExpression)>,
    /// `:budget`: the part of this run's budget that the run is given.
    pub budget: Option<Usd>,
    /// `:as`: the name of the run's id.
    pub bind: Option<ProgramSymbol>,
    /// `:on-error`: the number of the state to continue in if it cannot be started; without it the program fails.
    pub on_error: Option<usize>,
}

impl StartWorkflow {
    /// Returns the folder below and the file of the program; `None` for one that is named by its name.
    pub fn file(&self) -> Option<(Option<Folder>, StateName)> {
        if !is_program_file(&self.program) {
            return None;
        }
        let (folder, name) = match self.program.rsplit_once('/') {
            Some((folder, name)) => (Some(Folder::parse(folder).ok()?), name),
            None => (None, self.program.as_str()),
        };
        Some((folder, StateName::parse(name).ok()?))
    }

    /// Returns its expressions, in the order in which they are evaluated.
    pub fn expressions(&self) -> impl Iterator<Item = &TextExpression> {
        let label = self.label.iter().flat_map(|label| &label.arguments);
        label.chain(&self.branch).chain(self.context.iter().map(|(_, value)| value))
    }
}

/// `user-input`
#[derive(Debug, Clone)]
pub struct UserInput {
    /// The question.
    pub prompt: TextTemplate,
    /// `:options`: the answers to choose from; if empty, the answer is any text.
    pub options: Vec<String>,
    /// `:timeout`, in milliseconds.
    pub timeout_ms: Option<u64>,
    /// `:on-timeout`: the number of the state to continue in; without it the program fails.
    pub on_timeout: Option<usize>,
    /// `:as`: the name under which it is answered, and of the answer.
    pub bind: ProgramSymbol,
}
