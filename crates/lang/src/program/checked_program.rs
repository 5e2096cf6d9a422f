//! A program that has been read and found sound, for the interpreter.
//!
//! States, roles, and requests are resolved, and templates have as many arguments as places, so only values
//! and the outside world can cause errors when it runs.

use std::collections::BTreeSet;
use std::sync::Arc;

use raymond_model::branch::is_program_file;
use raymond_model::id::{Folder, StateName};
use raymond_model::model::ModelName;
use raymond_model::money::Usd;
use raymond_model::program_execution;
use raymond_model::time::Timestamp;
use raymond_model::turn_options::TurnOptions;
use regex::Regex;

use crate::output::OutputSchema;
use crate::position::SourcePlace;
use crate::program::files::ProgramFiles;
use crate::turn_options::OptionPlaces;

/// A name in a program.
pub type ProgramSymbol = Arc<str>;

/// The default limit of the rounds of a loop, and of the moves to one state.
pub const MAX_ITERATIONS: u64 = 1000;

/// A program.
#[derive(Debug, Clone)]
pub struct Program {
    pub name: ProgramSymbol,
    pub metadata: ProgramMetadata,
    pub roles: Vec<ProgramRole>,
    /// Its states; the first is the start.
    pub states: Vec<ProgramState>,
    /// The labels of the facts it reads.
    pub labels: BTreeSet<String>,
    /// The facts of these labels that it can match, each place once.
    pub facts: Vec<SoughtFacts>,
    /// The keys of the context it needs: `x` of `@context/x`.
    pub context: BTreeSet<String>,
    /// True if it needs a branch: `@branch`.
    pub needs_branch: bool,
    /// The checksum of its text: `sha256:` and hexadecimal digits.
    pub hash: Arc<str>,
    /// The text it was read from.
    pub text: Arc<str>,
    /// Its files: this text's, and those that it requires.
    pub files: ProgramFiles,
}

impl Program {
    /// Returns the source that a run keeps of it, read from this file.
    pub fn kept(
        &self,
        file: StateName,
        folder: Option<Folder>,
    ) -> program_execution::ProgramSource {
        program_execution::ProgramSource {
            file,
            folder,
            name: self.name.to_string(),
            program: Arc::clone(&self.hash),
            text: Arc::clone(&self.text),
            labels: self.labels.iter().cloned().collect(),
        }
    }

    /// Returns the words that answers to a request may have; empty if they may be any.
    pub fn expected(&self, request: &str) -> &[String] {
        let mut sends = self.instructions().filter_map(|one| match &one.kind {
            InstructionKind::Send(send) if *send.request == *request => Some(&send.expect),
            _ => None,
        });
        sends.next().map_or(&[], Vec::as_slice)
    }

    /// Returns its instructions, also those in blocks, in the order of the file.
    pub fn instructions(&self) -> impl Iterator<Item = &Instruction> {
        self.states.iter().flat_map(|state| super::walk::instructions(&state.body))
    }

    /// Returns whether it sends any request.
    pub fn asks(&self) -> bool {
        self.instructions().any(|one| one.kind.asked().is_some())
    }
}

/// The metadata of a program.
#[derive(Debug, Clone, PartialEq)]
pub struct ProgramMetadata {
    /// The label for people.
    pub label: Option<String>,
    /// Its purpose.
    pub description: Option<String>,
    /// The limit of the rounds of a loop, and of the moves to one state; [`MAX_ITERATIONS`] by default.
    pub max_iterations: u64,
    /// The budget of a run.
    pub max_budget_usd: Option<Usd>,
    /// The model of roles that name none.
    pub model: Option<ModelName>,
    /// True if its states are published as facts.
    pub publish_state: bool,
}

/// A role: a named agent.
#[derive(Debug, Clone)]
pub struct ProgramRole {
    pub name: ProgramSymbol,
    /// The name of its session within the execution; roles with the same one share it.
    pub handle: ProgramSymbol,
    pub model: Option<ModelName>,
    /// The options of its turns.
    pub options: TurnOptions,
    /// The places of the options.
    pub option_places: OptionPlaces,
    /// The schema that its answers have to match.
    pub output: Option<OutputSchema>,
    /// The directory it works in, below that of the run.
    pub cwd: Option<Folder>,
    /// Its place.
    pub at: SourcePlace,
}

