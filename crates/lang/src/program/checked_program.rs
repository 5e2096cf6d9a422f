//! A program that has been read and found sound, for the interpreter.
//!
//! States, roles, and requests are resolved, and templates have as many arguments as places, so only values
//! and the outside world can cause errors when it runs.

use std::collections::BTreeSet;
use std::sync::Arc;

use raymond_model::branch::is_program_file;
use raymond_model::graph_execution;
use raymond_model::id::{Folder, InvalidName, StateName};
use raymond_model::model::ModelName;
use raymond_model::money::Usd;
use raymond_model::time::{Timestamp, format_duration};
use raymond_model::tool_call::first_characters;
use raymond_model::turn_options::TurnOptions;
use raymond_model::words::joined_words;
use regex::Regex;

use crate::output::OutputSchema;
use crate::program::files::ProgramFiles;
use crate::source::SourcePlace;
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
    pub facts: Vec<MatchedFacts>,
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
    pub fn kept(&self, file: StateName, folder: Option<Folder>) -> graph_execution::ProgramSource {
        graph_execution::ProgramSource {
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
        let expected = self.instructions().find_map(|instruction| match &instruction.kind {
            InstructionKind::Send(send) if *send.request == *request => Some(&send.expect),
            _ => None,
        });
        expected.map_or(&[], Vec::as_slice)
    }

    /// Returns its instructions, also those in blocks, in the order of the file.
    pub fn instructions(&self) -> impl Iterator<Item = &Instruction> {
        self.states.iter().flat_map(|state| instructions(&state.body))
    }

    /// Returns whether it sends any request.
    pub fn asks(&self) -> bool {
        self.instructions().any(|instruction| instruction.kind.asked().is_some())
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
    pub timeout: WaitTimeout,
}

/// The time after which a wait is over in any case.
#[derive(Debug, Clone)]
pub struct WaitTimeout {
    /// `:timeout`, in milliseconds.
    pub after_ms: Option<u64>,
    /// `:on-timeout`: the number of the state to continue in; without it the program fails.
    pub state: Option<usize>,
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
        /// True if the fact is taken. Only allowed as the whole condition of a [`WaitInstruction`].
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
    Equals { left: TextExpression, right: TextExpression },
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
pub struct MatchedFacts {
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
        file_at(&self.program).ok()
    }

    /// Returns its expressions, in the order in which they are evaluated.
    pub fn expressions(&self) -> impl Iterator<Item = &TextExpression> {
        let label = self.label.iter().flat_map(|label| &label.arguments);
        label.chain(&self.branch).chain(self.context.iter().map(|(_, value)| value))
    }
}

/// Returns the folder and the name of the file at a path below the program's folder.
pub(super) fn file_at(path: &str) -> Result<(Option<Folder>, StateName), InvalidName> {
    let (folder, name) = match path.rsplit_once('/') {
        Some((folder, name)) => (Some(Folder::parse(folder)?), name),
        None => (None, path),
    };
    Ok((folder, StateName::parse(name)?))
}

/// `user-input`
#[derive(Debug, Clone)]
pub struct UserInput {
    /// The question.
    pub prompt: TextTemplate,
    /// `:options`: the answers to choose from; if empty, the answer is any text.
    pub options: Vec<String>,
    pub timeout: WaitTimeout,
    /// `:as`: the name under which it is answered, and of the answer.
    pub bind: ProgramSymbol,
}

// Visits all instructions of a program, including those in its blocks, and the ways from them to its states.

/// Returns the instructions of a body and of all blocks in it, in the order of the file.
pub fn instructions<'program>(body: &'program [Instruction]) -> Vec<&'program Instruction> {
    let with_inner = |instruction: &'program Instruction| {
        let inner = blocks(&instruction.kind).into_iter().flat_map(instructions);
        std::iter::once(instruction).chain(inner)
    };
    body.iter().flat_map(with_inner).collect()
}

/// Returns the bodies in an instruction.
pub(super) fn blocks(kind: &InstructionKind) -> Vec<&[Instruction]> {
    match kind {
        InstructionKind::Action(body) => vec![body],
        InstructionKind::Loop(repeat) => vec![&repeat.body],
        InstructionKind::ForEach(bodies) => {
            bodies.iter().map(|parallel| &parallel.body[..]).collect()
        }
        InstructionKind::Branch { arms, otherwise } => {
            arms.iter().map(|arm| &arm.body[..]).chain(otherwise.as_deref()).collect()
        }
        _ => Vec::new(),
    }
}

/// Returns the expressions of an instruction itself, without those of its blocks.
pub(super) fn expressions(kind: &InstructionKind) -> Vec<&TextExpression> {
    match kind {
        InstructionKind::Wait(wait) => condition_expressions(&wait.condition),
        InstructionKind::Branch { arms, .. } => {
            arms.iter().flat_map(|arm| condition_expressions(&arm.condition)).collect()
        }
        InstructionKind::Terminal { result, .. } => result.iter().collect(),
        InstructionKind::Send(send) => send.template.arguments.iter().collect(),
        InstructionKind::RunFolder(run) => run.input.iter().collect(),
        InstructionKind::Assert { key, value, .. } => key.iter().chain(value).collect(),
        InstructionKind::Retract { key, .. } => key.iter().collect(),
        InstructionKind::Log(template) => template.arguments.iter().collect(),
        InstructionKind::Run(run) => run.arguments.iter().collect(),
        InstructionKind::StartWorkflow(start) => start.expressions().collect(),
        InstructionKind::UserInput(input) => input.prompt.arguments.iter().collect(),
        _ => Vec::new(),
    }
}

