//! Claude Code as an agent program, and its dialogue about a turn. Pure.

use raymond_model::approval::ApprovalVerdict;
use raymond_model::claude_version::version_warning;
use raymond_model::id::MessageId;
use raymond_model::settings::ProcessSwitch;
use raymond_model::time::{Timestamp, format_duration};
use raymond_model::turn::{FailureCause, TurnInput, TurnOutcome};

use crate::background::BackgroundTasks;
use crate::child::ProcessExit;
use crate::claude::arguments::{VARIABLES, arguments};
use crate::claude::classify::{ApiError, LOG_IN, judge, why_no_answer};
use crate::claude::message;
use crate::claude::startup::startup_flags;
use crate::claude::stream::StreamParser;
use crate::claude::stream::approvals::answer_line;
use crate::dialogue::{
    AgentProgram, Dialogue, DialogueStart, LaunchCommand, ProgramLaunch, ProgramWarning,
    WarningKind, ZonedTime,
};
use crate::turn_progress::{LineTooLong, TurnProgress};

/// The event with which the program says that it could not save all of a session.
const WRITES_LOST: &str = "\"session_writes_lost\"";

/// The time before the end of a login from which it is warned of, in milliseconds. A run may take a night.
const LOGIN_ENDS_SOON_MS: u64 = 24 * 3_600_000;

/// Its name for people.
const NAME: &str = "Claude Code";

/// Claude Code, as it is run without a terminal.
#[derive(Debug, Clone, Copy)]
pub struct ClaudeCode;

impl AgentProgram for ClaudeCode {
    fn name(&self) -> &'static str {
        NAME
    }

    fn advice_if_missing(&self) -> &'static str {
        "install Claude Code, or name it with --claude or RAYMOND_CLAUDE"
    }

    fn command_line(&self, launch: &ProgramLaunch<'_>) -> LaunchCommand {
        let mut arguments = arguments(
            launch.session,
            launch.options,
            launch.settings,
            launch.folders,
            launch.reads_messages,
            launch.spending_limit,
        );
        if let Some(results) = &launch.results {
            arguments.extend(["--add-dir".to_owned(), results.clone()]);
        }
        if let Some(schema) = launch.output {
            arguments.extend(["--json-schema".to_owned(), schema.to_string()]);
        }
        // A bare start would leave out hooks that protect the starter of the run.
        let may_be_bare = launch.settings.consent.trusts_workflow;
        let is_given = |name: &str| may_be_bare && (launch.is_set)(name);
        let startup = startup_flags(&launch.options.turn, &launch.settings.claude_args, is_given);
        arguments.extend(startup.arguments);
        let mut variables = startup.variables;
        variables.extend(VARIABLES.map(|(name, value)| (name.to_owned(), value.to_owned())));
        LaunchCommand { arguments, variables }
    }

    fn longest_message(&self) -> usize {
        message::MAX_PROMPT_BYTES
    }

    fn dialogue(&self, input: &TurnInput, start: DialogueStart) -> Box<dyn Dialogue> {
        let (stream, tasks) = match start {
            DialogueStart::Asked { message, spent, tasks } => {
                (StreamParser::answer_to(message, spent), tasks)
            }
            DialogueStart::Attached(Some(turn)) => {
                (StreamParser::answer_to(turn.message, turn.spent), BackgroundTasks::default())
            }
            DialogueStart::Attached(None) => (StreamParser::default(), BackgroundTasks::default()),
        };
        let work = input.options.background.unwrap_or_default();
        let mut stream = stream.with_background(work, tasks);
        stream.traces.runs_command = input.options.runs_command();
        Box::new(stream)
    }

    fn has_lost_writes(&self, end_of_stream: &str, session: &str) -> bool {
        let session = format!("\"{session}\"");
        end_of_stream.lines().any(|line| line.contains(WRITES_LOST) && line.contains(&session))
    }
}

