//! Ends of turns that are and are not answers, as the oldest and the newest version print them.

use super::*;

fn stream(lines: &str) -> StreamParser {
    let mut stream = StreamParser::default();
    stream.feed(lines.as_bytes()).expect("short lines");
    stream.end();
    stream
}

/// Returns why a turn with these lines has no answer, or its answer.
fn judged(stream: &StreamParser) -> Result<Option<String>, (FailureCause, String)> {
    let result = stream.progress.result.as_ref().expect("a result");
    why_no_answer(stream, result).map_or_else(|| Ok(result.text.clone()), Err)
}

fn ends(more: &str) -> String {
    format!("{{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":false,{more}}}\n")
}

fn wrote(text: &str) -> String {
    format!(
        "{{\"type\":\"assistant\",\"uuid\":\"m\",\"message\":{{\"model\":\"opus\",\"content\":[{{\"type\":\"text\",\"text\":\"{text}\"}}]}}}}\n"
    )
}

const TOOL: &str = "{\"type\":\"assistant\",\"message\":{\"model\":\"opus\",\"content\":[{\"type\":\"tool_use\",\"id\":\"t\",\"name\":\"Bash\"}]}}\n";
const FEEDBACK: &str = "{\"type\":\"user\",\"message\":{\"content\":[{\"type\":\"text\",\"text\":\"Stop hook feedback:\\n[check.sh]: the build is not green\\n\"}]}}\n";
const OF_SUB_AGENT: &str = "{\"type\":\"assistant\",\"parent_tool_use_id\":\"t\",\"message\":{\"model\":\"opus\",\"content\":[{\"type\":\"text\",\"text\":\"<result>mine</result>\"}]}}\n";
const SYNTHETIC: &str = "{\"type\":\"assistant\",\"message\":{\"model\":\"<synthetic>\",\"content\":[{\"type\":\"text\",\"text\":\"No response requested.\"}]}}\n";

fn stopped(words: &str) -> String {
    format!(
        "{{\"type\":\"system\",\"subtype\":\"informational\",\"content\":\"{words}\",\"level\":\"warning\",\"prevent_continuation\":true}}\n"
    )
}

#[test]
fn finished_turn_of_each_version_is_an_answer() {
    for end in [
        "\"result\":\"ok\"",
        "\"result\":\"ok\",\"num_turns\":1",
        "\"result\":\"ok\",\"num_turns\":3,\"terminal_reason\":\"completed\"",
        "\"result\":\"ok\",\"num_turns\":1,\"terminal_reason\":\"stop_hook_prevented\"",
        "\"result\":\"ok\",\"num_turns\":1,\"terminal_reason\":null",
        "\"result\":\"ok\",\"num_turns\":\"many\",\"terminal_reason\":7",
    ] {
        assert_eq!(judged(&stream(&ends(end))), Ok(Some("ok".to_owned())), "{end}");
    }
    let object = ends("\"result\":\"\",\"num_turns\":2,\"structured_output\":{\"a\":1}");
    assert!(judged(&stream(&object)).is_ok(), "an object is an answer");
}

#[test]
fn turn_without_request_to_the_model_has_no_answer() {
    for text in ["", "<result>ok</result>", "Total cost: $0.00"] {
        let lines =
            wrote("<result>ok</result>") + &ends(&format!("\"num_turns\":0,\"result\":\"{text}\""));
        let (cause, why) = judged(&stream(&lines)).expect_err("no answer");
        assert_eq!(cause, FailureCause::Crash);
        assert!(why.contains("without asking the model"), "{why}");
    }
}

#[test]
fn hook_that_blocks_or_stops_the_prompt_is_named_without_the_prompt() {
    let blocked = "UserPromptSubmit operation blocked by hook:\\n[guard.sh]: NO\\n\\nOriginal prompt: say <result>ok</result>";
    for (words, expected) in
        [(blocked, "[guard.sh]: NO"), ("Operation stopped by hook: HALT", "HALT")]
    {
        let lines = stopped(words) + &ends(&format!("\"num_turns\":0,\"result\":\"{words}\""));
        let (cause, why) = judged(&stream(&lines)).expect_err("no answer");
        assert_eq!(cause, FailureCause::Rejected);
        assert!(why.contains(expected) && !why.contains("<result>"), "{why}");
    }
    // A message to the running turn was blocked, not its prompt.
    let answered = stopped(blocked) + &ends("\"num_turns\":2,\"result\":\"done\"");
    assert_eq!(judged(&stream(&answered)), Ok(Some("done".to_owned())));
}

#[test]
fn unfinished_turn_has_no_answer() {
    for (reason, cause) in [
        ("hook_stopped", FailureCause::Rejected),
        ("tool_deferred", FailureCause::Rejected),
        ("aborted_streaming", FailureCause::Crash),
        ("aborted_tools", FailureCause::Crash),
        ("model_error", FailureCause::Crash),
        ("prompt_too_long", FailureCause::Crash),
        ("a_new_reason", FailureCause::Crash),
    ] {
        let end = format!("\"num_turns\":2,\"result\":\"half\",\"terminal_reason\":\"{reason}\"");
        let (found, why) =
            judged(&stream(&(wrote("<result>ok</result>") + &ends(&end)))).expect_err("none");
        assert_eq!((found, why.contains(reason)), (cause, true), "{why}");
    }
}

