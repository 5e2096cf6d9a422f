//! A program that has been read and found sound: what the machine carries out.
//!
//! Every name in it leads somewhere: states, roles, and requests are resolved, templates have as many
//! arguments as places, so carrying it out has no errors but those of what it meets.

use std::collections::BTreeSet;
use std::sync::Arc;

use regex::Regex;

use crate::domain::id::{Folder, StateName};
use crate::domain::instance;
use crate::domain::model::ModelName;
use crate::domain::money::Usd;
use crate::domain::time::Timestamp;
use crate::domain::turn_options::TurnOptions;
use crate::language::output::OutputSchema;
use crate::language::place::SourcePlace;
use crate::language::turn_options::OptionPlaces;

/// A name in a program.
pub type ProgramSymbol = Arc<str>;

/// How often a loop may go round if the program does not say.
pub const MAX_ITERATIONS: u64 = 1000;

/// A program.
#[derive(Debug, Clone)]
pub struct Program {
    /// Its name.
    pub name: ProgramSymbol,
    /// What it says about itself.
    pub metadata: ProgramMetadata,
    /// Its roles.
    pub roles: Vec<ProgramRole>,
    /// Its states; the first is the start.
    pub states: Vec<ProgramState>,
    /// The labels of the facts it looks at.
    pub labels: BTreeSet<String>,
    /// The keys of the context it needs: `x` of `@context/x`.
    pub context: BTreeSet<String>,
    /// Whether it needs a branch: `@branch`.
    pub needs_branch: bool,
    /// The checksum of its text: `sha256:` and hexadecimal digits.
    pub hash: Arc<str>,
    /// The text it was read from.
    pub text: Arc<str>,
}

impl Program {
    /// What a run keeps of it, when it is read from this file.
    #[must_use]
    pub fn kept(&self, file: StateName, folder: Option<Folder>) -> instance::ProgramSource {
        instance::ProgramSource {
            file,
            folder,
            name: self.name.to_string(),
            program: Arc::clone(&self.hash),
            text: Arc::clone(&self.text),
            labels: self.labels.iter().cloned().collect(),
        }
    }

    /// Whether it asks anyone anything.
    #[must_use]
    pub fn asks(&self) -> bool {
        self.states.iter().any(|state| asks(&state.body))
    }
}

fn asks(list: &[Instruction]) -> bool {
    list.iter().any(|instruction| match &instruction.kind {
        InstructionKind::Send(_) | InstructionKind::RunFolder(_) => true,
        InstructionKind::Action(body) | InstructionKind::Loop(body) => asks(body),
        InstructionKind::Branch { arms, otherwise } => {
            arms.iter().any(|arm| asks(&arm.body)) || otherwise.as_deref().is_some_and(asks)
        }
        _ => false,
    })
}

/// What a program says about itself.
#[derive(Debug, Clone, PartialEq)]
pub struct ProgramMetadata {
    /// What people are shown.
    pub label: Option<String>,
    /// What it is for.
    pub description: Option<String>,
    /// How often a loop may go round: [`MAX_ITERATIONS`] if it does not say.
    pub max_iterations: u64,
    /// What a run of it may spend.
    pub max_budget_usd: Option<Usd>,
    /// The model of roles that name none.
    pub model: Option<ModelName>,
}

/// A role: a named agent.
#[derive(Debug, Clone)]
pub struct ProgramRole {
    /// Its name.
    pub name: ProgramSymbol,
    /// The name of its session within the instance; roles with the same one share it.
    pub handle: ProgramSymbol,
    /// Its model.
    pub model: Option<ModelName>,
    /// What else its turns need of Claude Code.
    pub options: TurnOptions,
    /// The places of the options.
    pub option_places: OptionPlaces,
    /// The schema that its answers have to match.
    pub output: Option<OutputSchema>,
    /// The directory it works in, below that of the run.
    pub cwd: Option<Folder>,
    /// Where it stands.
    pub at: SourcePlace,
}

/// A state.
#[derive(Debug, Clone)]
pub struct ProgramState {
    /// Its name.
    pub name: ProgramSymbol,
    /// What is done in it.
    pub body: Vec<Instruction>,
    /// Where it stands.
    pub at: SourcePlace,
}

/// An instruction, and where it stands.
#[derive(Debug, Clone)]
pub struct Instruction {
    /// What it says.
    pub kind: InstructionKind,
    /// The place of its opening bracket.
    pub at: SourcePlace,
}

