//! The operations of packs, which only a pack knows.

use std::sync::Arc;

use serde_json::Value;

use crate::context::OperationContext;
use crate::outcome::OperationError;
use raymond_model::operation::PackOperation;

mod corpus;

/// Performs an operation of a pack.
pub(super) async fn perform(
    shared: &Arc<OperationContext>,
    stem: &str,
    operation: &PackOperation,
) -> Result<Value, OperationError> {
    corpus::perform(shared, stem, operation).await
}
