//! An agent answers for the person who started it.

use serde_json::json;

use crate::support::{Test, always, when};

/// Returns a run that waits for an answer.
fn asking() -> Test {
    let ask = r#"<ask question="Release it?" next="NEXT.md">yes or no</ask>"#;
    let test = Test::new()
        .prompt("START.md", "start")
        .prompt("NEXT.md", "next: {{result}}")
        .rule(when("start").reply(ask))
        .rule(always().reply("<result>ok</result>"));
    test.run(&["START.md"]).code(2);
    test
}

#[test]
fn forged_inbox_entry_answers_no_question() {
    let test = asking();
    let open = test.raymond(&["answer", "t", "--json"]);
    let open = open.ok().json();
    let node = open["questions"][0]["node"].as_str().expect("a question").to_owned();
    let forged = json!({"command": "answer", "node": node, "text": "yes"});
    let inbox = test.run_dir().join("inbox");
    std::fs::write(inbox.join("0000000000001-forged.json"), forged.to_string()).expect("written");
    test.resume(&[]).code(2).stderr_has("it has no proof that you wrote it");
    assert!(test.events("question_answered").is_empty());
    test.raymond(&["answer", "t", &format!("{node}=no")]).ok();
    test.resume(&[]).ok();
    assert_eq!(test.events("question_answered").len(), 1);
}

#[test]
fn agent_may_not_answer_give_orders_or_trust() {
    let test = asking().env("RAYMOND_RUN", "t").env("RAYMOND_AGENT", "main");
    let before = test.journal().len();
    for command in [
        &["answer", "t", "x=yes"][..],
        &["stop", "t"],
        &["stop", "t", "--agent", "main"],
        &["tell", "t", "main", "x"],
        &["hold", "t", "main.*"],
        &["release", "t", "main"],
        &["trust", "."],
        &["run", "t", "--answer", "x=yes"],
    ] {
        test.raymond(command).code(77).stderr_has("the agent t/main may not ");
    }
    assert_eq!(test.journal().len(), before);
}

#[test]
fn agent_cannot_use_inherited_trust_or_trust_option() {
    let test = Test::new()
        .prompt("START.md", "---\nallowed_tools: [Bash]\n---\nstart")
        .rule(always().reply("<result>ok</result>"))
        .env("RAYMOND_RUN", "outer")
        .env("RAYMOND_AGENT", "main");
    test.run(&["START.md"]).code(77);
    test.run(&["START.md", "--trust"]).code(77);
    assert!(test.calls().is_empty());
}

#[test]
fn tampered_fact_is_ignored_with_warning() {
    let test = Test::new();
    test.raymond(&["signal", "plan/ready", "--value", "good"]).ok();
    let file = test.dir().join("dataspace/facts");
    let content = std::fs::read_to_string(&file).expect("read").replace("good", "evil");
    let (others, line) = content.trim_end().rsplit_once('\n').expect("a change");
    let (body, _) = line.rsplit_once(",\"crc\":").expect("a checksum");
    let crc = crc32fast::hash(body.as_bytes());
    let whole = format!("{others}\n{body},\"crc\":\"{crc:08x}\"}}\n");
    let unproven = "it has no proof that you or your runs wrote it";
    for (text, why) in [(&content, "its checksum is wrong"), (&whole, unproven)] {
        std::fs::write(&file, text).expect("written");
        let facts = test.raymond(&["facts", "--json"]);
        facts.ok().stderr_has(why);
        assert_eq!(facts.json(), json!([]));
    }
}

#[test]
fn agent_signal_records_real_source_despite_forged_environment() {
    let test = Test::new().env("RAYMOND_RUN", "t").env("RAYMOND_AGENT", "main.1");
    test.raymond(&["signal", "plan/ready"]).ok();
    let facts = test.raymond(&["facts", "--json"]);
    assert_eq!(facts.json()[0]["source"], "t/main.1");
    let pretend = "RAYMOND_AGENT=main.2 \"$0\" signal plan/other; :";
    test.shell(pretend).wait().ok();
    let facts = test.raymond(&["facts", "--json", "--label", "plan/other"]);
    assert_eq!(facts.json()[0]["source"], "t/main.1");
}
