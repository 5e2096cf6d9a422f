//! The plugin that a workflow is part of: the nearest folder above it with `.claude-plugin/` or `plugin.json`.
//!
//! Its documents become prompts, so others must not be able to make one: the search ends at a folder that belongs to
//! another user than the workflow's, or that others can write into.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The number of folders above a workflow that are searched.
const MAX_LEVELS: usize = 16;

/// The bit of a folder's mode that lets everybody write into it.
const WRITABLE_BY_OTHERS: u32 = 0o002;

/// Returns the root of the plugin that a folder is part of.
pub(super) fn plugin_root(folder: &Path) -> Option<PathBuf> {
    let owner = folder.metadata().ok()?.uid();
    let above = folder.ancestors().skip(1).take(MAX_LEVELS);
    let is_safe = |folder: &&Path| {
        folder
            .symlink_metadata()
            .is_ok_and(|found| found.uid() == owner && found.mode() & WRITABLE_BY_OTHERS == 0)
    };
    let mut safe = above.take_while(is_safe);
    safe.find(|folder| {
        folder.join(".claude-plugin").is_dir() || folder.join("plugin.json").is_file()
    })
    .map(Path::to_owned)
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn nearest_folder_with_plugin_file_is_root_unless_others_can_write_there() {
        let place = tempfile::tempdir().expect("a directory");
        let root = place.path().canonicalize().expect("it is there");
        let plugin = root.join("plugin");
        let skill = plugin.join("skills/one");
        std::fs::create_dir_all(&skill).expect("made");
        for folder in [&plugin, &plugin.join("skills"), &skill] {
            std::fs::set_permissions(folder, Permissions::from_mode(0o755)).expect("set");
        }
        assert_eq!(plugin_root(&skill), None);
        std::fs::create_dir(plugin.join(".claude-plugin")).expect("made");
        assert_eq!(plugin_root(&skill), Some(plugin.clone()));
        std::fs::write(plugin.join("skills/plugin.json"), "{}").expect("written");
        assert_eq!(plugin_root(&skill), Some(plugin.join("skills")));
        let open = Permissions::from_mode(0o777);
        std::fs::set_permissions(plugin.join("skills"), open).expect("set");
        assert_eq!(plugin_root(&skill), None);
    }
}