/// What an instruction says.
#[derive(Debug, Clone)]
pub enum InstructionKind {
    /// `wait`, `await`: blocks until the condition holds.
    Wait(WaitInstruction),
    /// `action`: these in order.
    Action(Vec<Instruction>),
    /// `loop`: these again and again.
    Loop(Vec<Instruction>),
    /// `branch`: the first arm that holds.
    Branch {
        /// The arms, in order.
        arms: Vec<BranchArm>,
        /// `otherwise`.
        otherwise: Option<Vec<Instruction>>,
    },
    /// `goto`: on in that state, by its number.
    Goto(usize),
    /// `terminal`: the end.
    Terminal {
        /// `:status failed`.
        failed: bool,
        /// `:result E`: what it gives back.
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
        /// Its key.
        key: Option<TextExpression>,
        /// Its payload.
        value: Option<TextExpression>,
    },
    /// `retract`
    Retract {
        /// The fact's label.
        label: String,
        /// Its key.
        key: Option<TextExpression>,
    },
    /// `log`
    Log(TextTemplate),
}

/// An instruction that blocks.
#[derive(Debug, Clone)]
pub struct WaitInstruction {
    /// Until this holds.
    pub condition: ProgramCondition,
    /// `:timeout`: for so many milliseconds at the most.
    pub timeout_ms: Option<u64>,
    /// `:on-timeout`: then on in that state, by its number; without it the instance fails.
    pub on_timeout: Option<usize>,
}

/// An arm of a branch.
#[derive(Debug, Clone)]
pub struct BranchArm {
    /// When it is chosen.
    pub condition: ProgramCondition,
    /// What is done then.
    pub body: Vec<Instruction>,
}

/// `send-prompt`
#[derive(Debug, Clone)]
pub struct SendPrompt {
    /// To which role, by its number.
    pub role: usize,
    /// What is sent.
    pub template: TextTemplate,
    /// The request's name: its own, the awaited one it is bound to, or one made up for it.
    pub request: ProgramSymbol,
}

/// `run-folder`
#[derive(Debug, Clone)]
pub struct RunFolder {
    /// As whose work, by the role's number.
    pub role: usize,
    /// The folder below the scope, if it is another.
    pub folder: Option<Folder>,
    /// The first state.
    pub start: StateName,
    /// `:input E`: the text for `{{input}}` there.
    pub input: Option<TextExpression>,
    /// The request's name, as in [`SendPrompt`].
    pub request: ProgramSymbol,
}

/// A text with places for arguments: one piece more than arguments.
#[derive(Debug, Clone)]
pub struct TextTemplate {
    /// What stands around the arguments, with `~~` read as `~`.
    pub pieces: Vec<String>,
    /// The arguments, in order.
    pub arguments: Vec<TextExpression>,
}

/// A condition.
#[derive(Debug, Clone)]
pub enum ProgramCondition {
    /// `(signal L :key K :equals V :consume true :as NAME)`: such a fact lives.
    Signal {
        /// The fact's label.
        label: String,
        /// Its key; any, if absent.
        key: Option<TextExpression>,
        /// Its payload; any, if absent.
        equals: Option<TextExpression>,
        /// Whether it is taken. Only as the whole condition of a [`WaitInstruction`].
        consume: bool,
        /// What its payload is called then: `@NAME`.
        bind: Option<ProgramSymbol>,
    },
    /// `(transcript-response :request-id N :on-error STATE)`: the latest request N has ended.
    Response {
        /// The request's name.
        request: ProgramSymbol,
        /// Where to go on if it failed, by the state's number; without it the instance fails.
        on_error: Option<usize>,
    },
    /// `(matches TEXT REGEX)`
    Matches {
        /// The text.
        text: TextExpression,
        /// What is looked for in it.
        pattern: Regex,
    },
    /// `(after "30m")`: so many milliseconds after the wait began. Not in a branch.
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

/// What has a text as its value.
#[derive(Debug, Clone)]
pub enum TextExpression {
    /// A text, a number, a symbol as it is written.
    Text(String),
    /// `@workflow-id`: the run's id.
    WorkflowId,
    /// `@label`
    Label,
    /// `@branch`
    Branch,
    /// `@context/x`
    Context(String),
    /// `@NAME`: what a `:consume true :as NAME` took.
    Bound(ProgramSymbol),
    /// `(signal L :key K)`: the fact's payload; blocks until it is there.
    Signal {
        /// The fact's label.
        label: String,
        /// Its key; any, if absent.
        key: Option<Box<Self>>,
    },
    /// `(response N)`: the text of the answer to that request.
    Response(ProgramSymbol),
    /// `(feedback R)`: the last answer of a role, by its number.
    Feedback(usize),
    /// `(artifact R)`: the latest work of a role, by its number.
    Artifact(usize),
    /// `(response N :field F)`, `(feedback R :field F)`: a field of an answer that is an object.
    Field {
        /// The answer.
        answer: Box<Self>,
        /// The path of the field in it.
        path: String,
    },
}
