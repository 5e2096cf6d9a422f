//! Contents in an engine, by their checksums. The engine is not believed about them.

use super::patience::until_reached;
use super::shared_terms::blob_name;
use crate::engine::EngineError;
use crate::engine::run_space::RunSpace;
use crate::language::checksum::checksum;

/// Has an engine keep a content, and returns its checksum. An engine that cannot be reached is waited for.
///
/// # Errors
/// [`EngineError`] if the engine refuses.
pub(in crate::runtime) fn put_content(
    engine: &dyn RunSpace,
    content: &[u8],
) -> Result<String, EngineError> {
    let sum = checksum(content);
    until_reached(|| false, || engine.put_blob(blob_name(&sum), content))?;
    Ok(sum)
}

/// Returns a content of at most `most` bytes. An engine that cannot be reached is waited for.
///
/// # Errors
/// The reason, if the engine refuses, does not have it, has a larger one, or another one under its checksum.
pub(in crate::runtime) fn fetch_content(
    engine: &dyn RunSpace,
    sum: &str,
    most: u64,
) -> Result<Vec<u8>, String> {
    let found = until_reached(|| false, || engine.blob(blob_name(sum), most))
        .map_err(|error| error.to_string())?;
    match found {
        Some(content) if checksum(&content) == sum => Ok(content),
        Some(_) => Err(format!("the engine holds another content under {sum}")),
        None => Err(format!("the engine has no content {sum}")),
    }
}
