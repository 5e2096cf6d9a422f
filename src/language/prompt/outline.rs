//! The outline of a folder: its states from the first one on, and the ways from each to the next.
//!
//! Nothing is run for it. A state with a policy goes the ways that are listed there. One without goes
//! where an agent likes; what its text shows is what is known of that: the tags that are written in
//! it, and the names of other states.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

use super::document::{self, Examined};
use super::evaluator::Evaluator;
use super::frontmatter::{EntryPlace, Frontmatter, Places};
use super::kind::Kind;
use super::mentioned;
use crate::domain::id::StateName;
use crate::domain::transition::Transition;
use crate::language::diagnostic::Diagnostic;
use crate::language::graph::program::Program;
use crate::language::graph::spawned::spawned;
use crate::language::place::Place;
use crate::language::source::{self, Source};
use crate::language::yaml::Errors;
use crate::language::{tag, template};

/// A folder's states from the first one on.
#[derive(Debug)]
pub struct Outline {
    /// The first.
    pub entry: StateName,
    /// All that can be reached, and those that are named and cannot be used.
    pub states: BTreeMap<StateName, State>,
    /// The prompts of evaluators.
    pub evaluators: BTreeMap<StateName, Prompt>,
    /// The names of the states, the near ones first.
    pub order: Vec<StateName>,
}

/// A state.
#[derive(Debug)]
pub enum State {
    /// A prompt.
    Prompt(Box<Prompt>),
    /// A graph.
    Graph(Graph),
    /// None: there is no such file, or it cannot be read.
    Unreadable(source::Error),
    /// None: it is a file of another kind.
    Other,
}

/// A prompt as far as it can be read.
#[derive(Debug)]
pub struct Prompt {
    /// What its head says.
    pub frontmatter: Frontmatter,
    /// Where.
    pub places: Places,
    /// What is wrong with it.
    pub errors: Errors,
    /// The ways on: the policy's and the evaluator's, or if there is no policy those of its text.
    pub ways: Vec<Way>,
    /// The tags that its text shows.
    pub shown: Vec<Shown>,
    /// The files that its text speaks of.
    pub mentioned: Vec<StateName>,
    /// Its placeholders, each where it stands first.
    pub placeholders: Vec<(String, Place)>,
}

/// A graph of the folder.
#[derive(Debug, Default)]
pub struct Graph {
    /// What was read, if nothing is wrong with it.
    pub program: Option<Program>,
    /// What is wrong with it.
    pub diagnostics: Vec<Diagnostic>,
}

/// A way from a state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Way {
    /// What is asked for.
    pub transition: Transition,
    /// Who says so.
    pub origin: Origin,
    /// Where that stands, and the names in it.
    pub place: EntryPlace,
}

/// Who says that there is a way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// The state's policy.
    Policy,
    /// The pattern of its evaluator.
    Evaluator,
    /// A tag in its text.
    Text,
}

/// A tag in a prompt's text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shown {
    /// What it asks for, or what is wrong with it.
    pub transition: Result<Transition, String>,
    /// Where it stands.
    pub place: Place,
}

/// How far an outline goes.
#[derive(Clone, Copy)]
pub struct Reach<'a> {
    /// Whether names in the text of a state without policy lead on.
    pub by_text: bool,
    /// How many states there are at the most.
    pub most: usize,
    /// What reads a graph; without it, none is read.
    pub graphs: Option<&'a dyn Fn(&StateName) -> Graph>,
}

impl Outline {
    /// The outline of a folder, from a state on.
    #[must_use]
    pub fn of(entry: &StateName, source: &dyn Source, reach: Reach<'_>) -> Self {
        let mut outline = Self {
            entry: entry.clone(),
            states: BTreeMap::new(),
            evaluators: BTreeMap::new(),
            order: Vec::new(),
        };
        let mut to_look_at = VecDeque::from([entry.clone()]);
        while let Some(name) = to_look_at.pop_front() {
            if outline.states.contains_key(&name) || outline.states.len() >= reach.most {
                continue;
            }
            let state = look(&name, source, reach);
            to_look_at.extend(state.leads_to(source, reach));
            if let Some(evaluator) = state.prompt().and_then(Prompt::evaluator)
                && !outline.evaluators.contains_key(evaluator)
                && let Ok(text) = source.read(evaluator)
            {
                outline.evaluators.insert(evaluator.clone(), Prompt::of(&text));
            }
            outline.order.push(name.clone());
            outline.states.insert(name, state);
        }
        outline
    }

    /// The prompts among its states, the near ones first.
    pub fn prompts(&self) -> impl Iterator<Item = (&StateName, &Prompt)> {
        self.order.iter().filter_map(|name| Some((name, self.states.get(name)?.prompt()?)))
    }

    /// Whether a name is one of a state that can be entered, as far as is known.
    #[must_use]
    pub fn is_usable(&self, name: &StateName) -> bool {
        !matches!(self.states.get(name), Some(State::Unreadable(_) | State::Other))
    }
}

