//! The types of conditions and actions that graphs may use: one table of their parameters, sentences and operations.
//!
//! The core has a table, and so has each pack: the vocabulary of a project, whose words nothing else knows. A row of a
//! table says everything about a type. Messages, schemas, checks and the meaning of a crash follow from it.

use crate::operation::RecoveryClass;
use crate::privilege::Privilege;

/// The role of a type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TypeRole {
    /// A type that holds or not, and changes nothing.
    Precondition,
    /// A type that does something.
    Consequence,
}

/// The kind of value that a parameter takes. A text may have `${…}` in it; for any other value, a text
/// that is one `${…}` may stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParameterKind {
    /// Any text.
    Text,
    /// A text that is not empty: a path, an address, an id, a name.
    Filled,
    /// True or false.
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

/// A parameter of a type, built-in or added.
#[derive(Debug, Clone, Copy)]
pub struct TypeParameter<'a> {
    pub name: &'a str,
    /// The kind of its values.
    pub takes: ParameterKind,
    /// True if it has to be given.
    pub required: bool,
}

/// A type, or an operation that only other types use.
#[derive(Debug)]
pub struct GraphType {
    /// Its role; `None` if no graph names it.
    pub role: Option<TypeRole>,
    /// The group that it is listed in.
    pub group: &'static str,
    pub name: &'static str,
    /// The sentence about it.
    pub doc: &'static str,
    pub parameters: &'static [TypeParameter<'static>],
    /// The facts about the operation of this name; `None` if there is no such operation.
    pub operation: Option<OperationFacts>,
}

/// The facts about an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OperationFacts {
    /// What a crash in the middle of it means, unless its parameters say so.
    pub class: RecoveryClass,
    /// The privilege that it takes, regardless of its path.
    pub privilege: Option<Privilege>,
    /// The path that it changes, if the graph names it.
    pub changes: Option<ChangedPath>,
}

/// A path that an operation changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChangedPath {
    /// The parameter that names it.
    pub parameter: &'static str,
    /// The purpose of the access.
    pub access: FileAccess,
    /// The end of the paths that need no trust, though programs obey files of that name.
    pub harmless: Option<&'static str>,
}

/// The purpose of an access to a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileAccess {
    /// To look at what is there.
    Read,
    /// To write there: a broken link is refused.
    Write,
    /// To remove the entry of this name, even a link.
    Remove,
}

const READ: OperationFacts = OperationFacts::of(RecoveryClass::Read);
const CONVERGES: OperationFacts = OperationFacts::of(RecoveryClass::Converges);
const GUARDED: OperationFacts = OperationFacts::of(RecoveryClass::Guarded);
const UNCERTAIN: OperationFacts = OperationFacts::of(RecoveryClass::Uncertain);

impl OperationFacts {
    const fn of(class: RecoveryClass) -> Self {
        Self { class, privilege: None, changes: None }
    }

    const fn needs(self, privilege: Privilege) -> Self {
        Self { privilege: Some(privilege), ..self }
    }

    const fn changes(self, parameter: &'static str, access: FileAccess) -> Self {
        Self { changes: Some(ChangedPath { parameter, access, harmless: None }), ..self }
    }

    const fn writes(self, parameter: &'static str) -> Self {
        self.changes(parameter, FileAccess::Write)
    }

    const fn removes(self, parameter: &'static str) -> Self {
        self.changes(parameter, FileAccess::Remove)
    }

    /// Changes what is in a directory.
    const fn works_in(self, parameter: &'static str) -> Self {
        self.changes(parameter, FileAccess::Read)
    }
}

