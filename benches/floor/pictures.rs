//! Pictures of a large graph: the time and the memory of `raymond graph`, in each format.

use std::fmt::Write as _;
use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::Fallible;
use crate::bench_folder::BenchFolder;
use crate::goals::{GoalBound, Goals};
use crate::raymond::{RAYMOND, bare};
use crate::scale::Scale;
use crate::summary::Summary;
use crate::table::{Table, whole};

/// The nodes of the graph.
const NODES: usize = 5_000;

/// The greatest time, in seconds, and the greatest memory, in megabytes.
const GOAL: (f64, f64) = (2.0, 200.0);

/// The time between two looks at the memory.
const LOOK: Duration = Duration::from_millis(1);

pub(crate) fn figure(
    place: &BenchFolder,
    scale: &Scale,
    goals: &mut Goals,
) -> Fallible<Vec<Table>> {
    let workflow = place.workflow()?;
    workflow.write("workflow.yaml", &graph())?;
    let title = format!("`raymond graph` of {NODES} nodes");
    let mut table =
        Table::new(&title, ["", "seconds, median (least–greatest)", "peak memory, MB", "bytes"]);
    let (mut longest, mut greatest) = (0.0_f64, 0.0_f64);
    for format in ["svg", "mermaid", "dot"] {
        let (mut taken, mut peaks, mut length) = (vec![], vec![], 0);
        for _ in 0..scale.rounds.min(3) {
            let drawn = draw(workflow.path(), &place.folder()?, format)?;
            taken.push(drawn.wall.as_secs_f64());
            peaks.push(drawn.peak / 1e6);
            length = drawn.length;
        }
        let (taken, peaks) = (Summary::of(taken), Summary::of(peaks));
        longest = longest.max(taken.median());
        greatest = greatest.max(peaks.median());
        let length = u32::try_from(length).map_or(f64::NAN, f64::from);
        table.row([format.to_owned(), taken.shown(), whole(peaks.median()), whole(length)]);
    }
    table.note("The peak is VmHWM, looked at each millisecond; what came after the last look is not in it.".to_owned());
    goals.add(
        format!("seconds for a picture of {NODES} nodes"),
        longest,
        GoalBound::AtMost(GOAL.0),
        " s",
    );
    goals.add(
        format!("memory for a picture of {NODES} nodes"),
        greatest,
        GoalBound::AtMost(GOAL.1),
        " MB",
    );
    Ok(vec![table])
}

/// What a drawing took.
struct DrawingCost {
    wall: Duration,
    /// The peak of its memory, in bytes.
    peak: f64,
    length: u64,
}

fn draw(workflow: &Path, folder: &Path, format: &str) -> Fallible<DrawingCost> {
    let picture = folder.join("picture");
    let started = Instant::now();
    let mut child = bare(Command::new(RAYMOND))
        .arg("graph")
        .arg(workflow.join("workflow.yaml"))
        .args(["--format", format])
        .env("HOME", folder)
        .stdin(Stdio::null())
        .stdout(File::create(&picture)?)
        .stderr(Stdio::null())
        .spawn()?;
    let status = format!("/proc/{}/status", child.id());
    let has_ended = AtomicBool::new(false);
    let (ended, wall, peak) = std::thread::scope(|scope| {
        let watch = scope.spawn(|| {
            let mut peak = f64::NAN;
            while !has_ended.load(Ordering::Relaxed) {
                peak = peak_of(&status).map_or(peak, |now| now.max(peak));
                std::thread::sleep(LOOK);
            }
            peak
        });
        let ended = child.wait();
        let wall = started.elapsed();
        has_ended.store(true, Ordering::Relaxed);
        (ended, wall, watch.join().unwrap_or(f64::NAN))
    });
    let ended = ended?;
    if !ended.success() {
        return Err(format!("raymond graph: {ended}").into());
    }
    Ok(DrawingCost { wall, peak, length: std::fs::metadata(&picture)?.len() })
}

/// Returns the peak of a process's memory, in bytes.
fn peak_of(status: &str) -> Option<f64> {
    let status = std::fs::read_to_string(status).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.split_whitespace().next()?.parse::<f64>().ok()? * 1024.0)
}

/// Returns a graph whose nodes branch, ask, loop back and fail, so that many lines cross.
fn graph() -> String {
    let mut text = "name: large\nversion: \"1.0.0\"\nstart_node: n0\ninitial_state: { flags: { f: false } }\nnodes:\n".to_owned();
    for node in 0..NODES {
        let to = |ahead: usize| match node + ahead {
            next if next < NODES => format!("n{next}"),
            _ => "done".to_owned(),
        };
        let back = format!("n{}", node / 2);
        let _ = match node % 4 {
            0 => writeln!(
                text,
                "  n{node}:\n    type: conditional\n    condition: {{ type: flag_set, flag: f }}\n    branches: {{ true: {}, false: {} }}",
                to(1),
                to(7)
            ),
            1 => writeln!(
                text,
                "  n{node}:\n    type: user_prompt\n    prompt:\n      question: Which?\n      header: Which\n      options:\n        - {{ id: a, label: A, description: the first }}\n        - {{ id: b, label: B, description: the second }}\n    on_response:\n      a: {{ next_node: {} }}\n      b: {{ next_node: {back} }}",
                to(1)
            ),
            _ => writeln!(
                text,
                "  n{node}:\n    type: action\n    actions:\n      - {{ type: set_flag, flag: f, value: true }}\n    on_success: {}\n    on_failure: failed",
                to(1)
            ),
        };
    }
    text + "endings:\n  done: { type: success, message: Done }\n  failed: { type: error, message: Failed }\n"
}
