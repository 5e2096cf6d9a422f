//! Binds the requests that are looked at to the sends that make them.
//!
//! A name that no send declares means the nearest earlier send of the same block that has no name and
//! that nothing else claimed. A block is what a state, a loop, or an arm of a branch does; what stands in
//! `action` belongs to the block around it.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::definition::{Instruction, Kind, Name, State};
use crate::language::place::Place;
use crate::language::report::{Report, quoted};

/// What the requests of a program are called, until the whole of it has been read.
#[derive(Default)]
pub(super) struct Requests {
    /// The requests that are named where they are sent, and where that is.
    declared: BTreeMap<Name, Place>,
    /// Sends without a name: the state each stands in.
    unnamed: Vec<Name>,
    /// What happens, in the order of the text.
    events: Vec<(usize, Event)>,
    state: Name,
    block: usize,
    blocks: usize,
}

enum Event {
    /// A send without a name, by its number.
    Send(usize),
    /// A request is looked at.
    Look(Name, Place),
}

impl Requests {
    /// A state begins.
    pub(super) fn begin(&mut self, state: &Name) {
        self.state = Name::clone(state);
        self.enter();
    }

    /// A block begins; what was before is given back, for when it ends.
    pub(super) fn enter(&mut self) -> usize {
        self.blocks += 1;
        std::mem::replace(&mut self.block, self.blocks)
    }

    /// A block has ended.
    pub(super) fn leave(&mut self, before: usize) {
        self.block = before;
    }

    /// A request is looked at.
    pub(super) fn look(&mut self, name: &Name, at: Place) {
        self.events.push((self.block, Event::Look(Name::clone(name), at)));
    }

    /// A send with a name.
    ///
    /// # Errors
    /// Where another has it.
    pub(super) fn declare(&mut self, name: &Name, at: Place) -> Result<(), Place> {
        if let Some(before) = self.declared.get(name) {
            return Err(*before);
        }
        self.declared.insert(Name::clone(name), at);
        Ok(())
    }

    /// A send without a name: one that stands for it until [`name`] gives it its own.
    pub(super) fn send(&mut self) -> Name {
        let number = self.unnamed.len();
        self.unnamed.push(Name::clone(&self.state));
        self.events.push((self.block, Event::Send(number)));
        provisional(number)
    }

    /// The names of the sends that had none, by what stood for them. Says which requests nothing sends.
    pub(super) fn bind(self, report: &mut Report) -> BTreeMap<Name, Name> {
        let mut free: HashMap<usize, Vec<usize>> = HashMap::new();
        let mut bound: BTreeMap<Name, usize> = BTreeMap::new();
        for (block, event) in &self.events {
            match event {
                Event::Send(number) => free.entry(*block).or_default().push(*number),
                Event::Look(name, _) => {
                    if !self.declared.contains_key(name) && !bound.contains_key(name) {
                        let nearest = free.get_mut(block).and_then(Vec::pop);
                        bound.extend(nearest.map(|number| (Name::clone(name), number)));
                    }
                }
            }
        }
        self.tell(&bound, report);
        self.names(&bound)
    }

    fn tell(&self, bound: &BTreeMap<Name, usize>, report: &mut Report) {
        let known = |name: &Name| self.declared.contains_key(name) || bound.contains_key(name);
        for (_, event) in &self.events {
            let Event::Look(name, at) = event else { continue };
            if known(name) {
                continue;
            }
            let names = self.declared.keys().chain(bound.keys()).map(|name| &**name);
            let otherwise = || {
                let shown = quoted(&format!(":request-id {name}"));
                format!(
                    ", and no send without a name stands before it in the same block; write {shown} where it is sent"
                )
            };
            let hint = report.hint(name, names, otherwise);
            let why = format!("no request is called {}{hint}", quoted(name));
            report.error(*at, "SX307", why);
        }
    }

    fn names(&self, bound: &BTreeMap<Name, usize>) -> BTreeMap<Name, Name> {
        let mut taken: BTreeSet<Name> = self.declared.keys().chain(bound.keys()).cloned().collect();
        let mut names: BTreeMap<Name, Name> =
            bound.iter().map(|(name, number)| (provisional(*number), Name::clone(name))).collect();
        let mut last: BTreeMap<&Name, u64> = BTreeMap::new();
        for (number, state) in self.unnamed.iter().enumerate() {
            let counter = last.entry(state).or_default();
            while !names.contains_key(&provisional(number)) {
                *counter += 1;
                let name = Name::from(format!("{state}-{counter}"));
                if taken.insert(Name::clone(&name)) {
                    names.insert(provisional(number), name);
                }
            }
        }
        names
    }
}

/// What stands for the name of a send until all are known. No name of the text holds this character.
fn provisional(number: usize) -> Name {
    format!("\0{number}").into()
}

/// Gives each send its name.
pub(super) fn name(states: &mut [State], names: &BTreeMap<Name, Name>) {
    for state in states {
        name_body(&mut state.body, names);
    }
}

fn name_body(body: &mut [Instruction], names: &BTreeMap<Name, Name>) {
    for instruction in body {
        let request = match &mut instruction.kind {
            Kind::Send(send) => &mut send.request,
            Kind::RunFolder(run) => &mut run.request,
            Kind::Action(body) | Kind::Loop(body) => {
                name_body(body, names);
                continue;
            }
            Kind::Branch { arms, otherwise } => {
                let bodies = arms.iter_mut().map(|arm| &mut arm.body).chain(otherwise);
                bodies.for_each(|body| name_body(body, names));
                continue;
            }
            Kind::Wait(_)
            | Kind::Goto(_)
            | Kind::Terminal { .. }
            | Kind::Assert { .. }
            | Kind::Retract { .. }
            | Kind::Log(_) => continue,
        };
        if let Some(name) = names.get(request) {
            *request = Name::clone(name);
        }
    }
}
