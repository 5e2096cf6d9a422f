//! Runs a program once for its output and its exit, and keeps the end of the stderr of a process.
//!
//! A program, such as git, a shell or python3, leads its own process group, which ends with it, so nothing that it
//! started outlives it. It has a time limit, and its caller can end it earlier. The beginning and the end of its output
//! are kept. It carries the run's mark as a turn does, so the next raymond cleans up its orphans.

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::process::Stdio;
use std::time::Duration;

use rustix::fs::{OFlags, fcntl_setfl};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::time::{sleep, timeout};

use crate::child::subreaper::ProcessPurpose;
use crate::child::{ChildEnvironment, ChildProcess, ChildProcessSpec, ProcessExit};
use crate::command::EnvironmentMarker;
use crate::plugin_process::without_keys;
use raymond_store::plain_file;

/// The time that a program has to end after the request to end.
const GRACE: Duration = Duration::from_secs(2);

/// The longest time to wait for the rest of its output after it has ended: an orphan may hold its pipes.
const PIPE_GRACE: Duration = Duration::from_secs(2);

/// The number of bytes that are kept of the end of long output.
const KEPT_END: usize = 16 * 1024;

/// The program to run.
#[derive(Debug, Clone)]
pub struct ProcessSpec {
    pub path: PathBuf,
    pub arguments: Vec<OsString>,
    /// The directory it works in.
    pub cwd: PathBuf,
    /// Its whole environment.
    pub environment: Vec<(OsString, OsString)>,
    /// Its time limit.
    pub longest: Duration,
    /// The number of bytes that are kept of the beginning of its stdout, and of its stderr.
    pub kept: usize,
}

/// The result of a program.
#[derive(Debug)]
pub struct ProcessOutput {
    pub exit: ProcessExit,
    pub stdout: CapturedOutput,
    pub stderr: CapturedOutput,
}

/// The reason why it did not end by itself.
#[derive(Debug, thiserror::Error)]
pub enum ProcessFailure {
    /// It could not be started.
    #[error("could not be started: {0}")]
    NotStarted(std::io::Error),
    /// It took too long.
    #[error("took longer than {longest:?} and was terminated")]
    TooLong {
        /// Its time limit.
        longest: Duration,
        /// Its stderr until then.
        stderr: CapturedOutput,
    },
    /// It was ended because its result is no longer wanted.
    #[error("was ended")]
    Stopped,
}

/// The output of a program on one of its pipes.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct CapturedOutput {
    beginning: Vec<u8>,
    end: Vec<u8>,
    left_out: u64,
}

impl CapturedOutput {
    fn push(&mut self, part: &[u8], kept: usize) {
        let room = kept.saturating_sub(self.beginning.len()).min(part.len());
        self.beginning.extend_from_slice(&part[..room]);
        self.end.extend_from_slice(&part[room..]);
        let surplus = self.end.len().saturating_sub(KEPT_END);
        self.end.drain(..surplus);
        self.left_out += surplus as u64;
    }

    /// Returns its text; a line stands for an omitted part.
    pub fn text(&self) -> String {
        let beginning = String::from_utf8_lossy(&self.beginning);
        if self.left_out == 0 {
            let whole = [&self.beginning[..], &self.end].concat();
            return String::from_utf8(whole)
                .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
        }
        let end = String::from_utf8_lossy(&self.end);
        format!("{beginning}\n[{} bytes are left out here]\n{end}", self.left_out)
    }

    /// Returns the bytes of its beginning, and the number of bytes after them.
    pub fn beginning(&self) -> (&[u8], u64) {
        (&self.beginning, self.end.len() as u64 + self.left_out)
    }

    /// Returns its last lines that are not empty, as one line for people.
    pub fn last_lines(&self, count: usize) -> String {
        let bytes = if self.end.is_empty() { &self.beginning } else { &self.end };
        let tail: Cow<'_, str> =
            String::from_utf8_lossy(&bytes[bytes.len().saturating_sub(KEPT_END)..]);
        let lines: Vec<&str> =
            tail.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        lines[lines.len().saturating_sub(count)..].join("; ")
    }
}

