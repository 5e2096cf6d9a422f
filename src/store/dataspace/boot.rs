//! The boot of the machine: whatever was written in another one may have been lost in a power cut.

use std::path::Path;
use std::sync::LazyLock;

use crate::plain_file;

/// The longest id of a boot, in bytes.
const MAX_BOOT_ID: u64 = 128;

/// Returns the id of this boot; `None` where the system has none.
pub(super) fn id() -> Option<&'static str> {
    static ID: LazyLock<Option<String>> = LazyLock::new(|| {
        let bytes = plain_file::read(Path::new("/proc/sys/kernel/random/boot_id"), MAX_BOOT_ID);
        let id = String::from_utf8(bytes.ok()?).ok()?.trim().to_owned();
        (!id.is_empty()).then_some(id)
    });
    ID.as_deref()
}
