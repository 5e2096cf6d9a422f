//! The flow of a program: its states, the roles they ask, and the signals they wait for.
//!
//! A state is one place, however much it does. An edge out of its loops and branches is labelled with the condition
//! of the innermost arm; an edge from a signal marks a wait for it.

use crate::flow::{END, EdgeKind, FAILED, Flow, PlaceKind, START};
use crate::program::checked_program::{
    BranchArm, Instruction, InstructionKind, Program, ProgramCondition, ProgramTransition,
    TextExpression, failures, falls_through, parts, shortened, transitions,
};
use raymond_model::time::format_duration;

/// Returns the flow of a program.
pub fn flow(program: &Program, title: &str) -> Flow {
    let mut flow = Flow::begin(title);
    for state in &program.states {
        flow.place(&state.name, &state.name, kind(&state.body));
    }
    for role in &program.roles {
        let label = if *role.handle == *role.name {
            role.name.to_string()
        } else {
            format!("{}\n{}", role.name, role.handle)
        };
        flow.place(&role_id(&role.name), &label, PlaceKind::Agent);
    }
    if let Some(first) = program.states.first() {
        flow.join(START, &first.name, "", EdgeKind::Goes);
    }
    let mut builder = ProgramFlowBuilder { program, flow, here: "", is_terminal: false };
    for (number, state) in program.states.iter().enumerate() {
        let last = state.body.last().map(|last| &last.kind);
        builder.here = &state.name;
        builder.is_terminal = matches!(last, Some(InstructionKind::Terminal { .. }));
        builder.body(&state.body, None);
        if falls_through(&state.body) {
            match program.states.get(number + 1) {
                Some(next) => builder.lead(&next.name, "", EdgeKind::Goes),
                None => builder.end("", false),
            }
        }
    }
    builder.flow
}

/// Returns the kind of a state. A state that only ends is an end itself.
fn kind(body: &[Instruction]) -> PlaceKind {
    match body.last().map(|last| &last.kind) {
        Some(InstructionKind::Terminal { failed: false, .. }) => PlaceKind::Success,
        Some(InstructionKind::Terminal { failed: true, .. }) => PlaceKind::Failure,
        _ => PlaceKind::State,
    }
}

fn role_id(name: &str) -> String {
    format!("/role/{name}")
}

struct ProgramFlowBuilder<'a> {
    program: &'a Program,
    flow: Flow,
    /// The name of the state whose edges are added, and whether its last instruction ends the program.
    here: &'a str,
    is_terminal: bool,
}

impl<'a> ProgramFlowBuilder<'a> {
    /// Adds an edge from the state.
    fn lead(&mut self, to: &str, label: &str, kind: EdgeKind) {
        self.flow.join(self.here, to, label, kind);
    }

    /// Adds an edge from the state to an end.
    fn end(&mut self, label: &str, is_failure: bool) {
        let (id, shown, place, kind) = if is_failure {
            (FAILED, "failed", PlaceKind::Failure, EdgeKind::Fails)
        } else {
            (END, "end", PlaceKind::End, EdgeKind::Ends)
        };
        self.flow.place(id, shown, place);
        self.lead(id, label, kind);
    }

    /// Adds the instructions of a block; `arm` is the condition under which the block is entered.
    fn body(&mut self, body: &'a [Instruction], arm: Option<&str>) {
        for instruction in body {
            self.instruction(&instruction.kind, arm);
        }
    }

    fn instruction(&mut self, kind: &'a InstructionKind, arm: Option<&str>) {
        match kind {
            InstructionKind::Wait(wait) => {
                for part in parts(&wait.condition) {
                    match part {
                        ProgramCondition::Signal { label, .. } => self.signal(label),
                        ProgramCondition::Response { request, .. } => self.answer(request),
                        _ => {}
                    }
                }
                self.transitions(transitions(kind));
            }
            InstructionKind::Action(body) => self.body(body, arm),
            InstructionKind::Loop(repeat) => {
                self.body(&repeat.body, arm);
                if falls_through(&repeat.body) {
                    self.lead(self.here, "loop", EdgeKind::Goes);
                }
                self.transitions(transitions(kind));
            }
            InstructionKind::ForEach(bodies) => {
                for parallel in bodies {
                    self.body(&parallel.body, arm);
                }
            }
            InstructionKind::Break => {}
            InstructionKind::Continue => self.lead(self.here, "loop", EdgeKind::Goes),
            InstructionKind::Branch { arms, otherwise } => {
                for BranchArm { condition, body } in arms {
                    let label = condition_label(condition, self.program);
                    self.body(body, Some(&label));
                    self.transitions(failures(condition));
                }
                if let Some(body) = otherwise {
                    self.body(body, Some("otherwise"));
                }
            }
            InstructionKind::Goto(to) => {
                let label = Some(shortened(arm.unwrap_or_default()));
                self.transitions(vec![ProgramTransition { to: *to, label, is_failure: false }]);
            }
            // A state that only ends is an end itself.
            InstructionKind::Terminal { .. } if arm.is_none() && self.is_terminal => {}
            InstructionKind::Terminal { failed, .. } => {
                self.end(&shortened(arm.unwrap_or_default()), *failed);
            }
            InstructionKind::Send(send) => {
                self.ask(kind, None);
                self.signals(&send.template.arguments);
            }
            InstructionKind::RunFolder(run) => {
                let state = match &run.folder {
                    Some(folder) => format!("{folder}/{}", run.start),
                    None => run.start.to_string(),
                };
                self.ask(kind, Some(&state));
                self.signals(run.input.as_slice());
            }
            InstructionKind::Assert { label, .. } => self.fact(label, "asserts"),
            InstructionKind::Retract { label, .. } => self.fact(label, "retracts"),
            InstructionKind::Log(template) => self.signals(&template.arguments),
            InstructionKind::UserInput(input) => {
                self.signals(&input.prompt.arguments);
                self.transitions(transitions(kind));
            }
            InstructionKind::StartWorkflow(start) => {
                let id = format!("/workflow/{}", start.program);
                self.flow.place(&id, &start.program, PlaceKind::Graph);
                self.lead(&id, "start-workflow", EdgeKind::Forks);
                self.transitions(transitions(kind));
                self.signals(start.expressions());
            }
            InstructionKind::Run(run) => {
                self.signals(&run.arguments);
                self.transitions(transitions(kind));
            }
        }
    }