/// The end of the wait for a program.
enum ProcessWaitEnd {
    Ended(ProcessExit),
    TooLong,
    Stopped,
}

impl ProcessSpec {
    /// Runs it, until it ends or `stop` completes.
    ///
    /// # Errors
    /// [`ProcessFailure`]; an exit code other than 0 is none.
    pub async fn run(
        &self,
        stop: impl Future<Output = ()>,
    ) -> Result<ProcessOutput, ProcessFailure> {
        let mut child = self.start().map_err(ProcessFailure::NotStarted)?;
        let (mut stdout, mut stderr) = (CapturedOutput::default(), CapturedOutput::default());
        let pipes = (child.take_stdout(), child.take_stderr());
        let end = {
            let mut capturing = pin!(async {
                let out = capture(pipes.0, &mut stdout, self.kept);
                let err = capture(pipes.1, &mut stderr, self.kept);
                tokio::join!(out, err);
            });
            let (mut stop, mut late) = (pin!(stop), pin!(sleep(self.longest)));
            let mut has_captured = false;
            let end = loop {
                tokio::select! {
                    () = &mut stop => break ProcessWaitEnd::Stopped,
                    () = &mut late => break ProcessWaitEnd::TooLong,
                    exit = child.exited_with_group() => break ProcessWaitEnd::Ended(exit),
                    () = &mut capturing, if !has_captured => has_captured = true,
                }
            };
            match end {
                ProcessWaitEnd::Ended(_) => {}
                ProcessWaitEnd::TooLong | ProcessWaitEnd::Stopped => child.end(GRACE).await,
            }
            if !has_captured {
                let _ = timeout(PIPE_GRACE, capturing).await;
            }
            end
        };
        match end {
            ProcessWaitEnd::Ended(exit) => Ok(ProcessOutput { exit, stdout, stderr }),
            ProcessWaitEnd::TooLong => {
                Err(ProcessFailure::TooLong { longest: self.longest, stderr })
            }
            ProcessWaitEnd::Stopped => Err(ProcessFailure::Stopped),
        }
    }

    fn start(&self) -> std::io::Result<ChildProcess> {
        ChildProcess::start(ChildProcessSpec {
            program: self.path.clone(),
            arguments: self.arguments.clone(),
            cwd: Some(self.cwd.clone()),
            environment: ChildEnvironment::Only(self.environment.clone()),
            stdin: Stdio::null(),
            stdout: Stdio::piped(),
            stderr: Stdio::piped(),
            purpose: ProcessPurpose::Turn,
            outlives_handle: false,
        })
    }
}

/// Returns the environment of a program: the given one, and the run's mark under the name of its purpose. It acts for
/// the agent whose operation it is, and not for a person.
pub fn environment(
    given: impl IntoIterator<Item = (OsString, OsString)>,
    marker: &EnvironmentMarker,
    stem: &str,
) -> Vec<(OsString, OsString)> {
    let agent = stem.rsplitn(3, '-').nth(2).unwrap_or(stem);
    let marks = [
        ("RAYMOND_RUN", OsString::from(marker.run.as_str())),
        ("RAYMOND_DIR", marker.dir.clone().into_os_string()),
        ("RAYMOND_AGENT", OsString::from(agent)),
        ("RAYMOND_TURN", OsString::from(stem)),
    ];
    without_keys(given).chain(marks.map(|(name, value)| (OsString::from(name), value))).collect()
}

/// Reads a pipe to its end.
async fn capture(pipe: Option<impl AsyncRead + Unpin>, output: &mut CapturedOutput, kept: usize) {
    let Some(mut pipe) = pipe else { return };
    let mut part = vec![0; 16 * 1024];
    while let Ok(length @ 1..) = pipe.read(&mut part).await {
        output.push(&part[..length], kept);
    }
}

