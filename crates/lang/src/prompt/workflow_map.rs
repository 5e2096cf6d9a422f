//! The map of a folder: its states from the first one on, and the ways from each to the next.
//!
//! It is built without running anything. A state with a policy takes the ways listed there. A state without one may go
//! anywhere; only its text gives hints: the tags in it, and the names of other states.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Range;

use raymond_model::id::{ScopePath, StateKind, StateName};
use raymond_model::join::{Join, JoinFallback};
use raymond_model::transition::{InvalidTransition, TagName, Transition, Variables};
use raymond_model::turn_options::TurnOptions;

use crate::diagnostic::Diagnostic;
use crate::graph::agents::spawned;
use crate::program::checked_program::{Program, started};
use crate::program::read::{ParsedProgram, read};
use crate::prompt::document::{ExaminedDocument, QuotedParts};
use crate::prompt::evaluator::{EntryPlace, Evaluator};
use crate::prompt::frontmatter::{Frontmatter, FrontmatterPlaces};
use crate::prompt::{document, frontmatter, step};
use crate::source::{SourcePlace, WorkflowSource, is_state};
use crate::tag::MisspeltTag;
use crate::yaml::YamlErrors;
use crate::{graph, source, tag, template};

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

impl<'a> WorkflowMapOptions<'a> {
    /// Returns the extent of a map of all that a state leads to.
    pub fn whole(graphs: Option<&'a FolderGraphReader<'a>>) -> Self {
        Self { by_text: true, max_states: usize::MAX, graphs }
    }
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
        for edge in &mut text.edges {
            edge.transition.rename_states(|name| *name = path.see(name));
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
                let edges = prompt.edges.iter().filter(|edge| reach.by_text || edge.is_certain());
                let mut next: Vec<StateName> =
                    edges.flat_map(|edge| edge.transition.states()).cloned().collect();
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

// A prompt taken apart: its head, the tags that its text shows, and the ways on.

/// A prompt as far as it can be read.
#[derive(Debug)]
pub struct FolderPrompt {
    pub frontmatter: Frontmatter,
    /// The places of its values.
    pub places: FrontmatterPlaces,
    /// The mistakes.
    pub errors: YamlErrors,
    /// The ways to other states: of the policy, the evaluator and the join, and without a policy also of the text.
    pub edges: Vec<TransitionEdge>,
    /// The warning about frontmatter in its text, which has no effect, and the place.
    pub lost_frontmatter: Option<(String, SourcePlace)>,
    /// The tags that its text shows.
    pub shown: Vec<ShownTag>,
    /// True if its text shows any tag, also one whose target a placeholder decides.
    pub shows_tags: bool,
    /// True if its text shows a tag whose target a placeholder decides.
    pub shows_filled_tags: bool,
    /// The words of its text that may name a state, with an ending or without.
    pub words: BTreeSet<String>,
    /// The texts that are nearly tags.
    pub misspelt: Vec<(MisspeltTag, SourcePlace)>,
    /// The files that its text speaks of.
    pub mentioned: Vec<StateName>,
    /// The placeholders, each with its first place.
    pub placeholders: Vec<(String, SourcePlace)>,
    /// What other tools would fill, outside of code: the text, the name that it means, and the place.
    pub foreign: Vec<(String, String, SourcePlace)>,
    /// The first word of its text, with its place.
    pub first_word: (String, SourcePlace),
}

/// A way from a state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TransitionEdge {
    pub transition: Transition,
    pub origin: TransitionOrigin,
    /// The place of the transition, and of the names in it.
    pub place: EntryPlace,
}

/// The origin of a way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TransitionOrigin {
    /// The state's policy.
    Policy,
    /// The pattern of its evaluator.
    Evaluator,
    /// The join, if too many of its agents fail.
    Failure,
    /// The join, if its agents do not end in time.
    Timeout,
    /// A tag in its text.
    Text,
}

/// A tag in a prompt's text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShownTag {
    /// The requested transition, or its mistake.
    pub transition: Result<Transition, InvalidTransition>,
    /// The name of the tag.
    pub tag: TagName,
    /// The state between the open tag and its close, if that is the name of one.
    pub encloses: Option<StateName>,
    /// What a shell makes of it before it is printed, and how to write it.
    pub misread: Option<&'static str>,
    /// True if the tag stands in code or in a comment, where it may be an example.
    pub is_quoted: bool,
    /// The place of the tag.
    pub place: SourcePlace,
}

/// The most texts of a prompt that other tools would fill.
const MAX_FOREIGN: usize = 100;

