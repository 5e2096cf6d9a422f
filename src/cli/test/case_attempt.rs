//! The run of a case: a process of its own, in directories of its own, and what is seen of it.

use super::TestSession;
use super::case_process::{CaseEnd, CaseProcess};
use super::discovery::LoadedCase;
use crate::cli::exit::Error;
use crate::domain::observed_run::ObservedRun;
use crate::domain::time::format_duration;
use crate::language::cases::CaseTexts;

/// The run of a case and the texts that are compared, or the reason why it cannot be compared.
pub(super) type AttemptOutcome = Result<(ObservedRun, CaseTexts), (String, ObservedRun)>;

/// Runs a case in new directories. With `kill_after` its process dies after that record, and the run is resumed.
pub(super) async fn attempt(
    session: &TestSession,
    loaded: &LoadedCase,
    name: &str,
    kill_after: Option<u64>,
) -> Result<AttemptOutcome, Error> {
    let dir = session.dir.case(name)?;
    let case = CaseProcess { session, loaded, dir: &dir };
    if let Err(why) = case.prepare().await {
        return Ok(Err((why, ObservedRun::default())));
    }
    let mut ended = case.raymond(case.run_arguments(), kill_after).await?;
    if kill_after.is_some() && !matches!(ended, CaseEnd::Exit(_)) {
        ended = case.raymond(case.resume_arguments(), None).await?;
    }
    let (mut run, texts) = case.observed();
    let stderr = case.complaints();
    let CaseEnd::Exit(code) = ended else {
        let limit = format_duration(loaded.case.time_limit_ms);
        let why = match ended {
            CaseEnd::TimedOut => format!(
                "it had not ended after {limit}; give it a longer `time_limit`, or find what it waits for"
            ),
            _ => format!("raymond was killed; it printed: {stderr}"),
        };
        return Ok(Err((why, run)));
    };
    run.exit = code;
    let warnings = stderr.lines().filter_map(|line| line.strip_prefix("warning: "));
    run.warnings.extend(warnings.map(str::to_owned));
    if !case.has_begun() {
        return Ok(Err((
            format!("the run did not begin (exit code {code}): {}", stderr.trim()),
            run,
        )));
    }
    Ok(Ok((run, texts)))
}