// The stderr of a process, of which only the end is kept.
//
// The process appends to the file itself, so it does not depend on the runtime. The runtime cuts the file back to its
// end while it follows a turn, when the turn is over, and after the end of the process.

/// The number of bytes of its end that are kept.
const KEPT_BYTES: u64 = 64 * 1024;

/// The length up to which the file of a running process is left as it is, in bytes.
const MAX_BYTES_MEANWHILE: u64 = 1024 * 1024;

/// The number of bytes of its end that are shown.
const SHOWN_BYTES: u64 = 2048;

/// The ending of its name.
const ENDING: &str = "stderr";

/// Makes the file, to which all is appended.
pub(super) fn create(path: &Path) -> io::Result<File> {
    let file = plain_file::create(path)?;
    fcntl_setfl(&file, OFlags::APPEND)?;
    Ok(file)
}

/// Returns the end of a file, for people; `None` if it cannot be read.
pub(super) fn shown_end(path: &Path) -> Option<String> {
    let bytes = end_of(&mut plain_file::open(path).ok()?, SHOWN_BYTES).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// Cuts the file of a process that may still run back to its end, once it is long. A file that cannot be cut is left as
/// it is.
pub(super) fn cut_back_meanwhile(path: &Path) {
    let _ = cut_back(path, MAX_BYTES_MEANWHILE);
}

/// Cuts the file of a process back to its end.
pub(super) fn cut_back_at_end(path: &Path) {
    let _ = cut_back(path, KEPT_BYTES);
}

/// Cuts the files of all processes in a directory back to their ends.
pub(super) fn cut_back_all(steps: &Path) {
    let paths = std::fs::read_dir(steps).into_iter().flatten().flatten().map(|entry| entry.path());
    let files = paths.filter(|path| path.extension() == Some(OsStr::new(ENDING)));
    files.for_each(|path: PathBuf| cut_back_at_end(&path));
}

/// Cuts a file that is longer than it may be back to its end. What is written at the same moment may be lost.
fn cut_back(path: &Path, longest: u64) -> io::Result<()> {
    if path.symlink_metadata()?.len() <= longest {
        return Ok(());
    }
    let mut file = plain_file::open_with(path, OpenOptions::new().read(true).append(true))?;
    let end = end_of(&mut file, KEPT_BYTES)?;
    file.set_len(0)?;
    file.write_all(&end)
}

fn end_of(file: &mut File, longest: u64) -> io::Result<Vec<u8>> {
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(longest)))?;
    let mut bytes = Vec::new();
    file.take(longest).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use super::*;
    use raymond_model::id::RunId;

    fn shell(script: &str) -> ProcessSpec {
        ProcessSpec {
            path: "/bin/sh".into(),
            arguments: vec!["-c".into(), script.into()],
            cwd: "/".into(),
            environment: vec![("PATH".into(), "/usr/bin:/bin".into())],
            longest: Duration::from_mins(1),
            kept: 8,
        }
    }

    #[tokio::test]
    async fn output_and_exit_code_are_captured() {
        let ended = shell("echo out; echo err >&2; exit 3").run(pending()).await.expect("it ran");
        assert_eq!(ended.exit, ProcessExit::Code(3));
        assert_eq!((ended.stdout.text(), ended.stderr.text()), ("out\n".into(), "err\n".into()));
        let missing = ProcessSpec { path: "/nowhere/x".into(), ..shell("") };
        let failure = missing.run(pending()).await.expect_err("it is not there");
        assert!(failure.to_string().starts_with("could not be started: No such file"));
    }

    #[tokio::test]
    async fn long_output_is_reduced_to_beginning_and_end() {
        let script = "i=0; while [ $i -lt 3000 ]; do echo line-$i; i=$((i+1)); done";
        let text = shell(script).run(pending()).await.expect("it ran").stdout;
        assert!(text.text().starts_with("line-0\nl\n["), "{}", &text.text()[..40]);
        assert!(text.text().contains(" bytes are left out here]\n"));
        assert_eq!(text.last_lines(2), "line-2998; line-2999");
        let (beginning, rest) = text.beginning();
        assert_eq!((beginning, rest), (&b"line-0\nl"[..], 28_882));
    }

    #[tokio::test]
    async fn timeout_or_stop_ends_process_and_its_children() {
        let place = tempfile::tempdir().expect("a directory");
        let fifo = place.path().join("held");
        let script = format!("mkfifo {0}; sleep 600 > {0} & exec cat {0}", fifo.display());
        let brief = ProcessSpec { longest: Duration::from_millis(300), ..shell(&script) };
        let failure = brief.run(pending()).await.expect_err("it is ended");
        assert_eq!(failure.to_string(), "took longer than 300ms and was terminated");
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        drop(stop);
        let stopped = async {
            let _ = stopped.await;
        };
        let failure = shell("sleep 600").run(stopped).await.expect_err("it is ended");
        assert!(matches!(failure, ProcessFailure::Stopped));
    }

    #[tokio::test]
    async fn leftover_background_process_does_not_delay_exit() {
        let ended = shell("sleep 600 & echo started").run(pending()).await.expect("it ran");
        assert_eq!((ended.exit, ended.stdout.text()), (ProcessExit::Code(0), "started\n".into()));
    }

    #[test]
    fn command_environment_has_run_marker_but_no_api_keys() {
        let marker = EnvironmentMarker { run: RunId::parse("r").expect("an id"), dir: "/x".into() };
        let callers = [("PATH", "/bin"), ("ANTHROPIC_API_KEY", "secret"), ("RAYMOND_TURN", "t")];
        let environment = environment(
            callers.map(|(name, value)| (name.into(), value.into())),
            &marker,
            "main.1-3-0",
        );
        let shown: Vec<_> = environment
            .iter()
            .map(|(name, value)| format!("{}={}", name.display(), value.display()))
            .collect();
        let marks = ["RAYMOND_RUN=r", "RAYMOND_DIR=/x", "RAYMOND_AGENT=main.1"];
        let expected: Vec<&str> =
            ["PATH=/bin"].into_iter().chain(marks).chain(["RAYMOND_TURN=main.1-3-0"]).collect();
        assert_eq!(shown, expected);
        assert_eq!(marker.process_of(shown.join("\0").as_bytes()), Some("main.1-3-0"));
    }
}

#[cfg(test)]
mod stderr_file_tests {
    use super::*;

    #[test]
    fn only_the_end_stays_and_the_process_writes_on() {
        let steps = tempfile::tempdir().expect("a directory");
        let path = steps.path().join("1-0.stderr");
        let length = || path.metadata().expect("it is there").len();
        let mut child = create(&path).expect("made");
        let line = [b'x'; 1023];
        let mut written = 0;
        while written < 3 * MAX_BYTES_MEANWHILE {
            child.write_all(&line).and_then(|()| child.write_all(b"\n")).expect("written");
            written += 1024;
            cut_back_meanwhile(&path);
            assert!(length() <= MAX_BYTES_MEANWHILE, "{}", length());
        }
        cut_back_at_end(&path);
        assert_eq!(length(), KEPT_BYTES);
        child.write_all(b"the last words\n").expect("written");
        cut_back_all(steps.path());
        assert_eq!(length(), KEPT_BYTES);
        let shown = shown_end(&path).expect("read");
        assert!(shown.ends_with("x\nthe last words\n") && shown.len() == 2048, "{shown}");
        std::fs::write(&path, "short").expect("written");
        cut_back_all(steps.path());
        assert_eq!(std::fs::read(&path).expect("read"), b"short");
    }
}
