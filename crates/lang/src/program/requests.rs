//! Binds the requests that are read to the sends that make them.
//!
//! A name that no send declares means the nearest earlier send of the same block that has no name and that
//! no other name claimed. A block is the body of a state, a loop, or an arm of a branch. The instructions in
//! an `action` belong to the block around it.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use raymond_model::question::{Question, QuestionOption};

use super::checked_program::{
    Instruction, InstructionKind, LoopInstruction, Program, ProgramState, ProgramSymbol, UserInput,
};
use super::fields::FormFields;
use super::reader::ProgramReader;
use crate::diagnostic::{FileDiagnostics, closest, quoted};
use crate::position::SourcePlace;
use crate::program::parse::{Form, FormContent};

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
                            let own = bound.entry(ProgramSymbol::clone(name));
                            own.or_insert((*at, Vec::new())).1.push(number);
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
                for one in bodies {
                    name_body(&mut one.body, names);
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

// Reads the questions of a program to a person.

impl ProgramReader<'_> {
    /// Reads `user-input`.
    pub(super) fn user_input(&mut self, fields: &FormFields<'_>) -> Option<UserInput> {
        self.exactly(fields, []);
        let arguments = self.arguments(fields);
        let prompt = self.need(fields, "prompt").zip(arguments);
        let prompt = prompt.and_then(|(form, arguments)| self.template(form, &arguments));
        let options = fields.get("options").map_or(Some(Vec::new()), |form| self.options(form));
        let timeout = fields.get("timeout");
        let timeout_ms = timeout.map_or(Some(None), |form| self.duration(form).map(Some));
        let on_timeout = self.optional_state(fields, "on-timeout");
        if fields.get("on-timeout").is_some() {
            self.need(fields, "timeout");
        }
        let bind = self.need(fields, "as").and_then(|form| {
            let name = self.taken_as(form, &[])?;
            if name.contains('=') {
                let why = format!(
                    "{} cannot be the name of an answer, because `raymond answer RUN NAME=TEXT` ends it at its `=`",
                    quoted(&name)
                );
                self.report.error(form.at, "SX312", why);
                return None;
            }
            Some(name)
        });
        Some(UserInput {
            prompt: prompt?,
            options: options?,
            timeout_ms: timeout_ms?,
            on_timeout: on_timeout?,
            bind: bind?,
        })
    }

    /// Reads the answers that a person can choose from.
    fn options(&mut self, form: &Form) -> Option<Vec<String>> {
        let wanted = "a list of answers, such as `(\"yes\" \"no\")`,";
        let forms = match &form.content {
            FormContent::List(forms) if !forms.is_empty() => forms,
            _ => {
                self.other(form, wanted);
                return None;
            }
        };
        let mut options: Vec<String> = Vec::new();
        for form in forms {
            let option = self.name(form, "an answer to choose")?;
            if options.iter().any(|before| before.eq_ignore_ascii_case(option)) {
                let why = format!("{} is given twice in `:options`; remove one", quoted(option));
                self.report.error(form.at, "SX204", why);
            } else {
                options.push(option.to_owned());
            }
        }
        Some(options)
    }
}

impl UserInput {
    /// Returns the question with this text.
    pub fn question(&self, text: String) -> Question {
        let option = |text: &String| QuestionOption {
            id: text.clone(),
            label: text.clone(),
            description: String::new(),
        };
        Question {
            node: self.bind.to_string(),
            text,
            header: None,
            options: self.options.iter().map(option).collect(),
            free: false,
        }
    }
}

/// Checks that a program will ask for an answer that is given ahead of time. A program that starts other agents
/// accepts unknown names, because those agents may ask under their own names.
///
/// # Errors
/// A message with the reason, and with the answers that the program asks for.
pub fn check(program: &Program, node: &str, text: &str) -> Result<(), String> {
    let all = program.instructions();
    let mut names: Vec<&str> = Vec::new();
    let mut wrong = None;
    for instruction in all {
        match &instruction.kind {
            InstructionKind::RunFolder(_) => return Ok(()),
            InstructionKind::UserInput(input) if *input.bind == *node => {
                match input.question(String::new()).read(text) {
                    Ok(_) => return Ok(()),
                    Err(error) => wrong = Some(error.to_string()),
                }
            }
            InstructionKind::UserInput(input) => names.push(&input.bind),
            _ => {}
        }
    }
    let meant = || closest(node, names.iter().copied());
    Err(wrong.unwrap_or_else(|| match (names.is_empty(), meant()) {
        (true, _) => "the program does not ask a person".to_owned(),
        (false, Some(meant)) => {
            format!("the program does not ask for {node}; did you mean {meant}?")
        }
        (false, None) => {
            format!("the program does not ask for {node}; it asks for {}", names.join(", "))
        }
    }))
}
