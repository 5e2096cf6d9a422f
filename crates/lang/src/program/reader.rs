//! The state of reading a program: it reads forms, and resolves the names of states, roles and facts.
//!
//! The fields and verdicts of answers that a program reads, and the check of the fields: `(response review :field verdict)`.

use std::collections::{BTreeMap, BTreeSet};

use crate::diagnostic::{FileDiagnostics, quoted};
use crate::output::{OutputSchema, SchemaField};
use crate::position::SourcePlace;
use crate::program::checked_program::{
    InstructionKind, Program, ProgramRole, ProgramSymbol, SoughtFacts, TextExpression,
};
use crate::program::definitions::RequestGroups;
use crate::program::files::ProgramFiles;
use crate::program::parse::LineIndex;
use crate::program::parse::{Form, FormContent};
use crate::program::requests::RequestNames;
use crate::program::vocabulary::{ACTION, CONDITION, FormKind, INSTRUCTION, sort_of};
use crate::source::WorkflowSource;

/// The longest name, in bytes.
const MAX_NAME_BYTES: usize = 100;

/// The state of reading a program.
pub(super) struct ProgramReader<'a> {
    pub(super) text: &'a str,
    pub(super) lines: &'a LineIndex<'a>,
    pub(super) source: &'a dyn WorkflowSource,
    pub(super) report: FileDiagnostics,
    /// The numbers of the states, by name.
    pub(super) states: BTreeMap<String, usize>,
    /// The numbers of the roles, by name.
    pub(super) roles: BTreeMap<String, usize>,
    /// The labels of the facts that are read.
    pub(super) labels: BTreeSet<String>,
    /// The facts of these labels that can matter.
    pub(super) facts: Vec<SoughtFacts>,
    /// The keys of the states of other runs that are looked at.
    pub(super) state_keys: Vec<TextExpression>,
    /// The keys of the context that are needed.
    pub(super) context: BTreeSet<String>,
    /// True while the condition of a wait is read.
    pub(super) in_wait: bool,
    /// The files that the text is made of.
    pub(super) files: Option<&'a ProgramFiles>,
    /// The names of the texts and lists that are defined.
    pub(super) defined: BTreeSet<String>,
    /// The names of the elements of `for-each`.
    pub(super) variables: BTreeSet<String>,
    /// The requests of the elements of `for-each`.
    pub(super) groups: RequestGroups,
    /// The number of loops around the instruction that is read.
    pub(super) loops: usize,
    /// True if it needs a branch.
    pub(super) needs_branch: bool,
    /// The names of taken payloads; `placeholders` are the uses of such names.
    pub(super) taken: BTreeSet<ProgramSymbol>,
    pub(super) placeholders: Vec<(ProgramSymbol, SourcePlace)>,
    pub(super) requests: RequestNames,
    /// The fields of answers that are read.
    pub(super) answer_fields: Vec<AnswerField>,
    /// The verdicts that are read.
    pub(super) verdicts: Vec<VerdictUse>,
}

impl<'a> ProgramReader<'a> {
    pub(super) fn new(
        text: &'a str,
        lines: &'a LineIndex<'a>,
        source: &'a dyn WorkflowSource,
        report: FileDiagnostics,
    ) -> Self {
        Self {
            text,
            lines,
            source,
            report,
            states: BTreeMap::new(),
            roles: BTreeMap::new(),
            labels: BTreeSet::new(),
            facts: Vec::new(),
            state_keys: Vec::new(),
            context: BTreeSet::new(),
            in_wait: false,
            files: None,
            defined: BTreeSet::new(),
            variables: BTreeSet::new(),
            groups: RequestGroups::new(),
            loops: 0,
            needs_branch: false,
            taken: BTreeSet::new(),
            placeholders: Vec::new(),
            requests: RequestNames::default(),
            answer_fields: Vec::new(),
            verdicts: Vec::new(),
        }
    }

