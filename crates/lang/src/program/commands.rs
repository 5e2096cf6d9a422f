//! Reads `run`, the instructions of a state, and the actions among them.

use raymond_model::id::{Folder, StateKind, StateName};

use super::checked_program::{
    BranchArm, Instruction, InstructionKind, LoopInstruction, ParallelBody, Program,
    ProgramCommand, ProgramSymbol, RunFolder, RunRepetition, SendPrompt, TextExpression,
    TextTemplate, expressions, file_at,
};
use super::conditions::{ConditionPosition, is_bare_verdict};
use super::reader::{ACTION, ARM, FormFields, FormKind, INSTRUCTION, ProgramReader, VALUE};
use crate::diagnostic::{FileDiagnostics, quoted};
use crate::program::parse::{Form, FormContent};
use crate::source::{SourcePlace, WorkflowSource, is_state};

/// The values of a command besides its output: `@NAME/exit-code`.
pub(super) const OUTPUT_PARTS: [&str; 3] = ["exit-code", "stderr", "skipped"];

impl ProgramReader<'_> {
    /// Reads `run`.
    pub(super) fn run_command(&mut self, fields: &FormFields<'_>) -> Option<ProgramCommand> {
        self.exactly(fields, []);
        let command = self.need(fields, "command").and_then(|form| {
            let wanted = "the text of the command; a value goes into `:args` and is `\"$1\"` in the command;";
            let text = self.text(form, wanted)?;
            if text.trim().is_empty() {
                return self.refuse(form.at, "SX205", "the command is empty; write one");
            }
            if text.contains("~a") && fields.get("args").is_some() {
                let why = "a command has no places `~a`, because the shell would read what is put there as code; write `\"$1\"` for the first value of `:args`";
                return self.refuse(form.at, "SX212", why);
            }
            Some(text.to_owned())
        });
        let arguments = self.arguments(fields).and_then(|forms| {
            let values: Vec<_> = forms.into_iter().map(|form| self.value(form)).collect();
            values.into_iter().collect::<Option<Vec<_>>>()
        });
        let cwd = fields.get("cwd").and_then(|form| self.directory(form));
        let timeout_ms = self.optional(fields, "timeout", Self::duration);
        let repetition = self.repetition(fields);
        let bind = self.optional(fields, "as", |reader, form| reader.taken_as(form, &OUTPUT_PARTS));
        let on_error = self.optional(fields, "on-error", Self::state);
        Some(ProgramCommand {
            command: command?,
            arguments: arguments?,
            cwd,
            timeout_ms: timeout_ms?,
            repetition: repetition?,
            bind: bind?,
            on_error: on_error?,
        })
    }

    /// Reads the meaning of a repetition: `:unless`, `:once` or `:idempotent`.
    fn repetition(&mut self, fields: &FormFields<'_>) -> Option<RunRepetition> {
        let given =
            ["unless", "once", "idempotent"].map(|key| fields.get(key).map(|form| (key, form)));
        let mut given = given.into_iter().flatten();
        let Some((key, form)) = given.next() else { return Some(RunRepetition::Unknown) };
        if let Some((other, form)) = given.next() {
            let why = format!(
                "{} and {} contradict each other; write one of them",
                quoted(&format!(":{key}")),
                quoted(&format!(":{other}"))
            );
            return self.refuse(form.at, "SX204", why);
        }
        if key == "unless" {
            let test = self.text(form, "a command that succeeds if the other one was done")?;
            return Some(RunRepetition::Unless(test.to_owned()));
        }
        Some(match self.boolean(form)? {
            false => RunRepetition::Unknown,
            true if key == "once" => RunRepetition::Once,
            true => RunRepetition::Idempotent,
        })
    }
}