fn look(name: &StateName, source: &dyn Source, reach: Reach<'_>) -> State {
    match (Kind::of(name), reach.graphs) {
        (None, _) => source.check(name).err().map_or(State::Other, State::Unreadable),
        (Some(Kind::Prompt), _) => match source.read(name) {
            Ok(text) => State::Prompt(Box::new(Prompt::of(&text))),
            Err(error) => State::Unreadable(error),
        },
        (Some(Kind::Graph), read) => match source.check(name) {
            Ok(()) => State::Graph(read.map_or_else(Graph::default, |read| read(name))),
            Err(error) => State::Unreadable(error),
        },
    }
}

impl State {
    /// The prompt, if it is one.
    #[must_use]
    pub fn prompt(&self) -> Option<&Prompt> {
        match self {
            Self::Prompt(prompt) => Some(prompt),
            _ => None,
        }
    }

    /// The states that come next.
    fn leads_to(&self, source: &dyn Source, reach: Reach<'_>) -> Vec<StateName> {
        match self {
            Self::Prompt(prompt) => {
                let ways = prompt.ways.iter().filter(|way| reach.by_text || way.is_certain());
                let mut next: Vec<StateName> =
                    ways.flat_map(|way| way.transition.states()).cloned().collect();
                if reach.by_text && prompt.is_open() {
                    let there = |name: &&StateName| source.check(name).is_ok();
                    next.extend(prompt.mentioned.iter().filter(there).cloned());
                }
                next
            }
            Self::Graph(graph) => graph.program.as_ref().map(spawned).unwrap_or_default(),
            Self::Unreadable(_) | Self::Other => Vec::new(),
        }
    }
}

impl Prompt {
    /// Takes a prompt file apart.
    #[must_use]
    pub fn of(text: &str) -> Self {
        let Examined { document, places, errors } = document::examine(text);
        let body = document.body.as_str();
        let place = |offset| Place::in_text(body, offset, document.body_line);
        let written = tag::written(body);
        let spans: Vec<Range<usize>> = written.iter().map(|tag| tag.span.clone()).collect();
        let shown: Vec<Shown> = written
            .into_iter()
            .map(|tag| Shown {
                transition: tag.transition.map_err(|error| error.to_string()),
                place: place(tag.span.start),
            })
            .filter(|shown| !shown.is_filled_in())
            .collect();
        let mut placeholders: Vec<(String, Place)> = Vec::new();
        for (name, offset) in template::placeholders(body) {
            if !placeholders.iter().any(|(known, _)| known == name) {
                placeholders.push((name.to_owned(), place(offset)));
            }
        }
        let mut prompt = Self {
            mentioned: mentioned::names(body, &spans),
            frontmatter: document.frontmatter,
            ways: Vec::new(),
            places,
            errors,
            shown,
            placeholders,
        };
        prompt.ways = prompt.find_ways();
        prompt
    }

    /// Whether it may go anywhere; so may one of which nobody knows what it allows.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.frontmatter.policy.is_open() || !self.errors.is_empty()
    }

    /// The prompt that takes a second look at what is asked for here.
    #[must_use]
    pub fn evaluator(&self) -> Option<&StateName> {
        match &self.frontmatter.evaluator {
            Some(Evaluator::Prompt { file, .. }) => Some(file),
            _ => None,
        }
    }

    fn find_ways(&self) -> Vec<Way> {
        let listed = self.frontmatter.policy.allowed.iter().zip(&self.places.entries);
        let way = |origin| {
            move |(transition, place): (&Transition, &EntryPlace)| Way {
                transition: transition.clone(),
                origin,
                place: *place,
            }
        };
        let mut ways: Vec<Way> = listed.map(way(Origin::Policy)).collect();
        if let Some(Evaluator::Pattern { found, missing, .. }) = &self.frontmatter.evaluator {
            let overrides = [found, missing].into_iter().flatten().zip(&self.places.overrides);
            ways.extend(overrides.map(way(Origin::Evaluator)));
        }
        if self.is_open() {
            ways.extend(self.shown.iter().filter_map(Shown::way));
        }
        ways
    }
}

impl Way {
    /// Whether it is more than a tag in a text.
    #[must_use]
    pub fn is_certain(&self) -> bool {
        self.origin != Origin::Text
    }
}

impl Shown {
    /// Whether a placeholder decides where it leads, so that nobody knows yet.
    fn is_filled_in(&self) -> bool {
        let named =
            |transition: &Transition| transition.states().any(|name| name.as_str().contains("{{"));
        self.transition.as_ref().is_ok_and(named)
    }

    fn way(&self) -> Option<Way> {
        let transition = self.transition.clone().ok()?;
        let place = EntryPlace::whole(self.place);
        Some(Way { transition, origin: Origin::Text, place })
    }
}