impl FolderPrompt {
    /// Takes a prompt file apart.
    pub fn of(text: &str) -> Self {
        let ExaminedDocument { document, places, errors } = document::examine(text);
        let body = document.body.as_str();
        let place = |offset| SourcePlace::in_text(body, offset, document.body_line);
        let written = tag::written(body);
        let spans: Vec<Range<usize>> = written.iter().map(|tag| tag.span.clone()).collect();
        let quoted = QuotedParts::of(body);
        let (filled, shown): (Vec<ShownTag>, Vec<ShownTag>) = written
            .into_iter()
            .map(|tag| ShownTag {
                transition: tag.transition,
                tag: tag.tag,
                encloses: StateName::parse(&body[tag.body]).ok(),
                misread: None,
                is_quoted: quoted.contains(tag.span.start),
                place: place(tag.span.start),
            })
            .partition(ShownTag::is_filled_in);
        let of_entries = document.frontmatter.policy.allowed.iter().zip(&places.entries);
        let of_entries = of_entries.flat_map(|(entry, place)| {
            let names = step::fill_entry(&mut entry.clone(), &Variables::new()).into_iter();
            names.map(|name| (name, place.entry))
        });
        let of_body = template::placeholders(body);
        let of_body = of_body.map(|(name, offset)| (name.to_owned(), place(offset)));
        let mut placeholders: Vec<(String, SourcePlace)> = Vec::new();
        for (name, place) in of_entries.chain(of_body) {
            if !placeholders.iter().any(|(known, _)| *known == name) {
                placeholders.push((name, place));
            }
        }
        let mut seen = BTreeSet::new();
        let foreign = template::foreign(body);
        let foreign = foreign.filter(|(text, _, at)| !quoted.contains(*at) && seen.insert(*text));
        // Each place is counted from the beginning of the text.
        let foreign = foreign.take(MAX_FOREIGN);
        let foreign =
            foreign.map(|(text, name, at)| (text.to_owned(), name.to_owned(), place(at))).collect();
        let misspelt = tag::misspelt(body).into_iter().map(|tag| {
            let place = place(tag.start);
            (tag, place)
        });
        let first = body.trim_start();
        let first_place = place(body.len() - first.len());
        let first_word = first.split_whitespace().next().unwrap_or_default().to_owned();
        let mut prompt = Self {
            first_word: (first_word, first_place),
            shows_tags: !spans.is_empty(),
            shows_filled_tags: !filled.is_empty(),
            words: document::words(body).map(|(_, word)| word.to_owned()).collect(),
            lost_frontmatter: document::find(body, document.body_line),
            misspelt: misspelt.collect(),
            mentioned: document::names(body, &spans),
            frontmatter: document.frontmatter,
            edges: Vec::new(),
            places,
            errors,
            shown,
            placeholders,
            foreign,
        };
        prompt.edges = prompt.find_edges();
        prompt
    }

    /// Takes a script apart: the tags in its text are transitions that it may ask for. A tag whose target is computed
    /// is none of them, nor is one in a comment.
    pub fn of_script(text: &str) -> Self {
        let plain = plain(text);
        let mut script = Self::of(&plain);
        for shown in &mut script.shown {
            shown.is_quoted = true;
            shown.place = place(text, shown.place);
            shown.misread = misread_by_shell(text, shown.place);
        }
        let count = script.shown.len();
        script.shown.retain(|shown| !shown.names(is_computed));
        script.shows_filled_tags |= script.shown.len() < count;
        script.misspelt.clear();
        script.foreign.clear();
        script.edges = script.find_edges();
        script
    }

    /// Adds the endings to the names of states that have none.
    pub fn resolve_names(&mut self, source: &dyn WorkflowSource) {
        self.frontmatter.resolve_names(source);
        for shown in &mut self.shown {
            if let Ok(transition) = &mut shown.transition {
                frontmatter::resolve_transition(transition, source);
            }
            if let Some(state) = &mut shown.encloses {
                frontmatter::resolve(state, source);
            }
        }
        for state in self.misspelt.iter_mut().filter_map(|(tag, _)| tag.encloses.as_mut()) {
            frontmatter::resolve(state, source);
        }
        self.edges = self.find_edges();
    }

    /// Returns whether the state may lead anywhere. Mistakes count too: they leave the policy unknown.
    pub fn is_open(&self) -> bool {
        self.frontmatter.policy.is_open() || !self.errors.is_empty()
    }

    /// Returns whether the state may give a result.
    pub fn may_end(&self) -> bool {
        self.is_open() || self.edges.iter().any(|edge| edge.transition.tag() == TagName::Result)
    }

    /// Returns the prompt of the evaluator, if it is one.
    pub fn evaluator(&self) -> Option<&StateName> {
        match &self.frontmatter.evaluator {
            Some(Evaluator::Prompt { file, .. }) => Some(file),
            _ => None,
        }
    }

