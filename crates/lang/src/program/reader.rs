//! The state of reading a program: it reads forms and keywords, and resolves the names of states, roles and facts.

use std::collections::{BTreeMap, BTreeSet};

use granit_parser::ScalarStyle;

use crate::diagnostic::{FileDiagnostics, quoted};
use crate::output::{OutputSchema, SchemaField, schema_of};
use crate::program::checked_program::{
    InstructionKind, MatchedFacts, Program, ProgramRole, ProgramSymbol, TextExpression, WaitTimeout,
};
use crate::program::files::ProgramFiles;
use crate::program::parse::{Form, FormContent, LineIndex};
use crate::program::requests::RequestNames;
use crate::program::scopes::RequestGroups;
use crate::source::{SourcePlace, WorkflowSource};
use crate::turn_options::{KEYS, KEYWORDS, WrittenOptions, embed_files};
use crate::yaml::{YamlContent, YamlEntry, YamlScalar, YamlValue};

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
    /// What is checked once all has been read.
    pub(super) noted: NotedUses,
    /// True while the condition of a wait is read.
    pub(super) in_wait: bool,
    /// The files that the text is made of.
    pub(super) files: &'a ProgramFiles,
    /// The names of the texts and lists that are defined.
    pub(super) defined: BTreeSet<String>,
    /// The names of the elements of `for-each`.
    pub(super) variables: BTreeSet<String>,
    /// The requests of the elements of `for-each`.
    pub(super) groups: RequestGroups,
    /// The number of loops around the instruction that is read.
    pub(super) loops: usize,
    /// The names of taken payloads; `placeholders` are the uses of such names.
    pub(super) taken: BTreeSet<ProgramSymbol>,
    pub(super) placeholders: Vec<(ProgramSymbol, SourcePlace)>,
    pub(super) requests: RequestNames,
}

/// What the program reads and needs, as it is noted for the checks that come after reading.
#[derive(Default)]
pub(super) struct NotedUses {
    /// The labels of the facts that are read.
    pub(super) labels: BTreeSet<String>,
    /// The facts of these labels that can matter.
    pub(super) facts: Vec<MatchedFacts>,
    /// The keys of the states of other runs that are looked at.
    pub(super) state_keys: Vec<TextExpression>,
    /// The keys of the context that are needed.
    pub(super) context: BTreeSet<String>,
    /// True if it needs a branch.
    pub(super) needs_branch: bool,
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
        files: &'a ProgramFiles,
        report: FileDiagnostics,
    ) -> Self {
        Self {
            text,
            lines,
            source,
            report,
            states: BTreeMap::new(),
            roles: BTreeMap::new(),
            noted: NotedUses::default(),
            in_wait: false,
            files,
            defined: BTreeSet::new(),
            variables: BTreeSet::new(),
            groups: RequestGroups::new(),
            loops: 0,
            taken: BTreeSet::new(),
            placeholders: Vec::new(),
            requests: RequestNames::default(),
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
            return self.refuse(form.at, "SX205", why);
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
                self.refuse(first.at, "SX202", why)
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
        self.refuse(form.at, "SX312", format!("{} cannot be {wanted}: {why}", quoted(name)))
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

// The fields and verdicts of answers that a program reads, and the check of the fields:
// `(response review :field verdict)`.

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

// Splits a form into its values in order, and its keywords with their values.

/// The values and keywords of a form.
pub(super) struct FormFields<'f> {
    pub(super) name: &'f str,
    pub(super) at: SourcePlace,
    /// The values before and between the keywords.
    pub(super) values: Vec<&'f Form>,
    keys: Vec<(&'f str, Option<&'f Form>)>,
    /// True if something in it could not be read; missing parts are not reported then.
    broken: bool,
    /// True if it has an unknown keyword, which may be meant as a missing one.
    strange: bool,
    /// The values of misspelled keywords, by the keywords that were meant.
    slips: Vec<(&'f str, Option<&'f Form>)>,
}

impl<'f> FormFields<'f> {
    /// Returns the value of a keyword.
    pub(super) fn get(&self, key: &str) -> Option<&'f Form> {
        self.keys.iter().find(|(name, _)| *name == key)?.1
    }
}

