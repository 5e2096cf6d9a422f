//! Lists in a program: the names of roles with `:each`, and the elements of `for-each`.

use super::{Bindings, DefinitionExpander};
use crate::program::parse::{Form, FormContent};
use crate::report::quoted;

impl DefinitionExpander<'_> {
    /// Expands roles: one with `:each` stands for a role of each name.
    pub(super) fn roles(&mut self, form: &Form) -> Form {
        let form = self.form(form, &Bindings::new(), 1);
        let FormContent::List(roles) = form.content else { return form };
        let mut all = Vec::new();
        for role in roles {
            let split = match &role.content {
                FormContent::List(parts) => each_of(parts),
                _ => None,
            };
            let Some((each, [name, options @ ..])) =
                split.as_ref().map(|(each, rest)| (each, rest.as_slice()))
            else {
                all.push(role);
                continue;
            };
            let Some(elements) = self.elements(each) else { continue };
            for element in &elements {
                let parts = std::iter::once(element).chain(options).cloned().collect();
                all.push(Form { content: FormContent::List(parts), ..role.clone() });
            }
            if let Some(name) = name.text() {
                self.groups.insert(name.to_owned(), elements);
            }
        }
        Form { content: FormContent::List(all), ..form }
    }

    /// Returns the elements of a list of texts, or the roles of a group.
    pub(super) fn elements(&mut self, form: &Form) -> Option<Vec<Form>> {
        let group = form.text().and_then(|name| self.groups.get(name)).cloned();
        let elements = match (&form.content, group) {
            (_, Some(roles)) => roles,
            (FormContent::List(forms), None)
                if !forms.is_empty() && forms.iter().all(|one| one.text().is_some()) =>
            {
                forms.clone()
            }
            _ => {
                if !form.is_wrong() {
                    let why = format!(
                        "write a list of texts here, such as `(security speed)`, or a role with `:each`, not {}",
                        form.described()
                    );
                    self.report.error(form.at, "SX207", why);
                }
                return None;
            }
        };
        for (number, one) in elements.iter().enumerate() {
            if elements[..number].iter().any(|before| before.text() == one.text()) {
                let why = format!(
                    "{} is in this list twice; remove one",
                    quoted(one.text().unwrap_or_default())
                );
                self.report.error(one.at, "SX204", why);
                return None;
            }
        }
        Some(elements)
    }
}

/// Returns the list of a role's `:each`, and the role without it.
fn each_of(parts: &[Form]) -> Option<(Form, Vec<Form>)> {
    let is_each = |form: &Form| matches!(&form.content, FormContent::Keyword(key) if key == "each");
    let at = parts.iter().position(is_each)?;
    let list = parts.get(at + 1)?.clone();
    let rest = parts[..at].iter().chain(&parts[at + 2..]).cloned().collect();
    Some((list, rest))
}
