//! Custom types: additions of a program to the language of graphs.

use serde_json::{Map, Value};

use super::builder::Builder;
use super::graphs;
use crate::domain::operation::{OperationResult, RecoveryClass};

impl Builder {
    /// Adds a type of preconditions for the graphs of this run, with its required and its optional parameters. It
    /// answers `true` or `false` and changes nothing: it may be asked again after a crash.
    ///
    /// A type of this name that exists already is an error of [`Builder::run`].
    pub fn precondition<F, P>(
        mut self,
        name: &str,
        required: &[&str],
        optional: &[&str],
        answers: F,
    ) -> Self
    where
        F: Fn(Map<String, Value>) -> P + Send + Sync + 'static,
        P: Future<Output = OperationResult> + Send + 'static,
    {
        self.graphs.offer(name, graphs::precondition(required, optional), answers);
        self
    }

    /// Adds a type of consequences. Its result is stored where the graph says `store_as`; `class` decides the recovery
    /// from a crash in the middle of it. Its future runs in a task of raymond and must not block; it is dropped while
    /// it waits if the run is stopped, or after half an hour.
    ///
    /// ```no_run
    /// use raymond::{RecoveryClass, Runtime};
    /// use serde_json::json;
    ///
    /// # fn main() -> Result<(), raymond::runtime::Error> {
    /// let outcome = Runtime::builder()
    ///     .workflow("flows/greet/workflow.yaml")
    ///     .precondition("is_known", &["person"], &[], |parameters| async move {
    ///         Ok(json!(parameters["person"] == "Ada"))
    ///     })
    ///     .consequence("greet", &["person"], &["loudly"], RecoveryClass::Uncertain, |parameters| async move {
    ///         let person = parameters["person"].as_str().ok_or("`person` is not a text")?;
    ///         Ok(json!({ "said": format!("Hello, {person}!") }))
    ///     })
    ///     .run_here()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn consequence<F, P>(
        mut self,
        name: &str,
        required: &[&str],
        optional: &[&str],
        class: RecoveryClass,
        does: F,
    ) -> Self
    where
        F: Fn(Map<String, Value>) -> P + Send + Sync + 'static,
        P: Future<Output = OperationResult> + Send + 'static,
    {
        self.graphs.offer(name, graphs::consequence(required, optional, class), does);
        self
    }
}