impl ProgramReader<'_> {
    /// Reads a form that may have these keywords.
    pub(super) fn fields<'f>(
        &mut self,
        at: SourcePlace,
        name: &'f str,
        rest: &'f [Form],
        known: &[&'static str],
    ) -> FormFields<'f> {
        let mut fields = FormFields {
            name,
            at,
            values: Vec::new(),
            keys: Vec::new(),
            broken: false,
            strange: false,
            slips: Vec::new(),
        };
        let mut forms = rest.iter().peekable();
        while let Some(form) = forms.next() {
            match &form.content {
                FormContent::Keyword(key) => {
                    let value =
                        forms.next_if(|next| !matches!(next.content, FormContent::Keyword(_)));
                    self.keyword(&mut fields, key, form.at, value, known);
                }
                FormContent::Wrong => fields.broken = true,
                _ => fields.values.push(form),
            }
        }
        for (key, value) in std::mem::take(&mut fields.slips) {
            if !fields.keys.iter().any(|(name, _)| *name == key) {
                fields.keys.push((key, value));
            }
        }
        fields
    }

    fn keyword<'f>(
        &mut self,
        fields: &mut FormFields<'f>,
        key: &'f str,
        at: SourcePlace,
        value: Option<&'f Form>,
        known: &[&'static str],
    ) {
        let (name, shown) = (quoted(fields.name), quoted(&format!(":{key}")));
        if !known.contains(&key) {
            let otherwise = || match known {
                [] => "; it takes none".to_owned(),
                known => format!("; it takes :{}", known.join(", :")),
            };
            let meant = self.report.hint(key, known.iter().copied(), otherwise);
            let meant = meant.replace("mean `", "mean `:");
            let slip = self.report.slip(key, known.iter().copied());
            self.report.error(at, "SX203", format!("{name} has no keyword {shown}{meant}"));
            fields.strange |= slip.is_none();
            fields.slips.extend(slip.map(|meant| (meant, value)));
        } else if fields.keys.iter().any(|(name, _)| *name == key) {
            let why = format!("{shown} is given twice in this {name}; remove one of them");
            self.report.error(at, "SX204", why);
        } else {
            if value.is_none() {
                self.report.error(at, "SX205", format!("{shown} has no value; write one after it"));
            }
            fields.broken |= value.is_some_and(Form::is_wrong);
            fields.keys.push((key, value));
        }
    }

    /// Returns the value of a keyword, and reports an error if it is missing.
    pub(super) fn need<'f>(&mut self, fields: &FormFields<'f>, key: &str) -> Option<&'f Form> {
        let given = fields.keys.iter().find(|(name, _)| *name == key);
        if given.is_none() && !fields.broken && !fields.strange {
            let why = format!("{} needs `:{key}`", quoted(fields.name));
            self.report.error(fields.at, "SX205", why);
        }
        given?.1
    }

    /// Returns the values of a form that has to have exactly `N` of them.
    pub(super) fn exactly<'f, const N: usize>(
        &mut self,
        fields: &FormFields<'f>,
        wanted: [&str; N],
    ) -> Option<[&'f Form; N]> {
        let found = fields.values.len();
        if let Some(more) = fields.values.get(N) {
            let name = quoted(fields.name);
            let takes = match N {
                0 => "no value without a keyword".to_owned(),
                1 => "one value".to_owned(),
                _ => format!("{N} values"),
            };
            if !fields.broken {
                let why = format!("{name} takes {takes}; {} is too many", more.described());
                self.report.error(more.at, "SX206", why);
            }
        } else if let Some(missing) =
            wanted.get(found).filter(|_| !fields.broken && !fields.strange)
        {
            let why = format!("{} needs {missing}", quoted(fields.name));
            self.report.error(fields.at, "SX205", why);
        }
        fields.values.get(..N)?.try_into().ok()
    }

    /// Reads the value of a keyword that may be left out; the outer option is `None` if the value is wrong.
    #[expect(clippy::option_option, reason = "no value and a wrong one are different")]
    pub(super) fn optional<T>(
        &mut self,
        fields: &FormFields<'_>,
        key: &str,
        read: impl FnOnce(&mut Self, &Form) -> Option<T>,
    ) -> Option<Option<T>> {
        fields.get(key).map_or(Some(None), |form| read(self, form).map(Some))
    }

    /// Reads `:timeout` and `:on-timeout`.
    pub(super) fn timeout(&mut self, fields: &FormFields<'_>) -> Option<WaitTimeout> {
        let after_ms = self.optional(fields, "timeout", Self::duration);
        let state = self.optional(fields, "on-timeout", Self::state);
        if fields.get("on-timeout").is_some() {
            self.need(fields, "timeout");
        }
        Some(WaitTimeout { after_ms: after_ms?, state: state? })
    }

    /// Reports an error, because of which there is nothing to return.
    pub(super) fn refuse<T>(
        &mut self,
        at: SourcePlace,
        code: &'static str,
        why: impl Into<String>,
    ) -> Option<T> {
        self.report.error(at, code, why);
        None
    }
}

