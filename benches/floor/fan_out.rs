//! Thousands of workers from one tag, and the join that waits for them: the time until they exist, their
//! memory, their speed, and the time until their parent continues with their results.
//!
//! The times are those of the journal's records. A fork's record is durable before any of its agents starts,
//! and a join's record before its prompt is sent.

use std::path::Path;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;

use crate::Fallible;
use crate::bench_folder::{BenchFolder, WorkflowFolder};
use crate::compare::rounds_with;
use crate::goals::{GoalBound, Goals};
use crate::live::{ProcessMemory, RunningRaymond};
use crate::raymond::RaymondCommand;
use crate::scale::Scale;
use crate::summary::Summary;
use crate::table::{Table, short, whole};

/// The number of turns that run at the same time.
const CONCURRENT_TURNS: usize = 16;
const JOINED: &str = "\"event\":\"joined\"";
/// The number of states after the join. They keep the parent alive while its memory is read.
const STATES_AFTER_JOIN: usize = 100;

/// The measurements of one run: times in seconds, the fork's record in bytes.
struct FanOutTimes {
    fork_time: f64,
    first: f64,
    join: f64,
    prompt: f64,
    memory: ProcessMemory,
    record: f64,
}

pub(crate) fn figure(
    place: &BenchFolder,
    scale: &Scale,
    goals: &mut Goals,
) -> Fallible<Vec<Table>> {
    let workers = scale.fan_out;
    let number = whole(u32::try_from(workers).map_or(f64::NAN, f64::from));
    let most = (workers + 1).to_string();
    let options = ["--max-agents", &most];
    let workflow = workflow(place, workers)?;
    let seen = observe(place, &workflow, &options, workers, scale)?;
    let steps = workers + 2 + STATES_AFTER_JOIN;
    let rounds =
        rounds_with(place, &workflow, steps, CONCURRENT_TURNS, &scale.longer(3), &options)?;
    let [_, _, ratio] = rounds.summaries(|spent| 1.0 / spent.wall.as_secs_f64());
    add_goals(goals, &number, &seen, &ratio);
    let mut table = Table::new(
        "Agents forked by one tag and joined, 16 with a turn",
        [
            "agents",
            "forked",
            "first turn over",
            "join decided",
            "its prompt answered",
            "peak",
            "steps/s of the floor",
        ],
    );
    table.row([
        number,
        seconds(seen.fork_time),
        seconds(seen.first),
        seconds(seen.join),
        seconds(seen.prompt),
        format!("{} MB", short(seen.memory.peak / 1e6)),
        ratio.shown(),
    ]);
    table.note(format!(
        "Forked: from the run's first record to the fork's ({} bytes), the turn that forks included.",
        whole(seen.record)
    ));
    table.note(
        "First turn: after the fork's record. Join: after the last child's record. Prompt: its",
    );
    table.note("answer, the process included, after the join's record.");
    Ok(vec![table])
}

fn add_goals(goals: &mut Goals, number: &str, seen: &FanOutTimes, ratio: &Summary) {
    goals.add(
        format!("{number} agents forked by one tag"),
        seen.fork_time,
        GoalBound::AtMost(1.0),
        " s",
    );
    let memory = seen.memory.peak / 1e6;
    goals.add("  peak memory, join included", memory, GoalBound::AtMost(48.0), " MB");
    goals.add("  steps/s over the floor's", ratio.median(), GoalBound::AtLeast(0.85), "");
    let joined = seen.join + seen.prompt;
    goals.add("  the join's record and its prompt", joined, GoalBound::AtMost(1.0), " s");
}

fn seconds(time: f64) -> String {
    format!("{} s", short(time))
}

fn workflow(place: &BenchFolder, workers: usize) -> Fallible<WorkflowFolder> {
    let workflow = place.workflow()?;
    let lines: Vec<String> = (1..=workers).map(|number| format!("module-{number}.rs")).collect();
    std::fs::write(place.work().join("modules.txt"), lines.join("\n"))?;
    workflow.write("START.md", "<fork next=\"JOIN.md\" each=\"modules.txt\">WORKER.md</fork>")?;
    workflow.write("WORKER.md", "<result>looked at {{item}}</result>")?;
    workflow
        .write("JOIN.md", "---\njoin: all\n---\n<goto file=\"{{results_file}}\">S1.md</goto>")?;
    for state in 1..=STATES_AFTER_JOIN {
        let text = if state == STATES_AFTER_JOIN {
            "<result>done</result>".to_owned()
        } else {
            format!("<goto>S{}.md</goto>", state + 1)
        };
        workflow.write(&format!("S{state}.md"), &text)?;
    }
    workflow.write("raymond.yaml", &format!("max_fan_out: {workers}\nstagger: 0s\n"))?;
    Ok(workflow)
}

fn observe(
    place: &BenchFolder,
    workflow: &WorkflowFolder,
    options: &[&str],
    workers: usize,
    scale: &Scale,
) -> Fallible<FanOutTimes> {
    let beside = CONCURRENT_TURNS.to_string();
    let options: Vec<&str> = ["--max-procs", &beside].iter().chain(options).copied().collect();
    let mut live = RunningRaymond::start(RaymondCommand::new(place, workflow, &[], &options)?)?;
    let limit = scale.limit * 4;
    live.read_until(JOINED, 1, limit)?;
    live.read_until("\"state\":\"S1.md\"", 1, limit)?;
    let memory = live.memory()?;
    let journal = live.journal();
    live.wait_for_success(limit)?;
    read_times(&journal, workers, memory)
}

/// Reads the times of one run from its journal.
fn read_times(journal: &Path, workers: usize, memory: ProcessMemory) -> Fallible<FanOutTimes> {
    let text = std::fs::read_to_string(journal)?;
    let lines: Vec<&str> = text.lines().collect();
    let at = |line: &str| -> Fallible<f64> {
        let record: Value = serde_json::from_str(line)?;
        let at: Timestamp = record["at"].as_str().unwrap_or_default().parse()?;
        Ok(Duration::try_from(at.duration_since(Timestamp::UNIX_EPOCH))?.as_secs_f64())
    };
    let find = |what: &str| lines.iter().position(|line| line.contains(what));
    let fork = find("\"children\":").ok_or("no fork is on record")?;
    let joined = find(JOINED).ok_or("no join is on record")?;
    let worker =
        |line: &&&str| line.contains("\"state\":\"WORKER.md\"") && line.contains("step_finished");
    let first = lines.iter().skip(fork + 1).find(worker).ok_or("no worker had a turn")?;
    let last = lines[..joined].iter().rfind(worker).ok_or("no worker had a turn")?;
    let done = lines[fork + 1..joined].iter().filter(worker).count();
    if done != workers {
        return Err(format!("{done} of {workers} agents had ended at the join").into());
    }
    let asked = lines
        .iter()
        .skip(joined)
        .find(|line| line.contains("\"state\":\"JOIN.md\"") && line.contains("step_finished"));
    let asked = asked.ok_or("the join's prompt was not answered")?;
    let start = find("\"event\":\"run_started\"").ok_or("the run did not start")?;
    Ok(FanOutTimes {
        fork_time: at(lines[fork])? - at(lines[start])?,
        first: at(first)? - at(lines[fork])?,
        join: at(lines[joined])? - at(last)?,
        prompt: at(asked)? - at(lines[joined])?,
        memory,
        record: u32::try_from(lines[fork].len()).map_or(f64::NAN, f64::from),
    })
}
