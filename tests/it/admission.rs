//! The admission of turns: never more at once than allowed, fair between the forks of several parents, as
//! many as the memory has room for.

use std::fs;

use crate::support::{Test, always, most_at_once, when};

/// Returns a workflow whose parent forks workers one after another, and then ends.
fn crowd(workers: u32) -> Test {
    Test::new()
        .prompt("START.md", "start")
        .prompt("W.md", "work")
        .rule(when("start").times(workers).reply(r#"<fork next="START.md">W.md</fork>"#))
        .rule(when("start").reply("<result>led</result>"))
}

#[test]
fn fork_burst_stays_within_max_procs() {
    let test = crowd(300).rule(when("work").reply("<result>worked</result>"));
    let outcome = test.run(&["START.md", "--max-procs", "7", "-v"]);
    outcome.ok().ended("main", "led").ended("main.300", "worked");
    assert_eq!(test.calls_with("work").len(), 300);
    let most = most_at_once(&test.call_log());
    assert!(most <= 7, "{most} at once");
    test.assert_no_survivors();
}

#[test]
fn admission_alternates_between_forks_of_two_parents() {
    // All agents wait for a person, and then want the only permit at the same time.
    let test = Test::new()
        .prompt("START.md", "start")
        .prompt("MANY.md", "many")
        .prompt("FEW.md", "few")
        .prompt("ANT.md", "ant")
        .prompt("BEE.md", "bee")
        .rule(when("start").once().reply(r#"<fork next="START.md">MANY.md</fork>"#))
        .rule(when("start").once().reply(r#"<fork next="START.md">FEW.md</fork>"#))
        .rule(when("many").times(12).reply(r#"<fork next="MANY.md">ANT.md</fork>"#))
        .rule(when("few").times(3).reply(r#"<fork next="FEW.md">BEE.md</fork>"#))
        .rule(when("ant").times(12).exit(1))
        .rule(when("bee").times(3).exit(1))
        .rule(always().reply("<result>ok</result>"));
    let wait = ["--on-exhausted", "wait", "--max-restarts", "0"];
    test.run(&[&["START.md"], &wait[..]].concat()).code(2);
    let before = test.calls().len();

    test.resume(&["--max-procs", "1"]).ok();
    let prompts = &test.prompts()[before..];
    assert_eq!(prompts.len(), 15);
    let last = prompts.iter().rposition(|prompt| prompt == "bee").expect("bees");
    assert!(last < 8, "three bees do not stand behind twelve ants: {prompts:?}");
}

/// A simulated machine with 4 GiB of memory.
struct MemoryMachine {
    test: Test,
}

impl MemoryMachine {
    const LITTLE_MEMORY_KIB: u64 = 500 << 10;
    const PLENTY_MEMORY_KIB: u64 = 4000 << 10;

    fn with(test: Test, available: u64) -> Self {
        let machine = Self { test };
        machine.set_available(available);
        machine
    }

    /// Sets the available memory, in KiB.
    fn set_available(&self, available: u64) {
        let table = self.test.memory_table();
        let draft = table.with_extension("draft");
        let text = format!("MemTotal: {} kB\nMemAvailable: {available} kB\n", 4 << 20);
        fs::write(&draft, text).expect("the table is written");
        fs::rename(draft, table).expect("the table is in place");
    }
}

fn held_crowd(workers: u32) -> Test {
    crowd(workers).rule(when("work").hold_before("go").reply("<result>worked</result>"))
}

#[test]
fn low_memory_limits_run_to_one_process() {
    for procs in ["auto", "8"] {
        let test = crowd(5).rule(when("work").reply("<result>worked</result>"));
        let machine = MemoryMachine::with(test, MemoryMachine::LITTLE_MEMORY_KIB);
        machine.test.run(&["START.md", "--max-procs", procs]).ok().ended("main.5", "worked");
        assert_eq!(most_at_once(&machine.test.call_log()), 1, "--max-procs {procs}");
    }
}

/// Checks that one worker runs while there is little memory, and all of them when there is more.
fn relieved(options: &[&str]) {
    let machine = MemoryMachine::with(held_crowd(4), MemoryMachine::LITTLE_MEMORY_KIB);
    let mut live = machine.test.spawn(&[&["START.md"], options].concat());
    live.wait_for("the first worker", |test| test.calls_with("work").len() == 1);
    machine.set_available(MemoryMachine::PLENTY_MEMORY_KIB);
    live.wait_for("all workers at once", |test| most_at_once(&test.call_log()) >= 4);
    machine.test.release("go");
    live.wait().ok();
}

#[test]
fn freed_memory_admits_more_workers() {
    relieved(&["--max-procs", "8"]);
}

#[test]
fn freed_memory_raises_auto_process_limit() {
    relieved(&["--max-procs", "auto"]);
}

#[test]
fn memory_shortage_keeps_running_turns_and_starves_no_agent() {
    let test = Test::new()
        .prompt("START.md", "start")
        .prompt("W.md", "work")
        .prompt("X.md", "onward")
        .rule(when("start").times(4).reply(r#"<fork next="START.md">W.md</fork>"#))
        .rule(when("start").reply("<result>led</result>"))
        .rule(when("work").hold_before("go").reply("<goto>X.md</goto>"))
        .rule(when("onward").reply("<result>worked</result>"));
    let machine = MemoryMachine::with(test, MemoryMachine::PLENTY_MEMORY_KIB);
    let mut live = machine.test.spawn(&["START.md"]);
    live.wait_for("4 workers, and the end of main", |test| {
        test.calls_with("work").len() == 4 && test.events("step_finished").len() == 5
    });
    machine.set_available(MemoryMachine::LITTLE_MEMORY_KIB);
    machine.test.release("go");
    live.wait().ok().ended("main.1", "worked").ended("main.4", "worked");
    assert_eq!(machine.test.calls().len(), 13);
}

#[test]
fn auto_limit_is_number_of_processes_that_fit_in_memory() {
    // The memory has room for three processes besides the reserve.
    let machine = MemoryMachine::with(held_crowd(6), (410 + 3 * 300 + 50) << 10);
    let mut live = machine.test.spawn(&["START.md", "--max-procs", "auto"]);
    live.wait_for("three at once", |test| most_at_once(&test.call_log()) >= 3);
    machine.set_available(MemoryMachine::LITTLE_MEMORY_KIB);
    machine.test.release("go");
    live.wait().ok();
    assert_eq!(most_at_once(&machine.test.call_log()), 3);
}

#[test]
fn unknown_memory_does_not_limit_admission() {
    let test = held_crowd(4);
    assert!(!test.memory_table().exists());
    let mut live = test.spawn(&["START.md"]);
    live.wait_for("all workers at once", |test| most_at_once(&test.call_log()) >= 4);
    test.release("go");
    live.wait().ok();
}