// Reads the options of a role's turns: `:effort low :tools ("Read" "Grep") :env (("RUST_LOG" "debug"))`.

impl ProgramReader<'_> {
    /// Reads the options among the keywords of a role; their mistakes are reported.
    pub(super) fn turn_options(&mut self, fields: &FormFields<'_>) -> WrittenOptions {
        let given = KEYS.into_iter().zip(KEYWORDS).filter_map(|(key, keyword)| {
            let form = fields.get(keyword).filter(|form| !form.is_wrong())?;
            Some(YamlEntry { key: key.into(), at: form.at, value: node(form) })
        });
        let entries: Vec<YamlEntry> = given.collect();
        let mut written = WrittenOptions::read(&entries);
        written.faults.extend(embed_files(&mut written.options, &written.places, self.source));
        for fault in std::mem::take(&mut written.faults) {
            self.report.error(fault.at, "SX220", fault.message);
        }
        written
    }

    /// Reads the schema of a role's answers.
    pub(super) fn output(&mut self, form: &Form) -> Option<OutputSchema> {
        let read = schema_of(&node(form), self.source);
        read.map_err(|why| self.report.error(form.at, "SX220", why)).ok()
    }
}

/// Returns a form as a tree. A list of lists is a mapping: `(("NAME" "value"))`.
fn node(form: &Form) -> YamlValue {
    let value = match (&form.content, form.text()) {
        (FormContent::Boolean(value), _) => YamlContent::Bool(*value),
        (FormContent::List(forms), _)
            if !forms.is_empty() && forms.iter().all(|form| pair(form).is_some()) =>
        {
            let pairs = forms.iter().filter_map(pair);
            let entry = |(key, value): (&Form, &Form)| YamlEntry {
                key: key.text().unwrap_or_default().into(),
                at: key.at,
                value: node(value),
            };
            YamlContent::Map(pairs.map(entry).collect::<Vec<_>>().into())
        }
        (FormContent::List(forms), _) => {
            YamlContent::List(forms.iter().map(node).collect::<Vec<_>>().into())
        }
        (_, Some(text)) => YamlContent::Text(YamlScalar {
            text: text.into(),
            style: ScalarStyle::Plain,
            range: 0..0,
        }),
        (_, None) => YamlContent::Null,
    };
    YamlValue { at: form.at, value, written: form.text().map(Into::into) }
}

fn pair(form: &Form) -> Option<(&Form, &Form)> {
    match &form.content {
        FormContent::List(forms) => match forms.as_slice() {
            [name, value] if name.text().is_some() => Some((name, value)),
            _ => None,
        },
        _ => None,
    }
}

// The forms of programs, by kind, and the keywords that they take.

/// The keys of the metadata.
pub const METADATA: [&str; 6] =
    ["label", "description", "max-iterations", "max-budget-usd", "model", "publish-state"];

/// The keywords of a role: its own, and those of the options of turns.
pub const ROLE_KEYWORDS: [&str; 5 + KEYWORDS.len()] = {
    let mut keys = ["agent-kind"; 5 + KEYWORDS.len()];
    (keys[1], keys[2], keys[3], keys[4]) = ("handle-ref", "model", "cwd", "output");
    let mut index = 0;
    while index < KEYWORDS.len() {
        keys[5 + index] = KEYWORDS[index];
        index += 1;
    }
    keys
};

