//! Drawings of programs: their states, the roles they ask, and the signals they wait for.
//!
//! A state is one box, however much it does. An edge out of its loops and branches is labelled with the condition
//! of the innermost arm; an edge from a signal marks a wait for it.
//!
//! The labels of a program's conditions, kept short.

use crate::drawing::picture::{DrawingEdge, EdgeKind, NodeKind, WorkflowDrawing};
use crate::program::checked_program::{
    Instruction, InstructionKind, Program, ProgramCondition, RunFolder, SendPrompt, StartWorkflow,
    TextExpression,
};
use crate::program::walk::{falls_through, instructions};
use crate::program::ways::{ProgramWay, ProgramWayCase, failures, ways};
use raymond_model::time::format_duration;

/// The ids of the beginning and the ends; no state has such a name.
const START: &str = "/start";
const END: &str = "/end";
const FAILED: &str = "/failed";

/// Draws a program.
pub fn draw(program: &Program, title: &str) -> WorkflowDrawing {
    let mut drawing = WorkflowDrawing { title: title.to_owned(), ..WorkflowDrawing::default() };
    drawing.node(START, "", NodeKind::Start);
    for state in &program.states {
        drawing.node(&state.name, &state.name, kind(&state.body));
    }
    for role in &program.roles {
        let label = if *role.handle == *role.name {
            role.name.to_string()
        } else {
            format!("{}\n{}", role.name, role.handle)
        };
        drawing.node(&role_id(&role.name), &label, NodeKind::Agent);
    }
    let mut picture = ProgramDrawingBuilder { program, drawing, state: 0 };
    if let Some(first) = program.states.first() {
        picture.edge(START, &first.name, "", EdgeKind::Goes);
    }
    for (number, state) in program.states.iter().enumerate() {
        picture.state = number;
        picture.body(&state.body, None);
        if falls_through(&state.body) {
            picture.falls_through(number + 1);
        }
    }
    picture.drawing
}

/// Returns the kind of a state's node: a state that only ends is an end itself.
fn kind(body: &[Instruction]) -> NodeKind {
    match body.last().map(|last| &last.kind) {
        Some(InstructionKind::Terminal { failed: false, .. }) => NodeKind::Success,
        Some(InstructionKind::Terminal { failed: true, .. }) => NodeKind::Failure,
        _ => NodeKind::State,
    }
}

fn role_id(name: &str) -> String {
    format!("/role/{name}")
}

struct ProgramDrawingBuilder<'a> {
    program: &'a Program,
    drawing: WorkflowDrawing,
    /// The number of the state that is drawn.
    state: usize,
}

impl<'a> ProgramDrawingBuilder<'a> {
    fn edge(&mut self, from: &str, to: &str, label: &str, kind: EdgeKind) {
        if let (Some(from), Some(to)) = (self.drawing.find(from), self.drawing.find(to)) {
            self.drawing.edge(DrawingEdge {
                from,
                to,
                label: label.to_owned(),
                kind,
                certain: true,
            });
        }
    }