/// A state.
#[derive(Debug, Clone)]
pub struct ProgramState {
    pub name: ProgramSymbol,
    /// The instructions in it.
    pub body: Vec<Instruction>,
    /// Its place.
    pub at: SourcePlace,
}

/// An instruction and its place.
#[derive(Debug, Clone)]
pub struct Instruction {
    pub kind: InstructionKind,
    /// The place of its opening bracket.
    pub at: SourcePlace,
}

/// The kind of an instruction.
#[derive(Debug, Clone)]
pub enum InstructionKind {
    /// `wait`, `await`: blocks until the condition holds.
    Wait(WaitInstruction),
    /// `action`: runs these in order.
    Action(Vec<Instruction>),
    /// `loop`: repeats its body.
    Loop(LoopInstruction),
    /// `break`: leaves the innermost loop.
    Break,
    /// `continue`: begins the next round of the innermost loop.
    Continue,
    /// `branch`: runs the first arm whose condition holds.
    Branch {
        /// The arms, in order.
        arms: Vec<BranchArm>,
        /// `otherwise`.
        otherwise: Option<Vec<Instruction>>,
    },
    /// `for-each`: runs these side by side, until all are through.
    ForEach(Vec<ParallelBody>),
    /// `goto`: continues in that state, by its number.
    Goto(usize),
    /// `terminal`: ends the program.
    Terminal {
        /// True for `:status failed`.
        failed: bool,
        /// `:result E`: the result.
        result: Option<TextExpression>,
    },
    /// `send-prompt`
    Send(SendPrompt),
    /// `run-folder`
    RunFolder(RunFolder),
    /// `assert`
    Assert {
        /// The fact's label.
        label: String,
        key: Option<TextExpression>,
        /// Its payload.
        value: Option<TextExpression>,
    },
    /// `retract`
    Retract {
        /// The fact's label.
        label: String,
        key: Option<TextExpression>,
    },
    /// `log`
    Log(TextTemplate),
    /// `run`
    Run(ProgramCommand),
    /// `start-workflow`
    StartWorkflow(StartWorkflow),
    /// `user-input`
    UserInput(UserInput),
}

impl InstructionKind {
    /// Returns the number of the role that it asks, and the name of the request.
    pub fn asked(&self) -> Option<(usize, &ProgramSymbol)> {
        match self {
            Self::Send(send) => Some((send.role, &send.request)),
            Self::RunFolder(run) => Some((run.role, &run.request)),
            _ => None,
        }
    }
}

/// An instruction that blocks.
#[derive(Debug, Clone)]
pub struct WaitInstruction {
    /// The condition that it waits for.
    pub condition: ProgramCondition,
    /// `:timeout`, in milliseconds.
    pub timeout_ms: Option<u64>,
    /// `:on-timeout`: the number of the state to continue in; without it the program fails.
    pub on_timeout: Option<usize>,
}

/// The instructions of an element of `for-each`.
#[derive(Debug, Clone)]
pub struct ParallelBody {
    pub element: String,
    /// Its instructions.
    pub body: Vec<Instruction>,
}

/// `loop`
#[derive(Debug, Clone)]
pub struct LoopInstruction {
    /// The instructions of a round.
    pub body: Vec<Instruction>,
    /// `:max`: the limit of its rounds, in place of [`ProgramMetadata::max_iterations`].
    pub max: Option<u64>,
    /// `:on-max`: the number of the state to continue in after the last round; without it the program fails.
    pub on_max: Option<usize>,
}

/// An arm of a branch.
#[derive(Debug, Clone)]
pub struct BranchArm {
    /// The condition that chooses it.
    pub condition: ProgramCondition,
    /// The instructions of the arm.
    pub body: Vec<Instruction>,
}

