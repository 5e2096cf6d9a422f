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
use crate::compare::rounds_with;
use crate::goals::{Bound, Goals};
use crate::live::{Live, Memory};
use crate::place::{Place, Workflow};
use crate::raymond::Run;
use crate::scale::Scale;
use crate::summary::Summary;
use crate::table::{Table, short, whole};

/// The number of turns that run at the same time.
const BESIDE: usize = 16;
const JOINED: &str = "\"event\":\"joined\"";
/// The number of states after the join. They keep the parent alive while its memory is read.
const AFTER: usize = 100;

/// The measurements of one run: times in seconds, the fork's record in bytes.
struct Seen {
    born: f64,
    first: f64,
    join: f64,
    prompt: f64,
    memory: Memory,
    record: f64,
}

pub(crate) fn figure(place: &Place, scale: &Scale, goals: &mut Goals) -> Fallible<Vec<Table>> {
    let workers = scale.fan_out;
    let number = whole(u32::try_from(workers).map_or(f64::NAN, f64::from));
    let most = (workers + 1).to_string();
    let options = ["--max-agents", &most];
    let workflow = workflow(place, workers)?;
    let seen = watch(place, &workflow, &options, workers, scale)?;
    let steps = workers + 2 + AFTER;
    let rounds = rounds_with(place, &workflow, steps, BESIDE, &scale.longer(3), &options)?;
    let [_, _, ratio] = rounds.summaries(|spent| 1.0 / spent.wall.as_secs_f64());
    hold(goals, &number, &seen, &ratio);
    let mut table = Table::new(
        "Agents forked by one tag and joined, 16 with a turn",
        [
            "agents",
            "born",
            "first turn over",
            "join decided",
            "its prompt asked",
            "peak",
            "steps/s of the floor",
        ],
    );
    table.row([
        number,
        seconds(seen.born),
        seconds(seen.first),
        seconds(seen.join),
        seconds(seen.prompt),
        format!("{} MB", short(seen.memory.peak / 1e6)),
        ratio.shown(),
    ]);
    table.note(format!(
        "Born: from the run's first record to the fork's ({} bytes), the turn that forks included.",
        whole(seen.record)
    ));
    table.note(
        "First turn: after the fork's record. Join: after the last child's record. Prompt: its",
    );
    table.note("answer, the process included, after the join's record.");
    Ok(vec![table])
}

fn hold(goals: &mut Goals, number: &str, seen: &Seen, ratio: &Summary) {
    goals.add(format!("{number} agents born of one tag"), seen.born, Bound::AtMost(1.0), " s");
    let memory = seen.memory.peak / 1e6;
    goals.add("  peak memory, join included", memory, Bound::AtMost(64.0), " MB");
    goals.add("  steps/s over the floor's", ratio.median(), Bound::AtLeast(0.85), "");
    let joined = seen.join + seen.prompt;
    goals.add("  the join's record and its prompt", joined, Bound::AtMost(1.0), " s");
}

fn seconds(time: f64) -> String {
    format!("{} s", short(time))
}

fn workflow(place: &Place, workers: usize) -> Fallible<Workflow> {
    let workflow = place.workflow()?;
    let lines: Vec<String> = (1..=workers).map(|number| format!("module-{number}.rs")).collect();
    std::fs::write(place.work().join("modules.txt"), lines.join("\n"))?;
    workflow.write("START.md", "<fork next=\"JOIN.md\" each=\"modules.txt\">WORKER.md</fork>")?;
    workflow.write("WORKER.md", "<result>looked at {{item}}</result>")?;
    workflow
        .write("JOIN.md", "---\njoin: all\n---\n<goto file=\"{{results_file}}\">S1.md</goto>")?;
    for state in 1..=AFTER {
        let text = if state == AFTER {
            "<result>done</result>".to_owned()
        } else {
            format!("<goto>S{}.md</goto>", state + 1)
        };
        workflow.write(&format!("S{state}.md"), &text)?;
    }
    workflow.write("raymond.yaml", &format!("max_fan_out: {workers}\nstagger: 0s\n"))?;
    Ok(workflow)
}

fn watch(
    place: &Place,
    workflow: &Workflow,
    options: &[&str],
    workers: usize,
    scale: &Scale,
) -> Fallible<Seen> {
    let beside = BESIDE.to_string();
    let options: Vec<&str> = ["--max-procs", &beside].iter().chain(options).copied().collect();
    let mut live = Live::start(Run::new(place, workflow, &[], &options)?)?;
    let limit = scale.limit * 4;
    live.until(JOINED, 1, limit)?;
    live.until("\"state\":\"S1.md\"", 1, limit)?;
    let memory = live.memory()?;
    let journal = live.journal();
    live.ended(limit)?;
    read(&journal, workers, memory)
}

/// Reads the times of one run from its journal.
fn read(journal: &Path, workers: usize, memory: Memory) -> Fallible<Seen> {
    let text = std::fs::read_to_string(journal)?;
    let lines: Vec<&str> = text.lines().collect();
    let at = |line: &str| -> Fallible<f64> {
        let record: Value = serde_json::from_str(line)?;
        let at: Timestamp = record["at"].as_str().unwrap_or_default().parse()?;
        Ok(Duration::try_from(at.duration_since(Timestamp::UNIX_EPOCH))?.as_secs_f64())
    };
    let find = |what: &str| lines.iter().position(|line| line.contains(what));
    let fork = find("\"children\":").ok_or("nobody was born")?;
    let joined = find(JOINED).ok_or("nobody was waited for")?;
    let worker =
        |line: &&&str| line.contains("\"state\":\"WORKER.md\"") && line.contains("step_finished");
    let first = lines.iter().skip(fork + 1).find(worker).ok_or("nobody had a turn")?;
    let last = lines[..joined].iter().rfind(worker).ok_or("nobody had a turn")?;
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
    Ok(Seen {
        born: at(lines[fork])? - at(lines[start])?,
        first: at(first)? - at(lines[fork])?,
        join: at(lines[joined])? - at(last)?,
        prompt: at(asked)? - at(lines[joined])?,
        memory,
        record: u32::try_from(lines[fork].len()).map_or(f64::NAN, f64::from),
    })
}
