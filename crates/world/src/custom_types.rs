//! The types of operations that a program using the library has added to those of the language.

use std::collections::BTreeMap;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use serde_json::{Map, Value};

use raymond_model::operation::OperationResult;

/// A running operation of such a type.
pub type CustomTypeFuture = Pin<Box<dyn Future<Output = OperationResult> + Send>>;

/// A type of operations that a program has added.
///
/// It runs in a task of raymond, so it must not block. It is dropped at an await when the run is stopped, or after
/// half an hour. If it panics, the operation has failed.
pub trait CustomType: Send + Sync {
    /// Performs an operation, with its parameters filled in.
    fn perform(&self, parameters: Map<String, Value>) -> CustomTypeFuture;
}

impl<F, P> CustomType for F
where
    F: Fn(Map<String, Value>) -> P + Send + Sync,
    P: Future<Output = OperationResult> + Send + 'static,
{
    fn perform(&self, parameters: Map<String, Value>) -> CustomTypeFuture {
        Box::pin(self(parameters))
    }
}

/// The added types by their names.
#[derive(Clone, Default)]
pub struct CustomTypeRegistry(BTreeMap<String, Arc<dyn CustomType>>);

impl CustomTypeRegistry {
    /// Adds a type, or replaces the type of the same name.
    pub fn add(&mut self, name: impl Into<String>, custom: impl CustomType + 'static) {
        self.0.insert(name.into(), Arc::new(custom));
    }

    /// Returns the type of a name.
    pub fn get(&self, name: &str) -> Option<Arc<dyn CustomType>> {
        self.0.get(name).cloned()
    }

    /// Returns all names, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }
}

impl fmt::Debug for CustomTypeRegistry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}
