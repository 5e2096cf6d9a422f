//! The names in `for-each`: each element has its own requests, and values that are taken under a name.
//!
//! A request `look` that is sent in the body is `look/ELEMENT` for each element. In the body, `look` means the
//! element's own request; elsewhere it means all of them. A value that is taken `:as test` is `@test/ELEMENT`
//! elsewhere.

use std::collections::{BTreeMap, BTreeSet};

use crate::program::parse::{Form, FormContent};

/// The requests of all elements, by the name in the program.
pub(super) type RequestGroups = BTreeMap<String, Vec<String>>;

/// Gives the requests of each element their own names.
pub(super) fn separate(forms: &mut [Form]) -> RequestGroups {
    let mut names = RequestUses::default();
    for form in &*forms {
        names.note(form);
    }
    let mut groups = RequestGroups::new();
    for form in forms {
        separate_in(form, &names.sent, &mut groups);
    }
    groups
}

fn separate_in(form: &mut Form, sent: &BTreeSet<String>, groups: &mut RequestGroups) {
    let is_for_each = form.head() == Some("for-each");
    let FormContent::List(parts) = &mut form.content else { return };
    for part in parts.iter_mut() {
        if let (true, FormContent::List(own)) = (is_for_each, &mut part.content)
            && let Some((element, body)) = own.split_first_mut()
            && let Some(element) = element.text()
        {
            let mut uses = RequestUses::default();
            for form in &*body {
                uses.note(form);
            }
            let mut names = uses.sent;
            if uses.has_unnamed {
                names.extend(uses.read.into_iter().filter(|name| !sent.contains(name)));
            }
            for name in taken_in(body) {
                let new = format!("{name}/{element}");
                for form in &mut *body {
                    rename_taken(form, &name, &new);
                }
            }
            for name in names {
                let new = format!("{name}/{element}");
                for form in &mut *body {
                    rename(form, &name, &new);
                }
                groups.entry(name).or_default().push(new);
            }
        }
        separate_in(part, sent, groups);
    }
}

/// The names of requests in some forms.
#[derive(Default)]
struct RequestUses {
    sent: BTreeSet<String>,
    read: BTreeSet<String>,
    /// True if a request without a name is sent.
    has_unnamed: bool,
}

impl RequestUses {
    fn note(&mut self, form: &Form) {
        let FormContent::List(parts) = &form.content else { return };
        let name = name_in(form).and_then(|at| parts.get(at)).and_then(Form::text);
        match (is_send(form), name) {
            (true, Some(name)) => drop(self.sent.insert(name.to_owned())),
            (true, None) => self.has_unnamed = true,
            (false, Some(name)) => drop(self.read.insert(name.to_owned())),
            (false, None) => {}
        }
        for part in parts {
            self.note(part);
        }
    }
}

fn is_send(form: &Form) -> bool {
    matches!(form.head(), Some("send-prompt" | "run-folder"))
}

/// Returns the position of the name of a request in a form that sends or reads one.
fn name_in(form: &Form) -> Option<usize> {
    let FormContent::List(parts) = &form.content else { return None };
    match form.head()? {
        "send-prompt" | "run-folder" | "transcript-response" => {
            let is_id = |part: &Form| matches!(&part.content, FormContent::Keyword(key) if key == "request-id");
            Some(parts.iter().position(is_id)? + 1)
        }
        "response" | "verdict" => Some(1),
        _ => None,
    }
}

fn rename(form: &mut Form, name: &str, new: &str) {
    let at = name_in(form);
    let FormContent::List(parts) = &mut form.content else { return };
    if let Some(part) = at.and_then(|at| parts.get_mut(at))
        && part.text() == Some(name)
    {
        part.content = FormContent::String(new.to_owned());
    }
    for part in parts {
        rename(part, name, new);
    }
}

/// Returns the names under which values are taken in these forms: `:as NAME`.
fn taken_in(forms: &[Form]) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for form in forms {
        let FormContent::List(parts) = &form.content else { continue };
        names.extend(name_after_as(parts).and_then(|at| parts.get(at)?.text()).map(str::to_owned));
        names.extend(taken_in(parts));
    }
    names
}

/// Returns the position of the name after `:as`.
fn name_after_as(parts: &[Form]) -> Option<usize> {
    let is_as = |part: &Form| matches!(&part.content, FormContent::Keyword(key) if key == "as");
    Some(parts.iter().position(is_as)? + 1)
}

/// Renames a value that is taken, and the placeholders that mean it.
fn rename_taken(form: &mut Form, name: &str, new: &str) {
    match &mut form.content {
        FormContent::Placeholder(own) => {
            let rest =
                own.strip_prefix(name).filter(|rest| rest.is_empty() || rest.starts_with('/'));
            if let Some(rest) = rest {
                *own = format!("{new}{rest}");
            }
        }
        FormContent::List(parts) => {
            if let Some(part) = name_after_as(parts).and_then(|at| parts.get_mut(at))
                && part.text() == Some(name)
            {
                part.content = FormContent::String(new.to_owned());
            }
            for part in parts {
                rename_taken(part, name, new);
            }
        }
        FormContent::String(_)
        | FormContent::Keyword(_)
        | FormContent::Number(_)
        | FormContent::Boolean(_)
        | FormContent::Symbol(_)
        | FormContent::Wrong => {}
    }
}
