//! The account's usage limit: the whole run waits for its reset, says so, and counts no restart.

use std::time::{SystemTime, UNIX_EPOCH};

use jiff::tz::TimeZone;
use serde_json::Value;

use crate::support::{FakeRule, Test, always, wait_until, when};

const SAID: &str = "You've hit your limit";

/// Returns the time after so many seconds, in seconds since 1970.
fn ahead(seconds: u64) -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs() + seconds
}

/// Returns a run whose first turn meets the limit by this rule.
fn limited(rule: FakeRule) -> Test {
    Test::new()
        .env("TZ", "UTC")
        .prompt("START.md", "start")
        .rule(rule)
        .rule(always().reply("<result>well</result>"))
}

/// Returns the end of the wait, from the journal.
fn until(test: &Test) -> i64 {
    moment(&test.events("limit_reached")[0]["until"])
}

fn moment(time: &Value) -> i64 {
    let time = time.as_str().and_then(|time| time.parse::<jiff::Timestamp>().ok());
    time.expect("a time").as_millisecond()
}

/// Returns a time as people read it.
fn date(millis: i64) -> String {
    let at = jiff::Timestamp::from_millisecond(millis).expect("a time");
    at.to_zoned(TimeZone::UTC).strftime("%b %-d, %H:%M").to_string()
}

fn written(record: &Value) -> i64 {
    moment(&record["at"])
}

/// Checks that the steps in this state were finished after the reset.
#[track_caller]
fn assert_waited(test: &Test, state: &str) {
    let until = until(test);
    let finished = test.events("step_finished");
    let steps: Vec<&Value> = finished.iter().filter(|step| step["state"] == state).collect();
    assert!(!steps.is_empty());
    for step in steps {
        assert!(written(step) >= until, "a turn did not wait until {until}: {step}");
    }
}