impl Dialogue for StreamParser {
    fn program_name(&self) -> &'static str {
        NAME
    }

    fn progress(&self) -> &TurnProgress {
        &self.progress
    }

    fn progress_mut(&mut self) -> &mut TurnProgress {
        &mut self.progress
    }

    fn feed(&mut self, bytes: &[u8]) -> Result<(), LineTooLong> {
        Self::feed(self, bytes)
    }

    fn end(&mut self) -> Result<(), LineTooLong> {
        Self::end(self);
        self.check_answer()
    }

    fn has_answer(&self) -> bool {
        let result = self.progress.result.as_ref();
        result.is_some_and(|result| !result.is_error && why_no_answer(self, result).is_none())
    }

    fn judge(
        &self,
        exit: ProcessExit,
        moment: &ZonedTime,
        stderr: &dyn Fn() -> String,
    ) -> TurnOutcome {
        judge(self, exit, moment, stderr)
    }

    fn refused_access(&self) -> (FailureCause, &'static str) {
        let kinds: Vec<&str> = self.retried_error.iter().map(String::as_str).collect();
        match (ApiError { status: Some(403), kinds: &kinds, text: "" }).cause() {
            _ if self.limit.is_some() => (FailureCause::UsageLimit, ""),
            named @ (FailureCause::Account | FailureCause::UsageLimit, _) => named,
            _ => (FailureCause::Authentication, LOG_IN),
        }
    }

    fn warnings(&self, now: Timestamp) -> Vec<ProgramWarning> {
        let of_version = self.version.as_deref().and_then(version_warning);
        let of_login = self.login_ends.and_then(|ends| login_warning(ends, now));
        let version = of_version.map(|text| ProgramWarning { kind: WarningKind::Version, text });
        let login = of_login.map(|text| ProgramWarning { kind: WarningKind::Login, text });
        version.into_iter().chain(login).collect()
    }

    fn first_lines(&self, input: &TurnInput, renews_system_prompt: bool) -> String {
        let mut lines = String::new();
        if renews_system_prompt {
            lines.push_str(&message::renew_system_prompt());
        }
        lines.push_str(&message::get_usage(message::BASE_USAGE));
        lines.push_str(&self.prompt_line(input));
        lines
    }

    fn prompt_line(&self, input: &TurnInput) -> String {
        let asked = self.asked.as_ref();
        let line = |id| message::prompt(id, &input.prompt, self.traces.runs_command);
        asked.map(line).unwrap_or_default()
    }

    fn message_line(&self, id: &MessageId, text: &str) -> String {
        message::steering(id, text)
    }

    fn answer_line(&self, call: &str, verdict: &ApprovalVerdict) -> Option<String> {
        answer_line(&self.progress.approvals, call, verdict)
    }

    fn switch_lines(&mut self, switches: &[ProcessSwitch], mark: u64) -> String {
        self.switches = (0..switches.len()).map(|at| format!("switch-{mark}-{at}")).collect();
        let lines = self.switches.iter().zip(switches);
        lines.map(|(id, switch)| message::switch(id, switch)).collect()
    }

    fn is_switched(&self) -> Option<bool> {
        let answers = &self.answered_requests;
        let mut ids = self.switches.iter();
        if ids.clone().any(|id| answers.refusal(id).is_some()) {
            return Some(false);
        }
        ids.all(|id| answers.has_granted(id)).then_some(true)
    }

    fn cost_request(&self) -> String {
        message::get_usage(message::FINAL_USAGE)
    }

    fn interrupt(&self) -> String {
        message::interrupt() + &self.cost_request()
    }

    fn is_interrupt_refused(&self) -> bool {
        self.answered_requests.refusal(message::INTERRUPT).is_some()
    }
}

/// Returns the warning about a login that ends; `None` if that is not soon.
fn login_warning(ends: Timestamp, now: Timestamp) -> Option<String> {
    let remedy = "log in again by running `claude` before a long run";
    match ends.0.checked_sub(now.0) {
        None => Some(format!("the login of Claude Code may have ended; {remedy}")),
        Some(left) if left > LOGIN_ENDS_SOON_MS => None,
        Some(left) => {
            let minutes = left / 60_000 * 60_000;
            Some(format!("the login of Claude Code ends in {}; {remedy}", format_duration(minutes)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn login_that_ends_within_a_day_is_warned_of() {
        let now = Timestamp(1_800_000_000_000);
        let after = |ms: u64| login_warning(now.plus(ms), now);
        assert_eq!(after(LOGIN_ENDS_SOON_MS + 1), None);
        let soon = after(3 * 3_600_000 + 5_999).expect("a warning");
        assert!(soon.contains("ends in 3h;"), "{soon}");
        let over = login_warning(Timestamp(now.0 - 1), now).expect("a warning");
        assert!(over.contains("may have ended"), "{over}");
    }

    #[test]
    fn end_of_the_login_is_read_from_the_result() {
        let mut stream = StreamParser::default();
        let result = "{\"type\":\"result\",\"result\":\"x\",\"credential_expires_at\":\"2027-01-15T08:00:00.000Z\"}\n";
        stream.feed(result.as_bytes()).expect("a short line");
        assert_eq!(stream.login_ends, Some(Timestamp(1_800_000_000_000)));
    }
}