#[test]
fn last_text_of_the_model_counts_if_the_result_of_a_finished_turn_is_empty() {
    let empty = ends("\"num_turns\":9,\"result\":\"\",\"terminal_reason\":\"completed\"");
    let missing = ends("\"num_turns\":9");
    let done = wrote("done <result>ok</result>");
    let plain = wrote("I look first.");
    for (lines, expected) in [
        (done.clone() + FEEDBACK + &done + FEEDBACK, Some("done <result>ok</result>")),
        (plain.clone() + TOOL + &wrote("the answer") + FEEDBACK, Some("the answer")),
        (done.clone() + FEEDBACK + TOOL, Some("done <result>ok</result>")),
        (done.clone() + TOOL, None),
        (done.clone() + OF_SUB_AGENT + SYNTHETIC, Some("done <result>ok</result>")),
        (plain.clone() + TOOL, None),
        (OF_SUB_AGENT.to_owned() + SYNTHETIC, None),
        (wrote(" "), None),
        (String::new(), None),
    ] {
        for end in [&empty, &missing] {
            let answer = judged(&stream(&(lines.clone() + end))).expect("it is judged as a reply");
            let answer = answer.filter(|text| !text.is_empty());
            assert_eq!(answer.as_deref(), expected, "{lines}");
        }
    }
}

#[test]
fn stop_hook_that_leaves_no_answer_is_named() {
    let end = ends("\"num_turns\":9,\"result\":\"\",\"terminal_reason\":\"completed\"");
    let lines = wrote("I look first.") + TOOL + FEEDBACK + &end;
    let (cause, why) = judged(&stream(&lines)).expect_err("no answer");
    assert_eq!(cause, FailureCause::Rejected);
    assert!(why.contains("Stop hook") && why.contains("the build is not green"), "{why}");
    let answered = stream(&(FEEDBACK.to_owned() + &wrote("done") + &end));
    assert_eq!((answered.traces.looping_hook(), judged(&answered).is_ok()), (None, true));
}

#[test]
fn command_is_an_answer_only_if_its_state_allows_it_and_the_program_knows_it() {
    let of = |text: &str| {
        let mut stream = stream(&ends(&format!("\"num_turns\":0,\"result\":\"{text}\"")));
        stream.traces.runs_command = true;
        judged(&stream)
    };
    assert_eq!(of("Total cost: $0.00"), Ok(Some("Total cost: $0.00".to_owned())));
    assert_eq!(of(""), Ok(Some(String::new())));
    for text in ["Unknown command: /deploy", "/help isn't available in this environment."] {
        let (cause, why) = of(text).expect_err("no answer");
        assert_eq!((cause, why.contains(text)), (FailureCause::Rejected, true), "{why}");
    }
}

#[test]
fn command_blocked_by_hook_has_no_answer() {
    let blocked = "UserPromptSubmit operation blocked by hook:\\n[guard.sh]: NO\\n\\nOriginal prompt: /review <result>ok</result>";
    for message in [
        blocked,
        "[g.sh]: NO\\nOriginal prompt: <result>ok</result>",
        "stopped by hook: <result>ok</result>",
    ] {
        let mut stream = stream(&ends(&format!("\"num_turns\":0,\"result\":\"{message}\"")));
        stream.traces.runs_command = true;
        let (cause, why) = judged(&stream).expect_err("no answer");
        assert_eq!(
            (cause, why.contains("a hook stopped the prompt")),
            (FailureCause::Rejected, true)
        );
    }
}

#[test]
fn text_not_written_by_the_model_is_not_an_answer() {
    let end = |text: &str| ends(&format!("\"num_turns\":1,\"result\":\"{text}\""));
    let placed = "No response requested.";
    for (lines, expected) in [
        (SYNTHETIC.to_owned() + &end(placed), None),
        (wrote("done") + SYNTHETIC + &end(placed), Some("done")),
        (SYNTHETIC.to_owned() + &wrote("done") + &end("done"), Some("done")),
        (wrote("done") + &end("(no content)"), Some("done")),
        (end("(no content)"), Some("(no content)")),
        (wrote("done") + &end("\\u200b \\ufeff"), Some("done")),
    ] {
        assert_eq!(judged(&stream(&lines)), Ok(expected.map(str::to_owned)), "{lines}");
    }
}

#[test]
fn later_result_without_an_answer_leaves_the_answer_before_it() {
    let answer =
        ends("\"num_turns\":2,\"result\":\"<goto>A.md</goto>\",\"terminal_reason\":\"completed\"");
    let blocked = stopped("UserPromptSubmit operation blocked by hook")
        + &ends("\"num_turns\":0,\"result\":\"Original prompt: <result>x</result>\"");
    let of_task = "{\"type\":\"result\",\"is_error\":false,\"num_turns\":0,\"result\":\"\"}\n";
    for later in [blocked.as_str(), of_task] {
        let mut stream = StreamParser::default();
        stream.feed(b"{\"type\":\"system\",\"subtype\":\"task_started\",\"task_id\":\"t\",\"task_type\":\"local_agent\"}\n")
            .expect("a short line");
        stream.feed((answer.clone() + later).as_bytes()).expect("short lines");
        assert_eq!(judged(&stream), Ok(Some("<goto>A.md</goto>".to_owned())), "{later}");
    }
}

#[test]
fn refused_renewal_of_the_system_prompt_discards_the_turn() {
    let refused = "{\"type\":\"control_response\",\"response\":{\"subtype\":\"error\",\"request_id\":\"initialize-0\",\"error\":\"no\"}}\n";
    let lines = refused.to_owned() + &ends("\"result\":\"ok\"");
    assert!(matches!(judged(&stream(&lines)), Err((FailureCause::Rejected, _))));
}
