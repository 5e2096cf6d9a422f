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
        if let (true, FormContent::List(forms)) = (is_for_each, &mut part.content)
            && let Some((element, body)) = forms.split_first_mut()
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
            for name in uses.taken {
                let new = format!("{name}/{element}");
                for form in &mut *body {
                    form.walk_mut(&mut |form| rename_taken(form, &name, &new));
                }
            }
            for name in names {
                let new = format!("{name}/{element}");
                for form in &mut *body {
                    form.walk_mut(&mut |form| {
                        let at = name_in(form);
                        rename_at(form, at, &name, &new);
                    });
                }
                groups.entry(name).or_default().push(new);
            }
        }
        separate_in(part, sent, groups);
    }
}

/// The names of requests, and of values that are taken, in some forms.
#[derive(Default)]
struct RequestUses {
    sent: BTreeSet<String>,
    read: BTreeSet<String>,
    /// True if a request without a name is sent.
    has_unnamed: bool,
    /// The names of `:as`.
    taken: BTreeSet<String>,
}

impl RequestUses {
    fn note(&mut self, form: &Form) {
        form.walk(&mut |form| {
            let text_at = |at: Option<usize>| Some(form.inner().get(at?)?.text()?.to_owned());
            match (is_send(form), text_at(name_in(form))) {
                (true, Some(name)) => drop(self.sent.insert(name)),
                (true, None) => self.has_unnamed = true,
                (false, Some(name)) => drop(self.read.insert(name)),
                (false, None) => {}
            }
            self.taken.extend(text_at(after_keyword(form, "as")));
        });
    }
}

fn is_send(form: &Form) -> bool {
    matches!(form.head(), Some("send-prompt" | "run-folder"))
}

/// Returns the position of the name of a request in a form that sends or reads one.
fn name_in(form: &Form) -> Option<usize> {
    match form.head()? {
        "send-prompt" | "run-folder" | "transcript-response" => after_keyword(form, "request-id"),
        "response" | "verdict" => Some(1),
        _ => None,
    }
}

/// Returns the position after a keyword.
fn after_keyword(form: &Form, name: &str) -> Option<usize> {
    Some(form.inner().iter().position(|part| part.is_keyword(name))? + 1)
}

/// Renames the part of a form at a position, if that has the name.
fn rename_at(form: &mut Form, at: Option<usize>, name: &str, new: &str) {
    if let FormContent::List(parts) = &mut form.content
        && let Some(part) = at.and_then(|at| parts.get_mut(at))
        && part.text() == Some(name)
    {
        part.content = FormContent::String(new.to_owned());
    }
}

/// Renames a value that is taken, or a placeholder that means it.
fn rename_taken(form: &mut Form, name: &str, new: &str) {
    if let FormContent::Placeholder(placeholder) = &mut form.content {
        let rest = placeholder.strip_prefix(name);
        if let Some(rest) = rest.filter(|rest| rest.is_empty() || rest.starts_with('/')) {
            *placeholder = format!("{new}{rest}");
        }
    }
    let at = after_keyword(form, "as");
    rename_at(form, at, name, new);
}
