//! The types of conditions and actions that a graph may use.
//!
//! These are the built-in types, their other names, and the types that a program using the library adds.

use std::collections::BTreeMap;

use raymond_model::operation::RecoveryClass;

mod conditions;
mod consequences;
pub(crate) mod docs;
mod groups;

/// The kind of value that a parameter takes. A text may have `${…}` in it; for any other value, a text
/// that is one `${…}` may stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ParameterKind {
    Text,
    /// A text that is not empty: a path, an address, an id, a name.
    Filled,
    Boolean,
    /// The path of a value, not empty.
    Path,
    Number,
    List,
    /// A mapping.
    Map,
    /// Any value.
    Any,
    Expression,
    /// Preconditions.
    Conditions,
    /// Consequences.
    Actions,
    /// A word that is written out.
    Word,
}

/// A parameter.
#[derive(Debug, Clone, Copy)]
pub(super) struct BuiltinParameter {
    pub(super) name: &'static str,
    pub(super) takes: ParameterKind,
    pub(super) required: bool,
}

/// A built-in type.
#[derive(Debug)]
pub(super) struct BuiltinType {
    pub(super) name: &'static str,
    pub(super) parameters: &'static [BuiltinParameter],
}

const fn need(name: &'static str, takes: ParameterKind) -> BuiltinParameter {
    BuiltinParameter { name, takes, required: true }
}

const fn may(name: &'static str, takes: ParameterKind) -> BuiltinParameter {
    BuiltinParameter { name, takes, required: false }
}

const fn of(name: &'static str, parameters: &'static [BuiltinParameter]) -> BuiltinType {
    BuiltinType { name, parameters }
}

/// The role of a type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TypeRole {
    /// A type that holds or not, and changes nothing.
    Precondition,
    /// A type that does something.
    Consequence,
}

/// A parameter of a type, built-in or added.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TypeParameter<'a> {
    pub(crate) name: &'a str,
    pub(crate) takes: ParameterKind,
    pub(crate) required: bool,
}

/// A type that a program using the library adds. Its parameters may be any values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnTypeSpec {
    /// Its role.
    pub role: TypeRole,
    /// The parameters it needs.
    pub required: Vec<String>,
    /// The parameters it may have. A consequence may always have `store_as`.
    pub optional: Vec<String>,
    /// The recovery class.
    pub class: RecoveryClass,
}

impl OwnTypeSpec {
    fn parameters(&self) -> Vec<TypeParameter<'_>> {
        let any = |name, required| TypeParameter { name, takes: ParameterKind::Any, required };
        let required = self.required.iter().map(|name| any(name, true));
        let optional = self.optional.iter().map(|name| any(name, false));
        let mut all: Vec<_> = required.chain(optional).collect();
        if self.role == TypeRole::Consequence && !all.iter().any(|one| one.name == "store_as") {
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
    /// Its name.
    pub name: String,
}

/// The types that a graph may use.
#[derive(Debug, Clone, Default)]
pub struct GraphVocabulary {
    own: BTreeMap<String, OwnTypeSpec>,
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
    pub fn add(&mut self, name: &str, own: OwnTypeSpec) -> Result<(), TypeNameTaken> {
        let known = [TypeRole::Precondition, TypeRole::Consequence];
        let known = known.into_iter().any(|role| builtin_type(role, name).is_some());
        if known || self.own.contains_key(name) {
            return Err(TypeNameTaken { name: name.to_owned() });
        }
        self.own.insert(name.to_owned(), own);
        Ok(())
    }

    /// Returns a type that was added.
    pub fn own(&self, role: TypeRole, name: &str) -> Option<&OwnTypeSpec> {
        self.own.get(name).filter(|own| own.role == role)
    }

    /// Returns the parameters of a type; None if there is no such type.
    pub(crate) fn parameters(&self, role: TypeRole, name: &str) -> Option<Vec<TypeParameter<'_>>> {
        let built_in = |&BuiltinParameter { name, takes, required }: &BuiltinParameter| {
            TypeParameter { name, takes, required }
        };
        match builtin_type(role, name) {
            Some(known) => Some(known.parameters.iter().map(built_in).collect()),
            None => self.own(role, name).map(OwnTypeSpec::parameters),
        }
    }

