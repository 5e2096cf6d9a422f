//! The types of conditions and actions that a graph may use.
//!
//! These are the types of the [table](raymond_model::graph_types), and those that a program using the library adds.

use std::collections::BTreeMap;

use raymond_model::graph_types::{
    GraphType, ParameterKind, TypeParameter, all_types, graph_type, parameter_doc,
};
use raymond_model::operation::RecoveryClass;

pub use raymond_model::graph_types::TypeRole;

/// A type that a program using the library adds. Its parameters may be any values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CustomTypeSpec {
    pub role: TypeRole,
    /// The parameters it needs.
    pub required: Vec<String>,
    /// The parameters it may have. A consequence may always have `store_as`.
    pub optional: Vec<String>,
    /// The recovery class.
    pub class: RecoveryClass,
}

impl CustomTypeSpec {
    fn parameters(&self) -> Vec<TypeParameter<'_>> {
        let any = |name, required| TypeParameter { name, takes: ParameterKind::Any, required };
        let required = self.required.iter().map(|name| any(name, true));
        let optional = self.optional.iter().map(|name| any(name, false));
        let mut all: Vec<_> = required.chain(optional).collect();
        if self.role == TypeRole::Consequence && !all.iter().any(|known| known.name == "store_as") {
            all.push(TypeParameter {
                name: "store_as",
                takes: ParameterKind::Filled,
                required: false,
            });
        }
        all
    }
}

/// A type cannot be added, because its name is taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the type `{name}` is there already; give yours another name")]
pub struct TypeNameTaken {
    pub name: String,
}

/// The types that a graph may use.
#[derive(Debug, Clone, Default)]
pub struct GraphVocabulary {
    custom: BTreeMap<String, CustomTypeSpec>,
}

impl GraphVocabulary {
    /// Returns the built-in types.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a type.
    ///
    /// # Errors
    /// [`TypeNameTaken`] if there is such a type already.
    pub fn add(&mut self, name: &str, custom: CustomTypeSpec) -> Result<(), TypeNameTaken> {
        let known = graph_type(name).is_some_and(|known| known.role.is_some());
        if known || self.custom.contains_key(name) {
            return Err(TypeNameTaken { name: name.to_owned() });
        }
        self.custom.insert(name.to_owned(), custom);
        Ok(())
    }

    /// Returns a type that was added.
    pub fn custom(&self, role: TypeRole, name: &str) -> Option<&CustomTypeSpec> {
        self.custom.get(name).filter(|custom| custom.role == role)
    }

    /// Returns the parameters of a type; None if there is no such type.
    pub(crate) fn parameters(&self, role: TypeRole, name: &str) -> Option<Vec<TypeParameter<'_>>> {
        match all_types().find(|known| known.role == Some(role) && known.name == name) {
            Some(known) => Some(known.parameters.to_vec()),
            None => self.custom(role, name).map(CustomTypeSpec::parameters),
        }
    }

    /// Returns the names of all types by their kind, for an error.
    pub fn listed(&self, role: TypeRole) -> String {
        let mut groups: Vec<(&str, Vec<&str>)> = Vec::new();
        for GraphType { group, name, .. } in all_types().filter(|known| known.role == Some(role)) {
            match groups.iter_mut().find(|(known, _)| known == group) {
                Some((_, names)) => names.push(name),
                None => groups.push((group, vec![name])),
            }
        }
        let custom: Vec<&str> = self.custom_names(role).collect();
        if !custom.is_empty() {
            groups.push(("of this program", custom));
        }
        let groups = groups.iter().map(|(group, names)| format!("{group}: {}", names.join(", ")));
        groups.collect::<Vec<_>>().join("; ")
    }

    /// Returns the role of a type that has another role than this one.
    pub(crate) fn other_role(&self, role: TypeRole, name: &str) -> Option<&'static str> {
        let (other, what) = match role {
            TypeRole::Precondition => (TypeRole::Consequence, "a consequence"),
            TypeRole::Consequence => (TypeRole::Precondition, "a precondition"),
        };
        self.parameters(other, name).map(|_| what)
    }

    /// Returns the names of all types.
    pub fn names(&self, role: TypeRole) -> Vec<&str> {
        let known = all_types().filter(|known| known.role == Some(role)).map(|known| known.name);
        known.chain(self.custom_names(role)).collect()
    }

    fn custom_names(&self, role: TypeRole) -> impl Iterator<Item = &str> {
        self.custom
            .iter()
            .filter(move |(_, custom)| custom.role == role)
            .map(|(name, _)| name.as_str())
    }

    /// Returns the sentence about a type; a type that a program adds has a general one.
    pub(crate) fn type_doc(&self, name: &str) -> &'static str {
        let known = graph_type(name).filter(|_| !self.custom.contains_key(name));
        known.map_or("A type of this program.", |known| known.doc)
    }

    /// Returns the sentence about a parameter.
    pub(crate) fn parameter_doc(name: &str) -> &'static str {
        parameter_doc(name).unwrap_or("A parameter of this program's type.")
    }
}

/// Returns the kind of a parameter of a built-in type or operation; `None` if there is no such parameter.
pub(crate) fn parameter_kind(name: &str, parameter: &str) -> Option<ParameterKind> {
    let known = graph_type(name)?;
    known.parameters.iter().find(|known| known.name == parameter).map(|known| known.takes)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn added_type_is_known_in_its_role_and_duplicate_is_error() {
        let spec = CustomTypeSpec {
            role: TypeRole::Consequence,
            required: vec!["channel".into()],
            optional: Vec::new(),
            class: RecoveryClass::Uncertain,
        };
        let mut vocabulary = GraphVocabulary::new();
        assert_eq!(vocabulary.add("post", spec.clone()), Ok(()));
        assert!(vocabulary.custom(TypeRole::Consequence, "post").is_some());
        assert!(vocabulary.custom(TypeRole::Precondition, "post").is_none());
        assert!(vocabulary.names(TypeRole::Consequence).contains(&"post"));
        for name in ["post", "flag_set", "set_flag"] {
            let taken = vocabulary.add(name, spec.clone()).expect_err(name);
            assert!(taken.to_string().contains("give yours another name"));
        }
    }

    #[test]
    fn types_are_listed_by_their_groups_each_once() {
        for role in [TypeRole::Precondition, TypeRole::Consequence] {
            let vocabulary = GraphVocabulary::new();
            let listed = vocabulary.listed(role);
            let groups: Vec<(&str, &str)> =
                listed.split("; ").map(|group| group.split_once(": ").expect("a group")).collect();
            let kinds: BTreeSet<&str> = groups.iter().map(|(kind, _)| *kind).collect();
            assert_eq!(kinds.len(), groups.len(), "{listed}");
            let mut grouped: Vec<&str> =
                groups.iter().flat_map(|(_, names)| names.split(", ")).collect();
            let mut known = vocabulary.names(role);
            grouped.sort_unstable();
            known.sort_unstable();
            assert_eq!(grouped, known);
        }
    }
}