#[test]
fn run_waits_for_reset_and_continues_by_itself() {
    let test = Test::new()
        .prompt("START.md", "start")
        .prompt("NEXT.md", "next")
        .prompt("W.md", "work")
        .prompt("X.md", "onward")
        .rule(when("start").times(3).reply(r#"<fork next="START.md">W.md</fork>"#))
        .rule(when("start").reply("<goto>NEXT.md</goto>"))
        .rule(when("work").hold_before("work").reply("<goto>X.md</goto>"))
        .rule(when("next").once().hold_before("limit").limit(ahead(4), SAID))
        .rule(always().reply("<result>well</result>"));
    let mut live = test.spawn(&["START.md", "--max-restarts", "0", "--max-procs", "8"]);
    live.wait_for("3 workers and main", |test| {
        test.calls_with("work").len() == 3 && test.calls_with("next").len() == 1
    });
    test.release("limit");
    live.wait_event("limit_reached", 1);
    test.release("work");
    let outcome = live.wait();
    outcome.ok().ended("main", "well").ended("main.3", "well").stderr_has(SAID);
    assert_waited(&test, "X.md");
    assert_waited(&test, "NEXT.md");
    let failed = test.events("turn_failed");
    assert_eq!(failed.len(), 1);
    assert_eq!((&failed[0]["cause"], &failed[0]["counts"]), (&"usage_limit".into(), &false.into()));
    assert_eq!(test.calls_with("work").len(), 3, "turns that ran already are kept");
}

#[test]
fn limit_hit_by_four_agents_at_once_is_recorded_once() {
    let test = Test::new()
        .prompt("START.md", "start")
        .prompt("W.md", "work")
        .rule(when("start").times(4).reply(r#"<fork next="START.md">W.md</fork>"#))
        .rule(when("work").times(4).hold_before("go").limit(ahead(3), SAID))
        .rule(always().reply("<result>well</result>"));
    let mut live = test.spawn(&["START.md", "--max-restarts", "0", "--max-procs", "8"]);
    live.wait_for("4 workers", |test| test.calls_with("work").len() == 4);
    test.release("go");
    live.wait().ok();
    assert_waited(&test, "W.md");
    assert_eq!(test.events("limit_reached").len(), 1);
    assert_eq!(test.events("turn_failed").len(), 4);
    assert_eq!(test.calls_with("work").len(), 8);
}

#[test]
fn reset_time_in_milliseconds_is_understood() {
    let reset = ahead(3600);
    let test = limited(always().once().limit(reset * 1000, SAID));
    let mut live = test.spawn(&["START.md"]);
    live.wait_event("limit_reached", 1);
    let reset = i64::try_from(reset * 1000).expect("a time");
    assert!((reset..=reset + 60_000).contains(&until(&test)), "{}", until(&test));
    live.interrupt();
    live.wait().code(130);
}

#[test]
fn reset_time_is_shown_by_run_and_status() {
    let test = limited(always().once().limit(ahead(7200), SAID));
    let mut live = test.spawn(&["START.md"]);
    live.wait_event("limit_reached", 1);
    let time = date(until(&test));
    live.wait_stderr(&format!("no turn starts before {time}"));
    let status = test.raymond(&["status", "t"]);
    status.ok().stdout_has("running").stdout_has("usage limit").stdout_has(&time);
    assert_eq!(moment(&test.status()["limited_until"]), until(&test));
    live.interrupt();
    live.wait().code(130).stderr_has("raymond resume t");
    assert_eq!(test.calls().len(), 1);
}

#[test]
fn run_killed_during_wait_continues_waiting_on_resume() {
    let test = limited(always().once().limit(ahead(4), SAID));
    let mut live = test.spawn(&["START.md", "--max-restarts", "0"]);
    live.wait_event("limit_reached", 1);
    live.kill9();
    test.resume(&[]).ok().ended("main", "well");
    assert_waited(&test, "START.md");
    assert_eq!(test.events("limit_reached").len(), 1);
    assert_eq!(test.calls().len(), 2);
}

#[test]

fn resumed_run_shows_until_when_it_waits() {
    let test = limited(always().once().limit(ahead(7200), SAID));
    let mut live = test.spawn(&["START.md"]);
    live.wait_event("limit_reached", 1);
    live.kill9();
    let mut live = test.spawn_resumed(&[]);
    live.wait_stderr(&format!("no turn starts before {}", date(until(&test))));
    live.interrupt();
    live.wait().code(130);
}

#[test]

fn status_shows_reset_time_of_run_killed_during_wait() {
    let test = limited(always().once().limit(ahead(7200), SAID));
    let mut live = test.spawn(&["START.md"]);
    live.wait_event("limit_reached", 1);
    live.kill9();
    test.raymond(&["status", "t"]).ok().stdout_has(&date(until(&test)));
}

#[test]
fn run_stopped_during_wait_retries_at_once_on_resume() {
    let test = limited(always().once().limit(ahead(7200), SAID));
    let mut live = test.spawn(&["START.md", "--max-restarts", "0"]);
    live.wait_event("limit_reached", 1);
    live.kill9();
    let mut live = test.spawn_resumed(&[]);
    live.wait_event("run_resumed", 1);
    wait_until("it is said to wait", || {
        test.raymond(&["status", "t"]).stdout.contains("no turn starts before")
    });
    test.raymond(&["stop", "t"]).ok();
    live.wait().code(130);
    assert_eq!(test.calls().len(), 1, "nothing was tried meanwhile");

    test.resume(&[]).ok().ended("main", "well");
    assert_eq!(test.calls().len(), 2);
}

#[test]
fn interrupt_ends_the_wait() {
    let test = limited(always().once().limit(ahead(7200), SAID));
    let mut live = test.spawn(&["START.md", "--shutdown", "10m"]);
    live.wait_event("limit_reached", 1);
    live.interrupt();
    live.wait().code(130);
    test.resume(&[]).ok();
}

#[test]
fn on_limit_pause_pauses_the_run() {
    let reset = ahead(7200);
    let test = limited(always().once().limit(reset, SAID));
    let options = ["START.md", "--on-limit", "pause", "--max-restarts", "0"];
    let outcome = test.run(&options);
    let time = date(i64::try_from(reset).expect("a time") * 1000);
    outcome.code(75).stderr_has(SAID).stderr_has(&format!("it resets {time}"));
    outcome.stderr_has("raymond resume t");
    assert!(test.events("limit_reached").is_empty());
    test.raymond(&["status", "t"]).ok().stdout_has("paused").stdout_has(&time);
    test.raymond(&["list"]).ok().stdout_has("usage limit");

    test.resume(&[]).ok().ended("main", "well");
    assert_eq!(test.calls().len(), 2);
}

#[test]
fn on_limit_fail_fails_the_agent() {
    let test = Test::new()
        .prompt("START.md", "start")
        .prompt("NEXT.md", "next")
        .prompt("W.md", "work")
        .rule(when("start").reply(r#"<fork next="NEXT.md">W.md</fork>"#))
        .rule(when("work").limit(ahead(7200), SAID))
        .rule(always().reply("<result>well</result>"));
    let outcome = test.run(&["START.md", "--on-limit", "fail"]);
    outcome.code(1).ended("main", "well");
    let message = outcome.failed("main.1");
    outcome.assert(message.contains(SAID), "what Claude Code said");
    assert_eq!(test.calls_with("work").len(), 1);
}

#[test]
fn limit_is_detected_by_its_text_alone() {
    let test = limited(always().once().limit_text("You've hit your limit · resets 3pm (UTC)"));
    let mut live = test.spawn(&["START.md"]);
    live.wait_event("limit_reached", 1);
    assert!(date(until(&test)).ends_with(", 15:00"), "{}", date(until(&test)));
    live.interrupt();
    live.wait().code(130);
}

#[test]
fn limit_without_known_reset_is_waited_for() {
    // The wait is then a guess: a quarter of an hour, with a spread of at most a minute.
    let test = limited(always().once().limit_text("Claude usage limit reached."));
    let mut live = test.spawn(&["START.md"]);
    live.wait_event("limit_reached", 1);
    let wait = until(&test) - written(&test.events("limit_reached")[0]);
    assert!((840_000..=960_000).contains(&wait), "{wait}");
    live.interrupt();
    live.wait().code(130);

    let test = limited(always().once().limit_text("Claude usage limit reached."));
    let outcome = test.run(&["START.md", "--on-limit", "pause"]);
    outcome.code(75).stderr_has("Claude usage limit reached").stderr_lacks("it resets");
}

#[test]
fn reply_mentioning_a_limit_is_not_treated_as_limit() {
    let test = Test::new()
        .prompt("START.md", "start")
        .rule(always().reply(&format!("{SAID} · resets 3pm (UTC). <result>told</result>")));
    test.run(&["START.md"]).ok().ended("main", "told");
    assert!(test.events("limit_reached").is_empty());
}

#[test]
fn interrupt_of_a_pausing_run_grants_running_turns_their_grace() {
    let test = Test::new()
        .prompt("START.md", "start")
        .prompt("W.md", "work")
        .rule(when("start").once().reply(r#"<fork next="START.md">W.md</fork>"#))
        .rule(when("start").once().hold_before("limit").limit(ahead(3600), SAID))
        .rule(when("work").hold_before("go").reply("<result>worked</result>"))
        .rule(always().reply("<result>well</result>"));
    let mut live = test.spawn(&["START.md", "--on-limit", "pause", "--max-procs", "4"]);
    live.wait_for("the worker and main", |test| test.calls().len() == 3);
    test.release("limit");
    live.wait_event("run_paused", 1);
    live.interrupt();
    live.wait_stderr("may finish within");
    test.release("go");
    live.wait().code(75).ended("main.1", "worked");
    assert_eq!(test.calls_with("work").len(), 1);
    assert_eq!(test.events("turn_failed").len(), 1, "only the turn that met the limit");
    test.assert_no_survivors();
}

#[test]
fn run_killed_during_wait_resumes_at_once_with_on_limit_pause() {
    let test = limited(always().once().limit(ahead(3600), SAID));
    let mut live = test.spawn(&["START.md"]);
    live.wait_event("limit_reached", 1);
    live.kill9();
    test.resume(&["--on-limit", "pause"]).ok().ended("main", "well");
}
