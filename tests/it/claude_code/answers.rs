//! An answer that takes long counts as progress while it is written, and leaves no trace of that.

use std::time::{Duration, Instant};

use crate::api::on;

use super::POSITIVE;
use super::machine::TestMachine;

/// A time longer than a loaded machine needs to start Claude Code, or between two words.
const IDLE: Duration = Duration::from_secs(15);

#[test]
fn reply_streamed_longer_than_idle_timeout_is_not_retried() {
    let machine = TestMachine::new();
    machine.prompt("START.md", "ALPHA: begin.");
    machine.prompt("NEXT.md", "BRAVO: go on.");
    let words: Vec<String> = (0..2000).map(|number| format!("word{number} ")).collect();
    let words = words.concat();
    machine.api.script([
        on("ALPHA").reply(&format!("{words}<goto>NEXT.md</goto>")).word_by_word(),
        on("BRAVO").reply("<result>POSITIVE</result>"),
    ]);
    let stream = || machine.run_file("steps/main-1-0.jsonl");

    let idle = format!("{}ms", IDLE.as_millis());
    let running = machine.start(&["--idle-timeout", &idle]);
    machine.api.wait_for("ALPHA", 1);
    let start = Instant::now();
    let mut number = 0;
    while start.elapsed() < IDLE + Duration::from_secs(1) {
        machine.api.next_word("ALPHA");
        let word = format!("word{number} ");
        machine.until("the word is in the stream", || stream().contains(&word));
        number += 1;
    }
    (number..=2000).for_each(|_| machine.api.next_word("ALPHA"));
    running.wait().exits(0).prints(POSITIVE);

    assert_eq!(machine.api.turns("ALPHA"), 1);
    assert_eq!(machine.records("turn_failed").len(), 0);
    assert!(!stream().contains("stream_event"), "the parts of the message are dropped");
    assert!(stream().contains("word1999"), "the message is kept");
    assert_eq!(stream().matches("\"type\":\"result\"").count(), 2, "one for each turn");
}

#[test]
fn transcripts_hold_no_partial_messages_with_or_without_warm() {
    for options in [&[][..], &["--no-warm"]] {
        let machine = TestMachine::new();
        machine.prompt("START.md", "ALPHA: begin.");
        machine.prompt("NEXT.md", "BRAVO: go on.");
        machine.prompt("LAST.md", "CHARLIE: end.");
        machine.api.script([
            on("ALPHA").reply("<goto>NEXT.md</goto>"),
            on("BRAVO").reply("<reset>LAST.md</reset>"),
            on("CHARLIE").reply("<result>POSITIVE</result>"),
        ]);
        machine.run(options).exits(0).prints(POSITIVE);
        for name in machine.streams() {
            let stream = machine.run_file(&format!("steps/{name}"));
            assert!(stream.contains("\"assistant\""), "{name}: {stream}");
            assert!(!stream.contains("stream_event"), "{name}: {stream}");
        }
    }
}
