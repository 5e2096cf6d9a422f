//! Contents in an engine, by their checksums. The engine is not believed about them.

use std::panic::resume_unwind;
use std::thread;

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

/// The most calls that are made side by side.
const SIDE_BY_SIDE: usize = 8;

/// Makes a call for each item, some at the same time, and returns what they gave in the order of the items. A workflow has many
/// small files, and each of these calls takes some milliseconds.
///
/// # Errors
/// The error of the first item that has one.
pub(super) fn side_by_side<I: Sync, R: Send, E: Send>(
    items: &[I],
    call: impl Fn(&I) -> Result<R, E> + Sync,
) -> Result<Vec<R>, E> {
    let size = items.len().div_ceil(SIDE_BY_SIDE).max(1);
    let call = &call;
    thread::scope(|scope| {
        let part = |items: &'_ [I]| items.iter().map(call).collect::<Result<Vec<R>, E>>();
        let threads: Vec<_> =
            items.chunks(size).map(|items| scope.spawn(move || part(items))).collect();
        let mut all = Vec::with_capacity(items.len());
        for thread in threads {
            all.extend(thread.join().unwrap_or_else(|panicked| resume_unwind(panicked))?);
        }
        Ok(all)
    })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_keep_their_order_and_the_first_error_is_told() {
        let items: Vec<u32> = (0..100).collect();
        assert_eq!(side_by_side(&items, |item| Ok::<_, u32>(item + 1)), Ok((1..=100).collect()));
        let odd = |item: &u32| if item % 30 == 29 { Err(*item) } else { Ok(()) };
        assert_eq!(side_by_side(&items, odd), Err(29));
        assert_eq!(side_by_side(&[], odd), Ok(Vec::new()));
    }
}
