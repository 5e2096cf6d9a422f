//! The texts of the turns that ran on this host, for whoever looks at the run.

use std::path::{Path, PathBuf};

use tokio::task::spawn_blocking;

use crate::domain::host_work::HostAnswer;
use crate::domain::turn::{ScriptTexts, TurnId, TurnInput, TurnTexts};
use crate::language::prompt::step::{RESULTS, RESULTS_FILE};
use crate::process::turn_transcript::TurnTranscript;
use crate::store;
use crate::store::files::{make_dir, replace};
use crate::world::script::{ScriptOutput, script_output};

/// The longest text that is given, in bytes.
const MAX_TEXT_BYTES: usize = 1024 * 1024;

/// The most bytes of all texts that are given at once.
const MAX_BYTES: u64 = 8 * 1024 * 1024;

/// Returns the texts of turns from the directory of their files: of the first one, and of the others as long as there is room.
pub(super) async fn transcript(steps: PathBuf, turns: Vec<TurnId>, max_bytes: u64) -> HostAnswer {
    let room = usize::try_from(max_bytes.min(MAX_BYTES)).unwrap_or(usize::MAX);
    let reading = move || {
        let (mut found, mut bytes) = (Vec::new(), 0_usize);
        for turn in turns {
            let texts =
                texts(&steps, turn).map_err(|error| format!("{}: {error}", steps.display()))?;
            bytes = bytes.saturating_add(texts.bytes());
            if bytes > room && !found.is_empty() {
                break;
            }
            found.push(texts);
        }
        Ok::<_, String>(found)
    };
    match spawn_blocking(reading).await {
        Ok(Ok(found)) => HostAnswer::Transcript { found },
        Ok(Err(why)) => HostAnswer::Refused { why },
        Err(panicked) => HostAnswer::Refused { why: panicked.to_string() },
    }
}

fn texts(steps: &std::path::Path, turn: TurnId) -> std::io::Result<TurnTexts> {
    let stem = turn.stem();
    let transcript = TurnTranscript::find(steps, &stem).map(TurnTranscript::prompt_and_reply);
    let found = transcript.transpose()?.unwrap_or_default();
    let mut is_cut = false;
    let mut cut = |text: String| {
        let end = text.floor_char_boundary(MAX_TEXT_BYTES);
        is_cut |= end < text.len();
        text[..end].to_owned()
    };
    let (prompt, answer) = (found.prompt.map(&mut cut), found.answer.map(&mut cut));
    let script = script_output(steps, &stem)?.map(|output| {
        output.map(|ScriptOutput { exit_code, stdout, stderr }| ScriptTexts {
            exit_code,
            stdout: cut(stdout),
            stderr: cut(stderr),
        })
    });
    Ok(TurnTexts { turn, prompt, answer, script, is_cut })
}

/// Writes the results that a turn has waited for into a file of this host. Its path takes the place of the one on the
/// supervisor's machine, in the prompt and in the values.
pub(super) fn place_results(input: &mut TurnInput, results: &Path) -> Result<(), store::Error> {
    let (Some(elsewhere), Some(list)) =
        (input.values.get(RESULTS_FILE).cloned(), input.values.get(RESULTS).cloned())
    else {
        return Ok(());
    };
    let Some(name) = Path::new(&elsewhere).file_name() else { return Ok(()) };
    let path = results.join(name);
    make_dir(results)?;
    replace(&path, list.as_bytes())?;
    let here = path.display().to_string();
    if input.reads_results {
        input.prompt = input.prompt.replace(&elsewhere, &here);
    }
    input.values.insert(RESULTS_FILE.to_owned(), here);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::id::AgentId;

    fn turn(step: u64) -> TurnId {
        TurnId { agent: AgentId::main(), step, turn: 0 }
    }

    #[tokio::test]
    async fn texts_are_given_up_to_a_length() {
        let steps = tempfile::tempdir().expect("a folder");
        let write = |step: u64, prompt: &str| {
            let write = |ending: &str, text: &str| {
                let path = steps.path().join(format!("{}.{ending}", turn(step).stem()));
                std::fs::write(path, text).expect("written");
            };
            write("jsonl", "{\"type\":\"result\",\"result\":\"yes\"}\n");
            write("prompt", prompt);
        };
        write(1, "short");
        write(2, &"x".repeat(2 * MAX_TEXT_BYTES));
        write(4, "late");
        let all: Vec<TurnId> = (1..=4).map(turn).collect();
        let found = |turns: Vec<TurnId>, bytes| async move {
            match transcript(steps.path().to_owned(), turns, bytes).await {
                HostAnswer::Transcript { found } => found,
                other => panic!("{other:?}"),
            }
        };
        let one = found(all[..1].to_vec(), 1).await;
        assert_eq!(one.len(), 1, "the first one is always given");
        assert_eq!(
            (one[0].prompt.as_deref(), one[0].answer.as_deref()),
            (Some("short"), Some("yes"))
        );
    }
}

#[cfg(test)]
mod placed_results_tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn prompt_names_the_file_of_this_host() {
        let kept = tempfile::tempdir().expect("a folder");
        let results = kept.path().join("results");
        let elsewhere = "/supervisor/results/main-2.json";
        let mut input: TurnInput = serde_json::from_value(json!({
            "version": 1, "turn": { "agent": "main", "step": 2, "turn": 0 }, "state": "A.md",
            "reads_results": true, "visit": 0,
            "session": { "session_id": "a", "origin": "fresh" }, "model": null,
            "limits": { "idle_timeout_ms": 1, "timeout_ms": 1, "shutdown_ms": 1 },
            "prompt": format!("read {elsewhere}, all of {elsewhere}"),
            "values": { "results": "[1]", "results_file": elsewhere },
        }))
        .expect("an input");
        place_results(&mut input, &results).expect("placed");
        let here = results.join("main-2.json").display().to_string();
        assert_eq!(std::fs::read_to_string(&here).expect("it is there"), "[1]");
        assert_eq!(input.prompt, format!("read {here}, all of {here}"));
        assert_eq!(input.values.get(RESULTS_FILE), Some(&here));
    }
}