/// `send-prompt`
#[derive(Debug, Clone)]
pub struct SendPrompt {
    /// The number of the role that it is sent to.
    pub role: usize,
    /// The prompt.
    pub template: TextTemplate,
    /// `:expect`: the words of which the answer has to have exactly one; empty if it may be any.
    pub expect: Vec<String>,
    /// `:output`: the schema of the answer, in place of the role's.
    pub output: Option<OutputSchema>,
    /// The request's name: its own, the awaited one it is bound to, or a generated one.
    pub request: ProgramSymbol,
}

/// `run-folder`
#[derive(Debug, Clone)]
pub struct RunFolder {
    /// The number of the role whose work it is.
    pub role: usize,
    /// The folder below the scope; `None` is the scope itself.
    pub folder: Option<Folder>,
    /// The first state.
    pub start: StateName,
    /// `:input E`: the text for `{{input}}` there.
    pub input: Option<TextExpression>,
    /// The request's name, as in [`SendPrompt`].
    pub request: ProgramSymbol,
}

/// A text with places for arguments. It has one piece more than arguments.
#[derive(Debug, Clone)]
pub struct TextTemplate {
    /// The texts around the arguments, with `~~` read as `~`.
    pub pieces: Vec<String>,
    /// The arguments, in order.
    pub arguments: Vec<TextExpression>,
}

// The conditions and the expressions of a program.

/// A condition.
#[derive(Debug, Clone)]
pub enum ProgramCondition {
    /// `(signal L :key K :equals V :consume true :as NAME)`: such a fact exists.
    Signal {
        /// The fact's label.
        label: String,
        /// Its key; `None` matches any.
        key: Option<TextExpression>,
        /// Its payload; `None` matches any.
        equals: Option<TextExpression>,
        /// True if the fact is taken. Only allowed as the whole condition of a [`WaitInstruction`](WaitInstruction).
        consume: bool,
        /// The name for its payload: `@NAME`.
        bind: Option<ProgramSymbol>,
    },
    /// `(transcript-response :request-id N :on-error STATE)`: the latest request N has ended.
    Response {
        /// The request's name.
        request: ProgramSymbol,
        /// The number of the state to continue in if it failed; without it the program fails.
        on_error: Option<usize>,
    },
    /// `(matches TEXT REGEX)`
    Matches {
        text: TextExpression,
        /// The regular expression that has to match.
        pattern: Regex,
    },
    /// `(equals TEXT TEXT)`
    Equals {
        /// One of the texts.
        one: TextExpression,
        /// The other one.
        other: TextExpression,
    },
    /// `(verdict N WORD)`: the answer to that request has this word.
    Verdict {
        /// The verdict: [`TextExpression::Verdict`].
        verdict: TextExpression,
        word: String,
    },
    /// `(after "30m")`: the milliseconds since the wait began. Not allowed in a branch.
    After(u64),
    /// `(at "2026-01-15T14:30:00Z")`
    At(Timestamp),
    /// `(and C …)`
    And(Vec<Self>),
    /// `(or C …)`
    Or(Vec<Self>),
    /// `(not C)`
    Not(Box<Self>),
}

/// The facts that one place of a program can match.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SoughtFacts {
    /// Their label.
    pub label: String,
    /// Their key; `None` for any.
    pub key: Option<TextExpression>,
    /// Their payload; `None` for any.
    pub value: Option<TextExpression>,
}

