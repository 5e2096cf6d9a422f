//! The map of a folder: its states from the first one on, and the ways from each to the next.
//!
//! Builds it without running anything. A state with a policy takes the ways listed there. A state without one may go anywhere;
//! only its text gives hints: the tags in it, and the names of other states.

mod prompt;

use std::collections::{BTreeMap, VecDeque};

pub use self::prompt::{FolderPrompt, ShownTag, TransitionEdge, TransitionOrigin, call};
use crate::diagnostic::Diagnostic;
use crate::graph;
use crate::graph::agents::spawned;
use crate::program::checked_program::Program;
use crate::program::read::{ParsedProgram, read};
use crate::program::walk::started;
use crate::source::{self, WorkflowSource, is_state};
use raymond_model::id::{ScopePath, StateKind, StateName};
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
    Prompt(Box<FolderPrompt>),
    Graph(FolderGraph),
    Program(ParsedProgram),
    /// A script, read like a prompt: the tags in its text are ways it may take.
    Script(Box<FolderPrompt>),
    /// A state of another folder, which is a separate scope.
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

/// The most states of a map of several folders. A link of a folder to itself gives each state endlessly many names.
const MAX_STATES_ACROSS: usize = 10_000;

impl WorkflowMap {
    /// Returns the map of a folder, from a state on.
    pub fn of(
        entry: &StateName,
        source: &dyn WorkflowSource,
        reach: WorkflowMapOptions<'_>,
    ) -> Self {
        let mut map = Self::explore(entry, reach, |name| {
            let state = read_state(name, source, reach);
            let next = state.leads_to(source, reach);
            (state, next)
        });
        let states = map.order.iter().filter_map(|name| map.states.get(name)?.prompt());
        for evaluator in states.filter_map(FolderPrompt::evaluator) {
            if !map.evaluators.contains_key(evaluator)
                && let Ok(text) = source.read(evaluator)
            {
                map.evaluators.insert(evaluator.clone(), FolderPrompt::of(&text));
            }
        }
        map
    }

    /// Returns the map of a folder and of all other folders that are reached from a state of it. A state of another
    /// folder has the name under which the first folder sees it.
    pub fn across(
        entry: &StateName,
        source: &dyn WorkflowSource,
        reach: WorkflowMapOptions<'_>,
    ) -> Self {
        let reach = WorkflowMapOptions { max_states: MAX_STATES_ACROSS, ..reach };
        Self::explore(entry, reach, |name| {
            let state = read_across(name, source, reach);
            let path = name.in_other_folder().map(|(path, _)| path);
            let path = path.filter(|_| state.text().is_none());
            let next = state.leads_to(source, reach).into_iter();
            // The names in texts have been changed already.
            let seen = |next: StateName| path.as_ref().map_or(next.clone(), |path| path.see(&next));
            let next = next.map(seen).collect();
            (state, next)
        })
    }

    /// Returns the states from one on; `read` returns a state, and those that it leads to.
    fn explore(
        entry: &StateName,
        reach: WorkflowMapOptions<'_>,
        read: impl Fn(&StateName) -> (FolderState, Vec<StateName>),
    ) -> Self {
        let (mut states, mut order) = (BTreeMap::new(), Vec::new());
        let mut to_look_at = VecDeque::from([entry.clone()]);
        while let Some(name) = to_look_at.pop_front() {
            if states.contains_key(&name) || states.len() >= reach.max_states {
                continue;
            }
            let (state, next) = read(&name);
            to_look_at.extend(next);
            order.push(name.clone());
            states.insert(name, state);
        }
        let evaluators = BTreeMap::new();
        Self { entry: entry.clone(), is_entered: false, states, evaluators, order }
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
        (Some(StateKind::Graph), Some(read)) if source.check(name).is_ok() => {
            FolderState::Graph(read(source, name))
        }
        (Some(StateKind::Program), Some(_)) => match source.read(name) {
            Ok(text) => FolderState::Program(read(&source.path(name), &text, source)),
            Err(error) => FolderState::Unreadable(error),
        },
        (Some(kind), _) => match source.check(name) {
            Ok(()) if kind == StateKind::Graph => FolderState::Graph(FolderGraph::default()),
            Ok(()) => FolderState::Program(ParsedProgram::default()),
            Err(error) => FolderState::Unreadable(error),
        },
    }
}

fn read_across(
    name: &StateName,
    source: &dyn WorkflowSource,
    reach: WorkflowMapOptions<'_>,
) -> FolderState {
    let Some((path, state)) = name.in_other_folder() else {
        return read_state(name, source, reach);
    };
    let there = match source.scope(&path) {
        Ok(there) => there,
        Err(error) => return FolderState::Unreadable(error),
    };
    let mut read = read_state(&state, &*there, reach);
    if let FolderState::Prompt(text) | FolderState::Script(text) = &mut read {
        for way in &mut text.ways {
            way.transition.rename_states(|name| *name = path.see(name));
        }
        text.mentioned.retain(|name| there.check(name).is_ok());
        for name in &mut text.mentioned {
            *name = path.see(name);
        }
    }
    read
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

    /// Returns the graph, if the state is one without mistakes.
    pub fn graph(&self) -> Option<&graph::checked_graph::Graph> {
        match self {
            Self::Graph(FolderGraph { graph, .. }) => graph.as_ref(),
            _ => None,
        }
    }

    /// Returns the program, if the state is one without mistakes.
    pub fn program(&self) -> Option<&Program> {
        match self {
            Self::Program(ParsedProgram { program, .. }) => program.as_ref(),
            _ => None,
        }
    }

    /// Returns the mistakes of a graph or a program.
    pub fn diagnostics(&self) -> &[Diagnostic] {
        match self {
            Self::Graph(FolderGraph { diagnostics, .. })
            | Self::Program(ParsedProgram { diagnostics, .. }) => diagnostics,
            _ => &[],
        }
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
            _ => {
                let spawned = self.graph().map(spawned);
                spawned.or_else(|| self.program().map(started)).unwrap_or_default()
            }
        }
    }
}
