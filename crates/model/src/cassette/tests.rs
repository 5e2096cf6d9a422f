//! Recorded turns, and the changes of files in them.

use super::*;

fn edit(old: &str, new: &str, all: bool) -> TextEdit {
    TextEdit { old: old.to_owned(), new: new.to_owned(), all }
}

#[test]
fn edits_apply_in_order_and_name_the_part_that_is_missing() {
    let patch = FilePatch::Edits(vec![edit("a", "b", false), edit("b", "c", true)]);
    assert_eq!(patch.apply(Some("a a b")), Ok("c a c".to_owned()));
    assert_eq!(patch.apply(Some("x")), Err(PatchFailure::NoSuchPart(edit("a", "b", false))));
    assert_eq!(patch.apply(None), Err(PatchFailure::NoSuchPart(edit("a", "b", false))));
    let doubled = edit("a", &"a".repeat(1024), true);
    let bomb = FilePatch::Edits(vec![doubled; 6]);
    assert_eq!(bomb.apply(Some("a")), Err(PatchFailure::TooLong));
    let long = "a".repeat(MAX_PATCHED_BYTES - 1);
    let same_length = FilePatch::Edits(vec![edit("a", "b", true)]);
    assert_eq!(same_length.apply(Some(&long)), Ok("b".repeat(MAX_PATCHED_BYTES - 1)));
    assert_eq!(FilePatch::Content("new".to_owned()).apply(None), Ok("new".to_owned()));
}

#[test]
fn recorded_turn_round_trips_through_json() {
    let line = r#"{"agent":"main","step":1,"turn":0,"state":"A.md","visit":0,"session":1,"session_turn":1,"prompt_hash":"sha256:x","prompt":"p","outcome":"failed","cause":"crash","message":"m","cost_usd":0.5,"duration_ms":7,"files":[{"path":"a","tool":"Write","content":"x"},{"path":"b","tool":"Edit","edits":[{"old":"o","new":"n"}]}]}"#;
    let turn: RecordedTurn = serde_json::from_str(line).expect("it can be read");
    assert_eq!(turn.files.len(), 2);
    assert_eq!(serde_json::to_string(&turn).expect("written"), line);
    let short = r#"{"agent":"main","step":1,"turn":0,"state":"A.md","visit":0,"session":1,"session_turn":1,"outcome":"cut"}"#;
    let turn: RecordedTurn = serde_json::from_str(short).expect("what is absent has a default");
    assert_eq!(turn.outcome, RecordedEnding::Cut);
}
