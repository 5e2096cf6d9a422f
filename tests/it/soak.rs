//! Kills raymond repeatedly at random moments of a forked workflow, and resumes the run each time.
//! [`crate::crash`] does the same at the failpoints; this test covers the moments between them.
//!
//! By default there are about thirty kills. `RAYMOND_SOAK=500 tests/run soak` makes five hundred, over as
//! many fresh runs as that takes, and prints its figures. A failure names the seed of its moments;
//! `RAYMOND_SOAK_SEED` repeats them, as far as the system's own timing allows it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Write;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rustix::process::Signal;
use serde_json::{Map, Value, json};

use crate::support::{RunningRaymond, Test, alive, wait_until, when};

const DEFAULT_KILLS: u64 = 30;
const OPTIONS: [&str; 3] = ["--json", "--max-procs", "3"];

/// The file that turns wait for, before or after their result.
const GATE: &str = "gate";

/// A thread that creates the gate for a moment, repeatedly. So turns last a random time of some milliseconds,
/// whether raymond is alive or not.
#[derive(Debug)]
struct GateOpener {
    ends: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl GateOpener {
    fn of(test: &Test) -> Self {
        let gate = test.fake().join(GATE);
        let (ends, ended) = channel();
        let is_running_after = move |millis| {
            ended.recv_timeout(Duration::from_millis(millis)) == Err(RecvTimeoutError::Timeout)
        };
        let thread = std::thread::spawn(move || {
            while is_running_after(8) {
                File::create(&gate).expect("the gate opens");
                is_running_after(2);
                std::fs::remove_file(&gate).expect("the gate closes");
            }
        });
        Self { ends: Some(ends), thread: Some(thread) }
    }
}

impl Drop for GateOpener {
    fn drop(&mut self) {
        drop(self.ends.take());
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// Returns a workflow with four workers, one of them forked by a worker. Each uses every tag and then ends.
/// The padding lets a kill fall into the middle of a line.
fn workflow() -> Test {
    let mut test = Test::new();
    for (name, text) in [
        ("START.md", "start"),
        ("SECOND.md", "second"),
        ("THIRD.md", "third"),
        ("LEAD.md", "lead"),
        ("WORKER.md", "work on {{item}}"),
        ("SUB.md", "sub of {{agent_id}} with {{depth}}"),
        ("DEEPER.md", "deeper in {{agent_id}}"),
        ("BACK.md", "back with {{result}} in {{agent_id}}"),
        ("EVAL.md", "eval for {{agent_id}}"),
        ("DONE.md", "done with {{result}}"),
        ("MORE.md", "more of {{agent_id}}"),
        ("LAST.md", "last of {{agent_id}} after {{word}}"),
        ("END.md", "end of {{agent_id}}"),
    ] {
        test = test.prompt(name, text);
    }
    let rules = [
        when("start").reply(r#"<fork next="SECOND.md" item="ants">WORKER.md</fork>"#).pad(50_000),
        when("second")
            .hold_before(GATE)
            .reply(r#"<fork next="THIRD.md" item="bees">WORKER.md</fork>"#),
        when("third").reply(r#"<fork next="LEAD.md" item="cats">WORKER.md</fork>"#).pad(400_000),
        when("lead").hold_after(GATE).reply(r#"<call return="BACK.md" depth="no">SUB.md</call>"#),
        when("work on")
            .hold_before(GATE)
            .reply(r#"<call return="BACK.md" depth="one">SUB.md</call>"#)
            .pad(100_000),
        when("sub of").reply("<goto>DEEPER.md</goto>"),
        when("deeper in").hold_before(GATE).reply("<result>found</result>").pad(800_000),
        when("back with found")
            .hold_after(GATE)
            .reply(r#"<function return="DONE.md">EVAL.md</function>"#),
        when("eval for main.1").hold_before(GATE).reply("<result>1</result>").pad(200_000),
        when("eval for").hold_before(GATE).reply("<result>8</result>"),
        when("done with").reply("<goto>MORE.md</goto>").pad(20_000),
        when("more of")
            .agent("main.2")
            .hold_before(GATE)
            .reply(r#"<fork next="END.md" item="dogs">WORKER.md</fork>"#),
        when("more of").hold_before(GATE).reply(r#"<reset word="all">LAST.md</reset>"#),
        when("last of main.1").reply("<result>the first is over</result>").pad(300_000),
        when("last of").hold_after(GATE).reply("<result>over</result>"),
        when("end of").reply("<result>ended</result>"),
    ];
    rules.into_iter().fold(test, |test, rule| test.rule(rule.cost(0.01)))
}

/// A random number generator (xorshift) that chooses the moments.
#[derive(Debug)]
struct RandomMoments {
    seed: u64,
    state: u64,
}

impl RandomMoments {
    fn new() -> Self {
        let now = || SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |now| now.as_micros());
        let seed = number("RAYMOND_SOAK_SEED")
            .unwrap_or_else(|| u64::try_from(now()).expect("the time fits"));
        // A state of zero would stay zero.
        Self { seed, state: seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1 }
    }

    fn below(&mut self, end: u64) -> u64 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        (self.state >> 16) % end
    }

    fn at_most(&mut self, most: u64) -> usize {
        usize::try_from(1 + self.below(most)).expect("a small number")
    }
}

impl Drop for RandomMoments {
    fn drop(&mut self) {
        if std::thread::panicking() {
            print_to_stderr(&format!("soak: chosen by RAYMOND_SOAK_SEED={}", self.seed));
        }
    }
}

/// The figures of the soak so far.
#[derive(Debug, Default)]
struct SoakFigures {
    runs: u64,
    kills: u64,
    /// The kills that left turns running.
    midway: u64,
    /// The records that were in the journal at a kill, each counted once.
    acknowledged: usize,
    /// The turns that were killed before they began.
    never_started: usize,
}

/// The parts of a run that must be the same after kills.
#[derive(Debug, PartialEq)]
struct RunSummary {
    /// The steps of each agent.
    steps: BTreeMap<String, Vec<Value>>,
    /// The prompts of each agent's turns, and the prompts that its session had before.
    asked: BTreeMap<String, Vec<(String, Vec<String>)>>,
    cost: Value,
}

impl RunSummary {
    fn of(test: &Test) -> Self {
        let mut steps: BTreeMap<String, Vec<Value>> = BTreeMap::new();
        for step in test.events("step_finished") {
            let agent = step["agent"].as_str().expect("a step has an agent").to_owned();
            let seen = json!([step["step"], step["state"], step["transition"], step["cost_usd"]]);
            steps.entry(agent).or_default().push(seen);
        }
        let mut asked: BTreeMap<String, Vec<(String, Vec<String>)>> = BTreeMap::new();
        for call in test.calls() {
            let agent = call.agent().to_owned();
            asked.entry(agent).or_default().push((call.prompt, call.history));
        }
        Self { steps, asked, cost: test.status()["total_cost_usd"].clone() }
    }
}

/// Returns a number from the environment.
fn number(name: &str) -> Option<u64> {
    let value = std::env::var(name).ok()?;
    Some(value.parse().unwrap_or_else(|_| panic!("{name} is not a number: {value}")))
}

/// Prints a text to the caller of the tests, whether they pass or not.
fn print_to_stderr(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// Returns the whole lines of the journal.
fn whole_lines(test: &Test) -> Vec<String> {
    let content = std::fs::read(test.journal_file()).unwrap_or_default();
    let content = String::from_utf8(content).expect("a journal is UTF-8");
    let whole = content.split_inclusive('\n').filter(|line| line.ends_with('\n'));
    whole.map(str::to_owned).collect()
}

fn spin(time: Duration) {
    let start = Instant::now();
    while start.elapsed() < time {
        std::thread::yield_now();
    }
}

/// Waits for a random moment: the start, some more records, or some more turns, and a bit longer.
fn wait_for_random_moment(live: &RunningRaymond<'_>, test: &Test, moments: &mut RandomMoments) {
    let pid = live.pid();
    match moments.below(8) {
        0 => spin(Duration::from_micros(moments.below(30_000))),
        1..=4 => {
            let wanted = whole_lines(test).len() + moments.at_most(4);
            wait_until("some records", || !alive(pid) || whole_lines(test).len() >= wanted);
        }
        _ => {
            let wanted = test.calls().len() + moments.at_most(3);
            wait_until("some turns", || !alive(pid) || test.calls().len() >= wanted);
        }
    }
    spin(Duration::from_micros(moments.below(8_000)));
}

/// Checks that all acknowledged records are still there, unchanged, and that no step is finished twice.
fn assert_acknowledged_is_kept(acknowledged: &[String], now: &[String], when: &str) {
    let kept = acknowledged.iter().zip(now).take_while(|(old, new)| old == new).count();
    let lost = &acknowledged[kept..];
    assert!(lost.is_empty(), "{when}: lost {lost:#?}, the journal now ends {:#?}", now.last());
    let mut finished = BTreeSet::new();
    for line in now {
        let record: Value = serde_json::from_str(line).expect("a whole line is JSON");
        if record["event"] == "step_finished" {
            let step = (record["agent"].to_string(), record["step"].to_string());
            assert!(finished.insert(step), "{when}: finished twice: {line}");
        }
    }
}

/// Checks that each printed record is in the journal, value for value.
fn assert_printed_is_kept(printed: &str, journal: &[String], when: &str) {
    let object = |line: &str| -> Map<String, Value> {
        serde_json::from_str(line).expect("a whole line is an object of JSON")
    };
    let records: Vec<Map<String, Value>> = journal.iter().map(|line| object(line)).collect();
    for line in printed.split_inclusive('\n').filter(|line| line.ends_with('\n')) {
        let printed = object(line);
        let is_of = |record: &Map<String, Value>| {
            printed.iter().all(|(key, value)| record.get(key) == Some(value))
        };
        let kept = printed.contains_key("seq") && records.iter().any(is_of);
        assert!(kept, "{when}: told, but not kept: {line}");
    }
}

fn start(test: &Test) -> RunningRaymond<'_> {
    if test.run_dir().exists() {
        test.spawn_resumed(&OPTIONS)
    } else {
        test.spawn(&[&["START.md"], &OPTIONS[..]].concat())
    }
}

/// Runs a workflow to its end, with kills until there have been enough.
fn run_to_its_end(wanted: u64, moments: &mut RandomMoments, figures: &mut SoakFigures) -> Test {
    let test = workflow();
    let _opener = GateOpener::of(&test);
    let mut acknowledged = Vec::new();
    figures.runs += 1;
    loop {
        let live = start(&test);
        let mut before = Vec::new();
        if figures.kills < wanted {
            wait_for_random_moment(&live, &test, moments);
            before = whole_lines(&test);
            live.signal(Signal::KILL);
        }
        let outcome = live.wait();
        let now = whole_lines(&test);
        let when = format!("run {}, kill {}", figures.runs, figures.kills + 1);
        assert_acknowledged_is_kept(&acknowledged, &now, &format!("{when}, what recovery found"));
        assert_acknowledged_is_kept(
            &before,
            &now,
            &format!("{when}, what was there just before it"),
        );
        assert_printed_is_kept(&outcome.stdout, &now, &when);
        if !outcome.killed() {
            outcome.ok();
            figures.acknowledged += acknowledged.len();
            return test;
        }
        figures.kills += 1;
        figures.midway += u64::from(test.calls().iter().any(|call| alive(call.pid)));
        acknowledged = now;
    }
}

/// Returns the number of turns that were never begun. Only those may fail: raymond was killed between writing
/// the files of a turn and starting it, and cannot tell afterwards. The prompts of the agents show that none
/// of these turns was asked.
fn never_started(test: &Test, run: u64) -> usize {
    let failed = test.events("turn_failed");
    for event in &failed {
        let lost = event["cause"] == "lost";
        assert!(lost, "run {run}: no process was killed but raymond: {event:#}");
    }
    failed.len()
}

fn assert_equals_unkilled(test: &Test, whole: &RunSummary, run: u64) {
    let summary = RunSummary::of(test);
    assert_eq!(summary.steps, whole.steps, "run {run}: the steps");
    assert_eq!(summary.asked, whole.asked, "run {run}: the turns that were paid for");
    assert_eq!(summary.cost, whole.cost, "run {run}: the costs");
    let numbers: Vec<Option<u64>> =
        test.journal().iter().map(|record| record["seq"].as_u64()).collect();
    let expected: Vec<Option<u64>> = (1..=numbers.len() as u64).map(Some).collect();
    assert_eq!(numbers, expected, "run {run}: the numbers");
    test.assert_no_survivors();
}

#[test]
fn run_killed_at_random_moments_matches_unkilled_run() {
    let start = Instant::now();
    let long = number("RAYMOND_SOAK");
    let wanted = long.unwrap_or(DEFAULT_KILLS);
    let mut moments = RandomMoments::new();
    let unkilled = workflow();
    let opener = GateOpener::of(&unkilled);
    unkilled.run(&["START.md", "--max-procs", "3"]).ok();
    drop(opener);
    let whole = RunSummary::of(&unkilled);
    assert_eq!(whole.steps.len(), 5, "the agents");
    assert_eq!(whole.steps.values().map(Vec::len).sum::<usize>(), 43, "the steps");

    let mut figures = SoakFigures::default();
    while figures.kills < wanted {
        let test = run_to_its_end(wanted, &mut moments, &mut figures);
        figures.never_started += never_started(&test, figures.runs);
        assert_equals_unkilled(&test, &whole, figures.runs);
    }
    if long.is_some() {
        let SoakFigures { runs, kills, midway, acknowledged, never_started } = figures;
        let (seed, seconds) = (moments.seed, start.elapsed().as_secs_f32());
        print_to_stderr(&format!(
            "soak: {kills} kills, {midway} of them with turns running, over {runs} runs in \
             {seconds:.1} s; {acknowledged} acknowledged records: 0 lost, 0 twice; \
             {never_started} turns killed before they began; seed {seed}"
        ));
    }
}
