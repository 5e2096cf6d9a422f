//! The recap that takes the place of lost sessions: the prompts and answers of their turns.
//!
//! They are read from the streams of the agent's turns. The length is limited; the latest turns count most.

use std::collections::BTreeSet;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use raymond_model::id::SessionId;
use raymond_model::turn::{TurnFailure, TurnId, TurnInput};
use raymond_store::plain_file;

use crate::claude::turn_transcript::{TurnTranscript, turns_of};
use crate::dialogue::AgentProgram;
use crate::transcript::{TurnFiles, unreadable};

/// The longest beginning, in bytes.
const MAX_BYTES: usize = 64 * 1024;

/// The longest prompt or answer in it, in bytes.
const MAX_TEXT_BYTES: usize = 8 * 1024;

/// The number of the last bytes of a stream in which the program says that it could not save all of a session.
const END_BYTES: u64 = 16 * 1024;
const LATEST_STREAMS: usize = 8;

/// The line above the prompt of the turn itself.
const PROMPT_FOLLOWS: &str = "----- The next prompt -----";

/// A turn that was answered.
struct AnsweredTurn {
    prompt: String,
    answer: String,
}

/// Returns the input of a turn that begins a session in place of lost ones.
///
/// # Errors
/// The failure of the turn, if the directory of the streams cannot be read.
pub(crate) fn with_recap(steps: &Path, input: &TurnInput) -> Result<TurnInput, TurnFailure> {
    let turns = answered_turns(steps, input)?;
    let turns =
        if turns.is_empty() { "(They are not known.)".to_owned() } else { turns.join("\n\n") };
    let mut input = input.clone();
    input.add_note(&format!(
        "Your earlier session no longer exists, so this is a new one. These are the prompts that you were given in it, and your answers. What you did in between is not shown; files are as you left them.\n\n{turns}\n\n{PROMPT_FOLLOWS}"
    ));
    Ok(input)
}

/// Returns whether a process of the agent has said at its end that a full disk kept it from saving all of a session.
/// Only its latest streams are looked at.
///
/// # Errors
/// The failure of the turn, if the directory of the streams cannot be read.
pub(crate) fn has_lost_writes(
    program: &dyn AgentProgram,
    steps: &Path,
    input: &TurnInput,
    session: &SessionId,
) -> Result<bool, TurnFailure> {
    let says_so = |turn: &TurnId| {
        let mut end = Vec::new();
        let stream = plain_file::open(&TurnFiles::of(steps, turn).stream).ok();
        let read = stream.and_then(|mut stream| {
            let from = stream.metadata().ok()?.len().saturating_sub(END_BYTES);
            stream.seek(SeekFrom::Start(from)).ok()?;
            stream.take(END_BYTES).read_to_end(&mut end).ok()
        });
        let end = String::from_utf8_lossy(&end);
        read.is_some() && program.has_lost_writes(&end, session.as_str())
    };
    Ok(earlier_turns(steps, input)?.iter().rev().take(LATEST_STREAMS).any(says_so))
}

/// Returns the latest turns of the lost sessions that fit, the oldest first.
fn answered_turns(steps: &Path, input: &TurnInput) -> Result<Vec<String>, TurnFailure> {
    let (mut shown, mut bytes) = (Vec::new(), 0);
    for turn in earlier_turns(steps, input)?.into_iter().rev() {
        let Some(turn) = answered(steps, &turn, &input.session.ancestors) else { continue };
        let [prompt, answer] = [&turn.prompt, &turn.answer].map(|text| shortened(text));
        let text = format!("----- Prompt -----\n\n{prompt}\n\n----- Answer -----\n\n{answer}");
        bytes += text.len();
        if bytes > MAX_BYTES {
            shown.push("(Earlier ones are left out.)".to_owned());
            break;
        }
        shown.push(text);
    }
    shown.reverse();
    Ok(shown)
}

/// Returns the agent's turns before this one, in their order.
fn earlier_turns(steps: &Path, input: &TurnInput) -> Result<BTreeSet<TurnId>, TurnFailure> {
    let turns = turns_of(steps, &input.turn.agent);
    let mut turns = turns.map_err(|error| unreadable(steps, &error))?;
    turns.split_off(&input.turn);
    Ok(turns)
}

/// Returns a turn of one of these sessions; `None` if it has no answer.
fn answered(steps: &Path, turn: &TurnId, sessions: &[SessionId]) -> Option<AnsweredTurn> {
    let found = TurnTranscript::find(steps, &turn.stem())?.prompt_and_reply().ok()?;
    if !found.has_succeeded || !sessions.contains(&found.session?) {
        return None;
    }
    let prompt = found.prompt?;
    let prompt = prompt
        .rsplit(PROMPT_FOLLOWS)
        .find(|part| !part.trim().is_empty())
        .unwrap_or_default()
        .trim()
        .to_owned();
    Some(AnsweredTurn { prompt, answer: found.answer? })
}

