//! The map of a folder: its states from the first one on, and the ways from each to the next.
//!
//! Builds it without running anything. A state with a policy takes the ways listed there. A state without one may go anywhere;
//! only its text gives hints: the tags in it, and the names of other states.

mod across;
mod flow;
mod prompt;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

pub use self::prompt::{FolderPrompt, ShownTag, TransitionEdge, TransitionOrigin};
use crate::diagnostic::Diagnostic;
use crate::graph;
use crate::graph::agents::spawned;
use crate::program::checked_program::Program;
use crate::program::read;
use crate::program::walk::started;
use crate::source::is_state;
use crate::source::{self, WorkflowSource};
use raymond_model::id::{ScopePath, StateKind, StateName};
use raymond_model::transition::Transition;
use raymond_model::turn_options::TurnOptions;

/// A folder's states from the first one on.
#[derive(Debug)]
pub struct WorkflowMap {
    /// The first.
    pub entry: StateName,
    /// True if agents of other folders come to the first state, perhaps with agents that they have forked.
    pub is_entered: bool,
    /// All reachable states, and the named states that cannot be used.
    pub states: BTreeMap<StateName, FolderState>,
    /// The prompts of evaluators.
    pub evaluators: BTreeMap<StateName, FolderPrompt>,
    /// The names of the states, the near ones first.
    pub order: Vec<StateName>,
}

/// A state.
#[derive(Debug)]
pub enum FolderState {
    /// A prompt.
    Prompt(Box<FolderPrompt>),
    /// A graph.
    Graph(FolderGraph),
    /// A program.
    Program(FolderProgram),
    /// A script, read like a prompt: the tags in its text are ways it may take.
    Script(Box<FolderPrompt>),
    /// A state of another folder, which is a scope of its own.
    Beyond(ScopePath, StateName),
    /// No state: there is no such file, or it cannot be read.
    Unreadable(source::Error),
    /// No state: it is a file of another kind.
    Other,
}

/// A graph of the folder.
#[derive(Debug, Default)]
pub struct FolderGraph {
    /// The graph, if it has no mistakes.
    pub graph: Option<graph::checked_graph::Graph>,
    /// The mistakes.
    pub diagnostics: Vec<Diagnostic>,
}

/// A program of the folder.
#[derive(Debug, Default)]
pub struct FolderProgram {
    /// The program, if it has no mistakes.
    pub program: Option<Program>,
    /// The mistakes.
    pub diagnostics: Vec<Diagnostic>,
}

/// Reads a graph of a folder.
pub type FolderGraphReader<'a> = dyn Fn(&dyn WorkflowSource, &StateName) -> FolderGraph + 'a;

/// The extent of a map.
#[derive(Clone, Copy)]
pub struct WorkflowMapOptions<'a> {
    /// True if names in the text of a state without policy lead on.
    pub by_text: bool,
    /// The maximum number of states.
    pub max_states: usize,
    /// Reads a graph; without it, neither graphs nor programs are read.
    pub graphs: Option<&'a FolderGraphReader<'a>>,
}

impl WorkflowMap {
    /// Returns a map without states.
    fn empty(entry: &StateName) -> Self {
        Self {
            entry: entry.clone(),
            is_entered: false,
            states: BTreeMap::new(),
            evaluators: BTreeMap::new(),
            order: Vec::new(),
        }
    }

    /// Returns the map of a folder, from a state on.
    pub fn of(
        entry: &StateName,
        source: &dyn WorkflowSource,
        reach: WorkflowMapOptions<'_>,
    ) -> Self {
        let mut workflow_map = Self::empty(entry);
        let mut to_look_at = VecDeque::from([entry.clone()]);
        while let Some(name) = to_look_at.pop_front() {
            if workflow_map.states.contains_key(&name)
                || workflow_map.states.len() >= reach.max_states
            {
                continue;
            }
            let state = read_state(&name, source, reach);
            to_look_at.extend(state.leads_to(source, reach));
            if let Some(evaluator) = state.prompt().and_then(FolderPrompt::evaluator)
                && !workflow_map.evaluators.contains_key(evaluator)
                && let Ok(text) = source.read(evaluator)
            {
                workflow_map.evaluators.insert(evaluator.clone(), FolderPrompt::of(&text));
            }
            workflow_map.order.push(name.clone());
            workflow_map.states.insert(name, state);
        }
        workflow_map
    }

    /// Returns the prompts among its states, the near ones first.
    pub fn prompts(&self) -> impl Iterator<Item = (&StateName, &FolderPrompt)> {
        self.order.iter().filter_map(|name| Some((name, self.states.get(name)?.prompt()?)))
    }

    /// Returns the options of all prompts among its states and of its evaluators; `None` if other states may have more.
    pub fn prompt_options(&self) -> Option<Vec<TurnOptions>> {
        let is_read =
            |state: &FolderState| matches!(state, FolderState::Prompt(_) | FolderState::Script(_));
        let prompts = self.prompts().chain(&self.evaluators);
        let options = || prompts.map(|(_, prompt)| prompt.frontmatter.options.clone()).collect();
        self.states.values().all(is_read).then(options)
    }

    /// Returns the prompts and the scripts among its states, the near ones first.
    pub fn texts(&self) -> impl Iterator<Item = (&StateName, &FolderPrompt)> {
        self.order.iter().filter_map(|name| Some((name, self.states.get(name)?.text()?)))
    }

