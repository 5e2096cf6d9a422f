//! The texts of a turn, as the host where it ran has them.

use serde::{Deserialize, Serialize};

use super::turn::TurnId;

/// The texts of a turn at a host. Those that it has left no trace of are absent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnTexts {
    /// The turn.
    pub turn: TurnId,
    /// Its prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
    /// Its final message; of a turn that has not ended, the last that it wrote.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
    /// The output of its script or command, or why that failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub script: Option<Result<ScriptTexts, String>>,
    /// True if a text is longer than what is here.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_cut: bool,
}

/// The output of a script or a command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScriptTexts {
    /// Its exit code.
    pub exit_code: i64,
    /// Its stdout.
    pub stdout: String,
    /// Its stderr.
    pub stderr: String,
}

impl TurnTexts {
    /// Returns whether the turn has left no trace.
    pub fn is_empty(&self) -> bool {
        self.prompt.is_none() && self.answer.is_none() && self.script.is_none()
    }

    /// Returns the length of the texts in bytes.
    pub fn bytes(&self) -> usize {
        let script = match &self.script {
            Some(Ok(output)) => output.stdout.len().saturating_add(output.stderr.len()),
            Some(Err(why)) => why.len(),
            None => 0,
        };
        let texts = [&self.prompt, &self.answer].into_iter().flatten().map(String::len);
        texts.fold(script, usize::saturating_add)
    }
}
