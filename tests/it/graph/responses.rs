//! A person's response and the result of a command, used as texts.

use serde_json::json;

use super::{graph, node, test};

#[test]
fn response_chooses_the_section_of_a_document() {
    let option = |id: &str| json!({"id": id, "label": id, "description": "d"});
    let graph = graph(json!({
        "start": {
            "type": "user_prompt",
            "prompt": {"question": "Which?", "header": "Part", "options": [option("Clone"), option("Other")]},
            "on_response": {"Clone": {"next_node": "then"}, "Other": {"next_node": "then"}},
        },
        "then": {"type": "reference", "doc": "git.md", "section": "${user_responses.start}", "next_node": "shell"},
        "shell": node(json!([
            {"type": "bash_exec", "command": "printf 'a\\nOther\\n'", "store_as": "out"},
            {"type": "compute", "store_as": "computed.all", "expression": "[computed.out + '', '${computed.out}'.length, computed.out.split('\\n')[1] == user_responses.start, contains(computed.out, 'a')]"},
            {"type": "write_file", "path": "made", "content": "${computed.all} ${user_responses.start} ${computed.out}"},
        ]), "done"),
    }));
    let test = test(&graph).file("git.md", b"# G\n## Clone\nx\n## Other\nyes\n").file(
        "replies.yaml",
        b"workflow.yaml#then: [{ match: yes, reply: '<result>{\"status\":\"ok\",\"outputs\":{}}</result>' }]\n",
    );
    let outcome = test.run(&["workflow.yaml", "--agent", "scripted", "--answer", "start=2"]);
    outcome.ok();
    let made = std::fs::read_to_string(test.flow().join("made")).expect("written");
    assert_eq!(made, "[\"a\\nOther\",7,true,true] Other a\nOther");
}