    fn find_edges(&self) -> Vec<TransitionEdge> {
        let listed = self.frontmatter.policy.allowed.iter().zip(&self.places.entries);
        let edge = |origin| {
            move |(transition, place): (&Transition, &EntryPlace)| TransitionEdge {
                transition: transition.clone(),
                origin,
                place: *place,
            }
        };
        let mut edges: Vec<TransitionEdge> = listed.map(edge(TransitionOrigin::Policy)).collect();
        if let Some(Evaluator::Pattern { found, missing, .. }) = &self.frontmatter.evaluator {
            let overrides = [found, missing].into_iter().flatten().map(Box::as_ref);
            let overrides = overrides.zip(&self.places.overrides);
            edges.extend(overrides.map(edge(TransitionOrigin::Evaluator)));
        }
        edges.extend(self.frontmatter.join.iter().flat_map(|join| self.join_edges(join)));
        if self.is_open() {
            edges.extend(self.shown.iter().filter_map(ShownTag::edge));
        }
        for edge in &mut edges {
            edge.transition.change_targets(|scope, target| {
                if let Some(path) = scope.take() {
                    *target = StateName::beyond(&path, target);
                }
            });
        }
        edges
    }

    /// Returns the ways to the states that are entered if the join is not met.
    fn join_edges(&self, join: &Join) -> impl Iterator<Item = TransitionEdge> {
        let edges = [
            (&join.on_failure, TransitionOrigin::Failure, self.places.on_failure),
            (&join.on_timeout, TransitionOrigin::Timeout, self.places.on_timeout),
        ];
        let edge =
            |(otherwise, origin, place): (&JoinFallback, TransitionOrigin, Option<SourcePlace>)| {
                let JoinFallback::State(state) = otherwise else { return None };
                let place = place.unwrap_or(SourcePlace::START);
                let transition = Transition::Goto {
                    target: state.clone(),
                    scope: None,
                    variables: Variables::new(),
                };
                let place = EntryPlace { target: Some(place), ..EntryPlace::whole(place) };
                Some(TransitionEdge { transition, origin, place })
            };
        edges.map(edge).into_iter().flatten()
    }
}

impl TransitionEdge {
    /// Returns whether the way comes from more than a tag in a text.
    pub fn is_certain(&self) -> bool {
        self.origin != TransitionOrigin::Text
    }

    /// Returns the state that a call leads to, and the state that it returns to.
    pub fn call(&self) -> Option<(&StateName, &StateName)> {
        call(&self.transition)
    }

    /// Returns whether the way is taken without the agent, because a join was not met.
    pub fn is_of_join(&self) -> bool {
        matches!(self.origin, TransitionOrigin::Failure | TransitionOrigin::Timeout)
    }
}

/// Returns the state that a call or a function leads to, and the state that it returns to.
pub fn call(transition: &Transition) -> Option<(&StateName, &StateName)> {
    match transition {
        Transition::Call { target, return_to, .. }
        | Transition::Function { target, return_to, .. } => Some((target, return_to)),
        _ => None,
    }
}

impl ShownTag {
    /// Returns whether a placeholder decides the target, which is therefore unknown.
    fn is_filled_in(&self) -> bool {
        self.names(|name| name.contains("{{"))
    }

    /// Returns whether one of the states and folders that it names is such a name.
    fn names(&self, is_such: impl Fn(&str) -> bool) -> bool {
        let named = |transition: &Transition| {
            transition.states().any(|name| is_such(name.as_str()))
                || transition
                    .crossings()
                    .any(|(path, state)| is_such(path.as_str()) || is_such(state.as_str()))
        };
        self.transition.as_ref().is_ok_and(named)
    }

    fn edge(&self) -> Option<TransitionEdge> {
        let transition = self.transition.clone().ok()?;
        let place = EntryPlace::whole(self.place);
        Some(TransitionEdge { transition, origin: TransitionOrigin::Text, place })
    }
}

// The text of a script, as far as the tags in it can be told without running it.
//
// Such an analysis is not certain: a script may print other tags, and may never print those that its text has.

/// The characters of computed names: the script computes a name that contains any of them.
const COMPUTED: [char; 12] = ['$', '{', '}', '%', '+', '"', '\'', '`', '\\', '(', ' ', '#'];

/// Returns the text without its comments, and with plain quotes instead of escaped ones. Each line stays in its place.
fn plain(text: &str) -> String {
    text.split_inclusive('\n').map(plain_line).collect()
}

fn plain_line(line: &str) -> Cow<'_, str> {
    let start = line.trim_start();
    if start.starts_with('#') || start.starts_with("//") {
        return Cow::Borrowed(if line.ends_with('\n') { "\n" } else { "" });
    }
    if !line.contains('\\') {
        return Cow::Borrowed(line);
    }
    Cow::Owned(line.replace("\\\"", "\"").replace("\\'", "'"))
}