/// Returns a text without its middle, if it is long.
fn shortened(text: &str) -> String {
    if text.len() <= MAX_TEXT_BYTES {
        return text.to_owned();
    }
    let half = MAX_TEXT_BYTES / 2;
    let (begin, end) = (text.floor_char_boundary(half), text.ceil_char_boundary(text.len() - half));
    format!("{}\n\n(…)\n\n{}", &text[..begin], &text[end..])
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::claude::program::ClaudeCode;
    use raymond_model::session::Session;

    fn write(steps: &Path, name: &str, session: &str, (prompt, answer): (&str, &str), fails: bool) {
        let content = json!([{ "type": "text", "text": prompt }]);
        let lines = [
            json!({ "type": "system", "subtype": "init", "session_id": session }),
            json!({ "type": "user", "uuid": "u", "isReplay": true, "message": { "content": content } }),
            json!({ "type": "result", "result": answer, "is_error": fails }),
        ];
        let lines = lines.map(|line| format!("{line}\n")).concat();
        std::fs::write(steps.join(format!("{name}.jsonl")), lines).expect("written");
    }

    fn input(sessions: &[&str]) -> TurnInput {
        let id = |name: &str| SessionId::new(name);
        let mut session = Session::fresh(id("new"));
        session.ancestors = sessions.iter().map(|name| id(name)).collect();
        serde_json::from_value(json!({
            "version": 1, "turn": { "agent": "main", "step": 12, "turn": 0 }, "state": "A.md",
            "visit": 0, "session": session, "model": null, "prompt": "go on", "values": {},
            "limits": { "timeout_ms": 1, "idle_timeout_ms": 1, "shutdown_ms": 1 },
        }))
        .expect("an input")
    }

    fn prompt_of(steps: &Path, input: &TurnInput) -> String {
        with_recap(steps, input).expect("read").prompt
    }

    #[test]
    fn unreadable_streams_fail_the_turn_and_are_named() {
        let folder = tempfile::tempdir().expect("a directory");
        let steps = folder.path().join("steps");
        std::fs::write(&steps, "").expect("written");
        let recap = with_recap(&steps, &input(&["a"])).map(|_| ());
        let lost =
            has_lost_writes(&ClaudeCode, &steps, &input(&[]), &SessionId::new("a")).map(|_| ());
        for failure in [recap, lost] {
            let message = failure.expect_err("no directory").message;
            let start = format!("{}: cannot be read: ", steps.display());
            assert!(message.starts_with(&start), "{message}");
        }
    }

    #[test]
    fn prompts_and_answers_of_the_lost_sessions_come_first() {
        let folder = tempfile::tempdir().expect("a directory");
        let steps = folder.path();
        write(steps, "main-2-0", "a", ("two", "second"), false);
        write(steps, "main-10-0", "b", ("ten", "tenth"), false);
        write(steps, "main-9-0", "b", ("nine", "API Error"), true);
        write(steps, "main-11-0", "c", ("of another session", "x"), false);
        write(steps, "main.1-1-0", "a", ("of another agent", "x"), false);
        write(steps, "main-12-0", "a", ("not yet", "x"), false);
        let prompt = prompt_of(steps, &input(&["a", "b"]));
        let places = ["two", "second", "ten", "tenth", PROMPT_FOLLOWS, "go on"];
        let found: Vec<usize> = places.iter().map(|text| prompt.find(text).expect(text)).collect();
        assert!(found.is_sorted(), "{prompt}");
        for other in ["nine", "another", "not yet"] {
            assert!(!prompt.contains(other), "{other}: {prompt}");
        }
        assert!(prompt_of(steps, &input(&[])).contains("not known"));
        assert!(prompt_of(&steps.join("none"), &input(&["a"])).contains("not known"));
    }

    #[test]
    fn process_that_could_not_save_a_session_says_so_at_its_end() {
        let folder = tempfile::tempdir().expect("a directory");
        let steps = folder.path();
        let lost = r#"{"type":"system","subtype":"session_writes_lost","lost":["transcript"],"transcript_session_ids":["a"],"session_id":"b"}"#;
        for name in ["main-3-0", "main.1-4-0", "main-13-0"] {
            let stream = format!("{}\n{lost}\n", "x".repeat(40_000));
            std::fs::write(steps.join(format!("{name}.jsonl")), stream).expect("written");
        }
        write(steps, "main-4-0", "c", ("session_writes_lost", "a"), false);
        let has_lost = |id| {
            has_lost_writes(&ClaudeCode, steps, &input(&[]), &SessionId::new(id)).expect("read")
        };
        assert!(has_lost("a") && !has_lost("c"));
        std::fs::remove_file(steps.join("main-3-0.jsonl")).expect("removed");
        assert!(!has_lost("a"), "another agent's, and a later one's");
    }

    #[test]
    fn command_stays_a_command() {
        let folder = tempfile::tempdir().expect("a directory");
        let mut turn = input(&[]);
        "/deploy now".clone_into(&mut turn.prompt);
        assert!(prompt_of(folder.path(), &turn).ends_with("\n\n/deploy now"), "a text");
        turn.options.run_command = Some(true);
        assert!(prompt_of(folder.path(), &turn).starts_with("/deploy now\n\n"));
    }

    #[test]
    fn beginning_is_bounded_and_does_not_repeat_an_earlier_beginning() {
        let folder = tempfile::tempdir().expect("a directory");
        let steps = folder.path();
        let long = "é".repeat(MAX_TEXT_BYTES);
        for step in 1..12 {
            write(
                steps,
                &format!("main-{step}-0"),
                "a",
                (&format!("p{step} {long}"), &long),
                false,
            );
        }
        let earlier = format!("Your earlier session\n\n{PROMPT_FOLLOWS}\n\np11");
        write(steps, "main-11-0", "a", (&earlier, "last"), false);
        let prompt = prompt_of(steps, &input(&["a"]));
        assert!(prompt.len() < MAX_BYTES + 2 * MAX_TEXT_BYTES, "{}", prompt.len());
        assert!(prompt.contains("left out") && prompt.contains("p11") && !prompt.contains("p1 "));
        assert_eq!(prompt.matches("Your earlier session").count(), 1);
    }
}
