//! An agent program and its dialogue about a turn: what processes and their runner ask of a program. Pure.
//!
//! No program reads a file, a clock or a process.

use std::fmt::Debug;
use std::sync::Arc;

use raymond_model::approval::ApprovalVerdict;
use raymond_model::id::MessageId;
use raymond_model::money::Usd;
use raymond_model::session::Session;
use raymond_model::settings::{ProcessOptions, ProcessSwitch, Settings};
use raymond_model::time::Timestamp;
use raymond_model::turn::{FailureCause, TurnInput, TurnOffset, TurnOutcome};
use raymond_model::usage::ProcessSpending;

use crate::background::BackgroundTasks;
use crate::child::ProcessExit;
use crate::command::WorkflowFolders;
use crate::turn_progress::{LineTooLong, TurnProgress};

/// An agent program.
pub trait AgentProgram: Debug {
    /// Returns its name for people.
    fn name(&self) -> &'static str;

    /// Returns what to do if it cannot be started, for people.
    fn advice_if_missing(&self) -> &'static str;

    /// Returns the arguments and variables of a process.
    fn command_line(&self, launch: &ProgramLaunch<'_>) -> LaunchCommand;

    /// Returns the length of the longest prompt that a process can get beside other turns, in bytes. A longer prompt
    /// gets a separate process.
    fn longest_message(&self) -> usize;

    /// Begins the dialogue about a turn.
    fn dialogue(&self, input: &TurnInput, start: DialogueStart) -> Box<dyn Dialogue>;

    /// Returns whether the end of a stream says that a session could not be saved.
    fn has_lost_writes(&self, end_of_stream: &str, session: &str) -> bool;
}

/// A process that is about to be started.
pub struct ProgramLaunch<'launch> {
    /// Its first session.
    pub session: &'launch Session,
    /// The options of its turns.
    pub options: &'launch ProcessOptions,
    /// Those of the run.
    pub settings: &'launch Settings,
    /// The folders of the workflow.
    pub folders: &'launch WorkflowFolders,
    /// True if it reads its turns as messages, false if it reads its only turn from a file.
    pub reads_messages: bool,
    /// Its spending limit.
    pub spending_limit: Option<Usd>,
    /// The directory with the results of joins, if it may read them.
    pub results: Option<String>,
    /// The schema that its answers are checked against.
    pub output: Option<&'launch Arc<str>>,
    /// Tells whether it will have an environment variable.
    pub is_set: &'launch dyn Fn(&str) -> bool,
}

/// The arguments and variables of a process.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LaunchCommand {
    /// The arguments after the name of the program.
    pub arguments: Vec<String>,
    /// The variables that it gets on top of others.
    pub variables: Vec<(String, String)>,
}

/// The beginning of a dialogue.
#[derive(Debug)]
pub enum DialogueStart {
    /// The turn is asked by a message, in a process with that spending and these tasks.
    Asked {
        /// The id of the message.
        message: MessageId,
        /// The spending of the process before.
        spent: ProcessSpending,
        /// The background tasks that run in it.
        tasks: BackgroundTasks,
    },
    /// The turn was asked before, by this message of a process; `None` if it is the first of its process.
    Attached(Option<TurnOffset>),
}

/// A dialogue about a turn: it takes what the process prints, and gives what is written to the process.
pub trait Dialogue: Debug {
    /// Returns the name of the program, for people.
    fn program_name(&self) -> &'static str;

    /// Returns what is known of the turn.
    fn progress(&self) -> &TurnProgress;

    /// Returns what is known of the turn, to add to it.
    fn progress_mut(&mut self) -> &mut TurnProgress;

    /// Takes the next bytes that the process has printed.
    ///
    /// # Errors
    /// [`LineTooLong`], once for each result whose answer is too long; all bytes are taken nevertheless.
    fn feed(&mut self, bytes: &[u8]) -> Result<(), LineTooLong>;

    /// Takes the remaining bytes as a line, at the end of the output.
    ///
    /// # Errors
    /// [`LineTooLong`], as for [`feed`](Self::feed).
    fn end(&mut self) -> Result<(), LineTooLong>;

    /// Returns whether the turn has an answer, and its process can serve another.
    fn has_answer(&self) -> bool;

    /// Judges a turn that has ended by itself. `stderr` returns the end of its stderr.
    fn judge(
        &self,
        exit: ProcessExit,
        moment: &ZonedTime,
        stderr: &dyn Fn() -> String,
    ) -> TurnOutcome;

    /// Returns the cause of a turn that was ended because the API refused it again and again, and advice for people.
    fn refused_access(&self) -> (FailureCause, &'static str);

    /// Returns what people should know about the program on this machine.
    fn warnings(&self, now: Timestamp) -> Vec<ProgramWarning>;

    /// Returns the lines that ask for the turn in a process that was just started.
    fn first_lines(&self, input: &TurnInput, renews_system_prompt: bool) -> String;

    /// Returns the line that asks for the turn in a process that has served another.
    fn prompt_line(&self, input: &TurnInput) -> String;

    /// Returns the line with a message of a person for the running turn.
    fn message_line(&self, id: &MessageId, text: &str) -> String;

    /// Returns the line with the answer to a call that needs approval; `None` if the program waits for none.
    fn answer_line(&self, call: &str, verdict: &ApprovalVerdict) -> Option<String>;

    /// Returns the lines that ask for changes of the process; `mark` is in no other request to it.
    fn switch_lines(&mut self, switches: &[ProcessSwitch], mark: u64) -> String;

    /// Returns whether the changes were made; `None` if not all of them have an answer.
    fn is_switched(&self) -> Option<bool>;

    /// Returns the line that asks for the cost so far.
    fn cost_request(&self) -> String;

    /// Returns the lines that end the turn and ask for its cost.
    fn interrupt(&self) -> String;

    /// Returns whether the program does not end the turn.
    fn is_interrupt_refused(&self) -> bool;
}

/// A warning about a program on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramWarning {
    /// Its kind: one of each is given in a run.
    pub kind: WarningKind,
    /// The warning for people.
    pub text: String,
}

/// The kind of a warning about a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WarningKind {
    /// About its version.
    Version,
    /// About the login.
    Login,
}

/// The time at which the result was written, and the zone in which it is judged: a limit that resets at three means
/// three o'clock in this zone.
#[derive(Debug, Clone)]
pub struct ZonedTime {
    /// The time.
    pub now: Timestamp,
    /// The zone of times that name none.
    pub zone: jiff::tz::TimeZone,
}
