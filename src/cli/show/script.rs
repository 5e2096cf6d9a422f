//! The output of scripts and of the commands of graphs and programs in `raymond show`.
//!
//! Of a long output the end is shown, because a tag or the reason of a failure stands there.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::{AgentDetails, MAX_SHOWN_BYTES, MAX_SHOWN_LINES};
use crate::cli::exit::Error;
use crate::domain::event::Event;
use crate::domain::history::{HistoryStep, HistoryTurn};
use crate::domain::id::StateKind;
use crate::domain::turn::ScriptTexts;
use crate::world::perform::script_output;

impl AgentDetails<'_> {
    /// Returns the output of the script or the command of a turn, or why it failed; `None` if there is none, or if it
    /// has not ended.
    fn script_output(
        &self,
        step: &HistoryStep,
        turn: &HistoryTurn,
    ) -> Result<Option<Result<ScriptTexts, String>>, Error> {
        if StateKind::of(&step.state).is_none_or(|kind| kind == StateKind::Prompt) {
            return Ok(None);
        }
        if let Some(output) = self.elsewhere.script(turn) {
            return Ok(Some(output));
        }
        let steps = self.dir.steps();
        script_output(&steps, &turn.id.stem()).map_err(Error::io("read the files in", &steps))
    }

    /// Writes the output of a script, or of the commands whose outcomes the turn took in; returns whether something was
    /// left out.
    pub(super) fn script(
        &self,
        out: &mut String,
        step: &HistoryStep,
        turn: &HistoryTurn,
    ) -> Result<bool, Error> {
        // Why a script failed stands in the line about its end.
        let outputs = match self.script_output(step, turn)? {
            Some(Ok(output)) => vec![(None, output)],
            Some(Err(_)) | None => named_outputs(step, turn),
        };
        let mut is_cut = false;
        for (name, output) in outputs {
            is_cut |= self.output(out, name.as_deref(), &output);
        }
        Ok(is_cut)
    }

    /// Writes an output; returns whether something was left out.
    fn output(&self, out: &mut String, name: Option<&str>, output: &ScriptTexts) -> bool {
        let mut is_cut = false;
        for (what, text) in [("stdout", &output.stdout), ("stderr", &output.stderr)] {
            is_cut |= self.quote_end(out, what, text);
        }
        let name = name.map(|name| format!(" of @{name}")).unwrap_or_default();
        let _ = writeln!(out, "    exit code{name} {}", output.exit_code);
        is_cut
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
            Ok(texts) => json!(texts),
            Err(error) => json!({ "error": error }),
        }))
    }
}

/// Returns the outputs that the end of the step recorded under names. The outputs of commands that may be repeated, and
/// of the bodies of `for-each`, have no note for their step.
fn named_outputs(step: &HistoryStep, turn: &HistoryTurn) -> Vec<(Option<String>, ScriptTexts)> {
    let ends = step.turns.iter().filter(|other| other.id == turn.id);
    let records = ends.filter_map(|end| end.end.as_ref());
    let progress = records.filter_map(|record| match &record.event {
        Event::ProgramAdvanced(advanced) => Some(&advanced.progress),
        _ => None,
    });
    let mut outputs = Vec::new();
    for bindings in progress.map(|progress| &progress.bindings) {
        let text = |name: &str| bindings.get(name).cloned().unwrap_or_default();
        for (key, code) in bindings {
            let name = key.strip_suffix("/exit-code");
            let Some((name, exit_code)) = name.zip(code.parse().ok()) else { continue };
            let (stdout, stderr) = (text(name), text(&format!("{name}/stderr")));
            outputs.push((Some(name.to_owned()), ScriptTexts { exit_code, stdout, stderr }));
        }
    }
    outputs
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
