//! The floor: a loop that only starts the fake Claude Code as raymond does, and waits for it.
//!
//! The prompt is a message on a pipe, both outputs go to files, and each process has its own process group.
//! Nothing is read, judged or kept.

use std::fs::File;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use raymond::domain::id::MessageId;
use raymond::process::claude::message;

use crate::Fallible;
use crate::bench_folder::BenchFolder;
use crate::raymond::{FAKE, bare};
use crate::spent::{CpuSeconds, SpentTime};

const PROMPT: &str = "<goto>S100.md</goto>";

/// Starts the fake so many times, `beside` of them at the same time.
pub(crate) fn floor(place: &BenchFolder, steps: usize, beside: usize) -> Fallible<SpentTime> {
    let folder = place.folder()?;
    let next = AtomicUsize::new(0);
    let work = place.work();
    let before = CpuSeconds::of("self");
    let started = Instant::now();
    let ended: Vec<std::io::Result<()>> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..beside)
            .map(|_| {
                scope.spawn(|| {
                    loop {
                        let step = next.fetch_add(1, Ordering::Relaxed);
                        if step >= steps {
                            return Ok(());
                        }
                        run_step(&folder, &work, step)?;
                    }
                })
            })
            .collect();
        let joined = threads.into_iter().map(std::thread::ScopedJoinHandle::join);
        joined
            .map(|ended| ended.unwrap_or_else(|_| Err(std::io::Error::other("it panicked"))))
            .collect()
    });
    let wall = started.elapsed();
    let after = CpuSeconds::of("self");
    ended.into_iter().collect::<std::io::Result<()>>()?;
    Ok(SpentTime { wall, cpu: after.zip(before).map(|(after, before)| after.since(before)) })
}

fn run_step(folder: &Path, work: &Path, step: usize) -> std::io::Result<()> {
    let mut child = bare(Command::new(FAKE))
        .args(["-p", "--output-format", "stream-json", "--verbose"])
        .args(["--input-format", "stream-json", "--replay-user-messages"])
        .args(["--session-id", "00000000-0000-4000-8000-000000000000"])
        .args(["--permission-mode", "acceptEdits", "--disallowedTools", "AskUserQuestion"])
        .current_dir(work)
        .stdin(Stdio::piped())
        .stdout(Stdio::from(File::create(folder.join(format!("{step}.jsonl")))?))
        .stderr(Stdio::from(File::create(folder.join(format!("{step}.stderr")))?))
        .process_group(0)
        .spawn()?;
    let id = MessageId::new("00000000-0000-4000-8000-000000000001");
    let mut stdin = child.stdin.take().ok_or_else(|| std::io::Error::other("no pipe"))?;
    stdin.write_all(message::prompt(&id, PROMPT, false).as_bytes())?;
    drop(stdin);
    let status = child.wait()?;
    if status.success() {
        Ok(())
    } else {
        Err(std::io::Error::other(format!("the fake: {status}")))
    }
}