    /// Returns the name of the state that is drawn.
    fn here(&self) -> &'a str {
        self.program.states.get(self.state).map_or("", |state| &state.name)
    }

    fn lead_to(&mut self, number: usize, label: &str, kind: EdgeKind) {
        if let Some(state) = self.program.states.get(number) {
            self.edge(self.here(), &state.name, label, kind);
        }
    }

    fn falls_through(&mut self, next: usize) {
        if next < self.program.states.len() {
            self.lead_to(next, "", EdgeKind::Goes);
        } else {
            self.drawing.node(END, "end", NodeKind::End);
            self.edge(self.here(), END, "", EdgeKind::Ends);
        }
    }

    /// Draws the instructions of a block; `arm` is the condition under which the block is entered.
    fn body(&mut self, body: &'a [Instruction], arm: Option<&str>) {
        for instruction in body {
            self.instruction(&instruction.kind, arm);
        }
    }

    fn instruction(&mut self, kind: &'a InstructionKind, arm: Option<&str>) {
        match kind {
            InstructionKind::Wait(wait) => {
                self.waited_for(&wait.condition);
                self.named_ways(kind);
            }
            InstructionKind::Action(body) => self.body(body, arm),
            InstructionKind::Loop(repeat) => {
                self.body(&repeat.body, arm);
                if falls_through(&repeat.body) {
                    self.lead_to(self.state, "loop", EdgeKind::Goes);
                }
                self.named_ways(kind);
            }
            InstructionKind::ForEach(bodies) => {
                for one in bodies {
                    self.body(&one.body, arm);
                }
            }
            InstructionKind::Break => {}
            InstructionKind::Continue => self.lead_to(self.state, "loop", EdgeKind::Goes),
            InstructionKind::Branch { arms, otherwise } => {
                for one in arms {
                    let said = condition_label(&one.condition, self.program);
                    self.body(&one.body, Some(&said));
                    self.draw_ways(failures(&one.condition));
                }
                if let Some(body) = otherwise {
                    self.body(body, Some("otherwise"));
                }
            }
            InstructionKind::Goto(to) => {
                self.lead_to(*to, &shortened(arm.unwrap_or_default()), EdgeKind::Goes);
            }
            InstructionKind::Terminal { failed, .. } => self.terminal(*failed, arm),
            InstructionKind::Send(send) => self.send(send),
            InstructionKind::RunFolder(run) => self.run_folder(run),
            InstructionKind::Assert { label, .. } => self.fact(label, "asserts"),
            InstructionKind::Retract { label, .. } => self.fact(label, "retracts"),
            InstructionKind::Log(template) => self.expressions(&template.arguments),
            InstructionKind::UserInput(input) => {
                self.expressions(&input.prompt.arguments);
                self.named_ways(kind);
            }
            InstructionKind::StartWorkflow(start) => {
                self.start_workflow(start);
                self.named_ways(kind);
                self.expressions(start.expressions());
            }
            InstructionKind::Run(run) => {
                self.expressions(&run.arguments);
                self.named_ways(kind);
            }
        }
    }

    /// Draws the ways from an instruction to other states, but for a `goto`, whose label is that of its arm.
    fn named_ways(&mut self, kind: &'a InstructionKind) {
        self.draw_ways(ways(kind));
    }

    fn draw_ways(&mut self, ways: Vec<ProgramWay<'a>>) {
        for way in ways {
            let (label, kind) = match way.case {
                ProgramWayCase::Goto | ProgramWayCase::Timeout(None) => continue,
                ProgramWayCase::AfterLastRound => {
                    ("after the last round".to_owned(), EdgeKind::Goes)
                }
                ProgramWayCase::Timeout(Some(millis)) => {
                    (format!("after {}", format_duration(millis)), EdgeKind::Fails)
                }
                ProgramWayCase::RequestFailure(request) => {
                    (format!("{request} fails"), EdgeKind::Fails)
                }
                ProgramWayCase::CommandFailure(command) => {
                    (format!("{} fails", shortened(command)), EdgeKind::Fails)
                }
                ProgramWayCase::StartFailure(program) => {
                    (format!("{} is not started", shortened(program)), EdgeKind::Fails)
                }
            };
            self.lead_to(way.to, &label, kind);
        }
    }

    /// Draws the signals and the answers that a condition waits for.
    fn waited_for(&mut self, condition: &'a ProgramCondition) {
        match condition {
            ProgramCondition::Signal { label, .. } => self.signal(label),
            ProgramCondition::Response { request, .. } => self.answer(request),
            ProgramCondition::And(conditions) | ProgramCondition::Or(conditions) => {
                for one in conditions {
                    self.waited_for(one);
                }
            }
            ProgramCondition::Not(one) => self.waited_for(one),
            ProgramCondition::Matches { .. }
            | ProgramCondition::Equals { .. }
            | ProgramCondition::Verdict { .. }
            | ProgramCondition::After(_)
            | ProgramCondition::At(_) => {}
        }
    }

    fn signal(&mut self, label: &str) {
        let id = format!("/signal/{label}");
        self.drawing.node(&id, label, NodeKind::Signal);
        self.edge(&id, self.here(), "", EdgeKind::Consults);
    }

    fn fact(&mut self, label: &str, what: &str) {
        let id = format!("/signal/{label}");
        self.drawing.node(&id, label, NodeKind::Signal);
        self.edge(self.here(), &id, what, EdgeKind::Consults);
    }

    /// Draws the answer to a request, from every role that is asked it anywhere in the program.
    fn answer(&mut self, request: &str) {
        let program = self.program;
        let all = program.states.iter().flat_map(|state| instructions(&state.body));
        let asked = all.filter_map(|one| match &one.kind {
            InstructionKind::Send(send) if *send.request == *request => Some(send.role),
            InstructionKind::RunFolder(run) if *run.request == *request => Some(run.role),
            _ => None,
        });
        for role in asked.filter_map(|role| program.roles.get(role)) {
            self.edge(&role_id(&role.name), self.here(), "", EdgeKind::Answers);
        }
    }

    fn send(&mut self, send: &'a SendPrompt) {
        if let Some(role) = self.program.roles.get(send.role) {
            self.edge(self.here(), &role_id(&role.name), &send.request, EdgeKind::Asks);
        }
        self.expressions(&send.template.arguments);
    }

    fn run_folder(&mut self, run: &'a RunFolder) {
        let Some(role) = self.program.roles.get(run.role) else { return };
        let state = match &run.folder {
            Some(folder) => format!("{folder}/{}", run.start),
            None => run.start.to_string(),
        };
        let id = format!("/folder/{state}");
        self.drawing.node(&id, &state, NodeKind::Graph);
        self.edge(self.here(), &role_id(&role.name), &run.request, EdgeKind::Asks);
        self.edge(&role_id(&role.name), &id, "run-folder", EdgeKind::Forks);
        self.expressions(run.input.as_slice());
    }

    /// Draws the program that is started as a run of its own.
    fn start_workflow(&mut self, start: &'a StartWorkflow) {
        let id = format!("/workflow/{}", start.program);
        self.drawing.node(&id, &start.program, NodeKind::Graph);
        self.edge(self.here(), &id, "start-workflow", EdgeKind::Forks);
    }

    /// Draws the signals whose payloads are used.
    fn expressions(&mut self, expressions: impl IntoIterator<Item = &'a TextExpression>) {
        for expression in expressions {
            if let TextExpression::Signal { label, .. } = expression {
                self.signal(label);
            }
        }
    }

    fn terminal(&mut self, failed: bool, arm: Option<&str>) {
        let last = self.program.states.get(self.state).and_then(|state| state.body.last());
        if arm.is_none()
            && last.is_some_and(|last| matches!(last.kind, InstructionKind::Terminal { .. }))
        {
            return;
        }
        let label = shortened(arm.unwrap_or_default());
        if failed {
            self.drawing.node(FAILED, "failed", NodeKind::Failure);
            self.edge(self.here(), FAILED, &label, EdgeKind::Fails);
        } else {
            self.drawing.node(END, "end", NodeKind::End);
            self.edge(self.here(), END, &label, EdgeKind::Ends);
        }
    }
}

