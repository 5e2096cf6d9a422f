//! The output of scripts in `raymond show`: its end, because the tag stands there.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::{AgentDetails, MAX_SHOWN_BYTES, MAX_SHOWN_LINES};
use crate::cli::exit::Error;
use crate::domain::history::{HistoryStep, HistoryTurn};
use crate::world::script_note::{ScriptOutput, script_output};

impl AgentDetails<'_> {
    /// Returns the output of the script of a turn, or why it failed; `None` if it is no script's, or has not ended.
    fn script_output(
        &self,
        step: &HistoryStep,
        turn: &HistoryTurn,
    ) -> Result<Option<Result<ScriptOutput, String>>, Error> {
        if !step.state.is_script() {
            return Ok(None);
        }
        let steps = self.dir.steps();
        script_output(&steps, &turn.id.stem()).map_err(|error| Error::Io {
            doing: "read the files in",
            path: steps,
            error,
        })
    }

    /// Writes the output of a script; returns whether something was left out.
    pub(super) fn script(
        &self,
        out: &mut String,
        step: &HistoryStep,
        turn: &HistoryTurn,
    ) -> Result<bool, Error> {
        // Why a script failed stands in the line about its end.
        let Some(Ok(output)) = self.script_output(step, turn)? else { return Ok(false) };
        let mut is_cut = false;
        for (what, text) in [("stdout", &output.stdout), ("stderr", &output.stderr)] {
            is_cut |= self.quote_end(out, what, text);
        }
        let _ = writeln!(out, "    exit code {}", output.exit_code);
        Ok(is_cut)
    }

    /// Quotes a text, or its end; returns whether something was left out.
    fn quote_end(&self, out: &mut String, what: &str, text: &str) -> bool {
        if text.trim().is_empty() {
            return false;
        }
        let shown = if self.whole { text } else { end(text) };
        let left = text.len() - shown.len();
        let _ = writeln!(out, "    {what}");
        if left > 0 {
            let _ = writeln!(out, "      … {left} bytes before");
        }
        for line in shown.lines() {
            let _ = writeln!(out, "{}", format!("      {line}").trim_end());
        }
        left > 0
    }

    /// Returns the output of a script as JSON.
    pub(super) fn script_json(
        &self,
        step: &HistoryStep,
        turn: &HistoryTurn,
    ) -> Result<Option<Value>, Error> {
        Ok(self.script_output(step, turn)?.map(|output| match output {
            Ok(ScriptOutput { exit_code, stdout, stderr }) => {
                json!({ "exit_code": exit_code, "stdout": stdout, "stderr": stderr })
            }
            Err(error) => json!({ "error": error }),
        }))
    }
}

/// Returns the end of a text.
fn end(text: &str) -> &str {
    let whole = text.trim_end_matches('\n');
    let lines = whole.rmatch_indices('\n').nth(MAX_SHOWN_LINES - 1).map_or(0, |(at, _)| at + 1);
    &text[lines.max(text.ceil_char_boundary(text.len().saturating_sub(MAX_SHOWN_BYTES)))..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_output_is_cut_to_its_end() {
        assert_eq!(end("a\nb\n"), "a\nb\n");
        let long: Vec<String> = (1..=20).map(|line| line.to_string()).collect();
        let long = long.join("\n") + "\n";
        assert_eq!(end(&long).lines().next(), Some("13"));
        assert_eq!(end(&"ü".repeat(1000)).len(), MAX_SHOWN_BYTES);
    }
}