    /// Reads the name of a form of this kind, and its content. A misspelled form is read as the form that was meant,
    /// so that all further mistakes are found, and no others.
    pub(super) fn head<'f>(
        &mut self,
        form: &'f Form,
        kind: &FormKind,
    ) -> Option<(&'static str, &'f [Form])> {
        let FormContent::List(forms) = &form.content else {
            self.other(form, &format!("{} such as {}", kind.what, kind.like));
            return None;
        };
        let Some((first, rest)) = forms.split_first() else {
            let why = format!("this list is empty; write {} such as {}", kind.what, kind.like);
            self.report.error(form.at, "SX205", why);
            return None;
        };
        match &first.content {
            FormContent::Symbol(name) => match kind.names.iter().find(|known| *known == name) {
                Some(known) => Some((known, rest)),
                None => self.unknown(form.at, name, kind).map(|meant| (meant, rest)),
            },
            FormContent::Wrong => None,
            _ => {
                let why = format!(
                    "{} begins with its name, as {} does, and not with {}",
                    kind.what,
                    kind.like,
                    first.described()
                );
                self.report.error(first.at, "SX202", why);
                None
            }
        }
    }

    /// Reports a form that is unknown or in the wrong position; returns the name to read it as.
    fn unknown(&mut self, at: SourcePlace, name: &str, wanted: &FormKind) -> Option<&'static str> {
        let shown = quoted(name);
        let Some(is) = sort_of(name) else {
            let names = || wanted.names.join(", ");
            let hint = self.report.hint(name, wanted.names.iter().copied(), || {
                format!("; {} is one of {}", wanted.what, names())
            });
            let meant = self.report.slip(name, wanted.names.iter().copied());
            self.report.error(at, "SX202", format!("unknown form {shown}{hint}"));
            return meant;
        };
        let todo = match (is.what, wanted.what) {
            (what, instruction) if what == ACTION.what && instruction == INSTRUCTION.what => {
                format!("write `(action ({name} …))`")
            }
            (what, todo)
                if what == CONDITION.what && [INSTRUCTION.what, ACTION.what].contains(&todo) =>
            {
                format!("write `(wait ({name} …))`")
            }
            (_, action) if action == ACTION.what => {
                "`action` contains actions, `wait` and `await`; write it after the action"
                    .to_owned()
            }
            _ => format!("write {} such as {}", wanted.what, wanted.like),
        };
        let is = is.what;
        self.report.error(
            at,
            "SX211",
            format!("{shown} is {is}, which is not allowed here; {todo}"),
        );
        let is_done = |what| [INSTRUCTION.what, ACTION.what].contains(&what);
        let both = is_done(is) && is_done(wanted.what);
        sort_of(name)?.names.iter().copied().find(|known| both && *known == name)
    }

    /// Returns a line for a message.
    pub(super) fn line(&self, at: SourcePlace) -> String {
        self.files.map_or_else(|| format!("line {}", at.line), |files| files.line(at))
    }

    /// Reports that another form is expected here.
    pub(super) fn other(&mut self, form: &Form, wanted: &str) {
        if !form.is_wrong() {
            let why = format!("write {wanted} here, not {}", form.described());
            self.report.error(form.at, "SX207", why);
        }
    }

    /// Reads a form that has to be a text.
    pub(super) fn text<'f>(&mut self, form: &'f Form, wanted: &str) -> Option<&'f str> {
        let text = form.text();
        if text.is_none() {
            self.other(form, wanted);
        }
        text
    }

    /// Reads a name: a text that is not empty, has no control characters, and is at most [`MAX_NAME_BYTES`] long.
    pub(super) fn name<'f>(&mut self, form: &'f Form, wanted: &str) -> Option<&'f str> {
        let name = self.text(form, wanted)?;
        let why = if name.trim().is_empty() {
            "it is empty"
        } else if name.chars().any(char::is_control) {
            "it has a line break or a control character"
        } else if name.len() > MAX_NAME_BYTES {
            "it has more than 100 bytes"
        } else {
            return Some(name);
        };
        self.report.error(form.at, "SX312", format!("{} cannot be {wanted}: {why}", quoted(name)));
        None
    }

    /// Reads the name of a state, and returns its number.
    pub(super) fn state(&mut self, form: &Form) -> Option<usize> {
        let name = self.name(form, "the name of a state")?;
        let found = self.states.get(name).copied();
        if found.is_none() {
            let names = self.states.keys().map(String::as_str);
            let hint = self.report.hint(name, names, || "; add it or name another".to_owned());
            let why = format!("unknown state {}{hint}", quoted(name));
            self.report.error(form.at, "SX304", why);
        }
        found
    }

    /// Reads the name of a role, and returns its number.
    pub(super) fn role(&mut self, form: &Form) -> Option<usize> {
        let name = self.name(form, "the name of a role")?;
        let found = self.roles.get(name).copied();
        if found.is_none() {
            let names = self.roles.keys().map(String::as_str);
            let hint = if self.variables.contains(name) {
                format!("; did you mean {}?", quoted(&format!("@{name}")))
            } else {
                self.report.hint(name, names, || "; add it to `roles`".to_owned())
            };
            let why = format!("unknown role {}{hint}", quoted(name));
            self.report.error(form.at, "SX305", why);
        }
        found
    }
}