    /// Returns the names of all types by their kind, for an error.
    pub fn listed(&self, role: TypeRole) -> String {
        let groups = groups::GROUPS.iter().filter(|(of, ..)| *of == role);
        let mut listed: Vec<String> =
            groups.map(|(_, kind, names)| format!("{kind}: {}", names.join(", "))).collect();
        let own = self.own.iter().filter(|(_, own)| own.role == role);
        let own: Vec<&str> = own.map(|(name, _)| name.as_str()).collect();
        if !own.is_empty() {
            listed.push(format!("of this program: {}", own.join(", ")));
        }
        listed.join("; ")
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
        let own = self.own.iter().filter(|(_, own)| own.role == role);
        table(role).iter().map(|known| known.name).chain(own.map(|(name, _)| &**name)).collect()
    }
}

fn table(role: TypeRole) -> &'static [BuiltinType] {
    match role {
        TypeRole::Precondition => conditions::TABLE,
        TypeRole::Consequence => consequences::TABLE,
    }
}

/// Returns the kind of a parameter of a built-in type; `None` if there is no such parameter.
pub(crate) fn parameter_kind(name: &str, parameter: &str) -> Option<ParameterKind> {
    let known = builtin_type(TypeRole::Consequence, name)
        .or_else(|| builtin_type(TypeRole::Precondition, name))?;
    known.parameters.iter().find(|one| one.name == parameter).map(|one| one.takes)
}

/// Returns a built-in type.
fn builtin_type(role: TypeRole, name: &str) -> Option<&'static BuiltinType> {
    table(role).iter().find(|known| known.name == name)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn added_type_is_known_in_its_role_and_duplicate_is_error() {
        let own = OwnTypeSpec {
            role: TypeRole::Consequence,
            required: vec!["channel".into()],
            optional: Vec::new(),
            class: RecoveryClass::Uncertain,
        };
        let mut vocabulary = GraphVocabulary::new();
        assert_eq!(vocabulary.add("post", own.clone()), Ok(()));
        assert!(vocabulary.own(TypeRole::Consequence, "post").is_some());
        assert!(vocabulary.own(TypeRole::Precondition, "post").is_none());
        assert!(vocabulary.names(TypeRole::Consequence).contains(&"post"));
        for name in ["post", "flag_set", "set_flag"] {
            let taken = vocabulary.add(name, own.clone()).expect_err(name);
            assert!(taken.to_string().contains("give yours another name"));
        }
    }

    #[test]
    fn every_type_and_parameter_is_documented() {
        let all = || conditions::TABLE.iter().chain(consequences::TABLE);
        let types: BTreeSet<&str> = all().map(|known| known.name).collect();
        let parameters = all().flat_map(|known| known.parameters).map(|one| one.name);
        let described = |table: &[(&'static str, &str)]| -> BTreeSet<&'static str> {
            table.iter().map(|(name, _)| *name).collect()
        };
        assert_eq!(types, described(docs::TYPES));
        assert_eq!(parameters.collect::<BTreeSet<_>>(), described(docs::PARAMETERS));
    }

    #[test]
    fn every_type_is_in_one_group_of_its_role() {
        for role in [TypeRole::Precondition, TypeRole::Consequence] {
            let groups = groups::GROUPS.iter().filter(|(of, ..)| *of == role);
            let mut grouped: Vec<&str> = groups.flat_map(|(_, _, names)| *names).copied().collect();
            let mut known: Vec<&str> = table(role).iter().map(|known| known.name).collect();
            grouped.sort_unstable();
            known.sort_unstable();
            assert_eq!(grouped, known);
        }
    }

    #[test]
    fn seed_has_24_preconditions_and_29_consequences() {
        let later = conditions::LATER;
        assert_eq!(conditions::TABLE.len(), 24 + later);
        assert_eq!(consequences::TABLE.len(), 29 + consequences::LATER);
    }
}
