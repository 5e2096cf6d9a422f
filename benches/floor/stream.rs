//! Reading Claude Code's stream: the speed, and the memory it takes in raymond.
//!
//! The speed is that of raymond's own follower on a complete transcript. The memory is that of a raymond
//! whose Claude Code, played by this program, writes the whole stream in one turn.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use raymond::process::claude::stream::StreamParser;
use raymond::process::dialogue::Dialogue;
use raymond::process::transcript::StreamFollower;

use crate::Fallible;
use crate::bench_folder::BenchFolder;
use crate::goals::{GoalBound, Goals};
use crate::live::RunningRaymond;
use crate::raymond::{CLAUDE, RaymondCommand};
use crate::scale::Scale;
use crate::stream_lines;
use crate::summary::Summary;
use crate::table::{Table, short, whole};

/// The variable that makes this program play Claude Code. Its value is the file with the stream.
const STREAM_VARIABLE: &str = "FLOOR_STREAM";
/// The prompt that is not answered.
const UNANSWERED_PROMPT: &str = "Wait here.";

/// A stream in a file.
struct StreamFile {
    path: PathBuf,
    bytes: f64,
    longest: f64,
}

pub(crate) fn figure(
    place: &BenchFolder,
    scale: &Scale,
    goals: &mut Goals,
) -> Fallible<Vec<Table>> {
    let long = say(place, scale.stream)?;
    let mut speeds = Vec::new();
    let mut events = 0;
    for _ in 0..scale.repeats.min(5) {
        let started = Instant::now();
        events = read(&long.path)?;
        speeds.push(long.bytes / 1e6 / started.elapsed().as_secs_f64());
    }
    let speed = Summary::of(speeds);
    let size = format!("{} MB", whole(long.bytes / 1e6));
    let what = format!("reading a stream of {size}");
    goals.add(what, speed.median(), GoalBound::AtLeast(500.0), " MB/s");
    let mut table = Table::new(
        "Reading a stream of messages and tool results",
        ["", "MB/s, median (least–greatest)", "events", "longest line"],
    );
    let events = whole(u32::try_from(events).map_or(f64::NAN, f64::from));
    table.row([size, speed.shown(), events, format!("{:.1} MB", long.longest / 1e6)]);
    Ok(vec![table, memory(place, scale, &long, goals)?])
}

fn memory(
    place: &BenchFolder,
    scale: &Scale,
    long: &StreamFile,
    goals: &mut Goals,
) -> Fallible<Table> {
    let (base, soon) = peak(place, scale, &say(place, 1)?.path)?;
    let (peak, late) = peak(place, scale, &long.path)?;
    let beyond = (peak - base - 2.0 * long.longest) / 1e6;
    goals.add(
        "  its peak memory beyond baseline + 2 × longest line",
        beyond,
        GoalBound::AtMost(8.0),
        " MB",
    );
    let mut table = Table::new(
        "Memory of raymond, and how long until the turn's record is durable",
        ["stream", "peak", "beyond", "seconds"],
    );
    for (bytes, peak, time) in [(0.0, base, soon), (long.bytes, peak, late)] {
        table.row([
            format!("{} MB", whole(bytes / 1e6)),
            format!("{:.1} MB", peak / 1e6),
            format!("{:.1} MB", (peak - base) / 1e6),
            short(time.as_secs_f64()),
        ]);
    }
    table.note("The seconds include those of the process that writes the stream.");
    Ok(table)
}

/// Returns raymond's peak memory when the turn is over, and the time until then.
fn peak(place: &BenchFolder, scale: &Scale, script: &Path) -> Fallible<(f64, Duration)> {
    let workflow = place.workflow()?;
    workflow.write("START.md", "Say all of it.")?;
    workflow.write(stream_lines::NEXT, UNANSWERED_PROMPT)?;
    let program = std::env::current_exe()?;
    let program = program.to_str().ok_or("the path of this program is not UTF-8")?;
    let options = ["--max-procs", "1", "--shutdown", "100ms", CLAUDE, program];
    let mut run = RaymondCommand::new(place, &workflow, &[], &options)?;
    run.command.env(STREAM_VARIABLE, script);
    let mut live = RunningRaymond::start(run)?;
    live.read_until("\"event\":\"step_finished\"", 1, scale.limit)?;
    let time = live.started.elapsed();
    Ok((live.memory()?.peak, time))
}

/// Writes a stream that ends with a transition.
fn say(place: &BenchFolder, bytes: usize) -> Fallible<StreamFile> {
    let path = place.folder()?.join("stream.jsonl");
    let (lines, long) = (stream_lines::lines(), stream_lines::long_line());
    let mut file = File::create(&path)?;
    let blocks = bytes / lines.len();
    for block in 0..blocks {
        file.write_all(&lines)?;
        if block == blocks / 2 {
            file.write_all(&long)?;
        }
    }
    file.write_all(&stream_lines::result())?;
    let bytes = file.metadata()?.len();
    let longest = u32::try_from(long.len()).map_or(f64::NAN, f64::from);
    Ok(StreamFile { path, bytes: u32::try_from(bytes).map_or(f64::NAN, f64::from), longest })
}

fn read(path: &Path) -> Fallible<u64> {
    let mut stream = StreamParser::default();
    let mut follower = StreamFollower::open(path, 0)?;
    while follower.read(&mut stream)? {}
    stream.end();
    Ok(stream.progress().events)
}

/// Plays Claude Code, if this program is told to.
pub(crate) fn play_if_asked() -> Option<ExitCode> {
    let path = std::env::var_os(STREAM_VARIABLE)?;
    let speak = || -> std::io::Result<()> {
        let mut lines = std::io::stdin().lines();
        let is_prompt = |line: &String| line.contains("\"type\":\"user\"");
        let prompt = lines.by_ref().map_while(Result::ok).find(is_prompt).unwrap_or_default();
        if prompt.contains(UNANSWERED_PROMPT) {
            std::thread::sleep(Duration::from_mins(1));
        }
        std::io::copy(&mut File::open(path)?, &mut std::io::stdout())?;
        lines.for_each(drop);
        Ok(())
    };
    Some(speak().map_or(ExitCode::FAILURE, |()| ExitCode::SUCCESS))
}
