//! Binds the requests that are read to the sends that make them.
//!
//! A name that no send declares means the nearest earlier send of the same block that has no name and that
//! no other name claimed. A block is the body of a state, a loop, or an arm of a branch. The instructions in
//! an `action` belong to the block around it.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::checked_program::{
    Instruction, InstructionKind, LoopInstruction, ProgramState, ProgramSymbol,
};
use crate::diagnostic::{FileDiagnostics, quoted};
use crate::source::SourcePlace;

/// The names of the requests of a program, until all of it has been read.
#[derive(Default)]
pub(super) struct RequestNames {
    /// The requests that their sends name, and the places of the names.
    declared: BTreeMap<ProgramSymbol, SourcePlace>,
    /// The states of the sends without a name.
    unnamed: Vec<ProgramSymbol>,
    /// The uses of requests with their blocks, in the order of the text.
    events: Vec<(usize, RequestUse)>,
    state: ProgramSymbol,
    block: usize,
    blocks: usize,
}

/// The names that mean sends without a name: the place of the first read, and the numbers of the sends.
type BoundRequests = BTreeMap<ProgramSymbol, (SourcePlace, Vec<usize>)>;

enum RequestUse {
    /// A send without a name, by its number.
    Send(usize),
    /// A read of a request.
    Read(ProgramSymbol, SourcePlace),
}

impl RequestNames {
    /// Begins a state.
    pub(super) fn begin(&mut self, state: &ProgramSymbol) {
        self.state = ProgramSymbol::clone(state);
        self.enter();
    }

    /// Begins a block, and returns the block before it, for [`leave`](Self::leave).
    pub(super) fn enter(&mut self) -> usize {
        self.blocks += 1;
        std::mem::replace(&mut self.block, self.blocks)
    }

    /// Ends a block.
    pub(super) fn leave(&mut self, before: usize) {
        self.block = before;
    }

    /// Notes a read of a request.
    pub(super) fn note_read(&mut self, name: &ProgramSymbol, at: SourcePlace) {
        self.events.push((self.block, RequestUse::Read(ProgramSymbol::clone(name), at)));
    }

    /// Notes a send with a name.
    ///
    /// # Errors
    /// The place of another send with this name.
    pub(super) fn declare(
        &mut self,
        name: &ProgramSymbol,
        at: SourcePlace,
    ) -> Result<(), SourcePlace> {
        // A place in a block that is called several times is one place.
        if let Some(before) = self.declared.get(name).filter(|before| **before != at) {
            return Err(*before);
        }
        self.declared.insert(ProgramSymbol::clone(name), at);
        Ok(())
    }

    /// Notes a send without a name, and returns a provisional name that [`name`] replaces.
    pub(super) fn send(&mut self) -> ProgramSymbol {
        let number = self.unnamed.len();
        self.unnamed.push(ProgramSymbol::clone(&self.state));
        self.events.push((self.block, RequestUse::Send(number)));
        provisional(number)
    }

    /// Returns the names of the sends that had none, by provisional names. Reports requests that are never sent.
    pub(super) fn bind(
        self,
        report: &mut FileDiagnostics,
    ) -> BTreeMap<ProgramSymbol, ProgramSymbol> {
        let mut free: HashMap<usize, Vec<usize>> = HashMap::new();
        let mut bound = BoundRequests::new();
        for (block, event) in &self.events {
            match event {
                RequestUse::Send(number) => free.entry(*block).or_default().push(*number),
                RequestUse::Read(name, at) => {
                    // The same place again is another call of the block it stands in.
                    let is_new = bound.get(name).is_none_or(|(before, _)| before == at);
                    if !self.declared.contains_key(name) && is_new {
                        let nearest = free.get_mut(block).and_then(Vec::pop);
                        if let Some(number) = nearest {
                            let sends = bound.entry(ProgramSymbol::clone(name));
                            sends.or_insert((*at, Vec::new())).1.push(number);
                        }
                    }
                }
            }
        }
        self.tell(&bound, report);
        self.names(&bound)
    }

    fn tell(&self, bound: &BoundRequests, report: &mut FileDiagnostics) {
        let known =
            |name: &ProgramSymbol| self.declared.contains_key(name) || bound.contains_key(name);
        for (_, event) in &self.events {
            let RequestUse::Read(name, at) = event else { continue };
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
            let why = format!("unknown request {}{hint}", quoted(name));
            report.error(*at, "SX307", why);
        }
    }

    fn names(&self, bound: &BoundRequests) -> BTreeMap<ProgramSymbol, ProgramSymbol> {
        let mut taken: BTreeSet<ProgramSymbol> =
            self.declared.keys().chain(bound.keys()).cloned().collect();
        let mut names: BTreeMap<ProgramSymbol, ProgramSymbol> = bound
            .iter()
            .flat_map(|(name, (_, numbers))| numbers.iter().map(move |number| (number, name)))
            .map(|(number, name)| (provisional(*number), ProgramSymbol::clone(name)))
            .collect();
        let mut last: BTreeMap<&ProgramSymbol, u64> = BTreeMap::new();
        for (number, state) in self.unnamed.iter().enumerate() {
            let counter = last.entry(state).or_default();
            while !names.contains_key(&provisional(number)) {
                *counter += 1;
                let name = ProgramSymbol::from(format!("{state}-{counter}"));
                if taken.insert(ProgramSymbol::clone(&name)) {
                    names.insert(provisional(number), name);
                }
            }
        }
        names
    }
}

/// Returns a provisional name of a send. No name in the text has its first character.
fn provisional(number: usize) -> ProgramSymbol {
    format!("\0{number}").into()
}

/// Gives each send its name.
pub(super) fn name(states: &mut [ProgramState], names: &BTreeMap<ProgramSymbol, ProgramSymbol>) {
    for state in states {
        name_body(&mut state.body, names);
    }
}

fn name_body(body: &mut [Instruction], names: &BTreeMap<ProgramSymbol, ProgramSymbol>) {
    for instruction in body {
        let request = match &mut instruction.kind {
            InstructionKind::Send(send) => &mut send.request,
            InstructionKind::RunFolder(run) => &mut run.request,
            InstructionKind::Action(body) | InstructionKind::Loop(LoopInstruction { body, .. }) => {
                name_body(body, names);
                continue;
            }
            InstructionKind::Branch { arms, otherwise } => {
                let bodies = arms.iter_mut().map(|arm| &mut arm.body).chain(otherwise);
                bodies.for_each(|body| name_body(body, names));
                continue;
            }
            InstructionKind::ForEach(bodies) => {
                for parallel in bodies {
                    name_body(&mut parallel.body, names);
                }
                continue;
            }
            _ => continue,
        };
        if let Some(name) = names.get(request) {
            *request = ProgramSymbol::clone(name);
        }
    }
}
