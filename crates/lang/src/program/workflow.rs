//! Reads the frame of a program: its name, its metadata, its roles, and its states.

use super::checked_program::{
    MAX_ITERATIONS, ProgramMetadata, ProgramRole, ProgramState, ProgramSymbol,
};
use super::reader::{FILE, FormFields, METADATA, PART, ProgramReader, ROLE_KEYWORDS};
use crate::diagnostic::quoted;
use crate::manifest::budget;
use crate::program::parse::{Form, FormContent};
use crate::source::SourcePlace;
use crate::turn_options::{WrittenOptions, model, model_hint};
use raymond_model::id::Folder;
use raymond_model::model::ModelName;

/// The only kind of agent that a role may be.
const AGENT_KIND: &str = "claude-code";

/// The parts of a program.
pub(super) struct ProgramParts {
    pub(super) name: Option<ProgramSymbol>,
    pub(super) metadata: ProgramMetadata,
    pub(super) roles: Vec<ProgramRole>,
    pub(super) states: Vec<ProgramState>,
}

impl ProgramReader<'_> {
    /// Reads the workflow of a file.
    pub(super) fn workflow(&mut self, forms: &[Form]) -> Option<ProgramParts> {
        let mut found: Option<(&Form, &[Form])> = None;
        let mut any = false;
        for form in forms {
            let is_workflow = matches!(&form.content, FormContent::List(list) if list.first().and_then(Form::text) == Some("workflow"));
            match found {
                Some((first, _)) if is_workflow => {
                    let line = first.at.line;
                    let why = format!(
                        "a file has one workflow, and this file has another in line {line}; put it into a separate file"
                    );
                    self.report.error(form.at, "SX201", why);
                }
                Some(_) if !form.is_wrong() => {
                    let why = format!(
                        "{} is outside the workflow; move it inside, or remove it",
                        form.described()
                    );
                    self.report.error(form.at, "SX201", why);
                }
                Some(_) => {}
                None => {
                    any = true;
                    found = self.head(form, &FILE).map(|(_, rest)| (form, rest));
                }
            }
        }
        if !any {
            let why = "this file has no workflow; write `(workflow NAME (state …))`";
            self.report.error(SourcePlace::START, "SX201", why);
        }
        let (form, rest) = found?;
        Some(self.parts(form.at, rest))
    }

    fn parts(&mut self, at: SourcePlace, rest: &[Form]) -> ProgramParts {
        let (name, rest) = match rest.split_first() {
            Some((form, rest))
                if matches!(form.content, FormContent::Number(_) | FormContent::Boolean(_)) =>
            {
                self.other(form, "the name of the workflow");
                (None, rest)
            }
            Some((form, rest)) if !matches!(form.content, FormContent::List(_)) => {
                (self.name(form, "the name of the workflow").map(ProgramSymbol::from), rest)
            }
            _ => {
                let why = "`workflow` needs a name: `(workflow NAME …)`";
                self.report.error(at, "SX205", why);
                (None, rest)
            }
        };
        let fields = self.fields(at, "workflow", rest, &[]);
        let (mut metadata, mut roles, mut states) = (Vec::new(), Vec::new(), Vec::new());
        for form in &fields.values {
            match self.head(form, &PART) {
                Some(("state", rest)) => states.push((form.at, rest)),
                Some((part @ "metadata", rest)) => self.once(&mut metadata, form.at, part, rest),
                Some((part, rest)) => self.once(&mut roles, form.at, part, rest),
                None => {}
            }
        }
        let metadata = self.metadata(&metadata);
        let roles = self.roles(&roles);
        let states = self.all_states(at, &states);
        ProgramParts { name, metadata, roles, states }
    }

    /// Reads a part that may occur once; a second one is reported, but read too.
    fn once<'f>(
        &mut self,
        parts: &mut Vec<FormFields<'f>>,
        at: SourcePlace,
        name: &'static str,
        rest: &'f [Form],
    ) {
        let fields = self.fields(at, name, rest, &[]);
        parts.push(fields);
        if parts.len() > 1 {
            let why = format!("a workflow has one {}; put both into one", quoted(name));
            self.report.error(at, "SX204", why);
        }
    }

    fn metadata(&mut self, parts: &[FormFields<'_>]) -> ProgramMetadata {
        let mut metadata = ProgramMetadata {
            label: None,
            description: None,
            max_iterations: MAX_ITERATIONS,
            max_budget_usd: None,
            model: None,
            publish_state: false,
        };
        let mut seen = Vec::new();
        for form in parts.iter().flat_map(|part| &part.values) {
            let Some((key, at, rest)) = self.entry(form, "an entry such as `(label \"…\")`")
            else {
                continue;
            };
            if !METADATA.contains(&key) {
                let hint = self
                    .report
                    .hint(key, METADATA, || format!("; there are {}", METADATA.join(", ")));
                let slip = self.report.slip(key, METADATA).filter(|meant| !seen.contains(meant));
                let why = format!("`metadata` has no key {}{hint}", quoted(key));
                self.report.error(at, "SX218", why);
                if let Some(meant) = slip {
                    let fields = self.fields(form.at, meant, rest, &[]);
                    self.entry_of_metadata(&mut metadata, &fields);
                }
                continue;
            }
            if seen.contains(&key) {
                let why =
                    format!("{} is given twice in `metadata`; remove one of them", quoted(key));
                self.report.error(at, "SX204", why);
            }
            seen.push(key);
            let fields = self.fields(form.at, key, rest, &[]);
            self.entry_of_metadata(&mut metadata, &fields);
        }
        metadata
    }

    /// Reads a list that begins with a name of the program's own. Returns the name, its place, and the rest.
    fn entry<'f>(
        &mut self,
        form: &'f Form,
        wanted: &str,
    ) -> Option<(&'f str, SourcePlace, &'f [Form])> {
        let FormContent::List(forms) = &form.content else {
            self.other(form, wanted);
            return None;
        };
        let Some((first, rest)) = forms.split_first() else {
            self.report.error(form.at, "SX205", format!("this list is empty; write {wanted}"));
            return None;
        };
        Some((self.name(first, "a name")?, first.at, rest))
    }

    fn entry_of_metadata(
        &mut self,
        metadata: &mut ProgramMetadata,
        fields: &FormFields<'_>,
    ) -> Option<()> {
        let [form] = self.exactly(fields, ["a value"])?;
        let text = self.text(form, "a text")?;
        let why = match fields.name {
            "publish-state" => {
                metadata.publish_state = self.boolean(form)?;
                return Some(());
            }
            "label" => return metadata.label.replace(text.to_owned()).map(drop),
            "description" => return metadata.description.replace(text.to_owned()).map(drop),
            "max-iterations" => match text.parse().ok().filter(|number| *number > 0) {
                Some(number) => {
                    metadata.max_iterations = number;
                    return Some(());
                }
                None => format!(
                    "`max-iterations` is a whole number greater than 0, not {}",
                    form.described()
                ),
            },
            "max-budget-usd" => match budget(text) {
                Ok(amount) => return metadata.max_budget_usd.replace(amount).map(drop),
                Err(why) => why,
            },
            _ => {
                metadata.model = self.model(form);
                return Some(());
            }
        };
        self.report.error(form.at, "SX207", why);
        None
    }

    fn roles(&mut self, parts: &[FormFields<'_>]) -> Vec<ProgramRole> {
        let mut roles: Vec<ProgramRole> = Vec::new();
        for form in parts.iter().flat_map(|part| &part.values) {
            let wanted = "a role such as `(planner :agent-kind \"claude-code\")`";
            let Some((name, at, rest)) = self.entry(form, wanted) else { continue };
            if name.contains('/') {
                let why = format!("a role's name has no `/`, as {} has; use `-`", quoted(name));
                self.report.error(at, "SX309", why);
            }
            if let Some(before) = self.roles.get(name).map(|number| roles[*number].at.line) {
                let why = format!(
                    "{} is a role in line {before} already; rename one of them",
                    quoted(name)
                );
                self.report.error(at, "SX302", why);
                self.a_role(form.at, name, rest);
            } else {
                self.roles.insert(name.to_owned(), roles.len());
                let role = self.a_role(form.at, name, rest);
                self.same_place(&roles, &role, at);
                roles.push(role);
            }
        }
        roles
    }

    fn a_role(&mut self, at: SourcePlace, name: &str, rest: &[Form]) -> ProgramRole {
        let fields = self.fields(at, name, rest, &ROLE_KEYWORDS);
        self.exactly(&fields, []);
        if let Some(form) = fields.get("agent-kind")
            && let Some(kind) = self.text(form, "`claude-code`").filter(|kind| *kind != AGENT_KIND)
        {
            let hint =
                self.report.hint(kind, [AGENT_KIND], || "; there is `claude-code`".to_owned());
            let why = format!("unknown agent kind {}{hint}", quoted(kind));
            self.report.error(form.at, "SX306", why);
        }
        let handle =
            fields.get("handle-ref").and_then(|form| self.name(form, "the name of a session"));
        let handle = ProgramSymbol::from(handle.unwrap_or(name));
        let model = fields.get("model").and_then(|form| self.model(form));
        let cwd = fields.get("cwd").and_then(|form| self.directory(form));
        let WrittenOptions { options, places: option_places, .. } = self.turn_options(&fields);
        let output = fields.get("output").and_then(|form| self.output(form));
        ProgramRole { name: name.into(), handle, model, options, option_places, output, cwd, at }
    }

    fn model(&mut self, form: &Form) -> Option<ModelName> {
        let read = model(self.text(form, "the name of a model")?);
        let model = read.map_err(|why| self.report.error(form.at, "SX207", why)).ok()?;
        if let Some(hint) = model_hint(&model) {
            self.report.warning(form.at, "SX219", hint);
        }
        Some(model)
    }

    /// Reads a directory below that of the run; `None` is the run's own, or a wrong one.
    pub(super) fn directory(&mut self, form: &Form) -> Option<Folder> {
        let text = self.text(form, "a directory, such as \"review\",")?;
        let below = text.trim().trim_start_matches("./");
        if !text.trim().is_empty() && ["", "."].contains(&below) {
            return None;
        }
        let read = Folder::parse(below);
        if read.is_err() {
            let why = format!(
                "`:cwd` is a directory below that of the run, without `..`, which {} is not",
                quoted(text)
            );
            self.report.error(form.at, "SX217", why);
        }
        read.ok()
    }

    /// Reports roles that share a session, but not a directory.
    fn same_place(&mut self, roles: &[ProgramRole], role: &ProgramRole, at: SourcePlace) {
        let other = roles.iter().find(|other| other.handle == role.handle && other.cwd != role.cwd);
        if let Some(other) = other {
            let why = format!(
                "{} shares the session {} with {}, but not its `:cwd`; give both the same, or another `:handle-ref`",
                quoted(&role.name),
                quoted(&role.handle),
                quoted(&other.name)
            );
            self.report.error(at, "SX310", why);
        }
    }

    fn all_states(
        &mut self,
        at: SourcePlace,
        forms: &[(SourcePlace, &[Form])],
    ) -> Vec<ProgramState> {
        if forms.is_empty() {
            let why = "this workflow has no state; write `(state NAME …)` in it";
            self.report.error(at, "SX208", why);
        }
        let mut named = Vec::with_capacity(forms.len());
        let mut lines = Vec::new();
        for (at, rest) in forms {
            let Some((form, rest)) = rest.split_first() else {
                self.report.error(*at, "SX205", "`state` needs a name: `(state NAME …)`");
                continue;
            };
            let Some(name) = self.name(form, "the name of a state") else {
                named.push((ProgramSymbol::from(""), *at, rest));
                continue;
            };
            if let Some(before) = self.states.get(name) {
                let line: u64 = lines[*before];
                let why = format!(
                    "{} is a state in line {line} already; rename one of them",
                    quoted(name)
                );
                self.report.error(form.at, "SX301", why);
            } else {
                self.states.insert(name.to_owned(), lines.len());
                lines.push(form.at.line);
            }
            named.push((ProgramSymbol::from(name), *at, rest));
        }
        named.into_iter().map(|(name, at, rest)| self.a_state(name, at, rest)).collect()
    }

    fn a_state(&mut self, name: ProgramSymbol, at: SourcePlace, rest: &[Form]) -> ProgramState {
        self.requests.begin(&name);
        let fields = self.fields(at, "state", rest, &[]);
        let body = self.body(&fields.values);
        ProgramState { name, body, at }
    }
}
