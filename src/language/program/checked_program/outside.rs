//! The actions of a program that something outside answers: commands, and questions to a person.

use super::{ProgramSymbol, TextExpression, TextTemplate};
use crate::domain::id::Folder;

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