    fn transitions(&mut self, transitions: Vec<ProgramTransition>) {
        for ProgramTransition { to, label, is_failure } in transitions {
            let kind = if is_failure { EdgeKind::Fails } else { EdgeKind::Goes };
            if let (Some(label), Some(state)) = (label, self.program.states.get(to)) {
                self.lead(&state.name, &label, kind);
            }
        }
    }

    fn signal(&mut self, label: &str) {
        let id = format!("/signal/{label}");
        self.flow.place(&id, label, PlaceKind::Signal);
        self.flow.join(&id, self.here, "", EdgeKind::Consults);
    }

    fn fact(&mut self, label: &str, what: &str) {
        let id = format!("/signal/{label}");
        self.flow.place(&id, label, PlaceKind::Signal);
        self.lead(&id, what, EdgeKind::Consults);
    }

    /// Adds the signals whose payloads are used.
    fn signals(&mut self, expressions: impl IntoIterator<Item = &'a TextExpression>) {
        for expression in expressions {
            if let TextExpression::Signal { label, .. } = expression {
                self.signal(label);
            }
        }
    }

    /// Adds the answer to a request, from every role that is asked it anywhere in the program.
    fn answer(&mut self, request: &str) {
        let program = self.program;
        let asked = program
            .instructions()
            .filter_map(|instruction| instruction.kind.asked())
            .filter(|(_, name)| ***name == *request);
        for role in asked.filter_map(|(role, _)| program.roles.get(role)) {
            self.flow.join(&role_id(&role.name), self.here, "", EdgeKind::Answers);
        }
    }

    /// Adds a request to a role, which runs agents from a state of a folder on, if there is one.
    fn ask(&mut self, kind: &InstructionKind, folder: Option<&str>) {
        let Some((role, request)) = kind.asked() else { return };
        let Some(role) = self.program.roles.get(role).map(|role| role_id(&role.name)) else {
            return;
        };
        let id = folder.map(|state| format!("/folder/{state}"));
        if let Some((id, state)) = id.as_deref().zip(folder) {
            self.flow.place(id, state, PlaceKind::Graph);
        }
        self.lead(&role, request, EdgeKind::Asks);
        if let Some(id) = id {
            self.flow.join(&role, &id, "run-folder", EdgeKind::Forks);
        }
    }
}

/// Returns a condition in few words.
fn condition_label(condition: &ProgramCondition, program: &Program) -> String {
    let all = |conditions: &[ProgramCondition], word: &str| {
        let parts: Vec<String> =
            conditions.iter().map(|part| condition_label(part, program)).collect();
        parts.join(word)
    };
    match condition {
        ProgramCondition::Signal { label, key, equals, .. } => {
            let key = match key {
                Some(TextExpression::Text(key)) => format!(" {key}"),
                _ => String::new(),
            };
            let equals = equals.as_ref().map(|value| format!(" = {}", expression(value, program)));
            format!("{label}{key}{}", equals.unwrap_or_default())
        }
        ProgramCondition::Response { request, .. } => format!("{request} ended"),
        ProgramCondition::Matches { text, pattern } => {
            format!("{} ~ /{pattern}/", expression(text, program))
        }
        ProgramCondition::Equals { left, right } => {
            format!("{} = {}", expression(left, program), expression(right, program))
        }
        ProgramCondition::Verdict { verdict: TextExpression::Verdict(request), word } => {
            format!("{request}: {word}")
        }
        ProgramCondition::Verdict { word, .. } => word.clone(),
        ProgramCondition::After(millis) => format!("after {}", format_duration(*millis)),
        ProgramCondition::At(time) => format!("at {time}"),
        ProgramCondition::And(conditions) => all(conditions, " and "),
        ProgramCondition::Or(conditions) => all(conditions, " or "),
        ProgramCondition::Not(negated) => format!("not {}", condition_label(negated, program)),
    }
}

fn expression(shown: &TextExpression, program: &Program) -> String {
    let role = |number: usize| program.roles.get(number).map_or("", |role| &role.name);
    match shown {
        TextExpression::Text(text) => text.clone(),
        TextExpression::WorkflowId => "@workflow-id".to_owned(),
        TextExpression::Label => "@label".to_owned(),
        TextExpression::Branch => "@branch".to_owned(),
        TextExpression::Context(key) => format!("@context/{key}"),
        TextExpression::Bound(name) => format!("@{name}"),
        TextExpression::Signal { label, .. } => label.clone(),
        TextExpression::Response(name) => format!("response {name}"),
        TextExpression::Verdict(name) => format!("verdict {name}"),
        TextExpression::Together(all) => {
            let all: Vec<String> =
                all.iter().map(|(_, answer)| expression(answer, program)).collect();
            all.join(", ")
        }
        TextExpression::Feedback(number) => format!("feedback {}", role(*number)),
        TextExpression::Artifact(number) => format!("artifact {}", role(*number)),
        TextExpression::Field { answer, path } => format!("{} {path}", expression(answer, program)),
    }
}

#[cfg(test)]
mod tests;