/// A field of an answer that a program reads.
pub(super) struct AnswerField {
    /// The answer.
    pub(super) of: TextExpression,
    /// The path of the field in the answer.
    pub(super) path: String,
    /// The place of the path.
    pub(super) at: SourcePlace,
}

/// A read of a verdict.
pub(super) struct VerdictUse {
    /// The request whose answer has it.
    pub(super) request: ProgramSymbol,
    /// The word it is compared with.
    pub(super) word: Option<String>,
    /// The place of the word, or of the verdict.
    pub(super) at: SourcePlace,
}

/// Reports the fields that no answer has, and those that an answer may lack.
pub(super) fn check(program: &Program, fields: &[AnswerField], report: &mut FileDiagnostics) {
    for field in fields {
        match prompt_of(program, &field.of).map(|prompt| has_field(prompt, &field.path)) {
            Some(Err(why)) => report.error(field.at, "SX221", why),
            Some(Ok(false)) => {
                let why = format!(
                    "{} is not `required` by the schema; an answer without it fails the program",
                    quoted(&field.path)
                );
                report.warning(field.at, "SX407", why);
            }
            Some(Ok(true)) | None => {}
        }
    }
}

/// The prompt whose answer has a field: the role that is asked, and the schema.
type AnsweredPrompt<'program> = (&'program ProgramRole, Option<&'program OutputSchema>);

/// Returns the prompt that is answered; `None` for the result of a folder, which has its own form.
fn prompt_of<'program>(
    program: &'program Program,
    answer: &TextExpression,
) -> Option<AnsweredPrompt<'program>> {
    let all = program.instructions();
    let mut kinds = all.map(|instruction| &instruction.kind);
    match answer {
        TextExpression::Response(request) => kinds.find_map(|kind| match kind {
            InstructionKind::Send(send) if send.request == *request => {
                let role = program.roles.get(send.role)?;
                Some((role, send.output.as_ref().or(role.output.as_ref())))
            }
            _ => None,
        }),
        TextExpression::Feedback(role) => {
            let is_other = |kind: &InstructionKind| match kind {
                InstructionKind::RunFolder(run) => run.role == *role,
                InstructionKind::Send(send) => send.role == *role && send.output.is_some(),
                _ => false,
            };
            let role = program.roles.get(*role)?;
            if kinds.any(is_other) { None } else { Some((role, role.output.as_ref())) }
        }
        _ => None,
    }
}

/// Returns whether each answer has the field.
fn has_field((role, schema): AnsweredPrompt<'_>, path: &str) -> Result<bool, String> {
    let (name, shown) = (quoted(&role.name), quoted(path));
    let Some(schema) = schema else {
        return Err(format!(
            "the role {name} has no `:output`, so its answers have no fields; give it a schema, such as `:output verdict.schema.json`"
        ));
    };
    match schema.field(path) {
        SchemaField::Known { is_required, .. } => Ok(is_required),
        SchemaField::Open => Ok(true),
        SchemaField::Missing { similar } => {
            let hint = similar.map_or_else(
                || "; use a field of that schema".to_owned(),
                |similar| format!("; did you mean {}?", quoted(similar)),
            );
            Err(format!("the schema of the role {name} has no field {shown}{hint}"))
        }
    }
}