/// Returns the parts of a condition that are not made of others.
pub(super) fn parts(condition: &ProgramCondition) -> Vec<&ProgramCondition> {
    match condition {
        ProgramCondition::And(all) | ProgramCondition::Or(all) => {
            all.iter().flat_map(parts).collect()
        }
        ProgramCondition::Not(inner) => parts(inner),
        part => vec![part],
    }
}

/// Returns the expressions of a condition.
pub(super) fn condition_expressions<'a>(
    condition: &'a ProgramCondition,
) -> Vec<&'a TextExpression> {
    let of = |part: &'a ProgramCondition| match part {
        ProgramCondition::Signal { key, equals, .. } => key.iter().chain(equals).collect(),
        ProgramCondition::Matches { text, .. } => vec![text],
        ProgramCondition::Equals { left, right } => vec![left, right],
        ProgramCondition::Verdict { verdict, .. } => vec![verdict],
        _ => Vec::new(),
    };
    parts(condition).into_iter().flat_map(of).collect()
}

/// Returns the states of the scope itself that a program starts agents or runs in, each once.
pub fn started(program: &Program) -> Vec<StateName> {
    let mut states = Vec::new();
    for (folder, state) in
        program.instructions().filter_map(|instruction| started_in(&instruction.kind))
    {
        if folder.is_none() && !states.contains(&state) {
            states.push(state);
        }
    }
    states
}

/// Returns the folder below and the state that an instruction starts an agent or a run in.
pub fn started_in(kind: &InstructionKind) -> Option<(Option<Folder>, StateName)> {
    match kind {
        InstructionKind::RunFolder(run) => Some((run.folder.clone(), run.start.clone())),
        InstructionKind::StartWorkflow(start) => start.file(),
        _ => None,
    }
}

/// Returns whether the end of a body can be reached.
pub fn falls_through(body: &[Instruction]) -> bool {
    body.iter().all(|instruction| match &instruction.kind {
        InstructionKind::Goto(_)
        | InstructionKind::Terminal { .. }
        | InstructionKind::Break
        | InstructionKind::Continue => false,
        InstructionKind::Loop(repeat) => has_break(&repeat.body),
        InstructionKind::Action(body) => falls_through(body),
        InstructionKind::ForEach(bodies) => {
            bodies.iter().all(|parallel| falls_through(&parallel.body))
        }
        InstructionKind::Branch { arms, otherwise } => {
            arms.iter().any(|arm| falls_through(&arm.body))
                || otherwise.as_ref().is_none_or(|body| falls_through(body))
        }
        _ => true,
    })
}

/// Returns whether a `break` in the body of a loop leaves that loop.
pub fn has_break(body: &[Instruction]) -> bool {
    body.iter().any(|instruction| match &instruction.kind {
        InstructionKind::Break => true,
        InstructionKind::Loop(_) | InstructionKind::ForEach(_) => false,
        kind => blocks(kind).into_iter().any(has_break),
    })
}

/// A way from an instruction to a state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramTransition {
    /// The number of the state.
    pub to: usize,
    /// The case in which it is taken, for people; `None` for a `goto`, and for a timeout whose time is not known.
    pub label: Option<String>,
    /// True if the agent continues there because something failed.
    pub is_failure: bool,
}

/// Returns the ways from an instruction itself, without those of its blocks.
pub fn transitions(kind: &InstructionKind) -> Vec<ProgramTransition> {
    let transition = |to: Option<usize>, label: String, is_failure| {
        to.map(|to| ProgramTransition { to, label: Some(label), is_failure }).into_iter().collect()
    };
    let late = |WaitTimeout { after_ms, state }: &WaitTimeout| {
        let label = after_ms.map(|millis| format!("after {}", format_duration(millis)));
        state.map(|to| ProgramTransition { to, label, is_failure: true }).into_iter().collect()
    };
    match kind {
        InstructionKind::Goto(to) => {
            vec![ProgramTransition { to: *to, label: None, is_failure: false }]
        }
        InstructionKind::Wait(wait) => [failures(&wait.condition), late(&wait.timeout)].concat(),
        InstructionKind::Branch { arms, .. } => {
            arms.iter().flat_map(|arm| failures(&arm.condition)).collect()
        }
        InstructionKind::Loop(repeat) => {
            transition(repeat.on_max, "after the last round".to_owned(), false)
        }
        InstructionKind::Run(run) => {
            transition(run.on_error, format!("{} fails", shortened(&run.command)), true)
        }
        InstructionKind::StartWorkflow(start) => transition(
            start.on_error,
            format!("{} is not started", shortened(&start.program)),
            true,
        ),
        InstructionKind::UserInput(input) => late(&input.timeout),
        _ => Vec::new(),
    }
}

/// Returns the ways that a condition leads when a request has failed.
pub(super) fn failures(condition: &ProgramCondition) -> Vec<ProgramTransition> {
    let failure = |part: &ProgramCondition| match part {
        ProgramCondition::Response { request, on_error: Some(to) } => Some(ProgramTransition {
            to: *to,
            label: Some(format!("{request} fails")),
            is_failure: true,
        }),
        _ => None,
    };
    parts(condition).into_iter().filter_map(failure).collect()
}

/// The maximum length of a label, in characters.
const MAX_LABEL_CHARS: usize = 40;

/// Returns a text on one line, cut to the length of a label.
pub(super) fn shortened(text: &str) -> String {
    first_characters(&joined_words(text), MAX_LABEL_CHARS)
}