/// An expression whose value is a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TextExpression {
    /// A text, a number, or a symbol, as it is written.
    Text(String),
    /// `@workflow-id`: the run's id.
    WorkflowId,
    /// `@label`
    Label,
    /// `@branch`
    Branch,
    /// `@context/x`
    Context(String),
    /// `@NAME`: the payload that a `:consume true :as NAME` took.
    Bound(ProgramSymbol),
    /// `(signal L :key K)`: the fact's payload; blocks until the fact exists.
    Signal {
        /// The fact's label.
        label: String,
        /// Its key; `None` matches any.
        key: Option<Box<Self>>,
    },
    /// `(response N)`: the text of the answer to that request.
    Response(ProgramSymbol),
    /// `(verdict N)`: the word of its `:expect` that the answer to that request has.
    Verdict(ProgramSymbol),
    /// `(feedback R)`: the last answer of a role, by its number.
    Feedback(usize),
    /// `(artifact R)`: the latest work of a role, by its number.
    Artifact(usize),
    /// `(response N :field F)`, `(feedback R :field F)`: a field of an answer that is an object.
    Field {
        answer: Box<Self>,
        /// The path of the field in it.
        path: String,
    },
    /// `(response N)` of a request of `for-each`: the answers of all elements, each under its element.
    Together(Vec<(String, Self)>),
}

// The actions of a program that something outside answers: commands, starts of runs, and questions to a person.

/// `run`
#[derive(Debug, Clone)]
pub struct ProgramCommand {
    pub command: String,
    /// `:args`: the values of `$1`, `$2` and so on in it.
    pub arguments: Vec<TextExpression>,
    /// `:cwd`: the directory below that of the run.
    pub cwd: Option<Folder>,
    /// `:timeout`, in milliseconds.
    pub timeout_ms: Option<u64>,
    /// `:unless`, `:once` or `:idempotent`: the meaning of its repetition.
    pub repetition: RunRepetition,
    /// `:as`: the name of its output. Without it, the command has to succeed.
    pub bind: Option<ProgramSymbol>,
    /// `:on-error`: the number of the state to continue in if it fails; without it the program fails.
    pub on_error: Option<usize>,
}

/// The meaning of the repetition of a command, after a crash in the middle of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunRepetition {
    /// The restart policy decides.
    Unknown,
    /// `:unless CMD`: it runs unless this command succeeds.
    Unless(String),
    /// `:once true`: it never runs again.
    Once,
    /// `:idempotent true`: it may run again.
    Idempotent,
}

/// `start-workflow`
#[derive(Debug, Clone)]
pub struct StartWorkflow {
    /// The name of a defined program, or the path of its file below the folder of this one.
    pub program: String,
    /// `:label`: `@label` there, and the id of the run.
    pub label: Option<TextTemplate>,
    /// `:branch`: `@branch` there.
    pub branch: Option<TextExpression>,
    /// `:context`: the values of `@context/x` there, by `x`.
    pub context: Vec<(String, TextExpression)>,
    /// `:budget`: the part of this run's budget that the run is given.
    pub budget: Option<Usd>,
    /// `:as`: the name of the run's id.
    pub bind: Option<ProgramSymbol>,
    /// `:on-error`: the number of the state to continue in if it cannot be started; without it the program fails.
    pub on_error: Option<usize>,
}

impl StartWorkflow {
    /// Returns the folder below and the file of the program; `None` if the program is given by its name.
    pub fn file(&self) -> Option<(Option<Folder>, StateName)> {
        if !is_program_file(&self.program) {
            return None;
        }
        let (folder, name) = match self.program.rsplit_once('/') {
            Some((folder, name)) => (Some(Folder::parse(folder).ok()?), name),
            None => (None, self.program.as_str()),
        };
        Some((folder, StateName::parse(name).ok()?))
    }

    /// Returns its expressions, in the order in which they are evaluated.
    pub fn expressions(&self) -> impl Iterator<Item = &TextExpression> {
        let label = self.label.iter().flat_map(|label| &label.arguments);
        label.chain(&self.branch).chain(self.context.iter().map(|(_, value)| value))
    }
}

/// `user-input`
#[derive(Debug, Clone)]
pub struct UserInput {
    /// The question.
    pub prompt: TextTemplate,
    /// `:options`: the answers to choose from; if empty, the answer is any text.
    pub options: Vec<String>,
    /// `:timeout`, in milliseconds.
    pub timeout_ms: Option<u64>,
    /// `:on-timeout`: the number of the state to continue in; without it the program fails.
    pub on_timeout: Option<usize>,
    /// `:as`: the name under which it is answered, and of the answer.
    pub bind: ProgramSymbol,
}