/// Returns the place in the text of a place in its [plain] form.
fn place(text: &str, place: SourcePlace) -> SourcePlace {
    let SourcePlace { line, column } = place;
    let index = usize::try_from(line.saturating_sub(1)).unwrap_or(usize::MAX);
    let mut chars = text.lines().nth(index).unwrap_or_default().chars().peekable();
    let (mut plain, mut current) = (1, 1);
    while plain < column
        && let Some(char) = chars.next()
    {
        let is_escape = char == '\\' && chars.peek().is_some_and(|next| matches!(next, '"' | '\''));
        plain += u64::from(!is_escape);
        current += 1;
    }
    SourcePlace { line, column: current }
}

/// Returns what a shell makes of the tag at a place, if that is not the tag: it stands within double quotes, and a
/// quote in its open tag, which is not escaped, ends them; or it is a word of `echo` or `printf` without quotes.
fn misread_by_shell(text: &str, place: SourcePlace) -> Option<&'static str> {
    let index = usize::try_from(place.line.saturating_sub(1)).unwrap_or(usize::MAX);
    let line = text.lines().nth(index).unwrap_or_default();
    let prints = matches!(line.split_whitespace().next(), Some("echo" | "printf"));
    let (mut quote, mut is_escaped) = (None, false);
    for (column, char) in (1..).zip(line.chars()) {
        let is_in_tag = column >= place.column;
        if is_in_tag && quote != Some('"') {
            let is_bare = prints && quote.is_none() && !is_escaped;
            return is_bare.then_some(
                "outside of quotes, where the shell redirects to files with < and >; put the whole tag into '…'",
            );
        }
        if is_escaped {
            is_escaped = false;
            continue;
        }
        match (quote, char) {
            (_, '>') if is_in_tag => return None,
            (Some('"'), '"') if is_in_tag => {
                return Some(
                    "within \"…\", where the shell takes the quotes of its attributes; write \\\" there, or put the whole tag into '…'",
                );
            }
            (Some(open), _) if open == char => quote = None,
            (None, '"' | '\'') => quote = Some(char),
            (None | Some('"'), '\\') => is_escaped = true,
            _ => {}
        }
    }
    None
}

/// Returns whether the script computes a name when it runs.
fn is_computed(name: &str) -> bool {
    name.contains(COMPUTED)
}

#[cfg(test)]
mod script_text_tests {
    use super::*;

    #[test]
    fn escaped_quotes_and_comments_leave_places_as_they_are() {
        let text = "# <goto>A.md</goto>\necho \"x=\\\"1\\\" <goto>B.md</goto>\"\n";
        let plain = plain(text);
        assert_eq!(plain, "\necho \"x=\"1\" <goto>B.md</goto>\"\n");
        let column =
            plain.lines().nth(1).and_then(|line| line.find('<')).expect("a tag") as u64 + 1;
        let found = place(text, SourcePlace { line: 2, column });
        let expected =
            text.lines().nth(1).and_then(|line| line.find('<')).expect("a tag") as u64 + 1;
        assert_eq!((found.line, found.column), (2, expected));
    }

    #[test]
    fn shell_misreads_a_tag_without_quotes_or_with_nested_quotes() {
        let table = [
            ("echo \"<call return=\"B.md\">A.md</call>\"", "within"),
            ("echo \"it's <call return=\"B.md\">A.md</call>\"", "within"),
            ("echo <result>ok</result>", "outside"),
            ("  printf '%s' <goto>B.md</goto>", "outside"),
            ("echo \\<result\\>ok", ""),
            ("<result>in a here document</result>", ""),
            ("echo \"<call return=\\\"B.md\\\">A.md</call>\"", ""),
            ("echo '<call return=\"B.md\">A.md</call>'", ""),
            ("echo \"x\" '<call return=\"B.md\">A.md</call>'", ""),
            ("echo \"<goto>B.md</goto>\"", ""),
            ("<call return=\"B.md\">A.md</call>", ""),
        ];
        for (line, expected) in table {
            let column = line.find('<').map_or(0, |at| at as u64 + 1);
            let found = misread_by_shell(line, SourcePlace { line: 1, column });
            let found = found.and_then(|why| why.split(' ').next()).unwrap_or_default();
            assert_eq!(found, expected, "{line}");
        }
    }

    #[test]
    fn names_with_variables_are_computed() {
        for name in ["$NEXT", "${next}.md", "{state}.md", "%s", "#{name}"] {
            assert!(is_computed(name), "{name}");
        }
        assert!(!is_computed("NEXT-2.md"));
    }
}
