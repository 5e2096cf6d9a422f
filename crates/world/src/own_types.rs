//! The types of operations that a program using the library has added to those of the language.

use std::collections::BTreeMap;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use serde_json::{Map, Value};

use raymond_model::operation::OperationResult;

/// A running operation of such a type.
pub type OwnTypeFuture = Pin<Box<dyn Future<Output = OperationResult> + Send>>;

/// A type of operations that a program has added.
///
/// It runs in a task of raymond, so it must not block. It is dropped at an await when the run is stopped, or after
/// half an hour. If it panics, the operation has failed.
pub trait OwnType: Send + Sync {
    /// Performs an operation, with its parameters filled in.
    fn perform(&self, parameters: Map<String, Value>) -> OwnTypeFuture;
}

impl<F, P> OwnType for F
where
    F: Fn(Map<String, Value>) -> P + Send + Sync,
    P: Future<Output = OperationResult> + Send + 'static,
{
    fn perform(&self, parameters: Map<String, Value>) -> OwnTypeFuture {
        Box::pin(self(parameters))
    }
}

/// The added types by their names.
#[derive(Clone, Default)]
pub struct OwnTypeRegistry(BTreeMap<String, Arc<dyn OwnType>>);

impl OwnTypeRegistry {
    /// Adds a type, or replaces the type of the same name.
    pub fn add(&mut self, name: impl Into<String>, own: impl OwnType + 'static) {
        self.0.insert(name.into(), Arc::new(own));
    }

    /// Returns the type of a name.
    pub fn get(&self, name: &str) -> Option<Arc<dyn OwnType>> {
        self.0.get(name).cloned()
    }

    /// Returns all names, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }
}

impl fmt::Debug for OwnTypeRegistry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}
