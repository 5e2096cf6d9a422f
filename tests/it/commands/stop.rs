//! Requests to stop that come as the run ends: each takes effect, or reports that it came too late.

use std::fs;
use std::time::Duration;

use rustix::process::Signal;

use crate::support::{RunningRaymond, Test, held, when};

const ROUNDS: u64 = 16;
const STOPS: u64 = 4;

/// Returns the entries in the inbox of a run, without the mark that it is closed.
fn inbox(test: &Test, id: &str) -> Vec<String> {
    let files = fs::read_dir(test.run_dir().with_file_name(id).join("inbox")).expect("an inbox");
    let names = files.map(|file| file.expect("a file").file_name().into_string().expect("text"));
    names.filter(|name| name != "closed").collect()
}

#[test]
fn stop_racing_with_end_of_run_takes_effect_or_reports_end() {
    let held_one_by_one = |test: Test, round: u64| {
        let go = format!("go{round}");
        test.rule(when(&format!("start r{round}.")).hold_before(&go).reply("<result>ok</result>"))
    };
    let test =
        (0..ROUNDS).fold(Test::new().prompt("START.md", "start {{input}}."), held_one_by_one);
    let mut in_time = 0;
    for round in 0..ROUNDS {
        let id = format!("r{round}");
        let mut run = test.spawn(&["START.md", "--id", &id, "--input", &id]);
        run.wait_for("its turn", |test| !test.calls_with(&format!("start {id}.")).is_empty());
        let stop = |number| {
            // The pauses let the requests meet the run at all stages of its end.
            let pause = if number == 1 { 20 * round } else { number * round };
            std::thread::sleep(Duration::from_millis(pause));
            if number == 1 {
                test.release(&format!("go{round}"));
            }
            test.start(&["stop", &id])
        };
        let stops: Vec<RunningRaymond<'_>> = (0..STOPS).map(stop).collect();
        let told_of = |stop: RunningRaymond<'_>| {
            let outcome = stop.wait();
            let said = outcome.ok().stdout.as_str();
            let takes_effect = said.contains("stops once") || said.contains("has stopped");
            let is_void = said.contains("ended before") || said.contains("is not live");
            outcome.assert(takes_effect != is_void, "one of the two");
            takes_effect
        };
        let effects = stops.into_iter().map(told_of).filter(|&effect| effect).count();
        run.wait().code_in(&[0, 130]);

        let journal = test.run_dir().with_file_name(&id).join("journal.jsonl");
        let journal = fs::read_to_string(journal).expect("a journal");
        let taken = journal.matches("\"event\":\"command_received\"").count();
        assert_eq!(effects, taken, "in {id}, what was said and what was done");
        assert_eq!(inbox(&test, &id), Vec::<String>::new(), "in {id}");
        in_time += effects;
    }
    assert!(in_time > 0, "some came in time");
    test.assert_no_survivors();
}

#[test]
fn stop_of_closing_run_reports_that_it_has_ended() {
    // The raymond has closed the inbox and lives on, as while its plug-ins are told of the end. It takes nothing more, so
    // it stands still here.
    let test = held();
    let mut run = test.spawn(&["START.md"]);
    run.wait_calls(1);
    run.signal(Signal::STOP);
    fs::write(test.run_dir().join("inbox/closed"), "").expect("the mark");
    let said = test.raymond(&["stop", "t"]);
    said.ok().stdout_has("ended before it could be stopped");
    assert_eq!(inbox(&test, "t"), Vec::<String>::new());
    let said = test.raymond(&["stop", "t", "--json"]).ok().json();
    assert_eq!(said["asked"], false);
    run.signal(Signal::CONT);
    test.release("go");
    run.wait().ok();
}