    /// Returns the scripts among its states, the near ones first.
    pub fn scripts(&self) -> impl Iterator<Item = (&StateName, &FolderPrompt)> {
        self.texts()
            .filter(|(name, _)| matches!(self.states.get(*name), Some(FolderState::Script(_))))
    }

    /// Returns the states that an agent reaches from these without calling, being called, or forgetting.
    pub fn level<'a>(
        &'a self,
        from: impl IntoIterator<Item = &'a StateName>,
    ) -> BTreeSet<&'a StateName> {
        let map = self.flow_map_by(|transition| match transition {
            Transition::Reset { keeps_stack: false, .. } => [None; 3],
            Transition::Goto { target, .. } | Transition::Reset { target, .. } => {
                [Some(target), None, None]
            }
            other => [other.continuation(), other.timeout_state(), None],
        });
        map.reached_from(from.into_iter().filter_map(|name| self.known(name)))
    }

    /// Returns the states that an agent reaches which begins in one, without those of the agents it forks.
    pub fn reached_by_one_agent(&self, first: &StateName) -> BTreeSet<&StateName> {
        let map = self.flow_map_by(|transition| {
            let entered = match transition {
                Transition::Fork { .. } => None,
                other => other.target(),
            };
            [entered, transition.continuation(), transition.timeout_state()]
        });
        map.reached_from(self.known(first))
    }

    /// Returns whether a name is that of a state that can be entered, as far as is known.
    pub fn is_usable(&self, name: &StateName) -> bool {
        !matches!(self.states.get(name), Some(FolderState::Unreadable(_) | FolderState::Other))
    }
}

fn read_state(
    name: &StateName,
    source: &dyn WorkflowSource,
    reach: WorkflowMapOptions<'_>,
) -> FolderState {
    if let Some((path, state)) = name.in_other_folder() {
        return FolderState::Beyond(path, state);
    }
    match (StateKind::of(name), reach.graphs) {
        (None, _) => source.check(name).err().map_or(FolderState::Other, FolderState::Unreadable),
        (Some(kind @ (StateKind::Prompt | StateKind::Script)), _) => match source.read(name) {
            Ok(_) if !is_state(name, source) => FolderState::Other,
            Ok(text) => read_text(kind, &text, source),
            // What a program for the machine prints is not written in it.
            Err(source::Error::NotText { .. })
                if is_state(name, source) && kind == StateKind::Script =>
            {
                read_text(kind, "", source)
            }
            Err(error) => FolderState::Unreadable(error),
        },
        (Some(StateKind::Graph), read) => match source.check(name) {
            Ok(()) => FolderState::Graph(
                read.map_or_else(FolderGraph::default, |read| read(source, name)),
            ),
            Err(error) => FolderState::Unreadable(error),
        },
        (Some(StateKind::Program), None) => match source.check(name) {
            Ok(()) => FolderState::Program(FolderProgram::default()),
            Err(error) => FolderState::Unreadable(error),
        },
        (Some(StateKind::Program), Some(_)) => match source.read(name) {
            Ok(text) => FolderState::Program(FolderProgram::of(&source.path(name), &text, source)),
            Err(error) => FolderState::Unreadable(error),
        },
    }
}

fn read_text(kind: StateKind, text: &str, source: &dyn WorkflowSource) -> FolderState {
    let is_script = kind == StateKind::Script;
    let of = if is_script { FolderPrompt::of_script } else { FolderPrompt::of };
    let mut state = Box::new(of(text));
    state.resolve_names(source);
    if is_script { FolderState::Script(state) } else { FolderState::Prompt(state) }
}

impl FolderState {
    /// Returns the prompt, if the state is one.
    pub fn prompt(&self) -> Option<&FolderPrompt> {
        match self {
            Self::Prompt(prompt) => Some(prompt),
            _ => None,
        }
    }

    /// Returns the text of a prompt or a script, taken apart.
    pub fn text(&self) -> Option<&FolderPrompt> {
        match self {
            Self::Prompt(state) | Self::Script(state) => Some(state),
            _ => None,
        }
    }

    /// Returns the ways from a prompt or a script.
    pub fn ways(&self) -> Option<&Vec<TransitionEdge>> {
        self.text().map(|state| &state.ways)
    }

    /// Returns the next states.
    fn leads_to(
        &self,
        source: &dyn WorkflowSource,
        reach: WorkflowMapOptions<'_>,
    ) -> Vec<StateName> {
        match self {
            Self::Prompt(prompt) | Self::Script(prompt) => {
                let ways = prompt.ways.iter().filter(|way| reach.by_text || way.is_certain());
                let mut next: Vec<StateName> =
                    ways.flat_map(|way| way.transition.states()).cloned().collect();
                if reach.by_text && prompt.is_open() {
                    let there = |name: &&StateName| {
                        name.in_other_folder().is_some() || source.check(name).is_ok()
                    };
                    next.extend(prompt.mentioned.iter().filter(there).cloned());
                }
                next
            }
            Self::Graph(graph) => graph.graph.as_ref().map(spawned).unwrap_or_default(),
            Self::Program(program) => program.program.as_ref().map(started).unwrap_or_default(),
            Self::Beyond(..) | Self::Unreadable(_) | Self::Other => Vec::new(),
        }
    }
}

impl FolderProgram {
    /// Reads a program.
    pub fn of(path: &str, text: &str, source: &dyn WorkflowSource) -> Self {
        let read::ParsedProgram { program, diagnostics } = read::read(path, text, source);
        Self { program, diagnostics }
    }
}