/// The maximum length of a label, in characters.
const MAX_LABEL_CHARS: usize = 40;

/// Returns a condition in few words.
pub(super) fn condition_label(condition: &ProgramCondition, program: &Program) -> String {
    let all = |conditions: &[ProgramCondition], word: &str| {
        let parts: Vec<String> =
            conditions.iter().map(|one| condition_label(one, program)).collect();
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
        ProgramCondition::Equals { one, other } => {
            format!("{} = {}", expression(one, program), expression(other, program))
        }
        ProgramCondition::Verdict { verdict: TextExpression::Verdict(request), word } => {
            format!("{request}: {word}")
        }
        ProgramCondition::Verdict { word, .. } => word.clone(),
        ProgramCondition::After(millis) => format!("after {}", format_duration(*millis)),
        ProgramCondition::At(time) => format!("at {time}"),
        ProgramCondition::And(conditions) => all(conditions, " and "),
        ProgramCondition::Or(conditions) => all(conditions, " or "),
        ProgramCondition::Not(one) => format!("not {}", condition_label(one, program)),
    }
}

fn expression(said: &TextExpression, program: &Program) -> String {
    let role = |number: usize| program.roles.get(number).map_or("", |role| &role.name);
    match said {
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
            let all: Vec<String> = all.iter().map(|(_, one)| expression(one, program)).collect();
            all.join(", ")
        }
        TextExpression::Feedback(number) => format!("feedback {}", role(*number)),
        TextExpression::Artifact(number) => format!("artifact {}", role(*number)),
        TextExpression::Field { answer, path } => format!("{} {path}", expression(answer, program)),
    }
}

/// Returns a text on one line, cut to the length of a label.
pub(super) fn shortened(text: &str) -> String {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match text.char_indices().nth(MAX_LABEL_CHARS) {
        Some((cut, _)) => format!("{}…", &text[..cut]),
        None => text,
    }
}

#[cfg(test)]
mod tests;