const fn need(name: &'static str, takes: ParameterKind) -> TypeParameter<'static> {
    TypeParameter { name, takes, required: true }
}

const fn may(name: &'static str, takes: ParameterKind) -> TypeParameter<'static> {
    TypeParameter { name, takes, required: false }
}

const PRECONDITION: Option<TypeRole> = Some(TypeRole::Precondition);
const CONSEQUENCE: Option<TypeRole> = Some(TypeRole::Consequence);

/// The role of operations that only other types use.
const INNER: Option<TypeRole> = None;

/// Defines types by their roles and groups: `name(need PARAMETER: KIND, may PARAMETER: KIND) "sentence" = operation;`.
macro_rules! graph_types {
    (@facts) => { None };
    (@facts $facts:expr) => { Some($facts) };
    ($($role:ident $group:literal {
        $($name:ident($($mode:ident $parameter:ident: $kind:ident),*) $doc:literal $(= $facts:expr)?;)*
    })*) => {
        &[$($(GraphType {
            role: $role,
            group: $group,
            name: stringify!($name),
            doc: $doc,
            parameters: &[$($mode(stringify!($parameter), ParameterKind::$kind)),*],
            operation: graph_types!(@facts $($facts)?),
        },)*)*]
    };
}

/// Defines the sentences about parameters, by their names.
macro_rules! parameter_docs {
    ($($name:ident $doc:literal;)*) => { &[$((stringify!($name), $doc)),*] };
}

mod builtin;
mod corpus;

/// The types of the core, or those of a pack.
#[derive(Debug)]
pub struct TypePack {
    pub types: &'static [GraphType],
    /// The sentences about parameters that no earlier pack has.
    pub parameters: &'static [(&'static str, &'static str)],
    /// The parameters of operations that may not be empty.
    pub filled: &'static [&'static str],
    /// The parameters that are paths of files or directories, unless they are paths of values.
    pub paths: &'static [&'static str],
    /// The beginning of the directories of skills whose graphs are named without it.
    pub skill_prefix: Option<&'static str>,
}

/// The core and the packs.
pub static PACKS: [&TypePack; 2] = [&builtin::PACK, &corpus::PACK];

/// Returns all types, those of the core first, and the operations that only they use.
pub fn all_types() -> impl Iterator<Item = &'static GraphType> + Clone {
    PACKS.iter().flat_map(|pack| pack.types)
}

/// Returns a type, or an operation that only other types use.
pub fn graph_type(name: &str) -> Option<&'static GraphType> {
    all_types().find(|known| known.name == name)
}

/// Returns the facts about an operation, by its name.
pub fn operation_facts(name: &str) -> Option<&'static OperationFacts> {
    graph_type(name)?.operation.as_ref()
}

/// Returns the operation of this name that a pack, not the core, has.
pub(crate) fn operation_of_pack(name: &str) -> Option<&'static GraphType> {
    let mut types = PACKS[1..].iter().flat_map(|pack| pack.types);
    types.find(|known| known.name == name && known.operation.is_some())
}

/// Returns the sentence about a parameter.
pub fn parameter_doc(name: &str) -> Option<&'static str> {
    let mut known = PACKS.iter().flat_map(|pack| pack.parameters);
    known.find(|(known, _)| *known == name).map(|(_, doc)| *doc)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_type_has_another_name_and_every_parameter_a_sentence() {
        let names: BTreeSet<&str> = all_types().map(|known| known.name).collect();
        assert_eq!(names.len(), all_types().count());
        let of_graphs = all_types().filter(|known| known.role.is_some());
        assert!(of_graphs.clone().all(|known| !known.doc.is_empty()));
        let parameters: BTreeSet<&str> =
            of_graphs.flat_map(|known| known.parameters).map(|parameter| parameter.name).collect();
        let described = PACKS.iter().flat_map(|pack| pack.parameters).map(|(name, _)| *name);
        let described: Vec<&str> = described.collect();
        assert_eq!(parameters.len(), described.len(), "one sentence each");
        assert_eq!(parameters, described.into_iter().collect());
    }

    #[test]
    fn core_knows_no_word_of_a_pack() {
        let own = |name: &str| builtin::PACK.types.iter().any(|known| known.name == name);
        let packs = PACKS[1..].iter().flat_map(|pack| pack.types);
        assert!(packs.clone().count() > 20 && !packs.into_iter().any(|known| own(known.name)));
    }

    #[test]
    fn seed_has_24_preconditions_and_29_consequences() {
        // Later graphs have 3 preconditions and 41 consequences more, or the program has them itself.
        let of = |role| all_types().filter(|known| known.role == Some(role)).count();
        assert_eq!((of(TypeRole::Precondition), of(TypeRole::Consequence)), (24 + 3, 29 + 41));
    }
}