/// A form and its keywords.
type FormKeywords = (&'static str, &'static [&'static str]);

/// The keywords of instructions and actions. Either is read where the other is expected.
const STEP_KEYWORDS: &[FormKeywords] = &[
    ("wait", &["timeout", "on-timeout"]),
    ("await", &["timeout", "on-timeout"]),
    ("loop", &["max", "on-max"]),
    ("terminal", &["status", "result"]),
    ("send-prompt", &["agent", "template", "args", "request-id", "expect", "output"]),
    ("run-folder", &["agent", "start", "input", "request-id"]),
    ("assert", &["key", "value"]),
    ("retract", &["key"]),
    ("run", &RUN_KEYWORDS),
    ("start-workflow", &["label", "args", "branch", "context", "budget", "as", "on-error"]),
    ("user-input", &["prompt", "args", "options", "timeout", "on-timeout", "as"]),
];

const RUN_KEYWORDS: [&str; 9] =
    ["command", "args", "cwd", "timeout", "unless", "once", "idempotent", "as", "on-error"];

/// A kind of forms, which may be in the same positions.
pub(super) struct FormKind {
    /// One of them, in a message.
    pub(super) what: &'static str,
    /// An example of one.
    pub(super) like: &'static str,
    pub(super) names: &'static [&'static str],
    /// The keywords of those that take some.
    keywords: &'static [FormKeywords],
}

impl FormKind {
    /// Returns the keywords that a form takes here.
    pub(super) fn keywords_of(&self, name: &str) -> &'static [&'static str] {
        self.keywords.iter().find(|(form, _)| *form == name).map_or(&[], |(_, keywords)| keywords)
    }
}

pub(super) const FILE: FormKind = FormKind {
    what: "a workflow",
    like: "`(workflow NAME …)`",
    names: &["workflow"],
    keywords: &[],
};

pub(super) const PART: FormKind = FormKind {
    what: "a part of a workflow",
    like: "`(state NAME …)`",
    names: &["metadata", "roles", "state"],
    keywords: &[],
};

pub(super) const INSTRUCTION: FormKind = FormKind {
    what: "an instruction",
    like: "`(goto STATE)`",
    names: &[
        "wait", "await", "action", "loop", "for-each", "branch", "break", "continue", "goto",
        "terminal",
    ],
    keywords: STEP_KEYWORDS,
};

pub(super) const ACTION: FormKind = FormKind {
    what: "an action",
    like: "`(send-prompt :agent ROLE :template TEXT)`",
    names: &[
        "send-prompt",
        "run-folder",
        "run",
        "start-workflow",
        "user-input",
        "assert",
        "retract",
        "log",
        "wait",
        "await",
    ],
    keywords: STEP_KEYWORDS,
};

pub(super) const ARM: FormKind = FormKind {
    what: "an arm of a branch",
    like: "`(on CONDITION …)`",
    names: &["on", "otherwise"],
    keywords: &[],
};

pub(super) const CONDITION: FormKind = FormKind {
    what: "a condition",
    like: "`(signal LABEL)`",
    names: &[
        "signal",
        "transcript-response",
        "verdict",
        "equals",
        "matches",
        "after",
        "at",
        "and",
        "or",
        "not",
    ],
    keywords: &[
        ("signal", &["key", "equals", "consume", "as"]),
        ("transcript-response", &["request-id", "on-error"]),
    ],
};

pub(super) const VALUE: FormKind = FormKind {
    what: "a value",
    like: "`(response REQUEST)`",
    names: &["signal", "response", "verdict", "feedback", "artifact"],
    keywords: &[("signal", &["key"]), ("response", &["field"]), ("feedback", &["field"])],
};

const DEFINITION: FormKind = FormKind {
    what: "a definition",
    like: "`(define NAME TEXT)`",
    names: &["define", "defn", "require"],
    keywords: &[],
};

const ALL: [&FormKind; 8] =
    [&DEFINITION, &FILE, &PART, &INSTRUCTION, &ACTION, &ARM, &CONDITION, &VALUE];

/// Returns the kind of the form with this name, if there is one.
pub(super) fn sort_of(name: &str) -> Option<&'static FormKind> {
    ALL.into_iter().find(|sort| sort.names.contains(&name))
}

/// Returns each form with the keywords that it takes. A form that can stand in several places is listed once for each.
pub fn forms() -> impl Iterator<Item = (&'static str, &'static [&'static str])> {
    ALL.into_iter().flat_map(|kind| kind.names.iter().map(|name| (*name, kind.keywords_of(name))))
}