/// Warns of each command whose failure is not noticed: its output has a name, but its exit code is not read.
pub(super) fn check(program: &Program, report: &mut FileDiagnostics) {
    let all = || program.instructions();
    let is_read = |name: &str| {
        let code = format!("{name}/exit-code");
        let reads = |value: &&TextExpression| matches!(value, TextExpression::Bound(symbol) if **symbol == *code);
        all().flat_map(|instruction| expressions(&instruction.kind)).any(|value| reads(&value))
    };
    let mut warned = Vec::new();
    for instruction in all() {
        let InstructionKind::Run(ProgramCommand { bind: Some(name), on_error: None, .. }) =
            &instruction.kind
        else {
            continue;
        };
        if !is_read(name) && !warned.contains(&instruction.at) {
            warned.push(instruction.at);
            let why = format!(
                "nothing checks {}, so a failure of this command goes unnoticed; check it in a branch, or write `:on-error STATE`",
                quoted(&format!("@{name}/exit-code"))
            );
            report.warning(instruction.at, "SX410", why);
        }
    }
}

// Reads the instructions of a state, and the actions among them.

impl ProgramReader<'_> {
    /// Reads the body of a state, a loop, or an arm.
    pub(super) fn body(&mut self, forms: &[&Form]) -> Vec<Instruction> {
        forms.iter().filter_map(|form| self.instruction(form, &INSTRUCTION)).collect()
    }

    /// Reads a body as a separate block.
    fn block(&mut self, forms: &[&Form]) -> Vec<Instruction> {
        let before = self.requests.enter();
        let body = self.body(forms);
        self.requests.leave(before);
        body
    }

    fn instruction(&mut self, form: &Form, sort: &FormKind) -> Option<Instruction> {
        let (name, rest) = self.head(form, sort)?;
        let fields = self.fields(form.at, name, rest, sort.keywords_of(name));
        let kind = match name {
            "wait" | "await" => self.wait(&fields).map(InstructionKind::Wait),
            "action" => Some(self.action(&fields)),
            "loop" => self.loop_form(&fields),
            "break" => self.in_loop(&fields).map(|()| InstructionKind::Break),
            "continue" => self.in_loop(&fields).map(|()| InstructionKind::Continue),
            "branch" => Some(self.branch(&fields)),
            "for-each" => Some(self.for_each(&fields)),
            "goto" => {
                let [state] = self.exactly(&fields, ["the name of a state"])?;
                self.state(state).map(InstructionKind::Goto)
            }
            "terminal" => self.terminal(&fields),
            "send-prompt" => self.send_prompt(&fields).map(InstructionKind::Send),
            "run-folder" => self.run_folder(&fields).map(InstructionKind::RunFolder),
            "user-input" => self.user_input(&fields).map(InstructionKind::UserInput),
            "run" => self.run_command(&fields).map(InstructionKind::Run),
            "start-workflow" => self.start_workflow(&fields).map(InstructionKind::StartWorkflow),
            "assert" => self.assert(&fields),
            "retract" => self.retract(&fields),
            _ => self.log(&fields),
        };
        Some(Instruction { kind: kind?, at: form.at })
    }

    /// Reports a form that is empty, but must not be.
    fn filled(&mut self, fields: &FormFields<'_>, wanted: &str) {
        if fields.values.is_empty() {
            let name = quoted(fields.name);
            let why = format!("this {name} is empty; write {wanted} in it");
            self.report.error(fields.at, "SX209", why);
        }
    }

    fn action(&mut self, fields: &FormFields<'_>) -> InstructionKind {
        self.filled(fields, "an action such as `(log \"…\")`");
        let actions = fields.values.iter().filter_map(|form| self.instruction(form, &ACTION));
        InstructionKind::Action(actions.collect())
    }

    fn loop_form(&mut self, fields: &FormFields<'_>) -> Option<InstructionKind> {
        self.filled(fields, "an instruction such as `(goto STATE)`");
        let max = self.optional(fields, "max", Self::max_rounds);
        let on_max = self.optional(fields, "on-max", Self::state);
        self.loops += 1;
        let body = self.block(&fields.values);
        self.loops -= 1;
        Some(InstructionKind::Loop(LoopInstruction { body, max: max?, on_max: on_max? }))
    }

    /// Reads `for-each`, whose values are lists of an element and its instructions by now.
    fn for_each(&mut self, fields: &FormFields<'_>) -> InstructionKind {
        let loops = std::mem::take(&mut self.loops);
        let mut bodies = Vec::new();
        for form in &fields.values {
            let FormContent::List(parts) = &form.content else { continue };
            let Some((element, body)) = parts.split_first() else { continue };
            let body = self.block(&body.iter().collect::<Vec<_>>());
            let element = element.text().unwrap_or_default().to_owned();
            bodies.push(ParallelBody { element, body });
        }
        self.loops = loops;
        InstructionKind::ForEach(bodies)
    }

    fn max_rounds(&mut self, form: &Form) -> Option<u64> {
        let wanted = "a whole number greater than 0";
        let max = self.text(form, wanted)?.parse().ok().filter(|max| *max > 0);
        if max.is_none() {
            self.other(form, wanted);
        }
        max
    }

    /// Reads `break` and `continue`, which stand in a loop.
    fn in_loop(&mut self, fields: &FormFields<'_>) -> Option<()> {
        self.exactly(fields, [])?;
        if self.loops > 0 {
            return Some(());
        }
        let why = format!("{} is not in a loop; write `(goto STATE)`", quoted(fields.name));
        self.refuse(fields.at, "SX211", why)
    }

    fn branch(&mut self, fields: &FormFields<'_>) -> InstructionKind {
        let (mut arms, mut otherwise) = (Vec::new(), None);
        let mut last: Option<SourcePlace> = None;
        for form in &fields.values {
            let Some((name, rest)) = self.head(form, &ARM) else { continue };
            let arm = self.fields(form.at, name, rest, &[]);
            if name == "on" {
                self.not_last(last.take());
                arms.extend(self.arm(&arm));
            } else if otherwise.is_none() {
                last = Some(form.at);
                otherwise = Some(self.block(&arm.values));
            } else {
                let why = "a branch has one `otherwise`; make an `(on CONDITION …)` of it";
                self.report.error(form.at, "SX204", why);
                self.block(&arm.values);
            }
        }
        if !fields.values.iter().any(|form| matches!(form.content, FormContent::List(_))) {
            let why = "`branch` needs at least one `(on CONDITION …)`";
            self.report.error(fields.at, "SX205", why);
        }
        InstructionKind::Branch { arms, otherwise }
    }

    /// Reports an `otherwise` that an arm follows.
    fn not_last(&mut self, otherwise: Option<SourcePlace>) {
        if let Some(at) = otherwise {
            let why =
                "`otherwise` must be last in a branch; raymond never reads what comes after it";
            self.report.error(at, "SX210", why);
        }
    }

    /// Reads `on`.
    fn arm(&mut self, fields: &FormFields<'_>) -> Option<BranchArm> {
        let Some((condition, body)) = fields.values.split_first() else {
            let why = "`on` needs a condition, such as `(signal LABEL)`";
            return self.refuse(fields.at, "SX205", why);
        };
        // `(on (verdict look) APPROVE …)` means `(on (verdict look APPROVE) …)`.
        let word = body.first().filter(|word| is_bare_verdict(condition) && word.text().is_some());
        let condition = match word {
            Some(word) => self.verdict_of(condition, word),
            None => self.condition(condition, ConditionPosition::Arm),
        };
        let body = self.block(&body[usize::from(word.is_some())..]);
        Some(BranchArm { condition: condition?, body })
    }

    fn terminal(&mut self, fields: &FormFields<'_>) -> Option<InstructionKind> {
        self.exactly(fields, []);
        let result = self.optional(fields, "result", Self::value);
        let status = fields.get("status").map_or(Some("completed"), |form| {
            self.text(form, "`completed` or `failed`").filter(|status| {
                let known = ["completed", "failed"].contains(status);
                if !known {
                    self.other(form, "`completed` or `failed`");
                }
                known
            })
        });
        Some(InstructionKind::Terminal { failed: status? == "failed", result: result? })
    }

    fn send_prompt(&mut self, fields: &FormFields<'_>) -> Option<SendPrompt> {
        self.exactly(fields, []);
        let role = self.need(fields, "agent").and_then(|form| self.role(form));
        let template = self.needed_template(fields, "template");
        let expect = self.optional(fields, "expect", Self::expected);
        let output = fields.get("output").and_then(|form| self.output(form));
        let request = self.request(fields);
        Some(SendPrompt {
            role: role?,
            template: template?,
            expect: expect?.unwrap_or_default(),
            output,
            request: request?,
        })
    }

    /// Reads the template that a keyword has to give, with the values for its places.
    pub(super) fn needed_template(
        &mut self,
        fields: &FormFields<'_>,
        key: &str,
    ) -> Option<TextTemplate> {
        let arguments = self.arguments(fields);
        let (form, arguments) = self.need(fields, key).zip(arguments)?;
        self.template(form, &arguments)
    }

    /// Returns the values for the places of a template.
    pub(super) fn arguments<'f>(&mut self, fields: &FormFields<'f>) -> Option<Vec<&'f Form>> {
        let Some(form) = fields.get("args") else { return Some(Vec::new()) };
        let value_name = |forms: &[Form]| match &forms.first()?.content {
            FormContent::Symbol(name) if VALUE.names.contains(&name.as_str()) => Some(name.clone()),
            _ => None,
        };
        match &form.content {
            FormContent::List(forms) => match value_name(forms) {
                None => return Some(forms.iter().collect()),
                Some(name) => self.other(form, &format!("a list of values, `(({name} …))`,")),
            },
            _ => self.other(form, "a list of values, such as `((response REQUEST) \"text\")`,"),
        }
        None
    }

    /// Reads the id of the request that is sent.
    fn request(&mut self, fields: &FormFields<'_>) -> Option<ProgramSymbol> {
        let Some(form) = fields.get("request-id") else { return Some(self.requests.send()) };
        let name = ProgramSymbol::from(self.name(form, "the id of a request")?);
        if let Err(before) = self.requests.declare(&name, form.at) {
            let why = format!(
                "the request {} is already sent in {}; give this one another id",
                quoted(&name),
                self.files.line(before)
            );
            return self.refuse(form.at, "SX303", why);
        }
        Some(name)
    }

    fn run_folder(&mut self, fields: &FormFields<'_>) -> Option<RunFolder> {
        self.exactly(fields, []);
        let role = self.need(fields, "agent").and_then(|form| self.role(form));
        let start = self.need(fields, "start").and_then(|form| self.start(form));
        let input = self.optional(fields, "input", Self::value);
        let request = self.request(fields);
        let (folder, start) = start?;
        Some(RunFolder { role: role?, folder, start, input: input?, request: request? })
    }

    /// Reads the first state of an agent, and its folder.
    fn start(&mut self, form: &Form) -> Option<(Option<Folder>, StateName)> {
        let path = self.name(form, "the file of a state, such as \"review/START.md\"")?;
        let found = self.find_start_state(path);
        found.map_err(|why| self.report.error(form.at, "SX311", why)).ok()
    }

    fn find_start_state(&self, path: &str) -> Result<(Option<Folder>, StateName), String> {
        let (folder, name) = file_at(path).map_err(|error| error.to_string())?;
        let no_state = || {
            format!(
                "{}: that is not a state: a state is a prompt, NAME.md, a graph, NAME.yaml, a program, NAME.lisp, or a script such as NAME.sh or any file that can be executed",
                quoted(path)
            )
        };
        if StateKind::of(&name).is_none() {
            return Err(no_state());
        }
        let found =
            |source: &dyn WorkflowSource| source.check(&name).map(|()| is_state(&name, source));
        let found = match &folder {
            Some(folder) => self.source.within(folder).and_then(|below| found(&*below)),
            None => found(self.source),
        };
        match found {
            Ok(true) => Ok((folder, name)),
            Ok(false) => Err(no_state()),
            Err(error) => Err(format!("{}: {}", quoted(path), error.reason())),
        }
    }

    fn assert(&mut self, fields: &FormFields<'_>) -> Option<InstructionKind> {
        let label = self.fact(fields);
        let key = self.optional(fields, "key", Self::value);
        let value = self.optional(fields, "value", Self::value);
        Some(InstructionKind::Assert { label: label?, key: key?, value: value? })
    }

    fn retract(&mut self, fields: &FormFields<'_>) -> Option<InstructionKind> {
        let label = self.fact(fields);
        let key = self.optional(fields, "key", Self::value);
        Some(InstructionKind::Retract { label: label?, key: key? })
    }

    fn log(&mut self, fields: &FormFields<'_>) -> Option<InstructionKind> {
        let Some((text, arguments)) = fields.values.split_first() else {
            return self.refuse(fields.at, "SX205", "`log` needs a text");
        };
        self.template(text, arguments).map(InstructionKind::Log)
    }
}
