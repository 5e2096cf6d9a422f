//! The picture of a turn that is still being written.

use super::*;

const TOOL: &str = r#"{"type":"assistant","message":{"id":"m1","usage":{"input_tokens":10,"output_tokens":1,"cache_read_input_tokens":9000},"content":[{"type":"tool_use","id":"t1","name":"Bash","input":{"timeout":5,"command":"cargo\n test"}}]}}"#;
const GREW: &str = r#"{"type":"assistant","message":{"id":"m1","usage":{"input_tokens":10,"output_tokens":7},"content":[{"type":"text","text":"Let me see."}]}}"#;
const DONE: &str = r#"{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t1","content":[{"type":"text","text":"3 passed"}]}]}}"#;
const NEXT: &str = r#"{"type":"assistant","message":{"id":"m2","usage":{"output_tokens":100},"content":[{"type":"thinking","thinking":"…"}]}}"#;
const END: &str = r#"{"type":"result","subtype":"success","is_error":false,"result":"ok"}"#;

fn seen(lines: &[&str], piece: usize) -> TurnActivity {
    let text = lines.join("\n") + "\n";
    let mut activity = TurnActivity::keeping(3);
    for piece in text.as_bytes().chunks(piece) {
        activity.feed(piece);
    }
    activity
}

#[test]
fn running_tool_is_shown_with_its_subject() {
    let activity = seen(&["no json", TOOL], 7);
    assert_eq!(activity.doing.as_deref(), Some("Bash: cargo test"));
    assert!(activity.is_at_work());
    assert_eq!(activity.tokens, 11, "what is in the cache was counted before");
}

#[test]
fn tokens_of_message_in_several_lines_count_once() {
    let activity = seen(&[TOOL, GREW, DONE, NEXT], 1000);
    assert_eq!((activity.tokens, activity.is_at_work()), (117, false));
    assert_eq!(activity.doing.as_deref(), Some("thinking"));
    let items = [
        ConversationItem::Tool("Bash: cargo test".into()),
        ConversationItem::Text("Let me see.".into()),
        ConversationItem::Answer("3 passed".into()),
    ];
    assert_eq!(activity.items, items);
}

#[test]
fn only_latest_items_are_stored_and_none_after_end() {
    let activity = seen(&[TOOL, GREW, DONE, END, TOOL], 50);
    assert!(activity.ended && !activity.is_at_work());
    assert_eq!(activity.items.len(), 3);
    assert_eq!(activity.items.back(), Some(&ConversationItem::Note("the turn is over".into())));
    assert_eq!(activity.doing.as_deref(), Some("has answered"));
}

fn part(text: &str) -> String {
    format!(
        r#"{{"type":"stream_event","event":{{"type":"content_block_delta","index":0,"delta":{{"type":"text_delta","text":"{text}"}}}},"parent_tool_use_id":null}}"#
    )
}

#[test]
fn partial_message_is_shown_and_replaced_by_whole_message() {
    let start = r#"{"type":"stream_event","event":{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}},"parent_tool_use_id":null}"#;
    let (let_me, see) = (part("Let me"), part(" s"));
    let activity = seen(&[start, &let_me, &see], 11);
    assert_eq!(activity.items, [ConversationItem::Text("Let me s".into())]);
    assert_eq!(activity.doing.as_deref(), Some("writing"));
    let activity = seen(&[start, &let_me, &see, GREW, TOOL], 1000);
    let whole = [
        ConversationItem::Text("Let me see.".into()),
        ConversationItem::Tool("Bash: cargo test".into()),
    ];
    assert_eq!(activity.items, whole);
}

#[test]
fn partial_message_is_bounded_and_hidden_for_sub_agent() {
    let mut activity = TurnActivity::keeping(3);
    for _ in 0..3 * MAX_ITEM_BYTES {
        activity.feed(format!("{}\n", part("ö")).as_bytes());
    }
    let Some(ConversationItem::Text(text)) = activity.items.back() else { panic!("a text") };
    assert!(activity.items.len() == 1 && text.len() <= MAX_ITEM_BYTES + 8 && text.starts_with('…'));
    let other = part("sub").replace(":null", ":\"toolu_1\"");
    assert!(seen(&[&other], 50).items.is_empty());
    let mut nobody_reads = TurnActivity::default();
    nobody_reads.feed(format!("{}\n", part("text")).as_bytes());
    assert!(nobody_reads.items.is_empty());
}

#[test]
fn unrequested_result_does_not_end_turn() {
    let other = r#"{"type":"result","result":"x","origin":{"kind":"task-notification"}}"#;
    assert!(!seen(&[other], 9).ended);
}

#[test]
fn turn_ends_after_its_background_work() {
    for version in ["2.1.197", "2.1.242", "2.1.287", "2.1.330"] {
        let path = format!("tests/fixtures/streams/{version}/background_agent.jsonl");
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path);
        let stream = std::fs::read_to_string(path).expect("a recorded stream");
        let mut activity = TurnActivity::keeping(3);
        let mut waited = false;
        for line in stream.lines() {
            assert!(!activity.ended || waited, "{version}");
            activity.feed(format!("{line}\n").as_bytes());
            let doing = activity.doing.as_deref().unwrap_or_default();
            waited |= doing == "waiting for the sub-agent \"Count the files\"";
        }
        assert!(waited && activity.ended, "{version}: {:?}", activity.doing);
    }
}
